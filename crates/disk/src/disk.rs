//! The few operations that log and snapshots ask of a directory.

use crate::DiskError;

/// One directory. Names are plain file names of letters, digits, `-` and `.`, never paths.
///
/// What is done through it is seen at once by every reader and survives the end of this process, but not
/// a loss of power: contents are durable after [`DiskFile::sync_data`], names after
/// [`Disk::sync_directory`].
pub trait Disk: Clone + Send + 'static {
    /// An open file.
    type File: DiskFile;

    /// The names of all files, in no order.
    fn list(&self) -> Result<Vec<String>, DiskError>;
    /// Makes an empty file; one of that name must not exist.
    fn create(&self, name: &str) -> Result<Self::File, DiskError>;
    /// Opens a file that exists.
    fn open(&self, name: &str) -> Result<Self::File, DiskError>;
    /// Gives a file another name, in place of the file that has it.
    fn rename(&self, from: &str, to: &str) -> Result<(), DiskError>;
    /// Removes a file.
    fn remove(&self, name: &str) -> Result<(), DiskError>;
    /// Makes every name made, changed or removed before durable.
    fn sync_directory(&self) -> Result<(), DiskError>;
}

/// Makes an empty file, in the place of what an attempt may have left that there was no space to take back.
pub(crate) fn create_anew<D: Disk>(disk: &D, name: &str) -> Result<D::File, DiskError> {
    match disk.create(name) {
        Err(DiskError::Io { source, .. }) if source.kind() == std::io::ErrorKind::AlreadyExists => {
            disk.remove(name)?;
            disk.create(name)
        }
        made => made,
    }
}

/// An open file of a [`Disk`].
#[allow(clippy::len_without_is_empty, reason = "the length of a file is asked for, never whether it is 0")]
pub trait DiskFile: Send + 'static {
    /// Its length in bytes.
    fn len(&self) -> Result<u64, DiskError>;
    /// Reads from `offset` until the buffer is full or the file ends; says how many bytes there were.
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<usize, DiskError>;
    /// Writes all bytes at `offset`. After an error any part of them may have been written.
    fn write_at(&mut self, offset: u64, bytes: &[u8]) -> Result<(), DiskError>;
    /// Lengthens the file with zeros from `from`, its present length, to `to`, so that later writes in
    /// between change nothing but data. After an error any part of that may have been done.
    fn reserve(&mut self, from: u64, to: u64) -> Result<(), DiskError>;
    /// Cuts the file or lengthens it with zeros.
    fn set_len(&mut self, len: u64) -> Result<(), DiskError>;
    /// Makes contents and length durable. After any error but [`DiskError::Full`] nothing is known of
    /// what was written since the last success.
    fn sync_data(&mut self) -> Result<(), DiskError>;
    /// As [`DiskFile::sync_data`], with everything else the file system knows of the file.
    fn sync_all(&mut self) -> Result<(), DiskError>;
    /// What is durable from `from` to `to` is not read soon: the system need not keep it in memory, where it would crowd
    /// out what is. Contents and errors stay as they are.
    fn is_not_read_soon(&self, _from: u64, _to: u64) {}
}
