//! The frames on the socket between a replica's host and its trusted process.
//!
//! A frame is a length (four bytes, big-endian, at most [`MAX_FRAME`]) and that many bytes, of which
//! the first says what it is. The client says hello and is welcomed or turned away; then one frame of
//! calls is answered by one frame of answers, each in order. A move with a blob beside it has a frame of its
//! own, and so has the question for the blobs that are kept. A call to attested logs is a frame, as it is done as
//! a whole or not at all. All numbers are big-endian, every value
//! has exactly one encoding, and nothing may follow it.

mod answers;
mod beside;
mod bytes;
mod calls;
mod hello;
mod logs;

pub use answers::{decode_answers, encode_answers};
pub use beside::{
    Blobs, decode_beside, decode_blobs, decode_blobs_from, decode_done, encode_beside, encode_blobs,
    encode_blobs_from, encode_done,
};
pub use calls::{decode_calls, encode_calls};
pub use hello::{Reply, TurnedAway, decode_hello, decode_reply, encode_hello, encode_reply};
pub use logs::{decode_log_answers, decode_log_call, encode_log_answers, encode_log_call};

use troth_trusted::a2m::{MOST_OPERATIONS, Operation};
use troth_trusted_host::Call;

/// The version of this format. Both sides must speak the same.
pub const VERSION: u16 = 4;
/// The most bytes of a frame after its length.
pub const MAX_FRAME: usize = 64 * 1024;
/// The most calls in one frame.
pub const MAX_CALLS: usize = 64;
/// The most bytes of a blob beside a move: what the store that ships keeps.
pub const MAX_BLOB: usize = troth_trusted_host::store::MOST_BLOB;
/// Bytes of the length before a frame.
pub const PREFIX: usize = 4;

/// Bytes are not what the format allows.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error(
    "{fault} in a frame of the trusted process's socket; mend: run the same release of troth on both sides"
)]
pub struct Malformed {
    /// What is wrong with them.
    pub fault: Fault,
}

/// What is wrong with a frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Fault {
    /// It is longer than [`MAX_FRAME`].
    #[error("{0} bytes, more than {MAX_FRAME},")]
    TooLong(usize),
    /// It ends before what it announces.
    #[error("too few bytes")]
    Short,
    /// It goes on after its end.
    #[error("bytes after the end")]
    Trailing,
    /// It does not start with this protocol's name.
    #[error("another protocol's greeting")]
    Magic,
    /// A byte that says what follows has no meaning.
    #[error("unknown tag {0}")]
    Tag(u8),
    /// More calls or answers than [`MAX_CALLS`].
    #[error("{0} calls, more than {MAX_CALLS},")]
    Count(usize),
    /// Moves that are not two to eight in ascending order of existing counters.
    #[error("a set of moves that no component makes")]
    Moves,
    /// A blob longer than [`MAX_BLOB`].
    #[error("a blob of {0} bytes, more than {MAX_BLOB},")]
    Blob(usize),
    /// More operations on logs, or answers to them, than [`MOST_OPERATIONS`].
    #[error("{0} operations on logs, more than {MOST_OPERATIONS},")]
    Operations(usize),
    /// No blobs, and more to follow.
    #[error("no blobs before more of them")]
    NoBlobs,
}

impl From<Fault> for Malformed {
    fn from(fault: Fault) -> Self {
        Self { fault }
    }
}

/// What a client may send once it was welcomed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Request<'a> {
    /// A batch of calls.
    Calls(Vec<Call>),
    /// A move with a blob beside it.
    Beside(Call, &'a [u8]),
    /// The blobs that are kept, from this index on.
    BlobsFrom(u16),
    /// A call to the logs.
    Logs(Vec<Operation>),
}

/// The request of a frame, given without its length.
///
/// # Errors
/// [`Malformed`].
pub fn decode_request(frame: &[u8]) -> Result<Request<'_>, Malformed> {
    match frame.first() {
        Some(&beside::BESIDE) => decode_beside(frame).map(|(call, blob)| Request::Beside(call, blob)),
        Some(&beside::BLOBS_FROM) => decode_blobs_from(frame).map(Request::BlobsFrom),
        Some(&logs::LOG_CALL) => decode_log_call(frame).map(Request::Logs),
        _ => decode_calls(frame).map(Request::Calls),
    }
}

/// The length of the frame that starts with these bytes, its prefix included; `None` while the prefix
/// is not complete.
///
/// # Errors
/// [`Malformed`] for a frame longer than [`MAX_FRAME`].
pub fn frame_length(received: &[u8]) -> Result<Option<usize>, Malformed> {
    let Some(prefix) = received.first_chunk::<PREFIX>() else {
        return Ok(None);
    };
    let length = u32::from_be_bytes(*prefix) as usize;
    if length > MAX_FRAME { Err(Fault::TooLong(length).into()) } else { Ok(Some(PREFIX + length)) }
}
