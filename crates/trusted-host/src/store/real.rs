//! The real directory: plain system calls, the same few for every write.
//!
//! After a store is open it needs `pwrite64` and `fdatasync`, and for a new generation also `openat`,
//! `rename`, `unlink`, `fsync` and `close`: what an allow-list must let through, with those that manage
//! memory and, where debug assertions are on, the `fcntl` with which the library checks what it closes.

use super::directory::{BootId, Directory, StoreFile};
use super::format::BLOCK;
use std::cell::RefCell;
use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, Read};
use std::os::unix::fs::{DirBuilderExt, FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// Where the kernel tells which boot this is.
const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";
/// More names than a store's own directory ever has.
const MOST_NAMES: usize = 256;
/// Zeros that are written at once.
const CHUNK: usize = 1 << 18;

/// A directory of this machine.
#[derive(Debug)]
pub struct RealDirectory {
    path: PathBuf,
    /// The open directory: carries the lock, and is what is synced.
    handle: File,
}

impl RealDirectory {
    /// The directory at `path`, which must be there: if an absent one were made, then a disk that is
    /// not mounted would look like a component that never started.
    ///
    /// # Errors
    /// As the machine reports them.
    pub fn new(path: &Path) -> io::Result<Self> {
        Ok(Self { path: path.to_path_buf(), handle: File::open(path)? })
    }

    /// Makes a directory that only its owner can enter, for a component that never started.
    ///
    /// # Errors
    /// As the machine reports them; [`io::ErrorKind::AlreadyExists`] if it is there.
    pub fn make(path: &Path) -> io::Result<Self> {
        DirBuilder::new().mode(0o700).create(path)?;
        Self::new(path)
    }
}

impl Directory for RealDirectory {
    type File = RealFile;

    fn lock(&mut self) -> io::Result<bool> {
        match self.handle.try_lock() {
            Ok(()) => Ok(true),
            Err(TryLockError::WouldBlock) => Ok(false),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }

    fn boot(&self) -> io::Result<BootId> {
        boot_id()
    }

    fn names(&self) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in fs::read_dir(&self.path)? {
            if names.len() == MOST_NAMES {
                let what = format!("more than {MOST_NAMES} files, so it is no store's own directory");
                return Err(io::Error::new(io::ErrorKind::InvalidData, what));
            }
            // The store's own names are plain ASCII, so a name that is no text is none of them.
            names.extend(entry?.file_name().into_string().ok());
        }
        Ok(names)
    }

    fn open(&self, name: &str) -> io::Result<RealFile> {
        let path = self.path.join(name);
        RealFile::new(OpenOptions::new().read(true).write(true).open(&path)?, &path)
    }

    fn create(&self, name: &str) -> io::Result<RealFile> {
        let path = self.path.join(name);
        let file = OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(&path)?;
        RealFile::new(file, &path)
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        fs::rename(self.path.join(from), self.path.join(to))
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        fs::remove_file(self.path.join(name))
    }

    fn sync(&self) -> io::Result<()> {
        self.handle.sync_all()
    }
}

/// A file of this machine.
#[derive(Debug)]
pub struct RealFile {
    file: File,
    /// The same file, past the system's cache: a block is durable when its write returns. That saves the
    /// copy, the second call and the journal's part of an fdatasync: a quarter of its time. Blocks are read
    /// in this way too, so that nothing rests on what the cache knows of such writes.
    direct: Option<Direct>,
}

#[derive(Debug)]
struct Direct {
    file: File,
    block: RefCell<Box<Aligned>>,
}

/// A block as the disk's driver takes it.
#[derive(Debug)]
#[repr(C, align(4096))]
struct Aligned([u8; BLOCK]);

impl RealFile {
    /// A file system that knows no direct writes, or wants other blocks for them, does without.
    fn new(file: File, path: &Path) -> io::Result<Self> {
        let flags = libc::O_DIRECT | libc::O_DSYNC;
        let direct = match OpenOptions::new().read(true).write(true).custom_flags(flags).open(path) {
            Ok(file) => Some(Direct { file, block: RefCell::new(Box::new(Aligned([0; BLOCK]))) }),
            Err(why) if is_unknown(&why) => None,
            Err(why) => return Err(why),
        };
        let direct = direct.filter(Direct::reads);
        Ok(Self { file, direct })
    }
}

impl Direct {
    /// Whether it takes our blocks: one that wants others says so here, and not first at a write.
    fn reads(&self) -> bool {
        let mut block = self.block.borrow_mut();
        self.file.read_at(&mut block.0, 0).is_ok()
    }
}

fn is_unknown(why: &io::Error) -> bool {
    matches!(why.raw_os_error(), Some(libc::EINVAL | libc::EOPNOTSUPP))
}

impl StoreFile for RealFile {
    fn size(&self) -> io::Result<u64> {
        Ok(self.file.metadata()?.len())
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        if let (Some(direct), Ok(buffer)) = (&self.direct, <&mut [u8; BLOCK]>::try_from(&mut *buffer)) {
            let mut block = direct.block.borrow_mut();
            direct.file.read_exact_at(&mut block.0, offset)?;
            *buffer = block.0;
            return Ok(());
        }
        self.file.read_exact_at(buffer, offset)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.file.write_all_at(bytes, offset)
    }

    fn allocate(&self, size: u64) -> io::Result<()> {
        fill(&self.file, size)
    }

    fn sync_data(&self) -> io::Result<()> {
        self.file.sync_data()
    }

    fn write_durably(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        if let (Some(direct), Ok(bytes)) = (&self.direct, <&[u8; BLOCK]>::try_from(bytes)) {
            let mut block = direct.block.borrow_mut();
            block.0 = *bytes;
            return direct.file.write_all_at(&block.0, offset);
        }
        self.write_at(bytes, offset)?;
        self.sync_data()
    }
}

/// Makes an empty file `size` bytes of zeros. They are written rather than reserved with fallocate: the first
/// write to a block that is merely reserved changes metadata, which every sync would then have to write too.
///
/// # Errors
/// As the machine reports them.
pub fn fill(file: &File, size: u64) -> io::Result<()> {
    let zeros = vec![0; CHUNK];
    let mut offset = 0;
    while offset < size {
        let left = usize::try_from(size - offset).unwrap_or(CHUNK).min(CHUNK);
        file.write_all_at(&zeros[..left], offset)?;
        offset += left as u64;
    }
    Ok(())
}

/// Which boot of this machine this is.
///
/// # Errors
/// As the machine reports them; also where the kernel's answer is no boot id.
pub fn boot_id() -> io::Result<BootId> {
    let mut text = String::new();
    File::open(BOOT_ID)?.take(64).read_to_string(&mut text)?;
    parse_boot_id(text.trim_end())
        .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "the kernel's boot id is no UUID"))
}

/// The 16 bytes of a UUID in its usual form of 36 characters.
fn parse_boot_id(text: &str) -> Option<BootId> {
    let digits: Vec<u8> = text.bytes().filter(|byte| *byte != b'-').collect();
    if text.len() != 36 || digits.len() != 32 {
        return None;
    }
    let mut id = [0; 16];
    for (byte, pair) in id.iter_mut().zip(digits.chunks_exact(2)) {
        let high = char::from(pair[0]).to_digit(16)?;
        let low = char::from(pair[1]).to_digit(16)?;
        *byte = u8::try_from(high << 4 | low).ok()?;
    }
    Some(BootId(id))
}
