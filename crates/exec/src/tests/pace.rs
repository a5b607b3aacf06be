//! Seals under a load that leaves no time between batches.

use super::support::{Script, frame};
use crate::Executor;
use troth_core::{Execution, Ordered, VerifiedFrame};
use troth_types::{Digest, Limits, Time};

const OPERATIONS: usize = 64;
const FRAMES: u64 = 4;
/// Batches from one seal to the next.
const INTERVAL: u64 = 4;
const SEALS: u64 = 24;

/// Each writes keys of its own.
fn batch(number: u64) -> Vec<VerifiedFrame> {
    let one = |client: u64| {
        let first = (number * FRAMES + client) * OPERATIONS as u64;
        let operations: Vec<String> =
            (first..first + OPERATIONS as u64).map(|key| format!("set {} v", key ^ 0x5a5a)).collect();
        let operations: Vec<&str> = operations.iter().map(String::as_str).collect();
        frame(client, number + 1, &operations)
    };
    (1..=FRAMES).map(one).collect()
}

/// Nobody polls, as no input comes between the batches.
#[test]
fn seals_do_not_pile_up_where_batches_leave_no_time() {
    let mut executor = Executor::new(Script::default(), Limits::DEFAULT);
    let mut expected = Vec::new();
    for number in 0..SEALS * INTERVAL {
        let seq = executor.executed().next();
        let time = Time(1000 * (number + 1));
        executor.execute(&Ordered { seq, time, seed: Digest([9; 32]), frames: batch(number) });
        if (number + 1) % INTERVAL == 0 {
            assert!(executor.pending() <= 2, "{} seals wait at batch {number}", executor.pending());
            expected.push((seq, executor.digest_now()));
            executor.checkpoint();
        }
    }
    let mut done = Vec::new();
    while executor.hashing() {
        done.extend(executor.poll_checkpoint(50));
    }
    assert_eq!(done, expected, "in their order, each with the digest of what was sealed");
}
