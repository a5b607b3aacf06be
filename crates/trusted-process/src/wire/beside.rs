//! The frames of a move with a blob beside it, and of the blobs that are kept.

use super::answers::{one_answer, put_answer};
use super::bytes::{Reader, Writer};
use super::calls::{one_move_call, put_call};
use super::{Fault, MAX_FRAME, Malformed};
use troth_trusted_host::{Answer, Call};

/// What a frame of a move with a blob starts with.
pub(super) const BESIDE: u8 = 3;
/// What the question for blobs starts with.
pub(super) const BLOBS_FROM: u8 = 4;
/// What the answer to a move with a blob starts with.
const DONE: u8 = 132;
/// What a frame of blobs starts with.
const BLOBS: u8 = 133;

const NOT_KEPT: u8 = 0;
const KEPT: u8 = 1;

/// Some of the blobs that are kept.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Blobs {
    /// Those from the index that was asked for, oldest first, as many as fit into a frame.
    pub blobs: Vec<Vec<u8>>,
    /// Whether more follow.
    pub more: bool,
}

/// Appends the frame of a move and the blob that is to stand beside it.
///
/// # Panics
/// For a blob of more than [`MAX_BLOB`](super::MAX_BLOB) bytes, and for a call that is no move.
pub fn encode_beside(call: &Call, blob: &[u8], out: &mut Vec<u8>) {
    assert!(
        matches!(call, Call::Attest { .. } | Call::AttestMulti { .. }),
        "a blob stands beside a move, {call:?} is none"
    );
    let mut frame = Writer::new(out, BESIDE);
    put_call(&mut frame, call);
    frame.blob(blob);
    frame.finish();
}

/// The move of a frame and the blob that is to stand beside it, given without its length.
///
/// # Errors
/// [`Malformed`].
pub fn decode_beside(frame: &[u8]) -> Result<(Call, &[u8]), Malformed> {
    let mut rest = Reader::new(frame)?;
    rest.kind(BESIDE)?;
    let call = one_move_call(&mut rest)?;
    let blob = rest.blob()?;
    rest.end()?;
    Ok((call, blob))
}

/// Appends the frame that answers a move with a blob; `None` where no such blob is kept now, and nothing
/// has happened.
pub fn encode_done(answer: Option<&Answer>, out: &mut Vec<u8>) {
    let mut frame = Writer::new(out, DONE);
    match answer {
        None => frame.byte(NOT_KEPT),
        Some(answer) => {
            frame.byte(KEPT);
            put_answer(&mut frame, answer);
        }
    }
    frame.finish();
}

/// The answer to a move with a blob, given without its length. Whether it fits what was asked is for the
/// caller to see.
///
/// # Errors
/// [`Malformed`].
pub fn decode_done(frame: &[u8]) -> Result<Option<Answer>, Malformed> {
    let mut rest = Reader::new(frame)?;
    rest.kind(DONE)?;
    let answer = match rest.byte()? {
        NOT_KEPT => None,
        KEPT => Some(one_answer(&mut rest)?),
        other => return Err(Fault::Tag(other).into()),
    };
    rest.end()?;
    Ok(answer)
}

/// Appends the frame that asks for the kept blobs from the index `from` on.
pub fn encode_blobs_from(from: u16, out: &mut Vec<u8>) {
    let mut frame = Writer::new(out, BLOBS_FROM);
    frame.number(from);
    frame.finish();
}

/// The index from which on blobs are asked for, given without its length.
///
/// # Errors
/// [`Malformed`].
pub fn decode_blobs_from(frame: &[u8]) -> Result<u16, Malformed> {
    let mut rest = Reader::new(frame)?;
    rest.kind(BLOBS_FROM)?;
    let from = rest.number()?;
    rest.end()?;
    Ok(from)
}

/// Appends a frame of these blobs, oldest first: as many of the first as fit, and whether more follow.
///
/// # Panics
/// For a blob of more than [`MAX_BLOB`](super::MAX_BLOB) bytes.
pub fn encode_blobs(blobs: &[Vec<u8>], out: &mut Vec<u8>) {
    let mut room = MAX_FRAME - 1 - 2 - 1;
    let fit = blobs.iter().take_while(|blob| match room.checked_sub(2 + blob.len()) {
        Some(left) => {
            room = left;
            true
        }
        None => false,
    });
    let fit = fit.count().min(usize::from(u16::MAX));
    let mut frame = Writer::new(out, BLOBS);
    frame.byte(u8::from(fit < blobs.len()));
    frame.number(fit as u16);
    for blob in &blobs[..fit] {
        frame.blob(blob);
    }
    frame.finish();
}

/// The blobs of a frame, given without its length.
///
/// # Errors
/// [`Malformed`]; also where none are there and more are said to follow, as then there would be no end.
pub fn decode_blobs(frame: &[u8]) -> Result<Blobs, Malformed> {
    let mut rest = Reader::new(frame)?;
    rest.kind(BLOBS)?;
    let more = match rest.byte()? {
        0 => false,
        1 => true,
        other => return Err(Fault::Tag(other).into()),
    };
    let count = rest.number()?;
    if more && count == 0 {
        return Err(Fault::NoBlobs.into());
    }
    // Each takes two bytes at least, so what is allocated is bounded by the frame.
    let mut blobs = Vec::new();
    for _ in 0..count {
        blobs.push(rest.blob()?.to_vec());
    }
    rest.end()?;
    Ok(Blobs { blobs, more })
}
