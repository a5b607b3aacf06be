//! From what a directory holds to a store that is ready, or to the reason why there is none.
//!
//! A new epoch starts in this order: the marker says that the epoch is being made (generation 0), its
//! first file gets its name, the marker says generation 1, files of earlier epochs go. A new generation:
//! its file gets its name, the marker follows, the older file goes. Each step is durable before the next,
//! so the marker names the newest file or the one before it, and nothing is certified in between.

use super::directory::{BootId, Directory, StoreFile};
use super::error::StoreError;
use super::format::{self, BLOCK, Base, Block, Header};
use super::making::{make_file, mark};
use super::record::Kind;
use super::recorder::Recorder;
use super::scan::{self, Content, Interrupted};
use super::subject::Subject;
use super::{
    FEWEST_SLOTS, How, MARKER, MOST_SLOTS, NEW_MARKER, Policy, SPENT, file_name, name_of, parse_name,
};
use std::marker::PhantomData;
use troth_trusted::{Epoch, Identity};

/// What the caller asks for.
#[derive(Clone, Copy)]
pub(super) struct Request<'a> {
    pub(super) identity: Identity,
    pub(super) policy: Policy,
    /// Slots of new files.
    pub(super) slots: u32,
    /// The base of the first file.
    pub(super) base: &'a [u8],
}

/// A store that is ready, and what it held.
pub(super) struct Ready<D: Directory, S> {
    pub(super) recorder: Recorder<D, S>,
    /// `None` where this epoch never started.
    pub(super) last: Option<S>,
    /// What its file begins with.
    pub(super) base: Vec<u8>,
    /// What was kept beside the records since, oldest first.
    pub(super) blobs: Vec<Vec<u8>>,
    pub(super) how: How,
    pub(super) same_boot: bool,
}

/// A directory that was looked at, and locked, with what is to be done there.
pub(super) struct Examined<'a, D, S> {
    directory: D,
    request: Request<'a>,
    boot: BootId,
    /// All files of all epochs.
    files: Vec<(Epoch, u64)>,
    /// The generation that the marker names, if it is of this epoch.
    marked: Option<u64>,
    /// The generations to go on from; `None` where the epoch never started.
    ours: Option<Vec<u64>>,
    subject: PhantomData<S>,
}

/// A file with what it holds.
struct Found<F, S> {
    file: F,
    header: Header,
    content: Content<S>,
}

/// Opens the store of a directory.
pub(super) fn open<D: Directory, S: Subject>(
    directory: D,
    request: Request<'_>,
) -> Result<Ready<D, S>, StoreError> {
    examine(directory, request)?.go_on()
}

/// Finds out what is to be done with a directory, and changes nothing but files under passing names.
pub(super) fn examine<D: Directory, S: Subject>(
    mut directory: D,
    request: Request<'_>,
) -> Result<Examined<'_, D, S>, StoreError> {
    let Request { identity, slots, .. } = request;
    if !(FEWEST_SLOTS..=MOST_SLOTS).contains(&slots) {
        return Err(StoreError::Slots { slots, most: MOST_SLOTS });
    }
    if !directory.lock().map_err(StoreError::io("lock", "the directory"))? {
        return Err(StoreError::Locked);
    }
    let boot = directory.boot().map_err(StoreError::io("read", "the boot id"))?;
    let names = directory.names().map_err(StoreError::io("list", "the directory"))?;
    let files: Vec<(Epoch, u64)> = names.iter().filter_map(|name| parse_name::<S>(name)).collect();
    // Files under their passing names were never entered, so nothing was certified on their account.
    for passing in
        [S::NEW_FILE, NEW_MARKER].iter().filter(|passing| names.iter().any(|name| name == *passing))
    {
        directory.remove(passing).map_err(StoreError::io("remove", passing))?;
    }
    let started = match names.iter().any(|name| name == MARKER) {
        true => Some(read_marker(&directory)?),
        false => None,
    };
    let mut examined =
        Examined { directory, request, boot, files, marked: None, ours: None, subject: PhantomData };
    let Some(started) = started else {
        return match examined.files.is_empty() {
            true => Ok(examined),
            false => Err(StoreError::Missing { file: MARKER.to_owned() }),
        };
    };
    let (group, replica) = (started.identity.group, started.identity.replica);
    if (group, replica) != (identity.group, identity.replica) {
        return Err(StoreError::OtherReplica);
    }
    let reached = started.identity.epoch;
    if examined.files.iter().any(|(epoch, _)| *epoch > reached) {
        return Err(StoreError::Contradiction { what: "a file of an epoch that never started" });
    }
    if reached > identity.epoch {
        return Err(StoreError::EpochOver { asked: identity.epoch, reached });
    }
    if reached < identity.epoch {
        return Ok(examined);
    }
    examined.marked = Some(started.generation);
    let mut ours: Vec<u64> =
        examined.files.iter().filter(|file| file.0 == reached).map(|file| file.1).collect();
    ours.sort_unstable();
    if started.generation > 0 || !never_ran::<D, S>(&examined.directory, &request, &ours)? {
        examined.ours = Some(ours);
    }
    Ok(examined)
}

/// Whether an epoch that the marker calls unfinished is: no file, or the first one as it was made.
fn never_ran<D: Directory, S: Subject>(
    directory: &D,
    request: &Request<'_>,
    ours: &[u64],
) -> Result<bool, StoreError> {
    match ours {
        [] => Ok(true),
        [1] => {
            let found = find::<D, S>(directory, request.identity, 1, |_| Ok(()))?;
            let untouched = found.content.next_slot == 1 && found.content.interrupted.is_none();
            Ok(untouched && found.content.last == S::new(request.identity))
        }
        _ => Ok(false),
    }
}

impl<D: Directory, S: Subject> Examined<'_, D, S> {
    /// Whether this epoch never started here.
    pub(super) fn is_fresh(&self) -> bool {
        self.ours.is_none()
    }

    /// Whether the marker says that this epoch is being made, or was.
    pub(super) fn is_begun(&self) -> bool {
        self.marked.is_some()
    }

    /// Has the marker say that this epoch is being made, durably.
    pub(super) fn begin(&mut self) -> Result<(), StoreError> {
        mark(&self.directory, &Header { generation: 0, ..self.first_header() })?;
        self.marked = Some(0);
        Ok(())
    }

    /// The header of the first file.
    fn first_header(&self) -> Header {
        let Request { identity, policy, slots, base } = self.request;
        let (layout, boot, base) = (S::LAYOUT, self.boot, Base::of(base));
        Header { layout, policy, slots, generation: 1, first_index: 0, identity, boot, base }
    }

    /// Starts the epoch, or goes on from what is there.
    pub(super) fn go_on(self) -> Result<Ready<D, S>, StoreError> {
        match (&self.ours, self.marked) {
            (Some(ours), Some(marked)) => {
                let ours = ours.clone();
                self.resume(marked, &ours)
            }
            _ => self.start(),
        }
    }

    /// Makes the store of an epoch that never started, and removes what is left of earlier ones.
    fn start(mut self) -> Result<Ready<D, S>, StoreError> {
        let (state, header) = (S::new(self.request.identity), self.first_header());
        self.begin()?;
        let Self { directory, request, boot, files, .. } = self;
        let file = make_file(&directory, &header, request.base, &state, Kind::Start)?;
        for (epoch, generation) in files.iter().filter(|file| file.0 < request.identity.epoch) {
            let name = name_of::<S>(*epoch, *generation);
            directory.remove(&name).map_err(StoreError::io("remove", &name))?;
        }
        // Not synced: one that comes back is of an epoch that the marker says is over, and goes at the next
        // start.
        let recorder = Recorder::new(directory, file, header, boot, 1, state);
        let (base, blobs) = (request.base.to_vec(), Vec::new());
        Ok(Ready { recorder, last: None, base, blobs, how: How::Fresh, same_boot: true })
    }

    /// Goes on from the newest file, which must be the one that the marker names or the one after it.
    fn resume(self, marked: u64, ours: &[u64]) -> Result<Ready<D, S>, StoreError> {
        let Self { directory, request, boot, files, .. } = self;
        let following = marked.checked_add(1).ok_or(SPENT)?;
        let (older, newest) = match ours {
            [one] if *one == marked => (None, marked),
            [one, other] if *one == marked && *other == following => (Some(marked), following),
            [one, other] if one.checked_add(1) == Some(marked) && *other == marked => (Some(*one), marked),
            _ if !ours.contains(&marked) => {
                return Err(StoreError::Missing { file: name_of::<S>(request.identity.epoch, marked) });
            }
            _ => {
                return Err(StoreError::Contradiction { what: "the generations are not those of one store" });
            }
        };
        // Looked at before the records: where they need not be the last, holes in them are no damage.
        let found = find::<D, S>(&directory, request.identity, newest, |header| proven(header, boot))?;
        if let Some(older) = older {
            let older = find(&directory, request.identity, older, |_| Ok(()))?;
            if !follows(&found, &older) {
                return Err(StoreError::Contradiction { what: "a generation that does not follow the last" });
            }
        }
        let same_boot = found.content.boot == boot;
        // A name may be seen though it is not durable yet, and must be before anything is built on it.
        sync(&directory)?;
        if newest != marked {
            mark(&directory, &found.header)?;
        }
        let leftover = |(epoch, generation): &&(Epoch, u64)| {
            *epoch < request.identity.epoch || Some(*generation) == older
        };
        for (epoch, generation) in files.iter().filter(leftover) {
            let name = name_of::<S>(*epoch, *generation);
            directory.remove(&name).map_err(StoreError::io("remove", &name))?;
        }
        // The next file may get its name soon, and there are never three.
        sync(&directory)?;
        settle(directory, request, boot, found, same_boot)
    }
}

/// Clears what an interrupted write left, then writes the record of this start.
fn settle<D: Directory, S: Subject>(
    directory: D,
    request: Request<'_>,
    boot: BootId,
    found: Found<D::File, S>,
    same_boot: bool,
) -> Result<Ready<D, S>, StoreError> {
    let Found { file, header, content } = found;
    let name = file_name::<S>(&header);
    let mut block: Box<Block> = Box::new([0; BLOCK]);
    let how = match &content.interrupted {
        None => How::Resumed,
        Some(_) => How::Torn,
    };
    // An unreadable rest is overwritten by zeros before the slot is used again: the bytes of two
    // interrupted writes together would look like damage.
    let clear = match &content.interrupted {
        None => None,
        Some(Interrupted::Unreadable) => Some(content.next_slot),
        Some(Interrupted::Readable(record)) => {
            record.fill(header.layout, &mut block);
            content.next_slot.checked_sub(1)
        }
    };
    if let Some(slot) = clear {
        file.write_at(&block[..], header.slot_offset(slot)).map_err(StoreError::io("write", &name))?;
    }
    file.sync_data().map_err(StoreError::io("sync", &name))?;
    let Content { base, last, next_slot, blobs, .. } = content;
    let pending = !blobs.is_empty();
    let mut recorder = Recorder::new(directory, file, header, boot, next_slot, last.clone());
    let full = next_slot == header.slots;
    // Blobs do not go into another file, so with some pending there is none until a move without a blob:
    // another policy waits for the next start, and this file's is the strictest. Where it is full as well,
    // the record of this start is left out. It would state nothing of the counters; what it tells is the
    // boot, and without it a later start of this boot takes the end of the process for that of the machine,
    // which nothing is concluded from where every record was durable. Logs do so whether any are pending or
    // not.
    let outdated = header.policy != request.policy || header.layout != S::LAYOUT;
    if S::FILE_AT_START && !pending && (full || outdated) {
        recorder.turn(&last, &[], Kind::Start, request.policy, request.slots)?;
    } else if !full {
        recorder.append(&last, Kind::Start)?;
        recorder.sync_file()?;
    }
    Ok(Ready { recorder, last: Some(last), base, blobs, how, same_boot })
}

/// Refuses a store whose newest record need not be the last that was acknowledged.
fn proven(header: &Header, boot: BootId) -> Result<(), StoreError> {
    let event = match header.policy {
        Policy::Always => return Ok(()),
        Policy::Interval if header.boot == boot => return Ok(()),
        Policy::Interval => "the machine has started anew",
        Policy::Memory => "the process has ended",
    };
    Err(StoreError::Unproven { policy: header.policy, event })
}

/// Whether a file goes on exactly where an older one ends. Only a move without a blob ends one with blobs.
fn follows<F, S: Subject>(newer: &Found<F, S>, older: &Found<F, S>) -> bool {
    let first = &newer.content.first;
    (older.content.blobs.is_empty() || first.kind == Kind::Move)
        && older.content.interrupted.is_none()
        && older.header.index_of(older.content.next_slot) == Some(newer.header.first_index)
        && first.state.covers(&older.content.last)
}

/// Opens and reads the file of a generation, if its header is acceptable.
fn find<D: Directory, S: Subject>(
    directory: &D,
    identity: Identity,
    generation: u64,
    acceptable: impl Fn(&Header) -> Result<(), StoreError>,
) -> Result<Found<D::File, S>, StoreError> {
    let name = name_of::<S>(identity.epoch, generation);
    let file = directory.open(&name).map_err(StoreError::io("open", &name))?;
    let header = scan::header(&file, &name, S::LAYOUTS)?;
    if header.identity != identity || header.generation != generation {
        return Err(StoreError::Contradiction { what: "a file under a name that is not its own" });
    }
    acceptable(&header)?;
    let content = scan::content(&file, &header, &name)?;
    Ok(Found { file, header, content })
}

fn read_marker<D: Directory>(directory: &D) -> Result<format::Marker, StoreError> {
    let file = directory.open(MARKER).map_err(StoreError::io("open", MARKER))?;
    let found = file.size().map_err(StoreError::io("read the length of", MARKER))?;
    let expected = format::MARKER as u64;
    if found != expected {
        return Err(StoreError::Length { file: MARKER.to_owned(), found, expected });
    }
    let mut bytes = [0; format::MARKER];
    file.read_at(&mut bytes, 0).map_err(StoreError::io("read", MARKER))?;
    format::Marker::from_bytes(&bytes)
        .map_err(|unreadable| scan::refuse(unreadable, MARKER, format::MARKER_VERSION))
}

fn sync<D: Directory>(directory: &D) -> Result<(), StoreError> {
    directory.sync().map_err(StoreError::io("sync", "the directory"))
}
