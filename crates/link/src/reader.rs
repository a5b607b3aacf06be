//! The receiving half.

use crate::{Counters, LinkError, MESSAGE_HEADER, RECORD, RECORD_HEADER, TAG};
use bytes::{Buf, Bytes, BytesMut};
use snow::StatelessTransportState;
use std::future::{Future as _, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::task::ready;
use tokio::io::AsyncReadExt;
use tokio::net::tcp::OwnedReadHalf;

/// Room for one read: a whole record beside what is left of the one before.
const READ: usize = 2 * (RECORD + RECORD_HEADER);

/// Yields a connection's messages in the order they were sent. It holds at most one message and
/// two records.
#[derive(Debug)]
pub struct LinkReader {
    input: OwnedReadHalf,
    cipher: Arc<StatelessTransportState>,
    /// The number of the next record; snow takes it as the nonce, so a record that is replayed,
    /// left out or moved does not open.
    next_record: u64,
    max_message: usize,
    sealed: BytesMut,
    plain: BytesMut,
    /// The newest record was not full, so a message must end where it does.
    had_room: bool,
    counters: Counters,
}

impl LinkReader {
    pub(crate) fn new(
        input: OwnedReadHalf,
        cipher: Arc<StatelessTransportState>,
        next_record: u64,
        max_message: usize,
    ) -> Self {
        let (sealed, plain) = (BytesMut::new(), BytesMut::new());
        let (had_room, counters) = (false, Counters::default());
        Self { input, cipher, next_record, max_message, sealed, plain, had_room, counters }
    }

    /// The next message; `None` when the peer has closed the connection between two messages.
    /// Messages are slices of the receive buffer: keeping a small one for long keeps up to 256 KiB,
    /// never what a large one beside it needed.
    /// Dropping the future loses nothing.
    ///
    /// # Errors
    /// The connection is of no use any more; see [`LinkError`].
    pub async fn next(&mut self) -> Result<Option<Bytes>, LinkError> {
        loop {
            if let Some(message) = self.buffered()? {
                return Ok(Some(message));
            }
            let count = if self.sealed.is_empty() { self.first_read().await? } else { self.read().await? };
            if count == 0 {
                let between = self.sealed.is_empty() && self.plain.is_empty();
                return if between { Ok(None) } else { Err(LinkError::Truncated) };
            }
            self.counters.calls += 1;
            self.counters.bytes += count as u64;
        }
    }

    async fn read(&mut self) -> Result<usize, LinkError> {
        self.sealed.reserve(READ - self.sealed.len());
        Ok(self.input.read_buf(&mut self.sealed).await?)
    }

    /// As [`LinkReader::read`], where nothing is held: a connection on which nothing has come holds no buffer.
    async fn first_read(&mut self) -> Result<usize, LinkError> {
        // Not `try_read_buf`: after a read that leaves room the socket is known to be empty by this one alone, and the next
        // wait asks the kernel nothing. One future of both, which is woken for either: a read may also be put off
        // because this task has had its turn, with the socket as ready as before.
        poll_fn(|cx| {
            ready!(self.input.as_ref().poll_read_ready(cx))?;
            self.sealed.reserve(READ);
            let read = pin!(self.input.read_buf(&mut self.sealed)).poll(cx);
            if read.is_pending() {
                self.sealed = BytesMut::new();
            }
            read.map_err(LinkError::from)
        })
        .await
    }

    /// The next message if it has been received whole, without waiting or asking the kernel.
    ///
    /// # Errors
    /// As [`LinkReader::next`].
    pub fn buffered(&mut self) -> Result<Option<Bytes>, LinkError> {
        loop {
            if let Some(message) = self.split_message()? {
                self.counters.messages += 1;
                return Ok(Some(message));
            }
            // Records that end no message would be opened for nothing: what is charged is messages.
            if self.had_room && !self.plain.is_empty() {
                return Err(LinkError::Unfilled);
            }
            if !self.open_record()? {
                return Ok(None);
            }
        }
    }

    /// Refuses messages over `max_message` from here on, where the limit was higher: for a peer of
    /// whom one knows only after the handshake that it has less to say than others.
    pub fn restrict(&mut self, max_message: usize) {
        self.max_message = self.max_message.min(max_message);
    }

    /// The socket, for whoever wants no more messages and only empties it.
    #[must_use]
    pub fn into_socket(self) -> OwnedReadHalf {
        self.input
    }

    /// What came in so far.
    #[must_use]
    pub fn counters(&self) -> Counters {
        Counters { records: self.next_record, ..self.counters }
    }

    /// The socket, to look at its options.
    #[cfg(test)]
    pub(crate) fn socket(&self) -> &tokio::net::TcpStream {
        self.input.as_ref()
    }

    fn split_message(&mut self) -> Result<Option<Bytes>, LinkError> {
        let Some(header) = self.plain.first_chunk::<MESSAGE_HEADER>() else { return Ok(None) };
        let bytes = u32::from_le_bytes(*header) as usize;
        if bytes > self.max_message {
            return Err(LinkError::TooLarge { bytes, limit: self.max_message });
        }
        if self.plain.len() - MESSAGE_HEADER < bytes {
            return Ok(None);
        }
        self.plain.advance(MESSAGE_HEADER);
        let message = self.plain.split_to(bytes).freeze();
        if bytes > RECORD {
            // What follows must not be slices of an allocation of this message's size: a small
            // message that is kept would keep all of it. The rest is less than a record.
            self.plain = BytesMut::from(&self.plain[..]);
        }
        Ok(Some(message))
    }

    /// Opens the next record if it is there whole.
    fn open_record(&mut self) -> Result<bool, LinkError> {
        let Some(header) = self.sealed.first_chunk::<RECORD_HEADER>() else { return Ok(false) };
        let length = usize::from(u16::from_le_bytes(*header));
        if length < TAG {
            return Err(LinkError::Forged);
        }
        if length == TAG {
            return Err(LinkError::Unfilled);
        }
        let Some(body) = self.sealed.get(RECORD_HEADER..RECORD_HEADER + length) else { return Ok(false) };
        let before = self.plain.len();
        self.plain.resize(before + length - TAG, 0);
        let opened = self.cipher.read_message(self.next_record, body, &mut self.plain[before..]);
        if opened.is_err() {
            self.plain.truncate(before);
            return Err(LinkError::Forged);
        }
        self.had_room = length < RECORD;
        self.next_record += 1;
        self.sealed.advance(RECORD_HEADER + length);
        Ok(true)
    }
}
