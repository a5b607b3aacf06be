//! Janus: one identity with a face for each part into which the network falls. Each face hears its part and speaks to it,
//! and both share one trusted component, so that the parts do not see in each other what a common member did. Which face
//! has which part changes with the parts, and for as long as they last a face is deaf to some kinds of messages and silent
//! in others. It knows no rule of the protocol.

use super::{Hand, Strategy};
use crate::{Message, Protocol};
use std::collections::BTreeMap;
use troth_core::PeerMessage;
use troth_types::{ReplicaId, ToClient, ToReplica};

/// How a face treats a kind of message while the parts last.
#[derive(Clone, Copy, Debug)]
struct Manner {
    deaf: bool,
    /// Bits of those who do not get it.
    silent: u64,
}

/// Two hosts, one for each part of the network.
#[derive(Debug, Default)]
pub struct Janus {
    /// The parts for which the manners were drawn.
    parts: u64,
    /// Whether both faces have the same manners.
    alike: bool,
    manners: BTreeMap<(usize, &'static str), Manner>,
}

/// Which face of a faulty replica has the part of another replica.
fn face<P: Protocol>(hand: &Hand<'_, P>, of: ReplicaId, other: ReplicaId) -> usize {
    let bit = |mask: u64, replica: ReplicaId| mask >> replica.0 & 1;
    usize::from(bit(hand.pact.part, other) != bit(hand.pact.turned, of))
}

impl Janus {
    fn manner<P: Protocol>(
        &mut self,
        hand: &mut Hand<'_, P>,
        host: usize,
        message: &PeerMessage<Message<P>>,
    ) -> Manner {
        if self.parts != hand.pact.parted {
            self.parts = hand.pact.parted;
            self.alike = hand.rng.one_in(2);
            self.manners.clear();
        }
        let kind = match message {
            PeerMessage::Protocol(message) => P::kind(message),
            _ => "",
        };
        let host = if self.alike { 0 } else { host };
        *self.manners.entry((host, kind)).or_insert_with(|| {
            let deaf = hand.rng.one_in(6);
            let silent = if hand.rng.one_in(4) { hand.rng.subset(hand.group.n()) } else { 0 };
            Manner { deaf, silent }
        })
    }
}

impl<P: Protocol> Strategy<P> for Janus {
    fn name(&self) -> &'static str {
        "two faces"
    }

    fn hosts(&self) -> usize {
        2
    }

    fn send(&mut self, hand: &mut Hand<'_, P>, host: usize, to: ReplicaId, message: PeerMessage<Message<P>>) {
        if self.manner(hand, host, &message).silent & (1 << to.0) != 0 {
            return hand.acted();
        }
        if hand.pact.members & (1 << to.0) != 0 {
            // Those who have the same part hear each other.
            let same = usize::from(
                (host == 1) != (hand.pact.turned >> hand.me.0 & 1 != hand.pact.turned >> to.0 & 1),
            );
            hand.send_face(to, same, message);
        } else if face(hand, hand.me, to) == host {
            hand.send(to, message);
        } else {
            hand.acted();
        }
    }

    fn client(&mut self, hand: &mut Hand<'_, P>, host: usize, message: ToClient) {
        if host == 0 || hand.rng.one_in(2) {
            hand.client(message);
        }
    }

    fn hears(
        &mut self,
        hand: &mut Hand<'_, P>,
        host: usize,
        from: ReplicaId,
        message: &PeerMessage<Message<P>>,
    ) -> bool {
        let meant = hand.pact.members & (1 << from.0) != 0 || face(hand, hand.me, from) == host;
        meant && !self.manner(hand, host, message).deaf
    }

    fn hears_client(&mut self, hand: &mut Hand<'_, P>, host: usize, _: &ToReplica) -> bool {
        // The two order different requests first.
        hand.rng.below(3) != host as u64
    }
}
