//! PBFT as it is served.

use super::{Served, not_before_a_change, uncertified};
use crate::backup::BackupError;
use crate::config::{Cluster, ReplicaSecret};
use std::sync::Arc;
use troth_pbft::{MOST_PRE_PREPARED, Message, Pbft, StableProof, proven};
use troth_types::{Configuration, Digest, Seq};
#[cfg(feature = "demo-adversary")]
use {
    crate::liar::Liar,
    bytes::Bytes,
    troth_core::PeerMessage,
    troth_pbft::{Body, Phase, PrePrepare, Status, Vote},
    troth_types::{ReplicaId, Time, View, Wire},
};

/// Batches of one number that P and Q may name (PBFT-V3), whose frames stay until it is stable (PBFT-R9), and the
/// one that was executed.
pub(super) const PER_NUMBER: usize = MOST_PRE_PREPARED + 1;

impl Served for Pbft {
    fn of(cluster: &Cluster, secret: &ReplicaSecret) -> Self {
        Self::new(secret.replica, cluster.group, cluster.pbft())
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
        quorum_vouches(cluster, configuration, proof, false)
    }

    #[cfg(feature = "demo-adversary")]
    fn lies(liar: &mut Liar, to: ReplicaId, message: Message, honest: Bytes) -> Vec<Bytes> {
        lies(liar, to, message, honest)
    }

    #[cfg(feature = "demo-adversary")]
    fn is_proposal(message: &Message, _: ReplicaId) -> bool {
        match message {
            Message::Signed(signed) => matches!(signed.body, Body::Phase(Phase::PrePrepare(_))),
            message => matches!(message, Message::PrePrepare(_)),
        }
    }

    /// Its COMMIT too: without it f+1 backups alone commit to nothing.
    #[cfg(feature = "demo-adversary")]
    fn is_kept_back(message: &Message, _: ReplicaId) -> bool {
        match message {
            Message::Signed(signed) => {
                matches!(signed.body, Body::Phase(Phase::PrePrepare(_) | Phase::Commit(_)))
            }
            message => matches!(message, Message::PrePrepare(_) | Message::Commit(_)),
        }
    }
}

/// The checkpoint that 2f+1 replicas vouch for, with its history or without.
pub(super) fn quorum_vouches(
    cluster: &Cluster,
    configuration: &Configuration,
    proof: &StableProof,
    histories: bool,
) -> Result<(Seq, Digest), BackupError> {
    if proof.votes.is_empty() {
        return Err(uncertified("nobody vouches for it"));
    }
    let (seq, digest) = proven(&cluster.group, histories, proof)
        .ok_or_else(|| uncertified("fewer than 2f+1 replicas vouch for one checkpoint"))?;
    not_before_a_change(configuration, seq)?;
    Ok((seq, digest))
}

/// Nothing makes it say the same to all, so its votes are not corrupted but false, and differ.
#[cfg(feature = "demo-adversary")]
pub(super) fn lies(liar: &mut Liar, to: ReplicaId, message: Message, honest: Bytes) -> Vec<Bytes> {
    let say = |message| PeerMessage::Protocol(message).to_wire();
    match message {
        // Now and then the truth, or it would never hear what it missed before it came.
        Message::Status(_) if liar.is_candid() => vec![honest],
        Message::Status(status) => vec![say(Message::Status(other_status(liar, &status, to)))],
        Message::PrePrepare(proposal) if liar.withholds_from(to) => {
            vec![say(Message::PrePrepare(other_proposal(proposal)))]
        }
        Message::PrePrepare(_) => {
            let stale = liar.keep_back(honest.clone());
            [Some(honest), stale].into_iter().flatten().collect()
        }
        Message::Prepare(vote) => vec![say(Message::Prepare(other_vote(liar, vote, to))), honest],
        Message::Commit(vote) => vec![say(Message::Commit(other_vote(liar, vote, to)))],
        Message::Signed(signed) => {
            let corrupted = liar.corrupt(&honest);
            if matches!(signed.body, Body::NewView(_)) && liar.withholds_from(to) {
                return vec![corrupted];
            }
            vec![corrupted, honest]
        }
        Message::Stable(_)
        | Message::FetchBatches(_)
        | Message::Batches(_)
        | Message::WrongTags(_)
        | Message::FetchHistory(_)
        | Message::History(..) => vec![liar.rubbish(), honest],
    }
}

/// The same number for the same frames at another time, so another batch.
#[cfg(feature = "demo-adversary")]
fn other_proposal(mut proposal: PrePrepare) -> PrePrepare {
    proposal.batch.time = Time(proposal.batch.time.0.saturating_sub(1));
    proposal
}

/// A vote for a batch that nobody has seen, another one for every listener.
#[cfg(feature = "demo-adversary")]
fn other_vote(liar: &Liar, vote: Vote, to: ReplicaId) -> Vote {
    let mut digest = vote.digest;
    digest.0[..8].copy_from_slice(&liar.claim(to).to_le_bytes());
    Vote { digest, ..vote }
}

/// A status that claims something else to every listener.
#[cfg(feature = "demo-adversary")]
fn other_status(liar: &Liar, status: &Status, to: ReplicaId) -> Status {
    let claim = liar.claim(to);
    Status {
        view: View(status.view.0 + claim % 3),
        active: claim.is_multiple_of(2),
        stable: Seq(claim),
        executed: Seq(claim * 2),
        slots: Vec::new(),
        changes: u128::from(claim),
        wishes: claim.is_multiple_of(3),
    }
}

/// A NEW-VIEW with a quorum of VIEW-CHANGEs and the batches of a window, or batches that were asked for. A link that
/// refused it would end all progress.
pub(super) fn largest_message(cluster: &Cluster) -> usize {
    /// Bytes of a signed CHECKPOINT.
    const CHECKPOINT: usize = 256;
    largest_with(cluster, CHECKPOINT)
}

/// The same where a CHECKPOINT has so many bytes.
pub(super) fn largest_with(cluster: &Cluster, checkpoint: usize) -> usize {
    /// Bytes of an entry of P or Q.
    const ENTRY: usize = 64;
    /// Bytes of a VIEW-CHANGE beside its lists.
    const CHANGE: usize = 256;
    /// Bytes of a batch beside the digests of its frames.
    const BATCH: usize = 64;
    let window = usize::try_from(cluster.timing.window).expect("bounded by the configuration");
    let n = cluster.group.n();
    let change = window * PER_NUMBER * ENTRY + n * checkpoint + CHANGE;
    let batches = window * (BATCH + 32 * cluster.limits.batch_frames);
    n * change + batches
}
