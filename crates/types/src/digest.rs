//! SHA-256 digests with domain separation.

use crate::{Malformed, Reader, Wire};
use core::fmt;
use sha2::Digest as _;

/// A SHA-256 digest (32 bytes).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Digest(pub [u8; 32]);

impl Digest {
    /// The digest of nothing: 32 zero bytes, used where a field has no value yet.
    pub const ZERO: Self = Self([0; 32]);
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "#{:02x}{:02x}{:02x}{:02x}", self.0[0], self.0[1], self.0[2], self.0[3])
    }
}

impl Wire for Digest {
    fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.0);
    }
    fn decode(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        Ok(Self(reader.array()?))
    }
}

/// Builds a digest over fields. The tag given at the start separates domains: no two kinds of
/// hashed value share a tag, so a digest of one kind never stands for another
/// (guide.md §0.8: domain separation bugs are equivocation bugs).
#[derive(Clone)]
pub struct Hasher(sha2::Sha256);

impl Hasher {
    /// Starts a digest in the domain `tag`.
    #[must_use]
    pub fn new(tag: &'static str) -> Self {
        let mut inner = sha2::Sha256::new();
        let length = u8::try_from(tag.len()).expect("a domain tag is short");
        inner.update([length]);
        inner.update(tag.as_bytes());
        Self(inner)
    }

    /// Adds bytes of a fixed, known length.
    pub fn fixed(&mut self, bytes: &[u8]) -> &mut Self {
        self.0.update(bytes);
        self
    }

    /// Adds a number.
    pub fn number(&mut self, value: u64) -> &mut Self {
        self.0.update(value.to_le_bytes());
        self
    }

    /// Adds a digest.
    pub fn digest(&mut self, digest: &Digest) -> &mut Self {
        self.0.update(digest.0);
        self
    }

    /// Adds bytes of any length, preceded by that length.
    pub fn bytes(&mut self, bytes: &[u8]) -> &mut Self {
        self.number(bytes.len() as u64);
        self.0.update(bytes);
        self
    }

    /// The digest of everything added.
    #[must_use]
    pub fn finish(self) -> Digest {
        Digest(self.0.finalize().into())
    }
}
