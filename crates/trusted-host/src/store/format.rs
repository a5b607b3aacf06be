//! The bytes of a store file and of the marker beside it.
//!
//! Numbers are big-endian; whatever is not named is zero. A store file is one header block and a fixed
//! number of slots, each a block of its own, so that no write touches a block which holds a record that
//! was acknowledged:
//!
//! | block | bytes | content |
//! | --- | --- | --- |
//! | header | 8 | `TROTHCTR` |
//! | | 2 | format version, 1 |
//! | | 1 | durability policy |
//! | | 4 | number of slots |
//! | | 8 | generation of the file, from 1 |
//! | | 8 | index of the first slot's record |
//! | | 26 | identity: group, replica, epoch |
//! | | 16 | boot id |
//! | | 32 | SHA-256 of all of these |
//! | slot, at 0 and again at 2,048 | 8 | `TROTHREC` |
//! | | 8, 8 | generation, index |
//! | | 16 | boot id |
//! | | 592 | the state ([`State::to_bytes`]) |
//! | | 32 | SHA-256 of all of these |
//!
//! The marker is a file of 76 bytes: `TROTHMRK`, version, identity, generation, SHA-256.

use super::Policy;
use super::directory::BootId;
use sha2::{Digest as _, Sha256};
use troth_trusted::{Epoch, Identity, State};

/// Length of the header and of each slot in bytes: what disks write as one.
pub(super) const BLOCK: usize = 4096;
/// Where the second copy of a record begins in its slot.
const SECOND: usize = BLOCK / 2;
/// The version of all formats here.
pub(super) const VERSION: u16 = 1;
const HEADER_MAGIC: &[u8; 8] = b"TROTHCTR";
const RECORD_MAGIC: &[u8; 8] = b"TROTHREC";
const MARKER_MAGIC: &[u8; 8] = b"TROTHMRK";
const CHECKSUM: usize = 32;
const IDENTITY: usize = 16 + 2 + 8;
const HEADER: usize = 8 + 2 + 1 + 4 + 8 + 8 + IDENTITY + 16 + CHECKSUM;
const RECORD: usize = 8 + 8 + 8 + 16 + State::LEN + CHECKSUM;
/// Where the state begins in a record.
const STATE_AT: usize = 8 + 8 + 8 + 16;
/// Where the identity begins in a state, and what stands before it.
const STATE_TAG: usize = 14;
/// Length of the marker in bytes.
pub(super) const MARKER: usize = 8 + 2 + IDENTITY + 8 + CHECKSUM;

/// One block of a store file.
pub(super) type Block = [u8; BLOCK];

/// The beginning of a store file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Header {
    pub(super) policy: Policy,
    pub(super) slots: u32,
    pub(super) generation: u64,
    pub(super) first_index: u64,
    pub(super) identity: Identity,
    pub(super) boot: BootId,
}

/// What one store writes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Record {
    pub(super) generation: u64,
    pub(super) index: u64,
    pub(super) boot: BootId,
    pub(super) state: State,
}

/// What the marker says: this epoch has started, and its file has reached this generation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Marker {
    pub(super) identity: Identity,
    /// Zero while the first file of the epoch is being made.
    pub(super) generation: u64,
}

/// Why bytes are no header or marker.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Unreadable {
    Damaged(&'static str),
    Version(u16),
}

impl Header {
    /// The length of the whole file in bytes.
    pub(super) fn file_length(&self) -> u64 {
        (u64::from(self.slots) + 1) * BLOCK as u64
    }

    pub(super) fn to_block(self) -> Box<Block> {
        let mut block = Box::new([0; BLOCK]);
        let mut out = Encoder { out: &mut block[..HEADER], at: 0 };
        out.put(HEADER_MAGIC);
        out.put(&VERSION.to_be_bytes());
        out.put(&[self.policy.code()]);
        out.put(&self.slots.to_be_bytes());
        out.put(&self.generation.to_be_bytes());
        out.put(&self.first_index.to_be_bytes());
        out.identity(&self.identity);
        out.put(&self.boot.0);
        out.checksum();
        block
    }

    pub(super) fn from_block(block: &Block) -> Result<Self, Unreadable> {
        let (header, rest) = block.split_at(HEADER);
        let mut parts = Decoder::opened(header, HEADER_MAGIC)?;
        let damaged = Unreadable::Damaged("the header names what no header names");
        let policy = parts.take::<1>().and_then(|[code]| Policy::from_code(code)).ok_or(damaged)?;
        let header = parts.header(policy).ok_or(damaged)?;
        if !is_zero(rest) {
            return Err(Unreadable::Damaged("bytes that are not zero after the header"));
        }
        Ok(header)
    }
}

impl Marker {
    pub(super) fn to_bytes(self) -> [u8; MARKER] {
        let mut bytes = [0; MARKER];
        let mut out = Encoder { out: &mut bytes, at: 0 };
        out.put(MARKER_MAGIC);
        out.put(&VERSION.to_be_bytes());
        out.identity(&self.identity);
        out.put(&self.generation.to_be_bytes());
        out.checksum();
        bytes
    }

    pub(super) fn from_bytes(bytes: &[u8; MARKER]) -> Result<Self, Unreadable> {
        let mut parts = Decoder::opened(bytes, MARKER_MAGIC)?;
        parts.marker().ok_or(Unreadable::Damaged("the marker names what no marker names"))
    }
}

impl Record {
    /// Writes the slot of this record into `block`, all of it.
    pub(super) fn fill(&self, block: &mut Block) {
        block.fill(0);
        let (first, second) = block.split_at_mut(SECOND);
        let mut out = Encoder { out: &mut first[..RECORD], at: 0 };
        out.put(RECORD_MAGIC);
        out.put(&self.generation.to_be_bytes());
        out.put(&self.index.to_be_bytes());
        out.put(&self.boot.0);
        out.put(&self.state.to_bytes());
        out.checksum();
        second[..RECORD].copy_from_slice(&first[..RECORD]);
    }

    fn from_copy(copy: &[u8]) -> Option<Self> {
        let mut parts = Decoder::opened_unversioned(copy, RECORD_MAGIC)?;
        Some(Self {
            generation: parts.number()?,
            index: parts.number()?,
            boot: BootId(parts.take()?),
            state: State::from_bytes(&parts.take()?)?,
        })
    }
}

/// What stands in a slot.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Slot {
    /// Nothing but zeros: never written.
    Empty,
    /// A record, as it was written.
    Whole(Box<Record>),
    /// A record that can be read, of a write that did not reach its end.
    Partly(Box<Record>),
    /// A write that was interrupted before a record could be read from it.
    Torn,
    /// What neither a record nor an interrupted write leaves.
    Damaged(&'static str),
}

/// The record that belongs into a slot by its place.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    pub(super) generation: u64,
    pub(super) index: u64,
    pub(super) identity: Identity,
}

impl Slot {
    /// Tells what stands in the slot at this place.
    ///
    /// An interrupted write leaves some bytes of its block as they were, zero. An acknowledged record
    /// stands there twice and whole. So where one copy can be read, that is the newest record whatever
    /// became of the other; and a record can be lost only with bytes of both copies, never by one
    /// damaged place. A byte that is neither as written nor zero was not left by any write of ours.
    pub(super) fn read(block: &Block, place: &Place) -> Self {
        if is_zero(block) {
            return Self::Empty;
        }
        let (first, second) = block.split_at(SECOND);
        let ((first, padding), (second, more)) = (first.split_at(RECORD), second.split_at(RECORD));
        if !is_zero(padding) || !is_zero(more) {
            return Self::Damaged("bytes that are not zero beside the record");
        }
        let readable = Record::from_copy(first)
            .map(|record| (record, first))
            .or_else(|| Record::from_copy(second).map(|record| (record, second)));
        let Some((record, written)) = readable else {
            return Self::unreadable(first, second, place);
        };
        if !place.is_of(&record) {
            return Self::Damaged("a record of another place");
        }
        let whole = first == written && second == written;
        let interrupted = || may_be_part(first, written) && may_be_part(second, written);
        match whole {
            true => Self::Whole(Box::new(record)),
            false if interrupted() => Self::Partly(Box::new(record)),
            false => Self::Damaged("a record whose two copies differ"),
        }
    }

    /// What stands in a slot of which neither copy can be read.
    fn unreadable(first: &[u8], second: &[u8], place: &Place) -> Self {
        let (mut known, mut joined) = ([0; RECORD], [0; RECORD]);
        let known_length = place.known(&mut known);
        for copy in [first, second] {
            if !may_be_part(&copy[..8 * 3], &known[..8 * 3])
                || !may_be_part(&copy[STATE_AT..known_length], &known[STATE_AT..known_length])
            {
                return Self::Damaged("neither a record nor a part of the one that belongs here");
            }
        }
        for ((joined, one), other) in joined.iter_mut().zip(first).zip(second) {
            if one != other && *one != 0 && *other != 0 {
                return Self::Damaged("two copies that no single write left");
            }
            *joined = one | other;
        }
        match Record::from_copy(&joined) {
            Some(record) if place.is_of(&record) => Self::Partly(Box::new(record)),
            Some(_) => Self::Damaged("a record of another place"),
            None => Self::Torn,
        }
    }
}

impl Place {
    fn is_of(&self, record: &Record) -> bool {
        record.generation == self.generation
            && record.index == self.index
            && record.state.identity == self.identity
    }

    /// Puts down those bytes of a record at this place that do not depend on the counters (not the
    /// boot id, which may be of an earlier boot), and returns where they end.
    fn known(&self, out: &mut [u8; RECORD]) -> usize {
        let unmoved = State::new(self.identity).to_bytes();
        let mut out = Encoder { out, at: 0 };
        out.put(RECORD_MAGIC);
        out.put(&self.generation.to_be_bytes());
        out.put(&self.index.to_be_bytes());
        out.put(&[0; 16]);
        out.put(&unmoved[..STATE_TAG + IDENTITY]);
        out.at
    }
}

/// Whether `found` is what an interrupted write of `written` over zeros can leave.
fn may_be_part(found: &[u8], written: &[u8]) -> bool {
    found.iter().zip(written).all(|(found, written)| *found == 0 || found == written)
}

fn is_zero(bytes: &[u8]) -> bool {
    bytes.iter().all(|byte| *byte == 0)
}

/// Writes parts from left to right.
struct Encoder<'a> {
    out: &'a mut [u8],
    at: usize,
}

impl Encoder<'_> {
    fn put(&mut self, part: &[u8]) {
        self.out[self.at..self.at + part.len()].copy_from_slice(part);
        self.at += part.len();
    }

    fn identity(&mut self, identity: &Identity) {
        self.put(&identity.group);
        self.put(&identity.replica.to_be_bytes());
        self.put(&identity.epoch.0.to_be_bytes());
    }

    /// Ends with the checksum of what stands before.
    fn checksum(&mut self) {
        let checksum = Sha256::digest(&self.out[..self.at]);
        self.put(&checksum);
    }
}

/// Reads parts from left to right.
struct Decoder<'a>(&'a [u8]);

impl<'a> Decoder<'a> {
    /// The parts after magic and version of bytes that end in their checksum. The version is looked at
    /// first, because another one may have its checksum elsewhere.
    fn opened(bytes: &'a [u8], magic: &[u8; 8]) -> Result<Self, Unreadable> {
        let mut start = Self(bytes);
        if start.take() != Some(*magic) {
            return Err(Unreadable::Damaged("the first bytes are not those of such a file"));
        }
        match start.take().map(u16::from_be_bytes) {
            Some(VERSION) => {}
            Some(other) => return Err(Unreadable::Version(other)),
            None => return Err(Unreadable::Damaged("the file ends in its first bytes")),
        }
        let mut parts =
            Self::opened_unversioned(bytes, magic).ok_or(Unreadable::Damaged("the checksum does not fit"))?;
        parts.take::<2>();
        Ok(parts)
    }

    fn opened_unversioned(bytes: &'a [u8], magic: &[u8; 8]) -> Option<Self> {
        let (content, checksum) = bytes.split_last_chunk::<CHECKSUM>()?;
        let mut parts = Self(content);
        let intact = parts.take::<8>()? == *magic && Sha256::digest(content)[..] == *checksum;
        intact.then_some(parts)
    }

    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (part, rest) = self.0.split_first_chunk::<N>()?;
        self.0 = rest;
        Some(*part)
    }

    fn number(&mut self) -> Option<u64> {
        self.take().map(u64::from_be_bytes)
    }

    fn identity(&mut self) -> Option<Identity> {
        Some(Identity {
            group: self.take()?,
            replica: self.take().map(u16::from_be_bytes)?,
            epoch: Epoch(self.number()?),
        })
    }

    fn header(&mut self, policy: Policy) -> Option<Header> {
        Some(Header {
            policy,
            slots: self.take().map(u32::from_be_bytes)?,
            generation: self.number()?,
            first_index: self.number()?,
            identity: self.identity()?,
            boot: BootId(self.take()?),
        })
    }

    fn marker(&mut self) -> Option<Marker> {
        Some(Marker { identity: self.identity()?, generation: self.number()? })
    }
}
