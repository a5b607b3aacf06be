//! The other counter: proposes one batch to some by the counter that everybody follows, and another batch to
//! the others by a second counter of the same component, at the same value.

use super::{MinBftHand, Peer};
use crate::adversary::Strategy;
use crate::minbft::MinBftWorld;
use troth_core::PeerMessage;
use troth_minbft::{Body, Message, Prepare};
use troth_trusted::{CounterId, CounterValue};
use troth_types::{Batch, ReplicaId, Time};

/// Certifies with two counters.
#[derive(Debug, Default)]
pub struct TwoCounters {
    /// The other proposal for the one with this value, and who is shown it.
    other: Option<(CounterValue, Option<Message>, u64)>,
}

impl Strategy<MinBftWorld> for TwoCounters {
    fn name(&self) -> &'static str {
        "two counters"
    }

    fn send(&mut self, hand: &mut MinBftHand<'_>, _: usize, to: ReplicaId, message: Peer) {
        let PeerMessage::Protocol(Message::Certified(certified)) = &message else {
            return hand.send(to, message);
        };
        let Body::Prepare(prepare) = &certified.body else { return hand.send(to, message) };
        if certified.from != hand.me {
            return hand.send(to, message);
        }
        if self.other.as_ref().is_none_or(|(value, ..)| *value != certified.value()) {
            // Once a counter has left the chain it cannot follow it any more: not for every proposal.
            let mut other = None;
            if hand.rng.one_in(4) {
                let batch = Batch { time: Time(prepare.batch.time.0 + 1), ..prepare.batch.clone() };
                let counter = CounterId(hand.rng.range(1, 7) as u16);
                let body = Body::Prepare(Prepare { batch, ..prepare.clone() });
                other = hand.certify_beside(counter, &certified.ui, body);
            }
            self.other = Some((certified.value(), other, hand.rng.subset(hand.group.n())));
        }
        match &self.other {
            Some((_, Some(other), shown)) if shown & (1 << to.0) != 0 => {
                let other = PeerMessage::Protocol(other.clone());
                hand.send_evil(to, other);
            }
            _ => hand.send(to, message),
        }
    }
}
