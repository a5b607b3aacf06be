//! What one operation tells those who watch, and how much that may be.

use crate::message::{Attachment, Notice};
use crate::proof::Carrier;
use std::collections::{BTreeMap, BTreeSet};
use troth_types::{ClientId, GroupId};

/// The most events of one operation for one session. A session for which
/// there are more is told none of them: its attachment ends, and its client connects anew and says what it watches.
pub const MAX_EVENTS: usize = 512;
/// The most events that one `setWatches` tells its session, of what it has missed: what Java's client puts into one such
/// request (128 KiB of paths) asks for no more, where paths have eight characters on average.
pub const MAX_MISSED: usize = 1 << 14;
/// The most work that telling of one operation is: for each watch that is looked at the bytes of the path and [`LOOK`]. A
/// transaction of several operations fails past it. Any other happens, and the attachments of those who watch it end from
/// there on.
pub const MAX_WORK: usize = 16 << 20;
/// What a watch that is looked at costs beside its path.
pub const LOOK: usize = 64;
/// What each entry of the node's list costs, and each identity of the session that watches, where it is looked whether that
/// may see the node.
pub const IDENTITY: usize = 64;

/// What is told when the operation happens.
#[derive(Debug)]
pub(crate) struct Events {
    /// The group. Who carried sessions in another is nobody here.
    group: GroupId,
    told: Vec<(ClientId, Notice)>,
    counts: BTreeMap<i64, usize>,
    over: BTreeSet<Attachment>,
    work: usize,
    /// Whether the operation does not happen where that is too much.
    gives_up: bool,
}

impl Events {
    pub(crate) fn of(group: GroupId) -> Self {
        Self {
            group,
            told: Vec::new(),
            counts: BTreeMap::new(),
            over: BTreeSet::new(),
            work: 0,
            gives_up: false,
        }
    }

    /// The group in which it is told.
    pub(crate) fn group(&self) -> GroupId {
        self.group
    }

    /// A watch of this path is looked at.
    pub(crate) fn look(&mut self, path: &str) {
        self.work = self.work.saturating_add(LOOK + path.len());
    }

    /// It is looked whether somebody with so many identities may see a node with a list of so many entries.
    pub(crate) fn compare(&mut self, identities: usize, entries: usize) {
        self.work = self.work.saturating_add(IDENTITY * (identities + entries));
    }

    /// Whether it was too much work already.
    pub(crate) fn is_spent(&self) -> bool {
        self.work > MAX_WORK
    }

    /// The operation does not happen where telling of it is too much work.
    pub(crate) fn give_up_when_spent(&mut self) {
        self.gives_up = true;
    }

    /// Whether it is known that the operation does not happen.
    pub(crate) fn is_given_up(&self) -> bool {
        self.gives_up && self.is_spent()
    }

    /// Whether a session may be told no more.
    pub(crate) fn are_all_that_hears(&self, session: i64) -> bool {
        self.counts.get(&session).is_some_and(|count| *count >= MAX_EVENTS)
    }

    pub(crate) fn tell(&mut self, carrier: Carrier, at: Attachment, notice: Notice) {
        *self.counts.entry(at.session).or_default() += 1;
        self.push(carrier, notice);
    }

    fn push(&mut self, carrier: Carrier, notice: Notice) {
        if carrier.group == self.group {
            self.told.push((carrier.gateway, notice));
        }
    }

    /// An attachment ended: that is all that is told of it. A part of what happened would pass for the whole of it, for the
    /// client says which transaction it saw last.
    pub(crate) fn end(&mut self, carrier: Carrier, at: Attachment) {
        self.over.insert(at);
        self.push(carrier, Notice::Over(at));
    }

    /// The operation happened.
    pub(crate) fn into_notices(self) -> impl Iterator<Item = (ClientId, Notice)> {
        let Self { told, over, .. } = self;
        told.into_iter().filter(move |(_, notice)| match notice {
            Notice::Fired { at, .. } => !over.contains(at),
            Notice::Over(_) => true,
        })
    }
}
