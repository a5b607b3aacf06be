//! Amnesia: the replica goes back to an earlier clone of its state, while its component stays where
//! it is.

use super::{Hand, Strategy};
use crate::{Message, Protocol};
use troth_core::PeerMessage;
use troth_types::ReplicaId;

/// A replica that forgets.
#[derive(Debug)]
pub struct Amnesia {
    pace: u64,
    save_at: u64,
    restore_at: u64,
    /// Whether it keeps and forgets when views begin to change, and at no other time.
    at_changes: bool,
    /// Until when what changes views belongs to the change that began already.
    changing_until: u64,
    kept: bool,
}

impl Amnesia {
    /// A replica that forgets about every `pace` microseconds.
    #[must_use]
    pub fn new(pace: u64) -> Self {
        Self { pace, save_at: 0, restore_at: pace, at_changes: false, changing_until: 0, kept: false }
    }

    /// One that keeps its state when views begin to change, and is as it was then when they do again: it leaves the earlier
    /// view once more. What changes views within `pace` microseconds is one change.
    #[must_use]
    pub fn at_changes(pace: u64) -> Self {
        Self { at_changes: true, ..Self::new(pace) }
    }
}

impl<P: Protocol> Strategy<P> for Amnesia {
    fn name(&self) -> &'static str {
        if self.at_changes { "amnesia when views change" } else { "amnesia" }
    }

    fn hears(
        &mut self,
        hand: &mut Hand<'_, P>,
        _: usize,
        _: ReplicaId,
        message: &PeerMessage<Message<P>>,
    ) -> bool {
        let changes = matches!(message, PeerMessage::Protocol(message) if P::changes_view(message));
        if self.at_changes && changes {
            let begins = hand.now >= self.changing_until;
            self.changing_until = hand.now + self.pace;
            if begins && self.kept && hand.rng.below(3) < 2 {
                hand.restore_at_rest(0);
            } else if begins {
                self.kept = true;
                hand.save_at_rest(0);
            }
        }
        true
    }

    fn tick(&mut self, hand: &mut Hand<'_, P>) {
        if self.at_changes {
            return;
        }
        if hand.now >= self.restore_at {
            self.restore_at = hand.now + hand.rng.exponential(self.pace).max(5_000);
            hand.restore_at_rest(0);
        } else if hand.now >= self.save_at {
            self.save_at = hand.now + hand.rng.exponential(self.pace).max(5_000);
            hand.save_at_rest(0);
        }
    }
}
