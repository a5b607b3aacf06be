//! What is ordered again for others, and what is asked of others.

use crate::{Favours, FavoursAsked};
use troth_types::{Digest, ReplicaId, Time};

#[test]
fn favours_are_few_for_each_and_renew() {
    let mut favours = Favours::new(800, 1000);
    let mut many = |replica, now| (0..20).filter(|_| favours.may(ReplicaId(replica), Time(now), 1)).count();
    assert_eq!((many(1, 1_000), many(2, 1_050), many(1, 1_099)), (16, 16, 0));
    assert_eq!((many(1, 1_100), many(2, 1_100)), (16, 0));
}

#[test]
fn favours_are_few_bytes_and_the_first_is_done_however_large_it_is() {
    let mut favours = Favours::new(800, 1000);
    let mut may = |now, bytes| favours.may(ReplicaId(1), Time(now), bytes);
    assert_eq!([may(0, 600), may(0, 401), may(0, 400), may(0, 1)], [true, false, true, false]);
    assert_eq!([may(100, 9000), may(100, 1), may(199, 1), may(200, 1)], [true, false, false, true]);
}

/// What is asked for, whatever is done of it and when, is never more than is done: so many frames of this size wait.
#[test]
fn no_more_is_asked_for_than_is_done() {
    for (bytes, each_time) in [(1, 16), (100, 10), (5000, 1)] {
        let (mut asked, mut favours) = (FavoursAsked::new(800, 1000), Favours::new(800, 1000));
        let (mut waiting, mut shown, mut lost) = ((0..100).collect::<Vec<u8>>(), 0, 0);
        let mut held = Vec::new();
        for turn in 0_u64.. {
            let (now, on_its_way) = (30 * turn, [80, 0, 50, 20][turn as usize % 4]);
            let frames = waiting.iter().map(|number| (Digest([*number; 32]), bytes));
            let count = asked.show(frames, Time(now));
            shown = shown.max(count);
            // Every third message is lost; what comes is done once, and its doer knows it then.
            if turn % 3 == 0 {
                lost += count;
                continue;
            }
            for number in waiting.drain(..count) {
                assert!(favours.may(ReplicaId(1), Time(now + on_its_way), bytes), "{number}");
                held.push(number);
            }
            if waiting.is_empty() {
                break;
            }
        }
        assert_eq!(shown, each_time);
        assert!(lost > 0 && held.len() == 100);
    }
}

#[test]
fn what_is_shown_again_counts_from_then_on() {
    let mut asked = FavoursAsked::new(800, 1000);
    let frames = |first: u8| (first..first + 16).map(|number| (Digest([number; 32]), 1));
    // What was lost at first comes now, and with others it would be too much.
    assert_eq!([asked.show(frames(0), Time(0)), asked.show(frames(0), Time(190))], [16, 16]);
    assert_eq!([asked.show(frames(20), Time(210)), asked.show(frames(20), Time(390))], [0, 16]);
}

#[test]
fn the_oldest_that_waits_to_be_ordered_again_is_not_passed_over() {
    let mut asked = FavoursAsked::new(800, 1000);
    let frame = |number: u8, bytes| (Digest([number; 32]), bytes);
    assert_eq!(asked.show([frame(2, 400), frame(3, 400)], Time(0)), 2);
    // One that is older comes to wait: the others do not renew their places before it.
    let all = [frame(1, 5000), frame(2, 400), frame(3, 400)];
    assert_eq!(
        [asked.show(all, Time(100)), asked.show(all, Time(199)), asked.show(all, Time(200))],
        [0, 0, 1]
    );
}
