//! The selective sender: shows each kind of message to a part of the group only, and the parts
//! change.

use super::{Hand, Strategy};
use crate::{Message, Protocol};
use std::collections::BTreeMap;
use troth_core::PeerMessage;
use troth_types::ReplicaId;

/// Shows each kind to some.
#[derive(Debug, Default)]
pub struct Selective {
    until: u64,
    audiences: BTreeMap<&'static str, u64>,
}

impl<P: Protocol> Strategy<P> for Selective {
    fn name(&self) -> &'static str {
        "selective sender"
    }

    fn send(&mut self, hand: &mut Hand<'_, P>, _: usize, to: ReplicaId, message: PeerMessage<Message<P>>) {
        if hand.now >= self.until {
            self.until = hand.now + hand.rng.exponential(60_000) + 2_000;
            self.audiences.clear();
        }
        let kind = match &message {
            PeerMessage::Protocol(message) => P::kind(message),
            _ => "",
        };
        let n = hand.group.n();
        let audience = match self.audiences.get(kind) {
            Some(audience) => *audience,
            None => {
                let audience = match hand.rng.below(4) {
                    0 => u64::MAX,
                    1 => 1 << hand.rng.index(n),
                    2 => hand.pact.audience | hand.pact.members,
                    _ => hand.rng.subset(n),
                };
                self.audiences.insert(kind, audience);
                audience
            }
        };
        if audience & (1 << to.0) != 0 { hand.send(to, message) } else { hand.acted() }
    }
}
