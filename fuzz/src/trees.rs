//! Trees of a state that anybody could have made: every part has the digest that names it, whatever is in it.

use crate::bytes::Steps;
use bytes::Bytes;
use std::sync::Arc;
use troth_auth::Verified;
use troth_core::{Execution, Ordered};
use troth_exec::{Executor, Snapshot};
use troth_kv::{Kv, Operation};
use troth_types::{Digest, Hasher, Limits, Seq, Time, Wire};

use crate::samples;

fn digest_of(tag: &'static str, bytes: &[u8]) -> Digest {
    let mut hasher = Hasher::new(tag);
    hasher.fixed(bytes);
    hasher.finish()
}

fn node_digest(bytes: &[u8]) -> Digest {
    digest_of("troth/node/v1", bytes)
}

/// The digest by which a checkpoint with this root is known.
pub(crate) fn state_digest(seq: Seq, time: Time, root: &Digest) -> Digest {
    let mut hasher = Hasher::new("troth/state/v1");
    hasher.number(seq.0).number(time.0).digest(root);
    hasher.finish()
}

/// Nodes and large values, each with its digest; later ones may name earlier ones. The last one is a node.
pub(crate) fn parts(steps: &mut Steps<'_>) -> Vec<(Digest, Vec<u8>)> {
    let mut parts: Vec<(Digest, Vec<u8>)> = Vec::new();
    for _ in 0..40 {
        if steps.is_over() {
            break;
        }
        let (tag, bytes) = match steps.byte() % 4 {
            0 => ("troth/node/v1", steps.chunk().to_vec()),
            1 => ("troth/node/v1", page(steps, &parts)),
            2 => ("troth/blob/v1", steps.chunk().to_vec()),
            _ => ("troth/node/v1", branch(steps, &parts)),
        };
        parts.push((digest_of(tag, &bytes), bytes));
    }
    if let Some((digest, bytes)) = parts.last_mut() {
        *digest = node_digest(bytes);
    }
    parts
}

/// A page of a few entries. Its keys are the application's: what stands under others was certified to be right.
fn page(steps: &mut Steps<'_>, parts: &[(Digest, Vec<u8>)]) -> Vec<u8> {
    let count = steps.byte() % 5;
    let mut bytes = vec![1, count, 0];
    for _ in 0..count {
        let key = [&[1], steps.chunk()].concat();
        let blob = steps.one_in(3);
        let value = match steps.one_of(parts).filter(|_| blob) {
            Some((digest, part)) => {
                [&u32::try_from(part.len()).expect("short").to_le_bytes(), &digest.0[..]].concat()
            }
            None => steps.chunk().to_vec(),
        };
        bytes.extend_from_slice(&u16::try_from(key.len()).expect("short").to_le_bytes());
        let length = if blob { u16::MAX } else { u16::try_from(value.len()).expect("short") };
        bytes.extend_from_slice(&length.to_le_bytes());
        bytes.extend_from_slice(&key);
        bytes.extend_from_slice(&value);
    }
    bytes
}

fn branch(steps: &mut Steps<'_>, parts: &[(Digest, Vec<u8>)]) -> Vec<u8> {
    let mask = steps.short();
    let mut bytes = vec![0];
    bytes.extend_from_slice(&mask.to_le_bytes());
    // One for all children, or one for each.
    let same = steps.one_in(2);
    let mut child = steps.one_of(parts).map_or(Digest::ZERO, |(digest, _)| *digest);
    for _ in 0..mask.count_ones() {
        bytes.extend_from_slice(&child.0);
        if !same {
            child = steps.one_of(parts).map_or(Digest::ZERO, |(digest, _)| *digest);
        }
    }
    bytes
}

/// An executor that holds these keys, each with a value of so many bytes.
pub(crate) fn executor(keys: &[(&str, usize)]) -> Executor<Kv> {
    let mut executor = Executor::new(Kv::default(), Limits::DEFAULT);
    for (number, (key, length)) in (1..).zip(keys) {
        let put = Operation::Put {
            key: Bytes::copy_from_slice(key.as_bytes()),
            value: Bytes::from(vec![b'v'; *length]),
        };
        let frame = samples::frame_of(1, number, vec![put.to_wire()]);
        executor.execute(&Ordered {
            seq: executor.executed().next(),
            time: executor.last_time().after(1000),
            seed: Digest([9; 32]),
            frames: vec![Verified::made_here(Arc::clone(&frame))],
        });
    }
    executor
}

/// Makes a checkpoint.
pub(crate) fn checkpoint(executor: &mut Executor<Kv>) -> (Seq, Digest) {
    executor.checkpoint();
    loop {
        if let Some(done) = executor.poll_checkpoint(1_000) {
            return done;
        }
    }
}

/// A small state, with a value that stands beside its page.
pub(crate) fn snapshot() -> Snapshot {
    let mut executor = executor(&[("one", 3), ("two", 700)]);
    let (seq, _) = checkpoint(&mut executor);
    executor.snapshot(seq).expect("just made")
}

/// Steps for [`parts`]: one page; a branch over two; a chain of branches that name the same child sixteen times.
pub(crate) fn seeds() -> Vec<Vec<u8>> {
    let page = [&[1, 1, 3][..], b"key", &[1, 5], b"value"].concat();
    let two = [&page[..], &[1, 1, 3], b"two", &[1, 2], b"ab", &[3, 3, 0, 1, 0, 1]].concat();
    let mut chain = page.clone();
    (0..5_u8).for_each(|level| chain.extend_from_slice(&[3, 255, 255, 0, level]));
    vec![page, two, chain]
}
