//! The stale replayer: whatever it ever heard or said comes again, to anybody, at any time; also
//! REQ-VIEW-CHANGEs for views near and far.

use super::MinBftHand;
use crate::adversary::Strategy;
use crate::minbft::MinBftWorld;
use troth_core::PeerMessage;
use troth_minbft::{Body, RequestViewChange};
use troth_types::View;

/// Repeats.
#[derive(Debug, Default)]
pub struct Replayer {
    view: u64,
}

impl Strategy<MinBftWorld> for Replayer {
    fn name(&self) -> &'static str {
        "stale replayer"
    }

    fn tick(&mut self, hand: &mut MinBftHand<'_>) {
        let others = hand.others();
        for _ in 0..hand.rng.below(6) {
            let to = hand.rng.pick(&others);
            let certified = hand.certified().len();
            let message = if certified > 0 && hand.rng.one_in(3) {
                let index = hand.rng.index(certified);
                PeerMessage::Protocol(hand.certified()[index].clone())
            } else if hand.heard.is_empty() {
                return;
            } else {
                hand.heard[hand.rng.index(hand.heard.len())].1.clone()
            };
            hand.send_evil(to, message);
        }
        if hand.rng.one_in(12) {
            self.view += hand.rng.below(3);
            let to = if hand.rng.one_in(4) { View(hand.rng.next()) } else { View(self.view) };
            let message = hand.sign(Body::RequestViewChange(RequestViewChange { to }));
            for to in others {
                hand.send_evil(to, PeerMessage::Protocol(message.clone()));
            }
        }
    }
}
