//! What the store of logs does besides surviving: files, epochs, owners, room.

use super::ledger::{FEW, Ledger, Q, ROOM, call, done, filled, open, store_file};
use crate::store::disk::{Crash, Disk};
use crate::store::machine::Scratch;
use crate::support::{IDENTITY, mac};
use troth_trusted::a2m::{A2m, LOGS, LogRefusal, LogStore, Logs, Operation};
use troth_trusted::{CounterValue, Epoch, Identity, StoreFailed};
use troth_trusted_host::store::{DiskLogs, DiskStore, How, MOST_ENTRIES, Policy, StoreError};
use troth_trusted_host::{LogRoom, log_room};

#[test]
fn a_call_is_one_write_and_one_sync_and_a_full_file_is_followed_by_the_next() {
    let disk = Disk::new();
    let opened = open(&disk).expect("an empty disk");
    let mut component = A2m::restart(IDENTITY, mac(), opened.store, opened.logs).expect("its own");
    let mut generations = Vec::new();
    for number in 1..=12 {
        let before = disk.calls();
        let generation = component_generation(&disk);
        component.call(&call(number, 1), |_| ()).expect("the disk is sound");
        let after = component_generation(&disk);
        assert!(after > generation || disk.calls() - before == 2, "call {number}");
        generations.push(after);
    }
    // Three calls to a file, and the sixth and the twelfth fit into no record.
    assert_eq!(generations, [1, 1, 1, 2, 2, 3, 3, 3, 3, 4, 4, 5]);
    assert_eq!(disk.names(), [store_file(&disk), "started".to_owned()]);
}

fn component_generation(disk: &Disk) -> u64 {
    let name = store_file(disk);
    u64::from_str_radix(&name[name.len() - 16..], 16).expect("a generation")
}

#[test]
fn what_changes_nothing_is_not_written() {
    let disk = filled(2);
    let opened = open(&disk).expect("whole");
    let mut component = A2m::restart(IDENTITY, mac(), opened.store, opened.logs).expect("its own");
    let before = disk.calls();
    let lookup = Operation::Lookup { log: Q, slot: CounterValue(1), nonce: [1; 32] };
    component.call(&[lookup, Operation::End { log: Q, nonce: [2; 32] }], |_| ()).expect("answered");
    assert_eq!(disk.calls(), before);
}

#[test]
fn starts_alone_fill_a_file_and_change_nothing() {
    // Nothing was done yet; some calls were; the last one began a file.
    for calls in [0, 2, 6] {
        let disk = filled(calls);
        let generation = component_generation(&disk);
        for _ in 0..3 * FEW {
            let opened = open(&disk).expect("whole");
            let found = (done(&opened.logs), opened.how, opened.store.generation());
            assert_eq!(found, (calls, How::Resumed, generation));
        }
        let opened = open(&disk).expect("whole");
        let mut component = A2m::restart(IDENTITY, mac(), opened.store, opened.logs).expect("its own");
        component.call(&call(calls + 1, 1), |_| ()).expect("the disk is sound");
        drop(component);
        assert_eq!(done(&open(&disk.after(Crash::LostAll)).expect("whole").logs), calls + 1);
    }
}

#[test]
fn a_later_epoch_begins_with_empty_logs_and_ends_the_earlier_one() {
    let later = Identity { epoch: Epoch(8), ..IDENTITY };
    let disk = filled(7);
    let opened = DiskLogs::open_in(disk.directory(), later, ROOM, FEW).expect("a later epoch");
    assert_eq!((opened.how, done(&opened.logs)), (How::Fresh, 0));
    assert_eq!(opened.logs.identity(), later);
    drop(opened);
    assert!(store_file(&disk).contains("0000000000000008-"), "the file of the earlier epoch is gone");
    let error = open(&disk).expect_err("an epoch that is over");
    assert!(matches!(error, StoreError::EpochOver { asked: Epoch(7), reached: Epoch(8) }), "{error}");
}

#[test]
fn an_epoch_is_over_wherever_the_start_of_the_next_one_was_cut() {
    let later = Identity { epoch: Epoch(8), ..IDENTITY };
    for call in 1..60 {
        let disk = filled(7);
        disk.crash_at(call, 30);
        let started = DiskLogs::open_in(disk.directory(), later, ROOM, FEW).is_ok();
        for crash in [Crash::Killed, Crash::LostAll, Crash::LostNothing, Crash::LostSome(call)] {
            let disk = disk.after(crash);
            match open(&disk.copied()) {
                Ok(opened) => assert!(!started && done(&opened.logs) == 7, "call {call}, {crash:?}"),
                Err(error) => assert!(matches!(error, StoreError::EpochOver { .. }), "{error}"),
            }
            let opened = DiskLogs::open_in(disk.directory(), later, ROOM, FEW).expect("the later epoch");
            assert_eq!(done(&opened.logs), 0);
        }
        if started {
            return;
        }
    }
    panic!("the start never came to its end");
}

#[test]
fn the_directory_of_another_or_of_counters_is_refused() {
    let disk = filled(1);
    for other in [Identity { replica: 2, ..IDENTITY }, Identity { group: [4; 16], ..IDENTITY }] {
        let error = DiskLogs::open_in(disk.directory(), other, ROOM, FEW).expect_err("another's");
        assert!(matches!(error, StoreError::OtherReplica), "{error}");
    }
    let counters = DiskStore::open_in(disk.directory(), IDENTITY, Policy::Always, FEW);
    assert!(matches!(counters, Err(StoreError::Missing { .. })));
    let counters = Disk::new();
    drop(DiskStore::open_in(counters.directory(), IDENTITY, Policy::Always, FEW).expect("an empty disk"));
    let error = open(&counters).expect_err("a directory of counters");
    assert!(matches!(error, StoreError::Missing { .. }), "{error}");
    // Another replica's file under the name of ours.
    let (theirs, name) = (Disk::new(), store_file(&disk));
    let other = Identity { replica: 2, ..IDENTITY };
    drop(DiskLogs::open_in(theirs.directory(), other, ROOM, FEW).expect("an empty disk"));
    disk.plant(&name, &theirs.read(&name));
    assert!(open(&disk).expect_err("another's file").ends_the_epoch());
}

#[test]
fn logs_of_another_are_not_stored_and_end_the_store() {
    let disk = filled(1);
    let mut opened = open(&disk).expect("whole");
    let other: Logs<LogRoom> = Logs::new(Identity { replica: 2, ..IDENTITY }, log_room(ROOM));
    assert_eq!(opened.store.store(&other, &call(1, 1)), Err(StoreFailed::Unknown));
    assert_eq!(opened.store.store(&opened.logs, &call(2, 1)), Err(StoreFailed::Unknown), "it goes on");
}

#[test]
fn a_component_whose_disk_failed_attests_nothing_more() {
    let disk = filled(1);
    let opened = open(&disk).expect("whole");
    let mut component = A2m::restart(IDENTITY, mac(), opened.store, opened.logs).expect("its own");
    disk.crash_at(2, 0);
    for number in [2, 2, 3] {
        assert_eq!(component.call(&call(number, 1), |_| ()), Err(LogRefusal::Halted));
    }
}

#[test]
fn logs_get_more_room_at_a_start_and_less_only_where_they_fit() {
    let disk = filled(7);
    let with_room = |room| DiskLogs::open_in(disk.directory(), IDENTITY, room, FEW);
    let more = with_room(ROOM.map(|entries| entries + 5)).expect("more room");
    assert_eq!(more.logs, open(&disk.copied()).expect("whole").logs);
    drop(more);
    let mut less = ROOM;
    less[usize::from(Q.0)] = 1;
    let error = with_room(less).expect_err("less than it holds");
    assert!(matches!(error, StoreError::Room { log } if log == Q.0) && !error.ends_the_epoch(), "{error}");
    assert_eq!(done(&with_room(ROOM).expect("as before").logs), 7);
    for room in [MOST_ENTRIES, usize::MAX] {
        let error = with_room([room; LOGS]).expect_err("too much");
        assert!(matches!(error, StoreError::Entries { .. }) && !error.ends_the_epoch(), "{error}");
    }
}

#[test]
fn logs_on_a_real_disk_are_resumed() {
    let scratch = Scratch::new();
    let mut ledger = Ledger::new();
    let real = || DiskLogs::open(scratch.path(), IDENTITY, ROOM).expect("a sound disk");
    ledger.live(real(), 20);
    let opened = real();
    assert_eq!((opened.how, opened.same_boot, done(&opened.logs)), (How::Resumed, true, 20));
    let second = DiskLogs::open(scratch.path(), IDENTITY, ROOM);
    assert!(matches!(second, Err(StoreError::Locked)));
    ledger.live(opened, 3);
}
