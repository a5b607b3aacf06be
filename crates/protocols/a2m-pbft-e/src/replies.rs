//! Paper 000 §4.2.1, "A2M-PBFT-E": what is executed is appended to the history, and only then shown to clients.

use crate::A2mPbftE;
use troth_core::{Cx, Outcome, Reached, Ticket, rule};
use troth_trusted::a2m::Answer;

impl A2mPbftE {
    /// A batch was executed: append(q, H(batch)) follows, in the order of execution.
    pub(crate) fn append(&mut self, cx: &mut Cx<'_, Self>, reached: Reached, outcome: &Outcome) {
        rule!("A2MPBFTE-H1");
        if let Some(batch) = self.pbft.executed_batch(reached.seq).cloned()
            && let Err(why) = self.history.log.executed(reached.seq, &batch, &outcome.done)
        {
            cx.halt(why);
        }
    }

    /// Asks the component for what is due.
    pub(crate) fn extend(&mut self, cx: &mut Cx<'_, Self>) {
        self.begin_history();
        while let Some((ticket, operations)) = self.history.log.calls() {
            cx.trusted(ticket, operations);
        }
    }

    /// Slots are attested: replies go, and the checkpoints that waited.
    pub(crate) fn attested(&mut self, cx: &mut Cx<'_, Self>, ticket: Ticket, answers: Vec<Answer>) {
        let attested = match self.history.log.answered(ticket, answers) {
            Ok(attested) => attested,
            Err(why) => {
                rule!("A2MPBFTE-R3");
                return cx.halt(why);
            }
        };
        for (seq, proof) in attested {
            if let Some(proof) = proof {
                rule!("A2MPBFTE-H2");
                cx.release(seq, proof);
            }
        }
        self.vouch_for_attested(cx);
        self.extend(cx);
    }
}
