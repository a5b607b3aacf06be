//! The history made wrong on purpose, and acknowledged writes that are gone.

use super::{done, get, open, put};
use crate::history::{Outcome, Record, Verb};
use crate::stale::{lost, stale};

#[test]
fn one_read_gets_the_overwritten_value() {
    let good = [put("a", 1, (0, 10)), put("b", 2, (20, 30)), get("b", 2, (25, 45)), get("b", 2, (40, 50))];
    let wrong = stale(&good).unwrap();
    // The first read began before the second write was acknowledged, so it may still find the first.
    assert_eq!(wrong[..3], good[..3]);
    assert_eq!((wrong[3].value.as_str(), wrong[3].version), ("a", Some(1)));
}

#[test]
fn a_history_that_no_change_makes_surely_wrong_is_left() {
    let nothing: [Record; 0] = [];
    assert_eq!(stale(&nothing), None);
    assert_eq!(stale(&[put("a", 1, (0, 10)), get("a", 1, (20, 30))]), None, "never overwritten");
    let together = [put("a", 1, (0, 10)), put("b", 2, (5, 30)), get("b", 2, (40, 50))];
    assert_eq!(stale(&together), None, "either write may be the later one");
    let unknown = [put("a", 1, (0, 10)), open("b", 20), get("a", 1, (40, 50))];
    assert_eq!(stale(&unknown), None, "the overwriting may never have been");
    let early = [put("a", 1, (0, 10)), put("b", 2, (20, 30)), get("a", 1, (25, 50))];
    assert_eq!(stale(&early), None, "the read began before the second write was acknowledged");
    let mut elsewhere = get("b", 2, (40, 50));
    elsewhere.key = "other".to_owned();
    assert_eq!(stale(&[put("a", 1, (0, 10)), put("b", 2, (20, 30)), elsewhere]), None);
}

#[test]
fn acknowledged_writes_that_the_last_read_does_not_show_are_lost() {
    let writes = [put("a", 1, (0, 10)), put("b", 2, (20, 30))];
    let with = |read: Record| [writes.to_vec(), vec![read]].concat();
    assert!(lost(&with(get("b", 2, (40, 50)))).is_empty());
    assert!(lost(&with(get("c", 3, (40, 50)))).is_empty(), "somebody wrote later");
    assert!(lost(&with(get("a", 1, (25, 50)))).is_empty(), "not acknowledged when the read began");
    assert_eq!(lost(&with(get("a", 1, (40, 50)))).len(), 1);
    assert_eq!(lost(&with(get("x", 2, (40, 50)))).len(), 1, "another value under the same version");
    assert_eq!(lost(&with(done(Verb::Get, "", Outcome::Absent, None, (40, 50)))).len(), 1);
    let later = [with(get("a", 1, (40, 50))), vec![get("b", 2, (60, 70))]].concat();
    assert!(lost(&later).is_empty(), "only the last read counts here; the judge sees the others");
}
