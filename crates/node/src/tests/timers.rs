use crate::timers::Timers;
use troth_types::Time;

#[test]
fn due_timers_come_in_order_and_once() {
    let mut timers = Timers::new();
    timers.set("b", Time(20));
    timers.set("a", Time(10));
    timers.set("c", Time(30));
    assert_eq!(timers.next(), Some(Time(10)));
    assert_eq!(timers.take_due(Time(20)), ["a", "b"]);
    assert_eq!(timers.take_due(Time(20)), [""; 0]);
    assert_eq!(timers.next(), Some(Time(30)));
}

#[test]
fn a_timer_set_again_moves_and_a_cancelled_one_is_gone() {
    let mut timers = Timers::new();
    timers.set(1, Time(10));
    timers.set(1, Time(50));
    timers.set(2, Time(20));
    timers.cancel(2);
    assert_eq!(timers.take_due(Time(49)), [0; 0]);
    assert_eq!(timers.take_due(Time(50)), [1]);
    assert_eq!(timers.next(), None);
}
