//! Fuzz targets: one for every reader of foreign bytes. `cargo xtask fuzz` runs them with an engine that is
//! guided by coverage; the tests here run what was found before, and what each begins with.
//!
//! How to add one is in `docs/internals/fuzzing.md`.
#![deny(unsafe_code)]

mod allocator;
mod bytes;
mod canary;
mod samples;
mod target;
mod targets;
mod trees;
mod wire;
mod world;

#[cfg(test)]
mod tests;

pub use canary::CANARIES;
pub use target::{Bound, Target};
pub use targets::{MACHINES, Machine, TARGETS};
pub use wire::Decoder;

/// The target of this name, canaries among them.
#[must_use]
pub fn find(name: &str) -> Option<&'static Target> {
    TARGETS.iter().chain(CANARIES).find(|target| target.name == name)
}

/// The decoders of all targets that take an input for one of several.
pub fn decoders() -> impl Iterator<Item = (&'static str, &'static Decoder)> {
    targets::GROUPS.iter().flat_map(|(name, group)| group.iter().map(move |decoder| (*name, decoder)))
}
