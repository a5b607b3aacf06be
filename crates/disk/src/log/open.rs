//! Opening a log: which segments count, what they hold, what of the last one was torn.

use super::format::{self, Cut, HEADER, Header, Identity, Origin, Recovered, Stand};
use super::scan::{self, Scanned, Tail};
use super::segment::{Held, Segment, begin};
use super::{Log, LogOptions};
use crate::window::WINDOW;
use crate::{Disk, DiskError, DiskFile, LogError};
use bytes::Bytes;

struct Found<F> {
    name: String,
    file: F,
    header: Header,
}

impl<D: Disk> Log<D> {
    /// Whether a directory holds a log, whole or not, before [`Log::open`] makes one.
    ///
    /// # Errors
    /// [`DiskError`].
    pub fn is_there(disk: &D) -> Result<bool, DiskError> {
        Ok(disk.list()?.iter().any(|name| format::number(name).is_some()))
    }

    /// Opens the log of a directory, or makes one where there is none, and says what it holds.
    ///
    /// A torn tail is cut off and reported: what was appended after the last completed sync and is not
    /// whole, with everything behind it. Whatever is returned is durable, also where an earlier process had only
    /// written it.
    ///
    /// **What is found out.** A byte that changed or is missing is [`LogError::Damaged`] wherever something
    /// later proves that it was durable: a later segment; a mark, which stands in front of the first record
    /// after each sync; the length that a base had before it came into force. Nothing later proves it
    /// for the records of the *last* sync before the process stopped, unless [`Log::housekeep`] was called
    /// after it: damage there looks as a torn tail does and is cut, with at most those records. A file cut
    /// short from outside at some record of the last segment looks like a log that never had more.
    pub fn open(disk: D, identity: Identity, options: LogOptions) -> Result<(Self, Recovered), LogError> {
        // What an earlier process did to names may not be durable, and what follows relies on it.
        disk.sync_directory()?;
        let mut names = disk.list()?;
        names.sort();
        let leftovers: Vec<String> = names.iter().filter(|name| format::is_new(name)).cloned().collect();
        let numbers: Vec<u64> = names.iter().filter_map(|name| format::number(name)).collect();
        let chain = chain(&disk, identity, &numbers)?;
        if chain.segments.is_empty() {
            remove_or_leave(&disk, &leftovers)?;
            let header = Header { identity, segment: 1, origin: Origin::Start, whole: 0, salt: options.salt };
            let active = begin(&disk, header, &[])?;
            let nothing = Recovered { base: None, records: Vec::new(), cut: None };
            return Ok((Self::new(disk, identity, options, active, 1), nothing));
        }
        let (active, first, recovered) = recover(chain)?;
        remove_or_leave(&disk, &leftovers)?;
        let mut log = Self::new(disk, identity, options, active, first);
        log.old = numbers.into_iter().filter(|number| *number < first).collect();
        log.remove_old_or_leave()?;
        Ok((log, recovered))
    }
}

/// The segments that count, in order, as far as their headers say.
struct Chain<F> {
    segments: Vec<Found<F>>,
    /// The one that the first continues, where it is not there: a stand has to say that it counts no more.
    missing: Option<String>,
}

/// Removes files that count for nothing. Where there is no space to remove one (there are such file systems) it stays.
fn remove_or_leave<D: Disk>(disk: &D, names: &[String]) -> Result<(), LogError> {
    for name in names {
        match disk.remove(name) {
            Err(why) if !why.is_full() => return Err(why.into()),
            _ => {}
        }
    }
    Ok(())
}

/// The segments from the last back to one that continues none, or whose predecessor is not there.
fn chain<D: Disk>(disk: &D, identity: Identity, numbers: &[u64]) -> Result<Chain<D::File>, LogError> {
    let mut segments: Vec<Found<D::File>> = Vec::new();
    let mut begins = false;
    for number in numbers.iter().rev().copied() {
        if let Some(later) = segments.last()
            && number.checked_add(1) != Some(later.header.segment)
        {
            break;
        }
        let name = format::name(number);
        let file = disk.open(&name)?;
        let header = scan::header(&file, &name, number)?;
        if header.identity != identity {
            return Err(LogError::Identity { file: name, found: header.identity, wanted: identity });
        }
        if number == u64::MAX {
            return Err(LogError::Damaged { file: name, offset: 0, what: "no segment can have this number" });
        }
        begins = !matches!(header.origin, Origin::Continues(_));
        segments.push(Found { name, file, header });
        if begins {
            break;
        }
    }
    let missing = segments.last().filter(|_| !begins);
    let missing = missing.map(|first| format::name(first.header.segment.saturating_sub(1)));
    segments.reverse();
    Ok(Chain { segments, missing })
}

/// What is read of a chain, in order.
struct Read {
    first: u64,
    records: Vec<Bytes>,
    /// Where the records of each segment begin.
    starts: Vec<usize>,
    stand: Option<Stand>,
}

impl Read {
    fn add(&mut self, scanned: &mut Scanned) {
        self.starts.push(self.records.len());
        self.records.append(&mut scanned.records);
        self.stand = scanned.stand.or(self.stand);
    }

    /// Leaves what counts; the segment that it begins in, or none where something is missing.
    fn begin(&mut self) -> Option<u64> {
        let Some(Stand { place, .. }) = self.stand else { return Some(self.first) };
        let segment = usize::try_from(place.segment.checked_sub(self.first)?).ok()?;
        let start = *self.starts.get(segment)?;
        let end = self.starts.get(segment + 1).map_or(self.records.len(), |end| *end);
        let from = usize::try_from(place.records).ok().and_then(|records| start.checked_add(records))?;
        if from > end {
            return None;
        }
        self.records.drain(..from);
        Some(place.segment)
    }
}

/// Writes bytes of a file in their place once more.
fn write_again<F: DiskFile>(file: &mut F, from: u64, to: u64) -> Result<(), DiskError> {
    let mut piece = vec![0; WINDOW];
    let mut offset = from;
    while offset < to {
        let most = usize::try_from(to - offset).map_or(WINDOW, |left| left.min(WINDOW));
        let read = file.read_at(offset, &mut piece[..most])?;
        if read == 0 {
            break;
        }
        file.write_at(offset, &piece[..read])?;
        offset += read as u64;
    }
    Ok(())
}

/// Reads the segments, cuts a torn tail, makes everything durable. Gives the segment that is written on, and the number of
/// the first that counts.
fn recover<F: DiskFile>(chain: Chain<F>) -> Result<(Segment<F>, u64, Recovered), LogError> {
    let Chain { segments: chain, missing } = chain;
    let base = match chain[0].header.origin {
        Origin::Base(base) => Some(base),
        _ => None,
    };
    let first = chain[0].header.segment;
    let mut read = Read { first, records: Vec::new(), starts: Vec::new(), stand: None };
    let ends: Vec<u64> = chain[1..]
        .iter()
        .map(|later| match later.header.origin {
            Origin::Continues(end) => end,
            _ => unreachable!("the chain ends at the first segment that continues none"),
        })
        .collect();
    let mut cut = None;
    let mut segments = chain.into_iter();
    for end in ends {
        let found = segments.next().expect("there is an end for all but the last segment");
        let damaged = |offset, what| LogError::Damaged { file: found.name.clone(), offset, what };
        let limit = end.min(found.file.len()?);
        let mut scanned = scan::records(&found.file, &found.name, &found.header, limit)?;
        if scanned.end != end {
            return Err(damaged(
                scanned.end,
                "a record is not whole, and the next segment follows later ones",
            ));
        }
        read.add(&mut scanned);
    }
    let Found { name, mut file, header } = segments.next().expect("a chain has a last segment");
    let len = file.len()?;
    let mut scanned = scan::records(&file, &name, &header, len)?;
    let damaged = |what| LogError::Damaged { file: name.clone(), offset: scanned.end, what };
    if scanned.end < header.whole {
        return Err(damaged("a record is not whole that was durable before the segment came into force"));
    }
    let tail = scan::tail(&file, &header, scanned.end, len)?;
    if matches!(tail, Tail::Marked) {
        return Err(damaged("a record is not whole that was durable before a later one"));
    }
    let proven = scanned.proven.max(header.whole);
    let held = Held { count: scanned.count, records: scanned.records.len() as u64, end: scanned.end };
    read.add(&mut scanned);
    // Before anything is changed here: what counts has to be there.
    let first = match (read.begin(), missing) {
        (Some(first), _) if read.stand.is_some() => first,
        (_, Some(missing)) => return Err(LogError::Missing(missing)),
        (Some(first), None) => first,
        (None, None) => {
            let what = "the log begins at a place that is not there";
            return Err(LogError::Damaged { file: name, offset: 0, what });
        }
    };
    let mut room = len;
    if let Tail::Torn { last } = tail {
        // Nothing of it may ever follow a new record, so it goes, and durably.
        file.set_len(held.end)?;
        room = held.end;
        cut = Some(Cut { file: name, offset: held.end, bytes: last + 1 - held.end });
    }
    // A killed process leaves written bytes that are on no disk yet. If it was a failed sync that ended it, the system takes
    // them for written: it shows them, and syncs them no more.
    write_again(&mut file, proven, held.end)?;
    file.sync_all()?;
    debug_assert!(held.end >= HEADER as u64);
    let base = read.stand.map(|stand| stand.base).or(base);
    let recovered = Recovered { base, records: read.records, cut };
    Ok((Segment::resumed(file, header, held, room), first, recovered))
}
