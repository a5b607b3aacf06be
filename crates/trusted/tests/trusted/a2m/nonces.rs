//! One END attestation for many clients at once.

use super::*;
use sha2::{Digest as _, Sha256};
use troth_trusted::run::{Path, RunProof, Tree};
use troth_trusted::{MacVerifier, SigningKey};

fn verifier() -> MacVerifier {
    mac_key().verifier()
}

fn nonces(count: usize) -> Vec<Nonce> {
    (0..count).map(|client| Sha256::digest(client.to_be_bytes()).into()).collect()
}

#[test]
fn one_end_attestation_answers_every_nonce_under_its_root() {
    covers!("A2M-A3");
    let mut a2m = volatile(2);
    done(&mut a2m, &[append(Q, 1, 1)]);
    let last = Some((slot(1), content(&a2m, Q, 1)));
    let mut tree = Tree::default();
    for count in [1, 2, 3, 8, 100, 255, 256] {
        let nonces = nonces(count);
        let root = tree.build(&nonces).expect("1 to 256 nonces");
        let made = attested(&mut a2m, Operation::End { log: Q, nonce: root });
        for (index, nonce) in (0..).zip(&nonces) {
            let among = tree.proof(index).expect("within the tree");
            assert_eq!(made.verify_end(&verifier(), &IDENTITY, Q, nonce, &among), last);
            // Another client's nonce does not pass at this place, nor this one at another place.
            assert_eq!(made.verify_end(&verifier(), &IDENTITY, Q, &Z, &among), None);
            let elsewhere = RunProof { index: index ^ 1, ..among };
            assert_eq!(made.verify_end(&verifier(), &IDENTITY, Q, nonce, &elsewhere), None);
            if count > 1 {
                assert_eq!(made.verify_end(&verifier(), &IDENTITY, Q, nonce, &RunProof::SINGLE), None);
            }
        }
    }
}

#[test]
fn an_end_for_other_nonces_is_not_fresh() {
    covers!("A2M-A3");
    let mut a2m = volatile(2);
    let (before, after) = (nonces(5), [nonces(5), vec![Z]].concat());
    let mut tree = Tree::default();
    let old = tree.build(&before).expect("five");
    let stale = attested(&mut a2m, Operation::End { log: Q, nonce: old });
    done(&mut a2m, &[append(Q, 1, 1)]);
    tree.build(&after).expect("six");
    for index in 0..6 {
        let among = tree.proof(index).expect("within the tree");
        assert_eq!(stale.verify_end(&verifier(), &IDENTITY, Q, &Z, &among), None);
    }
    for path in [Path::EMPTY, Path::new(&[old]).expect("one sibling")] {
        for (index, count) in [(0, 0), (0, 1), (0, 2), (1, 2), (0, 257), (0, u16::MAX), (5, 5)] {
            let made_up = RunProof { index, count, path };
            assert_eq!(stale.verify_end(&verifier(), &IDENTITY, Q, &Z, &made_up), None, "{made_up:?}");
        }
    }
}

#[test]
fn clients_without_a_key_check_signatures_under_a_root() {
    let key = SigningKey::new(&[9; 32]);
    let mut a2m = A2m::start(IDENTITY, Certifier::Signature(key.clone()), VolatileStore, room(1));
    let nonces = nonces(7);
    let mut tree = Tree::default();
    let root = tree.build(&nonces).expect("seven");
    let Ok(Answer::Attested(made)) = a2m.one(Operation::End { log: M, nonce: root }) else {
        panic!("an END is answered")
    };
    for (index, nonce) in (0..).zip(&nonces) {
        let among = tree.proof(index).expect("within the tree");
        assert!(made.verify_end(&key.verifier(), &IDENTITY, M, nonce, &among).is_some());
    }
}
