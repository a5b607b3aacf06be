//! The state of an A2M-PBFT-E replica.

use std::sync::Arc;
use troth_blocks::{Favours, FavoursAsked, HistoryLog, KeptHistory};
use troth_pbft::{Config, Pbft};
use troth_trusted::run::MAX_RUN;
use troth_types::{Configuration, Group, ReplicaId};

/// A replica: PBFT, and the history of what it executed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct A2mPbftE {
    pub(crate) pbft: Pbft,
    pub(crate) history: KeptHistory,
    /// What is ordered again for others, and what this replica asks for.
    pub(crate) favours: Favours,
    pub(crate) favours_asked: FavoursAsked,
    /// How many histories that others showed were of use.
    pub(crate) useful: u64,
    /// The group's configuration as this replica executed it.
    pub(crate) configuration: Arc<Configuration>,
    /// Whether any component took the place of another.
    pub(crate) renewed: bool,
    /// The epoch of this replica's component, where that matters.
    pub(crate) own_epoch: Option<u64>,
    /// The flawed rule to follow.
    #[cfg(feature = "literal")]
    pub(crate) literal: Option<crate::Flaw>,
}

impl A2mPbftE {
    /// A replica in the genesis state. The configuration must pass [`Self::check`].
    #[must_use]
    pub fn new(me: ReplicaId, group: Group, config: Config) -> Self {
        Self::check(&config).expect("the configuration was checked");
        Self {
            pbft: Pbft::new(me, group, Config { histories: true, tentative: false, ..config }),
            history: KeptHistory::new(&group, me, config.window, config.status_interval),
            favours: Favours::new(config.request_timeout, config.batch_bytes()),
            favours_asked: FavoursAsked::new(config.request_timeout, config.batch_bytes()),
            useful: 0,
            configuration: Arc::default(),
            renewed: false,
            own_epoch: None,
            #[cfg(feature = "literal")]
            literal: None,
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

    /// Entries that the history log must have room for.
    #[must_use]
    pub fn room(config: &Config) -> usize {
        KeptHistory::room(config.window)
    }

    /// The ordering, to look at.
    #[must_use]
    pub fn pbft(&self) -> &Pbft {
        &self.pbft
    }

    /// The history, to look at.
    #[must_use]
    pub fn history(&self) -> &HistoryLog {
        &self.history.log
    }
}
