//! Foreign bytes: refused without a panic, and read in one way only.

use crate::support::{attest, attest_multi, step};
use proptest::prelude::*;
use troth_trusted::a2m::{
    Answer as LogAnswer, Attestation, Claim, Content, LogId, MOST_OPERATIONS, Operation,
    Request as LogRequest,
};
use troth_trusted::{CounterValue, Epoch, Moves, MultiCertificate, Proof, Resumed};
use troth_trusted_host::Answer;
use troth_trusted_process::wire::{
    Blobs, Fault, MAX_BLOB, MAX_CALLS, MAX_FRAME, Malformed, PREFIX, Request, decode_answers, decode_beside,
    decode_blobs, decode_calls, decode_done, decode_hello, decode_log_answers, decode_log_call, decode_reply,
    decode_request, encode_answers, encode_beside, encode_blobs, encode_blobs_from, encode_calls,
    encode_done, encode_hello, encode_log_answers, encode_log_call, encode_reply, frame_length,
};

/// Decodes as everything. What is understood must be written back as the same bytes.
fn decode_all(frame: &[u8]) -> usize {
    let mut understood = 0;
    let mut back = Vec::new();
    if let Ok(request) = decode_request(frame) {
        match request {
            Request::Calls(calls) => encode_calls(calls.iter(), &mut back),
            Request::Beside(call, blob) => encode_beside(&call, blob, &mut back),
            Request::BlobsFrom(from) => encode_blobs_from(from, &mut back),
            Request::Logs(operations) => encode_log_call(&operations, &mut back),
        }
    } else if let Ok(answer) = decode_done(frame) {
        encode_done(answer.as_ref(), &mut back);
    } else if let Ok(Blobs { blobs, more }) = decode_blobs(frame) {
        // How many of the blobs a frame takes is for whoever sends it to decide.
        if !more {
            encode_blobs(&blobs, &mut back);
        }
    } else if let Ok(answers) = decode_answers(frame) {
        encode_answers(&answers, &mut back);
    } else if let Ok(answered) = decode_log_answers(frame) {
        encode_log_answers(&answered, &mut back);
    } else if let Ok(reply) = decode_reply(frame) {
        encode_reply(&reply, &mut back);
    }
    if !back.is_empty() {
        understood = 1;
        assert_eq!(&back[PREFIX..], frame, "a frame has two encodings");
    }
    understood + usize::from(decode_hello(frame).is_ok())
}

/// One call and one answer of each kind in small frames, to be damaged.
fn genuine() -> Vec<Vec<u8>> {
    include_str!("frames-v4.txt")
        .lines()
        .map(|line| {
            let hex = line.split(' ').nth(1).expect("name and frame");
            let bytes = hex.as_bytes().chunks(2).map(|pair| std::str::from_utf8(pair).expect("ASCII"));
            let bytes: Vec<u8> = bytes.map(|pair| u8::from_str_radix(pair, 16).expect("hex")).collect();
            bytes[PREFIX..].to_vec()
        })
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3_000))]

    #[test]
    fn random_bytes_never_panic(kind in any::<u8>(), bytes in proptest::collection::vec(any::<u8>(), 0..600)) {
        decode_all(&bytes);
        for kind in [kind, 1, 2, 3, 4, 5, 129, 130, 131, 132, 133, 134] {
            decode_all(&[&[kind][..], &bytes].concat());
            decode_all(&[&[kind, 1, kind % 6][..], &bytes].concat());
        }
        let _ = frame_length(&bytes);
    }

    #[test]
    fn damaged_frames_never_panic_and_have_one_encoding(
        which in any::<prop::sample::Index>(),
        changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
    ) {
        let genuine = genuine();
        let mut frame = which.get(&genuine).clone();
        for (at, byte) in changes {
            let at = at.index(frame.len());
            frame[at] = byte;
        }
        decode_all(&frame);
    }
}

#[test]
fn frames_cut_anywhere_or_with_more_behind_are_refused() {
    for frame in genuine() {
        assert_eq!(decode_all(&frame), 1);
        for length in 0..frame.len() {
            assert_eq!(decode_all(&frame[..length]), 0, "{length} of {} bytes", frame.len());
        }
        assert_eq!(decode_all(&[&frame[..], &[0]].concat()), 0);
    }
}

#[test]
fn sizes_are_refused_before_anything_is_read() {
    let malformed = |fault| Malformed { fault };
    let too_many = MAX_CALLS as u8 + 1;
    let count = malformed(Fault::Count(MAX_CALLS + 1));
    assert_eq!(decode_calls(&[2, too_many]), Err(count));
    assert_eq!(decode_answers(&[130, too_many]), Err(count));
    let [high, low] = (MOST_OPERATIONS as u16 + 1).to_be_bytes();
    let operations = malformed(Fault::Operations(MOST_OPERATIONS + 1));
    assert_eq!(decode_log_call(&[5, high, low]), Err(operations));
    assert_eq!(decode_log_answers(&[134, 1, high, low]), Err(operations));
    assert_eq!(decode_log_answers(&[134, 0, 1, high, low, 1]), Err(operations));
    let too_long = malformed(Fault::TooLong(MAX_FRAME + 1));
    assert_eq!(decode_calls(&vec![2; MAX_FRAME + 1]), Err(too_long));
    assert_eq!(frame_length(&[0xff; 4]), Err(malformed(Fault::TooLong(u32::MAX as usize))));
    let longest = (MAX_FRAME as u32).to_be_bytes();
    assert_eq!(frame_length(&longest), Ok(Some(PREFIX + MAX_FRAME)));
    assert_eq!(frame_length(&longest[..3]), Ok(None));
    let nine_moves = [&[2, 1, 2, 9][..], &[0; 9 * 34 + 32]].concat();
    assert_eq!(decode_calls(&nine_moves), Err(malformed(Fault::Moves)));
}

#[test]
fn a_blob_is_bounded_and_beside_a_move() {
    let malformed = |fault| Malformed { fault };
    let call = attest(step(0, 0, 1), [1; 32]);
    let mut out = Vec::new();
    encode_beside(&call, &[7; MAX_BLOB], &mut out);
    let longest = out.split_off(PREFIX);
    assert_eq!(decode_beside(&longest), Ok((call.clone(), &[7; MAX_BLOB][..])));
    // The length stands before the blob.
    let at = longest.len() - MAX_BLOB - 2;
    let mut longer = longest.clone();
    longer[at..at + 2].copy_from_slice(&(MAX_BLOB as u16 + 1).to_be_bytes());
    longer.push(7);
    assert_eq!(decode_beside(&longer), Err(malformed(Fault::Blob(MAX_BLOB + 1))));
    assert_eq!(decode_beside(&longest[..longest.len() - 1]), Err(malformed(Fault::Short)));
    for no_move in [3, 4] {
        assert_eq!(decode_beside(&[3, no_move, 0, 1, 0, 0]), Err(malformed(Fault::Tag(no_move))));
    }
    assert_eq!(decode_done(&[132, 2]), Err(malformed(Fault::Tag(2))));
    assert_eq!(decode_blobs(&[133, 2, 0, 0]), Err(malformed(Fault::Tag(2))));
    assert_eq!(decode_blobs(&[133, 1, 0, 0]), Err(malformed(Fault::NoBlobs)));
    assert_eq!(decode_blobs(&[133, 0, 0xff, 0xff]), Err(malformed(Fault::Short)));
}

#[test]
fn blobs_are_given_in_as_many_frames_as_they_take() {
    for (length, number) in [(MAX_BLOB, 200), (0, 65_000), (1, 22_000), (MAX_BLOB, 47), (MAX_BLOB, 48)] {
        let all = vec![vec![9; length]; number];
        let (mut given, mut frames) = (Vec::new(), 0);
        loop {
            let mut out = Vec::new();
            encode_blobs(&all[given.len()..], &mut out);
            assert!(out.len() <= PREFIX + MAX_FRAME);
            let part = decode_blobs(&out[PREFIX..]).expect("blobs");
            given.extend(part.blobs);
            frames += 1;
            if !part.more {
                break;
            }
        }
        assert_eq!(given, all);
        assert_eq!(frames, (number * (length + 2)).div_ceil(MAX_FRAME - 4).max(1), "{number} of {length}");
    }
}

#[test]
fn the_longest_batches_fit_into_a_frame() {
    let all: Vec<_> = (0..8).map(|counter| step(counter, 0, u128::MAX)).collect();
    let calls = vec![attest_multi(&all, [1; 32]); MAX_CALLS];
    let mut out = Vec::new();
    encode_calls(calls.iter(), &mut out);
    assert_eq!(decode_calls(&out[PREFIX..]), Ok(calls));
    let certificate = MultiCertificate {
        epoch: Epoch(1),
        moves: Moves::new(&all).expect("eight moves"),
        proof: Proof::Signature([2; 64]),
    };
    let longest = Answer::Resumed(Box::new(Resumed::Multi { certificate, digest: [3; 32] }));
    let answers = vec![longest; MAX_CALLS];
    out.clear();
    encode_answers(&answers, &mut out);
    assert_eq!(decode_answers(&out[PREFIX..]), Ok(answers));
    let (log, slot, nonce) = (LogId(1), CounterValue(u128::MAX), [4; 32]);
    let (previous, value, digest) = ([5; 32], [6; 32], [7; 32]);
    let advance = Operation::Advance { log, slot, previous, value, nonce: Some(nonce) };
    let operations = vec![advance; MOST_OPERATIONS];
    out.clear();
    encode_log_call(&operations, &mut out);
    assert_eq!(decode_log_call(&out[PREFIX..]), Ok(operations));
    let content = Content::Skipped { end: slot, value, digest };
    let claim = Claim { request: LogRequest::Lookup, log, slot, nonce, content };
    let made = Attestation { epoch: Epoch(1), claim, proof: Proof::Signature([2; 64]) };
    let answered = Ok(vec![LogAnswer::Attested(made); MOST_OPERATIONS]);
    out.clear();
    encode_log_answers(&answered, &mut out);
    assert_eq!(decode_log_answers(&out[PREFIX..]), Ok(answered));
}

#[test]
fn a_greeting_of_a_later_version_says_at_least_its_version() {
    let mut out = Vec::new();
    encode_hello(7, &mut out);
    assert_eq!(decode_hello(&out[PREFIX..]), Ok(7));
    out.push(1);
    assert_eq!(decode_hello(&out[PREFIX..]), Ok(7));
    let calls = [attest(step(0, 0, 1), [0; 32])];
    out.clear();
    encode_calls(calls.iter(), &mut out);
    assert!(decode_hello(&out[PREFIX..]).is_err());
}
