//! Attested append-only memory: the logs, calls, attestations, stored form, and a model of all of it.

mod attestations;
mod calls;
mod log;
mod model;
mod nonces;
mod peers;
mod stored;

use crate::support::{IDENTITY, mac_key};
use troth_trusted::a2m::{
    A2m, Answer, Attestation, Content, Entry, LOGS, LogId, LogStore, Nonce, Operation, Slot,
};
use troth_trusted::{Certifier, CounterValue, Digest, VolatileStore};

/// Names a rule of `docs/protocols/a2m.md` that the test would fail without.
macro_rules! covers {
    ($($label:literal),+) => {};
}
use covers;

pub type Component<S = VolatileStore> = A2m<Vec<Entry>, S>;

pub const Q: LogId = LogId(0);
pub const M: LogId = LogId(5);
pub const Z: Nonce = [0x5a; 32];
pub const ZERO: Digest = [0; 32];

/// Room for so many entries in every log.
pub fn room(entries: usize) -> [Vec<Entry>; LOGS] {
    core::array::from_fn(|_| vec![Entry::UNUSED; entries])
}

/// A component with empty logs that keeps nothing.
pub fn volatile(entries: usize) -> Component {
    A2m::start(IDENTITY, Certifier::Mac(mac_key()), VolatileStore, room(entries))
}

pub fn slot(number: u128) -> Slot {
    CounterValue(number)
}

pub fn append(log: LogId, number: u128, value: u8) -> Operation {
    Operation::Append { log, slot: slot(number), value: [value; 32], nonce: None }
}

pub fn advance(log: LogId, number: u128, previous: Digest, value: u8) -> Operation {
    Operation::Advance { log, slot: slot(number), previous, value: [value; 32], nonce: None }
}

pub fn truncate(log: LogId, number: u128) -> Operation {
    Operation::Truncate { log, slot: slot(number) }
}

pub fn lookup(log: LogId, number: u128) -> Operation {
    Operation::Lookup { log, slot: slot(number), nonce: Z }
}

pub fn end(log: LogId) -> Operation {
    Operation::End { log, nonce: Z }
}

/// The same change with the lookup of the slot that it fills.
pub fn fused(operation: Operation) -> Operation {
    match operation {
        Operation::Append { log, slot, value, .. } => Operation::Append { log, slot, value, nonce: Some(Z) },
        Operation::Advance { log, slot, previous, value, .. } => {
            Operation::Advance { log, slot, previous, value, nonce: Some(Z) }
        }
        other => other,
    }
}

/// Does operations that must succeed, one call each.
pub fn done<S: LogStore<Vec<Entry>>>(component: &mut Component<S>, operations: &[Operation]) {
    for operation in operations {
        assert_eq!(component.one(*operation), Ok(Answer::Done), "{operation:?}");
    }
}

/// The attestation that an operation must give.
pub fn attested<S: LogStore<Vec<Entry>>>(component: &mut Component<S>, operation: Operation) -> Attestation {
    match component.one(operation) {
        Ok(Answer::Attested(attestation)) => attestation,
        other => panic!("{operation:?} was answered {other:?}"),
    }
}

/// What a log of the component says of a slot.
pub fn content<S: LogStore<Vec<Entry>>>(component: &Component<S>, log: LogId, number: u128) -> Content {
    component.logs().get(log).expect("there is such a log").content(slot(number))
}
