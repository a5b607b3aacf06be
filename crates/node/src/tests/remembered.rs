//! Remembered certificates: computed once where they are good, each time where they are not, and never
//! taken for another.

use crate::remembered::Remembering;
use std::sync::atomic::{AtomicUsize, Ordering};
use troth_trusted::certificate::ONE;
use troth_trusted::{Certificate, CounterId, CounterValue, Digest, Epoch, MultiCertificate, Proof};
use troth_trusted_host::{CertificateVerifier, Statement};

/// Finds good what replica 1 certified for the digest of ones, and counts how often it was asked.
#[derive(Default)]
struct Counting(AtomicUsize);

impl CertificateVerifier for &Counting {
    fn verify(&self, replica: u16, certificate: &Certificate, digest: &Digest) -> bool {
        self.0.fetch_add(1, Ordering::Relaxed);
        (replica, certificate.epoch, *digest) == (1, Epoch(1), [1; 32])
    }

    fn signed(&self, _: u16, _: &Certificate, digest: &Digest) -> Option<Statement> {
        Some(Statement { key: [0; 32], bytes: [digest[0]; ONE], signature: [7; 64] })
    }

    fn verify_multi(&self, _: u16, _: &MultiCertificate, _: &Digest) -> bool {
        self.0.fetch_add(1, Ordering::Relaxed);
        true
    }
}

fn certificate(new: u128) -> Certificate {
    Certificate {
        epoch: Epoch(1),
        counter: CounterId(0),
        previous: CounterValue(new - 1),
        new: CounterValue(new),
        proof: Proof::Signature([7; 64]),
    }
}

#[test]
fn a_good_certificate_is_computed_once_and_a_bad_one_each_time() {
    let counting = Counting::default();
    let verifier = Remembering::new(&counting);
    for _ in 0..3 {
        assert!(verifier.verify(1, &certificate(5), &[1; 32]));
    }
    assert_eq!(counting.0.load(Ordering::Relaxed), 1);
    for _ in 0..3 {
        assert!(!verifier.verify(1, &certificate(5), &[2; 32]));
    }
    assert_eq!(counting.0.load(Ordering::Relaxed), 4);
}

#[test]
fn what_differs_in_anything_is_another_certificate() {
    let counting = Counting::default();
    let verifier = Remembering::new(&counting);
    assert!(verifier.verify(1, &certificate(5), &[1; 32]));
    let good = certificate(5);
    let others = [
        Certificate { epoch: Epoch(2), ..good.clone() },
        Certificate { counter: CounterId(1), ..good.clone() },
        Certificate { previous: CounterValue(3), ..good.clone() },
        Certificate { new: CounterValue(6), ..good.clone() },
        Certificate { proof: Proof::Signature([8; 64]), ..good.clone() },
        Certificate { proof: Proof::Mac([7; 32]), ..good.clone() },
    ];
    for (count, other) in (2..).zip(&others) {
        verifier.verify(1, other, &[1; 32]);
        assert_eq!(counting.0.load(Ordering::Relaxed), count, "{other:?}");
    }
    assert!(!verifier.verify(2, &good, &[1; 32]), "another replica's");
    assert!(!verifier.verify(1, &good, &[2; 32]), "for another digest");
}

#[test]
fn what_is_remembered_is_bounded_and_bad_ones_push_nothing_out() {
    let counting = Counting::default();
    let verifier = Remembering::new(&counting);
    verifier.verify(1, &certificate(1), &[1; 32]);
    assert!((0..100_000).all(|number| !verifier.verify(1, &certificate(2 + number), &[2; 32])));
    let asked = counting.0.load(Ordering::Relaxed);
    verifier.verify(1, &certificate(1), &[1; 32]);
    assert_eq!(counting.0.load(Ordering::Relaxed), asked, "still known");
    assert!((0..40_000).all(|number| verifier.verify(1, &certificate(2 + number), &[1; 32])));
    verifier.verify(1, &certificate(1), &[1; 32]);
    assert_eq!(counting.0.load(Ordering::Relaxed), asked + 40_001, "the oldest gave way");
}

#[test]
fn what_was_found_good_in_a_batch_is_known_and_nothing_else_is() {
    let counting = Counting::default();
    let verifier = Remembering::new(&counting);
    assert!(verifier.signed(1, &certificate(5), &[1; 32]).is_some());
    assert!(verifier.signed(1, &certificate(5), &[1; 32]).is_some(), "naming it says nothing of it");
    verifier.found_good(1, &certificate(5), &[1; 32]);
    assert!(verifier.signed(1, &certificate(5), &[1; 32]).is_none());
    assert!(verifier.verify(1, &certificate(5), &[1; 32]));
    assert_eq!(counting.0.load(Ordering::Relaxed), 0, "it is not checked again");
    assert!(verifier.signed(2, &certificate(5), &[1; 32]).is_some(), "another replica's");
    assert!(verifier.signed(1, &certificate(6), &[1; 32]).is_some(), "another value");
    assert!(!verifier.verify(1, &certificate(5), &[2; 32]), "another digest");
}
