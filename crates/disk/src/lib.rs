//! What a replica keeps on a real disk: the write-ahead log that it starts again from, group commit
//! beside the loop, and the snapshots that the log stands on.
//!
//! Everything goes through [`Disk`], one directory with few operations, so that the same code runs on
//! [`RealDisk`] and, in tests, on a disk that loses what was not synced and runs out of space.
//!
//! What may be relied on: a record is durable once [`Log::sync`] has returned after it was appended;
//! records come back in the order in which they were appended, with no gap and nothing between them
//! that was never appended; a base replaces what came before it wholly or not at all.

mod disk;
mod error;
#[cfg(any(test, feature = "faults"))]
mod faults;
mod log;
mod real;
mod snapshots;
mod syncer;
mod unsynced;
mod window;

pub use disk::{Disk, DiskFile};
pub use error::{DiskError, LogError, SnapshotError};
#[cfg(any(test, feature = "faults"))]
pub use faults::{Death, FaultyDisk, FaultyFile, MemoryDisk, MemoryFile, Orders, OrdersFile, Tear};
pub use log::{Cut, Identity, Log, LogOptions, MAX_RECORD, Recovered};
pub use real::{RealDisk, RealFile};
pub use snapshots::{About, Held, MAX_NODE, Nodes, Snapshots};
pub use syncer::{Job, Refused, Report, Step, Syncer, SyncerOptions, Ticket};
pub use unsynced::{Unsynced, UnsyncedFile, sync_everything};

#[cfg(test)]
mod tests;
