//! The stale replayer: whatever it ever heard or said comes again, to anybody, at any time.

use super::EaHand;
use crate::a2m_pbft_ea::A2mPbftEaWorld;
use crate::adversary::Strategy;

/// Repeats.
#[derive(Debug)]
pub struct Replayer;

impl Strategy<A2mPbftEaWorld> for Replayer {
    fn name(&self) -> &'static str {
        "stale replayer"
    }

    fn tick(&mut self, hand: &mut EaHand<'_>) {
        let others = hand.others();
        for _ in 0..hand.rng.below(6) {
            if hand.heard.is_empty() {
                return;
            }
            let to = hand.rng.pick(&others);
            let message = hand.heard[hand.rng.index(hand.heard.len())].1.clone();
            hand.send_evil(to, message);
        }
    }
}
