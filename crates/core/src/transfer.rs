//! A state transfer under way: whom it asks, and when it rests.

use std::collections::BTreeMap;
use troth_types::{Digest, ReplicaId, Seq, StatePiece, Time};

/// A state that is fetched from others, one source at a time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Transfer {
    pub(crate) seq: Seq,
    pub(crate) digest: Digest,
    sources: Vec<ReplicaId>,
    /// Whose turn it is.
    source: ReplicaId,
    /// How many turns are over, and of each replica that had one the last: faulty ones may choose the order in which those
    /// come who vouch for a state, and say nothing one after the other while newer states come.
    turns: u64,
    had: BTreeMap<ReplicaId, u64>,
    /// Sources in a row that answered with what does not verify, since something did or time passed.
    rejected: usize,
    /// Whether nobody is asked before the timer is due.
    resting: bool,
    /// Whether the one whose turn it is has answered since it is.
    answered: bool,
    /// When it answered first.
    began: Option<Time>,
    /// Turns in a row in which nobody answered.
    silences: usize,
    /// When the turn is over, if nothing comes before.
    due: Option<Time>,
}

/// Microseconds until one is taken for silent that has not answered yet.
const SILENT: u64 = 50_000;
/// The same for one that has: it is slow, and everything under way would travel twice.
const SLOW: u64 = 400_000;
/// Doublings of the wait for a silent one, one for each round of all sources in which nobody answered: an answer that
/// takes longer than a turn would always come too late.
const DOUBLINGS: usize = 6;
/// Microseconds that one may take for all that it sends while there is another: a faulty one could send a little now
/// and then for ever.
const LONGEST_TURN: u64 = 5_000_000;

impl Transfer {
    /// From one of these, of which there is at least one.
    pub(crate) fn new(seq: Seq, digest: Digest, sources: Vec<ReplicaId>) -> Self {
        assert!(!sources.is_empty(), "a state comes from somewhere");
        let (source, turns, had) = (sources[0], 0, BTreeMap::new());
        let (rejected, silences, resting, answered, began, due) = (0, 0, false, false, None, None);
        Self { seq, digest, sources, source, turns, had, rejected, resting, answered, began, silences, due }
    }

    /// The same where an earlier state was fetched: whose turn it was, goes on, and no longer for it. With a newer state every
    /// few milliseconds a silent one would else be asked for ever.
    pub(crate) fn after(self, earlier: &Self) -> Self {
        let next = Self { source: earlier.source, turns: earlier.turns, had: earlier.had.clone(), ..self };
        if !next.sources.contains(&earlier.source) {
            return Self { source: next.longest_ago(), ..next };
        }
        Self {
            answered: earlier.answered,
            began: earlier.began,
            silences: earlier.silences,
            due: earlier.due,
            ..next
        }
    }

    /// The source that had its turn longest ago, those that had none first.
    fn longest_ago(&self) -> ReplicaId {
        let last = |source: &&ReplicaId| self.had.get(source);
        *self.sources.iter().min_by_key(last).expect("there is one")
    }

    /// Whose turn it is to answer.
    pub(crate) fn source(&self) -> ReplicaId {
        self.source
    }

    /// Whether this piece was asked of this replica. Only the one whose turn it is may answer: anybody else's
    /// rubbish would pass its turn on.
    pub(crate) fn expects(&self, from: ReplicaId, piece: &StatePiece) -> bool {
        !self.resting && (self.seq, self.digest) == (piece.seq, piece.digest) && from == self.source()
    }

    /// A piece was good. Whether it is the next one's turn all the same.
    pub(crate) fn progressed(&mut self, now: Time) -> bool {
        (self.rejected, self.silences, self.due) = (0, 0, None);
        self.answered = true;
        let began = *self.began.get_or_insert(now);
        let over = self.sources.len() > 1 && now.0 > began.0.saturating_add(LONGEST_TURN);
        if over {
            self.pass();
        }
        over
    }

    fn pass(&mut self) {
        self.turns += 1;
        self.had.insert(self.source, self.turns);
        self.source = self.longest_ago();
        (self.answered, self.began, self.due) = (false, None, None);
    }

    /// The one whose turn it is is asked: until when it has time.
    pub(crate) fn asked(&mut self, now: Time) -> Time {
        let due = now.after(self.patience());
        *self.due.insert(self.due.map_or(due, |earlier| earlier.min(due)))
    }

    /// Microseconds until another source is asked, or all are again after all were in vain.
    fn patience(&self) -> u64 {
        let rounds = (self.silences / self.sources.len()).min(DOUBLINGS);
        if self.answered { SLOW.max(SILENT << rounds) } else { SILENT << rounds }
    }

    /// A piece of the one whose turn it is does not verify: it is the next one's turn. Whether that is asked at
    /// once; when all were in vain it is not, or the questions would follow each other as fast as their
    /// answers, at the cost of everything else.
    pub(crate) fn rejected(&mut self) -> bool {
        self.pass();
        self.rejected += 1;
        self.resting = self.rejected >= self.sources.len();
        !self.resting
    }

    /// The timer is due: the rest is over, or the one whose turn it was is too slow.
    pub(crate) fn timed_out(&mut self) {
        if !self.resting {
            self.silences += usize::from(!self.answered);
            self.pass();
        }
        (self.resting, self.rejected, self.due) = (false, 0, None);
    }
}
