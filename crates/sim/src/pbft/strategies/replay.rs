//! The stale replayer: whatever it ever heard or said comes again, to anybody, at any time.

use crate::adversary::{Hand, Strategy};
use crate::pbft::PbftFamily;

/// Repeats.
#[derive(Debug)]
pub struct Replayer;

impl<P: PbftFamily> Strategy<P> for Replayer {
    fn name(&self) -> &'static str {
        "stale replayer"
    }

    fn tick(&mut self, hand: &mut Hand<'_, P>) {
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
