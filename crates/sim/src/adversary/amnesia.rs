//! Amnesia: the replica goes back to an earlier clone of its state, while its component stays where
//! it is (design.md §11).

use super::{Hand, Strategy};
use crate::Protocol;

/// A replica that forgets.
#[derive(Debug)]
pub struct Amnesia {
    pace: u64,
    save_at: u64,
    restore_at: u64,
}

impl Amnesia {
    /// A replica that forgets about every `pace` microseconds.
    #[must_use]
    pub fn new(pace: u64) -> Self {
        Self { pace, save_at: 0, restore_at: pace }
    }
}

impl<P: Protocol> Strategy<P> for Amnesia {
    fn name(&self) -> &'static str {
        "amnesia"
    }
    fn tick(&mut self, hand: &mut Hand<'_, P>) {
        if hand.now >= self.restore_at {
            self.restore_at = hand.now + hand.rng.exponential(self.pace).max(5_000);
            hand.restore(0);
        } else if hand.now >= self.save_at {
            self.save_at = hand.now + hand.rng.exponential(self.pace).max(5_000);
            hand.save(0);
        }
    }
}
