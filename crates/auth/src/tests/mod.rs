//! Signatures alone and in batches, and the checks on frames.
mod attestations;

use crate::*;
use bytes::Bytes;
use std::collections::BTreeMap;
use std::sync::Arc;
use troth_trusted::certificate::ONE;
use troth_trusted_host::Statement;
use troth_types::{ClientId, Digest, Frame, FrameDraft, FrameProof, GroupId, Limits, ReplicaId, Signature};

fn signer(seed: u8) -> Ed25519Signer {
    Ed25519Signer::from_seed([seed; 32])
}

fn frame(group: u8, client: u64, signer: &Ed25519Signer, operation: &'static [u8]) -> Arc<Frame> {
    let draft = FrameDraft {
        group: GroupId([group; 16]),
        client: ClientId(client),
        number: 1,
        events_seen: 0,
        operations: vec![Bytes::from_static(operation)],
    };
    let signature = signer.sign(&draft.signing_digest());
    Arc::new(draft.sign(signature))
}

fn verifier() -> FrameVerifier {
    let clients =
        BTreeMap::from([(ClientId(1), signer(1).public_key()), (ClientId(2), signer(2).public_key())]);
    let directory = Directory::of_clients(GroupId([9; 16]), clients);
    FrameVerifier::new(Arc::new(directory), Arc::new(Ed25519), Limits { frame_bytes: 256, ..Limits::DEFAULT })
}

#[test]
fn a_batch_says_of_each_frame_what_a_single_check_says() {
    let mut tampered = Frame::clone(&frame(9, 1, &signer(1), b"a"));
    let other = frame(9, 1, &signer(1), b"b");
    tampered = FrameDraft {
        group: tampered.group(),
        client: tampered.client(),
        number: tampered.number(),
        events_seen: 0,
        operations: other.operations().iter().collect(),
    }
    .sign(*tampered.signature().expect("signed"));
    let large: &'static [u8] = &[0; 300];
    let frames = vec![
        frame(9, 1, &signer(1), b"good"),
        frame(9, 2, &signer(1), b"another client's key"),
        frame(8, 1, &signer(1), b"another group"),
        frame(9, 7, &signer(1), b"unknown client"),
        frame(9, 1, &signer(1), large),
        Arc::new(tampered),
        frame(9, 2, &signer(2), b"good too"),
    ];
    let expected = [
        Ok(()),
        Err(FrameError::BadSignature),
        Err(FrameError::OtherGroup),
        Err(FrameError::UnknownClient),
        Err(FrameError::TooLarge),
        Err(FrameError::BadSignature),
        Ok(()),
    ];
    let single: Vec<_> = frames.iter().map(|frame| verifier().verify(frame.clone()).map(|_| ())).collect();
    let batch: Vec<_> = verifier().verify_all(frames).into_iter().map(|answer| answer.map(|_| ())).collect();
    assert_eq!(single, expected);
    assert_eq!(batch, expected);
}

#[test]
fn a_batch_of_good_signatures_passes_and_one_bad_one_is_found() {
    let digest = Digest([3; 32]);
    let mut checks: Vec<Check> = (0..20)
        .map(|seed| {
            let signer = signer(seed);
            Check { key: signer.public_key(), digest, signature: signer.sign(&digest) }
        })
        .collect();
    assert_eq!(Ed25519.verify_all(&checks), vec![true; 20]);
    checks[7].signature = Signature([1; 64]);
    checks[11].key = PublicKey([0xff; 32]);
    let answers = Ed25519.verify_all(&checks);
    for (place, answer) in answers.into_iter().enumerate() {
        assert_eq!(answer, place != 7 && place != 11, "signature {place}");
    }
}

/// What a component with this key signs, and its signature.
fn statement(seed: u8, byte: u8) -> Statement {
    let key = ed25519_zebra::SigningKey::from([seed; 32]);
    let bytes = [byte; ONE];
    let signature = key.sign(&bytes).to_bytes();
    Statement { key: ed25519_zebra::VerificationKeyBytes::from(&key).into(), bytes, signature }
}

#[test]
fn a_batch_of_frames_and_statements_says_of_each_what_a_single_check_says() {
    let good_frames = || vec![frame(9, 1, &signer(1), b"good"), frame(9, 2, &signer(2), b"good too")];
    let bad_frames = || vec![frame(9, 1, &signer(1), b"good"), frame(9, 2, &signer(1), b"another's key")];
    let good = [statement(5, 1), statement(6, 2)];
    let forged = [statement(5, 1), Statement { key: statement(6, 2).key, ..statement(5, 2) }];
    let no_key = [Statement { key: [0xff; 32], ..statement(5, 1) }];
    let verifier = verifier();
    let says = |frames: Vec<Arc<Frame>>, statements: &[Statement]| {
        let (frames, statements) = verifier.verify_beside(frames, statements);
        (frames.iter().map(Result::is_ok).collect::<Vec<_>>(), statements)
    };
    assert_eq!(says(good_frames(), &good), (vec![true, true], vec![true, true]));
    assert_eq!(says(bad_frames(), &good), (vec![true, false], vec![true, true]));
    assert_eq!(says(good_frames(), &forged), (vec![true, true], vec![true, false]));
    assert_eq!(says(bad_frames(), &forged), (vec![true, false], vec![true, false]));
    assert_eq!(says(good_frames(), &no_key), (vec![true, true], vec![false]));
    assert_eq!(says(Vec::new(), &forged), (Vec::new(), vec![true, false]));
    assert_eq!(says(Vec::new(), &good[..1]), (Vec::new(), vec![true]));
    assert_eq!(says(good_frames(), &[]), (vec![true, true], Vec::new()));
}

/// The keys of one replica, by the client's number.
#[derive(Debug)]
struct Shared(u8);

impl PairKeys for Shared {
    fn with(&self, client: ClientId, _: &[u8; 32]) -> Option<PairKey> {
        Some(pair(client.0 as u8, self.0))
    }
}

fn pair(client: u8, replica: u8) -> PairKey {
    PairKey::new(&[client * 16 + replica; 32])
}

#[test]
fn a_replica_finds_its_own_tag_right_or_wrong_and_takes_none_where_frames_are_signed() {
    let draft = |client| FrameDraft {
        group: GroupId([9; 16]),
        client: ClientId(client),
        number: 1,
        events_seen: 0,
        operations: vec![Bytes::from_static(b"operation")],
    };
    let tagged = |client: u64, spoilt: Option<usize>| {
        let keys = Authenticators::new((0..4).map(|replica| pair(1, replica)));
        let mut tags = keys.of(&draft(client).signing_digest());
        if let Some(at) = spoilt {
            tags[at].0[15] ^= 1;
        }
        Arc::new(draft(client).prove(FrameProof::Authenticator(tags)))
    };
    let of = |replica: u8| verifier().with_pairs(ReplicaId(replica.into()), Arc::new(Shared(replica)));
    let says = |verifier: FrameVerifier, frame: &Arc<Frame>| verifier.verify(frame.clone()).map(|_| ());
    assert_eq!(says(of(2), &tagged(1, None)), Ok(()));
    assert_eq!(says(of(2), &tagged(1, Some(2))), Err(FrameError::BadTag));
    assert_eq!(says(of(2), &tagged(1, Some(1))), Ok(()), "the tag of another");
    assert_eq!(says(of(2), &tagged(2, None)), Err(FrameError::BadTag), "with another client's keys");
    assert_eq!(says(of(7), &tagged(1, None)), Err(FrameError::BadTag), "there is none for it");
    assert_eq!(says(verifier(), &tagged(1, None)), Err(FrameError::NotSigned));
    let mixed = vec![frame(9, 1, &signer(1), b"signed"), tagged(1, None), tagged(1, Some(2))];
    let answers: Vec<_> = of(2).verify_all(mixed).into_iter().map(|answer| answer.map(|_| ())).collect();
    assert_eq!(answers, [Ok(()), Ok(()), Err(FrameError::BadTag)]);
}
