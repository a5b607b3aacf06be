//! Wants without end: wants every view, near and far, several nonces for one, and different views of different replicas.

use super::{EaHand, Peer};
use crate::a2m_pbft_ea::A2mPbftEaWorld;
use crate::adversary::Strategy;
use troth_a2m_pbft_ea::{Body, Message as Sent, WantViewChange};
use troth_core::PeerMessage;
use troth_types::{ReplicaId, View};

/// Wants.
#[derive(Debug, Default)]
pub struct Wanter {
    last: u64,
}

impl Strategy<A2mPbftEaWorld> for Wanter {
    fn name(&self) -> &'static str {
        "wants without end"
    }

    fn send(&mut self, hand: &mut EaHand<'_>, _: usize, to: ReplicaId, message: Peer) {
        if let PeerMessage::Protocol(Sent::Want(wanted)) = &message {
            self.last = self.last.max(wanted.want.to.0);
        }
        hand.send(to, message);
    }

    fn tick(&mut self, hand: &mut EaHand<'_>) {
        if !hand.rng.one_in(20) {
            return;
        }
        for to in hand.others() {
            let view = match hand.rng.below(8) {
                0 => hand.rng.next(),
                1 => 0,
                _ => self.last + hand.rng.below(3),
            };
            let nonce = [hand.rng.below(3) as u8; 32];
            let message = hand.sign(Body::Want(WantViewChange { to: View(view), nonce }));
            hand.send_evil(to, PeerMessage::Protocol(message));
        }
    }
}
