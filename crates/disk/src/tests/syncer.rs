//! Group commit: jobs that wait share one write and one sync; reports follow durability; a full disk is
//! waited out, a broken one ends it. Nothing here waits for time to pass.

use super::{ME, open, record, records};
use crate::{
    Disk, DiskError, DiskFile, FaultyDisk, Job, Log, LogOptions, MemoryDisk, Refused, Report, Step, Syncer,
    SyncerOptions, Tear, Ticket,
};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

const OPTIONS: SyncerOptions =
    SyncerOptions { most_jobs: 16, most_bytes: 1 << 20, retry: Duration::from_millis(1), every: None };

/// Long enough that only a hang reaches it.
const HANG: Duration = Duration::from_secs(60);

fn append(number: u64) -> Job {
    Job { steps: vec![Step::Append(record(number))], sync: true }
}

fn reports<D: Disk>(log: Log<D>, options: SyncerOptions) -> (Syncer<D>, Receiver<Report>) {
    let (sender, receiver) = channel();
    let syncer = Syncer::start(log, options, move |report| drop(sender.send(report))).unwrap();
    (syncer, receiver)
}

fn done(reports: &Receiver<Report>) -> Ticket {
    match reports.recv_timeout(HANG) {
        Ok(Report::Done(ticket)) => ticket,
        other => panic!("{other:?}"),
    }
}

/// A disk that, once armed, tells when a sync begins and waits until it may.
#[derive(Clone)]
struct Gated {
    disk: FaultyDisk<MemoryDisk>,
    gate: Arc<Mutex<Option<Gate>>>,
}

struct Gate {
    arrived: Sender<()>,
    go: Receiver<()>,
}

struct GatedFile {
    file: <FaultyDisk<MemoryDisk> as Disk>::File,
    gate: Arc<Mutex<Option<Gate>>>,
}

impl Disk for Gated {
    type File = GatedFile;
    fn list(&self) -> Result<Vec<String>, DiskError> {
        self.disk.list()
    }
    fn create(&self, name: &str) -> Result<GatedFile, DiskError> {
        Ok(GatedFile { file: self.disk.create(name)?, gate: Arc::clone(&self.gate) })
    }
    fn open(&self, name: &str) -> Result<GatedFile, DiskError> {
        Ok(GatedFile { file: self.disk.open(name)?, gate: Arc::clone(&self.gate) })
    }
    fn rename(&self, from: &str, to: &str) -> Result<(), DiskError> {
        self.disk.rename(from, to)
    }
    fn remove(&self, name: &str) -> Result<(), DiskError> {
        self.disk.remove(name)
    }
    fn sync_directory(&self) -> Result<(), DiskError> {
        self.disk.sync_directory()
    }
}

impl DiskFile for GatedFile {
    fn len(&self) -> Result<u64, DiskError> {
        self.file.len()
    }
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<usize, DiskError> {
        self.file.read_at(offset, buffer)
    }
    fn write_at(&mut self, offset: u64, bytes: &[u8]) -> Result<(), DiskError> {
        self.file.write_at(offset, bytes)
    }
    fn reserve(&mut self, from: u64, to: u64) -> Result<(), DiskError> {
        self.file.reserve(from, to)
    }
    fn set_len(&mut self, len: u64) -> Result<(), DiskError> {
        self.file.set_len(len)
    }
    fn sync_data(&mut self) -> Result<(), DiskError> {
        if let Some(gate) = &*self.gate.lock().unwrap() {
            gate.arrived.send(()).unwrap();
            gate.go.recv_timeout(HANG).unwrap();
        }
        self.file.sync_data()
    }
    fn sync_all(&mut self) -> Result<(), DiskError> {
        self.file.sync_all()
    }
}

fn gated() -> (Gated, Receiver<()>, Sender<()>) {
    let disk = FaultyDisk::new(MemoryDisk::default()).unwrap();
    let (arrived, arrivals) = channel();
    let (go, going) = channel();
    let gate = Arc::new(Mutex::new(Some(Gate { arrived, go: going })));
    (Gated { disk, gate }, arrivals, go)
}

/// A log on such a disk that makes no room, so that every sync is a job's.
fn gated_log(disk: &Gated) -> Log<Gated> {
    let gate = disk.gate.lock().unwrap().take();
    let options = LogOptions { step_bytes: 0, ..LogOptions::new(1) };
    let (log, _) = Log::open(disk.clone(), ME, options).unwrap();
    *disk.gate.lock().unwrap() = gate;
    log
}

#[test]
fn jobs_that_wait_share_one_write_and_one_sync() {
    let (disk, arrivals, go) = gated();
    let (syncer, reports) = reports(gated_log(&disk), OPTIONS);
    let before = disk.disk.syncs();
    assert_eq!(syncer.submit(append(0)).unwrap(), Ticket(1));
    arrivals.recv_timeout(HANG).unwrap();
    let writes = disk.disk.writes();
    for number in 1..11 {
        syncer.submit(append(number)).unwrap();
    }
    go.send(()).unwrap();
    assert_eq!(done(&reports), Ticket(1));
    arrivals.recv_timeout(HANG).unwrap();
    go.send(()).unwrap();
    assert_eq!(done(&reports), Ticket(11));
    let log = syncer.stop().unwrap();
    assert_eq!(disk.disk.syncs() - before, 2);
    // One write of the ten, and the mark after each of the two groups.
    assert_eq!(disk.disk.writes() - writes, 3);
    drop(log);
    disk.gate.lock().unwrap().take();
    let (_, held) = Log::open(disk, ME, LogOptions::new(2)).unwrap();
    assert_eq!(held.records, records(0..11));
}

#[test]
fn a_full_queue_gives_the_job_back_and_lets_a_waiter_in_later() {
    let (disk, arrivals, go) = gated();
    let options = SyncerOptions { most_jobs: 2, ..OPTIONS };
    let (syncer, reports) = reports(gated_log(&disk), options);
    syncer.submit(append(0)).unwrap();
    arrivals.recv_timeout(HANG).unwrap();
    syncer.submit(append(1)).unwrap();
    syncer.submit(append(2)).unwrap();
    match syncer.try_submit(append(3)) {
        Err(Refused::Busy(job)) => assert_eq!(job, append(3)),
        other => panic!("{other:?}"),
    }
    std::thread::scope(|scope| {
        let waiter = scope.spawn(|| syncer.submit(append(3)).unwrap());
        for _ in 0..2 {
            go.send(()).unwrap();
            arrivals.recv_timeout(HANG).unwrap();
        }
        go.send(()).unwrap();
        assert_eq!(waiter.join().unwrap(), Ticket(4));
        // The waiter may come in with the second group or after it.
        go.send(()).unwrap();
        let mut last = Ticket(0);
        while last < Ticket(4) {
            last = done(&reports);
        }
    });
}

#[test]
fn the_bound_on_bytes_holds_and_a_larger_job_goes_alone() {
    let (disk, arrivals, go) = gated();
    let options = SyncerOptions { most_bytes: 300, ..OPTIONS };
    let (syncer, reports) = reports(gated_log(&disk), options);
    let large = Job { steps: vec![Step::Append(vec![1; 5000].into())], sync: true };
    syncer.try_submit(large.clone()).unwrap();
    arrivals.recv_timeout(HANG).unwrap();
    syncer.try_submit(append(1)).unwrap();
    assert!(matches!(syncer.try_submit(large), Err(Refused::Busy(_))));
    for _ in 0..2 {
        go.send(()).unwrap();
    }
    assert_eq!(done(&reports), Ticket(1));
    assert_eq!(done(&reports), Ticket(2));
}

#[test]
fn a_base_of_many_bytes_waits_for_nobody() {
    let (disk, arrivals, go) = gated();
    let options = SyncerOptions { most_bytes: 300, ..OPTIONS };
    let (syncer, reports) = reports(gated_log(&disk), options);
    syncer.try_submit(append(0)).unwrap();
    arrivals.recv_timeout(HANG).unwrap();
    syncer.try_submit(append(1)).unwrap();
    let base = Step::Base { base: 5, records: vec![vec![1; 5000].into()] };
    syncer.try_submit(Job { steps: vec![base], sync: true }).unwrap();
    for _ in 0..2 {
        go.send(()).unwrap();
    }
    assert_eq!(done(&reports), Ticket(1));
    assert_eq!(done(&reports), Ticket(3));
}

#[test]
fn a_done_job_survives_a_crash_and_jobs_without_sync_are_only_written() {
    let below = MemoryDisk::default();
    let disk = FaultyDisk::new(below.clone()).unwrap();
    let (log, _) = open(&disk).unwrap();
    let (syncer, reports) = reports(log, OPTIONS);
    syncer.submit(append(0)).unwrap();
    assert_eq!(done(&reports), Ticket(1));
    let base = Step::Base { base: 5, records: records([1, 2]) };
    syncer.submit(Job { steps: vec![base, Step::Append(record(3))], sync: true }).unwrap();
    assert_eq!(done(&reports), Ticket(2));
    let syncs = disk.syncs();
    syncer.submit(Job { steps: vec![Step::Append(record(4))], sync: false }).unwrap();
    assert_eq!(done(&reports), Ticket(3));
    let log = syncer.stop().unwrap();
    assert!(disk.syncs() <= syncs + 1, "at most the room was synced");
    drop(log);
    disk.kill(Tear::Nothing).unwrap();
    let (_, held) = open(&below).unwrap();
    assert_eq!(held.base, Some(5));
    assert_eq!(held.records[..3], records(1..4));
}

#[test]
fn a_full_disk_is_told_once_waited_out_and_nothing_is_lost() {
    let below = MemoryDisk::default();
    let disk = FaultyDisk::new(below.clone()).unwrap();
    let (log, _) = open(&disk).unwrap();
    let (syncer, reports) = reports(log, OPTIONS);
    syncer.submit(append(0)).unwrap();
    assert_eq!(done(&reports), Ticket(1));
    disk.set_capacity(Some(100), false);
    // Some of these may still fit into room that was made, not all.
    let large = |number: u64| bytes::Bytes::from(vec![number as u8; 2_000]);
    for number in 1..12 {
        syncer.submit(Job { steps: vec![Step::Append(large(number))], sync: true }).unwrap();
    }
    let mut last = Ticket(1);
    loop {
        match reports.recv_timeout(HANG).unwrap() {
            Report::Done(ticket) => last = ticket,
            Report::Full(why) => break assert!(why.is_full()),
            other => panic!("{other:?}"),
        }
    }
    assert!(last < Ticket(12));
    disk.set_capacity(None, false);
    assert!(matches!(reports.recv_timeout(HANG), Ok(Report::Space)));
    while last < Ticket(12) {
        last = done(&reports);
    }
    drop(syncer);
    disk.kill(Tear::Nothing).unwrap();
    let all: Vec<_> = std::iter::once(record(0)).chain((1..12).map(large)).collect();
    assert_eq!(open(&below).unwrap().1.records, all);
}

#[test]
fn stopping_on_a_full_disk_does_not_wait_for_space() {
    let disk = FaultyDisk::new(MemoryDisk::default()).unwrap();
    let (log, _) = open(&disk).unwrap();
    let (syncer, reports) = reports(log, SyncerOptions { retry: HANG * 60, ..OPTIONS });
    disk.set_capacity(Some(90), false);
    syncer.submit(append(0)).unwrap();
    assert!(matches!(reports.recv_timeout(HANG), Ok(Report::Full(_))));
    assert!(syncer.stop().is_some());
}

#[test]
fn a_broken_disk_ends_it_and_says_so() {
    let disk = FaultyDisk::new(MemoryDisk::default()).unwrap();
    let (log, _) = open(&disk).unwrap();
    let (syncer, reports) = reports(log, OPTIONS);
    disk.break_sync(1);
    syncer.submit(append(0)).unwrap();
    assert!(matches!(reports.recv_timeout(HANG), Ok(Report::Failed(_))));
    assert!(matches!(syncer.submit(append(1)), Err(Refused::Stopped(_))));
}

/// Jobs that only append.
fn written(number: u64) -> Job {
    Job { sync: false, ..append(number) }
}

#[test]
fn what_is_written_at_once_stands_in_the_log_among_what_the_thread_writes() {
    let disk = FaultyDisk::new(MemoryDisk::default()).unwrap();
    let (log, _) = open(&disk).unwrap();
    let (syncer, reports) = reports(log, OPTIONS);
    for number in 0..50 {
        let mut job = written(number);
        if number % 10 == 0 {
            // The thread has the first of each ten, and is told to be done before the next.
            assert_eq!(syncer.submit(job).unwrap(), Ticket(number + 1));
            assert_eq!(done(&reports), Ticket(number + 1));
            continue;
        }
        let writes = disk.writes();
        loop {
            match syncer.write_now(job) {
                Ok(ticket) => break assert_eq!(ticket, Ticket(number + 1)),
                // It has reported, and is not back yet.
                Err(back) => {
                    assert_eq!(back, written(number));
                    job = back;
                    std::thread::yield_now();
                }
            }
        }
        assert!(disk.writes() > writes, "written when it returns");
    }
    drop(syncer);
    assert_eq!(open(&disk).unwrap().1.records, records(0..50));
}

#[test]
fn nothing_is_written_at_once_while_the_thread_is_at_work_nor_a_base_nor_by_the_clock() {
    let (disk, arrivals, go) = gated();
    let (syncer, reports) = reports(gated_log(&disk), OPTIONS);
    syncer.submit(append(0)).unwrap();
    arrivals.recv_timeout(HANG).unwrap();
    assert_eq!(syncer.write_now(written(1)), Err(written(1)), "it would overtake");
    syncer.submit(written(1)).unwrap();
    assert_eq!(syncer.write_now(written(2)), Err(written(2)), "it would overtake what waits");
    go.send(()).unwrap();
    assert_eq!(done(&reports), Ticket(1));
    assert_eq!(done(&reports), Ticket(2));
    let base = Job { steps: vec![Step::Base { base: 5, records: records([1]) }], sync: false };
    assert_eq!(syncer.write_now(base.clone()), Err(base));

    let every = SyncerOptions { every: Some(HANG), ..OPTIONS };
    let (log, _) = open(&FaultyDisk::new(MemoryDisk::default()).unwrap()).unwrap();
    let (clocked, _reports) = super::syncer::reports(log, every);
    assert_eq!(clocked.write_now(written(0)), Err(written(0)));
}

#[test]
fn what_a_full_disk_does_not_take_at_once_the_thread_writes_later_and_once() {
    let below = MemoryDisk::default();
    let disk = FaultyDisk::new(below.clone()).unwrap();
    let (log, _) = open(&disk).unwrap();
    let (syncer, reports) = reports(log, OPTIONS);
    disk.set_capacity(Some(100), false);
    let large = |number: u64| bytes::Bytes::from(vec![number as u8; 6 << 20]);
    let job = |number| Job { steps: vec![Step::Append(large(number))], sync: false };
    let left = syncer.write_now(job(0)).expect_err("there is no space");
    assert_eq!(left, Job::default(), "it is appended, and waits in memory");
    syncer.submit(left).unwrap();
    assert!(matches!(reports.recv_timeout(HANG), Ok(Report::Full(_))));
    disk.set_capacity(None, false);
    assert!(matches!(reports.recv_timeout(HANG), Ok(Report::Space)));
    assert_eq!(done(&reports), Ticket(1));
    drop(syncer);
    assert_eq!(open(&below).unwrap().1.records, [large(0)]);
}
