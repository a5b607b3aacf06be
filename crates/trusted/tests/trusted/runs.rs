//! Runs: a message verifies in its own place of its own run, and nowhere else.

use crate::support::step;
use proptest::prelude::*;
use sha2::{Digest as _, Sha256};
use troth_trusted::run::{MAX_PATH, MAX_RUN, Path, Position, RunProof, Tree, certified_digest, position};
use troth_trusted::{CounterValue, Digest};

fn messages(count: usize, seed: u8) -> Vec<Digest> {
    (0..count).map(|i| Sha256::digest([&[seed], i.to_be_bytes().as_slice()].concat()).into()).collect()
}

/// The certified digest of a run, by recursion on the definition: a tree of 2^k leaves is complete,
/// any other splits after the largest power of two below its size.
fn by_definition(messages: &[Digest]) -> Digest {
    fn hash(parts: &[&[u8]]) -> Digest {
        Sha256::digest(parts.concat()).into()
    }
    fn top(first: u16, messages: &[Digest]) -> Digest {
        if let [only] = messages {
            return hash(&[b"troth-run-leaf/v1", &first.to_be_bytes(), only]);
        }
        let (left, right) = messages.split_at(messages.len().next_power_of_two() / 2);
        let (left, right) = (top(first, left), top(first + left.len() as u16, right));
        hash(&[b"troth-run-node/v1", &left, &right])
    }
    match messages {
        [only] => *only,
        _ => {
            let count = messages.len() as u16;
            hash(&[b"troth-run-root/v1", &count.to_be_bytes(), &top(0, messages)])
        }
    }
}

#[test]
fn every_place_of_every_run_verifies_with_the_right_value() {
    let mut tree = Tree::default();
    for count in 1..=MAX_RUN {
        let messages = messages(count, 0);
        let certified = tree.build(&messages).expect("a run of 1 to 256");
        assert_eq!(certified, by_definition(&messages), "run of {count}");
        let moved = step(0, 100, 100 + count as u128);
        for (index, message) in (0..).zip(&messages) {
            let proof = tree.proof(index).expect("within the run");
            assert_eq!((proof.index, usize::from(proof.count)), (index, count));
            assert!(proof.path.as_slice().len() <= MAX_PATH);
            assert_eq!(certified_digest(&moved, &proof, message), Some(certified));
            let predecessor = CounterValue(100 + u128::from(index));
            let value = CounterValue(101 + u128::from(index));
            assert_eq!(position(&moved, &proof), Some(Position { value, predecessor }));
        }
        assert_eq!(tree.proof(count as u16), None);
    }
}

#[test]
fn the_empty_and_the_overlong_run_are_refused() {
    let mut tree = Tree::default();
    assert_eq!(tree.proof(0), None, "nothing built yet");
    assert_eq!(tree.build(&[]), None);
    assert_eq!(tree.build(&messages(MAX_RUN + 1, 0)), None);
    assert_eq!(Path::new(&[[0; 32]; MAX_PATH + 1]), None);
    assert_eq!(Path::new(&[]), Some(Path::EMPTY));
    let two = [[1; 32], [2; 32]];
    assert_eq!(Path::new(&two).as_ref().map(Path::as_slice), Some(two.as_slice()));
}

#[test]
fn one_message_is_certified_as_it_is_and_alone_may_jump() {
    let jump = step(0, 5, 500);
    assert_eq!(certified_digest(&jump, &RunProof::SINGLE, &[3; 32]), Some([3; 32]));
    let at = Position { value: CounterValue(500), predecessor: CounterValue(5) };
    assert_eq!(position(&jump, &RunProof::SINGLE), Some(at));
    let with_path = RunProof { path: Path::new(&[[0; 32]]).expect("short"), ..RunProof::SINGLE };
    assert_eq!(certified_digest(&jump, &with_path, &[3; 32]), None);
}

#[test]
fn a_run_of_several_moves_the_counter_by_exactly_its_length() {
    let mut tree = Tree::default();
    let messages = messages(3, 0);
    tree.build(&messages).expect("a run of three");
    let proof = tree.proof(1).expect("within the run");
    assert!(position(&step(0, 7, 10), &proof).is_some());
    for (previous, new) in [(7, 8), (7, 9), (7, 11), (u128::MAX - 1, 1), (u128::MAX, u128::MAX)] {
        assert_eq!(position(&step(0, previous, new), &proof), None);
        assert_eq!(certified_digest(&step(0, previous, new), &proof, &messages[1]), None);
    }
    assert!(position(&step(0, u128::MAX - 3, u128::MAX), &proof).is_some());
}

#[test]
fn a_place_outside_the_run_is_refused() {
    for (index, count) in [(0, 0), (1, 1), (3, 3), (u16::MAX, 3), (0, 257), (0, u16::MAX)] {
        let proof = RunProof { index, count, path: Path::EMPTY };
        let moved = step(0, 0, u128::from(count));
        assert_eq!(position(&moved, &proof), None, "index {index} of {count}");
        assert_eq!(certified_digest(&moved, &proof, &[0; 32]), None);
    }
    let last = RunProof { index: 255, count: 256, path: Path::EMPTY };
    assert!(position(&step(0, 0, 256), &last).is_some());
}

#[test]
fn no_path_fits_another_place_or_another_length() {
    const LONGEST: u16 = 12;
    let mut tree = Tree::default();
    let mut certified = Vec::new();
    let mut proofs = Vec::new();
    for count in 1..=LONGEST {
        // The same messages in all runs: only place and length tell them apart.
        let messages = vec![[4; 32]; usize::from(count)];
        certified.push(tree.build(&messages).expect("a short run"));
        proofs.extend((0..count).map(|index| tree.proof(index).expect("within the run")));
    }
    for proof in &proofs {
        for count in 1..=LONGEST {
            for index in 0..count {
                let claimed = RunProof { index, count, ..*proof };
                let moved = step(0, 0, u128::from(count));
                let digest = certified_digest(&moved, &claimed, &[4; 32]);
                let own = (index, count) == (proof.index, proof.count);
                let fits = digest.is_some_and(|digest| certified.contains(&digest));
                assert_eq!(fits, own, "{:?} as place {index} of {count}", proof);
            }
        }
    }
}

proptest! {
    #[test]
    fn an_altered_message_or_path_leads_to_another_digest(
        count in 2usize..=MAX_RUN, place in any::<prop::sample::Index>(), bit in 0usize..256,
        sibling in any::<prop::sample::Index>(),
    ) {
        let messages = messages(count, 1);
        let mut tree = Tree::default();
        let certified = tree.build(&messages).expect("a run");
        let index = place.index(count);
        let proof = tree.proof(index as u16).expect("within the run");
        let moved = step(0, 0, count as u128);
        prop_assert_eq!(certified_digest(&moved, &proof, &messages[index]), Some(certified));

        let flipped = |digest: &Digest| { let mut d = *digest; d[bit / 8] ^= 1 << (bit % 8); d };
        prop_assert_ne!(certified_digest(&moved, &proof, &flipped(&messages[index])), Some(certified));

        let mut siblings = proof.path.as_slice().to_vec();
        let chosen = sibling.index(siblings.len());
        siblings[chosen] = flipped(&siblings[chosen]);
        let altered = RunProof { path: Path::new(&siblings).expect("as long as before"), ..proof };
        prop_assert_ne!(certified_digest(&moved, &altered, &messages[index]), Some(certified));

        siblings.remove(chosen);
        let shorter = RunProof { path: Path::new(&siblings).expect("shorter"), ..proof };
        prop_assert_eq!(certified_digest(&moved, &shorter, &messages[index]), None);
    }

    #[test]
    fn foreign_proofs_never_panic_and_never_fit(
        index in any::<u16>(), count in any::<u16>(), siblings in prop::collection::vec(any::<Digest>(), 0..=MAX_PATH),
        previous in any::<u128>(), new in any::<u128>(), message in any::<Digest>(),
    ) {
        let messages = messages(9, 2);
        let certified = Tree::default().build(&messages).expect("a run");
        let proof = RunProof { index, count, path: Path::new(&siblings).expect("short enough") };
        let any_move = step(0, previous, new);
        prop_assert_ne!(certified_digest(&any_move, &proof, &message), Some(certified));
        let fitting = step(0, 0, u128::from(count));
        prop_assert_ne!(certified_digest(&fitting, &proof, &message), Some(certified));
    }
}
