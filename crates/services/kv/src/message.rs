//! What clients say to the store and what it answers.

use bytes::Bytes;
use troth_types::{Malformed, Reader, Wire, put_bytes, put_list};

/// A bound for the decoder, far above the service's own; what is between the two gets an answer that
/// says what was too long.
const DECODE_BOUND: usize = 1 << 26;
const MAX_ENTRIES: usize = 1 << 16;

/// What a watch looks at.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Watch {
    /// One key.
    Key(Bytes),
    /// Every key that starts with this.
    Prefix(Bytes),
}

/// An operation on the store.
///
/// A key's **version** is the store's count of writes at the key's last write: it grows with every
/// write and is never used twice, not even after a key was deleted and made again, so a
/// compare-and-swap by version cannot take one life of a key for another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Reads a key. Answers: [`Answer::Value`], [`Answer::NotFound`].
    Get {
        /// The key.
        key: Bytes,
    },
    /// Writes a key, whatever it held. Answers: [`Answer::Written`].
    Put {
        /// The key.
        key: Bytes,
        /// Its new value.
        value: Bytes,
    },
    /// Deletes a key. Answers: [`Answer::Deleted`], [`Answer::NotFound`].
    Delete {
        /// The key.
        key: Bytes,
    },
    /// Writes a key (or deletes it, without a value) if its version is the expected one. Answers:
    /// [`Answer::Written`], [`Answer::Deleted`], [`Answer::Mismatch`]; [`Answer::NotFound`] where
    /// an absent key was to be deleted.
    CompareAndSwap {
        /// The key.
        key: Bytes,
        /// The expected version; none for a key that must not exist.
        expected: Option<u64>,
        /// The new value; none to delete.
        value: Option<Bytes>,
    },
    /// Reads the entries from `start` up to but without `end`, in key order, as many as the limit
    /// and the service's bounds allow. Answers: [`Answer::Entries`].
    Scan {
        /// The first key.
        start: Bytes,
        /// The first key behind the range; none to scan to the last key.
        end: Option<Bytes>,
        /// The most entries to return.
        limit: u32,
    },
    /// From now on puts a [`Change`] into this client's outbox whenever a matching key changes,
    /// until unwatched. Watching twice is watching once. Answers: [`Answer::Watching`],
    /// [`Answer::TooManyWatches`].
    Watch(Watch),
    /// Ends a watch. Answers: [`Answer::Unwatched`], [`Answer::NotFound`].
    Unwatch(Watch),
}

impl Operation {
    /// Scans the keys that start with a prefix.
    #[must_use]
    pub fn scan_prefix(prefix: &Bytes, limit: u32) -> Self {
        let mut end = prefix.to_vec();
        while end.last() == Some(&u8::MAX) {
            end.pop();
        }
        let end = end.pop().map(|last| {
            end.push(last + 1);
            Bytes::from(end)
        });
        Self::Scan { start: prefix.clone(), end, limit }
    }
}

/// A key with its version and value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The key.
    pub key: Bytes,
    /// Its version.
    pub version: u64,
    /// Its value.
    pub value: Bytes,
}

/// What the store answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// The key's version and value.
    Value {
        /// Its version.
        version: u64,
        /// Its value.
        value: Bytes,
    },
    /// The key was written.
    Written {
        /// Its version now.
        version: u64,
    },
    /// The key was deleted.
    Deleted {
        /// The store's count of writes at the deletion.
        version: u64,
    },
    /// The entries of a scan.
    Entries {
        /// In key order.
        entries: Vec<Entry>,
        /// Where to go on; none where the range is exhausted.
        next: Option<Bytes>,
    },
    /// The watch stands.
    Watching,
    /// The watch is gone.
    Unwatched,
    /// There is no such key, or no such watch.
    NotFound,
    /// The key has another version; nothing was changed.
    Mismatch {
        /// The version it has; none where it does not exist.
        current: Option<u64>,
    },
    /// The key is longer than [`crate::MAX_KEY`].
    KeyTooLong,
    /// The value is larger than [`crate::MAX_VALUE`].
    ValueTooLarge,
    /// The client has as many watches as it may have, or the key as many watchers, or there are watches for as many lengths
    /// of long prefixes as there may be.
    TooManyWatches,
    /// The operation would change the state and was sent as a read.
    ReadOnly,
    /// The result did not fit the group's limits.
    ResultTooLarge,
    /// The bytes are no operation.
    Malformed,
}

/// The payload of an event: a watched key changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// The key.
    pub key: Bytes,
    /// Whether it was deleted; else it was written.
    pub deleted: bool,
    /// The version of this write or deletion.
    pub version: u64,
}

struct Blob(Bytes);

impl Wire for Blob {
    fn encode(&self, out: &mut Vec<u8>) {
        put_bytes(out, &self.0);
    }
    fn decode(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        Ok(Self(blob(reader)?))
    }
}

fn blob(reader: &mut Reader<'_>) -> Result<Bytes, Malformed> {
    reader.bytes("a key or value", DECODE_BOUND)
}

fn put_optional(out: &mut Vec<u8>, bytes: Option<&Bytes>) {
    bytes.cloned().map(Blob).encode(out);
}

fn optional(reader: &mut Reader<'_>) -> Result<Option<Bytes>, Malformed> {
    Ok(Option::<Blob>::decode(reader)?.map(|blob| blob.0))
}

impl Wire for Watch {
    fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Self::Key(key) => {
                out.push(0);
                put_bytes(out, key);
            }
            Self::Prefix(prefix) => {
                out.push(1);
                put_bytes(out, prefix);
            }
        }
    }
    fn decode(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        match u8::decode(reader)? {
            0 => Ok(Self::Key(blob(reader)?)),
            1 => Ok(Self::Prefix(blob(reader)?)),
            other => Err(Malformed::Tag("a watch", u64::from(other))),
        }
    }
}

impl Wire for Operation {
    fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Self::Get { key } => {
                out.push(0);
                put_bytes(out, key);
            }
            Self::Put { key, value } => {
                out.push(1);
                put_bytes(out, key);
                put_bytes(out, value);
            }
            Self::Delete { key } => {
                out.push(2);
                put_bytes(out, key);
            }
            Self::CompareAndSwap { key, expected, value } => {
                out.push(3);
                put_bytes(out, key);
                expected.encode(out);
                put_optional(out, value.as_ref());
            }
            Self::Scan { start, end, limit } => {
                out.push(4);
                put_bytes(out, start);
                put_optional(out, end.as_ref());
                limit.encode(out);
            }
            Self::Watch(watch) => {
                out.push(5);
                watch.encode(out);
            }
            Self::Unwatch(watch) => {
                out.push(6);
                watch.encode(out);
            }
        }
    }
    fn decode(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        Ok(match u8::decode(reader)? {
            0 => Self::Get { key: blob(reader)? },
            1 => Self::Put { key: blob(reader)?, value: blob(reader)? },
            2 => Self::Delete { key: blob(reader)? },
            3 => Self::CompareAndSwap {
                key: blob(reader)?,
                expected: Wire::decode(reader)?,
                value: optional(reader)?,
            },
            4 => Self::Scan { start: blob(reader)?, end: optional(reader)?, limit: Wire::decode(reader)? },
            5 => Self::Watch(Wire::decode(reader)?),
            6 => Self::Unwatch(Wire::decode(reader)?),
            other => return Err(Malformed::Tag("an operation", u64::from(other))),
        })
    }
}

impl Wire for Entry {
    fn encode(&self, out: &mut Vec<u8>) {
        put_bytes(out, &self.key);
        self.version.encode(out);
        put_bytes(out, &self.value);
    }
    fn decode(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        Ok(Self { key: blob(reader)?, version: Wire::decode(reader)?, value: blob(reader)? })
    }
}

impl Wire for Answer {
    fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Self::Value { version, value } => {
                out.push(0);
                version.encode(out);
                put_bytes(out, value);
            }
            Self::Written { version } => {
                out.push(1);
                version.encode(out);
            }
            Self::Deleted { version } => {
                out.push(2);
                version.encode(out);
            }
            Self::Entries { entries, next } => {
                out.push(3);
                put_list(out, entries);
                put_optional(out, next.as_ref());
            }
            Self::Watching => out.push(4),
            Self::Unwatched => out.push(5),
            Self::NotFound => out.push(6),
            Self::Mismatch { current } => {
                out.push(7);
                current.encode(out);
            }
            Self::KeyTooLong => out.push(8),
            Self::ValueTooLarge => out.push(9),
            Self::TooManyWatches => out.push(10),
            Self::ReadOnly => out.push(11),
            Self::ResultTooLarge => out.push(12),
            Self::Malformed => out.push(13),
        }
    }
    fn decode(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        Ok(match u8::decode(reader)? {
            0 => Self::Value { version: Wire::decode(reader)?, value: blob(reader)? },
            1 => Self::Written { version: Wire::decode(reader)? },
            2 => Self::Deleted { version: Wire::decode(reader)? },
            3 => Self::Entries {
                entries: reader.list("a scan's entries", MAX_ENTRIES)?,
                next: optional(reader)?,
            },
            4 => Self::Watching,
            5 => Self::Unwatched,
            6 => Self::NotFound,
            7 => Self::Mismatch { current: Wire::decode(reader)? },
            8 => Self::KeyTooLong,
            9 => Self::ValueTooLarge,
            10 => Self::TooManyWatches,
            11 => Self::ReadOnly,
            12 => Self::ResultTooLarge,
            13 => Self::Malformed,
            other => return Err(Malformed::Tag("an answer", u64::from(other))),
        })
    }
}

impl Wire for Change {
    fn encode(&self, out: &mut Vec<u8>) {
        put_bytes(out, &self.key);
        self.deleted.encode(out);
        self.version.encode(out);
    }
    fn decode(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        Ok(Self { key: blob(reader)?, deleted: Wire::decode(reader)?, version: Wire::decode(reader)? })
    }
}
