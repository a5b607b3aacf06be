//! What an attestation covers, rebuilt by hand, and what it does not pass for.

use super::*;
use hmac::{Hmac, KeyInit, Mac};
use sha2::{Digest as _, Sha256};
use troth_trusted::a2m::Claim;
use troth_trusted::a2m::Request::{End, Lookup};
use troth_trusted::a2m::attestation::{STATEMENT, statement};
use troth_trusted::certificate;
use troth_trusted::{
    Certificate, CounterId, Epoch, Identity, MacVerifier, Proof, RunProof, SigningKey, TrustedCore, Verifier,
};

const ALONE: &RunProof = &RunProof::SINGLE;

fn verifier() -> MacVerifier {
    mac_key().verifier()
}

fn busy(certifier: Certifier) -> Component {
    let mut a2m = A2m::start(IDENTITY, certifier, VolatileStore, room(4));
    done(&mut a2m, &[append(M, 1, 1), append(M, 2, 2), advance(M, 6, [8; 32], 6), truncate(M, 2)]);
    a2m
}

fn by_hand(tag: u8, number: u128, kind: u8, at: u128, value: Digest, digest: Digest) -> Vec<u8> {
    let mut fields = b"troth-a2m-fields/v1".to_vec();
    fields.extend(b"a group of three");
    fields.extend([0x01, 0x02]);
    fields.extend([0x03, 0x04, 0x05, 0x06, 0x07, 0x08, 0x09, 0x0a]);
    fields.push(tag);
    fields.extend([0, 5]);
    fields.extend(number.to_be_bytes());
    fields.extend(Z);
    fields.push(kind);
    fields.extend(at.to_be_bytes());
    fields.extend(value);
    fields.extend(digest);
    [b"troth-a2m/v1".as_slice(), &Sha256::digest(fields)].concat()
}

#[test]
fn an_attestation_covers_these_bytes() {
    covers!("A2M-A1", "A2M-A4");
    let mut a2m = busy(Certifier::Mac(mac_key()));
    let entry = *a2m.logs().get(M).expect("a log").entries().last().expect("an entry");
    let (value, digest) = (entry.value, entry.digest);
    let second = a2m.logs().get(M).expect("a log").entries()[0];
    for (asked, bytes) in [
        (lookup(M, 2), by_hand(1, 2, 1, 2, second.value, second.digest)),
        (lookup(M, 6), by_hand(1, 6, 1, 6, value, digest)),
        (lookup(M, 4), by_hand(1, 4, 2, 6, value, digest)),
        (lookup(M, 9), by_hand(1, 9, 3, 6, ZERO, ZERO)),
        (lookup(M, 1), by_hand(1, 1, 4, 2, ZERO, ZERO)),
        (end(M), by_hand(2, 6, 1, 6, value, digest)),
    ] {
        let made = attested(&mut a2m, asked);
        assert_eq!(statement(&IDENTITY, &made.claim).as_slice(), bytes, "{asked:?}");
        let mac = Hmac::<Sha256>::new_from_slice(&[7; 32]).expect("any length is a key");
        assert_eq!(made.proof, Proof::Mac(mac.chain_update(&bytes).finalize().into_bytes().into()));
        assert_eq!((made.epoch, made.claim.log, made.claim.nonce), (IDENTITY.epoch, M, Z));
    }
}

#[test]
fn the_answer_verifies_for_what_was_asked_and_for_nothing_else() {
    covers!("A2M-A2", "A2M-A3");
    let mut a2m = busy(Certifier::Mac(mac_key()));
    let looked = attested(&mut a2m, lookup(M, 6));
    let ended = attested(&mut a2m, end(M));
    let content = content(&a2m, M, 6);
    let lookup = |made: &Attestation, identity: &Identity, log, number, nonce| {
        made.verify_lookup(&verifier(), identity, log, slot(number), nonce)
    };
    assert_eq!(lookup(&looked, &IDENTITY, M, 6, &Z), Some(content));
    assert_eq!(ended.verify_end(&verifier(), &IDENTITY, M, &Z, ALONE), Some((slot(6), content)));
    // Of the same slot and with the same nonce, but not what was asked.
    assert_eq!(lookup(&ended, &IDENTITY, M, 6, &Z), None);
    assert_eq!(looked.verify_end(&verifier(), &IDENTITY, M, &Z, ALONE), None);
    assert_eq!(lookup(&looked, &IDENTITY, Q, 6, &Z), None);
    assert_eq!(lookup(&looked, &IDENTITY, M, 5, &Z), None);
    assert_eq!(lookup(&looked, &IDENTITY, M, 6, &ZERO), None);
    assert_eq!(ended.verify_end(&verifier(), &IDENTITY, Q, &Z, ALONE), None);
    assert_eq!(ended.verify_end(&verifier(), &IDENTITY, M, &ZERO, ALONE), None);
    for other in others() {
        assert_eq!(lookup(&looked, &other, M, 6, &Z), None);
        assert_eq!(ended.verify_end(&verifier(), &other, M, &Z, ALONE), None);
        // Its epoch is a field of its own; rewriting it to please the verifier is no help.
        let rewritten = Attestation { epoch: other.epoch, ..looked.clone() };
        assert_eq!(lookup(&rewritten, &other, M, 6, &Z), None);
    }
    let epoch = Attestation { epoch: Epoch(0), ..looked.clone() };
    assert_eq!(lookup(&epoch, &IDENTITY, M, 6, &Z), None, "the epoch that it says is not the configured one");
}

/// Every identity that differs from [`IDENTITY`] in one field.
fn others() -> [Identity; 3] {
    let mut group = IDENTITY.group;
    group[0] ^= 1;
    [
        Identity { group, ..IDENTITY },
        Identity { replica: IDENTITY.replica ^ 1, ..IDENTITY },
        Identity { epoch: Epoch(IDENTITY.epoch.0 + 1), ..IDENTITY },
    ]
}

/// Claims that differ from a given one in one field.
fn altered(claim: &Claim) -> Vec<Claim> {
    let mut all = vec![
        Claim { request: if claim.request == Lookup { End } else { Lookup }, ..*claim },
        Claim { log: LogId(claim.log.0 ^ 0x100), ..*claim },
        Claim { slot: slot(claim.slot.0 ^ 1), ..*claim },
        Claim { slot: slot(claim.slot.0 ^ (1 << 127)), ..*claim },
        Claim { nonce: ZERO, ..*claim },
    ];
    let (value, digest, at) = ([6; 32], [7; 32], slot(6));
    for content in [
        Content::Assigned { value, digest },
        Content::Skipped { end: at, value, digest },
        Content::Unassigned { high: at },
        Content::Forgotten { low: at },
    ] {
        if content != claim.content {
            all.push(Claim { content, ..*claim });
        }
    }
    all
}

fn assert_bound(certifier: Certifier, verifier: &impl Verifier) {
    let mut a2m = busy(certifier);
    for asked in [lookup(M, 2), lookup(M, 4), lookup(M, 7), lookup(M, 1), end(M)] {
        let made = attested(&mut a2m, asked);
        let proves = |claim: &Claim, proof: &Proof| verifier.proves(&statement(&IDENTITY, claim), proof);
        assert!(proves(&made.claim, &made.proof));
        for claim in altered(&made.claim) {
            assert!(!proves(&claim, &made.proof), "{made:?} passes for {claim:?}");
        }
        for proof in [Proof::Mac([0; 32]), Proof::Signature([0; 64])] {
            assert!(!proves(&made.claim, &proof));
        }
        for other in others() {
            assert!(!verifier.proves(&statement(&other, &made.claim), &made.proof));
        }
    }
}

#[test]
fn a_mac_binds_every_field() {
    covers!("A2M-A1");
    assert_bound(Certifier::Mac(mac_key()), &verifier());
}

#[test]
fn a_signature_binds_every_field_and_needs_no_secret_to_check() {
    covers!("A2M-A1");
    let key = SigningKey::new(&[9; 32]);
    let public = key.verifier();
    assert_bound(Certifier::Signature(key.clone()), &public);
    let mut a2m = busy(Certifier::Signature(key));
    let made = attested(&mut a2m, end(M));
    assert!(made.verify_end(&public, &IDENTITY, M, &Z, ALONE).is_some());
    assert_eq!(made.verify_end(&SigningKey::new(&[1; 32]).verifier(), &IDENTITY, M, &Z, ALONE), None);
    assert_eq!(made.verify_end(&verifier(), &IDENTITY, M, &Z, ALONE), None);
}

/// Under one key, whatever one kind of statement says is proved by none of the other kind.
fn assert_apart(certifier: Certifier, verifier: &impl Verifier) {
    let mut counters = TrustedCore::start(IDENTITY, certifier.clone(), VolatileStore);
    let mut a2m = busy(certifier);
    let looked = attested(&mut a2m, lookup(M, 2));
    let stated = statement(&IDENTITY, &looked.claim);
    // The counter certifies everything about the attestation that could be passed to it as a digest.
    let hash: Digest = stated[STATEMENT - 32..].try_into().expect("32 bytes");
    let digests = [hash, Sha256::digest(stated).into(), looked.claim.nonce, [2; 32]];
    for (number, digest) in (0..).zip(digests) {
        let (previous, new) = (CounterValue(number), CounterValue(number + 1));
        let certificate = counters.attest(CounterId(5), previous, new, &digest).expect("a move");
        let forged = Attestation { proof: certificate.proof.clone(), ..looked.clone() };
        assert_eq!(forged.verify_lookup(verifier, &IDENTITY, M, slot(2), &Z), None);
        let forged = Certificate { proof: looked.proof.clone(), ..certificate.clone() };
        assert!(!verifier.verify(&IDENTITY, &forged, &digest));
        // Proofs are made over whole statements, and no statement of one kind is one of the other.
        let counted = certificate::statement(&IDENTITY, &certificate, &digest);
        assert!(!counted.starts_with(b"troth-a2m/v1") && !stated.starts_with(b"troth-attest/v1"));
        assert!(!verifier.proves(&counted, &looked.proof) && !verifier.proves(&stated, &certificate.proof));
    }
}

#[test]
fn neither_attestation_nor_counter_certificate_stands_for_the_other() {
    covers!("A2M-A1");
    assert_apart(Certifier::Mac(mac_key()), &verifier());
    let key = SigningKey::new(&[9; 32]);
    let public = key.verifier();
    assert_apart(Certifier::Signature(key), &public);
}

#[test]
fn an_empty_log_is_attested_as_empty() {
    covers!("A2M-A3");
    let mut a2m = volatile(1);
    let made = attested(&mut a2m, end(Q));
    let nothing = Content::Forgotten { low: slot(0) };
    assert_eq!(made.verify_end(&verifier(), &IDENTITY, Q, &Z, ALONE), Some((slot(0), nothing)));
}

#[test]
fn the_same_question_gets_the_same_answer_until_the_log_changes() {
    let mut a2m = busy(Certifier::Mac(mac_key()));
    for asked in [lookup(M, 2), lookup(M, 4), lookup(M, 7), end(M)] {
        assert_eq!(attested(&mut a2m, asked), attested(&mut a2m, asked));
    }
    let (assigned, skipped) = (attested(&mut a2m, lookup(M, 6)), attested(&mut a2m, lookup(M, 4)));
    done(&mut a2m, &[append(M, 7, 7)]);
    assert_eq!(attested(&mut a2m, lookup(M, 6)), assigned);
    assert_eq!(attested(&mut a2m, lookup(M, 4)), skipped);
}
