//! Every bound is met with an answer, and every answer fits the default limits.

use super::support::{Store, bytes};
use crate::{Answer, MAX_KEY, MAX_SCAN_BYTES, MAX_SCAN_ENTRIES, MAX_VALUE, Operation, Watch};
use bytes::Bytes;
use troth_types::{FrameDraft, Limits, Signature, Wire};

fn long(bytes: usize) -> Bytes {
    Bytes::from(vec![b'x'; bytes])
}

#[test]
fn keys_are_bounded_in_every_operation() {
    let mut store = Store::new();
    let key = long(MAX_KEY + 1);
    let operations = [
        Operation::Get { key: key.clone() },
        Operation::Put { key: key.clone(), value: Bytes::new() },
        Operation::Delete { key: key.clone() },
        Operation::CompareAndSwap { key: key.clone(), expected: None, value: None },
        Operation::Scan { start: key.clone(), end: None, limit: 1 },
        Operation::Watch(Watch::Key(key.clone())),
        Operation::Watch(Watch::Prefix(key.clone())),
        Operation::Unwatch(Watch::Prefix(key)),
    ];
    let before = store.map.tree_now().digest();
    for operation in operations {
        assert_eq!(store.run(1, &operation), Answer::KeyTooLong, "{operation:?}");
        assert_eq!(store.query(&operation), Answer::KeyTooLong);
    }
    assert_eq!(store.map.tree_now().digest(), before);
    let longest = Operation::Put { key: long(MAX_KEY), value: Bytes::new() };
    assert_eq!(store.run(1, &longest), Answer::Written { version: 1 });
    assert_eq!(store.run(1, &Operation::Watch(Watch::Prefix(long(MAX_KEY)))), Answer::Watching);
    assert_eq!(store.run(1, &longest), Answer::Written { version: 2 });
    assert_eq!(store.changes().len(), 1);
}

#[test]
fn values_are_bounded_and_the_largest_fits_frame_and_result() {
    let mut store = Store::new();
    let key = long(MAX_KEY);
    let put = |length| Operation::Put { key: key.clone(), value: long(length) };
    assert_eq!(store.run(1, &put(MAX_VALUE + 1)), Answer::ValueTooLarge);
    let swap =
        Operation::CompareAndSwap { key: key.clone(), expected: None, value: Some(long(MAX_VALUE + 1)) };
    assert_eq!(store.run(1, &swap), Answer::ValueTooLarge);
    assert_eq!(store.run(1, &put(MAX_VALUE)), Answer::Written { version: 1 });
    let answer = store.run(1, &Operation::Get { key: key.clone() });
    assert!(answer.to_wire().len() <= Limits::DEFAULT.result_bytes);
    let draft = FrameDraft {
        group: Default::default(),
        client: Default::default(),
        number: 1,
        events_seen: 0,
        operations: vec![put(MAX_VALUE).to_wire()],
    };
    assert!(draft.sign(Signature([0; 64])).size() <= Limits::DEFAULT.frame_bytes);
}

#[test]
fn scans_are_bounded_by_count_and_by_bytes() {
    let mut store = Store::new();
    let put = |store: &mut Store, key: String, value: Bytes| {
        store.run(1, &Operation::Put { key: Bytes::from(key), value })
    };
    for number in 0..MAX_SCAN_ENTRIES + 5 {
        put(&mut store, format!("a{number:05}"), bytes("v").clone());
    }
    for number in 0..4 {
        put(&mut store, format!("b{number}"), long(MAX_SCAN_BYTES - 100 - number));
    }
    put(&mut store, "c1".into(), long(MAX_SCAN_BYTES - 100));
    put(&mut store, "c2".into(), long(MAX_VALUE));
    let count = |answer: &Answer| match answer {
        Answer::Entries { entries, next } => (entries.len(), next.clone()),
        other => panic!("a scan was answered with {other:?}"),
    };
    let many = store.query(&Operation::scan_prefix(&bytes("a"), u32::MAX));
    assert_eq!(count(&many), (MAX_SCAN_ENTRIES, Some(Bytes::from(format!("a{MAX_SCAN_ENTRIES:05}")))));
    let large = store.query(&Operation::scan_prefix(&bytes("b"), u32::MAX));
    assert_eq!(count(&large), (2, Some(bytes("b2"))));
    let largest = store.query(&Operation::scan_prefix(&bytes("c"), u32::MAX));
    assert_eq!(count(&largest), (2, None));
    for answer in [many, large, largest] {
        assert!(answer.to_wire().len() <= Limits::DEFAULT.result_bytes);
    }
}

#[test]
fn what_is_no_operation_is_answered() {
    let mut store = Store::new();
    let put = Operation::Put { key: bytes("k"), value: bytes("v") }.to_wire();
    let mut longer = put.to_vec();
    longer.push(0);
    for garbage in [Bytes::new(), bytes("garbage"), put.slice(..put.len() - 1), Bytes::from(longer)] {
        assert_eq!(store.raw(1, &garbage), Answer::Malformed);
    }
    assert_eq!(store.get("k"), Answer::NotFound);
}

#[test]
fn a_write_sent_as_a_read_is_refused() {
    let store = Store::new();
    let writes = [
        Operation::Put { key: bytes("k"), value: bytes("v") },
        Operation::Delete { key: bytes("k") },
        Operation::CompareAndSwap { key: bytes("k"), expected: None, value: None },
        Operation::Watch(Watch::Key(bytes("k"))),
        Operation::Unwatch(Watch::Key(bytes("k"))),
    ];
    for write in writes {
        assert_eq!(store.query(&write), Answer::ReadOnly);
    }
}
