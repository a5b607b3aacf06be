//! Syncs by the clock, and none at all: what a kill leaves, and what a loss of power does.

#![expect(clippy::disallowed_methods, reason = "a test that waits for the clock, with a deadline")]

use super::{ME, SMALL, open, record, records};
use crate::{
    FaultyDisk, Job, Log, MemoryDisk, Report, Step, Syncer, SyncerOptions, Tear, Ticket, Unsynced,
    sync_everything,
};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

type Disk = FaultyDisk<MemoryDisk>;

/// Long enough that only a hang reaches it.
const HANG: Duration = Duration::from_secs(60);

fn started(every: Duration) -> (MemoryDisk, Disk, Syncer<Disk>, Receiver<Report>) {
    let below = MemoryDisk::default();
    let disk = FaultyDisk::new(below.clone()).unwrap();
    let (log, _) = open(&disk).unwrap();
    let (sender, reports) = channel();
    let options = SyncerOptions { every: Some(every), ..SyncerOptions::default() };
    let syncer = Syncer::start(log, options, move |report| drop(sender.send(report))).unwrap();
    (below, disk, syncer, reports)
}

fn append(numbers: std::ops::Range<u64>) -> Job {
    Job { steps: numbers.map(|number| Step::Append(record(number))).collect(), sync: true }
}

fn wait(reports: &Receiver<Report>, ticket: Ticket) {
    loop {
        match reports.recv_timeout(HANG).unwrap() {
            Report::Done(done) if done >= ticket => return,
            Report::Done(_) => {}
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn a_job_is_done_when_it_is_written_and_the_clock_makes_it_durable() {
    let (below, disk, syncer, reports) = started(HANG * 60);
    let before = disk.syncs();
    wait(&reports, syncer.submit(append(0..3)).unwrap());
    assert_eq!(disk.syncs(), before, "no sync was waited for");
    disk.kill(Tear::Nothing).unwrap();
    drop(syncer);
    assert_eq!(open(&below).unwrap().1.records, records(0..0), "the machine has not");

    let (below, disk, syncer, reports) = started(Duration::from_millis(1));
    let before = disk.syncs();
    wait(&reports, syncer.submit(append(0..3)).unwrap());
    let give_up = Instant::now() + HANG;
    while disk.syncs() == before {
        assert!(Instant::now() < give_up, "the clock never synced");
        std::thread::yield_now();
    }
    disk.kill(Tear::Nothing).unwrap();
    drop(syncer);
    assert_eq!(open(&below).unwrap().1.records, records(0..3));
}

#[test]
fn what_is_done_survives_the_end_of_the_process() {
    let (_, disk, syncer, reports) = started(HANG * 60);
    wait(&reports, syncer.submit(append(0..3)).unwrap());
    // Nothing of the log's memory is seen by another opening, only what the system was given.
    assert_eq!(open(&disk).unwrap().1.records, records(0..3));
    drop(syncer);
}

#[test]
fn a_base_is_durable_when_it_is_done_whatever_the_clock_says() {
    let (below, disk, syncer, reports) = started(HANG * 60);
    let base = Step::Base { base: 64, records: vec![record(7)] };
    syncer.submit(append(0..3)).unwrap();
    let ticket = syncer.submit(Job { steps: vec![base, Step::Append(record(8))], sync: false }).unwrap();
    wait(&reports, ticket);
    disk.kill(Tear::Nothing).unwrap();
    drop(syncer);
    let held = open(&below).unwrap().1;
    assert_eq!((held.base, held.records), (Some(64), records(7..9)));
}

#[test]
fn what_the_log_stands_on_is_durable_when_it_is_done_whatever_the_clock_says() {
    let (below, disk, syncer, reports) = started(HANG * 60);
    syncer.submit(append(0..3)).unwrap();
    syncer.submit(Job { steps: vec![Step::Place], sync: false }).unwrap();
    let steps = vec![Step::Append(record(3)), Step::StandOn(64)];
    let ticket = syncer.submit(Job { steps, sync: false }).unwrap();
    wait(&reports, ticket);
    disk.kill(Tear::Nothing).unwrap();
    drop(syncer);
    let held = open(&below).unwrap().1;
    assert_eq!((held.base, held.records), (Some(64), records(3..4)));
}

#[test]
fn an_end_in_good_order_leaves_nothing_to_the_clock() {
    let (below, disk, syncer, reports) = started(HANG * 60);
    wait(&reports, syncer.submit(append(0..3)).unwrap());
    drop(syncer.stop().expect("it did not panic"));
    disk.kill(Tear::Nothing).unwrap();
    assert_eq!(open(&below).unwrap().1.records, records(0..3));
}

#[test]
fn without_syncs_a_kill_loses_nothing_and_everything_can_be_made_durable_later() {
    for made_durable in [false, true] {
        let below = MemoryDisk::default();
        let disk = FaultyDisk::new(below.clone()).unwrap();
        let before = disk.syncs();
        let (mut log, _) = Log::open(Unsynced(disk.clone()), ME, SMALL).unwrap();
        for number in 0..60 {
            log.append(&record(number)).unwrap();
            log.sync().unwrap();
            log.housekeep().unwrap();
        }
        log.begin_base(64, &[record(59)]).unwrap();
        log.sync().unwrap();
        log.append(&record(60)).unwrap();
        log.sync().unwrap();
        drop(log);
        assert_eq!(disk.syncs(), before, "not one");
        let (_, held) = Log::open(Unsynced(disk.clone()), ME, SMALL).unwrap();
        assert_eq!((held.base, held.records), (Some(64), records(59..61)));
        if made_durable {
            sync_everything(&disk).unwrap();
        }
        disk.kill(Tear::Nothing).unwrap();
        let held = open(&below).unwrap().1;
        let expected = if made_durable { (Some(64), records(59..61)) } else { (None, records(0..0)) };
        assert_eq!((held.base, held.records), expected, "made durable: {made_durable}");
    }
}
