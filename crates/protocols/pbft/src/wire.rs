//! The canonical encoding of PBFT's messages and records. Every list is bounded, and messages nest to a bounded depth.

use crate::authenticators::MOST_COMPLAINTS;
use crate::message::{
    AttestedCheckpoint, Body, Checkpoint, Entry, Message, NewView, Phase, PrePrepare, Record, Signed,
    StableProof, Status, ViewChange, Vote,
};
use std::sync::Arc;
use troth_auth::{decode_attestation, encode_attestation};
use troth_types::{Batch, Malformed, Reader, Wire, put_list};

/// The most checkpoint messages in a certificate; a bound for the decoder.
const MAX_QUORUM: usize = 128;
/// The most numbers in a window; a bound for the decoder.
const MAX_WINDOW: usize = 1 << 16;
/// The most entries of P or Q; a bound for the decoder.
const MAX_ENTRIES: usize = 1 << 18;
/// The most batches asked for or shown at once; a bound for the decoder.
pub(crate) const MAX_BATCHES: usize = 64;

/// The most numbers of a history shown at once; a bound for the decoder.
const MAX_HISTORY: usize = troth_blocks::MOST_VALUES;

/// What may stand inside what: a NEW-VIEW holds VIEW-CHANGEs, a VIEW-CHANGE CHECKPOINTs.
const CHECKPOINT: u8 = 0;
const VIEW_CHANGE: u8 = 1;
const NEW_VIEW: u8 = 2;
/// Stands where a CHECKPOINT may.
const ATTESTED: u8 = 3;
/// These stand inside nothing.
const PRE_PREPARE: u8 = 4;
const PREPARE: u8 = 5;
const COMMIT: u8 = 6;

impl Wire for Body {
    fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Self::Checkpoint(checkpoint) => {
                out.push(CHECKPOINT);
                checkpoint.seq.encode(out);
                checkpoint.digest.encode(out);
            }
            Self::ViewChange(change) => {
                out.push(VIEW_CHANGE);
                change.encode(out);
            }
            Self::NewView(new_view) => {
                out.push(NEW_VIEW);
                new_view.view.encode(out);
                put_list(out, &new_view.changes);
                new_view.base.encode(out);
                put_list(out, &new_view.chosen);
            }
            Self::Attested(AttestedCheckpoint { checkpoint, attestation }) => {
                out.push(ATTESTED);
                checkpoint.seq.encode(out);
                checkpoint.digest.encode(out);
                encode_attestation(attestation, out);
            }
            Self::Phase(Phase::PrePrepare(proposal)) => {
                out.push(PRE_PREPARE);
                proposal.encode(out);
            }
            Self::Phase(Phase::Prepare(vote)) => {
                out.push(PREPARE);
                vote.encode(out);
            }
            Self::Phase(Phase::Commit(vote)) => {
                out.push(COMMIT);
                vote.encode(out);
            }
        }
    }
    fn decode(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        Self::decode_up_to(reader, COMMIT)
    }
}

impl Body {
    /// Decodes a body of this kind or of one that may stand inside it: so the decoder's stack is bounded whatever the
    /// bytes say.
    fn decode_up_to(reader: &mut Reader<'_>, most: u8) -> Result<Self, Malformed> {
        let tag = u8::decode(reader)?;
        if tag > most && tag != ATTESTED {
            return Err(Malformed::Tag("a body here", u64::from(tag)));
        }
        Ok(match tag {
            CHECKPOINT => {
                Self::Checkpoint(Checkpoint { seq: Wire::decode(reader)?, digest: Wire::decode(reader)? })
            }
            VIEW_CHANGE => Self::ViewChange(Wire::decode(reader)?),
            ATTESTED => Self::Attested(AttestedCheckpoint {
                checkpoint: Checkpoint { seq: Wire::decode(reader)?, digest: Wire::decode(reader)? },
                attestation: decode_attestation(reader)?,
            }),
            PRE_PREPARE => Self::Phase(Phase::PrePrepare(Wire::decode(reader)?)),
            PREPARE => Self::Phase(Phase::Prepare(Wire::decode(reader)?)),
            COMMIT => Self::Phase(Phase::Commit(Wire::decode(reader)?)),
            _ => Self::NewView(NewView {
                view: Wire::decode(reader)?,
                changes: decode_list(reader, "VIEW-CHANGEs", VIEW_CHANGE)?,
                base: Wire::decode(reader)?,
                chosen: reader.list("chosen batches", MAX_WINDOW)?,
            }),
        })
    }
}

fn decode_list(
    reader: &mut Reader<'_>,
    field: &'static str,
    most: u8,
) -> Result<Vec<Arc<Signed>>, Malformed> {
    let count = u32::decode(reader)? as usize;
    if count > MAX_QUORUM {
        return Err(Malformed::TooLong(field, count as u64));
    }
    let list: Vec<Arc<Signed>> =
        (0..count).map(|_| Signed::decode_up_to(reader, most).map(Arc::new)).collect::<Result<_, _>>()?;
    // Before any signature is checked: a repetition would cost one more.
    if !list.is_sorted_by(|one, next| one.from < next.from) {
        return Err(Malformed::Invalid("each replica stands once in a proof, in order"));
    }
    Ok(list)
}

impl Signed {
    fn decode_up_to(reader: &mut Reader<'_>, most: u8) -> Result<Self, Malformed> {
        Ok(Self {
            from: Wire::decode(reader)?,
            body: Body::decode_up_to(reader, most)?,
            digest: Wire::decode(reader)?,
            signature: Wire::decode(reader)?,
        })
    }
}

impl Wire for Signed {
    fn encode(&self, out: &mut Vec<u8>) {
        self.from.encode(out);
        self.body.encode(out);
        self.digest.encode(out);
        self.signature.encode(out);
    }
    fn decode(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        Self::decode_up_to(reader, COMMIT)
    }
}

impl Wire for StableProof {
    fn encode(&self, out: &mut Vec<u8>) {
        put_list(out, &self.votes);
    }
    fn decode(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        Ok(Self { votes: decode_list(reader, "a stable proof", CHECKPOINT)? })
    }
}

impl Wire for Entry {
    fn encode(&self, out: &mut Vec<u8>) {
        self.seq.encode(out);
        self.digest.encode(out);
        self.view.encode(out);
    }
    fn decode(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        Ok(Self { seq: Wire::decode(reader)?, digest: Wire::decode(reader)?, view: Wire::decode(reader)? })
    }
}

impl Wire for ViewChange {
    fn encode(&self, out: &mut Vec<u8>) {
        self.to.encode(out);
        self.stable.encode(out);
        put_list(out, &self.prepared);
        put_list(out, &self.pre_prepared);
    }
    fn decode(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        Ok(Self {
            to: Wire::decode(reader)?,
            stable: Wire::decode(reader)?,
            prepared: reader.list("what prepared", MAX_WINDOW)?,
            pre_prepared: reader.list("what was pre-prepared", MAX_ENTRIES)?,
        })
    }
}

impl Wire for PrePrepare {
    fn encode(&self, out: &mut Vec<u8>) {
        self.view.encode(out);
        self.seq.encode(out);
        self.batch.encode(out);
    }
    fn decode(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        Ok(Self { view: Wire::decode(reader)?, seq: Wire::decode(reader)?, batch: Wire::decode(reader)? })
    }
}

impl Wire for Vote {
    fn encode(&self, out: &mut Vec<u8>) {
        self.view.encode(out);
        self.seq.encode(out);
        self.digest.encode(out);
    }
    fn decode(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        Ok(Self { view: Wire::decode(reader)?, seq: Wire::decode(reader)?, digest: Wire::decode(reader)? })
    }
}

impl Wire for Status {
    fn encode(&self, out: &mut Vec<u8>) {
        self.view.encode(out);
        self.active.encode(out);
        self.stable.encode(out);
        self.executed.encode(out);
        put_list(out, &self.slots);
        self.changes.encode(out);
        self.wishes.encode(out);
    }
    fn decode(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        Ok(Self {
            view: Wire::decode(reader)?,
            active: Wire::decode(reader)?,
            stable: Wire::decode(reader)?,
            executed: Wire::decode(reader)?,
            slots: reader.list("slots of a status", 2 * MAX_WINDOW)?,
            changes: Wire::decode(reader)?,
            wishes: Wire::decode(reader)?,
        })
    }
}

impl Wire for Message {
    fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Self::PrePrepare(proposal) => {
                out.push(0);
                proposal.encode(out);
            }
            Self::Prepare(vote) => {
                out.push(1);
                vote.encode(out);
            }
            Self::Commit(vote) => {
                out.push(2);
                vote.encode(out);
            }
            Self::Signed(message) => {
                out.push(3);
                message.encode(out);
            }
            Self::Status(status) => {
                out.push(4);
                status.encode(out);
            }
            Self::Stable(proof) => {
                out.push(5);
                proof.encode(out);
            }
            Self::FetchBatches(digests) => {
                out.push(6);
                put_list(out, digests);
            }
            Self::Batches(batches) => {
                out.push(7);
                put_list(out, batches);
            }
            Self::WrongTags(digests) => {
                out.push(8);
                put_list(out, digests);
            }
            Self::FetchHistory(from) => {
                out.push(9);
                from.encode(out);
            }
            Self::History(from, values) => {
                out.push(10);
                from.encode(out);
                put_list(out, values);
            }
        }
    }
    fn decode(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        Ok(match u8::decode(reader)? {
            0 => Self::PrePrepare(Wire::decode(reader)?),
            1 => Self::Prepare(Wire::decode(reader)?),
            2 => Self::Commit(Wire::decode(reader)?),
            3 => Self::Signed(Wire::decode(reader)?),
            4 => Self::Status(Wire::decode(reader)?),
            5 => Self::Stable(Wire::decode(reader)?),
            6 => Self::FetchBatches(reader.list("asked batches", MAX_BATCHES)?),
            7 => Self::Batches(reader.list::<Batch>("batches", MAX_BATCHES)?),
            8 => Self::WrongTags(reader.list("complaints", MOST_COMPLAINTS)?),
            9 => Self::FetchHistory(Wire::decode(reader)?),
            10 => Self::History(Wire::decode(reader)?, reader.list("a history", MAX_HISTORY)?),
            other => return Err(Malformed::Tag("a PBFT message", u64::from(other))),
        })
    }
}

impl Wire for Record {
    fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Self::Frame(frame) => {
                out.push(0);
                frame.encode(out);
            }
            Self::PrePrepared(view, seq, batch) => {
                out.push(1);
                view.encode(out);
                seq.encode(out);
                batch.encode(out);
            }
            Self::Prepared(entry) => {
                out.push(2);
                entry.encode(out);
            }
            Self::Leaving(change) => {
                out.push(3);
                change.encode(out);
            }
            Self::NewView(message) => {
                out.push(4);
                message.encode(out);
            }
            Self::Stable(proof) => {
                out.push(5);
                proof.encode(out);
            }
            Self::Executed(seq, batch) => {
                out.push(6);
                seq.encode(out);
                batch.encode(out);
            }
            Self::History(from, values) => {
                out.push(7);
                from.encode(out);
                put_list(out, values);
            }
        }
    }
    fn decode(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        Ok(match u8::decode(reader)? {
            0 => Self::Frame(Wire::decode(reader)?),
            1 => Self::PrePrepared(Wire::decode(reader)?, Wire::decode(reader)?, Wire::decode(reader)?),
            2 => Self::Prepared(Wire::decode(reader)?),
            3 => Self::Leaving(Wire::decode(reader)?),
            4 => Self::NewView(Wire::decode(reader)?),
            5 => Self::Stable(Wire::decode(reader)?),
            6 => Self::Executed(Wire::decode(reader)?, Wire::decode(reader)?),
            7 => Self::History(Wire::decode(reader)?, reader.list("a history", MAX_HISTORY)?),
            other => return Err(Malformed::Tag("a PBFT record", u64::from(other))),
        })
    }
}
