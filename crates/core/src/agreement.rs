//! The contract of an agreement protocol (ADR 1).

use crate::{Cx, Outcome, Proven, Ticket, VerifiedFrame};
use core::fmt::Debug;
use std::sync::Arc;
use troth_auth::{Authentic, Seal, Verified};
use troth_trusted::a2m::{self, LogId, Nonce, Slot};
use troth_trusted::{CounterId, CounterValue};
use troth_types::{ClientId, Configuration, Digest, Frame, GroupId, ReplicaId, Seq, Time, View, Wire};

/// What a replica knows when it starts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Start<A: Agreement> {
    /// It never ran: the genesis state, no certified message.
    Fresh,
    /// It ran before and its log is whole.
    Recovered {
        /// Its own certified messages since the log's snapshot, in the order of their values; each is
        /// durable and was or may have been sent.
        own: Vec<A::Message>,
        /// Its records, in order.
        records: Vec<A::Record>,
        /// The restored checkpoint: where the executor stands, and the state's digest.
        snapshot: (Seq, Digest),
        /// The same as the executor tells it.
        reached: Reached,
    },
}

/// What the executor reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Reached {
    /// The last executed batch.
    pub seq: Seq,
    /// Its agreed time.
    pub time: Time,
    /// The agreed time at which the application wants a batch even if no client asks.
    pub deadline: Option<Time>,
}

/// What vouches for a message of a replica.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Voucher {
    /// Its trusted component, by the move of a counter.
    Counter,
    /// Its trusted component, by the slot of a log.
    Slot,
    /// Its host's key.
    Host,
}

/// What a person wants to see of a replica.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Status {
    /// The view.
    pub view: View,
    /// Whether the replica works in the view; otherwise it waits for a new primary.
    pub active: bool,
    /// The primary of the view.
    pub primary: ReplicaId,
    /// The last executed batch.
    pub executed: Seq,
    /// The last stable checkpoint.
    pub stable: Seq,
    /// Requests that wait for their execution.
    pub pending: usize,
    /// Whether the replica's votes count; one whose component was lost must be admitted first.
    pub votes: bool,
    /// Replicas that provably broke a rule.
    pub accused: Vec<ReplicaId>,
    /// How often this replica suspected a primary.
    pub suspicions: u64,
    /// Microseconds that requests lately waited, typically, for the primary to propose them, where this replica is
    /// not the primary and can tell.
    pub primary_wait: Option<u64>,
    /// Microseconds that the others lately took to agree on what was proposed.
    pub agreement: Option<u64>,
}

/// A protocol that orders frames: a pure state machine. Each event takes the context, in which it
/// leaves effects; state is plain data, so that it can be cloned, compared and printed.
pub trait Agreement: Clone + Debug + Eq {
    /// The protocol's name, as configuration writes it.
    const NAME: &'static str;
    /// How many kinds of messages there are, where the first byte of one is its kind, from 0. A later release
    /// may send others.
    const MESSAGE_KINDS: u8 = u8::MAX;
    /// Whether a primary shows the others what its clients sent to it alone: f+1 answers are enough then, and those whose
    /// turn it is give them.
    const PRIMARY_SHOWS: bool = false;
    /// Whether the replies of a batch wait for what proves its place, and what was answered before is ordered anew where
    /// its proof is gone.
    const PROVES_REPLIES: bool = false;
    /// What this replica has certified or signed, before it is.
    type Body: Wire + Clone + Debug + Eq;
    /// What replicas send each other.
    type Message: Wire + Authentic + Clone + Debug + Eq;
    /// Names of timers.
    type Timer: Copy + Ord + Debug;
    /// What must survive a crash besides the certified messages.
    type Record: Wire + Clone + Debug + Eq;

    /// The digest that is certified or signed for a body: separates group, protocol, message type and
    /// sender (guide.md §7.1).
    fn digest(body: &Self::Body, group: GroupId, from: ReplicaId) -> Digest;
    /// What vouches for a message with this body, in all logs that a replica of this protocol writes.
    fn voucher(body: &Self::Body) -> Voucher;
    /// The message that a certified or signed body becomes; the seal is of the body's [`Agreement::voucher`].
    fn seal(body: Self::Body, digest: Digest, from: ReplicaId, seal: Seal) -> Self::Message;

    /// The counter and value of a message that the trusted component certified.
    fn position(message: &Self::Message) -> Option<(CounterId, CounterValue)>;

    /// The log and slot of a message that the trusted component certified there.
    fn slot(message: &Self::Message) -> Option<(LogId, Slot)> {
        let _ = message;
        None
    }

    /// The first event.
    fn on_start(&mut self, cx: &mut Cx<'_, Self>, start: Start<Self>);
    /// Clients' frames that this replica has verified and the client table does not know as executed, or in batches whose
    /// place is not final. What came together is best proposed together.
    fn on_requests(&mut self, cx: &mut Cx<'_, Self>, frames: Vec<VerifiedFrame>);
    /// Clients' frames that this replica alone was sent: whoever proposes them shows them to the others. And others that came
    /// with them, to be proposed together.
    fn on_requests_alone(
        &mut self,
        cx: &mut Cx<'_, Self>,
        alone: Vec<VerifiedFrame>,
        mut others: Vec<VerifiedFrame>,
    ) {
        others.extend(alone);
        self.on_requests(cx, others);
    }
    /// Clients' frames that another replica shows.
    fn on_shown(&mut self, cx: &mut Cx<'_, Self>, from: ReplicaId, frames: Vec<VerifiedFrame>) {
        let _ = from;
        self.on_requests(cx, frames);
    }
    /// Clients' frames that are executed and whose clients want their place proven anew: to be ordered again. Only where
    /// [`Self::PROVES_REPLIES`].
    fn on_requests_again(&mut self, cx: &mut Cx<'_, Self>, frames: Vec<VerifiedFrame>) {
        self.on_requests(cx, frames);
    }
    /// Executed frames that another replica shows, which may wait for a proof of their places. Only where
    /// [`Self::PROVES_REPLIES`].
    fn on_shown_again(&mut self, cx: &mut Cx<'_, Self>, from: ReplicaId, frames: Vec<VerifiedFrame>) {
        let _ = from;
        self.on_known_frames(cx, frames);
    }
    /// Fetched frames that the client table knows as executed, or of clients that were removed: only of use to
    /// complete a batch that was ordered with them.
    fn on_known_frames(&mut self, cx: &mut Cx<'_, Self>, frames: Vec<VerifiedFrame>);
    /// Frames that a replica showed and whose tag for this one is wrong (PBFT's authenticators): they may be their clients'
    /// all the same, and whoever counts votes can tell.
    fn on_doubtful_frames(&mut self, cx: &mut Cx<'_, Self>, frames: Vec<Arc<Frame>>) {
        let _ = (cx, frames);
    }
    /// Whether a frame without signature that another replica shows may be of use; one that is not need not be checked.
    fn wants_unsigned(&self, digest: &Digest) -> bool {
        let _ = digest;
        true
    }
    /// A message of a replica, this one included.
    fn on_message(&mut self, cx: &mut Cx<'_, Self>, from: ReplicaId, message: Verified<Self::Message>);
    /// A timer is due.
    fn on_timer(&mut self, cx: &mut Cx<'_, Self>, timer: Self::Timer);
    /// What the trusted component answered to operations on its logs, one answer for each.
    fn on_trusted(&mut self, cx: &mut Cx<'_, Self>, ticket: Ticket, answers: Vec<a2m::Answer>) {
        let _ = (cx, ticket, answers);
    }
    /// A nonce that was asked for.
    fn on_drawn(&mut self, cx: &mut Cx<'_, Self>, ticket: Ticket, nonce: Nonce) {
        let _ = (cx, ticket, nonce);
    }
    /// A delivered batch was executed, finally or tentatively: the protocol knows which it asked for. One that was
    /// undone meanwhile may be told of, too.
    fn on_executed(&mut self, cx: &mut Cx<'_, Self>, reached: Reached, outcome: &Outcome);
    /// The configuration as it is after the batch that the executor reached: at the start, with a state from
    /// others, and right after a batch that changed it. Comes before the event that brought it.
    fn on_configured(&mut self, cx: &mut Cx<'_, Self>, configuration: &Arc<Configuration>);
    /// The digest of a checkpoint that was asked for is known.
    fn on_checkpoint(&mut self, cx: &mut Cx<'_, Self>, seq: Seq, digest: Digest);
    /// A state that was asked for is in force. `executed` tells whether the client table holds a frame
    /// as done.
    fn on_installed(
        &mut self,
        cx: &mut Cx<'_, Self>,
        reached: Reached,
        digest: Digest,
        executed: &dyn Fn(ClientId, u64) -> bool,
    );

    /// Whether it may do anything with a frame that a client sent: one that it would drop as it comes need not even be
    /// checked.
    fn may_use(&self, frame: &Frame) -> bool {
        let _ = frame;
        true
    }
    /// Whether a message of a replica may bring this one anything, as far as it shows without a check of what is signed or
    /// attested in it: there may be thousands.
    fn is_worth_checking(&self, message: &Self::Message) -> bool {
        let _ = message;
        true
    }
    /// Of a message that is not worth a check: whether it merely waits here for others, so that whoever sent it, again, may have
    /// had to.
    fn waits_here(&self, message: &Self::Message) -> bool {
        let _ = message;
        false
    }
    /// Who made this message, where it is of a kind that may show thousands of signatures and is taken in its author's order
    /// ([`Agreement::turns`]): one that does not have its turn is charged also while [`Agreement::progress`] cannot be told.
    fn author_of_dear(&self, message: &Self::Message) -> Option<ReplicaId> {
        let _ = message;
        None
    }
    /// A number that changes when a message that this replica made has its turn, whatever this one is about.
    fn turns(&self, author: ReplicaId) -> u128 {
        let _ = author;
        0
    }
    /// How many messages have broken a rule, so that their senders are found out, or were more than their sender has need to
    /// send: each is charged to whoever sent it, whatever this replica is about.
    fn broken(&self) -> u64 {
        0
    }
    /// A frame that this replica holds and can show others.
    fn frame(&self, digest: &Digest) -> Option<VerifiedFrame>;
    /// What proves the place of an executed batch, for answers repeated.
    fn proven(&self, seq: Seq) -> Proven {
        let _ = seq;
        Proven::Gone
    }
    /// Whether reads may be answered from the current state (the restart rule).
    fn may_answer_reads(&self) -> bool;
    /// Has the end of the history attested under this nonce, for reads that are answered from the state after the batch
    /// `executed`: [`Cx::end_attested`] follows. Whether it was asked for; not where the history will not end just there once all
    /// that was asked for before is done. Only where replies are proven.
    fn attest_end(&mut self, cx: &mut Cx<'_, Self>, executed: Seq, nonce: Nonce) -> bool {
        let _ = (cx, executed, nonce);
        false
    }
    /// The batch up to which a state must have been executed, tentatively at least, for a read to be answered from
    /// it: up to wherever this replica has vouched for a batch that clients may take for executed. What the answer
    /// shows leaves once it is final.
    fn reads_from(&self) -> Seq {
        Seq(0)
    }
    /// What a fresh log segment must hold besides the snapshot at the last stable checkpoint: own
    /// certified messages in the order of their values, and records.
    fn retained(&self) -> (Vec<Self::Message>, Vec<Self::Record>);
    /// The view, as a hint for clients.
    fn view(&self) -> View;
    /// Whether a replica gets along without this message for a moment: one that was certified just now and goes to all
    /// others. The machine that sends it may hold it back for a moment, so that it goes with what follows.
    fn can_wait(&self, message: &Self::Message, to: ReplicaId) -> bool {
        let _ = (message, to);
        false
    }
    /// A number that changes whenever a message of another replica brings this one further. Who sends what leaves
    /// it as it is has wasted this replica's time. `None` while that cannot be told: a replica that is behind holds
    /// back what it will need.
    fn progress(&self) -> Option<u128> {
        None
    }
    /// What a person wants to see.
    fn status(&self) -> Status;
    /// Where the replica stands and what it waits for, in one line for a person who debugs.
    fn describe(&self) -> String {
        format!("{:?}", self.status())
    }
    /// Panics where the state contradicts itself: our bug, never an input's doing.
    fn invariants(&self) {}
}
