//! The runtime: one replica as one process, one thread that owns its machine.
//!
//! | module | subject |
//! | --- | --- |
//! | [`config`] | `cluster.toml`, secret files, making a new cluster |
//! | `runtime` | the loop: wait, gather, turn, write |
//! | `engine` | one turn: verify, step, carry out the host's commands |
//! | `inbox`, `links`, `connection` | what comes in, what goes out, and the sockets between |
//! | `durable`, `disk_journal`, `snapshots` | what a replica starts from, and how it is kept |
//! | `trusted_home`, `supervisor` | where the trusted component lives, and the process that it may have |
//! | `beside`, `journal` | the disk and the trusted component, on threads of their own |
//! | `aside` | what a life that is over left behind |
//! | `marker` | why a replica in `memory` durability runs once |
//! | `http`, `metrics`, [`Snapshot`] | what it tells people and Prometheus |
//!
//! Reads and writes are few and large: a turn takes everything that the sockets hold, checks the
//! client signatures in one batch of bounded size, and writes once per connection (speed.md, lessons
//! 1, 6 and 7).
#![forbid(unsafe_code)]
#![expect(clippy::disallowed_methods, reason = "the runtime is where clocks and threads are read")]

mod aside;
mod beside;
mod clock;
pub mod config;
mod connection;
mod counters;
mod disk_journal;
mod durable;
mod engine;
mod http;
mod inbox;
mod journal;
mod keys;
#[cfg(feature = "demo-adversary")]
mod liar;
mod links;
mod marker;
mod metrics;
mod places;
mod runtime;
mod snapshot;
mod snapshots;
mod supervisor;
mod timers;
mod trusted_home;

pub use aside::{AsideError, Stopped, put_aside, remains};
pub use counters::Counters;
pub use durable::DurableError;
pub use marker::{MarkerError, leave_mark};
pub use runtime::{Options, RecoveryError, RunError, serve};
pub use snapshot::Snapshot;
pub use supervisor::SupervisorError;
pub use trusted_home::HomeError;

#[cfg(test)]
mod tests;
