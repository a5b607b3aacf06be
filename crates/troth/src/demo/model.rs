//! What the store must hold, known from the answers alone.

use crate::failure::{Failure, NO};
use bytes::Bytes;
use std::collections::{BTreeMap, BTreeSet};

/// The model: keys with the version and value that the service confirmed.
#[derive(Default)]
pub(crate) struct Model {
    entries: BTreeMap<String, (u64, Bytes)>,
    versions: BTreeSet<u64>,
    checked: u64,
}

impl Model {
    /// Takes in a confirmed write. A version is given to one write only, and later writes of a key
    /// have higher ones.
    pub(crate) fn wrote(&mut self, key: &str, version: u64, value: Bytes) -> Result<(), Failure> {
        self.checked += 1;
        if !self.versions.insert(version) {
            return Err(wrong(format!("version {version} was given to two writes")));
        }
        match self.entries.insert(key.to_owned(), (version, value)) {
            Some((earlier, _)) if earlier >= version => {
                Err(wrong(format!("{key} went from version {earlier} back to {version}")))
            }
            _ => Ok(()),
        }
    }

    /// Holds a read against the model.
    pub(crate) fn read(&mut self, key: &str, answer: Option<&(u64, Bytes)>) -> Result<(), Failure> {
        self.checked += 1;
        if self.entries.get(key) == answer {
            return Ok(());
        }
        Err(wrong(format!("{key} reads as {answer:?} and is {:?}", self.entries.get(key))))
    }

    /// Holds a whole scan against the model.
    pub(crate) fn scanned(&mut self, entries: &BTreeMap<String, (u64, Bytes)>) -> Result<(), Failure> {
        self.checked += entries.len() as u64;
        for (key, held) in &self.entries {
            if entries.get(key) != Some(held) {
                return Err(wrong(format!(
                    "the scan has {:?} for {key}, which is {held:?}",
                    entries.get(key)
                )));
            }
        }
        match entries.keys().find(|key| !self.entries.contains_key(*key)) {
            Some(key) => Err(wrong(format!("the scan has {key}, which nobody wrote"))),
            None => Ok(()),
        }
    }

    /// Counts an answer that was held against something else.
    pub(crate) fn check(&mut self, right: bool, what: impl FnOnce() -> String) -> Result<(), Failure> {
        self.checked += 1;
        if right { Ok(()) } else { Err(wrong(what())) }
    }

    /// A key's version and value.
    pub(crate) fn get(&self, key: &str) -> Option<&(u64, Bytes)> {
        self.entries.get(key)
    }

    /// All keys.
    pub(crate) fn keys(&self) -> Vec<String> {
        self.entries.keys().cloned().collect()
    }

    /// How many answers were checked.
    pub(crate) fn checked(&self) -> u64 {
        self.checked
    }
}

/// An answer that is not right.
pub(crate) fn wrong(what: String) -> Failure {
    Failure::new(NO, format!("WRONG: {what}"))
}
