//! The keys that one client shares with one replica, and PBFT's authenticators made with them (OSDI '99 §5.2).

use core::fmt;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use troth_types::{ClientId, Digest, Tag};

/// Bytes of a tag: half of an HMAC, which leaves no forger more than one chance in 2^128.
const TAG: usize = size_of::<Tag>();

/// The key of one client and one replica, with its pads already absorbed.
#[derive(Clone)]
pub struct PairKey(Hmac<Sha256>);

impl fmt::Debug for PairKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PairKey(secret)")
    }
}

impl PairKey {
    /// The key made of 32 secret bytes that the two share and nobody else knows.
    #[must_use]
    pub fn new(secret: &[u8; 32]) -> Self {
        // HMAC pads a short key with zeros to one block; doing so here needs no fallible call.
        let mut block = [0; 64];
        block[..32].copy_from_slice(secret);
        Self(Hmac::new(&block.into()))
    }

    /// The tag of a digest.
    #[must_use]
    pub fn tag(&self, digest: &Digest) -> Tag {
        let whole = self.0.clone().chain_update(digest.0).finalize();
        let mut tag = [0; TAG];
        tag.copy_from_slice(&whole.as_bytes()[..TAG]);
        Tag(tag)
    }

    /// Whether this is the digest's tag, in constant time.
    #[must_use]
    pub fn verify(&self, digest: &Digest, tag: &Tag) -> bool {
        self.0.clone().chain_update(digest.0).verify_truncated_left(&tag.0).is_ok()
    }
}

/// The keys that a replica shares with its clients.
pub trait PairKeys: Send + Sync + fmt::Debug {
    /// The key that it shares with a client whose link key, by configuration, is this; nothing where that is no key.
    fn with(&self, client: ClientId, link: &[u8; 32]) -> Option<PairKey>;
}

/// The keys that a client shares with the replicas, in their order.
#[derive(Clone, Debug)]
pub struct Authenticators(Box<[PairKey]>);

impl Authenticators {
    /// With these keys, one for each replica.
    #[must_use]
    pub fn new(keys: impl IntoIterator<Item = PairKey>) -> Self {
        Self(keys.into_iter().collect())
    }

    /// The authenticator of a digest.
    #[must_use]
    pub fn of(&self, digest: &Digest) -> Box<[Tag]> {
        self.0.iter().map(|key| key.tag(digest)).collect()
    }
}
