//! The executor with an observer beside it: every batch that a replica executes, every checkpoint
//! and every state that it takes over, told to the checkers and changed in nothing.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::ops::RangeInclusive;
use std::rc::Rc;
use std::sync::Arc;
use troth_core::{Execution, Installing, Lookup, Ordered, Outcome};
use troth_types::{
    ClientId, Configuration, Digest, Event, Read, ReadReply, Seq, StateFetch, StatePiece, Time,
};

/// Something that an executor did. A tentative execution is told of when it is committed.
#[derive(Clone, Debug)]
pub enum Observation {
    /// It executed a batch.
    Executed {
        /// The batch.
        ordered: Ordered,
        /// What came of it.
        outcome: Outcome,
    },
    /// It undid so many batches that it had executed tentatively.
    Undone(usize),
    /// The digest of its checkpoint became known.
    Checkpoint {
        /// Where.
        seq: Seq,
        /// The digest.
        digest: Digest,
    },
    /// It took over a transferred state.
    Installed {
        /// Where it stands now.
        seq: Seq,
        /// The digest of the state, as it was asked for.
        digest: Digest,
    },
    /// It was restored from a snapshot.
    Restored {
        /// Where it stands now.
        seq: Seq,
        /// The digest of the state.
        digest: Digest,
    },
}

/// Where observations go until the world collects them.
pub type Tap = Rc<RefCell<Vec<Observation>>>;

/// How often something happens to a replica that has nothing to order before a digest comes that is held back.
const LONG: u32 = 2_000;

/// An executor that tells what it does, and may be slow to hash.
#[derive(Clone, Debug)]
pub struct Watched<X> {
    inner: X,
    tap: Tap,
    /// The digest of a checkpoint comes only when the next one is taken, as that of a large state would, or when somebody asks
    /// for a state that is not there, or long after.
    late: bool,
    /// Checkpoints without a digest.
    sealed: usize,
    /// Somebody has asked for a state that is not there since a checkpoint was finished last.
    asked: Cell<bool>,
    /// How often something happened to the replica while a digest was held back.
    waited: Cell<u32>,
    /// What it executed tentatively.
    tentative: VecDeque<(Ordered, Outcome)>,
}

impl<X: Execution> Watched<X> {
    /// Tells what `inner` does to `tap`.
    pub fn new(inner: X, tap: Tap, late: bool) -> Self {
        let (asked, waited) = (Cell::new(false), Cell::new(0));
        Self { inner, tap, late, sealed: 0, asked, waited, tentative: VecDeque::new() }
    }

    fn is_held_back(&self) -> bool {
        self.late && self.sealed < 2 && !self.asked.get() && self.waited.get() < LONG
    }

    /// The executor.
    pub fn inner(&self) -> &X {
        &self.inner
    }

    fn tell(&self, observation: Observation) {
        self.tap.borrow_mut().push(observation);
    }
}

impl<X: Execution> Execution for Watched<X> {
    type Snapshot = X::Snapshot;

    fn executed(&self) -> Seq {
        self.inner.executed()
    }
    fn configuration(&self) -> &Arc<Configuration> {
        self.inner.configuration()
    }
    fn last_time(&self) -> Time {
        self.inner.last_time()
    }
    fn next_deadline(&self) -> Option<Time> {
        self.inner.next_deadline()
    }
    fn lookup(&self, client: ClientId, number: u64) -> Lookup {
        self.inner.lookup(client, number)
    }
    fn execute(&mut self, ordered: &Ordered) -> Outcome {
        let outcome = self.inner.execute(ordered);
        self.tell(Observation::Executed { ordered: ordered.clone(), outcome: outcome.clone() });
        outcome
    }
    fn committed(&self) -> Seq {
        self.inner.committed()
    }
    fn execute_tentatively(&mut self, ordered: &Ordered) -> Outcome {
        let outcome = self.inner.execute_tentatively(ordered);
        self.tentative.push_back((ordered.clone(), outcome.clone()));
        outcome
    }
    fn commit(&mut self, through: Seq) {
        self.inner.commit(through);
        while let Some((ordered, outcome)) = self.tentative.pop_front_if(|(first, _)| first.seq <= through) {
            self.tell(Observation::Executed { ordered, outcome });
        }
    }
    fn roll_back(&mut self, to: Seq) {
        self.inner.roll_back(to);
        let before = self.tentative.len();
        self.tentative.retain(|(ordered, _)| ordered.seq <= to);
        self.tell(Observation::Undone(before - self.tentative.len()));
    }
    fn query(&self, read: &Read) -> ReadReply {
        self.inner.query(read)
    }
    fn outbox(&self, client: ClientId) -> RangeInclusive<u64> {
        self.inner.outbox(client)
    }
    fn event(&self, client: ClientId, index: u64) -> Event {
        self.inner.event(client, index)
    }
    fn checkpoint(&mut self) {
        self.inner.checkpoint();
        self.sealed += 1;
        self.waited.set(0);
    }
    fn poll_checkpoint(&mut self, budget: usize) -> Option<(Seq, Digest)> {
        if self.is_held_back() {
            return None;
        }
        let (seq, digest) = self.inner.poll_checkpoint(budget)?;
        self.sealed = self.sealed.saturating_sub(1);
        self.asked.set(false);
        self.tell(Observation::Checkpoint { seq, digest });
        Some((seq, digest))
    }
    fn hashing(&self) -> bool {
        self.waited.set(self.waited.get().saturating_add(u32::from(self.sealed > 0)));
        !self.is_held_back() && self.inner.hashing()
    }
    fn stable(&mut self, seq: Seq) {
        self.inner.stable(seq);
    }
    fn serve(&self, fetch: &StateFetch) -> Option<StatePiece> {
        let piece = self.inner.serve(fetch);
        // A group may wait for this very state before it orders anything more.
        self.asked.set(self.asked.get() || (piece.is_none() && self.sealed > 0));
        piece
    }
    fn abandon_install(&mut self) {
        self.inner.abandon_install();
    }
    fn begin_install(&mut self, seq: Seq, digest: Digest) -> Vec<StateFetch> {
        self.inner.begin_install(seq, digest)
    }
    fn on_piece(&mut self, piece: &StatePiece) -> Installing {
        let installing = self.inner.on_piece(piece);
        if installing == Installing::Done {
            self.tentative.clear();
            self.tell(Observation::Installed { seq: self.inner.executed(), digest: piece.digest });
        }
        installing
    }
    fn wanted(&mut self) -> Vec<StateFetch> {
        self.inner.wanted()
    }
    fn snapshot(&self, seq: Seq) -> Option<X::Snapshot> {
        self.inner.snapshot(seq)
    }
    fn restore(&mut self, snapshot: X::Snapshot) -> (Seq, Digest) {
        let (seq, digest) = self.inner.restore(snapshot);
        self.tell(Observation::Restored { seq, digest });
        (seq, digest)
    }
}
