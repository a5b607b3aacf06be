//! A crash between any two calls to the disk, and amid any of them: no change that was answered is lost, none
//! is done in part, and no slot is filled twice.

use super::ledger::{FEW, Ledger, open};
use crate::store::disk::{Crash, Disk};
use troth_trusted_host::store::How;

/// Lengths at which the write under way is cut: its ends, both copies' ends, and places between.
const CUTS: [usize; 8] = [0, 1, 83, 300, 2047, 2048, 2500, 4097];
const SEEDS: std::ops::Range<u64> = 0..4;
/// Calls of a first life: some files, among them one for a call that fits into no record.
const CALLS: u128 = 8;

fn outcomes() -> impl Iterator<Item = Crash> {
    [Crash::Killed, Crash::LostAll, Crash::LostNothing].into_iter().chain(SEEDS.map(Crash::LostSome))
}

fn first_life(disk: &Disk, ledger: &mut Ledger) {
    if let Ok(opened) = open(disk) {
        ledger.live(opened, CALLS);
    }
}

/// How many calls to the disk a life without a crash makes.
fn calls_of_a_life() -> u64 {
    let disk = Disk::new();
    let mut ledger = Ledger::new();
    first_life(&disk, &mut ledger);
    assert_eq!(ledger.answered(), CALLS);
    disk.calls()
}

#[test]
fn a_crash_at_any_call_loses_no_change_that_was_answered() {
    covers!("A2M-S4");
    let calls = calls_of_a_life();
    let (mut torn, mut resumed) = (0, 0);
    for call in 1..=calls {
        for cut in CUTS {
            let disk = Disk::new();
            let mut ledger = Ledger::new();
            disk.crash_at(call, cut);
            first_life(&disk, &mut ledger);
            assert!(disk.crashed());
            for crash in outcomes() {
                let context = format!("crash at call {call} of {calls}, cut at {cut}, {crash:?}");
                let (disk, mut ledger) = (disk.after(crash), ledger.clone());
                ledger.context = context.clone();
                for more in [5, 0, 4] {
                    let opened = open(&disk).unwrap_or_else(|error| panic!("{context}: {error}"));
                    torn += u32::from(opened.how == How::Torn);
                    resumed += u32::from(opened.how == How::Resumed);
                    ledger.live(opened, more);
                }
                assert!(ledger.answered() >= 9, "{context}");
            }
        }
    }
    assert!(
        torn > 50 && resumed > 1000,
        "{torn} torn and {resumed} whole starts are too few to show anything"
    );
}

#[test]
fn a_crash_amid_the_life_after_a_crash_loses_nothing_either() {
    let calls = calls_of_a_life();
    for call in 1..=calls {
        for (cut, crash) in [(1000, Crash::Killed), (300, Crash::LostNothing), (4096, Crash::LostSome(call))]
        {
            let disk = Disk::new();
            let mut ledger = Ledger::new();
            disk.crash_at(call, cut);
            first_life(&disk, &mut ledger);
            let disk = disk.after(crash);
            for second in 1.. {
                let (disk, mut ledger) = (disk.copied(), ledger.clone());
                disk.crash_at(second, 1000);
                if let Ok(opened) = open(&disk) {
                    ledger.live(opened, u128::from(FEW));
                }
                if !disk.crashed() {
                    break;
                }
                let seeds = (0..2).map(|seed| Crash::LostSome((call * 100 + second) * 100 + seed));
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

/// Length of one copy of the record of the second call: an append and an advance.
const RECORD: usize = 40 + 40 + 3 + 51 + 83 + 32;

#[test]
fn every_cut_of_a_write_under_way_resumes_what_was_answered_or_what_was_written() {
    covers!("A2M-S4");
    for cut in 0..=4096 {
        let disk = Disk::new();
        let mut ledger = Ledger::new();
        ledger.live(open(&disk).expect("an empty disk"), 1);
        // The record of the start takes a write and a sync of its own.
        let opened = open(&disk).expect("whole");
        disk.crash_at(1, cut);
        ledger.live(opened, 1);
        assert!(disk.crashed());
        for crash in [Crash::Killed, Crash::LostNothing] {
            let (disk, mut ledger) = (disk.after(crash), ledger.clone());
            ledger.context = format!("cut at {cut}, {crash:?}");
            let opened = open(&disk).expect("one interrupted write is no damage");
            assert_eq!(opened.how == How::Torn, (1..2048 + RECORD).contains(&cut), "cut at {cut}");
            ledger.live(opened, 0);
            assert_eq!(ledger.answered(), if cut < RECORD { 1 } else { 2 }, "cut at {cut}");
            let opened = open(&disk).expect("what was torn is gone");
            assert_eq!(opened.how, How::Resumed, "cut at {cut}");
            ledger.live(opened, 3);
        }
    }
}

/// A disk without space refuses the call and is as it was, or ends the component as any other failure does.
#[test]
fn what_found_no_space_never_comes_back() {
    let mut refused = 0;
    for lack in 1..=calls_of_a_life() {
        for cut in [0, 4096] {
            for crash_after in 0..=16 {
                let disk = Disk::new();
                let mut ledger = Ledger::new();
                disk.lack_space_at(lack, cut);
                disk.crash_at(lack + crash_after + 1, 1000);
                first_life(&disk, &mut ledger);
                refused += ledger.refused;
                for crash in [Crash::Killed, Crash::LostAll, Crash::LostNothing, Crash::LostSome(lack)] {
                    let (disk, mut ledger) = (disk.after(crash), ledger.clone());
                    ledger.context = format!("no space at {lack}, crash {crash_after} later, {crash:?}");
                    for more in [5, 4] {
                        let opened = open(&disk).unwrap_or_else(|why| panic!("{}: {why}", ledger.context));
                        ledger.live(opened, more);
                    }
                }
            }
        }
    }
    assert!(refused > 100, "{refused} refusals are too few to show anything");
}
