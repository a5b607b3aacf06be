//! The key-value service's operations and answers, the entries of the replicated state, a backup's greeting.

use crate::wire::{Decoder, hidden, of, one_of, seed};
use crate::{Bound, Target};
use bytes::Bytes;
use troth_exec::fuzzing as exec;
use troth_kv::fuzzing as kv;
use troth_kv::{Answer, Change, Entry, Operation, Watch};
use troth_node::fuzzing as node;

pub(super) const TARGET: Target = Target {
    name: "wire-service",
    run: |input| one_of(GROUP, input),
    seeds,
    bound: Bound::DECODER,
    longest: 4096,
};

pub(super) const GROUP: &[Decoder] = &[
    of::<Operation>(),
    of::<Answer>(),
    of::<Watch>(),
    of::<Entry>(),
    of::<Change>(),
    hidden(|| "troth_exec::Record", exec::record),
    hidden(|| "troth_exec::Slot", exec::slot),
    hidden(|| "troth_exec::Place", exec::place),
    hidden(|| "troth_exec::Question", exec::question),
    hidden(|| "troth_exec::Held", exec::held),
    hidden(|| "troth_kv::Watchers", kv::watchers),
    hidden(|| "troth_kv::Lengths", kv::lengths),
    hidden(|| "troth_kv::Count", kv::count),
    hidden(|| "troth_node::Greeting", node::greeting),
];

/// One operation of each kind.
pub(super) fn operations() -> Vec<Operation> {
    let (key, value) = (Bytes::from_static(b"key"), Bytes::from_static(b"value"));
    vec![
        Operation::Get { key: key.clone() },
        Operation::Put { key: key.clone(), value: value.clone() },
        Operation::Delete { key: key.clone() },
        Operation::CompareAndSwap { key: key.clone(), expected: Some(1), value: Some(value) },
        Operation::scan_prefix(&key, 10),
        Operation::Watch(Watch::Prefix(key.slice(..1))),
        Operation::Unwatch(Watch::Key(key)),
    ]
}

fn seeds() -> Vec<Vec<u8>> {
    let (key, value) = (Bytes::from_static(b"key"), Bytes::from_static(b"value"));
    let entry = Entry { key: key.clone(), version: 3, value: value.clone() };
    let mut seeds: Vec<Vec<u8>> = operations().iter().map(|operation| seed(GROUP, operation)).collect();
    seeds.extend([
        seed(GROUP, &Answer::Value { version: 1, value }),
        seed(GROUP, &Answer::Entries { entries: vec![entry.clone(); 2], next: Some(key.clone()) }),
        seed(GROUP, &Answer::Mismatch { current: Some(2) }),
        seed(GROUP, &Watch::Key(key.clone())),
        seed(GROUP, &entry),
        seed(GROUP, &Change { key, deleted: true, version: 9 }),
    ]);
    // Those that only their crates decode, by hand: a slot with two results, a place of odd depth, two lists.
    seeds.push([&[6][..], &[1; 24], &[1, 2, 0, 0, 0, 1, 0, 0, 0, 7, 0, 0, 0, 0]].concat());
    seeds.push(vec![7, 3, 0x12, 0x30, 255]);
    seeds.push([&[8][..], &[2, 0, 0, 0], &[1; 8], &[2; 8]].concat());
    seeds.push([&[9][..], &[2, 0, 0, 0], &[1, 0], &[1; 8], &[2, 0], &[2; 8]].concat());
    seeds.push(vec![11, 1, 0, 1, 2, 0, 0, 0, b'n', b'o']);
    seeds
}
