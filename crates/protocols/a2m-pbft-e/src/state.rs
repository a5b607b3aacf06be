//! The state of an A2M-PBFT-E replica.

use std::collections::BTreeMap;
use troth_blocks::HistoryLog;
use troth_pbft::{Config, Pbft};
use troth_trusted::run::MAX_RUN;
use troth_types::{Digest, Group, ReplicaId, Seq, Time};

/// A replica: PBFT, and the history of what it executed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct A2mPbftE {
    pub(crate) pbft: Pbft,
    pub(crate) history: HistoryLog,
    /// Own checkpoints that wait for the attestation of their batch.
    pub(crate) unattested: BTreeMap<Seq, Digest>,
    /// Whose turn it was to be asked for history.
    pub(crate) turn: usize,
    /// When each of the others was shown history last, and how long that is enough.
    pub(crate) shown: BTreeMap<ReplicaId, Time>,
    pub(crate) pause: u64,
}

impl A2mPbftE {
    /// A replica in the genesis state. The configuration must pass [`Self::check`].
    #[must_use]
    pub fn new(me: ReplicaId, group: Group, config: Config) -> Self {
        Self::check(&config).expect("the configuration was checked");
        Self {
            pbft: Pbft::new(me, group, Config { histories: true, ..config }),
            history: HistoryLog::new(group.id()),
            unattested: BTreeMap::new(),
            turn: usize::from(me.0),
            shown: BTreeMap::new(),
            pause: config.status_interval,
        }
    }

    /// Why these values cannot work, if they cannot.
    ///
    /// # Errors
    /// What stands in the way.
    pub fn check(config: &Config) -> Result<(), &'static str> {
        config.check()?;
        // A client finds its request by a path through the batch, and paths have a bound.
        if config.limits.batch_frames > MAX_RUN {
            return Err("a batch must have at most 256 frames, or its history cannot be proven");
        }
        Ok(())
    }

    /// Entries that the history log must have room for: a replica executes up to two windows beyond what it knows to be
    /// stable, and truncates later than it appends.
    #[must_use]
    pub fn room(config: &Config) -> usize {
        usize::try_from(3 * config.window).map_or(usize::MAX, |window| window + 64)
    }

    /// The ordering, to look at.
    #[must_use]
    pub fn pbft(&self) -> &Pbft {
        &self.pbft
    }

    /// The history, to look at.
    #[must_use]
    pub fn history(&self) -> &HistoryLog {
        &self.history
    }
}
