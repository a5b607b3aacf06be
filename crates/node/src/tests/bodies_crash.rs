//! The log behind what a component keeps, on a disk that loses what was not synced: whatever crashes at
//! whatever moment, a start finds every body that was certified, once and in order, and none that a base let go.

use crate::beside::{Desk, Done};
use crate::bodies::{Bodies, behind};
use crate::disk_journal::DiskJournal;
use crate::journal::Journal;
use crate::snapshots::Keeper;
use bytes::Bytes;
use troth_core::LogRecord;
use troth_disk::{FaultyDisk, Identity, Log, LogOptions, MemoryDisk, Tear};
use troth_exec::{MerkleMap, Snapshot};
use troth_trusted::{CounterId, CounterValue};
use troth_types::{Seq, Time, Wire};

const OWNER: Identity = Identity { group: [4; 32], replica: 1 };

/// A small generator, so that a seed tells all (SplitMix64).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn one_in(&mut self, n: u64) -> bool {
        self.next().is_multiple_of(n)
    }
}

fn own(value: u64) -> Bytes {
    let (previous, new) = (CounterValue(u128::from(value) - 1), CounterValue(u128::from(value)));
    LogRecord::Own { counter: CounterId(0), previous, new, body: Bytes::from(vec![value as u8; 40]) }
        .to_wire()
}

/// What a segment carries over: everything up to this value is let go.
fn carried(value: u64) -> Bytes {
    LogRecord::Machine(Bytes::copy_from_slice(&value.to_be_bytes())).to_wire()
}

fn state(seq: u64) -> Snapshot {
    let mut map = MerkleMap::new();
    map.insert(b"seq", Bytes::copy_from_slice(&seq.to_be_bytes()));
    Snapshot::of(Seq(seq), Time(seq), map.tree_now())
}

/// A replica's disk and its component, which is never lost.
struct Machine {
    disk: FaultyDisk<MemoryDisk>,
    blobs: Vec<Vec<u8>>,
    certified: u64,
    snapshots: u64,
    random: Random,
    crashes: u64,
    beside: u64,
    segments: u64,
}

struct Life {
    journal: DiskJournal<FaultyDisk<MemoryDisk>>,
    bodies: Bodies,
    desk: Desk,
    runtime: tokio::runtime::Runtime,
}

impl Life {
    /// Waits for what a thread did next.
    fn done(&self) -> Done {
        super::next_done(&self.desk, &self.runtime)
    }

    fn append(&mut self, record: Bytes) {
        self.bodies.append(self.journal.base(), &record);
        self.journal.append(record);
    }

    fn sync(&mut self) {
        self.bodies.are_in_the_log();
        self.journal.sync();
        loop {
            match self.done() {
                Done::Synced => return,
                Done::Snapshot(seq) => self.journal.snapshot_done(seq),
                other => panic!("{other:?}"),
            }
        }
    }
}

impl Machine {
    /// Starts, and looks at what it finds.
    fn start(&mut self) -> Life {
        let options = LogOptions { step_bytes: 0, ..LogOptions::new(self.random.next()) };
        let (log, mut held) = Log::open(self.disk.clone(), OWNER, options).expect("whole");
        let keeper = Keeper::open(self.disk.clone(), OWNER, held.base).expect("whole");
        let base = Seq(held.base.unwrap_or(0));
        let missing = behind(base, &held.records, self.blobs.clone()).expect("what a replica made");
        held.records.extend(missing.iter().cloned());
        self.judge(&held.records);
        let desk = Desk::default();
        let mut journal =
            DiskJournal::start(log, base, 0, keeper, desk.clone(), None).expect("threads start");
        journal.go_on_with(missing);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime");
        Life { journal, bodies: Bodies::new(true), desk, runtime }
    }

    fn judge(&self, log: &[Bytes]) {
        let mut let_go = 0;
        let mut values: Vec<u64> = Vec::new();
        for record in log {
            match LogRecord::from_wire(record).expect("what was appended") {
                LogRecord::Machine(value) => {
                    let_go = u64::from_be_bytes(value[..].try_into().expect("a value"));
                    values.clear();
                }
                LogRecord::Own { new, .. } => values.push(u64::try_from(new.0).expect("small")),
                other => panic!("{other:?}"),
            }
        }
        // The bodies of the run after the last may be there: the crash came before the question. A start
        // appends them again where it found them only in the component.
        let expected: Vec<u64> = (let_go + 1..=self.certified).collect();
        let unfinished: Vec<u64> = (let_go + 1..=self.certified + 1).collect();
        values.dedup();
        assert!(values == expected || values == unfinished, "{values:?}, certified {}", self.certified);
    }

    /// A run is certified, unless a crash comes first.
    fn run(&mut self, life: &mut Life) -> Result<(), ()> {
        if self.random.one_in(6) {
            self.snapshots += 64;
            self.segments += 1;
            life.bodies.need_log();
            let needed = self.random.one_in(3);
            let before = life.journal.base();
            life.journal.new_segment(state(self.snapshots), needed);
            // One that is not taken, as another is being written, carries nothing over.
            if life.journal.base() > before {
                life.append(carried(self.certified));
            }
            if self.random.one_in(4) {
                life.sync();
            }
        }
        self.perhaps_crash(12)?;
        life.append(own(self.certified + 1));
        match life.bodies.blob().map(<[u8]>::to_vec) {
            Some(blob) if !self.random.one_in(8) => {
                self.perhaps_crash(30)?;
                self.blobs.push(blob);
                self.beside += 1;
                life.bodies.are_beside();
            }
            _ => {
                life.sync();
                self.perhaps_crash(12)?;
                self.blobs.clear();
                life.bodies.let_go();
            }
        }
        self.certified += 1;
        if self.random.one_in(3)
            && let Some(done) = life.desk.take()
        {
            match done {
                Done::Snapshot(seq) => life.journal.snapshot_done(seq),
                other => panic!("{other:?}"),
            }
        }
        self.perhaps_crash(12)
    }

    fn perhaps_crash(&mut self, one_in: u64) -> Result<(), ()> {
        if !self.random.one_in(one_in) {
            return Ok(());
        }
        self.crashes += 1;
        // A clean stop, a process that is killed, a machine that loses its power.
        match self.random.next() % 3 {
            0 => {}
            1 => self.disk.kill(Tear::Nothing).expect("a loss of power"),
            _ => {
                let tear = Tear::Random(self.random.next());
                self.disk.kill(tear).expect("a loss of power");
            }
        }
        Err(())
    }
}

#[test]
fn every_certified_body_is_found_once_and_in_order_whatever_crashes() {
    let (mut crashes, mut beside, mut segments) = (0, 0, 0);
    for seed in 0..100 {
        let mut machine = Machine {
            disk: FaultyDisk::new(MemoryDisk::default()).expect("empty"),
            blobs: Vec::new(),
            certified: 0,
            snapshots: 0,
            random: Random(seed),
            crashes: 0,
            beside: 0,
            segments: 0,
        };
        for _ in 0..12 {
            let mut life = machine.start();
            while machine.run(&mut life).is_ok() && machine.certified < 200 {}
            drop(life);
            machine.disk.restart();
        }
        crashes += machine.crashes;
        beside += machine.beside;
        segments += machine.segments;
    }
    assert!(crashes > 500 && beside > 500 && segments > 300, "{crashes} {beside} {segments}");
}
