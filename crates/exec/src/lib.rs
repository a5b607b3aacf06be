//! Execution: an [`Application`] on ordered batches, exactly once, with a state that can be
//! checkpointed, proved equal, transferred and rolled back.
//!
//! Everything that must survive lives in one [`MerkleMap`]: the application's keys,
//! the client table and the outboxes. [`Executor`] is the [`troth_core::Execution`] that runs
//! beside the agreement.
#![forbid(unsafe_code)]

mod application;
mod clients;
mod configuration;
mod content;
mod delta;
mod executor;
mod frame;
#[cfg(feature = "fuzz")]
pub mod fuzzing;
mod gathering;
mod install;
mod map;
mod place;
mod salvage;
mod snapshot;
mod state;

pub use application::{Application, MAX_EVENT_BYTES, OpContext};
pub use clients::MAX_CLIENT_BYTES;
pub use executor::Executor;
pub use frame::FrameOperations;
pub use gathering::Gathering;
pub use map::{MAX_KEY_BYTES, MAX_VALUE_BYTES, Mark, MerkleMap, SealId, StoreId, Tree};
pub use snapshot::{PartError, Parts, Snapshot};
pub use state::{State, StateView};

#[cfg(test)]
mod tests;
