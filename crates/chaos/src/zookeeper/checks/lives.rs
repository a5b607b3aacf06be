//! From when to when sessions and their nodes lived, as far as their own clients know.

use super::changes::exact_events;
use crate::zookeeper::journal::{Ask, Change, Done, Entry, Journal, Lasts};
use std::collections::{BTreeMap, BTreeSet};

/// An ephemeral node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Node {
    /// The transaction that created it.
    pub(super) created: i64,
    /// The last transaction at which it must have been there: its session lived, and nobody had asked to delete it.
    pub(super) until: i64,
    /// Whether its client ever asked to delete it.
    pub(super) is_to_go: bool,
    /// The transaction that deleted it, as its client asked.
    pub(super) deleted: Option<i64>,
}

/// A session.
#[derive(Debug)]
pub(super) struct Life<'a> {
    pub(super) journal: &'a Journal,
    /// The ephemeral nodes that its client knows to have created.
    pub(super) nodes: BTreeMap<String, Node>,
    /// The last transaction at which it lived for sure.
    pub(super) until: i64,
    /// Transactions that ended it: one, if all is well.
    pub(super) ends: BTreeSet<i64>,
    /// When its client knew that it was over.
    pub(super) over_at: Option<u64>,
    /// Whether its client ever asked to close it: then it may end at any time.
    pub(super) is_to_end: bool,
    /// The last time at which the group has surely heard of it: it does not end before its time-out after that.
    pub(super) sign: u64,
}

impl<'a> Life<'a> {
    /// Of this journal.
    fn of(journal: &'a Journal) -> Self {
        let mut life = Self {
            journal,
            nodes: BTreeMap::new(),
            until: 0,
            ends: BTreeSet::new(),
            over_at: None,
            is_to_end: journal.has(&Entry::Sent(Ask::Close)),
            sign: 0,
        };
        let expired = journal.lines.iter().find(|line| line.entry == Entry::Expired);
        life.over_at = expired.map(|line| line.at);
        // Where deletions were asked for first, and what had been shown then.
        let mut shown = 0;
        let mut asked: BTreeMap<&str, i64> = BTreeMap::new();
        for line in &journal.lines {
            match &line.entry {
                Entry::Sent(Ask::Delete { path }) => {
                    asked.entry(path).or_insert(shown);
                }
                Entry::Reply { zxid, .. } => shown = shown.max(*zxid),
                _ => {}
            }
        }
        for heard in journal.replies() {
            // Of pings and reads a gateway may tell the group later, or never.
            if heard.ask.is_ordered() {
                life.sign = life.sign.max(heard.called);
            }
            match (heard.ask, heard.outcome) {
                (Ask::Close, Ok(_)) => {
                    life.ends.insert(heard.zxid);
                    life.over_at = Some(heard.at);
                    continue;
                }
                (Ask::Create { lasts, .. }, Ok(Done::Created { path, stat })) if *lasts != Lasts::Always => {
                    let until = asked.get(path.as_str()).copied();
                    let (is_to_go, until) = (until.is_some(), until.unwrap_or(i64::MAX));
                    let node = Node { created: stat.created, until, is_to_go, deleted: None };
                    life.nodes.insert(path.clone(), node);
                }
                (Ask::Delete { path }, Ok(_)) => {
                    if let Some(node) = life.nodes.get_mut(path) {
                        node.deleted = Some(heard.zxid);
                    }
                }
                _ => {}
            }
            life.until = life.until.max(heard.zxid);
        }
        for node in life.nodes.values_mut() {
            node.until = node.until.min(life.until);
        }
        life
    }

    /// The transaction that ended it.
    pub(super) fn end(&self) -> Option<i64> {
        self.ends.first().copied()
    }
}

/// All sessions, with the ends that others saw.
pub(super) fn lives(journals: &[Journal]) -> Vec<Life<'_>> {
    let mut lives: Vec<Life<'_>> = journals.iter().map(Life::of).collect();
    let mut owners: BTreeMap<String, usize> = BTreeMap::new();
    for (number, life) in lives.iter().enumerate() {
        // What no client deletes goes with its session.
        let staying = life.nodes.iter().filter(|(_, node)| !node.is_to_go);
        owners.extend(staying.map(|(path, _)| (path.clone(), number)));
    }
    for journal in journals {
        for (_, zxid, change, path) in exact_events(journal) {
            if change == Change::Deleted
                && let Some(owner) = owners.get(path)
            {
                lives[*owner].ends.insert(zxid);
            }
        }
    }
    lives
}

/// Nodes of sessions whose clients are gone, as far as the last looks at nodes show: with the path and the session.
pub(crate) fn left_behind(seen: &[(String, i64)], journals: &[Journal]) -> Vec<String> {
    let over: BTreeMap<i64, &Journal> = journals.iter().map(|journal| (journal.session, journal)).collect();
    let of = |session: i64| match over.get(&session) {
        Some(journal) if journal.closed().is_some() => "was closed",
        Some(journal) if journal.has(&Entry::Expired) => "expired",
        Some(_) => "was abandoned",
        None => "nobody knows",
    };
    let left = seen.iter().filter(|(_, session)| *session != 0);
    left.map(|(path, session)| format!("{path} outlived session {session:#x}, which {}", of(*session)))
        .collect()
}
