//! Tests of frames, batches, server and client, with the server in a thread of the test.

#![expect(clippy::disallowed_methods, reason = "tests of sockets run a server beside them")]

/// Marks a test that fails without a rule of `docs/protocols/a2m.md`, for `cargo xtask paper`.
macro_rules! covers {
    ($($label:literal),+) => {};
}

mod batches;
mod blobs;
mod client;
mod crashes;
#[allow(dead_code, reason = "another crate's tests use all of it")]
#[path = "../../../trusted-host/tests/host/store/disk.rs"]
mod disk;
mod fixtures;
mod foreign;
mod homes;
mod logs;
mod repetition;
mod restarts;
mod served;
mod server;
#[path = "../support/mod.rs"]
mod support;
