//! Paper 000 §4.2.2: checkpoints vouch for the history too, and a stable one truncates it. A replica whose state came from
//! others appends what led there, instead of jumping (deviation D2).

use crate::{A2mPbftE, Flaw};
use troth_core::{Cx, To, rule};
use troth_pbft::{AttestedCheckpoint, Body, Checkpoint, Message, Record};
use troth_types::{Digest, ReplicaId, Seq};

impl A2mPbftE {
    /// An own checkpoint is due: it is signed with the attestation of its batch, once that is there.
    pub(crate) fn vouch(&mut self, cx: &mut Cx<'_, Self>, checkpoint: Checkpoint) {
        self.history.due(checkpoint.seq, checkpoint.digest);
        self.vouch_for_attested(cx);
    }

    /// Signs the checkpoints whose batches are attested.
    pub(crate) fn vouch_for_attested(&mut self, cx: &mut Cx<'_, Self>) {
        rule!("A2MPBFTE-C1");
        let (stable, _) = self.pbft.stable_proof().target();
        for (seq, digest, attestation) in self.history.ready(stable) {
            let attested = AttestedCheckpoint { checkpoint: Checkpoint { seq, digest }, attestation };
            cx.sign(Body::Attested(attested), To::Others);
        }
    }

    /// PBFT has a stable certificate: what every correct history is up to there.
    pub(crate) fn certified(&mut self, cx: &mut Cx<'_, Self>) {
        let proof = self.pbft.stable_proof();
        let (seq, _) = proof.target();
        let Some(history) = proof.history() else { return };
        rule!("A2MPBFTE-C2");
        if let Err(why) = self.history.log.certified(seq, history.digest) {
            cx.halt(why);
        }
    }

    /// Asks one of the others, in turn, for what the own history lacks.
    pub(crate) fn fetch_history(&mut self, cx: &mut Cx<'_, Self>) {
        if self.follows(Flaw::Advance) {
            return;
        }
        let Some((whom, from)) = self.history.fetch(cx.group(), cx.me()) else { return };
        rule!("A2MPBFTE-T2");
        cx.send(To::One(whom), Message::FetchHistory(from));
    }

    /// Somebody lacks a part of the history.
    pub(crate) fn show_history(&mut self, cx: &mut Cx<'_, Self>, to: ReplicaId, from: Seq) {
        rule!("A2MPBFTE-T3");
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
        rule!("A2MPBFTE-T4");
        // Who was asked may know no more than a certificate shows here.
        self.useful += u64::from(self.history.is_answer(by, from));
        match self.history.log.shown(from, values) {
            Some(taken) => {
                self.useful += 1;
                // Others may lack it, too, and ask a later life of this replica.
                cx.remember(Record::History(from, taken));
                self.extend(cx);
            }
            None => cx.ignore(by, "a history that nothing shows to be true"),
        }
    }
}
