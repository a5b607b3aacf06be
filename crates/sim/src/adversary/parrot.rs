//! The parrot: says in its own name what others say, kind by kind, and shows of its own messages each kind to a part of the
//! group only. It knows no rule of the protocol: what one replica that lags says of itself becomes what two say.

use super::{Hand, Strategy};
use crate::{Message, Protocol};
use std::collections::BTreeMap;
use troth_core::PeerMessage;
use troth_types::ReplicaId;

/// How it treats a kind of message for a while.
#[derive(Clone, Copy, Debug)]
struct Manner {
    /// Who sees its own.
    audience: u64,
    /// Whether it repeats those of others.
    repeats: bool,
}

/// Repeats others.
#[derive(Debug)]
pub struct Parrot {
    pace: u64,
    until: u64,
    manners: BTreeMap<&'static str, Manner>,
    /// Whether it repeats everything, whatever kind it is of.
    everything: bool,
}

impl Parrot {
    /// A parrot whose manners last about `pace` microseconds.
    #[must_use]
    pub fn new(pace: u64) -> Self {
        Self { pace, until: 0, manners: BTreeMap::new(), everything: false }
    }

    fn manner<P: Protocol>(&mut self, hand: &mut Hand<'_, P>, message: &Message<P>) -> Manner {
        if hand.now >= self.until {
            self.until = hand.now + hand.rng.exponential(self.pace) + 2_000;
            self.manners.clear();
            self.everything = hand.rng.one_in(2);
        }
        let (n, everything) = (hand.group.n(), self.everything);
        let new = |hand: &mut Hand<'_, P>| {
            let audience = match hand.rng.below(4) {
                0 | 1 => u64::MAX,
                2 => 1 << hand.rng.index(n),
                _ => hand.rng.subset(n),
            };
            Manner { audience, repeats: everything || hand.rng.one_in(2) }
        };
        *self.manners.entry(P::kind(message)).or_insert_with(|| new(hand))
    }
}

impl<P: Protocol> Strategy<P> for Parrot {
    fn name(&self) -> &'static str {
        "parrot"
    }

    fn send(&mut self, hand: &mut Hand<'_, P>, _: usize, to: ReplicaId, message: PeerMessage<Message<P>>) {
        let PeerMessage::Protocol(own) = &message else { return hand.send(to, message) };
        let manner = self.manner(hand, own);
        // Of what it repeats when views change, its host's own word would take back.
        let silent = manner.repeats && P::changes_view(own);
        if silent || manner.audience & (1 << to.0) == 0 {
            return hand.acted();
        }
        hand.send(to, message);
    }

    fn hears(
        &mut self,
        hand: &mut Hand<'_, P>,
        _: usize,
        from: ReplicaId,
        message: &PeerMessage<Message<P>>,
    ) -> bool {
        // Two of them would never be quiet again.
        let PeerMessage::Protocol(theirs) = message else { return true };
        if hand.pact.members & (1 << from.0) != 0 || !self.manner(hand, theirs).repeats {
            return true;
        }
        if let Some(own) = P::as_own(hand, from, theirs) {
            for to in hand.others() {
                hand.send_evil(to, PeerMessage::Protocol(own.clone()));
            }
        }
        true
    }
}
