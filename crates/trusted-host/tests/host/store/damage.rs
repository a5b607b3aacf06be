//! Files that were cut, changed, exchanged or removed: refused, or the very last state.

use super::disk::{Crash, Disk};
use super::support::{fill, filled, open, open_as, state, store_file, value};
use crate::support::IDENTITY;
use troth_trusted::{Epoch, Identity, State, Store};
use troth_trusted_host::store::{How, Policy, StoreError};

const MARKER: &str = "started";
const BLOCK: usize = 4096;

/// A disk amid the change from one file to the next: both are there.
fn between_generations() -> Disk {
    let disk = filled(1);
    let mut opened = open(&disk).expect("whole");
    fill(&mut opened.store, 2..=2);
    // The calls that make file and marker and give the file its name, then the one that names the marker.
    disk.crash_at(11, 0);
    assert!(opened.store.store(&state(3)).is_err());
    drop(opened);
    let disk = disk.after(Crash::Killed);
    assert_eq!(disk.names().iter().filter(|name| name.starts_with("counters-")).count(), 2);
    disk
}

/// A disk on which the values 1 and 2 are acknowledged and the write of 3 was cut.
fn with_a_torn_write(cut: usize) -> Disk {
    let disk = Disk::new();
    let mut store = open(&disk).expect("an empty disk").store;
    fill(&mut store, 1..=2);
    disk.crash_at(1, cut);
    assert!(store.store(&state(3)).is_err());
    drop(store);
    disk.after(Crash::Killed)
}

/// Opens a copy of the disk on which `name` has this content.
fn with(disk: &Disk, name: &str, bytes: &[u8]) -> super::support::Opening {
    let disk = disk.copied();
    disk.plant(name, bytes);
    open(&disk)
}

#[test]
fn every_file_cut_at_every_length_is_refused() {
    for (disk, last) in [(filled(0), 0), (filled(2), 2), (filled(9), 9), (between_generations(), 3)] {
        assert_eq!(value(&open(&disk.copied()).expect("uncut")), Some(last));
        for name in disk.names() {
            let bytes = disk.read(&name);
            // Under a passing name nothing was certified yet: a start removes it.
            if name.ends_with(".new") {
                for length in 0..bytes.len() {
                    let opened = with(&disk, &name, &bytes[..length]).expect("not entered");
                    assert_eq!(value(&opened), Some(last), "{name} cut to {length}");
                }
                continue;
            }
            for length in 0..bytes.len() {
                let error = with(&disk, &name, &bytes[..length]).expect_err("a cut file");
                assert!(error.ends_the_epoch(), "{name} cut to {length}: {error}");
            }
            for more in [1, BLOCK, 10 * BLOCK] {
                let longer = [bytes.clone(), vec![0; more]].concat();
                let error = with(&disk, &name, &longer).expect_err("a longer file");
                assert!(error.ends_the_epoch(), "{name} longer by {more}: {error}");
            }
        }
    }
}

fn without(disk: &Disk, name: &str) -> super::support::Opening {
    let disk = disk.copied();
    disk.take_away(name);
    open(&disk)
}

#[test]
fn a_missing_file_is_refused() {
    for disk in [filled(0), filled(9)] {
        for name in disk.names() {
            let error = without(&disk, &name).expect_err("a missing file");
            assert!(matches!(error, StoreError::Missing { .. }) && error.ends_the_epoch(), "{error}");
        }
    }
}

#[test]
fn of_two_generations_only_the_one_not_yet_entered_may_be_missing() {
    let disk = between_generations();
    let [older, newer, marker, _passing] = disk.names().try_into().expect("four files");
    for name in [older, marker] {
        let error = without(&disk, &name).expect_err("a missing file");
        assert!(matches!(error, StoreError::Missing { .. }), "{name}: {error}");
    }
    // Its first state was never acknowledged: the store returns when the marker names it.
    assert_eq!(value(&without(&disk, &newer).expect("the last acknowledged state")), Some(2));
}

#[test]
fn all_files_removed_look_like_an_epoch_that_never_started() {
    let opened = open(&Disk::new()).expect("nothing there");
    assert_eq!((opened.how, opened.last), (How::Fresh, None));
}

#[test]
fn a_changed_byte_anywhere_is_refused_or_the_last_state_is_resumed() {
    // The last acknowledged value, and the newest that can be read: more only where a write was cut.
    let disks = [
        (filled(2), 2, 2),
        (filled(9), 9, 9),
        (between_generations(), 3, 3),
        (with_a_torn_write(500), 2, 2),
        (with_a_torn_write(2060), 2, 3),
        (with_a_torn_write(3000), 3, 3),
    ];
    for (disk, acknowledged, newest) in disks {
        assert_eq!(value(&open(&disk.copied()).expect("unchanged")), Some(newest));
        let mut refused = 0;
        for name in disk.names() {
            let mut bytes = disk.read(&name);
            for at in 0..bytes.len() {
                let before = bytes[at];
                for changed in [0, before ^ 1, before ^ 0x80, !before] {
                    bytes[at] = changed;
                    match with(&disk, &name, &bytes) {
                        Ok(opened) => {
                            let found = value(&opened).expect("it has started");
                            let expected = acknowledged..=newest;
                            assert!(expected.contains(&found), "{name} at {at}: {before} to {changed}");
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
        // All of header, marker and every record but the newest's bytes that were or become zero.
        assert!(refused > 4000, "only {refused} changes were refused");
    }
}

#[test]
fn an_acknowledged_record_with_a_damaged_place_is_never_taken_for_an_interrupted_write() {
    let disk = filled(2);
    let name = store_file(&disk);
    let whole = disk.read(&name);
    // The newest record is in the third slot: the first one and those of two values came before.
    let record = 3 * BLOCK;
    for length in [1, 8, 64, 512, 664, 1024, 2048] {
        for start in (record..record + BLOCK - length + 1).step_by(64) {
            for with_byte in [0x00, 0xFF, 0x5A] {
                let mut bytes = whole.clone();
                bytes[start..start + length].fill(with_byte);
                if let Ok(opened) = with(&disk, &name, &bytes) {
                    assert_eq!(value(&opened), Some(2), "{length} bytes of {with_byte} at {start}");
                }
            }
        }
    }
}

/// Length of one copy of a record; the second one begins at half the block.
const RECORD: usize = 8 + 8 + 8 + 16 + State::LEN + 1 + 2 + 32;

#[test]
fn bytes_beside_a_record_are_refused_wherever_they_are() {
    let disk = filled(2);
    let name = store_file(&disk);
    let whole = disk.read(&name);
    // The header's block, records that are followed by others, the newest, and a slot never written.
    for block in 0..5 {
        let begins = block * BLOCK;
        let beside: Vec<usize> = match block {
            0 => (127..BLOCK).collect(),
            4 => (0..BLOCK).collect(),
            _ => (RECORD..BLOCK / 2).chain(BLOCK / 2 + RECORD..BLOCK).collect(),
        };
        for at in beside {
            assert_eq!(whole[begins + at], 0, "block {block}, byte {at} is used");
            for byte in [0x01, 0xFF] {
                let mut bytes = whole.clone();
                bytes[begins + at] = byte;
                match with(&disk, &name, &bytes) {
                    Err(StoreError::Damaged { offset, .. }) => assert_eq!(offset, begins as u64),
                    // What an interrupted write left in the next slot may be anything of the record there.
                    Ok(opened) if block == 4 => {
                        assert_eq!((value(&opened), opened.how), (Some(2), How::Torn), "byte {at}");
                    }
                    other => panic!("block {block}, byte {at}: {other:?}"),
                }
            }
        }
    }
}

#[test]
fn bytes_changed_in_one_of_a_records_two_copies_are_refused() {
    let disk = filled(2);
    let name = store_file(&disk);
    let whole = disk.read(&name);
    for (block, newest) in [(1, false), (2, false), (3, true)] {
        for copy in [0, BLOCK / 2] {
            for at in (block * BLOCK + copy..).take(RECORD) {
                let before = whole[at];
                for changed in [0, before ^ 1, before ^ 0x80, !before] {
                    if changed == before {
                        continue;
                    }
                    let mut bytes = whole.clone();
                    bytes[at] = changed;
                    match with(&disk, &name, &bytes) {
                        Err(StoreError::Damaged { .. }) => {}
                        // A newest record with zeros in one copy is what an interrupted write leaves.
                        Ok(opened) if newest && changed == 0 => {
                            assert_eq!((value(&opened), opened.how), (Some(2), How::Torn), "byte {at}");
                        }
                        other => panic!("byte {at} of {before} made {changed}: {other:?}"),
                    }
                }
            }
        }
    }
}

#[test]
fn holes_and_records_out_of_order_are_refused() {
    let disk = filled(3);
    let name = store_file(&disk);
    let whole = disk.read(&name);
    let slot = |index: usize| (index + 1) * BLOCK..(index + 2) * BLOCK;
    let mut hole = whole.clone();
    hole[slot(1)].fill(0);
    let mut swapped = whole.clone();
    swapped.copy_within(slot(1), slot(2).start);
    swapped[slot(1)].copy_from_slice(&whole[slot(2)]);
    let mut repeated = whole.clone();
    repeated.copy_within(slot(1), slot(2).start);
    let mut torn_amid = whole.clone();
    torn_amid[slot(1)][2000 - 1..].fill(0);
    torn_amid[slot(1)][40..].fill(0);
    let mut no_first = whole.clone();
    no_first[slot(0)].fill(0);
    let mut two_torn = whole.clone();
    two_torn[slot(2)][40..].fill(0);
    two_torn[slot(3)][40..].fill(0);
    for (what, bytes) in [
        ("a hole", hole),
        ("two records swapped", swapped),
        ("a record repeated", repeated),
        ("a torn record amid others", torn_amid),
        ("no first record", no_first),
        ("two torn records", two_torn),
    ] {
        let error = with(&disk, &name, &bytes).expect_err(what);
        assert!(matches!(error, StoreError::Damaged { .. }), "{what}: {error}");
    }
}

#[test]
fn bytes_of_an_older_generation_never_look_like_a_record() {
    let older = filled(2);
    let old = older.read(&store_file(&older));
    let disk = filled(9);
    let name = store_file(&disk);
    let whole = disk.read(&name);
    for from in 1..4 {
        for to in 1..=4 {
            let mut bytes = whole.clone();
            bytes[to * BLOCK..(to + 1) * BLOCK].copy_from_slice(&old[from * BLOCK..(from + 1) * BLOCK]);
            let error = with(&disk, &name, &bytes).expect_err("a record of another file");
            assert!(matches!(error, StoreError::Damaged { .. }), "{error}");
        }
    }
}

#[test]
fn one_file_of_an_older_copy_is_refused_where_the_other_tells_better() {
    let (older, newer) = (filled(1), filled(9));
    let (old_name, new_name) = (store_file(&older), store_file(&newer));
    assert_ne!(old_name, new_name, "the newer one is of a later generation");
    let marker_set_back = newer.copied();
    marker_set_back.plant(MARKER, &older.read(MARKER));
    assert!(matches!(open(&marker_set_back), Err(StoreError::Missing { .. })));
    let file_set_back = newer.copied();
    file_set_back.plant(&old_name, &older.read(&old_name));
    assert!(matches!(open(&file_set_back), Err(StoreError::Contradiction { .. })));
    file_set_back.take_away(&new_name);
    assert!(matches!(open(&file_set_back), Err(StoreError::Missing { .. })));
    let renamed = newer.copied();
    renamed.plant(&new_name, &older.read(&old_name));
    assert!(matches!(open(&renamed), Err(StoreError::Contradiction { .. })));
}

#[test]
fn two_generations_that_do_not_follow_from_each_other_are_refused() {
    let disk = between_generations();
    let names: Vec<String> = disk.names().into_iter().filter(|name| name.starts_with("counters-")).collect();
    let older = disk.read(&names[0]);
    let mut shorter = older.clone();
    shorter[4 * BLOCK..5 * BLOCK].fill(0);
    let error = with(&disk, &names[0], &shorter).expect_err("a last record missing before the next file");
    assert!(matches!(error, StoreError::Contradiction { .. }), "{error}");
    let three = disk.copied();
    three.plant(&names[1].replace("0002", "0003"), &disk.read(&names[1]));
    assert!(matches!(open(&three), Err(StoreError::Contradiction { .. })));
}

#[test]
fn a_marker_that_calls_a_used_epoch_unfinished_is_refused() {
    let unfinished = Disk::new();
    unfinished.crash_at(6, 0);
    assert!(open(&unfinished).is_err());
    let marker = unfinished.after(Crash::Killed).read(MARKER);
    let used = filled(1);
    used.plant(MARKER, &marker);
    let error = open(&used).expect_err("a used epoch");
    assert!(error.ends_the_epoch(), "{error}");
    let used = filled(9);
    used.plant(MARKER, &marker);
    assert!(open(&used).expect_err("a used epoch").ends_the_epoch());
}

#[test]
fn a_directory_of_another_replica_or_group_is_refused() {
    let disk = filled(1);
    for other in [Identity { replica: 2, ..IDENTITY }, Identity { group: [4; 16], ..IDENTITY }] {
        for epoch in [IDENTITY.epoch, Epoch(99)] {
            let error = open_as(&disk, Identity { epoch, ..other }, Policy::Always).expect_err("another's");
            assert!(matches!(error, StoreError::OtherReplica), "{error}");
        }
    }
    // The store file of another replica under the right name.
    let other = Disk::new();
    let theirs = Identity { replica: 2, ..IDENTITY };
    drop(open_as(&other, theirs, Policy::Always).expect("an empty disk"));
    let name = store_file(&disk);
    let error = with(&disk, &name, &other.read(&name)).expect_err("another's file");
    assert!(error.ends_the_epoch(), "{error}");
}
