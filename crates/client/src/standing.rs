//! How submissions came to their outcomes, and how each replica does: what operators ask about. Nothing here decides anything.

use troth_types::{Digest, ReplicaId, Reply, Time};

/// Outcomes that are remembered, so that replicas that answer after them are judged as well.
const REMEMBERED: usize = 256;

/// In which way a submission was answered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Way {
    /// It was ordered.
    #[default]
    Ordered,
    /// It read, and enough replicas answered alike without ordering it.
    Fast,
    /// It read, too few replicas answered alike in time, and it was ordered then.
    FellBack,
}

/// Where the time of a submission went, in microseconds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Course {
    /// In which way it was answered.
    pub way: Way,
    /// What a fast read took that came to nothing; 0 without one.
    pub tried: u64,
    /// From its submission, or from then, until it was sent.
    pub queued: u64,
    /// From then until the first answer of any replica.
    pub first: u64,
    /// From then until enough replicas had given the same answer, the result was there, and so were the events before it.
    pub matching: u64,
    /// The replicas that had not answered by then; only where all of this took long enough
    /// ([`ClientCore::name_late_after`](crate::ClientCore::name_late_after)).
    pub late: Vec<ReplicaId>,
}

impl Course {
    /// Microseconds from the submission to its outcome.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.tried + self.queued + self.first + self.matching
    }
}

/// How a replica does, as far as a client sees it. All but the first two are counted from the beginning of the session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Standing {
    /// Whether it is connected.
    pub connected: bool,
    /// Ordered frames of this client that were answered since the last one that this replica answered.
    pub behind: u64,
    /// Answers to ordered frames that were the accepted one.
    pub matching: u64,
    /// Answers to ordered frames that were final and another than the accepted one: no correct replica gives such an answer.
    pub mismatching: u64,
    /// Refusals.
    pub refused: u64,
    /// Fast reads that were given up before it had answered.
    pub unanswered_reads: u64,
}

/// What a replica said of a frame.
#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    /// The last of this client's frames that it answered.
    answered: u64,
    matching: u64,
    mismatching: u64,
    refused: u64,
    unanswered_reads: u64,
}

/// How all replicas do.
#[derive(Clone, Debug)]
pub(crate) struct Standings {
    replicas: Vec<Counts>,
    /// The last frame with an outcome.
    last: u64,
    /// Outcomes by the numbers of their frames.
    outcomes: Vec<Option<(u64, Digest)>>,
}

impl Standings {
    pub(crate) fn new(replicas: usize) -> Self {
        Self { replicas: vec![Counts::default(); replicas], last: 0, outcomes: vec![None; REMEMBERED] }
    }

    fn place(number: u64) -> usize {
        (number % REMEMBERED as u64) as usize
    }

    /// A replica has answered a frame; what came of it may be known or not.
    pub(crate) fn heard(&mut self, from: ReplicaId, number: u64) {
        let counts = &mut self.replicas[usize::from(from.0)];
        counts.answered = counts.answered.max(number);
    }

    /// This came of a frame. The same comes of it again where its slot was kept.
    pub(crate) fn settle(&mut self, number: u64, said: Digest) {
        self.last = self.last.max(number);
        self.outcomes[Self::place(number)] = Some((number, said));
    }

    /// Counts what a replica said of a frame of which this came.
    pub(crate) fn judge(&mut self, from: ReplicaId, matches: bool) {
        let counts = &mut self.replicas[usize::from(from.0)];
        if matches {
            counts.matching += 1;
        } else {
            counts.mismatching += 1;
        }
    }

    /// Counts an answer to a frame that has its outcome, if that is remembered. Whether it is the accepted one.
    pub(crate) fn heard_late(&mut self, from: ReplicaId, reply: &Reply) -> bool {
        let number = reply.number;
        // It has been judged by its first word.
        if self.replicas[usize::from(from.0)].answered >= number {
            return false;
        }
        let Some((_, said)) = self.outcomes[Self::place(number)].filter(|(of, _)| *of == number) else {
            return false;
        };
        self.heard(from, number);
        self.judge(from, reply.vote() == said);
        reply.vote() == said
    }

    pub(crate) fn refused(&mut self, from: ReplicaId) {
        self.replicas[usize::from(from.0)].refused += 1;
    }

    pub(crate) fn left_read(&mut self, replica: ReplicaId) {
        self.replicas[usize::from(replica.0)].unanswered_reads += 1;
    }

    /// How a replica does.
    pub(crate) fn of(&self, replica: ReplicaId, connected: bool) -> Standing {
        let counts = self.replicas[usize::from(replica.0)];
        Standing {
            connected,
            behind: self.last.saturating_sub(counts.answered),
            matching: counts.matching,
            mismatching: counts.mismatching,
            refused: counts.refused,
            unanswered_reads: counts.unanswered_reads,
        }
    }
}

/// The moments of a submission.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Moments {
    pub(crate) submitted: Time,
    /// What a fast read took that came to nothing.
    pub(crate) tried: Option<u64>,
}

impl Moments {
    pub(crate) fn new(submitted: Time) -> Self {
        Self { submitted, tried: None }
    }

    /// The course of what was sent then, answered first then, and has its outcome now.
    pub(crate) fn course(&self, way: Way, sent: Time, first: Option<Time>, now: Time) -> Course {
        let between = |from: Time, to: Time| to.0.saturating_sub(from.0);
        let (tried, first) = (self.tried.unwrap_or(0), first.unwrap_or(now));
        let way = if way == Way::Ordered && self.tried.is_some() { Way::FellBack } else { way };
        Course {
            way,
            tried,
            queued: between(self.submitted, sent).saturating_sub(tried),
            first: between(sent, first),
            matching: between(first, now),
            late: Vec::new(),
        }
    }
}
