//! What a replica asks of the executor beside it.

use crate::Meter;
use core::fmt::Debug;
use std::ops::RangeInclusive;
use std::sync::Arc;
use troth_auth::Verified;
use troth_types::{
    ClientId, Configuration, Digest, Event, Frame, Read, ReadReply, Reply, Seq, StateFetch, StatePiece, Time,
};

/// A frame that this replica has verified, shared between the pool, the log and the executor.
pub type VerifiedFrame = Verified<Arc<Frame>>;

/// A batch with its bodies, ready to be executed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ordered {
    /// Its place in the order.
    pub seq: Seq,
    /// The agreed time; later than that of every batch before it.
    pub time: Time,
    /// The agreed seed: the same at every replica, not unpredictable.
    pub seed: Digest,
    /// The frames in execution order. One that was executed before is skipped by the executor:
    /// exactly-once is decided there, on ordered state (guide.md §1.1).
    pub frames: Vec<VerifiedFrame>,
}

/// What the execution of a batch brought about.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Outcome {
    /// The frames that are done now. One for each frame of the batch, in their order.
    pub done: Vec<Done>,
    /// Replies of the frames executed now, in full, with view 0 for the caller to fill in.
    pub replies: Vec<Reply>,
    /// Events that the batch caused, in order.
    pub events: Vec<Event>,
    /// The configuration from now on, where the batch changed it.
    pub configuration: Option<Arc<Configuration>>,
}

/// A frame of a batch, done when the batch is executed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Done {
    /// Its client.
    pub client: ClientId,
    /// Its number.
    pub number: u64,
    /// Whether no earlier batch had executed it: what one had a primary may name as often as it likes.
    pub now: bool,
}

impl Outcome {
    /// What is done, by (client, number).
    #[must_use]
    pub fn names(&self) -> Vec<(ClientId, u64)> {
        self.done.iter().map(|done| (done.client, done.number)).collect()
    }
}

/// What the client table knows of a frame number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Lookup {
    /// Not executed, and its slot is free to be.
    New,
    /// Executed; this is the reply, in full.
    Executed(Box<Reply>),
    /// Executed by this batch; the client's budget has pushed its result out, and it is still the newest of its slot.
    ResultGone(Seq),
    /// Overtaken by a newer frame in its slot, whether it was executed or not.
    TooOld,
}

/// How far the installation of a transferred state is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Installing {
    /// The piece was good; these are wanted next (possibly none, while others are under way).
    Wants(Vec<StateFetch>),
    /// The state is complete, verified and in force.
    Done,
    /// The piece does not belong to the target or does not verify: it says something about its
    /// sender and nothing about the state.
    Rejected,
    /// Nothing is being installed, or not this.
    NotWanted,
}

/// A deterministic executor with checkpoints: the application, the client table and the outboxes
/// in one versioned state.
pub trait Execution: Clone + Debug {
    /// A kept checkpoint as something that can be held, written to a disk in the background and started
    /// from. Holding one costs nothing but the memory that later states do not share with it.
    type Snapshot: Clone + Debug + Eq;

    /// From now on this one looks on while frames are executed. One that executes for nobody's account need not heed it.
    fn metered(&mut self, meter: Arc<dyn Meter>) {
        let _ = meter;
    }
    /// Who looks on, if somebody does.
    fn meter(&self) -> Option<&dyn Meter> {
        None
    }
    /// The last executed batch.
    fn executed(&self) -> Seq;
    /// The last executed batch whose place is final: the same, unless some were executed tentatively.
    fn committed(&self) -> Seq {
        self.executed()
    }
    /// Who the replicas and clients are after the last executed batch.
    fn configuration(&self) -> &Arc<Configuration>;
    /// The agreed time of the last executed batch.
    fn last_time(&self) -> Time;
    /// The agreed time at which the application wants a batch even if no client asks for one.
    fn next_deadline(&self) -> Option<Time>;
    /// What the client table knows of a frame number.
    fn lookup(&self, client: ClientId, number: u64) -> Lookup;
    /// Whether that is [`Lookup::New`]; nothing of a reply need be read for it.
    fn is_new(&self, client: ClientId, number: u64) -> bool {
        self.lookup(client, number) == Lookup::New
    }
    /// Bytes of the results that are kept of an executed frame: what it takes to send or to hash them again.
    fn kept_bytes(&self, client: ClientId, number: u64) -> usize {
        match self.lookup(client, number) {
            Lookup::Executed(reply) => reply.body.size(),
            Lookup::New | Lookup::ResultGone(_) | Lookup::TooOld => 0,
        }
    }
    /// Executes the next batch; `ordered.seq` must be `executed() + 1`.
    fn execute(&mut self, ordered: &Ordered) -> Outcome;
    /// The same for a batch that may be undone; only tentative ones follow it until it is committed or undone.
    fn execute_tentatively(&mut self, ordered: &Ordered) -> Outcome;
    /// What was executed tentatively up to `through` stays.
    fn commit(&mut self, through: Seq);
    /// The state as it was after the batch `to`, which is the last committed one or one above it: entries, client
    /// table, cached results, outboxes, deadlines, agreed time and configuration.
    fn roll_back(&mut self, to: Seq);
    /// Answers a read from the current state, in full.
    fn query(&self, read: &Read) -> ReadReply;
    /// The same in a step that is not its client's, whom what it takes is charged to all the same; and how many
    /// microseconds it took, none where nobody looks on.
    fn query_in_passing(&self, read: &Read) -> (ReadReply, u64) {
        if let Some(meter) = self.meter() {
            meter.begins();
        }
        let reply = self.query(read);
        let took = self.meter().map_or(0, |meter| meter.answered(read.client));
        (reply, took)
    }
    /// The indices of the client's undelivered events that are kept.
    fn outbox(&self, client: ClientId) -> RangeInclusive<u64>;
    /// The one of them with this index.
    fn event(&self, client: ClientId, index: u64) -> Event;

    /// Seals the current state, of which nothing is tentative, as the checkpoint at `executed()`, in O(1); its digest comes from
    /// [`Execution::poll_checkpoint`].
    fn checkpoint(&mut self);
    /// Does at most `budget` units of pending hashing (a unit is about a microsecond) and returns a
    /// checkpoint whose digest became known. The digest covers the sequence number, the agreed time,
    /// the application's state, the client table and the outboxes, and is a function of that content
    /// alone.
    fn poll_checkpoint(&mut self, budget: usize) -> Option<(Seq, Digest)>;
    /// Whether a sealed checkpoint's digest is still to be computed.
    fn hashing(&self) -> bool;
    /// Checkpoints below `seq` are not needed any more; the one at `seq` is kept to serve transfers.
    fn stable(&mut self, seq: Seq);

    /// One piece of a kept checkpoint, or nothing where it is not kept.
    fn serve(&self, fetch: &StateFetch) -> Option<StatePiece>;
    /// Starts (or restarts) the installation of the state with this digest; returns what to fetch
    /// first. Pieces that this replica's own state already holds are not fetched.
    fn begin_install(&mut self, seq: Seq, digest: Digest) -> Vec<StateFetch>;
    /// Gives up the installation that is under way, if one is, with all that it holds.
    fn abandon_install(&mut self);
    /// Takes a fetched piece. On [`Installing::Done`] the executor stands at the target and keeps it
    /// as a checkpoint; before, it stands where it stood.
    fn on_piece(&mut self, piece: &StatePiece) -> Installing;
    /// What is wanted and has not come, to be asked for again, of the same replica or of another one, which may
    /// understand less.
    fn wanted(&mut self) -> Vec<StateFetch>;

    /// The snapshot of a kept checkpoint, in O(1).
    fn snapshot(&self, seq: Seq) -> Option<Self::Snapshot>;
    /// Replaces everything by a snapshot; returns where it stands.
    fn restore(&mut self, snapshot: Self::Snapshot) -> (Seq, Digest);
}
