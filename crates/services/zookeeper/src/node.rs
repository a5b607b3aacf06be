//! What is kept of a node.

use crate::acl::{Acl, MAX_KEPT, perms};
use crate::jute::Output;
use bytes::Bytes;
use troth_types::{Malformed, Reader, Wire, put_bytes, put_list};

/// Data up to this size stands in the node's own entry, larger data in one of its own: a node's entry is written anew with
/// every child that comes and goes.
const HERE: usize = 1024;
/// What an entry may claim; its writer keeps below.
const DECODE_BOUND: usize = 1 << 26;

/// The owner of a container.
pub(crate) const CONTAINER: i64 = i64::MIN;
/// The owner of a node with a time to live has this in its first byte.
const TTL_MARK: i64 = 0xff << 56;
/// The longest time to live, in milliseconds.
pub(crate) const MAX_TTL: i64 = (1 << 40) - 1;

/// How long a node stays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stay {
    /// Until somebody deletes it.
    Persistent,
    /// As long as a session.
    Ephemeral(i64),
    /// Until some time after its last child is gone.
    Container,
    /// So many milliseconds after its last change, without children.
    Ttl(i64),
}

impl Stay {
    /// As it is kept.
    fn owner(self) -> i64 {
        match self {
            Self::Persistent => 0,
            Self::Ephemeral(session) => session,
            Self::Container => CONTAINER,
            Self::Ttl(millis) => TTL_MARK | millis,
        }
    }

    /// As `ephemeralOwner` says it to clients: ZooKeeper tells them of no other nodes how long they stay.
    fn shown_owner(self) -> i64 {
        match self {
            Self::Ephemeral(session) => session,
            Self::Persistent | Self::Container | Self::Ttl(_) => 0,
        }
    }

    fn of(owner: i64) -> Self {
        match owner {
            0 => Self::Persistent,
            CONTAINER => Self::Container,
            owner if owner & TTL_MARK == TTL_MARK => Self::Ttl(owner & MAX_TTL),
            session => Self::Ephemeral(session),
        }
    }
}

/// Where a node's data are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Data {
    /// There are none, which clients tell from empty ones.
    Absent,
    Here(Bytes),
    /// In an entry of their own; so many bytes.
    Apart(u32),
}

impl Data {
    pub(crate) fn length(&self) -> usize {
        match self {
            Self::Absent => 0,
            Self::Here(bytes) => bytes.len(),
            Self::Apart(length) => *length as usize,
        }
    }

    /// Whether data of this size get an entry of their own.
    pub(crate) fn is_apart(length: usize) -> bool {
        length > HERE
    }
}

/// A node. Times are milliseconds since the Unix epoch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Node {
    pub(crate) created_zxid: i64,
    pub(crate) modified_zxid: i64,
    pub(crate) created: i64,
    pub(crate) modified: i64,
    pub(crate) version: i32,
    /// Children that were ever created. What clients see counts those deleted, too.
    pub(crate) creations: i32,
    pub(crate) acl_version: i32,
    pub(crate) stay: Stay,
    pub(crate) children_zxid: i64,
    pub(crate) children: u32,
    /// The agreed time (microseconds) at which it is looked at whether the node goes; 0 for none.
    pub(crate) due: u64,
    pub(crate) acl: Vec<Acl>,
    pub(crate) data: Data,
}

impl Node {
    /// A node that was created now.
    pub(crate) fn new(zxid: i64, millis: i64, stay: Stay, acl: Vec<Acl>, data: Data) -> Self {
        Self {
            created_zxid: zxid,
            modified_zxid: zxid,
            created: millis,
            modified: millis,
            version: 0,
            creations: 0,
            acl_version: 0,
            stay,
            children_zxid: zxid,
            children: 0,
            due: 0,
            acl,
            data,
        }
    }

    /// The record `Stat`.
    pub(crate) fn stat(&self, out: &mut Output) {
        let children = i32::try_from(self.children).unwrap_or(i32::MAX);
        // Both creations and deletions change it: twice those created less those that are there.
        let child_version = self.creations.wrapping_mul(2).wrapping_sub(children);
        out.long(self.created_zxid).long(self.modified_zxid).long(self.created).long(self.modified);
        out.int(self.version).int(child_version).int(self.acl_version).long(self.stay.shown_owner());
        out.int(i32::try_from(self.data.length()).unwrap_or(i32::MAX)).int(children).long(self.children_zxid);
    }

    fn is_open(&self) -> bool {
        self.acl == [Acl::world(perms::ALL)]
    }
}

/// The transactions that changed a node last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LastChanged {
    /// Its data.
    pub(crate) data: i64,
    /// Its children.
    pub(crate) children: i64,
}

impl LastChanged {
    /// Of a node's entry, of which the rest, which may be long, is not read.
    pub(crate) fn of(entry: &Bytes) -> Result<Self, Malformed> {
        let mut reader = Reader::new(entry);
        let mut long = || u64::decode(&mut reader).map(u64::cast_signed);
        let [_created, data, _, _, _owner, children] = [long()?, long()?, long()?, long()?, long()?, long()?];
        Ok(Self { data, children })
    }
}

impl Wire for Node {
    fn encode(&self, out: &mut Vec<u8>) {
        for number in [
            self.created_zxid,
            self.modified_zxid,
            self.created,
            self.modified,
            self.stay.owner(),
            self.children_zxid,
        ] {
            number.cast_unsigned().encode(out);
        }
        for number in [self.version, self.creations, self.acl_version] {
            number.cast_unsigned().encode(out);
        }
        self.children.encode(out);
        self.due.encode(out);
        // Most nodes are everybody's.
        self.is_open().encode(out);
        if !self.is_open() {
            put_list(out, &self.acl);
        }
        match &self.data {
            Data::Here(bytes) => {
                out.push(0);
                put_bytes(out, bytes);
            }
            Data::Apart(length) => {
                out.push(1);
                length.encode(out);
            }
            Data::Absent => out.push(2),
        }
    }

    fn decode(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        let mut long = || u64::decode(reader).map(u64::cast_signed);
        let (created_zxid, modified_zxid, created, modified) = (long()?, long()?, long()?, long()?);
        let (owner, children_zxid) = (long()?, long()?);
        let stay = Stay::of(owner);
        if stay.owner() != owner {
            return Err(Malformed::Invalid(
                "a time to live has no bits beside the mark and the milliseconds",
            ));
        }
        let mut int = || u32::decode(reader).map(u32::cast_signed);
        let (version, creations, acl_version) = (int()?, int()?, int()?);
        let (children, due) = (Wire::decode(reader)?, Wire::decode(reader)?);
        let acl = if bool::decode(reader)? {
            vec![Acl::world(perms::ALL)]
        } else {
            let list: Vec<Acl> = reader.list("an access control list", MAX_KEPT)?;
            if list == [Acl::world(perms::ALL)] {
                return Err(Malformed::Invalid("a list that is everybody's is not written out"));
            }
            list
        };
        let data = match u8::decode(reader)? {
            0 => Data::Here(reader.bytes("data", DECODE_BOUND)?),
            1 => Data::Apart(Wire::decode(reader)?),
            2 => Data::Absent,
            other => return Err(Malformed::Tag("where data are", u64::from(other))),
        };
        Ok(Self {
            created_zxid,
            modified_zxid,
            created,
            modified,
            version,
            creations,
            acl_version,
            stay,
            children_zxid,
            children,
            due,
            acl,
            data,
        })
    }
}
