//! What a walk changes at the destination.

use super::side::Wrong;
use super::walk::{Extra, Read, Visit, Walk, below, differ, same};
use crate::failure::Failure;
use troth_zookeeper::Code;
use troth_zookeeper_client::Pending;
use troth_zookeeper_client::wire::Kind;

/// What was done to a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum What {
    Created,
    Data,
    Acl,
}

impl Walk<'_> {
    /// Writes what is not the same; what is left has the node on both sides.
    pub(super) async fn write(&mut self, read: Vec<Read>) -> Result<Vec<Read>, Failure> {
        let target = self.target;
        let mut sent: Vec<(usize, What, Result<Pending, Wrong>)> = Vec::new();
        let mut left: Vec<Option<Read>> = Vec::new();
        for node in read {
            let (at, path) = (left.len(), node.path.as_str());
            match &node.target {
                None => sent.push((at, What::Created, target.create(path, &node.source))),
                Some(_) if self.is_of_servers(path) => {}
                Some(there) if differ(node.source.stat.kind(), there.stat.kind()) => {
                    self.replace(node)?;
                    continue;
                }
                Some(there) => {
                    if there.data != node.source.data {
                        sent.push((at, What::Data, target.set_data(path, node.source.data.as_ref())));
                    }
                    if !same(&there.acl, &node.source.acl) {
                        sent.push((at, What::Acl, target.set_acl(path, &node.source.acl)));
                    }
                }
            }
            left.push(Some(node));
        }
        for (at, what, pending) in sent {
            let outcome = match pending {
                Ok(pending) => target.answer(pending).await?.1.map(drop),
                Err(wrong) => Err(wrong),
            };
            let tally = &mut *self.tally;
            let (count, words) = match what {
                What::Created => (&mut tally.created, "not created"),
                What::Data => (&mut tally.data, "its data were not written"),
                What::Acl => (&mut tally.acls, "its access control list was not written"),
            };
            match outcome {
                Ok(()) => *count += 1,
                Err(wrong) => {
                    // Nothing can be created below what is not there.
                    let node = if what == What::Created { left[at].take() } else { None };
                    let path = node.as_ref().or(left[at].as_ref()).map_or("", |node| node.path.as_str());
                    self.tally.problem(&target.at(path), format_args!("{words}: {wrong}"));
                }
            }
        }
        Ok(left.into_iter().flatten().collect())
    }

    /// An ephemeral node is another node: it goes with what is below it, and is made anew.
    fn replace(&mut self, node: Read) -> Result<(), Failure> {
        if self.extra != Extra::Delete || node.path == "/" {
            let path = self.target.at(&node.path);
            self.tally.problem(&path, format_args!("it is ephemeral there; --delete-extra replaces it"));
            return Ok(());
        }
        self.push(Visit::Node { path: node.path.clone(), there: false, deep: node.deep })?;
        self.push(Visit::Extra { path: node.path })
    }

    /// Raises the counters that are ready.
    pub(super) async fn raise(&mut self) -> Result<(), Failure> {
        let (target, visits) = (self.target, std::mem::take(&mut self.ready));
        let mut asked = Vec::new();
        for visit in visits {
            let Visit::Counter { path, creations } = visit else { continue };
            let pending = target.look_at(&path);
            asked.push((path, creations, pending));
        }
        let mut sent = Vec::new();
        for (path, creations, pending) in asked {
            match target.looked_at(pending).await? {
                Ok(Some(stat)) if stat.creations() < creations => {
                    let pending = target.continue_sequence(&path, creations);
                    sent.push((path, pending));
                }
                // Gone by itself, or by what is not ours; the comparison says so.
                Ok(_) => {}
                Err(wrong) => sent.push((path, Err(wrong))),
            }
        }
        for (path, pending) in sent {
            let outcome = match pending {
                Ok(pending) => target.answer(pending).await?.1.map(drop),
                Err(wrong) => Err(wrong),
            };
            match outcome {
                Ok(()) => self.tally.counters += 1,
                Err(wrong) if wrong.is(Code::NoNode) => {}
                Err(wrong) => {
                    let words = "the counter of its sequential children was not raised";
                    self.tally.problem(&target.at(&path), format_args!("{words}: {wrong}"));
                }
            }
        }
        Ok(())
    }

    /// Looks at what only the destination has.
    pub(super) async fn extras(&mut self, visits: Vec<Visit>) -> Result<(), Failure> {
        if self.applies() && self.extra != Extra::Delete {
            return Ok(());
        }
        let asked: Vec<(String, Pending)> =
            visits.iter().map(|visit| (visit.path().to_owned(), self.target.list(visit.path()))).collect();
        for (path, pending) in asked {
            let (names, stat) = match self.target.listed(pending).await? {
                Ok(listed) => listed,
                Err(wrong) if wrong.is(Code::NoNode) => continue,
                Err(wrong) => {
                    let path = self.target.at(&path);
                    self.tally.problem(&path, format_args!("only the destination has it, and: {wrong}"));
                    continue;
                }
            };
            if stat.kind() == Kind::Ephemeral {
                self.tally.live += 1;
                continue;
            }
            match (self.applies(), self.extra) {
                (true, _) => self.push(Visit::Remove { path: path.clone() })?,
                (false, Extra::Keep) => {
                    self.tally.kept += 1;
                    continue;
                }
                (false, _) => self.tally.difference(&self.target.at(&path), "only the destination has it"),
            }
            for name in names {
                self.push(Visit::Extra { path: below(&path, &name) })?;
            }
        }
        Ok(())
    }

    /// Removes some of it.
    pub(super) async fn removals(&mut self, visits: Vec<Visit>) -> Result<(), Failure> {
        let sent: Vec<(String, Result<Pending, Wrong>)> =
            visits.iter().map(|visit| (visit.path().to_owned(), self.target.delete(visit.path()))).collect();
        for (path, pending) in sent {
            let outcome = match pending {
                Ok(pending) => self.target.answer(pending).await?.1.map(drop),
                Err(wrong) => Err(wrong),
            };
            match outcome {
                Ok(()) => self.tally.removed += 1,
                Err(wrong) if wrong.is(Code::NoNode) => {}
                Err(wrong) => {
                    self.tally.problem(&self.target.at(&path), format_args!("not removed: {wrong}"))
                }
            }
        }
        Ok(())
    }
}
