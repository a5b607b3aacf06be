//! What makes a replica's message authentic: a unique identifier of its trusted component, or its
//! host's signature.

use crate::Directory;
use crate::attestation::Looked;
use crate::{Check, SignatureScheme, Verified};
use core::fmt;
use std::sync::Arc;
use troth_trusted::a2m::{Attestation, Content};
use troth_trusted::run::{Path, certified_digest, position};
use troth_trusted::{Certificate, CounterId, CounterValue, Epoch, Proof, RunProof};
use troth_trusted_host::{AttestationVerifier, CertificateVerifier, Statement};
use troth_types::{Digest, GroupId, Malformed, Reader, ReplicaId, Signature, Wire};

/// A unique identifier (MinBFT §2): the certificate of a counter's move, with the message's place in
/// the run that the move covers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ui {
    /// The component's certificate.
    pub certificate: Certificate,
    /// The message's place in the run, where it was not certified alone.
    pub run: Option<Box<RunProof>>,
}

impl Ui {
    fn proof(&self) -> &RunProof {
        self.run.as_deref().unwrap_or(&RunProof::SINGLE)
    }

    /// The counter value of the message; zero where certificate and run do not fit each other (such
    /// an identifier never verifies).
    #[must_use]
    pub fn value(&self) -> CounterValue {
        position(&self.certificate.moved(), self.proof()).map_or(CounterValue(0), |position| position.value)
    }

    /// The counter value of the message that must come before.
    #[must_use]
    pub fn predecessor(&self) -> CounterValue {
        position(&self.certificate.moved(), self.proof())
            .map_or(CounterValue(0), |position| position.predecessor)
    }
}

impl Wire for Ui {
    fn encode(&self, out: &mut Vec<u8>) {
        encode_certificate(&self.certificate, out);
        match &self.run {
            None => 0u16.encode(out),
            Some(run) => {
                run.count.encode(out);
                run.index.encode(out);
                let path = run.path.as_slice();
                out.push(u8::try_from(path.len()).expect("a path has at most eight siblings"));
                for sibling in path {
                    out.extend_from_slice(sibling);
                }
            }
        }
    }
    fn decode(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        let certificate = decode_certificate(reader)?;
        let run = match u16::decode(reader)? {
            0 => None,
            1 => return Err(Malformed::Invalid("a run of one is written without a run")),
            count => {
                let index = u16::decode(reader)?;
                let length = u8::decode(reader)?;
                let mut siblings = Vec::new();
                for _ in 0..length.min(9) {
                    siblings.push(reader.array::<32>()?);
                }
                let path =
                    Path::new(&siblings).ok_or(Malformed::TooLong("a run's path", u64::from(length)))?;
                Some(Box::new(RunProof { index, count, path }))
            }
        };
        Ok(Self { certificate, run })
    }
}

/// Appends the encoding of a certificate.
pub fn encode_certificate(certificate: &Certificate, out: &mut Vec<u8>) {
    certificate.epoch.0.encode(out);
    certificate.counter.0.encode(out);
    certificate.previous.0.encode(out);
    certificate.new.0.encode(out);
    encode_proof(&certificate.proof, out);
}

pub(crate) fn encode_proof(proof: &Proof, out: &mut Vec<u8>) {
    match proof {
        Proof::Mac(mac) => {
            out.push(0);
            out.extend_from_slice(mac);
        }
        Proof::Signature(signature) => {
            out.push(1);
            out.extend_from_slice(signature);
        }
    }
}

/// Reads a certificate.
pub fn decode_certificate(reader: &mut Reader<'_>) -> Result<Certificate, Malformed> {
    Ok(Certificate {
        epoch: Epoch(Wire::decode(reader)?),
        counter: CounterId(Wire::decode(reader)?),
        previous: CounterValue(Wire::decode(reader)?),
        new: CounterValue(Wire::decode(reader)?),
        proof: decode_proof(reader)?,
    })
}

pub(crate) fn decode_proof(reader: &mut Reader<'_>) -> Result<Proof, Malformed> {
    Ok(match u8::decode(reader)? {
        0 => Proof::Mac(reader.array()?),
        1 => Proof::Signature(reader.array()?),
        other => return Err(Malformed::Tag("a certificate's proof", u64::from(other))),
    })
}

/// What vouches for a message of this replica.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Seal {
    /// Its trusted component, by the move of a counter.
    Ui(Ui),
    /// Its trusted component, by the slot of a log that holds the message's digest.
    Slot(Attestation),
    /// Its host's key.
    Signature(Signature),
}

/// One thing that must be true for a message to be authentic.
#[derive(Clone, Debug)]
pub struct Claim<'a> {
    /// Who is said to have made it.
    pub by: ReplicaId,
    /// What was certified or signed.
    pub digest: Digest,
    /// The evidence.
    pub evidence: Evidence<'a>,
}

/// The evidence of a [`Claim`].
#[derive(Clone, Debug)]
pub enum Evidence<'a> {
    /// A unique identifier, and the counter that it must have moved: each counter of a component would
    /// give every value once.
    Ui(CounterId, &'a Ui),
    /// The lookup of a slot that is filled with the claim's digest.
    Assigned(Looked<'a>),
    /// The lookup of a slot that was passed over, by an advance to one that is filled with the claim's digest.
    Skipped(Looked<'a>),
    /// A host's signature. What a replica's host signed before it was replaced may stand in a log.
    Signature(&'a Signature),
    /// The signature of the host that the replica has now.
    PresentSignature(&'a Signature),
}

/// A message that says what must be checked before anybody acts on it.
pub trait Authentic {
    /// Lists everything to check, nested messages included; an error where the message breaks a rule
    /// of form that needs no key.
    fn claims<'a>(&'a self, group: GroupId, claims: &mut Vec<Claim<'a>>) -> Result<(), Malformed>;
}

/// The components whose certificates a message rests on, each by its replica and its epoch, once. Nothing of a
/// message that is malformed.
pub fn epochs_in<M: Authentic>(message: &M, group: GroupId) -> Vec<(ReplicaId, u64)> {
    let mut claims = Vec::new();
    if message.claims(group, &mut claims).is_err() {
        return Vec::new();
    }
    let component = |claim: &Claim<'_>| match claim.evidence {
        Evidence::Ui(_, ui) => Some((claim.by, ui.certificate.epoch.0)),
        Evidence::Assigned(looked) | Evidence::Skipped(looked) => {
            Some((claim.by, looked.attestation.epoch.0))
        }
        Evidence::Signature(_) | Evidence::PresentSignature(_) => None,
    };
    let mut components: Vec<(ReplicaId, u64)> = claims.iter().filter_map(component).collect();
    components.sort_unstable();
    components.dedup();
    components
}

/// Why a replica's message was not accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MessageError {
    /// It breaks a rule of form.
    Malformed(Malformed),
    /// It names a replica that the group does not have.
    UnknownReplica(ReplicaId),
    /// It rests on a certificate of an epoch that the configuration does not know, or no longer: this replica
    /// or its sender lags behind.
    UnknownEpoch(ReplicaId, u64),
    /// A certificate or signature, said to be this replica's, does not verify.
    Forged(ReplicaId),
}

impl fmt::Display for MessageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Malformed(why) => write!(f, "malformed: {why}"),
            Self::UnknownReplica(replica) => write!(f, "names {replica}, which the group does not have"),
            Self::UnknownEpoch(replica, epoch) => {
                write!(f, "names epoch {epoch} of {replica}, which the configuration does not have")
            }
            Self::Forged(replica) => write!(f, "evidence said to be {replica}'s does not verify"),
        }
    }
}

impl std::error::Error for MessageError {}

/// Signatures named at once: a batch gains little from more, and the rest is checked where it is needed.
const MOST_TOGETHER: usize = 128;

/// A certificate whose signature is to be checked.
#[derive(Clone, Debug)]
pub struct Signed {
    by: u16,
    certificate: Certificate,
    covered: [u8; 32],
    /// The signature.
    pub statement: Statement,
}

/// Checks messages between the replicas of one group.
#[derive(Clone)]
pub struct MessageVerifier {
    directory: Arc<Directory>,
    scheme: Arc<dyn SignatureScheme>,
    certificates: Arc<dyn CertificateVerifier>,
    attestations: Option<Arc<dyn AttestationVerifier>>,
}

impl fmt::Debug for MessageVerifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "MessageVerifier({:?})", self.directory.group)
    }
}

impl MessageVerifier {
    /// A verifier with the group's keys.
    #[must_use]
    pub fn new(
        directory: Arc<Directory>,
        scheme: Arc<dyn SignatureScheme>,
        certificates: Arc<dyn CertificateVerifier>,
    ) -> Self {
        Self { directory, scheme, certificates, attestations: None }
    }

    /// The same for a group whose components keep logs. Without it no attestation convinces.
    #[must_use]
    pub fn with_attestations(self, attestations: Arc<dyn AttestationVerifier>) -> Self {
        Self { attestations: Some(attestations), ..self }
    }

    /// The same with the keys of another configuration.
    #[must_use]
    pub fn with_directory(&self, directory: Arc<Directory>) -> Self {
        Self { directory, ..self.clone() }
    }

    /// Checks everything that the message claims.
    pub fn verify<M: Authentic>(&self, message: M) -> Result<Verified<M>, MessageError> {
        let mut claims = Vec::new();
        message.claims(self.directory.group, &mut claims).map_err(MessageError::Malformed)?;
        for claim in &claims {
            self.check(claim)?;
        }
        Ok(Verified::new(message))
    }

    /// Names the signatures of components that messages rest on, for a check of all of them together: what is good
    /// is then told by [`MessageVerifier::found_good`], and [`MessageVerifier::verify`] does not check it again.
    /// Nothing where certificates are no signatures.
    pub fn signed<'a, M: Authentic + 'a>(&self, messages: impl IntoIterator<Item = &'a M>) -> Vec<Signed> {
        let mut all: Vec<Signed> = Vec::new();
        for message in messages {
            let mut claims = Vec::new();
            if message.claims(self.directory.group, &mut claims).is_err() {
                continue;
            }
            for claim in &claims {
                let Evidence::Ui(_, ui) = claim.evidence else { continue };
                let covered = certified_digest(&ui.certificate.moved(), ui.proof(), &claim.digest.0);
                let Some(covered) = covered else { continue };
                if all.len() == MOST_TOGETHER {
                    return all;
                }
                let by = claim.by.0;
                // The same one comes with each message of a run, and inside others.
                if all
                    .iter()
                    .any(|one| one.certificate.proof == ui.certificate.proof && one.covered == covered)
                {
                    continue;
                }
                if let Some(statement) = self.certificates.signed(by, &ui.certificate, &covered) {
                    all.push(Signed { by, certificate: ui.certificate.clone(), covered, statement });
                }
            }
        }
        all
    }

    /// These signatures are good.
    pub fn found_good<'a>(&self, signed: impl IntoIterator<Item = &'a Signed>) {
        for Signed { by, certificate, covered, .. } in signed {
            self.certificates.found_good(*by, certificate, covered);
        }
    }

    fn check(&self, claim: &Claim<'_>) -> Result<(), MessageError> {
        let mut keys = self.directory.replica(claim.by).ok_or(MessageError::UnknownReplica(claim.by))?;
        let signed = |key, signature: &Signature| {
            self.scheme.verify(&Check { key, digest: claim.digest, signature: *signature })
        };
        let good = match claim.evidence {
            Evidence::Ui(counter, ui) => {
                let epoch = ui.certificate.epoch.0;
                if self.directory.configuration().admission(claim.by, epoch).is_none() {
                    return Err(MessageError::UnknownEpoch(claim.by, epoch));
                }
                ui.certificate.counter == counter
                    && certified_digest(&ui.certificate.moved(), ui.proof(), &claim.digest.0).is_some_and(
                        |covered| self.certificates.verify(claim.by.0, &ui.certificate, &covered),
                    )
            }
            Evidence::Assigned(looked) => matches!(
                self.look(claim.by, &looked)?,
                Some(Content::Assigned { value, .. }) if value == claim.digest.0
            ),
            Evidence::Skipped(looked) => matches!(
                self.look(claim.by, &looked)?,
                Some(Content::Skipped { value, .. }) if value == claim.digest.0
            ),
            Evidence::Signature(signature) => keys.any(|key| signed(key, signature)),
            Evidence::PresentSignature(signature) => keys.next().is_some_and(|key| signed(key, signature)),
        };
        if good { Ok(()) } else { Err(MessageError::Forged(claim.by)) }
    }

    /// What a replica's log says of a slot, if the attestation answers just this question.
    fn look(&self, by: ReplicaId, looked: &Looked<'_>) -> Result<Option<Content>, MessageError> {
        let Looked { log, slot, nonce, attestation } = looked;
        let epoch = attestation.epoch.0;
        if self.directory.configuration().admission(by, epoch).is_none() {
            return Err(MessageError::UnknownEpoch(by, epoch));
        }
        let verifier = self.attestations.as_ref();
        Ok(verifier.and_then(|verifier| verifier.lookup(by.0, attestation, *log, *slot, nonce)))
    }
}
