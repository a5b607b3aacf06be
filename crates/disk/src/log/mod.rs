//! The write-ahead log: records appended to numbered segments, each durable once a sync has returned.

pub(crate) mod format;
mod open;
mod scan;
mod segment;

pub use format::{Cut, Identity, MAX_RECORD, Recovered};

use crate::{Disk, LogError};
use bytes::Bytes;
use format::{Header, Origin, Place, RECORD_HEADER, Stand};
use segment::{Segment, begin};

/// More bytes than this are not held back: the next append writes them first.
const MOST_UNWRITTEN: usize = 1 << 26;

/// How a log uses its disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogOptions {
    /// A segment of more bytes than this is followed by a next one.
    pub segment_bytes: u64,
    /// Where syncs are small, room is made beforehand so many bytes at a time; 0 makes none.
    pub step_bytes: u64,
    /// A random number, new at each start and known to nobody outside.
    pub salt: u64,
}

impl LogOptions {
    /// Segments of 64 MiB, room in steps of 4 MiB.
    #[must_use]
    pub fn new(salt: u64) -> Self {
        Self { segment_bytes: 1 << 26, step_bytes: 1 << 22, salt }
    }
}

/// A base that no sync has put in force.
struct Fresh {
    header: Header,
    /// Shared with whoever appended them, as there may be hundreds of megabytes; they are put together as they are written.
    records: Vec<Bytes>,
    /// Bytes that they take in the file.
    bytes: usize,
}

/// A log that can be appended to.
///
/// After an error for which [`LogError::is_full`] holds nothing is lost and every call may be repeated: what was
/// appended waits in memory, in order. Any other error is final, and all later calls give [`LogError::Failed`].
pub struct Log<D: Disk> {
    disk: D,
    identity: Identity,
    options: LogOptions,
    active: Segment<D::File>,
    /// The number of the segment that the log begins with.
    first: u64,
    fresh: Option<Fresh>,
    /// What [`Log::place`] noted.
    place: Option<Place>,
    /// The segment that the log begins with once all that was appended is durable.
    will_begin: Option<u64>,
    /// Segments that a base has replaced.
    old: Vec<u64>,
    failed: bool,
}

impl<D: Disk> Log<D> {
    fn new(disk: D, identity: Identity, options: LogOptions, active: Segment<D::File>, first: u64) -> Self {
        let (fresh, place, will_begin) = (None, None, None);
        Self {
            disk,
            identity,
            options,
            active,
            first,
            fresh,
            place,
            will_begin,
            old: Vec::new(),
            failed: false,
        }
    }

    /// Appends a record, in memory only until [`Log::flush`] or [`Log::sync`].
    ///
    /// Writes by itself where very much waits. After an error the record is not appended.
    pub fn append(&mut self, record: &[u8]) -> Result<(), LogError> {
        if record.len() > MAX_RECORD {
            return Err(LogError::TooLarge(record.len()));
        }
        self.guard(|log| {
            if log.unwritten() > MOST_UNWRITTEN {
                // A base cannot be written piece by piece: it comes into force early.
                if log.fresh.is_some() { log.make_durable()? } else { log.write()? }
            }
            if log.is_due_to_roll() {
                log.roll()?;
            }
            match &mut log.fresh {
                Some(fresh) => fresh.append(Bytes::copy_from_slice(record)),
                None => log.active.append(record),
            }
            Ok(())
        })
    }

    /// Begins a base: with the next sync `records` and all that is appended from here replace everything
    /// before, all or nothing. `base` is the number of the snapshot that they follow, which must be
    /// durable already.
    ///
    /// Until that sync everything from here on is in memory only, [`Log::flush`] or not. A base begun
    /// before it replaces this one.
    pub fn begin_base(&mut self, base: u64, records: &[Bytes]) -> Result<(), LogError> {
        if let Some(large) = records.iter().find(|record| record.len() > MAX_RECORD) {
            return Err(LogError::TooLarge(large.len()));
        }
        self.guard(|log| {
            let header = log.next_header(Origin::Base(base));
            let mut fresh = Fresh { header, records: Vec::with_capacity(records.len()), bytes: 0 };
            records.iter().for_each(|record| fresh.append(record.clone()));
            log.fresh = Some(fresh);
            log.place = None;
            Ok(())
        })
    }

    /// Notes where the log is: [`Log::stand_on`] has it begin here. A base that was begun comes into force first.
    pub fn place(&mut self) -> Result<(), LogError> {
        self.guard(|log| {
            if log.fresh.is_some() {
                log.make_durable()?;
            }
            log.place = Some(log.active.place());
            Ok(())
        })
    }

    /// Has the log stand on the snapshot of this number, which must be durable already, and begin where it was noted
    /// last, with the next sync: what came before that place counts no more. Nothing is written again, however
    /// much came since.
    ///
    /// # Panics
    /// Where no place was noted since the log was opened, or since a base was begun.
    pub fn stand_on(&mut self, base: u64) -> Result<(), LogError> {
        self.guard(|log| {
            let place = log.place.expect("a place is noted first");
            log.active.stand(&Stand { base, place });
            log.will_begin = Some(place.segment);
            Ok(())
        })
    }

    /// Writes everything appended in one call. It then survives the end of the process, not that of
    /// the machine; a base that was begun waits for the sync.
    pub fn flush(&mut self) -> Result<(), LogError> {
        self.guard(|log| if log.fresh.is_some() { Ok(()) } else { log.write() })
    }

    /// Writes everything appended and makes it durable.
    pub fn sync(&mut self) -> Result<(), LogError> {
        self.guard(Self::make_durable)
    }

    /// Does what nobody needs to wait for: removes replaced segments, makes room, begins a next segment
    /// where this one is large, and notes that all is durable, so that later damage to it is told from a torn
    /// tail. To be called after each sync that somebody waited for, once they know of it.
    pub fn housekeep(&mut self) -> Result<(), LogError> {
        self.guard(|log| {
            log.remove_old_or_leave()?;
            if log.fresh.is_some() || log.active.unwritten() > 0 {
                return Ok(());
            }
            if log.is_due_to_roll() {
                return log.roll();
            }
            log.active.make_room(log.options.step_bytes)?;
            log.active.mark();
            log.write()
        })
    }

    /// Makes everything durable and notes that it is.
    pub fn close(mut self) -> Result<(), LogError> {
        self.sync()?;
        self.guard(|log| {
            log.remove_old_or_leave()?;
            log.active.mark();
            log.make_durable()
        })
    }

    /// Bytes that are only in memory.
    #[must_use]
    pub fn unwritten(&self) -> usize {
        self.fresh.as_ref().map_or(self.active.unwritten(), |fresh| fresh.bytes)
    }

    /// Runs a step, and closes the log where it fails for another reason than space.
    fn guard(&mut self, step: impl FnOnce(&mut Self) -> Result<(), LogError>) -> Result<(), LogError> {
        if self.failed {
            return Err(LogError::Failed);
        }
        let result = step(self);
        self.failed = result.as_ref().is_err_and(|why| !why.is_full());
        result
    }

    fn next_header(&self, origin: Origin) -> Header {
        let segment = self.active.header.segment + 1;
        Header { identity: self.identity, segment, origin, whole: 0, salt: self.options.salt }
    }

    fn write(&mut self) -> Result<(), LogError> {
        Ok(self.active.write()?)
    }

    fn make_durable(&mut self) -> Result<(), LogError> {
        if self.fresh.is_none() {
            self.write()?;
            self.active.sync()?;
            if let Some(first) = self.will_begin.take() {
                self.begins_with(first);
            }
            return Ok(());
        }
        // What an earlier base replaced is removed first, so that few files ever wait for it.
        self.remove_old_or_leave()?;
        let fresh = self.fresh.as_ref().expect("looked at just now");
        let active = begin(&self.disk, fresh.header, &fresh.records)?;
        let first = active.header.segment;
        self.active = active;
        (self.fresh, self.will_begin) = (None, None);
        self.begins_with(first);
        Ok(())
    }

    fn begins_with(&mut self, first: u64) {
        self.old.extend(self.first..first);
        self.first = first;
    }

    /// Removes replaced segments. Where there is no space to remove one (there are such file systems) it goes later: nothing
    /// depends on it.
    fn remove_old_or_leave(&mut self) -> Result<(), LogError> {
        match self.remove_old() {
            Err(why) if why.is_full() => Ok(()),
            done => done,
        }
    }

    fn remove_old(&mut self) -> Result<(), LogError> {
        // Forgotten when it is gone: to remove one may need space.
        while let Some(segment) = self.old.last() {
            self.disk.remove(&format::name(*segment))?;
            self.old.pop();
        }
        Ok(())
    }

    fn is_due_to_roll(&self) -> bool {
        self.fresh.is_none() && self.active.unwritten() == 0 && self.active.end() > self.options.segment_bytes
    }

    /// Begins the next segment. Where there is no space for one, this one grows on.
    fn roll(&mut self) -> Result<(), LogError> {
        self.active.sync()?;
        let header = self.next_header(Origin::Continues(self.active.end()));
        match begin(&self.disk, header, &[]) {
            Ok(next) => Ok(std::mem::replace(&mut self.active, next).trim()?),
            Err(why) if why.is_full() => Ok(()),
            Err(why) => Err(why.into()),
        }
    }
}

impl Fresh {
    fn append(&mut self, record: Bytes) {
        self.bytes += RECORD_HEADER + record.len();
        self.records.push(record);
    }
}
