//! What time it is.

use crate::shell::{Clock, since_start};
use core::time::Duration;
use rustix::system::sysinfo;
use tokio::time::Instant;
use troth_types::Time;

/// The kernel says in `sysinfo` how long ago it started, with the time in which the machine was suspended. On a machine that
/// never was the other clocks say the same, but not where a namespace of time sets this one apart
/// (`unshare --time --boottime 100000`).
#[test]
fn time_goes_on_while_the_machine_is_suspended() {
    let seconds = u64::try_from(sysinfo().uptime).expect("it has started");
    let apart = since_start().abs_diff(Duration::from_secs(seconds));
    assert!(apart < Duration::from_secs(10), "{apart:?}");
}

#[test]
fn what_has_become_due_in_a_suspension_is_due_at_once() {
    let hour = Duration::from_secs(3_600);
    let began = Time(1_700_000_000_000_000);
    let clock = Clock::of(began, since_start().saturating_sub(hour));
    let passed = clock.now().0 - began.0;
    let (least, most) = (since_start().min(hour), hour + Duration::from_secs(10));
    assert!((least.as_micros()..most.as_micros()).contains(&u128::from(passed)), "{passed}");
    assert!(clock.at(began.after(passed / 2)) <= Instant::now());
    // What is not due is counted from now on: no timer has gone on meanwhile.
    let later = clock.at(clock.now().after(60_000_000));
    let waits = later.saturating_duration_since(Instant::now());
    assert!((50..=60).contains(&waits.as_secs()), "{waits:?}");
}
