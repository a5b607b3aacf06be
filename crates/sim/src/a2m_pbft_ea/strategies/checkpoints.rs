//! Conflicting checkpoints: vouches for states that never were, before its host vouches for the real one.

use super::{EaHand, Peer, attest, own};
use crate::a2m_pbft_ea::A2mPbftEaWorld;
use crate::adversary::Strategy;
use troth_a2m_pbft_ea::{Body, Checkpoint};
use troth_types::{Digest, ReplicaId, Seq};

/// Vouches for anything.
#[derive(Debug)]
pub struct Conflicting;

impl Strategy<A2mPbftEaWorld> for Conflicting {
    fn name(&self) -> &'static str {
        "conflicting checkpoints"
    }

    fn send(&mut self, hand: &mut EaHand<'_>, _: usize, to: ReplicaId, message: Peer) {
        let checkpoint = match own(hand, &message).map(|own| &own.body) {
            Some(Body::Checkpoint(checkpoint)) => Some(*checkpoint),
            _ => None,
        };
        hand.send(to, message);
        let Some(checkpoint) = checkpoint.filter(|_| hand.rng.one_in(3)) else { return };
        let seq = Seq(checkpoint.seq.0 + hand.rng.below(2 * checkpoint.seq.0 + 2));
        let other = Checkpoint { seq, digest: Digest([8; 32]) };
        if let Some(other) = attest(hand, Body::Checkpoint(other)) {
            for to in hand.others() {
                hand.send_evil(to, other.clone());
            }
        }
    }
}
