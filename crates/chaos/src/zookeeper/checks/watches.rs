//! Every watched change is told once: on the connection, or as an answer to the client's own `setWatches` on the next one,
//! and before any reply that reflects it.

use super::changes::Changes;
use crate::zookeeper::journal::{Ask, Aspect, Change, Entry, Journal, Watches, watch_set};
use std::collections::{BTreeMap, BTreeSet};

/// What was told.
#[derive(Debug, Default)]
pub(crate) struct Told {
    /// What does not hold.
    pub(crate) wrong: Vec<String>,
    /// Events on connections.
    pub(crate) events: usize,
    /// Of these, those that answer `setWatches`.
    pub(crate) shown: usize,
}

/// Looks at the events of all sessions.
pub(crate) fn watches(journals: &[Journal]) -> Told {
    let changes = Changes::of(journals);
    let mut told = Told::default();
    for journal in journals {
        Replay::of(journal, &changes).run(&mut told);
    }
    told
}

struct Replay<'a> {
    journal: &'a Journal,
    changes: &'a Changes,
    /// What is watched, and the first transaction after that of which it must be told.
    set: BTreeMap<(Aspect, String), Option<i64>>,
    /// Events of this connection.
    heard: BTreeSet<(Change, &'a str, i64)>,
    /// Where the `setWatches` stands that has no answer yet.
    rewatching: Option<usize>,
}

impl<'a> Replay<'a> {
    fn of(journal: &'a Journal, changes: &'a Changes) -> Self {
        Self { journal, changes, set: BTreeMap::new(), heard: BTreeSet::new(), rewatching: None }
    }

    fn run(mut self, told: &mut Told) {
        for (place, line) in self.journal.lines.iter().enumerate() {
            let wrong = match &line.entry {
                Entry::Connected { .. } => {
                    self.heard.clear();
                    None
                }
                Entry::Lost => {
                    self.rewatching = None;
                    None
                }
                Entry::Sent(Ask::Rewatch { data, exists, children, .. }) => {
                    self.rewatching = Some(place);
                    self.lists([data, exists, children])
                }
                Entry::Fired { zxid, change, path } => {
                    told.events += 1;
                    told.shown += usize::from(self.rewatching.is_some());
                    self.fired(*zxid, *change, path)
                }
                Entry::Reply { to, zxid, .. } => {
                    if self.rewatching == Some(*to) {
                        self.rewatching = None;
                    }
                    // The watches of a session are over with it.
                    let closes = matches!(self.journal.asked(*to), Some(Ask::Close));
                    let missed = if closes { None } else { self.missed(*zxid) };
                    self.sets(place, *zxid);
                    missed
                }
                _ => None,
            };
            told.wrong.extend(wrong.map(|wrong| format!("session {:#x}: {wrong}", self.journal.session)));
        }
    }

    /// Our own client must say what it watches.
    fn lists(&self, lists: [&Vec<String>; 3]) -> Option<String> {
        let mut said = Watches::new();
        for (aspect, paths) in [Aspect::Data, Aspect::Coming, Aspect::Children].into_iter().zip(lists) {
            said.extend(paths.iter().map(|path| (aspect, path.clone())));
        }
        let set: Watches = self.set.keys().cloned().collect();
        (said != set).then(|| format!("the client says that it watches {said:?}, and it watches {set:?}"))
    }

    fn fired(&mut self, zxid: i64, change: Change, path: &'a str) -> Option<String> {
        let again = !self.heard.insert((change, path, zxid));
        let before = self.set.len();
        self.set.retain(|(aspect, watched), _| watched != path || !aspect.is_told_of(change));
        if again {
            return Some(format!("was told twice on one connection of {change:?} of {path} by {zxid:#x}"));
        }
        (self.set.len() == before).then(|| {
            format!(
                "was told of {change:?} of {path} by {zxid:#x}, which it did not watch, or was told of before"
            )
        })
    }

    /// A change that a reply reflects and that was not told.
    fn missed(&mut self, zxid: i64) -> Option<String> {
        let due = |deadline: &Option<i64>| deadline.is_some_and(|deadline| deadline <= zxid);
        let missed = self.set.iter().find(|(_, deadline)| due(deadline))?;
        let wrong = format!(
            "watches {} ({:?}), which transaction {:#x} changed, and got a reply that reflects {zxid:#x} without an event",
            missed.0.1,
            missed.0.0,
            missed.1.unwrap_or(0)
        );
        // Said once; the client goes on watching it.
        self.set.values_mut().filter(|deadline| due(deadline)).for_each(|deadline| *deadline = None);
        Some(wrong)
    }

    fn sets(&mut self, place: usize, zxid: i64) {
        let Entry::Reply { to, outcome, .. } = &self.journal.lines[place].entry else { return };
        let Some(ask) = self.journal.asked(*to) else { return };
        if let Some((aspect, path)) = watch_set(ask, outcome) {
            let deadline = self.changes.next(aspect, &path, zxid);
            self.set.insert((aspect, path), deadline);
        }
    }
}
