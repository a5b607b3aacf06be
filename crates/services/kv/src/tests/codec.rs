//! The encodings are fixed: a change of any breaks clients and logs.

use super::support::bytes;
use crate::{Answer, Change, Entry, Operation, Watch};
use core::fmt::Debug;
use troth_types::Wire;

fn pinned<T: Wire + PartialEq + Debug>(value: &T, hex: &str) {
    let wire = value.to_wire();
    let found: String = wire.iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(found, hex, "{value:?}");
    assert_eq!(T::from_wire(&wire).as_ref(), Ok(value));
}

#[test]
fn operations() {
    let (key, value) = (bytes("k"), bytes("v"));
    pinned(&Operation::Get { key: key.clone() }, "00010000006b");
    pinned(&Operation::Put { key: key.clone(), value: value.clone() }, "01010000006b0100000076");
    pinned(&Operation::Delete { key: key.clone() }, "02010000006b");
    pinned(
        &Operation::CompareAndSwap { key: key.clone(), expected: Some(7), value: None },
        "03010000006b01070000000000000000",
    );
    pinned(
        &Operation::CompareAndSwap { key: key.clone(), expected: None, value: Some(value.clone()) },
        "03010000006b00010100000076",
    );
    pinned(
        &Operation::Scan { start: key.clone(), end: Some(value), limit: 9 },
        "04010000006b01010000007609000000",
    );
    pinned(&Operation::Watch(Watch::Key(key.clone())), "0500010000006b");
    pinned(&Operation::Unwatch(Watch::Prefix(key)), "0601010000006b");
}

#[test]
fn answers() {
    let (key, value) = (bytes("k"), bytes("v"));
    pinned(&Answer::Value { version: 1, value: value.clone() }, "0001000000000000000100000076");
    pinned(&Answer::Written { version: 2 }, "010200000000000000");
    pinned(&Answer::Deleted { version: 3 }, "020300000000000000");
    let entries = vec![Entry { key: key.clone(), version: 4, value }];
    pinned(
        &Answer::Entries { entries, next: Some(key) },
        "0301000000010000006b0400000000000000010000007601010000006b",
    );
    pinned(&Answer::Mismatch { current: None }, "0700");
    let plain = [
        (Answer::Watching, "04"),
        (Answer::Unwatched, "05"),
        (Answer::NotFound, "06"),
        (Answer::KeyTooLong, "08"),
        (Answer::ValueTooLarge, "09"),
        (Answer::TooManyWatches, "0a"),
        (Answer::ReadOnly, "0b"),
        (Answer::ResultTooLarge, "0c"),
        (Answer::Malformed, "0d"),
    ];
    for (answer, hex) in plain {
        pinned(&answer, hex);
    }
}

#[test]
fn changes() {
    pinned(&Change { key: bytes("k"), deleted: true, version: 5 }, "010000006b010500000000000000");
}
