//! Snapshots and kept checkpoints.

use super::support::{SMALL, Script, checkpoint, frame, frame_seen, run, scan};
use crate::Executor;
use bytes::Bytes;
use proptest::prelude::*;
use troth_core::{Execution, Lookup};
use troth_types::{ClientId, Limits, Seq};

fn busy(limits: Limits) -> Executor<Script> {
    let mut executor = Executor::new(Script::default(), limits);
    for number in 1..=50 {
        let value = "v".repeat(number as usize * 20);
        let set = format!("set key{number} {value}");
        run(&mut executor, &[frame(1, number, &[&set, "tell 2 hello"]), frame(2, number, &["add n 1"])]);
    }
    executor
}

#[test]
fn a_snapshot_restores_everything() {
    let mut executor = busy(SMALL);
    let (seq, digest) = checkpoint(&mut executor);
    let snapshot = executor.snapshot(seq).expect("kept");
    let mut other = Executor::new(Script::default(), SMALL);
    run(&mut other, &[frame(9, 1, &["set junk 1"])]);
    assert_eq!(other.restore(&snapshot), Some((seq, digest)));
    assert_eq!(other.digest_now(), digest);
    assert_eq!((other.executed(), other.last_time()), (executor.executed(), executor.last_time()));
    assert_eq!(scan(&other), scan(&executor), "the ordered index is rebuilt");
    assert_eq!(other.events_after(ClientId(2), 0), executor.events_after(ClientId(2), 0));
    assert_eq!(other.lookup(ClientId(1), 50), executor.lookup(ClientId(1), 50));
    assert!(matches!(other.lookup(ClientId(2), 50), Lookup::Executed(_)));
    assert_eq!(other.snapshot(seq), Some(snapshot), "it is kept and encodes the same");
    let next = [frame_seen(2, 51, 40, &["add n 1"])];
    assert_eq!(run(&mut other, &next), run(&mut executor, &next));
    assert_eq!(other.digest_now(), executor.digest_now());
}

#[test]
fn checkpoints_are_kept_until_a_later_one_is_stable() {
    let mut executor = Executor::new(Script::default(), SMALL);
    let (zero, empty) = (Seq(0), executor.digest_now());
    assert!(executor.snapshot(zero).is_some(), "the initial state is a checkpoint");
    let mut digests = vec![empty];
    for number in 1..=4 {
        run(&mut executor, &[frame(1, number, &["add a 1"])]);
        digests.push(checkpoint(&mut executor).1);
    }
    digests.dedup();
    assert_eq!(digests.len(), 5, "each state has its own digest");
    executor.stable(Seq(3));
    let kept: Vec<bool> = (0..=4).map(|seq| executor.snapshot(Seq(seq)).is_some()).collect();
    assert_eq!(kept, [false, false, false, true, true]);
    // Of those below what is stable the newest is kept, for a log may begin there.
    run(&mut executor, &[]);
    executor.checkpoint();
    run(&mut executor, &[]);
    executor.stable(Seq(6));
    assert_eq!(executor.poll_checkpoint(1_000_000).map(|done| done.0), Some(Seq(5)));
    assert!(executor.snapshot(Seq(5)).is_some() && executor.snapshot(Seq(4)).is_none());
    executor.stable(Seq(7));
    assert!(executor.snapshot(Seq(5)).is_none());
}

#[test]
fn many_seals_without_a_poll_are_all_answered() {
    let mut executor = Executor::new(Script::default(), SMALL);
    for number in 1..=20 {
        run(&mut executor, &[frame(1, number, &["add a 1"])]);
        executor.checkpoint();
    }
    let mut seqs = Vec::new();
    while executor.hashing() {
        seqs.extend(executor.poll_checkpoint(10).map(|done| done.0.0));
    }
    assert_eq!(seqs, (1..=20).collect::<Vec<u64>>());
}

#[test]
fn time_and_sequence_number_are_in_the_digest() {
    let mut one = Executor::new(Script::default(), SMALL);
    let mut two = one.clone();
    let before = one.digest_now();
    run(&mut one, &[]);
    assert_ne!(one.digest_now(), before);
    super::support::run_at(&mut two, troth_types::Time(77), &[]);
    assert_ne!(one.digest_now(), two.digest_now());
}

proptest! {
    #[test]
    fn bytes_that_are_no_snapshot_change_nothing(cut in 0_usize..40_000, flip in any::<(u16, u8)>()) {
        let mut executor = busy(SMALL);
        let (seq, digest) = checkpoint(&mut executor);
        let snapshot = executor.snapshot(seq).expect("kept");
        let mut other = Executor::new(Script::default(), SMALL);
        if cut < snapshot.len() {
            prop_assert_eq!(other.restore(&snapshot.slice(..cut)), None);
            prop_assert_eq!(other.executed(), Seq(0));
        }
        let mut bytes = snapshot.to_vec();
        let at = usize::from(flip.0) % bytes.len();
        bytes[at] ^= flip.1;
        let restored = other.restore(&Bytes::from(bytes));
        prop_assert!(flip.1 == 0 || restored != Some((seq, digest)));
    }
}
