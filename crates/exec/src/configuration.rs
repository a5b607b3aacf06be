//! The group's configuration as a part of the replicated state: what an operator's operation does to it.

use crate::MerkleMap;
use crate::state::SYSTEM;
use bytes::Bytes;
use std::sync::Arc;
use troth_types::{Change, ChangeAnswer, Configuration, Seq, Wire};

/// The key of the configuration; there is none until the first change.
const KEY: [u8; 2] = [SYSTEM, b'g'];

/// The configuration in a state, if it ever changed.
pub(crate) fn read(map: &MerkleMap) -> Option<Configuration> {
    let stored = map.get(&KEY)?;
    Some(Configuration::from_wire(&stored).expect("what the executor wrote decodes"))
}

/// Executes one operation of an operator's frame in the batch `at`: its result, and the configuration where
/// it changed.
pub(crate) fn execute(
    map: &mut MerkleMap,
    present: &Configuration,
    operation: &Bytes,
    at: Seq,
    settling: u64,
) -> (Bytes, Option<Arc<Configuration>>) {
    let change = match Change::from_wire(operation) {
        Ok(change) => change,
        Err(why) => return (refuse(&format!("not a change of the configuration: {why}")), None),
    };
    let mut next = present.clone();
    // The group is of 2f+1 replicas, or of 3f+1, where f is smaller: no more than can be spared settle at once.
    let faults = next.members().len().saturating_sub(1) / 2;
    if let Err(why) = next.apply(&change, at, settling, faults) {
        return (refuse(&why.to_string()), None);
    }
    let changed = next != *present;
    let answer = ChangeAnswer::Done(at, next.clone()).to_wire();
    if !changed {
        return (answer, None);
    }
    map.insert(&KEY, next.to_wire());
    (answer, Some(Arc::new(next)))
}

/// Whether an operator's operation changes nothing and is asked for its answer, which may be long.
pub(crate) fn only_reads(operation: &Bytes) -> bool {
    matches!(Change::from_wire(operation), Ok(Change::Show))
}

fn refuse(why: &str) -> Bytes {
    ChangeAnswer::Refused(why.to_owned()).to_wire()
}

/// The answer to an operator's question, which changes nothing.
pub(crate) fn query(present: &Configuration, operation: &Bytes, at: Seq) -> Bytes {
    match Change::from_wire(operation) {
        Ok(Change::Show) => ChangeAnswer::Done(at, present.clone()).to_wire(),
        Ok(_) => refuse("a change must be ordered, not read"),
        Err(why) => refuse(&format!("not a question about the configuration: {why}")),
    }
}
