//! What a faulty disk knows: the files as this process sees them, and what of them would survive.

use super::orders::OrdersFile;
use crate::{Disk, DiskError, DiskFile};
use std::collections::BTreeMap;
use std::io;

/// Disks tear writes at multiples of this many bytes of a file, and anywhere at the end of one.
const SECTOR: usize = 512;

/// What a kill leaves of what was not synced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tear {
    /// Nothing of it.
    Nothing,
    /// All of it, as after the death of the process alone.
    Everything,
    /// Exactly its first so many bytes, in the order of the calls; a call that writes no bytes counts as one.
    Prefix(u64),
    /// Each call wholly, in part, or not at all, as the seed says.
    Random(u64),
}

/// What a sync says that it does.
pub(super) const SYNC: &str = "sync";

/// Random numbers: splitmix64, enough to choose what is lost.
pub(super) struct Dice(u64);

impl Dice {
    pub(super) fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// A number below `bound`, which must not be 0.
    pub(super) fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % bound
    }
}

/// A change that no sync has made durable.
#[derive(Clone, Debug)]
pub(super) enum Change {
    Write { node: u64, offset: u64, bytes: Vec<u8> },
    SetLen { node: u64, len: u64 },
    Create { node: u64, name: String },
    Rename { from: String, to: String },
    Remove { name: String },
}

impl Change {
    fn node(&self) -> Option<u64> {
        match self {
            Self::Write { node, .. } | Self::SetLen { node, .. } => Some(*node),
            _ => None,
        }
    }
}

/// A file, with or without a name.
pub(super) struct Node<F> {
    /// The file of the disk below, which holds what is durable.
    pub(super) below: F,
    /// What this process sees.
    pub(super) seen: Vec<u8>,
}

pub(super) struct State<D: Disk> {
    pub(super) disk: D,
    pub(super) nodes: BTreeMap<u64, Node<D::File>>,
    pub(super) names: BTreeMap<String, u64>,
    /// The names on the disk below, with the files they stand for.
    pub(super) durable: BTreeMap<String, u64>,
    pub(super) pending: Vec<Change>,
    pub(super) next_node: u64,
    pub(super) calls: u64,
    pub(super) writes: u64,
    pub(super) syncs: u64,
    pub(super) crash_at: Option<u64>,
    pub(super) dead: bool,
    /// Bytes that all files together may have.
    pub(super) capacity: Option<u64>,
    /// Whether a lack of space shows only at the sync, as where blocks are chosen late.
    pub(super) late: bool,
    /// Whether no file can be removed for want of space.
    pub(super) keeps: bool,
    /// Whether a write takes space though it lengthens no file.
    pub(super) copies: bool,
    /// Which sync is to fail, counted from now.
    pub(super) broken_sync: Option<u64>,
    /// Where this process is told what to do to its disk.
    pub(super) orders: Option<OrdersFile>,
    /// Syncs since it was told to die.
    pub(super) dying: u64,
}

/// The name on the disk below of a file whose name is not durable yet.
pub(super) fn hidden(node: u64) -> String {
    format!("faulty-{node}")
}

pub(super) fn killed(what: &'static str) -> DiskError {
    DiskError::new(what, "the disk", io::Error::other("this disk was killed"))
}

impl<D: Disk> State<D> {
    /// Counts a call; whether the crash comes with it. A call that changes something has then been
    /// handed to the disk, which may have done it or not.
    pub(super) fn call(&mut self, what: &'static str) -> Result<bool, DiskError> {
        if self.dead {
            return Err(killed(what));
        }
        self.obey(what == SYNC);
        self.calls += 1;
        self.dead = self.crash_at.is_some_and(|at| self.calls >= at);
        Ok(self.dead)
    }

    /// Does what it is told. Where that is to die at this sync, the process ends here, and nothing of it
    /// runs between the loss and the end but what other threads do with what is durable already: this lock
    /// is held, and no sync succeeds any more.
    fn obey(&mut self, is_sync: bool) {
        let Some(orders) = self.orders.as_mut().map(OrdersFile::read) else { return };
        (self.capacity, self.copies) = (orders.capacity, true);
        let Some(death) = orders.death else { return };
        self.dying += u64::from(is_sync);
        if self.dying >= death.at_sync {
            // Where that fails too, less is left: any part may be lost.
            drop(self.kill(Tear::Random(death.seed)));
            std::process::abort();
        }
    }

    pub(super) fn used(&self) -> u64 {
        let named = self.names.values().filter_map(|node| self.nodes.get(node));
        named.map(|node| node.seen.len() as u64).sum()
    }

    /// Makes contents of one file durable.
    pub(super) fn settle_node(&mut self, node: u64) -> Result<(), DiskError> {
        let (mine, rest) =
            std::mem::take(&mut self.pending).into_iter().partition(|change| change.node() == Some(node));
        self.pending = rest;
        let mine: Vec<Change> = mine;
        mine.into_iter().try_for_each(|change| self.settle(change))
    }

    /// Makes names durable.
    pub(super) fn settle_names(&mut self) -> Result<(), DiskError> {
        let (names, rest) =
            std::mem::take(&mut self.pending).into_iter().partition(|change| change.node().is_none());
        self.pending = rest;
        let names: Vec<Change> = names;
        names.into_iter().try_for_each(|change| self.settle(change))
    }

    /// Does one change to the disk below.
    fn settle(&mut self, change: Change) -> Result<(), DiskError> {
        match change {
            Change::Write { node, offset, bytes } => match self.nodes.get_mut(&node) {
                Some(node) => node.below.write_at(offset, &bytes),
                None => Ok(()),
            },
            Change::SetLen { node, len } => match self.nodes.get_mut(&node) {
                Some(node) => node.below.set_len(len),
                None => Ok(()),
            },
            Change::Create { node, name } => {
                self.disk.rename(&hidden(node), &name)?;
                self.durable.insert(name, node);
                Ok(())
            }
            // A change of a name that never became durable has nothing to act on.
            Change::Rename { from, to } => match self.durable.remove(&from) {
                Some(node) => {
                    self.durable.insert(to.clone(), node);
                    self.disk.rename(&from, &to)
                }
                None => Ok(()),
            },
            Change::Remove { name } => match self.durable.remove(&name) {
                Some(node) => {
                    if !self.names.values().any(|named| *named == node)
                        && let Some(node) = self.nodes.get_mut(&node)
                    {
                        node.seen = Vec::new();
                    }
                    self.disk.remove(&name)
                }
                None => Ok(()),
            },
        }
    }

    /// Leaves on the disk below what a kill leaves.
    pub(super) fn kill(&mut self, tear: Tear) -> Result<(), DiskError> {
        self.dead = true;
        let changes = std::mem::take(&mut self.pending);
        let mut dice = Dice::new(if let Tear::Random(seed) = tear { seed } else { 0 });
        // Some kills leave nearly everything, some nearly nothing.
        let keen = dice.below(5);
        let mut budget = if let Tear::Prefix(bytes) = tear { bytes } else { u64::MAX };
        for change in changes {
            let pieces = match tear {
                Tear::Nothing => Vec::new(),
                Tear::Everything => vec![change],
                Tear::Prefix(_) => first_bytes(change, &mut budget),
                Tear::Random(_) => torn(change, keen, &mut dice),
            };
            pieces.into_iter().try_for_each(|piece| self.settle(piece))?;
        }
        let named: Vec<u64> = self.durable.values().copied().collect();
        for node in self.nodes.keys().filter(|node| !named.contains(node)) {
            // Files whose name never became durable, and files removed while open, are gone.
            if self.disk.open(&hidden(*node)).is_ok() {
                self.disk.remove(&hidden(*node))?;
            }
        }
        Ok(())
    }

    /// How many bytes, as [`Tear::Prefix`] counts them, are not durable.
    pub(super) fn unsynced(&self) -> u64 {
        self.pending.iter().map(cost).sum()
    }
}

fn cost(change: &Change) -> u64 {
    if let Change::Write { bytes, .. } = change { bytes.len().max(1) as u64 } else { 1 }
}

fn first_bytes(change: Change, budget: &mut u64) -> Vec<Change> {
    let cost = cost(&change);
    let spent = cost.min(*budget);
    *budget -= spent;
    match change {
        whole if spent == cost => vec![whole],
        Change::Write { node, offset, mut bytes } if spent > 0 => {
            bytes.truncate(spent as usize);
            vec![Change::Write { node, offset, bytes }]
        }
        _ => Vec::new(),
    }
}

fn torn(change: Change, keen: u64, dice: &mut Dice) -> Vec<Change> {
    if dice.below(5) < keen {
        return vec![change];
    }
    let Change::Write { node, offset, bytes } = change else {
        return if dice.below(2) == 0 { vec![change] } else { Vec::new() };
    };
    match dice.below(3) {
        0 => Vec::new(),
        1 => {
            let mut left = dice.below(bytes.len() as u64 + 1);
            first_bytes(Change::Write { node, offset, bytes }, &mut left)
        }
        _ => {
            let mut pieces = Vec::new();
            let mut start = 0;
            while start < bytes.len() {
                let in_sector = (offset as usize + start) % SECTOR;
                let end = bytes.len().min(start + SECTOR - in_sector);
                if dice.below(2) == 0 {
                    let offset = offset + start as u64;
                    pieces.push(Change::Write { node, offset, bytes: bytes[start..end].to_vec() });
                }
                start = end;
            }
            pieces
        }
    }
}
