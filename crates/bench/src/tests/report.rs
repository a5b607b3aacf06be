//! Tests of the arithmetic.

use crate::marks::{cpu_of, parent_of};
use crate::report::{median, percentile};
use crate::syscalls::{Event, counted};

#[test]
fn percentiles_count_every_operation() {
    let values = [(30, 1), (10, 98), (20, 1)];
    assert_eq!(percentile(&values, 0.50), 10.0);
    assert_eq!(percentile(&values, 0.98), 10.0);
    assert_eq!(percentile(&values, 0.99), 20.0);
    assert_eq!(percentile(&values, 1.0), 30.0);
    assert_eq!(percentile(&[], 0.99), 0.0);
}

#[test]
fn the_median_is_in_the_middle() {
    assert_eq!(median([3.0, 1.0, 2.0]), 2.0);
    assert_eq!(median([4.0, 1.0, 2.0, 3.0]), 2.5);
    assert_eq!(median([]), 0.0);
}

#[test]
fn processor_time_is_found_behind_any_name() {
    let stat = "77 (a b) c) 1 2) S 1 77 77 0 -1 4194560 100 0 0 0 250 50 7 8 20 0 1 0 100 0 0";
    assert_eq!(cpu_of(stat), Some(3_000_000));
    assert_eq!(cpu_of("77 (x) S 1 77"), None);
    assert_eq!(parent_of(stat), Some(1));
    assert_eq!(parent_of(""), None);
}

#[test]
fn system_calls_are_read_from_what_perf_prints() {
    assert_eq!(counted(Event::Calls, "48213,,raw_syscalls:sys_enter,1500123456,100.00,,\n"), Some(48_213));
    assert_eq!(counted(Event::Calls, "<not counted>,,raw_syscalls:sys_enter,0,100.00,,\n"), None);
    assert_eq!(counted(Event::Calls, "event syntax error: 'raw_syscalls:sys_enter'\n"), None);
    assert_eq!(counted(Event::Calls, ""), None);
    assert_eq!(
        counted(Event::Instructions, "912345678,,instructions,500123456,100.00,,\n"),
        Some(912_345_678)
    );
    assert_eq!(counted(Event::Instructions, "<not supported>,,instructions,0,100.00,,\n"), None);
}
