//! How a client shows that a session is its own: with a signature of a key that follows from the session's password. Its
//! gateway makes it, so that no replica ever sees the password.

use troth_auth::{Check, Ed25519, Ed25519Signer, PublicKey, SignatureScheme, Signer};
use troth_types::{ClientId, Digest, GroupId, Hasher, Signature};

/// A session's password, as the client has it.
pub type Password = [u8; 16];

/// Who carries a session, or is to. A proof for one gateway is none for another, so whoever sees it has no use for it: what
/// this gateway says in this group it says with its own key, and once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Carrier {
    /// The group. Sessions outlive groups, whose backups are restored to others, in which the same numbers are of other
    /// clients.
    pub group: GroupId,
    /// The gateway, as a client of the group: no other one ever has its number there.
    pub gateway: ClientId,
}

/// What is signed.
fn claim(carrier: Carrier, session: i64) -> Digest {
    let mut hasher = Hasher::new("troth/zookeeper/attach/v1");
    hasher.fixed(&carrier.group.0).number(carrier.gateway.0).number(session.cast_unsigned());
    hasher.finish()
}

fn signer(password: &Password) -> Ed25519Signer {
    let mut hasher = Hasher::new("troth/zookeeper/password/v2");
    hasher.fixed(password);
    Ed25519Signer::from_seed(hasher.finish().0)
}

/// What the service keeps of a password: the key that checks proofs of it.
#[must_use]
pub fn key_of(password: &Password) -> PublicKey {
    signer(password).public_key()
}

/// Proves that this gateway is to carry a session with this password.
#[must_use]
pub fn prove(password: &Password, carrier: Carrier, session: i64) -> Signature {
    signer(password).sign(&claim(carrier, session))
}

/// Whether that was proved.
#[must_use]
pub fn is_proved(key: PublicKey, carrier: Carrier, session: i64, proof: &Signature) -> bool {
    Ed25519.verify(&Check { key, digest: claim(carrier, session), signature: *proof })
}
