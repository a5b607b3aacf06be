//! At no position of the order do two sessions own a lock: a session owns it from where its node is the lowest until that
//! node is gone.

use super::lives::{Life, lives};
use crate::zookeeper::journal::{Ask, Done, Entry, Journal, child};
use crate::zookeeper::layout;
use std::collections::BTreeMap;
use troth_zookeeper::Code;

/// From when to when a session owned a lock for sure, both ends included.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Ownership {
    /// Which lock.
    pub(crate) lock: String,
    pub(crate) session: i64,
    /// The session's journal.
    pub(crate) journal: usize,
    pub(crate) from: i64,
    pub(crate) until: i64,
}

/// All ownerships, by lock and in order.
pub(crate) fn owned(journals: &[Journal]) -> Vec<Ownership> {
    let mut all: Vec<Ownership> = lives(journals).iter().flat_map(of_session).collect();
    all.sort_by(|one, other| (&one.lock, one.from).cmp(&(&other.lock, other.from)));
    all
}

fn of_session(life: &Life<'_>) -> Vec<Ownership> {
    let journal = life.journal;
    // By lock and node, the first position at which the node was the lowest.
    let mut from: BTreeMap<(&str, &str), i64> = BTreeMap::new();
    for heard in journal.replies() {
        if let (Ask::Children { path, .. }, Ok(Done::Children { names, .. })) = (heard.ask, heard.outcome)
            && layout::is_lock(path)
            && let Some(first) = layout::lowest(names)
            && layout::journal_of(first) == Some(journal.number)
        {
            from.entry((path, first)).or_insert(heard.zxid);
        }
    }
    let owned = from.into_iter().map(|((lock, name), from)| Ownership {
        lock: lock.to_owned(),
        session: journal.session,
        journal: journal.number,
        from,
        until: until(life, &child(lock, name)),
    });
    owned.collect()
}

/// The last position at which a node was there for sure.
fn until(life: &Life<'_>, path: &str) -> i64 {
    let (mut shown, mut asked, mut deleted) = (0, None, None);
    for line in &life.journal.lines {
        match &line.entry {
            Entry::Sent(Ask::Delete { path: of }) if of == path => {
                asked.get_or_insert(shown);
            }
            Entry::Reply { to, zxid, outcome } => {
                match life.journal.asked(*to) {
                    Some(Ask::Delete { path: of }) if of == path && outcome.is_ok() => deleted = Some(*zxid),
                    Some(Ask::Close) => continue,
                    _ => {}
                }
                shown = shown.max(*zxid);
            }
            _ => {}
        }
    }
    let with_session = life.end().filter(|_| asked.is_none());
    match deleted.or(with_session) {
        Some(gone) => gone - 1,
        None => asked.unwrap_or(shown),
    }
}

/// Locks that two sessions owned at once, and writes below a lock by whom it did not protect.
pub(crate) fn locks(journals: &[Journal]) -> Vec<String> {
    let owned = owned(journals);
    let mut wrong = Vec::new();
    let mut before: Option<&Ownership> = None;
    for next in &owned {
        match before.filter(|before| before.lock == next.lock && before.until >= next.from) {
            Some(before) => wrong.push(format!(
                "{} was owned by session {:#x} from {:#x} to {:#x}, and by session {:#x} from {:#x} to {:#x}",
                next.lock, before.session, before.from, before.until, next.session, next.from, next.until
            )),
            None => before = Some(next),
        }
    }
    for journal in journals {
        wrong.extend(guards(journal, &owned));
    }
    wrong
}

/// What a lock protects is written by its owner alone, who thus always finds the version that it left.
fn guards(journal: &Journal, owned: &[Ownership]) -> Vec<String> {
    let mut wrong = Vec::new();
    for heard in journal.replies() {
        let Ask::Set { path, .. } = heard.ask else { continue };
        let Some(lock) = layout::lock_of(path) else { continue };
        match heard.outcome {
            Ok(Done::Stat(stat)) => {
                let own = owned.iter().filter(|own| own.journal == journal.number && own.lock == lock);
                if !own.into_iter().any(|own| (own.from..=own.until).contains(&stat.modified)) {
                    wrong.push(format!(
                        "session {:#x} wrote {path} at {:#x}, where it did not own {lock}",
                        journal.session, stat.modified
                    ));
                }
            }
            Err(code) if *code == Code::BadVersion.number() => wrong.push(format!(
                "session {:#x} owned {lock}, and at {:#x} somebody else had written {path}",
                journal.session, heard.zxid
            )),
            _ => {}
        }
    }
    wrong
}
