//! Two services: [`Kv`], a key-value store with compare-and-swap, scans and watches, and [`Null`],
//! which does nothing and measures everything around it.
#![forbid(unsafe_code)]

#[cfg(feature = "fuzz")]
pub mod fuzzing;
mod kv;
mod message;
mod null;
mod watches;

pub use kv::{Kv, MAX_KEY, MAX_SCAN_BYTES, MAX_SCAN_ENTRIES, MAX_VALUE};
pub use message::{Answer, Change, Entry, Operation, Watch};
pub use null::Null;

#[cfg(test)]
mod tests;
