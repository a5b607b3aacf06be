//! A2M-PBFT-EA as it is served.

use super::{Served, not_before_a_change, uncertified};
use crate::backup::BackupError;
use crate::config::{Cluster, ReplicaSecret};
use std::sync::Arc;
use troth_a2m_pbft_ea::{A2mPbftEa, MOST_VALUES, Message, place, proven};
use troth_trusted::a2m::LOGS;
use troth_trusted_host::store::Room;
use troth_types::{Configuration, Digest, Seq};
#[cfg(feature = "demo-adversary")]
use {
    crate::liar::Liar,
    bytes::Bytes,
    troth_a2m_pbft_ea::{Body, Status},
    troth_core::PeerMessage,
    troth_types::{ReplicaId, View, Wire},
};

/// Batches of one number whose frames may have to be kept: what the view started with, and what was executed.
pub(super) const PER_NUMBER: usize = 2;

/// Views that may be left, one after the other, without one being entered: each takes an entry of m_c and of m_p.
const FAILED_VIEWS: usize = 4096;

impl Served for A2mPbftEa {
    fn of(cluster: &Cluster, secret: &ReplicaSecret) -> Self {
        Self::new(secret.replica, cluster.group, cluster.a2m_pbft_ea())
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
        if proof.votes.is_empty() {
            return Err(uncertified("nobody vouches for it"));
        }
        let (seq, digest) = proven(&cluster.group, proof)
            .ok_or_else(|| uncertified("fewer than f+1 replicas vouch for one checkpoint"))?;
        not_before_a_change(configuration, seq)?;
        Ok((seq, digest))
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
            Message::Attested(attested) => {
                let is_proposal = matches!(attested.body, Body::PrePrepare(_) | Body::NewView(_));
                let corrupted = liar.corrupt(&honest);
                let stale = liar.keep_back(honest.clone());
                if is_proposal && liar.withholds_from(to) {
                    // One half hears of the proposal only what does not verify.
                    return vec![corrupted];
                }
                [Some(corrupted), Some(honest), stale].into_iter().flatten().collect()
            }
            Message::Want(_)
            | Message::Stable(_)
            | Message::FetchHistory(_)
            | Message::History(..)
            | Message::FetchProposals(..) => {
                vec![liar.rubbish(), honest]
            }
        }
    }

    #[cfg(feature = "demo-adversary")]
    fn is_proposal(message: &Message, me: ReplicaId) -> bool {
        match message {
            Message::Attested(attested) => {
                matches!(attested.body, Body::PrePrepare(_)) && attested.from == me
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
        active: claim.is_multiple_of(2),
        stable: Seq(claim),
        executed: Seq(claim * 2),
        slots: Vec::new(),
        changes: u128::from(claim),
        accepts: u128::from(claim),
        lacks: None,
        wishes: claim.is_multiple_of(2),
    }
}

/// What a log takes between two truncations.
pub(super) fn log_room(cluster: &Cluster) -> Room {
    let window = usize::try_from(cluster.timing.window).expect("bounded by the configuration");
    let mut room = [0; LOGS];
    for log in [place::PREPARE, place::COMMIT, place::CHECKPOINT, place::VIEW_CHANGE, place::NEW_VIEW] {
        room[usize::from(log.0)] = 3 * window + FAILED_VIEWS;
    }
    room[usize::from(place::HISTORY.0)] = cluster.a2m_pbft_ea().history_room();
    room
}

/// A NEWVIEW with VIEWCHANGEs of all replicas, or the values of a history. A link that refused either would end all progress.
pub(super) fn largest_message(cluster: &Cluster) -> usize {
    /// Bytes of an attested message beside what it names.
    const ATTESTED: usize = 448;
    /// Slots of abandoned views that a VIEWCHANGE shows at most.
    const SHOWN: usize = 256;
    /// The values of a history that another one is shown.
    const HISTORY: usize = MOST_VALUES * 32 + 64;
    let window = usize::try_from(cluster.timing.window).expect("bounded by the configuration");
    let (n, quorum) = (cluster.group.n(), cluster.group.quorum());
    // PREPREPARE with its frames, f PREPAREs, the own COMMIT.
    let committed = ATTESTED + 32 * cluster.limits.batch_frames + quorum * ATTESTED;
    // A CHECKPOINT has the attestation of its slot beside its own.
    let change = window * committed + n * 3 * ATTESTED + SHOWN * ATTESTED + 2 * ATTESTED;
    (n * change + window * (64 + 32 * cluster.limits.batch_frames)).max(HISTORY)
}
