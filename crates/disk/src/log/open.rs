//! Opening a log: which segments count, what they hold, what of the last one was torn.

use super::format::{self, Cut, HEADER, Header, Identity, Origin, Recovered};
use super::scan::{self, Tail};
use super::segment::{Segment, begin};
use super::{Log, LogOptions};
use crate::{Disk, DiskError, DiskFile, LogError};

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
        if chain.is_empty() {
            remove(&disk, &leftovers)?;
            let header = Header { identity, segment: 1, origin: Origin::Start, whole: 0, salt: options.salt };
            let active = begin(&disk, header, &[])?;
            let nothing = Recovered { base: None, records: Vec::new(), cut: None };
            return Ok((Self::new(disk, identity, options, active, 1), nothing));
        }
        let first = chain[0].header.segment;
        let (active, recovered) = recover(chain)?;
        remove(&disk, &leftovers)?;
        let old: Vec<String> =
            numbers.iter().filter(|number| **number < first).copied().map(format::name).collect();
        remove(&disk, &old)?;
        Ok((Self::new(disk, identity, options, active, first), recovered))
    }
}

type Chain<F> = Vec<Found<F>>;

fn remove<D: Disk>(disk: &D, names: &[String]) -> Result<(), LogError> {
    Ok(names.iter().try_for_each(|name| disk.remove(name))?)
}

/// The segments that count, in order.
fn chain<D: Disk>(disk: &D, identity: Identity, numbers: &[u64]) -> Result<Chain<D::File>, LogError> {
    let mut chain: Chain<D::File> = Vec::new();
    for number in numbers.iter().rev().copied() {
        let name = format::name(number);
        if let Some(later) = chain.last()
            && number.checked_add(1) != Some(later.header.segment)
        {
            return Err(LogError::Missing(format::name(later.header.segment - 1)));
        }
        let file = disk.open(&name)?;
        let header = scan::header(&file, &name, number)?;
        if header.identity != identity {
            return Err(LogError::Identity { file: name, found: header.identity, wanted: identity });
        }
        if number == u64::MAX {
            return Err(LogError::Damaged { file: name, offset: 0, what: "no segment can have this number" });
        }
        let first = !matches!(header.origin, Origin::Continues(_));
        chain.push(Found { name, file, header });
        if first {
            chain.reverse();
            return Ok(chain);
        }
    }
    match chain.last() {
        // The first one says that it continues one that is not there.
        Some(first) => Err(LogError::Missing(format::name(first.header.segment.saturating_sub(1)))),
        None => Ok(chain),
    }
}

/// Reads the segments, cuts a torn tail, makes everything durable.
fn recover<F: DiskFile>(chain: Chain<F>) -> Result<(Segment<F>, Recovered), LogError> {
    let base = match chain[0].header.origin {
        Origin::Base(base) => Some(base),
        _ => None,
    };
    let ends: Vec<u64> = chain[1..]
        .iter()
        .map(|later| match later.header.origin {
            Origin::Continues(end) => end,
            _ => unreachable!("the chain ends at the first segment that continues none"),
        })
        .collect();
    let mut recovered = Recovered { base, records: Vec::new(), cut: None };
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
        recovered.records.append(&mut scanned.records);
    }
    let Found { name, mut file, header } = segments.next().expect("a chain has a last segment");
    let len = file.len()?;
    let mut scanned = scan::records(&file, &name, &header, len)?;
    let damaged = |what| LogError::Damaged { file: name.clone(), offset: scanned.end, what };
    if scanned.end < header.whole {
        return Err(damaged("a record is not whole that was durable before the segment came into force"));
    }
    let mut room = len;
    match scan::tail(&file, &header, scanned.end, len)? {
        Tail::Empty => {}
        Tail::Marked => return Err(damaged("a record is not whole that was durable before a later one")),
        Tail::Torn { last } => {
            // Nothing of it may ever follow a new record, so it goes, and durably.
            file.set_len(scanned.end)?;
            room = scanned.end;
            let bytes = last + 1 - scanned.end;
            recovered.cut = Some(Cut { file: name.clone(), offset: scanned.end, bytes });
        }
    }
    // A killed process leaves written bytes that are on no disk yet.
    file.sync_all()?;
    recovered.records.append(&mut scanned.records);
    debug_assert!(scanned.end >= HEADER as u64);
    Ok((Segment::resumed(file, header, scanned.count, scanned.end, room), recovered))
}
