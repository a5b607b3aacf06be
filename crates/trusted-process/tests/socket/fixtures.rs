//! The format of the frames, pinned: every kind of call, answer and greeting, with its bytes.

use crate::support::{IDENTITY, attest, attest_multi, read, resume, step};
use troth_trusted::{
    Certificate, CounterId, CounterValue, Epoch, Moves, MultiCertificate, Proof, Refusal, Resumed,
};
use troth_trusted_host::{Answer, Call};
use troth_trusted_process::wire::{
    Blobs, PREFIX, Reply, TurnedAway, VERSION, decode_answers, decode_beside, decode_blobs,
    decode_blobs_from, decode_calls, decode_done, decode_hello, decode_reply, encode_answers, encode_beside,
    encode_blobs, encode_blobs_from, encode_calls, encode_done, encode_hello, encode_reply,
};

/// Name and frame, one to a line. A changed line is a changed format: it needs a new version.
const FRAMES: &str = include_str!("frames-v3.txt");

fn calls() -> Vec<Call> {
    vec![
        attest(step(1, 2, u128::MAX), [0xd1; 32]),
        attest_multi(&[step(0, 1, 2), step(7, 1 << 64, 1 << 65)], [0xd2; 32]),
        resume(3),
        read(u16::MAX),
    ]
}

const BLOB: &[u8] = b"bodies";

fn blobs() -> Vec<Vec<u8>> {
    vec![BLOB.to_vec(), vec![], vec![0xe1; 3]]
}

fn certificate() -> Certificate {
    Certificate {
        epoch: Epoch(9),
        counter: CounterId(2),
        previous: CounterValue(3),
        new: CounterValue::new(1, 4),
        proof: Proof::Mac([0xa1; 32]),
    }
}

fn multi_certificate() -> MultiCertificate {
    let moves = Moves::new(&[step(0, 1, 2), step(7, 3, 4)]).expect("two moves");
    MultiCertificate { epoch: Epoch(u64::MAX), moves, proof: Proof::Signature([0xb1; 64]) }
}

fn answers() -> Vec<Answer> {
    let one = Resumed::One { certificate: certificate(), digest: [0xd3; 32] };
    let multi = Resumed::Multi { certificate: multi_certificate(), digest: [0xd4; 32] };
    let mut answers = vec![
        Answer::Attested(certificate()),
        Answer::Attested(Certificate { proof: Proof::Signature([0xb2; 64]), ..certificate() }),
        Answer::AttestedMulti(Box::new(multi_certificate())),
        Answer::Value(CounterValue(5)),
    ];
    answers.extend(
        [Resumed::Unmoved, one, multi, Resumed::Superseded].map(|last| Answer::Resumed(Box::new(last))),
    );
    let refusals = [
        Refusal::UnknownCounter(CounterId(8)),
        Refusal::Elsewhere { counter: CounterId(1), current: CounterValue(6) },
        Refusal::NotAhead { counter: CounterId(2), current: CounterValue(7) },
        Refusal::BadMoves,
        Refusal::Halted,
        Refusal::NoSpace,
    ];
    answers.extend(refusals.map(Answer::Refused));
    answers
}

fn replies() -> [(&'static str, Reply); 5] {
    [
        ("welcome", Reply::Welcome(IDENTITY)),
        ("busy", Reply::TurnedAway(TurnedAway::Busy)),
        ("not-permitted", Reply::TurnedAway(TurnedAway::NotPermitted)),
        ("other-version", Reply::TurnedAway(TurnedAway::OtherVersion(258))),
        ("malformed", Reply::TurnedAway(TurnedAway::Malformed)),
    ]
}

fn encoded(encode: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut out = Vec::new();
    encode(&mut out);
    out
}

fn frames() -> Vec<(&'static str, Vec<u8>)> {
    let mut frames = vec![
        ("hello", encoded(|out| encode_hello(VERSION, out))),
        ("calls", encoded(|out| encode_calls(calls().iter(), out))),
        ("answers", encoded(|out| encode_answers(&answers(), out))),
        ("no-calls", encoded(|out| encode_calls([].iter(), out))),
        ("no-answers", encoded(|out| encode_answers(&[], out))),
        ("beside", encoded(|out| encode_beside(&calls()[0], BLOB, out))),
        ("beside-multi", encoded(|out| encode_beside(&calls()[1], b"", out))),
        ("done", encoded(|out| encode_done(Some(&answers()[0]), out))),
        ("not-done", encoded(|out| encode_done(None, out))),
        ("blobs-from", encoded(|out| encode_blobs_from(258, out))),
        ("blobs", encoded(|out| encode_blobs(&blobs(), out))),
        ("no-blobs", encoded(|out| encode_blobs(&[], out))),
    ];
    frames.extend(replies().map(|(name, reply)| (name, encoded(|out| encode_reply(&reply, out)))));
    frames
}

#[test]
fn frames_are_as_they_always_were() {
    let line = |(name, bytes): (&str, Vec<u8>)| {
        let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        format!("{name} {hex}\n")
    };
    let now: String = frames().into_iter().map(line).collect();
    assert!(now == FRAMES, "the frames are now:\n{now}");
}

#[test]
fn frames_are_read_as_they_were_written() {
    for (name, bytes) in frames() {
        let (prefix, frame) = bytes.split_first_chunk::<PREFIX>().expect("a prefix");
        assert_eq!(u32::from_be_bytes(*prefix) as usize, frame.len(), "{name}");
        match name {
            "hello" => assert_eq!(decode_hello(frame), Ok(VERSION)),
            "calls" => assert_eq!(decode_calls(frame), Ok(calls())),
            "answers" => assert_eq!(decode_answers(frame), Ok(answers())),
            "no-calls" => assert_eq!(decode_calls(frame), Ok(vec![])),
            "no-answers" => assert_eq!(decode_answers(frame), Ok(vec![])),
            "beside" => assert_eq!(decode_beside(frame), Ok((calls()[0].clone(), BLOB))),
            "beside-multi" => assert_eq!(decode_beside(frame), Ok((calls()[1].clone(), &b""[..]))),
            "done" => assert_eq!(decode_done(frame), Ok(Some(answers()[0].clone()))),
            "not-done" => assert_eq!(decode_done(frame), Ok(None)),
            "blobs-from" => assert_eq!(decode_blobs_from(frame), Ok(258)),
            "blobs" => assert_eq!(decode_blobs(frame), Ok(Blobs { blobs: blobs(), more: false })),
            "no-blobs" => assert_eq!(decode_blobs(frame), Ok(Blobs::default())),
            _ => {
                let (_, reply) = replies().into_iter().find(|(known, _)| *known == name).expect("a reply");
                assert_eq!(decode_reply(frame), Ok(reply), "{name}");
            }
        }
    }
}
