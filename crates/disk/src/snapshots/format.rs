//! The bytes of packs and manifests. All numbers are little-endian.
//!
//! ```text
//! front     magic 8 | version u16 | group 32 | replica u16
//! pack      front | pack u64 | crc32c u32 of all before | nodes
//! node      length u32 | crc32c u32 of (pack, index u64, length, digest, bytes) | digest 32 | bytes
//! manifest  front | seq u64 | time u64 | root 32 | packs u32 | per pack: number u64, length u64
//!           | the caller's length u32, bytes | crc32c u32 of all before
//! ```
//!
//! The first pack of a manifest is that of the full snapshot, the others are what came since.

use crate::{Identity, SnapshotError};
use bytes::Bytes;

/// The most bytes of a node, and of the caller's bytes in a manifest.
pub const MAX_NODE: usize = 1 << 26;
/// The most packs of one snapshot: a full one is due long before.
pub(super) const MAX_PACKS: usize = 1 << 16;
const VERSION: u16 = 1;
const PACK: &[u8; 8] = b"TROTHPAK";
const MANIFEST: &[u8; 8] = b"TROTHSNP";
const FRONT: usize = 44;
pub(super) const PACK_HEADER: usize = FRONT + 12;
pub(super) const NODE_HEADER: usize = 40;
/// The most bytes of a manifest.
pub(super) const MAX_MANIFEST: u64 = (MAX_NODE + MAX_PACKS * 16 + 4096) as u64;

/// What a snapshot is of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct About {
    /// The sequence number up to which everything was executed.
    pub seq: u64,
    /// The agreed time there, in the unit of the group's agreed time.
    pub time: u64,
    /// The digest of the tree's root.
    pub root: [u8; 32],
    /// The caller's bytes.
    pub extra: Bytes,
}

/// Where a snapshot's nodes are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Pack {
    pub(super) number: u64,
    pub(super) length: u64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Manifest {
    pub(super) about: About,
    pub(super) packs: Vec<Pack>,
}

/// Reads fields; a field that is not whole is damage.
struct Fields<'a> {
    file: &'a str,
    all: &'a [u8],
    at: usize,
}

impl<'a> Fields<'a> {
    fn damaged(&self, what: &'static str) -> SnapshotError {
        SnapshotError::Damaged { file: self.file.to_string(), offset: self.at as u64, what }
    }

    fn bytes(&mut self, count: usize) -> Result<&'a [u8], SnapshotError> {
        let field = self.all[self.at..].get(..count).ok_or_else(|| self.damaged("it is cut short"))?;
        self.at += count;
        Ok(field)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], SnapshotError> {
        Ok(self.bytes(N)?.try_into().expect("so many bytes were asked for"))
    }

    fn u32(&mut self) -> Result<u32, SnapshotError> {
        Ok(u32::from_le_bytes(self.array()?))
    }

    fn u64(&mut self) -> Result<u64, SnapshotError> {
        Ok(u64::from_le_bytes(self.array()?))
    }

    /// The front, judged.
    fn front(&mut self, magic: &[u8; 8], wanted: Identity) -> Result<(), SnapshotError> {
        if self.array::<8>()? != *magic {
            return Err(self.damaged("it does not begin as such a file does"));
        }
        let found = u16::from_le_bytes(self.array()?);
        if found != VERSION {
            return Err(SnapshotError::Version { file: self.file.to_string(), found, known: VERSION });
        }
        let found = Identity { group: self.array()?, replica: u16::from_le_bytes(self.array()?) };
        if found != wanted {
            return Err(SnapshotError::Identity { file: self.file.to_string(), found, wanted });
        }
        Ok(())
    }

    /// The checksum of all before, which ends the file or its header.
    fn checksum(&mut self) -> Result<(), SnapshotError> {
        let computed = crc32c::crc32c(&self.all[..self.at]);
        if self.u32()? == computed { Ok(()) } else { Err(self.damaged("the checksum is wrong")) }
    }
}

fn front(magic: &[u8; 8], identity: Identity) -> Vec<u8> {
    let mut out = magic.to_vec();
    out.extend_from_slice(&VERSION.to_le_bytes());
    out.extend_from_slice(&identity.group);
    out.extend_from_slice(&identity.replica.to_le_bytes());
    out
}

fn seal(out: &mut Vec<u8>) {
    let checksum = crc32c::crc32c(out);
    out.extend_from_slice(&checksum.to_le_bytes());
}

impl Manifest {
    pub(super) fn encode(&self, identity: Identity) -> Vec<u8> {
        let mut out = front(MANIFEST, identity);
        out.extend_from_slice(&self.about.seq.to_le_bytes());
        out.extend_from_slice(&self.about.time.to_le_bytes());
        out.extend_from_slice(&self.about.root);
        out.extend_from_slice(&(self.packs.len() as u32).to_le_bytes());
        for pack in &self.packs {
            out.extend_from_slice(&pack.number.to_le_bytes());
            out.extend_from_slice(&pack.length.to_le_bytes());
        }
        out.extend_from_slice(&(self.about.extra.len() as u32).to_le_bytes());
        out.extend_from_slice(&self.about.extra);
        seal(&mut out);
        out
    }

    /// Reads the manifest that stands under the name of `seq`.
    pub(super) fn decode(
        file: &str,
        bytes: &[u8],
        wanted: Identity,
        seq: u64,
    ) -> Result<Self, SnapshotError> {
        let mut fields = Fields { file, all: bytes, at: 0 };
        fields.front(MANIFEST, wanted)?;
        let found = fields.u64()?;
        let time = fields.u64()?;
        let root = fields.array()?;
        let count = fields.u32()? as usize;
        if count > MAX_PACKS || count * 16 > bytes.len() {
            return Err(fields.damaged("it names more packs than there can be"));
        }
        let mut packs = Vec::with_capacity(count);
        for _ in 0..count {
            packs.push(Pack { number: fields.u64()?, length: fields.u64()? });
        }
        let extra = fields.u32()? as usize;
        let extra = Bytes::copy_from_slice(fields.bytes(extra)?);
        fields.checksum()?;
        if fields.at != bytes.len() || found != seq || packs.is_empty() {
            return Err(fields.damaged("it is not the manifest of its name"));
        }
        Ok(Self { about: About { seq, time, root, extra }, packs })
    }
}

pub(super) fn encode_pack_header(identity: Identity, pack: u64) -> Vec<u8> {
    let mut out = front(PACK, identity);
    out.extend_from_slice(&pack.to_le_bytes());
    seal(&mut out);
    out
}

pub(super) fn check_pack_header(
    file: &str,
    bytes: &[u8],
    wanted: Identity,
    pack: u64,
) -> Result<(), SnapshotError> {
    let mut fields = Fields { file, all: bytes, at: 0 };
    fields.front(PACK, wanted)?;
    let found = fields.u64()?;
    fields.checksum()?;
    if found == pack { Ok(()) } else { Err(fields.damaged("it is another pack")) }
}

/// The front of a node, before anything is known to be true of it.
pub(super) struct NodeHeader {
    pub(super) length: usize,
    pub(super) checksum: u32,
    pub(super) digest: [u8; 32],
}

impl NodeHeader {
    pub(super) fn decode(bytes: &[u8; NODE_HEADER]) -> Self {
        let [a, b, c, d, e, f, g, h, digest @ ..] = *bytes;
        Self {
            length: u32::from_le_bytes([a, b, c, d]) as usize,
            checksum: u32::from_le_bytes([e, f, g, h]),
            digest,
        }
    }
}

pub(super) fn node_checksum(pack: u64, index: u64, digest: &[u8; 32], bytes: &[u8]) -> u32 {
    let mut front = [0; 52];
    front[..8].copy_from_slice(&pack.to_le_bytes());
    front[8..16].copy_from_slice(&index.to_le_bytes());
    front[16..20].copy_from_slice(&(bytes.len() as u32).to_le_bytes());
    front[20..].copy_from_slice(digest);
    crc32c::crc32c_append(crc32c::crc32c(&front), bytes)
}

pub(super) fn put_node(out: &mut Vec<u8>, pack: u64, index: u64, digest: &[u8; 32], bytes: &[u8]) {
    out.extend_from_slice(&(bytes.len() as u32).to_le_bytes());
    out.extend_from_slice(&node_checksum(pack, index, digest, bytes).to_le_bytes());
    out.extend_from_slice(digest);
    out.extend_from_slice(bytes);
}

pub(super) fn pack_name(number: u64) -> String {
    format!("pack-{number:016x}")
}

pub(super) fn manifest_name(seq: u64) -> String {
    format!("snapshot-{seq:016x}")
}

/// The number in the name of a pack or manifest.
pub(super) fn number(name: &str, prefix: &str) -> Option<u64> {
    let digits = name.strip_prefix(prefix)?;
    let lower = |c: u8| c.is_ascii_digit() || (b'a'..=b'f').contains(&c);
    let plain = digits.len() == 16 && digits.bytes().all(lower);
    plain.then(|| u64::from_str_radix(digits, 16).ok()).flatten()
}
