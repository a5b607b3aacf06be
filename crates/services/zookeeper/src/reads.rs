//! What only reads, and the records of answers.

use crate::acl::{self, Id, perms};
use crate::jute::Output;
use crate::node::Node;
use crate::path::ROOT;
use crate::request::Look;
use crate::store::beginning;
use crate::tree::{Done, data_of, find};
use crate::{Code, keys, opcode, path};
use bytes::Bytes;
use troth_exec::StateView;

/// Who reads.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reader<'a> {
    pub(crate) session: i64,
    pub(crate) who: &'a [Id],
}

fn readable(view: &StateView<'_>, path: &str, wanted: i32, reader: &Reader<'_>) -> Result<Node, Code> {
    path::check(path)?;
    let node = find(&mut &*view, path)?;
    if acl::permits(&node.acl, wanted, reader.who) { Ok(node) } else { Err(Code::NoAuth) }
}

fn names(view: &StateView<'_>, path: &str, out: &mut Output) {
    // The root's own entry is the first of its children's, without a name.
    let all: Vec<&[u8]> = beginning(view, &keys::children(path))
        .map(|(name, _)| name)
        .filter(|name| !name.is_empty())
        .collect();
    out.length(all.len());
    for name in all {
        out.buffer(name);
    }
}

/// The answer to a read.
pub(crate) fn look(view: &StateView<'_>, reader: &Reader<'_>, look: &Look) -> Result<Bytes, Code> {
    let mut out = Output::new();
    match look {
        Look::Exists { path } => {
            path::check(path)?;
            find(&mut &*view, path)?.stat(&mut out);
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
            names(view, path, &mut out);
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
            let paths: Vec<Vec<u8>> = own.map(|(rest, _)| [prefix.as_bytes(), rest].concat()).collect();
            out.length(paths.len());
            for path in &paths {
                out.buffer(path);
            }
        }
        Look::Descendants { path } => {
            readable(view, path, perms::READ, reader)?;
            out.int(descendants(view, path));
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

fn descendants(view: &StateView<'_>, path: &str) -> i32 {
    let own = usize::from(path == ROOT);
    let children = beginning(view, &keys::children(path)).count() - own;
    let below = beginning(view, &keys::below_children(path)).count();
    i32::try_from(children + below).unwrap_or(i32::MAX)
}

/// The answer to several reads: each its own, or its own error.
pub(crate) fn looks(view: &StateView<'_>, reader: &Reader<'_>, looks: &[Look]) -> Bytes {
    let mut all = Vec::new();
    for one in looks {
        let code = match one {
            Look::Data { .. } => opcode::GET_DATA,
            _ => opcode::GET_CHILDREN,
        };
        match look(view, reader, one) {
            Ok(record) => {
                all.extend_from_slice(&header(code, false, 0));
                all.extend_from_slice(&record);
            }
            Err(why) => all.extend_from_slice(&failed(why.number())),
        }
    }
    all.extend_from_slice(&header(opcode::ERROR, true, -1));
    Bytes::from(all)
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
