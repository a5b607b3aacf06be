//! A crash between any two calls to the disk, and amid any of them: nothing certified is lost, and
//! nothing is certified twice.

use super::disk::{Crash, Disk};
use super::support::{FEW, Ledger, open};
use crate::support::IDENTITY;
use troth_trusted_host::store::{DiskStore, How, Policy};

/// Lengths at which the write under way is cut: its ends, both copies' ends, and places between.
const CUTS: [usize; 12] = [0, 1, 23, 300, 634, 666, 667, 2047, 2048, 2500, 2714, 2715];
/// Seeds of what is lost.
const SEEDS: std::ops::Range<u64> = 0..6;

fn outcomes() -> impl Iterator<Item = Crash> {
    [Crash::Killed, Crash::LostAll, Crash::LostNothing].into_iter().chain(SEEDS.map(Crash::LostSome))
}

/// A first life of nine moves, which takes several files, cut short by the planned crash if any.
fn first_life(disk: &Disk, ledger: &mut Ledger) {
    if let Ok(opened) = open(disk) {
        ledger.live(opened, 9);
    }
}

/// How many calls a life without a crash makes.
fn calls_of_a_life() -> u64 {
    let disk = Disk::new();
    let mut ledger = Ledger::default();
    first_life(&disk, &mut ledger);
    assert_eq!(ledger.highest(), 9);
    disk.calls()
}

#[test]
fn a_crash_at_any_call_loses_nothing_that_was_certified() {
    let calls = calls_of_a_life();
    let (mut torn, mut resumed) = (0, 0);
    for call in 1..=calls {
        for cut in CUTS {
            let disk = Disk::new();
            let mut ledger = Ledger::default();
            disk.crash_at(call, cut);
            first_life(&disk, &mut ledger);
            assert!(disk.crashed());
            for crash in outcomes() {
                let context = format!("crash at call {call} of {calls}, cut at {cut}, {crash:?}");
                let (disk, mut ledger) = (disk.after(crash), ledger.clone());
                ledger.context = context.clone();
                for moves in [5, 0, 4] {
                    let opened = open(&disk).unwrap_or_else(|error| panic!("{context}: {error}"));
                    torn += u32::from(opened.how == How::Torn);
                    resumed += u32::from(opened.how == How::Resumed);
                    ledger.live(opened, moves);
                }
                assert!(ledger.highest() >= 9, "{context}");
            }
        }
    }
    assert!(
        torn > 100 && resumed > 1000,
        "{torn} torn and {resumed} whole starts are too few to show anything"
    );
}

#[test]
fn a_crash_amid_the_life_after_a_crash_loses_nothing_either() {
    let calls = calls_of_a_life();
    for call in 1..=calls {
        for (cut, crash) in [
            (1000, Crash::Killed),
            (2500, Crash::LostNothing),
            (300, Crash::LostNothing),
            (4096, Crash::LostSome(call)),
            (4096, Crash::LostSome(call + 1000)),
        ] {
            let disk = Disk::new();
            let mut ledger = Ledger::default();
            disk.crash_at(call, cut);
            first_life(&disk, &mut ledger);
            let disk = disk.after(crash);
            for second in 1.. {
                let (disk, mut ledger) = (disk.copied(), ledger.clone());
                disk.crash_at(second, 1000);
                if let Ok(opened) = open(&disk) {
                    // On to the next file, which must not meet what this start has left undone.
                    ledger.live(opened, u128::from(FEW));
                }
                if !disk.crashed() {
                    break;
                }
                let seeds = (0..5).map(|seed| Crash::LostSome((call * 100 + second) * 100 + seed));
                for crash in [Crash::Killed, Crash::LostAll].into_iter().chain(seeds) {
                    let context =
                        format!("crashes at call {call}, cut at {cut}, and {second} of the start, {crash:?}");
                    let (disk, mut ledger) = (disk.after(crash), ledger.clone());
                    ledger.context = context.clone();
                    let opened = open(&disk).unwrap_or_else(|error| panic!("{context}: {error}"));
                    ledger.live(opened, 3);
                    ledger.live(open(&disk).unwrap_or_else(|error| panic!("{context}: {error}")), 0);
                }
            }
        }
    }
}

#[test]
fn every_cut_of_a_write_under_way_resumes_what_was_acknowledged_or_what_was_written() {
    for cut in 0..=4096 {
        let disk = Disk::new();
        let mut ledger = Ledger::default();
        ledger.live(open(&disk).expect("an empty disk"), 1);
        // The next call is the write of the move: the start has written its own record.
        let opened = open(&disk).expect("whole");
        disk.crash_at(1, cut);
        ledger.live(opened, 1);
        for crash in [Crash::Killed, Crash::LostNothing] {
            let (disk, mut ledger) = (disk.after(crash), ledger.clone());
            ledger.context = format!("cut at {cut}, {crash:?}");
            let opened = open(&disk).expect("one interrupted write is no damage");
            assert_eq!(opened.how == How::Torn, (1..2048 + 667).contains(&cut), "cut at {cut}");
            ledger.live(opened, 3);
            let opened = open(&disk).expect("what was torn is gone");
            assert_eq!(opened.how, How::Resumed, "cut at {cut}");
            ledger.live(opened, 3);
        }
    }
}

#[test]
fn a_store_after_a_failure_is_refused_for_good() {
    let disk = Disk::new();
    let mut opened = open(&disk).expect("an empty disk");
    disk.crash_at(2, 0);
    use troth_trusted::Store;
    assert!(opened.store.store(&super::support::state(1)).is_err());
    assert!(opened.store.store(&super::support::state(1)).is_err());
    assert!(opened.store.sync().is_err());
}

#[test]
fn an_interval_store_survives_its_process_and_never_its_machine() {
    let calls = calls_of_a_life();
    let open = |disk: &Disk| DiskStore::open_in(disk.directory(), IDENTITY, Policy::Interval, FEW);
    for call in 1..=calls {
        let disk = Disk::new();
        let mut ledger = Ledger::default();
        disk.crash_at(call, 1000);
        if let Ok(opened) = open(&disk) {
            ledger.live(opened, 9);
        }
        let killed = disk.after(Crash::Killed);
        let mut after_kill = ledger.clone();
        after_kill.live(open(&killed).expect("all bytes are still with the system"), 3);
        for crash in outcomes().filter(|crash| *crash != Crash::Killed) {
            match open(&disk.after(crash)) {
                // Nothing that was certified was there to be lost.
                Ok(opened) => {
                    assert_eq!(ledger.highest(), 0, "call {call}, {crash:?}");
                    assert_eq!(opened.how, How::Fresh);
                }
                Err(error) => assert!(error.ends_the_epoch(), "call {call}, {crash:?}: {error}"),
            }
        }
    }
}
