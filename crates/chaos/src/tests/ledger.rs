//! The ledger: what it takes for lost, done twice or never asked for.

use crate::ledger::{Ledger, Values};

/// Two acknowledged writes of keys of their own, the first and second of three that were asked for.
fn ledger() -> Ledger {
    let mut ledger = Ledger::default();
    (0..3).for_each(|_| ledger.asked(true));
    ledger.asked(false);
    for (key, version) in [("a", 1), ("b", 2)] {
        ledger.wrote(version);
        ledger.alone(key, version, format!("{key}{version}"));
    }
    ledger
}

fn values(values: &[(&str, u64, &str)]) -> Values {
    values.iter().map(|(key, version, value)| ((*key).to_owned(), (*version, (*value).to_owned()))).collect()
}

fn compared(found: &[(&str, u64, &str)]) -> (usize, usize) {
    let mut ledger = ledger();
    ledger.compare(&values(found));
    (ledger.lost().len(), ledger.strangeness().len())
}

#[test]
fn what_is_there_is_not_lost_and_a_later_write_may_have_been_done() {
    assert_eq!(compared(&[("a", 1, "a1"), ("b", 2, "b2")]), (0, 0));
    assert_eq!(compared(&[("a", 1, "a1"), ("b", 3, "unheard of"), ("c", 4, "c")]), (0, 0));
}

#[test]
fn what_is_gone_older_or_another_value_is_lost() {
    assert_eq!(compared(&[("a", 1, "a1")]), (1, 0));
    assert_eq!(compared(&[]), (2, 0));
    assert_eq!(compared(&[("a", 1, "a1"), ("b", 1, "b1")]), (1, 0));
    assert_eq!(compared(&[("a", 1, "other"), ("b", 2, "b2")]), (1, 0));
}

#[test]
fn a_write_that_is_counted_twice_or_was_never_asked_for_is_strange() {
    let mut twice = ledger();
    twice.wrote(2);
    assert_eq!(twice.strangeness().len(), 1);
    let mut unasked = ledger();
    unasked.wrote(4);
    unasked.compare(&values(&[("a", 1, "a1"), ("b", 2, "b2")]));
    assert_eq!(unasked.strangeness().len(), 1, "the fourth of three");
    assert_eq!((unasked.acknowledged(), unasked.compared()), (3, 2));
}
