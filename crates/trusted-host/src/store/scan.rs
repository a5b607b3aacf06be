//! Reading one store file: its newest record, if everything around it is as our writes leave it.

use super::directory::{BootId, StoreFile};
use super::error::StoreError;
use super::format::{BLOCK, Block, Header, Unreadable, VERSION};
use super::record::{Kind, Place, Record, Slot};
use super::{FEWEST_SLOTS, MOST_SLOTS, covers, slot_offset};
use troth_trusted::State;

/// What a file holds.
#[derive(Debug)]
pub(super) struct Content {
    /// The first record, with which the file was made.
    pub(super) first: Box<Record>,
    /// The newest state.
    pub(super) last: State,
    /// In which boot the newest record was written.
    pub(super) boot: BootId,
    /// The slot after the newest record.
    pub(super) next_slot: u32,
    /// The blobs beside the moves since the last one without, oldest first.
    pub(super) blobs: Vec<Vec<u8>>,
    /// What the last write left, if it did not reach its end.
    pub(super) interrupted: Option<Interrupted>,
}

/// What an interrupted write left.
#[derive(Debug)]
pub(super) enum Interrupted {
    /// The newest record, readable but not as it was to be written.
    Readable(Box<Record>),
    /// Bytes in the slot after the newest record.
    Unreadable,
}

/// Reads the header of a file and holds it against the file's length.
pub(super) fn header<F: StoreFile>(file: &F, name: &str) -> Result<Header, StoreError> {
    let damaged = |what| StoreError::Damaged { file: name.to_owned(), offset: 0, what };
    let found = file.size().map_err(StoreError::io("read the length of", name))?;
    if found < BLOCK as u64 {
        return Err(damaged("it is shorter than its header, so its end is lost"));
    }
    let mut block: Box<Block> = Box::new([0; BLOCK]);
    file.read_at(&mut block[..], 0).map_err(StoreError::io("read", name))?;
    let header = Header::from_block(&block).map_err(|unreadable| refuse(unreadable, name))?;
    if !(FEWEST_SLOTS..=MOST_SLOTS).contains(&header.slots) {
        return Err(damaged("the header names more or fewer slots than a file has"));
    }
    let expected = header.file_length();
    if found != expected {
        return Err(StoreError::Length { file: name.to_owned(), found, expected });
    }
    Ok(header)
}

/// Reads all slots of a file of this header.
pub(super) fn content<F: StoreFile>(file: &F, header: &Header, name: &str) -> Result<Content, StoreError> {
    let mut block: Box<Block> = Box::new([0; BLOCK]);
    let (mut first, mut newest) = (None, None::<(Box<Record>, u32)>);
    let (mut interrupted, mut ended) = (None, false);
    let mut blobs = Vec::new();
    for slot in 0..header.slots {
        let offset = slot_offset(slot);
        let damaged = |what| StoreError::Damaged { file: name.to_owned(), offset, what };
        file.read_at(&mut block[..], offset).map_err(StoreError::io("read", name))?;
        let index = header.index_of(slot).ok_or_else(|| damaged("its numbers are at their end"))?;
        let Header { layout, generation, identity, .. } = *header;
        let place = Place { layout, generation, index, identity };
        let record = match Slot::read(&block, &place) {
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
        if newest.as_ref().is_some_and(|(older, _)| !covers(&record.state, &older.state)) {
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
        return Err(StoreError::Damaged { file: name.to_owned(), offset: slot_offset(0), what });
    };
    Ok(Content { first, last: newest.state, boot: newest.boot, next_slot, blobs, interrupted })
}

/// The error for a header or marker that cannot be read.
pub(super) fn refuse(unreadable: Unreadable, name: &str) -> StoreError {
    let file = name.to_owned();
    match unreadable {
        Unreadable::Damaged(what) => StoreError::Damaged { file, offset: 0, what },
        Unreadable::Version(found) => StoreError::Version { file, found, known: VERSION },
    }
}
