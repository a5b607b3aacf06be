//! The messages of MinBFT §4: their form. What is certified of each, and what must be verified before
//! anybody acts on one, is in `certified.rs`; their encoding is in `wire.rs`.

use std::sync::Arc;
use troth_auth::Ui;
use troth_core::rule;
use troth_trusted::CounterValue;
use troth_types::{Batch, Digest, ReplicaId, Seq, Signature, View};

use crate::certified::{new_view_rest, view_change_rest};

/// PREPARE: the primary's proposal of a batch for a sequence number, and its own commitment to it.
/// The number is explicit and consecutive within the view: counter values cannot serve, because
/// CHECKPOINT and VIEW-CHANGE take values too (F-M2).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Prepare {
    /// The view.
    pub view: View,
    /// The sequence number.
    pub seq: Seq,
    /// The frames, by digest, and their time.
    pub batch: Batch,
}

/// COMMIT: a backup's commitment to a PREPARE, which it carries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Commit {
    /// The PREPARE, as the primary certified it.
    pub prepare: Arc<Certified>,
}

/// CHECKPOINT: the sender executed everything up to a batch and this is its state.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Checkpoint {
    /// The last executed batch.
    pub seq: Seq,
    /// The state's digest.
    pub digest: Digest,
    /// The replicas whose component is not the one that the group began with, and its epoch, as the state has
    /// it (deviation D18).
    pub epochs: Vec<(ReplicaId, u64)>,
    /// Whether the sender has the state from others, or may have: it did not execute the batch in this view or an earlier one
    /// that it was in. Said only where the epochs name somebody.
    pub given: bool,
}

impl Checkpoint {
    /// Of nobody: stands behind the epochs where the state was given. Releases that know nothing of that take it for one more.
    pub(crate) const GIVEN: (ReplicaId, u64) = (ReplicaId(u16::MAX), 0);

    /// The epochs as they are written and certified.
    pub(crate) fn written(&self) -> impl Iterator<Item = (ReplicaId, u64)> + '_ {
        let mark = (self.given && !self.epochs.is_empty()).then_some(Self::GIVEN);
        self.epochs.iter().copied().chain(mark)
    }
}

/// f+1 equal CHECKPOINTs of distinct replicas; for the genesis state, none.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct StableProof {
    /// The CHECKPOINT messages.
    pub votes: Vec<Arc<Certified>>,
}

impl StableProof {
    /// Sequence number and digest, as the first vote has them; zero for genesis.
    #[must_use]
    pub fn target(&self) -> (Seq, Digest) {
        match self.votes.first().map(|vote| &vote.body) {
            Some(Body::Checkpoint(checkpoint)) => (checkpoint.seq, checkpoint.digest),
            _ => (Seq(0), Digest::ZERO),
        }
    }

    /// The highest view in which one of the votes was certified; one above all views where the voters have the state from others,
    /// for no view of theirs says in which one it came about.
    #[must_use]
    pub fn view(&self) -> View {
        rule!("MINBFT-E12");
        if matches!(self.votes.first().map(|vote| &vote.body), Some(Body::Checkpoint(vote)) if vote.given) {
            return View(u64::MAX);
        }
        self.votes.iter().map(|vote| View(vote.value().view())).max().unwrap_or_default()
    }
}

/// REQ-VIEW-CHANGE: its sender waits too long in its view. Signed by the host: f+1 of them justify a
/// VIEW-CHANGE before third parties.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestViewChange {
    /// The view the sender wants.
    pub to: View,
}

/// A signed REQ-VIEW-CHANGE.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SignedRequest {
    /// The sender.
    pub from: ReplicaId,
    /// What it wants.
    pub request: RequestViewChange,
    /// What the signature covers.
    pub digest: Digest,
    /// The sender's host signature.
    pub signature: Signature,
}

/// One own message in a VIEW-CHANGE's O. Messages that would nest without bound stand as stubs
/// (F-M4); their place in the counter says what they are, so a stub cannot hide anything else.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LogEntry {
    /// PREPARE, COMMIT, CHECKPOINT or COMMIT(NEW-VIEW), whole.
    Whole(Arc<Certified>),
    /// A VIEW-CHANGE: its target, the digest of the rest, its identifier.
    ViewChange(View, Digest, Ui),
    /// A NEW-VIEW: its view, the digest of the rest, its identifier.
    NewView(View, Digest, Ui),
}

impl LogEntry {
    /// The entry's identifier.
    #[must_use]
    pub fn ui(&self) -> &Ui {
        match self {
            Self::Whole(message) => &message.ui,
            Self::ViewChange(_, _, ui) | Self::NewView(_, _, ui) => ui,
        }
    }
}

/// VIEW-CHANGE: ends the sender's old views and shows everything it certified since its anchor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ViewChange {
    /// The view the sender moves to.
    pub to: View,
    /// The last stable checkpoint it knows (the paper's C_latest).
    pub stable: StableProof,
    /// Its own messages since its anchor, in counter order (the paper's O).
    pub log: Vec<LogEntry>,
    /// The f+1 REQ-VIEW-CHANGEs that justify it.
    pub requests: Vec<Arc<SignedRequest>>,
}

/// NEW-VIEW: the new primary's choice of what the new view starts from, with its grounds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewView {
    /// The view.
    pub view: View,
    /// f+1 VIEW-CHANGEs for it, of distinct replicas, the primary's own among them (V_vc).
    pub changes: Vec<Arc<Certified>>,
    /// The checkpoint it starts from.
    pub base: (Seq, Digest),
    /// The batches of base+1, base+2, … (S).
    pub chosen: Vec<Batch>,
}

impl NewView {
    /// The batches that it carries over, with their numbers.
    pub(crate) fn carried(&self) -> impl Iterator<Item = (Seq, &Batch)> {
        (self.base.0.0 + 1..).map(Seq).zip(&self.chosen)
    }

    /// The one of this number, if there is one.
    pub(crate) fn batch_at(&self, seq: Seq) -> Option<&Batch> {
        let index = seq.0.checked_sub(self.base.0.0 + 1)?;
        self.chosen.get(usize::try_from(index).ok()?)
    }
}

/// COMMIT(NEW-VIEW): the sender accepted the NEW-VIEW and commits to all that it carries over (the
/// fix of F-M1).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AcceptNewView {
    /// The view.
    pub view: View,
    /// The digest certified for the NEW-VIEW.
    pub new_view: Digest,
}

/// What a replica has certified or signed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Body {
    /// PREPARE.
    Prepare(Prepare),
    /// COMMIT.
    Commit(Commit),
    /// CHECKPOINT.
    Checkpoint(Checkpoint),
    /// VIEW-CHANGE.
    ViewChange(ViewChange),
    /// NEW-VIEW.
    NewView(NewView),
    /// COMMIT(NEW-VIEW).
    AcceptNewView(AcceptNewView),
    /// REQ-VIEW-CHANGE; signed, not certified.
    RequestViewChange(RequestViewChange),
}

/// A body with its unique identifier.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Certified {
    /// The sender.
    pub from: ReplicaId,
    /// What it says.
    pub body: Body,
    /// What the identifier covers.
    pub digest: Digest,
    /// The identifier.
    pub ui: Ui,
}

impl Certified {
    /// Its counter value.
    #[must_use]
    pub fn value(&self) -> CounterValue {
        self.ui.value()
    }

    /// The PREPARE it is, if it is one.
    #[must_use]
    pub fn prepare(&self) -> Option<&Prepare> {
        match &self.body {
            Body::Prepare(prepare) => Some(prepare),
            _ => None,
        }
    }

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

    /// The entry that stands for it in a VIEW-CHANGE.
    #[must_use]
    pub fn log_entry(self: &Arc<Self>) -> LogEntry {
        match &self.body {
            Body::ViewChange(change) => {
                LogEntry::ViewChange(change.to, view_change_rest(change), self.ui.clone())
            }
            Body::NewView(new_view) => {
                LogEntry::NewView(new_view.view, new_view_rest(new_view), self.ui.clone())
            }
            _ => LogEntry::Whole(self.clone()),
        }
    }
}

/// What a replica processed of the others, and what it lacks: the one mechanism for filling gaps,
/// retransmission until stable and finding out that one is behind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Status {
    /// Its view.
    pub view: View,
    /// The value of the last message processed of each replica, by number.
    pub processed: Vec<u128>,
    /// Its last stable checkpoint.
    pub stable: Seq,
    /// Its last executed batch.
    pub executed: Seq,
    /// Counts its status messages; the others take turns by it in re-serving third parties' messages.
    pub round: u64,
    /// A NEW-VIEW that it needs as evidence.
    pub wants: Option<View>,
}

/// What replicas send each other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Message {
    /// A certified message.
    Certified(Arc<Certified>),
    /// A REQ-VIEW-CHANGE.
    RequestViewChange(Arc<SignedRequest>),
    /// A status.
    Status(Status),
    /// The proof of a stable checkpoint, for one who is behind.
    Stable(Arc<StableProof>),
    /// A NEW-VIEW of an earlier view, or a commitment to it, as evidence.
    Evidence(Arc<Certified>),
}

/// What must survive a crash besides certified messages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Record {
    /// A frame that this replica is about to commit to: its body must not be lost with it.
    Frame(Arc<troth_types::Frame>),
    /// The NEW-VIEW that this replica is about to accept.
    NewView(Arc<Certified>),
    /// The proof of the last stable checkpoint.
    Stable(Arc<StableProof>),
    /// A commitment to a NEW-VIEW that this replica keeps.
    Accepted(Arc<Certified>),
    /// A batch that this replica executed: it is decided, so a restart executes it again.
    Executed(Seq, Batch),
    /// The view of this replica's last certified commitment and its number: its own messages that say so may
    /// have been dropped, because what is stable covers them.
    Committed(View, Seq),
    /// The VIEW-CHANGE by which a component began that was admitted to the group.
    First(Arc<Certified>),
}

/// The view that a VIEW-CHANGE is for.
pub(crate) fn target(message: &Certified) -> Option<View> {
    message.view_change().map(|change| change.to)
}
