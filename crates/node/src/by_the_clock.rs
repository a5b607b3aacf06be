//! A trusted component's store whose records are made durable by the clock, not one by one.

use std::time::{Duration, Instant};
use troth_trusted::{Kept, State, Store, StoreFailed};
use troth_trusted_host::store::directory::Directory;
use troth_trusted_host::store::{DiskStore, RealDirectory};

/// A store that syncs with the first record after each interval, for [`Policy::Interval`](troth_trusted_host::store::Policy).
///
/// The last records before a rest may wait for the next one, and nothing is lost by that: once the machine
/// has started anew the whole store is void, whatever of it was durable.
#[derive(Debug)]
pub struct ByTheClock<D: Directory = RealDirectory> {
    store: DiskStore<D>,
    every: Option<Duration>,
    synced: Instant,
}

impl<D: Directory> ByTheClock<D> {
    /// The store, synced so often; `None` leaves all to its policy.
    #[must_use]
    pub fn new(store: DiskStore<D>, every: Option<Duration>) -> Self {
        Self { store, every, synced: Instant::now() }
    }
}

impl<D: Directory> Store for ByTheClock<D> {
    fn store(&mut self, state: &State) -> Result<(), StoreFailed> {
        self.store.store(state)?;
        let Some(every) = self.every else { return Ok(()) };
        let now = Instant::now();
        if now.saturating_duration_since(self.synced) >= every {
            self.store.sync().map_err(|_| StoreFailed::Unknown)?;
            self.synced = now;
        }
        Ok(())
    }

    // It keeps none where the clock makes things durable later: that is worth nothing to the caller now.
    fn store_beside(&mut self, state: &State, blob: &[u8]) -> Result<Kept, StoreFailed> {
        self.store.store_beside(state, blob)
    }

    fn blob(&self, index: usize) -> Option<&[u8]> {
        self.store.blob(index)
    }
}
