use crate::execution_costs::{Executed, ExecutionCosts};
use crate::shares::ClientCharges;
use troth_core::Meter;
use troth_types::{ClientId, Time};

const START: Time = Time(1_000_000);
const ONE: ClientId = ClientId(1);
const OTHER: ClientId = ClientId(2);

/// What `client` asks, `count` times.
fn ask(charges: &mut ClientCharges, client: ClientId, count: usize) {
    for _ in 0..count {
        charges.asked(client, START, 256, true);
    }
}

#[test]
fn what_reads_take_is_their_client_s_and_bounds_how_many_are_taken_at_once() {
    let mut charges = ClientCharges::default();
    charges.contended(true);
    assert_eq!(charges.read(ONE, 64), 500, "nothing is known of it");
    for _ in 0..20 {
        charges.served(ONE, START, 1_000);
    }
    assert!((900..=1_000).contains(&charges.read(ONE, 64)));
    ask(&mut charges, OTHER, 1);
    assert!(charges.rests(ONE, START).is_some(), "it has had 20 ms");
    assert_eq!(charges.rests(OTHER, START), None);
    for _ in 0..40 {
        charges.served(ONE, START, 5);
    }
    assert!((50..=150).contains(&charges.read(ONE, 64)), "down slowly: what follows may be dear");
    charges.served(ONE, START, 1_300);
    assert_eq!(charges.read(ONE, 64), 1_300, "as it is at once");
    charges.served(ONE, START, 5);
    assert!(charges.read(ONE, 64) > 1_200);
}

#[test]
fn who_takes_more_waits_only_where_there_is_not_enough() {
    let mut charges = ClientCharges::default();
    ask(&mut charges, ONE, 100);
    ask(&mut charges, OTHER, 1);
    assert_eq!(charges.rests(ONE, START), None, "the last turn took everything");
    charges.contended(true);
    assert!(charges.rests(ONE, START).is_some());
}

#[test]
fn a_client_alone_may_take_everything() {
    let mut charges = ClientCharges::default();
    ask(&mut charges, ONE, 10_000);
    assert_eq!(charges.rests(ONE, START), None);
}

#[test]
fn who_has_had_more_than_others_waits_while_they_wait() {
    let mut charges = ClientCharges::default();
    charges.contended(true);
    ask(&mut charges, ONE, 100);
    ask(&mut charges, OTHER, 1);
    assert!(charges.rests(ONE, START).is_some());
    assert_eq!(charges.rests(OTHER, START), None);
    charges.answered(OTHER, 64, true);
    assert_eq!(charges.rests(ONE, START), None, "nobody else waits");
}

#[test]
fn clients_who_want_the_same_do_not_wait() {
    let mut charges = ClientCharges::default();
    for _ in 0..100 {
        ask(&mut charges, ONE, 10);
        ask(&mut charges, OTHER, 10);
        assert_eq!((charges.rests(ONE, START), charges.rests(OTHER, START)), (None, None));
    }
}

#[test]
fn what_a_client_has_had_fades_and_what_is_never_answered_does_not_count_for_ever() {
    let mut charges = ClientCharges::default();
    charges.contended(true);
    ask(&mut charges, ONE, 100);
    ask(&mut charges, OTHER, 1);
    charges.fade(START.after(500_000));
    assert_eq!(charges.rests(ONE, START.after(500_000)), None, "half a second ago");
    ask(&mut charges, ONE, 100);
    charges.read(OTHER, 64);
    assert!(charges.rests(ONE, START.after(500_000)).is_some(), "the other waits yet");
    charges.fade(START.after(5_000_000));
    charges.read(OTHER, 64);
    ask(&mut charges, ONE, 100);
    assert_eq!(charges.rests(ONE, START.after(5_000_000)), None, "its request is forgotten");
}

#[test]
fn a_client_whose_messages_are_of_no_use_rests() {
    let mut charges = ClientCharges::default();
    charges.useless(ONE, START, 101_000);
    let until = charges.rests(ONE, START).expect("overdrawn");
    charges.fade(until);
    assert_eq!(charges.rests(ONE, until), None);
    assert_eq!(charges.rests(OTHER, START), None);
}

#[test]
fn what_frames_take_to_be_executed_is_their_client_s_share() {
    let mut charges = ClientCharges::default();
    charges.contended(true);
    ask(&mut charges, ONE, 1);
    ask(&mut charges, OTHER, 1);
    charges.executed(START, frame(ONE, 1, 10));
    charges.executed(START, frame(OTHER, 1, 10));
    assert_eq!(charges.rests(ONE, START), None, "what each frame takes is in its price");
    (2..4).for_each(|number| charges.executed(START, frame(ONE, number, 1_900)));
    assert!(charges.rests(ONE, START).is_some());
    assert_eq!(charges.rests(OTHER, START), None);
}

fn frame(client: ClientId, number: u64, micros: u64) -> Executed {
    Executed { client, number, operations: 1, micros }
}

/// Has so many frames of a client executed, that were not taken here.
fn execute(charges: &mut ClientCharges, client: ClientId, now: Time, count: u64, micros: u64) {
    (1_000..1_000 + count).for_each(|number| charges.executed(now, frame(client, number, micros)));
}

/// How many of ten frames of a client a turn takes.
fn taken(charges: &mut ClientCharges, client: ClientId, numbers: std::ops::Range<u64>) -> usize {
    let mut take = |number: &u64| {
        charges.rests(client, START).is_none() && charges.taken(client, *number, START) < u64::MAX
    };
    let count = numbers.take_while(&mut take).count();
    charges.contended(false);
    count
}

#[test]
fn one_client_has_only_so_much_under_way_while_others_ask() {
    let mut charges = ClientCharges::default();
    charges.fade(START);
    ask(&mut charges, ONE, 1);
    execute(&mut charges, ONE, START, 100, 150);
    assert_eq!(taken(&mut charges, ONE, 0..10), 10, "nobody else asks");
    (0..10).for_each(|number| charges.executed(START, frame(ONE, number, 150)));
    ask(&mut charges, OTHER, 1);
    assert_eq!(taken(&mut charges, ONE, 10..20), 4, "of 0.15 ms each");
    assert_eq!(taken(&mut charges, ONE, 14..20), 0, "nor in the next turn");
    charges.executed(START, frame(ONE, 11, 150));
    assert_eq!(taken(&mut charges, ONE, 14..20), 1, "one was executed");
    charges.given_up(ONE, 10);
    assert_eq!(taken(&mut charges, ONE, 15..20), 1, "one is none");
    assert_eq!(taken(&mut charges, OTHER, 0..1), 1);
    // What is never executed does not count for ever.
    charges.fade(START.after(1_100_000));
    ask(&mut charges, OTHER, 1);
    assert_eq!(charges.rests(ONE, START.after(1_100_000)), None);
}

#[test]
fn one_client_has_only_so_many_reads_taken_in_a_turn_while_others_ask() {
    let mut charges = ClientCharges::default();
    charges.fade(START);
    ask(&mut charges, OTHER, 1);
    let read = |charges: &mut ClientCharges| {
        let count =
            (0..10).take_while(|_| charges.rests(ONE, START).is_none() && charges.read(ONE, 64) > 0).count();
        charges.contended(false);
        count
    };
    assert_eq!(
        (read(&mut charges), read(&mut charges)),
        (1, 1),
        "of half a millisecond each, not known better"
    );
}

#[test]
fn who_delays_others_long_has_an_eighth_of_the_time_while_they_ask() {
    let mut charges = ClientCharges::default();
    charges.fade(START);
    ask(&mut charges, ONE, 1);
    ask(&mut charges, OTHER, 1);
    execute(&mut charges, OTHER, START, 8, 100);
    // To judge by one frame alone says little.
    charges.executed(START, frame(ONE, 1, 1_000_000));
    assert_eq!(charges.rests(ONE, START), None);
    execute(&mut charges, ONE, START, 30, 5_000);
    let until = (0..).find(|millis| charges.rests(ONE, START.after(millis * 1_000)).is_none());
    assert!(
        (760..=860).contains(&until.expect("it refills")),
        "{until:?}: some 150 ms of which 50 are its own"
    );
    assert_eq!(charges.rests(OTHER, START), None);
    charges.answered(OTHER, 0, true);
    assert_eq!(charges.rests(ONE, START), None, "nobody else waits");
}

#[test]
fn long_reads_count_and_short_ones_of_the_same_client_do_not() {
    let mut charges = ClientCharges::default();
    charges.fade(START);
    ask(&mut charges, OTHER, 1);
    charges.served(OTHER, START, 20);
    charges.fade(START.after(5_000));
    let now = START.after(5_000);
    (0..10).for_each(|_| charges.served(ONE, now, 5_000));
    assert_eq!(charges.rests(ONE, now), None, "the burst is its own");
    (0..10_000).for_each(|_| charges.served(ONE, now, 100));
    assert_eq!(charges.rests(ONE, now), None);
    charges.served(ONE, now, 5_000);
    assert!(charges.rests(ONE, now).is_some());
}

#[test]
fn where_the_one_in_the_middle_takes_as_long_nobody_rests_for_that() {
    let mut charges = ClientCharges::default();
    charges.fade(START);
    let mut now = START;
    let mut work = |charges: &mut ClientCharges, rounds: u64, count: u64, takes: [u64; 3]| {
        for _ in 0..rounds {
            for (client, micros) in [ONE, OTHER, ClientId(3)].into_iter().zip(takes) {
                ask(charges, client, 1);
                charges.asked(client, now, 64, true);
                execute(charges, client, now, count, micros);
            }
            now = now.after(100_000);
            charges.fade(now);
        }
        charges.rests(ONE, now).is_some()
    };
    assert!(work(&mut charges, 1, 20, [10_000, 10_000, 100]), "who is in the middle is not known yet");
    assert!(
        !work(&mut charges, 60, 2, [10_000, 10_000, 100]),
        "what was owed is paid, and two frames of ten are not"
    );
    assert!(!work(&mut charges, 1, 50, [10_000, 10_000, 100]));
    assert!(work(&mut charges, 60, 50, [10_000, 100, 100]), "the one in the middle is a cheap one");
}

#[test]
fn what_frames_take_is_told_once() {
    let costs = ExecutionCosts::new();
    for (client, number) in [(ONE, 1), (OTHER, 1), (ONE, 2)] {
        costs.begins();
        costs.executed(client, number, 7);
    }
    let mut told = Vec::new();
    costs.take(|frame| told.push((frame.client, frame.number, frame.operations)));
    costs.take(|_| panic!("it was told"));
    assert_eq!(told, [(ONE, 1, 7), (OTHER, 1, 7), (ONE, 2, 7)]);
}

#[test]
fn a_frame_of_many_operations_is_long_where_each_is_or_all_are_very() {
    let mut charges = ClientCharges::default();
    charges.fade(START);
    ask(&mut charges, ONE, 1);
    ask(&mut charges, OTHER, 1);
    let mut now = START;
    let mut rests = |charges: &mut ClientCharges, operations, micros| {
        for _ in 0..100 {
            charges.executed(now, Executed { client: OTHER, number: 1, operations: 1, micros: 10 });
            charges.executed(now, Executed { client: ONE, number: 1, operations, micros });
        }
        now = now.after(5_000);
        charges.fade(now);
        let rests = charges.rests(ONE, now).is_some();
        now = now.after(1_000_000_000);
        charges.fade(now);
        for client in [ONE, OTHER] {
            charges.asked(client, now, 64, true);
            charges.executed(now, Executed { client, number: 1, operations: 1, micros: 10 });
        }
        now = now.after(5_000);
        charges.fade(now);
        rests
    };
    rests(&mut charges, 1, 10);
    assert!(!rests(&mut charges, 100, 3_000), "what a hundred asked for, each of whom takes little");
    assert!(rests(&mut charges, 3, 3_000));
    assert!(rests(&mut charges, 100, 6_000), "a client may put into a frame what it likes");
}

#[test]
fn where_agreement_takes_long_more_is_under_way() {
    let mut charges = ClientCharges::default();
    charges.fade(START);
    for number in 0..1_000 {
        charges.taken(ONE, number, START);
        charges.executed(START.after(40_000), frame(ONE, number, 100));
    }
    ask(&mut charges, ONE, 1);
    ask(&mut charges, OTHER, 1);
    let count = taken(&mut charges, ONE, 0..100);
    assert!((45..=55).contains(&count), "{count} of a tenth of a millisecond each: an eighth of forty");
}
