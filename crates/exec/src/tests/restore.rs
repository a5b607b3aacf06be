//! Snapshots and kept checkpoints.

use super::support::{SMALL, Script, checkpoint, events_after, frame, frame_seen, run, scan};
use crate::{Executor, Gathering, MerkleMap, PartError, Snapshot, StoreId};
use bytes::Bytes;
use core::num::NonZeroU32;
use proptest::prelude::*;
use std::cell::Cell;
use std::collections::BTreeMap;
use troth_core::{Execution, Lookup};
use troth_types::{ClientId, Digest, Limits, Seq, Time};

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
    let bytes = snapshot.encode();
    let decoded = Snapshot::decode(&bytes).expect("it was encoded here");
    assert_eq!((&decoded, decoded.digest()), (&snapshot, digest));
    assert_eq!(other.restore(decoded), (seq, digest));
    assert_eq!(other.digest_now(), digest);
    assert_eq!((other.executed(), other.last_time()), (executor.executed(), executor.last_time()));
    assert_eq!(scan(&other), scan(&executor), "the ordered index is rebuilt");
    assert_eq!(events_after(&other, 2, 0), events_after(&executor, 2, 0));
    assert_eq!(other.lookup(ClientId(1), 50), executor.lookup(ClientId(1), 50));
    assert!(matches!(other.lookup(ClientId(2), 50), Lookup::Executed(_)));
    assert_eq!(other.snapshot(seq).map(|kept| kept.encode()), Some(bytes), "it is kept and encodes the same");
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
    assert!(executor.snapshot(Seq(5)).is_some(), "no own state is that far");
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
        let snapshot = executor.snapshot(seq).expect("kept").encode();
        if cut < snapshot.len() {
            prop_assert_eq!(Snapshot::decode(&snapshot.slice(..cut)), None);
        }
        let mut bytes = snapshot.to_vec();
        let at = usize::from(flip.0) % bytes.len();
        bytes[at] ^= flip.1;
        let decoded = Snapshot::decode(&Bytes::from(bytes)).map(|decoded| (decoded.seq(), decoded.digest()));
        prop_assert!(flip.1 == 0 || decoded != Some((seq, digest)));
    }
}

const STORE: StoreId = StoreId(NonZeroU32::MIN);
const OTHER: StoreId = StoreId(NonZeroU32::MAX);

/// All parts of a snapshot.
fn parts(snapshot: &Snapshot) -> BTreeMap<Digest, Bytes> {
    snapshot.parts().collect()
}

/// Those that the store lacks, which has them from now on.
fn stored(snapshot: &Snapshot) -> BTreeMap<Digest, Bytes> {
    let lacking = snapshot.parts_not_in(STORE).collect();
    snapshot.put_in(STORE);
    lacking
}

fn assembled(snapshot: &Snapshot, parts: &BTreeMap<Digest, Bytes>) -> Result<Snapshot, PartError> {
    let assembled = Snapshot::from_parts(snapshot.seq(), snapshot.time(), snapshot.root(), &|digest| {
        parts.get(digest).cloned()
    });
    assert_eq!(gathered(snapshot, parts), assembled, "in any order it is the same");
    assembled
}

fn gathered(snapshot: &Snapshot, parts: &BTreeMap<Digest, Bytes>) -> Result<Snapshot, PartError> {
    let mut gathering = Gathering::new(snapshot.seq(), snapshot.time(), snapshot.root());
    loop {
        let mut went_on = false;
        for (digest, bytes) in parts {
            went_on |= gathering.offer(*digest, bytes)?;
        }
        if !went_on {
            return gathering.finish();
        }
    }
}

#[test]
fn parts_in_the_order_of_a_disk_are_gathered_in_one_round() {
    let mut executor = busy(Limits::default());
    let mut packs = Vec::new();
    let mut last = None;
    for round in 0..5 {
        let large = format!("set large{} {}", round % 2, "x".repeat(9_000 + round % 3));
        let removed = format!("del key{round}");
        let number = 51 + round as u64;
        run(
            &mut executor,
            &[frame(1, number, &[&large, &removed, &format!("set key{} {round}", round * 3)])],
        );
        let (seq, _) = checkpoint(&mut executor);
        let snapshot = executor.snapshot(seq).expect("kept");
        packs.push(snapshot.parts_not_in(STORE).collect::<Vec<_>>());
        snapshot.put_in(STORE);
        last = Some(snapshot);
    }
    let snapshot: Snapshot = last.expect("five were made");
    let mut gathering = Gathering::new(snapshot.seq(), snapshot.time(), snapshot.root());
    for (digest, bytes) in packs.iter().rev().flatten() {
        gathering.offer(*digest, bytes).expect("good");
    }
    let again = gathering.finish().expect("nothing is lacking");
    assert_eq!(again.encode(), snapshot.encode());
}

#[test]
fn a_later_snapshot_needs_only_the_parts_that_are_new() {
    // Large values are parts of their own.
    let mut executor = busy(Limits::default());
    run(&mut executor, &[frame(3, 1, &[&format!("set large {}", "x".repeat(9_000))])]);
    let (first, _) = checkpoint(&mut executor);
    let first = executor.snapshot(first).expect("kept");
    run(&mut executor, &[frame(1, 51, &["set key7 other"]), frame(3, 2, &["set more 1"])]);
    let (second, digest) = checkpoint(&mut executor);
    let second = executor.snapshot(second).expect("kept");

    let mut held = stored(&first);
    assert_eq!(held, parts(&first), "it had nothing");
    assert_eq!(assembled(&first, &held).as_ref(), Ok(&first));
    assert!(assembled(&second, &held).is_err(), "it needs what changed");
    assert_eq!(second.parts_not_in(OTHER).collect::<BTreeMap<_, _>>(), parts(&second), "it has none of them");
    let new = stored(&second);
    assert!(new.len() < held.len() / 2, "{} of {} parts", new.len(), held.len());
    assert!(!new.values().any(|part| part.len() > 8_000), "the large value was there before");
    held.extend(new);
    let again = assembled(&second, &held).expect("all parts are there");
    assert_eq!((again.digest(), again.encode()), (digest, second.encode()));
    assert!(stored(&second).is_empty() && stored(&first).is_empty());
    let mut restored = Executor::new(Script::default(), Limits::default());
    assert_eq!(restored.restore(again), (second.seq(), digest));
    assert_eq!(scan(&restored), scan(&executor));
}

#[test]
fn a_part_that_is_missing_or_damaged_is_named() {
    let mut executor = busy(Limits::default());
    run(&mut executor, &[frame(3, 1, &[&format!("set large {}", "x".repeat(9_000))])]);
    let (seq, _) = checkpoint(&mut executor);
    let snapshot = executor.snapshot(seq).expect("kept");
    let whole = parts(&snapshot);
    for (digest, bytes) in &whole {
        let mut without = whole.clone();
        without.remove(digest);
        assert_eq!(assembled(&snapshot, &without), Err(PartError::Missing(*digest)));
        let mut damaged = bytes.to_vec();
        damaged[bytes.len() / 2] ^= 1;
        without.insert(*digest, Bytes::from(damaged));
        assert_eq!(assembled(&snapshot, &without), Err(PartError::Damaged(*digest)));
    }
}

/// Sixteen children that are the same, level below level: few parts that would make a tree of millions of nodes.
#[test]
fn parts_that_name_one_node_many_times_are_no_tree() {
    let mut executor = Executor::new(Script::default(), SMALL);
    run(&mut executor, &[frame(1, 1, &["set key value"])]);
    let (seq, _) = checkpoint(&mut executor);
    let mut parts = parts(&executor.snapshot(seq).expect("kept"));
    let mut root = *parts.keys().next().expect("a page");
    for _ in 0..4 {
        let branch = [&[0, 255, 255][..], &root.0.repeat(16)].concat();
        root = crate::map::node_digest(&branch);
        parts.insert(root, Bytes::from(branch));
    }
    let asked = Cell::new(0);
    let built = Snapshot::from_parts(seq, Time(1), root, &|digest| {
        asked.set(asked.get() + 1);
        parts.get(digest).cloned()
    });
    assert!(matches!(built, Err(PartError::Damaged(_))), "{built:?}");
    assert!(asked.get() <= parts.len() + 1, "{} parts were asked for, of {}", asked.get(), parts.len());
}

proptest! {
    /// Whatever is written, removed, kept and forgotten between: what a store was given is all that each snapshot needs.
    #[test]
    fn a_store_is_given_all_that_it_needs(
        rounds in proptest::collection::vec(proptest::collection::vec((0_u8..60, 0_u16..3), 0..40), 1..8),
    ) {
        let mut map = MerkleMap::new();
        // Of versions that are kept nothing is changed in place, of others it is.
        let (mut held, mut kept) = (BTreeMap::new(), Vec::new());
        for (round, writes) in (1..).zip(&rounds) {
            for (key, kind) in writes {
                let name = format!("key {key}");
                match kind {
                    0 => map.remove(name.as_bytes()),
                    // Large ones come again with the same bytes, too.
                    1 => map.insert(name.as_bytes(), Bytes::from(vec![*key; 600])),
                    _ => map.insert(name.as_bytes(), Bytes::from(format!("{round} {key}"))),
                }
            }
            map.seal();
            let mut unbounded = usize::MAX;
            let (_, tree) = map.poll(&mut unbounded).expect("an unbounded budget finishes a seal");
            let snapshot = Snapshot::of(Seq(round), Time(round), tree);
            // One that is not told of fails, and what it was given is gone.
            if writes.len() % 3 == 1 {
                drop(snapshot.parts_not_in(STORE).collect::<Vec<_>>());
                continue;
            }
            held.extend(stored(&snapshot));
            let assembled = assembled(&snapshot, &held);
            prop_assert_eq!(assembled.as_ref(), Ok(&snapshot));
            if round % 2 == 0 {
                kept.push(snapshot);
            }
        }
    }
}
