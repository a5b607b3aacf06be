//! Blobs beside moves: kept until a move without one, however often the store is opened, and refused where
//! they could not be kept so.

use super::disk::{Crash, Disk, TestDirectory};
use super::support::{FEW, fill, open, open_as, state, store_file, value};
use crate::support::IDENTITY;
use troth_trusted::{Kept, Store, StoreFailed};
use troth_trusted_host::store::{DiskStore, MOST_BLOB, Opened, Policy, StoreError};

/// Slots enough for some blobs and some starts.
const SLOTS: u32 = 12;

fn open_wide(disk: &Disk) -> Opened<TestDirectory> {
    DiskStore::open_in(disk.directory(), IDENTITY, Policy::Always, SLOTS).expect("a sound disk")
}

fn keep(store: &mut impl Store, value: u128, blob: &[u8]) {
    assert_eq!(store.store_beside(&state(value), blob), Ok(Kept::Both), "value {value}");
}

fn refuse(store: &mut impl Store, value: u128, blob: &[u8]) {
    assert_eq!(store.store_beside(&state(value), blob), Ok(Kept::Neither), "value {value}");
}

#[test]
fn blobs_are_given_back_until_a_move_without_one() {
    let disk = Disk::new();
    let mut store = open_wide(&disk).store;
    let longest = vec![7; MOST_BLOB];
    keep(&mut store, 1, b"one");
    keep(&mut store, 2, b"");
    keep(&mut store, 3, &longest);
    assert_eq!(store.blobs(), [b"one".to_vec(), vec![], longest.clone()]);
    assert_eq!([0, 1, 2, 3].map(|at| store.blob(at)), [Some(&b"one"[..]), Some(b""), Some(&longest), None]);
    drop(store);
    let mut opened = open_wide(&disk);
    assert_eq!(value(&opened), Some(3));
    assert_eq!(opened.store.blobs(), [b"one".to_vec(), vec![], longest.clone()]);
    keep(&mut opened.store, 4, b"four");
    fill(&mut opened.store, 5..=5);
    assert_eq!(opened.store.blobs(), &[] as &[Vec<u8>]);
    keep(&mut opened.store, 6, b"six");
    drop(opened);
    assert_eq!(open_wide(&disk).store.blobs(), [b"six"]);
}

#[test]
fn a_move_with_a_blob_is_one_write_and_one_sync() {
    let disk = Disk::new();
    let mut store = open_wide(&disk).store;
    let before = disk.calls();
    keep(&mut store, 1, b"one");
    assert_eq!(disk.calls() - before, 2);
    let disk = disk.after(Crash::LostAll);
    let opened = open_wide(&disk);
    assert_eq!((value(&opened), opened.store.blobs()), (Some(1), &[b"one".to_vec()][..]));
}

#[test]
fn a_blob_that_cannot_be_kept_changes_nothing() {
    let disk = Disk::new();
    let mut store = open_wide(&disk).store;
    keep(&mut store, 1, b"one");
    let before = disk.calls();
    refuse(&mut store, 2, &[0; MOST_BLOB + 1]);
    refuse(&mut store, 2, &vec![0; 1 << 20]);
    assert_eq!((disk.calls(), store.blobs()), (before, &[b"one".to_vec()][..]));
    fill(&mut store, 2..=2);
    for policy in [Policy::Interval, Policy::Memory] {
        let disk = Disk::new();
        let mut store = open_as(&disk, IDENTITY, policy).expect("an empty disk").store;
        let before = disk.calls();
        refuse(&mut store, 1, b"one");
        assert_eq!((disk.calls(), store.blobs()), (before, &[] as &[Vec<u8>]));
        fill(&mut store, 1..=9);
    }
}

#[test]
fn the_last_slots_of_a_file_are_for_starts_and_a_move_without_a_blob_opens_the_next() {
    let disk = Disk::new();
    let mut store = open_wide(&disk).store;
    // A quarter of the slots is left; one has the first record.
    for value in 1..=8 {
        keep(&mut store, value, &[value as u8]);
    }
    refuse(&mut store, 9, b"nine");
    assert_eq!(store.blobs().len(), 8);
    fill(&mut store, 9..=11);
    assert_eq!((store.generation(), store.blobs().len()), (1, 0));
    refuse(&mut store, 12, b"twelve");
    fill(&mut store, 12..=12);
    assert_eq!(store.generation(), 2);
    keep(&mut store, 13, b"thirteen");
}

#[test]
fn starts_do_not_hide_blobs_also_where_the_file_is_full() {
    let disk = Disk::new();
    let mut opened = open_wide(&disk);
    fill(&mut opened.store, 1..=1);
    let blobs: Vec<Vec<u8>> = (2..=6).map(|value| vec![value; 700]).collect();
    for (value, blob) in (2..).zip(&blobs) {
        keep(&mut opened.store, value, blob);
    }
    drop(opened);
    let file = store_file(&disk);
    for start in 0..20 {
        // Now the process ends, now the machine.
        let crash = if start % 3 == 0 { Crash::LostAll } else { Crash::Killed };
        let next = disk.after(crash);
        let opened = open_wide(&disk);
        assert_eq!((value(&opened), opened.store.blobs()), (Some(6), &blobs[..]), "start {start}");
        drop(opened);
        let opened = open_wide(&next);
        assert_eq!((value(&opened), opened.store.blobs()), (Some(6), &blobs[..]), "start {start}");
        assert_eq!(store_file(&disk), file);
    }
    let mut store = open_wide(&disk).store;
    refuse(&mut store, 7, b"seven");
    assert_eq!(store.blobs(), blobs);
    fill(&mut store, 7..=7);
    assert_eq!((store.generation(), store.blobs().len()), (2, 0));
    drop(store);
    let opened = open_wide(&disk);
    assert_eq!((value(&opened), opened.store.blobs().len()), (Some(7), 0));
}

#[test]
fn a_full_disk_keeps_the_blobs_that_a_move_without_one_would_end() {
    let disk = Disk::new();
    let mut store = open_wide(&disk).store;
    for value in 1..=8 {
        keep(&mut store, value, &[value as u8]);
    }
    drop(store);
    for _ in 0..5 {
        drop(open_wide(&disk));
    }
    let mut store = open_wide(&disk).store;
    disk.lack_space_at(2, 0);
    assert_eq!(store.store(&state(9)), Err(StoreFailed::NoSpace));
    assert_eq!(store.blobs().len(), 8);
    drop(store);
    let mut store = open_wide(&disk).store;
    assert_eq!(store.blobs().len(), 8);
    fill(&mut store, 9..=9);
    assert_eq!(store.blobs().len(), 0);
}

#[test]
fn another_policy_waits_until_no_blob_is_pending() {
    let disk = Disk::new();
    let mut store = open_wide(&disk).store;
    keep(&mut store, 1, b"one");
    drop(store);
    let lazily = |disk: &Disk| {
        DiskStore::open_in(disk.directory(), IDENTITY, Policy::Interval, SLOTS).expect("a sound disk")
    };
    let mut opened = lazily(&disk);
    assert_eq!((opened.store.generation(), opened.store.blobs()), (1, &[b"one".to_vec()][..]));
    // Until then everything is as durable as before.
    let after = disk.after(Crash::LostAll);
    assert_eq!(lazily(&after).store.blobs(), [b"one"]);
    fill(&mut opened.store, 2..=2);
    drop(opened);
    let opened = lazily(&disk.after(Crash::LostAll));
    assert_eq!((value(&opened), opened.store.generation()), (Some(2), 2));
    drop(opened);
    let mut opened = lazily(&disk);
    assert_eq!((opened.store.generation(), opened.store.blobs().len()), (2, 0));
    refuse(&mut opened.store, 3, b"three");
}

#[test]
fn a_later_epoch_has_no_blobs_of_the_one_before() {
    let disk = Disk::new();
    keep(&mut open_wide(&disk).store, 1, b"one");
    let later = troth_trusted::Identity { epoch: troth_trusted::Epoch(8), ..IDENTITY };
    let opened = open_as(&disk, later, Policy::Always).expect("a later epoch");
    assert_eq!(opened.store.blobs().len(), 0);
}

#[test]
fn a_store_that_failed_keeps_no_blob_either() {
    let disk = Disk::new();
    let mut store = open(&disk).expect("an empty disk").store;
    disk.crash_at(2, 0);
    assert_eq!(store.store_beside(&state(1), b"one"), Err(StoreFailed::Unknown));
    assert_eq!(store.store_beside(&state(1), b"one"), Err(StoreFailed::Unknown));
    assert_eq!(store.store(&state(1)), Err(StoreFailed::Unknown));
    assert_eq!(store.blobs().len(), 0);
    // A state that does not follow is no better with a blob.
    let disk = Disk::new();
    let mut store =
        DiskStore::open_in(disk.directory(), IDENTITY, Policy::Always, FEW + 4).expect("a disk").store;
    keep(&mut store, 5, b"five");
    assert_eq!(store.store_beside(&state(4), b"four"), Err(StoreFailed::Unknown));
}

#[test]
fn files_of_the_fewest_slots_keep_a_blob_in_their_last_one() {
    for slots in [2, 3] {
        let disk = Disk::new();
        let open = || {
            DiskStore::open_in(disk.directory(), IDENTITY, Policy::Always, slots).expect("a sound disk").store
        };
        let mut value = 0;
        for _ in 0..5 {
            let mut store = open();
            // Starts fill such files, so a move without a blob comes first.
            for _ in 0..2 {
                value += 1;
                fill(&mut store, value..=value);
            }
            value += 1;
            while store.store_beside(&state(value), b"blob") == Ok(Kept::Neither) {
                fill(&mut store, value..=value);
                value += 1;
            }
            drop(store);
            for _ in 0..3 {
                assert_eq!(open().blobs(), [b"blob"], "{slots} slots");
            }
            value += 1;
            fill(&mut open(), value..=value);
            assert_eq!(open().blobs().len(), 0);
        }
    }
}

/// A new file that a start began says that no blobs were pending.
#[test]
fn a_file_with_pending_blobs_is_not_followed_by_one_that_a_start_began() {
    let pending = Disk::new();
    let mut store = open(&pending).expect("an empty disk").store;
    fill(&mut store, 1..=1);
    keep(&mut store, 2, b"two");
    drop(store);
    assert_eq!(open(&pending).expect("whole").store.blobs(), [b"two"]);
    let older = pending.read(&store_file(&pending));
    let mut seen = 0;
    for call in 1..30 {
        let disk = super::support::filled(3);
        disk.crash_at(call, 0);
        drop(open(&disk));
        let disk = disk.after(Crash::Killed);
        let files: Vec<String> =
            disk.names().into_iter().filter(|name| name.starts_with("counters-0")).collect();
        if files.len() == 2 {
            seen += 1;
            assert_eq!(value(&open(&disk.copied()).expect("whole")), Some(3));
            disk.plant(&files[0], &older);
            let error = open(&disk).expect_err("the blobs would be lost");
            assert!(matches!(error, StoreError::Contradiction { .. }), "{error}");
        }
    }
    assert!(seen > 2, "{seen} crashes left two files");
}
