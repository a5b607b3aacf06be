//! An open store file: the next record, and the next file.

use super::directory::{BootId, Directory, StoreFile};
use super::error::StoreError;
use super::format::{BLOCK, Base, Block, Header};
use super::record::{Kind, Record};
use super::subject::Subject;
use super::{Policy, SPENT, file_name, making};
use std::fmt;

/// Writes the records of one store.
pub(super) struct Recorder<D: Directory, S> {
    directory: D,
    file: D::File,
    header: Header,
    /// The boot of this run.
    boot: BootId,
    /// The slot that the next record goes to.
    next_slot: u32,
    /// The last state stored.
    last: S,
    block: Box<Block>,
    failed: bool,
}

impl<D: Directory, S: Subject> Recorder<D, S> {
    /// Goes on with an open file.
    pub(super) fn new(
        directory: D,
        file: D::File,
        header: Header,
        boot: BootId,
        next_slot: u32,
        last: S,
    ) -> Self {
        let block = Box::new([0; BLOCK]);
        Self { directory, file, header, boot, next_slot, last, block, failed: false }
    }

    pub(super) fn header(&self) -> &Header {
        &self.header
    }

    /// The generation of the present file.
    pub(super) fn generation(&self) -> u64 {
        self.header.generation
    }

    /// Slots of the present file that are free.
    pub(super) fn slots_left(&self) -> u32 {
        self.header.slots - self.next_slot
    }

    pub(super) fn is_full(&self) -> bool {
        self.slots_left() == 0
    }

    /// Does something of which it is unknown what it left if it fails, unless for want of space.
    pub(super) fn attempt<T>(
        &mut self,
        act: impl FnOnce(&mut Self) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        if self.failed {
            return Err(StoreError::Halted);
        }
        let done = act(self);
        self.failed = !matches!(done, Ok(_) | Err(StoreError::NoSpace { .. }));
        done
    }

    pub(super) fn sync_file(&mut self) -> Result<(), StoreError> {
        self.file.sync_data().map_err(StoreError::io("sync", &file_name::<S>(&self.header)))
    }

    pub(super) fn demand_next(&self, state: &S) -> Result<(), StoreError> {
        if state.identity() == self.header.identity && state.covers(&self.last) {
            return Ok(());
        }
        Err(StoreError::Contradiction { what: "a state that does not follow the last one" })
    }

    /// Writes the next record, durably where the policy says so.
    pub(super) fn append(&mut self, state: &S, kind: Kind) -> Result<(), StoreError> {
        let record = Record {
            generation: self.header.generation,
            index: self.header.index_of(self.next_slot).ok_or(SPENT)?,
            boot: self.boot,
            state: state.clone(),
            kind,
        };
        record.fill(self.header.layout, &mut self.block);
        let (block, offset) = (&self.block[..], self.header.slot_offset(self.next_slot));
        let written = match self.header.policy {
            Policy::Always => self.file.write_durably(block, offset),
            Policy::Interval | Policy::Memory => self.file.write_at(block, offset),
        };
        written.map_err(StoreError::io("write", &file_name::<S>(&self.header)))?;
        self.next_slot += 1;
        self.last = record.state;
        Ok(())
    }

    /// Goes on in a file of the next generation, which begins with `base` and whose first record is `state`.
    /// All is durable when this returns, whatever the policy: once in so many stores, and then no crash can
    /// leave a name without its content. Without space for it the store stays as it is.
    pub(super) fn turn(
        &mut self,
        state: &S,
        base: &[u8],
        kind: Kind,
        policy: Policy,
        slots: u32,
    ) -> Result<(), StoreError> {
        let older = file_name::<S>(&self.header);
        let header = Header {
            layout: S::LAYOUT,
            policy,
            slots,
            generation: self.header.generation.checked_add(1).ok_or(SPENT)?,
            first_index: self.header.index_of(self.next_slot).ok_or(SPENT)?,
            identity: self.header.identity,
            boot: self.boot,
            base: Base::of(base),
        };
        self.file = making::make_file(&self.directory, &header, base, state, kind)?;
        (self.header, self.next_slot, self.last) = (header, 1, state.clone());
        self.directory.remove(&older).map_err(StoreError::io("remove", &older))?;
        self.directory.sync().map_err(StoreError::io("sync", "the directory"))
    }
}

impl<D: Directory, S> fmt::Debug for Recorder<D, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Recorder")
            .field("header", &self.header)
            .field("next_slot", &self.next_slot)
            .field("failed", &self.failed)
            .finish_non_exhaustive()
    }
}
