//! An open file of a faulty disk.

use super::faulty::{Shared, lock};
use super::state::{Change, Dice, SYNC, State, killed};
use crate::{Disk, DiskError, DiskFile};

/// An open file of a [`FaultyDisk`](crate::FaultyDisk).
pub struct FaultyFile<D: Disk> {
    pub(super) state: Shared<D>,
    pub(super) node: u64,
    pub(super) name: String,
}

/// What a sync could not write is forgotten: it is still there to be read, and no later sync will write it.
fn forget_some<D: Disk>(state: &mut State<D>, node: u64) {
    let mut dice = Dice::new(state.calls);
    let is_of = |change: &Change| matches!(change, Change::Write { node: of, .. } if *of == node);
    state.pending.retain(|change| !(is_of(change) && dice.below(2) == 0));
}

impl<D: Disk> FaultyFile<D> {
    fn sync(&mut self) -> Result<(), DiskError> {
        let mut state = lock(&self.state);
        if state.call(SYNC)? {
            return Err(killed(SYNC));
        }
        state.syncs += 1;
        if let Some(left) = state.broken_sync {
            state.broken_sync = left.checked_sub(1).filter(|left| *left > 0);
            if left <= 1 {
                forget_some(&mut state, self.node);
                let source = std::io::Error::other("a sync that was to fail");
                return Err(DiskError::new("sync", &self.name, source));
            }
        }
        if state.late && state.capacity.is_some_and(|most| state.used() > most) {
            forget_some(&mut state, self.node);
            return Err(DiskError::Full { what: "sync", file: self.name.clone() });
        }
        state.settle_node(self.node)
    }
}

impl<D: Disk> DiskFile for FaultyFile<D> {
    fn len(&self) -> Result<u64, DiskError> {
        let mut state = lock(&self.state);
        if state.call("look at")? {
            return Err(killed("look at"));
        }
        Ok(state.nodes[&self.node].seen.len() as u64)
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<usize, DiskError> {
        let mut state = lock(&self.state);
        if state.call("read")? {
            return Err(killed("read"));
        }
        let seen = &state.nodes[&self.node].seen;
        let start = seen.len().min(usize::try_from(offset).unwrap_or(usize::MAX));
        let count = buffer.len().min(seen.len() - start);
        buffer[..count].copy_from_slice(&seen[start..start + count]);
        Ok(count)
    }

    fn write_at(&mut self, offset: u64, bytes: &[u8]) -> Result<(), DiskError> {
        let mut state = lock(&self.state);
        let crash = state.call("write")?;
        state.writes += 1;
        state.write(self.node, &self.name, offset, bytes)?;
        if crash { Err(killed("write")) } else { Ok(()) }
    }

    fn reserve(&mut self, from: u64, to: u64) -> Result<(), DiskError> {
        let mut state = lock(&self.state);
        let crash = state.call("make room in")?;
        let zeros = vec![0; to.saturating_sub(from) as usize];
        state.write(self.node, &self.name, from, &zeros)?;
        if crash { Err(killed("make room in")) } else { Ok(()) }
    }

    fn set_len(&mut self, len: u64) -> Result<(), DiskError> {
        let mut state = lock(&self.state);
        let crash = state.call("cut")?;
        let node = self.node;
        let seen = &mut state.nodes.get_mut(&node).expect("an open file has a node").seen;
        seen.resize(len as usize, 0);
        state.pending.push(Change::SetLen { node, len });
        if crash { Err(killed("cut")) } else { Ok(()) }
    }

    fn sync_data(&mut self) -> Result<(), DiskError> {
        self.sync()
    }

    fn sync_all(&mut self) -> Result<(), DiskError> {
        self.sync()
    }
}
