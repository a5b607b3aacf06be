//! A disk without space: a move is refused and nothing has changed, or the component ends as after any
//! other failure.

use super::disk::{Crash, Disk};
use super::support::{Ledger, fill, filled, open, state, value};
use troth_trusted::{Store, StoreFailed};
use troth_trusted_host::store::StoreError;

/// Calls of a store that begins the next file.
const CALLS_OF_A_TURN: u64 = 14;
/// The first of them that changes what the next start finds: it names the new file.
const ENTERED: u64 = 9;
/// Lengths at which a write that finds no space ends.
const CUTS: [usize; 4] = [0, 1, 4096, 5000];

/// A store whose next move needs a new file.
fn at_its_end() -> (Disk, impl Store) {
    let disk = filled(1);
    let mut opened = open(&disk).expect("whole");
    fill(&mut opened.store, 2..=2);
    (disk, opened.store)
}

#[test]
fn without_space_for_the_next_file_a_move_is_refused_and_changes_nothing() {
    let (disk, mut store) = at_its_end();
    let before = disk.calls();
    fill(&mut store, 3..=3);
    assert_eq!(disk.calls() - before, CALLS_OF_A_TURN);
    for call in 1..ENTERED {
        for cut in CUTS {
            let (disk, mut store) = at_its_end();
            let names = disk.names();
            // As often as it is asked, with whatever.
            for value in [3, 4, 3] {
                disk.lack_space_at(call, cut);
                assert_eq!(store.store(&state(value)), Err(StoreFailed::NoSpace), "call {call}");
                assert_eq!(disk.names(), names, "call {call}");
            }
            for crash in [Crash::Killed, Crash::LostAll, Crash::LostNothing, Crash::LostSome(call)] {
                assert_eq!(
                    value(&open(&disk.after(crash)).expect("whole")),
                    Some(2),
                    "call {call}, {crash:?}"
                );
            }
            // Space returns.
            fill(&mut store, 3..=9);
            drop(store);
            assert_eq!(value(&open(&disk).expect("whole")), Some(9), "call {call}");
        }
    }
}

#[test]
fn a_store_that_lacks_space_anywhere_else_halts_and_starts_again() {
    for call in ENTERED..=CALLS_OF_A_TURN {
        let (disk, mut store) = at_its_end();
        disk.lack_space_at(call, 0);
        assert_eq!(store.store(&state(3)), Err(StoreFailed::Unknown), "call {call}");
        assert_eq!(store.store(&state(3)), Err(StoreFailed::Unknown), "call {call}");
        drop(store);
        let found = value(&open(&disk).expect("whole"));
        assert!(found == Some(3) || call == ENTERED && found == Some(2), "call {call}: {found:?}");
    }
    // A record in its place, and its sync: what they left is unknown.
    for call in 1..=2 {
        let disk = filled(1);
        let mut store = open(&disk).expect("whole").store;
        disk.lack_space_at(call, 700);
        assert_eq!(store.store(&state(2)), Err(StoreFailed::Unknown), "call {call}");
        assert_eq!(store.store(&state(3)), Err(StoreFailed::Unknown), "call {call}");
    }
}

#[test]
fn a_start_that_needs_a_file_and_finds_no_space_goes_on_when_there_is_some() {
    let disk = filled(3);
    // The calls before are a sync of the directory, twice, and one of the file.
    disk.lack_space_at(5, 100);
    let error = open(&disk).expect_err("its file is full");
    assert!(matches!(error, StoreError::NoSpace { .. }) && !error.ends_the_epoch(), "{error}");
    assert!(error.to_string().contains("mend: give its disk space"), "{error}");
    assert_eq!(value(&open(&disk).expect("whole")), Some(3));
}

/// The same with a component on the store, which is asked for another message after each refusal, and a
/// crash at any call after that: no value is ever certified twice.
#[test]
fn what_found_no_space_never_comes_back() {
    let mut refused = 0;
    for lack in 1..=60 {
        for cut in [0, 4096] {
            for crash_after in 0..=CALLS_OF_A_TURN + 4 {
                let disk = Disk::new();
                let mut ledger = Ledger::default();
                disk.lack_space_at(lack, cut);
                disk.crash_at(lack + crash_after + 1, 1000);
                if let Ok(opened) = open(&disk) {
                    ledger.live(opened, 9);
                }
                refused += ledger.refused;
                for crash in [Crash::Killed, Crash::LostAll, Crash::LostNothing, Crash::LostSome(lack)] {
                    let (disk, mut ledger) = (disk.after(crash), ledger.clone());
                    ledger.context = format!("no space at {lack}, crash {crash_after} later, {crash:?}");
                    for moves in [5, 4] {
                        let opened = open(&disk).unwrap_or_else(|why| panic!("{}: {why}", ledger.context));
                        ledger.live(opened, moves);
                    }
                    assert!(ledger.highest() >= 9, "{}", ledger.context);
                }
            }
        }
    }
    assert!(refused > 100, "{refused} refusals are too few to show anything");
}
