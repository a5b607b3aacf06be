//! One log, operation by operation.

use super::*;
use sha2::{Digest as _, Sha256};
use troth_trusted::a2m::{LogRefusal, Unfit, chained, slot_nonce};

fn refused(component: &mut Component, operation: Operation, why: Unfit) {
    let before = component.logs().clone();
    let answer = component.one(operation);
    assert_eq!(answer, Err(LogRefusal::Operation { index: 0, why }), "{operation:?}");
    assert_eq!(*component.logs(), before, "{operation:?} was refused and changed something");
}

/// The chain as the paper writes it, `d_n = h(n ‖ x ‖ d_{n-1})`, behind a tag.
fn by_hand(number: u128, value: u8, previous: Digest) -> Digest {
    link_by_hand(b"troth-a2m-chain/v1", number, value, previous)
}

/// The same behind the tag of an advance.
fn jump_by_hand(number: u128, value: u8, previous: Digest) -> Digest {
    link_by_hand(b"troth-a2m-jump/v1", number, value, previous)
}

fn link_by_hand(tag: &[u8], number: u128, value: u8, previous: Digest) -> Digest {
    let mut bytes = tag.to_vec();
    bytes.extend(number.to_be_bytes());
    bytes.extend([value; 32]);
    bytes.extend(previous);
    Sha256::digest(bytes).into()
}

#[test]
fn appends_fill_one_slot_after_the_other() {
    covers!("A2M-L1", "A2M-L2");
    let mut a2m = volatile(4);
    let mut digest = ZERO;
    for number in 1..=3 {
        let value = number as u8;
        done(&mut a2m, &[append(Q, number, value)]);
        digest = by_hand(number, value, digest);
        assert_eq!(content(&a2m, Q, number), Content::Assigned { value: [value; 32], digest });
        let log = a2m.logs().get(Q).expect("a log");
        assert_eq!((log.low(), log.high(), log.digest()), (slot(0), slot(number), digest));
    }
    assert_eq!(chained(slot(1), &[1; 32], &ZERO), by_hand(1, 1, ZERO));
    assert_eq!(a2m.logs().get(M).expect("a log").high(), slot(0), "another log is another log");
}

#[test]
fn an_append_for_another_slot_than_the_next_is_refused() {
    covers!("A2M-L1");
    let mut a2m = volatile(4);
    for number in [0, 2, u128::MAX] {
        refused(&mut a2m, append(Q, number, 1), Unfit::Elsewhere { high: slot(0) });
    }
    done(&mut a2m, &[append(Q, 1, 1)]);
    for number in [0, 1, 3] {
        refused(&mut a2m, append(Q, number, 1), Unfit::Elsewhere { high: slot(1) });
    }
}

#[test]
fn an_advance_gives_up_what_it_passes_over() {
    covers!("A2M-L3", "A2M-L6");
    let mut a2m = volatile(4);
    done(&mut a2m, &[append(Q, 1, 1), advance(Q, 5, [9; 32], 5), append(Q, 6, 6)]);
    let fifth = jump_by_hand(5, 5, [9; 32]);
    assert_eq!(content(&a2m, Q, 5), Content::Assigned { value: [5; 32], digest: fifth });
    for number in 2..=4 {
        let skipped = Content::Skipped { end: slot(5), value: [5; 32], digest: fifth };
        assert_eq!(content(&a2m, Q, number), skipped);
        refused(&mut a2m, append(Q, number, 1), Unfit::Elsewhere { high: slot(6) });
    }
    let sixth = by_hand(6, 6, fifth);
    assert_eq!(content(&a2m, Q, 6), Content::Assigned { value: [6; 32], digest: sixth });
    for number in [0, 1, 3, 5, 6] {
        refused(&mut a2m, advance(Q, number, ZERO, 1), Unfit::NotAhead { high: slot(6) });
    }
}

#[test]
fn an_advance_to_the_next_slot_skips_none_and_starts_another_chain() {
    covers!("A2M-L3");
    let mut a2m = volatile(2);
    done(&mut a2m, &[append(Q, 1, 1), advance(Q, 2, ZERO, 2)]);
    assert_eq!(content(&a2m, Q, 2), Content::Assigned { value: [2; 32], digest: jump_by_hand(2, 2, ZERO) });
    assert_eq!(content(&a2m, Q, 1), Content::Assigned { value: [1; 32], digest: by_hand(1, 1, ZERO) });
}

#[test]
fn two_histories_are_equal_only_if_their_digests_are() {
    covers!("A2M-L2");
    let digest = |values: &[u8]| {
        let mut a2m = volatile(4);
        for (number, value) in (1..).zip(values) {
            done(&mut a2m, &[append(Q, number, *value)]);
        }
        a2m.logs().get(Q).expect("a log").digest()
    };
    assert_eq!(digest(&[1, 2, 3]), digest(&[1, 2, 3]));
    for other in [&[1, 2][..], &[1, 2, 4], &[2, 2, 3], &[1, 3, 2], &[1, 2, 3, 3]] {
        assert_ne!(digest(&[1, 2, 3]), digest(other));
    }
}

#[test]
fn a_log_that_jumped_into_a_history_is_not_one_that_was_appended_to() {
    covers!("A2M-L7");
    let digest = |operations: &[Operation]| {
        let mut a2m = volatile(4);
        done(&mut a2m, operations);
        a2m.logs().get(Q).expect("a log").digest()
    };
    let whole = digest(&[append(Q, 1, 1), append(Q, 2, 2), append(Q, 3, 3)]);
    // It attested another first entry, and would now say that its history is the whole one.
    let jumped = digest(&[append(Q, 1, 9), advance(Q, 2, by_hand(1, 1, ZERO), 2), append(Q, 3, 3)]);
    assert_ne!(jumped, whole);
    assert_eq!(jumped, by_hand(3, 3, jump_by_hand(2, 2, by_hand(1, 1, ZERO))));
}

#[test]
fn a_log_that_held_nothing_may_begin_within_a_history() {
    covers!("A2M-L8");
    let digest = |operations: &[Operation]| {
        let mut a2m = volatile(4);
        done(&mut a2m, operations);
        a2m.logs().get(Q).expect("a log").digest()
    };
    let whole = digest(&[append(Q, 1, 1), append(Q, 2, 2), append(Q, 3, 3)]);
    let begins = advance(Q, 2, by_hand(1, 1, ZERO), 2);
    assert_eq!(digest(&[begins, append(Q, 3, 3)]), whole);
    // Once, whatever it forgets.
    assert_ne!(digest(&[append(Q, 1, 1), begins, append(Q, 3, 3)]), whole);
    let first = advance(Q, 1, ZERO, 1);
    assert_ne!(digest(&[first, truncate(Q, 1), begins, append(Q, 3, 3)]), whole);
    let mut a2m = volatile(4);
    done(&mut a2m, &[begins]);
    assert!(matches!(content(&a2m, Q, 1), Content::Skipped { .. }), "it says nothing of what was before");
}

#[test]
fn a_full_log_refuses_and_overwrites_nothing() {
    covers!("A2M-L4");
    let mut a2m = volatile(2);
    done(&mut a2m, &[append(Q, 1, 1), advance(Q, 7, ZERO, 7)]);
    refused(&mut a2m, append(Q, 8, 8), Unfit::Full);
    refused(&mut a2m, advance(Q, 9, ZERO, 9), Unfit::Full);
    assert_eq!(a2m.logs().get(Q).expect("a log").room(), 0);
    assert!(matches!(content(&a2m, Q, 1), Content::Assigned { value, .. } if value == [1; 32]));
    done(&mut a2m, &[append(M, 1, 1), truncate(Q, 1)]);
    refused(&mut a2m, append(Q, 8, 8), Unfit::Full);
    done(&mut a2m, &[truncate(Q, 2), append(Q, 8, 8)]);
    refused(&mut a2m, append(Q, 9, 9), Unfit::Full);
    let mut none = volatile(0);
    refused(&mut none, append(Q, 1, 1), Unfit::Full);
    refused(&mut none, advance(Q, 1, ZERO, 1), Unfit::Full);
}

#[test]
fn a_truncation_forgets_what_is_below_and_nothing_else() {
    covers!("A2M-L5", "A2M-L6");
    let mut a2m = volatile(4);
    done(&mut a2m, &[append(Q, 1, 1), append(Q, 2, 2), advance(Q, 6, ZERO, 6), append(Q, 7, 7)]);
    let kept: Vec<_> = (4..=8).map(|number| content(&a2m, Q, number)).collect();
    let outside = |low, high| Unfit::OutsideLog { low: slot(low), high: slot(high) };
    refused(&mut a2m, truncate(Q, 0), outside(0, 7));
    refused(&mut a2m, truncate(Q, 8), outside(0, 7));
    // Into the skipped range: the rest of it stays skipped.
    done(&mut a2m, &[truncate(Q, 4)]);
    assert_eq!((4..=8).map(|number| content(&a2m, Q, number)).collect::<Vec<_>>(), kept);
    for number in 0..4 {
        assert_eq!(content(&a2m, Q, number), Content::Forgotten { low: slot(4) });
    }
    assert_eq!(a2m.logs().get(Q).expect("a log").entries().len(), 2);
    refused(&mut a2m, truncate(Q, 4), outside(4, 7));
    refused(&mut a2m, truncate(Q, 3), outside(4, 7));
    // The last slot stays in any case, and the chain with it.
    done(&mut a2m, &[truncate(Q, 7)]);
    assert_eq!(content(&a2m, Q, 7), kept[3]);
    assert_eq!(content(&a2m, Q, 6), Content::Forgotten { low: slot(7) });
    let Content::Assigned { digest: seventh, .. } = kept[3] else { panic!("{kept:?}") };
    done(&mut a2m, &[append(Q, 8, 8)]);
    assert_eq!(content(&a2m, Q, 8), Content::Assigned { value: [8; 32], digest: by_hand(8, 8, seventh) });
    let mut empty = volatile(1);
    refused(&mut empty, truncate(Q, 0), outside(0, 0));
    refused(&mut empty, truncate(Q, 1), outside(0, 0));
}

#[test]
fn slot_zero_holds_nothing_and_what_is_above_the_end_is_unassigned() {
    covers!("A2M-L6");
    let mut a2m = volatile(2);
    assert_eq!(content(&a2m, Q, 0), Content::Forgotten { low: slot(0) });
    assert_eq!(content(&a2m, Q, 1), Content::Unassigned { high: slot(0) });
    assert_eq!(content(&a2m, Q, u128::MAX), Content::Unassigned { high: slot(0) });
    done(&mut a2m, &[append(Q, 1, 1)]);
    assert_eq!(content(&a2m, Q, 0), Content::Forgotten { low: slot(0) });
    assert_eq!(content(&a2m, Q, 2), Content::Unassigned { high: slot(1) });
    refused(&mut a2m, advance(M, 0, ZERO, 1), Unfit::NotAhead { high: slot(0) });
}

#[test]
fn the_last_slot_of_all_ends_a_log() {
    covers!("A2M-L1", "A2M-L3");
    let mut a2m = volatile(3);
    done(&mut a2m, &[advance(Q, u128::MAX - 1, ZERO, 1), append(Q, u128::MAX, 2)]);
    for number in [0, 1, u128::MAX] {
        refused(&mut a2m, append(Q, number, 3), Unfit::Spent);
        refused(&mut a2m, advance(Q, number, ZERO, 3), Unfit::NotAhead { high: slot(u128::MAX) });
    }
    assert!(matches!(content(&a2m, Q, u128::MAX), Content::Assigned { .. }));
    done(&mut a2m, &[truncate(Q, u128::MAX)]);
    assert!(matches!(content(&a2m, Q, u128::MAX), Content::Assigned { .. }));
}

#[test]
fn there_are_sixteen_logs() {
    let mut a2m = volatile(2);
    done(&mut a2m, &[append(LogId(15), 1, 1)]);
    for absent in [16, 17, 256, u16::MAX].map(LogId) {
        for operation in [
            append(absent, 1, 1),
            advance(absent, 1, ZERO, 1),
            truncate(absent, 1),
            lookup(absent, 1),
            end(absent),
        ] {
            refused(&mut a2m, operation, Unfit::NoSuchLog);
        }
        assert!(a2m.logs().get(absent).is_none());
    }
}

#[test]
fn an_abandoned_view_is_one_entry_and_shows_what_was_committed_in_it() {
    let at = |view, number| CounterValue::new(view, number).0;
    let mut a2m = volatile(4);
    // COMMITs 1 and 2 of view 3, then the end of view 3 and the whole of view 4.
    done(&mut a2m, &[advance(M, at(3, 1), ZERO, 1), advance(M, at(3, 2), ZERO, 2)]);
    done(&mut a2m, &[advance(M, at(4, 0) - 1, ZERO, 0), advance(M, at(5, 0) - 1, ZERO, 0)]);
    let end_of = |view| CounterValue::new(view, u64::MAX);
    let abandoned = |content, by: Slot| match content {
        Content::Skipped { end, value, .. } => end == by && value == ZERO,
        _ => false,
    };
    for number in [3, 4, u64::MAX - 1] {
        assert!(abandoned(content(&a2m, M, at(3, number)), end_of(3)));
    }
    for number in [0, 1, u64::MAX - 1] {
        assert!(abandoned(content(&a2m, M, at(4, number)), end_of(4)));
    }
    assert!(matches!(content(&a2m, M, at(3, 2)), Content::Assigned { .. }));
    refused(&mut a2m, advance(M, at(3, 3), ZERO, 3), Unfit::NotAhead { high: end_of(4) });
    assert_eq!(a2m.logs().get(M).expect("a log").entries().len(), 4);
}

#[test]
fn the_nonce_of_a_slot_is_its_number() {
    let mut expected = [0; 32];
    expected[23] = 7;
    expected[31] = 9;
    assert_eq!(slot_nonce(CounterValue::new(7, 9)), expected);
}

#[test]
fn logs_are_equal_if_they_say_the_same_whatever_room_they_have() {
    let of = |entries, operations: &[Operation]| {
        let mut a2m = volatile(entries);
        done(&mut a2m, operations);
        a2m.logs().get(Q).expect("a log").clone()
    };
    let two = [append(Q, 1, 1), append(Q, 2, 2)];
    assert_eq!(of(2, &two), of(5, &two));
    assert_ne!(of(2, &two), of(2, &[append(Q, 1, 1), append(Q, 2, 3)]), "another value");
    assert_ne!(of(2, &two), of(2, &[two[0], two[1], truncate(Q, 1)]), "another low mark");
    let shown = format!("{:?}", of(2, &two[..1]));
    assert!(
        shown.starts_with("Log { low: CounterValue(0), entries: [Entry { slot: CounterValue(1), "),
        "{shown}"
    );
}
