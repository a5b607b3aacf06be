//! The format of the frames, pinned: every kind of call, answer and greeting, with its bytes.

use crate::support::{IDENTITY, attest, attest_multi, read, resume, step};
use troth_trusted::a2m::{
    Answer as LogAnswer, Attestation, Claim, Content, LogId, LogRefusal, Operation, Request as LogRequest,
    Unfit,
};
use troth_trusted::{
    Certificate, CounterId, CounterValue, Epoch, Moves, MultiCertificate, Proof, Refusal, Resumed,
};
use troth_trusted_host::{Answer, Call};
use troth_trusted_process::wire::{
    Blobs, PREFIX, Reply, TurnedAway, VERSION, decode_answers, decode_beside, decode_blobs,
    decode_blobs_from, decode_calls, decode_done, decode_hello, decode_log_answers, decode_log_call,
    decode_reply, encode_answers, encode_beside, encode_blobs, encode_blobs_from, encode_calls, encode_done,
    encode_hello, encode_log_answers, encode_log_call, encode_reply,
};

/// Name and frame, one to a line. A changed line is a changed format: it needs a new version.
const FRAMES: &str = include_str!("frames-v4.txt");

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

fn operations() -> Vec<Operation> {
    let (log, slot, value, nonce) = (LogId(258), CounterValue::new(1, 2), [0xd5; 32], [0xc1; 32]);
    vec![
        Operation::Append { log, slot, value, nonce: None },
        Operation::Append { log, slot, value, nonce: Some(nonce) },
        Operation::Advance { log, slot, previous: [0xd6; 32], value, nonce: None },
        Operation::Advance { log, slot, previous: [0xd6; 32], value, nonce: Some(nonce) },
        Operation::Truncate { log, slot },
        Operation::Lookup { log, slot, nonce },
        Operation::LookupFor { log, slot, nonce, peer: [0xc3; 32] },
        Operation::End { log, nonce },
    ]
}

fn log_answers() -> Vec<LogAnswer> {
    let (value, digest, end) = ([0xd7; 32], [0xd8; 32], CounterValue(9));
    let attested = |request, content, proof| {
        let claim = Claim { request, log: LogId(1), slot: CounterValue(8), nonce: [0xc2; 32], content };
        LogAnswer::Attested(Attestation { epoch: Epoch(3), claim, proof })
    };
    vec![
        LogAnswer::Done,
        attested(LogRequest::Lookup, Content::Assigned { value, digest }, Proof::Mac([0xa2; 32])),
        attested(LogRequest::End, Content::Skipped { end, value, digest }, Proof::Signature([0xb3; 64])),
        attested(LogRequest::Lookup, Content::Unassigned { high: end }, Proof::Mac([0xa3; 32])),
        attested(LogRequest::End, Content::Forgotten { low: end }, Proof::Mac([0xa4; 32])),
    ]
}

fn log_refusals() -> [(&'static str, LogRefusal); 9] {
    let (low, high) = (CounterValue(3), CounterValue(4));
    let unfit = |why| LogRefusal::Operation { index: 258, why };
    [
        ("no-such-log", unfit(Unfit::NoSuchLog)),
        ("log-elsewhere", unfit(Unfit::Elsewhere { high })),
        ("log-not-ahead", unfit(Unfit::NotAhead { high })),
        ("log-spent", unfit(Unfit::Spent)),
        ("log-full", unfit(Unfit::Full)),
        ("outside-log", unfit(Unfit::OutsideLog { low, high })),
        ("log-too-many", LogRefusal::TooMany),
        ("log-no-space", LogRefusal::NoSpace),
        ("log-halted", LogRefusal::Halted),
    ]
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
    frames.extend([
        ("log-call", encoded(|out| encode_log_call(&operations(), out))),
        ("log-answers", encoded(|out| encode_log_answers(&Ok(log_answers()), out))),
        ("no-log-answers", encoded(|out| encode_log_answers(&Ok(vec![]), out))),
    ]);
    frames
        .extend(log_refusals().map(|(name, why)| (name, encoded(|out| encode_log_answers(&Err(why), out)))));
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
            "log-call" => assert_eq!(decode_log_call(frame), Ok(operations())),
            "log-answers" => assert_eq!(decode_log_answers(frame), Ok(Ok(log_answers()))),
            "no-log-answers" => assert_eq!(decode_log_answers(frame), Ok(Ok(vec![]))),
            _ if log_refusals().iter().any(|(known, _)| *known == name) => {
                let refusal =
                    log_refusals().into_iter().find(|(known, _)| *known == name).expect("a refusal");
                assert_eq!(decode_log_answers(frame), Ok(Err(refusal.1)), "{name}");
            }
            _ => {
                let (_, reply) = replies().into_iter().find(|(known, _)| *known == name).expect("a reply");
                assert_eq!(decode_reply(frame), Ok(reply), "{name}");
            }
        }
    }
}
