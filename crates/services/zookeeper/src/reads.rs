//! What only reads, and the records of answers.

use crate::acl::{self, Id, perms};
use crate::jute::Output;
use crate::message::{Asked, MAX_SHOWN, Replied};
use crate::node::Node;
use crate::path::ROOT;
use crate::request::{self, Look, Request, looks_at_one};
use crate::sessions::Session;
use crate::store::beginning;
use crate::tree::{Done, MAX_LOOKED, data_of, find};
use crate::{Code, keys, opcode, path};
use bytes::Bytes;
use core::cell::Cell;
use troth_exec::StateView;

/// The most that several reads in one operation look at, as [`MAX_LOOKED`] has it: a frame has a thousand operations.
const MAX_LOOKED_TOGETHER: usize = 1 << 12;

/// Who reads, and how much was looked at for that: nodes, and entries of their lists.
#[derive(Debug)]
pub(crate) struct Reader<'a> {
    session: i64,
    who: &'a [Id],
    looked: Cell<usize>,
    /// Nodes that may still be counted.
    counts: Cell<usize>,
}

impl<'a> Reader<'a> {
    /// A session that has read nothing.
    pub(crate) fn of(session: &'a Session) -> Self {
        Self::counting(session, MAX_LOOKED)
    }

    /// The same, that counts no more than so many nodes.
    pub(crate) fn counting(session: &'a Session, most: usize) -> Self {
        Self { session: session.id, who: &session.who, looked: Cell::new(0), counts: Cell::new(most) }
    }

    /// How many nodes it may still count.
    pub(crate) fn counts(&self) -> usize {
        self.counts.get()
    }

    fn find(&self, view: &StateView<'_>, path: &str) -> Result<Node, Code> {
        path::check(path)?;
        let node = find(&mut &*view, path)?;
        self.looked.set(self.looked.get() + 1 + acl::looks_at(&node.acl, self.who));
        Ok(node)
    }

    /// Whether it has looked at no more than this.
    fn keeps_to(&self, most: usize) -> Result<(), Code> {
        if self.looked.get() > most { Err(Code::QuotaExceeded) } else { Ok(()) }
    }
}

fn readable(view: &StateView<'_>, path: &str, wanted: i32, reader: &Reader<'_>) -> Result<Node, Code> {
    let node = reader.find(view, path)?;
    if acl::permits(&node.acl, wanted, reader.who) { Ok(node) } else { Err(Code::NoAuth) }
}

/// Whether so many bytes are no more than what is shown at once.
fn bounded(bytes: usize) -> Result<(), Code> {
    if bytes > MAX_SHOWN { Err(Code::MarshallingError) } else { Ok(()) }
}

/// A vector of these, each behind this prefix. No more of them are looked at than are shown.
fn vector<'a>(
    prefix: &str,
    all: impl Iterator<Item = &'a [u8]>,
    most: usize,
    out: &mut Output,
) -> Result<(), Code> {
    let (mut names, mut bytes) = (Vec::new(), 4);
    for name in all {
        bytes += 4 + prefix.len() + name.len();
        bounded(bytes.saturating_add(MAX_SHOWN - most))?;
        names.push(name);
    }
    out.length(names.len());
    for name in names {
        out.length(prefix.len() + name.len()).raw(prefix.as_bytes()).raw(name);
    }
    Ok(())
}

/// The answer to a read.
pub(crate) fn look(view: &StateView<'_>, reader: &Reader<'_>, look: &Look) -> Result<Bytes, Code> {
    let shown = shown(view, reader, look, MAX_SHOWN)?;
    bounded(shown.len()).map(|()| shown)
}

/// The same, of which lists are no longer than so many bytes.
fn shown(view: &StateView<'_>, reader: &Reader<'_>, look: &Look, most: usize) -> Result<Bytes, Code> {
    let mut out = Output::new();
    match look {
        Look::Exists { path } => {
            reader.find(view, path)?.stat(&mut out);
        }
        Look::Data { path } => {
            let node = readable(view, path, perms::READ, reader)?;
            match data_of(&mut &*view, path, &node) {
                Some(data) => out.buffer(&data),
                None => out.int(-1),
            };
            node.stat(&mut out);
        }
        Look::Children { path, shows_stat } => {
            let node = readable(view, path, perms::READ, reader)?;
            // The root's own entry is the first of its children's, without a name.
            let names = beginning(view, &keys::children(path));
            vector("", names.filter(|name| !name.is_empty()), most, &mut out)?;
            if *shows_stat {
                node.stat(&mut out);
            }
        }
        Look::Acl { path } => {
            let node = readable(view, path, perms::READ | perms::ADMIN, reader)?;
            let shown = match acl::permits(&node.acl, perms::ADMIN, reader.who) {
                true => node.acl.clone(),
                false => acl::masked(&node.acl),
            };
            out.length(shown.len());
            for acl in &shown {
                acl.write(&mut out);
            }
            node.stat(&mut out);
        }
        Look::Ephemerals { prefix } => {
            let own = beginning(view, &keys::ephemeral(reader.session, prefix));
            vector(prefix, own, most, &mut out)?;
        }
        Look::Descendants { path } => {
            readable(view, path, perms::READ, reader)?;
            let mut counts = reader.counts.get();
            let below = descendants(view, path, &mut counts);
            reader.counts.set(counts);
            out.int(below?);
        }
        Look::Who => {
            out.length(reader.who.len());
            for id in reader.who {
                // A certificate's or a user's name is what others may see; a password's digest is not.
                let shown = match id.scheme.as_str() {
                    "digest" => id.id.split(':').next().unwrap_or_default(),
                    _ => &id.id,
                };
                out.text(&id.scheme).text(shown);
            }
        }
    }
    Ok(out.finish())
}

/// How many nodes there are below one. No more are counted than one operation looks at, and than still may be.
pub(crate) fn descendants(view: &StateView<'_>, path: &str, may_be: &mut usize) -> Result<i32, Code> {
    let own = usize::from(path == ROOT);
    let most = MAX_LOOKED.min(*may_be);
    let below = beginning(view, &keys::children(path)).chain(beginning(view, &keys::below_children(path)));
    let all = below.take(most + own + 1).count() - own;
    *may_be = may_be.saturating_sub(all);
    if all > most { Err(Code::QuotaExceeded) } else { Ok(i32::try_from(all).unwrap_or(i32::MAX)) }
}

/// The answer to several reads: each its own, or its own error. Where all together show or look at too much, there is none.
pub(crate) fn looks(view: &StateView<'_>, reader: &Reader<'_>, looks: &[Look]) -> Result<Bytes, Code> {
    let mut all = Vec::new();
    for one in looks {
        let code = match one {
            Look::Data { .. } => opcode::GET_DATA,
            _ => opcode::GET_CHILDREN,
        };
        let record = shown(view, reader, one, MAX_SHOWN - all.len());
        reader.keeps_to(MAX_LOOKED)?;
        match record {
            Ok(record) => {
                all.extend_from_slice(&header(code, false, 0));
                all.extend_from_slice(&record);
            }
            Err(Code::MarshallingError) => return Err(Code::MarshallingError),
            Err(why) => all.extend_from_slice(&failed(why.number())),
        }
        bounded(all.len())?;
    }
    all.extend_from_slice(&header(opcode::ERROR, true, -1));
    Ok(Bytes::from(all))
}

/// The answers to several requests of which each shows one node; none where they show or look at too much together.
pub(crate) fn each(view: &StateView<'_>, reader: &Reader<'_>, asked: &[Asked]) -> Result<Vec<Replied>, Code> {
    let (mut replies, mut bytes) = (Vec::with_capacity(asked.len()), 0);
    for Asked { code, body } in asked {
        let shown = match request::read(*code, body) {
            Ok(Request::Look { look, watch: false }) if looks_at_one(*code) => {
                shown(view, reader, &look, MAX_SHOWN)
            }
            Ok(_) => Err(Code::BadArguments),
            Err(why) => Err(why),
        };
        let reply = match shown {
            Ok(body) => Replied { error: 0, body },
            Err(why) => Replied { error: why.number(), body: Bytes::new() },
        };
        bytes += reply.body.len();
        bounded(bytes)?;
        reader.keeps_to(MAX_LOOKED_TOGETHER)?;
        replies.push(reply);
    }
    Ok(replies)
}

fn header(code: i32, done: bool, error: i32) -> Bytes {
    let mut out = Output::new();
    out.int(code).boolean(done).int(error);
    out.finish()
}

fn failed(error: i32) -> Bytes {
    let mut out = Output::new();
    out.int(opcode::ERROR).boolean(false).int(error).int(error);
    out.finish()
}

/// The record of what an operation did.
pub(crate) fn done(done: &Done) -> Bytes {
    match done {
        Done::Created { path, stat } => {
            let mut out = Output::new();
            out.text(path);
            Bytes::from([&out.finish()[..], stat.as_deref().unwrap_or_default()].concat())
        }
        Done::Set { stat } => stat.clone(),
        Done::Deleted | Done::Checked => Bytes::new(),
    }
}

/// The record of a transaction that happened.
pub(crate) fn all_done(all: &[(i32, Done)]) -> Bytes {
    let mut records = Vec::new();
    for (code, one) in all {
        records.extend_from_slice(&header(*code, false, 0));
        records.extend_from_slice(&done(one));
    }
    records.extend_from_slice(&header(opcode::ERROR, true, -1));
    Bytes::from(records)
}

/// The record of one that did not, for its operation of this number: what came before it is undone, what comes after was not
/// looked at.
pub(crate) fn none_done(operations: usize, at: usize, why: Code) -> Bytes {
    let mut records = Vec::new();
    for number in 0..operations {
        let error = match number.cmp(&at) {
            std::cmp::Ordering::Less => 0,
            std::cmp::Ordering::Equal => why.number(),
            std::cmp::Ordering::Greater => Code::RuntimeInconsistency.number(),
        };
        records.extend_from_slice(&failed(error));
    }
    records.extend_from_slice(&header(opcode::ERROR, true, -1));
    Bytes::from(records)
}
