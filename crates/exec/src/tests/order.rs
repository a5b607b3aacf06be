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
