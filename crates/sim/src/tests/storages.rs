//! What a crash leaves of a simulated log.

use crate::Rng;
use crate::storage::{SimStorage, Storage};
use bytes::Bytes;
use std::collections::BTreeSet;

fn record(name: &str) -> Bytes {
    Bytes::copy_from_slice(name.as_bytes())
}

fn sync(storage: &mut SimStorage) {
    storage.begin_sync();
    storage.finish_sync();
}

/// Every outcome of crashing clones of `storage` with many seeds.
fn outcomes(storage: &SimStorage) -> BTreeSet<(Option<Bytes>, Vec<Bytes>)> {
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
    let mut storage = SimStorage::default();
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
    let mut storage = SimStorage::default();
    storage.append(record("a"));
    storage.begin_sync();
    storage.append(record("b"));
    storage.finish_sync();
    assert!(outcomes(&storage).contains(&(None, vec![record("a")])));
}

#[test]
fn a_fresh_segment_takes_over_whole_or_not_at_all() {
    let mut storage = SimStorage::default();
    storage.append(record("old"));
    sync(&mut storage);
    storage.new_segment(record("snapshot"));
    storage.append(record("new"));
    let old = (None, vec![record("old")]);
    let new = (Some(record("snapshot")), vec![record("new")]);
    assert_eq!(outcomes(&storage), BTreeSet::from([old.clone()]), "before its sync it never does");
    storage.begin_sync();
    assert_eq!(outcomes(&storage), BTreeSet::from([old, new.clone()]), "during it, it may");
    storage.finish_sync();
    assert_eq!(outcomes(&storage), BTreeSet::from([new]), "afterwards it has");
}

#[test]
fn a_crash_ends_a_sync() {
    let mut storage = SimStorage::default();
    storage.append(record("a"));
    storage.begin_sync();
    storage.crash(&mut Rng::stream(0, "storage", 0));
    let (_, before) = storage.read();
    sync(&mut storage);
    assert_eq!(storage.read(), (None, before));
}
