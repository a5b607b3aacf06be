//! A state transfer under way: whom it asks, and when it rests.

use troth_types::{Digest, ReplicaId, Seq, StatePiece};

/// A state that is fetched from others, one source at a time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Transfer {
    pub(crate) seq: Seq,
    pub(crate) digest: Digest,
    sources: Vec<ReplicaId>,
    turn: usize,
    /// Sources in a row that answered with what does not verify, since something did or time passed.
    rejected: usize,
    /// Whether nobody is asked before the timer is due.
    resting: bool,
    /// Whether the one whose turn it is has answered since it is.
    answered: bool,
}

/// Microseconds until one is taken for silent that has not answered yet.
const SILENT: u64 = 50_000;
/// The same for one that has: it is slow, and everything under way would travel twice.
const SLOW: u64 = 400_000;

impl Transfer {
    /// From one of these, of which there is at least one.
    pub(crate) fn new(seq: Seq, digest: Digest, sources: Vec<ReplicaId>) -> Self {
        assert!(!sources.is_empty(), "a state comes from somewhere");
        Self { seq, digest, sources, turn: 0, rejected: 0, resting: false, answered: false }
    }

    /// Whose turn it is to answer.
    pub(crate) fn source(&self) -> ReplicaId {
        self.sources[self.turn % self.sources.len()]
    }

    /// Whether this piece was asked of this replica. Only the one whose turn it is may answer: anybody else's
    /// rubbish would pass its turn on.
    pub(crate) fn expects(&self, from: ReplicaId, piece: &StatePiece) -> bool {
        !self.resting && (self.seq, self.digest) == (piece.seq, piece.digest) && from == self.source()
    }

    /// A piece was good.
    pub(crate) fn progressed(&mut self) {
        self.rejected = 0;
        self.answered = true;
    }

    /// Microseconds until another source is asked, or all are again after all were in vain.
    pub(crate) fn patience(&self) -> u64 {
        if self.answered { SLOW } else { SILENT }
    }

    /// A piece of the one whose turn it is does not verify: it is the next one's turn. Whether that is asked at
    /// once; when all were in vain it is not, or the questions would follow each other as fast as their
    /// answers, at the cost of everything else.
    pub(crate) fn rejected(&mut self) -> bool {
        self.turn += 1;
        self.answered = false;
        self.rejected += 1;
        self.resting = self.rejected >= self.sources.len();
        !self.resting
    }

    /// The timer is due: the rest is over, or the one whose turn it was is too slow.
    pub(crate) fn timed_out(&mut self) {
        if !self.resting {
            self.turn += 1;
        }
        (self.resting, self.rejected, self.answered) = (false, 0, false);
    }
}
