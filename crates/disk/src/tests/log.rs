//! What is appended comes back, over segments, bases and restarts.

use super::{ME, SMALL, open, record, records};
use crate::{Disk, Identity, Log, LogError, LogOptions, MAX_RECORD, MemoryDisk, Recovered};
use bytes::Bytes;

fn held(disk: &MemoryDisk) -> Recovered {
    open(disk).expect("the log opens").1
}

#[test]
fn a_fresh_log_is_empty() {
    let nothing = Recovered { base: None, records: Vec::new(), cut: None };
    let disk = MemoryDisk::default();
    assert_eq!(held(&disk), nothing);
    assert_eq!(held(&disk), nothing, "also the second time");
}

#[test]
fn records_come_back_in_order() {
    let disk = MemoryDisk::default();
    let (mut log, _) = Log::open(disk.clone(), ME, LogOptions::new(1)).unwrap();
    let large = Bytes::from(vec![0xab; 3 << 20]);
    let all = [Bytes::new(), record(1), large, record(2), Bytes::from(vec![0; 600])];
    for record in &all {
        log.append(record).unwrap();
        log.sync().unwrap();
    }
    let (_, held) = Log::open(disk, ME, LogOptions::new(2)).unwrap();
    assert_eq!(held, Recovered { base: None, records: all.to_vec(), cut: None });
}

#[test]
fn what_is_only_appended_is_in_memory_only() {
    let disk = MemoryDisk::default();
    let (mut log, _) = open(&disk).unwrap();
    log.append(&record(1)).unwrap();
    assert!(log.unwritten() > 0);
    assert_eq!(held(&disk.copy()).records, records([]));
    log.flush().unwrap();
    assert_eq!(log.unwritten(), 0);
    assert_eq!(held(&disk.copy()).records, records([1]));
}

#[test]
fn a_log_goes_on_over_segments_and_restarts() {
    let disk = MemoryDisk::default();
    for number in 0..200 {
        let (mut log, held) = open(&disk).unwrap();
        assert_eq!(held.records, records(0..number * 3));
        assert_eq!(held.cut, None);
        for number in number * 3..number * 3 + 3 {
            log.append(&record(number)).unwrap();
            if number % 2 == 0 {
                log.sync().unwrap();
            }
            if number % 5 == 0 {
                log.housekeep().unwrap();
            }
        }
        log.close().unwrap();
    }
    let mut names = disk.list().unwrap();
    assert!(names.len() > 20, "it rolled over");
    names.sort();
    names.pop();
    for name in names {
        assert!(disk.contents(&name).unwrap().len() < 700, "a segment that is full keeps no room");
    }
}

#[test]
fn a_log_that_is_never_synced_rolls_over_too() {
    let disk = MemoryDisk::default();
    let (mut log, _) = open(&disk).unwrap();
    for number in 0..100 {
        log.append(&record(number)).unwrap();
        log.flush().unwrap();
    }
    assert!(disk.list().unwrap().len() > 5);
    assert_eq!(held(&disk).records, records(0..100));
}

#[test]
fn a_base_replaces_everything_at_the_sync() {
    let disk = MemoryDisk::default();
    let (mut log, _) = open(&disk).unwrap();
    for number in 0..50 {
        log.append(&record(number)).unwrap();
        log.sync().unwrap();
    }
    log.begin_base(77, &records([100, 101])).unwrap();
    log.append(&record(102)).unwrap();
    log.flush().unwrap();
    assert_eq!(held(&disk.copy()).records, records(0..50), "not before the sync");
    log.sync().unwrap();
    let base = |base, records| Recovered { base: Some(base), records, cut: None };
    assert_eq!(held(&disk.copy()), base(77, records([100, 101, 102])));
    log.append(&record(103)).unwrap();
    log.sync().unwrap();
    log.housekeep().unwrap();
    assert_eq!(disk.list().unwrap().len(), 1, "what it replaced is removed");
    for number in 104..150 {
        log.append(&record(number)).unwrap();
        log.sync().unwrap();
    }
    assert!(disk.list().unwrap().len() > 3);
    assert_eq!(held(&disk.copy()), base(77, records(100..150)));
    // The second of two that no sync is between is the one that counts.
    log.begin_base(78, &records([1])).unwrap();
    log.begin_base(79, &records([2])).unwrap();
    log.sync().unwrap();
    drop(log);
    assert_eq!(held(&disk), base(79, records([2])));
    assert_eq!(disk.list().unwrap().len(), 1, "opening removes what a base replaced");
}

#[test]
fn the_log_begins_at_a_place_that_was_noted_once_it_stands_there_durably() {
    let disk = MemoryDisk::default();
    let (mut log, _) = open(&disk).unwrap();
    let write = |log: &mut Log<MemoryDisk>, numbers: std::ops::Range<u64>| {
        for number in numbers {
            log.append(&record(number)).unwrap();
            log.sync().unwrap();
            log.housekeep().unwrap();
        }
    };
    write(&mut log, 0..50);
    log.place().unwrap();
    write(&mut log, 50..100);
    let segments = disk.list().unwrap().len();
    log.stand_on(77).unwrap();
    assert_eq!(held(&disk.copy()).base, None, "not before it is written");
    log.append(&record(100)).unwrap();
    log.sync().unwrap();
    let base = |base, records| Recovered { base: Some(base), records, cut: None };
    assert_eq!(held(&disk.copy()), base(77, records(50..101)));
    log.housekeep().unwrap();
    let left = disk.list().unwrap().len();
    assert!(left < segments && left > 5, "{left} of {segments} segments hold what came since");
    assert_eq!(held(&disk.copy()), base(77, records(50..101)));
    // The same place serves again, and so does one that a start comes before.
    log.stand_on(78).unwrap();
    log.sync().unwrap();
    drop(log);
    let (mut log, found) = open(&disk).unwrap();
    assert_eq!(found, base(78, records(50..101)));
    log.place().unwrap();
    log.stand_on(79).unwrap();
    write(&mut log, 101..103);
    assert_eq!(held(&disk.copy()), base(79, records(101..103)));
    assert!(disk.list().unwrap().len() <= 2, "the rest counts no more");
    // A base that no sync has put in force is in force before a place is noted in it.
    log.begin_base(80, &records([1])).unwrap();
    log.place().unwrap();
    write(&mut log, 103..104);
    log.stand_on(81).unwrap();
    log.close().unwrap();
    assert_eq!(held(&disk), base(81, records(103..104)));
}

#[test]
#[should_panic(expected = "a place is noted first")]
fn a_place_before_a_base_is_none_to_stand_at() {
    let (mut log, _) = open(&MemoryDisk::default()).unwrap();
    log.place().unwrap();
    log.begin_base(1, &[]).unwrap();
    drop(log.stand_on(2));
}

#[test]
fn a_record_over_the_limit_is_refused_and_the_log_goes_on() {
    let disk = MemoryDisk::default();
    let (mut log, _) = open(&disk).unwrap();
    let large = vec![0; MAX_RECORD + 1];
    assert!(matches!(log.append(&large), Err(LogError::TooLarge(_))));
    assert!(matches!(log.begin_base(1, &[Bytes::from(large)]), Err(LogError::TooLarge(_))));
    log.append(&record(1)).unwrap();
    log.sync().unwrap();
    assert_eq!(held(&disk).records, records([1]));
}

#[test]
fn very_many_unwritten_bytes_are_written_by_themselves() {
    let disk = MemoryDisk::default();
    let (mut log, _) = Log::open(disk, ME, LogOptions::new(1)).unwrap();
    let mebibyte = vec![1; 1 << 20];
    let mut most = 0;
    for _ in 0..150 {
        log.append(&mebibyte).unwrap();
        most = most.max(log.unwritten());
    }
    assert!(most < 70 << 20, "{most} bytes waited");
}

#[test]
fn the_log_of_another_is_refused_and_left_alone() {
    let disk = MemoryDisk::default();
    let (mut log, _) = open(&disk).unwrap();
    log.append(&record(1)).unwrap();
    log.sync().unwrap();
    for other in [Identity { replica: 3, ..ME }, Identity { group: [8; 32], ..ME }] {
        match Log::open(disk.clone(), other, SMALL).map(|_| ()) {
            Err(LogError::Identity { found, wanted, .. }) => assert_eq!((found, wanted), (ME, other)),
            result => panic!("{result:?}"),
        }
    }
    assert_eq!(held(&disk).records, records([1]));
}
