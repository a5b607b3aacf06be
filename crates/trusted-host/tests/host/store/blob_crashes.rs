//! A crash between any two calls to the disk, and amid any of them, with blobs beside the moves: after each the
//! blobs are exactly those of the moves that are there, and nothing acknowledged is lost.

use super::disk::{Crash, Disk, Random, TestDirectory};
use super::support::{open, state, value};
use crate::support::IDENTITY;
use std::collections::BTreeMap;
use troth_trusted::{Kept, Store};
use troth_trusted_host::store::{DiskStore, How, MOST_BLOB, Opened, Policy, StoreError};

/// Slots for a few blobs, and few enough that a life takes several files.
const SLOTS: u32 = 8;
/// Bytes of a record without a blob.
const RECORD: usize = 667;
/// Lengths at which the write under way is cut: ends, kind and length, and places within either copy's blob.
const CUTS: [usize; 12] = [0, 1, 300, 632, 633, 634, 1000, 2047, 2048, 2060, 2048 + 633, 3000];
/// Seeds of what is lost.
const SEEDS: std::ops::Range<u64> = 0..4;

fn outcomes() -> impl Iterator<Item = Crash> {
    [Crash::Killed, Crash::LostAll, Crash::LostNothing].into_iter().chain(SEEDS.map(Crash::LostSome))
}

fn open_few(disk: &Disk) -> Result<Opened<TestDirectory>, StoreError> {
    DiskStore::open_in(disk.directory(), IDENTITY, Policy::Always, SLOTS)
}

/// A blob that is unlike every other, with zeros in it: none, short, long or the longest.
fn blob(random: &mut Random) -> Vec<u8> {
    let length = [0, 1, 40, 255, 256, 700, MOST_BLOB - 1, MOST_BLOB][random.below(8)];
    (0..length).map(|_| if random.coin() { random.next() as u8 } else { 0 }).collect()
}

/// What was asked of the store, over all lives.
#[derive(Clone, Default)]
struct History {
    /// Each value's blob, if it was stored with one; the last may not have been acknowledged.
    moves: BTreeMap<u128, Option<Vec<u8>>>,
    acknowledged: u128,
    seed: u64,
    kept: u32,
    context: String,
}

impl History {
    /// The blobs that a store of this value gives back.
    fn expected(&self, value: u128) -> Vec<Vec<u8>> {
        let back = self.moves.range(..=value).rev().map_while(|(_, blob)| blob.clone());
        let mut blobs: Vec<Vec<u8>> = back.collect();
        blobs.reverse();
        blobs
    }

    /// Holds what was found against what was asked, then stores `moves` more as far as the disk goes.
    fn live(&mut self, opened: Opened<TestDirectory>, moves: u128) {
        let found = value(&opened).unwrap_or(0);
        let asked = self.moves.last_key_value().map_or(0, |(value, _)| *value);
        let context = &self.context;
        assert!((self.acknowledged..=asked).contains(&found), "{found} was resumed; {context}");
        assert_eq!(opened.store.blobs(), self.expected(found), "blobs of {found}; {context}");
        self.moves.split_off(&(found + 1));
        self.acknowledged = found;
        let mut store = opened.store;
        for value in found + 1..=found + moves {
            self.seed += 1;
            let mut random = Random(self.seed);
            if random.below(5) > 0 {
                let blob = blob(&mut random);
                self.moves.insert(value, Some(blob.clone()));
                match store.store_beside(&state(value), &blob) {
                    Ok(Kept::Both) => {
                        self.acknowledged = value;
                        self.kept += 1;
                        continue;
                    }
                    Ok(Kept::Neither) => {}
                    Err(_) => return,
                }
            }
            self.moves.insert(value, None);
            if store.store(&state(value)).is_err() {
                return;
            }
            self.acknowledged = value;
        }
        assert_eq!(store.blobs(), self.expected(self.acknowledged), "{}", self.context);
    }
}

/// A first life of this seed, cut short by the planned crash if any.
fn first_life(disk: &Disk, seed: u64) -> History {
    let mut history = History { seed: seed * 1000, ..History::default() };
    if let Ok(opened) = open_few(disk) {
        history.live(opened, 14);
    }
    history
}

#[test]
fn a_crash_at_any_call_leaves_the_blobs_of_the_moves_that_are_there() {
    let (mut torn, mut kept) = (0, 0);
    for seed in 0..3 {
        let disk = Disk::new();
        let whole = first_life(&disk, seed);
        assert_eq!(whole.acknowledged, 14);
        kept += whole.kept;
        let calls = disk.calls();
        for call in 1..=calls {
            for cut in CUTS {
                let disk = Disk::new();
                disk.crash_at(call, cut);
                let history = first_life(&disk, seed);
                assert!(disk.crashed());
                for crash in outcomes() {
                    let (disk, mut history) = (disk.after(crash), history.clone());
                    history.context =
                        format!("seed {seed}, crash at call {call} of {calls}, cut at {cut}, {crash:?}");
                    for moves in [0, 3, 0, 0, 6] {
                        let opened = open_few(&disk);
                        let opened = opened.unwrap_or_else(|why| panic!("{}: {why}", history.context));
                        torn += u32::from(opened.how == How::Torn);
                        history.live(opened, moves);
                    }
                }
            }
        }
    }
    assert!(torn > 100 && kept > 10, "{torn} torn starts and {kept} blobs are too few to show anything");
}

/// A start after a crash is cut as well, again and again, with blobs pending: the file fills up with records of
/// starts, and still nothing is lost.
#[test]
fn crashes_of_one_start_after_the_other_lose_no_blob() {
    for seed in 0..6 {
        let mut disk = Disk::new();
        let mut history = History { seed: seed * 1000, ..History::default() };
        history.live(open_few(&disk).expect("an empty disk"), 3);
        history.seed = seed;
        let mut random = Random(seed);
        for round in 0..60 {
            history.context = format!("seed {seed}, round {round}");
            disk.crash_at(1 + random.below(6) as u64, random.below(4097));
            if let Ok(opened) = open_few(&disk) {
                history.live(opened, random.below(2) as u128);
            }
            disk = disk.after(match random.below(4) {
                0 => Crash::Killed,
                1 => Crash::LostAll,
                2 => Crash::LostNothing,
                _ => Crash::LostSome(random.next()),
            });
        }
        history.live(open_few(&disk).expect("only crashes"), 20);
    }
}

#[test]
fn every_cut_of_a_write_leaves_move_and_blob_both_or_neither() {
    for blob in [vec![], vec![0; 50], vec![0xA5; 300], vec![0xA5; MOST_BLOB], vec![0; MOST_BLOB]] {
        let record = RECORD + blob.len();
        for cut in 0..=4096 {
            let disk = Disk::new();
            let mut store = open(&disk).expect("an empty disk").store;
            store.store(&state(1)).expect("the disk is sound");
            disk.crash_at(1, cut);
            assert!(store.store_beside(&state(2), &blob).is_err());
            drop(store);
            for crash in [Crash::Killed, Crash::LostNothing] {
                let disk = disk.after(crash);
                let opened = open(&disk).expect("one interrupted write is no damage");
                let context = format!("{} bytes cut at {cut}, {crash:?}", blob.len());
                assert_eq!(opened.how == How::Torn, (1..2048 + record).contains(&cut), "{context}");
                let expected = if cut < record { (Some(1), vec![]) } else { (Some(2), vec![blob.clone()]) };
                assert_eq!((value(&opened), opened.store.blobs().to_vec()), expected, "{context}");
                drop(opened);
                let opened = open(&disk).expect("what was torn is gone");
                assert_eq!((value(&opened), opened.store.blobs().to_vec()), expected, "{context}");
                assert_eq!(opened.how, How::Resumed, "{context}");
            }
        }
    }
}
