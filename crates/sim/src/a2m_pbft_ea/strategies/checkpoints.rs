//! Conflicting checkpoints: vouches for states that never were, before its host vouches for the real one, with a history that
//! is its component's, or that of another number, or one that it jumps to.

use super::{EaHand, Peer, answer, attest, look_up, own};
use crate::a2m_pbft_ea::A2mPbftEaWorld;
use crate::adversary::Strategy;
use troth_a2m_pbft_ea::place::{HISTORY, flattened};
use troth_a2m_pbft_ea::{Body, Checkpoint};
use troth_trusted::a2m::{Attestation, Operation, slot_nonce};
use troth_types::{Digest, ReplicaId, Seq, View};

/// Vouches for anything.
#[derive(Debug)]
pub struct Conflicting;

/// What its component says of its history at a number; where that is nothing, it may be made to say something.
fn history_at(hand: &mut EaHand<'_>, seq: Seq) -> Option<Attestation> {
    let slot = flattened(View(0), seq);
    if hand.rng.one_in(8) {
        let (previous, value) = ([8; 32], [9; 32]);
        let advance = Operation::Advance { log: HISTORY, slot, previous, value, nonce: None };
        answer(hand, advance);
    }
    look_up(hand, HISTORY, slot, slot_nonce(slot))
}

impl Strategy<A2mPbftEaWorld> for Conflicting {
    fn name(&self) -> &'static str {
        "conflicting checkpoints"
    }

    fn send(&mut self, hand: &mut EaHand<'_>, _: usize, to: ReplicaId, message: Peer) {
        let checkpoint = match own(hand, &message).map(|own| &own.body) {
            Some(Body::Checkpoint(checkpoint)) => Some(checkpoint.clone()),
            _ => None,
        };
        hand.send(to, message);
        let Some(checkpoint) = checkpoint.filter(|_| hand.rng.one_in(3)) else { return };
        let seq = Seq(checkpoint.seq.0 + hand.rng.below(2 * checkpoint.seq.0 + 2));
        let history = if hand.rng.one_in(4) { Some(checkpoint.history) } else { history_at(hand, seq) };
        let Some(history) = history else { return };
        let other = Checkpoint { seq, digest: Digest([8; 32]), history };
        if let Some(other) = attest(hand, Body::Checkpoint(other)) {
            for to in hand.others() {
                hand.send_evil(to, other.clone());
            }
        }
    }
}
