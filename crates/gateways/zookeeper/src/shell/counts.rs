//! What the tasks around the machine count, each for itself: connections that never reach it, and files that are read again.

use core::sync::atomic::{AtomicU64, Ordering};

/// A count that several tasks add to.
#[derive(Debug, Default)]
pub(crate) struct Count(AtomicU64);

impl Count {
    pub(crate) fn add(&self, more: u64) {
        self.0.fetch_add(more, Ordering::Relaxed);
    }

    pub(crate) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// The counts.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    /// Packets with a length that no packet has.
    pub(crate) too_long: Count,
    /// Connections that did not come through TLS.
    pub(crate) handshakes_failed: Count,
    /// Connections that were too many on their way through it.
    pub(crate) handshakes_refused: Count,
    /// Times that certificates were read again, and that they could not be.
    pub(crate) reloads: Count,
    pub(crate) reloads_failed: Count,
    /// Connections that could not be taken, for want of descriptors for example.
    pub(crate) accept_failed: Count,
}
