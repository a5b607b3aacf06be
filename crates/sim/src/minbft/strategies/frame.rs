//! The framing relay: passes on what others said with something in it changed, so that the change
//! might be blamed on them: embedded PREPAREs, relayed messages, frames of clients.

use super::{MinBftHand, Peer};
use crate::adversary::{Strategy, scramble};
use crate::minbft::MinBftWorld;
use bytes::Bytes;
use std::sync::Arc;
use troth_core::PeerMessage;
use troth_minbft::{Body, Certified, Commit, Message, Prepare};
use troth_types::{Batch, Digest, Frame, ReplicaId, Seq, Wire};

/// Corrupts what it relays.
#[derive(Debug)]
pub struct Framer;

/// A PREPARE of somebody else that says something else under the same identifier.
fn corrupted(hand: &mut MinBftHand<'_>, prepare: &Arc<Certified>) -> Arc<Certified> {
    let mut copy = (**prepare).clone();
    if let Body::Prepare(said) = &copy.body {
        let mut said: Prepare = said.clone();
        match hand.rng.below(3) {
            0 => said.batch = Batch { frames: vec![Digest([5; 32])], ..said.batch },
            1 => said.seq = Seq(said.seq.0 + 1),
            _ => said.batch.frames.clear(),
        }
        copy.body = Body::Prepare(said);
        if hand.rng.one_in(2) {
            copy.digest = copy.body.digest(hand.group.id(), copy.from);
        }
    }
    Arc::new(copy)
}

impl Strategy<MinBftWorld> for Framer {
    fn name(&self) -> &'static str {
        "framing relay"
    }

    fn certify(&mut self, hand: &mut MinBftHand<'_>, _: usize, body: Body) -> Body {
        match body {
            Body::Commit(commit) if hand.rng.one_in(6) => {
                Body::Commit(Commit { prepare: corrupted(hand, &commit.prepare) })
            }
            other => other,
        }
    }

    fn send(&mut self, hand: &mut MinBftHand<'_>, _: usize, to: ReplicaId, message: Peer) {
        match &message {
            PeerMessage::Frames(frames) if hand.rng.one_in(2) => {
                let change = |frame: &Arc<Frame>| {
                    let mut bytes = frame.to_wire().to_vec();
                    let last = bytes.len() - 1;
                    bytes[last] ^= 1;
                    Frame::from_wire(&Bytes::from(bytes)).map_or_else(|_| Arc::clone(frame), Arc::new)
                };
                hand.send_evil(to, PeerMessage::Frames(frames.iter().map(change).collect()));
            }
            _ => hand.send(to, message),
        }
    }

    fn tick(&mut self, hand: &mut MinBftHand<'_>) {
        if hand.heard.is_empty() {
            return;
        }
        let others = hand.others();
        for _ in 0..hand.rng.below(3) {
            let (_, message) = hand.heard[hand.rng.index(hand.heard.len())].clone();
            let to = hand.rng.pick(&others);
            let changed = match &message {
                PeerMessage::Protocol(Message::Certified(certified)) => match &certified.body {
                    Body::Prepare(_) => {
                        Some(PeerMessage::Protocol(Message::Certified(corrupted(hand, certified))))
                    }
                    Body::Commit(commit) => {
                        let prepare = corrupted(hand, &commit.prepare);
                        let body = Body::Commit(Commit { prepare });
                        let copy = Certified { body, ..(**certified).clone() };
                        Some(PeerMessage::Protocol(Message::Certified(Arc::new(copy))))
                    }
                    _ => scramble::<MinBftWorld>(hand.rng, &message),
                },
                _ => scramble::<MinBftWorld>(hand.rng, &message),
            };
            if let Some(changed) = changed {
                hand.send_evil(to, changed);
            }
        }
    }
}
