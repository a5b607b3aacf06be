//! The sending half.

use crate::{Counters, LinkError, MESSAGE_HEADER, RECORD, TAG};
use snow::StatelessTransportState;
use std::sync::Arc;
use tokio::io::AsyncWriteExt;
use tokio::net::tcp::OwnedWriteHalf;
use troth_types::Wire;

/// A buffer that grew beyond this for a burst is given back when it is empty.
const KEEP: usize = 1 << 20;
/// Sealed without a pause: full records, a MiB about. All that waits for a slow reader may be 64 MiB, which would take the
/// thread for too long.
const SEALED_AT_ONCE: usize = 16 * (RECORD - TAG);

/// Collects messages and writes them together.
#[derive(Debug)]
pub struct LinkWriter {
    output: OwnedWriteHalf,
    cipher: Arc<StatelessTransportState>,
    /// The number of the next record, its nonce.
    next_record: u64,
    max_message: usize,
    max_unsent: usize,
    /// Messages behind their lengths; the first `taken` bytes are sealed, and not yet given up.
    plain: Vec<u8>,
    taken: usize,
    /// Sealed records; the first `written` bytes are with the kernel.
    sealed: Vec<u8>,
    written: usize,
    counters: Counters,
}

impl LinkWriter {
    pub(crate) fn new(
        output: OwnedWriteHalf,
        cipher: Arc<StatelessTransportState>,
        next_record: u64,
        max_message: usize,
        max_unsent: usize,
    ) -> Self {
        Self {
            output,
            cipher,
            next_record,
            max_message,
            max_unsent,
            plain: Vec::new(),
            taken: 0,
            sealed: Vec::new(),
            written: 0,
            counters: Counters::default(),
        }
    }

    /// Adds a message to what the next flush writes.
    ///
    /// # Errors
    /// [`LinkError::TooLarge`] or [`LinkError::Full`]; the message was not taken and the
    /// connection is as good as before.
    pub fn queue(&mut self, message: &[u8]) -> Result<(), LinkError> {
        self.queue_with(|out| out.extend_from_slice(message))
    }

    /// As [`LinkWriter::queue`], with a value's encoding and no buffer between.
    ///
    /// # Errors
    /// As [`LinkWriter::queue`].
    pub fn queue_value(&mut self, value: &impl Wire) -> Result<(), LinkError> {
        self.queue_with(|out| value.encode(out))
    }

    fn queue_with(&mut self, encode: impl FnOnce(&mut Vec<u8>)) -> Result<(), LinkError> {
        let waiting = self.unsent();
        let start = self.plain.len();
        self.plain.extend_from_slice(&[0; MESSAGE_HEADER]);
        encode(&mut self.plain);
        let bytes = self.plain.len() - start - MESSAGE_HEADER;
        let limit = self.max_message.min(u32::MAX as usize);
        let refused = if bytes > limit {
            Some(LinkError::TooLarge { bytes, limit })
        } else if waiting > 0 && waiting + MESSAGE_HEADER + bytes > self.max_unsent {
            Some(LinkError::Full)
        } else {
            None
        };
        if let Some(error) = refused {
            self.plain.truncate(start);
            return Err(error);
        }
        let length = u32::try_from(bytes).expect("the limit fits a u32");
        self.plain[start..start + MESSAGE_HEADER].copy_from_slice(&length.to_le_bytes());
        self.counters.messages += 1;
        Ok(())
    }

    /// Bytes that wait for the kernel.
    #[must_use]
    pub fn unsent(&self) -> usize {
        self.plain.len() - self.taken + self.sealed.len() - self.written
    }

    /// Writes all that is queued, in one call where the kernel takes it and it is not much; between parts of much others
    /// have their turn. Dropping the future loses
    /// nothing: the next flush goes on where this one stopped.
    ///
    /// # Errors
    /// The connection is of no use any more; see [`LinkError`].
    pub async fn flush(&mut self) -> Result<(), LinkError> {
        loop {
            if self.sealed.len() - self.written < SEALED_AT_ONCE {
                self.seal();
            }
            self.write_sealed().await?;
            if self.plain.is_empty() {
                break;
            }
            tokio::task::yield_now().await;
        }
        self.sealed.shrink_to(KEEP);
        self.plain.shrink_to(KEEP);
        Ok(())
    }

    async fn write_sealed(&mut self) -> Result<(), LinkError> {
        while self.written < self.sealed.len() {
            let count = self.output.write(&self.sealed[self.written..]).await?;
            if count == 0 {
                return Err(LinkError::Io(std::io::ErrorKind::WriteZero.into()));
            }
            self.written += count;
            self.counters.calls += 1;
            self.counters.bytes += count as u64;
            self.drop_written();
        }
        Ok(())
    }

    /// What went out so far.
    #[must_use]
    pub fn counters(&self) -> Counters {
        Counters { records: self.next_record, ..self.counters }
    }

    /// Gives up the written prefix. A reader that is slow without ever standing still keeps the buffer
    /// from becoming empty, so to wait for that would let it grow without bound. Half of the buffer is
    /// the threshold: what is held stays below twice what is unsent, and no byte is moved more often
    /// than another one is written.
    fn drop_written(&mut self) {
        if self.written >= self.sealed.len() / 2 {
            self.sealed.drain(..self.written);
            self.written = 0;
        }
    }

    /// Bytes in memory, written ones included.
    #[cfg(test)]
    pub(crate) fn held(&self) -> usize {
        self.plain.len() + self.sealed.len()
    }

    /// Either all that waits, which ends with a message, or full records alone: a receiver refuses a record that is not full
    /// and ends inside a message.
    fn seal(&mut self) {
        let plain = std::mem::take(&mut self.plain);
        let end = plain.len().min(self.taken + SEALED_AT_ONCE);
        for chunk in plain[self.taken..end].chunks(RECORD - TAG) {
            self.seal_record(chunk);
        }
        (self.plain, self.taken) = (plain, end);
        // By halves, as what is written.
        if self.taken >= self.plain.len() / 2 {
            self.plain.drain(..self.taken);
            self.taken = 0;
        }
    }

    fn seal_record(&mut self, chunk: &[u8]) {
        let length = chunk.len() + TAG;
        let header = u16::try_from(length).expect("RECORD fits a u16");
        self.sealed.extend_from_slice(&header.to_le_bytes());
        let at = self.sealed.len();
        self.sealed.resize(at + length, 0);
        let sealed = self.cipher.write_message(self.next_record, chunk, &mut self.sealed[at..]);
        assert_eq!(sealed.ok(), Some(length), "a chunk of a record's size can be sealed");
        self.next_record += 1;
    }

    /// Seals a record as no honest end would, behind what was queued.
    #[cfg(test)]
    pub(crate) fn seal_anything(&mut self, chunk: &[u8]) {
        while !self.plain.is_empty() {
            self.seal();
        }
        self.seal_record(chunk);
    }
}
