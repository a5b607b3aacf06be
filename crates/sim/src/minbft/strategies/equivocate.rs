//! The equivocating primary: proposes a batch to some and another batch for the same number to the
//! others. The component gives the two different counter values, so whoever sees both has a proof.

use super::{MinBftHand, Peer, kind};
use crate::adversary::Strategy;
use crate::minbft::MinBftWorld;
use std::sync::Arc;
use troth_core::PeerMessage;
use troth_minbft::{Body, Message, Prepare};
use troth_trusted::CounterValue;
use troth_types::{Batch, ReplicaId, Time};

/// Proposes twice.
#[derive(Debug, Default)]
pub struct Equivocator {
    /// The other proposal for the one with this value, and who is shown it.
    other: Option<(CounterValue, Option<Message>, u64)>,
}

fn other_batch(hand: &mut MinBftHand<'_>, batch: &Batch) -> Batch {
    let mut frames = batch.frames.clone();
    match hand.rng.below(4) {
        0 => frames.reverse(),
        1 => frames.truncate(frames.len() / 2),
        2 => frames.extend(batch.frames.first().copied()),
        _ => frames.clear(),
    }
    Batch { time: Time(batch.time.0 + hand.rng.below(3)), frames }
}

impl Strategy<MinBftWorld> for Equivocator {
    fn name(&self) -> &'static str {
        "equivocating primary"
    }

    fn send(&mut self, hand: &mut MinBftHand<'_>, _: usize, to: ReplicaId, message: Peer) {
        let PeerMessage::Protocol(Message::Certified(certified)) = &message else {
            return hand.send(to, message);
        };
        let Body::Prepare(prepare) = &certified.body else { return hand.send(to, message) };
        if certified.from != hand.me {
            return hand.send(to, message);
        }
        let certified = Arc::clone(certified);
        if self.other.as_ref().is_none_or(|(value, ..)| *value != certified.value()) {
            let mut other = None;
            if hand.rng.one_in(3) {
                let batch = other_batch(hand, &prepare.batch);
                if batch != prepare.batch {
                    other = hand.certify(Body::Prepare(Prepare { batch, ..prepare.clone() }));
                }
            }
            self.other = Some((certified.value(), other, hand.rng.subset(hand.group.n())));
        }
        debug_assert_eq!(kind(&message), "PREPARE");
        match &self.other {
            Some((_, Some(other), shown)) if shown & (1 << to.0) != 0 => {
                let other = PeerMessage::Protocol(other.clone());
                let both = hand.rng.one_in(4);
                hand.send_evil(to, other);
                if both {
                    hand.send(to, message);
                }
            }
            _ => hand.send(to, message),
        }
    }
}
