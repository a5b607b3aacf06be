//! Who watches what, and what they are told.
//!
//! A session's watches on a path are one entry. They belong to one attachment of the session: a client that connects anew
//! says what it watches (`setWatches`).

use crate::acl::{self, Acl, perms};
use crate::counters::Counters;
use crate::events::{Events, MAX_MISSED};
use crate::message::Notice;
use crate::path::upwards;
use crate::request::{Rewatch, Watches};
use crate::sessions::Session;
use crate::store::{Changes, Look};
use crate::tree::last_changed;
use crate::{Code, keys, path};
use bytes::Bytes;
use std::collections::{BTreeMap, BTreeSet};

/// The most paths that a session watches.
pub const MAX_WATCHES: u32 = 1 << 16;

/// The most bytes of these paths: each is there twice, in every replica, for as long as the session lives.
pub const MAX_WATCHED_BYTES: u32 = 8 << 20;

/// In the place of their number where what a session watches is of an attachment that is over.
pub(crate) const NOBODYS: u32 = u32::MAX;

/// What happened (`Watcher.Event.EventType`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub enum Kind {
    /// The node was created.
    Created = 1,
    /// It was deleted.
    Deleted = 2,
    /// Its data were set.
    DataChanged = 3,
    /// A child of it was created or deleted.
    ChildrenChanged = 4,
}

/// Told once, of a node that comes or goes or whose data change.
pub(crate) const DATA: u8 = 1;
/// Told once, of a node whose children change or that goes.
pub(crate) const CHILDREN: u8 = 2;
/// Told each time, of all of that.
pub(crate) const PERSISTENT: u8 = 4;
/// Told each time, of this node and all below, but not of their children as such.
pub(crate) const RECURSIVE: u8 = 8;

/// A change, with the list of the node that says who may see it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Change<'c> {
    pub(crate) kind: Kind,
    pub(crate) path: &'c str,
    pub(crate) acl: &'c [Acl],
}

impl Kind {
    /// The watches that are over with it.
    fn ends(self) -> u8 {
        match self {
            Self::Created | Self::DataChanged => DATA,
            Self::Deleted => DATA | CHILDREN,
            Self::ChildrenChanged => CHILDREN,
        }
    }
}

fn bits_of(store: &mut impl Look, path: &str, session: i64) -> u8 {
    store.look(&keys::watch(path, session)).and_then(|bits| bits.first().copied()).unwrap_or(0)
}

/// Puts what is left of a session's watches on a path.
fn put(
    changes: &mut Changes<'_, '_>,
    counters: &mut Counters,
    path: &str,
    session: i64,
    before: u8,
    bits: u8,
) {
    let recursive = |bits: u8| u64::from(bits & RECURSIVE != 0);
    counters.recursive = (counters.recursive + recursive(bits)).saturating_sub(recursive(before));
    if bits == 0 {
        changes.remove(&keys::watch(path, session));
        changes.remove(&keys::watches_of(session, path));
    } else {
        changes.put(&keys::watch(path, session), vec![bits]);
        if before == 0 {
            changes.put(&keys::watches_of(session, path), Bytes::new());
        }
    }
}

/// The bytes of a path that may be watched.
fn bytes_of(path: &str) -> u32 {
    u32::try_from(path.len()).unwrap_or(u32::MAX)
}

/// A session watches this path no longer, if that is so.
fn lose(counters: &mut Counters, session: &mut Session, path: &str, goes: bool) {
    if goes {
        session.watches = session.watches.saturating_sub(1);
        session.watched = session.watched.saturating_sub(bytes_of(path));
        counters.watches = counters.watches.saturating_sub(1);
    }
}

/// A session watches nothing any more.
fn lose_all(counters: &mut Counters, session: &mut Session) {
    // What is nobody's counts for nothing since it is.
    session.watched = 0;
    let watched = std::mem::take(&mut session.watches);
    let counted = if watched == NOBODYS { 0 } else { watched };
    counters.watches = counters.watches.saturating_sub(u64::from(counted));
}

/// A session watches a path in this way too.
pub(crate) fn add(
    changes: &mut Changes<'_, '_>,
    counters: &mut Counters,
    session: &mut Session,
    path: &str,
    bits: u8,
) -> Result<(), Code> {
    let before = bits_of(changes, path, session.id);
    if before == 0 {
        let watched = session.watched.saturating_add(bytes_of(path));
        if session.watches >= MAX_WATCHES || watched > MAX_WATCHED_BYTES {
            return Err(Code::QuotaExceeded);
        }
        (session.watches, session.watched) = (session.watches + 1, watched);
        counters.watches += 1;
    }
    put(changes, counters, path, session.id, before, before | bits);
    Ok(())
}

/// Whether a session watches a path like this; where it shall no longer, it does not.
pub(crate) fn look(
    changes: &mut Changes<'_, '_>,
    counters: &mut Counters,
    session: &mut Session,
    path: &str,
    which: Watches,
    remove: bool,
) -> Result<(), Code> {
    path::check(path)?;
    let before = bits_of(changes, path, session.id);
    let meant = match which {
        Watches::Data => DATA,
        Watches::Children => CHILDREN,
        Watches::Any => u8::MAX,
        Watches::Persistent => PERSISTENT,
        Watches::Recursive => RECURSIVE,
    };
    if before & meant == 0 {
        return Err(Code::NoWatcher);
    }
    if remove {
        lose(counters, session, path, before & !meant == 0);
        put(changes, counters, path, session.id, before, before & !meant);
    }
    Ok(())
}

/// A session watches nothing any more; how much it watched.
pub(crate) fn drop_all(
    changes: &mut Changes<'_, '_>,
    counters: &mut Counters,
    session: &mut Session,
) -> usize {
    lose_all(counters, session);
    let mut dropped = 0;
    for rest in changes.beginning(&keys::watches_of(session.id, "")) {
        let Ok(path) = std::str::from_utf8(&rest) else { continue };
        let before = bits_of(changes, path, session.id);
        put(changes, counters, path, session.id, before, 0);
        dropped += 1;
    }
    dropped
}

/// A client that connected anew watches these; of what happened since it saw the last
/// transaction it is told now, of each once: more than [`MAX_MISSED`] are too many. The nodes' lists, which others
/// may have made long, are not looked at.
pub(crate) fn again(
    changes: &mut Changes<'_, '_>,
    counters: &mut Counters,
    session: &mut Session,
    wanted: &Rewatch,
) -> Result<Vec<(Kind, String)>, Code> {
    let all = [&wanted.data, &wanted.exists, &wanted.children, &wanted.persistent, &wanted.recursive];
    all.into_iter().flatten().try_for_each(|path| path::check(path))?;
    // No client watches more. What it says twice is looked at once.
    let paths: BTreeSet<&str> = all.into_iter().flatten().map(String::as_str).collect();
    if paths.len() > MAX_WATCHES as usize {
        return Err(Code::QuotaExceeded);
    }
    let [data, exists, children, persistent, recursive] = all.map(|list| each_once(list));
    let (mut told, mut once) = (Vec::new(), BTreeSet::new());
    // One more than are told says that there are too many.
    let mut tell = |kind: Kind, path: &str| {
        if told.len() <= MAX_MISSED && once.insert((kind as i32, path.to_owned())) {
            told.push((kind, path.to_owned()));
        }
    };
    let mut known = BTreeMap::new();
    let mut find = |changes: &mut Changes<'_, '_>, path| {
        *known.entry(path).or_insert_with(|| last_changed(changes, path))
    };
    for path in data {
        match find(changes, path) {
            None => tell(Kind::Deleted, path),
            Some(last) if last.data > wanted.seen => tell(Kind::DataChanged, path),
            Some(_) => add(changes, counters, session, path, DATA)?,
        }
    }
    for path in exists {
        match find(changes, path) {
            Some(_) => tell(Kind::Created, path),
            None => add(changes, counters, session, path, DATA)?,
        }
    }
    for path in children {
        match find(changes, path) {
            None => tell(Kind::Deleted, path),
            Some(last) if last.children > wanted.seen => tell(Kind::ChildrenChanged, path),
            Some(_) => add(changes, counters, session, path, CHILDREN)?,
        }
    }
    for path in persistent {
        add(changes, counters, session, path, PERSISTENT)?;
    }
    for path in recursive {
        add(changes, counters, session, path, RECURSIVE)?;
    }
    Ok(told)
}

/// These paths in their order, without repetitions.
fn each_once(list: &[String]) -> impl Iterator<Item = &str> {
    let mut seen = BTreeSet::new();
    list.iter().map(String::as_str).filter(move |path| seen.insert(*path))
}

/// A session's attachment ends, and with it what it watched: its client connects anew, and says what it watches and saw. One
/// operation may end many, so what they watched is taken away where it is found, or when each of them is attached or over,
/// and is nobody's until then.
pub(crate) fn end_attachment(
    changes: &mut Changes<'_, '_>,
    counters: &mut Counters,
    mut session: Session,
    events: &mut Events,
) {
    events.end(session.carrier, session.at());
    lose_all(counters, &mut session);
    session.watches = NOBODYS;
    counters.attachments += 1;
    session.number = counters.attachments;
    session.keep(changes);
}

/// Tells those who watch of a change, each once, as far as they may read the node.
pub(crate) fn fire(
    changes: &mut Changes<'_, '_>,
    counters: &mut Counters,
    change: Change<'_>,
    zxid: i64,
    events: &mut Events,
) {
    let mut told = BTreeSet::new();
    let below = counters.recursive > 0 && change.kind != Kind::ChildrenChanged;
    let above = upwards(change.path).take(if below { usize::MAX } else { 1 });
    for at in above {
        let own = at == change.path;
        for session in changes.watchers(at) {
            if events.is_given_up() {
                return;
            }
            events.look(change.path);
            let bits = bits_of(changes, at, session);
            let ends = if own { bits & change.kind.ends() } else { 0 };
            let stays = (own && bits & PERSISTENT != 0) || (below && bits & RECURSIVE != 0);
            if ends == 0 && !stays && !events.is_spent() {
                continue;
            }
            let Some(mut session) = Session::find(changes, session) else { continue };
            if session.watches == NOBODYS || events.is_spent() {
                // Nobody finds it here again.
                put(changes, counters, at, session.id, bits, 0);
                if session.watches != NOBODYS {
                    end_attachment(changes, counters, session, events);
                }
                continue;
            }
            // From the steps above it is told nothing more, and no watch there ends.
            if !told.insert(session.id) {
                continue;
            }
            events.compare(session.who.len(), change.acl.len());
            if !acl::permits(change.acl, perms::READ, &session.who) {
                // Its watch stays, as its client is not told and goes on with it: were it gone here, a client could
                // have more watches than may be set again.
                continue;
            }
            if events.are_all_that_hears(session.id) {
                end_attachment(changes, counters, session, events);
                continue;
            }
            if ends != 0 {
                lose(counters, &mut session, at, bits == ends);
                put(changes, counters, at, session.id, bits, bits & !ends);
                session.keep(changes);
            }
            let (at, path) = (session.at(), change.path.to_owned());
            events.tell(session.carrier, at, Notice::Fired { at, kind: change.kind as i32, path, zxid });
        }
    }
}
