//! Log and snapshots on a real disk: what a start finds, and what waits for what.

use super::config::Scratch;
use crate::beside::{Desk, Done};
use crate::disk_journal::DiskJournal;
use crate::journal::Journal;
use crate::snapshots::{Keep, Keeper};
use bytes::Bytes;
use std::path::Path;
use troth_core::Execution;
use troth_disk::{Identity, Log, LogOptions, RealDisk, SnapshotError};
use troth_exec::{Executor, MerkleMap, Snapshot};
use troth_kv::Null;
use troth_types::{Digest, Limits, Seq, Time};

const OWNER: Identity = Identity { group: [4; 32], replica: 1 };

/// A state of so many keys.
fn state(seq: u64, keys: u64) -> Snapshot {
    state_after(MerkleMap::new(), seq, 0..keys)
}

/// What another became when these keys were written.
fn state_after(mut map: MerkleMap, seq: u64, keys: std::ops::Range<u64>) -> Snapshot {
    for key in keys {
        map.insert(&key.to_be_bytes(), Bytes::from(vec![7; 300]));
    }
    map.insert(b"seq", Bytes::copy_from_slice(&seq.to_be_bytes()));
    Snapshot::of(Seq(seq), Time(seq), map.tree_now())
}

fn record(number: u32) -> Bytes {
    Bytes::copy_from_slice(&number.to_be_bytes())
}

struct Home {
    journal: DiskJournal<RealDisk>,
    desk: Desk,
    runtime: tokio::runtime::Runtime,
}

/// What a start finds: the base, the newest snapshot, the records.
type Held = (Option<u64>, Option<Snapshot>, Vec<Bytes>);

fn open(directory: &Path) -> Result<(Home, Held), SnapshotError> {
    std::fs::create_dir_all(directory).expect("a scratch directory");
    let disk = RealDisk::open(directory).expect("nobody else has it");
    let (log, held) = Log::open(disk.clone(), OWNER, LogOptions::new(1)).expect("the log is whole");
    let mut keeper = Keeper::open(disk, OWNER, held.base)?;
    let newest = keeper.take_start();
    let desk = Desk::default();
    let journal = DiskJournal::start(log, Seq(0), 0, keeper, desk.clone(), None).expect("threads start");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime");
    Ok((Home { journal, desk, runtime }, (held.base, newest, held.records)))
}

impl Home {
    /// What a thread did next.
    fn done(&self) -> Done {
        super::next_done(&self.desk, &self.runtime)
    }

    fn append_and_sync(&mut self, numbers: std::ops::Range<u32>) {
        numbers.for_each(|number| self.journal.append(record(number)));
        self.journal.sync();
        assert!(matches!(self.done(), Done::Synced));
    }

    /// Has a snapshot written and the log put on it.
    fn rebase(&mut self, snapshot: &Snapshot) {
        self.journal.new_segment(snapshot.clone(), false);
        assert!(!self.journal.wants_segment(), "one is being written");
        match self.done() {
            Done::Snapshot(seq) => self.journal.snapshot_done(seq),
            other => panic!("{other:?}"),
        }
    }
}

fn records(numbers: std::ops::Range<u32>) -> Vec<Bytes> {
    numbers.map(record).collect()
}

#[test]
fn what_was_synced_is_found_again() {
    let scratch = Scratch::new("journal-found");
    let (mut home, held) = open(&scratch.0).expect("nothing is there");
    assert_eq!(held, (None, None, Vec::new()));
    home.append_and_sync(0..5);
    home.append_and_sync(5..9);
    drop(home);
    let (_, held) = open(&scratch.0).expect("all is whole");
    assert_eq!(held, (None, None, records(0..9)));
}

#[test]
fn the_log_stands_on_a_snapshot_once_both_are_durable() {
    let scratch = Scratch::new("journal-base");
    let (mut home, _) = open(&scratch.0).expect("nothing is there");
    home.append_and_sync(0..5);
    let first = state(64, 2_000);
    home.journal.new_segment(first.clone(), false);
    // The log goes on meanwhile, and both are in what the base begins with.
    home.journal.append(record(5));
    home.journal.append(record(6));
    match home.done() {
        Done::Snapshot(seq) => home.journal.snapshot_done(seq),
        other => panic!("{other:?}"),
    }
    home.append_and_sync(7..8);
    drop(home);
    let (mut home, held) = open(&scratch.0).expect("all is whole");
    assert_eq!(held, (Some(64), Some(first), records(5..8)));
    let start = held.1.expect("as above");

    // The next one is written as what is new, and the earlier one goes.
    let second = state_after(MerkleMap::from_tree(start.tree(), None), 128, 2_000..2_001);
    home.rebase(&second);
    home.append_and_sync(8..9);
    let third = state_after(MerkleMap::from_tree(second.tree(), None), 192, 2_001..2_002);
    home.rebase(&third);
    home.append_and_sync(9..10);
    drop(home);
    let (_, held) = open(&scratch.0).expect("all is whole");
    assert_eq!(held, (Some(192), Some(third), records(9..10)));
    let sizes: Vec<u64> = std::fs::read_dir(&scratch.0)
        .expect("it is there")
        .map(|entry| entry.expect("readable"))
        .filter(|entry| entry.file_name().to_string_lossy().starts_with("pack-"))
        .map(|entry| entry.metadata().expect("readable").len())
        .collect();
    let whole = sizes.iter().max().expect("there are packs");
    assert!(
        sizes.iter().filter(|size| *size < &(whole / 10)).count() >= 2,
        "{sizes:?}: what is new is little"
    );
}

#[test]
fn a_snapshot_ahead_of_the_log_is_what_to_start_from() {
    let scratch = Scratch::new("journal-ahead");
    let (mut home, _) = open(&scratch.0).expect("nothing is there");
    home.append_and_sync(0..5);
    let snapshot = state(64, 10);
    home.journal.new_segment(snapshot.clone(), false);
    assert!(matches!(home.done(), Done::Snapshot(Seq(64))));
    // It stops here: the log never stood on it.
    drop(home);
    let (mut home, held) = open(&scratch.0).expect("all is whole");
    assert_eq!(held, (None, Some(snapshot.clone()), records(0..5)));
    // The same state again is not written again.
    home.rebase(&snapshot);
    home.append_and_sync(5..6);
    drop(home);
    let (_, held) = open(&scratch.0).expect("all is whole");
    assert_eq!(held, (Some(64), Some(snapshot), records(5..6)));
}

#[test]
fn a_sync_waits_for_a_snapshot_that_is_needed() {
    let scratch = Scratch::new("journal-needed");
    let (mut home, _) = open(&scratch.0).expect("nothing is there");
    home.append_and_sync(0..5);
    let slow = state(64, 5_000);
    home.journal.new_segment(slow, false);
    let needed = state(128, 5_000);
    home.journal.new_segment(needed.clone(), true);
    home.journal.append(record(5));
    home.journal.sync();
    loop {
        match home.done() {
            Done::Snapshot(seq) => home.journal.snapshot_done(seq),
            Done::Synced => break,
            other => panic!("{other:?}"),
        }
    }
    drop(home);
    let (_, held) = open(&scratch.0).expect("all is whole");
    assert_eq!(held, (Some(128), Some(needed), records(5..6)), "it was durable with the sync");
}

#[test]
fn a_log_whose_snapshot_is_gone_is_refused() {
    let scratch = Scratch::new("journal-gone");
    let (mut home, _) = open(&scratch.0).expect("nothing is there");
    home.rebase(&state(64, 100));
    home.append_and_sync(0..1);
    drop(home);
    let manifest = scratch.0.join("snapshot-0000000000000040");
    let pack = scratch.0.join("pack-0000000000000001");
    let whole = std::fs::read(&pack).expect("it was written");
    for at in [100, whole.len() / 2, whole.len() - 1] {
        let mut damaged = whole.clone();
        damaged[at] ^= 1;
        std::fs::write(&pack, damaged).expect("writable");
        assert!(matches!(open(&scratch.0).map(drop), Err(SnapshotError::Damaged { .. })), "byte {at}");
    }
    std::fs::write(&pack, whole).expect("writable");
    open(&scratch.0).expect("it is whole again");
    std::fs::remove_file(manifest).expect("it is there");
    assert!(matches!(open(&scratch.0).map(drop), Err(SnapshotError::Unknown(64))));
}

/// A log that stands on `64`, and a newer snapshot that it does not stand on yet.
fn one_ahead(name: &str) -> (Scratch, Snapshot) {
    let scratch = Scratch::new(name);
    let (mut home, _) = open(&scratch.0).expect("nothing is there");
    let first = state(64, 200);
    home.rebase(&first);
    home.append_and_sync(0..5);
    home.journal.new_segment(state(128, 300), false);
    assert!(matches!(home.done(), Done::Snapshot(Seq(128))));
    (scratch, first)
}

#[test]
fn an_earlier_snapshot_serves_where_a_newer_one_is_damaged_and_the_log_reaches_back() {
    for (name, file) in [("nodes", "pack-0000000000000002"), ("manifest", "snapshot-0000000000000080")] {
        let (scratch, first) = one_ahead(&format!("journal-earlier-{name}"));
        let path = scratch.0.join(file);
        let mut damaged = std::fs::read(&path).expect("it was written");
        let middle = damaged.len() / 2;
        damaged[middle] ^= 1;
        std::fs::write(&path, damaged).expect("writable");
        let (mut home, held) = open(&scratch.0).expect("the log has all since");
        assert_eq!(held, (Some(64), Some(first), records(0..5)), "{name}");
        // And the same state is written again when the replica comes to it again.
        home.append_and_sync(5..6);
        home.rebase(&state(128, 300));
        home.append_and_sync(6..7);
        home.rebase(&state(192, 301));
        drop(home);
        let (_, held) = open(&scratch.0).expect("all is whole");
        assert_eq!(held, (Some(192), Some(state(192, 301)), Vec::new()), "{name}");
    }
}

#[test]
fn a_log_from_the_beginning_needs_no_snapshot() {
    let scratch = Scratch::new("journal-beginning");
    let (mut home, _) = open(&scratch.0).expect("nothing is there");
    home.append_and_sync(0..5);
    home.journal.new_segment(state(64, 200), false);
    assert!(matches!(home.done(), Done::Snapshot(Seq(64))));
    drop(home);
    let pack = scratch.0.join("pack-0000000000000001");
    let mut damaged = std::fs::read(&pack).expect("it was written");
    let last = damaged.len() - 1;
    damaged[last] ^= 1;
    std::fs::write(&pack, damaged).expect("writable");
    let (mut home, held) = open(&scratch.0).expect("the log has everything");
    assert_eq!(held, (None, None, records(0..5)));
    home.rebase(&state(64, 200));
    drop(home);
    assert_eq!(open(&scratch.0).expect("all is whole").1.1, Some(state(64, 200)));
}

#[test]
fn a_refused_directory_is_left_as_it_is() {
    let (scratch, _) = one_ahead("journal-left");
    let listed = || {
        let entries = std::fs::read_dir(&scratch.0).expect("it is there");
        let mut names: Vec<_> = entries.map(|entry| entry.expect("readable").file_name()).collect();
        names.sort();
        names
    };
    // The first pack is part of both.
    let pack = scratch.0.join("pack-0000000000000001");
    let mut damaged = std::fs::read(&pack).expect("it was written");
    let middle = damaged.len() / 2;
    damaged[middle] ^= 1;
    std::fs::write(&pack, damaged).expect("writable");
    let before = listed();
    for _ in 0..2 {
        assert!(matches!(open(&scratch.0).map(drop), Err(SnapshotError::Damaged { .. })));
        assert_eq!(listed(), before);
    }
}

#[test]
fn an_executor_starts_from_what_was_written() {
    let scratch = Scratch::new("journal-executor");
    let (mut home, _) = open(&scratch.0).expect("nothing is there");
    let mut executor = Executor::new(Null::default(), Limits::default());
    let genesis = executor.snapshot(Seq(0)).expect("the initial state is kept");
    home.rebase(&genesis);
    home.append_and_sync(0..1);
    drop(home);
    let (_, (_, found, _)) = open(&scratch.0).expect("all is whole");
    let (seq, digest) = executor.restore(found.expect("it was written"));
    assert_eq!((seq, digest), (Seq(0), genesis.digest()));
    assert_ne!(digest, Digest::ZERO);
}

/// Snapshots with a bug.
struct Buggy;

impl Keep for Buggy {
    fn write(&mut self, _: &Snapshot) -> Result<(), SnapshotError> {
        panic!("a bug of snapshots, on purpose");
    }
    fn retain(&mut self, _: Seq) -> Result<(), SnapshotError> {
        Ok(())
    }
}

#[test]
fn a_panic_while_a_snapshot_is_written_is_told_to_the_loop() {
    let scratch = Scratch::new("journal-buggy");
    std::fs::create_dir_all(&scratch.0).expect("a scratch directory");
    let disk = RealDisk::open(&scratch.0).expect("nobody else has it");
    let (log, _) = Log::open(disk, OWNER, LogOptions::new(1)).expect("an empty directory");
    let desk = Desk::default();
    let journal = DiskJournal::start(log, Seq(0), 0, Buggy, desk.clone(), None).expect("threads start");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime");
    let mut home = Home { journal, desk, runtime };
    // The loop would wait for this one for ever.
    home.journal.new_segment(state(64, 10), true);
    home.journal.append(record(0));
    home.journal.sync();
    assert!(matches!(home.done(), Done::Panicked("snapshot")));
}
