//! A replica's simulated log device: what was not synced when the replica crashed may be lost,
//! torn, or there.

use crate::Rng;
use bytes::Bytes;

/// What a node needs of its log.
pub trait Storage {
    /// Appends a record.
    fn append(&mut self, record: Bytes);
    /// Starts a fresh segment: at the next completed sync the snapshot and what is appended from
    /// here replace everything before, all or nothing.
    fn new_segment(&mut self, snapshot: Bytes);
    /// A sync begins: from now on a crash may find its work done.
    fn begin_sync(&mut self);
    /// The sync is complete: everything appended before it began is durable.
    fn finish_sync(&mut self);
    /// Loses what a crash loses.
    fn crash(&mut self, rng: &mut Rng);
    /// What a start finds: the snapshot and the records, in order.
    fn read(&self) -> (Option<Bytes>, Vec<Bytes>);
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Segment {
    snapshot: Option<Bytes>,
    records: Vec<Bytes>,
    /// How many of the records survive every crash.
    durable: usize,
}

impl Segment {
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
}

/// A log device in memory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SimStorage {
    current: Segment,
    /// A segment that no sync has put in force yet.
    fresh: Option<Segment>,
    syncing: bool,
    synced_records: usize,
}

impl Storage for SimStorage {
    fn append(&mut self, record: Bytes) {
        self.fresh.as_mut().unwrap_or(&mut self.current).records.push(record);
    }

    fn new_segment(&mut self, snapshot: Bytes) {
        self.fresh = Some(Segment { snapshot: Some(snapshot), records: Vec::new(), durable: 0 });
    }

    fn begin_sync(&mut self) {
        self.syncing = true;
        self.synced_records = self.fresh.as_ref().unwrap_or(&self.current).records.len();
    }

    fn finish_sync(&mut self) {
        assert!(self.syncing, "a sync ends after it began");
        self.syncing = false;
        if let Some(fresh) = self.fresh.take() {
            self.current = fresh;
        }
        self.current.durable = self.current.durable.max(self.synced_records);
    }

    fn crash(&mut self, rng: &mut Rng) {
        if let Some(mut fresh) = self.fresh.take()
            && self.syncing
            && rng.one_in(2)
        {
            // The switch to the new segment was made just before; with it all that it holds.
            fresh.durable = fresh.records.len();
            self.current = fresh;
        }
        self.syncing = false;
        self.current.tear(rng);
    }

    fn read(&self) -> (Option<Bytes>, Vec<Bytes>) {
        (self.current.snapshot.clone(), self.current.records.clone())
    }
}

impl SimStorage {
    /// Records in the log, durable or not.
    #[must_use]
    pub fn len(&self) -> usize {
        self.current.records.len() + self.fresh.as_ref().map_or(0, |fresh| fresh.records.len())
    }

    /// Whether there is no record.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}
