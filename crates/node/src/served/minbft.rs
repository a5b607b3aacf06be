//! MinBFT as it is served.

use super::{Served, not_before_a_change, uncertified};
use crate::backup::BackupError;
use crate::config::{Cluster, ReplicaSecret};
use std::sync::Arc;
use troth_minbft::{Body, Certified, Message, MinBft, evidence};
use troth_types::{Configuration, Digest, Seq};
#[cfg(feature = "demo-adversary")]
use {
    crate::liar::Liar,
    bytes::Bytes,
    troth_core::PeerMessage,
    troth_minbft::Status,
    troth_types::{ReplicaId, View, Wire},
};

impl Served for MinBft {
    fn of(cluster: &Cluster, secret: &ReplicaSecret) -> Self {
        Self::new(secret.replica, cluster.group, cluster.minbft()).with_epoch(secret.epoch.0)
    }

    fn stable(&self) -> Option<(Seq, Message)> {
        let proof = self.stable_proof();
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
        let Some(Body::Checkpoint(checkpoint)) = proof.votes.first().map(|vote| &vote.body) else {
            return Err(uncertified("nobody vouches for it"));
        };
        // A component that was replaced vouches for nothing: for nothing later by the rules, and in whose hands it
        // has been since nobody knows. The replicas may have gone on to others that are not known here.
        not_before_a_change(configuration, checkpoint.seq)?;
        let present = configuration.epochs_at(checkpoint.seq);
        let is_past = |vote: &Arc<Certified>| {
            let epoch = vote.ui.certificate.epoch.0;
            present.iter().any(|(replica, its)| *replica == vote.from && epoch < *its)
        };
        if proof.votes.iter().any(is_past) {
            return Err(uncertified("a component that was replaced vouches for it"));
        }
        evidence::check_stable(&cluster.group, &cluster.minbft(), proof).map_err(uncertified)
    }

    #[cfg(feature = "demo-adversary")]
    fn lies(liar: &mut Liar, to: ReplicaId, message: Message, honest: Bytes) -> Vec<Bytes> {
        match message {
            // Now and then the truth, or it would never hear what it missed before it came.
            Message::Status(_) if liar.is_candid() => vec![honest],
            Message::Status(status) => {
                let lie = Message::Status(other_status(liar, status, to));
                vec![PeerMessage::Protocol(lie).to_wire()]
            }
            Message::Certified(certified) => {
                let is_proposal = matches!(certified.body, Body::Prepare(_) | Body::NewView(_));
                let corrupted = liar.corrupt(&honest);
                let stale = liar.keep_back(honest.clone());
                if is_proposal && liar.withholds_from(to) {
                    // One half hears of the proposal only what does not verify.
                    return vec![corrupted];
                }
                // The copy comes first, then the true one, then an old one: order and repetition are
                // lies too.
                [Some(corrupted), Some(honest), stale].into_iter().flatten().collect()
            }
            Message::RequestViewChange(_) | Message::Stable(_) | Message::Evidence(_) => {
                vec![liar.rubbish(), honest]
            }
        }
    }

    #[cfg(feature = "demo-adversary")]
    fn is_proposal(message: &Message, me: ReplicaId) -> bool {
        match message {
            Message::Certified(certified) => {
                matches!(certified.body, Body::Prepare(_)) && certified.from == me
            }
            _ => false,
        }
    }
}

/// A status that claims something else to every listener.
#[cfg(feature = "demo-adversary")]
fn other_status(liar: &Liar, status: Status, to: ReplicaId) -> Status {
    let claim = liar.claim(to);
    Status {
        view: View(status.view.0 + claim % 3),
        processed: status.processed.iter().map(|value| value.wrapping_add(u128::from(claim % 5))).collect(),
        stable: Seq(claim),
        executed: Seq(claim * 2),
        round: claim,
        wants: None,
    }
}

/// A NEW-VIEW with a quorum of VIEW-CHANGEs, each with its sender's log, and the window of batches that it carries over
/// (MINBFT-V22). A link that refused it would end all progress.
///
/// An honest log begins at the newest own checkpoint that lies a window or more below the stable one
/// (MINBFT-V5): checkpoints are an interval apart, so up to a window and an interval below. It reaches
/// to a window above the stable one. Its CHECKPOINTs are counted apart; the least interval has one for
/// every commitment.
pub(super) fn largest_message(cluster: &Cluster) -> usize {
    /// Bytes of a COMMIT with its PREPARE, beside the digests of the batch.
    const COMMIT: usize = 1024;
    /// Bytes of a CHECKPOINT with its certificate.
    const CHECKPOINT: usize = 512;
    /// Bytes of a batch that a view begins with, beside its digests.
    const BATCH: usize = 32;
    let bounded = |number| usize::try_from(number).expect("bounded by the configuration");
    let (window, interval) = (bounded(cluster.timing.window), bounded(cluster.timing.checkpoint_interval));
    let commitments = 2 * window + interval;
    let checkpoints = commitments / interval + 1;
    let digests = 32 * cluster.limits.batch_frames;
    let log = commitments * (COMMIT + digests) + checkpoints * CHECKPOINT;
    cluster.group.quorum() * log + window * (BATCH + digests)
}
