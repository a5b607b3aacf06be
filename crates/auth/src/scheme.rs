//! Signatures over 32-byte digests, behind a small interface so that the simulator can put an
//! unforgeable model in the place of the curve arithmetic that would dominate its time.

use crate::known_keys;
use core::fmt;
use ed25519_zebra::{SigningKey, VerificationKeyBytes, batch};
use std::sync::Arc;
use troth_trusted_host::Statement;
use troth_types::{Digest, Hasher, Signature};

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
    /// together, the less each takes. Where a component's is bad it costs none of the others their batch.
    fn verify_beside(&self, checks: &[Check], statements: &[Statement]) -> (Vec<bool>, Vec<bool>) {
        (self.verify_all(checks), statements.iter().map(Ed25519::is_good).collect())
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
        let Some(key) = known_keys::key(&check.key.0) else { return false };
        key.verify(&ed25519_zebra::Signature::from(check.signature.0), &check.digest.0).is_ok()
    }

    fn verify_all(&self, checks: &[Check]) -> Vec<bool> {
        if !gains_by_batch(checks.len()) {
            return checks.iter().map(|check| self.verify(check)).collect();
        }
        if queued(checks).verify(batch_rng(checks, &[])).is_ok() {
            return vec![true; checks.len()];
        }
        // One bad signature spoils a batch; its sender is found by looking at each.
        checks.iter().map(|check| self.verify(check)).collect()
    }

    fn verify_beside(&self, checks: &[Check], statements: &[Statement]) -> (Vec<bool>, Vec<bool>) {
        if gains_by_batch(statements.len() + checks.len()) && !statements.is_empty() {
            let mut verifier = queued(checks);
            for Statement { key, bytes, signature } in statements {
                let signature = ed25519_zebra::Signature::from(*signature);
                verifier.queue((VerificationKeyBytes::from(*key), signature, bytes));
            }
            if verifier.verify(batch_rng(checks, statements)).is_ok() {
                return (vec![true; checks.len()], vec![true; statements.len()]);
            }
        }
        (self.verify_all(checks), statements.iter().map(Self::is_good).collect())
    }
}

impl Ed25519 {
    fn is_good(statement: &Statement) -> bool {
        let Some(key) = known_keys::key(&statement.key) else { return false };
        key.verify(&ed25519_zebra::Signature::from(statement.signature), &statement.bytes).is_ok()
    }
}

/// Whether so many signatures are checked faster together than one after the other. A batch takes the points of all keys
/// anew; one that is checked alone has its key's from the last time. Two take 54 µs together and 38 alone (78 both without
/// AVX-512); from three on a server under load checks more in batches, whatever a loop over nothing else shows.
fn gains_by_batch(checks: usize) -> bool {
    checks > 2
}

fn queued(checks: &[Check]) -> batch::Verifier {
    let mut verifier = batch::Verifier::new();
    for check in checks {
        let signature = ed25519_zebra::Signature::from(check.signature.0);
        verifier.queue((VerificationKeyBytes::from(check.key.0), signature, &check.digest.0));
    }
    verifier
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

/// The coefficients of a batch check, derived from everything that is checked: whoever chose the
/// signatures could not choose the coefficients, and the check needs no source of randomness.
fn batch_rng(checks: &[Check], statements: &[Statement]) -> Coefficients {
    let mut hasher = Hasher::new("troth/batch-coefficients/v1");
    for check in checks {
        hasher.fixed(&check.key.0).digest(&check.digest).fixed(&check.signature.0);
    }
    // How many there are tells the two kinds apart.
    hasher.number(checks.len() as u64);
    for Statement { key, bytes, signature } in statements {
        hasher.fixed(key).fixed(bytes).fixed(signature);
    }
    Coefficients { seed: hasher.finish(), counter: 0 }
}

struct Coefficients {
    seed: Digest,
    counter: u64,
}

impl Coefficients {
    fn block(&mut self) -> [u8; 32] {
        let mut hasher = Hasher::new("troth/batch-coefficient/v1");
        hasher.digest(&self.seed).number(self.counter);
        self.counter += 1;
        hasher.finish().0
    }
}

impl rand_core::TryRng for Coefficients {
    type Error = core::convert::Infallible;
    fn try_next_u32(&mut self) -> Result<u32, Self::Error> {
        rand_core::utils::next_word_via_fill(self)
    }
    fn try_next_u64(&mut self) -> Result<u64, Self::Error> {
        rand_core::utils::next_word_via_fill(self)
    }
    fn try_fill_bytes(&mut self, bytes: &mut [u8]) -> Result<(), Self::Error> {
        for chunk in bytes.chunks_mut(32) {
            let block = self.block();
            chunk.copy_from_slice(&block[..chunk.len()]);
        }
        Ok(())
    }
}

impl rand_core::TryCryptoRng for Coefficients {}
