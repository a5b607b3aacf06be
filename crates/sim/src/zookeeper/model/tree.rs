//! The model's nodes, and what changes them.

use super::access::{check_new_path, check_path, is_below, may, parent, settle};
use super::request::{Kind, Write};
use super::watches::Happening;
use super::{Change, Model, Told};
use bytes::Bytes;
use std::rc::Rc;
use troth_zookeeper::acl::{Acl, perms};
use troth_zookeeper::jute::Output;
use troth_zookeeper::{Code, MAX_LOOKED, opcode};

/// Microseconds for which a container may be empty again.
const CONTAINER_PATIENCE: u64 = 60_000_000;
/// The nodes that are there for good.
const PLANTED: [&str; 4] = ["/", "/zookeeper", "/zookeeper/quota", "/zookeeper/config"];

/// A node. Times are milliseconds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    created_zxid: i64,
    modified_zxid: i64,
    pub(super) children_zxid: i64,
    created: i64,
    modified: i64,
    version: i32,
    child_version: i32,
    acl_version: i32,
    /// The number that the next sequential child gets.
    next_child: i32,
    kind: Kind,
    /// The session of an ephemeral node.
    owner: i64,
    pub(super) acl: Vec<Acl>,
    pub(super) data: Bytes,
    /// The agreed time, in microseconds, at which somebody looks whether it goes.
    look_at: Option<u64>,
}

impl Node {
    /// The session that it ends with.
    #[must_use]
    pub fn session(&self) -> Option<i64> {
        (self.kind == Kind::Ephemeral).then_some(self.owner)
    }

    pub(super) fn modified_zxid(&self) -> i64 {
        self.modified_zxid
    }

    fn shown_owner(&self) -> i64 {
        // Of the others clients are not told how long they stay.
        self.session().unwrap_or(0)
    }

    /// The record of its stat, with so many children.
    pub(super) fn stat(&self, children: usize) -> Bytes {
        let number = |length: usize| i32::try_from(length).expect("far below");
        let mut out = Output::new();
        for long in [self.created_zxid, self.modified_zxid, self.created, self.modified] {
            out.long(long);
        }
        for int in [self.version, self.child_version, self.acl_version] {
            out.int(int);
        }
        out.long(self.shown_owner()).int(number(self.data.len())).int(number(children));
        out.long(self.children_zxid);
        out.finish()
    }

    /// When it may go, if it stays as it is now.
    fn goes_at(&self, children: usize, now: u64) -> Option<u64> {
        match self.kind {
            _ if children > 0 => None,
            Kind::Container if self.next_child > 0 => Some(now + CONTAINER_PATIENCE),
            Kind::Ttl(millis) => Some((now + 1).max((self.modified + millis).cast_unsigned() * 1000)),
            _ => None,
        }
    }
}

/// The record of a text.
pub fn text(text: &str) -> Bytes {
    let mut out = Output::new();
    out.text(text);
    out.finish()
}

/// The header of a step's result.
pub fn header(code: i32, last: bool, error: i32) -> Bytes {
    let mut out = Output::new();
    out.int(code).boolean(last).int(error);
    out.finish()
}

impl Model {
    pub(super) fn plant(&mut self) {
        for path in PLANTED {
            let rights = if path.ends_with("config") { perms::READ } else { perms::ALL };
            let data = if path.ends_with("config") { self.settings.config.clone() } else { Bytes::new() };
            let below = PLANTED.iter().filter(|other| **other != path && parent(other) == path).count();
            let node = Node {
                created_zxid: 0,
                modified_zxid: 0,
                children_zxid: 0,
                created: 0,
                modified: 0,
                version: 0,
                // Its children were never created: they count against it.
                child_version: -i32::try_from(below).expect("a few"),
                acl_version: 0,
                next_child: 0,
                kind: Kind::Persistent,
                owner: 0,
                acl: vec![Acl::world(rights)],
                data,
                look_at: None,
            };
            self.nodes.insert(Rc::from(path), Rc::new(node));
        }
    }

    pub(super) fn node(&self, path: &str) -> Result<&Node, Code> {
        self.nodes.get(path).map(|node| &**node).ok_or(Code::NoNode)
    }

    pub(super) fn node_mut(&mut self, path: &str) -> Result<&mut Node, Code> {
        self.nodes.get_mut(path).map(Rc::make_mut).ok_or(Code::NoNode)
    }

    /// The children's paths, in the order of their names.
    pub(super) fn children(&self, path: &str) -> Vec<&str> {
        self.paths().filter(|child| *child != "/" && parent(child) == path).collect()
    }

    /// What lies below, at any depth.
    pub(super) fn descendants(&self, path: &str) -> usize {
        self.paths().filter(|other| is_below(other, path)).count()
    }

    /// Notes when to look at a node that may go by itself, unless that is noted.
    fn note_look(&mut self, path: &str, now: u64) {
        let children = self.children(path).len();
        let Ok(node) = self.node_mut(path) else { return };
        if node.look_at.is_none() {
            node.look_at = node.goes_at(children, now);
        }
    }

    /// Whether the session may do that, in an operation that has not looked at too many lists.
    fn allowed(&mut self, session: i64, path: &str, wanted: i32) -> Result<(), Code> {
        self.effort.looked += self.node(path)?.acl.len();
        if self.effort.looked > MAX_LOOKED {
            return Err(Code::QuotaExceeded);
        }
        may(&self.node(path)?.acl, wanted, self.who(session))
    }

    pub(super) fn write(
        &mut self,
        session: i64,
        now: u64,
        write: &Write,
        changes: &mut Vec<Change>,
    ) -> Result<Bytes, Code> {
        match write {
            Write::Create { path, wants_stat, .. } => {
                let made = self.create(session, now, path, write, changes)?;
                let stat = if *wants_stat { self.node(&made)?.stat(0) } else { Bytes::new() };
                Ok(Bytes::from([text(&made), stat].concat()))
            }
            Write::Delete { path, version } => {
                check_path(path)?;
                if PLANTED.contains(&path.as_str()) {
                    return Err(Code::BadArguments);
                }
                self.allowed(session, parent(path), perms::DELETE)?;
                expect(self.node(path)?.version, *version)?;
                self.remove(path, now, changes)?;
                Ok(Bytes::new())
            }
            Write::SetData { path, data, version } => {
                check_path(path)?;
                self.allowed(session, path, perms::WRITE)?;
                expect(self.node(path)?.version, *version)?;
                let more = data.len() as i64 - self.node(path)?.data.len() as i64;
                self.has_quota(path, more, 0)?;
                let (zxid, children) = (self.zxid, self.children(path).len());
                let node = self.node_mut(path)?;
                node.version = node.version.wrapping_add(1);
                (node.modified_zxid, node.modified) = (zxid, millis(now));
                node.data = data.clone();
                let is_timed = matches!(node.kind, Kind::Ttl(_));
                changes.push(change(Happening::DataChanged, path, node));
                if is_timed {
                    self.note_look(path, now);
                }
                self.count_use(path, more, 0);
                Ok(self.node(path)?.stat(children))
            }
            Write::SetAcl { path, acl, version } => {
                check_path(path)?;
                let acl = settle(acl, self.who(session))?;
                self.allowed(session, path, perms::ADMIN)?;
                expect(self.node(path)?.acl_version, *version)?;
                let children = self.children(path).len();
                let node = self.node_mut(path)?;
                node.acl_version = node.acl_version.wrapping_add(1);
                node.acl = acl;
                Ok(node.stat(children))
            }
            Write::Check { path, version } => {
                check_path(path)?;
                self.node(path)?;
                self.allowed(session, path, perms::READ)?;
                expect(self.node(path)?.version, *version)?;
                Ok(Bytes::new())
            }
            Write::GoOn { path, number } => {
                check_path(path)?;
                self.node(path)?;
                self.allowed(session, path, perms::ADMIN)?;
                let children = self.children(path).len();
                let node = self.node_mut(path)?;
                // Numbers below zero were given after all others.
                let is_ahead = node.next_child >= 0 && node.next_child < *number;
                if is_ahead {
                    let left_out = number - node.next_child;
                    node.next_child = *number;
                    node.child_version = node.child_version.wrapping_add(left_out.wrapping_mul(2));
                }
                let stat = node.stat(children);
                self.count(if is_ahead { "sequences that go on" } else { "sequences that are past it" });
                Ok(stat)
            }
        }
    }

    fn create(
        &mut self,
        session: i64,
        now: u64,
        wanted: &str,
        write: &Write,
        changes: &mut Vec<Change>,
    ) -> Result<String, Code> {
        let Write::Create { data, acl, kind, numbered, .. } = write else { return Err(Code::SystemError) };
        if *numbered {
            check_new_path(&format!("{wanted}0"))?;
        } else {
            check_new_path(wanted)?;
        }
        let acl = settle(acl, self.who(session))?;
        let above = parent(wanted).to_owned();
        self.allowed(session, &above, perms::CREATE)?;
        let number = self.node(&above)?.next_child;
        let path = if *numbered { format!("{wanted}{number:010}") } else { wanted.to_owned() };
        check_path(&path)?;
        if self.nodes.contains_key(path.as_str()) {
            return Err(Code::NodeExists);
        }
        if self.node(&above)?.kind == Kind::Ephemeral {
            return Err(Code::NoChildrenForEphemerals);
        }
        self.has_quota(&path, data.len() as i64, 1)?;
        let zxid = self.zxid;
        let node = Node {
            created_zxid: zxid,
            modified_zxid: zxid,
            children_zxid: zxid,
            created: millis(now),
            modified: millis(now),
            version: 0,
            child_version: 0,
            acl_version: 0,
            next_child: 0,
            kind: *kind,
            owner: session,
            acl,
            data: data.clone(),
            look_at: None,
        };
        changes.push(change(Happening::Created, &path, &node));
        self.nodes.insert(Rc::from(path.as_str()), Rc::new(node));
        self.note_look(&path, now);
        let node = self.node_mut(&above)?;
        node.next_child = node.next_child.wrapping_add(1);
        node.child_version = node.child_version.wrapping_add(1);
        node.children_zxid = zxid;
        changes.push(change(Happening::ChildrenChanged, &above, node));
        self.count_use(&path, data.len() as i64, 1);
        self.begin_use(&path)?;
        self.count(match (kind, numbered) {
            (_, true) => "sequential nodes",
            (Kind::Ephemeral, _) => "ephemeral nodes",
            _ => "other nodes",
        });
        Ok(path)
    }

    pub(super) fn remove(&mut self, path: &str, now: u64, changes: &mut Vec<Change>) -> Result<(), Code> {
        if !self.children(path).is_empty() {
            return Err(Code::NotEmpty);
        }
        let gone = self.nodes.remove(path).ok_or(Code::NoNode)?;
        changes.push(change(Happening::Deleted, path, &gone));
        let (zxid, above) = (self.zxid, parent(path));
        let node = self.node_mut(above)?;
        node.child_version = node.child_version.wrapping_add(1);
        node.children_zxid = zxid;
        changes.push(change(Happening::ChildrenChanged, above, node));
        self.note_look(above, now);
        self.count_use(path, -(gone.data.len() as i64), -1);
        Ok(())
    }

    pub(super) fn multi(&mut self, id: i64, now: u64, writes: &[Write], told: &mut Told) -> Bytes {
        let mut results: Vec<Bytes> = Vec::new();
        let done = self.transact(told, |model, changes| {
            for write in writes {
                let code = match write {
                    Write::Create { wants_stat: true, .. } => opcode::CREATE2,
                    Write::Create { .. } => opcode::CREATE,
                    Write::Delete { .. } => opcode::DELETE,
                    Write::SetData { .. } => opcode::SET_DATA,
                    Write::SetAcl { .. } => opcode::SET_ACL,
                    Write::Check { .. } => opcode::CHECK,
                    Write::GoOn { .. } => opcode::CONTINUE_SEQUENCE,
                };
                let body = model.write(id, now, write, changes)?;
                model.tell(changes);
                if model.has_told_too_much() {
                    return Err(Code::QuotaExceeded);
                }
                results.push(Bytes::from([header(code, false, 0), body].concat()));
            }
            Ok(())
        });
        self.count(if done.is_ok() { "transactions" } else { "transactions undone" });
        if let Err(why) = done {
            let failed = results.len();
            let error = |at: usize| match at {
                _ if at < failed => 0,
                _ if at == failed => why.number(),
                _ => Code::RuntimeInconsistency.number(),
            };
            results = (0..writes.len()).map(|at| failure(error(at))).collect();
        }
        results.push(header(opcode::ERROR, true, -1));
        Bytes::from(results.concat())
    }

    /// When somebody looks next whether a node goes, and which.
    pub(super) fn next_look(&self) -> Option<(u64, String)> {
        let noted = self.nodes.iter().filter_map(|(path, node)| Some((node.look_at?, path.to_string())));
        noted.min()
    }

    /// Looks at a node whose moment has come.
    pub(super) fn look_whether_it_goes(&mut self, path: &str, now: u64, told: &mut Told) {
        let done = self.transact(told, |model, changes| {
            let children = model.children(path).len();
            let node = model.node_mut(path)?;
            node.look_at = None;
            let goes = match node.kind {
                Kind::Ttl(millis) => children == 0 && (node.modified + millis) * 1000 <= now.cast_signed(),
                _ => children == 0,
            };
            if goes {
                model.count("nodes that went by themselves");
                return model.remove(path, now, changes);
            }
            model.note_look(path, now);
            Ok(())
        });
        debug_assert!(done.is_ok(), "it is there, and without children if it goes");
    }
}

/// The result of a step that failed.
pub fn failure(error: i32) -> Bytes {
    let mut out = Output::new();
    out.int(error);
    Bytes::from([header(opcode::ERROR, false, error), out.finish()].concat())
}

fn change(kind: Happening, path: &str, node: &Node) -> Change {
    Change { kind, path: path.to_owned(), acl: node.acl.clone() }
}

fn expect(version: i32, expected: i32) -> Result<(), Code> {
    if expected == -1 || expected == version { Ok(()) } else { Err(Code::BadVersion) }
}

fn millis(now: u64) -> i64 {
    (now / 1000).cast_signed()
}
