//! What is ordered for another replica's sake alone: little, and as much for each of them.

use std::collections::BTreeMap;
use troth_types::{ReplicaId, Time};

/// What each of the others was done in its present period.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Favours {
    period: u64,
    done: BTreeMap<ReplicaId, (Time, usize)>,
}

impl Favours {
    /// Done to each of the others in a period.
    pub const MOST: usize = 16;

    /// At most [`Self::MOST`] for each of the others in so many microseconds.
    #[must_use]
    pub fn new(period: u64) -> Self {
        Self { period, done: BTreeMap::new() }
    }

    /// One more is asked for now; whether it is done.
    pub fn may(&mut self, replica: ReplicaId, now: Time) -> bool {
        let done = self.done.entry(replica).or_insert((now, 0));
        if now >= done.0.after(self.period) {
            *done = (now, 0);
        }
        done.1 += usize::from(done.1 <= Self::MOST);
        done.1 <= Self::MOST
    }
}
