//! Reading a segment: its records up to the first that is not whole, and whether what follows was
//! durable once.

use super::format::{
    HEADER, Header, Kind, MARK, MAX_RECORD, NoHeader, RECORD_HEADER, RecordHeader, Stand, is_mark_at,
};
use crate::window::{WINDOW, Window};
use crate::{DiskFile, LogError};
use bytes::Bytes;

/// What a segment holds.
#[derive(Debug)]
pub(super) struct Scanned {
    pub(super) records: Vec<Bytes>,
    /// Records, marks and stands.
    pub(super) count: u64,
    /// The last that it says.
    pub(super) stand: Option<Stand>,
    /// Where they end.
    pub(super) end: u64,
    /// A mark says that everything before was durable once.
    pub(super) proven: u64,
}

/// Reads and judges the header of a segment.
pub(super) fn header<F: DiskFile>(file: &F, name: &str, number: u64) -> Result<Header, LogError> {
    let mut bytes = [0; HEADER];
    let read = file.read_at(0, &mut bytes)?;
    let damaged = |what| LogError::Damaged { file: name.to_string(), offset: 0, what };
    let header = Header::decode(&bytes[..read]).map_err(|why| match why {
        NoHeader::Damaged(what) => damaged(what),
        NoHeader::Version(found) => {
            LogError::Version { file: name.to_string(), found, known: super::format::VERSION }
        }
    })?;
    if header.segment != number {
        return Err(damaged("the header is another segment's"));
    }
    Ok(header)
}

/// Reads the records of a segment, up to the first that is not whole or to `limit`.
pub(super) fn records<F: DiskFile>(
    file: &F,
    name: &str,
    header: &Header,
    limit: u64,
) -> Result<Scanned, LogError> {
    let mut window = Window::new(limit);
    let (end, proven) = (HEADER as u64, HEADER as u64);
    let mut scanned = Scanned { records: Vec::new(), count: 0, stand: None, end, proven };
    loop {
        let Some(front) = window.get(file, scanned.end, RECORD_HEADER)?.first_chunk::<RECORD_HEADER>() else {
            return Ok(scanned);
        };
        let front = RecordHeader::decode(front);
        let start = scanned.end + RECORD_HEADER as u64;
        if front.length > MAX_RECORD || start + front.length as u64 > limit {
            return Ok(scanned);
        }
        let payload = window.get(file, start, front.length)?;
        if payload.len() < front.length
            || header.checksum(scanned.count, front.kind, payload) != front.checksum
        {
            return Ok(scanned);
        }
        let damaged = |what| LogError::Damaged { file: name.to_string(), offset: scanned.end, what };
        match front.kind {
            kind if kind == Kind::Record as u8 => scanned.records.push(Bytes::copy_from_slice(payload)),
            kind if kind == Kind::Mark as u8 => scanned.proven = scanned.end,
            kind if kind == Kind::Stand as u8 => {
                let stand = Stand::decode(payload);
                scanned.stand =
                    Some(stand.ok_or_else(|| damaged("what the log stands on is not said as it should be"))?);
            }
            _ => return Err(damaged("a record of a kind that this build does not know")),
        }
        scanned.count += 1;
        scanned.end = start + front.length as u64;
    }
}

/// What follows the end of the records: whether a mark says that it was durable once, and else where its
/// last byte is that is not zero.
pub(super) enum Tail {
    Empty,
    Torn { last: u64 },
    Marked,
}

pub(super) fn tail<F: DiskFile>(file: &F, header: &Header, end: u64, limit: u64) -> Result<Tail, LogError> {
    let mut window = Window::new(limit);
    let mut last = None;
    let mut offset = end;
    while offset < limit {
        let bytes = window.get(file, offset, WINDOW)?;
        if bytes.is_empty() {
            break;
        }
        for (at, byte) in bytes.iter().enumerate() {
            let here = offset + at as u64;
            // The length of a mark is the first byte of one, and no other byte can begin one.
            if usize::from(*byte) == MARK && is_mark_at(header, here, &bytes[at..]) {
                return Ok(Tail::Marked);
            }
            if *byte != 0 {
                last = Some(here);
            }
        }
        // A mark may lie across two windows: the second begins a little before the first ends.
        let step = bytes.len() as u64;
        let overlap = (RECORD_HEADER + MARK) as u64 - 1;
        offset += if offset + step < limit && step > overlap { step - overlap } else { step };
    }
    Ok(last.map_or(Tail::Empty, |last| Tail::Torn { last }))
}
