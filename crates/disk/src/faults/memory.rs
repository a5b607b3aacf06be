//! A directory in memory, where everything is durable at once.

use crate::real::check_name;
use crate::{Disk, DiskError, DiskFile};
use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

type Contents = Arc<Mutex<Vec<u8>>>;

/// A directory in memory. Clones are the same directory.
#[derive(Clone, Debug, Default)]
pub struct MemoryDisk {
    files: Arc<Mutex<BTreeMap<String, Contents>>>,
}

/// An open file of a [`MemoryDisk`].
#[derive(Clone, Debug)]
pub struct MemoryFile {
    contents: Contents,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

pub(super) fn missing(what: &'static str, name: &str) -> DiskError {
    DiskError::new(what, name, io::Error::from(io::ErrorKind::NotFound))
}

pub(super) fn exists(name: &str) -> DiskError {
    DiskError::new("create", name, io::Error::from(io::ErrorKind::AlreadyExists))
}

/// Writes into bytes that grow as a file does.
pub(super) fn overwrite(contents: &mut Vec<u8>, offset: u64, bytes: &[u8]) {
    let start = offset as usize;
    let end = start + bytes.len();
    if contents.len() < end {
        contents.resize(end, 0);
    }
    contents[start..end].copy_from_slice(bytes);
}

impl MemoryDisk {
    /// A file's bytes.
    #[must_use]
    pub fn contents(&self, name: &str) -> Option<Vec<u8>> {
        lock(&self.files).get(name).map(|contents| lock(contents).clone())
    }

    /// Puts a file there, in place of the one of that name.
    pub fn put(&self, name: &str, bytes: Vec<u8>) {
        lock(&self.files).insert(name.to_string(), Arc::new(Mutex::new(bytes)));
    }

    /// Another directory with the same files.
    #[must_use]
    pub fn copy(&self) -> Self {
        let copy = Self::default();
        for (name, contents) in lock(&self.files).iter() {
            copy.put(name, lock(contents).clone());
        }
        copy
    }
}

impl Disk for MemoryDisk {
    type File = MemoryFile;

    fn list(&self) -> Result<Vec<String>, DiskError> {
        Ok(lock(&self.files).keys().cloned().collect())
    }

    fn create(&self, name: &str) -> Result<MemoryFile, DiskError> {
        check_name(name)?;
        let mut files = lock(&self.files);
        if files.contains_key(name) {
            return Err(exists(name));
        }
        let contents = Contents::default();
        files.insert(name.to_string(), contents.clone());
        Ok(MemoryFile { contents })
    }

    fn open(&self, name: &str) -> Result<MemoryFile, DiskError> {
        let contents = lock(&self.files).get(name).cloned().ok_or_else(|| missing("open", name))?;
        Ok(MemoryFile { contents })
    }

    fn rename(&self, from: &str, to: &str) -> Result<(), DiskError> {
        check_name(to)?;
        let mut files = lock(&self.files);
        let contents = files.remove(from).ok_or_else(|| missing("rename", from))?;
        files.insert(to.to_string(), contents);
        Ok(())
    }

    fn remove(&self, name: &str) -> Result<(), DiskError> {
        lock(&self.files).remove(name).map(|_| ()).ok_or_else(|| missing("remove", name))
    }

    fn sync_directory(&self) -> Result<(), DiskError> {
        Ok(())
    }
}

impl DiskFile for MemoryFile {
    fn len(&self) -> Result<u64, DiskError> {
        Ok(lock(&self.contents).len() as u64)
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<usize, DiskError> {
        let contents = lock(&self.contents);
        let start = contents.len().min(usize::try_from(offset).unwrap_or(usize::MAX));
        let count = buffer.len().min(contents.len() - start);
        buffer[..count].copy_from_slice(&contents[start..start + count]);
        Ok(count)
    }

    fn write_at(&mut self, offset: u64, bytes: &[u8]) -> Result<(), DiskError> {
        overwrite(&mut lock(&self.contents), offset, bytes);
        Ok(())
    }

    fn reserve(&mut self, _: u64, to: u64) -> Result<(), DiskError> {
        self.set_len(to)
    }

    fn set_len(&mut self, len: u64) -> Result<(), DiskError> {
        lock(&self.contents).resize(len as usize, 0);
        Ok(())
    }

    fn sync_data(&mut self) -> Result<(), DiskError> {
        Ok(())
    }

    fn sync_all(&mut self) -> Result<(), DiskError> {
        Ok(())
    }
}
