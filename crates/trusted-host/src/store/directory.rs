//! What the store asks of the machine, so that tests can put a disk in its place that crashes.

use std::io;

/// Which start of the machine this is: the kernel makes a new one at every boot.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BootId(pub [u8; 16]);

/// The one directory of a store.
///
/// A name is a plain file name. Changes to the directory (a created, renamed or removed name) are
/// durable only after [`Directory::sync`], and each is atomic: after a crash it happened or it did not.
pub trait Directory: Send {
    /// An open file of this directory.
    type File: StoreFile;

    /// Takes the directory for this store until the value is dropped; `false` if another holds it.
    ///
    /// # Errors
    /// As the machine reports them.
    fn lock(&mut self) -> io::Result<bool>;

    /// Which boot this is.
    ///
    /// # Errors
    /// As the machine reports them.
    fn boot(&self) -> io::Result<BootId>;

    /// The names in the directory, in any order.
    ///
    /// # Errors
    /// As the machine reports them; also if there are more than a store's directory can hold.
    fn names(&self) -> io::Result<Vec<String>>;

    /// Opens a file for reading and writing.
    ///
    /// # Errors
    /// As the machine reports them; [`io::ErrorKind::NotFound`] if it is not there.
    fn open(&self, name: &str) -> io::Result<Self::File>;

    /// Creates an empty file for reading and writing, of which there must be none yet.
    ///
    /// # Errors
    /// As the machine reports them.
    fn create(&self, name: &str) -> io::Result<Self::File>;

    /// Gives a file another name; a file of that name is replaced.
    ///
    /// # Errors
    /// As the machine reports them.
    fn rename(&self, from: &str, to: &str) -> io::Result<()>;

    /// Removes a file.
    ///
    /// # Errors
    /// As the machine reports them.
    fn remove(&self, name: &str) -> io::Result<()>;

    /// Makes all earlier changes to the directory durable.
    ///
    /// # Errors
    /// As the machine reports them; what is durable is then unknown.
    fn sync(&self) -> io::Result<()>;
}

/// A file of a store.
pub trait StoreFile: Send {
    /// Its length in bytes.
    ///
    /// # Errors
    /// As the machine reports them.
    fn size(&self) -> io::Result<u64>;

    /// Fills `buffer` with the bytes from `offset` on.
    ///
    /// # Errors
    /// As the machine reports them; [`io::ErrorKind::UnexpectedEof`] if there are fewer.
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()>;

    /// Writes all `bytes` at `offset`. A crash may leave any part of them.
    ///
    /// # Errors
    /// As the machine reports them.
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()>;

    /// Makes an empty file `size` bytes of zeros, written as such, so that writing over them later
    /// changes no metadata.
    ///
    /// # Errors
    /// As the machine reports them.
    fn allocate(&self, size: u64) -> io::Result<()>;

    /// Makes all bytes written, and the length, durable.
    ///
    /// # Errors
    /// As the machine reports them; what is durable is then unknown.
    fn sync_data(&self) -> io::Result<()>;

    /// Writes all `bytes` at `offset` and makes those durable. A crash may leave any part of them. A machine
    /// that does both at once does it in less time.
    ///
    /// # Errors
    /// As the machine reports them; what is durable is then unknown.
    fn write_durably(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.write_at(bytes, offset)?;
        self.sync_data()
    }
}
