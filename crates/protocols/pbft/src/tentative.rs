//! PBFT §5.1, "Reducing communication": tentative execution and the state that read-only requests are answered from.

use crate::Flaw;
use crate::state::Pbft;
use troth_core::{Cx, Done, Outcome, Reached, rule};
use troth_types::{Batch, Digest, OPERATOR, Seq};

/// Batches executed tentatively while one replica's vote is missing in all of them.
const PATIENCE: u64 = 16;

/// A batch that was executed before it committed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Tentative {
    pub(crate) digest: Digest,
    batch: Batch,
    /// What came of it, once the executor has told.
    pub(crate) outcome: Option<(Reached, Vec<Done>)>,
}

impl Pbft {
    /// Executes what prepared in the present view and all before which was executed. A quorum that has done so in one
    /// view binds every later one: f+1 correct replicas have the batch in P, and the same, or a proof of more, at all
    /// numbers before it.
    pub(crate) fn try_tentatively(&mut self, cx: &mut Cx<'_, Self>) {
        let wanted = self.config.tentative && !self.config.follows(Flaw::ReadFinal);
        if !wanted || !self.active || self.repairing {
            return;
        }
        loop {
            rule!("PBFT-E1");
            let last = self.tentative.last_key_value().map_or(self.delivered, |(last, _)| *last);
            let depth = self.tentative.len() as u64;
            // The state of a checkpoint is final.
            if depth >= self.config.pipeline || (depth > 0 && last.0.is_multiple_of(self.config.interval)) {
                return;
            }
            let seq = last.next();
            if !self.all_vote(seq) {
                return;
            }
            let Some(slot) = self.slots.get(&seq).filter(|slot| slot.prepared) else { return };
            let Some((digest, batch)) = slot.proposal.clone() else { return };
            if !self.frames.name(seq, &batch.frames) {
                return;
            }
            let Some(ordered) = self.ordered(seq, &batch) else { return };
            // Who the replicas and clients are is not changed and changed back.
            if ordered.frames.iter().any(|frame| frame.client() == OPERATOR) {
                return;
            }
            cx.deliver_tentatively(ordered, self.view);
            self.tentative.insert(seq, Tentative { digest, batch, outcome: None });
        }
    }

    /// A vote for this number came: whether everybody's is there.
    pub(crate) fn note_votes(&mut self, seq: Seq) {
        if self.slots.get(&seq).is_some_and(|slot| slot.prepares.len() == self.group.n()) {
            self.all_voted = self.all_voted.max(seq);
        }
    }

    /// Whether everybody has voted of late. Where some do not, clients may miss the tentative replies of these and of as
    /// many faulty ones, and f+1 final replies are there sooner than the rest of a quorum.
    fn all_vote(&self, seq: Seq) -> bool {
        rule!("PBFT-E5");
        let known = self.all_voted.max(self.started.end);
        seq.0 <= known.0.saturating_add(PATIENCE)
    }

    /// The next batch committed, and it is the one that was executed here. Its requests are done only now.
    pub(crate) fn confirm(&mut self, cx: &mut Cx<'_, Self>, seq: Seq) {
        rule!("PBFT-E2");
        let Some(Tentative { batch, outcome, .. }) = self.tentative.remove(&seq) else { return };
        self.delivered = seq;
        cx.commit(seq);
        self.decide(cx, seq, batch);
        if let Some((reached, done)) = outcome {
            self.settle(cx, reached, &done);
        }
    }

    /// Undoes what was executed and has not committed.
    pub(crate) fn undo(&mut self, cx: &mut Cx<'_, Self>) {
        if !self.tentative.is_empty() {
            rule!("PBFT-E3");
            self.tentative.clear();
            cx.roll_back(self.delivered);
        }
    }

    /// The executor ran a batch.
    pub(crate) fn executed(&mut self, cx: &mut Cx<'_, Self>, reached: Reached, outcome: &Outcome) {
        if reached.seq <= self.delivered {
            self.settle(cx, reached, &outcome.done);
        } else if let Some(tentative) = self.tentative.get_mut(&reached.seq) {
            tentative.outcome = Some((reached, outcome.done.clone()));
        }
        // What is neither was undone in the step that asked for it.
        self.progress(cx);
    }

    /// The batch up to which a state must reflect the order for a read to be answered from it: the last that this
    /// replica has committed itself to. Whatever a client takes for done prepared at f+1 correct replicas, so that one
    /// of them is among any 2f+1 that answer a read. What prepared in an older view and is not in what this one
    /// started with was taken for done by nobody.
    pub(crate) fn vouched_up_to(&self) -> Seq {
        rule!("PBFT-E4");
        if self.config.follows(Flaw::ReadExecuted) || self.config.follows(Flaw::ReadFinal) {
            return Seq(0);
        }
        let (view, end) = (self.view, self.started.end);
        let mut entries = self.prepared.values().rev();
        let last = entries.find(|entry| !self.active || entry.view == view || entry.seq <= end);
        last.map_or(self.stable.0, |entry| entry.seq.max(self.stable.0))
    }
}
