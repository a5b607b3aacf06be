//! The store of attested logs on a disk: a state of all logs, and behind it the calls since.
//!
//! It is made of the same files as the store of counters, in a directory of its own, and refuses or resumes by
//! the same rules. A file begins with all logs as they were when it was made, its base. Each call that changes
//! something takes one record: one write and one fdatasync. Where the file is full, or a call changes more than
//! a record holds ([`MOST_CHANGES`]), the next file's base is what the call leaves, so every call is durable as
//! a whole or not at all. That costs the writing of all logs, once in so many calls.
//!
//! [`DiskLogs::open`] always writes durably ([`Policy::Always`]): a log that forgot is a component that can deny
//! what it said. Beside counters ([`Both`](super::Both)) the policy is theirs: a component whose counters are void
//! once the machine has started anew loses nothing by logs that are void then, too.

use super::changes;
use super::directory::Directory;
use super::error::StoreError;
use super::format::{Decoder, Encoder, Header, IDENTITY, Layout};
use super::opening::{self, Ready, Request};
use super::record::{Kind, most_blob};
use super::recorder::Recorder;
use super::scan::MOST_BASE;
use super::subject::Subject;
use super::{How, Policy, RealDirectory, SLOTS, failed};
use crate::logs::{LogRoom, log_room};
use std::fmt;
use std::path::Path;
use troth_trusted::a2m::{Entry, LOGS, LogStore, Logs, Operation, Unfit, Unreadable};
use troth_trusted::{Identity, StoreFailed};

/// The longest changes of one call, in bytes, that one record holds: 23 advances, or 37 appends. Longer ones begin
/// a file.
pub const MOST_CHANGES: usize = most_blob::<LogsHead>();
/// The most entries of all logs together.
pub const MOST_ENTRIES: usize = (MOST_BASE as usize - 4096) / size_of::<Entry>();

/// What stands in each record of logs: whose they are. What changed is beside it.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct LogsHead(Identity);

impl Subject for LogsHead {
    const TAG: &'static [u8; 14] = b"troth-a2m-jrnl";
    const LENGTH: usize = 14 + IDENTITY;
    const FILE: &'static str = "logs-";
    const NEW_FILE: &'static str = "logs.new";
    const LAYOUTS: &'static [Layout] = &[Layout::Based];
    const LAYOUT: Layout = Layout::Based;
    const FILE_AT_START: bool = false;

    fn new(identity: Identity) -> Self {
        Self(identity)
    }

    fn identity(&self) -> Identity {
        self.0
    }

    fn put(&self, out: &mut Encoder<'_>) {
        out.put(Self::TAG);
        out.identity(&self.0);
    }

    fn from_part(part: &[u8]) -> Option<Self> {
        let mut parts = Decoder(part);
        let tag: [u8; 14] = parts.take()?;
        let identity = parts.identity()?;
        (tag == *Self::TAG && parts.0.is_empty()).then_some(Self(identity))
    }

    /// The numbers of the records alone say which follows which.
    fn covers(&self, _older: &Self) -> bool {
        true
    }
}

/// A store of logs that is ready, and the logs that it held.
pub struct OpenedLogs<D: Directory = RealDirectory> {
    /// The store.
    pub store: DiskLogs<D>,
    /// The last logs: start the component with [`A2m::restart`](troth_trusted::a2m::A2m::restart). Empty where
    /// this epoch never started.
    pub logs: Logs<LogRoom>,
    /// How it was found.
    pub how: How,
    /// As [`Opened::same_boot`](super::Opened::same_boot).
    pub same_boot: bool,
}

/// The store of one component's logs on a disk.
///
/// After a failure it stores nothing more; what is durable is then found out by opening it again.
pub struct DiskLogs<D: Directory = RealDirectory> {
    recorder: Recorder<D, LogsHead>,
}

/// How much the logs may hold, each so many entries.
pub type Room = [usize; LOGS];

impl DiskLogs {
    /// Opens the store in `directory`, which must exist and be for these logs only; for an epoch that never
    /// started there, a store is made. Each log has room for so many entries; later it may have more, and less
    /// if what it holds fits.
    ///
    /// # Errors
    /// [`StoreError`].
    pub fn open(directory: &Path, identity: Identity, room: Room) -> Result<OpenedLogs, StoreError> {
        let opened = RealDirectory::new(directory);
        let opened =
            opened.map_err(|source| StoreError::NoDirectory { path: directory.to_path_buf(), source })?;
        Self::open_in(opened, identity, room, SLOTS)
    }
}

impl<D: Directory> DiskLogs<D> {
    /// Opens the store in this directory as [`DiskLogs::open`] does, with new files of `slots` slots.
    ///
    /// # Errors
    /// [`StoreError`].
    pub fn open_in(
        directory: D,
        identity: Identity,
        room: Room,
        slots: u32,
    ) -> Result<OpenedLogs<D>, StoreError> {
        let base = first_base(identity, room)?;
        let asked = request(identity, Policy::Always, slots, &base);
        OpenedLogs::new(opening::open(directory, asked)?, room, Policy::Always)
    }

    /// The generation of the present file: one more each time that one was full or too small.
    pub fn generation(&self) -> u64 {
        self.recorder.generation()
    }
}

/// What is asked of the opening of logs.
pub(super) fn request(identity: Identity, policy: Policy, slots: u32, base: &[u8]) -> Request<'_> {
    Request { identity, policy, slots, base }
}

/// The base of the first file: logs without entries.
pub(super) fn first_base(identity: Identity, room: Room) -> Result<Vec<u8>, StoreError> {
    let asked = room.iter().try_fold(0usize, |sum, entries| sum.checked_add(*entries));
    match asked {
        Some(entries) if entries <= MOST_ENTRIES => Ok(written(&Logs::new(identity, log_room([0; LOGS])))),
        _ => Err(StoreError::Entries { most: MOST_ENTRIES }),
    }
}

fn written(logs: &Logs<LogRoom>) -> Vec<u8> {
    let mut base = Vec::with_capacity(logs.written_len());
    logs.write(|part| base.extend_from_slice(part));
    base
}

impl<D: Directory> OpenedLogs<D> {
    /// Puts base and calls together again. From here on they are written as the policy says.
    pub(super) fn new(ready: Ready<D, LogsHead>, room: Room, policy: Policy) -> Result<Self, StoreError> {
        rule!("A2M-S4");
        let Ready { mut recorder, base, blobs, how, same_boot, .. } = ready;
        let contradiction = |what| StoreError::Contradiction { what };
        let mut logs = Logs::read(&base, log_room(room)).map_err(|why| match why {
            Unreadable::NoRoom(log) => StoreError::Room { log: log.0 },
            Unreadable::Damaged | Unreadable::Version(_) => {
                contradiction("a file's base is no state of logs")
            }
        })?;
        if logs.identity() != recorder.header().identity {
            return Err(contradiction("a file's base is of other logs"));
        }
        for blob in blobs {
            let changes = changes::decode(&blob).ok_or(contradiction("a record of no call"))?;
            for change in changes {
                logs = logs.replay(&[change]).map_err(|why| match why {
                    Unfit::Full => StoreError::Room { log: change.log().0 },
                    _ => contradiction("a call that does not follow those before it"),
                })?;
            }
        }
        let Header { policy: found, slots, identity, .. } = *recorder.header();
        if found != policy {
            // A file's policy is one for all its records.
            recorder.turn(&LogsHead(identity), &written(&logs), Kind::Move, policy, slots)?;
        }
        Ok(Self { store: DiskLogs { recorder }, logs, how, same_boot })
    }
}

impl<D: Directory> LogStore<LogRoom> for DiskLogs<D> {
    fn store(&mut self, before: &Logs<LogRoom>, operations: &[Operation]) -> Result<(), StoreFailed> {
        rule!("A2M-S4");
        let changes = changes::encode(operations);
        let stored = self.recorder.attempt(|recorder| {
            let head = LogsHead(before.identity());
            recorder.demand_next(&head)?;
            if changes.len() <= MOST_CHANGES && !recorder.is_full() {
                return recorder.append(&head, Kind::MoveBeside(changes));
            }
            let after = before.clone().replay(operations);
            let after =
                after.map_err(|_| StoreError::Contradiction { what: "a call that cannot be done" })?;
            let Header { policy, slots, .. } = *recorder.header();
            recorder.turn(&head, &written(&after), Kind::Move, policy, slots)
        });
        stored.map_err(failed)
    }
}

impl<D: Directory> fmt::Debug for OpenedLogs<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OpenedLogs")
            .field("store", &self.store)
            .field("how", &self.how)
            .field("same_boot", &self.same_boot)
            .finish_non_exhaustive()
    }
}

impl<D: Directory> fmt::Debug for DiskLogs<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DiskLogs").field("recorder", &self.recorder).finish()
    }
}
