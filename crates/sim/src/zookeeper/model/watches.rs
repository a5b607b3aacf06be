//! The model's watches.

use super::access::{check_path, may, parent};
use super::request::{Look, Meant};
use super::{Change, Model, Told};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use troth_zookeeper::acl::perms;
use troth_zookeeper::{Code, Notice};

/// What happened, in ZooKeeper's numbers of events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Happening {
    Created = 1,
    Deleted = 2,
    DataChanged = 3,
    ChildrenChanged = 4,
}

/// How a path is watched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Manner {
    Data,
    Children,
    Persistent,
    Recursive,
}

impl Manner {
    /// Whether such a watch on this very path sees that.
    fn sees(self, happening: Happening) -> bool {
        use Happening::{ChildrenChanged, Deleted};
        match self {
            Self::Data => happening != ChildrenChanged,
            Self::Children => matches!(happening, Deleted | ChildrenChanged),
            Self::Persistent => true,
            Self::Recursive => happening != ChildrenChanged,
        }
    }

    fn is_for_once(self) -> bool {
        matches!(self, Self::Data | Self::Children)
    }
}

type Watches = BTreeMap<String, BTreeSet<Manner>>;

/// Whether one of these sees what happened to the path; what was for once and saw it is used up.
fn use_up(watches: &mut Watches, path: &str, happening: Happening) -> bool {
    let mut sees = false;
    let mut above = path;
    loop {
        if let Some(manners) = watches.get_mut(above) {
            let own = above == path;
            let hit = |manner: Manner| (own || manner == Manner::Recursive) && manner.sees(happening);
            sees |= manners.iter().any(|manner| hit(*manner));
            manners.retain(|manner| !(hit(*manner) && manner.is_for_once()));
            if manners.is_empty() {
                watches.remove(above);
            }
        }
        if above == "/" {
            return sees;
        }
        above = parent(above);
    }
}

/// How near the nearest watch is that sees what happened: that decides who is told first.
fn distance(watches: &Watches, path: &str, happening: Happening) -> Option<usize> {
    let mut above = path;
    for steps in 0.. {
        let manners = watches.get(above).into_iter().flatten();
        let sees = |manner: &Manner| (steps == 0 || *manner == Manner::Recursive) && manner.sees(happening);
        if manners.into_iter().any(sees) {
            return Some(steps);
        }
        if above == "/" {
            break;
        }
        above = parent(above);
    }
    None
}

impl Model {
    pub(super) fn watch(&mut self, id: i64, path: &str, manner: Manner) {
        if let Ok(session) = self.session_mut(id) {
            session.watches.entry(path.to_owned()).or_default().insert(manner);
        }
    }

    /// A read that watches does, if it found the node; one for existence, too, if it did not.
    pub(super) fn watch_what_was_looked_at(&mut self, id: i64, look: &Look, error: Option<&Code>) {
        let (path, manner) = match (look, error) {
            (Look::Exists(path), None | Some(Code::NoNode)) | (Look::Data(path), None) => {
                (path, Manner::Data)
            }
            (Look::Children { path, .. }, None) => (path, Manner::Children),
            _ => return,
        };
        self.watch(id, path, manner);
    }

    pub(super) fn watched(&mut self, id: i64, path: &str, meant: Meant, remove: bool) -> Result<(), Code> {
        check_path(path)?;
        let is_meant = |manner: &Manner| match meant {
            Meant::Data => *manner == Manner::Data,
            Meant::Children => *manner == Manner::Children,
            Meant::All => true,
        };
        let watches = &mut self.session_mut(id)?.watches;
        let manners = watches.get_mut(path).ok_or(Code::NoWatcher)?;
        if !manners.iter().any(is_meant) {
            return Err(Code::NoWatcher);
        }
        if remove {
            manners.retain(|manner| !is_meant(manner));
            if manners.is_empty() {
                watches.remove(path);
            }
        }
        Ok(())
    }

    /// A client that connected anew says what it watches, and which transaction it saw last.
    pub(super) fn watch_again(
        &mut self,
        id: i64,
        seen: i64,
        lists: &[Vec<String>; 5],
        told: &mut Told,
    ) -> Result<(), Code> {
        lists.iter().flatten().try_for_each(|path| check_path(path))?;
        let [data, exists, children, persistent, recursive] = lists;
        let mut missed: Vec<(Happening, &String)> = Vec::new();
        for path in data {
            match self.node(path) {
                Err(_) => missed.push((Happening::Deleted, path)),
                Ok(node) if node.modified_zxid() > seen => missed.push((Happening::DataChanged, path)),
                Ok(_) => self.watch(id, path, Manner::Data),
            }
        }
        for path in exists {
            match self.node(path) {
                Ok(_) => missed.push((Happening::Created, path)),
                Err(_) => self.watch(id, path, Manner::Data),
            }
        }
        for path in children {
            match self.node(path) {
                Err(_) => missed.push((Happening::Deleted, path)),
                Ok(node) if node.children_zxid > seen => missed.push((Happening::ChildrenChanged, path)),
                Ok(_) => self.watch(id, path, Manner::Children),
            }
        }
        persistent.iter().for_each(|path| self.watch(id, path, Manner::Persistent));
        recursive.iter().for_each(|path| self.watch(id, path, Manner::Recursive));
        let zxid = self.zxid;
        let session = self.session_mut(id)?;
        for (kind, path) in missed {
            let path = path.clone();
            told.push((session.gateway, Notice::Fired { at: session.at, kind: kind as i32, path, zxid }));
        }
        Ok(())
    }

    /// Tells everybody who watches what happened, once each, and only those who may read the node.
    pub(super) fn tell(&mut self, change: &Change, told: &mut Told) {
        let Change { kind, path, acl } = change;
        let watching = |(id, session): (&i64, &Rc<super::Session>)| {
            distance(&session.watches, path, *kind).map(|steps| (steps, *id))
        };
        // Who watches from nearer is told first, then in the order of the sessions.
        let mut all: Vec<(usize, i64)> = self.sessions.iter().filter_map(watching).collect();
        all.sort_unstable();
        for (_, id) in all {
            let zxid = self.zxid;
            let Ok(session) = self.session_mut(id) else { continue };
            if use_up(&mut session.watches, path, *kind) && may(acl, perms::READ, &session.who).is_ok() {
                let notice = Notice::Fired { at: session.at, kind: *kind as i32, path: path.clone(), zxid };
                told.push((session.gateway, notice));
                self.count("watch events");
            }
        }
    }
}
