//! Keys and their verifying sides.

use crate::support::{IDENTITY, mac_key};
use troth_trusted::certificate::statement;
use troth_trusted::{
    Certifier, CounterId, CounterValue, MacKey, Proof, SignatureVerifier, SigningKey, TrustedCore, Verifier,
    VolatileStore,
};

#[test]
fn ed25519_agrees_with_rfc_8032() {
    // RFC 8032 §7.1, TEST 1: the public key of a seed.
    let seed: [u8; 32] = hex("9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60");
    let public: [u8; 32] = hex("d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a");
    let verifier = SigningKey::new(&seed).verifier();
    assert_eq!(verifier.to_bytes(), public);
    assert_eq!(SignatureVerifier::from_bytes(&public), Some(verifier.clone()));
    // TEST 1 continued: the signature of the empty message.
    let signature: [u8; 64] = hex(concat!(
        "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e06522490155",
        "5fb8821590a33bacc61e39701cf9b46bd25bf5f0595bbe24655141438e7a100b"
    ));
    assert!(verifier.proves(b"", &Proof::Signature(signature)));
    assert!(!verifier.proves(b"x", &Proof::Signature(signature)));
}

#[test]
fn a_public_key_off_the_curve_is_refused() {
    let off = (0..=255).find(|&byte| SignatureVerifier::from_bytes(&[byte; 32]).is_none());
    assert!(off.is_some(), "about half of all strings are no point");
}

#[test]
fn another_key_proves_nothing() {
    let mut core = TrustedCore::start(IDENTITY, Certifier::Mac(mac_key()), VolatileStore);
    let certificate = core.attest(CounterId(0), CounterValue(0), CounterValue(1), &[1; 32]).expect("a move");
    assert!(!MacKey::new(&[8; 32]).verifier().verify(&IDENTITY, &certificate, &[1; 32]));
    let key = SigningKey::new(&[1; 32]);
    let mut core = TrustedCore::start(IDENTITY, Certifier::Signature(key.clone()), VolatileStore);
    let certificate = core.attest(CounterId(0), CounterValue(0), CounterValue(1), &[1; 32]).expect("a move");
    assert!(key.verifier().verify(&IDENTITY, &certificate, &[1; 32]));
    assert!(!SigningKey::new(&[2; 32]).verifier().verify(&IDENTITY, &certificate, &[1; 32]));
}

/// Whoever checks many signatures at once checks those of the same bytes.
#[test]
fn the_statement_is_what_the_proof_covers() {
    for certifier in [Certifier::Mac(mac_key()), Certifier::Signature(SigningKey::new(&[1; 32]))] {
        let mut core = TrustedCore::start(IDENTITY, certifier, VolatileStore);
        let certificate =
            core.attest(CounterId(0), CounterValue(0), CounterValue(1), &[1; 32]).expect("a move");
        let (covered, other) =
            (statement(&IDENTITY, &certificate, &[1; 32]), statement(&IDENTITY, &certificate, &[2; 32]));
        let proves = |statement: &[u8]| match certificate.proof {
            Proof::Mac(_) => mac_key().verifier().proves(statement, &certificate.proof),
            Proof::Signature(_) => SigningKey::new(&[1; 32]).verifier().proves(statement, &certificate.proof),
        };
        assert!(proves(&covered) && !proves(&other));
    }
}

#[test]
fn secrets_are_not_printed() {
    assert_eq!(format!("{:?}", mac_key()), "MacKey(secret)");
    assert_eq!(format!("{:?}", SigningKey::new(&[7; 32])), "SigningKey(secret)");
    assert_eq!(format!("{:?}", mac_key().verifier()), "MacVerifier(MacKey(secret))");
}

fn hex<const N: usize>(text: &str) -> [u8; N] {
    assert_eq!(text.len(), 2 * N);
    core::array::from_fn(|i| u8::from_str_radix(&text[2 * i..2 * i + 2], 16).expect("hex digits"))
}
