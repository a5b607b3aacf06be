//! Signatures over 32-byte digests, behind a small interface so that the simulator can put an
//! unforgeable model in the place of the curve arithmetic that would dominate its time.

use crate::batch::{Item, check_all};
use core::fmt;
use ed25519_zebra::{SigningKey, VerificationKeyBytes};
use std::sync::Arc;
use troth_trusted_host::Statement;
use troth_types::{Digest, Signature};

/// A public key (32 bytes).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PublicKey(pub [u8; 32]);

impl fmt::Debug for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "key:{:02x}{:02x}{:02x}{:02x}", self.0[0], self.0[1], self.0[2], self.0[3])
    }
}

/// One signature to check.
#[derive(Clone, Copy, Debug)]
pub struct Check {
    /// Whose signature it should be.
    pub key: PublicKey,
    /// What it should cover.
    pub digest: Digest,
    /// The signature.
    pub signature: Signature,
}

/// Checks signatures.
pub trait SignatureScheme: Send + Sync + fmt::Debug {
    /// Whether the signature is good. The answer is the same at every replica and the same alone
    /// and in a batch; replicas that disagreed on a request's validity would part ways.
    fn verify(&self, check: &Check) -> bool;

    /// Whether each of the signatures is good, in order.
    fn verify_all(&self, checks: &[Check]) -> Vec<bool> {
        checks.iter().map(|check| self.verify(check)).collect()
    }

    /// As [`SignatureScheme::verify_all`], with signatures of trusted components beside them: the more are checked
    /// together, the less each takes.
    fn verify_beside(&self, checks: &[Check], statements: &[Statement]) -> (Vec<bool>, Vec<bool>) {
        (self.verify_all(checks), statements.iter().map(|statement| item_of(statement).is_good()).collect())
    }
}

/// Makes signatures with one private key.
pub trait Signer: Send + Sync + fmt::Debug {
    /// The key that checks them.
    fn public_key(&self) -> PublicKey;
    /// Signs a digest.
    fn sign(&self, digest: &Digest) -> Signature;
}

/// Ed25519 under ZIP-215 rules, under which batch and single verification accept the same set.
#[derive(Clone, Copy, Debug, Default)]
pub struct Ed25519;

impl SignatureScheme for Ed25519 {
    fn verify(&self, check: &Check) -> bool {
        check.item().is_good()
    }

    fn verify_all(&self, checks: &[Check]) -> Vec<bool> {
        check_all(&checks.iter().map(Check::item).collect::<Vec<_>>())
    }

    fn verify_beside(&self, checks: &[Check], statements: &[Statement]) -> (Vec<bool>, Vec<bool>) {
        let items: Vec<Item<'_>> =
            checks.iter().map(Check::item).chain(statements.iter().map(item_of)).collect();
        let mut good = check_all(&items);
        let statements = good.split_off(checks.len());
        (good, statements)
    }
}

impl Check {
    fn item(&self) -> Item<'_> {
        Item { key: &self.key.0, signature: &self.signature.0, message: &self.digest.0 }
    }
}

fn item_of(statement: &Statement) -> Item<'_> {
    Item { key: &statement.key, signature: &statement.signature, message: &statement.bytes }
}

/// An Ed25519 private key.
#[derive(Clone)]
pub struct Ed25519Signer {
    key: Arc<SigningKey>,
}

impl fmt::Debug for Ed25519Signer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Ed25519Signer({:?})", self.public_key())
    }
}

impl Ed25519Signer {
    /// The signer with this 32-byte secret seed.
    #[must_use]
    pub fn from_seed(seed: [u8; 32]) -> Self {
        Self { key: Arc::new(SigningKey::from(seed)) }
    }
}

impl Signer for Ed25519Signer {
    fn public_key(&self) -> PublicKey {
        PublicKey(VerificationKeyBytes::from(&*self.key).into())
    }
    fn sign(&self, digest: &Digest) -> Signature {
        Signature(self.key.sign(&digest.0).into())
    }
}
