//! Which parts of the state a store of snapshots has, written on the parts themselves: a comparison with the snapshot
//! before would have to hold that in memory, and with it whatever was replaced since.

use core::num::NonZeroU32;
use core::sync::atomic::{AtomicU32, Ordering};

/// Names what a store holds from one full snapshot to the next. Two of them in one process, of one store or of two,
/// never have the same number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoreId(pub NonZeroU32);

/// In which store something is, if in any.
#[derive(Debug, Default)]
pub(crate) struct Stored(AtomicU32);

impl Stored {
    /// What is said of the same thing in another place.
    pub(crate) fn copied(&self) -> Self {
        Self(AtomicU32::new(self.0.load(Ordering::Relaxed)))
    }

    /// Whether it is in this one.
    pub(crate) fn is_in(&self, store: StoreId) -> bool {
        self.0.load(Ordering::Relaxed) == store.0.get()
    }

    /// It is in this one now, and nothing is said any more of another.
    pub(crate) fn put_in(&self, store: StoreId) {
        self.0.store(store.0.get(), Ordering::Relaxed);
    }
}
