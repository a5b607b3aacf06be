//! Attestations of a component's logs, as messages carry them (docs/protocols/a2m.md).

use crate::seal::{decode_proof, encode_proof};
use troth_trusted::a2m::{Attestation, Claim, Content, LogId, Nonce, Request, Slot, slot_nonce};
use troth_trusted::{CounterValue, Epoch};
use troth_types::{Malformed, Reader, Wire};

/// An attestation as the answer to one lookup; it says nothing to any other question.
#[derive(Clone, Copy, Debug)]
pub struct Looked<'a> {
    /// The log that must have been asked about.
    pub log: LogId,
    /// The slot.
    pub slot: Slot,
    /// The nonce of whoever asked.
    pub nonce: Nonce,
    /// The answer.
    pub attestation: &'a Attestation,
}

impl<'a> Looked<'a> {
    /// A lookup that need not be fresh: its nonce is the slot (paper 000 §4.2.1).
    #[must_use]
    pub fn settled(log: LogId, slot: Slot, attestation: &'a Attestation) -> Self {
        Self { log, slot, nonce: slot_nonce(slot), attestation }
    }
}

/// Appends the encoding of an attestation.
pub fn encode_attestation(attestation: &Attestation, out: &mut Vec<u8>) {
    let Attestation { epoch, claim, proof } = attestation;
    epoch.0.encode(out);
    out.push(match claim.request {
        Request::Lookup => 0,
        Request::End => 1,
    });
    claim.log.0.encode(out);
    claim.slot.0.encode(out);
    out.extend_from_slice(&claim.nonce);
    match claim.content {
        Content::Assigned { value, digest } => {
            out.push(0);
            out.extend_from_slice(&value);
            out.extend_from_slice(&digest);
        }
        Content::Skipped { end, value, digest } => {
            out.push(1);
            end.0.encode(out);
            out.extend_from_slice(&value);
            out.extend_from_slice(&digest);
        }
        Content::Unassigned { high } => {
            out.push(2);
            high.0.encode(out);
        }
        Content::Forgotten { low } => {
            out.push(3);
            low.0.encode(out);
        }
    }
    encode_proof(proof, out);
}

/// Reads an attestation.
pub fn decode_attestation(reader: &mut Reader<'_>) -> Result<Attestation, Malformed> {
    let epoch = Epoch(Wire::decode(reader)?);
    let request = match u8::decode(reader)? {
        0 => Request::Lookup,
        1 => Request::End,
        other => return Err(Malformed::Tag("what was asked of a log", u64::from(other))),
    };
    let log = LogId(Wire::decode(reader)?);
    let slot = CounterValue(Wire::decode(reader)?);
    let nonce = reader.array()?;
    let content = match u8::decode(reader)? {
        0 => Content::Assigned { value: reader.array()?, digest: reader.array()? },
        1 => Content::Skipped {
            end: CounterValue(Wire::decode(reader)?),
            value: reader.array()?,
            digest: reader.array()?,
        },
        2 => Content::Unassigned { high: CounterValue(Wire::decode(reader)?) },
        3 => Content::Forgotten { low: CounterValue(Wire::decode(reader)?) },
        other => return Err(Malformed::Tag("what a slot holds", u64::from(other))),
    };
    let claim = Claim { request, log, slot, nonce, content };
    Ok(Attestation { epoch, claim, proof: decode_proof(reader)? })
}
