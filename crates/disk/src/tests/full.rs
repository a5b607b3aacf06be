//! A full disk: nothing acknowledged is lost, nothing half-written is in the way, and it goes on when
//! there is space. A broken one: nothing goes on.

use super::{open, record, records};
use crate::{Disk as _, FaultyDisk, Log, LogError, LogOptions, MemoryDisk, Tear};

type Disk = FaultyDisk<MemoryDisk>;

fn fresh() -> (MemoryDisk, Disk, Log<Disk>) {
    let below = MemoryDisk::default();
    let disk = FaultyDisk::new(below.clone()).unwrap();
    let (log, _) = open(&disk).unwrap();
    (below, disk, log)
}

fn is_full(result: Result<(), LogError>) -> bool {
    match result {
        Ok(()) => false,
        Err(why) if why.is_full() => true,
        Err(why) => panic!("{why}"),
    }
}

/// Appends and syncs until the disk is full; gives the first number that was not made durable.
fn fill(log: &mut Log<Disk>, mut next: u64) -> u64 {
    loop {
        log.append(&record(next)).unwrap();
        if is_full(log.sync()) {
            return next;
        }
        next += 1;
    }
}

#[test]
fn space_that_returns_lets_everything_in_that_waited() {
    for late in [false, true] {
        for capacity in 200..700 {
            let (below, disk, mut log) = fresh();
            disk.set_capacity(Some(capacity), late);
            let refused = fill(&mut log, 0);
            assert!(is_full(log.sync()), "it stays full");
            // More may come in the meantime.
            log.append(&record(refused + 1)).unwrap();
            assert!(is_full(log.sync()));
            disk.set_capacity(None, late);
            log.sync().unwrap_or_else(|why| panic!("late {late}, capacity {capacity}: {why}"));
            log.append(&record(refused + 2)).unwrap();
            log.sync().unwrap();
            disk.kill(Tear::Nothing).unwrap();
            let (_, held) = open(&below).unwrap();
            assert_eq!(held.records, records(0..refused + 3), "late {late}, capacity {capacity}");
            assert_eq!(held.cut, None, "late {late}, capacity {capacity}");
        }
    }
}

#[test]
fn a_crash_on_a_full_disk_loses_nothing_that_was_durable() {
    for late in [false, true] {
        for capacity in (200..900).step_by(7) {
            for seed in 0..20 {
                let (below, disk, mut log) = fresh();
                disk.set_capacity(Some(capacity), late);
                let mut refused = fill(&mut log, 0);
                if seed % 3 == 0 {
                    // A little space comes, and is used up.
                    disk.set_capacity(Some(capacity + 100), late);
                    if !is_full(log.sync()) {
                        refused = fill(&mut log, refused + 1);
                    }
                }
                disk.kill(Tear::Random(seed)).unwrap();
                let context = format!("late {late}, capacity {capacity}, seed {seed}");
                let (_, held) = open(&below).unwrap_or_else(|why| panic!("{context}: {why}"));
                let count = held.records.len() as u64;
                assert!(count == refused || count == refused + 1, "{context}: {count} of {refused}");
                assert_eq!(held.records, records(0..count), "{context}");
            }
        }
    }
}

#[test]
fn what_was_half_written_is_taken_back() {
    for late in [false, true] {
        let (_, disk, mut log) = fresh();
        disk.set_capacity(Some(300), late);
        fill(&mut log, 0);
        let used = disk.used();
        assert!(is_full(log.sync()));
        assert_eq!(disk.used(), used);
        assert!(used < 300, "late {late}: of what was not durable some was left there");
    }
}

#[test]
fn a_base_that_does_not_fit_leaves_the_old_log_whole_and_comes_later() {
    for late in [false, true] {
        let (below, disk, mut log) = fresh();
        for number in 0..5 {
            log.append(&record(number)).unwrap();
            log.sync().unwrap();
        }
        disk.set_capacity(Some(disk.used() + 100), late);
        log.begin_base(8, &records(20..40)).unwrap();
        assert!(is_full(log.sync()));
        log.append(&record(40)).unwrap();
        assert!(is_full(log.sync()));
        let (_, held) = open(&FaultyDisk::new(below.copy()).unwrap()).unwrap();
        assert_eq!((held.base, held.records), (None, records(0..5)));
        disk.set_capacity(None, late);
        log.sync().unwrap();
        disk.kill(Tear::Nothing).unwrap();
        let (_, held) = open(&below).unwrap();
        assert_eq!((held.base, held.records), (Some(8), records(20..41)), "late {late}");
    }
}

#[test]
fn housekeeping_on_a_full_disk_costs_nothing() {
    for late in [false, true] {
        let (below, disk, _) = fresh();
        let options = LogOptions { step_bytes: 4096, ..super::SMALL };
        let (mut log, _) = Log::open(disk.clone(), super::ME, options).unwrap();
        for number in 0..30 {
            log.append(&record(number)).unwrap();
            log.sync().unwrap();
            let used = disk.used();
            disk.set_capacity(Some(used + number % 60), late);
            is_full(log.housekeep());
            assert!(disk.used() <= used + 25, "more than a mark was left there");
            disk.set_capacity(None, late);
        }
        disk.kill(Tear::Nothing).unwrap();
        assert_eq!(open(&below).unwrap().1.records, records(0..30), "late {late}");
    }
}

#[test]
fn after_a_sync_that_failed_otherwise_the_log_takes_nothing_more() {
    let (below, disk, mut log) = fresh();
    log.append(&record(0)).unwrap();
    log.sync().unwrap();
    log.append(&record(1)).unwrap();
    disk.break_sync(1);
    assert!(matches!(log.sync(), Err(LogError::Disk(_))));
    assert!(matches!(log.append(&record(2)), Err(LogError::Failed)));
    assert!(matches!(log.flush(), Err(LogError::Failed)));
    assert!(matches!(log.sync(), Err(LogError::Failed)));
    assert!(matches!(log.begin_base(1, &[]), Err(LogError::Failed)));
    assert!(matches!(log.housekeep(), Err(LogError::Failed)));
    disk.kill(Tear::Nothing).unwrap();
    assert_eq!(open(&below).unwrap().1.records, records([0]));
}

/// The system takes what a failed sync could not write for written: it shows it, and no later sync writes it.
#[test]
fn what_a_failed_sync_forgot_is_written_again_by_the_next_start() {
    for before in 0..30 {
        let (below, disk, mut log) = fresh();
        for number in 0..before {
            log.append(&record(number)).unwrap();
            log.sync().unwrap();
            log.housekeep().unwrap();
        }
        for number in before..before + 4 {
            log.append(&record(number)).unwrap();
            log.flush().unwrap();
        }
        disk.break_sync(1);
        assert!(matches!(log.sync(), Err(LogError::Disk(_))));
        drop(log);
        // The process is started again, goes on from what it is shown, and the machine is lost then.
        disk.restart();
        let (mut log, held) = open(&disk).unwrap();
        assert_eq!(held.records, records(0..before + 4));
        log.append(&record(100)).unwrap();
        log.sync().unwrap();
        log.housekeep().unwrap();
        disk.kill(Tear::Nothing).unwrap();
        let all: Vec<_> = records((0..before + 4).chain([100]));
        assert_eq!(open(&below).unwrap().1.records, all, "{before}");
    }
}

/// There are file systems on which nothing can be removed where there is no space.
#[test]
fn what_can_not_be_removed_for_want_of_space_is_in_nobody_s_way() {
    let (below, disk, mut log) = fresh();
    for number in 0..5 {
        log.append(&record(number)).unwrap();
        log.sync().unwrap();
    }
    // A base that has no space leaves its file, and comes into force under the same name when there is some.
    disk.set_capacity(Some(disk.used() + 100), false);
    disk.set_removable(false);
    log.begin_base(8, &records(20..40)).unwrap();
    assert!(is_full(log.sync()) && is_full(log.sync()));
    disk.set_capacity(None, false);
    disk.set_removable(true);
    log.sync().unwrap();
    // What it replaced is removed later, and not forgotten.
    disk.set_removable(false);
    log.housekeep().unwrap();
    log.housekeep().unwrap();
    log.append(&record(40)).unwrap();
    log.sync().unwrap();
    let segments = |disk: &FaultyDisk<MemoryDisk>| {
        disk.list().unwrap().iter().filter(|name| crate::log::format::number(name).is_some()).count()
    };
    let kept = segments(&disk);
    assert!(kept > 1);
    drop(log);
    disk.restart();
    let (mut log, held) = open(&disk).unwrap();
    assert_eq!((held.base, held.records), (Some(8), records(20..41)), "a start needs no space for it either");
    assert_eq!(segments(&disk), kept);
    disk.set_removable(true);
    log.housekeep().unwrap();
    assert_eq!(segments(&disk), 2, "the base, and the one behind it");
    log.sync().unwrap();
    disk.kill(Tear::Everything).unwrap();
    assert_eq!(open(&below).unwrap().1.records, records(20..41));
}
