//! What only this crate decodes, for the fuzz targets: each decodes and encodes again.

use crate::acl::{Acl, Id};
use crate::counters::Counters;
use crate::node::Node;
use crate::sessions::Kept;
use bytes::Bytes;
use troth_types::Wire;

fn again<T: Wire>(bytes: &Bytes) -> Option<Bytes> {
    Some(T::from_wire(bytes).ok()?.to_wire())
}

/// Somebody.
#[must_use]
pub fn id(bytes: &Bytes) -> Option<Bytes> {
    again::<Id>(bytes)
}

/// An entry of an access control list.
#[must_use]
pub fn acl(bytes: &Bytes) -> Option<Bytes> {
    again::<Acl>(bytes)
}

/// What is kept of a node. Lists of access control have one encoding where they are everybody's.
#[must_use]
pub fn node(bytes: &Bytes) -> Option<Bytes> {
    again::<Node>(bytes)
}

/// What is kept of a session.
#[must_use]
pub fn session(bytes: &Bytes) -> Option<Bytes> {
    again::<Kept>(bytes)
}

/// What is counted.
#[must_use]
pub fn counters(bytes: &Bytes) -> Option<Bytes> {
    again::<Counters>(bytes)
}
