//! A small application and the frames to drive it.

use crate::{Application, Executor, OpContext, State, StateView};
use bytes::Bytes;
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use troth_auth::{Directory, FrameVerifier, ModelScheme, ModelSigner, Signer};
use troth_core::{Execution, Ordered, Outcome, VerifiedFrame};
use troth_types::{ClientId, Digest, Event, FrameDraft, GroupId, Limits, Seq, StateFetch, StatePiece, Time};

/// Operations as text: `set k v`, `del k`, `add k n`, `big n`, `tell client text`, `now`, `wake t`.
/// Everything else is echoed. Values are strings of digits or text. `big` counts as a read.
#[derive(Clone, Debug, Default)]
pub struct Script {
    /// The reads executed in frames by this and all its clones.
    pub reads: Arc<AtomicU64>,
}

const ALARM: &[u8] = b"alarm";

impl Application for Script {
    const SCANS: bool = true;

    fn execute(&self, state: &mut State<'_>, cx: &mut OpContext<'_>, operation: &Bytes) -> Bytes {
        let text = String::from_utf8_lossy(operation).into_owned();
        let words: Vec<&str> = text.split(' ').collect();
        match words[..] {
            ["set", key, value] => state.insert(key.as_bytes(), Bytes::from(value.to_owned())),
            ["del", key] => state.remove(key.as_bytes()),
            ["add", key, n] => {
                let old = state.get(key.as_bytes()).map_or(0, |old| number(&old));
                let new = old + number(n.as_bytes());
                state.insert(key.as_bytes(), Bytes::from(new.to_string()));
                return Bytes::from(new.to_string());
            }
            ["big", n] => {
                self.reads.fetch_add(1, Ordering::Relaxed);
                return Bytes::from(vec![b'x'; number(n.as_bytes()) as usize]);
            }
            ["tell", client, message] => {
                cx.emit(ClientId(number(client.as_bytes())), Bytes::from(message.to_owned()));
            }
            ["now"] => return Bytes::from(cx.time.0.to_string()),
            ["wake", at] => state.insert(ALARM, Bytes::from(at.to_owned())),
            _ => return operation.clone(),
        }
        Bytes::from_static(b"ok")
    }

    fn query(&self, state: &StateView<'_>, _client: ClientId, operation: &Bytes) -> Bytes {
        state.get(operation).unwrap_or_default()
    }

    fn only_reads(&self, operation: &Bytes) -> bool {
        operation.starts_with(b"big ")
    }

    fn too_large(&self) -> Bytes {
        Bytes::from_static(b"too large")
    }

    fn next_deadline(&self, state: &StateView<'_>) -> Option<Time> {
        state.get(ALARM).map(|at| Time(number(&at)))
    }

    fn on_deadline(&self, state: &mut State<'_>, cx: &mut OpContext<'_>) {
        state.remove(ALARM);
        cx.emit(ClientId(7), Bytes::from_static(b"alarm"));
    }
}

pub fn number(text: &[u8]) -> u64 {
    String::from_utf8_lossy(text).parse().expect("the test writes numbers")
}

pub const SMALL: Limits = Limits {
    client_window: 4,
    frame_operations: 64,
    frame_bytes: 1 << 16,
    batch_frames: 16,
    result_bytes: 100,
    outbox_events: 3,
    client_bytes: 250,
};

/// A frame of `client`, signed in the model and checked.
pub fn frame_seen(client: u64, number: u64, events_seen: u64, operations: &[&str]) -> VerifiedFrame {
    let group = GroupId([1; 16]);
    let signer = ModelSigner::new(client);
    let mut scheme = ModelScheme::default();
    scheme.register(&signer);
    let clients = [(ClientId(client), signer.public_key())];
    let directory = Directory::of_clients(group, clients);
    let operations = operations.iter().map(|text| Bytes::from((*text).to_owned())).collect();
    let draft = FrameDraft { group, client: ClientId(client), number, events_seen, operations };
    let signature = signer.sign(&draft.signing_digest());
    let verifier = FrameVerifier::new(Arc::new(directory), Arc::new(scheme), Limits::DEFAULT);
    verifier.verify(Arc::new(draft.sign(signature))).expect("signed above")
}

pub fn frame(client: u64, number: u64, operations: &[&str]) -> VerifiedFrame {
    frame_seen(client, number, 0, operations)
}

/// Executes these frames as the next batch, a millisecond after the last.
pub fn run(executor: &mut Executor<Script>, frames: &[VerifiedFrame]) -> Outcome {
    let time = executor.last_time().after(1000);
    run_at(executor, time, frames)
}

pub fn run_at(executor: &mut Executor<Script>, time: Time, frames: &[VerifiedFrame]) -> Outcome {
    let seq = executor.executed().next();
    executor.execute(&Ordered { seq, time, seed: Digest([9; 32]), frames: frames.to_vec() })
}

/// Seals the current state and hashes it to the end, a little at a time.
pub fn checkpoint(executor: &mut Executor<Script>) -> (Seq, Digest) {
    executor.checkpoint();
    loop {
        if let Some(done) = executor.poll_checkpoint(3) {
            assert!(!executor.hashing());
            return done;
        }
    }
}

/// Transfers a kept checkpoint; returns the number of bytes moved, paths and contents. Each piece is offered
/// through `tamper` first, which may return a false one. That must be rejected, unless it says that what is held
/// stays where it does not: then that is asked for whole.
pub fn transfer(
    from: &Executor<Script>,
    to: &mut Executor<Script>,
    goal: (Seq, Digest),
    tamper: impl FnMut(&StatePiece) -> Option<StatePiece>,
) -> usize {
    transfer_from(|fetch| from.serve(fetch), to, goal, tamper)
}

/// The same from whoever answers so. What is not answered is asked for again when nothing else is left to ask.
pub fn transfer_from(
    mut serve: impl FnMut(&StateFetch) -> Option<StatePiece>,
    to: &mut Executor<Script>,
    (seq, digest): (Seq, Digest),
    mut tamper: impl FnMut(&StatePiece) -> Option<StatePiece>,
) -> usize {
    use troth_core::Installing;
    let mut wants = VecDeque::from(to.begin_install(seq, digest));
    let (mut moved, mut silent) = (0, 0);
    loop {
        let Some(fetch) = wants.pop_front() else {
            silent += 1;
            assert!(silent < 50, "an installation that wants nothing is done");
            wants.extend(to.wanted());
            continue;
        };
        moved += fetch.path.len();
        let Some(piece) = serve(&fetch) else { continue };
        if let Some(bad) = tamper(&piece) {
            match to.on_piece(&bad) {
                Installing::Wants(more) => wants.extend(more),
                Installing::Rejected | Installing::NotWanted => {}
                Installing::Done => panic!("done with what is false"),
            }
        }
        moved += piece.path.len() + piece.content.len();
        match to.on_piece(&piece) {
            Installing::Wants(more) => wants.extend(more),
            Installing::Done => return moved,
            // The answer to a probe, or the false one was taken in its place.
            Installing::NotWanted if piece.path.first() == Some(&u8::MAX) => {}
            other => panic!("a good piece was answered with {other:?}"),
        }
        let wanted = to.clone().wanted();
        assert!(wanted.len() <= 66);
    }
}

/// All of the application's entries, in key order.
pub fn scan(executor: &Executor<Script>) -> Vec<(Vec<u8>, Bytes)> {
    executor.state().scan(b"").map(|(key, value)| (key.to_vec(), value)).collect()
}

/// The client's undelivered events after an index.
pub fn events_after<A: Application>(executor: &Executor<A>, client: u64, index: u64) -> Vec<Event> {
    let kept = executor.outbox(ClientId(client)).filter(|kept| *kept > index);
    kept.map(|kept| executor.event(ClientId(client), kept)).collect()
}
