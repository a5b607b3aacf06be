//! What leaves a replica: each message encoded once, queued on the connections that it is for.

use crate::engine::{Engine, Peers};
use bytes::Bytes;
use troth_core::{Agreement, Execution, PeerMessage, To};
use troth_types::{ReplicaId, ToClient, Wire};

impl<A: Agreement, X: Execution> Engine<A, X> {
    pub(crate) fn tell_peers(&mut self, to: To, message: &Peers<A>) {
        let bytes = message.to_wire();
        match to {
            To::One(replica) => {
                match message {
                    // What it asked for by its STATUS is bounded by the protocol (R10).
                    PeerMessage::Protocol(_) => {}
                    PeerMessage::Frames(_) | PeerMessage::StatePiece(_) => self.shown_bytes += bytes.len(),
                    PeerMessage::FetchFrames(_) => self.peer_charges.asks(replica),
                    PeerMessage::FetchState(_) => {}
                }
                self.tell_peer(replica, bytes);
            }
            To::Others => {
                for replica in self.links.others() {
                    if matches!(message, PeerMessage::FetchFrames(_)) {
                        self.peer_charges.asks(replica);
                    }
                    if self.can_wait(message, replica) {
                        self.tell_peer_later(replica, &bytes);
                    } else {
                        self.tell_peer(replica, bytes.clone());
                    }
                }
            }
        }
    }

    /// Whether a message may wait for what follows it. An attacker in this machine keeps to no order.
    fn can_wait(&self, message: &Peers<A>, to: ReplicaId) -> bool {
        match message {
            PeerMessage::Protocol(message) => {
                !self.is_attacker() && self.host.machine().agreement().can_wait(message, to)
            }
            _ => false,
        }
    }

    fn is_attacker(&self) -> bool {
        #[cfg(feature = "demo-adversary")]
        return self.liar.is_some() || self.tyrant.is_some();
        #[cfg(not(feature = "demo-adversary"))]
        false
    }

    fn tell_peer_later(&mut self, replica: ReplicaId, bytes: &Bytes) {
        if self.links.tell_replica_later(replica, bytes, self.clock.now()) {
            self.counters.peer_messages_out += 1;
        } else {
            self.counters.peer_dropped += 1;
        }
    }

    fn tell_peer(&mut self, replica: ReplicaId, bytes: Bytes) {
        #[cfg(feature = "demo-adversary")]
        let told = match &mut self.liar {
            Some(liar) => liar.lie_to_replica(replica, bytes),
            None => vec![bytes],
        };
        #[cfg(feature = "demo-adversary")]
        let told: Vec<Bytes> = match &mut self.tyrant {
            Some(tyrant) => {
                told.into_iter().filter_map(|bytes| tyrant.tell(self.clock.now(), replica, bytes)).collect()
            }
            None => told,
        };
        #[cfg(not(feature = "demo-adversary"))]
        let told = [bytes];
        for bytes in told {
            if self.links.tell_replica(replica, &bytes) {
                self.counters.peer_messages_out += 1;
            } else {
                self.counters.peer_dropped += 1;
            }
        }
    }

    pub(crate) fn tell_client(&mut self, message: ToClient) {
        #[cfg(feature = "demo-adversary")]
        if self.tyrant.as_ref().is_some_and(|tyrant| !tyrant.answers()) {
            return;
        }
        #[cfg(feature = "demo-adversary")]
        let message = match &mut self.liar {
            Some(liar) => liar.lie_to_client(message),
            None => message,
        };
        let client = message.client();
        let bytes = message.to_wire();
        self.answered_bytes += bytes.len();
        // Events come of what others do, and those that are asked for again are charged for where they are served.
        if matches!(message, ToClient::Event(_)) {
            self.event_bytes += bytes.len();
        } else {
            let outcome = !matches!(message, ToClient::ReadReply(_) | ToClient::AttestedRead(_));
            self.client_charges.get_mut().answered(client, bytes.len(), outcome);
        }
        if self.links.tell_client(client, &bytes) {
            self.counters.client_messages_out += 1;
        } else {
            self.counters.client_dropped += 1;
        }
    }
}
