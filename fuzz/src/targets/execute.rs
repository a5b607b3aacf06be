//! Operations of clients and of the operator, which may be any bytes, and reads of the same. Two executors that
//! are given the same stand the same.

use super::wire_service::operations;
use crate::bytes::Steps;
use crate::{Bound, Target, samples};
use bytes::Bytes;
use std::sync::Arc;
use troth_auth::Verified;
use troth_core::{Execution, Ordered};
use troth_exec::Executor;
use troth_kv::Kv;
use troth_types::{Change, ClientId, Digest, Limits, OPERATOR, Read, Wire};

pub(super) const TARGET: Target = Target {
    name: "execute",
    run,
    seeds,
    // Two executors, and of each a few versions of pages.
    bound: Bound { fixed: 2 << 20, per_byte: 4096 },
    longest: 4096,
};

const SMALL: Limits = Limits {
    client_window: 4,
    frame_operations: 64,
    frame_bytes: 1 << 16,
    batch_frames: 16,
    result_bytes: 1000,
    outbox_events: 3,
    client_bytes: 2500,
};
const CLIENTS: [ClientId; 3] = [ClientId(1), ClientId(2), OPERATOR];

fn run(input: &[u8]) {
    let mut steps = Steps::new(input);
    let new = || Executor::with_configuration(Kv::default(), SMALL, Arc::new(samples::configuration()), 10);
    let (mut executor, mut other) = (new(), new());
    for _ in 0..40 {
        if steps.is_over() {
            break;
        }
        let client = CLIENTS[steps.below(CLIENTS.len())];
        let what = steps.byte();
        if what.is_multiple_of(8) {
            let read = Read {
                client,
                number: 1,
                nonce: None,
                least: None,
                operation: Bytes::copy_from_slice(steps.chunk()),
            };
            assert_eq!(executor.query(&read), other.query(&read));
            for index in executor.outbox(client).skip(usize::from(steps.byte() % 4)) {
                assert_eq!(executor.event(client, index).index, index);
            }
            continue;
        }
        if what.is_multiple_of(7) {
            executor.checkpoint();
            while executor.hashing() {
                let _ = executor.poll_checkpoint(100);
            }
            continue;
        }
        let number = 1 + u64::from(steps.byte() % 16);
        let operations = (0..1 + what % 3).map(|_| Bytes::copy_from_slice(steps.chunk())).collect();
        let frame = Verified::made_here(samples::frame_of(client.0, number, operations));
        let ordered = Ordered {
            seq: executor.executed().next(),
            time: executor.last_time().after(1000),
            seed: Digest([9; 32]),
            frames: vec![frame],
        };
        assert_eq!(executor.execute(&ordered), other.execute(&ordered), "two executors differ");
        let _ = executor.lookup(client, number);
    }
    assert_eq!(executor.digest_now(), other.digest_now(), "two executors stand differently");
}

fn seeds() -> Vec<Vec<u8>> {
    let step = |client: u8, number: u8, operation: &[u8]| {
        let length = u8::try_from(operation.len()).expect("short");
        [&[client, 3, number, length], operation].concat()
    };
    let all: Vec<Vec<u8>> = (0..).zip(operations()).map(|(at, what)| step(0, at, &what.to_wire())).collect();
    let mut seeds = vec![all.concat(), [&[0, 8, 8][..], &[0, 3, 0, 0, 0], b"key", &[0]].concat()];
    let admit: Vec<Change> = samples::changes();
    seeds.extend(admit.iter().map(|change| step(2, 1, &change.to_wire())));
    seeds
}
