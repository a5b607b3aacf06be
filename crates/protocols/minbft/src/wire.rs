//! The canonical encoding of MinBFT's messages and records. Every list is bounded, and messages nest to a
//! bounded depth.

use crate::message::{
    AcceptNewView, Body, Certified, Checkpoint, Commit, LogEntry, Message, NewView, Prepare, Record,
    RequestViewChange, SignedRequest, StableProof, Status, ViewChange,
};
use std::sync::Arc;
use troth_types::{Malformed, Reader, ReplicaId, Wire, put_list};

/// The most checkpoint messages in a certificate; a bound for the decoder.
const MAX_QUORUM: usize = 128;
/// The most own messages in a VIEW-CHANGE; a bound for the decoder.
const MAX_LOG: usize = 1 << 14;
/// The most batches a NEW-VIEW carries over; a bound for the decoder.
const MAX_CHOSEN: usize = 1 << 13;

impl Wire for Body {
    fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Self::Prepare(prepare) => {
                out.push(0);
                prepare.view.encode(out);
                prepare.seq.encode(out);
                prepare.batch.encode(out);
            }
            Self::Commit(commit) => {
                out.push(1);
                commit.prepare.encode(out);
            }
            Self::Checkpoint(checkpoint) => {
                // A group that never replaced a component is understood by releases that knew of none.
                out.push(if checkpoint.epochs.is_empty() { 2 } else { 7 });
                checkpoint.seq.encode(out);
                checkpoint.digest.encode(out);
                if !checkpoint.epochs.is_empty() {
                    put_list(out, &checkpoint.written().collect::<Vec<_>>());
                }
            }
            Self::ViewChange(change) => {
                out.push(3);
                change.to.encode(out);
                change.stable.encode(out);
                put_list(out, &change.log);
                put_list(out, &change.requests);
            }
            Self::NewView(new_view) => {
                out.push(4);
                new_view.view.encode(out);
                put_list(out, &new_view.changes);
                new_view.base.encode(out);
                put_list(out, &new_view.chosen);
            }
            Self::AcceptNewView(accept) => {
                out.push(5);
                accept.view.encode(out);
                accept.new_view.encode(out);
            }
            Self::RequestViewChange(request) => {
                out.push(6);
                request.to.encode(out);
            }
        }
    }

    fn decode(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        Self::decode_nested(reader, 0)
    }
}

impl Body {
    /// Messages nest four deep at most (NEW-VIEW, VIEW-CHANGE, COMMIT, PREPARE); the depth bounds the
    /// decoder's stack whatever the bytes say.
    fn decode_nested(reader: &mut Reader<'_>, depth: u8) -> Result<Self, Malformed> {
        let tag = u8::decode(reader)?;
        let allowed = match depth {
            0 => tag <= 7,
            1 => matches!(tag, 0 | 2 | 3 | 7),
            _ => matches!(tag, 0 | 1 | 2 | 5 | 7),
        };
        if !allowed || depth > 3 {
            return Err(Malformed::Tag("a body here", u64::from(tag)));
        }
        Ok(match tag {
            0 => Self::Prepare(Prepare {
                view: Wire::decode(reader)?,
                seq: Wire::decode(reader)?,
                batch: Wire::decode(reader)?,
            }),
            1 => Self::Commit(Commit { prepare: Certified::decode_nested(reader, depth.max(1) + 1)? }),
            2 | 7 => {
                let (seq, digest) = (Wire::decode(reader)?, Wire::decode(reader)?);
                let mut epochs: Vec<(ReplicaId, u64)> = match tag {
                    2 => Vec::new(),
                    _ => reader.list("a CHECKPOINT's epochs", MAX_QUORUM)?,
                };
                if !epochs.is_sorted_by(|one, next| one.0 < next.0) {
                    return Err(Malformed::Invalid("a CHECKPOINT names each replica once, in order"));
                }
                if tag == 7 && epochs.is_empty() {
                    return Err(Malformed::Invalid("a CHECKPOINT without epochs is written without them"));
                }
                // What releases take that know of no mark, this one takes, too: it stands in logs. A mark beside nothing
                // is what it is to them.
                let given = epochs.len() > 1 && epochs.pop_if(|last| *last == Checkpoint::GIVEN).is_some();
                Self::Checkpoint(Checkpoint { seq, digest, epochs, given })
            }
            3 => {
                let to = Wire::decode(reader)?;
                let votes = decode_list(reader, "a stable proof", MAX_QUORUM, 3)?;
                let count = u32::decode(reader)? as usize;
                if count > MAX_LOG {
                    return Err(Malformed::TooLong("a VIEW-CHANGE's log", count as u64));
                }
                let mut log = Vec::new();
                for _ in 0..count {
                    log.push(LogEntry::decode(reader)?);
                }
                let requests = reader.list("REQ-VIEW-CHANGEs", MAX_QUORUM)?;
                Self::ViewChange(ViewChange { to, stable: StableProof { votes }, log, requests })
            }
            4 => Self::NewView(NewView {
                view: Wire::decode(reader)?,
                changes: decode_list(reader, "VIEW-CHANGEs", MAX_QUORUM, 1)?,
                base: Wire::decode(reader)?,
                chosen: reader.list("chosen batches", MAX_CHOSEN)?,
            }),
            5 => Self::AcceptNewView(AcceptNewView {
                view: Wire::decode(reader)?,
                new_view: Wire::decode(reader)?,
            }),
            _ => Self::RequestViewChange(RequestViewChange { to: Wire::decode(reader)? }),
        })
    }
}

fn decode_list(
    reader: &mut Reader<'_>,
    field: &'static str,
    max: usize,
    depth: u8,
) -> Result<Vec<Arc<Certified>>, Malformed> {
    let count = u32::decode(reader)? as usize;
    if count > max {
        return Err(Malformed::TooLong(field, count as u64));
    }
    (0..count).map(|_| Certified::decode_nested(reader, depth)).collect()
}

impl Certified {
    fn decode_nested(reader: &mut Reader<'_>, depth: u8) -> Result<Arc<Self>, Malformed> {
        let from = Wire::decode(reader)?;
        let body = Body::decode_nested(reader, depth)?;
        Ok(Arc::new(Self { from, body, digest: Wire::decode(reader)?, ui: Wire::decode(reader)? }))
    }
}

impl Wire for Certified {
    fn encode(&self, out: &mut Vec<u8>) {
        self.from.encode(out);
        self.body.encode(out);
        self.digest.encode(out);
        self.ui.encode(out);
    }
    fn decode(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        let message = Self::decode_nested(reader, 0)?;
        Ok(Arc::unwrap_or_clone(message))
    }
}

impl Wire for StableProof {
    fn encode(&self, out: &mut Vec<u8>) {
        put_list(out, &self.votes);
    }
    fn decode(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        Ok(Self { votes: decode_list(reader, "a stable proof", MAX_QUORUM, 3)? })
    }
}

impl Wire for LogEntry {
    fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Self::Whole(message) => {
                out.push(0);
                message.encode(out);
            }
            Self::ViewChange(view, rest, ui) => {
                out.push(1);
                view.encode(out);
                rest.encode(out);
                ui.encode(out);
            }
            Self::NewView(view, rest, ui) => {
                out.push(2);
                view.encode(out);
                rest.encode(out);
                ui.encode(out);
            }
        }
    }
    fn decode(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        Ok(match u8::decode(reader)? {
            0 => Self::Whole(Certified::decode_nested(reader, 2)?),
            1 => Self::ViewChange(Wire::decode(reader)?, Wire::decode(reader)?, Wire::decode(reader)?),
            2 => Self::NewView(Wire::decode(reader)?, Wire::decode(reader)?, Wire::decode(reader)?),
            other => return Err(Malformed::Tag("a log entry", u64::from(other))),
        })
    }
}

impl Wire for SignedRequest {
    fn encode(&self, out: &mut Vec<u8>) {
        self.from.encode(out);
        self.request.to.encode(out);
        self.digest.encode(out);
        self.signature.encode(out);
    }
    fn decode(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        Ok(Self {
            from: Wire::decode(reader)?,
            request: RequestViewChange { to: Wire::decode(reader)? },
            digest: Wire::decode(reader)?,
            signature: Wire::decode(reader)?,
        })
    }
}

impl Wire for Status {
    fn encode(&self, out: &mut Vec<u8>) {
        self.view.encode(out);
        put_list(out, &self.processed);
        self.stable.encode(out);
        self.executed.encode(out);
        self.round.encode(out);
        self.wants.encode(out);
    }
    fn decode(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        Ok(Self {
            view: Wire::decode(reader)?,
            processed: reader.list("processed counter values", 2 * MAX_QUORUM)?,
            stable: Wire::decode(reader)?,
            executed: Wire::decode(reader)?,
            round: Wire::decode(reader)?,
            wants: Wire::decode(reader)?,
        })
    }
}

impl Wire for Message {
    fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Self::Certified(message) => {
                out.push(0);
                message.encode(out);
            }
            Self::RequestViewChange(request) => {
                out.push(1);
                request.encode(out);
            }
            Self::Status(status) => {
                out.push(2);
                status.encode(out);
            }
            Self::Stable(proof) => {
                out.push(3);
                proof.encode(out);
            }
            Self::Evidence(message) => {
                out.push(4);
                message.encode(out);
            }
        }
    }
    fn decode(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        Ok(match u8::decode(reader)? {
            0 => Self::Certified(Wire::decode(reader)?),
            1 => Self::RequestViewChange(Wire::decode(reader)?),
            2 => Self::Status(Wire::decode(reader)?),
            3 => Self::Stable(Wire::decode(reader)?),
            4 => Self::Evidence(Wire::decode(reader)?),
            other => return Err(Malformed::Tag("a MinBFT message", u64::from(other))),
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
            Self::NewView(message) => {
                out.push(1);
                message.encode(out);
            }
            Self::Stable(proof) => {
                out.push(2);
                proof.encode(out);
            }
            Self::Accepted(message) => {
                out.push(3);
                message.encode(out);
            }
            Self::Executed(seq, batch) => {
                out.push(4);
                seq.encode(out);
                batch.encode(out);
            }
            Self::Committed(view, seq) => {
                out.push(5);
                view.encode(out);
                seq.encode(out);
            }
            Self::First(message) => {
                out.push(6);
                message.encode(out);
            }
        }
    }
    fn decode(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        Ok(match u8::decode(reader)? {
            0 => Self::Frame(Wire::decode(reader)?),
            1 => Self::NewView(Wire::decode(reader)?),
            2 => Self::Stable(Wire::decode(reader)?),
            3 => Self::Accepted(Wire::decode(reader)?),
            4 => Self::Executed(Wire::decode(reader)?, Wire::decode(reader)?),
            5 => Self::Committed(Wire::decode(reader)?, Wire::decode(reader)?),
            6 => Self::First(Wire::decode(reader)?),
            other => return Err(Malformed::Tag("a MinBFT record", u64::from(other))),
        })
    }
}
