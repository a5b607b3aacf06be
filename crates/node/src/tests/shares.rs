use crate::execution_costs::{Executed, ExecutionCosts};
use crate::shares::ClientCharges;
use std::time::{Duration, Instant};
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
    assert_eq!(charges.read(ONE, START, 64), 500, "nothing is known of it");
    for _ in 0..20 {
        charges.served(ONE, START, 1_000);
    }
    assert!((900..=1_000).contains(&charges.read(ONE, START, 64)));
    ask(&mut charges, OTHER, 1);
    assert!(charges.rests(ONE, START).is_some(), "it has had 20 ms");
    assert_eq!(charges.rests(OTHER, START), None);
    for _ in 0..40 {
        charges.served(ONE, START, 5);
    }
    assert!((50..=150).contains(&charges.read(ONE, START, 64)), "down slowly: what follows may be dear");
    charges.served(ONE, START, 1_300);
    assert_eq!(charges.read(ONE, START, 64), 1_300, "as it is at once");
    charges.served(ONE, START, 5);
    assert!(charges.read(ONE, START, 64) > 1_200);
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
    charges.read(OTHER, START, 64);
    assert!(charges.rests(ONE, START.after(500_000)).is_some(), "the other waits yet");
    charges.fade(START.after(5_000_000));
    charges.read(OTHER, START, 64);
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

fn frames(frames: u32, micros: u64) -> Executed {
    Executed { frames, micros, ..Executed::default() }
}

#[test]
fn what_frames_take_to_be_executed_is_their_client_s_share() {
    let mut charges = ClientCharges::default();
    charges.contended(true);
    ask(&mut charges, ONE, 1);
    ask(&mut charges, OTHER, 1);
    charges.executed(ONE, START, frames(1, 10));
    charges.executed(OTHER, START, frames(1, 10));
    assert_eq!(charges.rests(ONE, START), None, "what each frame takes is in its price");
    charges.executed(ONE, START, frames(2, 4_000));
    assert!(charges.rests(ONE, START).is_some());
    assert_eq!(charges.rests(OTHER, START), None);
}

#[test]
fn what_frames_take_is_judged_by_those_before_them() {
    let mut charges = ClientCharges::default();
    assert_eq!(charges.taken(ONE), 0, "nothing is known of it");
    charges.executed(ONE, START, frames(1, 8_000));
    assert_eq!(charges.taken(ONE), 1_000, "one alone says little");
    charges.executed(ONE, START, frames(8, 16_000));
    assert_eq!(charges.taken(ONE), 2_000);
    charges.executed(ONE, START, frames(4, 0));
    assert_eq!(charges.taken(ONE), 1_000);
}

#[test]
fn what_is_under_way_of_one_is_held_against_its_part_while_others_ask() {
    let mut charges = ClientCharges::default();
    charges.fade(START);
    let taken = |charges: &mut ClientCharges, now| {
        let mut count = 0;
        while count < 100 && charges.rests(ONE, now).is_none() {
            charges.taken(ONE);
            count += 1;
        }
        count
    };
    ask(&mut charges, ONE, 1);
    ask(&mut charges, OTHER, 1);
    assert_eq!(taken(&mut charges, START), 11, "of which nothing is known: five milliseconds each, of fifty");
    charges.executed(ONE, START, frames(11, 1_100));
    assert_eq!(taken(&mut charges, START), 100, "they are short");
    charges.executed(ONE, START, frames(100, 20_000));
    assert_eq!(taken(&mut charges, START), 100);
    // What is never executed fades.
    charges.executed(ONE, START, frames(8, 20_000));
    let mut counts = Vec::new();
    for later in 0..200 {
        let now = START.after(later * 5_000);
        charges.asked(OTHER, now, 64, true);
        charges.asked(ONE, now, 64, true);
        charges.fade(now);
        counts.push(taken(&mut charges, now));
    }
    assert_eq!(counts[0], 0, "92 of 2.5 ms each are under way");
    assert!(counts.iter().any(|count| *count > 0), "230 ms do not fit into fifty for ever");
}

/// How long the first client rests that has owed a tenth of a second, in milliseconds, where so many ask all the time.
fn rests_for(asking: u64) -> Option<u64> {
    let mut charges = ClientCharges::default();
    let mut owes = 0;
    for millis in 0_u64.. {
        let now = START.after(millis * 1_000);
        // A lane that rests is not read from.
        let first = if owes > 0 { 2 } else { 1 };
        (first..=asking).for_each(|client| charges.asked(ClientId(client), now, 64, true));
        (2..=asking).for_each(|client| charges.answered(ClientId(client), 64, true));
        charges.fade(now);
        charges.contended(false);
        if millis == 20 {
            // Fifty of them are its own.
            charges.executed(ONE, now, frames(10, 150_000));
        }
        match charges.rests(ONE, now) {
            Some(_) if owes == 0 => owes = millis,
            None if owes > 0 => return Some(millis - owes),
            None if millis > 100 => return None,
            Some(_) | None => {}
        }
    }
    unreachable!("it pays what it owes")
}

#[test]
fn while_others_ask_no_client_has_more_than_its_part_of_the_time() {
    assert_eq!(rests_for(1), None, "alone it may take everything");
    for (asking, micros) in [(2, 500_000), (4, 250_000), (16, 62_500), (32, 62_500)] {
        let millis = rests_for(asking).expect("it has had more than its part");
        let expected = 100_000_000 / micros;
        assert!((expected - 10..expected + 10).contains(&millis), "{millis} ms where {asking} ask");
    }
}

#[test]
fn who_reads_asks_as_well_and_what_it_reads_is_in_its_part() {
    let mut charges = ClientCharges::default();
    charges.fade(START);
    charges.executed(ONE, START, frames(10, 60_000));
    charges.fade(START.after(5_000));
    assert_eq!(charges.rests(ONE, START.after(5_000)), None, "nobody asks");
    charges.read(OTHER, START.after(5_000), 64);
    charges.fade(START.after(10_000));
    charges.executed(ONE, START.after(10_000), frames(10, 60_000));
    assert!(charges.rests(ONE, START.after(10_000)).is_some());
    assert_eq!(charges.rests(OTHER, START.after(10_000)), None);
    charges.read(ONE, START.after(10_000), 64);
    charges.served(OTHER, START.after(10_000), 60_000);
    charges.fade(START.after(15_000));
    assert!(charges.rests(OTHER, START.after(15_000)).is_some());
    // An hour in the middle of a read is nobody's.
    charges.served(OTHER, START.after(15_000), 3_600_000_000);
    charges.fade(START.after(1_500_000));
    charges.read(ONE, START.after(1_500_000), 64);
    charges.fade(START.after(1_505_000));
    assert_eq!(charges.rests(OTHER, START.after(1_505_000)), None);
}

#[test]
fn what_frames_take_adds_up_by_clients_until_it_is_asked_for() {
    let costs = ExecutionCosts::new();
    for client in [ONE, OTHER, ONE] {
        costs.begins();
        let began = Instant::now();
        while began.elapsed() < Duration::from_millis(1) {}
        costs.executed(client);
    }
    let all = costs.take();
    let counts: Vec<_> = all.iter().map(|(client, all)| (*client, all.frames)).collect();
    assert_eq!(counts, [(ONE, 2), (OTHER, 1)]);
    assert!(all[&ONE].micros >= 2_000 && all[&OTHER].micros >= 1_000, "{all:?}");
    assert!(costs.take().is_empty());
}

#[test]
fn only_so_many_frames_are_passed_on_to_the_primary() {
    let mut charges = ClientCharges::default();
    let now = Time(1_000_000);
    let passed = (0..10_000).filter(|_| charges.may_pass_on(now)).count();
    assert_eq!(passed, 4_096, "what clients have under way when the view has changed");
    let later = now.after(1_000_000);
    let passed = (0..10_000).filter(|_| charges.may_pass_on(later)).count();
    assert!((1_000..=1_048).contains(&passed), "{passed} in a second: less than the primary bears");
}

#[test]
fn who_asked_before_a_long_turn_asks() {
    let mut charges = ClientCharges::default();
    charges.fade(START);
    let turn = START.after(5_000);
    charges.fade(turn);
    charges.read(OTHER, turn, 64);
    charges.executed(ONE, turn, frames(10, 500_000));
    let next = turn.after(200_000);
    charges.fade(next);
    assert!(
        charges.rests(ONE, next).is_some(),
        "the turn took a fifth of a second, and the other had no time to ask again"
    );
}

#[test]
fn reads_that_are_answered_in_passing_are_their_clients() {
    let mut charges = ClientCharges::default();
    let passed = Executed { reads: 32, read_micros: 64_000, longest_read: 5_000, ..Executed::default() };
    charges.asked(OTHER, START, 100, true);
    charges.executed(ONE, START, passed);
    assert_eq!(charges.read(ONE, START, 0), 5_000, "the next may take as long as the longest");
    assert!(charges.rests(ONE, START).is_some(), "it has had its part");
    assert_eq!(charges.rests(OTHER, START), None);
}
