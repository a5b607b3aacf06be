//! Reading one store file: its newest record, if everything around it is as our writes leave it.

use super::directory::{BootId, StoreFile};
use super::error::StoreError;
use super::format::{BLOCK, Base, Block, Header, Layout, Unreadable, is_zero};
use super::record::{Kind, Place, Record, Slot};
use super::subject::Subject;
use super::{FEWEST_SLOTS, MOST_SLOTS};

/// What a file holds.
#[derive(Debug)]
pub(super) struct Content<S> {
    /// What it begins with.
    pub(super) base: Vec<u8>,
    /// The first record, with which the file was made.
    pub(super) first: Box<Record<S>>,
    /// The newest state.
    pub(super) last: S,
    /// In which boot the newest record was written.
    pub(super) boot: BootId,
    /// The slot after the newest record.
    pub(super) next_slot: u32,
    /// The blobs beside the moves since the last one without, oldest first.
    pub(super) blobs: Vec<Vec<u8>>,
    /// What the last write left, if it did not reach its end.
    pub(super) interrupted: Option<Interrupted<S>>,
}

/// What an interrupted write left.
#[derive(Debug)]
pub(super) enum Interrupted<S> {
    /// The newest record, readable but not as it was to be written.
    Readable(Box<Record<S>>),
    /// Bytes in the slot after the newest record.
    Unreadable,
}

/// The longest base in bytes. The room of all logs together is bounded by it.
pub(super) const MOST_BASE: u64 = 1 << 30;

/// Reads the header of a file, which has one of these layouts, and holds it against the file's length.
pub(super) fn header<F: StoreFile>(file: &F, name: &str, layouts: &[Layout]) -> Result<Header, StoreError> {
    let damaged = |what| StoreError::Damaged { file: name.to_owned(), offset: 0, what };
    let found = file.size().map_err(StoreError::io("read the length of", name))?;
    if found < BLOCK as u64 {
        return Err(damaged("it is shorter than its header, so its end is lost"));
    }
    let mut block: Box<Block> = Box::new([0; BLOCK]);
    file.read_at(&mut block[..], 0).map_err(StoreError::io("read", name))?;
    let header = Header::from_block(&block, layouts);
    let newest = layouts.last().map_or(0, |layout| layout.version());
    let header = header.map_err(|unreadable| refuse(unreadable, name, newest))?;
    if !(FEWEST_SLOTS..=MOST_SLOTS).contains(&header.slots) {
        return Err(damaged("the header names more or fewer slots than a file has"));
    }
    if header.base.length > MOST_BASE {
        return Err(damaged("the header names a longer base than there is"));
    }
    let expected = header.file_length();
    if found != expected {
        return Err(StoreError::Length { file: name.to_owned(), found, expected });
    }
    Ok(header)
}

/// Reads the base of a file of this header, block by block: there are as many bytes, as the file's length shows.
fn base<F: StoreFile>(file: &F, header: &Header, name: &str) -> Result<Vec<u8>, StoreError> {
    let begins = BLOCK as u64;
    let mut base = Vec::new();
    let mut block: Box<Block> = Box::new([0; BLOCK]);
    while (base.len() as u64) < header.base.blocks_length() {
        let offset = begins + base.len() as u64;
        file.read_at(&mut block[..], offset).map_err(StoreError::io("read", name))?;
        base.extend_from_slice(&block[..]);
    }
    let beside = base.split_off(usize::try_from(header.base.length).unwrap_or(base.len()));
    if Base::of(&base) != header.base || !is_zero(&beside) {
        let what = "what it begins with is not what its header names";
        return Err(StoreError::Damaged { file: name.to_owned(), offset: begins, what });
    }
    Ok(base)
}

/// Reads base and slots of a file of this header.
pub(super) fn content<F: StoreFile, S: Subject>(
    file: &F,
    header: &Header,
    name: &str,
) -> Result<Content<S>, StoreError> {
    let base = base(file, header, name)?;
    let mut block: Box<Block> = Box::new([0; BLOCK]);
    let (mut first, mut newest) = (None, None::<(Box<Record<S>>, u32)>);
    let (mut interrupted, mut ended) = (None, false);
    let mut blobs = Vec::new();
    for slot in 0..header.slots {
        let offset = header.slot_offset(slot);
        let damaged = |what| StoreError::Damaged { file: name.to_owned(), offset, what };
        file.read_at(&mut block[..], offset).map_err(StoreError::io("read", name))?;
        let index = header.index_of(slot).ok_or_else(|| damaged("its numbers are at their end"))?;
        let Header { layout, generation, identity, .. } = *header;
        let place = Place { layout, generation, index, identity };
        let record: Box<Record<S>> = match Slot::read(&block, &place) {
            Slot::Damaged(what) => return Err(damaged(what)),
            Slot::Empty => {
                ended = true;
                continue;
            }
            _ if ended => return Err(damaged("something after the last record")),
            Slot::Torn => {
                (interrupted, ended) = (Some(Interrupted::Unreadable), true);
                continue;
            }
            Slot::Partly(record) => {
                (interrupted, ended) = (Some(Interrupted::Readable(record.clone())), true);
                record
            }
            Slot::Whole(record) => record,
        };
        if newest.as_ref().is_some_and(|(older, _)| !record.state.covers(&older.state)) {
            return Err(damaged("a counter below where it stood before"));
        }
        match &record.kind {
            Kind::Start => {}
            Kind::Move => blobs.clear(),
            Kind::MoveBeside(blob) => blobs.push(blob.clone()),
        }
        first.get_or_insert_with(|| record.clone());
        newest = Some((record, slot + 1));
    }
    // The first record is durable before the file gets its name, so no crash takes it away.
    let (Some(first), Some((newest, next_slot))) = (first, newest) else {
        let what = "the first record is not there";
        return Err(StoreError::Damaged { file: name.to_owned(), offset: header.slot_offset(0), what });
    };
    Ok(Content { base, first, last: newest.state, boot: newest.boot, next_slot, blobs, interrupted })
}

/// The error for a header or marker that cannot be read, of which `known` is the newest version.
pub(super) fn refuse(unreadable: Unreadable, name: &str, known: u16) -> StoreError {
    let file = name.to_owned();
    match unreadable {
        Unreadable::Damaged(what) => StoreError::Damaged { file, offset: 0, what },
        Unreadable::Version(found) => StoreError::Version { file, found, known },
    }
}
