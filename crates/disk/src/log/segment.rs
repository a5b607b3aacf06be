//! The segment that is being written: what is only in memory, what is in the file, what is durable.

use super::format::{self, HEADER, Header, Kind, Place, RECORD_HEADER, Stand};
use crate::disk::create_anew;
use crate::{Disk, DiskError, DiskFile};
use bytes::Bytes;
use std::io::ErrorKind;

/// More bytes than this that were written and not synced are not kept in memory: from then on a sync that
/// finds the disk full is fatal, because what it lost cannot be written again.
const MOST_KEPT: usize = 1 << 26;
/// Bytes of a new segment's first records that are put together for one write; in tests so few that a crash or a full disk
/// comes between two of them.
const PIECE: usize = if cfg!(test) { 64 } else { 1 << 20 };
/// Memory that is kept for later records where none waits.
const MOST_SPARE: usize = 1 << 22;

/// What a segment holds, all of it durable.
pub(super) struct Held {
    /// Records, marks and stands.
    pub(super) count: u64,
    /// Records alone.
    pub(super) records: u64,
    /// Where they end.
    pub(super) end: u64,
}

pub(super) struct Segment<F> {
    file: F,
    pub(super) header: Header,
    /// Everything appended, which is the next one's index.
    count: u64,
    /// Records among that: neither marks nor stands.
    records: u64,
    /// Everything before is durable.
    synced: u64,
    /// Everything before was given to the file.
    written: u64,
    /// The file has this length: room that was made ends here.
    room: u64,
    /// The bytes that end the segment: from `synced` on, or from `written` on where too much was not synced.
    kept: Vec<u8>,
    /// Where they begin.
    kept_from: u64,
    /// Whether the next record is to have a mark in front.
    mark_due: bool,
    /// How many bytes a sync made durable, on average over the last few.
    usual: Option<u64>,
}

/// Makes a segment that is in force, and durable with everything in it, when this returns. `records` are
/// its first. After [`DiskError::Full`] nothing is left of it that counts.
pub(super) fn begin<D: Disk>(
    disk: &D,
    mut header: Header,
    records: &[Bytes],
) -> Result<Segment<D::File>, DiskError> {
    let (new, name) = (format::new_name(header.segment), format::name(header.segment));
    let bytes: usize = records.iter().map(|record| RECORD_HEADER + record.len()).sum();
    let end = (HEADER + bytes) as u64;
    header.whole = end;
    let fill = || {
        let mut file = create_anew(disk, &new)?;
        file.write_at(0, &header.encode())?;
        let (mut at, mut piece) = (HEADER as u64, Vec::new());
        for (index, record) in (0..).zip(records) {
            header.put_record(&mut piece, index, Kind::Record, record);
            if piece.len() >= PIECE || index + 1 == records.len() as u64 {
                file.write_at(at, &piece)?;
                at += piece.len() as u64;
                piece.clear();
            }
        }
        debug_assert_eq!(at, end);
        file.sync_data()?;
        disk.rename(&new, &name)?;
        Ok(file)
    };
    let file = match fill() {
        Ok(file) => file,
        Err(DiskError::Full { what, file }) => {
            match disk.remove(&new) {
                // There is nothing to remove where not even the making succeeded.
                Ok(()) => {}
                Err(DiskError::Io { source, .. }) if source.kind() == ErrorKind::NotFound => {}
                Err(why) => return Err(why),
            }
            return Err(DiskError::Full { what, file });
        }
        Err(why) => return Err(why),
    };
    disk.sync_directory().map_err(no_way_back)?;
    let count = records.len() as u64;
    let mut segment = Segment::resumed(file, header, Held { count, records: count, end }, end);
    segment.mark_due = false;
    Ok(segment)
}

/// An error after which the state of the disk is not known, also where the disk was merely full.
fn no_way_back(why: DiskError) -> DiskError {
    match why {
        DiskError::Full { what, file } => {
            DiskError::Io { what, file, source: std::io::Error::other("no space, at a point of no return") }
        }
        other => other,
    }
}

impl<F: DiskFile> Segment<F> {
    /// A segment all of which is durable.
    pub(super) fn resumed(file: F, header: Header, held: Held, room: u64) -> Self {
        let Held { count, records, end } = held;
        Self {
            file,
            header,
            count,
            records,
            synced: end,
            written: end,
            room,
            kept: Vec::new(),
            kept_from: end,
            mark_due: count > 0,
            usual: None,
        }
    }

    /// Where the segment ends, with what is only in memory.
    pub(super) fn end(&self) -> u64 {
        self.kept_from + self.kept.len() as u64
    }

    /// Bytes that were not given to the file.
    pub(super) fn unwritten(&self) -> usize {
        (self.end() - self.written) as usize
    }

    pub(super) fn all_synced(&self) -> bool {
        self.synced == self.end()
    }

    pub(super) fn append(&mut self, payload: &[u8]) {
        self.put(Kind::Record, payload);
        self.records += 1;
    }

    /// Says what the log stands on, in front of the next record.
    pub(super) fn stand(&mut self, stand: &Stand) {
        self.put(Kind::Stand, &stand.encode());
    }

    fn put(&mut self, kind: Kind, payload: &[u8]) {
        self.mark();
        self.header.put_record(&mut self.kept, self.count, kind, payload);
        self.count += 1;
    }

    /// Where the next record will be.
    pub(super) fn place(&self) -> Place {
        Place { segment: self.header.segment, records: self.records }
    }

    /// Says that all before was durable, where nothing says so yet.
    pub(super) fn mark(&mut self) {
        if self.mark_due {
            assert!(self.all_synced(), "a mark is the first thing appended after a sync");
            let offset = self.end();
            self.header.put_mark(&mut self.kept, self.count, offset);
            self.count += 1;
            self.mark_due = false;
        }
    }

    /// Gives everything to the file in one call.
    pub(super) fn write(&mut self) -> Result<(), DiskError> {
        if self.unwritten() == 0 {
            return Ok(());
        }
        let from = (self.written - self.kept_from) as usize;
        match self.file.write_at(self.written, &self.kept[from..]) {
            Ok(()) => {}
            Err(why) if why.is_full() => {
                self.cut_to(self.written)?;
                return Err(why);
            }
            Err(why) => return Err(why),
        }
        self.written = self.end();
        self.room = self.room.max(self.written);
        if self.kept.len() > MOST_KEPT {
            self.kept = Vec::new();
            self.kept_from = self.written;
        }
        Ok(())
    }

    /// Makes room, and makes it durable, where little is left and it pays.
    ///
    /// A sync of bytes that lie in room takes about half the time of one that lengthens the file, and far
    /// less than the file system's journal makes of it at worst; but the room has to be written too. It pays where
    /// a step serves some dozens of syncs (measured with `examples/room.rs`: up to 100 to 200 KiB a sync), and
    /// not at all where nothing is synced.
    pub(super) fn make_room(&mut self, step: u64) -> Result<(), DiskError> {
        let pays = self.usual.is_some_and(|usual| usual <= step / 32);
        if !pays || !self.all_synced() || self.room - self.synced >= step / 2 {
            return Ok(());
        }
        let before = self.room;
        let to = before.saturating_add(step);
        match self.file.reserve(before, to).and_then(|()| self.file.sync_data()) {
            Ok(()) => self.room = to,
            // There is no space for so much, and nothing in the room that could be lost.
            Err(why) if why.is_full() => self.cut_to(before)?,
            Err(why) => return Err(why),
        }
        Ok(())
    }

    /// Makes everything that was given to the file durable.
    pub(super) fn sync(&mut self) -> Result<(), DiskError> {
        if self.synced == self.written {
            return Ok(());
        }
        match self.file.sync_data() {
            Ok(()) => {}
            Err(why) if why.is_full() && self.kept_from == self.synced => {
                // The kernel has forgotten what it could not write: it has to be written again, from memory.
                self.cut_to(self.synced)?;
                self.written = self.synced;
                return Err(why);
            }
            Err(why) => return Err(no_way_back(why)),
        }
        let bytes = self.written - self.synced;
        self.usual = Some(self.usual.map_or(bytes, |usual| (usual * 7 + bytes) / 8));
        self.synced = self.written;
        let done = (self.synced - self.kept_from) as usize;
        self.kept.drain(..done);
        if self.kept.is_empty() && self.kept.capacity() > MOST_SPARE {
            self.kept = Vec::new();
        }
        self.kept_from = self.synced;
        self.mark_due = true;
        Ok(())
    }

    /// Takes back everything from `offset` on.
    fn cut_to(&mut self, offset: u64) -> Result<(), DiskError> {
        self.file.set_len(offset).map_err(no_way_back)?;
        self.room = offset;
        Ok(())
    }

    /// Gives back the room behind the end of a segment that will not grow.
    pub(super) fn trim(&mut self) -> Result<(), DiskError> {
        let end = self.end();
        if self.room > end { self.cut_to(end) } else { Ok(()) }
    }
}
