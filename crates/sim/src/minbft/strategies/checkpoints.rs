//! Conflicting checkpoints: certifies digests that no state has, of numbers that it did or did not
//! reach, and hands out bad pieces of state.

use super::{MinBftHand, Peer};
use crate::adversary::Strategy;
use crate::minbft::MinBftWorld;
use bytes::Bytes;
use troth_core::PeerMessage;
use troth_minbft::{Body, Checkpoint};
use troth_types::{Digest, ReplicaId, Seq};

/// Certifies wrong states.
#[derive(Debug, Default)]
pub struct Conflicting {
    last: Seq,
}

impl Strategy<MinBftWorld> for Conflicting {
    fn name(&self) -> &'static str {
        "conflicting checkpoints"
    }

    fn certify(&mut self, hand: &mut MinBftHand<'_>, _: usize, body: Body) -> Body {
        let Body::Checkpoint(checkpoint) = body else { return body };
        self.last = self.last.max(checkpoint.seq);
        let mut digest = checkpoint.digest;
        let mut seq = checkpoint.seq;
        match hand.rng.below(8) {
            0 | 1 => digest = Digest([hand.rng.below(256) as u8; 32]),
            2 => seq = Seq(seq.0 + hand.rng.range(1, 40)),
            3 => seq = Seq(seq.0.saturating_sub(hand.rng.range(1, 5))),
            4 if hand.rng.one_in(4) => seq = Seq(u64::MAX),
            _ => {}
        }
        Body::Checkpoint(Checkpoint { seq, digest, epochs: Vec::new(), given: false })
    }

    fn send(&mut self, hand: &mut MinBftHand<'_>, _: usize, to: ReplicaId, message: Peer) {
        let PeerMessage::StatePiece(piece) = &message else { return hand.send(to, message) };
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

    fn tick(&mut self, hand: &mut MinBftHand<'_>) {
        if hand.rng.one_in(40) {
            let body = Body::Checkpoint(Checkpoint {
                seq: self.last,
                digest: Digest([9; 32]),
                epochs: Vec::new(),
                given: false,
            });
            if let Some(message) = hand.certify(body) {
                for to in hand.others() {
                    hand.send_evil(to, PeerMessage::Protocol(message.clone()));
                }
            }
        }
    }
}
