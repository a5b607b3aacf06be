//! The false witness: votes as it should for a part of the group, so that batches commit and a checkpoint becomes stable
//! there, tells few of the checkpoint, and when the view changes knows of nothing.

use super::Peer;
use crate::adversary::{Hand, Strategy};
use crate::pbft::PbftFamily;
use troth_core::PeerMessage;
use troth_pbft::{Body, Message, StableProof, ViewChange};
use troth_types::ReplicaId;

/// Denies what it voted for.
#[derive(Debug, Default)]
pub struct FalseWitness {
    until: u64,
    /// Bits of those who see its votes.
    voters: u64,
    /// Bits of those who hear of its checkpoints.
    confidants: u64,
}

impl FalseWitness {
    /// Chooses anew whom it lets see what, now and then.
    fn choose<P: PbftFamily>(&mut self, hand: &mut Hand<'_, P>) {
        if hand.now < self.until {
            return;
        }
        self.until = hand.now + hand.rng.exponential(400_000) + 50_000;
        let n = hand.group.n();
        self.voters = u64::MAX;
        for _ in 0..hand.group.f() {
            self.voters &= !(1 << hand.rng.index(n));
        }
        self.voters |= hand.pact.members;
        self.confidants = (1 << hand.rng.index(n)) | hand.pact.members;
    }
}

impl<P: PbftFamily> Strategy<P> for FalseWitness {
    fn name(&self) -> &'static str {
        "false witness"
    }

    fn send(&mut self, hand: &mut Hand<'_, P>, _: usize, to: ReplicaId, message: Peer) {
        self.choose(hand);
        let audience = match &message {
            PeerMessage::Protocol(Message::Signed(signed)) if signed.from == hand.me => match &signed.body {
                Body::ViewChange(change) => {
                    let nothing = ViewChange {
                        to: change.to,
                        stable: StableProof::default(),
                        prepared: Vec::new(),
                        pre_prepared: Vec::new(),
                    };
                    let message = hand.sign(Body::ViewChange(nothing));
                    return hand.send_evil(to, PeerMessage::Protocol(message));
                }
                Body::Checkpoint(_) | Body::Attested(_) => self.confidants,
                Body::NewView(_) => u64::MAX,
                Body::Phase(_) => self.voters,
            },
            PeerMessage::Protocol(Message::PrePrepare(_) | Message::Prepare(_) | Message::Commit(_)) => {
                self.voters
            }
            _ => self.confidants,
        };
        if audience & (1 << to.0) != 0 { hand.send(to, message) } else { hand.acted() }
    }
}
