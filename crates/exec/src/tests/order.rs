//! The ordered index against a set, with keys short and long, and what is built at once against what was built key by key.

use crate::MerkleMap;
use bytes::Bytes;
use proptest::prelude::*;
use std::collections::BTreeSet;

fn key(number: u16, long: bool) -> Vec<u8> {
    let mut key = format!("k{number}").into_bytes();
    if long {
        key.resize(300 + usize::from(number % 7) * 400, b'x');
    }
    key
}

fn all(map: &MerkleMap, from: &[u8]) -> Vec<Vec<u8>> {
    map.scan(from).map(|(key, _)| key.to_vec()).collect()
}

fn expected(model: &BTreeSet<Vec<u8>>, from: &[u8]) -> Vec<Vec<u8>> {
    model.range(from.to_vec()..).cloned().collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn it_is_a_set(first in proptest::collection::vec((0_u16..3000, 0_u8..20), 0..2500),
                   removed in proptest::collection::vec(0_u16..3000, 0..2500),
                   from in 0_u16..3000) {
        let mut map = MerkleMap::with_order(b"k");
        let mut model = BTreeSet::new();
        map.insert(b"another", Bytes::new());
        for (number, kind) in first {
            let key = key(number, kind == 0);
            map.insert(&key, Bytes::from_static(b"v"));
            model.insert(key);
        }
        let from = key(from, false);
        prop_assert_eq!(all(&map, b"k"), expected(&model, b"k"));
        prop_assert_eq!(all(&map, &from), expected(&model, &from));

        let before = (map.clone(), model.clone());
        for number in removed {
            for long in [false, true] {
                map.remove(&key(number, long));
                model.remove(&key(number, long));
            }
        }
        prop_assert_eq!(all(&map, b"k"), expected(&model, b"k"));
        prop_assert_eq!(all(&map, &from), expected(&model, &from));
        prop_assert_eq!(all(&before.0, b"k"), expected(&before.1, b"k"), "a clone is a version of its own");

        let at_once = MerkleMap::from_tree(&map.tree_now(), Some(b"k"));
        prop_assert_eq!(all(&at_once, b"k"), expected(&model, b"k"));
        prop_assert_eq!(all(&at_once, &from), expected(&model, &from));
        let moved = before.0.moved_to(&map.tree_now());
        prop_assert_eq!(all(&moved, b"k"), expected(&model, b"k"));
        prop_assert_eq!(all(&moved, &from), expected(&model, &from));
        // What was built at once goes on like the other.
        let mut at_once = at_once;
        for number in 0..500 {
            at_once.insert(&key(number * 6, false), Bytes::new());
            model.insert(key(number * 6, false));
        }
        prop_assert_eq!(all(&at_once, b"k"), expected(&model, b"k"));
    }
}

/// A key of a kibibyte: each is a leaf of its own, so that few make many branches.
fn large(number: u16) -> Vec<u8> {
    let mut key = format!("k{number:05}").into_bytes();
    key.resize(1024, b'x');
    key
}

fn agree(map: &MerkleMap, model: &BTreeSet<Vec<u8>>, from: &[u8]) {
    map.check_order();
    assert!(all(map, b"k") == expected(model, b"k"), "{} keys", model.len());
    assert!(all(map, from) == expected(model, from));
}

#[test]
fn what_comes_below_a_lowest_key_that_has_gone_is_found_again() {
    let (mut map, mut model) = (MerkleMap::with_order(b"k"), BTreeSet::new());
    for number in 1..=200 {
        map.insert(&large(number * 10), Bytes::new());
        model.insert(large(number * 10));
    }
    // Whichever of them is the lowest of a leaf or a branch.
    for number in 1..200 {
        map.remove(&large(number * 10));
        model.remove(&large(number * 10));
        for below in [number * 10 + 1, number * 10 + 2] {
            map.insert(&large(below), Bytes::new());
            model.insert(large(below));
        }
        map.remove(&large(number * 10 + 10));
        model.remove(&large(number * 10 + 10));
        agree(&map, &model, &large(number * 10));
        map.insert(&large(number * 10 + 10), Bytes::new());
        model.insert(large(number * 10 + 10));
        agree(&map, &model, &large(number * 10 + 5));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn any_mix_of_writes_versions_and_rebuilds_is_a_set(
        steps in proptest::collection::vec((0_u8..24, 0_u16..400, 1_u16..90), 0..220),
        from in 0_u16..400,
    ) {
        let (mut map, mut model) = (MerkleMap::with_order(b"k"), BTreeSet::new());
        let mut version = (map.clone(), model.clone());
        for (kind, at, count) in steps {
            let range = at..at + count;
            match kind {
                0..9 => for number in range { map.insert(&large(number), Bytes::new()); model.insert(large(number)); },
                9..12 => for number in range.rev() { map.insert(&large(number), Bytes::new()); model.insert(large(number)); },
                12..17 => for number in range { map.remove(&large(number)); model.remove(&large(number)); },
                17..20 => for number in range.rev() { map.remove(&large(number)); model.remove(&large(number)); },
                20 => {
                    // What is rolled back was never there.
                    let mark = map.mark();
                    for number in range {
                        if number % 2 == 0 { map.insert(&large(number), Bytes::new()) } else { map.remove(&large(number)) }
                    }
                    map.rollback(mark);
                    map.release();
                }
                21 => map = MerkleMap::from_tree(&map.tree_now(), Some(b"k")),
                22 => map = version.0.clone().moved_to(&map.tree_now()),
                _ => version = (map.clone(), model.clone()),
            }
            map.check_order();
        }
        agree(&map, &model, &large(from));
        agree(&version.0, &version.1, &large(from));
    }
}
