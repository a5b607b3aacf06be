//! The twin: one identity on two hosts that share one trusted component. Each part
//! of the group sees one of the two, and the parts change.

use super::{Hand, Strategy};
use crate::{Message, Protocol};
use troth_core::PeerMessage;
use troth_types::{ReplicaId, ToClient, ToReplica};

/// Two hosts with recipient masks.
#[derive(Debug)]
pub struct Twin {
    until: u64,
    pace: u64,
    /// Bits of the replicas with which the first host speaks; the second has the others.
    first: u64,
    /// Whether a host hears everybody, whomever it speaks to.
    hears_all: bool,
}

impl Twin {
    /// Twins whose parts change about every `pace` microseconds.
    #[must_use]
    pub fn new(pace: u64) -> Self {
        Self { until: 0, pace, first: 0, hears_all: true }
    }

    fn turn<P: Protocol>(&mut self, hand: &mut Hand<'_, P>) {
        if hand.now >= self.until {
            self.until = hand.now + hand.rng.exponential(self.pace).max(1_000);
            self.first =
                if hand.rng.one_in(3) { hand.pact.audience } else { hand.rng.subset(hand.group.n()) };
            self.hears_all = hand.rng.one_in(2);
        }
    }

    fn speaks(&self, host: usize, with: ReplicaId) -> bool {
        (self.first & (1 << with.0) != 0) == (host == 0)
    }
}

impl<P: Protocol> Strategy<P> for Twin {
    fn name(&self) -> &'static str {
        "twin"
    }
    fn hosts(&self) -> usize {
        2
    }
    fn send(&mut self, hand: &mut Hand<'_, P>, host: usize, to: ReplicaId, message: PeerMessage<Message<P>>) {
        self.turn(hand);
        if self.speaks(host, to) {
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
        _: &PeerMessage<Message<P>>,
    ) -> bool {
        self.turn(hand);
        self.hears_all || self.speaks(host, from)
    }
    fn hears_client(&mut self, hand: &mut Hand<'_, P>, host: usize, _: &ToReplica) -> bool {
        self.turn(hand);
        // The two order different requests first.
        hand.rng.below(3) != host as u64
    }
}
