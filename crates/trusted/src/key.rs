//! Keys: making proofs inside the component, checking them anywhere.

use crate::certificate::{self, Certificate, MultiCertificate, Proof};
use crate::value::{Digest, Identity};
use core::fmt;
use hmac::{Hmac, KeyInit, Mac};
use sha2::{Digest as _, Sha256, Sha512};

/// The key of a group for HMAC-SHA-256, held with its inner and outer pads already absorbed.
///
/// Every holder can make certificates of every member, so it belongs inside trusted components and
/// their verifiers only (paper 002 §2, "USIG-Hmac").
#[derive(Clone)]
pub struct MacKey(pub(crate) Hmac<Sha256>);

impl MacKey {
    /// The key made of 32 secret random bytes.
    pub fn new(secret: &[u8; 32]) -> Self {
        // HMAC pads a short key with zeros to one block; doing so here needs no fallible call.
        let mut block = [0u8; 64];
        block[..32].copy_from_slice(secret);
        Self(Hmac::new(&block.into()))
    }

    /// The verifying side, which holds the same secret.
    pub fn verifier(&self) -> MacVerifier {
        MacVerifier(self.clone())
    }

    /// The MAC of a statement.
    pub(crate) fn tag(&self, statement: &[u8]) -> [u8; 32] {
        (*self.0.clone().chain_update(statement).finalize().as_bytes()).into()
    }
}

impl fmt::Debug for MacKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("MacKey(secret)")
    }
}

/// The Ed25519 key of one component (paper 002 §2, "USIG-Sign"), with which it agrees on keys with single clients, too
/// (paper 000 §3.3): its point is that of an X25519 key in other coordinates.
#[derive(Clone)]
pub struct SigningKey {
    signing: ed25519_zebra::SigningKey,
    /// The scalar of that point, before it is clamped (RFC 8032 §5.1.5, RFC 7748 §5).
    pub(crate) scalar: [u8; 32],
}

impl SigningKey {
    /// The key whose seed is these 32 secret random bytes (RFC 8032 §5.1.5).
    pub fn new(secret: &[u8; 32]) -> Self {
        let mut scalar = [0; 32];
        scalar.copy_from_slice(&Sha512::digest(secret)[..32]);
        Self { signing: ed25519_zebra::SigningKey::from(*secret), scalar }
    }

    /// The verifying side, which holds the public key.
    pub fn verifier(&self) -> SignatureVerifier {
        SignatureVerifier(self.signing.verification_key())
    }
}

impl fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SigningKey(secret)")
    }
}

/// How a component proves its statements.
#[derive(Clone, Debug)]
pub enum Certifier {
    /// With the group's HMAC key.
    Mac(MacKey),
    /// With its own Ed25519 key.
    Signature(SigningKey),
}

impl Certifier {
    /// The proof of a statement; the same statement always gets the same proof.
    pub(crate) fn prove(&self, statement: &[u8]) -> Proof {
        match self {
            Self::Mac(key) => Proof::Mac(key.tag(statement)),
            Self::Signature(key) => Proof::Signature(key.signing.sign(statement).to_bytes()),
        }
    }
}

/// Checks certificates; needs no component and keeps no state.
pub trait Verifier {
    /// Whether `proof` is good for exactly these bytes.
    fn proves(&self, statement: &[u8], proof: &Proof) -> bool;

    /// Whether the component `identity` certified this move for `digest`. The epoch must be the one
    /// configured in `identity`.
    fn verify(&self, identity: &Identity, certificate: &Certificate, digest: &Digest) -> bool {
        certificate.epoch == identity.epoch
            && self.proves(&certificate::one(identity, &certificate.moved(), digest), &certificate.proof)
    }

    /// Whether the component `identity` certified all these moves together for `digest`.
    fn verify_multi(&self, identity: &Identity, certificate: &MultiCertificate, digest: &Digest) -> bool {
        certificate.epoch == identity.epoch
            && self.proves(&certificate::multi(identity, &certificate.moves, digest), &certificate.proof)
    }
}

/// Checks HMAC certificates of a group, in constant time.
#[derive(Clone, Debug)]
pub struct MacVerifier(pub(crate) MacKey);

impl Verifier for MacVerifier {
    fn proves(&self, statement: &[u8], proof: &Proof) -> bool {
        match proof {
            Proof::Mac(tag) => self.0.0.clone().chain_update(statement).verify(tag.into()).is_ok(),
            Proof::Signature(_) => false,
        }
    }
}

/// Checks Ed25519 certificates of one component, under the rules of ZIP-215.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SignatureVerifier(ed25519_zebra::VerificationKey);

impl SignatureVerifier {
    /// The verifier for a public key, or `None` if the bytes are no point of the curve.
    pub fn from_bytes(public: &[u8; 32]) -> Option<Self> {
        ed25519_zebra::VerificationKey::try_from(*public).ok().map(Self)
    }

    /// The public key.
    pub fn to_bytes(&self) -> [u8; 32] {
        self.0.into()
    }
}

impl Verifier for SignatureVerifier {
    fn proves(&self, statement: &[u8], proof: &Proof) -> bool {
        match proof {
            Proof::Signature(bytes) => {
                let signature = ed25519_zebra::Signature::from_bytes(bytes);
                self.0.verify(&signature, statement).is_ok()
            }
            Proof::Mac(_) => false,
        }
    }
}
