//! The messages of PBFT §4: their form. What is signed of each, and what must be verified before anybody acts on one,
//! is in `signed.rs`; their encoding is in `wire.rs`.

use std::sync::Arc;
use troth_auth::HistoryEntry;
use troth_trusted::a2m::Attestation;
use troth_types::{Batch, Digest, ReplicaId, Seq, Signature, View};

/// PRE-PREPARE: the primary's proposal of a batch for a sequence number (§4.2), and its vote for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PrePrepare {
    /// The view.
    pub view: View,
    /// The sequence number.
    pub seq: Seq,
    /// The frames, by digest, and their time.
    pub batch: Batch,
}

/// What a PREPARE or a COMMIT says: a batch has this number in this view (§4.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Vote {
    /// The view.
    pub view: View,
    /// The sequence number.
    pub seq: Seq,
    /// The batch's digest.
    pub digest: Digest,
}

/// A message of the three phases (§4.2): signed where the group signs all of them, and else vouched for by the link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Phase {
    /// PRE-PREPARE.
    PrePrepare(PrePrepare),
    /// PREPARE.
    Prepare(Vote),
    /// COMMIT.
    Commit(Vote),
}

impl From<Phase> for Message {
    fn from(phase: Phase) -> Self {
        match phase {
            Phase::PrePrepare(proposal) => Self::PrePrepare(proposal),
            Phase::Prepare(vote) => Self::Prepare(vote),
            Phase::Commit(vote) => Self::Commit(vote),
        }
    }
}

/// CHECKPOINT: the sender executed everything up to a batch and this is its state (§4.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Checkpoint {
    /// The last executed batch.
    pub seq: Seq,
    /// The state's digest.
    pub digest: Digest,
}

/// A CHECKPOINT with the attested slot that the sender's history has for the same batch (paper 000 §4.2.2), in a group
/// whose replicas keep such histories.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AttestedCheckpoint {
    /// What any CHECKPOINT says.
    pub checkpoint: Checkpoint,
    /// The lookup of the slot: x and d are in it.
    pub attestation: Attestation,
}

impl AttestedCheckpoint {
    /// What the attestation says that the history holds; none where that is nothing.
    #[must_use]
    pub fn entry(&self) -> Option<HistoryEntry> {
        HistoryEntry::of(&self.attestation)
    }
}

/// What 2f+1 replicas must say alike to make a checkpoint stable: the state, and the history where they keep one.
pub type Target = (Checkpoint, Option<HistoryEntry>);

/// 2f+1 equal CHECKPOINTs of distinct replicas; for the genesis state, none.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct StableProof {
    /// The CHECKPOINT messages.
    pub votes: Vec<Arc<Signed>>,
}

impl StableProof {
    /// Sequence number and digest, as the first vote has them; zero for genesis.
    #[must_use]
    pub fn target(&self) -> (Seq, Digest) {
        let target = self.votes.first().and_then(|vote| vote.body.checkpoint());
        target.map_or((Seq(0), Digest::ZERO), |(checkpoint, _)| (checkpoint.seq, checkpoint.digest))
    }

    /// What the histories hold there, where they are attested.
    #[must_use]
    pub fn history(&self) -> Option<HistoryEntry> {
        self.votes.first().and_then(|vote| vote.body.checkpoint()).and_then(|(_, history)| history)
    }
}

/// A batch that prepared, or was pre-prepared, at a number, and the last view in which it did.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Entry {
    /// The sequence number.
    pub seq: Seq,
    /// The batch's digest.
    pub digest: Digest,
    /// The view.
    pub view: View,
}

/// VIEW-CHANGE: its sender has left the views before (§4.4; TOCS §3.2.4). The sets P and Q are claims, not proofs, for
/// PREPAREs and PRE-PREPAREs need not carry a signature.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ViewChange {
    /// The view the sender moves to.
    pub to: View,
    /// The last stable checkpoint it knows (the paper's n and C).
    pub stable: StableProof,
    /// For each number above it at which a batch prepared at the sender, the last one that did (P), by number.
    pub prepared: Vec<Entry>,
    /// For each batch that was pre-prepared at the sender above it, the last view in which it was (Q), by number and
    /// digest.
    pub pre_prepared: Vec<Entry>,
}

/// NEW-VIEW: the new primary's choice of what the view starts from, with its grounds (§4.4).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewView {
    /// The view.
    pub view: View,
    /// VIEW-CHANGEs for it, of at least 2f+1 distinct replicas (V).
    pub changes: Vec<Arc<Signed>>,
    /// The checkpoint it starts from.
    pub base: (Seq, Digest),
    /// The batches of base+1, base+2, … (O). A null request is a batch without frames.
    pub chosen: Vec<Batch>,
}

/// What a replica's host signs: what is shown to third parties.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Body {
    /// CHECKPOINT.
    Checkpoint(Checkpoint),
    /// VIEW-CHANGE.
    ViewChange(ViewChange),
    /// NEW-VIEW.
    NewView(NewView),
    /// CHECKPOINT, in a group whose replicas keep attested histories.
    Attested(AttestedCheckpoint),
    /// PRE-PREPARE, PREPARE or COMMIT, in a group whose replicas sign these.
    Phase(Phase),
}

impl Body {
    /// What a CHECKPOINT of either kind vouches for.
    #[must_use]
    pub fn checkpoint(&self) -> Option<Target> {
        match self {
            Self::Checkpoint(checkpoint) => Some((*checkpoint, None)),
            Self::Attested(attested) => Some((attested.checkpoint, attested.entry())),
            Self::ViewChange(_) | Self::NewView(_) | Self::Phase(_) => None,
        }
    }
}

/// A body with its sender's signature.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Signed {
    /// The sender.
    pub from: ReplicaId,
    /// What it says.
    pub body: Body,
    /// What the signature covers.
    pub digest: Digest,
    /// The signature.
    pub signature: Signature,
}

impl Signed {
    /// The VIEW-CHANGE it is, if it is one.
    #[must_use]
    pub fn view_change(&self) -> Option<&ViewChange> {
        match &self.body {
            Body::ViewChange(change) => Some(change),
            _ => None,
        }
    }

    /// The NEW-VIEW it is, if it is one.
    #[must_use]
    pub fn new_view(&self) -> Option<&NewView> {
        match &self.body {
            Body::NewView(new_view) => Some(new_view),
            _ => None,
        }
    }
}

/// Where a replica stands and what it lacks (TOCS §5.2): the one mechanism for filling gaps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Status {
    /// Its view.
    pub view: View,
    /// Whether it works in the view.
    pub active: bool,
    /// Its last stable checkpoint.
    pub stable: Seq,
    /// Its last executed batch.
    pub executed: Seq,
    /// For executed+1, executed+2, …: what it has of each in its view, as [`Status::PROPOSED`] and so on. What lies
    /// beyond the last, it has nothing of.
    pub slots: Vec<u8>,
    /// Bits of the replicas whose VIEW-CHANGE for its view it has.
    pub changes: u128,
    /// Whether it works in the view and would rather have the next one's primary.
    pub wishes: bool,
}

impl Status {
    /// The sender has the PRE-PREPARE.
    pub const PROPOSED: u8 = 1;
    /// The batch prepared at the sender.
    pub const PREPARED: u8 = 2;
    /// The batch committed at the sender.
    pub const COMMITTED: u8 = 4;
}

/// What replicas send each other. What is not signed is authenticated by the link that it comes on (deviation D1), so
/// it names no sender and cannot be passed on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Message {
    /// PRE-PREPARE.
    PrePrepare(PrePrepare),
    /// PREPARE.
    Prepare(Vote),
    /// COMMIT.
    Commit(Vote),
    /// CHECKPOINT, VIEW-CHANGE or NEW-VIEW; where the group signs them, PRE-PREPARE, PREPARE or COMMIT.
    Signed(Arc<Signed>),
    /// A status.
    Status(Status),
    /// The proof of a stable checkpoint, for one who is behind.
    Stable(Arc<StableProof>),
    /// Asks for batches that were voted for, by digest.
    FetchBatches(Vec<Digest>),
    /// Batches that were asked for; their digests say which.
    Batches(Vec<Batch>),
    /// Frames in which the sender found its tag wrong, by digest.
    WrongTags(Vec<Digest>),
    /// Asks what histories hold from this number on, in a group whose replicas keep them.
    FetchHistory(Seq),
    /// What the sender's history holds from a number on. A certificate of a later number shows whether it is true.
    History(Seq, Vec<Digest>),
}

/// What must survive a crash.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Record {
    /// A frame of a batch that this replica is about to vote for: its body must not be lost with it.
    Frame(Arc<troth_types::Frame>),
    /// This replica is about to pre-prepare a batch, as primary or as backup.
    PrePrepared(View, Seq, Batch),
    /// This replica is about to commit to a batch that prepared.
    Prepared(Entry),
    /// This replica is about to send this VIEW-CHANGE.
    Leaving(ViewChange),
    /// The NEW-VIEW by which this replica entered a view.
    NewView(Arc<Signed>),
    /// The proof of the last stable checkpoint.
    Stable(Arc<StableProof>),
    /// A batch that this replica executed: it is decided, so a restart executes it again.
    Executed(Seq, Batch),
    /// What this replica's history holds from a number on.
    History(Seq, Vec<Digest>),
}
