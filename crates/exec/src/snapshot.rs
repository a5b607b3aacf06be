//! A whole state as bytes for the disk: `version ‖ seq ‖ time ‖ entries ‖ (key ‖ value)…`, entries
//! in the order of the tree, so that equal states have equal snapshots.

use crate::map::{MAX_KEY_BYTES, MAX_VALUE_BYTES};
use crate::{MerkleMap, Tree};
use bytes::Bytes;
use troth_types::{Reader, Seq, Time, Wire, put_bytes};

const VERSION: u16 = 1;

/// Encodes a state.
pub(crate) fn encode(seq: Seq, time: Time, tree: &Tree) -> Bytes {
    let mut out = Vec::new();
    VERSION.encode(&mut out);
    seq.encode(&mut out);
    time.encode(&mut out);
    tree.entries().encode(&mut out);
    tree.for_each(|key, value| {
        put_bytes(&mut out, key);
        put_bytes(&mut out, &value);
    });
    Bytes::from(out)
}

/// The state that a snapshot encodes; nothing where the bytes are not one.
pub(crate) fn decode(bytes: &Bytes) -> Option<(Seq, Time, Tree)> {
    let mut reader = Reader::new(bytes);
    if u16::decode(&mut reader).ok()? != VERSION {
        return None;
    }
    let seq = Wire::decode(&mut reader).ok()?;
    let time = Wire::decode(&mut reader).ok()?;
    let entries = u64::decode(&mut reader).ok()?;
    let mut map = MerkleMap::new();
    for _ in 0..entries {
        let key = reader.bytes("a key", MAX_KEY_BYTES).ok()?;
        let value = reader.bytes("a value", MAX_VALUE_BYTES).ok()?;
        // A copy, so that a small value does not hold the whole snapshot in memory.
        map.insert(&key, Bytes::copy_from_slice(&value));
    }
    reader.finish().ok()?;
    let tree = map.tree_now();
    // Fewer entries than were read: a key stood there twice.
    (tree.entries() == entries).then_some((seq, time, tree))
}
