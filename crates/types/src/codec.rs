//! The canonical wire codec: little-endian fixed-width numbers, lists and byte strings behind a
//! `u32` length. One value has one encoding, and the decoder rejects every other: trailing bytes,
//! out-of-range tags, lengths beyond a bound. What decodes is therefore safe to hash and sign.

use bytes::Bytes;
use core::cell::Cell;
use core::fmt;

/// Why bytes were rejected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Malformed {
    /// The bytes end inside a field.
    Short,
    /// Bytes follow the value.
    Trailing,
    /// A tag, flag or version has no meaning.
    Tag(&'static str, u64),
    /// A list or byte string is longer than its bound.
    TooLong(&'static str, u64),
    /// A rule about the value's content does not hold.
    Invalid(&'static str),
}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Short => write!(f, "the bytes end inside a field"),
            Self::Trailing => write!(f, "bytes follow the value"),
            Self::Tag(field, value) => write!(f, "{field} has no meaning for {value}"),
            Self::TooLong(field, length) => write!(f, "{field} is too long: {length}"),
            Self::Invalid(rule) => write!(f, "{rule}"),
        }
    }
}

impl std::error::Error for Malformed {}

/// Reads fields from bytes. Byte strings come out as slices of the same buffer, without a copy.
pub struct Reader<'a> {
    data: &'a Bytes,
    at: usize,
}

impl<'a> Reader<'a> {
    /// A reader at the start of `data`.
    #[must_use]
    pub fn new(data: &'a Bytes) -> Self {
        Self { data, at: 0 }
    }

    /// Bytes not yet read.
    #[must_use]
    pub fn remaining(&self) -> usize {
        self.data.len() - self.at
    }

    fn take(&mut self, length: usize) -> Result<&'a [u8], Malformed> {
        if self.remaining() < length {
            return Err(Malformed::Short);
        }
        let slice = &self.data[self.at..self.at + length];
        self.at += length;
        Ok(slice)
    }

    /// Exactly `N` bytes.
    pub fn array<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        let mut array = [0; N];
        array.copy_from_slice(self.take(N)?);
        Ok(array)
    }

    /// A byte string of at most `max` bytes; `field` names it in the error.
    pub fn bytes(&mut self, field: &'static str, max: usize) -> Result<Bytes, Malformed> {
        let length = u32::decode(self)? as usize;
        if length > max {
            return Err(Malformed::TooLong(field, length as u64));
        }
        if self.remaining() < length {
            return Err(Malformed::Short);
        }
        let slice = self.data.slice(self.at..self.at + length);
        self.at += length;
        Ok(slice)
    }

    /// So many byte strings of at most `max` bytes each, in one piece as they stand there; `field` names one in the error.
    pub fn strings(&mut self, field: &'static str, count: usize, max: usize) -> Result<Bytes, Malformed> {
        let start = self.at;
        for _ in 0..count {
            let length = u32::decode(self)? as usize;
            if length > max {
                return Err(Malformed::TooLong(field, length as u64));
            }
            self.take(length)?;
        }
        Ok(self.data.slice(start..self.at))
    }

    /// A list of at most `max` values; `field` names it in the error.
    pub fn list<T: Wire>(&mut self, field: &'static str, max: usize) -> Result<Vec<T>, Malformed> {
        let length = u32::decode(self)? as usize;
        if length > max {
            return Err(Malformed::TooLong(field, length as u64));
        }
        // As many bytes as were really sent at first, whatever a length claims: an element may take far more memory than
        // it needs on the wire, and the list grows with what is really there.
        let mut list = Vec::with_capacity(length.min(self.remaining() / size_of::<T>().max(1)));
        for _ in 0..length {
            list.push(T::decode(self)?);
        }
        Ok(list)
    }

    /// Ends the reading; bytes left over are an error.
    pub fn finish(self) -> Result<(), Malformed> {
        if self.remaining() == 0 { Ok(()) } else { Err(Malformed::Trailing) }
    }
}

/// The most bytes of a buffer that a thread keeps.
const MAX_SCRATCH: usize = 64 << 10;

std::thread_local! {
    /// Where values are encoded, empty between calls: to be copied once costs less than a vector that grows. An encoding
    /// within an encoding begins with a vector of its own.
    static SCRATCH: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

/// A value with one canonical encoding.
pub trait Wire: Sized {
    /// Appends the encoding to `out`.
    fn encode(&self, out: &mut Vec<u8>);

    /// Reads one value; rejects what `encode` would never have written.
    fn decode(reader: &mut Reader<'_>) -> Result<Self, Malformed>;

    /// The encoding as a buffer of its own, which holds no more bytes than it has.
    fn to_wire(&self) -> Bytes {
        let mut out = SCRATCH.take();
        self.encode(&mut out);
        if out.capacity() > MAX_SCRATCH {
            return Bytes::from(out);
        }
        let bytes = Bytes::copy_from_slice(&out);
        out.clear();
        SCRATCH.set(out);
        bytes
    }

    /// The value that `bytes` encode, all of them.
    fn from_wire(bytes: &Bytes) -> Result<Self, Malformed> {
        let mut reader = Reader::new(bytes);
        let value = Self::decode(&mut reader)?;
        reader.finish()?;
        Ok(value)
    }
}

/// Appends a byte string behind its length.
pub fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    let length = u32::try_from(bytes.len()).expect("our own byte strings fit a u32 length");
    length.encode(out);
    out.extend_from_slice(bytes);
}

/// Appends a list behind its length.
pub fn put_list<T: Wire>(out: &mut Vec<u8>, list: &[T]) {
    let length = u32::try_from(list.len()).expect("our own lists fit a u32 length");
    length.encode(out);
    for item in list {
        item.encode(out);
    }
}

macro_rules! number {
    ($($type:ty),*) => {$(
        impl Wire for $type {
            fn encode(&self, out: &mut Vec<u8>) {
                out.extend_from_slice(&self.to_le_bytes());
            }
            fn decode(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
                Ok(Self::from_le_bytes(reader.array()?))
            }
        }
    )*};
}
number!(u8, u16, u32, u64, u128);

impl Wire for bool {
    fn encode(&self, out: &mut Vec<u8>) {
        out.push(u8::from(*self));
    }
    fn decode(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        match u8::decode(reader)? {
            0 => Ok(false),
            1 => Ok(true),
            other => Err(Malformed::Tag("a flag", u64::from(other))),
        }
    }
}

impl<T: Wire> Wire for Option<T> {
    fn encode(&self, out: &mut Vec<u8>) {
        self.is_some().encode(out);
        if let Some(value) = self {
            value.encode(out);
        }
    }
    fn decode(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        Ok(if bool::decode(reader)? { Some(T::decode(reader)?) } else { None })
    }
}

impl<T: Wire> Wire for std::sync::Arc<T> {
    fn encode(&self, out: &mut Vec<u8>) {
        T::encode(self, out);
    }
    fn decode(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        Ok(Self::new(T::decode(reader)?))
    }
}

impl<A: Wire, B: Wire> Wire for (A, B) {
    fn encode(&self, out: &mut Vec<u8>) {
        self.0.encode(out);
        self.1.encode(out);
    }
    fn decode(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        Ok((A::decode(reader)?, B::decode(reader)?))
    }
}

impl Wire for () {
    fn encode(&self, _: &mut Vec<u8>) {}
    fn decode(_: &mut Reader<'_>) -> Result<Self, Malformed> {
        Ok(())
    }
}
