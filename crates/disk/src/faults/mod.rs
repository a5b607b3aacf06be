//! Disks for tests: one in memory, and one that loses what was not synced. No release build has them.

mod faulty;
mod file;
mod memory;
mod orders;
mod state;

pub use faulty::FaultyDisk;
pub use file::FaultyFile;
pub use memory::{MemoryDisk, MemoryFile};
pub use orders::{Death, Orders, OrdersFile};
pub use state::Tear;
