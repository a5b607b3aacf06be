//! Files of logs that were cut, changed, exchanged or removed: refused, or the very last logs.

use super::ledger::{Ledger, call, done, filled, open, store_file};
use crate::store::disk::{Crash, Disk, TestDirectory};
use crate::support::{IDENTITY, mac};
use troth_trusted::a2m::A2m;
use troth_trusted_host::store::{How, OpenedLogs, StoreError};

const BLOCK: usize = 4096;

type Opening = Result<OpenedLogs<TestDirectory>, StoreError>;

/// Opens a copy of the disk on which `name` has this content.
fn with(disk: &Disk, name: &str, bytes: &[u8]) -> Opening {
    let disk = disk.copied();
    disk.plant(name, bytes);
    open(&disk)
}

/// A disk on which two calls were answered and the next one failed at this call to the disk, if it is a write
/// after so many bytes.
fn interrupted(answered: u128, at: u64, cut: usize) -> Disk {
    let disk = filled(answered);
    let opened = open(&disk).expect("whole");
    let mut component = A2m::restart(IDENTITY, mac(), opened.store, opened.logs).expect("its own");
    disk.crash_at(at, cut);
    assert!(component.call(&call(answered + 1, 9), |_| ()).is_err());
    drop(component);
    disk.after(Crash::Killed)
}

/// A disk amid the change from one file to the next: both are there, and the marker names the older.
fn between_generations() -> Disk {
    // The file is full: a first record, two calls and a start. Making the next takes ten calls to the disk and
    // one for its base, before the marker's name.
    let disk = interrupted(2, 12, 0);
    let files = disk.names().iter().filter(|name| name.starts_with("logs-")).count();
    assert_eq!(files, 2, "{:?}", disk.names());
    disk
}

#[test]
fn every_file_cut_at_every_length_is_refused() {
    for (disk, calls) in [(filled(0), 0), (filled(2), 2), (filled(7), 7), (between_generations(), 3)] {
        assert_eq!(done(&open(&disk.copied()).expect("uncut").logs), calls);
        for name in disk.names() {
            let bytes = disk.read(&name);
            let passing = name.ends_with(".new");
            for length in 0..bytes.len() {
                match with(&disk, &name, &bytes[..length]) {
                    Ok(opened) => assert!(passing && done(&opened.logs) == calls, "{name} cut to {length}"),
                    Err(error) => assert!(error.ends_the_epoch(), "{name} cut to {length}: {error}"),
                }
            }
            for more in [1, BLOCK, 10 * BLOCK] {
                let longer = [bytes.clone(), vec![0; more]].concat();
                assert!(passing || with(&disk, &name, &longer).is_err(), "{name} longer by {more}");
            }
        }
    }
}

#[test]
fn a_missing_file_is_refused() {
    for disk in [filled(0), filled(2), filled(7)] {
        for name in disk.names() {
            let disk = disk.copied();
            disk.take_away(&name);
            let error = open(&disk).expect_err("a missing file");
            assert!(matches!(error, StoreError::Missing { .. }) && error.ends_the_epoch(), "{error}");
        }
    }
}

#[test]
fn a_changed_byte_anywhere_is_refused_or_the_last_logs_are_resumed() {
    covers!("A2M-S4");
    // How many calls were answered, and how many can be read: more only where a write was cut.
    let disks = [
        (filled(2), 2, 2),
        (filled(7), 7, 7),
        (between_generations(), 3, 3),
        (interrupted(1, 1, 100), 1, 1),
        (interrupted(1, 1, 2060), 1, 2),
    ];
    for (disk, answered, newest) in disks {
        let last = open(&disk.copied()).expect("unchanged").logs;
        assert_eq!(done(&last), newest);
        let mut refused = 0;
        for name in disk.names() {
            let mut bytes = disk.read(&name);
            for at in 0..bytes.len() {
                let before = bytes[at];
                for changed in [0, before ^ 1, !before] {
                    bytes[at] = changed;
                    match with(&disk, &name, &bytes) {
                        Ok(opened) => {
                            let found = done(&opened.logs);
                            assert!((answered..=newest).contains(&found), "{name} at {at}: {changed}");
                            assert!(found < newest || opened.logs == last, "{name} at {at}: {changed}");
                        }
                        Err(StoreError::OtherReplica | StoreError::EpochOver { .. }) => {
                            panic!("no such luck")
                        }
                        Err(_) => refused += 1,
                    }
                }
                bytes[at] = before;
            }
        }
        assert!(refused > 4000, "only {refused} changes were refused");
    }
}

#[test]
fn records_missing_repeated_or_out_of_order_are_refused() {
    covers!("A2M-S4");
    let disk = Disk::new();
    let mut ledger = Ledger::new();
    ledger.live(open(&disk).expect("an empty disk"), 3);
    let (name, whole) = (store_file(&disk), disk.read(&store_file(&disk)));
    assert_eq!(whole.len(), 6 * BLOCK, "header, base and four slots");
    let slot = |index: usize| (index + 2) * BLOCK..(index + 3) * BLOCK;
    let mut missing = whole.clone();
    missing[slot(2)].fill(0);
    let mut swapped = whole.clone();
    swapped.copy_within(slot(2), slot(1).start);
    swapped[slot(2)].copy_from_slice(&whole[slot(1)]);
    let mut repeated = whole.clone();
    repeated.copy_within(slot(1), slot(2).start);
    let mut no_first = whole.clone();
    no_first[slot(0)].fill(0);
    for (what, bytes) in [
        ("a call missing in the middle", missing),
        ("two calls swapped", swapped),
        ("a call repeated", repeated),
        ("no first record", no_first),
    ] {
        let error = with(&disk, &name, &bytes).expect_err(what);
        assert!(matches!(error, StoreError::Damaged { .. }), "{what}: {error}");
    }
}

#[test]
fn the_base_of_another_file_is_refused() {
    covers!("A2M-S4");
    let (older, newer) = (filled(3), filled(4));
    let (old, name) = (older.read(&store_file(&older)), store_file(&newer));
    let whole = newer.read(&name);
    assert_ne!(old[BLOCK..2 * BLOCK], whole[BLOCK..2 * BLOCK], "the newer one is of a later generation");
    let mut exchanged = whole.clone();
    exchanged[BLOCK..2 * BLOCK].copy_from_slice(&old[BLOCK..2 * BLOCK]);
    let error = with(&newer, &name, &exchanged).expect_err("another's base");
    assert!(matches!(error, StoreError::Damaged { offset: 4096, .. }), "{error}");
    // A record of it in its place.
    for from in 2..6 {
        for to in 2..6 {
            let mut bytes = whole.clone();
            bytes[to * BLOCK..(to + 1) * BLOCK].copy_from_slice(&old[from * BLOCK..(from + 1) * BLOCK]);
            assert!(with(&newer, &name, &bytes).is_err(), "record {from} of another file at {to}");
        }
    }
}

#[test]
fn bytes_beside_the_base_are_refused() {
    covers!("A2M-S4");
    let disk = filled(2);
    let (name, whole) = (store_file(&disk), disk.read(&store_file(&disk)));
    let length = u64::from_be_bytes(whole[73..81].try_into().expect("its length")) as usize;
    for at in BLOCK + length..2 * BLOCK {
        let mut bytes = whole.clone();
        assert_eq!(bytes[at], 0, "byte {at} is used");
        bytes[at] = 1;
        let error = with(&disk, &name, &bytes).expect_err("a byte beside the base");
        assert!(matches!(error, StoreError::Damaged { offset: 4096, .. }), "{error}");
    }
}

#[test]
fn a_damaged_place_in_an_answered_record_is_never_taken_for_an_interrupted_write() {
    let disk = filled(2);
    let (name, whole) = (store_file(&disk), disk.read(&store_file(&disk)));
    let record = 4 * BLOCK;
    for length in [1, 8, 64, 249, 1024, 2048] {
        for start in (record..record + BLOCK - length + 1).step_by(64) {
            for byte in [0x00, 0xFF, 0x5A] {
                let mut bytes = whole.clone();
                bytes[start..start + length].fill(byte);
                if let Ok(opened) = with(&disk, &name, &bytes) {
                    assert_eq!(done(&opened.logs), 2, "{length} bytes of {byte} at {start}");
                }
            }
        }
    }
}

#[test]
fn older_files_beside_newer_ones_are_refused() {
    let (older, newer) = (filled(1), filled(7));
    let (old_name, new_name) = (store_file(&older), store_file(&newer));
    let marker_set_back = newer.copied();
    marker_set_back.plant("started", &older.read("started"));
    assert!(matches!(open(&marker_set_back), Err(StoreError::Missing { .. })));
    let file_set_back = newer.copied();
    file_set_back.plant(&old_name, &older.read(&old_name));
    assert!(matches!(open(&file_set_back), Err(StoreError::Contradiction { .. })));
    let renamed = newer.copied();
    renamed.plant(&new_name, &older.read(&old_name));
    assert!(matches!(open(&renamed), Err(StoreError::Contradiction { .. })));
    let between = between_generations();
    let names: Vec<String> = between.names().into_iter().filter(|name| name.starts_with("logs-")).collect();
    let mut shorter = between.read(&names[0]);
    shorter[5 * BLOCK..].fill(0);
    let error = with(&between, &names[0], &shorter).expect_err("a last record missing before the next file");
    assert!(matches!(error, StoreError::Contradiction { .. }), "{error}");
    assert_eq!(open(&between).expect("whole").how, How::Resumed);
}
