//! What flooders send: what costs its receiver most and is of no use, within what their keys allow.

use crate::cli::FloodKind;
use bytes::Bytes;
use std::collections::VecDeque;
use std::sync::Arc;
use troth_auth::{Authenticators, Ed25519Signer, Signer};
use troth_types::{
    ClientId, Frame, FrameDraft, FrameProof, Group, Read, ReplicaId, Signature, Tag, ToReplica, Wire, Wish,
};

/// Messages and digests heard that are remembered.
pub(super) const REMEMBERED: usize = 256;
/// Bytes of garbage in one message.
const GARBAGE: usize = 8192;
/// Bytes of an operation of a flooding client.
const OPERATION: usize = 4096;

/// Makes messages without end.
pub(super) trait Junk {
    /// The next message.
    fn next(&mut self) -> Bytes;
    /// Hears what its victim says.
    fn hear(&mut self, message: &Bytes);
}

/// Garbage that begins like a message.
pub(super) fn garbage(number: u64, kind: u8) -> Bytes {
    let mut bytes = vec![kind, u8::try_from(number % 7).expect("below 7")];
    let mut state = number | 1;
    while bytes.len() < GARBAGE {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        bytes.extend_from_slice(&state.to_le_bytes());
    }
    Bytes::from(bytes)
}

fn draft(group: Group, client: ClientId, number: u64, content: u64) -> FrameDraft {
    let operation = garbage(content, 0).slice(..OPERATION);
    FrameDraft { group: group.id(), client, number, events_seen: 0, operations: vec![operation] }
}

pub(super) fn frame(
    group: Group,
    client: ClientId,
    number: u64,
    signer: Option<&Ed25519Signer>,
) -> Arc<Frame> {
    let draft = draft(group, client, number, number);
    let signature = signer.map_or(Signature([7; 64]), |signer| signer.sign(&draft.signing_digest()));
    Arc::new(draft.sign(signature))
}

/// A client that wants everything at once, signs wrongly and repeats itself.
pub(super) struct ClientJunk {
    group: Group,
    client: ClientId,
    signer: Ed25519Signer,
    kind: FloodKind,
    told: u64,
    number: u64,
    old: VecDeque<Bytes>,
}

impl ClientJunk {
    pub(super) fn new(group: Group, client: ClientId, signer: Ed25519Signer, kind: FloodKind) -> Self {
        Self { group, client, signer, kind, told: 0, number: 0, old: VecDeque::new() }
    }

    fn request(&self, number: u64, signed: bool, wish: Wish) -> Bytes {
        let frame = frame(self.group, self.client, number, signed.then_some(&self.signer));
        ToReplica::Request { frame, wish }.to_wire()
    }
}

impl Junk for ClientJunk {
    fn next(&mut self) -> Bytes {
        self.told += 1;
        if self.kind == FloodKind::Forger {
            return self.request(self.told, false, Wish::Usual);
        }
        let message = match self.told % 8 {
            0 | 1 => {
                self.number += 1;
                self.request(self.number, true, Wish::Usual)
            }
            // As soon as it is asked for again and again, it is known.
            2 | 3 if !self.old.is_empty() => {
                let at = usize::try_from(self.told).unwrap_or(0) % self.old.len();
                return self.old[at].clone();
            }
            2 | 3 => self.request(1, true, Wish::Full),
            4 | 5 => self.request(
                self.number + self.told,
                false,
                [Wish::Full, Wish::Usual, Wish::Nothing][(self.told % 3) as usize],
            ),
            6 => ToReplica::Read(Read {
                client: self.client,
                number: self.told,
                nonce: None,
                least: None,
                operation: garbage(self.told, 0).slice(..OPERATION),
            })
            .to_wire(),
            _ => garbage(self.told, 0),
        };
        if self.told.is_multiple_of(8) {
            self.old.push_back(message.clone());
            self.old.drain(..self.old.len().saturating_sub(REMEMBERED));
        }
        message
    }

    fn hear(&mut self, _: &Bytes) {}
}

/// A client whose authenticators are right for the one replica that gets them.
pub(crate) struct PartialJunk {
    group: Group,
    client: ClientId,
    window: u64,
    keys: Authenticators,
    victim: ReplicaId,
    told: u64,
}

impl PartialJunk {
    pub(crate) fn new(
        group: Group,
        client: ClientId,
        window: u64,
        keys: Authenticators,
        victim: ReplicaId,
    ) -> Self {
        Self { group, client, window, keys, victim, told: 0 }
    }

    /// The next frame: of a number that may still be executed, and with another content than all before.
    pub(crate) fn frame(&mut self) -> Frame {
        self.told += 1;
        let draft = draft(self.group, self.client, 1 + self.told % self.window, self.told);
        let right = self.keys.of(&draft.signing_digest());
        let tags = right
            .iter()
            .zip(self.group.all())
            .map(|(right, replica)| if replica == self.victim { *right } else { Tag([7; 16]) });
        let tags = tags.collect();
        draft.prove(FrameProof::Authenticator(tags))
    }
}

impl Junk for PartialJunk {
    fn next(&mut self) -> Bytes {
        let frame = Arc::new(self.frame());
        ToReplica::Request { frame, wish: Wish::Usual }.to_wire()
    }

    fn hear(&mut self, _: &Bytes) {}
}
