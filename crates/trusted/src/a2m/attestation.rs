//! What is attested of a log, the bytes that a proof covers, and checking it (paper 000 §3.1, §3.2).

use super::log::Content;
use super::{LogId, Nonce, Slot, rule};
use crate::certificate::{Proof, Writer};
use crate::key::Verifier;
use crate::run::{RunProof, root_over};
use crate::value::{Epoch, Identity};
use sha2::{Digest as _, Sha256};

/// What was asked for. An attestation of one never stands for the other: a lookup of the last slot does not
/// say that it is the last.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Request {
    /// What a slot holds.
    Lookup,
    /// Where the log ends, and what the last slot holds.
    End,
}

/// What a component says of one of its logs: `⟨tag, q, n, z, x, w, n', d⟩`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Claim {
    /// The tag.
    pub request: Request,
    /// The log: `q`.
    pub log: LogId,
    /// The slot: `n`; the last one of the log for [`Request::End`].
    pub slot: Slot,
    /// The nonce of whoever asked: `z`.
    pub nonce: Nonce,
    /// What the log says of the slot: `x`, `w`, `n'` and `d`.
    pub content: Content,
}

/// A claim with the evidence that a component made it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Attestation {
    /// The epoch of the component that made it.
    pub epoch: Epoch,
    /// What it says.
    pub claim: Claim,
    /// The evidence.
    pub proof: Proof,
}

const FIELDS_TAG: &[u8; 19] = b"troth-a2m-fields/v1";
const FIELDS: usize = FIELDS_TAG.len() + 16 + 2 + 8 + 1 + 2 + 16 + 32 + 1 + 16 + 32 + 32;
const TAG: &[u8; 12] = b"troth-a2m/v1";

/// Length in bytes of what the proof of an attestation covers.
pub const STATEMENT: usize = TAG.len() + 32;

/// What the proof of an attestation covers: `tag ‖ SHA-256` of all fields, for the component `identity`.
/// The tag is that of no counter certificate, so under one key a proof of either is none of the other.
/// Whoever uses it compares the epochs.
pub fn statement(identity: &Identity, claim: &Claim) -> [u8; STATEMENT] {
    rule!("A2M-A1");
    let (kind, at, value, digest) = match claim.content {
        Content::Assigned { value, digest } => (1, claim.slot, value, digest),
        Content::Skipped { end, value, digest } => (2, end, value, digest),
        Content::Unassigned { high } => (3, high, [0; 32], [0; 32]),
        Content::Forgotten { low } => (4, low, [0; 32], [0; 32]),
    };
    let request = match claim.request {
        Request::Lookup => 1,
        Request::End => 2,
    };
    let mut fields = Writer::<FIELDS>::new();
    fields.put(FIELDS_TAG);
    fields.identity(identity);
    fields.put(&[request]);
    fields.put(&claim.log.0.to_be_bytes());
    fields.value(claim.slot);
    fields.put(&claim.nonce);
    fields.put(&[kind]);
    fields.value(at);
    fields.put(&value);
    fields.put(&digest);
    let mut out = Writer::<STATEMENT>::new();
    out.put(TAG);
    out.put(&Sha256::digest(fields.finish()));
    out.finish()
}

impl Attestation {
    /// What the log of the component `identity` says of the slot, if this attests just that: the answer to
    /// `lookup(log, slot, nonce)`.
    pub fn verify_lookup(
        &self,
        verifier: &impl Verifier,
        identity: &Identity,
        log: LogId,
        slot: Slot,
        nonce: &Nonce,
    ) -> Option<Content> {
        rule!("A2M-A2");
        let Claim { request, content, .. } = self.claim;
        let asked = request == Request::Lookup && self.claim.slot == slot && self.claim.nonce == *nonce;
        (asked && self.is_of(verifier, identity, log)).then_some(content)
    }

    /// The last slot of the log of the component `identity` and what it holds, if this attests just that:
    /// the answer to `end(log, z)`, where `z` is the nonce itself ([`RunProof::SINGLE`]) or the root over
    /// many nonces, among them this one at the place that `among` shows. A log that never held anything ends
    /// in slot zero, forgotten.
    pub fn verify_end(
        &self,
        verifier: &impl Verifier,
        identity: &Identity,
        log: LogId,
        nonce: &Nonce,
        among: &RunProof,
    ) -> Option<(Slot, Content)> {
        rule!("A2M-A3");
        let Claim { request, slot, content, .. } = self.claim;
        let asked = request == Request::End && root_over(among, nonce) == Some(self.claim.nonce);
        (asked && self.is_of(verifier, identity, log)).then_some((slot, content))
    }

    /// Whether it is of that log of that component.
    fn is_of(&self, verifier: &impl Verifier, identity: &Identity, log: LogId) -> bool {
        let named = self.claim.log == log && self.epoch == identity.epoch;
        named && verifier.proves(&statement(identity, &self.claim), &self.proof)
    }
}
