//! The keys that components share with single clients, so that a MAC convinces one of them (paper 000 §3.3). Whoever holds
//! neither the component's key nor the client's has none of it.

use crate::a2m::Peer;
use crate::key::{Certifier, MacKey, MacVerifier, SignatureVerifier};
use curve25519_dalek::edwards::CompressedEdwardsY;
use curve25519_dalek::montgomery::MontgomeryPoint;
use hmac::Mac;
use sha2::{Digest as _, Sha256};

/// What the secrets that a component shares with single clients are hashed behind.
const PEER_TAG: &[u8; 18] = b"troth-a2m-peers/v1";

/// A client's X25519 key.
#[derive(Clone)]
pub struct PeerKey {
    secret: [u8; 32],
    public: Peer,
}

impl PeerKey {
    /// The key whose private part this is.
    pub fn new(secret: &[u8; 32]) -> Self {
        Self { secret: *secret, public: MontgomeryPoint::mul_base_clamped(*secret).to_bytes() }
    }

    /// The public part, by which components know the client.
    pub fn public(&self) -> Peer {
        self.public
    }
}

impl core::fmt::Debug for PeerKey {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("PeerKey(secret)")
    }
}

/// The key of a component and a client: their Diffie-Hellman secret, hashed with who they are.
fn agreed(shared: MontgomeryPoint, component: &[u8; 32], peer: &Peer) -> [u8; 32] {
    let hash = Sha256::new().chain_update(PEER_TAG).chain_update(shared.as_bytes());
    hash.chain_update(component).chain_update(peer).finalize().into()
}

impl MacKey {
    /// The secret of this group's components and one client: whoever holds the group's key has it, too.
    fn shared_with(&self, peer: &Peer) -> [u8; 32] {
        (*self.0.clone().chain_update(PEER_TAG).chain_update(peer).finalize().as_bytes()).into()
    }
}

impl Certifier {
    /// The secret that the component shares with the client of this X25519 key.
    pub(crate) fn shared_with(&self, peer: &Peer) -> [u8; 32] {
        match self {
            Self::Mac(key) => key.shared_with(peer),
            Self::Signature(key) => {
                let shared = MontgomeryPoint(*peer).mul_clamped(key.scalar);
                agreed(shared, &key.verifier().to_bytes(), peer)
            }
        }
    }
}

impl MacVerifier {
    /// What checks the MACs that the group's components make for one client alone.
    pub fn shared_with(&self, peer: &Peer) -> MacVerifier {
        MacVerifier(MacKey::new(&self.0.shared_with(peer)))
    }
}

impl SignatureVerifier {
    /// What checks the MACs that this component makes for the client with this key.
    pub fn shared_with(&self, client: &PeerKey) -> Option<MacVerifier> {
        let bytes = self.to_bytes();
        let component = CompressedEdwardsY(bytes).decompress()?.to_montgomery();
        let shared = component.mul_clamped(client.secret);
        Some(MacVerifier(MacKey::new(&agreed(shared, &bytes, &client.public))))
    }
}
