//! The linearizability search on small histories with known verdicts.

use crate::checks::{Call, Linear, Verdict, search};
use bytes::Bytes;
use troth_kv::{Answer, Operation};

fn key() -> Bytes {
    Bytes::from_static(b"k")
}

fn call(invoked: u64, returned: u64, operation: Operation, answer: Answer) -> Call {
    Call { invoked, returned: Some(returned), operation, answer: Some(answer) }
}

fn put(invoked: u64, returned: u64, value: &'static str, version: u64) -> Call {
    let operation = Operation::Put { key: key(), value: Bytes::from_static(value.as_bytes()) };
    call(invoked, returned, operation, Answer::Written { version })
}

fn lost_put(invoked: u64, value: &'static str) -> Call {
    let operation = Operation::Put { key: key(), value: Bytes::from_static(value.as_bytes()) };
    Call { invoked, returned: None, operation, answer: None }
}

fn got(invoked: u64, returned: u64, value: &'static str, version: u64) -> Call {
    let answer = Answer::Value { version, value: Bytes::from_static(value.as_bytes()) };
    call(invoked, returned, Operation::Get { key: key() }, answer)
}

fn got_nothing(invoked: u64, returned: u64) -> Call {
    call(invoked, returned, Operation::Get { key: key() }, Answer::NotFound)
}

fn verdict(calls: &[Call]) -> Verdict {
    search(calls, 10_000)
}

#[test]
fn a_read_shows_the_last_write() {
    assert_eq!(verdict(&[put(0, 1, "a", 1), got(2, 3, "a", 1)]), Verdict::Linearizable);
    assert_eq!(verdict(&[put(0, 1, "a", 1), got_nothing(2, 3)]), Verdict::Impossible);
    assert_eq!(verdict(&[put(0, 9, "a", 1), got_nothing(2, 3)]), Verdict::Linearizable, "they overlap");
}

#[test]
fn a_stale_read_is_impossible() {
    let history = [put(0, 1, "a", 1), put(2, 3, "b", 2), got(4, 5, "a", 1)];
    assert_eq!(verdict(&history), Verdict::Impossible);
}

#[test]
fn two_reads_do_not_go_back() {
    let history = [put(0, 1, "a", 1), put(2, 9, "b", 2), got(3, 4, "b", 2), got(5, 6, "a", 1)];
    assert_eq!(verdict(&history), Verdict::Impossible);
}

#[test]
fn a_write_with_unknown_outcome_may_have_happened_or_not() {
    assert_eq!(verdict(&[lost_put(0, "a"), got(2, 3, "a", 1)]), Verdict::Linearizable);
    assert_eq!(verdict(&[lost_put(0, "a"), got_nothing(2, 3)]), Verdict::Linearizable);
    assert_eq!(verdict(&[lost_put(0, "a"), got_nothing(2, 3), got(4, 5, "a", 1)]), Verdict::Linearizable);
    assert_eq!(
        verdict(&[lost_put(5, "a"), got(2, 3, "a", 1)]),
        Verdict::Impossible,
        "not before it was sent"
    );
    assert_eq!(verdict(&[lost_put(0, "a"), got(2, 3, "a", 1), got_nothing(4, 5)]), Verdict::Impossible);
}

#[test]
fn a_swap_needs_the_version_that_it_expects() {
    let swap = |expected, answer| {
        let value = Some(Bytes::from_static(b"s"));
        call(4, 5, Operation::CompareAndSwap { key: key(), expected, value }, answer)
    };
    let written = put(0, 1, "a", 3);
    assert_eq!(
        verdict(&[written.clone(), swap(Some(3), Answer::Written { version: 4 })]),
        Verdict::Linearizable
    );
    assert_eq!(
        verdict(&[written.clone(), swap(Some(2), Answer::Written { version: 4 })]),
        Verdict::Impossible
    );
    assert_eq!(
        verdict(&[written.clone(), swap(None, Answer::Mismatch { current: Some(3) })]),
        Verdict::Linearizable
    );
    assert_eq!(verdict(&[written, swap(None, Answer::Mismatch { current: None })]), Verdict::Impossible);
}

#[test]
fn versions_do_not_go_back() {
    assert_eq!(verdict(&[put(0, 1, "a", 5), put(2, 3, "b", 4)]), Verdict::Impossible);
    assert_eq!(verdict(&[put(0, 9, "a", 5), put(2, 3, "b", 4)]), Verdict::Linearizable, "they overlap");
}

#[test]
fn deletes_leave_nothing() {
    let delete = |answer| call(2, 3, Operation::Delete { key: key() }, answer);
    let gone = Answer::Deleted { version: 2 };
    assert_eq!(verdict(&[put(0, 1, "a", 1), delete(gone.clone()), got_nothing(4, 5)]), Verdict::Linearizable);
    assert_eq!(verdict(&[put(0, 1, "a", 1), delete(gone.clone()), got(4, 5, "a", 1)]), Verdict::Impossible);
    assert_eq!(verdict(&[delete(gone)]), Verdict::Impossible, "there was nothing to delete");
    assert_eq!(verdict(&[put(0, 1, "a", 1), delete(Answer::NotFound)]), Verdict::Impossible);
}

#[test]
fn many_overlapping_calls_are_judged() {
    let names: Vec<&'static str> =
        (0..40).map(|index| &*Box::leak(format!("v{index}").into_boxed_str())).collect();
    let mut calls: Vec<Call> =
        (0..40).map(|index| put(index, 200 + index, names[index as usize], index + 1)).collect();
    calls.extend((0..20).map(|index| got(100 + index, 300, names[index as usize * 2], index * 2 + 1)));
    calls.extend((0..10).map(|index| lost_put(index, "never")));
    let mut linear = Linear::default();
    for call in &calls {
        linear.add(key(), call.clone());
    }
    assert_eq!(linear.judge(), Ok(()));
    assert_eq!(linear.undecided, 0);
    linear.add(key(), got(400, 401, names[3], 4));
    let found = linear.judge().expect_err("a stale read at the end");
    assert!(found.contains("impossible at 401"), "{found}");
}
