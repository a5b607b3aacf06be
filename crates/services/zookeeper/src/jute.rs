//! ZooKeeper's own encoding of records: big-endian numbers, byte strings and vectors behind a signed length in which -1
//! stands for none at all.

use bytes::Bytes;
use core::fmt;

/// Bytes that are no record: they end inside a field, a length makes no sense, or a string is not UTF-8.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BadRecord;

impl fmt::Display for BadRecord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the bytes are not the record that they are said to be")
    }
}

impl std::error::Error for BadRecord {}

/// Reads fields. Byte strings come out as slices of the same buffer.
#[derive(Debug)]
pub struct Input<'a> {
    data: &'a Bytes,
    at: usize,
}

impl<'a> Input<'a> {
    /// At the start of `data`.
    #[must_use]
    pub fn new(data: &'a Bytes) -> Self {
        Self { data, at: 0 }
    }

    /// Bytes not yet read.
    #[must_use]
    pub fn remaining(&self) -> usize {
        self.data.len() - self.at
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], BadRecord> {
        let slice = self.data.get(self.at..self.at + N).ok_or(BadRecord)?;
        self.at += N;
        slice.try_into().map_err(|_| BadRecord)
    }

    /// A number of 32 bits.
    ///
    /// # Errors
    /// [`BadRecord`], as for every field.
    pub fn int(&mut self) -> Result<i32, BadRecord> {
        self.array().map(i32::from_be_bytes)
    }

    /// A number of 64 bits.
    ///
    /// # Errors
    /// [`BadRecord`]
    pub fn long(&mut self) -> Result<i64, BadRecord> {
        self.array().map(i64::from_be_bytes)
    }

    /// A truth value: any byte but 0 is true, as for the server that is imitated.
    ///
    /// # Errors
    /// [`BadRecord`]
    pub fn boolean(&mut self) -> Result<bool, BadRecord> {
        self.array().map(|[byte]| byte != 0)
    }

    /// A byte string; none where its length is -1.
    ///
    /// # Errors
    /// [`BadRecord`]
    pub fn buffer(&mut self) -> Result<Option<Bytes>, BadRecord> {
        let length = self.int()?;
        if length == -1 {
            return Ok(None);
        }
        let length = usize::try_from(length).map_err(|_| BadRecord)?;
        if length > self.remaining() {
            return Err(BadRecord);
        }
        let slice = self.data.slice(self.at..self.at + length);
        self.at += length;
        Ok(Some(slice))
    }

    /// A text; none where its length is -1.
    ///
    /// # Errors
    /// [`BadRecord`]
    pub fn text(&mut self) -> Result<Option<String>, BadRecord> {
        let Some(bytes) = self.buffer()? else { return Ok(None) };
        let text = std::str::from_utf8(&bytes).map_err(|_| BadRecord)?;
        Ok(Some(text.to_owned()))
    }

    /// A vector, each element of which takes at least `least` bytes; none where its length is -1.
    ///
    /// # Errors
    /// [`BadRecord`]
    pub fn vector<T>(
        &mut self,
        least: usize,
        mut element: impl FnMut(&mut Self) -> Result<T, BadRecord>,
    ) -> Result<Option<Vec<T>>, BadRecord> {
        let length = self.int()?;
        if length == -1 {
            return Ok(None);
        }
        let length = usize::try_from(length).map_err(|_| BadRecord)?;
        // No more room than what is really there may need.
        if length > self.remaining() / least.max(1) {
            return Err(BadRecord);
        }
        (0..length).map(|_| element(self)).collect::<Result<_, _>>().map(Some)
    }
}

/// Writes fields.
#[derive(Debug, Default)]
pub struct Output(Vec<u8>);

impl Output {
    /// Nothing yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// A number of 32 bits.
    pub fn int(&mut self, value: i32) -> &mut Self {
        self.0.extend_from_slice(&value.to_be_bytes());
        self
    }

    /// A number of 64 bits.
    pub fn long(&mut self, value: i64) -> &mut Self {
        self.0.extend_from_slice(&value.to_be_bytes());
        self
    }

    /// A truth value.
    pub fn boolean(&mut self, value: bool) -> &mut Self {
        self.0.push(u8::from(value));
        self
    }

    /// A byte string.
    pub fn buffer(&mut self, bytes: &[u8]) -> &mut Self {
        self.length(bytes.len());
        self.0.extend_from_slice(bytes);
        self
    }

    /// A text.
    pub fn text(&mut self, text: &str) -> &mut Self {
        self.buffer(text.as_bytes())
    }

    /// Bytes of a field whose length is written already.
    pub(crate) fn raw(&mut self, bytes: &[u8]) -> &mut Self {
        self.0.extend_from_slice(bytes);
        self
    }

    /// How many elements follow.
    pub fn length(&mut self, length: usize) -> &mut Self {
        self.int(i32::try_from(length).expect("what is written is bounded far below"))
    }

    /// What was written.
    #[must_use]
    pub fn finish(self) -> Bytes {
        Bytes::from(self.0)
    }
}
