//! What flooders send: what costs its receiver most and is of no use, within what their keys allow.

use crate::cli::FloodKind;
use bytes::Bytes;
use std::collections::VecDeque;
use std::sync::Arc;
use troth_auth::{Ed25519Signer, Signer};
use troth_core::PeerMessage;
use troth_minbft::{Body, Message, RequestViewChange, SignedRequest, Status};
use troth_types::{
    ClientId, Digest, Frame, FrameDraft, Group, Read, ReplicaId, Seq, Signature, StateFetch, ToReplica, View,
    Wire,
};

/// Messages and digests heard that are remembered.
const REMEMBERED: usize = 256;
/// Of what a flooding replica hears, it looks at one in so many.
const LOOKS_AT: u64 = 8;
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
fn garbage(number: u64, kind: u8) -> Bytes {
    let mut bytes = vec![kind, u8::try_from(number % 7).expect("below 7")];
    let mut state = number | 1;
    while bytes.len() < GARBAGE {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        bytes.extend_from_slice(&state.to_le_bytes());
    }
    Bytes::from(bytes)
}

fn frame(group: Group, client: ClientId, number: u64, signer: Option<&Ed25519Signer>) -> Arc<Frame> {
    let operation = garbage(number, 0).slice(..OPERATION);
    let draft = FrameDraft { group: group.id(), client, number, events_seen: 0, operations: vec![operation] };
    let signature = signer.map_or(Signature([7; 64]), |signer| signer.sign(&draft.signing_digest()));
    Arc::new(draft.sign(signature))
}

/// A replica that asks for everything and repeats what is old.
pub(super) struct PeerJunk {
    group: Group,
    me: ReplicaId,
    host: Ed25519Signer,
    kind: FloodKind,
    told: u64,
    heard: u64,
    old: VecDeque<Bytes>,
    frames: VecDeque<Digest>,
    stable: Option<(Seq, Digest)>,
}

impl PeerJunk {
    pub(super) fn new(group: Group, me: ReplicaId, host: Ed25519Signer, kind: FloodKind) -> Self {
        let (old, frames) = (VecDeque::new(), VecDeque::new());
        Self { group, me, host, kind, told: 0, heard: 0, old, frames, stable: None }
    }

    fn status(&self) -> Bytes {
        let status = Status {
            view: View(0),
            processed: vec![0; self.group.n()],
            stable: Seq(0),
            executed: Seq(0),
            round: self.told,
            wants: None,
        };
        PeerMessage::Protocol(Message::Status(status)).to_wire()
    }

    fn request_view_change(&self) -> Bytes {
        let request = RequestViewChange { to: View(self.told) };
        let digest = Body::RequestViewChange(request.clone()).digest(self.group.id(), self.me);
        let signature = self.host.sign(&digest);
        let signed = SignedRequest { from: self.me, request, digest, signature };
        PeerMessage::Protocol(Message::RequestViewChange(Arc::new(signed))).to_wire()
    }

    fn fetch_frames(&self) -> Bytes {
        PeerMessage::<Message>::FetchFrames(self.frames.iter().copied().collect()).to_wire()
    }

    fn fetch_state(&self) -> Bytes {
        let (seq, digest) = self.stable.unwrap_or((Seq(64), Digest::ZERO));
        PeerMessage::<Message>::FetchState(StateFetch { seq, digest, path: Bytes::new() }).to_wire()
    }

    fn frames(&self) -> Bytes {
        let frames = (0..8).map(|more| frame(self.group, ClientId(1), self.told * 8 + more, None));
        PeerMessage::<Message>::Frames(frames.collect()).to_wire()
    }

    /// An old certified message, as it was or with a byte changed.
    fn old(&self, changed: bool) -> Bytes {
        let Some(old) = self.old.get(self.told as usize % self.old.len().max(1)) else {
            return garbage(self.told, 0);
        };
        if !changed {
            return old.clone();
        }
        let mut bytes = old.to_vec();
        let last = bytes.len() - 1;
        bytes[last / 2] ^= 0x5a;
        Bytes::from(bytes)
    }
}

impl Junk for PeerJunk {
    fn next(&mut self) -> Bytes {
        self.told += 1;
        if self.kind == FloodKind::Fetcher {
            return self.fetch_state();
        }
        match self.told % 8 {
            0 => self.status(),
            1 => self.old(false),
            2 => self.fetch_frames(),
            3 => self.old(true),
            4 => self.fetch_state(),
            5 => self.request_view_change(),
            6 => self.frames(),
            _ => garbage(self.told, 0),
        }
    }

    fn hear(&mut self, message: &Bytes) {
        self.heard += 1;
        if !self.heard.is_multiple_of(LOOKS_AT) {
            return;
        }
        let Ok(PeerMessage::Protocol(Message::Certified(certified))) =
            PeerMessage::<Message>::from_wire(message)
        else {
            return;
        };
        match &certified.body {
            Body::Prepare(prepare) => self.frames.extend(prepare.batch.frames.iter().copied()),
            Body::Checkpoint(checkpoint) => self.stable = Some((checkpoint.seq, checkpoint.digest)),
            _ => {}
        }
        self.old.push_back(message.clone());
        self.old.drain(..self.old.len().saturating_sub(REMEMBERED));
        self.frames.drain(..self.frames.len().saturating_sub(REMEMBERED));
    }
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

    fn request(&self, number: u64, signed: bool, full: bool) -> Bytes {
        let frame = frame(self.group, self.client, number, signed.then_some(&self.signer));
        ToReplica::Request { frame, full }.to_wire()
    }
}

impl Junk for ClientJunk {
    fn next(&mut self) -> Bytes {
        self.told += 1;
        if self.kind == FloodKind::Forger {
            return self.request(self.told, false, false);
        }
        let message = match self.told % 8 {
            0 | 1 => {
                self.number += 1;
                self.request(self.number, true, false)
            }
            // As soon as it is asked for again and again, it is known.
            2 | 3 if !self.old.is_empty() => {
                let at = usize::try_from(self.told).unwrap_or(0) % self.old.len();
                return self.old[at].clone();
            }
            2 | 3 => self.request(1, true, true),
            4 | 5 => self.request(self.number + self.told, false, self.told.is_multiple_of(2)),
            6 => ToReplica::Read(Read {
                client: self.client,
                number: self.told,
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
