//! The bytes of a store file and of the marker beside it.
//!
//! Numbers are big-endian; whatever is not named is zero. A store file is one header block and a fixed
//! number of slots, each a block of its own, so that no write touches a block which holds a record that
//! was acknowledged:
//!
//! | block | bytes | content |
//! | --- | --- | --- |
//! | header | 8 | `TROTHCTR` |
//! | | 2 | format version of the file, 2 |
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
//! | | 1 | kind: 1 the record of a start, 2 a move, 3 a move with a blob |
//! | | 2 | length of the blob, zero for the other kinds |
//! | | 0 to 1,381 | the blob |
//! | | 32 | SHA-256 of all of these |
//!
//! In a file of version 1 a record has no kind, length or blob. Such a file is read, and followed by one of
//! version 2 when it is opened.
//!
//! The files of the store of logs are the same but for this. Their header begins with `TROTHLOG`, has the format
//! version 1 and 40 bytes more before its checksum: the length of the base and its SHA-256. The base, which is all
//! logs as they were when the file was made ([`Logs::write`]), stands between header and slots, filled up with
//! zeros to whole blocks. In place of the state a record has 40 bytes, `troth-a2m-jrnl` and the identity; its kind
//! is 1 for a start, 2 for the first record of a file, 3 for a call, whose changes are the blob.
//!
//! The marker is a file of 76 bytes: `TROTHMRK`, version 1, identity, generation, SHA-256.
//!
//! [`State::to_bytes`]: troth_trusted::State::to_bytes
//! [`Logs::write`]: troth_trusted::a2m::Logs::write

use super::Policy;
use super::directory::BootId;
use sha2::{Digest as _, Sha256};
use troth_trusted::{Epoch, Identity};

/// Length of the header and of each slot in bytes: what disks write as one.
pub(super) const BLOCK: usize = 4096;
/// The newest version of the marker.
pub(super) const MARKER_VERSION: u16 = 1;
const MARKER_MAGIC: &[u8; 8] = b"TROTHMRK";
pub(super) const CHECKSUM: usize = 32;
pub(super) const IDENTITY: usize = 16 + 2 + 8;
const HEADER: usize = 8 + 2 + 1 + 4 + 8 + 8 + IDENTITY + 16 + CHECKSUM;
/// Length in bytes of what the header of a file with a base has besides.
const BASE: usize = 8 + 32;
/// Length of the marker in bytes.
pub(super) const MARKER: usize = 8 + 2 + IDENTITY + 8 + CHECKSUM;

/// One block of a store file.
pub(super) type Block = [u8; BLOCK];

/// How a file is laid out: of what it is, and its format version.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Layout {
    /// Counters, version 1: records without kind or blob.
    Plain,
    /// Counters, version 2.
    WithBlobs,
    /// Logs, version 1: a base before the records.
    Based,
}

/// The base of a file: what it begins with, before its records. Empty in files of counters.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Base {
    /// Its length in bytes.
    pub(super) length: u64,
    /// Its SHA-256, by which it belongs to this header and no other.
    pub(super) digest: [u8; 32],
}

impl Base {
    pub(super) const NONE: Self = Self { length: 0, digest: [0; 32] };

    pub(super) fn of(bytes: &[u8]) -> Self {
        match bytes {
            [] => Self::NONE,
            _ => Self { length: bytes.len() as u64, digest: Sha256::digest(bytes).into() },
        }
    }

    /// The length in bytes of the whole blocks that it takes.
    pub(super) fn blocks_length(&self) -> u64 {
        self.length.div_ceil(BLOCK as u64) * BLOCK as u64
    }
}

/// The beginning of a store file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Header {
    pub(super) layout: Layout,
    pub(super) policy: Policy,
    pub(super) slots: u32,
    pub(super) generation: u64,
    pub(super) first_index: u64,
    pub(super) identity: Identity,
    pub(super) boot: BootId,
    pub(super) base: Base,
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

impl Layout {
    pub(super) fn version(self) -> u16 {
        match self {
            Self::Plain | Self::Based => 1,
            Self::WithBlobs => 2,
        }
    }

    fn magic(self) -> &'static [u8; 8] {
        match self {
            Self::Plain | Self::WithBlobs => b"TROTHCTR",
            Self::Based => b"TROTHLOG",
        }
    }

    /// Length of the header in bytes.
    fn header(self) -> usize {
        match self {
            Self::Plain | Self::WithBlobs => HEADER,
            Self::Based => HEADER + BASE,
        }
    }
}

impl Header {
    /// The length of the whole file in bytes.
    pub(super) fn file_length(&self) -> u64 {
        self.slot_offset(self.slots)
    }

    /// Where a slot begins in the file, in bytes.
    pub(super) fn slot_offset(&self, slot: u32) -> u64 {
        (u64::from(slot) + 1) * BLOCK as u64 + self.base.blocks_length()
    }

    pub(super) fn to_block(self) -> Box<Block> {
        let mut block = Box::new([0; BLOCK]);
        let mut out = Encoder { out: &mut block[..self.layout.header()], at: 0 };
        out.put(self.layout.magic());
        out.put(&self.layout.version().to_be_bytes());
        out.put(&[self.policy.code()]);
        out.put(&self.slots.to_be_bytes());
        out.put(&self.generation.to_be_bytes());
        out.put(&self.first_index.to_be_bytes());
        out.identity(&self.identity);
        out.put(&self.boot.0);
        if self.layout == Layout::Based {
            out.put(&self.base.length.to_be_bytes());
            out.put(&self.base.digest);
        }
        out.checksum();
        block
    }

    /// The header in the first block of a file that has one of these layouts: all those of one store, newest
    /// last.
    pub(super) fn from_block(block: &Block, layouts: &[Layout]) -> Result<Self, Unreadable> {
        let damaged = Unreadable::Damaged("the header names what no header names");
        let newest = layouts.last().ok_or(damaged)?;
        let (header, rest) = block.split_at(newest.header());
        let versions: Vec<u16> = layouts.iter().map(|layout| layout.version()).collect();
        let (version, mut parts) = Decoder::opened(header, newest.magic(), &versions)?;
        let layout = *layouts.iter().find(|layout| layout.version() == version).ok_or(damaged)?;
        let policy = parts.take::<1>().and_then(|[code]| Policy::from_code(code)).ok_or(damaged)?;
        let header = parts.header(layout, policy).ok_or(damaged)?;
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
        out.put(&MARKER_VERSION.to_be_bytes());
        out.identity(&self.identity);
        out.put(&self.generation.to_be_bytes());
        out.checksum();
        bytes
    }

    pub(super) fn from_bytes(bytes: &[u8; MARKER]) -> Result<Self, Unreadable> {
        let (_, mut parts) = Decoder::opened(bytes, MARKER_MAGIC, &[MARKER_VERSION])?;
        parts.marker().ok_or(Unreadable::Damaged("the marker names what no marker names"))
    }
}

pub(super) fn is_zero(bytes: &[u8]) -> bool {
    bytes.iter().all(|byte| *byte == 0)
}

/// Writes parts from left to right.
pub(super) struct Encoder<'a> {
    pub(super) out: &'a mut [u8],
    pub(super) at: usize,
}

impl Encoder<'_> {
    pub(super) fn put(&mut self, part: &[u8]) {
        self.out[self.at..self.at + part.len()].copy_from_slice(part);
        self.at += part.len();
    }

    pub(super) fn identity(&mut self, identity: &Identity) {
        self.put(&identity.group);
        self.put(&identity.replica.to_be_bytes());
        self.put(&identity.epoch.0.to_be_bytes());
    }

    /// Ends with the checksum of what stands before.
    pub(super) fn checksum(&mut self) {
        let checksum = Sha256::digest(&self.out[..self.at]);
        self.put(&checksum);
    }
}

/// Reads parts from left to right.
pub(super) struct Decoder<'a>(pub(super) &'a [u8]);

impl<'a> Decoder<'a> {
    /// The version, which must be one of `known`, of bytes that end in their checksum, and the parts after it.
    /// It is looked at first, because another one may have its checksum elsewhere.
    fn opened(bytes: &'a [u8], magic: &[u8; 8], known: &[u16]) -> Result<(u16, Self), Unreadable> {
        let mut start = Self(bytes);
        if start.take() != Some(*magic) {
            return Err(Unreadable::Damaged("the first bytes are not those of such a file"));
        }
        let version = match start.take().map(u16::from_be_bytes) {
            Some(version) if known.contains(&version) => version,
            Some(other) => return Err(Unreadable::Version(other)),
            None => return Err(Unreadable::Damaged("the file ends in its first bytes")),
        };
        let mut parts =
            Self::opened_unversioned(bytes, magic).ok_or(Unreadable::Damaged("the checksum does not fit"))?;
        parts.take::<2>();
        Ok((version, parts))
    }

    pub(super) fn opened_unversioned(bytes: &'a [u8], magic: &[u8; 8]) -> Option<Self> {
        let (content, checksum) = bytes.split_last_chunk::<CHECKSUM>()?;
        let mut parts = Self(content);
        let intact = parts.take::<8>()? == *magic && Sha256::digest(content)[..] == *checksum;
        intact.then_some(parts)
    }

    pub(super) fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (part, rest) = self.0.split_first_chunk::<N>()?;
        self.0 = rest;
        Some(*part)
    }

    /// The next `length` bytes.
    pub(super) fn part(&mut self, length: usize) -> Option<&'a [u8]> {
        let (part, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(part)
    }

    pub(super) fn number(&mut self) -> Option<u64> {
        self.take().map(u64::from_be_bytes)
    }

    pub(super) fn identity(&mut self) -> Option<Identity> {
        Some(Identity {
            group: self.take()?,
            replica: self.take().map(u16::from_be_bytes)?,
            epoch: Epoch(self.number()?),
        })
    }

    fn header(&mut self, layout: Layout, policy: Policy) -> Option<Header> {
        Some(Header {
            layout,
            policy,
            slots: self.take().map(u32::from_be_bytes)?,
            generation: self.number()?,
            first_index: self.number()?,
            identity: self.identity()?,
            boot: BootId(self.take()?),
            base: match layout {
                Layout::Plain | Layout::WithBlobs => Base::NONE,
                Layout::Based => Base { length: self.number()?, digest: self.take()? },
            },
        })
    }

    fn marker(&mut self) -> Option<Marker> {
        Some(Marker { identity: self.identity()?, generation: self.number()? })
    }
}
