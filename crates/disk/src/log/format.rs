//! The bytes of a segment: its header, its records, and the marks between them. All numbers are
//! little-endian.
//!
//! ```text
//! header  magic 8 | version u16 | group 32 | replica u16 | segment u64 | origin u8 | origin's value u64
//!         | whole u64 | salt u64 | crc32c u32 of all before
//! record  length u32 | kind u8 | crc32c u32 of (salt, segment, index u64, kind, length, payload) | payload
//! mark    a record whose payload is: its index u64 | its offset in the file u64
//! stand   a record whose payload is: a snapshot's number u64 | a segment's u64 | a number of records u64
//! ```
//!
//! A record's index counts from 0 in its segment. The salt is random, so that nobody who chooses a payload
//! can make one that looks like a record, and nothing left from an earlier file looks like one. A mark is
//! written in front of the first record after a sync and says that all before it was durable. A stand says
//! that the log stands on that snapshot and begins in that segment, behind so many of its records (neither marks nor
//! stands count): what comes before counts no more.

use bytes::Bytes;
use std::fmt;

/// The largest record, in bytes.
pub const MAX_RECORD: usize = 1 << 26;
pub(crate) const VERSION: u16 = 1;
const MAGIC: &[u8; 8] = b"TROTHLOG";
pub(crate) const HEADER: usize = 81;
pub(crate) const RECORD_HEADER: usize = 9;
pub(crate) const MARK: usize = 16;
const STAND: usize = 24;

/// Whose log it is.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Identity {
    /// The group's name.
    pub group: [u8; 32],
    /// The replica in it.
    pub replica: u16,
}

impl fmt::Display for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "replica {} of group ", self.replica)?;
        self.group[..8].iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

/// What a segment follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    /// Nothing: the first of a log.
    Start,
    /// The segment numbered one less, whose records end at this offset.
    Continues(u64),
    /// Whatever came before counts no more: the log stands on the snapshot of this number.
    Base(u64),
}

/// The first bytes of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) identity: Identity,
    pub(crate) segment: u64,
    pub(crate) origin: Origin,
    /// Everything before this offset was durable before the file had its name.
    pub(crate) whole: u64,
    pub(crate) salt: u64,
}

/// Why bytes are no header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NoHeader {
    Damaged(&'static str),
    Version(u16),
}

impl Header {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let (origin, value) = match self.origin {
            Origin::Start => (0, 0),
            Origin::Continues(end) => (1, end),
            Origin::Base(base) => (2, base),
        };
        let mut out = Vec::with_capacity(HEADER);
        out.extend_from_slice(MAGIC);
        out.extend_from_slice(&VERSION.to_le_bytes());
        out.extend_from_slice(&self.identity.group);
        out.extend_from_slice(&self.identity.replica.to_le_bytes());
        out.extend_from_slice(&self.segment.to_le_bytes());
        out.push(origin);
        for number in [value, self.whole, self.salt] {
            out.extend_from_slice(&number.to_le_bytes());
        }
        let checksum = crc32c::crc32c(&out);
        out.extend_from_slice(&checksum.to_le_bytes());
        debug_assert_eq!(out.len(), HEADER);
        out
    }

    pub(crate) fn decode(bytes: &[u8]) -> Result<Self, NoHeader> {
        let mut reader = Fields(bytes);
        let magic: [u8; 8] = reader.take()?;
        if magic != *MAGIC {
            return Err(NoHeader::Damaged("it does not begin as a log does"));
        }
        let version = u16::from_le_bytes(reader.take()?);
        if version != VERSION {
            return Err(NoHeader::Version(version));
        }
        let identity = Identity { group: reader.take()?, replica: u16::from_le_bytes(reader.take()?) };
        let segment = u64::from_le_bytes(reader.take()?);
        let [origin] = reader.take()?;
        let value = u64::from_le_bytes(reader.take()?);
        let whole = u64::from_le_bytes(reader.take()?);
        let salt = u64::from_le_bytes(reader.take()?);
        let checksum = u32::from_le_bytes(reader.take()?);
        if crc32c::crc32c(&bytes[..HEADER - 4]) != checksum {
            return Err(NoHeader::Damaged("the checksum of the header is wrong"));
        }
        let origin = match origin {
            0 => Origin::Start,
            1 => Origin::Continues(value),
            2 => Origin::Base(value),
            _ => return Err(NoHeader::Damaged("the header says nothing sensible")),
        };
        Ok(Self { identity, segment, origin, whole, salt })
    }

    /// Appends a record.
    pub(crate) fn put_record(&self, out: &mut Vec<u8>, index: u64, kind: Kind, payload: &[u8]) {
        let length = u32::try_from(payload.len()).expect("a record is at most MAX_RECORD bytes");
        out.reserve(RECORD_HEADER + payload.len());
        out.extend_from_slice(&length.to_le_bytes());
        out.push(kind as u8);
        let checksum = self.checksum(index, kind as u8, payload);
        out.extend_from_slice(&checksum.to_le_bytes());
        out.extend_from_slice(payload);
    }

    /// Appends a mark that will stand at `offset`.
    pub(crate) fn put_mark(&self, out: &mut Vec<u8>, index: u64, offset: u64) {
        let mut payload = [0; MARK];
        payload[..8].copy_from_slice(&index.to_le_bytes());
        payload[8..].copy_from_slice(&offset.to_le_bytes());
        self.put_record(out, index, Kind::Mark, &payload);
    }

    /// The checksum of a record of this segment.
    pub(crate) fn checksum(&self, index: u64, kind: u8, payload: &[u8]) -> u32 {
        let mut front = [0; 29];
        front[..8].copy_from_slice(&self.salt.to_le_bytes());
        front[8..16].copy_from_slice(&self.segment.to_le_bytes());
        front[16..24].copy_from_slice(&index.to_le_bytes());
        front[24] = kind;
        front[25..].copy_from_slice(&(payload.len() as u32).to_le_bytes());
        crc32c::crc32c_append(crc32c::crc32c(&front), payload)
    }
}

/// What a record is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Kind {
    /// The caller's. Zero is no kind: it is what room that was made and not written holds.
    Record = 1,
    /// All before it was durable when it was written.
    Mark = 2,
    /// What the log stands on, and where it begins.
    Stand = 3,
}

/// A place between two records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) segment: u64,
    /// Records of the segment that come before, marks and stands not counted.
    pub(crate) records: u64,
}

/// What the log stands on, and where it begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stand {
    /// The snapshot's number.
    pub(crate) base: u64,
    pub(crate) place: Place,
}

impl Stand {
    pub(crate) fn encode(&self) -> [u8; STAND] {
        let mut payload = [0; STAND];
        let fields = [self.base, self.place.segment, self.place.records];
        for (to, field) in payload.chunks_exact_mut(size_of::<u64>()).zip(fields) {
            to.copy_from_slice(&field.to_le_bytes());
        }
        payload
    }

    pub(crate) fn decode(payload: &[u8]) -> Option<Self> {
        let payload: &[u8; STAND] = payload.try_into().ok()?;
        let mut fields = Fields(payload);
        let mut field = || fields.take().map(u64::from_le_bytes).ok();
        Some(Self { base: field()?, place: Place { segment: field()?, records: field()? } })
    }
}

/// The front of a record, before anything is known to be true of it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RecordHeader {
    pub(crate) length: usize,
    pub(crate) kind: u8,
    pub(crate) checksum: u32,
}

impl RecordHeader {
    pub(crate) fn decode(bytes: &[u8; RECORD_HEADER]) -> Self {
        let [a, b, c, d, kind, e, f, g, h] = *bytes;
        Self {
            length: u32::from_le_bytes([a, b, c, d]) as usize,
            kind,
            checksum: u32::from_le_bytes([e, f, g, h]),
        }
    }
}

/// Whether the bytes that follow `offset` in a file are a mark.
pub(crate) fn is_mark_at(header: &Header, offset: u64, bytes: &[u8]) -> bool {
    let Some((front, rest)) = bytes.split_first_chunk::<RECORD_HEADER>() else { return false };
    let front = RecordHeader::decode(front);
    if front.length != MARK || front.kind != Kind::Mark as u8 {
        return false;
    }
    let Some((payload, _)) = rest.split_first_chunk::<MARK>() else { return false };
    let mut fields = Fields(payload);
    let (Ok(index), Ok(at)) = (fields.take(), fields.take()) else { return false };
    u64::from_le_bytes(at) == offset
        && header.checksum(u64::from_le_bytes(index), front.kind, payload) == front.checksum
}

/// A segment's name.
pub(crate) fn name(segment: u64) -> String {
    format!("log-{segment:016x}")
}

/// The name of a segment that is not in force yet.
pub(crate) fn new_name(segment: u64) -> String {
    format!("log-{segment:016x}.new")
}

/// The number in a segment's name.
pub(crate) fn number(name: &str) -> Option<u64> {
    let digits = name.strip_prefix("log-")?;
    let lower = |c: u8| c.is_ascii_digit() || (b'a'..=b'f').contains(&c);
    if digits.len() != 16 || !digits.bytes().all(lower) {
        return None;
    }
    u64::from_str_radix(digits, 16).ok()
}

/// Whether a file is a segment that never came into force.
pub(crate) fn is_new(name: &str) -> bool {
    name.strip_suffix(".new").and_then(number).is_some()
}

/// Reads fields of fixed length.
struct Fields<'a>(&'a [u8]);

impl Fields<'_> {
    fn take<const N: usize>(&mut self) -> Result<[u8; N], NoHeader> {
        let (field, rest) =
            self.0.split_first_chunk::<N>().ok_or(NoHeader::Damaged("the header is cut short"))?;
        self.0 = rest;
        Ok(*field)
    }
}

/// What a log holds when it is opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recovered {
    /// The number of the snapshot that the records follow; none where no base was ever begun.
    pub base: Option<u64>,
    /// The records since, in order.
    pub records: Vec<Bytes>,
    /// The torn tail that was cut off, if there was one.
    pub cut: Option<Cut>,
}

/// A torn tail: bytes that were being written when the process or the machine stopped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cut {
    /// The file.
    pub file: String,
    /// Where its records end now, in bytes.
    pub offset: u64,
    /// How many bytes up to the last that is not zero were cut.
    pub bytes: u64,
}
