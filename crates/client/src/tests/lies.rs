//! Up to f replicas say whatever they like, in any order, often: no wrong answer, no wrong event,
//! and once the correct ones are heard, an answer to everything.

use super::{Scene, event, refusal, reply};
use bytes::Bytes;
use proptest::prelude::*;
use std::collections::BTreeMap;
use troth_types::{RefusalReason, Reply, ReplyBody, ToClient};

const FRAMES: u64 = 6;

fn true_results(number: u64) -> Vec<Bytes> {
    vec![Bytes::from(format!("true {number}"))]
}

fn true_event(index: u64) -> ToClient {
    event(index, &format!("event {index}"))
}

/// What a correct replica says about a frame: each frame caused one event.
fn truth(number: u64, in_full: bool) -> ToClient {
    let results = true_results(number);
    let body =
        if in_full { ReplyBody::Full(results) } else { ReplyBody::Digest(Reply::results_digest(&results)) };
    reply(number, number, body)
}

#[derive(Clone, Debug)]
enum Step {
    /// A correct replica's word about frame or event `about`.
    True {
        replica: usize,
        about: u64,
        kind: u8,
    },
    /// A faulty one's.
    Lie {
        replica: usize,
        about: u64,
        kind: u8,
        variant: u8,
    },
    Wait(u64),
}

fn step() -> impl Strategy<Value = Step> {
    let about = 1..=FRAMES;
    prop_oneof![
        4 => (0usize..3, about.clone(), 0u8..3).prop_map(|(replica, about, kind)| Step::True { replica, about, kind }),
        4 => (0usize..2, about, 0u8..6, 0u8..2)
            .prop_map(|(replica, about, kind, variant)| Step::Lie { replica, about, kind, variant }),
        1 => (0u64..300_000).prop_map(Step::Wait),
    ]
}

fn lie(about: u64, kind: u8, variant: u8) -> ToClient {
    let false_results = vec![Bytes::from(format!("lie {variant}"))];
    match kind {
        0 => reply(about, u64::from(variant), ReplyBody::Full(false_results)),
        1 => reply(about, about, ReplyBody::Digest(Reply::results_digest(&false_results))),
        2 => event(about, &format!("lie {variant}")),
        3 => event(about + 50, ""),
        4 => refusal(about, false, [RefusalReason::TooLarge, RefusalReason::TooOld][usize::from(variant)]),
        // The true digest's vote with another place in the events.
        _ => reply(about, about + 1, ReplyBody::Full(true_results(about))),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn up_to_f_liars_never_change_an_answer(
        steps in prop::collection::vec(step(), 0..120),
        faulty in prop::sample::subsequence((0u16..5).collect::<Vec<_>>(), 2),
    ) {
        let correct: Vec<u16> = (0..5).filter(|replica| !faulty.contains(replica)).collect();
        let mut scene = Scene::new(5);
        let mut expected = BTreeMap::new();
        let mut next_event = 1;
        let mut check = |scene: &mut Scene, expected: &mut BTreeMap<_, u64>| {
            let seen = scene.drain();
            for event in &seen.events {
                assert_eq!(event.index, next_event, "in order, without gaps");
                assert_eq!(event.payload, format!("event {next_event}"));
                next_event += 1;
            }
            for (ticket, result) in seen.done {
                let number = expected.remove(&ticket).expect("each ticket ends once");
                assert_eq!(result, Ok(true_results(number)));
                assert!(next_event > number, "its event came first");
            }
        };
        for number in 1..=FRAMES {
            let ticket = scene.submit(&["op"]);
            expected.insert(ticket, number);
            check(&mut scene, &mut expected);
        }
        for step in steps {
            match step {
                Step::True { replica, about, kind } => {
                    let message = if kind == 2 { true_event(about) } else { truth(about, kind == 1) };
                    scene.say(correct[replica], message);
                }
                Step::Lie { replica, about, kind, variant } => {
                    scene.say(faulty[replica], lie(about, kind, variant));
                }
                Step::Wait(micros) => scene.wait(micros),
            }
            check(&mut scene, &mut expected);
        }
        // Now every correct replica is heard, as after a retransmission.
        for number in 1..=FRAMES {
            for replica in &correct {
                scene.say(*replica, true_event(number));
                scene.say(*replica, truth(number, true));
            }
            check(&mut scene, &mut expected);
        }
        prop_assert!(expected.is_empty(), "every submission ends: {expected:?}");
    }
}
