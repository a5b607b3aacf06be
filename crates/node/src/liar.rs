//! A replica that lies, for the demonstration: it does what its trusted component cannot stop.
//!
//! To clients it sends wrong results and invented events. To replicas it sends corrupted copies of
//! its certified messages beside or instead of the true ones, a different STATUS to each, wrong frame
//! bodies, and rubbish; what it should show to one it shows to another. As primary it withholds its
//! proposals from half of the others. Only in builds with the feature `demo-adversary`.

use bytes::Bytes;
use std::sync::Arc;
use troth_core::PeerMessage;
use troth_minbft::{Body, Message, Status};
use troth_types::{
    Digest, Event, Frame, Group, ReadReply, ReplicaId, Reply, ReplyBody, Seq, Signature, ToClient, View, Wire,
};

/// What the liar puts in the place of every result.
const LIE: &[u8] = b"a lie";

/// The liar's state: enough to tell every listener something else.
pub(crate) struct Liar {
    me: ReplicaId,
    replicas: usize,
    told: u64,
    kept_back: Option<Bytes>,
}

impl Liar {
    pub(crate) fn new(me: ReplicaId, group: &Group) -> Self {
        Self { me, replicas: group.n(), told: 0, kept_back: None }
    }

    /// What goes to a replica instead of the encoded message.
    pub(crate) fn lie_to_replica(&mut self, to: ReplicaId, honest: Bytes) -> Vec<Bytes> {
        self.told += 1;
        let Ok(message) = PeerMessage::<Message>::from_wire(&honest) else { return vec![honest] };
        match message {
            // Now and then the truth, or it would never hear what it missed before it came.
            PeerMessage::Protocol(Message::Status(_)) if self.told.is_multiple_of(3) => vec![honest],
            PeerMessage::Protocol(Message::Status(status)) => {
                let lie = Message::Status(self.other_status(status, to));
                vec![PeerMessage::Protocol(lie).to_wire()]
            }
            PeerMessage::Protocol(Message::Certified(certified)) => {
                let is_proposal = matches!(certified.body, Body::Prepare(_) | Body::NewView(_));
                let corrupted = self.corrupt(&honest);
                let stale = self.kept_back.replace(honest.clone());
                if is_proposal && self.withholds_from(to) {
                    // One half hears of the proposal only what does not verify.
                    return vec![corrupted];
                }
                // The copy comes first, then the true one, then an old one: order and repetition are
                // lies too.
                [Some(corrupted), Some(honest), stale].into_iter().flatten().collect()
            }
            PeerMessage::Frames(frames) => {
                let wrong = frames.iter().map(|frame| Arc::new(other_frame(frame))).collect();
                vec![PeerMessage::<Message>::Frames(wrong).to_wire(), rubbish(self.told)]
            }
            PeerMessage::StatePiece(mut piece) => {
                piece.content = Bytes::from_static(LIE);
                vec![PeerMessage::<Message>::StatePiece(piece).to_wire()]
            }
            PeerMessage::Protocol(_) | PeerMessage::FetchFrames(_) | PeerMessage::FetchState(_) => {
                vec![rubbish(self.told), honest]
            }
        }
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
            ToClient::ReadReply(mut reply) => {
                reply.body = self.other_body(&reply.body);
                ToClient::ReadReply(reply)
            }
            ToClient::Event(event) => ToClient::Event(Event { payload: Bytes::from_static(LIE), ..event }),
            // It answers where a correct replica would say that it cannot yet.
            ToClient::Refusal(refusal) if refusal.read => ToClient::ReadReply(ReadReply {
                client: refusal.client,
                number: refusal.number,
                events_up_to: 0,
                body: ReplyBody::Full(vec![Bytes::from_static(LIE)]),
            }),
            refusal @ ToClient::Refusal(_) => refusal,
        }
    }

    /// Half of the others, a different half for each liar.
    fn withholds_from(&self, to: ReplicaId) -> bool {
        (usize::from(to.0) + self.replicas - usize::from(self.me.0)).is_multiple_of(2)
    }

    /// A well-formed message whose content its certificate does not cover.
    fn corrupt(&self, honest: &Bytes) -> Bytes {
        let mut bytes = honest.to_vec();
        let at = 16 + usize::try_from(self.told % 24).expect("below 24");
        if let Some(byte) = bytes.get_mut(at) {
            *byte ^= 0x5a;
        }
        Bytes::from(bytes)
    }

    /// A status that claims something else to every listener.
    fn other_status(&self, status: Status, to: ReplicaId) -> Status {
        let claim = u64::from(to.0) * 1000 + self.told;
        Status {
            view: View(status.view.0 + claim % 3),
            processed: status
                .processed
                .iter()
                .map(|value| value.wrapping_add(u128::from(claim % 5)))
                .collect(),
            stable: Seq(claim),
            executed: Seq(claim * 2),
            round: claim,
            wants: None,
        }
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

fn rubbish(number: u64) -> Bytes {
    let mut bytes = number.to_le_bytes().to_vec();
    bytes.extend_from_slice(&Digest::ZERO.0);
    Bytes::from(bytes)
}
