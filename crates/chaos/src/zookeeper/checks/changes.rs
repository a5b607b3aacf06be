//! What is known to have happened to nodes, and when.

use crate::zookeeper::journal::{Ask, Aspect, Change, Done, Entry, Journal, Stat, parent};
use std::collections::{BTreeMap, BTreeSet};

/// Changes by path and transaction.
#[derive(Debug, Default)]
pub(super) struct Changes(BTreeMap<String, BTreeSet<(i64, Change)>>);

impl Changes {
    /// All that any client was told of.
    pub(super) fn of(journals: &[Journal]) -> Self {
        let mut changes = Self::default();
        for journal in journals {
            for heard in journal.replies() {
                if let Ok(done) = heard.outcome {
                    changes.reply(heard.ask, done, heard.zxid);
                }
            }
            for (_, zxid, change, path) in exact_events(journal) {
                changes.add(path, zxid, change);
            }
        }
        changes
    }

    fn add(&mut self, path: &str, zxid: i64, change: Change) {
        self.0.entry(path.to_owned()).or_default().insert((zxid, change));
    }

    fn reply(&mut self, ask: &Ask, done: &Done, zxid: i64) {
        match (ask, done) {
            (_, Done::Created { path, stat }) => self.is_there(path, *stat),
            (Ask::Delete { path }, _) => {
                self.add(path, zxid, Change::Deleted);
                self.add(parent(path), zxid, Change::Children);
            }
            (
                Ask::Set { path, .. }
                | Ask::Get { path, .. }
                | Ask::Exists { path, .. }
                | Ask::Children { path, .. },
                Done::Stat(stat) | Done::Value { stat, .. } | Done::Children { stat, .. },
            ) => self.is_there(path, *stat),
            _ => {}
        }
    }

    fn is_there(&mut self, path: &str, stat: Stat) {
        // What was there from the beginning says nothing of transactions.
        if stat.created > 0 {
            self.add(path, stat.created, Change::Created);
            self.add(parent(path), stat.created, Change::Children);
        }
        if stat.modified > stat.created {
            self.add(path, stat.modified, Change::Data);
        }
        if stat.children > stat.created {
            self.add(path, stat.children, Change::Children);
        }
    }

    /// The first change after a transaction of which a watch is told.
    pub(super) fn next(&self, aspect: Aspect, path: &str, after: i64) -> Option<i64> {
        let later = self.0.get(path)?.range((after + 1, Change::Created)..);
        later.filter(|(_, change)| aspect.is_told_of(*change)).map(|(zxid, _)| *zxid).next()
    }
}

/// Events with the transaction that brought them about: when they came, and what they say. Those that `setWatches` brought
/// have none of their own.
pub(super) fn exact_events(journal: &Journal) -> impl Iterator<Item = (u64, i64, Change, &str)> {
    let mut rewatching = None;
    journal.lines.iter().enumerate().filter_map(move |(place, line)| {
        match &line.entry {
            Entry::Sent(Ask::Rewatch { .. }) => rewatching = Some(place),
            Entry::Lost => rewatching = None,
            Entry::Reply { to, .. } if rewatching == Some(*to) => rewatching = None,
            Entry::Fired { zxid, change, path } if rewatching.is_none() && *zxid > 0 => {
                return Some((line.at, *zxid, *change, path.as_str()));
            }
            _ => {}
        }
        None
    })
}
