//! The leaves of the trie: a few entries in one buffer, which is also what is hashed and sent.
//!
//! `1 ‖ count: u16 ‖ entry…`, entries in key order, each `key length: u16 ‖ value length: u16 ‖ key
//! ‖ value`. A value over [`INLINE_VALUE`] bytes is a blob: its length field says [`BLOB`] and in
//! its place stand `length: u32 ‖ digest`; the bytes are kept beside the page, so that rewriting
//! a page never rehashes a large value.

use super::stored::{StoreId, Stored};
use super::{MAX_KEY_BYTES, MAX_VALUE_BYTES};
use bytes::Bytes;
use std::sync::Arc;
use troth_types::{Digest, Hasher};

/// Values up to this many bytes stand in the page.
pub(crate) const INLINE_VALUE: usize = 512;
const BLOB: u16 = u16::MAX;
const BLOB_REFERENCE: usize = 4 + 32;
const PAGE_TAG: u8 = 1;
const HEADER: usize = 3;
/// More entries than any page has: pages split far below this.
pub(crate) const MOST_ENTRIES: u16 = 254;

/// The digest by which a page names a large value.
pub(crate) fn blob_digest(value: &[u8]) -> Digest {
    let mut hasher = Hasher::new("troth/blob/v1");
    hasher.fixed(value);
    hasher.finish()
}

/// A leaf of the trie.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Page {
    bytes: Box<[u8]>,
    /// The large values, in the order of their entries.
    blobs: Vec<Arc<Blob>>,
}

/// A large value, which pages that follow each other share: where one of them is stored it is for all.
#[derive(Debug)]
pub(crate) struct Blob {
    value: Bytes,
    stored: Stored,
}

/// Where it is stored is no part of what it is.
impl PartialEq for Blob {
    fn eq(&self, other: &Self) -> bool {
        self.value == other.value
    }
}

impl Eq for Blob {}

impl Blob {
    /// One that no store has.
    pub(crate) fn new(value: Bytes) -> Arc<Self> {
        Arc::new(Self { value, stored: Stored::default() })
    }

    pub(crate) fn value(&self) -> &Bytes {
        &self.value
    }
}

/// An entry as it stands in a page.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry<'a> {
    pub(crate) key: &'a [u8],
    /// The inline value, or the blob reference.
    value: &'a [u8],
    /// The number of this blob in its page.
    pub(crate) blob: Option<usize>,
    start: usize,
    end: usize,
}

impl Entry<'_> {
    /// The digest of a blob, from its reference.
    pub(crate) fn blob_digest(&self) -> Digest {
        Digest(self.value[4..BLOB_REFERENCE].try_into().expect("a reference holds a digest"))
    }

    /// The length of a blob, from its reference.
    pub(crate) fn blob_length(&self) -> usize {
        u32::from_le_bytes(self.value[..4].try_into().expect("a reference holds a length")) as usize
    }
}

/// The entries of a page's bytes, which were written here or checked by [`Page::check`].
#[derive(Clone, Debug)]
pub(crate) struct Entries<'a> {
    bytes: &'a [u8],
    at: usize,
    blobs: usize,
}

impl<'a> Iterator for Entries<'a> {
    type Item = Entry<'a>;
    #[inline]
    fn next(&mut self) -> Option<Entry<'a>> {
        if self.at == self.bytes.len() {
            return None;
        }
        let start = self.at;
        let key_start = start + 4;
        let key_length = u16::from_le_bytes([self.bytes[start], self.bytes[start + 1]]);
        let value_length = u16::from_le_bytes([self.bytes[start + 2], self.bytes[start + 3]]);
        let value_start = key_start + usize::from(key_length);
        let (length, blob) = if value_length == BLOB {
            self.blobs += 1;
            (BLOB_REFERENCE, Some(self.blobs - 1))
        } else {
            (usize::from(value_length), None)
        };
        self.at = value_start + length;
        Some(Entry {
            key: &self.bytes[key_start..value_start],
            value: &self.bytes[value_start..self.at],
            blob,
            start,
            end: self.at,
        })
    }
}

pub(crate) fn entries(bytes: &[u8]) -> Entries<'_> {
    Entries { bytes, at: HEADER, blobs: 0 }
}

impl Page {
    /// A page without entries: the root of an empty map.
    pub(crate) fn empty() -> Self {
        Self { bytes: Box::new([PAGE_TAG, 0, 0]), blobs: Vec::new() }
    }

    /// What is hashed and sent.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The number of entries.
    pub(crate) fn len(&self) -> usize {
        usize::from(u16::from_le_bytes([self.bytes[1], self.bytes[2]]))
    }

    /// A large value, by its number.
    pub(crate) fn blob(&self, index: usize) -> Option<&Bytes> {
        self.blobs.get(index).map(|blob| &blob.value)
    }

    /// The large values.
    pub(crate) fn blobs(&self) -> impl Iterator<Item = &Bytes> {
        self.blobs.iter().map(|blob| &blob.value)
    }

    /// The large values that a store lacks, each with the digest that names it.
    pub(crate) fn blobs_not_in(&self, store: Option<StoreId>) -> impl Iterator<Item = (Digest, &Bytes)> {
        self.entries().filter_map(move |entry| {
            let blob = &self.blobs[entry.blob?];
            let is_there = store.is_some_and(|store| blob.stored.is_in(store));
            (!is_there).then(|| (entry.blob_digest(), &blob.value))
        })
    }

    /// Says of the large values that a store has them.
    pub(crate) fn put_in(&self, store: StoreId) {
        self.blobs.iter().for_each(|blob| blob.stored.put_in(store));
    }

    /// The entries in key order.
    pub(crate) fn entries(&self) -> Entries<'_> {
        entries(&self.bytes)
    }

    /// An entry of this page as it stands there.
    pub(crate) fn raw(&self, entry: &Entry<'_>) -> &[u8] {
        &self.bytes[entry.start..entry.end]
    }

    /// The value of an entry of this page.
    pub(crate) fn value(&self, entry: &Entry<'_>) -> Bytes {
        match entry.blob {
            Some(index) => self.blobs[index].value.clone(),
            None => Bytes::copy_from_slice(entry.value),
        }
    }

    fn find(&self, key: &[u8]) -> Result<Entry<'_>, (usize, usize)> {
        let mut scan = self.entries();
        loop {
            let (at, blobs) = (scan.at, scan.blobs);
            match scan.next() {
                Some(entry) if entry.key < key => {}
                Some(entry) if entry.key == key => return Ok(entry),
                _ => return Err((at, blobs)),
            }
        }
    }

    /// The value under a key.
    pub(crate) fn get(&self, key: &[u8]) -> Option<Bytes> {
        self.find(key).ok().map(|entry| self.value(&entry))
    }

    /// The large value of a key, as this page shares it with others.
    pub(crate) fn blob_of(&self, key: &[u8]) -> Option<&Arc<Blob>> {
        self.find(key).ok()?.blob.map(|index| &self.blobs[index])
    }

    /// Whether the page says this of the key already.
    pub(crate) fn says(&self, key: &[u8], value: Option<&Bytes>) -> bool {
        match (self.find(key), value) {
            (Err(_), None) => true,
            (Ok(entry), Some(value)) => match entry.blob {
                Some(index) => self.blobs[index].value == *value,
                None => entry.value == &value[..],
            },
            _ => false,
        }
    }

    /// The page with one key written (or removed, without a value).
    pub(crate) fn written(&self, key: &[u8], value: Option<&Bytes>) -> Self {
        let (start, end, blob_at, old_blob) = match self.find(key) {
            Ok(entry) => {
                let before = self.entries().take_while(|other| other.start < entry.start);
                let blobs = before.filter(|other| other.blob.is_some()).count();
                (entry.start, entry.end, blobs, entry.blob.is_some())
            }
            Err((at, blobs)) => (at, at, blobs, false),
        };
        let is_blob = value.is_some_and(|value| value.len() > INLINE_VALUE);
        let mut blobs = self.blobs.clone();
        // A copy: the value may be a slice of a frame or of a transferred piece, which the state would
        // otherwise hold in memory whole.
        let new_blob = value.filter(|_| is_blob).map(|value| Blob::new(Bytes::copy_from_slice(value)));
        blobs.splice(blob_at..blob_at + usize::from(old_blob), new_blob);
        let added =
            value.map_or(0, |value| 4 + key.len() + if is_blob { BLOB_REFERENCE } else { value.len() });
        let mut bytes = Vec::with_capacity(self.bytes.len() - (end - start) + added);
        bytes.extend_from_slice(&self.bytes[..start]);
        if let Some(value) = value {
            put_entry(&mut bytes, key, value);
        }
        bytes.extend_from_slice(&self.bytes[end..]);
        let count = self.len() + usize::from(value.is_some()) - usize::from(end > start);
        set_count(&mut bytes, count);
        Self { bytes: bytes.into_boxed_slice(), blobs }
    }

    /// A page of entries taken from other pages, in key order.
    pub(crate) fn gather<'a>(parts: impl Iterator<Item = (&'a Page, Entry<'a>)> + Clone) -> Self {
        let size = HEADER + parts.clone().map(|(_, entry)| entry.end - entry.start).sum::<usize>();
        let mut bytes = Vec::with_capacity(size);
        bytes.extend_from_slice(&[PAGE_TAG, 0, 0]);
        let mut blobs = Vec::new();
        let mut count = 0;
        for (page, entry) in parts {
            bytes.extend_from_slice(&page.bytes[entry.start..entry.end]);
            blobs.extend(entry.blob.map(|index| page.blobs[index].clone()));
            count += 1;
        }
        set_count(&mut bytes, count);
        Self { bytes: bytes.into_boxed_slice(), blobs }
    }

    /// Whether bytes from outside are a page, in the one form this module writes.
    pub(crate) fn check(bytes: &[u8]) -> bool {
        if bytes.len() < HEADER || bytes[0] != PAGE_TAG {
            return false;
        }
        let mut at = HEADER;
        let mut last: Option<&[u8]> = None;
        let count = u16::from_le_bytes([bytes[1], bytes[2]]);
        if count > MOST_ENTRIES {
            return false;
        }
        for _ in 0..count {
            let Some((key, end)) = entry_at(bytes, at) else { return false };
            if last.is_some_and(|last| last >= key) {
                return false;
            }
            last = Some(key);
            at = end;
        }
        at == bytes.len()
    }

    /// A page from checked bytes and the large values its references name, in order.
    pub(crate) fn from_parts(bytes: impl Into<Box<[u8]>>, blobs: Vec<Arc<Blob>>) -> Self {
        Self { bytes: bytes.into(), blobs }
    }
}

/// The key and the end of the entry that stands at `at` in bytes from outside, where one in the form of this module
/// does.
pub(crate) fn entry_at(bytes: &[u8], at: usize) -> Option<(&[u8], usize)> {
    let lengths = bytes.get(at..at + 4)?;
    let key_length = usize::from(u16::from_le_bytes([lengths[0], lengths[1]]));
    let value_length = u16::from_le_bytes([lengths[2], lengths[3]]);
    let length = if value_length == BLOB { BLOB_REFERENCE } else { usize::from(value_length) };
    let value_start = at + 4 + key_length;
    let key = bytes.get(at + 4..value_start)?;
    let value = bytes.get(value_start..value_start + length)?;
    let in_form = if value_length == BLOB {
        let blob = u32::from_le_bytes([value[0], value[1], value[2], value[3]]) as usize;
        blob > INLINE_VALUE && blob <= MAX_VALUE_BYTES
    } else {
        length <= INLINE_VALUE
    };
    (in_form && key.len() <= MAX_KEY_BYTES).then_some((key, value_start + length))
}

/// The bytes of a page of these entries, whatever they are; nothing where no page has so many.
pub(crate) fn page_of_entries<'a>(entries: impl Iterator<Item = &'a [u8]>) -> Option<Bytes> {
    let mut bytes = vec![PAGE_TAG, 0, 0];
    let mut count = 0;
    for entry in entries {
        bytes.extend_from_slice(entry);
        count += 1;
    }
    if count > usize::from(MOST_ENTRIES) {
        return None;
    }
    set_count(&mut bytes, count);
    Some(Bytes::from(bytes))
}

fn set_count(bytes: &mut [u8], count: usize) {
    let count = u16::try_from(count).expect("a page holds few entries");
    bytes[1..HEADER].copy_from_slice(&count.to_le_bytes());
}

fn put_entry(bytes: &mut Vec<u8>, key: &[u8], value: &Bytes) {
    let key_length = u16::try_from(key.len()).expect("keys are bounded");
    bytes.extend_from_slice(&key_length.to_le_bytes());
    if value.len() > INLINE_VALUE {
        bytes.extend_from_slice(&BLOB.to_le_bytes());
        bytes.extend_from_slice(key);
        let length = u32::try_from(value.len()).expect("values are bounded");
        bytes.extend_from_slice(&length.to_le_bytes());
        bytes.extend_from_slice(&blob_digest(value).0);
    } else {
        let length = u16::try_from(value.len()).expect("inline values are short");
        bytes.extend_from_slice(&length.to_le_bytes());
        bytes.extend_from_slice(key);
        bytes.extend_from_slice(value);
    }
}
