//! A replica's simulated log device: what was not synced when the replica crashed may be lost,
//! torn, or there.

use crate::Rng;
use bytes::Bytes;

/// What a node needs of its log.
pub trait Storage<S> {
    /// Appends a record.
    fn append(&mut self, record: Bytes);
    /// Whether a fresh segment would be welcome.
    fn wants_segment(&self) -> bool;
    /// Starts a fresh segment whose snapshot is durable after so many more completed syncs (one at
    /// least): then the snapshot and what is appended from here replace everything before, all or nothing.
    /// Without a number it is needed: it takes the place of another and is durable with the next sync.
    fn new_segment(&mut self, snapshot: S, syncs: Option<u64>);
    /// A sync begins: from now on a crash may find its work done.
    fn begin_sync(&mut self);
    /// The sync is complete: everything appended before it began is durable.
    fn finish_sync(&mut self);
    /// Loses what a crash loses.
    fn crash(&mut self, rng: &mut Rng);
    /// What a start finds: the snapshot and the records, in order.
    fn read(&self) -> (Option<S>, Vec<Bytes>);
}

/// A snapshot that is being written.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Coming<S> {
    snapshot: S,
    /// The first record of its segment.
    from: usize,
    /// Completed syncs until it is durable.
    syncs: u64,
}

/// A log device in memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SimStorage<S> {
    snapshot: Option<S>,
    /// The records since the snapshot.
    records: Vec<Bytes>,
    /// How many of the records survive every crash.
    durable: usize,
    coming: Option<Coming<S>>,
    syncing: bool,
    synced_records: usize,
}

impl<S> Default for SimStorage<S> {
    fn default() -> Self {
        Self {
            snapshot: None,
            records: Vec::new(),
            durable: 0,
            coming: None,
            syncing: false,
            synced_records: 0,
        }
    }
}

impl<S: Clone> Storage<S> for SimStorage<S> {
    fn append(&mut self, record: Bytes) {
        self.records.push(record);
    }

    fn wants_segment(&self) -> bool {
        self.coming.is_none()
    }

    fn new_segment(&mut self, snapshot: S, syncs: Option<u64>) {
        assert!(self.wants_segment() || syncs.is_none(), "one snapshot is written at a time");
        let syncs = syncs.unwrap_or(1).max(1);
        self.coming = Some(Coming { snapshot, from: self.records.len(), syncs });
    }

    fn begin_sync(&mut self) {
        self.syncing = true;
        self.synced_records = self.records.len();
    }

    fn finish_sync(&mut self) {
        assert!(self.syncing, "a sync ends after it began");
        self.syncing = false;
        self.durable = self.durable.max(self.synced_records);
        if let Some(coming) = &mut self.coming {
            coming.syncs -= 1;
            if coming.syncs == 0 {
                self.take_over();
            }
        }
    }

    fn crash(&mut self, rng: &mut Rng) {
        let syncing = self.syncing;
        if let Some(coming) = self.coming.take_if(|coming| coming.syncs == 1 && syncing) {
            match rng.below(3) {
                0 => {}
                // The snapshot was durable just before; what its segment replaces was not removed.
                1 => self.snapshot = Some(coming.snapshot),
                // It came into force; the records of the sync under way were there first.
                _ => {
                    self.durable = self.durable.max(self.synced_records);
                    self.coming = Some(coming);
                    self.take_over();
                }
            }
        }
        self.coming = None;
        self.syncing = false;
        self.tear(rng);
    }

    fn read(&self) -> (Option<S>, Vec<Bytes>) {
        (self.snapshot.clone(), self.records.clone())
    }
}

impl<S> SimStorage<S> {
    /// The snapshot that was coming is in force, and its segment all there is.
    fn take_over(&mut self) {
        if let Some(coming) = self.coming.take() {
            self.records.drain(..coming.from);
            self.durable -= coming.from;
            self.synced_records -= coming.from;
            self.snapshot = Some(coming.snapshot);
        }
    }

    /// Each unsynced record was written whole, torn, or not at all; a reader stops at the first that
    /// is not whole, because its checksum says so.
    fn tear(&mut self, rng: &mut Rng) {
        let survivors = self.records[self.durable..].iter().take_while(|_| !rng.one_in(3)).count();
        // Some crashes leave nothing of what was in the cache, some everything.
        let survivors = match rng.below(4) {
            0 => 0,
            1 => self.records.len() - self.durable,
            _ => survivors,
        };
        self.records.truncate(self.durable + survivors);
        self.durable = self.records.len();
    }

    /// Records in the log, durable or not, from where it would begin if the snapshot under way were there.
    #[must_use]
    pub fn len(&self) -> usize {
        self.records.len() - self.coming.as_ref().map_or(0, |coming| coming.from)
    }

    /// Whether there is no record.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}
