//! Tests of the open loop: when requests arrive, and what their latency is counted from.

use crate::load::{Burst, Controls, note};
use crate::open::Schedule;
use crate::open::arrivals::Arrivals;
use crate::open::report::{is_reached_below_saturation, keeps_up};
use crate::open::schedule::Met;
use std::collections::VecDeque;
use std::time::{Duration, Instant};

const MILLISECOND: Duration = Duration::from_millis(1);

#[test]
fn arrivals_have_the_rate_and_the_spread_of_a_poisson_process() {
    const COUNT: usize = 200_000;
    let (rate, clients) = (5_000.0, 16);
    let arrivals: Vec<(Duration, usize)> = Arrivals::new(1, rate, clients).take(COUNT).collect();
    assert!(arrivals.is_sorted_by_key(|(at, _)| *at));

    let seconds = arrivals[COUNT - 1].0.as_secs_f64();
    let seen = COUNT as f64 / seconds;
    // Of so many the mean is off by 1 % less than once in ten thousand times; a seed gives the same for ever.
    assert!((seen / rate - 1.0).abs() < 0.01, "{seen} a second");

    // Gaps of a Poisson process are as far spread as they are long, and exp(-1) of them are longer than the mean.
    let longer =
        arrivals.windows(2).filter(|pair| (pair[1].0 - pair[0].0).as_secs_f64() > 1.0 / rate).count();
    let share = longer as f64 / COUNT as f64;
    assert!((share - (-1.0_f64).exp()).abs() < 0.01, "{share}");

    for client in 0..clients {
        let own = arrivals.iter().filter(|(_, of)| *of == client).count() as f64;
        assert!((own * clients as f64 / COUNT as f64 - 1.0).abs() < 0.05, "client {client} has {own}");
    }
}

#[test]
fn a_seed_gives_the_same_arrivals_at_every_rate() {
    let at = |seed, rate| Arrivals::new(seed, rate, 3).take(1_000).collect::<Vec<_>>();
    assert_eq!(at(7, 100.0), at(7, 100.0));
    assert_ne!(at(7, 100.0), at(8, 100.0));
    for ((slow, one), (fast, other)) in at(7, 100.0).into_iter().zip(at(7, 1_000.0)) {
        assert_eq!(one, other, "the same client");
        assert!((slow.as_secs_f64() / fast.as_secs_f64() - 10.0).abs() < 1e-3);
    }
}

/// A schedule of a second, of which the first tenth is warm-up.
fn schedule(rate: f64, bound: u64) -> Schedule {
    let second = Duration::from_secs(1);
    Schedule::new(Arrivals::new(1, rate, 4), second / 10..second, bound).expect("there are timers")
}

#[tokio::test]
async fn a_request_that_is_taken_late_was_due_when_it_was_due() {
    let mut schedule = schedule(1_000.0, u64::MAX);
    let began = schedule.began();
    let expected: Vec<Duration> = Arrivals::new(1, 1_000.0, 4)
        .map(|(at, _)| at)
        .take_while(|at| *at < Duration::from_secs(1))
        .collect();
    // The load generator stood still for the whole second, and two more.
    let now = began + Duration::from_secs(3);
    let mut taken = Vec::new();
    while let Some(due) = schedule.due(now, taken.len() as u64) {
        taken.push(due);
    }
    assert_eq!(taken.iter().map(|due| due.at - began).collect::<Vec<_>>(), expected);
    let counts = taken.iter().filter(|due| due.counts).count() as u64;
    assert_eq!(counts, expected.iter().filter(|at| **at >= Duration::from_millis(100)).count() as u64);
    assert!(schedule.is_over());

    let met = schedule.met();
    assert_eq!((met.due, met.refused), (counts, 0));
    assert!(met.late.iter().all(|(late, _)| (2_000_000..3_000_000).contains(late)));
    assert_eq!(met.late.iter().map(|(_, count)| u64::from(*count)).sum::<u64>(), counts);
}

#[tokio::test]
async fn nothing_is_due_before_its_time_and_the_alarm_wakes_for_it() {
    let mut schedule = schedule(100.0, u64::MAX);
    assert_eq!(schedule.due(schedule.began(), 0), None);
    for _ in 0..10 {
        schedule.wait().await.expect("there are timers");
        let due = schedule.due(Instant::now(), 0).expect("it woke for it");
        assert!(due.at <= Instant::now());
    }
}

#[tokio::test]
async fn what_is_beyond_the_bound_is_refused_and_counted() {
    let mut schedule = schedule(1_000.0, 10);
    let now = schedule.began() + Duration::from_secs(2);
    let mut outstanding = 0;
    while schedule.due(now, outstanding).is_some() {
        outstanding += 1;
    }
    assert_eq!(outstanding, 10);
    // The ten were of the warm-up, which does not count.
    let met = schedule.met();
    assert!(met.due > 800, "{met:?}");
    assert_eq!(met.refused, met.due);
}

#[test]
fn latency_is_counted_from_when_it_was_due() {
    let controls = Controls::default();
    controls.keep.set(true);
    let due = Instant::now();
    let burst = |end, at, counts| Burst { end, left: 1, at, counts };
    // A server stood still for 100 ms; one request was due at its beginning, and one each 10 ms later.
    let mut bursts: VecDeque<Burst> =
        (0..10).map(|n| burst(n + 1, due + 10 * n as u32 * MILLISECOND, true)).collect();
    bursts.push_back(burst(11, due, false));
    note(&mut bursts, 0..11, due + 100 * MILLISECOND, &controls);
    let kept: Vec<(u32, u32)> = controls.latencies.borrow().clone();
    // Counted from when they were sent, all but the first would have had almost none; and what was due outside the
    // window is not there.
    assert_eq!(kept, (1..=10).rev().map(|n| (n * 10_000, 1)).collect::<Vec<_>>());
    assert!(bursts.is_empty());
}

#[test]
fn latencies_that_were_counted_from_sending_are_told() {
    // A hundred requests of which ten were asked 50 ms late, each of which took 2 ms from then on.
    let met = Met { due: 103, refused: 3, late: vec![(5, 90), (50_000, 10)] };
    assert!(met.shows_in(&[(52_000, 10), (2_005, 90)]));
    assert!(!met.shows_in(&[(2_000, 100)]), "from sending");
    assert!(!met.shows_in(&[(52_000, 9), (2_005, 90)]), "one is missing");
    assert!(!met.shows_in(&[(52_000, 10), (2_005, 93)]), "what was refused has none");
    assert!(!met.shows_in(&[]));
}

#[test]
fn saturation_is_where_keeping_up_ends_and_no_gap_below_it() {
    for reached in
        [&[(10, true), (50, true)][..], &[(10, true), (50, false)], &[(90, false), (10, true), (25, true)]]
    {
        assert!(is_reached_below_saturation(reached), "{reached:?}");
    }
    for missed in
        [&[][..], &[(10, false), (50, false)], &[(10, false), (50, true)], &[(50, true), (25, false)]]
    {
        assert!(!is_reached_below_saturation(missed), "{missed:?}");
    }
}

#[test]
fn who_refuses_or_falls_behind_does_not_keep_up() {
    assert!(keeps_up(1_000.0, 995.0, 0.0));
    assert!(!keeps_up(1_000.0, 900.0, 0.0));
    assert!(!keeps_up(1_000.0, 1_000.0, 0.001));
}
