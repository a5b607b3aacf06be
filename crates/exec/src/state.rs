//! The application's part of the map.

use crate::MerkleMap;
use bytes::Bytes;
use core::cell::RefCell;

/// First byte of the keys that belong to the client table and the outboxes.
pub(crate) const SYSTEM: u8 = 0;
/// First byte of the application's keys.
pub(crate) const APPLICATION: u8 = 1;

/// The application's keys, for reading.
#[derive(Debug)]
pub struct StateView<'a> {
    map: &'a MerkleMap,
    scratch: RefCell<Vec<u8>>,
}

impl<'a> StateView<'a> {
    /// The application's part of `map`.
    #[must_use]
    pub fn new(map: &'a MerkleMap) -> Self {
        Self { map, scratch: RefCell::new(Vec::new()) }
    }

    /// The value under a key.
    #[must_use]
    pub fn get(&self, key: &[u8]) -> Option<Bytes> {
        let mut scratch = self.scratch.borrow_mut();
        self.map.get(inner_key(&mut scratch, key))
    }

    /// Whether there is a value under a key.
    #[must_use]
    pub fn contains(&self, key: &[u8]) -> bool {
        self.get(key).is_some()
    }

    /// The keys from `from` on, in order, with their values.
    ///
    /// # Panics
    /// If the application did not ask for an ordered index ([`crate::Application::SCANS`]).
    pub fn scan(&self, from: &[u8]) -> impl Iterator<Item = (&'a [u8], Bytes)> + use<'a> {
        self.map.scan(inner_key(&mut self.scratch.borrow_mut(), from)).map(|(key, value)| (&key[1..], value))
    }

    /// The same without the values, each of which costs as much as [`StateView::get`].
    ///
    /// # Panics
    /// If the application did not ask for an ordered index ([`crate::Application::SCANS`]).
    pub fn keys(&self, from: &[u8]) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        self.map.keys(inner_key(&mut self.scratch.borrow_mut(), from)).map(|key| &key[1..])
    }
}

/// The application's keys, for reading and writing.
#[derive(Debug)]
pub struct State<'a> {
    map: &'a mut MerkleMap,
    scratch: Vec<u8>,
}

impl<'a> State<'a> {
    /// The application's part of `map`.
    #[must_use]
    pub fn new(map: &'a mut MerkleMap) -> Self {
        Self { map, scratch: Vec::new() }
    }

    /// The same keys, for reading.
    #[must_use]
    pub fn view(&self) -> StateView<'_> {
        StateView::new(self.map)
    }

    /// The value under a key.
    #[must_use]
    pub fn get(&mut self, key: &[u8]) -> Option<Bytes> {
        self.map.get(inner_key(&mut self.scratch, key))
    }

    /// Puts a value under a key.
    ///
    /// # Panics
    /// If key or value are over [`crate::MAX_KEY_BYTES`] or [`crate::MAX_VALUE_BYTES`]: services
    /// bound what they store.
    pub fn insert(&mut self, key: &[u8], value: Bytes) {
        self.map.insert(inner_key(&mut self.scratch, key), value);
    }

    /// Removes the value under a key, if there is one.
    pub fn remove(&mut self, key: &[u8]) {
        self.map.remove(inner_key(&mut self.scratch, key));
    }
}

fn inner_key<'s>(scratch: &'s mut Vec<u8>, key: &[u8]) -> &'s [u8] {
    scratch.clear();
    scratch.push(APPLICATION);
    scratch.extend_from_slice(key);
    scratch
}
