//! The disk of the machine: one directory, locked, reached through its descriptor only.

use crate::{Disk, DiskError, DiskFile};
use rustix::fs::{self, Advice, AtFlags, Mode, OFlags};
use rustix::io::Errno;
use std::fs::{File, TryLockError};
use std::num::NonZeroU64;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;

const LOCK: &str = "lock";
/// Zeros are written in pieces of this many bytes.
const ZEROS: usize = 1 << 18;

/// A directory that this process alone uses, as long as this or a clone of it lives.
///
/// All names are looked up in the directory that was opened, so nothing outside it can be reached, nor
/// another one put in its place. Symbolic links in it are not followed.
#[derive(Clone, Debug)]
pub struct RealDisk {
    directory: Arc<Directory>,
}

#[derive(Debug)]
struct Directory {
    handle: File,
    /// Holds the lock until it is closed.
    _lock: File,
}

/// An open file of a [`RealDisk`].
#[derive(Debug)]
pub struct RealFile {
    file: File,
    name: String,
}

impl RealDisk {
    /// Opens a directory that exists and locks it: [`DiskError::Locked`] if another process has it.
    pub fn open(path: &Path) -> Result<Self, DiskError> {
        let shown = path.display().to_string();
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        // Not `open`, which is another system call on some machines, and one that sandboxes need not allow.
        let handle = File::from(
            fs::openat(fs::CWD, path, flags, Mode::empty())
                .map_err(|why| DiskError::new("open the directory", &shown, why.into()))?,
        );
        let lock = open_at(&handle, LOCK, OFlags::RDWR | OFlags::CREATE, "open")?;
        match lock.try_lock() {
            Ok(()) => Ok(Self { directory: Arc::new(Directory { handle, _lock: lock }) }),
            Err(TryLockError::WouldBlock) => Err(DiskError::Locked(path.to_path_buf())),
            Err(TryLockError::Error(why)) => Err(DiskError::new("lock the directory", &shown, why)),
        }
    }
}

/// Refuses everything that is not a plain name.
pub(crate) fn check_name(name: &str) -> Result<(), DiskError> {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '.';
    if name.is_empty() || name.len() > 200 || name.starts_with('.') || !name.chars().all(plain) {
        return Err(DiskError::Name(name.to_string()));
    }
    Ok(())
}

fn open_at(directory: &File, name: &str, flags: OFlags, what: &'static str) -> Result<File, DiskError> {
    check_name(name)?;
    let flags = flags | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    let mode = Mode::RUSR | Mode::WUSR;
    let handle = fs::openat(directory, name, flags, mode);
    handle.map(File::from).map_err(|why| DiskError::new(what, name, why.into()))
}

impl Disk for RealDisk {
    type File = RealFile;

    fn list(&self) -> Result<Vec<String>, DiskError> {
        let fail = |why: Errno| DiskError::new("list", "the directory", why.into());
        let mut names = Vec::new();
        for entry in fs::Dir::read_from(&self.directory.handle).map_err(fail)? {
            // A name that is not UTF-8 is none of ours.
            let entry = entry.map_err(fail)?;
            let Ok(name) = entry.file_name().to_str() else { continue };
            if check_name(name).is_ok() && name != LOCK {
                names.push(name.to_string());
            }
        }
        Ok(names)
    }

    fn create(&self, name: &str) -> Result<RealFile, DiskError> {
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL;
        let file = open_at(&self.directory.handle, name, flags, "create")?;
        Ok(RealFile { file, name: name.to_string() })
    }

    fn open(&self, name: &str) -> Result<RealFile, DiskError> {
        let file = open_at(&self.directory.handle, name, OFlags::RDWR, "open")?;
        Ok(RealFile { file, name: name.to_string() })
    }

    fn rename(&self, from: &str, to: &str) -> Result<(), DiskError> {
        check_name(from)?;
        check_name(to)?;
        let directory = &self.directory.handle;
        fs::renameat(directory, from, directory, to).map_err(|why| DiskError::new("rename", from, why.into()))
    }

    fn remove(&self, name: &str) -> Result<(), DiskError> {
        check_name(name)?;
        fs::unlinkat(&self.directory.handle, name, AtFlags::empty())
            .map_err(|why| DiskError::new("remove", name, why.into()))
    }

    fn sync_directory(&self) -> Result<(), DiskError> {
        self.directory.handle.sync_all().map_err(|why| DiskError::new("sync", "the directory", why))
    }
}

impl RealFile {
    fn failed(&self, what: &'static str, why: std::io::Error) -> DiskError {
        DiskError::new(what, &self.name, why)
    }
}

impl DiskFile for RealFile {
    fn len(&self) -> Result<u64, DiskError> {
        Ok(self.file.metadata().map_err(|why| self.failed("look at", why))?.len())
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<usize, DiskError> {
        let mut read = 0;
        while read < buffer.len() {
            match self.file.read_at(&mut buffer[read..], offset + read as u64) {
                Ok(0) => break,
                Ok(count) => read += count,
                Err(why) if why.kind() == std::io::ErrorKind::Interrupted => {}
                Err(why) => return Err(self.failed("read", why)),
            }
        }
        Ok(read)
    }

    fn write_at(&mut self, offset: u64, bytes: &[u8]) -> Result<(), DiskError> {
        self.file.write_all_at(bytes, offset).map_err(|why| self.failed("write", why))
    }

    /// Writes zeros: on the file systems measured, blocks that fallocate only set aside still cost a
    /// commit of the file system's journal at the first sync after they are written, blocks that were
    /// written once do not. Fallocate goes first where it is there, so that a full disk is found before
    /// anything is written and the blocks lie together.
    fn reserve(&mut self, from: u64, to: u64) -> Result<(), DiskError> {
        match fs::fallocate(&self.file, fs::FallocateFlags::KEEP_SIZE, from, to.saturating_sub(from)) {
            Ok(()) | Err(Errno::OPNOTSUPP | Errno::NOSYS) => {}
            Err(why) => return Err(self.failed("make room in", why.into())),
        }
        let zeros = vec![0; ZEROS];
        let mut offset = from;
        while offset < to {
            let piece = ZEROS.min(usize::try_from(to - offset).unwrap_or(ZEROS));
            self.write_at(offset, &zeros[..piece])?;
            offset += piece as u64;
        }
        Ok(())
    }

    fn set_len(&mut self, len: u64) -> Result<(), DiskError> {
        self.file.set_len(len).map_err(|why| self.failed("cut", why))
    }

    fn sync_data(&mut self) -> Result<(), DiskError> {
        self.file.sync_data().map_err(|why| self.failed("sync", why))
    }

    fn sync_all(&mut self) -> Result<(), DiskError> {
        self.file.sync_all().map_err(|why| self.failed("sync", why))
    }

    fn is_not_read_soon(&self, from: u64, to: u64) {
        // None is to the end, which is not what nothing is.
        let Some(length) = NonZeroU64::new(to.saturating_sub(from)) else { return };
        // A system that keeps it is a little slower, and nothing else.
        let _ = fs::fadvise(&self.file, from, Some(length), Advice::DontNeed);
    }
}
