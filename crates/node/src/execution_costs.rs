//! How long clients' frames take to be executed, and their reads to be answered in passing.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;
use troth_core::Meter;
use troth_types::ClientId;

/// Microseconds that one frame or read counts at most: what takes longer was interrupted, as a rule, and its client did not do that.
pub(crate) const LONGEST: u64 = 100_000;

/// What the frames and reads of one client took together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Executed {
    /// How many there were.
    pub(crate) frames: u32,
    /// How many microseconds they took.
    pub(crate) micros: u64,
    /// The same of reads that were answered in passing, and what the longest of them took.
    pub(crate) reads: u32,
    pub(crate) read_micros: u64,
    pub(crate) longest_read: u64,
}

/// Adds up by clients what their frames take, until somebody asks. By the clock and not by the processor's time: to read
/// that costs as much as to execute a small frame.
#[derive(Debug)]
pub(crate) struct ExecutionCosts(Mutex<Costs>);

#[derive(Debug)]
struct Costs {
    began: Instant,
    clients: BTreeMap<ClientId, Executed>,
}

impl Costs {
    fn since_it_began(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_micros()).unwrap_or(LONGEST).min(LONGEST)
    }
}

impl ExecutionCosts {
    pub(crate) fn new() -> Self {
        Self(Mutex::new(Costs { began: Instant::now(), clients: BTreeMap::new() }))
    }

    /// What was executed since this was asked last.
    pub(crate) fn take(&self) -> BTreeMap<ClientId, Executed> {
        std::mem::take(&mut self.costs().clients)
    }

    fn costs(&self) -> MutexGuard<'_, Costs> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Meter for ExecutionCosts {
    fn begins(&self) {
        self.costs().began = Instant::now();
    }

    fn executed(&self, client: ClientId) {
        let mut costs = self.costs();
        let micros = costs.since_it_began();
        let all = costs.clients.entry(client).or_default();
        all.frames += 1;
        all.micros += micros;
    }

    fn answered(&self, client: ClientId) -> u64 {
        let mut costs = self.costs();
        let micros = costs.since_it_began();
        let all = costs.clients.entry(client).or_default();
        all.reads += 1;
        all.read_micros += micros;
        all.longest_read = all.longest_read.max(micros);
        micros
    }
}
