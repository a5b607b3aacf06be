//! Certificates that were found good are not computed anew.
//!
//! The same certificate comes many times: with each message of a run, from whoever sends again what another
//! may lack, and inside every VIEW-CHANGE and NEW-VIEW. A signature costs a hundred times what looking it up
//! costs, and a replica that is behind, or a group that changes its view, gets so many of them that it would
//! fall further behind while it checks what it has checked before.

use std::collections::{BTreeSet, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};
use troth_auth::{encode_attestation, encode_certificate};
use troth_trusted::a2m::{Attestation, Content, LogId, Nonce, Request, Slot};
use troth_trusted::{Certificate, Digest, MacVerifier, MultiCertificate, Proof, RunProof};
use troth_trusted_host::{AttestationVerifier, CertificateVerifier, Statement};
use troth_types::{Digest as Name, Hasher};

/// Certificates remembered: what the windows of some ten replicas hold, in about four megabytes.
const MOST: usize = 1 << 15;

/// A verifier that remembers what it found good, and nothing else: who sends what does not verify can make
/// it forget nothing.
///
/// A certificate's name covers everything that its verdict depends on but the members' keys, which do not
/// change under a verifier. Whoever has other keys makes another verifier.
pub(crate) struct Remembering<V> {
    verifier: V,
    good: Mutex<Good>,
}

#[derive(Default)]
struct Good {
    names: BTreeSet<Name>,
    /// Oldest first.
    order: VecDeque<Name>,
}

impl<V> Remembering<V> {
    pub(crate) fn new(verifier: V) -> Self {
        Self { verifier, good: Mutex::default() }
    }

    fn good(&self) -> MutexGuard<'_, Good> {
        self.good.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Good {
    fn remember(&mut self, name: Name) {
        if self.names.insert(name) {
            self.order.push_back(name);
        }
        while self.order.len() > MOST
            && let Some(oldest) = self.order.pop_front()
        {
            self.names.remove(&oldest);
        }
    }
}

impl<V: CertificateVerifier> CertificateVerifier for Remembering<V> {
    fn verify(&self, replica: u16, certificate: &Certificate, digest: &Digest) -> bool {
        // Computing a MAC costs what looking it up would.
        if matches!(certificate.proof, Proof::Mac(_)) {
            return self.verifier.verify(replica, certificate, digest);
        }
        let name = name(replica, certificate, digest);
        if self.good().names.contains(&name) {
            return true;
        }
        let good = self.verifier.verify(replica, certificate, digest);
        if good {
            self.good().remember(name);
        }
        good
    }

    fn signed(&self, replica: u16, certificate: &Certificate, digest: &Digest) -> Option<Statement> {
        let statement = self.verifier.signed(replica, certificate, digest)?;
        let known = self.good().names.contains(&name(replica, certificate, digest));
        (!known).then_some(statement)
    }

    fn found_good(&self, replica: u16, certificate: &Certificate, digest: &Digest) {
        self.good().remember(name(replica, certificate, digest));
    }

    fn verify_multi(&self, replica: u16, certificate: &MultiCertificate, digest: &Digest) -> bool {
        self.verifier.verify_multi(replica, certificate, digest)
    }
}

impl<V: AttestationVerifier> AttestationVerifier for Remembering<V> {
    fn lookup(
        &self,
        replica: u16,
        attestation: &Attestation,
        log: LogId,
        slot: Slot,
        nonce: &Nonce,
    ) -> Option<Content> {
        let check = || self.verifier.lookup(replica, attestation, log, slot, nonce);
        if matches!(attestation.proof, Proof::Mac(_)) {
            return check();
        }
        let claim = &attestation.claim;
        let asked =
            (claim.request, claim.log, claim.slot, claim.nonce) == (Request::Lookup, log, slot, *nonce);
        let name = attestation_name(replica, attestation);
        if asked && self.good().names.contains(&name) {
            return Some(claim.content);
        }
        let content = check();
        if content.is_some() {
            self.good().remember(name);
        }
        content
    }

    /// Computing a MAC costs what looking it up would.
    fn lookup_for(
        &self,
        key: &MacVerifier,
        replica: u16,
        attestation: &Attestation,
        log: LogId,
        slot: Slot,
        nonce: &Nonce,
    ) -> Option<Content> {
        self.verifier.lookup_for(key, replica, attestation, log, slot, nonce)
    }

    /// Its nonce is of one question only, so it does not come twice.
    fn end(
        &self,
        replica: u16,
        attestation: &Attestation,
        log: LogId,
        nonce: &Nonce,
        among: &RunProof,
    ) -> Option<(Slot, Content)> {
        self.verifier.end(replica, attestation, log, nonce, among)
    }
}

/// Names an attestation of this replica's component; of variable length is only what its own bytes tell.
fn attestation_name(replica: u16, attestation: &Attestation) -> Name {
    let mut encoded = Vec::with_capacity(256);
    encode_attestation(attestation, &mut encoded);
    let mut hasher = Hasher::new("troth-node-attestation");
    hasher.number(replica.into()).bytes(&encoded);
    hasher.finish()
}

/// Names a certificate of this replica for this digest; every field has a fixed length.
fn name(replica: u16, certificate: &Certificate, digest: &Digest) -> Name {
    let mut encoded = Vec::with_capacity(128);
    encode_certificate(certificate, &mut encoded);
    let mut hasher = Hasher::new("troth-node-certificate");
    hasher.number(replica.into()).fixed(digest).fixed(&encoded);
    hasher.finish()
}
