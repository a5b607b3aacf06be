//! The canonical encoding of A2M-PBFT-EA's messages and records. Every list is bounded, and messages nest to a bounded
//! depth.

use crate::evidence::MOST_ABANDONED;
use crate::message::{
    Accept, Attested, Body, Checkpoint, Committed, Message, NewView, PrePrepare, Record, StableProof, Status,
    ViewChange, Vote, WantViewChange, Wanted,
};
use crate::retransmission::MOST_ASKED;
use std::sync::Arc;
use troth_auth::{decode_attestation, encode_attestation};
use troth_trusted::a2m::{Attestation, LOGS};
use troth_types::{Malformed, Reader, Wire, put_list};

/// The most messages in a certificate; a bound for the decoder.
const MAX_QUORUM: usize = 128;
/// The most numbers in a window; a bound for the decoder.
const MAX_WINDOW: usize = 1 << 16;

/// The most numbers of a history shown at once; a bound for the decoder.
const MAX_HISTORY: usize = troth_blocks::MOST_VALUES;

/// What may stand inside what: a NEWVIEW holds VIEWCHANGEs, a VIEWCHANGE the others.
const PRE_PREPARE: u8 = 0;
const PREPARE: u8 = 1;
const COMMIT: u8 = 2;
const ACCEPT: u8 = 3;
const CHECKPOINT: u8 = 4;
const VIEW_CHANGE: u8 = 5;
const NEW_VIEW: u8 = 6;
const WANT: u8 = 7;

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

impl Wire for WantViewChange {
    fn encode(&self, out: &mut Vec<u8>) {
        self.to.encode(out);
        out.extend_from_slice(&self.nonce);
    }
    fn decode(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        Ok(Self { to: Wire::decode(reader)?, nonce: reader.array()? })
    }
}

impl Wire for Wanted {
    fn encode(&self, out: &mut Vec<u8>) {
        self.from.encode(out);
        self.want.encode(out);
        self.digest.encode(out);
        self.signature.encode(out);
    }
    fn decode(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        Ok(Self {
            from: Wire::decode(reader)?,
            want: Wire::decode(reader)?,
            digest: Wire::decode(reader)?,
            signature: Wire::decode(reader)?,
        })
    }
}

impl Wire for Body {
    fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Self::PrePrepare(proposal) => {
                out.push(PRE_PREPARE);
                proposal.view.encode(out);
                proposal.seq.encode(out);
                proposal.batch.encode(out);
            }
            Self::Prepare(vote) => {
                out.push(PREPARE);
                vote.encode(out);
            }
            Self::Commit(vote) => {
                out.push(COMMIT);
                vote.encode(out);
            }
            Self::Accept(accept) => {
                out.push(ACCEPT);
                accept.view.encode(out);
                accept.new_view.encode(out);
            }
            Self::Checkpoint(checkpoint) => {
                out.push(CHECKPOINT);
                checkpoint.seq.encode(out);
                checkpoint.digest.encode(out);
                encode_attestation(&checkpoint.history, out);
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
            Self::Want(want) => {
                out.push(WANT);
                want.encode(out);
            }
        }
    }
    fn decode(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        Self::decode_up_to(reader, WANT)
    }
}

impl Body {
    /// Decodes a body of this kind or of one that may stand inside it: so the decoder's stack is bounded whatever the
    /// bytes say.
    fn decode_up_to(reader: &mut Reader<'_>, most: u8) -> Result<Self, Malformed> {
        let tag = u8::decode(reader)?;
        if tag > most {
            return Err(Malformed::Tag("a body here", u64::from(tag)));
        }
        Ok(match tag {
            PRE_PREPARE => Self::PrePrepare(PrePrepare {
                view: Wire::decode(reader)?,
                seq: Wire::decode(reader)?,
                batch: Wire::decode(reader)?,
            }),
            PREPARE => Self::Prepare(Wire::decode(reader)?),
            COMMIT => Self::Commit(Wire::decode(reader)?),
            ACCEPT => Self::Accept(Accept { view: Wire::decode(reader)?, new_view: Wire::decode(reader)? }),
            CHECKPOINT => Self::Checkpoint(Checkpoint {
                seq: Wire::decode(reader)?,
                digest: Wire::decode(reader)?,
                history: decode_attestation(reader)?,
            }),
            VIEW_CHANGE => Self::ViewChange(Wire::decode(reader)?),
            NEW_VIEW => Self::NewView(NewView {
                view: Wire::decode(reader)?,
                changes: decode_list(reader, "VIEWCHANGEs", VIEW_CHANGE)?,
                base: Wire::decode(reader)?,
                chosen: reader.list("chosen batches", MAX_WINDOW)?,
            }),
            _ => Self::Want(Wire::decode(reader)?),
        })
    }
}

fn decode_list(
    reader: &mut Reader<'_>,
    field: &'static str,
    most: u8,
) -> Result<Vec<Arc<Attested>>, Malformed> {
    let count = u32::decode(reader)? as usize;
    if count > MAX_QUORUM {
        return Err(Malformed::TooLong(field, count as u64));
    }
    let list: Vec<Arc<Attested>> =
        (0..count).map(|_| Attested::decode_up_to(reader, most).map(Arc::new)).collect::<Result<_, _>>()?;
    // Before any attestation is checked: a repetition would cost one more.
    if !list.is_sorted_by(|one, next| one.from < next.from) {
        return Err(Malformed::Invalid("each replica stands once in a proof, in order"));
    }
    Ok(list)
}

impl Attested {
    fn decode_up_to(reader: &mut Reader<'_>, most: u8) -> Result<Self, Malformed> {
        Ok(Self {
            from: Wire::decode(reader)?,
            body: Body::decode_up_to(reader, most)?,
            digest: Wire::decode(reader)?,
            attestation: decode_attestation(reader)?,
        })
    }
}

impl Wire for Attested {
    fn encode(&self, out: &mut Vec<u8>) {
        self.from.encode(out);
        self.body.encode(out);
        self.digest.encode(out);
        encode_attestation(&self.attestation, out);
    }
    fn decode(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        Self::decode_up_to(reader, NEW_VIEW)
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

impl Wire for Committed {
    fn encode(&self, out: &mut Vec<u8>) {
        self.proposal.encode(out);
        put_list(out, &self.prepares);
        self.commit.encode(out);
    }
    fn decode(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        Ok(Self {
            proposal: Arc::new(Attested::decode_up_to(reader, PRE_PREPARE)?),
            prepares: decode_list(reader, "PREPAREs", PREPARE)?,
            commit: Arc::new(Attested::decode_up_to(reader, COMMIT)?),
        })
    }
}

/// What a log says of abandoned views.
fn decode_abandoned(reader: &mut Reader<'_>) -> Result<Vec<Attestation>, Malformed> {
    let count = u32::decode(reader)? as usize;
    if count > MOST_ABANDONED {
        return Err(Malformed::TooLong("abandoned views", count as u64));
    }
    // What the number claims takes no room before it is there.
    (0..count).map(|_| decode_attestation(reader)).collect()
}

impl Wire for ViewChange {
    fn encode(&self, out: &mut Vec<u8>) {
        self.left.encode(out);
        self.to.encode(out);
        self.stable.encode(out);
        self.accepted.encode(out);
        put_list(out, &self.committed);
        put_list(out, &self.wanted);
        u32::try_from(self.abandoned.len()).expect("bounded by the views").encode(out);
        self.abandoned.iter().for_each(|attestation| encode_attestation(attestation, out));
    }
    fn decode(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        let (left, to, stable) = (Wire::decode(reader)?, Wire::decode(reader)?, Wire::decode(reader)?);
        let accepted = match u8::decode(reader)? {
            0 => None,
            1 => Some(Arc::new(Attested::decode_up_to(reader, ACCEPT)?)),
            other => return Err(Malformed::Tag("an option", u64::from(other))),
        };
        let committed = reader.list("what was committed", MAX_WINDOW)?;
        let wanted: Vec<Arc<Wanted>> = reader.list("WANTVIEWCHANGEs", MAX_QUORUM)?;
        if !wanted.is_sorted_by(|one, next| one.from < next.from) {
            return Err(Malformed::Invalid("each replica stands once in a proof, in order"));
        }
        let abandoned = decode_abandoned(reader)?;
        Ok(Self { left, to, stable, accepted, committed, wanted, abandoned })
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
        self.accepts.encode(out);
        self.lacks.encode(out);
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
            accepts: Wire::decode(reader)?,
            lacks: Wire::decode(reader)?,
            wishes: Wire::decode(reader)?,
        })
    }
}

impl Wire for Message {
    fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Self::Attested(message) => {
                out.push(0);
                message.encode(out);
            }
            Self::Want(wanted) => {
                out.push(1);
                wanted.encode(out);
            }
            Self::Status(status) => {
                out.push(2);
                status.encode(out);
            }
            Self::Stable(proof) => {
                out.push(3);
                proof.encode(out);
            }
            Self::FetchHistory(from) => {
                out.push(4);
                from.encode(out);
            }
            Self::History(from, values) => {
                out.push(5);
                from.encode(out);
                put_list(out, values);
            }
            Self::FetchProposals(view, asked) => {
                out.push(6);
                view.encode(out);
                put_list(out, asked);
            }
        }
    }
    fn decode(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        Ok(match u8::decode(reader)? {
            0 => Self::Attested(Wire::decode(reader)?),
            1 => Self::Want(Wire::decode(reader)?),
            2 => Self::Status(Wire::decode(reader)?),
            3 => Self::Stable(Wire::decode(reader)?),
            4 => Self::FetchHistory(Wire::decode(reader)?),
            5 => Self::History(Wire::decode(reader)?, reader.list("a history", MAX_HISTORY)?),
            6 => {
                Self::FetchProposals(Wire::decode(reader)?, reader.list("numbers of proposals", MOST_ASKED)?)
            }
            other => return Err(Malformed::Tag("an A2M-PBFT-EA message", u64::from(other))),
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
            Self::Proposal(message) => {
                out.push(1);
                message.encode(out);
            }
            Self::Prepared(prepares) => {
                out.push(2);
                put_list(out, prepares);
            }
            Self::Leaving(wanted) => {
                out.push(3);
                put_list(out, wanted);
            }
            Self::NewView(message) => {
                out.push(4);
                message.encode(out);
            }
            Self::Accepted(message) => {
                out.push(5);
                message.encode(out);
            }
            Self::Stable(proof) => {
                out.push(6);
                proof.encode(out);
            }
            Self::Executed(seq, batch) => {
                out.push(7);
                seq.encode(out);
                batch.encode(out);
            }
            Self::Filled(slots) => {
                out.push(8);
                put_list(out, slots);
            }
            Self::History(from, values) => {
                out.push(9);
                from.encode(out);
                put_list(out, values);
            }
        }
    }
    fn decode(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        Ok(match u8::decode(reader)? {
            0 => Self::Frame(Wire::decode(reader)?),
            1 => Self::Proposal(Wire::decode(reader)?),
            2 => Self::Prepared(decode_list(reader, "PREPAREs", PREPARE)?),
            3 => Self::Leaving(reader.list("WANTVIEWCHANGEs", MAX_QUORUM)?),
            4 => Self::NewView(Wire::decode(reader)?),
            5 => Self::Accepted(Wire::decode(reader)?),
            6 => Self::Stable(Wire::decode(reader)?),
            7 => Self::Executed(Wire::decode(reader)?, Wire::decode(reader)?),
            8 => Self::Filled(reader.list("logs", LOGS)?),
            9 => Self::History(Wire::decode(reader)?, reader.list("a history", MAX_HISTORY)?),
            other => return Err(Malformed::Tag("an A2M-PBFT-EA record", u64::from(other))),
        })
    }
}
