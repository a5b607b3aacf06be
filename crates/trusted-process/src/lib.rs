//! The trusted component in a hardened process of its own.
//!
//! A replica that is taken over must not be able to read the key of its trusted component or to set
//! its counters back. So the component lives in another process, of another user, that holds the key
//! and answers [`Call`](troth_trusted_host::Call)s over a Unix socket, and nothing else:
//!
//! | module | subject |
//! | --- | --- |
//! | [`wire`] | the frames on the socket: hello, batches of calls, their answers |
//! | [`batch`] | which calls may share a frame, so that a frame whose answer was lost may be repeated |
//! | [`listen`], [`server`] | the side of the component: one client, checked by its user |
//! | [`client`] | the side of the replica: a [`TrustedComponent`](troth_trusted_host::TrustedComponent), and its [`TrustedLogs`](troth_trusted_host::TrustedLogs) |
//! | [`sandbox`] | what the process gives up before it serves, with a report of what it could not |
//! | [`probe`] | what this kernel could build walls from |
//! | [`restarts`] | how often a supervisor starts it again before it gives up |
//!
//! What it withstands: a replica's process in the hands of an attacker. What it does not: the kernel,
//! root, and a store that is copied back while the process is down. Run as the replica's own user it
//! isolates nothing, and [`sandbox::Report`] says so.

#![forbid(unsafe_code)]
#![expect(clippy::disallowed_methods, reason = "sockets have deadlines, so clocks are read here")]

/// Marks the place that implements a rule of `docs/protocols/a2m.md`, for `cargo xtask paper`.
macro_rules! rule {
    ($label:literal) => {};
}

pub mod batch;
pub mod client;
pub mod listen;
pub mod probe;
pub mod restarts;
pub mod sandbox;
pub mod server;
mod socket;
pub mod wire;

pub use client::{ConnectError, Lost, Patience, RemoteComponent};
pub use listen::{ListenError, bind};
pub use restarts::{RestartLimit, TooManyStarts};
pub use sandbox::{HardenError, Isolation, Report, Sandbox, Step, User, harden};
pub use server::{Event, Limits, ServeError, serve, serve_with_logs};
