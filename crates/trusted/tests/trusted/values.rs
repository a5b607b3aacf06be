//! Counter values, structured values and sets of moves.

use crate::support::{moves, step};
use troth_trusted::{COUNTERS, CounterId, CounterValue, Moves};

#[test]
fn structured_values_order_by_view_first() {
    let value = CounterValue::new(3, 9);
    assert_eq!(value.0, (3 << 64) + 9);
    assert_eq!((value.view(), value.count()), (3, 9));
    assert!(CounterValue::new(3, u64::MAX) < CounterValue::new(4, 0));
    assert_eq!(CounterValue::new(u64::MAX, u64::MAX).0, u128::MAX);
}

#[test]
fn the_next_value_carries_and_ends() {
    assert_eq!(CounterValue(4).next(), Some(CounterValue(5)));
    assert_eq!(CounterValue::new(1, u64::MAX).next(), Some(CounterValue::new(2, 0)));
    assert_eq!(CounterValue(u128::MAX).next(), None);
    assert_eq!(CounterValue(4).plus(3), Some(CounterValue(7)));
    assert_eq!(CounterValue(u128::MAX - 1).plus(2), None);
}

#[test]
fn moves_are_two_to_eight_of_existing_counters_in_one_order() {
    let all: Vec<_> = (0..COUNTERS as u16).map(|c| step(c, 0, 1)).collect();
    assert_eq!(moves(&all).as_slice(), all);
    assert_eq!(moves(&all[3..5]).as_slice(), &all[3..5]);
    assert_eq!(moves(&all[3..5]).get(CounterId(4)), Some(all[4]));
    assert_eq!(moves(&all[3..5]).get(CounterId(5)), None);
    assert_eq!(Moves::new(&[]), None);
    assert_eq!(Moves::new(&all[..1]), None);
    assert_eq!(Moves::new(&[all[1], all[0]]), None);
    assert_eq!(Moves::new(&[all[1], all[1]]), None);
    assert_eq!(Moves::new(&[all[1], step(8, 0, 1)]), None);
    let nine: Vec<_> = (0..=COUNTERS as u16).map(|c| step(c, 0, 1)).collect();
    assert_eq!(Moves::new(&nine), None);
}

#[test]
fn equal_sets_of_moves_are_equal() {
    let two = [step(0, 0, 1), step(1, 0, 1)];
    assert_eq!(moves(&two), moves(&two));
    assert_ne!(moves(&two), moves(&[two[0], two[1], step(2, 0, 1)]));
    assert_ne!(moves(&two), moves(&[two[0], step(1, 0, 2)]));
}
