//! The frames of a call to the logs, and of its answer: all or none of its operations, so one refusal for all.

use super::bytes::{Reader, Writer};
use super::{Fault, Malformed};
use troth_trusted::a2m::{Answer, Attestation, Claim, Content, LogRefusal, Operation, Request, Unfit};

/// What a frame of a call to the logs starts with.
pub(super) const LOG_CALL: u8 = 5;
/// What the answer to it starts with.
const LOG_ANSWERS: u8 = 134;

const APPEND: u8 = 1;
const ADVANCE: u8 = 2;
const TRUNCATE: u8 = 3;
const LOOKUP: u8 = 4;
const END: u8 = 5;
const LOOKUP_FOR: u8 = 6;

const ABSENT: u8 = 0;
const PRESENT: u8 = 1;

const REFUSED: u8 = 0;
const ANSWERED: u8 = 1;

const DONE: u8 = 0;
const ATTESTED: u8 = 1;

const ASSIGNED: u8 = 1;
const SKIPPED: u8 = 2;
const UNASSIGNED: u8 = 3;
const FORGOTTEN: u8 = 4;

const OPERATION: u8 = 1;
const TOO_MANY: u8 = 2;
const NO_SPACE: u8 = 3;
const HALTED: u8 = 4;

const NO_SUCH_LOG: u8 = 1;
const ELSEWHERE: u8 = 2;
const NOT_AHEAD: u8 = 3;
const SPENT: u8 = 4;
const FULL: u8 = 5;
const OUTSIDE_LOG: u8 = 6;

/// Appends the frame of a call of these operations.
///
/// # Panics
/// For more than [`MOST_OPERATIONS`](troth_trusted::a2m::MOST_OPERATIONS) of them, which no component does in one call.
pub fn encode_log_call(operations: &[Operation], out: &mut Vec<u8>) {
    let mut frame = Writer::new(out, LOG_CALL);
    frame.operations(operations.len());
    for operation in operations {
        put_operation(&mut frame, operation);
    }
    frame.finish();
}

/// The operations of a call to the logs, given without its length.
///
/// # Errors
/// [`Malformed`].
pub fn decode_log_call(frame: &[u8]) -> Result<Vec<Operation>, Malformed> {
    let mut rest = Reader::new(frame)?;
    rest.kind(LOG_CALL)?;
    let count = rest.operations()?;
    let mut operations = rest.room_for(count);
    for _ in 0..count {
        operations.push(one_operation(&mut rest)?);
    }
    rest.end()?;
    Ok(operations)
}

/// Appends the frame that answers a call to the logs.
///
/// # Panics
/// For more than [`MOST_OPERATIONS`](troth_trusted::a2m::MOST_OPERATIONS) answers.
pub fn encode_log_answers(answered: &Result<Vec<Answer>, LogRefusal>, out: &mut Vec<u8>) {
    let mut frame = Writer::new(out, LOG_ANSWERS);
    match answered {
        Err(why) => {
            frame.byte(REFUSED);
            put_refusal(&mut frame, why);
        }
        Ok(answers) => {
            frame.byte(ANSWERED);
            frame.operations(answers.len());
            for answer in answers {
                put_answer(&mut frame, answer);
            }
        }
    }
    frame.finish();
}

/// The answer to a call to the logs, given without its length. Whether it fits what was asked is for the caller
/// to see.
///
/// # Errors
/// [`Malformed`].
pub fn decode_log_answers(frame: &[u8]) -> Result<Result<Vec<Answer>, LogRefusal>, Malformed> {
    let mut rest = Reader::new(frame)?;
    rest.kind(LOG_ANSWERS)?;
    let answered = match rest.byte()? {
        REFUSED => Err(refusal(&mut rest)?),
        ANSWERED => {
            let count = rest.operations()?;
            let mut answers = rest.room_for(count);
            for _ in 0..count {
                answers.push(one_answer(&mut rest)?);
            }
            Ok(answers)
        }
        other => return Err(Fault::Tag(other).into()),
    };
    rest.end()?;
    Ok(answered)
}

fn put_operation(frame: &mut Writer<'_>, operation: &Operation) {
    let tag = match operation {
        Operation::Append { .. } => APPEND,
        Operation::Advance { .. } => ADVANCE,
        Operation::Truncate { .. } => TRUNCATE,
        Operation::Lookup { .. } => LOOKUP,
        Operation::LookupFor { .. } => LOOKUP_FOR,
        Operation::End { .. } => END,
    };
    frame.byte(tag);
    frame.number(operation.log().0);
    match operation {
        Operation::Append { slot, value, nonce, .. } => {
            frame.value(*slot);
            frame.put(value);
            put_nonce(frame, nonce.as_ref());
        }
        Operation::Advance { slot, previous, value, nonce, .. } => {
            frame.value(*slot);
            frame.put(previous);
            frame.put(value);
            put_nonce(frame, nonce.as_ref());
        }
        Operation::Truncate { slot, .. } => frame.value(*slot),
        Operation::Lookup { slot, nonce, .. } => {
            frame.value(*slot);
            frame.put(nonce);
        }
        Operation::LookupFor { slot, nonce, peer, .. } => {
            frame.value(*slot);
            frame.put(nonce);
            frame.put(peer);
        }
        Operation::End { nonce, .. } => frame.put(nonce),
    }
}

fn one_operation(rest: &mut Reader<'_>) -> Result<Operation, Malformed> {
    let tag = rest.byte()?;
    let log = rest.log()?;
    Ok(match tag {
        APPEND => {
            Operation::Append { log, slot: rest.value()?, value: rest.digest()?, nonce: one_nonce(rest)? }
        }
        ADVANCE => Operation::Advance {
            log,
            slot: rest.value()?,
            previous: rest.digest()?,
            value: rest.digest()?,
            nonce: one_nonce(rest)?,
        },
        TRUNCATE => Operation::Truncate { log, slot: rest.value()? },
        LOOKUP => Operation::Lookup { log, slot: rest.value()?, nonce: rest.digest()? },
        LOOKUP_FOR => {
            Operation::LookupFor { log, slot: rest.value()?, nonce: rest.digest()?, peer: rest.take()? }
        }
        END => Operation::End { log, nonce: rest.digest()? },
        other => return Err(Fault::Tag(other).into()),
    })
}

fn put_nonce(frame: &mut Writer<'_>, nonce: Option<&[u8; 32]>) {
    match nonce {
        None => frame.byte(ABSENT),
        Some(nonce) => {
            frame.byte(PRESENT);
            frame.put(nonce);
        }
    }
}

fn one_nonce(rest: &mut Reader<'_>) -> Result<Option<[u8; 32]>, Malformed> {
    match rest.byte()? {
        ABSENT => Ok(None),
        PRESENT => rest.take().map(Some),
        other => Err(Fault::Tag(other).into()),
    }
}

fn put_answer(frame: &mut Writer<'_>, answer: &Answer) {
    let Answer::Attested(Attestation { epoch, claim, proof }) = answer else {
        return frame.byte(DONE);
    };
    frame.byte(ATTESTED);
    frame.epoch(*epoch);
    frame.byte(match claim.request {
        Request::Lookup => LOOKUP,
        Request::End => END,
    });
    frame.number(claim.log.0);
    frame.value(claim.slot);
    frame.put(&claim.nonce);
    put_content(frame, &claim.content);
    frame.proof(proof);
}

fn one_answer(rest: &mut Reader<'_>) -> Result<Answer, Malformed> {
    match rest.byte()? {
        DONE => return Ok(Answer::Done),
        ATTESTED => {}
        other => return Err(Fault::Tag(other).into()),
    }
    let epoch = rest.epoch()?;
    let request = match rest.byte()? {
        LOOKUP => Request::Lookup,
        END => Request::End,
        other => return Err(Fault::Tag(other).into()),
    };
    let (log, slot, nonce) = (rest.log()?, rest.value()?, rest.take()?);
    let claim = Claim { request, log, slot, nonce, content: one_content(rest)? };
    Ok(Answer::Attested(Attestation { epoch, claim, proof: rest.proof()? }))
}

fn put_content(frame: &mut Writer<'_>, content: &Content) {
    match content {
        Content::Assigned { value, digest } => {
            frame.byte(ASSIGNED);
            frame.put(value);
            frame.put(digest);
        }
        Content::Skipped { end, value, digest } => {
            frame.byte(SKIPPED);
            frame.value(*end);
            frame.put(value);
            frame.put(digest);
        }
        Content::Unassigned { high } => {
            frame.byte(UNASSIGNED);
            frame.value(*high);
        }
        Content::Forgotten { low } => {
            frame.byte(FORGOTTEN);
            frame.value(*low);
        }
    }
}

fn one_content(rest: &mut Reader<'_>) -> Result<Content, Malformed> {
    Ok(match rest.byte()? {
        ASSIGNED => Content::Assigned { value: rest.digest()?, digest: rest.digest()? },
        SKIPPED => Content::Skipped { end: rest.value()?, value: rest.digest()?, digest: rest.digest()? },
        UNASSIGNED => Content::Unassigned { high: rest.value()? },
        FORGOTTEN => Content::Forgotten { low: rest.value()? },
        other => return Err(Fault::Tag(other).into()),
    })
}

fn put_refusal(frame: &mut Writer<'_>, refusal: &LogRefusal) {
    match refusal {
        LogRefusal::Operation { index, why } => {
            frame.byte(OPERATION);
            frame.operations(*index);
            put_unfit(frame, why);
        }
        LogRefusal::TooMany => frame.byte(TOO_MANY),
        LogRefusal::NoSpace => frame.byte(NO_SPACE),
        LogRefusal::Halted => frame.byte(HALTED),
    }
}

fn refusal(rest: &mut Reader<'_>) -> Result<LogRefusal, Malformed> {
    Ok(match rest.byte()? {
        OPERATION => LogRefusal::Operation { index: rest.operations()?, why: unfit(rest)? },
        TOO_MANY => LogRefusal::TooMany,
        NO_SPACE => LogRefusal::NoSpace,
        HALTED => LogRefusal::Halted,
        other => return Err(Fault::Tag(other).into()),
    })
}

fn put_unfit(frame: &mut Writer<'_>, why: &Unfit) {
    match why {
        Unfit::NoSuchLog => frame.byte(NO_SUCH_LOG),
        Unfit::Elsewhere { high } => {
            frame.byte(ELSEWHERE);
            frame.value(*high);
        }
        Unfit::NotAhead { high } => {
            frame.byte(NOT_AHEAD);
            frame.value(*high);
        }
        Unfit::Spent => frame.byte(SPENT),
        Unfit::Full => frame.byte(FULL),
        Unfit::OutsideLog { low, high } => {
            frame.byte(OUTSIDE_LOG);
            frame.value(*low);
            frame.value(*high);
        }
    }
}

fn unfit(rest: &mut Reader<'_>) -> Result<Unfit, Malformed> {
    Ok(match rest.byte()? {
        NO_SUCH_LOG => Unfit::NoSuchLog,
        ELSEWHERE => Unfit::Elsewhere { high: rest.value()? },
        NOT_AHEAD => Unfit::NotAhead { high: rest.value()? },
        SPENT => Unfit::Spent,
        FULL => Unfit::Full,
        OUTSIDE_LOG => Unfit::OutsideLog { low: rest.value()?, high: rest.value()? },
        other => return Err(Fault::Tag(other).into()),
    })
}
