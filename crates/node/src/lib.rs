//! The runtime: one replica as one process, one thread that owns its machine.
//!
//! | module | subject |
//! | --- | --- |
//! | [`config`] | `cluster.toml`, secret files, making a new cluster |
//! | `runtime`, `run_error` | the loop: wait, gather, turn, write; why it ends by itself |
//! | `assembly`, `served` | a replica put together, and what that takes of each agreement protocol |
//! | `engine` | one turn: verify, step, carry out the host's commands |
//! | `intake` | what a turn takes from the lanes, and what it does with what replicas sent |
//! | `notes` | what the machine notes, counted and logged |
//! | `inbox`, `links`, `connection` | what comes in, what goes out, and the sockets between |
//! | `charges`, `fetches` | what each party costs, and when it has to wait for it |
//! | `descriptors`, `places` | how many may connect |
//! | `bounds` | what the process may have resident |
//! | `turns` | how long turns take |
//! | `remembered` | certificates that need not be checked again |
//! | `pairs`, `component_pairs` | keys that a client shares with replicas, and with their components |
//! | `durable`, `disk_journal`, `snapshots` | what a replica starts from, and how it is kept |
//! | `trusted_home`, `supervisor` | where the trusted component lives, and the process that it may have |
//! | `by_the_clock` | counters that are synced so often |
//! | `beside`, `journal` | the disk and the trusted component, on threads of their own |
//! | `standing`, `succession` | whether it may go on from that, and with which component |
//! | `marker` | why a replica that keeps nothing runs once |
//! | `faults`, `liar`, `miscompute`, `tyrant` | in test builds: disks and clocks that fail, planted bugs, replicas that lie, compute wrongly or lead badly |
//! | [`backup`], `genesis` | a certified state for an operator, and the first state of a group made from one |
//! | `aside` | what a life that is over left behind |
//! | `http`, `metrics`, [`Snapshot`] | what it tells people and Prometheus |
//!
//! Reads and writes are few and large: a turn takes everything that the sockets hold, checks the
//! client signatures in one batch of bounded size, and writes once per connection.
#![forbid(unsafe_code)]
#![expect(clippy::disallowed_methods, reason = "the runtime is where clocks and threads are read")]

mod alarm;
mod aside;
mod asked;
mod assembly;
pub mod backup;
mod beside;
mod bodies;
mod bounds;
mod by_the_clock;
mod charges;
mod clock;
mod component;
mod component_pairs;
pub mod config;
mod connection;
mod counters;
mod delayed;
mod descriptors;
mod disk_journal;
mod durable;
mod engine;
mod execution_costs;
#[cfg(feature = "faults")]
mod faults;
mod fetches;
#[cfg(feature = "fuzz")]
pub mod fuzzing;
mod genesis;
mod http;
mod inbox;
mod intake;
mod journal;
mod keys;
#[cfg(feature = "demo-adversary")]
mod liar;
mod links;
mod marker;
mod metrics;
#[cfg(feature = "demo-adversary")]
mod miscompute;
mod notes;
mod pace;
mod pairs;
mod places;
mod remembered;
mod run_error;
mod runtime;
mod served;
mod shares;
mod snapshot;
mod snapshots;
mod standing;
mod succession;
mod supervisor;
mod telling;
mod timers;
mod trusted_home;
mod turns;
#[cfg(feature = "demo-adversary")]
mod tyrant;
mod unfinished;

pub use aside::{AsideError, Stopped, put_aside, remains};
pub use bounds::memory_bound;
pub use by_the_clock::ByTheClock;
pub use counters::Counters;
pub use delayed::TrustedDelay;
pub use durable::DurableError;
#[cfg(feature = "faults")]
pub use faults::{Faults, Plant};
pub use genesis::GenesisError;
pub use marker::{MarkerError, leave_mark};
pub use run_error::{RecoveryError, RunError};
pub use runtime::{Options, serve};
pub use snapshot::Snapshot;
pub use standing::{Standing, Unproven};
pub use succession::awaits_its_component;
pub use supervisor::SupervisorError;
pub use trusted_home::HomeError;
#[cfg(feature = "demo-adversary")]
pub use tyrant::Tyranny;

#[cfg(test)]
mod tests;
