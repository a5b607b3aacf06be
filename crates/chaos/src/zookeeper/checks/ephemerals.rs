//! An ephemeral node is there as long as its session lives, and no longer.

use super::changes::exact_events;
use super::lives::{Life, Node, lives};
use crate::zookeeper::journal::{Ask, Change, Done, Heard, Journal, child};
use std::collections::{BTreeMap, BTreeSet};
use troth_zookeeper::Code;

/// Nanoseconds by which a session may end early as its client's clock has it.
const SLACK: u64 = 1_000_000_000;

/// Nodes that outlived or predeceased their sessions, and sessions that ended twice or too early.
pub(crate) fn ephemerals(journals: &[Journal]) -> Vec<String> {
    let lives = lives(journals);
    let mut wrong: Vec<String> = lives.iter().flat_map(of_session).collect();
    let nodes = Nodes::of(&lives);
    for journal in journals {
        for heard in journal.replies() {
            wrong.extend(nodes.reply(&heard));
        }
        for (at, zxid, change, path) in exact_events(journal) {
            if change == Change::Deleted {
                wrong.extend(nodes.absent(path, zxid, at));
            }
        }
    }
    wrong.extend(nodes.lists(journals));
    wrong
}

fn of_session(life: &Life<'_>) -> Vec<String> {
    let (mut wrong, session) = (Vec::new(), life.journal.session);
    if life.ends.len() > 1 {
        wrong.push(format!("session {session:#x} ended more than once, at {:x?}", life.ends));
    }
    if let Some(end) = life.end()
        && end <= life.until
    {
        wrong.push(format!("session {session:#x} ended at {end:#x}, and was answered at {:#x}", life.until));
    }
    if let Some(at) = life.over_at
        && !life.is_to_end
        && is_early(life, at)
    {
        wrong.push(format!(
            "session {session:#x} was over {} ms after a sign of life, and its time-out is {} ms",
            (at - life.sign) / 1_000_000,
            life.journal.timeout
        ));
    }
    wrong
}

/// Whether a session was over at this time though its time was not.
fn is_early(life: &Life<'_>, at: u64) -> bool {
    at.saturating_add(SLACK) < life.sign.saturating_add(u64::from(life.journal.timeout) * 1_000_000)
}

/// What a directory held at some position.
struct List<'a> {
    zxid: i64,
    /// When that was known.
    at: u64,
    names: BTreeSet<&'a str>,
}

/// All nodes that are known to have been created, by path, with their sessions.
struct Nodes<'a> {
    lives: &'a [Life<'a>],
    owners: BTreeMap<&'a str, usize>,
    sessions: BTreeMap<i64, usize>,
    /// When each was deleted, as anybody was told.
    gone: BTreeMap<&'a str, i64>,
}

impl<'a> Nodes<'a> {
    fn of(lives: &'a [Life<'a>]) -> Self {
        let (mut owners, mut sessions, mut gone) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        for (number, life) in lives.iter().enumerate() {
            sessions.insert(life.journal.session, number);
            for (path, node) in &life.nodes {
                owners.insert(path.as_str(), number);
                if let Some(zxid) = node.deleted.or(life.end().filter(|_| !node.is_to_go)) {
                    gone.insert(path.as_str(), zxid);
                }
            }
        }
        Self { lives, owners, sessions, gone }
    }

    fn reply(&self, heard: &Heard<'_>) -> Vec<String> {
        match (heard.ask, heard.outcome) {
            (
                Ask::Get { path, .. } | Ask::Exists { path, .. },
                Ok(Done::Value { stat, .. } | Done::Stat(stat)),
            ) => {
                let mut wrong = self.present(path, heard.zxid);
                if stat.owner != 0 {
                    wrong.extend(self.owned(path, stat.owner, heard));
                }
                wrong
            }
            (Ask::Get { path, .. } | Ask::Exists { path, .. }, Err(code))
                if *code == Code::NoNode.number() =>
            {
                self.absent(path, heard.zxid, heard.at)
            }
            (Ask::Children { path, .. }, Ok(Done::Children { names, .. })) => {
                let paths = names.iter().map(|name| child(path, name));
                let mut wrong = Vec::new();
                for path in paths {
                    wrong.extend(self.present(&path, heard.zxid));
                    if let Some(owner) = self.owners.get(path.as_str()) {
                        wrong.extend(self.owned(&path, self.lives[*owner].journal.session, heard));
                    }
                }
                wrong
            }
            _ => Vec::new(),
        }
    }

    /// A node is there.
    fn present(&self, path: &str, zxid: i64) -> Vec<String> {
        let gone = self.gone.get(path).filter(|gone| **gone <= zxid);
        gone.map(|gone| format!("{path} was gone at {gone:#x}, and is there at {zxid:#x}"))
            .into_iter()
            .collect()
    }

    /// A node of this session is there.
    fn owned(&self, path: &str, session: i64, heard: &Heard<'_>) -> Vec<String> {
        let Some(life) = self.sessions.get(&session).map(|life| &self.lives[*life]) else {
            return Vec::new();
        };
        let by_order = life.end().is_some_and(|end| end <= heard.zxid);
        // Reads are linearizable: what was over when it was asked is gone.
        let by_time = life.over_at.is_some_and(|over| over < heard.called);
        if !by_order && !by_time {
            return Vec::new();
        }
        vec![format!("{path} outlived its session {session:#x}: it is there at {:#x}", heard.zxid)]
    }

    /// A node is not there.
    fn absent(&self, path: &str, zxid: i64, at: u64) -> Vec<String> {
        let Some(owner) = self.owners.get(path) else { return Vec::new() };
        let life = &self.lives[*owner];
        let node = &life.nodes[path];
        let (session, mut wrong) = (life.journal.session, Vec::new());
        if (node.created..=node.until).contains(&zxid) {
            wrong.push(format!(
                "{path} predeceased its session {session:#x}: it was gone at {zxid:#x}, and the session lived at {:#x}",
                node.until
            ));
        }
        if !node.is_to_go && !life.is_to_end && zxid >= node.created && is_early(life, at) {
            wrong.push(format!(
                "{path} was gone at {zxid:#x}, before the time of its session {session:#x} was over"
            ));
        }
        wrong
    }

    /// Nodes that are missing among their directory's children.
    fn lists(&self, journals: &[Journal]) -> Vec<String> {
        let mut lists: BTreeMap<&str, Vec<List<'_>>> = BTreeMap::new();
        for heard in journals.iter().flat_map(Journal::replies) {
            if let (Ask::Children { path, .. }, Ok(Done::Children { names, .. })) = (heard.ask, heard.outcome)
            {
                let names = names.iter().map(String::as_str).collect();
                lists.entry(path).or_default().push(List { zxid: heard.zxid, at: heard.at, names });
            }
        }
        let mut born: BTreeMap<&str, Vec<(i64, &str, &Node)>> = BTreeMap::new();
        for (path, owner) in &self.owners {
            let node = &self.lives[*owner].nodes[*path];
            let Some((directory, _)) = path.rsplit_once('/') else { continue };
            born.entry(directory).or_default().push((node.created, path, node));
        }
        let mut wrong = Vec::new();
        for (directory, mut lists) in lists {
            let Some(mut born) = born.remove(directory) else { continue };
            lists.sort_by_key(|list| (list.zxid, list.at));
            born.sort_unstable_by_key(|(created, path, _)| (*created, *path));
            let mut born = born.into_iter().peekable();
            // Those that may have to be there.
            let mut there: Vec<(&str, &Node)> = Vec::new();
            for List { zxid, at, names } in lists {
                while let Some((_, path, node)) = born.next_if(|(created, ..)| *created <= zxid) {
                    there.push((path, node));
                }
                there.retain(|(path, node)| {
                    if node.is_to_go && node.until < zxid {
                        return false;
                    }
                    let is_there = names.contains(&path[directory.len() + 1..]);
                    if !is_there {
                        wrong.extend(self.absent(path, zxid, at));
                    }
                    is_there
                });
            }
        }
        wrong
    }
}
