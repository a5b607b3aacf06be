//! Walks through both trees at once: brings the destination to what the source is, or only looks whether it is.

use super::place::Told;
use super::side::{Copy, Side};
use super::tally::Tally;
use super::work::Plan;
use crate::failure::{Failure, NOT_DONE};
use std::collections::BTreeSet;
use troth_zookeeper::acl::Acl;
use troth_zookeeper::{Code, MAX_PATH};
use troth_zookeeper_client::wire::{Kind, Stat};

/// Nodes that are on their way together.
pub(super) const AT_ONCE: usize = 64;
/// Bytes of paths that may wait to be looked at: of a tree that has them there is no end.
const MOST_WAITING: usize = 256 << 20;
/// What a path that waits takes beside its own bytes.
const AROUND: usize = 64;
/// Characters of a SHA-1 digest in base 64.
const SHA1: usize = 28;

/// What is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    /// The destination becomes what the source is.
    Apply,
    /// It is looked what is not the same.
    Look,
    /// The same, where it counts. What goes by itself may have gone if an import of this run brought it or found it there:
    /// if the source had it before, as of this transaction.
    Verify { imported: Option<i64> },
}

/// What is done with nodes that only the destination has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Extra {
    /// They are differences.
    Report,
    Delete,
    Keep,
}

/// What waits to be looked at.
pub(super) enum Visit {
    /// A node of the source, which the destination may have too; with what is below it, or alone.
    Node { path: String, there: bool, deep: bool },
    /// All below it is there: the counter of its children follows.
    Counter { path: String, creations: i32 },
    /// Only the destination has it.
    Extra { path: String },
    /// It has no children any more.
    Remove { path: String },
}

impl Visit {
    pub(super) fn path(&self) -> &str {
        match self {
            Self::Node { path, .. }
            | Self::Counter { path, .. }
            | Self::Extra { path }
            | Self::Remove { path } => path,
        }
    }
}

/// A walk.
pub(super) struct Walk<'a> {
    pub(super) source: &'a Side,
    pub(super) target: &'a Side,
    pub(super) mode: Mode,
    pub(super) extra: Extra,
    /// What nodes are that the source does not tell.
    pub(super) told: &'a [Told],
    /// Whether it goes through quotas, whose use is counted by the servers themselves.
    pub(super) quotas: bool,
    pub(super) tally: &'a mut Tally,
    stack: Vec<Visit>,
    waiting: usize,
    /// Counters that may be raised: all below their nodes is there.
    pub(super) ready: Vec<Visit>,
}

/// A node that was read on both sides.
pub(super) struct Read {
    pub(super) path: String,
    pub(super) deep: bool,
    pub(super) source: Copy,
    pub(super) target: Option<Copy>,
}

pub(super) fn below(parent: &str, name: &str) -> String {
    if parent == "/" { format!("/{name}") } else { format!("{parent}/{name}") }
}

/// Whether this is a place that the servers keep for themselves.
pub(super) fn is_systems(path: &str) -> bool {
    path == "/zookeeper" || path.starts_with("/zookeeper/")
}

fn is_name(name: &str) -> bool {
    !matches!(name, "" | "." | "..") && !name.contains(['/', '\0'])
}

/// The same entries, in whatever order.
pub(super) fn same(one: &[Acl], other: &[Acl]) -> bool {
    let set = |list: &[Acl]| list.iter().cloned().collect::<BTreeSet<_>>();
    one == other || set(one) == set(other)
}

/// Whether nodes are of different kinds for all that is known: both sides tell of a container, and of a node with a time to
/// live, what they tell of one that stays.
pub(super) fn differ(source: Kind, target: Kind) -> bool {
    (source == Kind::Ephemeral) != (target == Kind::Ephemeral)
}

/// Whether the server hid a digest from who may not change the list.
fn is_masked(acl: &Acl) -> bool {
    acl.id.scheme == "digest" && acl.id.id.split_once(':').is_some_and(|(_, digest)| digest == "x")
}

fn is_unprovable(acl: &Acl) -> bool {
    acl.id.scheme == "digest" && acl.id.id.split_once(':').is_some_and(|(_, digest)| digest.len() != SHA1)
}

impl<'a> Walk<'a> {
    pub(super) fn new(
        (source, target): (&'a Side, &'a Side),
        mode: Mode,
        plan: &'a Plan,
        quotas: bool,
        tally: &'a mut Tally,
    ) -> Self {
        let (stack, ready) = (Vec::new(), Vec::new());
        let (extra, told) = (plan.extra, plan.told.as_slice());
        Self { source, target, mode, extra, told, quotas, tally, stack, waiting: 0, ready }
    }

    pub(super) fn applies(&self) -> bool {
        self.mode == Mode::Apply
    }

    /// Has this wait; ends the walk where too much does, before there is more of it.
    pub(super) fn push(&mut self, visit: Visit) -> Result<(), Failure> {
        self.put_back(visit);
        if self.waiting <= MOST_WAITING {
            return Ok(());
        }
        let problem =
            format!("the {} has more nodes side by side than can be kept in mind", self.source.name);
        Err(Failure::new(NOT_DONE, problem))
    }

    fn put_back(&mut self, visit: Visit) {
        self.waiting += visit.path().len() + AROUND;
        self.stack.push(visit);
    }

    /// A node, and what is below it.
    pub(super) fn begin(&mut self, path: &str, there: bool, deep: bool) -> Result<(), Failure> {
        self.push(Visit::Node { path: path.to_owned(), there, deep })
    }

    /// All that is below a node which the destination alone has, but not the node.
    pub(super) async fn begin_extra(&mut self, path: &str) -> Result<(), Failure> {
        match self.target.listed(self.target.list(path)).await? {
            Ok((names, _)) => self.children(path, Vec::new(), &names.into_iter().collect()),
            Err(wrong) => {
                let path = self.target.at(path);
                self.tally.problem(&path, format_args!("its children there were not listed: {wrong}"));
                Ok(())
            }
        }
    }

    fn pop_if(&mut self, wanted: impl FnOnce(&Visit) -> bool) -> Option<Visit> {
        let visit = self.stack.pop_if(|visit| wanted(visit))?;
        self.waiting -= visit.path().len() + AROUND;
        Some(visit)
    }

    /// Takes from the stack what may go together: visits of one kind. Nodes are taken past counters, which stay and so wait
    /// for what will be found below those nodes; a counter on the top waits for nothing more.
    fn take(&mut self) -> Vec<Visit> {
        let kind = |visit: &Visit| std::mem::discriminant(visit);
        let Some(first) = self.pop_if(|_| true) else { return Vec::new() };
        let of = kind(&first);
        let passes = matches!(first, Visit::Node { .. });
        let (mut taken, mut passed) = (vec![first], Vec::new());
        while taken.len() < AT_ONCE
            && let Some(visit) =
                self.pop_if(|next| kind(next) == of || passes && matches!(next, Visit::Counter { .. }))
        {
            if kind(&visit) == of { taken.push(visit) } else { passed.push(visit) }
        }
        passed.into_iter().rev().for_each(|visit| self.put_back(visit));
        taken
    }

    /// Goes on until nothing waits; `between` is called now and then.
    pub(super) async fn run(&mut self, mut between: impl FnMut()) -> Result<(), Failure> {
        loop {
            let visits = self.take();
            match visits.first() {
                None => return self.raise().await,
                Some(Visit::Node { .. }) => self.nodes(visits).await?,
                Some(Visit::Counter { .. }) => {
                    self.ready.extend(visits);
                    if self.ready.len() >= AT_ONCE {
                        self.raise().await?;
                    }
                }
                Some(Visit::Extra { .. }) => self.extras(visits).await?,
                Some(Visit::Remove { .. }) => self.removals(visits).await?,
            }
            self.tally.progress();
            between();
        }
    }

    async fn nodes(&mut self, visits: Vec<Visit>) -> Result<(), Failure> {
        let read = self.read(visits).await?;
        if self.applies() {
            let read = self.write(read).await?;
            return self.descend(read).await;
        }
        self.compare(&read);
        self.descend(read).await
    }

    /// Reads nodes on both sides. Those that are none of the source's to carry go no further.
    async fn read(&mut self, visits: Vec<Visit>) -> Result<Vec<Read>, Failure> {
        let (source, target) = (self.source, self.target);
        let mut asked = Vec::new();
        for visit in visits {
            let Visit::Node { path, there, deep } = visit else { continue };
            // What the group has there is its own, and compared with nothing.
            let there = there && !self.is_kept(&path);
            let own = source.fetch(&path);
            let other = there.then(|| target.fetch(&path));
            asked.push((path, deep, own, other));
        }
        let mut read = Vec::new();
        for (path, deep, own, other) in asked {
            let (own, there) = (source.fetched(own).await?, other.is_some());
            let other = match other {
                None => Ok(None),
                Some(coming) => target.fetched(coming).await?.map(Some),
            };
            let copy = match own {
                Ok(copy) => copy,
                // It went since its name was read.
                Err(wrong) if wrong.is(Code::NoNode) => {
                    if there {
                        self.push(Visit::Extra { path })?;
                    }
                    continue;
                }
                Err(wrong) => {
                    self.tally.problem(&source.at(&path), format_args!("not read from the source: {wrong}"));
                    continue;
                }
            };
            let mut copy = copy;
            if copy.stat.kind() == Kind::Persistent
                && let Some(owner) = self.told.iter().find_map(|told| told.owner(&path))
            {
                copy.stat.owner = owner;
            }
            if copy.stat.kind() == Kind::Ephemeral {
                self.tally.ephemerals += u64::from(deep);
                if there {
                    self.push(Visit::Extra { path })?;
                }
                continue;
            }
            if self.is_kept(&path) {
                let wrong = "the group keeps this place for itself; with what is below, it cannot come";
                self.tally.problem(&source.at(&path), format_args!("{wrong}"));
                continue;
            }
            if deep {
                self.tally.nodes += 1;
                self.tally.bytes += copy.data.as_ref().map_or(0, |data| data.len() as u64);
                self.tally.unprovable += copy.acl.iter().filter(|acl| is_unprovable(acl)).count() as u64;
            }
            if copy.acl.iter().any(is_masked) {
                let wrong = "its access control list is shown without digests; whoever reads it needs ADMIN, or be the superuser \
                             (--from-digest)";
                self.tally.problem(&source.at(&path), format_args!("{wrong}"));
                continue;
            }
            match other {
                Ok(target) => read.push(Read { path, deep, source: copy, target }),
                Err(wrong) if wrong.is(Code::NoNode) => {
                    read.push(Read { path, deep, source: copy, target: None });
                }
                Err(wrong) => {
                    self.tally
                        .problem(&target.at(&path), format_args!("not read from the destination: {wrong}"));
                }
            }
        }
        Ok(read)
    }

    /// Whether the destination has a node of its own there: with a chroot the source may have one that is a client's.
    fn is_kept(&self, path: &str) -> bool {
        !self.quotas && is_systems(path)
    }

    /// Whether what a node holds is not compared: the quota's own root, and what the servers count.
    pub(super) fn is_of_servers(&self, path: &str) -> bool {
        self.quotas && (path == "/" || path.ends_with("/zookeeper_stats"))
    }

    /// Says what is not the same.
    fn compare(&mut self, read: &[Read]) {
        for Read { path, source, target, .. } in read {
            let shown = &self.target.at(path);
            let Some(target) = target else {
                // With children it goes nowhere; those that the source has besides are differences themselves.
                let goes = matches!(source.stat.kind(), Kind::Container | Kind::Ttl(_));
                let was_here =
                    matches!(self.mode, Mode::Verify { imported: Some(zxid) } if source.stat.created <= zxid);
                if was_here && goes {
                    self.tally.gone += 1;
                } else {
                    self.tally.difference(shown, "only the source has it");
                }
                continue;
            };
            if self.is_of_servers(path) {
                continue;
            }
            self.tally.told += u64::from(matches!(source.stat.kind(), Kind::Container | Kind::Ttl(_)));
            if differ(source.stat.kind(), target.stat.kind()) {
                self.tally.difference(shown, "one of them is ephemeral");
            }
            if source.data != target.data {
                self.tally.difference(shown, "its data are others");
            }
            if !same(&source.acl, &target.acl) {
                self.tally.difference(shown, "its access control list is another");
            }
            if !self.quotas && target.stat.creations() < source.stat.creations() {
                let what = "its next sequential child could get a name that the source has given already";
                self.tally.difference(shown, what);
            }
        }
    }

    /// What is below these nodes waits to be looked at.
    async fn descend(&mut self, read: Vec<Read>) -> Result<(), Failure> {
        let has = |stat: &Stat| stat.children > 0;
        let mut asked = Vec::new();
        for node in read {
            let own = (node.deep && has(&node.source.stat)).then(|| self.source.list(&node.path));
            let other = node.target.as_ref().filter(|there| node.deep && has(&there.stat));
            let other = other.map(|_| self.target.list(&node.path));
            asked.push((node, own, other));
        }
        for (node, own, other) in asked {
            let other = match other {
                None => Ok(Vec::new()),
                Some(pending) => self.target.listed(pending).await?.map(|(names, _)| names),
            };
            let own = match own {
                None => Ok((Vec::new(), node.source.stat)),
                Some(pending) => self.source.listed(pending).await?,
            };
            let path = node.path.as_str();
            let (names, stat) = match own {
                Ok(listed) => listed,
                // It goes, and what is below it at the destination is found by the next run.
                Err(wrong) if wrong.is(Code::NoNode) => continue,
                Err(wrong) => {
                    let path = self.source.at(path);
                    self.tally.problem(&path, format_args!("its children were not listed: {wrong}"));
                    continue;
                }
            };
            let other: BTreeSet<String> = match other {
                Ok(names) => names.into_iter().collect(),
                Err(wrong) if wrong.is(Code::NoNode) => BTreeSet::new(),
                Err(wrong) => {
                    let path = self.target.at(path);
                    self.tally.problem(&path, format_args!("its children there were not listed: {wrong}"));
                    continue;
                }
            };
            let creations = stat.creations().max(node.source.stat.creations());
            // Nobody created the servers' own node below the root.
            let created = stat.children.saturating_sub(i32::from(self.source.at(path) == "/"));
            if !self.quotas && creations < created {
                let wrong = "the counter of its sequential children is past 2^31-1 and cannot be told; names of children could be \
                             given once more";
                self.tally.problem(&self.source.at(path), format_args!("{wrong}"));
            } else if self.applies() && !self.quotas && creations > 0 {
                self.push(Visit::Counter { path: node.path.clone(), creations })?;
            }
            self.children(&node.path, names, &other)?;
        }
        Ok(())
    }

    fn children(&mut self, path: &str, names: Vec<String>, there: &BTreeSet<String>) -> Result<(), Failure> {
        // What either service keeps about itself is nobody's to carry.
        let is_own = |side: &Side, name: &str| !self.quotas && is_systems(&side.at(&below(path, name)));
        let own: BTreeSet<String> = names.into_iter().filter(|name| !is_own(self.source, name)).collect();
        let extra: Vec<&String> =
            there.iter().filter(|name| !is_own(self.target, name) && !own.contains(*name)).collect();
        for name in extra {
            self.push(Visit::Extra { path: below(path, name) })?;
        }
        for name in own {
            let child = below(path, &name);
            if !is_name(&name) || self.target.at(&child).len() > MAX_PATH {
                self.tally.problem(&self.source.at(&child), format_args!("no path that Troth takes"));
                continue;
            }
            let there = there.contains(&name);
            self.push(Visit::Node { path: child, there, deep: true })?;
        }
        Ok(())
    }
}
