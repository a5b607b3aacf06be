//! What was found and done, and what of it is printed.

use crate::print::{foreign, note};
use std::time::{Duration, Instant};

/// Findings that are printed one by one; more are only counted.
const SHOWN: u64 = 20;
/// How often it is said how far the work is.
const PROGRESS: Duration = Duration::from_secs(5);

/// Counts, and what is said on the way.
#[derive(Debug)]
pub(super) struct Tally {
    /// Nodes of the source that are to be carried, and bytes of their data.
    pub(super) nodes: u64,
    pub(super) bytes: u64,
    /// Nodes of the source that go with a session, and are left out.
    pub(super) ephemerals: u64,
    pub(super) created: u64,
    pub(super) data: u64,
    pub(super) acls: u64,
    pub(super) counters: u64,
    pub(super) removed: u64,
    /// Nodes that are only at the destination, and may be.
    pub(super) kept: u64,
    /// Ephemeral nodes of the destination: somebody works there.
    pub(super) live: u64,
    /// Containers and nodes with a time to live that have gone by themselves at the destination.
    pub(super) gone: u64,
    /// Nodes on both sides that the command line says are containers or have a time to live: nobody tells whether they are.
    pub(super) told: u64,
    /// Entries of access control lists whose digests are not SHA-1: nobody can prove to be them.
    pub(super) unprovable: u64,
    /// What could not be read or written.
    pub(super) problems: u64,
    /// What is not the same on both sides.
    pub(super) differences: u64,
    doing: &'static str,
    began: Instant,
    said: Instant,
}

impl Tally {
    /// Nothing yet; `doing` is said on the way.
    pub(super) fn new(doing: &'static str) -> Self {
        let now = Instant::now();
        Self {
            nodes: 0,
            bytes: 0,
            ephemerals: 0,
            created: 0,
            data: 0,
            acls: 0,
            counters: 0,
            removed: 0,
            kept: 0,
            live: 0,
            gone: 0,
            told: 0,
            unprovable: 0,
            problems: 0,
            differences: 0,
            doing,
            began: now,
            said: now,
        }
    }

    /// Something was not read or written.
    pub(super) fn problem(&mut self, path: &str, what: std::fmt::Arguments<'_>) {
        self.problems += 1;
        if self.problems <= SHOWN {
            note!("  {}: {what}", foreign(path));
        } else if self.problems == SHOWN + 1 {
            note!("  … and more; only counted from here on");
        }
    }

    /// Something is not the same on both sides.
    pub(super) fn difference(&mut self, path: &str, what: &str) {
        self.differences += 1;
        if self.differences <= SHOWN {
            note!("  {}: {what}", foreign(path));
        } else if self.differences == SHOWN + 1 {
            note!("  … and more; only counted from here on");
        }
    }

    /// Says now and then how far it is.
    pub(super) fn progress(&mut self) {
        if self.said.elapsed() < PROGRESS {
            return;
        }
        self.said = Instant::now();
        let seconds = self.began.elapsed().as_secs().max(1);
        note!("{} {} nodes so far, {} a second", self.doing, self.nodes, self.nodes / seconds);
    }

    /// What was written, as a line.
    pub(super) fn written(&self) -> String {
        let mut parts = Vec::new();
        for (count, what) in [
            (self.created, "created"),
            (self.data, "with new data"),
            (self.acls, "with a new access control list"),
            (self.counters, "with the counter of their sequential children raised"),
            (self.removed, "removed"),
        ] {
            if count > 0 {
                parts.push(format!("{count} {what}"));
            }
        }
        if parts.is_empty() { "nothing; all was there".to_owned() } else { parts.join(", ") }
    }
}
