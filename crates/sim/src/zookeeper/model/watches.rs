//! The model's watches.

use super::access::{check_path, may, parent};
use super::request::{Look, Meant};
use super::{Change, Effort, Model, Told};
use std::collections::BTreeSet;
use std::rc::Rc;
use troth_zookeeper::acl::{Acl, perms};
use troth_zookeeper::events::{IDENTITY, LOOK, MAX_EVENTS, MAX_MISSED, MAX_WORK};
use troth_zookeeper::{Code, MAX_WATCHES, Notice};

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
            Meant::Persistent => *manner == Manner::Persistent,
            Meant::Recursive => *manner == Manner::Recursive,
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
        let [data, exists, children, persistent, recursive] = lists;
        let paths: BTreeSet<&String> = lists.iter().flatten().collect();
        let makes_sense = paths.iter().all(|path| check_path(path).is_ok());
        if !makes_sense || paths.len() > MAX_WATCHES as usize {
            // Nobody would tell the client of an error.
            self.effort = Effort::default();
            self.end_attachment(id);
            self.say(told);
            return Ok(());
        }
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
        // Each once; too many are none, and the client has to connect anew.
        let mut once: Vec<(i32, &String)> = Vec::new();
        let mut known = BTreeSet::new();
        for (kind, path) in missed {
            if known.insert((kind as i32, path)) {
                once.push((kind as i32, path));
            }
        }
        self.effort = Effort::default();
        if once.len() > MAX_MISSED {
            self.end_attachment(id);
        } else {
            let zxid = self.zxid;
            let session = self.session_mut(id)?;
            for (kind, path) in once {
                let notice = Notice::Fired { at: session.at, kind, path: path.clone(), zxid };
                told.push((session.gateway, notice));
            }
        }
        self.say(told);
        Ok(())
    }

    /// The client has to connect anew and say what it watches.
    fn end_attachment(&mut self, id: i64) {
        self.count("attachments ended for their events");
        self.attachments += 1;
        let number = self.attachments;
        let Ok(session) = self.session_mut(id) else { return };
        let (before, gateway) = (session.at, session.gateway);
        session.at.number = number;
        session.is_attached = false;
        session.watches.clear();
        self.effort.over.push(before);
        self.effort.told.push((gateway, Notice::Over(before)));
    }

    /// What was to be told is told, but for events of attachments that ended over them.
    pub(super) fn say(&mut self, told: &mut Told) {
        let Effort { told: all, over, .. } = std::mem::take(&mut self.effort);
        let ended = |notice: &Notice| matches!(notice, Notice::Fired { at, .. } if over.contains(at));
        told.extend(all.into_iter().filter(|(_, notice)| !ended(notice)));
    }

    /// Whether telling was too much work.
    pub(super) fn has_told_too_much(&self) -> bool {
        self.effort.work > MAX_WORK
    }

    /// Tells everybody who watches what happened, once each, and only those who may read the node. Who watches from nearer is
    /// told first, then in the order of the sessions.
    pub(super) fn tell(&mut self, changes: &mut Vec<Change>) {
        for Change { kind, path, acl } in std::mem::take(changes) {
            let is_recursive = |session: &Rc<super::Session>| {
                session.watches.values().any(|manners| manners.contains(&Manner::Recursive))
            };
            let goes_up = kind != Happening::ChildrenChanged && self.sessions.values().any(is_recursive);
            let (mut above, mut heard) = (path.as_str(), BTreeSet::new());
            loop {
                let watching = |(id, session): (&i64, &Rc<super::Session>)| {
                    session.watches.contains_key(above).then_some(*id)
                };
                let ids: Vec<i64> = self.sessions.iter().filter_map(watching).collect();
                for id in ids {
                    self.tell_one(id, above, kind, &path, &acl, &mut heard);
                }
                if above == "/" || !goes_up {
                    break;
                }
                above = parent(above);
            }
        }
    }

    fn tell_one(
        &mut self,
        id: i64,
        above: &str,
        kind: Happening,
        path: &str,
        acl: &[Acl],
        heard: &mut BTreeSet<i64>,
    ) {
        self.effort.work += LOOK + path.len();
        if self.has_told_too_much() {
            return self.end_attachment(id);
        }
        let (own, zxid) = (above == path, self.zxid);
        let Ok(session) = self.session_mut(id) else { return };
        let hit = |manner: &Manner| (own || *manner == Manner::Recursive) && manner.sees(kind);
        let Some(manners) = session.watches.get(above) else { return };
        if !manners.iter().any(hit) {
            return;
        }
        if !heard.insert(id) {
            return;
        }
        let compared = session.who.len() + acl.len();
        let sees = may(acl, perms::READ, &session.who).is_ok();
        self.effort.work += IDENTITY * compared;
        if !sees {
            // Who is not told watches on.
            return;
        }
        let count = self.effort.heard.entry(id).or_default();
        *count += 1;
        if *count > MAX_EVENTS {
            return self.end_attachment(id);
        }
        let Ok(session) = self.session_mut(id) else { return };
        if let Some(manners) = session.watches.get_mut(above) {
            manners.retain(|manner| !(hit(manner) && manner.is_for_once()));
            if manners.is_empty() {
                session.watches.remove(above);
            }
        }
        let notice = Notice::Fired { at: session.at, kind: kind as i32, path: path.to_owned(), zxid };
        let gateway = session.gateway;
        self.effort.told.push((gateway, notice));
        self.count("watch events");
    }
}
