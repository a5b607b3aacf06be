//! An unforgeable model of signatures for the simulator: fast, and good for nothing else. A
//! signature is a hash over a secret that only the signer object holds; the scheme knows all
//! secrets. Code that goes through these interfaces cannot forge, whatever bytes it invents.

use crate::{Authenticators, Check, PairKey, PairKeys, PublicKey, SignatureScheme, Signer};
use std::collections::BTreeMap;
use troth_types::{ClientId, Digest, Group, Hasher, ReplicaId, Signature};

/// Signs in the model.
#[derive(Clone, Debug)]
pub struct ModelSigner {
    key: PublicKey,
    secret: Digest,
}

impl ModelSigner {
    /// The signer that `seed` names.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        let mut key = Hasher::new("troth/model-key");
        key.number(seed);
        let mut secret = Hasher::new("troth/model-secret");
        secret.number(seed);
        Self { key: PublicKey(key.finish().0), secret: secret.finish() }
    }
}

fn model_signature(secret: &Digest, digest: &Digest) -> Signature {
    let mut hasher = Hasher::new("troth/model-signature");
    hasher.digest(secret).digest(digest);
    let half = hasher.finish().0;
    let mut bytes = [0; 64];
    bytes[..32].copy_from_slice(&half);
    bytes[32..].copy_from_slice(&half);
    Signature(bytes)
}

impl Signer for ModelSigner {
    fn public_key(&self) -> PublicKey {
        self.key
    }
    fn sign(&self, digest: &Digest) -> Signature {
        model_signature(&self.secret, digest)
    }
}

/// Checks model signatures.
#[derive(Clone, Debug, Default)]
pub struct ModelScheme {
    secrets: BTreeMap<PublicKey, Digest>,
}

impl ModelScheme {
    /// Makes a signer's signatures checkable.
    pub fn register(&mut self, signer: &ModelSigner) {
        self.secrets.insert(signer.key, signer.secret);
    }
}

impl SignatureScheme for ModelScheme {
    fn verify(&self, check: &Check) -> bool {
        self.secrets
            .get(&check.key)
            .is_some_and(|secret| model_signature(secret, &check.digest) == check.signature)
    }
}

/// The keys that clients and replicas of a simulated world share.
#[derive(Clone, Copy, Debug)]
pub struct ModelPairs {
    me: ReplicaId,
}

impl ModelPairs {
    /// A replica's.
    #[must_use]
    pub fn of(me: ReplicaId) -> Self {
        Self { me }
    }

    /// A client's, for all replicas of a group.
    #[must_use]
    pub fn of_client(client: ClientId, group: &Group) -> Authenticators {
        Authenticators::new(group.all().map(|replica| Self::of(replica).key(client)))
    }
}

impl ModelPairs {
    fn key(self, client: ClientId) -> PairKey {
        let mut key = Hasher::new("troth/model-pair");
        key.number(client.0).number(u64::from(self.me.0));
        PairKey::new(&key.finish().0)
    }
}

impl PairKeys for ModelPairs {
    fn with(&self, client: ClientId, _: &[u8; 32]) -> Option<PairKey> {
        Some(self.key(client))
    }
}
