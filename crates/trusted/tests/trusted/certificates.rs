//! The certified bytes, rebuilt here by hand and checked against what the component produced.

use crate::support::{IDENTITY, mac_key, moves, step, volatile_core};
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use troth_trusted::{
    Certificate, Certifier, CounterId, CounterValue, Digest, Epoch, Identity, Move, MultiCertificate, Proof,
    SigningKey, TrustedCore, Verifier, VolatileStore,
};

const DIGEST: Digest = [0xd1; 32];

fn tag(statement: &[u8]) -> Proof {
    let mac = Hmac::<Sha256>::new_from_slice(&[7; 32]).expect("any length is a key");
    Proof::Mac(mac.chain_update(statement).finalize().into_bytes().into())
}

fn head(kind: u8) -> Vec<u8> {
    let mut bytes = b"troth-attest/v1".to_vec();
    bytes.push(kind);
    bytes.extend(b"a group of three");
    bytes.extend([0x01, 0x02]);
    bytes.extend([0x03, 0x04, 0x05, 0x06, 0x07, 0x08, 0x09, 0x0a]);
    bytes
}

#[test]
fn one_move_is_certified_in_this_layout() {
    let previous = CounterValue::new(0x11, 0x22);
    let new = CounterValue::new(0x11, 0x23);
    let mut core = volatile_core();
    core.attest(CounterId(6), CounterValue(0), previous, &DIGEST).expect("a first move");
    let certificate = core.attest(CounterId(6), previous, new, &DIGEST).expect("a second move");
    let mut statement = head(1);
    statement.extend([0, 6]);
    statement.extend(previous.0.to_be_bytes());
    statement.extend(new.0.to_be_bytes());
    statement.extend(DIGEST);
    assert_eq!(certificate.proof, tag(&statement));
    assert_eq!(certificate.epoch, IDENTITY.epoch);
    assert_eq!(certificate.moved(), Move { counter: CounterId(6), previous, new });
    assert!(mac_key().verifier().verify(&IDENTITY, &certificate, &DIGEST));
}

#[test]
fn several_moves_are_certified_in_this_layout() {
    let together = moves(&[step(1, 0, 3), step(7, 0, u128::MAX)]);
    let certificate = volatile_core().attest_multi(&together, &DIGEST).expect("first moves");
    let mut statement = head(2);
    for counter in 0..8 {
        match counter {
            1 => {
                statement.push(1);
                statement.extend(0u128.to_be_bytes());
                statement.extend(3u128.to_be_bytes());
            }
            7 => {
                statement.push(1);
                statement.extend(0u128.to_be_bytes());
                statement.extend(u128::MAX.to_be_bytes());
            }
            _ => statement.extend([0; 33]),
        }
    }
    statement.extend(DIGEST);
    assert_eq!(certificate.proof, tag(&statement));
    assert_eq!((certificate.epoch, certificate.moves), (IDENTITY.epoch, together));
    assert!(mac_key().verifier().verify_multi(&IDENTITY, &certificate, &DIGEST));
}

/// Every identity that differs from [`IDENTITY`] in one field.
fn others() -> [Identity; 3] {
    let mut group = IDENTITY.group;
    group[15] ^= 1;
    [
        Identity { group, ..IDENTITY },
        Identity { replica: IDENTITY.replica ^ 1, ..IDENTITY },
        Identity { epoch: Epoch(IDENTITY.epoch.0 + 1), ..IDENTITY },
    ]
}

fn assert_bound(certifier: Certifier, verifier: &impl Verifier) {
    let mut core = TrustedCore::start(IDENTITY, certifier, VolatileStore);
    let one = core.attest(CounterId(0), CounterValue(0), CounterValue(1), &DIGEST).expect("a move");
    let together = moves(&[step(1, 0, 1), step(2, 0, 1)]);
    let multi = core.attest_multi(&together, &DIGEST).expect("two moves");
    assert!(verifier.verify(&IDENTITY, &one, &DIGEST));
    assert!(verifier.verify_multi(&IDENTITY, &multi, &DIGEST));
    assert!(!verifier.verify(&IDENTITY, &one, &[0; 32]));
    assert!(!verifier.verify_multi(&IDENTITY, &multi, &[0; 32]));
    for other in others() {
        assert!(!verifier.verify(&other, &one, &DIGEST));
        assert!(!verifier.verify_multi(&other, &multi, &DIGEST));
        // The certificate says an epoch of its own; rewriting it to please the verifier is no help.
        let one = Certificate { epoch: other.epoch, ..one.clone() };
        let multi = MultiCertificate { epoch: other.epoch, ..multi.clone() };
        assert!(!verifier.verify(&other, &one, &DIGEST));
        assert!(!verifier.verify_multi(&other, &multi, &DIGEST));
    }
    for field in [
        Certificate { epoch: Epoch(0), ..one.clone() },
        Certificate { counter: CounterId(1), ..one.clone() },
        Certificate { previous: CounterValue(2), ..one.clone() },
        Certificate { new: CounterValue(2), ..one.clone() },
        Certificate { proof: multi.proof.clone(), ..one.clone() },
        Certificate { proof: Proof::Mac([0; 32]), ..one.clone() },
        Certificate { proof: Proof::Signature([0; 64]), ..one.clone() },
    ] {
        assert!(!verifier.verify(&IDENTITY, &field, &DIGEST), "accepted {field:?}");
    }
    for field in [
        MultiCertificate { epoch: Epoch(0), ..multi.clone() },
        MultiCertificate { moves: moves(&[step(0, 0, 1), step(2, 0, 1)]), ..multi.clone() },
        MultiCertificate { moves: moves(&[step(1, 0, 2), step(2, 0, 1)]), ..multi.clone() },
        MultiCertificate { proof: one.proof.clone(), ..multi.clone() },
    ] {
        assert!(!verifier.verify_multi(&IDENTITY, &field, &DIGEST), "accepted {field:?}");
    }
}

#[test]
fn a_mac_binds_every_field() {
    assert_bound(Certifier::Mac(mac_key()), &mac_key().verifier());
}

#[test]
fn a_signature_binds_every_field() {
    let key = SigningKey::new(&[9; 32]);
    let verifier = key.verifier();
    assert_bound(Certifier::Signature(key), &verifier);
}
