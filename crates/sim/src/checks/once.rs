//! I3, exactly once: a client's number takes effect at one place of the order and nowhere else.

use std::collections::BTreeMap;
use troth_core::Outcome;
use troth_types::{ClientId, Seq};

/// Where each request took effect.
#[derive(Debug, Default)]
pub struct ExactlyOnce {
    effects: BTreeMap<(ClientId, u64), Seq>,
}

impl ExactlyOnce {
    /// A correct node executed a batch with this outcome.
    pub fn executed(&mut self, seq: Seq, outcome: &Outcome) -> Result<(), String> {
        for (index, reply) in outcome.replies.iter().enumerate() {
            let name = (reply.client, reply.number);
            let before = *self.effects.entry(name).or_insert(seq);
            if before != seq {
                return Err(format!("{name:?} took effect at {before} and at {seq}"));
            }
            if outcome.replies[..index].iter().any(|other| (other.client, other.number) == name) {
                return Err(format!("{name:?} took effect twice in batch {seq}"));
            }
        }
        Ok(())
    }

    /// How many requests took effect.
    #[must_use]
    pub fn count(&self) -> usize {
        self.effects.len()
    }
}
