//! Seals under a load that leaves no time between batches.

use super::support::{Script, frame};
use crate::Executor;
use troth_core::{Execution, Ordered, VerifiedFrame};
use troth_types::{Digest, Limits, Time};

/// Batches from one seal to the next.
const INTERVAL: u64 = 4;

/// A batch that writes so many keys of its own, with values of so many bytes.
fn batch(number: u64, keys: u64, bytes: usize) -> Vec<VerifiedFrame> {
    let clients = keys.div_ceil(1024);
    let share = keys / clients;
    let value = "v".repeat(bytes);
    let one = |client: u64| {
        let first = number * keys + client * share;
        let operations: Vec<String> =
            (first..first + share).map(|key| format!("set {key} {value}")).collect();
        let operations: Vec<&str> = operations.iter().map(String::as_str).collect();
        frame(client + 1, number + 1, &operations)
    };
    (0..clients).map(one).collect()
}

/// Executes batches and seals, and nobody polls, as no input comes between them; the most seals that waited where another
/// one came.
fn most_pending(
    executor: &mut Executor<Script>,
    seals: u64,
    batch: impl Fn(u64) -> Vec<VerifiedFrame>,
) -> usize {
    let mut most = 0;
    let mut expected = Vec::new();
    for number in 0..seals * INTERVAL {
        let seq = executor.executed().next();
        let time = Time(1000 * (number + 1));
        executor.execute(&Ordered { seq, time, seed: Digest([9; 32]), frames: batch(number) });
        if (number + 1) % INTERVAL == 0 {
            most = most.max(executor.pending());
            expected.push((seq, executor.digest_now()));
            executor.checkpoint();
        }
    }
    let mut done = Vec::new();
    while executor.hashing() {
        done.extend(executor.poll_checkpoint(50));
    }
    assert_eq!(done, expected, "in their order, each with the digest of what was sealed");
    most
}

#[test]
fn seals_do_not_pile_up_where_batches_leave_no_time() {
    let mut executor = Executor::new(Script::default(), Limits::DEFAULT);
    let most = most_pending(&mut executor, 24, |number| batch(number, 64, 1));
    assert!(most <= 2, "{most} seals waited");
}

#[test]
fn seals_of_few_keys_and_many_bytes_do_not_pile_up_either() {
    let mut executor = Executor::new(Script::default(), Limits::DEFAULT);
    let most = most_pending(&mut executor, 24, |number| batch(number, 4, 64 << 10));
    assert!(most <= 2, "{most} seals waited");
}

#[test]
fn a_seal_of_many_keys_is_done_before_the_next() {
    let mut executor = Executor::new(Script::default(), Limits::DEFAULT);
    let most = most_pending(&mut executor, 4, |number| batch(number, 17 << 10, 1));
    assert_eq!(most, 0);
}

/// A batch may finish a checkpoint before the protocol knows its digest.
#[test]
fn nothing_begins_with_a_checkpoint_that_nobody_was_told_of() {
    let mut executor = Executor::new(Script::default(), Limits::DEFAULT);
    let next = |executor: &mut Executor<Script>, number: u64| {
        let seq = executor.executed().next();
        let time = Time(1000 * (number + 1));
        executor.execute(&Ordered { seq, time, seed: Digest([9; 32]), frames: batch(number, 70 << 10, 1) });
        seq
    };
    let sealed = next(&mut executor, 0);
    executor.checkpoint();
    next(&mut executor, 1);
    assert_eq!(executor.pending(), 0, "the second batch finished it");
    assert!(executor.snapshot(sealed).is_none());
    assert_eq!(executor.poll_checkpoint(1).map(|(seq, _)| seq), Some(sealed));
    assert!(executor.snapshot(sealed).is_some());
}
