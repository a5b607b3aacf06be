//! Runs ahead of its logs: fills slots of votes for numbers and views that nobody has come to, so that its own host finds them
//! filled, and commits to what nothing prepared.

use super::{EaHand, Peer, attest, own};
use crate::a2m_pbft_ea::A2mPbftEaWorld;
use crate::adversary::Strategy;
use troth_a2m_pbft_ea::{Accept, Body, Vote};
use troth_types::{Digest, ReplicaId, Seq, View};

/// Fills slots too early.
#[derive(Debug)]
pub struct Runner;

impl Strategy<A2mPbftEaWorld> for Runner {
    fn name(&self) -> &'static str {
        "runs ahead of its logs"
    }

    fn send(&mut self, hand: &mut EaHand<'_>, _: usize, to: ReplicaId, message: Peer) {
        let voted = own(hand, &message).and_then(|own| own.voted());
        hand.send(to, message);
        let Some(vote) = voted.filter(|_| hand.rng.one_in(12)) else { return };
        let ahead = Seq(vote.seq.0 + hand.rng.below(3));
        let digest = if hand.rng.one_in(2) { vote.digest } else { Digest([5; 32]) };
        let vote = Vote { seq: ahead, digest, ..vote };
        let body = match hand.rng.below(8) {
            0..4 => Body::Commit(vote),
            4..7 => Body::Prepare(vote),
            _ => {
                let view = View(vote.view.0 + 1 + hand.rng.below(2));
                Body::Accept(Accept { view, new_view: Digest([6; 32]) })
            }
        };
        if let Some(other) = attest(hand, body) {
            for to in hand.others() {
                if hand.rng.one_in(2) {
                    hand.send_evil(to, other.clone());
                }
            }
        }
    }
}
