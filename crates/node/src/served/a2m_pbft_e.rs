//! A2M-PBFT-E as it is served: PBFT's messages, and a component that keeps the history.

use super::{Served, pbft, uncertified};
use crate::backup::BackupError;
use crate::config::{Cluster, ReplicaSecret};
use std::sync::Arc;
use troth_a2m_pbft_e::{A2mPbftE, MOST_VALUES, Message, is_replaced};
use troth_auth::HISTORY_LOG;
use troth_trusted::a2m::LOGS;
use troth_trusted_host::store::Room;
use troth_types::{Configuration, Digest, Seq};
#[cfg(feature = "demo-adversary")]
use {crate::liar::Liar, bytes::Bytes, troth_types::ReplicaId};

impl Served for A2mPbftE {
    fn of(cluster: &Cluster, secret: &ReplicaSecret) -> Self {
        Self::new(secret.replica, cluster.group, cluster.a2m_pbft_e()).with_epoch(secret.epoch.0)
    }

    fn stable(&self) -> Option<(Seq, Message)> {
        let proof = self.pbft().stable_proof();
        (!proof.votes.is_empty()).then(|| (proof.target().0, Message::Stable(Arc::clone(proof))))
    }

    fn vouched(
        cluster: &Cluster,
        configuration: &Configuration,
        proof: &Message,
    ) -> Result<(Seq, Digest), BackupError> {
        let Message::Stable(proof) = proof else {
            return Err(uncertified("it is no proof of a checkpoint"));
        };
        // By the configuration that is known here; the checkpoint is not before any admission in it.
        if proof.votes.iter().any(|vote| is_replaced(configuration, vote)) {
            return Err(uncertified("a component that was replaced vouches for it"));
        }
        pbft::quorum_vouches(cluster, configuration, proof, true)
    }

    /// Its component keeps it to one history; what PBFT lets it say to some and not to others it says.
    #[cfg(feature = "demo-adversary")]
    fn lies(liar: &mut Liar, to: ReplicaId, message: Message, honest: Bytes) -> Vec<Bytes> {
        pbft::lies(liar, to, message, honest)
    }

    #[cfg(feature = "demo-adversary")]
    fn is_proposal(message: &Message, _: ReplicaId) -> bool {
        matches!(message, Message::PrePrepare(_))
    }

    #[cfg(feature = "demo-adversary")]
    fn is_kept_back(message: &Message, _: ReplicaId) -> bool {
        matches!(message, Message::PrePrepare(_) | Message::Commit(_))
    }
}

/// The history alone takes room.
pub(super) fn log_room(cluster: &Cluster) -> Room {
    let mut room = [0; LOGS];
    room[usize::from(HISTORY_LOG.0)] = A2mPbftE::room(&cluster.a2m_pbft_e());
    room
}

/// As PBFT's, with the attestation in each CHECKPOINT.
pub(super) fn largest_message(cluster: &Cluster) -> usize {
    /// Bytes of a signed CHECKPOINT with the attestation of its slot.
    const CHECKPOINT: usize = 512;
    /// The values of a history that another one is shown.
    const HISTORY: usize = MOST_VALUES * 32 + 64;
    pbft::largest_with(cluster, CHECKPOINT).max(HISTORY)
}
