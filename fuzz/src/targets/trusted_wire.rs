//! The frames on the socket of the trusted process, in both directions. What decodes encodes to the same bytes.

use crate::{Bound, Target};
use troth_trusted::a2m::{A2m, Answer as LogAnswer, LOGS, LogId, LogRefusal, Operation, Unfit};
use troth_trusted::{
    Certifier, CounterId, CounterValue, Epoch, Identity, MacKey, Refusal, State, VolatileStore,
};
use troth_trusted_host::{Answer, Call, log_room};
use troth_trusted_process::wire::{
    self, Blobs, Malformed, Reply, Request, TurnedAway, VERSION, decode_answers, decode_beside, decode_blobs,
    decode_blobs_from, decode_calls, decode_done, decode_hello, decode_log_answers, decode_log_call,
    decode_reply, decode_request, encode_answers, encode_beside, encode_blobs, encode_blobs_from,
    encode_calls, encode_done, encode_hello, encode_log_answers, encode_log_call, encode_reply,
};

pub(super) const TARGET: Target =
    Target { name: "trusted-wire", run, seeds, bound: Bound::DECODER, longest: 4096 };

/// Decodes a frame and appends what it encodes to, with its length in front.
type Again = fn(&[u8], &mut Vec<u8>) -> Result<(), Malformed>;

const FRAMES: &[Again] = &[
    |frame, out| decode_calls(frame).map(|calls| encode_calls(calls.iter(), out)),
    |frame, out| decode_answers(frame).map(|answers| encode_answers(&answers, out)),
    |frame, out| decode_beside(frame).map(|(call, blob)| encode_beside(&call, blob, out)),
    |frame, out| decode_done(frame).map(|answer| encode_done(answer.as_ref(), out)),
    |frame, out| decode_blobs_from(frame).map(|from| encode_blobs_from(from, out)),
    |frame, out| decode_reply(frame).map(|reply| encode_reply(&reply, out)),
    |frame, out| {
        decode_request(frame).map(|request| match request {
            Request::Calls(calls) => encode_calls(calls.iter(), out),
            Request::Beside(call, blob) => encode_beside(&call, blob, out),
            Request::BlobsFrom(from) => encode_blobs_from(from, out),
            Request::Logs(operations) => encode_log_call(&operations, out),
        })
    },
    |frame, out| decode_log_call(frame).map(|operations| encode_log_call(&operations, out)),
    |frame, out| decode_log_answers(frame).map(|answered| encode_log_answers(&answered, out)),
];

fn run(input: &[u8]) {
    let Some((which, frame)) = input.split_first() else { return };
    let which = usize::from(*which) % (FRAMES.len() + 3);
    if let Some(again) = FRAMES.get(which) {
        let mut out = Vec::new();
        if again(frame, &mut out).is_ok() {
            assert!(out[wire::PREFIX..] == *frame, "a frame has more than one encoding ({which})");
        }
    } else if which == FRAMES.len() {
        hello(frame);
    } else if which == FRAMES.len() + 1 {
        blobs(frame);
    } else if let Some(bytes) = frame.first_chunk::<{ State::LEN }>()
        && let Some(state) = State::from_bytes(bytes)
    {
        assert!(state.to_bytes() == *bytes, "a state has more than one encoding");
    }
}

/// Of another version only its number is understood.
fn hello(frame: &[u8]) {
    if decode_hello(frame) == Ok(VERSION) {
        let mut out = Vec::new();
        encode_hello(VERSION, &mut out);
        assert!(out[wire::PREFIX..] == *frame, "a greeting has more than one encoding");
    }
}

/// Whether more follow is no part of what is encoded, but of how much was there.
fn blobs(frame: &[u8]) {
    if let Ok(Blobs { blobs, more: false }) = decode_blobs(frame) {
        let mut out = Vec::new();
        encode_blobs(&blobs, &mut out);
        assert!(out[wire::PREFIX..] == *frame, "blobs have more than one encoding");
    }
}

/// Calls of every kind that a seed needs.
pub(super) fn calls() -> Vec<Call> {
    let counter = CounterId(0);
    let (previous, new) = (CounterValue(0), CounterValue(1));
    vec![
        Call::Attest { counter, previous, new, digest: [5; 32] },
        Call::Resume { counter },
        Call::Read { counter },
    ]
}

/// Operations of every kind.
pub(super) fn operations() -> Vec<Operation> {
    let (log, slot, value, nonce) = (LogId(0), CounterValue(1), [5; 32], [6; 32]);
    vec![
        Operation::Append { log, slot, value, nonce: Some(nonce) },
        Operation::Advance { log, slot: CounterValue(9), previous: value, value, nonce: None },
        Operation::Lookup { log, slot: CounterValue(4), nonce },
        Operation::Truncate { log, slot: CounterValue(2) },
        Operation::Lookup { log, slot, nonce },
        Operation::LookupFor { log, slot, nonce, peer: [7; 32] },
        Operation::End { log, nonce },
    ]
}

/// What a component answers to them.
fn attested(identity: Identity) -> Result<Vec<LogAnswer>, LogRefusal> {
    let certifier = Certifier::Mac(MacKey::new(&[9; 32]));
    let mut component = A2m::start(identity, certifier, VolatileStore, log_room([4; LOGS]));
    let mut answers = Vec::new();
    component.call(&operations(), |answer| answers.push(answer)).map(|()| answers)
}

fn seeds() -> Vec<Vec<u8>> {
    let framed = |which: u8, encode: &dyn Fn(&mut Vec<u8>)| {
        let mut out = Vec::new();
        encode(&mut out);
        [&[which], &out[wire::PREFIX..]].concat()
    };
    let identity = Identity { group: [1; 16], replica: 1, epoch: Epoch(1) };
    let answers = [
        Answer::Value(CounterValue(3)),
        Answer::Refused(Refusal::Elsewhere { counter: CounterId(0), current: CounterValue(1) }),
        Answer::Refused(Refusal::Halted),
    ];
    vec![
        framed(0, &|out| encode_calls(calls().iter(), out)),
        framed(1, &|out| encode_answers(&answers, out)),
        framed(2, &|out| encode_beside(&calls()[0], b"blob", out)),
        framed(3, &|out| encode_done(Some(&answers[0]), out)),
        framed(3, &|out| encode_done(None, out)),
        framed(4, &|out| encode_blobs_from(7, out)),
        framed(5, &|out| encode_reply(&Reply::Welcome(identity), out)),
        framed(5, &|out| encode_reply(&Reply::TurnedAway(TurnedAway::OtherVersion(2)), out)),
        framed(6, &|out| encode_calls(calls().iter(), out)),
        framed(7, &|out| encode_log_call(&operations(), out)),
        framed(8, &|out| encode_log_answers(&attested(identity), out)),
        framed(8, &|out| encode_log_answers(&Err(LogRefusal::NoSpace), out)),
        framed(8, &|out| encode_log_answers(&Err(LogRefusal::Operation { index: 1, why: Unfit::Full }), out)),
        framed(9, &|out| encode_hello(VERSION, out)),
        framed(10, &|out| encode_blobs(&[b"one".to_vec(), b"two".to_vec()], out)),
        [&[11][..], &State::new(identity).to_bytes()].concat(),
    ]
}
