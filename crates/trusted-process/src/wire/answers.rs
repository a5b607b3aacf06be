//! The frame of answers.

use super::bytes::{Reader, Writer};
use super::{Fault, Malformed};
use troth_trusted::{Certificate, Refusal, Resumed};
use troth_trusted_host::Answer;

/// What a frame of answers starts with.
const ANSWERS: u8 = 130;

const ATTESTED: u8 = 1;
const ATTESTED_MULTI: u8 = 2;
const RESUMED: u8 = 3;
const VALUE: u8 = 4;
const REFUSED: u8 = 5;

const UNMOVED: u8 = 0;
const ONE: u8 = 1;
const MULTI: u8 = 2;
const SUPERSEDED: u8 = 3;

const UNKNOWN_COUNTER: u8 = 1;
const ELSEWHERE: u8 = 2;
const NOT_AHEAD: u8 = 3;
const BAD_MOVES: u8 = 4;
const HALTED: u8 = 5;
const NO_SPACE: u8 = 6;

/// Appends the frame of these answers, at most [`MAX_CALLS`](super::MAX_CALLS) of them.
///
/// # Panics
/// For more answers than a frame can have asked for.
pub fn encode_answers(answers: &[Answer], out: &mut Vec<u8>) {
    let mut frame = Writer::new(out, ANSWERS);
    frame.count(answers.len());
    for answer in answers {
        put_answer(&mut frame, answer);
    }
    frame.finish();
}

/// The answers of a frame, given without its length. Whether they fit what was asked is for the
/// caller to see.
///
/// # Errors
/// [`Malformed`].
pub fn decode_answers(frame: &[u8]) -> Result<Vec<Answer>, Malformed> {
    let mut rest = Reader::new(frame)?;
    rest.kind(ANSWERS)?;
    let count = rest.count()?;
    let mut answers = Vec::with_capacity(count);
    for _ in 0..count {
        answers.push(one_answer(&mut rest)?);
    }
    rest.end()?;
    Ok(answers)
}

pub(super) fn put_answer(frame: &mut Writer<'_>, answer: &Answer) {
    match answer {
        Answer::Attested(made) => {
            frame.byte(ATTESTED);
            put_certificate(frame, made);
        }
        Answer::AttestedMulti(made) => {
            frame.byte(ATTESTED_MULTI);
            frame.multi_certificate(made);
        }
        Answer::Resumed(last) => {
            frame.byte(RESUMED);
            put_resumed(frame, last);
        }
        Answer::Value(value) => {
            frame.byte(VALUE);
            frame.value(*value);
        }
        Answer::Refused(why) => {
            frame.byte(REFUSED);
            put_refusal(frame, why);
        }
    }
}

pub(super) fn one_answer(rest: &mut Reader<'_>) -> Result<Answer, Malformed> {
    Ok(match rest.byte()? {
        ATTESTED => Answer::Attested(certificate(rest)?),
        ATTESTED_MULTI => Answer::AttestedMulti(Box::new(rest.multi_certificate()?)),
        RESUMED => Answer::Resumed(Box::new(resumed(rest)?)),
        VALUE => Answer::Value(rest.value()?),
        REFUSED => Answer::Refused(refusal(rest)?),
        other => return Err(Fault::Tag(other).into()),
    })
}

fn put_certificate(frame: &mut Writer<'_>, made: &Certificate) {
    frame.epoch(made.epoch);
    frame.one_move(&made.moved());
    frame.proof(&made.proof);
}

fn certificate(rest: &mut Reader<'_>) -> Result<Certificate, Malformed> {
    let epoch = rest.epoch()?;
    let moved = rest.one_move()?;
    let proof = rest.proof()?;
    Ok(Certificate { epoch, counter: moved.counter, previous: moved.previous, new: moved.new, proof })
}

fn put_resumed(frame: &mut Writer<'_>, last: &Resumed) {
    match last {
        Resumed::Unmoved => frame.byte(UNMOVED),
        Resumed::One { certificate, digest } => {
            frame.byte(ONE);
            put_certificate(frame, certificate);
            frame.put(digest);
        }
        Resumed::Multi { certificate, digest } => {
            frame.byte(MULTI);
            frame.multi_certificate(certificate);
            frame.put(digest);
        }
        Resumed::Superseded => frame.byte(SUPERSEDED),
    }
}

fn resumed(rest: &mut Reader<'_>) -> Result<Resumed, Malformed> {
    Ok(match rest.byte()? {
        UNMOVED => Resumed::Unmoved,
        ONE => Resumed::One { certificate: certificate(rest)?, digest: rest.digest()? },
        MULTI => Resumed::Multi { certificate: rest.multi_certificate()?, digest: rest.digest()? },
        SUPERSEDED => Resumed::Superseded,
        other => return Err(Fault::Tag(other).into()),
    })
}

fn put_refusal(frame: &mut Writer<'_>, why: &Refusal) {
    match why {
        Refusal::UnknownCounter(counter) => {
            frame.byte(UNKNOWN_COUNTER);
            frame.counter(*counter);
        }
        Refusal::Elsewhere { counter, current } => {
            frame.byte(ELSEWHERE);
            frame.counter(*counter);
            frame.value(*current);
        }
        Refusal::NotAhead { counter, current } => {
            frame.byte(NOT_AHEAD);
            frame.counter(*counter);
            frame.value(*current);
        }
        Refusal::BadMoves => frame.byte(BAD_MOVES),
        Refusal::NoSpace => frame.byte(NO_SPACE),
        Refusal::Halted => frame.byte(HALTED),
    }
}

fn refusal(rest: &mut Reader<'_>) -> Result<Refusal, Malformed> {
    Ok(match rest.byte()? {
        UNKNOWN_COUNTER => Refusal::UnknownCounter(rest.counter()?),
        ELSEWHERE => Refusal::Elsewhere { counter: rest.counter()?, current: rest.value()? },
        NOT_AHEAD => Refusal::NotAhead { counter: rest.counter()?, current: rest.value()? },
        BAD_MOVES => Refusal::BadMoves,
        NO_SPACE => Refusal::NoSpace,
        HALTED => Refusal::Halted,
        other => return Err(Fault::Tag(other).into()),
    })
}
