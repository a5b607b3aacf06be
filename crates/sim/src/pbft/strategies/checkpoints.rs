//! Conflicting checkpoints: signs digests that no state has, of numbers that it did or did not reach, and hands out bad
//! pieces of state.

use super::Peer;
use crate::adversary::{Hand, Strategy};
use crate::pbft::PbftFamily;
use bytes::Bytes;
use troth_core::PeerMessage;
use troth_pbft::{AttestedCheckpoint, Body, Checkpoint, Message};
use troth_types::{Digest, ReplicaId, Seq};

/// Signs wrong states.
#[derive(Debug, Default)]
pub struct Conflicting {
    last: Seq,
}

impl<P: PbftFamily> Strategy<P> for Conflicting {
    fn name(&self) -> &'static str {
        "conflicting checkpoints"
    }

    fn send(&mut self, hand: &mut Hand<'_, P>, _: usize, to: ReplicaId, message: Peer) {
        match &message {
            PeerMessage::Protocol(Message::Signed(signed)) if signed.from == hand.me => {
                let Some((mut checkpoint, _)) = signed.body.checkpoint() else {
                    return hand.send(to, message);
                };
                self.last = self.last.max(checkpoint.seq);
                match hand.rng.below(6) {
                    0 | 1 => checkpoint.digest = Digest([hand.rng.below(256) as u8; 32]),
                    2 => checkpoint.seq = Seq(checkpoint.seq.0 + hand.rng.range(1, 40)),
                    3 if hand.rng.one_in(4) => checkpoint.seq = Seq(u64::MAX),
                    _ => return hand.send(to, message),
                }
                let body = match &signed.body {
                    Body::Attested(attested) => {
                        Body::Attested(AttestedCheckpoint { checkpoint, ..attested.clone() })
                    }
                    _ => Body::Checkpoint(checkpoint),
                };
                let message = hand.sign(body);
                hand.send_evil(to, PeerMessage::Protocol(message));
            }
            PeerMessage::StatePiece(piece) => {
                let mut piece = piece.clone();
                let mut content = piece.content.to_vec();
                if content.is_empty() || hand.rng.one_in(3) {
                    content.push(0);
                } else {
                    let at = hand.rng.index(content.len());
                    content[at] ^= 1;
                }
                piece.content = Bytes::from(content);
                hand.send_evil(to, PeerMessage::StatePiece(piece));
            }
            _ => hand.send(to, message),
        }
    }

    fn tick(&mut self, hand: &mut Hand<'_, P>) {
        if hand.rng.one_in(40) {
            let wrong = Checkpoint { seq: self.last, digest: Digest([9; 32]) };
            let message = hand.sign(Body::Checkpoint(wrong));
            for to in hand.others() {
                hand.send_evil(to, PeerMessage::Protocol(message.clone()));
            }
        }
    }
}
