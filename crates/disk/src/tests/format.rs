//! The bytes of a log, pinned: a change here is a change of the format.

use super::{ME, record, records};
use crate::{Log, LogOptions, MemoryDisk};
use bytes::Bytes;

const OPTIONS: LogOptions = LogOptions { segment_bytes: 200, step_bytes: 0, salt: 0x0123_4567_89ab_cdef };

/// A start, a segment that continues it, a base, and what that becomes when the log stands on another.
fn written() -> Vec<(String, Vec<u8>)> {
    let disk = MemoryDisk::default();
    let (mut log, _) = Log::open(disk.clone(), ME, OPTIONS).unwrap();
    let mut files = Vec::new();
    for number in 1..4 {
        log.append(&record(number)).unwrap();
        log.sync().unwrap();
    }
    log.housekeep().unwrap();
    log.append(&record(4)).unwrap();
    log.sync().unwrap();
    for number in 1..=2 {
        let name = format!("log-{number:016x}");
        files.push((name.clone(), disk.contents(&name).unwrap()));
    }
    log.begin_base(0x1122_3344, &[record(5), Bytes::new()]).unwrap();
    log.sync().unwrap();
    log.append(&record(6)).unwrap();
    log.sync().unwrap();
    let name = "log-0000000000000003";
    files.push((name.to_string(), disk.contents(name).unwrap()));
    log.place().unwrap();
    log.append(&record(7)).unwrap();
    log.stand_on(0x5566).unwrap();
    log.append(&record(8)).unwrap();
    log.sync().unwrap();
    let stand = disk.contents(name).unwrap().split_off(files[2].1.len());
    files.push((format!("{name}, behind that"), stand));
    files
}

fn hex(bytes: &[u8]) -> String {
    let lines =
        bytes.chunks(32).map(|line| line.iter().map(|byte| format!("{byte:02x}")).collect::<String>());
    lines.collect::<Vec<_>>().join("\n")
}

/// The bytes of the fixture's file of that number.
fn pinned(number: usize) -> (String, Vec<u8>) {
    let file = include_str!("fixtures/log-v1.txt").split("\n\n").nth(number - 1).unwrap();
    let (name, digits) = file.split_once('\n').unwrap();
    let digits: Vec<char> = digits.chars().filter(|digit| !digit.is_whitespace()).collect();
    let byte = |pair: &[char]| u8::from_str_radix(&pair.iter().collect::<String>(), 16).unwrap();
    (name.to_string(), digits.chunks(2).map(byte).collect())
}

#[test]
fn the_fixture_can_be_read() {
    for (files, base, held) in [
        (&[1, 2][..], None, records(1..5)),
        (&[3], Some(0x1122_3344), vec![record(5), Bytes::new(), record(6)]),
    ] {
        let disk = MemoryDisk::default();
        for number in files {
            let (name, bytes) = pinned(*number);
            disk.put(&name, bytes);
        }
        let (_, recovered) = Log::open(disk, ME, OPTIONS).unwrap();
        assert_eq!((recovered.base, recovered.records, recovered.cut), (base, held, None));
    }
    let disk = MemoryDisk::default();
    disk.put("log-0000000000000003", [pinned(3).1, pinned(4).1].concat());
    let (_, recovered) = Log::open(disk, ME, OPTIONS).unwrap();
    assert_eq!((recovered.base, recovered.records), (Some(0x5566), vec![record(7), record(8)]));
}

#[test]
fn the_format_is_the_one_of_the_fixture() {
    let shown: Vec<String> =
        written().iter().map(|(name, bytes)| format!("{name}\n{}\n", hex(bytes))).collect();
    let shown = shown.join("\n");
    assert_eq!(shown, include_str!("fixtures/log-v1.txt"));
}
