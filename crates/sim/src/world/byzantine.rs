//! Byzantine clients: signatures and tags that are good for some replicas only, two operations under one
//! number, numbers out of all order, and garbage.

use crate::Rng;
use crate::checks::Checks;
use crate::zookeeper::{Talk, Town, nuisance};
use bytes::Bytes;
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use troth_auth::{Authenticators, ModelSigner, Signer};
use troth_kv::Operation;
use troth_types::{
    ClientId, Digest, Frame, FrameDraft, FrameProof, Group, Read, ReplicaId, Time, ToReplica, Wire, Wish,
};
use troth_zookeeper::Said;

/// So many clients spoil the tags of a part of the replicas each: no part is more than f, all together are everybody.
pub const SPOILERS: usize = 4;
/// Microseconds between two moments at which they act, all at once.
const BEAT: u64 = 40_000;

/// A Byzantine client.
pub struct ByzantineClient {
    /// Its number.
    pub id: ClientId,
    group: Group,
    signer: ModelSigner,
    /// Where clients may send authenticators.
    authenticators: Option<Authenticators>,
    rng: Rng,
    number: u64,
    window: u64,
    last: Option<Arc<Frame>>,
    /// The replicas whose tags it spoils, where it acts together with others.
    spoils: Option<u64>,
    /// The sessions of others and how it talks, where the group replicates the coordination service.
    among: Option<(Rc<RefCell<Town>>, Talk)>,
    /// What it did that a correct client would not do.
    pub effective: u64,
}

impl ByzantineClient {
    /// A client that the group's configuration knows.
    #[must_use]
    pub fn new(
        seed: u64,
        group: Group,
        id: ClientId,
        signer: ModelSigner,
        window: u64,
        authenticators: Option<Authenticators>,
    ) -> Self {
        let rng = Rng::stream(seed, "byzantine-client", id.0);
        Self {
            id,
            group,
            signer,
            authenticators,
            rng,
            number: 0,
            window,
            last: None,
            spoils: None,
            among: None,
            effective: 0,
        }
    }

    /// The same among gateways, where so many nodes stand below the root.
    #[must_use]
    pub fn among(mut self, town: Rc<RefCell<Town>>, names: u64) -> Self {
        self.among = Some((town, Talk::new(self.id.0, names)));
        self
    }

    /// The same as the one at this place among [`SPOILERS`].
    #[must_use]
    pub fn spoiling(mut self, place: usize) -> Self {
        let of_it = |replica: &ReplicaId| usize::from(replica.0) / self.group.f() == place;
        self.spoils = Some(self.group.all().filter(of_it).fold(0, |mask, replica| mask | 1 << replica.0));
        self
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
        let frame = Arc::new(self.prove(draft));
        checks.validity.signed(&frame);
        self.last = Some(Arc::clone(&frame));
        frame
    }

    /// Signed; or, where that is taken, mostly with tags of which some are wrong: right for the primary of the moment and
    /// wrong for all others, among other things; or for its part of them, where it acts with others.
    fn prove(&mut self, draft: FrameDraft) -> Frame {
        if let Some(keys) =
            self.authenticators.as_ref().filter(|_| self.spoils.is_some() || !self.rng.one_in(4))
        {
            let wrong = self.spoils.unwrap_or_else(|| self.rng.subset(self.group.n()));
            return tagged(keys, draft, wrong);
        }
        let signature = self.signer.sign(&draft.signing_digest());
        draft.sign(signature)
    }

    fn operation(&mut self) -> Bytes {
        if let Some((town, talk)) = &mut self.among {
            let nuisance = nuisance(&mut self.rng, self.id, &town.borrow(), talk);
            // Its clock says what it wants.
            return Said::wire(Time(self.rng.pick(&[0, 1, u64::MAX])), &nuisance);
        }
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
        let proof = match frame.proof() {
            FrameProof::Signature(signature) => signature.0.len(),
            FrameProof::Authenticator(tags) => size_of_val(&**tags),
        };
        let at = bytes.len() - 1 - self.rng.index(proof);
        bytes[at] ^= 1 << self.rng.below(8);
        Arc::new(Frame::from_wire(&Bytes::from(bytes)).expect("a proof may be any bytes"))
    }

    /// What it sends now.
    pub fn act(&mut self, checks: &mut Checks, send: &mut Vec<(ReplicaId, ToReplica)>) {
        self.effective += 1;
        let replicas: Vec<ReplicaId> = self.group.all().collect();
        let chosen = self.rng.subset(replicas.len());
        let hears = |replica: ReplicaId| chosen & (1 << replica.0) != 0;
        let request = |frame: &Arc<Frame>, full| {
            let wish = match frame.number() % 4 {
                _ if full => Wish::Full,
                0 => Wish::Nothing,
                1 => Wish::Alone,
                _ => Wish::Usual,
            };
            ToReplica::Request { frame: Arc::clone(frame), wish }
        };
        if self.spoils.is_some() {
            self.number += 1;
            let frame = self.frame(self.number, checks);
            return send.extend(replicas.iter().map(|to| (*to, request(&frame, false))));
        }
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
                let number = self.rng.below(4);
                // Where answers are attested under nonces, one that it used before.
                let nonce = (number > 0).then_some(Digest([7; 32]));
                let read = Read { client: self.id, number, nonce, least: None, operation };
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

    /// Microseconds from now until it acts again.
    pub fn pause(&mut self, now: u64) -> u64 {
        match self.spoils {
            Some(_) => BEAT - now % BEAT,
            None => self.rng.exponential(40_000) + 1_000,
        }
    }
}

/// A frame whose tags for these replicas are wrong.
fn tagged(keys: &Authenticators, draft: FrameDraft, wrong: u64) -> Frame {
    let mut tags = keys.of(&draft.signing_digest());
    for at in (0..tags.len()).filter(|at| wrong & (1 << at) != 0) {
        tags[at].0[0] ^= 1;
    }
    draft.prove(FrameProof::Authenticator(tags))
}
