//! Moving pages: nothing of a version changes by it, and what others hold bounds it.

use crate::map::{Body, MerkleMap, Node, StoreId, Tree};
use bytes::Bytes;
use core::num::NonZeroU32;
use std::collections::BTreeMap;

/// Enough for a map that is worth it.
const KEYS: u32 = 70_000;
const STORE: StoreId = StoreId(NonZeroU32::MIN);

fn key(number: u32) -> Vec<u8> {
    number.to_be_bytes().to_vec()
}

/// Seals the map and merges what was written; pages are moved after that.
fn sealed(map: &mut MerkleMap) -> Tree {
    map.seal();
    let mut unbounded = usize::MAX;
    map.poll(&mut unbounded).expect("an unbounded budget finishes a seal").1
}

/// Large, all of it written at once; the next quiet layer begins a pass.
fn filled() -> MerkleMap {
    let mut map = MerkleMap::new();
    for number in 0..KEYS {
        map.insert(&key(number), Bytes::from(vec![number as u8; 20]));
    }
    drop(sealed(&mut map));
    assert!(!map.is_moving(), "what is written now replaces pages as quickly");
    map
}

fn places(tree: &Tree) -> Vec<usize> {
    let mut places = Vec::new();
    tree.root().for_each_page(&mut |page| places.push(page.bytes().as_ptr() as usize));
    places
}

/// Whether each node by itself says that it is stored.
fn all_stored(node: &Node) -> bool {
    let below = |children: &crate::map::Children| children.iter().flatten().all(|child| all_stored(child));
    node.is_in(STORE)
        && match node.body() {
            Body::Page(_) => true,
            Body::Branch(_, children) => below(children),
        }
}

fn move_all(map: &mut MerkleMap) -> usize {
    let mut slices = 0;
    while map.is_moving() {
        assert!(map.poll(&mut 100).is_none());
        slices += 1;
        assert!(slices < 10_000, "a pass ends");
    }
    slices
}

#[test]
fn each_page_is_moved_once_and_nothing_else_changes() {
    let mut map = filled();
    map.insert(&key(3), Bytes::from_static(b"three"));
    let tree = sealed(&mut map);
    tree.root().put_in(STORE);
    let (digest, before) = (tree.digest(), places(&tree));
    drop(tree);
    assert!(map.is_moving());
    assert!(move_all(&mut map) > 50, "in slices");
    let tree = map.tree_now();
    let after = places(&tree);
    assert_eq!(before.len(), after.len());
    // A page is made anew while the old one is there.
    assert_eq!(before.iter().zip(&after).filter(|(before, after)| before == after).count(), 0);
    assert_eq!(tree.digest(), digest);
    assert!(all_stored(tree.root()), "what is stored stays so");
    assert_eq!(map.get(&key(3)), Some(Bytes::from_static(b"three")));
    map.insert(&key(4), Bytes::from_static(b"four"));
    drop(sealed(&mut map));
    assert!(!map.is_moving(), "once is enough until as much was written again");
}

#[test]
fn a_pass_waits_for_those_who_hold_the_old_pages() {
    let mut map = filled();
    map.insert(&key(3), Bytes::from_static(b"three"));
    let held = sealed(&mut map);
    let (digest, before) = (held.digest(), places(&held));
    move_all(&mut map);
    let after = places(&map.tree_now());
    let moved = before.iter().zip(&after).filter(|(before, after)| before != after).count();
    assert_eq!(moved, KEYS as usize / 256);
    assert_eq!((held.digest(), places(&held)), (digest, before.clone()));
    assert_eq!(held.get(&key(3)), Some(Bytes::from_static(b"three")));
    drop(held);
    assert!(map.is_moving());
    move_all(&mut map);
    let after = places(&map.tree_now());
    assert_eq!(before.iter().zip(&after).filter(|(before, after)| before == after).count(), 0);
}

#[test]
fn what_is_written_meanwhile_is_there() {
    let mut map = filled();
    let mut model: BTreeMap<u32, Bytes> =
        (0..KEYS).map(|number| (number, Bytes::from(vec![number as u8; 20]))).collect();
    for round in 0..40_u32 {
        for write in 0..200 {
            let number = (round * 7919 + write * 104_729) % (KEYS + 500);
            let value = Bytes::from(round.to_be_bytes().to_vec());
            if write % 3 == 0 {
                map.remove(&key(number));
                model.remove(&number);
            } else {
                map.insert(&key(number), value.clone());
                model.insert(number, value);
            }
        }
        drop(sealed(&mut map));
        for _ in 0..3 {
            map.poll(&mut 100);
        }
    }
    let mut fresh = MerkleMap::new();
    for (number, value) in &model {
        fresh.insert(&key(*number), value.clone());
        assert_eq!(map.get(&key(*number)).as_ref(), Some(value));
    }
    assert_eq!(map.tree_now().digest(), fresh.tree_now().digest());
}
