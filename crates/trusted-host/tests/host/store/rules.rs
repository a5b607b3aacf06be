//! What the store does besides surviving: generations, epochs, policies, boots and the lock.

use super::disk::{Crash, Disk};
use super::support::{FEW, fill, filled, open, open_as, state, state_of, store_file, value};
use crate::support::IDENTITY;
use troth_trusted::{Epoch, Identity, Store, StoreFailed};
use troth_trusted_host::store::{DiskStore, How, MOST_SLOTS, Policy, StoreError};

#[test]
fn a_full_file_is_followed_by_the_next_generation_and_nothing_else_is_left() {
    let disk = Disk::new();
    let mut opened = open(&disk).expect("an empty disk");
    let mut generations = Vec::new();
    for value in 1..=20 {
        opened.store.store(&state(value)).expect("the disk is sound");
        generations.push(opened.store.generation());
        assert_eq!(disk.names(), [store_file(&disk), "started".to_owned()]);
    }
    // Four records a file; the first file has its first one from the start.
    assert_eq!(generations[..8], [1, 1, 1, 2, 2, 2, 2, 3]);
    drop(opened);
    assert_eq!(value(&open(&disk).expect("whole")), Some(20));
}

#[test]
fn starts_alone_fill_files_too_and_repeat_nothing() {
    let disk = filled(3);
    for _ in 0..20 {
        let opened = open(&disk).expect("whole");
        assert_eq!((value(&opened), opened.how, opened.same_boot), (Some(3), How::Resumed, true));
    }
}

#[test]
fn a_store_writes_once_and_syncs_once() {
    let disk = Disk::new();
    let mut opened = open(&disk).expect("an empty disk");
    let before = disk.calls();
    fill(&mut opened.store, 1..=3);
    assert_eq!(disk.calls() - before, 6);
    let lazy = Disk::new();
    let mut opened = open_as(&lazy, IDENTITY, Policy::Interval).expect("an empty disk");
    let before = lazy.calls();
    fill(&mut opened.store, 1..=3);
    assert_eq!(lazy.calls() - before, 3);
    opened.store.sync().expect("the disk is sound");
    assert_eq!(lazy.calls() - before, 4);
}

#[test]
fn a_state_of_another_or_below_the_last_is_not_stored() {
    for wrong in [state(4), state_of(Identity { epoch: Epoch(8), ..IDENTITY }, 6)] {
        let disk = Disk::new();
        let mut opened = open(&disk).expect("an empty disk");
        fill(&mut opened.store, 5..=5);
        let before = disk.calls();
        assert_eq!(opened.store.store(&wrong), Err(StoreFailed::Unknown));
        assert_eq!(
            opened.store.store(&state(6)),
            Err(StoreFailed::Unknown),
            "after a failure nothing is stored"
        );
        assert_eq!(disk.calls(), before);
    }
}

#[test]
fn a_second_opener_is_refused_until_the_first_has_gone() {
    let disk = Disk::new();
    let first = open(&disk).expect("an empty disk");
    let error = open(&disk).expect_err("it is open");
    assert!(matches!(error, StoreError::Locked) && !error.ends_the_epoch());
    drop(first);
    assert_eq!(open(&disk).expect("it is free").how, How::Resumed);
}

#[test]
fn a_start_tells_a_killed_process_from_a_lost_machine() {
    let disk = filled(2);
    let killed = disk.after(Crash::Killed);
    assert!(open(&killed).expect("whole").same_boot);
    let lost = disk.after(Crash::LostAll);
    let opened = open(&lost).expect("everything was durable");
    assert_eq!((value(&opened), opened.same_boot), (Some(2), false));
    drop(opened);
    // The start has left its own boot, though the component moved nothing.
    assert!(open(&lost).expect("whole").same_boot);
}

#[test]
fn what_a_policy_does_not_cover_is_never_resumed() {
    use Policy::{Always, Interval, Memory};
    for (written, crash, resumes) in [
        (Always, Crash::Killed, true),
        (Always, Crash::LostNothing, true),
        (Interval, Crash::Killed, true),
        (Interval, Crash::LostNothing, false),
        (Memory, Crash::Killed, false),
        (Memory, Crash::LostNothing, false),
    ] {
        let disk = Disk::new();
        let mut opened = open_as(&disk, IDENTITY, written).expect("an empty disk");
        fill(&mut opened.store, 1..=7);
        opened.store.sync().expect("the disk is sound");
        drop(opened);
        // Whatever the file is opened as, it counts how it was written.
        for opened_as in [Always, Interval, Memory] {
            let found = open_as(&disk.after(crash), IDENTITY, opened_as);
            match found {
                Ok(opened) => {
                    assert!(resumes, "{written}, {crash:?}");
                    assert_eq!(value(&opened), Some(7));
                }
                Err(error) => {
                    assert!(!resumes && error.ends_the_epoch(), "{written}, {crash:?}: {error}");
                    assert!(matches!(error, StoreError::Unproven { policy, .. } if policy == written));
                }
            }
        }
    }
}

#[test]
fn another_policy_begins_with_a_file_of_its_own() {
    let disk = Disk::new();
    let mut opened = open_as(&disk, IDENTITY, Policy::Interval).expect("an empty disk");
    fill(&mut opened.store, 1..=1);
    drop(opened);
    let opened = open_as(&disk, IDENTITY, Policy::Always).expect("the same boot");
    assert_eq!(opened.store.generation(), 2);
    drop(opened);
    let disk = disk.after(Crash::LostAll);
    assert_eq!(value(&open(&disk).expect("durable from then on")), Some(1));
    drop(open_as(&disk, IDENTITY, Policy::Interval).expect("durable so far"));
    let error = open(&disk.after(Crash::LostAll)).expect_err("no longer durable");
    assert!(matches!(error, StoreError::Unproven { policy: Policy::Interval, .. }), "{error}");
}

#[test]
fn a_later_epoch_starts_anew_and_ends_the_earlier_one() {
    let later = Identity { epoch: Epoch(8), ..IDENTITY };
    let disk = filled(9);
    let mut opened = open_as(&disk, later, Policy::Always).expect("a later epoch");
    assert_eq!((opened.how, &opened.last), (How::Fresh, &None));
    assert!(store_file(&disk).contains("0000000000000008-"), "the file of the earlier epoch is gone");
    opened.store.store(&state_of(later, 1)).expect("the disk is sound");
    drop(opened);
    let error = open(&disk).expect_err("an epoch that is over");
    assert!(matches!(error, StoreError::EpochOver { asked: Epoch(7), reached: Epoch(8) }), "{error}");
    assert_eq!(value(&open_as(&disk, later, Policy::Always).expect("whole")), Some(1));
}

#[test]
fn an_epoch_is_over_wherever_the_start_of_the_next_one_was_cut() {
    let later = Identity { epoch: Epoch(8), ..IDENTITY };
    for call in 1..40 {
        let disk = filled(9);
        disk.crash_at(call, 30);
        let done = open_as(&disk, later, Policy::Memory).is_ok();
        for crash in [Crash::Killed, Crash::LostAll, Crash::LostNothing, Crash::LostSome(call)] {
            let disk = disk.after(crash);
            let earlier = open(&disk.copied());
            match (done, earlier) {
                (true, earlier) => assert!(matches!(earlier, Err(StoreError::EpochOver { .. }))),
                (false, Ok(opened)) => assert_eq!(value(&opened), Some(9)),
                (false, Err(error)) => assert!(matches!(error, StoreError::EpochOver { .. }), "{error}"),
            }
            // A start that never returned certified nothing, so the epoch may start once more, but for
            // the last calls, when only removals are left to do.
            match open_as(&disk, later, Policy::Memory) {
                Ok(opened) => assert_eq!(opened.how, How::Fresh),
                Err(error) => assert!(matches!(error, StoreError::Unproven { .. }), "call {call}: {error}"),
            }
        }
        if done {
            return;
        }
    }
    panic!("the start never came to its end");
}

#[test]
fn damage_in_an_earlier_epoch_does_not_hinder_a_later_one() {
    let disk = filled(9);
    let name = store_file(&disk);
    disk.plant(&name, b"no store");
    assert!(open(&disk).is_err());
    let later = Identity { epoch: Epoch(8), ..IDENTITY };
    assert_eq!(open_as(&disk, later, Policy::Always).expect("a later epoch").how, How::Fresh);
}

#[test]
fn names_of_others_are_left_alone() {
    let disk = filled(2);
    for name in ["lost+found", "counters-", "counters-7-1", "counters-zz-01", "started.old"] {
        disk.plant(name, b"not ours");
    }
    let names = disk.names();
    assert_eq!(value(&open(&disk).expect("whole")), Some(2));
    assert_eq!(disk.names(), names);
}

#[test]
fn numbers_of_slots_that_no_file_has_are_refused() {
    for slots in [0, 1, MOST_SLOTS + 1, u32::MAX] {
        let error = DiskStore::open_in(Disk::new().directory(), IDENTITY, Policy::Always, slots);
        assert!(matches!(error, Err(StoreError::Slots { .. })));
    }
    // A file keeps its number of slots until the next one is made.
    let disk = filled(1);
    let mut opened = DiskStore::open_in(disk.directory(), IDENTITY, Policy::Always, FEW + 5).expect("whole");
    fill(&mut opened.store, 2..=30);
    drop(opened);
    assert_eq!(value(&open(&disk).expect("whole")), Some(30));
}

#[test]
fn every_error_says_how_to_mend_it() {
    let disk = filled(2);
    let name = store_file(&disk);
    disk.plant(&name, b"cut");
    let error = open(&disk).expect_err("a cut file").to_string();
    assert_eq!(
        error,
        format!(
            "{name} is damaged at byte 0: it is shorter than its header, so its end is lost; mend: leave the \
             replica stopped, and put no copy in its place"
        )
    );
}
