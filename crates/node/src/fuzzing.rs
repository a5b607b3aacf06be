//! What only this crate reads, for the fuzz targets.

use crate::backup::{file, wire};
use crate::{http, snapshot::Snapshot, standing, succession};
use bytes::Bytes;
use std::path::Path;
use troth_types::Wire;

/// How a replica begins on its backup socket; decoded and encoded again.
#[must_use]
pub fn greeting(bytes: &Bytes) -> Option<Bytes> {
    Some(wire::Greeting::<troth_minbft::Message>::from_wire(bytes).ok()?.to_wire())
}

/// A frame on the backup socket, of `most` bytes at most.
#[must_use]
pub fn backup_frame(mut bytes: &[u8], most: usize) -> Option<Bytes> {
    wire::receive(&mut bytes, most).ok()?
}

/// A state in a backup; whether it is one.
#[must_use]
pub fn backup_state(path: &Path) -> bool {
    file::read(path).is_ok()
}

/// Writes a state as a backup does.
///
/// # Panics
/// Where it cannot be written.
pub fn write_backup_state(path: &Path, state: &troth_exec::Snapshot) {
    file::write(path, state).expect("a state can be written");
}

/// The words of how a directory is kept; written again where they are such.
#[must_use]
pub fn kept(text: &str) -> Option<String> {
    standing::written_again(text)
}

/// The words of the component that a log was kept with; written again where they are such.
#[must_use]
pub fn component(text: &str) -> Option<String> {
    succession::written_again(text)
}

/// The status line and body for the head of a request.
pub fn page(head: &[u8], look: &dyn Fn() -> Snapshot) -> (&'static str, String) {
    let (status, _, body) = http::page(head, look);
    (status, body)
}
