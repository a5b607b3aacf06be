//! The first frame of each side.

use super::bytes::{Reader, Writer};
use super::{Fault, Malformed};
use troth_trusted::Identity;

/// What a greeting and its reply start with, so that another protocol's bytes are known at once.
const MAGIC: &[u8; 8] = b"trothtp\0";

const HELLO: u8 = 1;
const WELCOME: u8 = 129;
const TURNED_AWAY: u8 = 131;

const BUSY: u8 = 1;
const NOT_PERMITTED: u8 = 2;
const OTHER_VERSION: u8 = 3;
const MALFORMED: u8 = 4;

/// The process's reply to a greeting, or its last word.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reply {
    /// Calls may follow; this is who answers them.
    Welcome(Identity),
    /// The connection ends here.
    TurnedAway(TurnedAway),
}

/// Why a connection ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum TurnedAway {
    /// Another connection is being served.
    #[error("it serves another connection; mend: stop the other process that uses this component")]
    Busy,
    /// The peer is not the user that may ask.
    #[error(
        "it does not serve this user; mend: run the replica as the user the trusted process was told to serve"
    )]
    NotPermitted,
    /// The greeting was of another version.
    #[error("it speaks version {0} of the protocol; mend: run the same release of troth on both sides")]
    OtherVersion(u16),
    /// The frame before made no sense.
    #[error("it did not understand a frame; mend: run the same release of troth on both sides")]
    Malformed,
}

/// Appends the greeting of a client that speaks `version`.
pub fn encode_hello(version: u16, out: &mut Vec<u8>) {
    let mut frame = Writer::new(out, HELLO);
    frame.put(MAGIC);
    frame.number(version);
    frame.finish();
}

/// The version of a greeting, given without its length. What follows the version of another version's
/// greeting is that version's affair.
///
/// # Errors
/// [`Malformed`].
pub fn decode_hello(frame: &[u8]) -> Result<u16, Malformed> {
    let mut rest = Reader::new(frame)?;
    rest.kind(HELLO)?;
    magic(&mut rest)?;
    let version = rest.number()?;
    if version == super::VERSION {
        rest.end()?;
    }
    Ok(version)
}

/// Appends the reply to a greeting.
pub fn encode_reply(reply: &Reply, out: &mut Vec<u8>) {
    let kind = if matches!(reply, Reply::Welcome(_)) { WELCOME } else { TURNED_AWAY };
    let mut frame = Writer::new(out, kind);
    frame.put(MAGIC);
    match reply {
        Reply::Welcome(identity) => frame.identity(identity),
        Reply::TurnedAway(TurnedAway::Busy) => frame.byte(BUSY),
        Reply::TurnedAway(TurnedAway::NotPermitted) => frame.byte(NOT_PERMITTED),
        Reply::TurnedAway(TurnedAway::OtherVersion(spoken)) => {
            frame.byte(OTHER_VERSION);
            frame.number(*spoken);
        }
        Reply::TurnedAway(TurnedAway::Malformed) => frame.byte(MALFORMED),
    }
    frame.finish();
}

/// The reply to a greeting, given without its length.
///
/// # Errors
/// [`Malformed`].
pub fn decode_reply(frame: &[u8]) -> Result<Reply, Malformed> {
    let mut rest = Reader::new(frame)?;
    let kind = rest.byte()?;
    if kind != WELCOME && kind != TURNED_AWAY {
        return Err(Fault::Tag(kind).into());
    }
    magic(&mut rest)?;
    let reply = if kind == WELCOME {
        Reply::Welcome(rest.identity()?)
    } else {
        Reply::TurnedAway(match rest.byte()? {
            BUSY => TurnedAway::Busy,
            NOT_PERMITTED => TurnedAway::NotPermitted,
            OTHER_VERSION => TurnedAway::OtherVersion(rest.number()?),
            MALFORMED => TurnedAway::Malformed,
            other => return Err(Fault::Tag(other).into()),
        })
    };
    rest.end()?;
    Ok(reply)
}

fn magic(rest: &mut Reader<'_>) -> Result<(), Malformed> {
    if rest.take()? == *MAGIC { Ok(()) } else { Err(Fault::Magic.into()) }
}
