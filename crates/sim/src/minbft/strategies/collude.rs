//! Colluders: all of them show their messages to the same part of the group, keep one set of
//! proposals among themselves, and take part in view changes as if nothing had been there. With the
//! primary among them they are the schedule behind F-M1.

use super::{MinBftHand, Peer, kind};
use crate::adversary::Strategy;
use crate::minbft::MinBftWorld;
use troth_types::ReplicaId;

/// How the colluder treats the others until the audience changes.
#[derive(Debug, Default)]
pub struct Colluder {
    audience: u64,
    /// Proposals and commitments stay among the colluders and their audience.
    secret: bool,
    /// Whether view changes are shown to everybody.
    open_changes: bool,
}

impl Strategy<MinBftWorld> for Colluder {
    fn name(&self) -> &'static str {
        "colluders"
    }

    fn send(&mut self, hand: &mut MinBftHand<'_>, _: usize, to: ReplicaId, message: Peer) {
        if self.audience != hand.pact.audience {
            self.audience = hand.pact.audience;
            self.secret = hand.rng.below(3) > 0;
            self.open_changes = hand.rng.one_in(2);
        }
        let shown = match kind(&message) {
            "PREPARE" | "COMMIT" | "COMMIT(NEW-VIEW)" | "CHECKPOINT" => !self.secret || hand.in_audience(to),
            "VIEW-CHANGE" | "NEW-VIEW" | "REQ-VIEW-CHANGE" => self.open_changes || hand.in_audience(to),
            _ => hand.in_audience(to),
        };
        if shown { hand.send(to, message) } else { hand.acted() }
    }

    fn hears(&mut self, hand: &mut MinBftHand<'_>, _: usize, from: ReplicaId, message: &Peer) -> bool {
        // What it has not heard, its view changes need not show.
        !(self.secret && kind(message) == "PREPARE" && !hand.in_audience(from) && hand.rng.one_in(2))
    }
}
