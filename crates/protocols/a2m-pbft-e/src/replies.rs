//! Paper 000 §4.2.1, "A2M-PBFT-E": what is executed is appended to the history, and only then shown to clients; reads are
//! answered with the history's end (footnote 4).

use crate::A2mPbftE;
use troth_core::{Cx, Outcome, Reached, Ticket, rule};
use troth_trusted::a2m::{Answer, Nonce};
use troth_types::Seq;

impl A2mPbftE {
    /// A batch was executed: append(q, H(batch)) follows, in the order of execution.
    pub(crate) fn append(&mut self, cx: &mut Cx<'_, Self>, reached: Reached, outcome: &Outcome) {
        rule!("A2MPBFTE-H1");
        if let Some(batch) = self.pbft.executed_batch(reached.seq)
            && let Err(why) = self.history.log.executed(reached.seq, batch, outcome.names())
        {
            cx.halt(why);
        }
    }

    /// Asks the component for what is due.
    pub(crate) fn extend(&mut self, cx: &mut Cx<'_, Self>) {
        self.mend_certificate(cx);
        self.begin_history();
        self.advance_history();
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
        if let Some(end) = self.history.log.end_attested() {
            rule!("A2MPBFTE-E3");
            cx.end_attested(end);
        }
        self.vouch_for_attested(cx);
        self.extend(cx);
    }

    /// Reads that are answered from the state after the batch `executed` want to prove that it is the latest: the end of the
    /// history, attested under their nonces.
    pub(crate) fn ask_end(&mut self, cx: &mut Cx<'_, Self>, executed: Seq, nonce: Nonce) -> bool {
        rule!("A2MPBFTE-E2");
        let Some((ticket, operations)) = self.history.log.attest_end(executed, nonce) else { return false };
        cx.trusted(ticket, operations);
        true
    }
}
