use crate::charges::PeerCharges;
use crate::fetches::Fetches;
use troth_types::{ReplicaId, Time};

const START: Time = Time(1_000_000);

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
    assert!(!charges.was_asked(one, START, 1));
    charges.asks(one);
    assert!(
        charges.was_asked(one, START, 3 << 20) && !charges.was_asked(one, START, 2 << 20),
        "an answer has 4 MiB"
    );
    assert!(!charges.was_asked(one, START, 1), "that was all of it");
    for _ in 0..100 {
        charges.asks(ReplicaId(0));
    }
    let taken = (0..100).filter(|_| charges.was_asked(ReplicaId(0), START, 1 << 20)).count();
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

/// How often a replica is asked for frames it may bring about itself: a primary names to one backup what nobody has.
#[test]
fn who_is_asked_without_end_does_not_send_held_frames_without_end() {
    let charges = PeerCharges::new(2);
    let one = ReplicaId(1);
    let taken = |now: Time| {
        let answers = (0..100).flat_map(|_| {
            charges.asks(one);
            [0; 4].map(|_| charges.was_asked(one, now, 1 << 20))
        });
        answers.filter(|taken| *taken).count()
    };
    assert_eq!(taken(START), 61, "250 ms of 4 ms each");
    assert_eq!(taken(START.after(1_000_000)), 12, "50 ms in the second after");
    assert_eq!(charges.rests(one, START), None, "what is beyond is charged where it is taken");
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
fn no_debt_silences_a_replica_for_long() {
    let charges = PeerCharges::new(1);
    // As if this process had stood still for a minute in the middle of a measurement.
    charges.useless(ReplicaId(0), START, 60_000_000);
    let until = charges.rests(ReplicaId(0), START).expect("overdrawn");
    assert!(until <= START.after(5_100_000), "{until:?}");
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
