//! Measures what execution alone costs, without ordering, signatures or network:
//! `cargo run --release -p troth-kv --example execute`.
//!
//! Batches of frames from 64 clients run through an executor that checkpoints every 128 batches and
//! hashes in slices between them, as a replica does; everything is counted.
#![allow(clippy::disallowed_methods, reason = "a measurement reads the clock")]

use bytes::Bytes;
use std::sync::Arc;
use std::time::Instant;
use troth_auth::{Directory, FrameVerifier, ModelScheme, ModelSigner, Signer};
use troth_core::{Execution, Ordered, VerifiedFrame};
use troth_exec::{Application, Executor};
use troth_kv::{Kv, Null, Operation};
use troth_types::{ClientId, Digest, FrameDraft, GroupId, Limits, Time, Wire};

const CLIENTS: u64 = 64;
const KEYS: u64 = 100_000;
const INTERVAL: u64 = 128;

struct Frames {
    verifier: FrameVerifier,
    signers: Vec<ModelSigner>,
    sent: u64,
}

impl Frames {
    fn new() -> Self {
        let signers: Vec<_> = (0..CLIENTS).map(ModelSigner::new).collect();
        let mut scheme = ModelScheme::default();
        signers.iter().for_each(|signer| scheme.register(signer));
        let clients: Vec<_> =
            (0..CLIENTS).map(ClientId).zip(signers.iter().map(Signer::public_key)).collect();
        let directory = Directory::of_clients(GroupId::default(), clients);
        let verifier = FrameVerifier::new(Arc::new(directory), Arc::new(scheme), Limits::DEFAULT);
        Self { verifier, signers, sent: 0 }
    }

    fn next(&mut self, operations: Vec<Bytes>) -> VerifiedFrame {
        let client = self.sent % CLIENTS;
        let number = self.sent / CLIENTS + 1;
        self.sent += 1;
        let draft = FrameDraft {
            group: GroupId::default(),
            client: ClientId(client),
            number,
            events_seen: 0,
            operations,
        };
        let signature = self.signers[client as usize].sign(&draft.signing_digest());
        self.verifier.verify(Arc::new(draft.sign(signature))).expect("signed above")
    }
}

fn put(number: u64) -> Bytes {
    let key = format!("key/{:010}", number.wrapping_mul(0x9e37_79b9_7f4a_7c15) % KEYS);
    Operation::Put { key: Bytes::from(key), value: Bytes::from(vec![7; 100]) }.to_wire()
}

fn measure<A: Application>(name: &str, app: A, frames_per_batch: u64, operations_per_frame: u64) {
    let batches = (400_000 / (frames_per_batch * operations_per_frame)).clamp(512, 20_000);
    let mut frames = Frames::new();
    let mut made = 0;
    let batches: Vec<Vec<VerifiedFrame>> = (0..batches)
        .map(|_| {
            let mut batch = Vec::new();
            for _ in 0..frames_per_batch {
                let operations = (0..operations_per_frame).map(|index| put(made + index)).collect();
                made += operations_per_frame;
                batch.push(frames.next(operations));
            }
            batch
        })
        .collect();
    let mut executor = Executor::new(app, Limits::DEFAULT);
    let mut digests = 0;
    let start = Instant::now();
    for frames in batches {
        let seq = executor.executed().next();
        executor.execute(&Ordered { seq, time: Time(seq.0), seed: Digest::ZERO, frames });
        if seq.0.is_multiple_of(INTERVAL) {
            executor.checkpoint();
        }
        if let Some((seq, _)) = executor.poll_checkpoint(500) {
            executor.stable(seq);
            digests += 1;
        }
    }
    while executor.hashing() {
        digests += u64::from(executor.poll_checkpoint(500).is_some());
    }
    let took = start.elapsed();
    println!(
        "{name}: {frames_per_batch} frames of {operations_per_frame} operations: {:.0} operations/s, {:.2} us \
         each, {:.2} us a frame ({digests} checkpoints)",
        made as f64 / took.as_secs_f64(),
        took.as_secs_f64() * 1e6 / made as f64,
        took.as_secs_f64() * 1e6 / frames.sent as f64,
    );
}

fn main() {
    for (frames, operations) in [(1, 1), (16, 1), (16, 32)] {
        measure("null", Null::new(0), frames, operations);
        measure("kv put", Kv::default(), frames, operations);
    }
}
