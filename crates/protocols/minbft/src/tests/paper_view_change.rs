//! MINBFT-V1 to V9: from the time-out to what a new view starts from.

use super::craft::batch;
use super::harness::{Fate, Kind, SMALL, World, covers, kind, r};
use crate::Timer;
use crate::choose::{Choice, choose};
use crate::evidence::{Evidence, evidence};
use crate::message::{Body, Certified, LogEntry, Message, StableProof, ViewChange};
use crate::place::Place;
use std::collections::BTreeMap;
use std::sync::Arc;
use troth_core::ReplicaTimer;
use troth_trusted::CounterValue;
use troth_types::{Digest, Seq, View};

// MINBFT-V1 "The request timer runs for the oldest pending request; it starts anew when another becomes
// the oldest and for no other reason."
#[test]
fn the_timer_runs_for_the_oldest_request() {
    covers!("MINBFT-V1");
    let due = |world: &World| world.node(2).timers.get(&ReplicaTimer::Protocol(Timer::Request)).copied();
    let mut world = World::with(3, SMALL, &[2]);
    assert_eq!(due(&world), None);
    let frames = world.frames_held(1, &[2]);
    let first = due(&world).expect("it runs");
    assert_eq!(first.0, world.now + SMALL.request_timeout);
    // Others come and are executed: the oldest still waits.
    world.pass(600_000);
    let (b, c) = (world.frame(2, 1, "b"), world.frame(2, 2, "c"));
    world.request(&[2], &b);
    world.request(&[2], &c);
    world.ordered_by_puppet(&[2], std::slice::from_ref(&b));
    assert_eq!(world.journal(2), ["b"]);
    assert_eq!(due(&world), Some(first), "progress of others does not help one that is starved");
    // The oldest is executed: the timer starts anew for the next.
    let prepare = world.prepare(0, 2, &[&frames[0]]);
    world.say(2, &prepare);
    assert_eq!(due(&world).map(|at| at.0), Some(world.now + SMALL.request_timeout));
    let prepare = world.prepare(0, 3, &[&c]);
    world.say(2, &prepare);
    assert_eq!(due(&world), None, "nothing waits");
    world.pass(5_000_000);
    assert_eq!(world.wanted(2), 0);
}

#[test]
fn a_starved_request_leads_to_suspicion() {
    covers!("MINBFT-V1");
    let mut world = World::with(3, SMALL, &[2]);
    world.frames_held(1, &[2]);
    world.pass(SMALL.request_timeout - 1);
    assert_eq!(world.wanted(2), 0);
    world.pass(1);
    assert_eq!(world.wanted(2), 1);
    assert_eq!(world.minbft(2).view, View(0), "one replica alone does not change the view");
}

// MINBFT-V2 (guard) "A replica leaves its view when f+1 distinct replicas want a later one, for the
// highest view that f+1 of them want or go beyond; a VIEW-CHANGE shows those f+1 signed requests."
#[test]
fn f_plus_1_requests_change_the_view() {
    covers!("MINBFT-V2");
    for (n, f) in [(3, 1), (5, 2)] {
        let mut world = World::with(n, SMALL, &[n - 1]);
        let me = n - 1;
        let others: Vec<u16> = (0..f + 1).collect();
        world.wishes(&others[..usize::from(f)], me, 1);
        world.wishes(&others[..usize::from(f)], me, 1);
        assert_eq!(world.minbft(me).view, View(0), "f replicas, however often they ask");
        world.wishes(&others, me, 1);
        assert_eq!(world.minbft(me).view, View(1));
        let change = world.sent_by(me, Kind::ViewChange)[0].clone();
        let requests = &change.view_change().expect("VIEW-CHANGE").requests;
        let mut from: Vec<_> = requests.iter().map(|signed| signed.from).collect();
        from.dedup();
        assert_eq!(from.len(), usize::from(f) + 1);
        assert!(requests.iter().all(|signed| signed.request.to >= View(1)));
    }
}

#[test]
fn the_target_is_what_f_plus_1_want_or_go_beyond() {
    covers!("MINBFT-V2");
    let mut world = World::with(5, SMALL, &[4]);
    world.wishes(&[0], 4, 1 << 60);
    world.wishes(&[1], 4, 1 << 50);
    assert_eq!(world.minbft(4).view, View(0));
    world.wishes(&[2], 4, 2);
    assert_eq!(world.minbft(4).view, View(2), "faulty replicas do not choose the target");
    world.wishes(&[3], 4, 7);
    assert_eq!(world.minbft(4).view, View(7));
    world.wishes(&[3], 4, 3);
    assert_eq!(world.minbft(4).view, View(7), "and nobody goes back");
}

/// A VIEW-CHANGE of puppet 1 as honest as can be, changed by the test.
fn judged(n: u16, change: impl Fn(&mut World, &mut ViewChange)) -> Result<Evidence, &'static str> {
    let mut world = World::with(n, SMALL, &[]);
    let frames = [world.frame(1, 1, "a"), world.frame(1, 2, "b")];
    for (seq, frame) in (1..).zip(&frames) {
        let prepare = world.prepare(0, seq, &[frame]);
        world.commit(1, &prepare);
    }
    let mut body = world.change_body(1, 1, StableProof::default());
    change(&mut world, &mut body);
    let message = world.certify_change(1, body);
    evidence(&world.group, &world.configuration, &world.config, &message)
}

// MINBFT-V2 "… a VIEW-CHANGE shows those f+1 signed requests."
#[test]
fn a_view_change_without_requests_is_invalid() {
    covers!("MINBFT-V2");
    for n in [3, 5] {
        assert!(judged(n, |_, _| ()).is_ok());
        assert!(judged(n, |_, body| body.requests.truncate(usize::from(n / 2))).is_err());
        let repeated = |_: &mut World, body: &mut ViewChange| {
            let first = body.requests[0].clone();
            body.requests.fill(first);
        };
        assert!(judged(n, repeated).is_err(), "distinct replicas");
        assert!(judged(n, |world, body| body.requests[0] = world.wish(0, 0)).is_err(), "for this view");
        assert!(judged(n, |world, body| body.requests[0] = world.wish(0, 9)).is_ok(), "or beyond");
    }
}

// MINBFT-V3 (guard) "A VIEW-CHANGE is valid when its checkpoint certificate, its requests and its log
// hold; an invalid one proves its sender faulty."
#[test]
fn an_invalid_view_change_condemns_its_sender() {
    covers!("MINBFT-V3");
    for broken in [false, true] {
        let mut world = World::with(3, SMALL, &[2]);
        let mut body = world.change_body(1, 1, StableProof::default());
        if broken {
            body.requests.clear();
        }
        let message = world.certify_change(1, body);
        world.say(2, &message);
        assert_eq!(world.condemned(2, 1).is_some(), broken);
        assert_eq!(world.minbft(2).changes.contains_key(&r(1)), !broken);
    }
}

#[test]
fn every_part_of_a_view_change_is_checked() {
    covers!("MINBFT-V3");
    let good = judged(3, |_, _| ()).expect("valid");
    assert_eq!((good.from, good.view, good.prepares.len()), (r(1), Some(View(0)), 2));
    let bad_proof = |world: &mut World, body: &mut ViewChange| {
        body.stable = StableProof { votes: vec![world.checkpoint(2, 4, Digest::ZERO)] };
    };
    assert!(judged(3, bad_proof).is_err(), "a checkpoint certificate below quorum");
    let good_proof = |world: &mut World, body: &mut ViewChange| {
        body.stable = world.stable_proof(&[0, 2], 4, Digest::ZERO);
    };
    assert_eq!(judged(3, good_proof).expect("valid").stable.0, Seq(4));
    // A log that breaks the rules of commitments.
    let skipping = |world: &mut World, body: &mut ViewChange| {
        let prepare = world.prepare(0, 4, &[]);
        body.log.push(LogEntry::Whole(world.commit(1, &prepare)));
    };
    assert!(judged(3, skipping).is_err(), "COMMIT(4) after COMMIT(2)");
    let by_backup = |world: &mut World, body: &mut ViewChange| {
        let prepare = Body::Prepare(body_of(&world.said(0)[0]));
        body.log.push(LogEntry::Whole(world.certify(1, prepare)));
    };
    assert!(judged(3, by_backup).is_err(), "a PREPARE by a backup");
    let beyond = |world: &mut World, body: &mut ViewChange| {
        for seq in 3..=9 {
            let prepare = world.prepare(0, seq, &[]);
            body.log.push(LogEntry::Whole(world.commit(1, &prepare)));
        }
    };
    assert!(judged(3, beyond).is_err(), "COMMIT(9) with window 8 and no CHECKPOINT");
}

fn body_of(prepare: &Arc<Certified>) -> crate::Prepare {
    prepare.prepare().expect("a PREPARE").clone()
}

#[test]
fn a_stub_stands_only_where_its_kind_may() {
    covers!("MINBFT-V3");
    let mut world = World::with(3, SMALL, &[]);
    let prepare = world.prepare(0, 1, &[]);
    let commit = world.commit(1, &prepare);
    // A COMMIT hidden as a stub of a VIEW-CHANGE: the identifier does not cover a stub's digest, so
    // this never comes through verification; its place alone gives it away as well.
    let stub = LogEntry::ViewChange(View(0), Digest::ZERO, commit.ui.clone());
    let mut body = world.change_body(1, 1, StableProof::default());
    body.log[0] = stub;
    let message = world.certify_change(1, body);
    assert!(evidence(&world.group, &world.configuration, &world.config, &message).is_err());
    let judged = world.arrive_checked(1, 2, Message::Certified(message));
    assert!(!judged, "the stub's identifier does not verify");
}

// MINBFT-V4 (guard) "The log has no hole: each entry's predecessor is the entry before, and the
// VIEW-CHANGE's own predecessor is the last entry."
#[test]
fn a_log_has_no_hole() {
    covers!("MINBFT-V4");
    assert!(judged(3, |_, body| drop(body.log.remove(0))).is_err(), "the first is missing");
    assert!(judged(3, |_, body| drop(body.log.pop())).is_err(), "the last is missing");
    assert!(judged(3, |_, body| body.log.clear()).is_err(), "all are missing");
    assert!(judged(3, |_, body| body.log.swap(0, 1)).is_err(), "out of order");
    let three = |world: &mut World, body: &mut ViewChange, at: usize| {
        let checkpoint = world.checkpoint(1, 2, Digest::ZERO);
        body.log.push(LogEntry::Whole(checkpoint));
        body.log.remove(at);
    };
    for at in 0..3 {
        assert!(judged(3, |world, body| three(world, body, at)).is_err(), "entry {at} is missing");
    }
    assert!(judged(5, |_, _| ()).is_ok());
    // A puppet that never said anything shows nothing.
    let mut world = World::with(3, SMALL, &[]);
    let silent = world.view_change(2, 1);
    assert!(evidence(&world.group, &world.configuration, &world.config, &silent).is_ok());
}

// MINBFT-V5 (guard) "The log begins with the sender's first message or with an own CHECKPOINT(p),
// p + L ≤ the certificate's n."
#[test]
fn a_log_begins_at_an_anchor_that_covers() {
    covers!("MINBFT-V5");
    // (the anchor's number, the certificate's number, whether it covers)
    for (anchor, stable, good) in [(4, 12, true), (4, 11, false), (12, 12, false), (u64::MAX, 12, false)] {
        let change = move |world: &mut World, body: &mut ViewChange| {
            body.stable = world.stable_proof(&[0, 2], stable, Digest::ZERO);
            let checkpoint = world.checkpoint(1, anchor, Digest::ZERO);
            body.log = vec![LogEntry::Whole(checkpoint)];
        };
        assert_eq!(judged(3, change).is_ok(), good, "CHECKPOINT({anchor}) below {stable}");
    }
    let at_a_commit = |world: &mut World, body: &mut ViewChange| {
        body.stable = world.stable_proof(&[0, 2], 12, Digest::ZERO);
        body.log.remove(0);
    };
    assert!(judged(3, at_a_commit).is_err(), "a COMMIT is no anchor");
}

// MINBFT-V6 "A VIEW-CHANGE is certified only after every own message has come back certified, and lists
// all of them since the anchor."
#[test]
fn a_view_change_waits_for_its_own_messages() {
    covers!("MINBFT-V6");
    let mut world = World::with(3, SMALL, &[2]);
    let frames = world.frames_held(3, &[2]);
    world.ordered_by_puppet(&[2], &frames[..1]);
    world.node_mut(2).stalled = true;
    for (seq, frame) in [(2, &frames[1]), (3, &frames[2])] {
        let prepare = world.prepare(0, seq, &[frame]);
        world.say(2, &prepare);
    }
    world.wishes(&[0, 1], 2, 1);
    assert_eq!(world.minbft(2).view, View(1));
    assert!(world.minbft(2).due_view_change.is_some(), "COMMIT(2) and COMMIT(3) are with the component");
    world.unstall(2);
    let change = world.sent_by(2, Kind::ViewChange)[0].clone();
    let log = &change.view_change().expect("VIEW-CHANGE").log;
    let kinds: Vec<Kind> = log
        .iter()
        .map(|entry| match entry {
            LogEntry::Whole(message) => kind(&message.body),
            _ => panic!("a stub"),
        })
        .collect();
    assert_eq!(kinds, [Kind::Commit; 3]);
    assert!(evidence(&world.group, &world.configuration, &world.config, &change).is_ok());
}

#[test]
fn view_changes_stand_as_stubs_in_the_next() {
    covers!("MINBFT-V6");
    let mut world = World::with(3, SMALL, &[2]);
    let frames = world.frames_held(1, &[2]);
    world.ordered_by_puppet(&[2], &frames);
    world.wishes(&[0, 1], 2, 1);
    world.wishes(&[0, 1], 2, 2);
    let changes = world.sent_by(2, Kind::ViewChange);
    let log = &changes[1].view_change().expect("VIEW-CHANGE").log;
    assert_eq!(log.len(), 2);
    assert!(matches!(&log[1], LogEntry::ViewChange(View(1), _, ui) if ui.value() == CounterValue::new(1, 0)));
    assert!(evidence(&world.group, &world.configuration, &world.config, &changes[1]).is_ok());
}

/// Evidence with a stable checkpoint and PREPAREs (view, number, operation) of the world's primaries.
fn shows(world: &mut World, from: u16, stable: u64, prepares: &[(u64, u64, &str)]) -> Evidence {
    let mut list = std::collections::BTreeMap::new();
    for (view, seq, operation) in prepares {
        let frame = world.frame(1, *seq, operation);
        let batch = batch(world.wall(), &[&frame]);
        // PREPAREs of a later view stand at later values, as certify gives them.
        let primary = world.group.primary(View(*view)).0;
        let next = world.counter(primary).next().expect("not spent");
        let value = next.max(CounterValue::new(*view, 2));
        let body = Body::Prepare(crate::Prepare { view: View(*view), seq: Seq(*seq), batch });
        list.insert((View(*view), Seq(*seq)), world.certify_at(primary, value, body));
    }
    let view = prepares.iter().map(|(view, _, _)| View(*view)).max();
    Evidence {
        from: r(from),
        stable: (Seq(stable), Digest([stable as u8; 32])),
        view,
        prepares: list,
        epoch: 1,
        epochs: BTreeMap::new(),
    }
}

fn operations(world: &World, choice: &Choice) -> Vec<Digest> {
    let _ = world;
    choice.chosen.iter().flat_map(|batch| batch.frames.clone()).collect()
}

fn named(world: &World, list: &[(u64, &str)]) -> Vec<Digest> {
    list.iter().map(|(number, operation)| world.frame(1, *number, operation).digest()).collect()
}

// MINBFT-V7 "The new view's base is the highest checkpoint certificate among the VIEW-CHANGEs, or the
// base of the view that rules (V8) if that is higher."
#[test]
fn the_base_is_the_highest_that_is_known() {
    covers!("MINBFT-V7");
    let mut world = World::with(5, SMALL, &[]);
    let shown = [shows(&mut world, 0, 4, &[]), shows(&mut world, 1, 8, &[]), shows(&mut world, 2, 0, &[])];
    let choice = choose(&world.config, &shown, |_| None).expect("nothing is missing");
    assert_eq!((choice.base, choice.chosen.len()), ((Seq(8), Digest([8; 32])), 0));
    // Old certificates only, and a view that started from 8.
    let started = crate::NewView {
        view: View(1),
        changes: Vec::new(),
        base: (Seq(8), Digest([8; 32])),
        chosen: vec![batch(world.wall(), &[&world.frame(1, 9, "nine")])],
    };
    let shown = [shows(&mut world, 0, 0, &[(1, 10, "ten")]), shows(&mut world, 1, 4, &[])];
    let choice = choose(&world.config, &shown, |view| (view == View(1)).then_some(&started));
    let choice = choice.expect("the start is known");
    assert_eq!(choice.base, (Seq(8), Digest([8; 32])));
    assert_eq!(operations(&world, &choice), named(&world, &[(9, "nine"), (10, "ten")]));
    // A higher certificate than the view's start wins.
    let shown = [shows(&mut world, 0, 9, &[(1, 10, "ten")])];
    let choice = choose(&world.config, &shown, |_| Some(&started)).expect("known");
    assert_eq!(choice.base.0, Seq(9));
    assert_eq!(operations(&world, &choice), named(&world, &[(10, "ten")]));
}

// MINBFT-V8 (guard) "Commitments of the highest view that occurs rule: S is what that view itself
// started from, followed by its PREPAREs, as far as they are consecutive. Nothing of any other view
// enters."
#[test]
fn the_highest_view_rules() {
    covers!("MINBFT-V8");
    let mut world = World::with(5, SMALL, &[]);
    let long = shows(&mut world, 0, 0, &[(0, 1, "a"), (0, 2, "b"), (0, 3, "c"), (0, 4, "d")]);
    let high = shows(&mut world, 1, 0, &[(1, 2, "x")]);
    let started = crate::NewView {
        view: View(1),
        changes: Vec::new(),
        base: (Seq(0), Digest::ZERO),
        chosen: vec![batch(world.wall(), &[&world.frame(1, 1, "s")])],
    };
    let shown = [long, high];
    let choice = choose(&world.config, &shown, |_| Some(&started)).expect("known");
    assert_eq!(operations(&world, &choice), named(&world, &[(1, "s"), (2, "x")]), "not the longest log");
    assert_eq!(choose(&world.config, &shown, |_| None), None, "never a guess");
    // In one view logs add up, as far as they are consecutive.
    let mut world = World::with(5, SMALL, &[]);
    let one = shows(&mut world, 0, 0, &[(0, 1, "a"), (0, 2, "b")]);
    let two = shows(&mut world, 1, 2, &[(0, 3, "c")]);
    let one = Evidence { stable: (Seq(2), Digest([2; 32])), ..one };
    let mut three = shows(&mut world, 2, 4, &[(0, 5, "e")]);
    // Shown by one that is ahead, without what is below its checkpoint: nothing joins it to the others.
    three.stable = (Seq(2), Digest([2; 32]));
    assert_eq!(choose(&world.config, &[one.clone(), two.clone(), three], |_| None), None);
    let choice = choose(&world.config, &[one, two], |_| None).expect("view 0 needs no start");
    assert_eq!(operations(&world, &choice), named(&world, &[(3, "c")]));
    let mut world = World::with(5, SMALL, &[]);
    let one = shows(&mut world, 0, 0, &[(0, 1, "a"), (0, 2, "b")]);
    let two = shows(&mut world, 1, 0, &[(0, 1, "a"), (0, 2, "b"), (0, 3, "c")]);
    let choice = choose(&world.config, &[one, two], |_| None).expect("view 0 needs no start");
    assert_eq!(operations(&world, &choice), named(&world, &[(1, "a"), (2, "b"), (3, "c")]));
    // What is below the base is left out.
    let mut world = World::with(5, SMALL, &[]);
    let one = shows(&mut world, 0, 2, &[(0, 1, "a"), (0, 2, "b"), (0, 3, "c")]);
    let choice = choose(&world.config, &[one], |_| None).expect("view 0 needs no start");
    assert_eq!(operations(&world, &choice), named(&world, &[(3, "c")]));
}

// MINBFT-V9 (guard) "Of two PREPAREs for the same view and number the one with the lower counter value
// counts."
#[test]
fn the_first_prepare_counts() {
    covers!("MINBFT-V9");
    let mut world = World::with(5, SMALL, &[]);
    let first = shows(&mut world, 0, 0, &[(0, 1, "first")]);
    let second = shows(&mut world, 1, 0, &[(0, 1, "second")]);
    for shown in [[first.clone(), second.clone()], [second, first]] {
        let choice = choose(&world.config, &shown, |_| None).expect("view 0 needs no start");
        assert_eq!(operations(&world, &choice), named(&world, &[(1, "first")]));
    }
}

#[test]
fn requests_are_repeated_to_those_who_missed_them() {
    covers!("MINBFT-V2");
    let mut world = World::all(3, SMALL);
    world.crash(0);
    world.links(|flight| if flight.kind() == Kind::Request { Fate::Lose } else { Fate::Pass });
    let frame = world.frame(1, 1, "a");
    world.request(&[1, 2], &frame);
    world.pass(1_050_000);
    assert_eq!((world.minbft(1).view, world.minbft(2).view), (View(0), View(0)));
    world.open();
    world.pass(300_000);
    assert_eq!(world.journal(2), ["a"], "STATUS brought the requests");
}

// MINBFT-V8 "Commitments of the highest view that occurs rule …": whoever certified a CHECKPOINT in a view has
// accepted its start, though that lies before the anchor.
#[test]
fn a_checkpoint_alone_shows_the_view_that_its_sender_worked_in() {
    covers!("MINBFT-V3");
    let mut world = World::with(3, SMALL, &[]);
    let stable = world.stable_proof(&[0, 2], 16, troth_types::Digest([1; 32]));
    world.certify_at(
        1,
        Place::of_view_change(View(3)),
        Body::Checkpoint(crate::Checkpoint {
            seq: Seq(2),
            digest: Digest::ZERO,
            epochs: Vec::new(),
            given: false,
        }),
    );
    let anchor = world.checkpoint(1, 1, Digest::ZERO);
    assert_eq!(Place::of(anchor.value()), Place { view: View(3), checkpoint: Seq(1), count: 0 });
    let mut change = world.change_body(1, 5, stable);
    change.log = vec![LogEntry::Whole(anchor)];
    let message = world.certify_change(1, change);
    let shown =
        evidence(&world.group, &world.configuration, &world.config, &message).expect("a log may begin here");
    assert_eq!(shown.view, Some(View(3)));
}

// MINBFT-V20 (guard) "The commitments that a VIEW-CHANGE shows of its highest view follow each other without a
// hole, from that view's start or from the stable checkpoint shown, whichever is higher. …"
#[test]
fn a_hole_in_the_commitments_is_not_used() {
    covers!("MINBFT-V20");
    let world = World::with(3, SMALL, &[]);
    let start = crate::NewView {
        view: View(1),
        changes: Vec::new(),
        base: (Seq(4), Digest([4; 32])),
        chosen: vec![batch(world.wall(), &[]), batch(world.wall(), &[])],
    };
    for (view, stable, numbers, good) in [
        (0, 0, &[1, 2][..], true),
        (0, 0, &[2], false),
        (0, 0, &[1, 3], false),
        (0, 4, &[5, 6], true),
        (0, 4, &[2, 5], true),
        (0, 4, &[6], false),
        (1, 0, &[7, 8], true),
        (1, 0, &[5], true),
        (1, 0, &[8], false),
        (1, 7, &[8], true),
    ] {
        let mut world = World::with(3, SMALL, &[]);
        let prepares: Vec<(u64, u64, &str)> = numbers.iter().map(|number| (view, *number, "op")).collect();
        let shown = shows(&mut world, 0, stable, &prepares);
        let choice = choose(&world.config, &[shown], |view| (view == View(1)).then_some(&start));
        assert_eq!(choice.is_some(), good, "view {view}, {stable} stable, {numbers:?}");
    }
}

/// A faulty primary's log jumps to 65 by a checkpoint of a state that nobody had: S would end before 65, and
/// one who is still in the old view would execute it there.
#[test]
fn a_log_that_jumps_by_a_checkpoint_of_its_own_is_not_based_on() {
    covers!("MINBFT-V20");
    let mut world = World::with(3, SMALL, &[1]);
    let frame = world.frame(1, 1, "m");
    world.request(&[1], &frame);
    world.checkpoint(0, 4, Digest([9; 32]));
    world.prepare(0, 5, &[&frame]);
    let change = world.view_change(0, 1);
    assert!(
        evidence(&world.group, &world.configuration, &world.config, &change).is_ok(),
        "nothing in it is out of order"
    );
    for message in world.said(0) {
        world.say(1, &message);
    }
    world.wishes(&[0, 2], 1, 1);
    world.pass(200_000);
    assert!(!world.minbft(1).active() && world.sent_by(1, Kind::NewView).is_empty());
    let honest = world.view_change(2, 1);
    world.say(1, &honest);
    assert_eq!(world.sent_by(1, Kind::NewView).len(), 1, "the others are enough");
}
