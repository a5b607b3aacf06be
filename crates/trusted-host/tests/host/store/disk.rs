//! A disk that crashes: it knows what is durable, keeps the rest in memory, and at a crash loses any
//! part of that.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use troth_trusted_host::store::directory::{BootId, Directory, StoreFile};

/// A generator of numbers from a seed (SplitMix64).
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    pub fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }

    pub fn coin(&mut self) -> bool {
        self.next() & 1 == 0
    }
}

/// What becomes of unsynced bytes and names at a crash.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Crash {
    /// The process ends: everything that it handed to the system is still there.
    Killed,
    /// The machine ends: nothing unsynced is there.
    LostAll,
    /// The machine ends: everything unsynced is there by chance.
    LostNothing,
    /// The machine ends: any of the unsynced writes are there, torn at any byte or at any sectors, and
    /// any of the unsynced names.
    LostSome(u64),
}

#[derive(Clone, Default, Debug)]
struct Content {
    durable: Vec<u8>,
    cached: Vec<u8>,
    pending: Vec<(usize, Vec<u8>)>,
}

fn put(into: &mut Vec<u8>, at: usize, bytes: &[u8]) {
    let end = at + bytes.len();
    if into.len() < end {
        into.resize(end, 0);
    }
    into[at..end].copy_from_slice(bytes);
}

#[derive(Clone, Debug)]
enum NameChange {
    Set(String, u64),
    Move(String, String, u64),
    Remove(String),
}

impl NameChange {
    fn apply(&self, names: &mut BTreeMap<String, u64>) {
        match self {
            Self::Set(name, inode) => drop(names.insert(name.clone(), *inode)),
            Self::Move(from, to, inode) => {
                names.remove(from);
                names.insert(to.clone(), *inode);
            }
            Self::Remove(name) => drop(names.remove(name)),
        }
    }
}

/// The state of the disk and of the crash that is planned.
#[derive(Clone, Default, Debug)]
struct Model {
    contents: BTreeMap<u64, Content>,
    names: BTreeMap<String, u64>,
    durable_names: BTreeMap<String, u64>,
    pending_names: Vec<NameChange>,
    made: u64,
    locked: bool,
    boot: u8,
    calls: u64,
    /// The call that fails, and how many bytes of it are done if it is a write.
    crash_at: Option<(u64, usize)>,
    /// The one call that finds no space, and how many bytes of it are done if it is a write.
    no_space_at: Option<(u64, usize)>,
    dead: bool,
}

fn gone() -> io::Error {
    io::Error::other("the disk is gone")
}

impl Model {
    /// Counts a call that changes something; `Err` with how much of it is done if it fails.
    fn call(&mut self) -> Result<(), (usize, io::Error)> {
        if self.dead {
            return Err((0, gone()));
        }
        self.calls += 1;
        match (self.crash_at, self.no_space_at) {
            (Some((at, done)), _) if at == self.calls => {
                self.dead = true;
                Err((done, gone()))
            }
            (_, Some((at, done))) if at == self.calls => Err((done, io::ErrorKind::StorageFull.into())),
            _ => Ok(()),
        }
    }

    /// A call of which nothing is done if it fails.
    fn whole_call(&mut self) -> io::Result<()> {
        self.call().map_err(|(_, why)| why)
    }

    /// Drops the content of files that no name leads to, now or after a crash.
    fn forget_unnamed(&mut self) {
        let Self { contents, names, durable_names, pending_names, .. } = self;
        let pending = |inode: &u64| {
            pending_names.iter().any(|change| match change {
                NameChange::Set(_, named) | NameChange::Move(_, _, named) => named == inode,
                NameChange::Remove(_) => false,
            })
        };
        let named = |inode: &u64| names.values().chain(durable_names.values()).any(|named| named == inode);
        contents.retain(|inode, _| named(inode) || pending(inode));
    }

    fn rename_all(&mut self, change: NameChange) {
        change.apply(&mut self.names);
        self.pending_names.push(change);
    }

    fn write(&mut self, inode: u64, at: usize, bytes: &[u8]) -> io::Result<()> {
        let (done, result) = match self.call() {
            Ok(()) => (bytes.len(), Ok(())),
            Err((done, why)) => (done.min(bytes.len()), Err(why)),
        };
        let content = self.contents.entry(inode).or_default();
        if done > 0 {
            put(&mut content.cached, at, &bytes[..done]);
            content.pending.push((at, bytes[..done].to_vec()));
        }
        result
    }
}

/// The disk of one machine; a clone is the same disk.
#[derive(Clone, Default, Debug)]
pub struct Disk(Arc<Mutex<Model>>);

impl Disk {
    pub fn new() -> Self {
        Self::default()
    }

    fn model(&self) -> MutexGuard<'_, Model> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A directory on this disk, as a starting process opens it.
    pub fn directory(&self) -> TestDirectory {
        TestDirectory { disk: self.clone(), locking: false }
    }

    /// Plans a crash at the `call`-th call from now that changes something; if that is a write, then
    /// after the first `done` bytes of it.
    pub fn crash_at(&self, call: u64, done: usize) {
        let mut model = self.model();
        model.crash_at = Some((model.calls + call, done));
    }

    /// Has the `call`-th call from now that changes something find no space, and no other; if it is a write,
    /// then after the first `done` bytes of it.
    pub fn lack_space_at(&self, call: u64, done: usize) {
        let mut model = self.model();
        model.no_space_at = Some((model.calls + call, done));
    }

    /// Fails from now on.
    pub fn break_down(&self) {
        self.model().dead = true;
    }

    /// Whether the planned crash has come.
    pub fn crashed(&self) -> bool {
        self.model().dead
    }

    /// How many calls changed something.
    pub fn calls(&self) -> u64 {
        self.model().calls
    }

    /// An independent disk of the same content, durable and not.
    pub fn copied(&self) -> Self {
        let mut model = self.model().clone();
        model.locked = false;
        model.forget_unnamed();
        Self(Arc::new(Mutex::new(model)))
    }

    /// The disk as the next process finds it.
    pub fn after(&self, crash: Crash) -> Self {
        let next = self.copied();
        let mut model = next.model();
        (model.dead, model.crash_at, model.no_space_at) = (false, None, None);
        if crash == Crash::Killed {
            drop(model);
            return next;
        }
        model.boot += 1;
        let mut random = Random(match crash {
            Crash::LostSome(seed) => seed,
            _ => 0,
        });
        let chosen = |random: &mut Random| match crash {
            Crash::LostNothing => true,
            Crash::LostSome(_) => random.coin(),
            _ => false,
        };
        for content in model.contents.values_mut() {
            for (at, bytes) in std::mem::take(&mut content.pending) {
                if !chosen(&mut random) {
                    continue;
                }
                match crash {
                    Crash::LostSome(_) if random.coin() => {
                        tear(&mut content.durable, at, &bytes, &mut random)
                    }
                    _ => put(&mut content.durable, at, &bytes),
                }
            }
            content.cached = content.durable.clone();
        }
        let mut durable = std::mem::take(&mut model.durable_names);
        for change in std::mem::take(&mut model.pending_names) {
            if chosen(&mut random) {
                change.apply(&mut durable);
            }
        }
        (model.durable_names, model.names) = (durable.clone(), durable);
        drop(model);
        next
    }

    /// The names in the directory.
    pub fn names(&self) -> Vec<String> {
        self.model().names.keys().cloned().collect()
    }

    /// The content of a file.
    pub fn read(&self, name: &str) -> Vec<u8> {
        let model = self.model();
        model.contents[&model.names[name]].cached.clone()
    }

    /// Puts a file in place, durable, as somebody does who can write to the directory.
    pub fn plant(&self, name: &str, bytes: &[u8]) {
        let mut model = self.model();
        model.made += 1;
        let inode = model.made;
        let content = Content { durable: bytes.to_vec(), cached: bytes.to_vec(), pending: Vec::new() };
        model.contents.insert(inode, content);
        model.names.insert(name.to_owned(), inode);
        model.durable_names.insert(name.to_owned(), inode);
    }

    /// Removes a file behind the store's back.
    pub fn take_away(&self, name: &str) {
        let mut model = self.model();
        model.names.remove(name);
        model.durable_names.remove(name);
    }
}

/// Leaves a part of a write: up to some byte, or some of its sectors.
fn tear(into: &mut Vec<u8>, at: usize, bytes: &[u8], random: &mut Random) {
    if random.coin() {
        return put(into, at, &bytes[..random.below(bytes.len() + 1)]);
    }
    for (sector, part) in bytes.chunks(512).enumerate() {
        if random.coin() {
            put(into, at + sector * 512, part);
        }
    }
}

/// A process's hold on the directory of a [`Disk`].
pub struct TestDirectory {
    disk: Disk,
    locking: bool,
}

impl Drop for TestDirectory {
    fn drop(&mut self) {
        if self.locking {
            self.disk.model().locked = false;
        }
    }
}

pub struct TestFile {
    disk: Disk,
    inode: u64,
}

impl Directory for TestDirectory {
    type File = TestFile;

    fn lock(&mut self) -> io::Result<bool> {
        let mut model = self.disk.model();
        self.locking = !model.locked;
        model.locked = true;
        drop(model);
        Ok(self.locking)
    }

    fn boot(&self) -> io::Result<BootId> {
        Ok(BootId([0xB0 + self.disk.model().boot; 16]))
    }

    fn names(&self) -> io::Result<Vec<String>> {
        Ok(self.disk.names())
    }

    fn open(&self, name: &str) -> io::Result<TestFile> {
        let inode = self.disk.model().names.get(name).copied().ok_or(io::ErrorKind::NotFound)?;
        Ok(TestFile { disk: self.disk.clone(), inode })
    }

    fn create(&self, name: &str) -> io::Result<TestFile> {
        let mut model = self.disk.model();
        model.whole_call()?;
        if model.names.contains_key(name) {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        model.made += 1;
        let inode = model.made;
        model.contents.insert(inode, Content::default());
        model.rename_all(NameChange::Set(name.to_owned(), inode));
        Ok(TestFile { disk: self.disk.clone(), inode })
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        let mut model = self.disk.model();
        model.whole_call()?;
        let inode = model.names.get(from).copied().ok_or(io::ErrorKind::NotFound)?;
        model.rename_all(NameChange::Move(from.to_owned(), to.to_owned(), inode));
        Ok(())
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        let mut model = self.disk.model();
        model.whole_call()?;
        if !model.names.contains_key(name) {
            return Err(io::ErrorKind::NotFound.into());
        }
        model.rename_all(NameChange::Remove(name.to_owned()));
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        let mut model = self.disk.model();
        model.whole_call()?;
        model.pending_names.clear();
        model.durable_names = model.names.clone();
        Ok(())
    }
}

impl StoreFile for TestFile {
    fn size(&self) -> io::Result<u64> {
        Ok(self.disk.model().contents[&self.inode].cached.len() as u64)
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        let (model, at) = (self.disk.model(), offset as usize);
        let cached = &model.contents[&self.inode].cached;
        let found = cached.get(at..at + buffer.len()).ok_or(io::ErrorKind::UnexpectedEof)?;
        buffer.copy_from_slice(found);
        Ok(())
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.disk.model().write(self.inode, offset as usize, bytes)
    }

    fn allocate(&self, size: u64) -> io::Result<()> {
        self.disk.model().write(self.inode, 0, &vec![0; size as usize])
    }

    fn sync_data(&self) -> io::Result<()> {
        let mut model = self.disk.model();
        model.whole_call()?;
        if let Some(content) = model.contents.get_mut(&self.inode) {
            content.pending.clear();
            content.durable = content.cached.clone();
        }
        Ok(())
    }
}
