//! What only this crate decodes, for the fuzz targets: each decodes and encodes again.

use crate::clients::{Record, Slot};
use crate::delta::Held;
use crate::place::{Place, Question};
use bytes::Bytes;
use troth_types::Wire;

/// A client's record in the table.
#[must_use]
pub fn record(bytes: &Bytes) -> Option<Bytes> {
    Some(Record::from_wire(bytes).ok()?.to_wire())
}

/// A slot of a client's window.
#[must_use]
pub fn slot(bytes: &Bytes) -> Option<Bytes> {
    Some(Slot::from_wire(bytes).ok()?.to_wire())
}

/// A place in the tree of a state.
#[must_use]
pub fn place(bytes: &Bytes) -> Option<Bytes> {
    Some(Place::from_wire(bytes).ok()?.to_wire())
}

/// A question for what differs at places of a state.
#[must_use]
pub fn question(bytes: &Bytes) -> Option<Bytes> {
    Some(Question::from_wire(bytes).ok()?.to_wire())
}

/// What is held at a place of a state.
#[must_use]
pub fn held(bytes: &Bytes) -> Option<Bytes> {
    Some(Held::from_wire(bytes).ok()?.to_wire())
}
