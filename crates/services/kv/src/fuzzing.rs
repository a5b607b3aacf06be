//! What only this crate decodes, for the fuzz targets: each decodes and encodes again.

use crate::watches::{Count, Lengths, Watchers};
use bytes::Bytes;
use troth_types::Wire;

/// The clients that watch a pattern.
#[must_use]
pub fn watchers(bytes: &Bytes) -> Option<Bytes> {
    Some(Watchers::from_wire(bytes).ok()?.to_wire())
}

/// The lengths of watched prefixes.
#[must_use]
pub fn lengths(bytes: &Bytes) -> Option<Bytes> {
    Some(Lengths::from_wire(bytes).ok()?.to_wire())
}

/// A client's number of watches.
#[must_use]
pub fn count(bytes: &Bytes) -> Option<Bytes> {
    Some(Count::from_wire(bytes).ok()?.to_wire())
}
