//! What clients and replicas say to each other. Connections authenticate the replica to the
//! client and the client to the replica; frames carry the client's signature besides, because
//! replicas show them to each other.

use crate::{
    AttestedRead, AttestedReply, ClientId, Digest, Frame, Hasher, Malformed, Reader, Renewed, Seq, View,
    Wire, put_bytes, put_list,
};
use bytes::Bytes;
use std::sync::Arc;

/// The most results of one reply; a bound for the decoder.
const MAX_RESULTS: usize = 1 << 16;
/// The most bytes of one result or event; a bound for the decoder.
const MAX_RESULT_BYTES: usize = 1 << 26;

/// From a client to a replica.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ToReplica {
    /// Order this frame.
    ///
    /// On the wire one that wishes for no answer, and one that nobody else is sent, have kinds of their own, which releases
    /// before them take for no messages.
    Request {
        /// The frame.
        frame: Arc<Frame>,
        /// What this replica is to answer.
        wish: Wish,
    },
    /// Answer this read from the current state.
    Read(Read),
}

/// What a client wants of a replica that it sends a frame. Each replica is told for itself, and nobody signs it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Wish {
    /// The result where the replica is the designated one, else its digest.
    #[default]
    Usual,
    /// The result, whoever is designated, and the events that the client lacks: for a frame that is sent again.
    Full,
    /// No answer, until the frame is sent again with another wish: enough others are asked.
    Nothing,
    /// The same as usual; and nobody else was sent the frame, so that a primary shows it to the others when it proposes it.
    Alone,
}

/// A read that changes nothing, answered without ordering where enough replicas agree.
///
/// On the wire one with `least` has a kind of its own, which releases before it take for no message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Read {
    /// The client that reads.
    pub client: ClientId,
    /// The client's number for the read: its own count, apart from frames.
    pub number: u64,
    /// What the answer must be attested under, where replies prove their place: nobody else could foresee it.
    pub nonce: Option<Digest>,
    /// The batch that the answer must reflect at least, for a *recent* read: any final state that does is good enough.
    /// `None` for one that must show the present. Not beside a nonce, which proves the present.
    pub least: Option<Seq>,
    /// The operation, as the application understands it.
    pub operation: Bytes,
}

/// From a replica to a client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ToClient {
    /// The outcome of a frame.
    Reply(Reply),
    /// The outcome of a read.
    ReadReply(ReadReply),
    /// Something the service tells the client on its own, in order.
    Event(Event),
    /// Why this replica will not do what was asked. One replica's word: a client believes it only
    /// from f+1.
    Refusal(Refusal),
    /// The outcome of a frame that was executed before its place was final. Its view counts: a quorum of these
    /// that agree, and are of one view, is as good as f+1 final ones.
    Tentative(Reply),
    /// The outcome of a frame, where replies prove the frame's place.
    Attested(AttestedReply),
    /// The outcome of a read, where replies prove their place.
    AttestedRead(AttestedRead),
}

impl ToClient {
    /// How many kinds there are; the first byte of a message is its kind, from 0. A later release may send
    /// others.
    pub const KINDS: u8 = 9;

    /// The client it is for.
    #[must_use]
    pub fn client(&self) -> ClientId {
        match self {
            Self::Reply(reply) | Self::Tentative(reply) | Self::Attested(AttestedReply { reply, .. }) => {
                reply.client
            }
            Self::ReadReply(reply) | Self::AttestedRead(AttestedRead { reply, .. }) => reply.client,
            Self::Event(event) => event.client,
            Self::Refusal(refusal) => refusal.client,
        }
    }
}

/// The result of a frame, in full or as a digest (guide.md §1.1).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReplyBody {
    /// One result per operation.
    Full(Vec<Bytes>),
    /// The digest of the results.
    Digest(Digest),
}

impl ReplyBody {
    /// Its length in bytes, about.
    #[must_use]
    pub fn size(&self) -> usize {
        match self {
            Self::Full(results) => results.iter().map(Bytes::len).sum(),
            Self::Digest(_) => size_of::<Digest>(),
        }
    }
}

/// The outcome of a frame. A client accepts it when f+1 distinct replicas agree on
/// [`Reply::vote`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reply {
    /// The client it is for.
    pub client: ClientId,
    /// The frame's number.
    pub number: u64,
    /// Where it was ordered.
    pub seq: Seq,
    /// The replica's view: a hint where the primary is, outside the vote. Of a tentative reply, the view in which
    /// the batch prepared.
    pub view: View,
    /// The client's outbox held events up to this index after the frame was executed; the client
    /// delivers those before it shows the reply.
    pub events_up_to: u64,
    /// The results.
    pub body: ReplyBody,
}

impl Reply {
    /// The digest of a list of results.
    #[must_use]
    pub fn results_digest(results: &[Bytes]) -> Digest {
        let mut hasher = Hasher::new("troth/results/v1");
        hasher.number(results.len() as u64);
        for result in results {
            hasher.bytes(result);
        }
        hasher.finish()
    }

    /// What replies must agree on: everything but the view.
    #[must_use]
    pub fn vote(&self) -> Digest {
        let results = match &self.body {
            ReplyBody::Full(results) => Self::results_digest(results),
            ReplyBody::Digest(digest) => *digest,
        };
        let mut hasher = Hasher::new("troth/reply/v1");
        hasher.number(self.client.0).number(self.number).number(self.seq.0).number(self.events_up_to);
        hasher.digest(&results);
        hasher.finish()
    }
}

/// The outcome of a read that was not ordered. A client accepts it when as many replicas as its protocol demands (all of 2f+1, or
/// 2f+1 of 3f+1; a quorum, where each proves the end of its history; f+1 where it need only be recent) agree on result and `events_up_to`; otherwise it has the operation ordered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadReply {
    /// The client it is for.
    pub client: ClientId,
    /// The read's number.
    pub number: u64,
    /// As in [`Reply`].
    pub events_up_to: u64,
    /// The result in full from the designated replica, its digest from the others; exactly one
    /// result.
    pub body: ReplyBody,
}

/// An event of a client's outbox. A client delivers it on f+1 equal copies, in index order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// The client it is for.
    pub client: ClientId,
    /// Its place in the client's outbox, from 1, without gaps.
    pub index: u64,
    /// The batch that caused it.
    pub seq: Seq,
    /// What happened, as the application encodes it.
    pub payload: Bytes,
}

/// Why a replica refuses a frame or a read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum RefusalReason {
    /// The frame, an operation or a count is over the group's limits.
    TooLarge,
    /// The client is unknown or the signature does not verify.
    Unauthorised,
    /// The number was executed already and its result is no longer kept, or was overtaken.
    TooOld,
    /// The client has more outstanding than its window allows.
    WindowFull,
    /// The replica cannot answer reads now: it restarted and has not caught up.
    NotReady,
    /// The client was removed from the group.
    Removed,
}

/// A refusal of the client's frame or read with this number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The client it is for.
    pub client: ClientId,
    /// The frame's or read's number.
    pub number: u64,
    /// Whether a read was refused, not a frame.
    pub read: bool,
    /// Why.
    pub reason: RefusalReason,
}

impl Wire for ToReplica {
    fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Self::Request { frame, wish: wish @ (Wish::Nothing | Wish::Alone) } => {
                out.push(if *wish == Wish::Nothing { 4 } else { 5 });
                frame.encode(out);
            }
            Self::Request { frame, wish } => {
                out.push(0);
                frame.encode(out);
                (*wish == Wish::Full).encode(out);
            }
            Self::Read(read) => {
                out.push(match (&read.nonce, read.least) {
                    (None, None) => 1,
                    (Some(_), _) => 2,
                    (None, Some(_)) => 3,
                });
                read.client.encode(out);
                read.number.encode(out);
                match (&read.nonce, read.least) {
                    (None, None) => {}
                    (Some(nonce), _) => nonce.encode(out),
                    (None, Some(least)) => least.encode(out),
                }
                put_bytes(out, &read.operation);
            }
        }
    }
    fn decode(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        match u8::decode(reader)? {
            0 => {
                let frame = Wire::decode(reader)?;
                let wish = if bool::decode(reader)? { Wish::Full } else { Wish::Usual };
                Ok(Self::Request { frame, wish })
            }
            4 => Ok(Self::Request { frame: Wire::decode(reader)?, wish: Wish::Nothing }),
            5 => Ok(Self::Request { frame: Wire::decode(reader)?, wish: Wish::Alone }),
            kind @ 1..=3 => Ok(Self::Read(Read {
                client: Wire::decode(reader)?,
                number: Wire::decode(reader)?,
                nonce: if kind == 2 { Some(Wire::decode(reader)?) } else { None },
                least: if kind == 3 { Some(Wire::decode(reader)?) } else { None },
                // A copy, as of a frame's operations: it may wait.
                operation: Bytes::copy_from_slice(&reader.bytes("a read", MAX_RESULT_BYTES)?),
            })),
            other => Err(Malformed::Tag("a client's message", u64::from(other))),
        }
    }
}

struct ResultBytes(Bytes);

impl Wire for ResultBytes {
    fn encode(&self, out: &mut Vec<u8>) {
        put_bytes(out, &self.0);
    }
    fn decode(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        Ok(Self(reader.bytes("a result", MAX_RESULT_BYTES)?))
    }
}

impl Wire for ReplyBody {
    fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Self::Full(results) => {
                out.push(0);
                let wrapped: Vec<_> = results.iter().cloned().map(ResultBytes).collect();
                put_list(out, &wrapped);
            }
            Self::Digest(digest) => {
                out.push(1);
                digest.encode(out);
            }
        }
    }
    fn decode(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        match u8::decode(reader)? {
            0 => {
                let list: Vec<ResultBytes> = reader.list("a reply's results", MAX_RESULTS)?;
                Ok(Self::Full(list.into_iter().map(|result| result.0).collect()))
            }
            1 => Ok(Self::Digest(Wire::decode(reader)?)),
            other => Err(Malformed::Tag("a reply's body", u64::from(other))),
        }
    }
}

impl Wire for Reply {
    fn encode(&self, out: &mut Vec<u8>) {
        self.client.encode(out);
        self.number.encode(out);
        self.seq.encode(out);
        self.view.encode(out);
        self.events_up_to.encode(out);
        self.body.encode(out);
    }
    fn decode(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        Ok(Self {
            client: Wire::decode(reader)?,
            number: Wire::decode(reader)?,
            seq: Wire::decode(reader)?,
            view: Wire::decode(reader)?,
            events_up_to: Wire::decode(reader)?,
            body: Wire::decode(reader)?,
        })
    }
}

impl Wire for ReadReply {
    fn encode(&self, out: &mut Vec<u8>) {
        self.client.encode(out);
        self.number.encode(out);
        self.events_up_to.encode(out);
        self.body.encode(out);
    }
    fn decode(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        Ok(Self {
            client: Wire::decode(reader)?,
            number: Wire::decode(reader)?,
            events_up_to: Wire::decode(reader)?,
            body: Wire::decode(reader)?,
        })
    }
}

impl Wire for RefusalReason {
    fn encode(&self, out: &mut Vec<u8>) {
        out.push(match self {
            Self::TooLarge => 0,
            Self::Unauthorised => 1,
            Self::TooOld => 2,
            Self::Removed => 5,
            Self::WindowFull => 3,
            Self::NotReady => 4,
        });
    }
    fn decode(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        Ok(match u8::decode(reader)? {
            0 => Self::TooLarge,
            1 => Self::Unauthorised,
            2 => Self::TooOld,
            5 => Self::Removed,
            3 => Self::WindowFull,
            4 => Self::NotReady,
            other => return Err(Malformed::Tag("a refusal's reason", u64::from(other))),
        })
    }
}

impl Wire for ToClient {
    fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Self::Reply(reply) => {
                out.push(0);
                reply.encode(out);
            }
            Self::ReadReply(reply) => {
                out.push(1);
                reply.encode(out);
            }
            Self::Event(event) => {
                out.push(2);
                event.client.encode(out);
                event.index.encode(out);
                event.seq.encode(out);
                put_bytes(out, &event.payload);
            }
            Self::Refusal(refusal) => {
                out.push(3);
                refusal.client.encode(out);
                refusal.number.encode(out);
                refusal.read.encode(out);
                refusal.reason.encode(out);
            }
            Self::Tentative(reply) => {
                out.push(4);
                reply.encode(out);
            }
            // As earlier releases write it, where none was renewed: there they know all components.
            Self::Attested(AttestedReply { reply, place, renewed }) => {
                out.push(if renewed.is_empty() { 5 } else { 7 });
                reply.encode(out);
                place.encode(out);
                encode_renewed(renewed, out);
            }
            Self::AttestedRead(AttestedRead { reply, end, renewed }) => {
                out.push(if renewed.is_empty() { 6 } else { 8 });
                reply.encode(out);
                end.encode(out);
                encode_renewed(renewed, out);
            }
        }
    }
    fn decode(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        Ok(match u8::decode(reader)? {
            0 => Self::Reply(Wire::decode(reader)?),
            1 => Self::ReadReply(Wire::decode(reader)?),
            2 => Self::Event(Event {
                client: Wire::decode(reader)?,
                index: Wire::decode(reader)?,
                seq: Wire::decode(reader)?,
                payload: reader.bytes("an event", MAX_RESULT_BYTES)?,
            }),
            3 => Self::Refusal(Refusal {
                client: Wire::decode(reader)?,
                number: Wire::decode(reader)?,
                read: Wire::decode(reader)?,
                reason: Wire::decode(reader)?,
            }),
            4 => Self::Tentative(Wire::decode(reader)?),
            kind @ (5 | 7) => Self::Attested(AttestedReply {
                reply: Wire::decode(reader)?,
                place: Wire::decode(reader)?,
                renewed: if kind == 7 { Renewed::decode_all(reader)? } else { Vec::new() },
            }),
            kind @ (6 | 8) => Self::AttestedRead(AttestedRead {
                reply: Wire::decode(reader)?,
                end: Wire::decode(reader)?,
                renewed: if kind == 8 { Renewed::decode_all(reader)? } else { Vec::new() },
            }),
            other => return Err(Malformed::Tag("a replica's message", u64::from(other))),
        })
    }
}

fn encode_renewed(renewed: &[Renewed], out: &mut Vec<u8>) {
    if !renewed.is_empty() {
        Renewed::encode_all(renewed, out);
    }
}
