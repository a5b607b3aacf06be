//! A replica that lies, for the demonstration: it does what its trusted component cannot stop.
//!
//! To clients it sends wrong results and invented events. To replicas it sends corrupted copies of
//! its certified messages beside or instead of the true ones, a different STATUS to each, wrong frame
//! bodies, and rubbish; what it should show to one it shows to another. As primary it withholds its
//! proposals from half of the others. How it treats a protocol's own messages is in `served`. Only in builds
//! with the feature `demo-adversary`.

use crate::served::Served;
use bytes::Bytes;
use std::sync::Arc;
use troth_core::PeerMessage;
use troth_types::{
    AttestedRead, AttestedReply, Digest, Event, Frame, Group, ReadReply, ReplicaId, Reply, ReplyBody, Seq,
    Signature, ToClient, View, Wire,
};

/// What the liar puts in the place of every result.
const LIE: &[u8] = b"a lie";

/// What a liar of some protocol sends instead of an encoded message.
type Lies = fn(&mut Liar, ReplicaId, Bytes) -> Vec<Bytes>;

/// The liar's state: enough to tell every listener something else.
pub(crate) struct Liar {
    me: ReplicaId,
    replicas: usize,
    told: u64,
    kept_back: Option<Bytes>,
    lies: Lies,
}

impl Liar {
    /// A liar among replicas that run `A`.
    pub(crate) fn new<A: Served>(me: ReplicaId, group: &Group) -> Self {
        Self { me, replicas: group.n(), told: 0, kept_back: None, lies: lies::<A> }
    }

    /// What goes to a replica instead of the encoded message.
    pub(crate) fn lie_to_replica(&mut self, to: ReplicaId, honest: Bytes) -> Vec<Bytes> {
        self.told += 1;
        (self.lies)(self, to, honest)
    }

    /// Whether it says the truth this time.
    pub(crate) fn is_candid(&self) -> bool {
        self.told.is_multiple_of(3)
    }

    /// A number that is another one for every listener.
    pub(crate) fn claim(&self, to: ReplicaId) -> u64 {
        u64::from(to.0) * 1000 + self.told
    }

    /// Keeps a message, to send it later, and gives the one kept before.
    pub(crate) fn keep_back(&mut self, message: Bytes) -> Option<Bytes> {
        self.kept_back.replace(message)
    }

    /// What decodes as nothing.
    pub(crate) fn rubbish(&self) -> Bytes {
        let mut bytes = self.told.to_le_bytes().to_vec();
        bytes.extend_from_slice(&Digest::ZERO.0);
        Bytes::from(bytes)
    }

    /// What goes to a client instead.
    pub(crate) fn lie_to_client(&mut self, honest: ToClient) -> ToClient {
        self.told += 1;
        match honest {
            ToClient::Reply(mut reply) => {
                reply.body = self.other_body(&reply.body);
                reply.seq = Seq(reply.seq.0 + self.told % 2);
                reply.view = View(reply.view.0 + 1000);
                ToClient::Reply(reply)
            }
            // It says that the place is final, or another's view, as it comes.
            ToClient::Tentative(mut reply) => {
                reply.body = self.other_body(&reply.body);
                reply.view = View(reply.view.0 + self.told % 2);
                if self.told.is_multiple_of(3) { ToClient::Reply(reply) } else { ToClient::Tentative(reply) }
            }
            ToClient::ReadReply(mut reply) => {
                reply.body = self.other_body(&reply.body);
                ToClient::ReadReply(reply)
            }
            ToClient::AttestedRead(AttestedRead { mut reply, end, renewed }) => {
                reply.body = self.other_body(&reply.body);
                ToClient::AttestedRead(AttestedRead { reply, end, renewed })
            }
            ToClient::Event(event) => ToClient::Event(Event { payload: Bytes::from_static(LIE), ..event }),
            // It answers where a correct replica would say that it cannot yet.
            ToClient::Refusal(refusal) if refusal.read => ToClient::ReadReply(ReadReply {
                client: refusal.client,
                number: refusal.number,
                events_up_to: 0,
                body: ReplyBody::Full(vec![Bytes::from_static(LIE)]),
            }),
            ToClient::Attested(AttestedReply { mut reply, place, renewed }) => {
                reply.body = self.other_body(&reply.body);
                ToClient::Attested(AttestedReply { reply, place, renewed })
            }
            refusal @ ToClient::Refusal(_) => refusal,
        }
    }

    /// Half of the others, a different half for each liar.
    pub(crate) fn withholds_from(&self, to: ReplicaId) -> bool {
        (usize::from(to.0) + self.replicas - usize::from(self.me.0)).is_multiple_of(2)
    }

    /// A well-formed message whose content its certificate does not cover.
    pub(crate) fn corrupt(&self, honest: &Bytes) -> Bytes {
        let mut bytes = honest.to_vec();
        let at = 16 + usize::try_from(self.told % 24).expect("below 24");
        if let Some(byte) = bytes.get_mut(at) {
            *byte ^= 0x5a;
        }
        Bytes::from(bytes)
    }

    /// Another result; in full also where a digest would do.
    fn other_body(&self, body: &ReplyBody) -> ReplyBody {
        match body {
            ReplyBody::Full(results) => ReplyBody::Full(vec![Bytes::from_static(LIE); results.len()]),
            ReplyBody::Digest(_) if self.told.is_multiple_of(2) => {
                ReplyBody::Full(vec![Bytes::from_static(LIE)])
            }
            ReplyBody::Digest(_) => ReplyBody::Digest(Reply::results_digest(&[Bytes::from_static(LIE)])),
        }
    }
}

fn lies<A: Served>(liar: &mut Liar, to: ReplicaId, honest: Bytes) -> Vec<Bytes> {
    let Ok(message) = PeerMessage::<A::Message>::from_wire(&honest) else { return vec![honest] };
    match message {
        PeerMessage::Protocol(message) => A::lies(liar, to, message, honest),
        PeerMessage::Frames(frames) => {
            let wrong = frames.iter().map(|frame| Arc::new(other_frame(frame))).collect();
            vec![PeerMessage::<A::Message>::Frames(wrong).to_wire(), liar.rubbish()]
        }
        PeerMessage::StatePiece(mut piece) => {
            piece.content = Bytes::from_static(LIE);
            vec![PeerMessage::<A::Message>::StatePiece(piece).to_wire()]
        }
        PeerMessage::FetchFrames(_) | PeerMessage::FetchState(_) => vec![liar.rubbish(), honest],
    }
}

/// A frame that its client never signed.
fn other_frame(frame: &Frame) -> Frame {
    troth_types::FrameDraft {
        group: frame.group(),
        client: frame.client(),
        number: frame.number(),
        events_seen: frame.events_seen(),
        operations: vec![Bytes::from_static(LIE)],
    }
    .sign(Signature([7; 64]))
}
