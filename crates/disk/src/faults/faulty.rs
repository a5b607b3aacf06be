//! A disk that keeps in memory what was not synced, loses part of it at a kill, runs out of space and
//! crashes when it is told to.

use super::memory::{exists, missing, overwrite};
use super::orders::OrdersFile;
use super::state::{Change, Node, SYNC, State, Tear, hidden, killed};
use crate::real::check_name;
use crate::{Disk, DiskError, DiskFile, FaultyFile};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

pub(super) type Shared<D> = Arc<Mutex<State<D>>>;

pub(super) fn lock<D: Disk>(state: &Shared<D>) -> MutexGuard<'_, State<D>> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A disk over another one, to which only what is synced is written. Clones are the same disk.
///
/// A process that dies without [`FaultyDisk::kill`] loses all that was not synced: the harshest crash.
pub struct FaultyDisk<D: Disk> {
    state: Shared<D>,
}

impl<D: Disk> Clone for FaultyDisk<D> {
    fn clone(&self) -> Self {
        Self { state: Arc::clone(&self.state) }
    }
}

impl<D: Disk> FaultyDisk<D> {
    /// A disk that holds what `disk` holds.
    pub fn new(disk: D) -> Result<Self, DiskError> {
        let mut nodes = BTreeMap::new();
        let mut names = BTreeMap::new();
        for (node, name) in disk.list()?.into_iter().enumerate() {
            if name.starts_with("faulty-") {
                // The process died before that file had a durable name.
                disk.remove(&name)?;
                continue;
            }
            let below = disk.open(&name)?;
            let mut seen = vec![0; below.len()? as usize];
            below.read_at(0, &mut seen)?;
            nodes.insert(node as u64, Node { below, seen });
            names.insert(name, node as u64);
        }
        let state = State {
            disk,
            next_node: nodes.keys().next_back().map_or(0, |last| last + 1),
            nodes,
            durable: names.clone(),
            names,
            pending: Vec::new(),
            calls: 0,
            writes: 0,
            syncs: 0,
            crash_at: None,
            dead: false,
            capacity: None,
            late: false,
            keeps: false,
            copies: false,
            broken_sync: None,
            orders: None,
            dying: 0,
        };
        Ok(Self { state: Arc::new(Mutex::new(state)) })
    }

    /// Crashes at the `n`-th call from the start, counted from 1: that call and all later ones fail, and what
    /// it was to change is among what [`FaultyDisk::kill`] may keep or lose.
    pub fn crash_at(&self, n: u64) {
        lock(&self.state).crash_at = Some(n);
    }

    /// How many calls there were.
    #[must_use]
    pub fn calls(&self) -> u64 {
        lock(&self.state).calls
    }

    /// How many writes to files there were, the making of room not counted.
    #[must_use]
    pub fn writes(&self) -> u64 {
        lock(&self.state).writes
    }

    /// How many syncs of files there were.
    #[must_use]
    pub fn syncs(&self) -> u64 {
        lock(&self.state).syncs
    }

    /// Bytes that all files together have.
    #[must_use]
    pub fn used(&self) -> u64 {
        lock(&self.state).used()
    }

    /// Whether the crash has come.
    #[must_use]
    pub fn is_dead(&self) -> bool {
        lock(&self.state).dead
    }

    /// How much is not durable, in the measure of [`Tear::Prefix`].
    #[must_use]
    pub fn unsynced(&self) -> u64 {
        lock(&self.state).unsynced()
    }

    /// Bounds the bytes that all files together may have; `None` is no bound. With `late` a file grows
    /// past the bound and its sync fails, losing at once some of what it was to write.
    pub fn set_capacity(&self, bytes: Option<u64>, late: bool) {
        let mut state = lock(&self.state);
        state.capacity = bytes;
        state.late = late;
    }

    /// Says from now on whether files can be removed: a full file system that copies what it changes has no space for that
    /// either.
    pub fn set_removable(&self, removable: bool) {
        lock(&self.state).keeps = !removable;
    }

    /// Does from now on what a file says, which is read again at each call: has so much space, and dies
    /// at a sync, with the whole process.
    pub fn obey(&self, orders: OrdersFile) {
        lock(&self.state).orders = Some(orders);
    }

    /// Lets the `n`-th sync of a file from now fail, counted from 1, as a broken disk does.
    pub fn break_sync(&self, n: u64) {
        lock(&self.state).broken_sync = Some(n);
    }

    /// Kills the disk and leaves on the disk below what was synced and, of the rest, what `tear` says.
    /// Every later call fails.
    pub fn kill(&self, tear: Tear) -> Result<(), DiskError> {
        lock(&self.state).kill(tear)
    }

    /// Lets the process start again on a machine that went on: what was not synced is still there to be
    /// read, and still to be lost.
    pub fn restart(&self) {
        let mut state = lock(&self.state);
        state.dead = false;
        state.crash_at = None;
    }

    fn named(&self, change: Change, what: &'static str) -> Result<(), DiskError> {
        let mut state = lock(&self.state);
        let crash = state.call(what)?;
        match &change {
            Change::Rename { from, to } => {
                let node = state.names.remove(from).ok_or_else(|| missing(what, from))?;
                state.names.insert(to.clone(), node);
            }
            Change::Remove { name } => {
                state.names.remove(name).ok_or_else(|| missing(what, name))?;
            }
            _ => {}
        }
        state.pending.push(change);
        if crash { Err(killed(what)) } else { Ok(()) }
    }
}

impl<D: Disk> Disk for FaultyDisk<D> {
    type File = FaultyFile<D>;

    fn list(&self) -> Result<Vec<String>, DiskError> {
        let mut state = lock(&self.state);
        if state.call("list")? {
            return Err(killed("list"));
        }
        Ok(state.names.keys().cloned().collect())
    }

    fn create(&self, name: &str) -> Result<FaultyFile<D>, DiskError> {
        check_name(name)?;
        let mut state = lock(&self.state);
        let crash = state.call("create")?;
        if state.names.contains_key(name) {
            return Err(exists(name));
        }
        let node = state.next_node;
        state.next_node += 1;
        let below = state.disk.create(&hidden(node))?;
        state.nodes.insert(node, Node { below, seen: Vec::new() });
        state.names.insert(name.to_string(), node);
        state.pending.push(Change::Create { node, name: name.to_string() });
        if crash {
            return Err(killed("create"));
        }
        Ok(FaultyFile { state: Arc::clone(&self.state), node, name: name.to_string() })
    }

    fn open(&self, name: &str) -> Result<FaultyFile<D>, DiskError> {
        let mut state = lock(&self.state);
        if state.call("open")? {
            return Err(killed("open"));
        }
        let node = *state.names.get(name).ok_or_else(|| missing("open", name))?;
        Ok(FaultyFile { state: Arc::clone(&self.state), node, name: name.to_string() })
    }

    fn rename(&self, from: &str, to: &str) -> Result<(), DiskError> {
        check_name(to)?;
        self.named(Change::Rename { from: from.to_string(), to: to.to_string() }, "rename")
    }

    fn remove(&self, name: &str) -> Result<(), DiskError> {
        if lock(&self.state).keeps {
            return Err(DiskError::Full { what: "remove", file: name.to_string() });
        }
        self.named(Change::Remove { name: name.to_string() }, "remove")
    }

    fn sync_directory(&self) -> Result<(), DiskError> {
        let mut state = lock(&self.state);
        if state.call(SYNC)? {
            return Err(killed(SYNC));
        }
        state.settle_names()
    }
}

impl<D: Disk> State<D> {
    /// Writes as far as there is space.
    pub(super) fn write(
        &mut self,
        node: u64,
        name: &str,
        offset: u64,
        bytes: &[u8],
    ) -> Result<(), DiskError> {
        let len = self.nodes[&node].seen.len() as u64;
        let grows = (offset + bytes.len() as u64).saturating_sub(len);
        let left = self.capacity.map_or(u64::MAX, |most| most.saturating_sub(self.used()));
        let takes = if self.copies { bytes.len() as u64 } else { grows };
        let fits = if self.late || takes <= left {
            bytes.len()
        } else {
            bytes.len() - (takes - left).min(bytes.len() as u64) as usize
        };
        if fits > 0 {
            let node_entry = self.nodes.get_mut(&node).expect("an open file has a node");
            overwrite(&mut node_entry.seen, offset, &bytes[..fits]);
            self.pending.push(Change::Write { node, offset, bytes: bytes[..fits].to_vec() });
        }
        if fits < bytes.len() {
            return Err(DiskError::Full { what: "write", file: name.to_string() });
        }
        Ok(())
    }
}
