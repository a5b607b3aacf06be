//! Foreign bytes: refused without a panic, and read in one way only.

use crate::support::{attest, attest_multi, step};
use proptest::prelude::*;
use troth_trusted::{Epoch, Moves, MultiCertificate, Proof, Resumed};
use troth_trusted_host::Answer;
use troth_trusted_process::wire::{
    Fault, MAX_CALLS, MAX_FRAME, Malformed, PREFIX, decode_answers, decode_calls, decode_hello, decode_reply,
    encode_answers, encode_calls, encode_hello, encode_reply, frame_length,
};

/// Decodes as everything. What is understood must be written back as the same bytes.
fn decode_all(frame: &[u8]) -> usize {
    let mut understood = 0;
    let mut back = Vec::new();
    if let Ok(calls) = decode_calls(frame) {
        encode_calls(calls.iter(), &mut back);
    } else if let Ok(answers) = decode_answers(frame) {
        encode_answers(&answers, &mut back);
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
    include_str!("frames-v2.txt")
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
        for kind in [kind, 1, 2, 129, 130, 131] {
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
