//! The durable store of a trusted component: one preallocated file of records, in a directory of its
//! own.
//!
//! A component that came back with an older state than its last would certify a second digest under a
//! value that it has used, and one such component is enough to break agreement. So the store resumes
//! the very last state or nothing: what a crash of this program cannot have left is refused, and the
//! replica comes back under a new epoch instead.
//!
//! **How it writes.** Each [`DiskStore::store`] is one write and one fdatasync into a file of fixed
//! length that was filled with zeros before, so that no metadata changes with it. A record stands twice
//! in a block of its own, so a write that is interrupted never touches an acknowledged one, and one
//! damaged place never hides one. A full file is followed by one of the next generation: written and
//! synced under another name, renamed, entered in a marker, and only then the older one is removed. All
//! that needs space comes before the first renaming, so a full disk refuses the move and changes nothing.
//!
//! **What it keeps beside.** A move may come with a blob of the caller's, at most [`MOST_BLOB`] bytes, which
//! goes into the record of the move and under its checksum: one write and one fdatasync for both, and a
//! crash leaves both or neither. The blobs of all moves since the last one without are given back, however
//! often the store is opened in between. They never go into another file: a move without a blob begins it.
//!
//! **How it starts.** The newest record of the newest generation, after which there may be nothing but
//! zeros or one interrupted write. That write was never acknowledged; it is cleared and synced, and a
//! record of the start itself is written, before anything is certified.
//!
//! **What it finds**: a file or marker that is shorter or longer by any number of bytes, or missing; a
//! byte that was changed, anywhere; records that are missing, repeated or out of order; files of
//! another replica, of an epoch that is over, of two generations that do not follow from each other.
//!
//! **What no software store can find**: the whole directory replaced by an older copy of itself (a
//! restored backup, a virtual machine set back), the newest records overwritten by zeros, or all files
//! removed, which looks like an epoch that never started. Whoever can write to the directory or to the
//! disk below it can do that; only a counter in hardware would tell. Nor does it help against a disk
//! that acknowledges a sync and loses the data.
//!
//! | module | subject |
//! | --- | --- |
//! | [`directory`] | what is asked of the machine |
//! | `real` | the machine itself |
//! | `format` | the bytes of header and marker, and the table of all of them |
//! | `record` | the bytes of a record, and what may stand in its slot |
//! | `scan` | reading one file, and what it may hold |
//! | `subject` | what a store is of: counters or logs |
//! | `making` | a new file and its entry in the marker |
//! | `recorder` | an open file, and the one after it |
//! | `opening` | from what a directory holds to a running store |
//! | `changes` | the bytes of what a call changed in the logs |
//! | `logs` | the store of attested logs, of the same files |
//! | `together` | counters and logs of one component, which share their epoch |
//! | `error` | why a store was refused, and how to go on |

mod changes;
pub mod directory;
mod error;
mod format;
mod logs;
mod making;
mod opening;
mod real;
mod record;
mod recorder;
mod scan;
mod subject;
mod together;

pub use error::StoreError;
pub use logs::{DiskLogs, MOST_CHANGES, MOST_ENTRIES, OpenedLogs, Room};
pub use real::{RealDirectory, boot_id, fill};
pub use together::{Both, BothOpened, open_both_in};

use directory::Directory;
use format::{Header, Layout};
use opening::{Ready, Request};
use record::Kind;
use recorder::Recorder;
use std::fmt;
use std::path::Path;
use subject::Subject;
use troth_trusted::{Epoch, Identity, Kept, State, Store, StoreFailed};

/// Slots of a store file: with its header 4 MiB. A new generation costs some milliseconds once in so
/// many stores (`examples/store.rs` measures it); more slots make that pause rarer and longer.
pub const SLOTS: u32 = 1023;
/// The most slots that a file may have.
pub const MOST_SLOTS: u32 = 65_535;
/// The fewest: the first record and the one that the start writes.
pub const FEWEST_SLOTS: u32 = 2;
/// The longest blob in bytes that is kept beside a move.
pub const MOST_BLOB: usize = record::most_blob::<State>();
/// Slots that moves with a blob leave free, so that the starts which may come before a move without one
/// find room for their records; fewer in files of few slots.
const RESERVE: u32 = 8;

/// The file that says which epoch has started.
const MARKER: &str = "started";
/// The marker while it is written.
const NEW_MARKER: &str = "started.new";

/// When a state is durable.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Policy {
    /// At the end of each store: survives the end of the process and of the machine.
    Always,
    /// In the system's memory at the end of each store: survives the end of the process, and is void
    /// once the machine has started anew.
    Interval,
    /// As long as the process runs: a store that is opened again is void.
    Memory,
}

impl Policy {
    fn code(self) -> u8 {
        match self {
            Self::Always => 1,
            Self::Interval => 2,
            Self::Memory => 3,
        }
    }

    fn from_code(code: u8) -> Option<Self> {
        [Self::Always, Self::Interval, Self::Memory].into_iter().find(|policy| policy.code() == code)
    }
}

impl fmt::Display for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Always => "always",
            Self::Interval => "interval",
            Self::Memory => "memory",
        })
    }
}

/// How a store was found.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum How {
    /// This epoch never started here.
    Fresh,
    /// The last state is the one resumed; all writes had reached their end.
    Resumed,
    /// The last write was interrupted before it was acknowledged. The state is the one before it, or,
    /// where the record could be read all the same, the one that it was to store.
    Torn,
}

/// A store that is ready, and what it held.
pub struct Opened<D: Directory = RealDirectory> {
    /// The store.
    pub store: DiskStore<D>,
    /// The last state: start the component with [`TrustedCore::restart`](troth_trusted::TrustedCore).
    /// `None` only where this epoch never started: use `TrustedCore::start`.
    pub last: Option<State>,
    /// How it was found.
    pub how: How,
    /// Whether the machine still runs since the store was last open: then the process was ended, else
    /// the machine was. `true` for a fresh one. A start that found no slot for its record, for the blobs
    /// pending in a full file, does not count as one that had it open.
    pub same_boot: bool,
}

/// The store of one component on a disk.
///
/// After a failure it stores nothing more; what is durable is then found out by opening it again.
pub struct DiskStore<D: Directory = RealDirectory> {
    recorder: Recorder<D, State>,
    /// What was kept beside the moves since the last one without a blob: at most one to a slot.
    blobs: Vec<Vec<u8>>,
}

impl DiskStore {
    /// Opens the store in `directory`, which must exist and be for this component only; for an epoch
    /// that never started there, a store is made.
    ///
    /// # Errors
    /// [`StoreError`]. Under [`Policy::Interval`] and [`Policy::Memory`] it is
    /// [`StoreError::Unproven`] where the last state may be lost, so that nothing can go on from it by
    /// oversight.
    pub fn open(directory: &Path, identity: Identity, policy: Policy) -> Result<Opened, StoreError> {
        let opened = RealDirectory::new(directory);
        let opened =
            opened.map_err(|source| StoreError::NoDirectory { path: directory.to_path_buf(), source })?;
        Self::open_in(opened, identity, policy, SLOTS)
    }
}

impl<D: Directory> DiskStore<D> {
    /// Opens the store in this directory as [`DiskStore::open`] does, with new files of `slots` slots.
    ///
    /// # Errors
    /// [`StoreError`].
    pub fn open_in(
        directory: D,
        identity: Identity,
        policy: Policy,
        slots: u32,
    ) -> Result<Opened<D>, StoreError> {
        opening::open(directory, Request { identity, policy, slots, base: &[] }).map(Opened::new)
    }

    /// Makes everything stored so far durable, whatever the policy.
    ///
    /// # Errors
    /// [`StoreError::Io`], after which the store has failed; [`StoreError::Halted`] if it had before.
    pub fn sync(&mut self) -> Result<(), StoreError> {
        self.recorder.attempt(Recorder::sync_file)
    }

    /// The generation of the present file: one more each time that a file was full.
    pub fn generation(&self) -> u64 {
        self.recorder.generation()
    }

    /// The blobs of all moves since the last one without, oldest first: also those from before it was opened.
    pub fn blobs(&self) -> &[Vec<u8>] {
        &self.blobs
    }

    /// Stores a state: in the next slot, or in a new file where there is none.
    fn put(&mut self, state: &State) -> Result<(), StoreError> {
        self.recorder.attempt(|recorder| {
            recorder.demand_next(state)?;
            if recorder.is_full() {
                let Header { policy, slots, .. } = *recorder.header();
                recorder.turn(state, &[], Kind::Move, policy, slots)
            } else {
                recorder.append(state, Kind::Move)
            }
        })?;
        self.blobs.clear();
        Ok(())
    }

    /// Stores a state with a blob in the next slot, if they may stand there.
    fn put_beside(&mut self, state: &State, blob: &[u8]) -> Result<Kept, StoreError> {
        let kept = self.recorder.attempt(|recorder| {
            if !has_place_for(recorder, blob) {
                return Ok(Kept::Neither);
            }
            recorder.demand_next(state)?;
            recorder.append(state, Kind::MoveBeside(blob.to_vec()))?;
            Ok(Kept::Both)
        })?;
        if kept == Kept::Both {
            self.blobs.push(blob.to_vec());
        }
        Ok(kept)
    }
}

/// Whether a blob is kept now. One that is not durable is worth nothing to the caller, who has it durable
/// in another way otherwise.
fn has_place_for<D: Directory>(recorder: &Recorder<D, State>, blob: &[u8]) -> bool {
    let Header { policy, layout, slots, .. } = *recorder.header();
    blob.len() <= MOST_BLOB
        && policy == Policy::Always
        && layout == Layout::WithBlobs
        && recorder.slots_left() > RESERVE.min(slots / 4)
}

impl<D: Directory> Opened<D> {
    fn new(ready: Ready<D, State>) -> Self {
        let Ready { recorder, last, blobs, how, same_boot, .. } = ready;
        Self { store: DiskStore { recorder, blobs }, last, how, same_boot }
    }
}

impl<D: Directory> Store for DiskStore<D> {
    fn store(&mut self, state: &State) -> Result<(), StoreFailed> {
        self.put(state).map_err(failed)
    }

    fn store_beside(&mut self, state: &State, blob: &[u8]) -> Result<Kept, StoreFailed> {
        self.put_beside(state, blob).map_err(failed)
    }

    fn blob(&self, index: usize) -> Option<&[u8]> {
        self.blobs.get(index).map(Vec::as_slice)
    }
}

fn failed(why: StoreError) -> StoreFailed {
    match why {
        StoreError::NoSpace { .. } => StoreFailed::NoSpace,
        _ => StoreFailed::Unknown,
    }
}

impl<D: Directory> fmt::Debug for Opened<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Opened")
            .field("store", &self.store)
            .field("last", &self.last)
            .field("how", &self.how)
            .field("same_boot", &self.same_boot)
            .finish()
    }
}

impl<D: Directory> fmt::Debug for DiskStore<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DiskStore")
            .field("recorder", &self.recorder)
            .field("blobs", &self.blobs.len())
            .finish_non_exhaustive()
    }
}

const SPENT: StoreError = StoreError::Contradiction { what: "its numbers are at their end" };

impl Header {
    /// The index of the record in a slot, unless numbers are spent.
    fn index_of(&self, slot: u32) -> Option<u64> {
        self.first_index.checked_add(u64::from(slot))
    }
}

fn file_name<S: Subject>(header: &Header) -> String {
    name_of::<S>(header.identity.epoch, header.generation)
}

fn name_of<S: Subject>(epoch: Epoch, generation: u64) -> String {
    format!("{}{:016x}-{generation:016x}", S::FILE, epoch.0)
}

/// The epoch and generation that the name of a store file states.
fn parse_name<S: Subject>(name: &str) -> Option<(Epoch, u64)> {
    let (epoch, generation) = name.strip_prefix(S::FILE)?.split_once('-')?;
    let number = |digits: &str| u64::from_str_radix(digits, 16).ok();
    let parsed = (Epoch(number(epoch)?), number(generation)?);
    (name_of::<S>(parsed.0, parsed.1) == name).then_some(parsed)
}
