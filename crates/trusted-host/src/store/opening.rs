//! From what a directory holds to a store that is ready, or to the reason why there is none.
//!
//! A new epoch starts in this order: the marker says that the epoch is being made (generation 0), its
//! first file gets its name, the marker says generation 1, files of earlier epochs go. A new generation:
//! its file gets its name, the marker follows, the older file goes. Each step is durable before the next,
//! so the marker names the newest file or the one before it, and nothing is certified in between.

use super::directory::{BootId, Directory, StoreFile};
use super::error::StoreError;
use super::format::{self, BLOCK, Block, Header, Layout};
use super::making::{make_file, mark};
use super::record::Kind;
use super::scan::{self, Content, Interrupted};
use super::{
    DiskStore, FEWEST_SLOTS, How, MARKER, MOST_SLOTS, NEW_FILE, NEW_MARKER, Opened, Policy, SPENT, covers,
    file_name, name_of, parse_name, slot_offset,
};
use troth_trusted::{Epoch, Identity, State};

/// What the caller asked for, and where it stands.
struct Request {
    identity: Identity,
    policy: Policy,
    slots: u32,
    boot: BootId,
}

/// A file with what it holds.
struct Found<F> {
    file: F,
    header: Header,
    content: Content,
}

/// Opens the store of a directory.
pub(super) fn open<D: Directory>(
    mut directory: D,
    identity: Identity,
    policy: Policy,
    slots: u32,
) -> Result<Opened<D>, StoreError> {
    if !(FEWEST_SLOTS..=MOST_SLOTS).contains(&slots) {
        return Err(StoreError::Slots { slots, most: MOST_SLOTS });
    }
    if !directory.lock().map_err(StoreError::io("lock", "the directory"))? {
        return Err(StoreError::Locked);
    }
    let boot = directory.boot().map_err(StoreError::io("read", "the boot id"))?;
    let request = Request { identity, policy, slots, boot };
    let names = directory.names().map_err(StoreError::io("list", "the directory"))?;
    let files: Vec<(Epoch, u64)> = names.iter().filter_map(|name| parse_name(name)).collect();
    // Files under their passing names were never entered, so nothing was certified on their account.
    for passing in [NEW_FILE, NEW_MARKER].iter().filter(|passing| names.iter().any(|name| name == *passing)) {
        directory.remove(passing).map_err(StoreError::io("remove", passing))?;
    }
    let started = match names.iter().any(|name| name == MARKER) {
        true => Some(read_marker(&directory)?),
        false => None,
    };
    let Some(started) = started else {
        return match files.is_empty() {
            true => start(directory, &request, &[]),
            false => Err(StoreError::Missing { file: MARKER.to_owned() }),
        };
    };
    let (group, replica) = (started.identity.group, started.identity.replica);
    if (group, replica) != (identity.group, identity.replica) {
        return Err(StoreError::OtherReplica);
    }
    let reached = started.identity.epoch;
    if files.iter().any(|(epoch, _)| *epoch > reached) {
        return Err(StoreError::Contradiction { what: "a file of an epoch that never started" });
    }
    if reached > identity.epoch {
        return Err(StoreError::EpochOver { asked: identity.epoch, reached });
    }
    if reached < identity.epoch {
        return start(directory, &request, &files);
    }
    let mut ours: Vec<u64> = files.iter().filter(|file| file.0 == reached).map(|file| file.1).collect();
    ours.sort_unstable();
    if started.generation == 0 && never_ran(&directory, &request, &ours)? {
        return start(directory, &request, &files);
    }
    resume(directory, &request, started.generation, &ours, &files)
}

/// Whether an epoch that the marker calls unfinished is: no file, or the first one as it was made.
fn never_ran<D: Directory>(directory: &D, request: &Request, ours: &[u64]) -> Result<bool, StoreError> {
    match ours {
        [] => Ok(true),
        [1] => {
            let found = find(directory, request.identity, 1, |_| Ok(()))?;
            let untouched = found.content.next_slot == 1 && found.content.interrupted.is_none();
            Ok(untouched && found.content.last == State::new(request.identity))
        }
        _ => Ok(false),
    }
}

/// Makes the store of an epoch that never started, and removes what is left of earlier ones.
fn start<D: Directory>(
    directory: D,
    request: &Request,
    files: &[(Epoch, u64)],
) -> Result<Opened<D>, StoreError> {
    let state = State::new(request.identity);
    let header = Header {
        layout: Layout::WithBlobs,
        policy: request.policy,
        slots: request.slots,
        generation: 1,
        first_index: 0,
        identity: request.identity,
        boot: request.boot,
    };
    mark(&directory, &Header { generation: 0, ..header })?;
    let file = make_file(&directory, &header, &state, Kind::Start)?;
    for (epoch, generation) in files.iter().filter(|file| file.0 < request.identity.epoch) {
        let name = name_of(*epoch, *generation);
        directory.remove(&name).map_err(StoreError::io("remove", &name))?;
    }
    // Not synced: one that comes back is of an epoch that the marker says is over, and goes at the next start.
    let block = Box::new([0; BLOCK]);
    let (boot, last) = (request.boot, state);
    let blobs = Vec::new();
    let store = DiskStore { directory, file, header, boot, next_slot: 1, last, blobs, block, failed: false };
    Ok(Opened { store, last: None, how: How::Fresh, same_boot: true })
}

/// Goes on from the newest file, which must be the one that the marker names or the one after it.
fn resume<D: Directory>(
    directory: D,
    request: &Request,
    marked: u64,
    ours: &[u64],
    files: &[(Epoch, u64)],
) -> Result<Opened<D>, StoreError> {
    let following = marked.checked_add(1).ok_or(SPENT)?;
    let (older, newest) = match ours {
        [one] if *one == marked => (None, marked),
        [one, other] if *one == marked && *other == following => (Some(marked), following),
        [one, other] if one.checked_add(1) == Some(marked) && *other == marked => (Some(*one), marked),
        _ if !ours.contains(&marked) => {
            return Err(StoreError::Missing { file: name_of(request.identity.epoch, marked) });
        }
        _ => return Err(StoreError::Contradiction { what: "the generations are not those of one store" }),
    };
    // Looked at before the records: where they need not be the last, holes in them are no damage.
    let found = find(&directory, request.identity, newest, |header| proven(header, request.boot))?;
    if let Some(older) = older {
        let older = find(&directory, request.identity, older, |_| Ok(()))?;
        if !follows(&found, &older) {
            return Err(StoreError::Contradiction { what: "a generation that does not follow the last" });
        }
    }
    let same_boot = found.content.boot == request.boot;
    // A name may be seen though it is not durable yet, and must be before anything is built on it.
    sync(&directory)?;
    if newest != marked {
        mark(&directory, &found.header)?;
    }
    let leftover =
        |(epoch, generation): &&(Epoch, u64)| *epoch < request.identity.epoch || Some(*generation) == older;
    for (epoch, generation) in files.iter().filter(leftover) {
        let name = name_of(*epoch, *generation);
        directory.remove(&name).map_err(StoreError::io("remove", &name))?;
    }
    // The next file may get its name soon, and there are never three.
    sync(&directory)?;
    settle(directory, request, found, same_boot)
}

/// Clears what an interrupted write left, then writes the record of this start.
fn settle<D: Directory>(
    directory: D,
    request: &Request,
    found: Found<D::File>,
    same_boot: bool,
) -> Result<Opened<D>, StoreError> {
    let Found { file, header, content } = found;
    let name = file_name(&header);
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
        file.write_at(&block[..], slot_offset(slot)).map_err(StoreError::io("write", &name))?;
    }
    file.sync_data().map_err(StoreError::io("sync", &name))?;
    let Content { last, next_slot, blobs, .. } = content;
    let (boot, pending) = (request.boot, !blobs.is_empty());
    let mut store = DiskStore {
        directory,
        file,
        header,
        boot,
        next_slot,
        last: last.clone(),
        blobs,
        block,
        failed: false,
    };
    let full = next_slot == header.slots;
    // Blobs do not go into another file, so with some pending there is none until a move without a blob:
    // another policy waits for the next start, and this file's is the strictest. Where it is full as well,
    // the record of this start is left out. It would state nothing of the counters; what it tells is the
    // boot, and without it a later start of this boot takes the end of the process for that of the machine,
    // which nothing is concluded from where every record was durable.
    let outdated = header.policy != request.policy || header.layout != Layout::WithBlobs;
    if !pending && (full || outdated) {
        store.turn(&last, Kind::Start, request.policy, request.slots)?;
    } else if !full {
        store.append(&last, Kind::Start)?;
        store.sync_file()?;
    }
    Ok(Opened { store, last: Some(last), how, same_boot })
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
fn follows<F>(newer: &Found<F>, older: &Found<F>) -> bool {
    let first = &newer.content.first;
    (older.content.blobs.is_empty() || first.kind == Kind::Move)
        && older.content.interrupted.is_none()
        && older.header.index_of(older.content.next_slot) == Some(newer.header.first_index)
        && covers(&first.state, &older.content.last)
}

/// Opens and reads the file of a generation, if its header is acceptable.
fn find<D: Directory>(
    directory: &D,
    identity: Identity,
    generation: u64,
    acceptable: impl Fn(&Header) -> Result<(), StoreError>,
) -> Result<Found<D::File>, StoreError> {
    let name = name_of(identity.epoch, generation);
    let file = directory.open(&name).map_err(StoreError::io("open", &name))?;
    let header = scan::header(&file, &name)?;
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
    format::Marker::from_bytes(&bytes).map_err(|unreadable| scan::refuse(unreadable, MARKER))
}

fn sync<D: Directory>(directory: &D) -> Result<(), StoreError> {
    directory.sync().map_err(StoreError::io("sync", "the directory"))
}
