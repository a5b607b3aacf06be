//! What a flooding replica says, in the words of its group's protocol.

use super::junk::{Junk, REMEMBERED, frame, garbage};
use crate::cli::FloodKind;
use bytes::Bytes;
use std::collections::VecDeque;
use std::marker::PhantomData;
use std::sync::Arc;
use troth_a2m_pbft_e::A2mPbftE;
use troth_a2m_pbft_ea::{A2mPbftEa, WantViewChange};
use troth_auth::{Ed25519Signer, Seal, Signer};
use troth_core::{Agreement, PeerMessage};
use troth_minbft::{MinBft, RequestViewChange, SignedRequest};
use troth_pbft::{Pbft, StableProof, ViewChange};
use troth_types::{ClientId, Digest, Group, ReplicaId, Seq, StateFetch, View, Wire};

/// Batches asked for at once: what a message may name.
const ASKED: usize = 64;
/// Of what a flooding replica hears, it looks at one in so many.
const LOOKS_AT: u64 = 8;

/// What a message says that can be used.
#[derive(Default)]
pub(super) struct Heard {
    /// Frames that it names.
    frames: Vec<Digest>,
    /// Batches that it names.
    batches: Vec<Digest>,
    /// A checkpoint that it names.
    checkpoint: Option<(Seq, Digest)>,
    /// Whether its receiver has something to check in it: worth to be said again.
    costs: bool,
}

/// A protocol as one speaks it who only wants to keep others busy.
pub(super) trait Chatter: Agreement {
    /// A status that lacks everything, the `round`-th.
    fn lacking(group: Group, round: u64) -> Self::Message;
    /// A signed wish for the `round`-th view.
    fn wish(group: Group, me: ReplicaId, host: &Ed25519Signer, round: u64) -> Self::Message;
    /// A question for these batches, where the protocol has one.
    fn fetch(batches: Vec<Digest>) -> Option<Self::Message>;
    /// What is to be learned from a message.
    fn hear(message: Self::Message) -> Heard;
}

impl Chatter for MinBft {
    fn lacking(group: Group, round: u64) -> troth_minbft::Message {
        troth_minbft::Message::Status(troth_minbft::Status {
            view: View(0),
            processed: vec![0; group.n()],
            stable: Seq(0),
            executed: Seq(0),
            round,
            wants: None,
        })
    }

    fn wish(group: Group, me: ReplicaId, host: &Ed25519Signer, round: u64) -> troth_minbft::Message {
        let request = RequestViewChange { to: View(round) };
        let digest = troth_minbft::Body::RequestViewChange(request.clone()).digest(group.id(), me);
        let signature = host.sign(&digest);
        let signed = SignedRequest { from: me, request, digest, signature };
        troth_minbft::Message::RequestViewChange(Arc::new(signed))
    }

    fn fetch(_: Vec<Digest>) -> Option<troth_minbft::Message> {
        None
    }

    fn hear(message: troth_minbft::Message) -> Heard {
        use troth_minbft::{Body, Message};
        let Message::Certified(certified) = message else { return Heard::default() };
        let heard = Heard { costs: true, ..Heard::default() };
        match &certified.body {
            Body::Prepare(prepare) => Heard { frames: prepare.batch.frames.clone(), ..heard },
            Body::Checkpoint(checkpoint) => {
                Heard { checkpoint: Some((checkpoint.seq, checkpoint.digest)), ..heard }
            }
            _ => heard,
        }
    }
}

impl Chatter for Pbft {
    fn lacking(_: Group, _: u64) -> troth_pbft::Message {
        troth_pbft::Message::Status(troth_pbft::Status {
            view: View(0),
            active: true,
            stable: Seq(0),
            executed: Seq(0),
            slots: Vec::new(),
            changes: 0,
            wishes: true,
        })
    }

    fn wish(group: Group, me: ReplicaId, host: &Ed25519Signer, round: u64) -> troth_pbft::Message {
        let (stable, prepared, pre_prepared) = (StableProof::default(), Vec::new(), Vec::new());
        let change = ViewChange { to: View(round), stable, prepared, pre_prepared };
        let body = troth_pbft::Body::ViewChange(change);
        let digest = Self::digest(&body, group.id(), me);
        Self::seal(body, digest, me, Seal::Signature(host.sign(&digest)))
    }

    fn fetch(batches: Vec<Digest>) -> Option<troth_pbft::Message> {
        Some(troth_pbft::Message::FetchBatches(batches))
    }

    fn hear(message: troth_pbft::Message) -> Heard {
        use troth_pbft::{Body, Message, Phase};
        let proposed = |proposal: &troth_pbft::PrePrepare| {
            let (frames, batches) = (proposal.batch.frames.clone(), vec![proposal.batch.digest()]);
            Heard { frames, batches, costs: true, ..Heard::default() }
        };
        match message {
            Message::PrePrepare(proposal) => proposed(&proposal),
            Message::Signed(signed) => match &signed.body {
                Body::Checkpoint(checkpoint) => {
                    let checkpoint = Some((checkpoint.seq, checkpoint.digest));
                    Heard { checkpoint, costs: true, ..Heard::default() }
                }
                Body::Phase(Phase::PrePrepare(proposal)) => proposed(proposal),
                Body::Phase(_) | Body::Attested(_) | Body::ViewChange(_) | Body::NewView(_) => {
                    Heard { costs: true, ..Heard::default() }
                }
            },
            Message::Prepare(_) | Message::Commit(_) => Heard { costs: true, ..Heard::default() },
            _ => Heard::default(),
        }
    }
}

/// What PBFT's replicas say, and questions for the history: the costliest that there are.
impl Chatter for A2mPbftE {
    fn lacking(group: Group, round: u64) -> troth_pbft::Message {
        if round.is_multiple_of(2) {
            return troth_pbft::Message::FetchHistory(Seq(1));
        }
        Pbft::lacking(group, round)
    }

    fn wish(group: Group, me: ReplicaId, host: &Ed25519Signer, round: u64) -> troth_pbft::Message {
        Pbft::wish(group, me, host, round)
    }

    fn fetch(batches: Vec<Digest>) -> Option<troth_pbft::Message> {
        Pbft::fetch(batches)
    }

    fn hear(message: troth_pbft::Message) -> Heard {
        if let troth_pbft::Message::Signed(signed) = &message
            && let troth_pbft::Body::Attested(attested) = &signed.body
        {
            let checkpoint = Some((attested.checkpoint.seq, attested.checkpoint.digest));
            return Heard { checkpoint, costs: true, ..Heard::default() };
        }
        Pbft::hear(message)
    }
}

impl Chatter for A2mPbftEa {
    fn lacking(_: Group, _: u64) -> troth_a2m_pbft_ea::Message {
        troth_a2m_pbft_ea::Message::Status(troth_a2m_pbft_ea::Status {
            view: View(0),
            active: true,
            stable: Seq(0),
            executed: Seq(0),
            slots: Vec::new(),
            changes: 0,
            accepts: 0,
            lacks: Some(View(1)),
            wishes: false,
        })
    }

    fn wish(group: Group, me: ReplicaId, host: &Ed25519Signer, round: u64) -> troth_a2m_pbft_ea::Message {
        let want = WantViewChange { to: View(round), nonce: [7; 32] };
        let body = troth_a2m_pbft_ea::Body::Want(want);
        let digest = Self::digest(&body, group.id(), me);
        Self::seal(body, digest, me, Seal::Signature(host.sign(&digest)))
    }

    fn fetch(_: Vec<Digest>) -> Option<troth_a2m_pbft_ea::Message> {
        None
    }

    fn hear(message: troth_a2m_pbft_ea::Message) -> Heard {
        use troth_a2m_pbft_ea::{Body, Message};
        let Message::Attested(attested) = message else { return Heard::default() };
        let heard = Heard { costs: true, ..Heard::default() };
        match &attested.body {
            Body::PrePrepare(proposal) => Heard { frames: proposal.batch.frames.clone(), ..heard },
            Body::Checkpoint(checkpoint) => {
                Heard { checkpoint: Some((checkpoint.seq, checkpoint.digest)), ..heard }
            }
            _ => heard,
        }
    }
}

/// A replica that asks for everything and repeats what is old.
pub(super) struct PeerJunk<A> {
    protocol: PhantomData<A>,
    group: Group,
    me: ReplicaId,
    host: Ed25519Signer,
    kind: FloodKind,
    told: u64,
    heard: u64,
    old: VecDeque<Bytes>,
    frames: VecDeque<Digest>,
    batches: VecDeque<Digest>,
    stable: Option<(Seq, Digest)>,
}

impl<A: Chatter> PeerJunk<A> {
    pub(super) fn new(group: Group, me: ReplicaId, host: Ed25519Signer, kind: FloodKind) -> Self {
        let (old, frames, batches) = (VecDeque::new(), VecDeque::new(), VecDeque::new());
        let (protocol, told, heard, stable) = (PhantomData, 0, 0, None);
        Self { protocol, group, me, host, kind, told, heard, old, frames, batches, stable }
    }

    fn says(message: A::Message) -> Bytes {
        PeerMessage::Protocol(message).to_wire()
    }

    /// Frames and batches in turns, where the protocol has a question for the latter.
    fn fetch(&self) -> Bytes {
        let batches = A::fetch(self.batches.iter().copied().collect());
        match batches.filter(|_| self.told % 16 < 8) {
            Some(question) => Self::says(question),
            None => self.fetch_frames(),
        }
    }

    fn fetch_frames(&self) -> Bytes {
        PeerMessage::<A::Message>::FetchFrames(self.frames.iter().copied().collect()).to_wire()
    }

    fn fetch_state(&self) -> Bytes {
        let (seq, digest) = self.stable.unwrap_or((Seq(64), Digest::ZERO));
        PeerMessage::<A::Message>::FetchState(StateFetch { seq, digest, path: Bytes::new() }).to_wire()
    }

    fn frames(&self) -> Bytes {
        let frames = (0..8).map(|more| frame(self.group, ClientId(1), self.told * 8 + more, None));
        PeerMessage::<A::Message>::Frames(frames.collect()).to_wire()
    }

    /// An old message, as it was or with a byte changed.
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

impl<A: Chatter> Junk for PeerJunk<A> {
    fn next(&mut self) -> Bytes {
        self.told += 1;
        if self.kind == FloodKind::Fetcher {
            return self.fetch_state();
        }
        match self.told % 8 {
            0 => Self::says(A::lacking(self.group, self.told)),
            1 => self.old(false),
            2 => self.fetch(),
            3 => self.old(true),
            4 => self.fetch_state(),
            5 => Self::says(A::wish(self.group, self.me, &self.host, self.told)),
            6 => self.frames(),
            _ => garbage(self.told, 0),
        }
    }

    fn hear(&mut self, message: &Bytes) {
        self.heard += 1;
        if !self.heard.is_multiple_of(LOOKS_AT) {
            return;
        }
        let Ok(PeerMessage::Protocol(said)) = PeerMessage::<A::Message>::from_wire(message) else { return };
        let heard = A::hear(said);
        self.frames.extend(heard.frames);
        self.batches.extend(heard.batches);
        self.batches.drain(..self.batches.len().saturating_sub(ASKED));
        self.stable = heard.checkpoint.or(self.stable);
        if heard.costs {
            self.old.push_back(message.clone());
            self.old.drain(..self.old.len().saturating_sub(REMEMBERED));
        }
        self.frames.drain(..self.frames.len().saturating_sub(REMEMBERED));
    }
}
