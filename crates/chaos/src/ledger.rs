//! What was acknowledged, beyond the order in which it was: every acknowledged write of a key that one strand
//! alone writes is there in the end, no two writes were acknowledged as the same one, and the store counted
//! as many writes as were acknowledged and no more than were asked for.

use std::collections::{BTreeMap, BTreeSet};

/// Per key, the newest version and its value.
pub(crate) type Values = BTreeMap<String, (u64, String)>;

/// The acknowledged writes.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    asked: u64,
    versions: BTreeSet<u64>,
    alone: Values,
    /// Acknowledged writes that are gone, in words.
    lost: Vec<String>,
    /// What makes no sense, in words.
    strange: Vec<String>,
}

impl Ledger {
    /// An operation is about to be asked for.
    pub(crate) fn asked(&mut self, writes: bool) {
        self.asked += u64::from(writes);
    }

    /// A write was acknowledged as this one of all: a version is the store's count of writes.
    pub(crate) fn wrote(&mut self, version: u64) {
        if !self.versions.insert(version) {
            self.strange.push(format!("two writes were acknowledged as write {version} of the store"));
        }
    }

    /// A write of a key that nobody else writes was acknowledged.
    pub(crate) fn alone(&mut self, key: &str, version: u64, value: String) {
        self.alone.insert(key.to_owned(), (version, value));
    }

    /// Something made no sense.
    pub(crate) fn strange(&mut self, what: String) {
        self.strange.push(what);
    }

    /// Compares with what the store has in the end. A later write without an answer may have been done.
    pub(crate) fn compare(&mut self, found: &Values) {
        for (key, (version, value)) in &self.alone {
            let kept = found
                .get(key)
                .is_some_and(|(found, shown)| found > version || (found == version && shown == value));
            if !kept {
                self.lost.push(format!(
                    "{key}: '{value}' was acknowledged as version {version}, and in the end there is {:?}",
                    found.get(key)
                ));
            }
        }
        let counted = self.versions.last().copied().unwrap_or(0);
        if counted > self.asked {
            self.strange
                .push(format!("the store counted {counted} writes, and {} were asked for", self.asked));
        }
        if counted < self.versions.len() as u64 {
            self.strange.push(format!(
                "the store counted {counted} writes, and {} were acknowledged",
                self.versions.len()
            ));
        }
    }

    /// Acknowledged writes that are gone.
    pub(crate) fn lost(&self) -> &[String] {
        &self.lost
    }

    /// What makes no sense.
    pub(crate) fn strangeness(&self) -> &[String] {
        &self.strange
    }

    /// How many writes were acknowledged.
    pub(crate) fn acknowledged(&self) -> usize {
        self.versions.len()
    }

    /// How many keys were compared in the end, each with an acknowledged write of its own.
    pub(crate) fn compared(&self) -> usize {
        self.alone.len()
    }
}
