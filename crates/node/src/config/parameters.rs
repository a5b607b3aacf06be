//! What a cluster's configuration means to each agreement protocol, and to those who check its replies.

use super::authentication::Auth;
use super::cluster::{Cluster, RECORD_OVERHEAD};
use crate::component_pairs::LinkComponentPairs;
use crate::keys::Keys;
use crate::served::largest_message;
use std::sync::Arc;
use troth_auth::{ComponentPairs, HISTORY_LOG, History};
use troth_disk::MAX_RECORD;
use troth_trusted_host::store::Room;

/// A protocol's parameters with this cluster's timing and limits, which all protocols name alike.
macro_rules! parameters {
    ($cluster:expr, $default:expr) => {{
        let (timing, mut config) = (&$cluster.timing, $default);
        config.interval = timing.checkpoint_interval;
        config.window = timing.window;
        config.pipeline = timing.pipeline;
        config.request_timeout = timing.suspect_after_ms * 1000;
        config.view_timeout = timing.view_timeout_ms * 1000;
        config.status_interval = timing.status_interval_ms * 1000;
        config.clock_bound = timing.clock_bound_ms * 1000;
        config.limits = $cluster.limits;
        config
    }};
}

impl Cluster {
    /// The parameters of MinBFT.
    #[must_use]
    pub fn minbft(&self) -> troth_minbft::Config {
        let slower_by = self.timing.primary_slower_by;
        // A replica logs the NEW-VIEW by which it enters a view.
        let least = troth_minbft::Config::DEFAULT.message_bytes;
        let message_bytes = largest_message(self).clamp(least, MAX_RECORD - RECORD_OVERHEAD);
        troth_minbft::Config { slower_by, message_bytes, ..parameters!(self, troth_minbft::Config::DEFAULT) }
    }

    /// The parameters of PBFT.
    #[must_use]
    pub fn pbft(&self) -> troth_pbft::Config {
        let slower_by = self.timing.primary_slower_by;
        let signs_phases = self.auth == Auth::AllSigned;
        troth_pbft::Config { slower_by, signs_phases, ..parameters!(self, troth_pbft::Config::DEFAULT) }
    }

    /// The parameters of A2M-PBFT-E: PBFT's.
    #[must_use]
    pub fn a2m_pbft_e(&self) -> troth_pbft::Config {
        self.pbft()
    }

    /// The parameters of A2M-PBFT-EA.
    #[must_use]
    pub fn a2m_pbft_ea(&self) -> troth_a2m_pbft_ea::Config {
        let slower_by = self.timing.primary_slower_by;
        troth_a2m_pbft_ea::Config { slower_by, ..parameters!(self, troth_a2m_pbft_ea::Config::DEFAULT) }
    }

    /// Entries that each log of a component has room for; nothing where the protocol uses no logs.
    #[must_use]
    pub fn log_room(&self) -> Option<Room> {
        crate::served::log_room(self)
    }

    /// What checks the places of requests in the replicas' histories, where replies prove them.
    /// A client that is to believe replies needs its own, [`Cluster::history`]: components show most of them to it alone.
    /// Its clones remember together what they found good: clients of one process that share it check an attestation once,
    /// whichever of them it came to first.
    #[must_use]
    pub fn shared_history(&self) -> Option<History> {
        if !crate::served::proves_replies(self.protocol) {
            return None;
        }
        let keys = Keys { group: self.group.id(), mac: None, limits: self.limits, pairs: None };
        let verifier = Arc::new(keys.attestations(&self.configuration()));
        let first = self.replicas.iter().map(|replica| replica.epoch);
        Some(History::new(self.group.id(), HISTORY_LOG, verifier, first))
    }

    /// The keys that the client with this static private key shares with the components that the group began with, and with
    /// those that took their places.
    #[must_use]
    pub fn component_pairs(&self, link: &[u8; 32]) -> Arc<dyn ComponentPairs> {
        Arc::new(LinkComponentPairs::new(&self.configuration(), link))
    }

    /// [`Cluster::shared_history`] for the client with this static private key, to which components prove what they hold by MACs.
    #[must_use]
    pub fn history(&self, link: &[u8; 32]) -> Option<History> {
        self.shared_history().map(|history| history.of_client(self.component_pairs(link)))
    }
}
