//! The tree of nodes, and what changes it.

use crate::acl::{self, Acl, Id, perms};
use crate::counters::Counters;
use crate::events::Events;
use crate::jute::Output;
use crate::node::{Data, LastChanged, Node, Stay};
use crate::request::{Create, Lasting, Write};
use crate::store::{Changes, Look};
use crate::watches::{self, Change, Kind};
use crate::{Code, goes, keys, path, quota};
use bytes::Bytes;

/// The most entries of lists of access control that the operations of one transaction look at, or the reads of one
/// multi-read; a node's list is read with each of them.
pub const MAX_LOOKED: usize = 1 << 18;

/// A transaction under way.
pub(crate) struct Transaction<'t, 'a, 's> {
    pub(crate) changes: &'t mut Changes<'a, 's>,
    pub(crate) counters: &'t mut Counters,
    /// Its number.
    pub(crate) zxid: i64,
    /// The agreed time, in microseconds.
    pub(crate) now: u64,
    /// Whether quotas are enforced.
    pub(crate) enforces: bool,
    /// What those who watch are told if it happens.
    pub(crate) events: &'t mut Events,
    /// Entries of lists of access control that it looked at.
    pub(crate) looked: usize,
    /// Whether it began a quota.
    pub(crate) began_quota: bool,
    /// Nodes that may still be counted.
    pub(crate) counts: usize,
}

/// What one operation of it did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Done {
    /// With the node's stat, where that was asked for: later operations may change it.
    Created {
        path: String,
        stat: Option<Bytes>,
    },
    Deleted,
    /// With the node's stat.
    Set {
        stat: Bytes,
    },
    Checked,
}

/// A node, if there is one.
pub(crate) fn find(store: &mut impl Look, path: &str) -> Result<Node, Code> {
    store.entry(&keys::node(path)).ok_or(Code::NoNode)
}

/// When a node was changed last, if it is there.
pub(crate) fn last_changed(store: &mut impl Look, path: &str) -> Option<LastChanged> {
    let entry = store.look(&keys::node(path))?;
    Some(LastChanged::of(&entry).expect("entries are written by this service"))
}

/// A node's data, if it has any.
pub(crate) fn data_of(store: &mut impl Look, path: &str, node: &Node) -> Option<Bytes> {
    match &node.data {
        Data::Absent => None,
        Data::Here(bytes) => Some(bytes.clone()),
        Data::Apart(_) => store.look(&keys::data(path)),
    }
}

/// A node's stat, as a record.
pub(crate) fn stat_of(store: &mut impl Look, path: &str) -> Result<Bytes, Code> {
    find(store, path).map(|node| stat(&node))
}

fn stat(node: &Node) -> Bytes {
    let mut out = Output::new();
    node.stat(&mut out);
    out.finish()
}

fn length(data: Option<&Bytes>) -> usize {
    data.map_or(0, Bytes::len)
}

/// The version that follows, if this is the one that was expected. None is -1, which stands for any in a request.
fn next_version(version: i32, expected: i32) -> Result<i32, Code> {
    match version.wrapping_add(1) {
        _ if expected != -1 && expected != version => Err(Code::BadVersion),
        -1 => Ok(0),
        next => Ok(next),
    }
}

impl Transaction<'_, '_, '_> {
    fn millis(&self) -> i64 {
        i64::try_from(self.now / 1000).unwrap_or(i64::MAX)
    }

    pub(crate) fn keep(&mut self, path: &str, node: &Node) {
        self.changes.put_entry(&keys::node(path), node);
    }

    pub(crate) fn put_data(&mut self, path: &str, before: Option<&Data>, data: Option<Bytes>) -> Data {
        let (was, is) = (before.map_or(0, Data::length), length(data.as_ref()));
        self.counters.bytes = (self.counters.bytes + is as u64).saturating_sub(was as u64);
        let apart = Data::is_apart(length(data.as_ref()));
        if !apart && matches!(before, Some(Data::Apart(_))) {
            self.changes.remove(&keys::data(path));
        }
        let data = match data {
            None => return Data::Absent,
            Some(data) if !apart => return Data::Here(data),
            Some(data) => data,
        };
        let length = u32::try_from(data.len()).unwrap_or(u32::MAX);
        self.changes.put(&keys::data(path), data);
        Data::Apart(length)
    }

    fn note(&mut self, kind: Kind, path: &str, acl: &[Acl]) {
        let change = Change { kind, path, acl };
        watches::fire(self.changes, self.counters, change, self.zxid, self.events);
    }

    /// Whether somebody may do this, and this transaction look at so many entries more.
    fn permitted(&mut self, list: &[Acl], wanted: i32, who: &[Id]) -> Result<(), Code> {
        self.looked += acl::looks_at(list, who);
        if self.looked > MAX_LOOKED {
            return Err(Code::QuotaExceeded);
        }
        if acl::permits(list, wanted, who) { Ok(()) } else { Err(Code::NoAuth) }
    }

    /// One operation, for a session that proved to be these.
    pub(crate) fn write(&mut self, session: i64, who: &[Id], write: &Write) -> Result<Done, Code> {
        match write {
            Write::Create(create) => {
                let path = self.create(session, who, create)?;
                let stat = create.shows_stat.then(|| stat_of(self.changes, &path)).transpose()?;
                Ok(Done::Created { path, stat })
            }
            Write::Delete { path, version } => self.delete(who, path, *version).map(|()| Done::Deleted),
            Write::SetData { path, data, version } => {
                let node = self.set_data(who, path, data, *version)?;
                // Where there are quotas, this may be the node in which one counts, which has changed once more.
                let stat = if self.counters.quotas == 0 { stat(&node) } else { stat_of(self.changes, path)? };
                Ok(Done::Set { stat })
            }
            Write::SetAcl { path, acl, version } => {
                self.set_acl(who, path, acl.clone(), *version)?;
                Ok(Done::Set { stat: stat_of(self.changes, path)? })
            }
            Write::ContinueSequence { path, creations } => {
                self.continue_sequence(who, path, *creations)?;
                Ok(Done::Set { stat: stat_of(self.changes, path)? })
            }
            Write::Check { path, version } => {
                path::check(path)?;
                let node = find(self.changes, path)?;
                self.permitted(&node.acl, perms::READ, who)?;
                next_version(node.version, *version).map(|_| Done::Checked)
            }
        }
    }

    fn create(&mut self, session: i64, who: &[Id], create: &Create) -> Result<String, Code> {
        let sequential = create.mode.sequential;
        // The name of a sequential node may be the number alone.
        path::check_new(&if sequential { format!("{}1", create.path) } else { create.path.clone() })?;
        let acl = acl::settle(create.acl.clone(), who)?;
        let (parent_path, _) = path::split(&create.path);
        let mut parent = find(self.changes, parent_path)?;
        self.permitted(&parent.acl, perms::CREATE, who)?;
        let path = match sequential {
            true => format!("{}{:010}", create.path, parent.creations),
            false => create.path.clone(),
        };
        path::check(&path)?;
        if self.changes.look(&keys::node(&path)).is_some() {
            return Err(Code::NodeExists);
        }
        if matches!(parent.stay, Stay::Ephemeral(_)) {
            return Err(Code::NoChildrenForEphemerals);
        }
        let bytes = length(create.data.as_ref()) as i64;
        quota::allows(self, &path, bytes, 1)?;
        let stay = match create.mode.lasting {
            Lasting::Persistent => Stay::Persistent,
            Lasting::Ephemeral => Stay::Ephemeral(session),
            Lasting::Container => Stay::Container,
            Lasting::Ttl(millis) => Stay::Ttl(millis),
        };
        let data = self.put_data(&path, None, create.data.clone());
        let mut node = Node::new(self.zxid, self.millis(), stay, acl, data);
        goes::after_change(self, &path, &mut node);
        self.keep(&path, &node);
        self.counters.nodes += 1;
        self.counters.bytes += path.len() as u64;
        if let Stay::Ephemeral(session) = stay {
            self.counters.ephemerals += 1;
            self.changes.put(&keys::ephemeral(session, &path), Bytes::new());
        }
        parent.creations = parent.creations.wrapping_add(1);
        parent.children += 1;
        parent.children_zxid = self.zxid;
        self.keep(parent_path, &parent);
        quota::count(self, &path, bytes, 1);
        quota::created(self, &path)?;
        self.note(Kind::Created, &path, &node.acl);
        self.note(Kind::ChildrenChanged, parent_path, &parent.acl);
        Ok(path)
    }

    fn delete(&mut self, who: &[Id], path: &str, version: i32) -> Result<(), Code> {
        path::check(path)?;
        if path::is_special(path) {
            return Err(Code::BadArguments);
        }
        let parent = find(self.changes, path::split(path).0)?;
        self.permitted(&parent.acl, perms::DELETE, who)?;
        let node = find(self.changes, path)?;
        next_version(node.version, version)?;
        self.remove(path, &node)
    }

    /// Removes a node without children, whoever wants it.
    pub(crate) fn remove(&mut self, path: &str, node: &Node) -> Result<(), Code> {
        if node.children > 0 {
            return Err(Code::NotEmpty);
        }
        self.changes.remove(&keys::node(path));
        if matches!(node.data, Data::Apart(_)) {
            self.changes.remove(&keys::data(path));
        }
        let went = (path.len() + node.data.length()) as u64;
        self.counters.bytes = self.counters.bytes.saturating_sub(went);
        self.counters.nodes = self.counters.nodes.saturating_sub(1);
        if let Stay::Ephemeral(session) = node.stay {
            self.counters.ephemerals = self.counters.ephemerals.saturating_sub(1);
            self.changes.remove(&keys::ephemeral(session, path));
        }
        goes::removed(self, path, node);
        let parent_path = path::split(path).0;
        let mut parent = find(self.changes, parent_path)?;
        parent.children -= 1;
        parent.children_zxid = self.zxid;
        goes::after_change(self, parent_path, &mut parent);
        self.keep(parent_path, &parent);
        quota::removed(self, path);
        quota::count(self, path, -(node.data.length() as i64), -1);
        self.note(Kind::Deleted, path, &node.acl);
        self.note(Kind::ChildrenChanged, parent_path, &parent.acl);
        Ok(())
    }

    fn set_data(&mut self, who: &[Id], path: &str, data: &Option<Bytes>, version: i32) -> Result<Node, Code> {
        path::check(path)?;
        let mut node = find(self.changes, path)?;
        self.permitted(&node.acl, perms::WRITE, who)?;
        let grows = length(data.as_ref()) as i64 - node.data.length() as i64;
        let next = next_version(node.version, version)?;
        quota::allows(self, path, grows, 0)?;
        node.version = next;
        node.modified_zxid = self.zxid;
        node.modified = self.millis();
        node.data = self.put_data(path, Some(&node.data), data.clone());
        // A container goes for its children alone, which this changes nothing of.
        if matches!(node.stay, Stay::Ttl(_)) {
            goes::after_change(self, path, &mut node);
        }
        self.keep(path, &node);
        quota::count(self, path, grows, 0);
        self.note(Kind::DataChanged, path, &node.acl);
        Ok(node)
    }

    /// Names that were given before the node was imported are not given again. No child comes or goes by it, so nobody who
    /// watches is told, and a container without children does not go because of it.
    fn continue_sequence(&mut self, who: &[Id], path: &str, creations: i32) -> Result<(), Code> {
        path::check(path)?;
        let mut node = find(self.changes, path)?;
        // Whoever may create children may count one at a time; to leave out all that are left is more than that.
        self.permitted(&node.acl, perms::ADMIN, who)?;
        // Never back: those below it may have been given here. Behind the highest number come those with a minus sign.
        let furthest = node.creations.cast_unsigned().max(creations.cast_unsigned());
        node.creations = furthest.cast_signed();
        self.keep(path, &node);
        Ok(())
    }

    fn set_acl(&mut self, who: &[Id], path: &str, list: Option<Vec<Acl>>, version: i32) -> Result<(), Code> {
        path::check(path)?;
        let list = acl::settle(list, who)?;
        let mut node = find(self.changes, path)?;
        self.permitted(&node.acl, perms::ADMIN, who)?;
        node.acl_version = next_version(node.acl_version, version)?;
        node.acl = list;
        self.keep(path, &node);
        Ok(())
    }
}

/// The tree that every group begins with.
pub(crate) fn plant(changes: &mut Changes<'_, '_>, counters: &mut Counters, config: &Bytes) {
    let open = || vec![Acl::world(perms::ALL)];
    let reads = || vec![Acl::world(perms::READ)];
    for (path, children, acl, data) in [
        (path::ROOT, 1, open(), Bytes::new()),
        (path::SYSTEM, 2, open(), Bytes::new()),
        (path::QUOTA, 0, open(), Bytes::new()),
        (path::CONFIG, 0, reads(), config.clone()),
    ] {
        counters.nodes += 1;
        counters.bytes += (path.len() + data.len()) as u64;
        let node = Node { children, ..Node::new(0, 0, Stay::Persistent, acl, Data::Here(data)) };
        changes.put_entry(&keys::node(path), &node);
    }
}
