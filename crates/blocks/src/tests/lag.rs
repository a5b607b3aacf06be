use crate::{Behind, Lag};
use troth_types::Seq;

const WINDOW: u64 = 16;

#[test]
fn one_that_is_a_little_behind_waits_and_one_that_is_a_window_behind_does_not() {
    let mut lag = Lag::default();
    assert!(!lag.is_watched());
    assert_eq!(lag.noticed(Seq(1), Seq(4), WINDOW), Behind::Waits);
    assert!(lag.is_watched());
    assert_eq!(lag.noticed(Seq(1), Seq(16), WINDOW), Behind::WaitsAlready);
    assert_eq!(lag.noticed(Seq(1), Seq(17), WINDOW), Behind::Fetches);
    lag.is_over();
    assert_eq!(lag.noticed(Seq(2), Seq(17), WINDOW), Behind::Waits);
    assert_eq!(Lag::default().noticed(Seq(u64::MAX), Seq(4), WINDOW), Behind::Waits);
}

#[test]
fn a_state_that_others_let_go_of_is_not_waited_for() {
    let mut lag = Lag::default();
    lag.fetches(Seq(4));
    assert!(lag.is_watched());
    assert_eq!(lag.noticed(Seq(1), Seq(8), WINDOW), Behind::Fetches);
    lag.fetches(Seq(8));
    // It came, or the messages were faster.
    assert_eq!(lag.noticed(Seq(8), Seq(12), WINDOW), Behind::WaitsAlready);
    lag.is_over();
    assert_eq!(lag.noticed(Seq(9), Seq(12), WINDOW), Behind::Waits);
}
