//! Events that a client asks for again.

use crate::proving::{CLIENT, Done, One, Step, frame};
use troth_core::{Input, Output, Repeated, Request};
use troth_types::{Time, ToClient, Wish};

/// The events of an answer, and whether the reply to the frame is behind them.
fn answer(
    one: &mut One,
    input: Input<crate::stubs::Silence, troth_core::ReplicaTimer<Step>>,
) -> (Vec<u64>, bool) {
    let (mut events, mut replied) = (Vec::new(), false);
    for output in one.outputs(input) {
        match output {
            Output::Client(ToClient::Event(event)) => {
                assert!(!replied && event.client == CLIENT);
                events.push(event.index);
            }
            Output::Client(ToClient::Attested(_)) => replied = true,
            _ => {}
        }
    }
    (events, replied)
}

fn again(events_seen: u64, wish: Wish) -> Input<crate::stubs::Silence, troth_core::ReplicaTimer<Step>> {
    Input::Repeated(Repeated { client: CLIENT, number: 1, events_seen, wish })
}

fn with(events: Vec<usize>) -> One {
    let mut one = One::with_proof_of(1, Done { events, ..Done::default() });
    one.step(Step::Execute(1));
    one
}

#[test]
fn few_events_are_repeated_together_each_time() {
    let mut one = with(vec![100; 20]);
    for _ in 0..3 {
        assert_eq!(answer(&mut one, again(0, Wish::Full)), ((1..=20).collect(), true));
        assert_eq!(answer(&mut one, again(17, Wish::Full)), ((18..=20).collect(), true));
        assert_eq!(answer(&mut one, again(u64::MAX, Wish::Full)), (Vec::new(), true));
        assert_eq!(answer(&mut one, again(0, Wish::Usual)), (Vec::new(), true), "not asked for");
    }
    // A frame that comes whole is answered in the same way.
    let request = Request { frame: frame(1), wish: Wish::Full };
    assert_eq!(answer(&mut one, Input::Requests(vec![request])).0.len(), 20);
}

#[test]
fn many_events_are_repeated_part_by_part_and_then_anew() {
    // So many small ones, and as large as events are.
    for (events, most) in [(vec![0; 1024], 256), (vec![1 << 20; 10], 1), (vec![100 << 10; 10], 3)] {
        let count = events.len() as u64;
        let mut one = with(events);
        for round in 0..2 {
            let mut all = Vec::new();
            while all.len() < count as usize {
                let (mut part, replied) = answer(&mut one, again(0, Wish::Full));
                assert!(replied && !part.is_empty(), "{round}: {part:?}");
                // The last one shows that there is more.
                if part.len() == most + 1 {
                    assert_eq!(part.pop(), Some(count));
                }
                assert!(part.len() <= most, "{round}: {part:?}");
                all.extend(part);
            }
            assert_eq!(all, (1..=count).collect::<Vec<_>>());
        }
        // What it has seen meanwhile is not sent again.
        let (first, _) = answer(&mut one, again(0, Wish::Full));
        assert_eq!(first[0], 1);
        let (next, _) = answer(&mut one, again(count - 1, Wish::Full));
        assert_eq!(next, [count]);
    }
}

#[test]
fn who_asks_late_is_answered_from_the_first_on_and_behind_all_in_turn() {
    let mut one = with(vec![0; 2048]);
    let mut first = |at| {
        one.1 = Time(at);
        answer(&mut one, again(10, Wish::Full)).0[0]
    };
    assert_eq!(first(1), 11);
    assert_eq!(first(900_000), 267);
    // A client that lacks the first part can deliver nothing, and its pauses grow.
    assert_eq!(first(1_900_001), 11);
    assert_eq!(first(2_000_000), 267);
    // One whose link is slow is late each time, and gets everything all the same.
    let late: Vec<u64> = (2..10).map(|turn| first(turn * 2_000_000)).collect();
    assert_eq!(late, [523, 11, 779, 11, 1035, 11, 1291, 11]);
}

/// Where replies are proven and their proofs are gone before the client asks again.
#[test]
fn events_are_repeated_though_the_proof_is_gone() {
    let mut one = One::with(Done { events: vec![0; 20], ..Done::default() });
    one.step(Step::Execute(1));
    assert_eq!(answer(&mut one, again(0, Wish::Full)), (Vec::new(), false), "it is coming");
    let proven = Input::Timer(troth_core::ReplicaTimer::Protocol(Step::Prove(1)));
    assert_eq!(answer(&mut one, proven), (Vec::new(), true), "and has come");
    assert!(one.0.has_late_answer());
    let late = || Input::Timer(troth_core::ReplicaTimer::Reads);
    assert_eq!(answer(&mut one, late()), ((1..=20).collect(), false), "in a step of their own");
    assert_eq!(
        (one.0.answered_late(), one.0.has_late_answer()),
        (Some(CLIENT), false),
        "which is its client's"
    );
    assert_eq!(answer(&mut one, late()), (Vec::new(), false));
    assert_eq!(one.0.answered_late(), None);
    one.step(Step::Stable(1));
    assert_eq!(answer(&mut one, again(0, Wish::Full)), ((1..=20).collect(), false));
    assert_eq!(answer(&mut one, again(0, Wish::Usual)), (Vec::new(), false));
}

#[test]
fn an_answer_is_estimated_as_what_it_may_hold() {
    let mut one = One::with_proof_of(1, Done { events: vec![1; 20], result: 1_000, ..Done::default() });
    let frame = |number| frame(number).into_inner();
    assert_eq!(one.0.answer_bytes(&frame(1), Wish::Full), 0, "it is new");
    one.step(Step::Execute(1));
    let usual = one.0.answer_bytes(&frame(1), Wish::Usual);
    assert!((1_000..2_000).contains(&usual), "{usual}");
    assert_eq!(one.0.answer_bytes(&frame(1), Wish::Full), usual + (256 << 10));
    assert_eq!(one.0.answer_bytes(&frame(1), Wish::Nothing), 0);
}
