//! The map against a naive model: content, scans, rollback, and a digest that is a function of the
//! content alone.

use crate::{Mark, MerkleMap, SealId, Tree};
use bytes::Bytes;
use proptest::prelude::*;
use std::collections::BTreeMap;
use troth_types::Digest;

type Model = BTreeMap<Vec<u8>, Bytes>;

#[derive(Clone, Debug)]
enum Step {
    Insert(u16, u8),
    Remove(u16),
    /// Removes all but the keys below this number: trees shrink as well as grow.
    Prune(u16),
    Mark,
    Rollback,
    Release,
    Seal,
    Poll(usize),
    /// Go on with a map built from the current tree, as after a transfer or a restart.
    Rebuild,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        12 => (0_u16..300, any::<u8>()).prop_map(|(key, value)| Step::Insert(key, value)),
        6 => (0_u16..300).prop_map(Step::Remove),
        1 => (0_u16..100).prop_map(Step::Prune),
        1 => Just(Step::Mark),
        1 => Just(Step::Rollback),
        1 => Just(Step::Release),
        1 => Just(Step::Seal),
        3 => (0_usize..200).prop_map(Step::Poll),
        1 => Just(Step::Rebuild),
    ];
    proptest::collection::vec(step, 0..400)
}

/// Keys of different lengths, values small and large.
fn key(number: u16) -> Vec<u8> {
    let mut key = vec![b'k'; usize::from(number % 3)];
    key.extend(number.to_be_bytes());
    key
}

fn value(seed: u8) -> Bytes {
    let length = match seed % 8 {
        0 => 0,
        1 => 512,
        2 => 513,
        3 => 3000,
        other => usize::from(other) * 9,
    };
    Bytes::from(vec![seed; length])
}

fn tree_of(model: &Model) -> Tree {
    let mut map = MerkleMap::new();
    for (key, value) in model {
        map.insert(key, value.clone());
    }
    map.tree_now()
}

#[derive(Default)]
struct Run {
    map: MerkleMap,
    model: Model,
    marks: Vec<(Mark, Model)>,
    sealed: Vec<(SealId, Model)>,
    finished: Vec<(Tree, Digest, Model)>,
}

impl Run {
    fn new() -> Self {
        Self { map: MerkleMap::with_order(b""), ..Self::default() }
    }

    fn take(&mut self, step: &Step) {
        match step {
            Step::Insert(number, seed) => {
                self.map.insert(&key(*number), value(*seed));
                self.model.insert(key(*number), value(*seed));
            }
            Step::Remove(number) => {
                self.map.remove(&key(*number));
                self.model.remove(&key(*number));
            }
            Step::Prune(first) => {
                for number in *first..300 {
                    self.map.remove(&key(number));
                    self.model.remove(&key(number));
                }
            }
            Step::Mark => self.marks.push((self.map.mark(), self.model.clone())),
            Step::Rollback => {
                if let Some((mark, model)) = self.marks.pop() {
                    self.map.rollback(mark);
                    self.model = model;
                }
            }
            Step::Release => {
                self.map.release();
                self.marks.clear();
            }
            Step::Seal => {
                self.sealed.push((self.map.seal(), self.model.clone()));
                self.marks.clear();
            }
            Step::Poll(budget) => self.poll(*budget),
            Step::Rebuild => {
                self.map = MerkleMap::from_tree(&self.map.tree_now(), Some(b""));
                self.marks.clear();
                self.sealed.clear();
            }
        }
    }

    fn poll(&mut self, mut budget: usize) {
        if let Some((id, tree)) = self.map.poll(&mut budget) {
            let (sealed, model) = self.sealed.remove(0);
            assert_eq!(id, sealed);
            self.finished.push((tree.clone(), tree.digest(), model));
        }
    }
}

fn check_content(map: &MerkleMap, model: &Model) {
    for number in 0..300 {
        assert_eq!(map.get(&key(number)), model.get(&key(number)).cloned());
    }
    let scanned: Vec<_> = map.scan(b"k").map(|(key, value)| (key.to_vec(), value)).collect();
    let expected: Vec<_> =
        model.range(b"k".to_vec()..).map(|(key, value)| (key.clone(), value.clone())).collect();
    assert_eq!(scanned, expected);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(384))]

    #[test]
    fn the_digest_is_a_function_of_the_content(steps in steps()) {
        let mut run = Run::new();
        for step in &steps {
            run.take(step);
        }
        check_content(&run.map, &run.model);
        while !run.sealed.is_empty() {
            run.poll(50);
        }
        check_content(&run.map, &run.model);
        let tree = run.map.tree_now();
        let direct = tree_of(&run.model);
        prop_assert_eq!(tree.digest(), direct.digest());
        prop_assert_eq!(tree.entries(), run.model.len() as u64);
        // Versions sealed on the way are what they were, whatever was written since.
        for (tree, digest, model) in &run.finished {
            prop_assert_eq!(*digest, tree_of(model).digest());
            let mut entries = Model::new();
            tree.for_each(|key, value| { entries.insert(key.to_vec(), value); });
            prop_assert_eq!(&entries, model);
        }
    }

    #[test]
    fn different_content_has_different_digests(steps in steps(), number in 0_u16..300, seed: u8) {
        let mut run = Run::new();
        for step in &steps {
            run.take(step);
        }
        let before = run.map.tree_now().digest();
        let same = run.model.get(&key(number)) == Some(&value(seed));
        run.map.insert(&key(number), value(seed));
        prop_assert_eq!(run.map.tree_now().digest() == before, same);
    }
}

#[test]
fn a_clone_is_a_version_of_its_own() {
    let mut map = MerkleMap::with_order(b"");
    map.insert(b"a", Bytes::from("1"));
    let copy = map.clone();
    map.insert(b"a", Bytes::from("2"));
    map.remove(b"b");
    map.insert(b"c", Bytes::from("3"));
    assert_eq!(copy.get(b"a"), Some(Bytes::from("1")));
    assert_eq!(copy.scan(b"").count(), 1);
    assert_eq!(map.scan(b"").count(), 2);
}

#[test]
fn the_empty_map_and_one_emptied_again_are_equal() {
    let mut map = MerkleMap::new();
    let seal = |map: &mut MerkleMap| {
        map.seal();
        let mut budget = usize::MAX;
        map.poll(&mut budget).expect("unbounded").1
    };
    for number in 0..200 {
        map.insert(&key(number), value(1));
    }
    let full = seal(&mut map);
    for number in 0..200 {
        map.remove(&key(number));
    }
    let tree = seal(&mut map);
    assert_eq!(tree.digest(), Tree::empty().digest());
    assert_eq!(full.entries(), 200);
    assert_ne!(full.digest(), tree.digest());
}

#[test]
#[should_panic(expected = "a mark ends with its seal")]
fn a_mark_does_not_outlive_a_seal() {
    let mut map = MerkleMap::new();
    let mark = map.mark();
    map.seal();
    map.mark();
    map.rollback(mark);
}
