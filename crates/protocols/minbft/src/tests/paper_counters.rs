//! MINBFT-U: unique identifiers.

use super::harness::{Kind, SMALL, World, covers, kind, r};
use crate::message::{AcceptNewView, Body, Checkpoint, Commit, NewView, Prepare};
use crate::place::Place;
use troth_auth::{Seal, Ui};
use troth_trusted::{CounterId, CounterValue};
use troth_trusted_host::{Call, TrustedComponent};
use troth_types::{Batch, Digest, Seq, View};

// MINBFT-U1 "Every certified message takes the next value of the sender's counter, in the order in
// which the protocol asked; a VIEW-CHANGE(v') moves the counter to [v'|0|0],
// a CHECKPOINT(n) to [v|n|0]."
#[test]
fn counters_go_up_by_one_and_jump_at_a_view_change() {
    covers!("MINBFT-U1");
    let mut world = World::all(3, SMALL);
    for number in 1..=6 {
        let frame = world.frame(1, number, "op");
        world.request_all(&frame);
    }
    let all = world.minbft(2).peer(r(1)).log.clone();
    let values: Vec<u128> = all.iter().map(|logged| logged.message.value().0).collect();
    let four = Place::of_checkpoint(View(0), Seq(4)).expect("possible").0;
    assert_eq!(values, [1, 2, 3, 4, four, four + 1, four + 2]);
    let kinds: Vec<Kind> = all.iter().map(|logged| kind(&logged.message.body)).collect();
    use Kind::{Checkpoint, Commit};
    assert_eq!(kinds, [Commit, Commit, Commit, Commit, Checkpoint, Commit, Commit]);
    world.crash(0);
    let frame = world.frame(1, 7, "op");
    world.request_all(&frame);
    world.pass(2_000_000);
    let change = &world.sent_by(1, Kind::ViewChange)[0];
    assert_eq!(change.value(), CounterValue::new(1, 0));
    assert_eq!(change.ui.predecessor(), CounterValue(four + 2), "the jump names the last value before it");
    let new_view = &world.sent_by(1, Kind::NewView)[0];
    assert_eq!((new_view.value(), new_view.ui.predecessor()), (CounterValue::new(1, 1), change.value()));
    let prepare = &world.sent_by(1, Kind::Prepare)[0];
    assert!(prepare.value() > new_view.value());
}

/// Every kind of message of view 0 or 1, and where it may stand.
fn placed(world: &mut World) -> Vec<(u16, Body, Vec<CounterValue>)> {
    let at = CounterValue::new;
    let four = |view| Place::of_checkpoint(View(view), Seq(4)).expect("possible");
    let behind = |view| four(view).next().expect("not spent");
    let prepare = |view| Prepare { view: View(view), seq: Seq(1), batch: Batch::default() };
    // The PREPAREs inside the COMMITs come from primaries of a world of their own.
    let mut other = World::with(3, SMALL, &[]);
    let zero = other.certify(0, Body::Prepare(prepare(0)));
    let one = other.certify_at(1, at(1, 2), Body::Prepare(prepare(1)));
    let change = world.change_body(1, 1, Default::default());
    let new_view =
        NewView { view: View(1), changes: Vec::new(), base: (Seq(0), Digest::ZERO), chosen: Vec::new() };
    vec![
        (0, Body::Prepare(prepare(0)), vec![at(0, 1), at(0, 9), behind(0)]),
        (1, Body::Prepare(prepare(1)), vec![at(1, 2), at(1, 9), behind(1)]),
        (1, Body::Commit(Commit { prepare: zero }), vec![at(0, 1), at(0, 9), behind(0)]),
        (2, Body::Commit(Commit { prepare: one }), vec![at(1, 2), at(1, 9), behind(1)]),
        (
            1,
            Body::Checkpoint(Checkpoint {
                seq: Seq(4),
                digest: Digest::ZERO,
                epochs: Vec::new(),
                given: false,
            }),
            vec![four(0), four(1), four(2)],
        ),
        (1, Body::ViewChange(change), vec![at(1, 0)]),
        (1, Body::NewView(new_view), vec![at(1, 1)]),
        (2, Body::AcceptNewView(AcceptNewView { view: View(1), new_view: Digest::ZERO }), vec![at(1, 1)]),
    ]
}

// MINBFT-U2 (guard) "A message stands only at a counter value that its kind may hold: VIEW-CHANGE(v') at
// [v'|0|0], NEW-VIEW(v') and COMMIT(NEW-VIEW) at [v'|0|1], CHECKPOINT(n) of view v at [v|n|0], commitments
// of view v at the others of it. A breach proves the sender faulty."
#[test]
fn every_kind_has_its_places() {
    covers!("MINBFT-U2");
    let mut world = World::with(3, SMALL, &[]);
    let mut values: Vec<CounterValue> =
        [(0, 1), (0, 9), (1, 0), (1, 1), (1, 2), (1, 9), (2, 0), (2, 1), (2, 2)]
            .map(|(view, count)| CounterValue::new(view, count))
            .to_vec();
    for view in 0..3 {
        for seq in [3, 4, 5] {
            let place = Place::of_checkpoint(View(view), Seq(seq)).expect("possible");
            values.push(place);
            if seq == 4 {
                values.push(place.next().expect("not spent"));
            }
        }
    }
    for (by, body, good) in placed(&mut world) {
        for value in &values {
            let mut fresh = World::with(3, SMALL, &[]);
            let message = fresh.certify_at(by, *value, body.clone());
            let verdict = crate::evidence::misplaced(&fresh.group, &fresh.config, &message);
            let may = good.contains(value);
            assert_eq!(verdict.is_none(), may, "{:?} at {:?}", kind(&message.body), value);
        }
    }
}

#[test]
fn genesis_and_what_no_group_reaches_have_no_checkpoint() {
    covers!("MINBFT-U2");
    for seq in [0, 1 << 44, u64::MAX] {
        let mut world = World::with(3, SMALL, &[2]);
        let checkpoint = world.checkpoint(1, seq, Digest::ZERO);
        world.say(2, &checkpoint);
        assert!(world.condemned(2, 1).is_some(), "{seq}");
    }
}

#[test]
fn a_misplaced_message_condemns_its_sender() {
    covers!("MINBFT-U2");
    for n in [3, 5] {
        let mut world = World::with(n, SMALL, &[2]);
        let checkpoint = Body::Checkpoint(Checkpoint {
            seq: Seq(4),
            digest: Digest::ZERO,
            epochs: Vec::new(),
            given: false,
        });
        let wrong = world.certify_at(1, CounterValue::new(1, 1), checkpoint);
        world.say(2, &wrong);
        assert!(world.condemned(2, 1).is_some());
        assert!(world.condemned(2, 0).is_none());
        // And nothing of it is processed any more.
        let processed = world.minbft(2).peer(r(1)).gate.processed();
        let later = world.certify_at(1, CounterValue::new(1, 2), wrong.body.clone());
        world.say(2, &later);
        assert_eq!(world.minbft(2).peer(r(1)).gate.processed(), processed);
    }
}

// MINBFT-U3 (guard) "A replica processes the messages of a sender in counter order and without a gap;
// what comes early waits in a bounded hold-back. …"
#[test]
fn early_messages_wait_for_their_turn() {
    covers!("MINBFT-U3");
    let mut world = World::with(3, SMALL, &[2]);
    let frames = world.frames_held(3, &[2]);
    let prepares: Vec<_> = (1..).zip(&frames).map(|(seq, frame)| world.prepare(0, seq, &[frame])).collect();
    world.say(2, &prepares[2]);
    world.say(2, &prepares[1]);
    assert_eq!(world.commits(2), [0u64; 0], "nothing before its predecessor");
    world.say(2, &prepares[0]);
    assert_eq!(world.commits(2), [1, 2, 3]);
    world.say(2, &prepares[0]);
    assert_eq!(world.commits(2), [1, 2, 3], "a copy is nothing new");
    assert!(world.accused_nobody(2));
}

#[test]
fn the_hold_back_is_bounded() {
    covers!("MINBFT-U3");
    let mut world = World::with(3, SMALL, &[2]);
    let bound = (4 * SMALL.window + 64) as usize;
    let first = world.prepare(0, 1, &[]);
    for seq in 2..bound as u64 + 20 {
        let prepare = world.prepare(0, seq, &[]);
        world.say(2, &prepare);
    }
    assert_eq!(world.minbft(2).peer(r(0)).gate.held(), bound);
    world.say(2, &first);
    assert!(world.minbft(2).peer(r(0)).gate.processed() >= CounterValue(8), "the nearest were kept");
}

// MINBFT-U3 "… A message inside another goes through its own sender's order."
#[test]
fn an_inner_prepare_takes_its_senders_order() {
    covers!("MINBFT-U3");
    let mut world = World::with(3, SMALL, &[2]);
    let frames = world.frames_held(2, &[2]);
    let first = world.prepare(0, 1, &[&frames[0]]);
    let second = world.prepare(0, 1, &[&frames[1]]);
    // A faulty primary and a faulty backup: the backup commits to the second PREPARE for number 1.
    let commit = world.commit(1, &second);
    world.say(2, &commit);
    assert_eq!(world.commits(2), [0u64; 0], "the first PREPARE may still come");
    world.say(2, &first);
    assert_eq!(world.journal(2), ["op1"]);
    assert!(world.condemned(2, 0).is_some(), "two PREPAREs for one number");
}

// MINBFT-U4 (guard) "A unique identifier is of the one counter that MinBFT uses. …"
#[test]
fn another_counter_identifies_nothing() {
    covers!("MINBFT-U4");
    let mut world = World::with(3, SMALL, &[2]);
    for (counter, good) in [(CounterId(0), true), (CounterId(1), false), (CounterId(7), false)] {
        let body = Body::Prepare(Prepare { view: View(0), seq: Seq(1), batch: Batch::default() });
        let digest = body.digest(world.group.id(), r(0));
        let (previous, new) = (CounterValue(0), CounterValue(1));
        let call = Call::Attest { counter, previous, new, digest: digest.0 };
        let answer = world.node_mut(0).component.call(&[call]).pop().expect("one answer");
        let certificate = answer.attested().expect("each counter gives every value once").clone();
        let seal = Seal::Ui(Ui { certificate, run: None });
        let message = <crate::MinBft as troth_core::Agreement>::seal(body, digest, r(0), seal);
        assert_eq!(world.authentic(&message).is_ok(), good, "{counter:?}");
    }
}

#[test]
fn large_messages_ahead_of_their_turn_are_few() {
    let mut world = World::with(3, SMALL, &[2]);
    world.prepare(0, 1, &[]);
    for to in 1..=9 {
        let change = world.view_change(0, to);
        world.say(2, &change);
    }
    assert_eq!(world.minbft(2).peer(r(0)).gate.held(), 4);
    // Served again in order, all are processed.
    for message in world.said(0) {
        world.say(2, &message);
    }
    assert_eq!(world.minbft(2).peer(r(0)).view, View(9));
}
