//! Checking what the components of a group certified.

use std::collections::BTreeMap;
use troth_trusted::certificate::{ONE, statement};
use troth_trusted::{
    Certificate, Digest, Epoch, Identity, MacVerifier, MultiCertificate, Proof, SignatureVerifier, Verifier,
};

/// An Ed25519 signature that decides whether a certificate is good.
#[derive(Clone, Copy, Debug)]
pub struct Statement {
    /// The component's public key.
    pub key: [u8; 32],
    /// What it must have signed.
    pub bytes: [u8; ONE],
    /// The signature.
    pub signature: [u8; 64],
}

/// Checks certificates of the components of one group, whose identities and keys come from
/// configuration. It keeps no state, so any thread may use it.
pub trait CertificateVerifier: Send + Sync {
    /// Whether the component of `replica` certified this move for `digest`.
    fn verify(&self, replica: u16, certificate: &Certificate, digest: &Digest) -> bool;

    /// The signature on which [`CertificateVerifier::verify`] would decide; `None` where it decides without one.
    /// Many signatures are cheaper together.
    fn signed(&self, replica: u16, certificate: &Certificate, digest: &Digest) -> Option<Statement> {
        let _ = (replica, certificate, digest);
        None
    }

    /// The signature that [`CertificateVerifier::signed`] named is good: it need not be checked again.
    fn found_good(&self, replica: u16, certificate: &Certificate, digest: &Digest) {
        let _ = (replica, certificate, digest);
    }

    /// Whether the component of `replica` certified all these moves together for `digest`.
    fn verify_multi(&self, replica: u16, certificate: &MultiCertificate, digest: &Digest) -> bool;

    /// The verdict on each item, in order; for homes that check many at less than many times the
    /// price.
    fn verify_batch(&self, items: &[(u16, &Certificate, &Digest)]) -> Vec<bool> {
        items
            .iter()
            .map(|(replica, certificate, digest)| self.verify(*replica, certificate, digest))
            .collect()
    }
}

/// The key material that checks one member's certificates.
#[derive(Clone, Debug)]
pub enum MemberKey {
    /// The group's HMAC key.
    Mac(MacVerifier),
    /// The member's Ed25519 public key.
    Signature(SignatureVerifier),
}

impl From<MacVerifier> for MemberKey {
    fn from(key: MacVerifier) -> Self {
        Self::Mac(key)
    }
}

impl From<SignatureVerifier> for MemberKey {
    fn from(key: SignatureVerifier) -> Self {
        Self::Signature(key)
    }
}

impl Verifier for MemberKey {
    fn proves(&self, statement: &[u8], proof: &troth_trusted::Proof) -> bool {
        match self {
            Self::Mac(key) => key.proves(statement, proof),
            Self::Signature(key) => key.proves(statement, proof),
        }
    }
}

/// A replica was configured with two components of one epoch.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("replica {0} has two trusted components of one epoch in the configuration; leave one")]
pub struct TwiceConfigured(pub u16);

/// The verifier in this process, with the configured identity and key of every member.
#[derive(Clone, Debug)]
pub struct GroupVerifier {
    members: BTreeMap<(u16, Epoch), (Identity, MemberKey)>,
}

impl GroupVerifier {
    /// The verifier for these members. A replica whose component was replaced is there once for each epoch.
    ///
    /// # Errors
    /// [`TwiceConfigured`] if two members are of the same replica and epoch.
    pub fn new(members: impl IntoIterator<Item = (Identity, MemberKey)>) -> Result<Self, TwiceConfigured> {
        let mut known = BTreeMap::new();
        for (identity, key) in members {
            if known.insert((identity.replica, identity.epoch), (identity, key)).is_some() {
                return Err(TwiceConfigured(identity.replica));
            }
        }
        Ok(Self { members: known })
    }

    /// The configured identity of a member; of the last epoch, where there are more.
    pub fn identity(&self, replica: u16) -> Option<Identity> {
        let mut epochs = self.members.range((replica, Epoch(0))..=(replica, Epoch(u64::MAX)));
        epochs.next_back().map(|(_, (identity, _))| *identity)
    }

    /// A member as it was configured for that epoch.
    pub(crate) fn member(&self, replica: u16, epoch: Epoch) -> Option<&(Identity, MemberKey)> {
        self.members.get(&(replica, epoch))
    }
}

impl CertificateVerifier for GroupVerifier {
    fn verify(&self, replica: u16, certificate: &Certificate, digest: &Digest) -> bool {
        self.members
            .get(&(replica, certificate.epoch))
            .is_some_and(|(identity, key)| key.verify(identity, certificate, digest))
    }

    fn signed(&self, replica: u16, certificate: &Certificate, digest: &Digest) -> Option<Statement> {
        let (identity, key) = self.members.get(&(replica, certificate.epoch))?;
        match (key, &certificate.proof) {
            (MemberKey::Signature(key), Proof::Signature(signature)) => Some(Statement {
                key: key.to_bytes(),
                bytes: statement(identity, certificate, digest),
                signature: *signature,
            }),
            _ => None,
        }
    }

    fn verify_multi(&self, replica: u16, certificate: &MultiCertificate, digest: &Digest) -> bool {
        self.members
            .get(&(replica, certificate.epoch))
            .is_some_and(|(identity, key)| key.verify_multi(identity, certificate, digest))
    }
}
