//! Who is at the ends of a connection.

use crate::LinkError;
use core::fmt;
use snow::params::DHChoice;
use snow::resolvers::{CryptoResolver, DefaultResolver};
use troth_types::{ClientId, Hasher, Malformed, Reader, ReplicaId, Wire};

/// A public X25519 key (32 bytes), by which a connection's end is known. It authenticates
/// connections only; what is ordered carries signatures of its own.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LinkKey(pub [u8; 32]);

impl fmt::Debug for LinkKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "link:{:02x}{:02x}{:02x}{:02x}", self.0[0], self.0[1], self.0[2], self.0[3])
    }
}

/// The purpose of the keys with which clients make the tags of their authenticators.
pub const FRAME_TAGS: &str = "troth/frame-tags/v1";

/// Who calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PeerId {
    /// A replica of the group.
    Replica(ReplicaId),
    /// A client of the group.
    Client(ClientId),
}

impl Wire for PeerId {
    fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Self::Replica(replica) => {
                out.push(0);
                replica.encode(out);
            }
            Self::Client(client) => {
                out.push(1);
                client.encode(out);
            }
        }
    }
    fn decode(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        match u8::decode(reader)? {
            0 => Ok(Self::Replica(Wire::decode(reader)?)),
            1 => Ok(Self::Client(Wire::decode(reader)?)),
            other => Err(Malformed::Tag("a peer's kind", u64::from(other))),
        }
    }
}

/// One's own end: name and private key.
#[derive(Clone)]
pub struct Identity {
    pub(crate) peer: PeerId,
    pub(crate) secret: [u8; 32],
    public: LinkKey,
}

impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Identity({:?}, {:?})", self.peer, self.public)
    }
}

impl Identity {
    /// The identity of `peer` with this X25519 private key.
    #[must_use]
    pub fn new(peer: PeerId, secret: [u8; 32]) -> Self {
        let mut pair =
            DefaultResolver.resolve_dh(&DHChoice::Curve25519).expect("snow is built with curve25519");
        pair.set(&secret);
        let public = pair.pubkey().try_into().expect("an X25519 key has 32 bytes");
        Self { peer, secret, public: LinkKey(public) }
    }

    /// Whom it names.
    #[must_use]
    pub fn peer(&self) -> PeerId {
        self.peer
    }

    /// The secret that this end shares with that one and with nobody else, for a purpose of its own: the Diffie-Hellman
    /// secret of their keys, hashed with the purpose and with who they are. `None` for a key that gives none.
    #[must_use]
    pub fn shared_with(&self, purpose: &'static str, other: &LinkKey) -> Option<[u8; 32]> {
        let mut pair =
            DefaultResolver.resolve_dh(&DHChoice::Curve25519).expect("snow is built with curve25519");
        pair.set(&self.secret);
        let mut shared = [0; 32];
        pair.dh(&other.0, &mut shared).ok()?;
        if shared == [0; 32] {
            return None;
        }
        let (low, high) = (self.public.min(*other), self.public.max(*other));
        let mut hasher = Hasher::new(purpose);
        hasher.fixed(&shared).fixed(&low.0).fixed(&high.0);
        Some(hasher.finish().0)
    }

    /// The key that others must configure for it.
    #[must_use]
    pub fn public_key(&self) -> LinkKey {
        self.public
    }
}

/// A fresh X25519 private key.
///
/// # Errors
/// [`LinkError::Randomness`] where the operating system gives none.
pub fn generate_secret() -> Result<[u8; 32], LinkError> {
    let mut secret = [0; 32];
    let mut source = DefaultResolver.resolve_rng().ok_or(LinkError::Randomness)?;
    source.try_fill_bytes(&mut secret).map_err(|_| LinkError::Randomness)?;
    Ok(secret)
}
