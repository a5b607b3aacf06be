//! Byzantine clients: signatures that are good for some replicas only, two operations under one
//! number, numbers out of all order, and garbage.

use crate::Rng;
use crate::checks::Checks;
use bytes::Bytes;
use std::sync::Arc;
use troth_auth::{ModelSigner, Signer};
use troth_kv::Operation;
use troth_types::{ClientId, Frame, FrameDraft, Group, Read, ReplicaId, Signature, ToReplica, Wire};

/// A Byzantine client.
pub struct ByzantineClient {
    /// Its number.
    pub id: ClientId,
    group: Group,
    signer: ModelSigner,
    rng: Rng,
    number: u64,
    window: u64,
    last: Option<Arc<Frame>>,
    /// What it did that a correct client would not do.
    pub effective: u64,
}

impl ByzantineClient {
    /// A client that the group's configuration knows.
    #[must_use]
    pub fn new(seed: u64, group: Group, id: ClientId, signer: ModelSigner, window: u64) -> Self {
        let rng = Rng::stream(seed, "byzantine-client", id.0);
        Self { id, group, signer, rng, number: 0, window, last: None, effective: 0 }
    }

    fn frame(&mut self, number: u64, checks: &mut Checks) -> Arc<Frame> {
        let operations = (0..self.rng.range(1, 3)).map(|_| self.operation()).collect();
        let draft = FrameDraft {
            group: self.group.id(),
            client: self.id,
            number,
            events_seen: self.rng.below(3),
            operations,
        };
        let signature = self.signer.sign(&draft.signing_digest());
        let frame = Arc::new(draft.sign(signature));
        checks.validity.signed(&frame);
        self.last = Some(Arc::clone(&frame));
        frame
    }

    fn operation(&mut self) -> Bytes {
        // Keys of its own: what it does to itself is its own matter.
        let key = Bytes::from(format!("z{}", self.rng.below(3)));
        match self.rng.below(5) {
            0 => Operation::Delete { key }.to_wire(),
            1 => Operation::Get { key }.to_wire(),
            2 => Bytes::from(vec![self.rng.below(256) as u8; self.rng.index(20)]),
            _ => Operation::Put { key, value: Bytes::from(format!("{}", self.rng.next())) }.to_wire(),
        }
    }

    /// The same frame with a signature that is nobody's.
    fn corrupted(&mut self, frame: &Frame) -> Arc<Frame> {
        let mut bytes = frame.to_wire().to_vec();
        let at = bytes.len() - 1 - self.rng.index(Signature([0; 64]).0.len());
        bytes[at] ^= 1 << self.rng.below(8);
        Arc::new(Frame::from_wire(&Bytes::from(bytes)).expect("a signature may be any 64 bytes"))
    }

    /// What it sends now.
    pub fn act(&mut self, checks: &mut Checks, send: &mut Vec<(ReplicaId, ToReplica)>) {
        self.effective += 1;
        let replicas: Vec<ReplicaId> = self.group.all().collect();
        let chosen = self.rng.subset(replicas.len());
        let hears = |replica: ReplicaId| chosen & (1 << replica.0) != 0;
        let request = |frame: &Arc<Frame>, full| ToReplica::Request { frame: Arc::clone(frame), full };
        match self.rng.below(6) {
            0 | 1 => {
                self.number += 1;
                let good = self.frame(self.number, checks);
                let bad = self.corrupted(&good);
                send.extend(
                    replicas.iter().map(|to| (*to, request(if hears(*to) { &good } else { &bad }, false))),
                );
            }
            2 | 3 => {
                self.number += 1;
                let (one, other) = (self.frame(self.number, checks), self.frame(self.number, checks));
                send.extend(
                    replicas.iter().map(|to| (*to, request(if hears(*to) { &one } else { &other }, true))),
                );
            }
            4 => {
                // Ahead of its window or long gone.
                let number =
                    if self.rng.one_in(2) { self.number + self.rng.range(1, 3 * self.window) } else { 1 };
                let frame = self.frame(number, checks);
                if self.rng.one_in(3) {
                    self.number = self.number.max(number);
                }
                send.extend(replicas.iter().filter(|to| hears(**to)).map(|to| (*to, request(&frame, true))));
            }
            _ => {
                let operation = self.operation();
                let read = Read { client: self.id, number: self.rng.below(4), operation };
                send.extend(replicas.iter().map(|to| (*to, ToReplica::Read(read.clone()))));
                if let Some(last) = self.last.clone() {
                    let bad = self.corrupted(&last);
                    send.extend(
                        replicas.iter().filter(|to| hears(**to)).map(|to| (*to, request(&bad, true))),
                    );
                }
            }
        }
    }

    /// Microseconds until it acts again.
    pub fn pause(&mut self) -> u64 {
        self.rng.exponential(40_000) + 1_000
    }
}
