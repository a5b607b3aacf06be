//! What a frame of operations may look at.

use super::support::bytes;
use crate::{Answer, Kv, Operation, Watch};
use bytes::Bytes;
use std::sync::Arc;
use troth_auth::{Directory, FrameVerifier, ModelScheme, ModelSigner, Signer};
use troth_core::{Execution, Ordered};
use troth_exec::{Executor, StateView};
use troth_types::{ClientId, Digest, FrameDraft, GroupId, Limits, ReplyBody, Time, Wire};

const LIMITS: Limits = Limits { client_bytes: 8_000, result_bytes: 8_000, ..Limits::DEFAULT };

fn run(executor: &mut Executor<Kv>, number: u64, operations: &[Operation]) -> Vec<Answer> {
    let (group, client) = (GroupId([1; 16]), ClientId(1));
    let signer = ModelSigner::new(client.0);
    let mut scheme = ModelScheme::default();
    scheme.register(&signer);
    let directory = Directory::of_clients(group, [(client, signer.public_key())]);
    let operations = operations.iter().map(Wire::to_wire).collect();
    let draft = FrameDraft { group, client, number, events_seen: 0, operations };
    let signature = signer.sign(&draft.signing_digest());
    let verifier = FrameVerifier::new(Arc::new(directory), Arc::new(scheme), LIMITS);
    let frame = verifier.verify(Arc::new(draft.sign(signature))).expect("signed above");
    let seq = executor.executed().next();
    let ordered = Ordered { seq, time: Time(1), seed: Digest::ZERO, frames: vec![frame] };
    let outcome = executor.execute(&ordered);
    let ReplyBody::Full(results) = &outcome.replies[0].body else { panic!("replies are whole here") };
    results.iter().map(|result| Answer::from_wire(result).expect("answers decode")).collect()
}

#[test]
fn ranges_of_small_entries_count_for_more_than_they_show() {
    let mut executor = Executor::new(Kv::default(), LIMITS);
    let put = |number: u8| Operation::Put { key: Bytes::from(vec![number]), value: Bytes::new() };
    run(&mut executor, 1, &(0..20).map(put).collect::<Vec<_>>());
    // Each range shows some 600 bytes and looks at twenty entries.
    let range = Operation::Scan { start: Bytes::new(), end: None, limit: 20 };
    let mut frame = vec![range; 6];
    frame.push(Operation::Put { key: bytes("late"), value: Bytes::new() });
    frame.push(Operation::Get { key: bytes("late") });
    let answers = run(&mut executor, 2, &frame);
    let shown = answers.iter().filter(|answer| matches!(answer, Answer::Entries { .. })).count();
    assert_eq!(shown, 2, "8,000 bytes are 31 entries at 256 bytes each");
    assert!(matches!(answers[6], Answer::Written { .. }), "writes happen whatever was read before them");
    assert_eq!(answers[7], Answer::ResultTooLarge);
}

#[test]
fn large_results_leave_room_for_small_ones_behind_them() {
    const ROOM: Limits = Limits { client_bytes: 100_000, result_bytes: 50_000, ..Limits::DEFAULT };
    let mut executor = Executor::new(Kv::default(), ROOM);
    let large = Operation::Put { key: bytes("large"), value: Bytes::from(vec![7; 24_900]) };
    run(&mut executor, 1, &[large]);
    // Four of them are all that the client's results may be.
    let mut frame = vec![Operation::Get { key: bytes("large") }; 4];
    frame.extend((0..5).map(|number| Operation::Put { key: Bytes::from(vec![number]), value: Bytes::new() }));
    let answers = run(&mut executor, 2, &frame);
    let shown = answers.iter().filter(|answer| matches!(answer, Answer::Value { .. })).count();
    let written = answers.iter().filter(|answer| matches!(answer, Answer::Written { .. })).count();
    assert_eq!((shown, written), (3, 5));
    let answers = run(&mut executor, 3, &frame[..4]);
    let shown = answers.iter().filter(|answer| matches!(answer, Answer::Value { .. })).count();
    assert_eq!(shown, 4, "behind them is nothing");
}

#[test]
fn a_frame_does_what_its_operations_do_one_by_one() {
    let put = |key: &'static str| Operation::Put { key: bytes(key), value: bytes("value") };
    let prefix = |prefix: &'static str| Watch::Prefix(bytes(prefix));
    let operations = [
        put("a/1"),
        Operation::Watch(prefix("a/")),
        put("a/2"),
        Operation::Watch(prefix("a")),
        Operation::Watch(Watch::Key(bytes("b"))),
        put("b"),
        Operation::Delete { key: bytes("a/1") },
        Operation::Delete { key: bytes("a/1") },
        Operation::CompareAndSwap { key: bytes("a/2"), expected: Some(2), value: Some(bytes("other")) },
        Operation::Unwatch(prefix("a/")),
        put("a/3"),
        Operation::Unwatch(prefix("a")),
        put("a/4"),
        Operation::CompareAndSwap { key: bytes("a/4"), expected: Some(1), value: None },
        Operation::Get { key: bytes("a/2") },
        // A frame of these alone writes nothing.
        Operation::Delete { key: bytes("a/1") },
        Operation::CompareAndSwap { key: bytes("a/2"), expected: Some(1), value: Some(bytes("late")) },
        Operation::Get { key: bytes("b") },
    ];
    for cuts in [vec![], vec![3], vec![2, 10, 15], (1..operations.len()).collect()] {
        let mut store = super::support::Store::new();
        let mut expected = Vec::new();
        let mut executor = Executor::new(Kv::default(), LIMITS);
        let (mut answers, mut from) = (Vec::new(), 0);
        for (number, to) in (1..).zip(cuts.iter().copied().chain([operations.len()])) {
            answers.extend(run(&mut executor, number, &operations[from..to]));
            expected.extend(operations[from..to].iter().map(|operation| store.run(1, operation)));
            from = to;
            let own: Vec<(Vec<u8>, Bytes)> =
                executor.state().scan(b"").map(|(key, value)| (key.to_vec(), value)).collect();
            let alone: Vec<(Vec<u8>, Bytes)> =
                StateView::new(&store.map).scan(b"").map(|(key, value)| (key.to_vec(), value)).collect();
            assert_eq!(own, alone, "the state behind a frame that ends before {to}");
        }
        assert_eq!(answers, expected, "in frames that end before {cuts:?}");
        // Versions go on, and events were those of the watches at that moment.
        assert_eq!(run(&mut executor, 99, &[put("late")]), [store.run(1, &put("late"))]);
        let events = executor.outbox(ClientId(1)).map(|index| executor.event(ClientId(1), index).payload);
        let expected = store.events.drain(..).map(|(_, payload)| payload);
        assert!(events.eq(expected), "in frames that end before {cuts:?}");
    }
}
