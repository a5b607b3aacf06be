use crate::charges::{ClientCharges, PeerCharges};
use crate::execution_costs::{Executed, ExecutionCosts};
use crate::fetches::Fetches;
use std::time::Duration;
use troth_core::Meter;
use troth_types::{ClientId, ReplicaId, Time};

const START: Time = Time(1_000_000);
const ONE: ClientId = ClientId(1);
const OTHER: ClientId = ClientId(2);

#[test]
fn an_overdrawn_replica_rests_until_its_account_has_refilled() {
    let charges = PeerCharges::new(3);
    charges.useless(ReplicaId(1), START, 250_000);
    assert_eq!(charges.rests(ReplicaId(1), START), None, "the burst is its own");
    charges.useless(ReplicaId(1), START, 5_000);
    let until = charges.rests(ReplicaId(1), START).expect("overdrawn");
    assert!(
        (START.after(99_000)..START.after(101_000)).contains(&until),
        "5 ms at 50 ms per second: {until:?}"
    );
    assert!(charges.rests(ReplicaId(1), START.after(50_000)).is_some());
    assert_eq!(charges.rests(ReplicaId(1), until), None);
    assert_eq!(charges.rests(ReplicaId(2), START), None, "accounts are apart");
}

#[test]
fn frames_that_are_held_are_charged_where_they_were_not_asked_for() {
    let charges = PeerCharges::new(2);
    let one = ReplicaId(1);
    assert!(!charges.was_asked(one, 1));
    charges.asks(one);
    assert!(charges.was_asked(one, 3 << 20) && !charges.was_asked(one, 2 << 20), "an answer has 4 MiB");
    assert!(!charges.was_asked(one, 1), "that was all of it");
    for _ in 0..100 {
        charges.asks(ReplicaId(0));
    }
    let taken = (0..100).filter(|_| charges.was_asked(ReplicaId(0), 1 << 20)).count();
    assert_eq!(taken, 16, "what it never sent does not add up");
    charges.again(one, START, 1_000_000);
    assert_eq!(charges.rests(one, START), None, "the burst is its own");
    charges.again(one, START, 15_000);
    let until = charges.rests(one, START).expect("overdrawn");
    assert!((START.after(99_000)..START.after(101_000)).contains(&until), "at 150 ms per second: {until:?}");
    // Both accounts count.
    charges.useless(one, START, 260_000);
    assert!(charges.rests(one, START) > Some(until));
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

fn frames(frames: u32, micros: u64) -> Executed {
    Executed { frames, took: Duration::from_micros(micros) }
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
    assert_eq!(charges.frame_takes(ONE), 0, "nothing is known of it");
    charges.executed(ONE, START, frames(1, 8_000));
    assert_eq!(charges.frame_takes(ONE), 1_000, "one alone says little");
    charges.executed(ONE, START, frames(8, 16_000));
    assert_eq!(charges.frame_takes(ONE), 2_000);
    charges.executed(ONE, START, frames(4, 0));
    assert_eq!(charges.frame_takes(ONE), 1_000);
}

#[test]
fn who_delays_others_long_has_an_eighth_of_the_time_while_they_wait() {
    let mut charges = ClientCharges::default();
    charges.fade(START);
    ask(&mut charges, ONE, 1);
    ask(&mut charges, OTHER, 1);
    charges.executed(OTHER, START, frames(8, 800));
    charges.executed(ONE, START, frames(8, 50_000));
    assert_eq!(charges.rests(ONE, START), None, "the burst is its own");
    charges.executed(ONE, START, frames(1, 5_000));
    assert!(charges.rests(ONE, START).is_some());
    assert_eq!(charges.rests(OTHER, START), None);
    assert_eq!(charges.rests(ONE, START.after(41_000)), None, "5 ms at an eighth of the time");
    charges.served(ONE, START.after(41_000), 5_000);
    assert!(charges.rests(ONE, START.after(41_000)).is_some(), "what it reads counts as well");
    charges.answered(OTHER, 0, true);
    assert_eq!(charges.rests(ONE, START.after(41_000)), None, "nobody else waits");
}

#[test]
fn where_everybody_s_frames_take_long_nobody_rests_for_that() {
    let mut charges = ClientCharges::default();
    charges.fade(START);
    for client in [ONE, OTHER] {
        ask(&mut charges, client, 1);
        charges.executed(client, START, frames(8, 80_000));
    }
    assert_eq!((charges.rests(ONE, START), charges.rests(OTHER, START)), (None, None));
    // Short ones of many: however much that is, it delays nobody long.
    charges.executed(ONE, START, frames(1_000, 900_000));
    assert_eq!(charges.rests(ONE, START), None);
    charges.fade(START.after(5_000));
    assert!(charges.rests(OTHER, START.after(5_000)).is_some(), "now the other's are the long ones");
}

#[test]
fn a_turn_takes_from_one_client_what_is_executed_soon_while_others_wait() {
    let mut charges = ClientCharges::default();
    charges.fade(START);
    ask(&mut charges, ONE, 1);
    charges.executed(ONE, START, frames(8, 7_200));
    let taken = |charges: &mut ClientCharges| {
        let few = (0..10)
            .take_while(|_| charges.rests(ONE, START).is_none() && charges.frame_takes(ONE) > 0)
            .count();
        charges.contended(false);
        few
    };
    assert_eq!(taken(&mut charges), 10, "nobody waits");
    ask(&mut charges, OTHER, 1);
    assert_eq!(taken(&mut charges), 3, "of 0.9 ms each");
    assert_eq!(taken(&mut charges), 3, "and in the next turn again");
}

#[test]
fn what_frames_take_adds_up_by_clients_until_it_is_asked_for() {
    let costs = ExecutionCosts::new();
    for client in [ONE, OTHER, ONE] {
        costs.begins();
        costs.executed(client);
    }
    let counts: Vec<_> = costs.take().into_iter().map(|(client, all)| (client, all.frames)).collect();
    assert_eq!(counts, [(ONE, 2), (OTHER, 1)]);
    assert!(costs.take().is_empty());
}

#[test]
fn work_of_which_nothing_is_sent_is_charged_to_who_asked_for_it() {
    let charges = PeerCharges::new(2);
    // A quarter of a second is worth 64 MiB, as many as it may have at once.
    charges.looked_up(ReplicaId(1), START, 262_144);
    assert_eq!(charges.may_fetch_from(ReplicaId(1), START), None);
    charges.looked_up(ReplicaId(1), START, 262_144);
    let until = charges.may_fetch_from(ReplicaId(1), START).expect("more than the burst");
    assert!((START.after(1_990_000)..START.after(2_010_000)).contains(&until), "{until:?}");
    assert_eq!(charges.may_fetch_from(ReplicaId(0), START), None);
}

#[test]
fn an_account_refills_whole_however_often_it_is_looked_at() {
    let charges = PeerCharges::new(1);
    charges.useless(ReplicaId(0), START, 260_000);
    let until = charges.rests(ReplicaId(0), START).expect("overdrawn");
    for micros in (0..200_000).step_by(7) {
        charges.rests(ReplicaId(0), START.after(micros));
    }
    assert_eq!(charges.rests(ReplicaId(0), until), None);
}

#[test]
fn a_replica_that_fetches_much_waits_for_more() {
    let charges = PeerCharges::new(2);
    charges.fetched(ReplicaId(1), START, 96 << 20);
    let until = charges.may_fetch_from(ReplicaId(1), START).expect("more than the burst");
    assert!((START.after(990_000)..START.after(1_010_000)).contains(&until), "32 MiB at that per second");
    assert_eq!(charges.may_fetch_from(ReplicaId(0), START), None);
}

#[test]
fn questions_have_turns_and_their_number_is_bounded() {
    let mut fetches = Fetches::new(3);
    for number in 0..1_000 {
        assert_eq!(fetches.push(ReplicaId(1), number, |_| false), number < 256);
    }
    fetches.push(ReplicaId(2), 5_000, |_| false);
    let first: Vec<_> = (0..2).filter_map(|_| fetches.take(|_| true)).collect();
    assert_eq!(
        first,
        [(ReplicaId(1), 0), (ReplicaId(2), 5_000)],
        "one with many does not hold another's back"
    );
    assert_eq!(fetches.take(|replica| replica != ReplicaId(1)), None);
    assert_eq!(fetches.waiting().collect::<Vec<_>>(), [ReplicaId(1)]);
}

#[test]
fn a_question_that_is_repeated_waits_once() {
    let mut fetches = Fetches::new(2);
    for question in [(7, 1), (8, 1), (7, 2), (7, 3)] {
        assert!(fetches.push(ReplicaId(1), question, |earlier: &(i32, i32)| earlier.0 == question.0));
    }
    let waiting: Vec<_> =
        std::iter::from_fn(|| fetches.take(|_| true)).map(|(_, question)| question).collect();
    assert_eq!(waiting, [(7, 3), (8, 1)], "the newest, in the place of the first");
}

/// What `client` asks, `count` times.
fn ask(charges: &mut ClientCharges, client: ClientId, count: usize) {
    for _ in 0..count {
        charges.asked(client, START, 256, true);
    }
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
fn no_debt_silences_a_replica_for_long() {
    let charges = PeerCharges::new(1);
    // As if this process had stood still for a minute in the middle of a measurement.
    charges.useless(ReplicaId(0), START, 60_000_000);
    let until = charges.rests(ReplicaId(0), START).expect("overdrawn");
    assert!(until <= START.after(5_100_000), "{until:?}");
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
