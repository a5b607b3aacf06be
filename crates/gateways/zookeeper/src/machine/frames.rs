//! Packets out of a stream of bytes.

use super::words::is_word;
use bytes::{Buf, Bytes, BytesMut};
use core::fmt;

/// The most bytes of a client's first packet: it holds a password of sixteen.
pub(super) const FIRST_PACKET: usize = 4096;

/// A length that no packet has: over the limit, or negative.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooLong;

impl fmt::Display for TooLong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the length of a packet is negative or over the limit")
    }
}

impl std::error::Error for TooLong {}

/// What stands next in the stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Frame {
    /// A packet, without its length.
    Packet(Bytes),
    /// A four-letter word. Nothing that comes behind it is read.
    Word([u8; 4]),
}

/// The bytes of one connection that came and were not taken yet.
#[derive(Clone, Debug)]
pub struct Frames {
    buffer: BytesMut,
    most: usize,
    begun: bool,
    /// Whether the first packet was taken.
    entered: bool,
}

impl Frames {
    /// Of a new connection whose packets have at most so many bytes.
    #[must_use]
    pub fn new(most: usize) -> Self {
        Self { buffer: BytesMut::new(), most, begun: false, entered: false }
    }

    /// Where what comes is put.
    pub fn buffer(&mut self) -> &mut BytesMut {
        &mut self.buffer
    }

    /// Bytes that the next packet has, as soon as its length is there.
    ///
    /// # Errors
    /// [`TooLong`]: no packet has that length, and the connection must be closed.
    pub fn length(&self) -> Result<Option<usize>, TooLong> {
        let Some(head) = self.buffer.first_chunk::<4>() else { return Ok(None) };
        rule!("ZKG-B1");
        let length = usize::try_from(i32::from_be_bytes(*head)).map_err(|_| TooLong)?;
        rule!("ZKG-B5");
        let most = if self.entered { self.most } else { self.most.min(FIRST_PACKET) };
        if length > most { Err(TooLong) } else { Ok(Some(length)) }
    }

    /// Takes what stands next, if all of it is there.
    ///
    /// # Errors
    /// As [`Frames::length`].
    pub fn take_next(&mut self) -> Result<Option<Frame>, TooLong> {
        if !self.begun
            && let Some(word) = self.buffer.first_chunk::<4>().copied()
            && is_word(word)
        {
            self.buffer.clear();
            return Ok(Some(Frame::Word(word)));
        }
        let Some(length) = self.length()? else { return Ok(None) };
        self.begun = true;
        if self.buffer.len() < 4 + length {
            return Ok(None);
        }
        self.entered = true;
        self.buffer.advance(4);
        Ok(Some(Frame::Packet(self.buffer.split_to(length).freeze())))
    }
}
