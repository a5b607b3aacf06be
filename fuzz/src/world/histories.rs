//! The histories that components of faulty replicas attest: the group's, for as long as it serves them.

use super::{Fuzzed, World};
use crate::bytes::Steps;
use troth_auth::HISTORY_LOG;
use troth_trusted::CounterValue;
use troth_trusted::a2m::{Attestation, Slot, slot_nonce};
use troth_types::{Digest, ReplicaId, Seq};

/// Numbers beyond which nobody's history is gone on with.
const FURTHEST: u64 = 64;

fn slot(seq: Seq) -> Slot {
    CounterValue::new(0, seq.0)
}

impl<P: Fuzzed> World<P> {
    /// What the history of a replica's component holds at a number. The faulty ones' go on as the correct one's does, and
    /// this one, where that ends or the steps say so, with something else.
    pub(super) fn attest_history(
        &mut self,
        from: ReplicaId,
        at: Seq,
        steps: &mut Steps<'_>,
    ) -> Option<Attestation> {
        let lies = steps.byte() == 255;
        for seq in (1..=at.0.min(FURTHEST)).map(Seq) {
            // All at once: what is stable the correct one forgets.
            let true_value = self.history_value(self.nodes[0].me, seq);
            for by in self.faulty.clone() {
                if self.history_value(by, seq).is_some() {
                    continue;
                }
                let goes_along = true_value.filter(|_| by != from || !lies || seq < at);
                let value = goes_along.or_else(|| (by == from).then(|| [steps.byte(); 32]));
                if let Some(value) = value {
                    self.components[usize::from(by.0)].append(HISTORY_LOG, slot(seq), value);
                }
            }
        }
        self.components[usize::from(from.0)].look_up(HISTORY_LOG, slot(at), slot_nonce(slot(at)))
    }

    /// What faulty replicas say that histories hold from a number on: mostly what they do.
    pub(super) fn history_from(&mut self, from: Seq, steps: &mut Steps<'_>) -> Vec<Digest> {
        let me = self.nodes[0].me;
        let known = (from.0..from.0.saturating_add(FURTHEST)).map(Seq);
        let mut values: Vec<Digest> =
            known.map_while(|seq| self.history_value(me, seq)).map(Digest).collect();
        if steps.one_in(4) {
            values.push(Digest([steps.byte(); 32]));
        }
        values
    }

    fn history_value(&mut self, replica: ReplicaId, at: Seq) -> Option<[u8; 32]> {
        self.components[usize::from(replica.0)].value(HISTORY_LOG, slot(at))
    }
}
