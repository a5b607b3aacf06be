//! Calls of several operations, and the store behind them.

use super::*;
use std::cell::RefCell;
use std::rc::Rc;
use troth_trusted::StoreFailed;
use troth_trusted::a2m::{LogRefusal, Logs, MOST_OPERATIONS, Unfit};

/// The operations of each call that was stored.
type Stored = Rc<RefCell<Vec<Vec<Operation>>>>;

/// Keeps what it is told, or fails as it is told.
#[derive(Clone, Debug, Default)]
struct Journal {
    stored: Stored,
    fails: Option<StoreFailed>,
}

impl LogStore<Vec<Entry>> for Journal {
    fn store(&mut self, _before: &Logs<Vec<Entry>>, operations: &[Operation]) -> Result<(), StoreFailed> {
        self.fails.map_or(Ok(()), Err)?;
        self.stored.borrow_mut().push(operations.to_vec());
        Ok(())
    }
}

fn journalled(fails: Option<StoreFailed>) -> (Component<Journal>, Stored) {
    let journal = Journal { fails, ..Journal::default() };
    let stored = Rc::clone(&journal.stored);
    (A2m::start(IDENTITY, Certifier::Mac(mac_key()), journal, room(3)), stored)
}

fn all<S: LogStore<Vec<Entry>>>(
    component: &mut Component<S>,
    operations: &[Operation],
) -> Result<Vec<Answer>, LogRefusal> {
    let mut answers = Vec::new();
    component.call(operations, |answer| answers.push(answer)).map(|()| answers)
}

#[test]
fn a_change_with_a_nonce_is_the_change_and_the_lookup_in_one() {
    covers!("A2M-A4");
    let (mut together, mut apart) = (volatile(3), volatile(3));
    for change in [append(Q, 1, 1), advance(Q, 9, [3; 32], 9)] {
        let attestation = attested(&mut together, fused(change));
        done(&mut apart, &[change]);
        let (Operation::Append { slot, .. } | Operation::Advance { slot, .. }) = change else {
            panic!("{change:?} fills no slot")
        };
        assert_eq!(attestation, attested(&mut apart, lookup(Q, slot.0)));
        assert!(matches!(attestation.claim.content, Content::Assigned { .. }));
        assert_eq!(*together.logs(), *apart.logs());
    }
}

#[test]
fn a_call_answers_each_operation_in_order_and_as_the_logs_were_then() {
    covers!("A2M-C1");
    let mut a2m = volatile(3);
    let calls = [
        end(Q),
        lookup(M, 1),
        append(Q, 1, 1),
        fused(append(M, 1, 2)),
        end(Q),
        advance(Q, 4, ZERO, 4),
        lookup(Q, 2),
        truncate(Q, 3),
        lookup(Q, 2),
        end(Q),
    ];
    let answers = all(&mut a2m, &calls).expect("all can be done");
    let seen: Vec<_> = answers
        .iter()
        .map(|answer| match answer {
            Answer::Done => None,
            Answer::Attested(made) => Some((made.claim.log, made.claim.slot, made.claim.content)),
        })
        .collect();
    let assigned = |log, number| content(&a2m, log, number);
    let first =
        Content::Assigned { value: [1; 32], digest: troth_trusted::a2m::chained(slot(1), &[1; 32], &ZERO) };
    let Content::Assigned { value, digest } = assigned(Q, 4) else { panic!("slot 4 was filled") };
    assert_eq!(
        seen,
        [
            Some((Q, slot(0), Content::Forgotten { low: slot(0) })),
            Some((M, slot(1), Content::Unassigned { high: slot(0) })),
            None,
            Some((M, slot(1), assigned(M, 1))),
            Some((Q, slot(1), first)),
            None,
            Some((Q, slot(2), Content::Skipped { end: slot(4), value, digest })),
            None,
            Some((Q, slot(2), Content::Forgotten { low: slot(3) })),
            Some((Q, slot(4), assigned(Q, 4))),
        ]
    );
    assert_eq!(all(&mut a2m, &[]), Ok(vec![]));
}

#[test]
fn one_call_does_what_single_calls_do() {
    covers!("A2M-C1");
    let calls =
        [append(Q, 1, 1), append(Q, 2, 2), advance(M, 7, ZERO, 7), truncate(Q, 2), end(Q), lookup(M, 3)];
    let (mut together, mut apart) = (volatile(3), volatile(3));
    let answers = all(&mut together, &calls).expect("all can be done");
    let single: Vec<_> = calls.iter().map(|call| apart.one(*call).expect("it can be done")).collect();
    assert_eq!(answers, single);
    assert_eq!(*together.logs(), *apart.logs());
}

#[test]
fn where_one_operation_cannot_be_done_none_is() {
    covers!("A2M-C2");
    let good = [fused(append(Q, 2, 2)), fused(advance(M, 5, ZERO, 5)), end(Q), lookup(M, 1)];
    let bad = [
        (append(LogId(16), 1, 1), Unfit::NoSuchLog),
        (lookup(LogId(16), 1), Unfit::NoSuchLog),
        (append(LogId(2), 2, 1), Unfit::Elsewhere { high: slot(0) }),
        (advance(LogId(3), 4, ZERO, 1), Unfit::NotAhead { high: slot(4) }),
        (append(LogId(4), 1, 1), Unfit::Spent),
        (append(LogId(6), 4, 1), Unfit::Full),
        (truncate(LogId(7), 1), Unfit::OutsideLog { low: slot(0), high: slot(0) }),
    ];
    let (mut a2m, stored) = journalled(None);
    done(&mut a2m, &[append(Q, 1, 1), advance(LogId(3), 4, ZERO, 4), advance(LogId(4), u128::MAX, ZERO, 1)]);
    done(&mut a2m, &[1, 2, 3].map(|number| append(LogId(6), number, 1)));
    let (before, stores) = (a2m.logs().clone(), stored.borrow().len());
    for (operation, why) in bad {
        for index in 0..=good.len() {
            let mut calls = good.to_vec();
            calls.insert(index, operation);
            let mut answers = 0;
            let refused = a2m.call(&calls, |_| answers += 1);
            assert_eq!(refused, Err(LogRefusal::Operation { index, why }), "{calls:?}");
            assert_eq!((answers, stored.borrow().len()), (0, stores), "{calls:?}");
            assert_eq!(*a2m.logs(), before, "{calls:?}");
        }
    }
    assert!(all(&mut a2m, &good).is_ok(), "without the bad one they are done");
}

#[test]
fn an_operation_counts_on_those_before_it_in_the_call() {
    covers!("A2M-C2");
    let mut a2m = volatile(3);
    let at = |index, why| Err(LogRefusal::Operation { index, why });
    let twice = [append(Q, 1, 1), append(Q, 1, 2)];
    assert_eq!(all(&mut a2m, &twice), at(1, Unfit::Elsewhere { high: slot(1) }));
    let back = [advance(Q, 5, ZERO, 5), advance(Q, 5, ZERO, 6)];
    assert_eq!(all(&mut a2m, &back), at(1, Unfit::NotAhead { high: slot(5) }));
    let four = [1, 2, 3, 4].map(|number| append(Q, number, 1));
    assert_eq!(all(&mut a2m, &four), at(3, Unfit::Full));
    let again = [append(Q, 1, 1), append(Q, 2, 1), truncate(Q, 2), truncate(Q, 2)];
    assert_eq!(all(&mut a2m, &again), at(3, Unfit::OutsideLog { low: slot(2), high: slot(2) }));
    // What a truncation sets free is there from the next call on.
    let freed = [append(Q, 1, 1), append(Q, 2, 1), append(Q, 3, 1), truncate(Q, 3), append(Q, 4, 1)];
    assert_eq!(all(&mut a2m, &freed), at(4, Unfit::Full));
    assert!(all(&mut a2m, &freed[..4]).is_ok());
    assert!(all(&mut a2m, &freed[4..]).is_ok());
}

#[test]
fn changes_are_stored_before_anything_is_answered_and_lookups_not_at_all() {
    covers!("A2M-S1");
    let (mut a2m, stored) = journalled(None);
    let calls = [end(Q), fused(append(Q, 1, 1)), append(M, 1, 2)];
    let mut answers = 0;
    let answered = a2m.call(&calls, |_| {
        assert_eq!(stored.borrow().len(), 1, "answered before it was stored");
        answers += 1;
    });
    assert_eq!((answered, answers), (Ok(()), 3));
    assert_eq!(*stored.borrow(), [calls.to_vec()]);
    all(&mut a2m, &[lookup(Q, 1), end(M)]).expect("lookups");
    assert_eq!(stored.borrow().len(), 1);
    assert_eq!(a2m.into_store().stored.borrow().len(), 1);
}

#[test]
fn a_store_without_space_refuses_the_call_and_halts_nothing() {
    covers!("A2M-S1");
    let (mut a2m, _) = journalled(Some(StoreFailed::NoSpace));
    let empty = a2m.logs().clone();
    for calls in [&[append(Q, 1, 1)][..], &[end(Q), fused(advance(M, 3, ZERO, 3))]] {
        assert_eq!(all(&mut a2m, calls), Err(LogRefusal::NoSpace));
        assert_eq!(*a2m.logs(), empty);
    }
    assert!(all(&mut a2m, &[end(Q)]).is_ok());
}

#[test]
fn a_failed_store_halts_the_component_for_good() {
    covers!("A2M-S1");
    let (mut a2m, _) = journalled(Some(StoreFailed::Unknown));
    let empty = a2m.logs().clone();
    assert!(all(&mut a2m, &[end(Q)]).is_ok());
    for calls in [&[append(Q, 1, 1)][..], &[end(Q)], &[lookup(Q, 1)], &[], &[append(LogId(99), 1, 1)]] {
        assert_eq!(all(&mut a2m, calls), Err(LogRefusal::Halted));
        assert_eq!(*a2m.logs(), empty);
    }
}

#[test]
fn a_caller_that_unwinds_amid_the_answers_leaves_a_component_that_has_halted() {
    covers!("A2M-S1");
    let mut a2m = volatile(3);
    let unwound = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        a2m.call(&[append(Q, 1, 1), append(Q, 2, 2)], |_| panic!("no room for the answer"))
    }));
    assert!(unwound.is_err());
    assert_eq!(all(&mut a2m, &[append(Q, 2, 3)]), Err(LogRefusal::Halted));
    assert_eq!(all(&mut a2m, &[end(Q)]), Err(LogRefusal::Halted));
}

#[test]
fn a_call_of_too_many_operations_is_refused_as_a_whole() {
    covers!("A2M-C3");
    let (mut a2m, stored) = journalled(None);
    let mut operations = vec![append(Q, 1, 1)];
    operations.resize(MOST_OPERATIONS + 1, end(Q));
    assert_eq!(all(&mut a2m, &operations), Err(LogRefusal::TooMany));
    assert!(stored.borrow().is_empty() && a2m.logs().get(Q).is_some_and(|log| log.high().0 == 0));
    operations.pop();
    assert_eq!(all(&mut a2m, &operations).map(|answers| answers.len()), Ok(MOST_OPERATIONS));
}
