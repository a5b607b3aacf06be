//! What the model answers to reads.

use super::Model;
use super::access::{check_path, may, user};
use super::request::Look;
use super::tree::{Node, failure, header};
use bytes::Bytes;
use troth_zookeeper::acl::{Id, perms};
use troth_zookeeper::jute::Output;
use troth_zookeeper::{Code, MAX_LOOKED, MAX_SHOWN, opcode};

fn list<T>(all: &[T], mut one: impl FnMut(&mut Output, &T)) -> Output {
    let mut out = Output::new();
    out.length(all.len());
    all.iter().for_each(|item| one(&mut out, item));
    out
}

fn together(parts: &[Bytes]) -> Bytes {
    Bytes::from(parts.concat())
}

impl Model {
    fn stat_of(&self, path: &str, node: &Node) -> Bytes {
        node.stat(self.children(path).len())
    }

    fn readable(&self, session: i64, path: &str, wanted: i32) -> Result<&Node, Code> {
        check_path(path)?;
        let node = self.node(path)?;
        may(&node.acl, wanted, self.who(session))?;
        Ok(node)
    }

    pub(super) fn look(&self, session: i64, look: &Look) -> Result<Bytes, Code> {
        let shown = self.shown(session, look)?;
        if shown.len() > MAX_SHOWN { Err(Code::MarshallingError) } else { Ok(shown) }
    }

    /// What a read looks at: a node, and the entries of its list.
    pub(super) fn looked_at(&self, look: &Look) -> usize {
        match look {
            Look::Exists(path)
            | Look::Data(path)
            | Look::Children { path, .. }
            | Look::Acl(path)
            | Look::Descendants(path) => match (check_path(path), self.node(path)) {
                (Ok(()), Ok(node)) => 1 + node.acl.len(),
                _ => 0,
            },
            Look::Ephemerals(_) | Look::Who => 0,
        }
    }

    pub(super) fn shown(&self, session: i64, look: &Look) -> Result<Bytes, Code> {
        Ok(match look {
            Look::Exists(path) => {
                check_path(path)?;
                self.stat_of(path, self.node(path)?)
            }
            Look::Data(path) => {
                let node = self.readable(session, path, perms::READ)?;
                let mut out = Output::new();
                out.buffer(&node.data);
                together(&[out.finish(), self.stat_of(path, node)])
            }
            Look::Children { path, wants_stat } => {
                let node = self.readable(session, path, perms::READ)?;
                let names: Vec<&str> =
                    self.children(path).iter().filter_map(|child| child.rsplit('/').next()).collect();
                let names = list(&names, |out, name| {
                    out.text(name);
                });
                let stat = if *wants_stat { self.stat_of(path, node) } else { Bytes::new() };
                together(&[names.finish(), stat])
            }
            Look::Acl(path) => {
                let node = self.readable(session, path, perms::READ | perms::ADMIN)?;
                let administers = may(&node.acl, perms::ADMIN, self.who(session)).is_ok();
                let entries = list(&node.acl, |out, acl| {
                    let hides = acl.id.scheme == "digest" && !administers && acl.id.id.contains(':');
                    let id = if hides { format!("{}:x", user(&acl.id.id)) } else { acl.id.id.clone() };
                    out.int(acl.perms).text(&acl.id.scheme).text(&id);
                });
                together(&[entries.finish(), self.stat_of(path, node)])
            }
            Look::Ephemerals(prefix) => {
                let own: Vec<&str> =
                    self.ephemerals(session).into_iter().filter(|path| path.starts_with(&**prefix)).collect();
                list(&own, |out, path| {
                    out.text(path);
                })
                .finish()
            }
            Look::Descendants(path) => {
                self.readable(session, path, perms::READ)?;
                let mut out = Output::new();
                out.int(i32::try_from(self.descendants(path)).map_err(|_| Code::SystemError)?);
                out.finish()
            }
            Look::Who => list(self.who(session), |out, Id { scheme, id }| {
                out.text(scheme).text(if scheme == "digest" { user(id) } else { id });
            })
            .finish(),
        })
    }

    pub(super) fn looks(&self, session: i64, looks: &[Look]) -> Result<Bytes, Code> {
        let one = |look: &Look| {
            let code = if matches!(look, Look::Data(_)) { opcode::GET_DATA } else { opcode::GET_CHILDREN };
            match self.look(session, look) {
                Ok(body) => together(&[header(code, false, 0), body]),
                Err(why) => failure(why.number()),
            }
        };
        let mut parts: Vec<Bytes> = looks.iter().map(one).collect();
        if looks.iter().map(|look| self.looked_at(look)).sum::<usize>() > MAX_LOOKED {
            return Err(Code::QuotaExceeded);
        }
        // Too much is too much together, and the last header is for nothing.
        let too_much = looks.iter().any(|look| self.look(session, look) == Err(Code::MarshallingError));
        if too_much || parts.iter().map(Bytes::len).sum::<usize>() > MAX_SHOWN {
            return Err(Code::MarshallingError);
        }
        parts.push(header(opcode::ERROR, true, -1));
        Ok(together(&parts))
    }
}
