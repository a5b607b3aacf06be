//! The disk of this machine.

use super::{open, record, records};
use crate::{Disk, DiskError, DiskFile, Log, LogError, LogOptions, RealDisk};
use std::os::unix::fs::symlink;

#[test]
fn a_log_lives_on_a_real_disk() {
    let directory = tempfile::tempdir().unwrap();
    for round in 0..5 {
        let disk = RealDisk::open(directory.path()).unwrap();
        let (mut log, held) = open(&disk).unwrap();
        assert_eq!(held.records, records(0..round * 10));
        for number in round * 10..round * 10 + 10 {
            log.append(&record(number)).unwrap();
            log.sync().unwrap();
        }
    }
    let disk = RealDisk::open(directory.path()).unwrap();
    let (mut log, _) = open(&disk).unwrap();
    log.begin_base(3, &records([1])).unwrap();
    log.sync().unwrap();
    log.housekeep().unwrap();
    drop(log);
    assert_eq!(disk.list().unwrap().len(), 1);
    let (_, held) = open(&disk).unwrap();
    assert_eq!((held.base, held.records), (Some(3), records([1])));
}

#[test]
fn room_is_made_in_steps() {
    let directory = tempfile::tempdir().unwrap();
    let disk = RealDisk::open(directory.path()).unwrap();
    let (mut log, _) = Log::open(disk.clone(), super::ME, LogOptions::new(1)).unwrap();
    log.append(&record(1)).unwrap();
    log.sync().unwrap();
    log.housekeep().unwrap();
    let len = || disk.open("log-0000000000000001").unwrap().len().unwrap();
    let before = len();
    assert!(before > 1 << 20, "{before}");
    for number in 2..200 {
        log.append(&record(number)).unwrap();
        log.sync().unwrap();
        log.housekeep().unwrap();
    }
    assert_eq!(len(), before, "no record after the first changed the length");
}

#[test]
fn no_room_is_made_where_it_does_not_pay() {
    let directory = tempfile::tempdir().unwrap();
    let disk = RealDisk::open(directory.path()).unwrap();
    let (mut log, _) = Log::open(disk.clone(), super::ME, LogOptions::new(1)).unwrap();
    for large in [vec![1; 1 << 20], vec![2; 1 << 20]] {
        log.append(&large).unwrap();
        log.sync().unwrap();
        log.housekeep().unwrap();
    }
    log.append(&record(1)).unwrap();
    log.flush().unwrap();
    log.housekeep().unwrap();
    let len = disk.open("log-0000000000000001").unwrap().len().unwrap();
    assert!(len < (2 << 20) + 1_000, "{len}");
}

#[test]
fn a_second_opener_is_refused_while_the_first_lives() {
    let directory = tempfile::tempdir().unwrap();
    let first = RealDisk::open(directory.path()).unwrap();
    let clone = first.clone();
    drop(first);
    match RealDisk::open(directory.path()) {
        Err(DiskError::Locked(path)) => assert_eq!(path, directory.path()),
        result => panic!("{result:?}"),
    }
    drop(clone);
    RealDisk::open(directory.path()).unwrap();
}

#[test]
fn nothing_outside_the_directory_can_be_named() {
    let outer = tempfile::tempdir().unwrap();
    let inner = outer.path().join("inner");
    std::fs::create_dir(&inner).unwrap();
    std::fs::write(outer.path().join("secret"), "x").unwrap();
    symlink(outer.path().join("secret"), inner.join("link")).unwrap();
    let disk = RealDisk::open(&inner).unwrap();
    for name in ["../secret", "/etc/passwd", ".", "..", "", "a/b", ".hidden", "a b"] {
        assert!(matches!(disk.open(name), Err(DiskError::Name(_))), "{name}");
        assert!(matches!(disk.create(name), Err(DiskError::Name(_))), "{name}");
        assert!(matches!(disk.remove(name), Err(DiskError::Name(_))), "{name}");
    }
    assert!(matches!(disk.open("link"), Err(DiskError::Io { .. })), "a link is not followed");
}

#[test]
fn a_directory_that_is_not_there_is_said_so() {
    let outer = tempfile::tempdir().unwrap();
    let missing = outer.path().join("missing");
    let why = RealDisk::open(&missing).unwrap_err().to_string();
    assert!(why.contains("missing") && why.contains("mend:"), "{why}");
}

#[test]
fn errors_say_what_to_do() {
    let disk = crate::MemoryDisk::default();
    disk.put("log-0000000000000001", vec![1; 100]);
    let Err(why) = open(&disk) else { panic!("it opened") };
    let shown = why.to_string();
    assert!(matches!(why, LogError::Damaged { .. }));
    assert!(shown.contains("log-0000000000000001 at byte 0") && shown.contains("mend:"), "{shown}");
}
