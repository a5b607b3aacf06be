//! What a crash leaves of a simulated log.

use crate::Rng;
use crate::storage::{SimStorage, Storage};
use bytes::Bytes;
use std::collections::BTreeSet;

fn record(name: &str) -> Bytes {
    Bytes::copy_from_slice(name.as_bytes())
}

fn sync(storage: &mut SimStorage<Bytes>) {
    storage.begin_sync();
    storage.finish_sync();
}

/// Every outcome of crashing clones of `storage` with many seeds.
fn outcomes(storage: &SimStorage<Bytes>) -> BTreeSet<(Option<Bytes>, Vec<Bytes>)> {
    (0..200)
        .map(|seed| {
            let mut crashed = storage.clone();
            crashed.crash(&mut Rng::stream(seed, "storage", 0));
            crashed.read()
        })
        .collect()
}

#[test]
fn synced_records_survive_and_of_the_others_any_prefix() {
    let mut storage = SimStorage::<Bytes>::default();
    storage.append(record("a"));
    sync(&mut storage);
    storage.append(record("b"));
    storage.append(record("c"));
    let expected = [vec!["a"], vec!["a", "b"], vec!["a", "b", "c"]];
    let expected: BTreeSet<_> =
        expected.into_iter().map(|names| (None, names.into_iter().map(record).collect::<Vec<_>>())).collect();
    assert_eq!(outcomes(&storage), expected);
}

#[test]
fn what_is_appended_during_a_sync_is_not_covered_by_it() {
    let mut storage = SimStorage::<Bytes>::default();
    storage.append(record("a"));
    storage.begin_sync();
    storage.append(record("b"));
    storage.finish_sync();
    assert!(outcomes(&storage).contains(&(None, vec![record("a")])));
}

#[test]
fn a_fresh_segment_takes_over_whole_or_not_at_all() {
    for syncs in 1..=3 {
        let mut storage = SimStorage::<Bytes>::default();
        storage.append(record("old"));
        sync(&mut storage);
        storage.new_segment(record("snapshot"), Some(syncs));
        storage.append(record("new"));
        let old = (None, vec![record("old")]);
        let both = (None, vec![record("old"), record("new")]);
        let new = (Some(record("snapshot")), vec![record("new")]);
        assert_eq!(
            outcomes(&storage),
            BTreeSet::from([old.clone(), both.clone()]),
            "before its sync it never does"
        );
        for _ in 1..syncs {
            sync(&mut storage);
            assert_eq!(outcomes(&storage), BTreeSet::from([both.clone()]), "the snapshot is not there yet");
        }
        storage.begin_sync();
        let during = outcomes(&storage);
        let newer = (new.0.clone(), both.1.clone());
        for may in [&both, &newer, &new] {
            assert!(
                during.contains(may),
                "during the last sync, it may, and what it replaces may still be there"
            );
        }
        storage.finish_sync();
        assert_eq!(outcomes(&storage), BTreeSet::from([new]), "afterwards it has");
    }
}

#[test]
fn one_snapshot_is_written_at_a_time() {
    let mut storage = SimStorage::<Bytes>::default();
    assert!(storage.wants_segment());
    storage.new_segment(record("first"), Some(2));
    assert!(!storage.wants_segment());
    sync(&mut storage);
    assert!(!storage.wants_segment());
    sync(&mut storage);
    assert!(storage.wants_segment());
}

#[test]
fn a_snapshot_that_is_needed_comes_with_the_next_sync() {
    let mut storage = SimStorage::<Bytes>::default();
    storage.new_segment(record("slow"), Some(9));
    storage.append(record("a"));
    storage.new_segment(record("needed"), None);
    storage.append(record("b"));
    sync(&mut storage);
    assert_eq!(outcomes(&storage), BTreeSet::from([(Some(record("needed")), vec![record("b")])]));
}

#[test]
fn a_crash_ends_a_sync() {
    let mut storage = SimStorage::<Bytes>::default();
    storage.append(record("a"));
    storage.begin_sync();
    storage.crash(&mut Rng::stream(0, "storage", 0));
    let (_, before) = storage.read();
    sync(&mut storage);
    assert_eq!(storage.read(), (None, before));
}
