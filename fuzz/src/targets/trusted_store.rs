//! Starting the trusted store from files that anybody wrote, and from files that were damaged. Of the one state
//! that a component must never lose it may come back or be refused; an older one must not.

use crate::bytes::{Steps, damage};
use crate::{Bound, Target};
use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use troth_trusted::{CounterValue, Epoch, Identity, Kept, State, Store};
use troth_trusted_host::store::directory::{BootId, Directory, StoreFile};
use troth_trusted_host::store::{DiskStore, Policy};

pub(super) const TARGET: Target = Target {
    name: "trusted-store",
    run,
    seeds,
    // Two files of a few slots, as one follows the other.
    bound: Bound { fixed: 2 << 20, per_byte: 64 },
    longest: 16_384,
};

const ME: Identity = Identity { group: [7; 16], replica: 1, epoch: Epoch(1) };
/// So few slots that a handful of moves needs several files.
const FEW: u32 = 4;

fn run(input: &[u8]) {
    let mut steps = Steps::new(input);
    if steps.one_in(4) { anything(&mut steps) } else { damaged(&mut steps) }
}

fn open(disk: &Memory) -> Option<u128> {
    let opened = DiskStore::open_in(disk.clone(), ME, Policy::Always, FEW).ok()?;
    let last = opened.last.map_or(0, |last| last.counters[0].value.0);
    let again = DiskStore::open_in(disk.clone(), ME, Policy::Always, FEW);
    drop(opened.store);
    let again = again.expect("what was opened opens");
    assert_eq!(
        again.last.map_or(0, |state| state.counters[0].value.0),
        last,
        "another state the second time"
    );
    Some(last)
}

fn anything(steps: &mut Steps<'_>) {
    let disk = Memory::default();
    let marker = usize::from(steps.byte());
    disk.put("started", steps.take(marker).to_vec());
    let name = format!("counters-{:016x}-{:016x}", steps.byte() % 3, steps.byte() % 3);
    let mut bytes = steps.rest().to_vec();
    // A file of the right length with a beginning of any kind.
    bytes.resize((FEW as usize + 1) * 4096, 0);
    disk.put(&name, bytes);
    open(&disk);
}

fn state(value: u128) -> State {
    let mut state = State::new(ME);
    let counter = &mut state.counters[0];
    counter.value = CounterValue(value);
    counter.previous = CounterValue(value - 1);
    counter.digest = [value as u8; 32];
    counter.together = 1;
    state
}

fn damaged(steps: &mut Steps<'_>) {
    let disk = Memory::default();
    let last = u128::from(steps.byte() % 8);
    let opened = DiskStore::open_in(disk.clone(), ME, Policy::Always, FEW);
    let mut store = opened.expect("an empty directory").store;
    for value in 1..=last {
        let blob = steps.chunk();
        let with_blob = !blob.is_empty() && store.store_beside(&state(value), blob) == Ok(Kept::Both);
        assert!(with_blob || store.store(&state(value)).is_ok(), "the disk is sound");
    }
    drop(store);
    let kept = disk.files();
    let mut changed = false;
    for _ in 0..1 + steps.byte() % 2 {
        let files: Vec<(String, Vec<u8>)> = disk.files().into_iter().collect();
        let (name, mut bytes) = steps.one_of(&files).expect("a store has files").clone();
        let before = bytes.clone();
        damage(steps, &mut bytes);
        changed |= bytes != before;
        disk.put(&name, bytes);
    }
    // What no software can find, and says so: the newest records overwritten by zeros.
    let zeroed = only_zeroed(&kept, &disk);
    if let Some(found) = open(&disk)
        && !zeroed
    {
        assert_eq!(found, last, "another state than the last was resumed (changed: {changed})");
    }
}

/// Whether what changed in some file since then became zeros, all of it.
pub(super) fn only_zeroed(kept: &BTreeMap<String, Vec<u8>>, disk: &Memory) -> bool {
    disk.files().iter().any(|(name, bytes)| {
        let changed = |kept: &Vec<u8>| {
            kept.iter().zip(bytes).filter(|(kept, now)| kept != now).map(|(_, now)| *now).collect::<Vec<u8>>()
        };
        kept.get(name)
            .map(changed)
            .is_some_and(|changed| !changed.is_empty() && changed.iter().all(|now| *now == 0))
    })
}

type Content = Arc<Mutex<Vec<u8>>>;

/// A directory in memory, where everything is durable at once.
#[derive(Clone, Default)]
pub(super) struct Memory(Arc<Mutex<BTreeMap<String, Content>>>);

pub(super) struct MemoryFile(Content);

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Memory {
    /// All files as they are now.
    pub(super) fn files(&self) -> BTreeMap<String, Vec<u8>> {
        lock(&self.0).iter().map(|(name, content)| (name.clone(), lock(content).clone())).collect()
    }

    pub(super) fn put(&self, name: &str, bytes: Vec<u8>) {
        lock(&self.0).insert(name.to_owned(), Arc::new(Mutex::new(bytes)));
    }
}

impl Directory for Memory {
    type File = MemoryFile;

    fn lock(&mut self) -> io::Result<bool> {
        Ok(true)
    }
    fn boot(&self) -> io::Result<BootId> {
        Ok(BootId([1; 16]))
    }
    fn names(&self) -> io::Result<Vec<String>> {
        Ok(lock(&self.0).keys().cloned().collect())
    }
    fn open(&self, name: &str) -> io::Result<MemoryFile> {
        let found = lock(&self.0).get(name).cloned();
        Ok(MemoryFile(found.ok_or(io::ErrorKind::NotFound)?))
    }
    fn create(&self, name: &str) -> io::Result<MemoryFile> {
        if lock(&self.0).contains_key(name) {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        self.put(name, Vec::new());
        self.open(name)
    }
    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        let mut files = lock(&self.0);
        let content = files.remove(from).ok_or(io::ErrorKind::NotFound)?;
        files.insert(to.to_owned(), content);
        Ok(())
    }
    fn remove(&self, name: &str) -> io::Result<()> {
        lock(&self.0).remove(name).map(drop).ok_or_else(|| io::ErrorKind::NotFound.into())
    }
    fn sync(&self) -> io::Result<()> {
        Ok(())
    }
}

impl StoreFile for MemoryFile {
    fn size(&self) -> io::Result<u64> {
        Ok(lock(&self.0).len() as u64)
    }
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        let content = lock(&self.0);
        let start = usize::try_from(offset).unwrap_or(usize::MAX);
        let part = content.get(start..).and_then(|rest| rest.get(..buffer.len()));
        buffer.copy_from_slice(part.ok_or(io::ErrorKind::UnexpectedEof)?);
        Ok(())
    }
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        let mut content = lock(&self.0);
        let start = usize::try_from(offset).map_err(io::Error::other)?;
        let end = start + bytes.len();
        let length = content.len().max(end);
        content.resize(length, 0);
        content[start..end].copy_from_slice(bytes);
        Ok(())
    }
    fn allocate(&self, size: u64) -> io::Result<()> {
        *lock(&self.0) = vec![0; usize::try_from(size).map_err(io::Error::other)?];
        Ok(())
    }
    fn sync_data(&self) -> io::Result<()> {
        Ok(())
    }
}

fn seeds() -> Vec<Vec<u8>> {
    vec![
        [&[0, 8][..], b"TROTHMRK", &[1, 1], b"TROTHCTR"].concat(),
        vec![1, 2, 0, 0, 0, 0, 0, 40, 0, 1],
        vec![1, 6, 0, 0, 0, 0, 0, 0, 0, 1, 40, 16, 0, 1],
        vec![1, 3, 2, 9, 9, 1, 8, 0, 0, 0, 40, 0, 1],
    ]
}
