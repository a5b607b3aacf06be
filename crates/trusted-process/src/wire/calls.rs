//! The frame of calls.

use super::bytes::{Reader, Writer};
use super::{Fault, Malformed};
use troth_trusted_host::Call;

/// What a frame of calls starts with.
const CALLS: u8 = 2;

const ATTEST: u8 = 1;
const ATTEST_MULTI: u8 = 2;
const RESUME: u8 = 3;
const READ: u8 = 4;

/// Appends the frame of these calls, at most [`MAX_CALLS`](super::MAX_CALLS) of them.
///
/// # Panics
/// For more calls than fit, which [`frames`](crate::batch::frames) never makes.
pub fn encode_calls<'a>(calls: impl ExactSizeIterator<Item = &'a Call>, out: &mut Vec<u8>) {
    let mut frame = Writer::new(out, CALLS);
    frame.count(calls.len());
    for call in calls {
        put_call(&mut frame, call);
    }
    frame.finish();
}

/// The calls of a frame, given without its length.
///
/// # Errors
/// [`Malformed`].
pub fn decode_calls(frame: &[u8]) -> Result<Vec<Call>, Malformed> {
    let mut rest = Reader::new(frame)?;
    rest.kind(CALLS)?;
    let count = rest.count()?;
    let mut calls = Vec::with_capacity(count);
    for _ in 0..count {
        calls.push(one_call(&mut rest)?);
    }
    rest.end()?;
    Ok(calls)
}

pub(super) fn put_call(frame: &mut Writer<'_>, call: &Call) {
    match call {
        Call::Attest { counter, previous, new, digest } => {
            frame.byte(ATTEST);
            frame.counter(*counter);
            frame.value(*previous);
            frame.value(*new);
            frame.put(digest);
        }
        Call::AttestMulti { moves, digest } => {
            frame.byte(ATTEST_MULTI);
            frame.moves(moves);
            frame.put(digest);
        }
        Call::Resume { counter } => {
            frame.byte(RESUME);
            frame.counter(*counter);
        }
        Call::Read { counter } => {
            frame.byte(READ);
            frame.counter(*counter);
        }
    }
}

fn one_call(rest: &mut Reader<'_>) -> Result<Call, Malformed> {
    Ok(match rest.byte()? {
        RESUME => Call::Resume { counter: rest.counter()? },
        READ => Call::Read { counter: rest.counter()? },
        tag => return moving(tag, rest),
    })
}

/// A call that moves counters.
pub(super) fn one_move_call(rest: &mut Reader<'_>) -> Result<Call, Malformed> {
    let tag = rest.byte()?;
    moving(tag, rest)
}

fn moving(tag: u8, rest: &mut Reader<'_>) -> Result<Call, Malformed> {
    Ok(match tag {
        ATTEST => Call::Attest {
            counter: rest.counter()?,
            previous: rest.value()?,
            new: rest.value()?,
            digest: rest.digest()?,
        },
        ATTEST_MULTI => Call::AttestMulti { moves: Box::new(rest.moves()?), digest: rest.digest()? },
        other => return Err(Fault::Tag(other).into()),
    })
}
