//! Every byte of a log changed, and every length it may be cut to: what was durable is there, or the
//! damage is named, or what is lost is what the documentation of `Log::open` says.

use super::{ME, SMALL, open, record, records};
use crate::log::format::{Header, Kind, Place, Stand};
use crate::{Disk, Log, LogError, LogOptions, MemoryDisk};

const HEADER: usize = 81;
const MARK: usize = 25;
const STAND: usize = 33;
const ROOM: LogOptions = LogOptions { segment_bytes: 1 << 20, step_bytes: 4096, salt: 1 };
const FIRST: &str = "log-0000000000000001";

fn size(numbers: std::ops::Range<u64>) -> usize {
    numbers.map(|number| 9 + record(number).len()).sum()
}

/// Three syncs of two records each, in one segment.
fn three_syncs() -> MemoryDisk {
    let disk = MemoryDisk::default();
    let (mut log, _) = Log::open(disk.clone(), ME, ROOM).unwrap();
    for group in 0..3 {
        log.append(&record(group * 2)).unwrap();
        log.append(&record(group * 2 + 1)).unwrap();
        log.sync().unwrap();
        if group == 0 {
            log.housekeep().unwrap();
        }
    }
    disk
}

fn changed(disk: &MemoryDisk, name: &str, at: usize, mask: u8) -> MemoryDisk {
    let mut bytes = disk.contents(name).unwrap();
    bytes[at] ^= mask;
    let copy = disk.copy();
    copy.put(name, bytes);
    copy
}

#[test]
fn a_changed_byte_is_named_where_something_later_proves_that_it_was_durable() {
    let disk = three_syncs();
    let len = disk.contents(FIRST).unwrap().len();
    let last_mark = HEADER + size(0..4) + MARK;
    let end = last_mark + MARK + size(4..6);
    assert!(len > end, "there is room behind the records");
    for at in 0..len {
        for mask in [0x01, 0x80, 0xff] {
            let copy = changed(&disk, FIRST, at, mask);
            let context = format!("byte {at} changed by {mask:02x}");
            match Log::open(copy, ME, ROOM).map(|(_, held)| held) {
                Err(LogError::Version { .. }) => assert!((8..10).contains(&at), "{context}"),
                Err(LogError::Damaged { file, offset, .. }) => {
                    assert!(at < last_mark, "{context}");
                    assert!(file == FIRST && offset <= at as u64, "{context}: {file} {offset}");
                }
                Err(why) => panic!("{context}: {why}"),
                Ok(held) => {
                    assert!(at >= last_mark, "{context}");
                    let cut = held.cut.unwrap_or_else(|| panic!("{context}: nothing was reported"));
                    // At most the records of the last sync, and none where the records are whole.
                    let kept = if at >= end { 6 } else { held.records.len() as u64 };
                    assert!((4..=6).contains(&kept), "{context}");
                    assert_eq!(held.records, records(0..kept), "{context}");
                    assert!(cut.offset <= at as u64 && (at as u64) < cut.offset + cut.bytes, "{context}");
                }
            }
        }
    }
}

#[test]
fn after_housekeeping_no_changed_byte_of_a_record_goes_unnamed() {
    let disk = MemoryDisk::default();
    let (mut log, _) = Log::open(disk.clone(), ME, ROOM).unwrap();
    for number in 0..4 {
        log.append(&record(number)).unwrap();
        log.sync().unwrap();
    }
    log.housekeep().unwrap();
    let last_mark = HEADER + size(0..4) + 3 * MARK;
    for at in 0..last_mark {
        let result = Log::open(changed(&disk, FIRST, at, 0x10), ME, ROOM);
        assert!(
            matches!(result, Err(LogError::Damaged { .. } | LogError::Version { .. })),
            "byte {at} was not named"
        );
    }
}

#[test]
fn a_log_cut_short_holds_the_records_before_the_cut() {
    let disk = three_syncs();
    let whole = disk.contents(FIRST).unwrap();
    for len in 0..whole.len() {
        let copy = disk.copy();
        copy.put(FIRST, whole[..len].to_vec());
        match Log::open(copy.clone(), ME, ROOM) {
            Err(LogError::Damaged { offset: 0, .. }) => assert!(len < HEADER, "length {len}"),
            Err(why) => panic!("length {len}: {why}"),
            Ok((mut log, held)) => {
                assert!(len >= HEADER);
                let fit = (0..=6u64)
                    .rev()
                    .find(|count| {
                        let marks = count.saturating_sub(1) as usize / 2 * MARK;
                        *count == 0 || HEADER + size(0..*count) + marks <= len
                    })
                    .unwrap();
                assert_eq!(held.records, records(0..fit), "length {len}");
                log.append(&record(50)).unwrap();
                log.sync().unwrap();
                let again = Log::open(copy, ME, ROOM).unwrap().1;
                assert_eq!(again.records.last(), Some(&record(50)), "length {len}");
                assert_eq!(again.cut, None, "length {len}");
            }
        }
    }
}

#[test]
fn every_change_before_the_last_segment_is_named() {
    let disk = MemoryDisk::default();
    let (mut log, _) = open(&disk).unwrap();
    for number in 0..40 {
        log.append(&record(number)).unwrap();
        log.sync().unwrap();
    }
    let mut names = disk.list().unwrap();
    names.sort();
    assert!(names.len() >= 3);
    for name in &names[..names.len() - 1] {
        let len = disk.contents(name).unwrap().len();
        for at in 0..len {
            let result = open(&changed(&disk, name, at, 0x04)).map(|_| ());
            assert!(
                matches!(result, Err(LogError::Damaged { .. } | LogError::Version { .. })),
                "{name} byte {at}: {result:?}"
            );
        }
        for len in 0..len {
            let copy = disk.copy();
            copy.put(name, disk.contents(name).unwrap()[..len].to_vec());
            assert!(matches!(open(&copy), Err(LogError::Damaged { .. })), "{name} cut to {len}");
        }
        let copy = disk.copy();
        copy.remove(name).unwrap();
        let result = open(&copy).map(|_| ());
        assert!(matches!(result, Err(LogError::Missing(missing)) if missing == *name));
    }
}

#[test]
fn a_change_in_what_a_base_came_into_force_with_is_named() {
    let disk = MemoryDisk::default();
    let (mut log, _) = open(&disk).unwrap();
    log.begin_base(9, &records(0..10)).unwrap();
    log.sync().unwrap();
    log.close().unwrap();
    let name = "log-0000000000000002";
    for at in 0..HEADER + size(0..10) {
        let result = open(&changed(&disk, name, at, 0x20)).map(|_| ());
        assert!(
            matches!(result, Err(LogError::Damaged { .. } | LogError::Version { .. })),
            "byte {at}: {result:?}"
        );
    }
}

#[test]
fn what_a_log_stands_on_is_not_forgotten_where_a_byte_of_it_changes() {
    let disk = MemoryDisk::default();
    let (mut log, _) = open(&disk).unwrap();
    for number in 0..20 {
        log.append(&record(number)).unwrap();
        log.sync().unwrap();
        log.housekeep().unwrap();
    }
    log.place().unwrap();
    log.stand_on(9).unwrap();
    log.sync().unwrap();
    let before = disk.copy();
    log.close().unwrap();
    let names = disk.list().unwrap();
    let [name] = &names[..] else { panic!("{names:?}: what came before is removed") };
    // One that no mark follows looks torn, and nothing that counted before it is gone as long as it is the last.
    for (disk, gone) in [(&disk, true), (&before, false)] {
        let mut named = 0;
        for at in 0..disk.contents(name).unwrap().len() {
            match open(&changed(disk, name, at, 0x08)).map(|(_, held)| (held.base, held.records.len())) {
                // In what follows it.
                Ok((Some(9), 0)) => {}
                Ok((None, 19 | 20)) if !gone => {}
                Err(LogError::Damaged { .. } | LogError::Version { .. } | LogError::Missing(_)) => named += 1,
                other => panic!("byte {at}, {gone}: {other:?}"),
            }
        }
        assert!(named >= if gone { HEADER + size(19..20) + STAND } else { HEADER }, "{named}, {gone}");
    }
    // One that names a place that is not there is refused.
    let other = MemoryDisk::default();
    let (mut log, _) = open(&other).unwrap();
    log.place().unwrap();
    log.stand_on(9).unwrap();
    log.append(&record(1)).unwrap();
    log.close().unwrap();
    let bytes = other.contents(FIRST).unwrap();
    let stand = Stand { base: 9, place: Place { segment: 1, records: 0 } };
    let at = bytes.windows(24).position(|window| window == stand.encode()).unwrap();
    let header = Header::decode(&bytes[..HEADER]).unwrap();
    for (place, allowed) in
        [((1, 0), true), ((1, 1), true), ((1, 2), false), ((0, 0), false), ((2, 0), false)]
    {
        let place = Place { segment: place.0, records: place.1 };
        let mut record = Vec::new();
        header.put_record(&mut record, 0, Kind::Stand, &Stand { base: 9, place }.encode());
        let mut bytes = bytes.clone();
        bytes[at + 24 - record.len()..at + 24].copy_from_slice(&record);
        let changed = MemoryDisk::default();
        changed.put(FIRST, bytes);
        let result = open(&changed).map(|(_, held)| held.records.len() as u64);
        match result {
            Ok(held) => assert!(allowed && held == 1 - place.records, "{place:?}: {held}"),
            Err(why) => assert!(!allowed && matches!(why, LogError::Damaged { .. }), "{place:?}: {why}"),
        }
    }
}

#[test]
fn foreign_bytes_are_refused_without_a_panic() {
    for bytes in [Vec::new(), vec![0; 5000], vec![0xff; 5000], b"TROTHLOG".to_vec()] {
        let disk = MemoryDisk::default();
        disk.put("log-0000000000000007", bytes);
        assert!(matches!(open(&disk), Err(LogError::Damaged { .. })));
    }
    // The last number there is has no successor.
    let disk = three_syncs();
    let copy = MemoryDisk::default();
    copy.put("log-ffffffffffffffff", disk.contents(FIRST).unwrap());
    assert!(matches!(open(&copy), Err(LogError::Damaged { .. })));
    // Files that are none of the log's are nobody's concern here.
    let other = MemoryDisk::default();
    for name in ["log-1", "log-000000000000000G", "LOG", "snapshot-1", "log-00000000000000AA"] {
        other.put(name, vec![1]);
    }
    let (_, held) = Log::open(other.clone(), ME, SMALL).unwrap();
    assert_eq!(held.records, records([]));
    assert_eq!(other.list().unwrap().len(), 6);
}

#[test]
fn a_mark_is_found_wherever_it_lies_in_what_is_read_at_a_time() {
    for before in 0..=MARK {
        let disk = MemoryDisk::default();
        let options = LogOptions { segment_bytes: 1 << 23, ..ROOM };
        let (mut log, _) = Log::open(disk.clone(), ME, options).unwrap();
        log.append(&vec![3; (1 << 20) - 9 - before]).unwrap();
        log.sync().unwrap();
        log.append(b"later").unwrap();
        log.flush().unwrap();
        let result = Log::open(changed(&disk, FIRST, HEADER + 100, 1), ME, options);
        assert!(matches!(result, Err(LogError::Damaged { .. })), "{before} bytes before the boundary");
    }
}

#[test]
fn bytes_of_a_cut_tail_never_come_back() {
    // Three unsynced records of equal length of which the middle one is lost: were the third left in the
    // file, a new second one would bring it back.
    let disk = MemoryDisk::default();
    let (mut log, _) = Log::open(disk.clone(), ME, ROOM).unwrap();
    for word in ["one", "two", "six"] {
        log.append(word.as_bytes()).unwrap();
    }
    log.flush().unwrap();
    drop(log);
    let torn = changed(&disk, FIRST, HEADER + 12 + 10, 0xff);
    let (mut log, held) = Log::open(torn.clone(), ME, ROOM).unwrap();
    assert_eq!(held.records, ["one"]);
    assert_eq!(held.cut.map(|cut| (cut.offset, cut.bytes)), Some((HEADER as u64 + 12, 24)));
    log.append(b"new").unwrap();
    log.sync().unwrap();
    let (_, held) = Log::open(torn, ME, ROOM).unwrap();
    assert_eq!(held.records, ["one", "new"]);
}
