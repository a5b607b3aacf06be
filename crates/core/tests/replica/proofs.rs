//! Replies that wait for the proof of their place, and what is held for them.

use crate::proving::{CLIENT, Done, One, Step, frame};
use troth_core::{Input, Output, Repeated};
use troth_types::{RefusalReason, ReplicaId, ToClient, Wish};

#[test]
fn replies_wait_for_their_proof_and_not_for_ever() {
    let mut one = One::new();
    for number in 1..=6 {
        assert!(one.step(Step::Execute(number)).is_empty());
    }
    assert_eq!(one.step(Step::Prove(1)), [1]);
    one.step(Step::Stable(2));
    assert_eq!(one.step(Step::Prove(2)), [2], "proven a little later than stable");
    one.step(Step::Stable(4));
    one.step(Step::Stable(6));
    assert!(one.step(Step::Prove(3)).is_empty() && one.step(Step::Prove(4)).is_empty(), "asked for anew");
    assert_eq!(one.step(Step::Prove(5)), [5]);
}

#[test]
fn what_is_executed_is_told_from_what_is_new_and_who_wants_it_again() {
    let mut one = One::new();
    let show = |one: &mut One, number| one.input(Input::Frames(ReplicaId(1), vec![frame(number)]));
    let ask = |one: &mut One, number| {
        one.input(Input::Requests(vec![troth_core::Request { frame: frame(number), wish: Wish::Usual }]))
    };
    show(&mut one, 1);
    ask(&mut one, 2);
    one.step(Step::Execute(1));
    ask(&mut one, 1);
    show(&mut one, 1);
    one.step(Step::Stable(1));
    ask(&mut one, 1);
    let wanted = [("new", 1), ("new", 2), ("a replica shows it", 1), ("its client asks", 1)];
    assert_eq!(one.0.agreement().wanted, wanted, "a proof that is coming is waited for");
}

#[test]
fn what_is_asked_for_again_together_is_looked_at_as_far_as_a_turn_has_time_for_it() {
    // What a digest is sent of is hashed whole: of 600 KiB each the second passes the MiB.
    for (result, asked, looked_at) in [(600 << 10, 400, 2), (0, 512, 512), (0, 1_000, 512)] {
        let mut one = One::with(Done { result, ..Done::default() });
        one.step(Step::Execute(1));
        one.step(Step::Stable(1));
        let request = || troth_core::Request { frame: frame(1), wish: Wish::Usual };
        one.input(Input::Requests(std::iter::repeat_with(request).take(asked).collect()));
        assert_eq!(one.0.agreement().wanted.len(), looked_at, "{asked} of {result} bytes");
    }
}

#[test]
fn what_lost_its_result_is_ordered_again_for_replicas_and_refused_to_its_client() {
    let mut one = One::with(Done { gone: vec![1], overtaken: vec![2], ..Done::default() });
    (1..=2).for_each(|number| drop(one.step(Step::Execute(number))));
    for number in 1..=2 {
        assert!(one.input(Input::Frames(ReplicaId(1), vec![frame(number)])).is_empty());
        assert!(one.0.is_done(CLIENT, number));
        let request = troth_core::Request { frame: frame(number), wish: Wish::Usual };
        let again = Repeated { client: CLIENT, number, events_seen: 0, wish: Wish::Usual };
        for asked in [Input::Requests(vec![request]), Input::Repeated(again)] {
            let refusals = one.outputs(asked).into_iter().filter_map(|output| match output {
                Output::Client(ToClient::Refusal(refusal)) => Some((refusal.number, refusal.reason)),
                _ => None,
            });
            assert_eq!(refusals.collect::<Vec<_>>(), [(number, RefusalReason::TooOld)]);
        }
    }
    // A replica may wait for the first, as it may have waited before. The other is overtaken for it, too.
    assert_eq!(one.0.agreement().wanted, [("a replica shows it", 1), ("known", 2)]);
}
