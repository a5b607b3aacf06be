//! What is said over a replica's backup socket: frames of a length and that many bytes.
//!
//! The replica begins with an [`Offer`] or a refusal. Then the operator sends
//! [`StateFetch`](troth_types::StateFetch)es, each answered by one [`StatePiece`](troth_types::StatePiece) in
//! the order of the questions, until the operator hangs up.

use bytes::Bytes;
use std::io::{self, Read, Write};
use troth_types::{Malformed, Reader, Seq, Wire, put_bytes};

/// The version of this exchange.
pub(crate) const VERSION: u16 = 1;
/// The most bytes of a question.
pub(crate) const MAX_FETCH: usize = 4 << 10;
/// The most bytes of an answer: a piece of state, and room to spare.
pub(crate) const MAX_ANSWER: usize = (1 << 24) + (64 << 10);
/// The most bytes of a refusal's reason.
const MAX_REASON: usize = 1 << 10;
/// What is reserved for a frame before it has come.
const PIECE: usize = 1 << 16;

/// How a replica begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Greeting<M> {
    /// It serves this.
    Offer(Offer<M>),
    /// It serves nothing now; why.
    Refused(String),
}

/// What a replica can serve; `M` is a message of its protocol.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Offer<M> {
    /// The last batch it has executed: what is above the checkpoint is not in the backup.
    pub(crate) executed: Seq,
    /// What proves its last stable checkpoint.
    pub(crate) proof: M,
}

impl<M: Wire> Wire for Greeting<M> {
    fn encode(&self, out: &mut Vec<u8>) {
        VERSION.encode(out);
        match self {
            Self::Offer(offer) => {
                out.push(0);
                offer.executed.encode(out);
                offer.proof.encode(out);
            }
            Self::Refused(reason) => {
                out.push(1);
                put_bytes(out, reason.as_bytes());
            }
        }
    }
    fn decode(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        let version = u16::decode(reader)?;
        if version != VERSION {
            return Err(Malformed::Tag("the version of a backup's exchange", u64::from(version)));
        }
        Ok(match u8::decode(reader)? {
            0 => Self::Offer(Offer { executed: Wire::decode(reader)?, proof: Wire::decode(reader)? }),
            1 => {
                let reason = reader.bytes("a refusal", MAX_REASON)?;
                let reason = String::from_utf8(reason.into());
                Self::Refused(reason.map_err(|_| Malformed::Invalid("a reason that is not UTF-8"))?)
            }
            other => return Err(Malformed::Tag("a backup's greeting", u64::from(other))),
        })
    }
}

/// Writes a frame.
pub(crate) fn send(to: &mut impl Write, bytes: &[u8]) -> io::Result<()> {
    let length = u32::try_from(bytes.len()).map_err(|_| io::Error::other("a frame too long"))?;
    let mut frame = Vec::with_capacity(bytes.len() + 4);
    frame.extend_from_slice(&length.to_le_bytes());
    frame.extend_from_slice(bytes);
    to.write_all(&frame)
}

/// Reads a frame of `most` bytes at most; nothing where the other end has hung up between two.
pub(crate) fn receive(from: &mut impl Read, most: usize) -> io::Result<Option<Bytes>> {
    let mut length = [0; 4];
    let mut at = 0;
    while at < length.len() {
        match from.read(&mut length[at..])? {
            0 if at == 0 => return Ok(None),
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            count => at += count,
        }
    }
    let length = u32::from_le_bytes(length) as usize;
    if length > most {
        return Err(io::Error::new(io::ErrorKind::InvalidData, format!("a frame of {length} bytes")));
    }
    // Grown as it comes, so that a length alone takes no memory.
    let mut bytes = Vec::with_capacity(length.min(PIECE));
    from.take(length as u64).read_to_end(&mut bytes)?;
    if bytes.len() < length {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok(Some(Bytes::from(bytes)))
}
