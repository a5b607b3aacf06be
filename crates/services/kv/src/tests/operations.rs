//! Get, put, delete, compare-and-swap and scan.

use super::support::{Store, bytes};
use crate::{Answer, Kv, Null, Operation, Watch};
use bytes::Bytes;
use troth_exec::{Application, MerkleMap, OpContext, State, StateView};
use troth_types::{ClientId, Digest, Seq, Time, Wire};

fn value(version: u64, value: &'static str) -> Answer {
    Answer::Value { version, value: bytes(value) }
}

fn swap(expected: Option<u64>, value: Option<&'static str>) -> Operation {
    Operation::CompareAndSwap { key: bytes("k"), expected, value: value.map(bytes) }
}

#[test]
fn a_key_holds_what_was_put_last() {
    let mut store = Store::new();
    assert_eq!(store.get("a"), Answer::NotFound);
    assert_eq!(store.put("a", "one"), 1);
    assert_eq!(store.put("b", ""), 2);
    assert_eq!(store.put("a", "two"), 3, "versions count the writes of the store");
    assert_eq!(store.get("a"), value(3, "two"));
    assert_eq!(store.get("b"), value(2, ""), "an empty value is a value");
    assert_eq!(store.get(""), Answer::NotFound);
}

#[test]
fn a_deleted_key_is_gone_and_its_versions_do_not_come_back() {
    let mut store = Store::new();
    store.put("k", "x");
    assert_eq!(store.delete("k"), Answer::Deleted { version: 2 });
    assert_eq!(store.delete("k"), Answer::NotFound);
    assert_eq!(store.get("k"), Answer::NotFound);
    assert_eq!(store.put("k", "x"), 3);
    assert_eq!(store.run(1, &swap(Some(1), Some("y"))), Answer::Mismatch { current: Some(3) });
}

#[test]
fn compare_and_swap_writes_only_over_the_expected_version() {
    let mut store = Store::new();
    assert_eq!(store.run(1, &swap(Some(1), Some("x"))), Answer::Mismatch { current: None });
    assert_eq!(store.run(1, &swap(None, Some("x"))), Answer::Written { version: 1 });
    assert_eq!(store.run(1, &swap(None, Some("y"))), Answer::Mismatch { current: Some(1) });
    assert_eq!(store.get("k"), value(1, "x"), "a mismatch changes nothing");
    assert_eq!(store.run(1, &swap(Some(1), Some("y"))), Answer::Written { version: 2 });
    assert_eq!(store.run(1, &swap(Some(1), None)), Answer::Mismatch { current: Some(2) });
    assert_eq!(store.run(1, &swap(Some(2), None)), Answer::Deleted { version: 3 });
    assert_eq!(store.run(1, &swap(None, None)), Answer::NotFound);
}

fn keys(answer: Answer) -> (Vec<Bytes>, Option<Bytes>) {
    match answer {
        Answer::Entries { entries, next } => (entries.into_iter().map(|entry| entry.key).collect(), next),
        other => panic!("a scan was answered with {other:?}"),
    }
}

#[test]
fn scans_go_in_key_order_through_a_range() {
    let mut store = Store::new();
    for key in ["b", "a", "ab", "c", "b1", "b2"] {
        store.put(key, "v");
    }
    store.delete("b1");
    let all = Operation::Scan { start: Bytes::new(), end: None, limit: 100 };
    assert_eq!(store.run(1, &all), store.query(&all));
    assert_eq!(keys(store.query(&all)), (["a", "ab", "b", "b2", "c"].map(bytes).to_vec(), None));
    let some = Operation::Scan { start: bytes("ab"), end: Some(bytes("b2")), limit: 100 };
    assert_eq!(keys(store.query(&some)), (["ab", "b"].map(bytes).to_vec(), None));
    let empty = Operation::Scan { start: bytes("b2"), end: Some(bytes("a")), limit: 100 };
    assert_eq!(keys(store.query(&empty)), (Vec::new(), None));
    let prefix = Operation::scan_prefix(&bytes("b"), 100);
    assert_eq!(keys(store.query(&prefix)), (["b", "b2"].map(bytes).to_vec(), None));
}

#[test]
fn a_limited_scan_says_where_to_go_on() {
    let mut store = Store::new();
    for key in ["a", "b", "c"] {
        store.put(key, "v");
    }
    let first = Operation::Scan { start: Bytes::new(), end: None, limit: 2 };
    assert_eq!(keys(store.query(&first)), (["a", "b"].map(bytes).to_vec(), Some(bytes("c"))));
    let second = Operation::Scan { start: bytes("c"), end: None, limit: 2 };
    assert_eq!(keys(store.query(&second)), (vec![bytes("c")], None));
}

#[test]
fn a_prefix_of_highest_bytes_scans_to_the_end() {
    let high = Bytes::from_static(&[b'a', 255, 255]);
    let Operation::Scan { end, .. } = Operation::scan_prefix(&high, 1) else { panic!("a scan") };
    assert_eq!(end, Some(bytes("b")));
    let Operation::Scan { end, .. } = Operation::scan_prefix(&Bytes::from_static(&[255]), 1) else {
        panic!("a scan")
    };
    assert_eq!(end, None);
}

#[test]
fn the_null_service_answers_and_keeps_nothing() {
    let null = Null::new(3);
    let mut map = MerkleMap::new();
    let before = map.tree_now().digest();
    let mut events = Vec::new();
    let mut cx = OpContext::new(ClientId(1), 1, Seq(1), Time(1), Digest::ZERO, &mut events);
    let result = null.execute(&mut State::new(&mut map), &mut cx, &bytes("anything"));
    assert_eq!(result, Bytes::from_static(&[0, 0, 0]));
    assert_eq!(null.query(&StateView::new(&map), ClientId(1), &Bytes::new()), result);
    assert_eq!(map.tree_now().digest(), before);
    assert!(events.is_empty());
}

#[test]
fn only_gets_and_scans_only_read() {
    let kv = Kv::default();
    let key = Bytes::from_static(b"k");
    let scan = Operation::Scan { start: key.clone(), end: None, limit: 1 };
    for (operation, reads) in [
        (Operation::Get { key: key.clone() }, true),
        (scan, true),
        (Operation::Put { key: key.clone(), value: key.clone() }, false),
        (Operation::Delete { key: key.clone() }, false),
        (swap(None, None), false),
        (Operation::Watch(Watch::Key(key.clone())), false),
        (Operation::Unwatch(Watch::Key(key)), false),
    ] {
        assert_eq!(kv.only_reads(&operation.to_wire()), reads, "{operation:?}");
    }
    assert!(!kv.only_reads(&Bytes::from_static(b"\xff")));
}
