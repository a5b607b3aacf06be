//! What a gateway says to the service and hears from it. The requests of ZooKeeper's clients travel inside as they came.

use crate::acl::{Id, MAX_ID};
use crate::path::MAX_PATH;
use bytes::Bytes;
use troth_auth::PublicKey;
use troth_types::{Malformed, Reader, Signature, Time, Wire, put_bytes, put_list};

/// The longest body of a request or a reply, in bytes: ZooKeeper's own packet limit is half of it.
pub const MAX_BODY: usize = 2 << 20;
/// The most bytes of what a read shows, and of what several in one request show together. A request that would show more
/// fails as a whole, with [`Code::MarshallingError`](crate::Code::MarshallingError).
pub const MAX_SHOWN: usize = MAX_BODY;
/// The most identities that a gateway attests at once.
const MAX_ATTESTED: usize = 64;
/// The most sessions touched by one operation.
pub const MAX_TOUCHED: usize = 4096;
/// The most requests of one [`Operation::Reads`].
pub const MAX_READS: usize = 64;

/// A session as one connection of a client to one gateway has it. Attaching it anew, there or elsewhere, makes another one,
/// and nothing that is said for an earlier one counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Attachment {
    /// The session.
    pub session: i64,
    /// Which of its attachments, counted from 1.
    pub number: u64,
}

impl Wire for Attachment {
    fn encode(&self, out: &mut Vec<u8>) {
        self.session.cast_unsigned().encode(out);
        self.number.encode(out);
    }
    fn decode(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        Ok(Self { session: u64::decode(reader)?.cast_signed(), number: Wire::decode(reader)? })
    }
}

/// A request of a client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Asked {
    /// The operation ([`opcode`](crate::opcode)).
    pub code: i32,
    /// Its record.
    pub body: Bytes,
}

/// What one of several requests is answered with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Replied {
    /// What failed, in ZooKeeper's numbers; 0 for nothing.
    pub error: i32,
    /// The record of the response; empty where `error` is not 0.
    pub body: Bytes,
}

/// What a gateway asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Opens a session.
    Open {
        /// Milliseconds without a sign of life after which it ends, as the client would like it.
        timeout: u32,
        /// The key that checks proofs of its password ([`key_of`](crate::key_of)).
        key: PublicKey,
        /// Who the client is, as far as the gateway sees it (`ip`, `x509`, `sasl`).
        who: Vec<Id>,
    },
    /// Attaches a session to a new connection.
    Attach {
        /// The session.
        session: i64,
        /// That the client knows its password ([`prove`](crate::prove)).
        proof: Signature,
        /// As for [`Operation::Open`].
        timeout: u32,
        /// As for [`Operation::Open`]; what the session proved before is forgotten.
        who: Vec<Id>,
    },
    /// The gateway has found out who else the client is (`sasl`).
    Identify {
        /// Whose session.
        at: Attachment,
        /// Who.
        id: Id,
    },
    /// A request of a client.
    Request {
        /// Whose session.
        at: Attachment,
        /// The operation ([`opcode`](crate::opcode)).
        code: i32,
        /// Its record.
        body: Bytes,
    },
    /// These clients have given signs of life; there may be none, where a gateway would know what there is.
    Touch(Vec<Attachment>),
    /// Requests of a client each of which shows one node, or who the client is ([`looks_at_one`]): all show the same state.
    Reads {
        /// Whose session.
        at: Attachment,
        /// At most [`MAX_READS`].
        reads: Vec<Asked>,
    },
}

impl Operation {
    /// The encoding of an [`Operation::Request`] before its request: the tag and the attachment.
    const REQUEST_HEAD: usize = 1 + 16;

    /// Encoded requests of one attachment as one [`Operation::Reads`], encoded. There is none of operations that are something
    /// else, or of different sessions, or of too many.
    #[must_use]
    pub fn together<'a>(requests: impl ExactSizeIterator<Item = &'a Bytes> + Clone) -> Option<Bytes> {
        let head = requests.clone().next()?.get(..Self::REQUEST_HEAD).filter(|head| head[0] == REQUEST)?;
        if requests.len() > MAX_READS {
            return None;
        }
        let bytes: usize = requests.clone().map(|request| request.len()).sum();
        let mut out = Vec::with_capacity(bytes + Self::REQUEST_HEAD + 4);
        out.push(READS);
        out.extend_from_slice(&head[1..]);
        u32::try_from(requests.len()).expect("few").encode(&mut out);
        for request in requests {
            out.extend_from_slice(request.strip_prefix(head)?);
        }
        Some(Bytes::from(out))
    }
}

/// What a gateway asks for as it is sent to the group: with the gateway's time of day.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Said {
    /// When it is sent. The group does nothing of what comes from its future by more than half of the grace of sessions:
    /// a primary may date a batch back, and nobody's sign of life with it.
    pub when: Time,
    /// What.
    pub operation: Operation,
}

impl Said {
    /// The bytes that [`Said::wire`] adds to those of an operation.
    pub const OVERHEAD: usize = 8;

    /// An operation's bytes as they are sent at this time.
    #[must_use]
    pub fn wire(when: Time, operation: &[u8]) -> Bytes {
        let mut out = Vec::with_capacity(Self::OVERHEAD + operation.len());
        when.encode(&mut out);
        out.extend_from_slice(operation);
        Bytes::from(out)
    }
}

/// What there is, for whoever monitors the group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Tally {
    /// The agreed time, in microseconds.
    pub time: Time,
    /// Nodes, those that the service itself keeps among them.
    pub nodes: u64,
    /// Those of them that go with a session.
    pub ephemerals: u64,
    /// Bytes of the paths and data of all nodes.
    pub bytes: u64,
    /// Paths that sessions watch: of each session those that it does, in whichever way.
    pub watches: u64,
}

/// What it answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// The session is open, or attached.
    Attached {
        /// As what.
        at: Attachment,
        /// Milliseconds without a sign of life after which it ends.
        timeout: u32,
    },
    /// To a request. `body` is empty where `error` is not 0.
    Reply {
        /// The last transaction that the answer reflects.
        zxid: i64,
        /// What failed, in ZooKeeper's numbers; 0 for nothing.
        error: i32,
        /// The record of the response.
        body: Bytes,
    },
    /// To [`Operation::Reads`], to each of its requests. Where they would show more than [`MAX_SHOWN`] together there is a
    /// [`Answer::Reply`] that says so.
    Replies {
        /// The last transaction that all of them reflect.
        zxid: i64,
        /// In the order of the requests.
        replies: Vec<Replied>,
    },
    /// To [`Operation::Touch`].
    Heard {
        /// Those of the touched that are over: ended, or attached anew.
        over: Vec<Attachment>,
        /// What there is.
        tally: Tally,
    },
    /// Nothing was done: what was said is ahead of the agreed time, which this is, by more than can be borne. The gateway's
    /// clock is wrong, or a faulty primary has dated the batch back.
    Ahead(Time),
}

impl Answer {
    /// The agreed time, where nothing was done because of it.
    #[must_use]
    pub fn is_ahead_of(&self) -> Option<Time> {
        match self {
            Self::Ahead(agreed) => Some(*agreed),
            Self::Attached { .. } | Self::Reply { .. } | Self::Replies { .. } | Self::Heard { .. } => None,
        }
    }
}

/// What it says of its own accord.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Notice {
    /// Something happened that a session watches.
    Fired {
        /// Whose watch.
        at: Attachment,
        /// What happened ([`Kind`](crate::Kind)).
        kind: i32,
        /// Where.
        path: String,
        /// By which transaction.
        zxid: i64,
    },
    /// The session's time is over, or it is attached anew.
    Over(Attachment),
}

fn text(reader: &mut Reader<'_>, field: &'static str, most: usize) -> Result<String, Malformed> {
    let bytes = reader.bytes(field, most)?;
    String::from_utf8(bytes.to_vec()).map_err(|_| Malformed::Invalid("a text is UTF-8"))
}

impl Wire for Asked {
    fn encode(&self, out: &mut Vec<u8>) {
        self.code.cast_unsigned().encode(out);
        put_bytes(out, &self.body);
    }
    fn decode(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        Ok(Self { code: u32::decode(reader)?.cast_signed(), body: reader.bytes("a request", MAX_BODY)? })
    }
}

impl Wire for Replied {
    fn encode(&self, out: &mut Vec<u8>) {
        self.error.cast_unsigned().encode(out);
        put_bytes(out, &self.body);
    }
    fn decode(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        Ok(Self {
            error: u32::decode(reader)?.cast_signed(),
            body: reader.bytes("a response", 2 * MAX_BODY)?,
        })
    }
}

/// The tags of operations that hold requests of clients.
const REQUEST: u8 = 3;
const READS: u8 = 5;

impl Wire for Operation {
    fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Self::Open { timeout, key, who } => {
                out.push(0);
                timeout.encode(out);
                out.extend_from_slice(&key.0);
                put_list(out, who);
            }
            Self::Attach { session, proof, timeout, who } => {
                out.push(1);
                session.cast_unsigned().encode(out);
                proof.encode(out);
                timeout.encode(out);
                put_list(out, who);
            }
            Self::Identify { at, id } => {
                out.push(2);
                at.encode(out);
                id.encode(out);
            }
            Self::Request { at, code, body } => {
                out.push(REQUEST);
                at.encode(out);
                code.cast_unsigned().encode(out);
                put_bytes(out, body);
            }
            Self::Touch(sessions) => {
                out.push(4);
                put_list(out, sessions);
            }
            Self::Reads { at, reads } => {
                out.push(READS);
                at.encode(out);
                put_list(out, reads);
            }
        }
    }

    fn decode(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        Ok(match u8::decode(reader)? {
            0 => Self::Open {
                timeout: Wire::decode(reader)?,
                key: PublicKey(reader.array()?),
                who: reader.list("attested identities", MAX_ATTESTED)?,
            },
            1 => Self::Attach {
                session: u64::decode(reader)?.cast_signed(),
                proof: Wire::decode(reader)?,
                timeout: Wire::decode(reader)?,
                who: reader.list("attested identities", MAX_ATTESTED)?,
            },
            2 => Self::Identify { at: Wire::decode(reader)?, id: Wire::decode(reader)? },
            REQUEST => {
                let at = Wire::decode(reader)?;
                let Asked { code, body } = Wire::decode(reader)?;
                Self::Request { at, code, body }
            }
            4 => Self::Touch(reader.list("touched sessions", MAX_TOUCHED)?),
            READS => Self::Reads { at: Wire::decode(reader)?, reads: reader.list("reads", MAX_READS)? },
            other => return Err(Malformed::Tag("an operation", u64::from(other))),
        })
    }
}

impl Wire for Said {
    fn encode(&self, out: &mut Vec<u8>) {
        self.when.encode(out);
        self.operation.encode(out);
    }

    fn decode(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        Ok(Self { when: Wire::decode(reader)?, operation: Wire::decode(reader)? })
    }
}

impl Wire for Tally {
    fn encode(&self, out: &mut Vec<u8>) {
        self.time.encode(out);
        for number in [self.nodes, self.ephemerals, self.bytes, self.watches] {
            number.encode(out);
        }
    }

    fn decode(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        Ok(Self {
            time: Wire::decode(reader)?,
            nodes: Wire::decode(reader)?,
            ephemerals: Wire::decode(reader)?,
            bytes: Wire::decode(reader)?,
            watches: Wire::decode(reader)?,
        })
    }
}

impl Wire for Answer {
    fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Self::Attached { at, timeout } => {
                out.push(0);
                at.encode(out);
                timeout.encode(out);
            }
            Self::Reply { zxid, error, body } => {
                out.push(1);
                zxid.cast_unsigned().encode(out);
                error.cast_unsigned().encode(out);
                put_bytes(out, body);
            }
            Self::Heard { over, tally } => {
                out.push(2);
                put_list(out, over);
                tally.encode(out);
            }
            Self::Ahead(agreed) => {
                out.push(3);
                agreed.encode(out);
            }
            Self::Replies { zxid, replies } => {
                out.push(4);
                zxid.cast_unsigned().encode(out);
                put_list(out, replies);
            }
        }
    }

    fn decode(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        Ok(match u8::decode(reader)? {
            0 => Self::Attached { at: Wire::decode(reader)?, timeout: Wire::decode(reader)? },
            1 => Self::Reply {
                zxid: u64::decode(reader)?.cast_signed(),
                error: u32::decode(reader)?.cast_signed(),
                body: reader.bytes("a response", 2 * MAX_BODY)?,
            },
            2 => Self::Heard {
                over: reader.list("sessions that are over", MAX_TOUCHED)?,
                tally: Wire::decode(reader)?,
            },
            3 => Self::Ahead(Wire::decode(reader)?),
            4 => Self::Replies {
                zxid: u64::decode(reader)?.cast_signed(),
                replies: reader.list("replies", MAX_READS)?,
            },
            other => return Err(Malformed::Tag("an answer", u64::from(other))),
        })
    }
}

impl Wire for Notice {
    fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Self::Fired { at, kind, path, zxid } => {
                out.push(0);
                at.encode(out);
                kind.cast_unsigned().encode(out);
                put_bytes(out, path.as_bytes());
                zxid.cast_unsigned().encode(out);
            }
            Self::Over(at) => {
                out.push(1);
                at.encode(out);
            }
        }
    }

    fn decode(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        Ok(match u8::decode(reader)? {
            0 => Self::Fired {
                at: Wire::decode(reader)?,
                kind: u32::decode(reader)?.cast_signed(),
                path: text(reader, "a path", MAX_PATH.max(MAX_ID))?,
                zxid: u64::decode(reader)?.cast_signed(),
            },
            1 => Self::Over(Wire::decode(reader)?),
            other => return Err(Malformed::Tag("a notice", u64::from(other))),
        })
    }
}
