//! The messages of A2M-PBFT-EA (§4.3, appendix A): their form. What a log attests of each, and what must be verified
//! before anybody acts on one, is in `attested.rs`; their encoding is in `wire.rs`.

use std::sync::Arc;
use troth_auth::HistoryEntry;
use troth_trusted::a2m::{Attestation, Nonce};
use troth_types::{Batch, Digest, ReplicaId, Seq, Signature, View};

/// PREPREPARE: the primary's proposal of a batch for a sequence number, and its vote for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PrePrepare {
    /// The view.
    pub view: View,
    /// The sequence number.
    pub seq: Seq,
    /// The frames, by digest, and their time.
    pub batch: Batch,
}

/// What a PREPARE or a COMMIT says: a batch has this number in this view.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Vote {
    /// The view.
    pub view: View,
    /// The sequence number.
    pub seq: Seq,
    /// The batch's digest.
    pub digest: Digest,
}

/// COMMIT(NEWVIEW): the sender commits to all that a view started with (F-A1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Accept {
    /// The view.
    pub view: View,
    /// The digest of its NEWVIEW.
    pub new_view: Digest,
}

/// CHECKPOINT: the sender executed everything up to a batch, this is its state, and this is what its history holds there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Checkpoint {
    /// The last executed batch.
    pub seq: Seq,
    /// The state's digest.
    pub digest: Digest,
    /// The lookup of the batch's slot of the history log: x and d are in it.
    pub history: Attestation,
}

/// What f+1 replicas must say alike to make a checkpoint stable: the number, the state, and the history (n, s, x, d).
pub type Target = (Seq, Digest, HistoryEntry);

impl Checkpoint {
    /// What it vouches for; nothing where its history holds nothing.
    #[must_use]
    pub fn target(&self) -> Option<Target> {
        HistoryEntry::of(&self.history).map(|history| (self.seq, self.digest, history))
    }
}

/// CHECKPOINTs of f+1 distinct replicas that vouch for the same; for the genesis state, none.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct StableProof {
    /// The CHECKPOINT messages.
    pub votes: Vec<Arc<Attested>>,
}

impl StableProof {
    /// Sequence number and digest, as the first vote has them; zero for genesis.
    #[must_use]
    pub fn target(&self) -> (Seq, Digest) {
        let first = self.votes.first().and_then(|vote| vote.checkpoint());
        first.map_or((Seq(0), Digest::ZERO), |checkpoint| (checkpoint.seq, checkpoint.digest))
    }

    /// What every correct history holds there; nothing for genesis.
    #[must_use]
    pub fn history(&self) -> Option<HistoryEntry> {
        let first = self.votes.first().and_then(|vote| vote.checkpoint());
        first.and_then(Checkpoint::target).map(|(_, _, history)| history)
    }
}

/// WANTVIEWCHANGE: the sender wants to leave for a view (appendix A). It is shown to third parties, so it is signed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WantViewChange {
    /// The view (v_to).
    pub to: View,
    /// A nonce that nobody knew before (z).
    pub nonce: Nonce,
}

/// A WANTVIEWCHANGE with its sender's signature.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// The sender.
    pub from: ReplicaId,
    /// What it wants.
    pub want: WantViewChange,
    /// What the signature covers.
    pub digest: Digest,
    /// The signature.
    pub signature: Signature,
}

/// A batch that the sender of a VIEWCHANGE committed to: the prepared certificate (P) and its own COMMIT (A).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Committed {
    /// The primary's PREPREPARE.
    pub proposal: Arc<Attested>,
    /// PREPAREs of f or more backups, in order of their numbers.
    pub prepares: Vec<Arc<Attested>>,
    /// The sender's COMMIT.
    pub commit: Arc<Attested>,
}

/// VIEWCHANGE: its sender has left every view before `to`, and shows all that it committed to in the last of them that it
/// was in (appendix A).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ViewChange {
    /// The last view that the sender entered (v_from).
    pub left: View,
    /// The view it moves to (v_to).
    pub to: View,
    /// The last stable checkpoint it knows (n, s and C).
    pub stable: StableProof,
    /// Its COMMIT(NEWVIEW) of the view it left; none of view 0.
    pub accepted: Option<Arc<Attested>>,
    /// What it committed to in the view it left beyond what that started with, above the stable checkpoint (P and A).
    pub committed: Vec<Committed>,
    /// f+1 WANTVIEWCHANGEs for `to` (W).
    pub wanted: Vec<Arc<Wanted>>,
    /// What its COMMIT log says of each view in [left, to): that nothing stands there beyond what is shown (B).
    pub abandoned: Vec<Attestation>,
}

/// NEWVIEW: the new primary's choice of what the view starts from, with its grounds (appendix A).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewView {
    /// The view.
    pub view: View,
    /// VIEWCHANGEs for it, of at least f+1 distinct replicas (V).
    pub changes: Vec<Arc<Attested>>,
    /// The checkpoint it starts from.
    pub base: (Seq, Digest),
    /// The batches of base+1, base+2, … (O).
    pub chosen: Vec<Batch>,
}

/// What a log attests, or a host signs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Body {
    /// PREPREPARE.
    PrePrepare(PrePrepare),
    /// PREPARE.
    Prepare(Vote),
    /// COMMIT.
    Commit(Vote),
    /// COMMIT(NEWVIEW).
    Accept(Accept),
    /// CHECKPOINT.
    Checkpoint(Checkpoint),
    /// VIEWCHANGE.
    ViewChange(ViewChange),
    /// NEWVIEW.
    NewView(NewView),
    /// WANTVIEWCHANGE.
    Want(WantViewChange),
}

/// A body with the attestation of the slot that it fills.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attested {
    /// The sender.
    pub from: ReplicaId,
    /// What it says.
    pub body: Body,
    /// What the slot holds.
    pub digest: Digest,
    /// The attestation.
    pub attestation: Attestation,
}

impl Attested {
    /// The PREPREPARE it is, if it is one.
    #[must_use]
    pub fn pre_prepare(&self) -> Option<&PrePrepare> {
        match &self.body {
            Body::PrePrepare(proposal) => Some(proposal),
            _ => None,
        }
    }

    /// The COMMIT it is, if it is one.
    #[must_use]
    pub fn commit(&self) -> Option<&Vote> {
        match &self.body {
            Body::Commit(vote) => Some(vote),
            _ => None,
        }
    }

    /// The COMMIT(NEWVIEW) it is, if it is one.
    #[must_use]
    pub fn accept(&self) -> Option<&Accept> {
        match &self.body {
            Body::Accept(accept) => Some(accept),
            _ => None,
        }
    }

    /// The CHECKPOINT it is, if it is one.
    #[must_use]
    pub fn checkpoint(&self) -> Option<&Checkpoint> {
        match &self.body {
            Body::Checkpoint(checkpoint) => Some(checkpoint),
            _ => None,
        }
    }

    /// The VIEWCHANGE it is, if it is one.
    #[must_use]
    pub fn view_change(&self) -> Option<&ViewChange> {
        match &self.body {
            Body::ViewChange(change) => Some(change),
            _ => None,
        }
    }

    /// The NEWVIEW it is, if it is one.
    #[must_use]
    pub fn new_view(&self) -> Option<&NewView> {
        match &self.body {
            Body::NewView(new_view) => Some(new_view),
            _ => None,
        }
    }

    /// The batch that a PREPREPARE, PREPARE or COMMIT is about.
    #[must_use]
    pub fn voted(&self) -> Option<Vote> {
        match &self.body {
            Body::PrePrepare(proposal) => {
                Some(Vote { view: proposal.view, seq: proposal.seq, digest: proposal.batch.digest() })
            }
            Body::Prepare(vote) | Body::Commit(vote) => Some(*vote),
            _ => None,
        }
    }
}

/// Where a replica stands and what it lacks: the one mechanism for filling gaps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Status {
    /// Its view.
    pub view: View,
    /// Whether it works in the view.
    pub active: bool,
    /// Its last stable checkpoint.
    pub stable: Seq,
    /// The last batch that it executed and committed to.
    pub executed: Seq,
    /// For executed+1, executed+2, …: what it has of each in its view, as [`Status::PROPOSED`] and so on. What lies
    /// beyond the last, it has nothing of.
    pub slots: Vec<u8>,
    /// Bits of the replicas whose VIEWCHANGE for its view it has.
    pub changes: u128,
    /// Bits of the replicas whose COMMIT(NEWVIEW) of its view it has.
    pub accepts: u128,
    /// An earlier view whose NEWVIEW it needs, to judge a later one.
    pub lacks: Option<View>,
    /// Whether it would rather have the next view's primary.
    pub wishes: bool,
}

impl Status {
    /// The sender has the PREPREPARE.
    pub const PROPOSED: u8 = 1;
    /// The batch prepared at the sender.
    pub const PREPARED: u8 = 2;
    /// The batch committed at the sender.
    pub const COMMITTED: u8 = 4;
}

/// What replicas send each other. What a log attests, or a host signed, convinces whoever gets it from whomever; a status
/// is authenticated by the link that it comes on; what is told of a history, a certificate must show to be true.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Message {
    /// PREPREPARE, PREPARE, COMMIT, COMMIT(NEWVIEW), CHECKPOINT, VIEWCHANGE or NEWVIEW.
    Attested(Arc<Attested>),
    /// WANTVIEWCHANGE.
    Want(Arc<Wanted>),
    /// A status.
    Status(Status),
    /// The proof of a stable checkpoint, for one who is behind.
    Stable(Arc<StableProof>),
    /// Asks what histories hold from this number on.
    FetchHistory(Seq),
    /// What the sender's history holds from a number on.
    History(Seq, Vec<Digest>),
    /// Asks for the PREPREPAREs of these numbers of a view, for which the one that is asked has voted.
    FetchProposals(View, Vec<Seq>),
}

/// What must survive a crash besides the attested messages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Record {
    /// A frame of a batch that this replica is about to vote for: its body must not be lost with it.
    Frame(Arc<troth_types::Frame>),
    /// This replica is about to vote for this PREPREPARE of another.
    Proposal(Arc<Attested>),
    /// This replica is about to commit to a batch that these PREPAREs prepared.
    Prepared(Vec<Arc<Attested>>),
    /// This replica is about to abandon every view before the one that these WANTVIEWCHANGEs are for.
    Leaving(Vec<Arc<Wanted>>),
    /// A NEWVIEW that this replica found to follow from what it shows.
    NewView(Arc<Attested>),
    /// A COMMIT(NEWVIEW) that tells of another's view.
    Accepted(Arc<Attested>),
    /// The proof of the last stable checkpoint.
    Stable(Arc<StableProof>),
    /// A batch that this replica executed: it is decided, so a restart executes it again.
    Executed(Seq, Batch),
    /// The logs hold own messages up to these slots that are not kept any more.
    Filled(Vec<(u16, u128)>),
    /// What this replica's history holds from a number on.
    History(Seq, Vec<Digest>),
}
