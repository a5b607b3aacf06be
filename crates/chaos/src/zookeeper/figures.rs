//! What a run was made of. One in which nothing happened shows nothing.

use super::checks;
use super::faults::Kind;
use super::journal::{Entry, Journal, Line};
use crate::history::{Outcome, Record};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// Counts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Figures {
    pub(crate) sessions: usize,
    pub(crate) requests: usize,
    /// Requests without an answer.
    pub(crate) unknown: usize,
    /// Times that a session owned a lock.
    pub(crate) owned: usize,
    pub(crate) events: usize,
    /// Events that answer `setWatches`.
    pub(crate) shown: usize,
    /// Connections of sessions that had one before.
    pub(crate) reconnections: usize,
    /// Of these, to another gateway.
    pub(crate) moved: usize,
    pub(crate) closed: usize,
    /// Sessions whose clients were told that they had expired.
    pub(crate) expired: usize,
    pub(crate) abandoned: usize,
    /// Acknowledged writes of registers.
    pub(crate) writes: usize,
    /// Writes of registers that found another version.
    pub(crate) refused: usize,
    pub(crate) faults: BTreeMap<Kind, u32>,
}

impl Figures {
    /// Of these journals.
    pub(crate) fn of(journals: &[Journal], records: &[Record], faults: BTreeMap<Kind, u32>) -> Self {
        let told = checks::watches(journals);
        let mut figures = Self {
            sessions: journals.len(),
            owned: checks::owned(journals).len(),
            events: told.events,
            shown: told.shown,
            writes: records.iter().filter(|record| record.wrote()).count(),
            refused: records.iter().filter(|record| record.outcome == Outcome::Other).count(),
            faults,
            ..Self::default()
        };
        for journal in journals {
            figures.unknown += journal.unanswered().count();
            figures.closed += usize::from(journal.closed().is_some());
            figures.expired += usize::from(journal.has(&Entry::Expired));
            figures.abandoned += usize::from(journal.has(&Entry::Abandoned));
            let through: Vec<usize> = journal.lines.iter().filter_map(gateway).collect();
            figures.reconnections += through.len().saturating_sub(1);
            figures.moved += through.windows(2).filter(|pair| pair[0] != pair[1]).count();
            let sent = journal.lines.iter().filter(|line| matches!(line.entry, Entry::Sent(_)));
            figures.requests += sent.count();
        }
        figures
    }

    /// What happened too seldom in so many minutes, with these kinds of faults.
    pub(crate) fn too_few(&self, minutes: u64, kinds: &[Kind]) -> Vec<String> {
        let minutes = usize::try_from(minutes).unwrap_or(usize::MAX);
        // Per minute: far below what a slow machine does, and far above what shows nothing.
        let rows = [
            ("locks that were owned", self.owned, 60),
            ("events", self.events, 300),
            ("events that answered setWatches", self.shown, 5),
            ("reconnections", self.reconnections, 60),
            ("sessions that went on through another gateway", self.moved, 30),
            ("sessions that were closed", self.closed, 10),
            ("sessions that expired as their clients were told", self.expired, 3),
            ("sessions that were abandoned", self.abandoned, 10),
            ("writes of registers", self.writes, 300),
            ("writes of registers that found another version", self.refused, 3),
        ];
        let few = rows.into_iter().filter(|(_, count, least)| *count < least * minutes);
        let few = few.map(|(what, count, least)| {
            format!("only {count} {what}, at least {} are meant", least * minutes)
        });
        let none = kinds.iter().filter(|kind| !self.faults.contains_key(kind));
        few.chain(none.map(|kind| format!("{} never happened", kind.name()))).collect()
    }

    /// As one object.
    pub(crate) fn json(&self) -> Value {
        let faults: Map<String, Value> =
            self.faults.iter().map(|(kind, count)| (kind.name().to_owned(), (*count).into())).collect();
        json!({
            "sessions": self.sessions,
            "requests": self.requests,
            "unknown": self.unknown,
            "locks_owned": self.owned,
            "events": self.events,
            "shown_by_set_watches": self.shown,
            "reconnections": self.reconnections,
            "moved_to_another_gateway": self.moved,
            "closed": self.closed,
            "expired": self.expired,
            "abandoned": self.abandoned,
            "register_writes": self.writes,
            "register_writes_refused": self.refused,
            "faults": faults,
        })
    }
}

fn gateway(line: &Line) -> Option<usize> {
    match line.entry {
        Entry::Connected { gateway } => Some(gateway),
        _ => None,
    }
}
