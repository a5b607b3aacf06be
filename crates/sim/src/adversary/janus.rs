//! Janus: one identity with a face for each part into which the network falls. Each face hears its part and speaks to it,
//! and both share one trusted component, so that the parts do not see in each other what a common member did. Which face
//! has which part changes with the parts, and a face may be deaf to some kinds of messages and silent in others. Where the
//! parts are together again both faces hear everybody and one speaks; or they stay apart until the next parts, or one of
//! them knows nothing but what it heard while it had a part. It knows no rule of the protocol.

use super::{Hand, Strategy};
use crate::{Message, Protocol};
use std::collections::{BTreeMap, BTreeSet};
use troth_core::PeerMessage;
use troth_types::{ReplicaId, ToClient, ToReplica};

/// How a face treats a kind of message while the parts last.
#[derive(Clone, Copy, Debug, Default)]
struct Manner {
    deaf: bool,
    /// Bits of those who do not get it.
    silent: u64,
}

/// Two hosts, one for each part of the network.
#[derive(Debug, Default)]
pub struct Janus {
    /// Whether a face that has no part hears nothing.
    ignorant: Option<bool>,
    /// The parts for which the manners were drawn.
    parts: u64,
    /// Whether both faces have the same manners.
    alike: bool,
    /// The kinds of messages that it met.
    kinds: BTreeSet<&'static str>,
    /// Those that a face treats in a manner of its own.
    manners: BTreeMap<(usize, &'static str), Manner>,
}

impl Janus {
    /// Whether each face has a part of its own now.
    fn apart<P: Protocol>(&mut self, hand: &mut Hand<'_, P>) -> bool {
        *self.ignorant.get_or_insert_with(|| hand.rng.one_in(2)) || hand.now < hand.pact.apart_until
    }

    /// Which face has the part of another replica. While all are together the first one has everybody.
    fn face<P: Protocol>(&mut self, hand: &mut Hand<'_, P>, other: ReplicaId) -> usize {
        let bit = |mask: u64, replica: ReplicaId| mask >> replica.0 & 1;
        usize::from(self.apart(hand) && bit(hand.pact.part, other) != bit(hand.pact.turned, hand.me))
    }

    /// Draws how it treats which kinds while these parts last: mostly one of them.
    fn draw<P: Protocol>(&mut self, hand: &mut Hand<'_, P>) {
        self.parts = hand.pact.parted;
        self.alike = hand.rng.below(3) < 2;
        self.manners.clear();
        let kinds: Vec<&'static str> = self.kinds.iter().copied().collect();
        if kinds.is_empty() {
            return;
        }
        let odd = match hand.rng.below(4) {
            0 => Vec::new(),
            1 | 2 => vec![(usize::from(!self.alike && hand.rng.one_in(2)), hand.rng.pick(&kinds))],
            _ => kinds.iter().flat_map(|kind| [(0, *kind), (1, *kind)]).collect(),
        };
        let all = odd.len() > 1;
        for of in odd {
            let (deaf, silent) = if all { (6, 4) } else { (2, 1) };
            let deaf = hand.rng.one_in(deaf);
            let silent = if hand.rng.one_in(silent) { hand.rng.subset(hand.group.n()) } else { 0 };
            self.manners.insert(of, Manner { deaf, silent: if deaf { 0 } else { silent } });
        }
    }

    fn manner<P: Protocol>(
        &mut self,
        hand: &mut Hand<'_, P>,
        host: usize,
        message: &PeerMessage<Message<P>>,
    ) -> Manner {
        if self.parts != hand.pact.parted {
            self.draw(hand);
        }
        let kind = match message {
            PeerMessage::Protocol(message) => P::kind(message),
            _ => "",
        };
        self.kinds.insert(kind);
        let face = if self.alike { 0 } else { host };
        self.manners.get(&(face, kind)).copied().unwrap_or_default()
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
        if hand.pact.members & (1 << to.0) != 0 && self.apart(hand) {
            // Those who have the same part hear each other.
            let same = usize::from(
                (host == 1) != (hand.pact.turned >> hand.me.0 & 1 != hand.pact.turned >> to.0 & 1),
            );
            hand.send_face(to, same, message);
        } else if self.face(hand, to) == host {
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
        let meant =
            !self.apart(hand) || hand.pact.members & (1 << from.0) != 0 || self.face(hand, from) == host;
        meant && !self.manner(hand, host, message).deaf
    }

    fn hears_client(&mut self, hand: &mut Hand<'_, P>, host: usize, _: &ToReplica) -> bool {
        // The two order different requests first.
        hand.rng.below(3) != host as u64
    }
}
