//! The limit on restarts.

use std::num::NonZeroUsize;
use std::time::Duration;
use troth_trusted_process::{RestartLimit, TooManyStarts};

fn limit(starts: usize, seconds: u64) -> RestartLimit {
    RestartLimit::new(NonZeroUsize::new(starts).expect("some"), Duration::from_secs(seconds))
}

fn at(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

#[test]
fn gives_up_at_one_start_too_many() {
    let mut limit = limit(3, 10);
    for now in [0, 4, 9] {
        assert_eq!(limit.start(at(now)), Ok(()));
    }
    let starts = NonZeroUsize::new(3).expect("some");
    assert_eq!(limit.start(at(9)), Err(TooManyStarts { starts, within: at(10) }));
}

#[test]
fn a_start_counts_for_exactly_the_span() {
    let mut limit = limit(2, 10);
    assert!(limit.start(at(0)).is_ok() && limit.start(at(5)).is_ok());
    let just_before = at(10) - Duration::from_nanos(1);
    assert!(limit.start(just_before).is_err());
    assert!(limit.start(at(10)).is_ok());
    assert!(limit.start(at(14)).is_err());
    assert!(limit.start(at(15)).is_ok());
}

#[test]
fn a_refused_start_is_not_counted() {
    let mut limit = limit(1, 10);
    assert!(limit.start(at(0)).is_ok());
    for now in 1..10 {
        assert!(limit.start(at(now)).is_err());
    }
    assert!(limit.start(at(10)).is_ok());
}

#[test]
fn a_clock_that_goes_back_makes_no_room() {
    let mut limit = limit(2, 10);
    assert!(limit.start(at(100)).is_ok() && limit.start(at(50)).is_ok());
    assert!(limit.start(at(0)).is_err());
    assert!(limit.start(at(60)).is_err());
}
