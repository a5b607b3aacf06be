//! The counter holder-back: keeps messages whose values the others then miss, sends the later ones,
//! and shows what it kept much later, out of order, or never.

use super::{MinBftHand, Peer};
use crate::adversary::Strategy;
use crate::minbft::MinBftWorld;
use troth_core::PeerMessage;
use troth_minbft::Message;
use troth_types::ReplicaId;

/// Leaves holes in its counter.
#[derive(Debug, Default)]
pub struct HolderBack {
    until: u64,
    holding: bool,
    kept: Vec<Peer>,
}

/// The most messages kept.
const MOST: usize = 64;

impl Strategy<MinBftWorld> for HolderBack {
    fn name(&self) -> &'static str {
        "counter holder-back"
    }

    fn send(&mut self, hand: &mut MinBftHand<'_>, _: usize, to: ReplicaId, message: Peer) {
        let own = matches!(&message, PeerMessage::Protocol(Message::Certified(certified)) if certified.from == hand.me);
        if own && self.holding && hand.rng.below(3) > 0 {
            hand.acted();
            if self.kept.len() < MOST && !self.kept.contains(&message) {
                self.kept.push(message);
            }
            return;
        }
        hand.send(to, message);
    }

    fn tick(&mut self, hand: &mut MinBftHand<'_>) {
        if hand.now < self.until {
            return;
        }
        self.until = hand.now + hand.rng.exponential(50_000) + 2_000;
        self.holding = !self.holding;
        if self.holding {
            return;
        }
        hand.rng.shuffle(&mut self.kept);
        let all = hand.rng.one_in(2);
        for message in std::mem::take(&mut self.kept) {
            for to in hand.others() {
                if all || hand.rng.one_in(2) {
                    hand.send_evil(to, message.clone());
                }
            }
        }
    }
}
