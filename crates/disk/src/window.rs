//! Reading a file in large pieces, from the front to the back.

use crate::{DiskError, DiskFile};

/// How much is read at a time.
pub(crate) const WINDOW: usize = 1 << 20;

/// The part of a file that was read last.
pub(crate) struct Window {
    /// Bytes from here on are not read.
    limit: u64,
    start: u64,
    bytes: Vec<u8>,
}

impl Window {
    pub(crate) fn new(limit: u64) -> Self {
        Self { limit, start: 0, bytes: Vec::new() }
    }

    /// The bytes at `offset`, `wanted` of them or fewer where the file or the limit ends. `wanted` is bounded by
    /// the caller: so much may be allocated.
    pub(crate) fn get<F: DiskFile>(
        &mut self,
        file: &F,
        offset: u64,
        wanted: usize,
    ) -> Result<&[u8], DiskError> {
        let end = self.limit.min(offset.saturating_add(wanted as u64)).max(offset);
        let held = self.start..=self.start + self.bytes.len() as u64;
        if !held.contains(&offset) || !held.contains(&end) {
            let ahead = self.limit.saturating_sub(offset).min(wanted.max(WINDOW) as u64);
            self.bytes.clear();
            self.bytes.resize(ahead as usize, 0);
            self.start = offset;
            let read = file.read_at(offset, &mut self.bytes)?;
            self.bytes.truncate(read);
        }
        let from = (offset - self.start) as usize;
        let to = self.bytes.len().min((end - self.start) as usize);
        Ok(&self.bytes[from..to.max(from)])
    }
}
