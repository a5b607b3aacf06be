//! A disk whose syncs do nothing: what is written survives the end of the process, in the system's memory,
//! and need not survive that of the machine.

use crate::{Disk, DiskError, DiskFile};

/// Another disk, without its syncs.
#[derive(Clone, Debug)]
pub struct Unsynced<D>(pub D);

/// An open file of an [`Unsynced`] disk.
#[derive(Debug)]
pub struct UnsyncedFile<F>(F);

impl<D: Disk> Disk for Unsynced<D> {
    type File = UnsyncedFile<D::File>;

    fn list(&self) -> Result<Vec<String>, DiskError> {
        self.0.list()
    }

    fn create(&self, name: &str) -> Result<Self::File, DiskError> {
        self.0.create(name).map(UnsyncedFile)
    }

    fn open(&self, name: &str) -> Result<Self::File, DiskError> {
        self.0.open(name).map(UnsyncedFile)
    }

    fn rename(&self, from: &str, to: &str) -> Result<(), DiskError> {
        self.0.rename(from, to)
    }

    fn remove(&self, name: &str) -> Result<(), DiskError> {
        self.0.remove(name)
    }

    fn sync_directory(&self) -> Result<(), DiskError> {
        Ok(())
    }
}

impl<F: DiskFile> DiskFile for UnsyncedFile<F> {
    fn len(&self) -> Result<u64, DiskError> {
        self.0.len()
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<usize, DiskError> {
        self.0.read_at(offset, buffer)
    }

    fn write_at(&mut self, offset: u64, bytes: &[u8]) -> Result<(), DiskError> {
        self.0.write_at(offset, bytes)
    }

    fn reserve(&mut self, from: u64, to: u64) -> Result<(), DiskError> {
        self.0.reserve(from, to)
    }

    fn set_len(&mut self, len: u64) -> Result<(), DiskError> {
        self.0.set_len(len)
    }

    fn sync_data(&mut self) -> Result<(), DiskError> {
        Ok(())
    }

    fn sync_all(&mut self) -> Result<(), DiskError> {
        Ok(())
    }
}

/// Makes everything in a directory durable, whoever wrote it and however.
///
/// # Errors
/// [`DiskError`], after which nothing more is known to be durable than before.
pub fn sync_everything<D: Disk>(disk: &D) -> Result<(), DiskError> {
    for name in disk.list()? {
        disk.open(&name)?.sync_all()?;
    }
    disk.sync_directory()
}
