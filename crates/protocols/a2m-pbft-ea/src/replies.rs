//! §4.2.1, which §4.3 takes over: what is executed is appended to the history, and only then shown to clients; reads are
//! answered with the history's end. A replica whose
//! state came from others appends what led there, instead of jumping.

use crate::message::{Message, Record};
use crate::state::A2mPbftEa;
use troth_core::{Cx, Outcome, Reached, Ticket, To, rule};
use troth_trusted::a2m::{Answer, Nonce};
use troth_types::{Digest, ReplicaId, Seq};

impl A2mPbftEa {
    /// A batch was executed: append(q, H(batch)) follows, in the order of execution.
    pub(crate) fn append(&mut self, cx: &mut Cx<'_, Self>, reached: Reached, outcome: &Outcome) {
        rule!("A2MPBFTEA-H1");
        if let Some(batch) = self.decided.get(&reached.seq)
            && let Err(why) = self.history.log.executed(reached.seq, batch, outcome.names())
        {
            cx.halt(why);
        }
    }

    /// Asks the component for what is due.
    pub(crate) fn extend(&mut self, cx: &mut Cx<'_, Self>) {
        while let Some((ticket, operations)) = self.history.log.calls() {
            cx.trusted(ticket, operations);
        }
    }

    /// Slots of the history are attested: replies go. The checkpoints that waited go with what else may be done now.
    pub(crate) fn appended(&mut self, cx: &mut Cx<'_, Self>, ticket: Ticket, answers: Vec<Answer>) {
        let attested = match self.history.log.answered(ticket, answers) {
            Ok(attested) => attested,
            Err(why) => {
                rule!("A2MPBFTEA-R15");
                return cx.halt(why);
            }
        };
        for (seq, proof) in attested {
            if let Some(proof) = proof {
                rule!("A2MPBFTEA-H2");
                cx.release(seq, proof);
            }
        }
        if let Some(end) = self.history.log.end_attested() {
            rule!("A2MPBFTEA-E3");
            cx.end_attested(end);
        }
    }

    /// Reads that are answered from the state after the batch `executed` want to prove that it is the latest: the end of the
    /// history, attested under their nonces.
    pub(crate) fn ask_end(&mut self, cx: &mut Cx<'_, Self>, executed: Seq, nonce: Nonce) -> bool {
        rule!("A2MPBFTEA-E2");
        let Some((ticket, operations)) = self.history.log.attest_end(executed, nonce) else { return false };
        cx.trusted(ticket, operations);
        true
    }

    /// A certificate is stable: what every correct history is up to there.
    pub(crate) fn certified(&mut self, cx: &mut Cx<'_, Self>) {
        let Some(history) = self.stable_proof.history() else { return };
        rule!("A2MPBFTEA-C7");
        if let Err(why) = self.history.log.certified(self.stable.0, history.digest) {
            cx.halt(why);
        }
    }

    /// Asks one of the others, in turn, for what the own history lacks.
    pub(crate) fn fetch_history(&mut self, cx: &mut Cx<'_, Self>) {
        let Some((whom, from)) = self.history.fetch(cx.group(), cx.me()) else { return };
        rule!("A2MPBFTEA-T5");
        cx.send(To::One(whom), Message::FetchHistory(from));
    }

    /// Somebody lacks a part of the history.
    pub(crate) fn show_history(&mut self, cx: &mut Cx<'_, Self>, to: ReplicaId, from: Seq) {
        rule!("A2MPBFTEA-T6");
        if let Some(values) = self.history.show(to, from, cx.now()) {
            cx.send(To::One(to), Message::History(from, values));
        }
    }

    /// What somebody says the history was; a certificate shows whether it is true.
    pub(crate) fn take_history(
        &mut self,
        cx: &mut Cx<'_, Self>,
        by: ReplicaId,
        from: Seq,
        values: &[Digest],
    ) {
        rule!("A2MPBFTEA-T7");
        // Who was asked may know no more than a certificate shows here.
        self.useful += u64::from(self.history.is_answer(by, from));
        match self.history.log.shown(from, values) {
            Some(taken) => {
                self.useful += 1;
                // Others may lack it, too, and ask a later life of this replica.
                cx.remember(Record::History(from, taken));
            }
            None => cx.ignore(by, "a history that nothing shows to be true"),
        }
    }
}
