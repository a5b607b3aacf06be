//! ZooKeeper's packets and records, as a client writes and reads them (`zookeeper.jute` of 3.9).

use bytes::{Buf, Bytes, BytesMut};
use troth_zookeeper::acl::Acl;
use troth_zookeeper::jute::{BadRecord, Input, Output};
use troth_zookeeper::opcode;

/// The number of an answer to a ping, and of an event.
const PING: i32 = -2;
const EVENT: i32 = -1;
/// The bytes of an answer before its record: number, transaction, error.
const HEAD: usize = 16;
/// The least that a name takes in a record, and an entry of an access control list.
const NAME: usize = 4;
const ENTRY: usize = 12;
/// The owner of a node with a time to live: 255, two bytes 0, and five of milliseconds.
const TTL_BITS: u32 = 40;
const TTL_MARK: i64 = -1 << 16;
const TTL_MOST: i64 = (1 << TTL_BITS) - 1;

/// A packet: its length, then what it is.
#[must_use]
pub fn framed(record: &[u8]) -> Bytes {
    let length = i32::try_from(record.len()).expect("what is asked is far shorter");
    Bytes::from([&length.to_be_bytes()[..], record].concat())
}

/// The first packet of a client (`ConnectRequest`): the last transaction that it has seen, milliseconds of silence that it
/// may keep, its session (0 for a new one) and the password of that.
#[must_use]
pub fn connect(seen: i64, timeout: i32, session: i64, password: &[u8]) -> Bytes {
    let mut out = Output::new();
    out.int(0).long(seen).int(timeout).long(session).buffer(password).boolean(false);
    framed(&out.finish())
}

/// A sign of life.
#[must_use]
pub fn ping() -> Bytes {
    let mut out = Output::new();
    out.int(PING).int(opcode::PING);
    framed(&out.finish())
}

/// A request: its number, what is asked for ([`opcode`]), and the record of that.
#[must_use]
pub fn request(xid: i32, code: i32, record: &[u8]) -> Bytes {
    let mut out = Output::new();
    out.int(xid).int(code);
    framed(&[&out.finish()[..], record].concat())
}

/// The answer to the first packet (`ConnectResponse`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Connected {
    /// Milliseconds of silence after which the session ends; 0 or less where it is over.
    pub timeout: i32,
    /// The session.
    pub session: i64,
    /// Its password.
    pub password: Bytes,
}

/// Reads the answer to the first packet.
///
/// # Errors
/// [`BadRecord`], as for all records here.
pub fn read_connected(packet: &Bytes) -> Result<Connected, BadRecord> {
    let mut input = Input::new(packet);
    let (_version, timeout, session) = (input.int()?, input.int()?, input.long()?);
    Ok(Connected { timeout, session, password: input.buffer()?.unwrap_or_default() })
}

/// What a server says once there is a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Packet {
    /// The answer to a sign of life.
    Pong,
    /// Something happened that is watched.
    Event {
        /// What (`Watcher.Event.EventType`).
        kind: i32,
        /// Where.
        path: String,
    },
    /// The answer to a request.
    Reply {
        /// The request's number.
        xid: i32,
        /// The last transaction that the server knew.
        zxid: i64,
        /// What failed; 0 for nothing.
        error: i32,
        /// The record.
        body: Bytes,
    },
}

/// Reads a packet.
///
/// # Errors
/// [`BadRecord`]
pub fn read_packet(packet: &Bytes) -> Result<Packet, BadRecord> {
    let mut input = Input::new(packet);
    let (xid, zxid, error) = (input.int()?, input.long()?, input.int()?);
    Ok(match xid {
        PING => Packet::Pong,
        EVENT => {
            let (kind, _state) = (input.int()?, input.int()?);
            Packet::Event { kind, path: input.text()?.unwrap_or_default() }
        }
        _ => Packet::Reply { xid, zxid, error, body: packet.slice(packet.len() - input.remaining()..) },
    })
}

/// What is told of a node (`Stat`), without times.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stat {
    /// The transaction that created it.
    pub created: i64,
    /// The one that changed its data last.
    pub modified: i64,
    /// Changes of its data.
    pub version: i32,
    /// Changes of its children.
    pub child_version: i32,
    /// Changes of its access control list.
    pub acl_version: i32,
    /// The session that it goes with, or how else it goes.
    pub owner: i64,
    /// Bytes of its data.
    pub length: i32,
    /// Its children.
    pub children: i32,
    /// The transaction that changed its children last.
    pub children_changed: i64,
}

/// How long a node stays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Until somebody deletes it.
    Persistent,
    /// As long as a session.
    Ephemeral,
    /// Until it has lost its last child.
    Container,
    /// So many milliseconds after its last change, without children.
    Ttl(i64),
}

impl Stat {
    /// Reads one.
    ///
    /// # Errors
    /// [`BadRecord`]
    pub fn read(input: &mut Input<'_>) -> Result<Self, BadRecord> {
        let (created, modified, _, _) = (input.long()?, input.long()?, input.long()?, input.long()?);
        let (version, child_version, acl_version) = (input.int()?, input.int()?, input.int()?);
        let (owner, length, children) = (input.long()?, input.int()?, input.int()?);
        let children_changed = input.long()?;
        Ok(Self {
            created,
            modified,
            version,
            child_version,
            acl_version,
            owner,
            length,
            children,
            children_changed,
        })
    }

    /// How the node goes, as its owner tells it. With extended types (3.5.4 and later) a first byte of 255 and two bytes 0
    /// stand before a time to live; no server with them has the number 255, so no session begins so.
    #[must_use]
    pub fn kind(&self) -> Kind {
        match self.owner {
            0 => Kind::Persistent,
            i64::MIN => Kind::Container,
            owner if owner >> TTL_BITS == TTL_MARK && owner & TTL_MOST != 0 => Kind::Ttl(owner & TTL_MOST),
            _ => Kind::Ephemeral,
        }
    }

    /// How many children were ever created: the number of the next sequential one. What is told is twice that, less the
    /// children that there are; its highest bit is lost by the doubling, so that a counter above 2³¹−1, whose names have a
    /// minus sign, is taken for one that is 2³¹ less.
    #[must_use]
    pub fn creations(&self) -> i32 {
        let twice = self.child_version.wrapping_add(self.children).cast_unsigned();
        (twice / 2).cast_signed()
    }
}

/// Reads a node's data, where it has any, and its stat (`GetDataResponse`).
///
/// # Errors
/// [`BadRecord`]
pub fn read_data(body: &Bytes) -> Result<(Option<Bytes>, Stat), BadRecord> {
    let mut input = Input::new(body);
    Ok((input.buffer()?, Stat::read(&mut input)?))
}

/// Reads a stat alone (`ExistsResponse`).
///
/// # Errors
/// [`BadRecord`]
pub fn read_stat(body: &Bytes) -> Result<Stat, BadRecord> {
    Stat::read(&mut Input::new(body))
}

/// Reads the names of children, and their parent's stat (`GetChildren2Response`).
///
/// # Errors
/// [`BadRecord`]
pub fn read_children(body: &Bytes) -> Result<(Vec<String>, Stat), BadRecord> {
    let mut input = Input::new(body);
    let names = input.vector(NAME, |input| input.text()?.ok_or(BadRecord))?.unwrap_or_default();
    Ok((names, Stat::read(&mut input)?))
}

/// Reads an access control list (`GetACLResponse`, without the stat).
///
/// # Errors
/// [`BadRecord`]
pub fn read_acl(body: &Bytes) -> Result<Vec<Acl>, BadRecord> {
    Ok(Input::new(body).vector(ENTRY, Acl::read)?.unwrap_or_default())
}

/// What comes off the front of a stream of packets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Frame {
    /// A packet.
    Packet(Bytes),
    /// One that is longer than what is taken: its first bytes and its length. The rest is passed over.
    TooLong(Bytes, usize),
}

/// Cuts a stream into packets, and holds no more of it than the longest one.
#[derive(Debug)]
pub struct Frames {
    buffer: BytesMut,
    most: usize,
    /// Bytes of a packet that is too long that are still to come.
    skip: usize,
}

impl Frames {
    /// For packets of at most so many bytes.
    #[must_use]
    pub fn new(most: usize) -> Self {
        Self { buffer: BytesMut::new(), most, skip: 0 }
    }

    /// Where what was received is put.
    pub fn buffer(&mut self) -> &mut BytesMut {
        &mut self.buffer
    }

    /// Takes the next packet, if it is there whole.
    ///
    /// # Errors
    /// [`BadRecord`] where a length is negative.
    pub fn take_next(&mut self) -> Result<Option<Frame>, BadRecord> {
        let passed = self.skip.min(self.buffer.len());
        self.buffer.advance(passed);
        self.skip -= passed;
        if self.skip > 0 {
            return Ok(None);
        }
        let Some(length) = self.buffer.first_chunk::<4>() else { return Ok(None) };
        let length = usize::try_from(i32::from_be_bytes(*length)).map_err(|_| BadRecord)?;
        let wanted = if length > self.most { HEAD.min(length) } else { length };
        if self.buffer.len() < 4 + wanted {
            return Ok(None);
        }
        self.buffer.advance(4);
        let taken = self.buffer.split_to(wanted).freeze();
        if length <= self.most {
            return Ok(Some(Frame::Packet(taken)));
        }
        self.skip = length - wanted;
        Ok(Some(Frame::TooLong(taken, length)))
    }
}
