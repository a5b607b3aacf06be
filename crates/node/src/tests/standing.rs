//! Which starts go on from what a directory holds: every durability, a process killed and a machine lost, and
//! every change of durability in between. Judged on a disk that loses what was not synced.

use crate::beside::{Desk, Done};
use crate::config::{Durability, Protocol};
use crate::disk_journal::DiskJournal;
use crate::durable::DurableError;
use crate::journal::Journal;
use crate::snapshots::Keeper;
use crate::standing::{Unproven, take_over};
use bytes::Bytes;
use std::time::Duration;
use troth_disk::{
    Disk, DiskFile, FaultyDisk, Identity, Log, LogOptions, MemoryDisk, Tear, Unsynced, sync_everything,
};
use troth_trusted_host::store::directory::BootId;
use troth_types::Seq;

const OWNER: Identity = Identity { group: [4; 32], replica: 1 };
const BOOT: BootId = BootId([1; 16]);
const NEXT_BOOT: BootId = BootId([2; 16]);
const KINDS: [Durability; 3] =
    [Durability::Always, Durability::Interval(Duration::from_secs(3600)), Durability::Memory];

/// Opens the directory as `durability` does, has five records kept, and ends.
fn run(disk: &FaultyDisk<MemoryDisk>, durability: Durability, boot: BootId) -> Result<(), DurableError> {
    take_over(disk, Protocol::MinBft, durability, boot)?;
    if durability == Durability::Memory {
        append(Unsynced(disk.clone()), durability);
    } else {
        append(disk.clone(), durability);
    }
    Ok(())
}

fn append<D: Disk + Sync>(disk: D, durability: Durability) {
    let (log, held) = Log::open(disk.clone(), OWNER, LogOptions::new(1)).expect("whole");
    let keeper = Keeper::open(disk, OWNER, held.base).expect("there are none");
    let desk = Desk::default();
    let mut journal =
        DiskJournal::start(log, Seq(0), 0, keeper, desk.clone(), durability.every()).expect("threads start");
    for number in 0..5_u8 {
        journal.append(Bytes::copy_from_slice(&[number]));
    }
    journal.sync();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime");
    let woken = async { tokio::time::timeout(Duration::from_secs(60), desk.woken()).await };
    runtime.block_on(woken).expect("it is kept soon");
    assert!(matches!(desk.take(), Some(Done::Synced)));
    // It does not end in good order: what it did not sync stays so.
    std::mem::forget(journal);
}

fn lost(result: Result<(), DurableError>) -> bool {
    match result {
        Ok(()) => false,
        Err(why) => {
            assert!(why.must_not_vote(), "{why}");
            let message = why.to_string();
            assert!(message.contains("readmitted") && message.contains("must not vote"), "{message}");
            assert!(matches!(why, DurableError::Unproven(_)), "{why}");
            true
        }
    }
}

fn kept(below: &MemoryDisk) -> usize {
    Log::open(below.clone(), OWNER, LogOptions::new(1)).expect("whole").1.records.len()
}

#[test]
fn a_machine_that_was_lost_is_told_from_a_process_that_was_killed() {
    for first in KINDS {
        for second in KINDS {
            let disk = FaultyDisk::new(MemoryDisk::default()).expect("empty");
            run(&disk, first, BOOT).expect("a fresh directory");
            take_over(&disk, Protocol::MinBft, second, BOOT)
                .unwrap_or_else(|why| panic!("{first:?}, killed, {second:?}: {why}"));

            let below = MemoryDisk::default();
            let disk = FaultyDisk::new(below.clone()).expect("empty");
            run(&disk, first, BOOT).expect("a fresh directory");
            disk.kill(Tear::Nothing).expect("a loss of power");
            let again = take_over(&below, Protocol::MinBft, second, NEXT_BOOT);
            if first == Durability::Always {
                again.unwrap_or_else(|why| panic!("{first:?}, lost, {second:?}: {why}"));
                assert_eq!(kept(&below), 5, "it promised so");
            } else {
                assert!(lost(again), "{first:?}, lost, {second:?}");
            }
        }
    }
}

#[test]
fn what_was_lost_once_stays_lost_however_it_is_started() {
    let below = MemoryDisk::default();
    let disk = FaultyDisk::new(below.clone()).expect("empty");
    run(&disk, Durability::Memory, BOOT).expect("a fresh directory");
    disk.kill(Tear::Random(3)).expect("a loss of power");
    for _ in 0..2 {
        for durability in KINDS {
            assert!(lost(take_over(&below, Protocol::MinBft, durability, NEXT_BOOT)), "{durability:?}");
        }
    }
}

#[test]
fn a_log_that_was_never_synced_is_made_durable_before_it_counts_as_proven() {
    for first in [Durability::Memory, KINDS[1]] {
        let below = MemoryDisk::default();
        let disk = FaultyDisk::new(below.clone()).expect("empty");
        run(&disk, first, BOOT).expect("a fresh directory");
        // The process was killed; now everything is to be on disk.
        take_over(&disk, Protocol::MinBft, Durability::Always, BOOT).expect("the system has it");
        disk.kill(Tear::Nothing).expect("a loss of power");
        take_over(&below, Protocol::MinBft, Durability::Always, NEXT_BOOT).expect("it was made durable");
        assert_eq!(kept(&below), 5, "{first:?}");
    }
}

#[test]
fn a_crash_at_any_call_of_the_taking_over_leaves_no_false_proof() {
    for first in [Durability::Memory, KINDS[1]] {
        for call in 1.. {
            let below = MemoryDisk::default();
            let disk = FaultyDisk::new(below.clone()).expect("empty");
            run(&disk, first, BOOT).expect("a fresh directory");
            let before = disk.calls();
            disk.crash_at(before + call);
            let done = take_over(&disk, Protocol::MinBft, Durability::Always, BOOT).is_ok();
            disk.kill(Tear::Random(call)).expect("a loss of power");
            if take_over(&below, Protocol::MinBft, Durability::Always, NEXT_BOOT).is_ok() {
                assert_eq!(kept(&below), 5, "{first:?}, crash at call {call}: it counts as proven");
            } else {
                assert!(!done, "{first:?}, crash at call {call}");
            }
            if done {
                break;
            }
        }
    }
}

#[test]
fn a_directory_of_an_earlier_version_was_synced_and_one_that_is_damaged_is_refused() {
    let below = MemoryDisk::default();
    append(below.clone(), Durability::Always);
    take_over(&below, Protocol::MinBft, Durability::Memory, NEXT_BOOT).expect("there is nothing to prove");

    let whole = below.contents("kept").expect("just written");
    let text = String::from_utf8(whole.clone()).expect("text");
    for damaged in [
        Vec::new(),
        whole[..whole.len() - 1].to_vec(),
        text.replace("memory", "never").into_bytes(),
        text.replace("kept 1", "kept 2").into_bytes(),
        [whole.clone(), b"more\n".to_vec()].concat(),
        vec![0xff; 300],
    ] {
        below.put("kept", damaged.clone());
        let refused = take_over(&below, Protocol::MinBft, Durability::Memory, NEXT_BOOT);
        let why = refused.expect_err("nobody knows how it was kept");
        assert!(
            matches!(why, DurableError::Unproven(Unproven::Unreadable("kept", Protocol::MinBft))),
            "{damaged:?}: {why}"
        );
    }
    below.put("kept", whole);
    take_over(&below, Protocol::MinBft, Durability::Memory, NEXT_BOOT).expect("it is whole again");
    // What a start left half done is in nobody's way.
    below.create("kept.new").expect("free").write_at(0, b"x").expect("memory");
    sync_everything(&below).expect("memory");
    take_over(&below, Protocol::MinBft, Durability::Always, NEXT_BOOT).expect("the same boot");
}

#[test]
fn a_full_disk_keeps_nobody_from_starting_again_on_another_boot() {
    let disk = FaultyDisk::new(MemoryDisk::default()).expect("empty");
    run(&disk, Durability::Always, BOOT).expect("a fresh directory");
    disk.set_capacity(Some(disk.used()), false);
    for boot in [BOOT, NEXT_BOOT] {
        take_over(&disk, Protocol::MinBft, Durability::Always, boot).expect("it needs no space");
        Log::open(disk.clone(), OWNER, LogOptions::new(1)).expect("nor does its log");
    }
}
