//! MINBFT-V10 to V16: NEW-VIEW and the commitment to it.

use super::craft::batch;
use super::harness::{Fate, Kind, SMALL, World, covers, r};
use crate::message::{AcceptNewView, Body, Certified, Message, NewView, Prepare};
use crate::place::Place;
use crate::view_change::Judgement;
use std::sync::Arc;
use troth_trusted::CounterValue;
use troth_types::{Batch, Digest, Seq, View};

/// Five replicas of which 4 is correct; puppet 0's PREPARE(1) is in puppet 1's log and in that of
/// nobody else; the NEW-VIEW of view 1 by puppet 1 carries it over.
fn five_with_a_new_view() -> (World, Arc<Certified>, Vec<Arc<Certified>>) {
    let mut world = World::with(5, SMALL, &[4]);
    let frames = world.frames_held(1, &[4]);
    let prepare = world.prepare(0, 1, &[&frames[0]]);
    world.commit(1, &prepare);
    world.wishes(&[0, 1, 2], 4, 1);
    let changes: Vec<_> = [0, 1, 2].map(|by| world.view_change(by, 1)).to_vec();
    let new_view = world.new_view(1, &[&changes[1], &changes[0], &changes[2]], &[]);
    assert_eq!(new_view.new_view().expect("NEW-VIEW").chosen.len(), 1);
    (world, new_view, changes)
}

/// A puppet's messages arrive in order.
fn all_said(world: &mut World, by: u16, to: u16) {
    for message in world.said(by) {
        world.say(to, &message);
    }
}

// MINBFT-V10 (guard) "Nothing that a NEW-VIEW carries over is executed, and nothing is proposed, before
// f+1 replicas, this one among them, have committed to the NEW-VIEW."
#[test]
fn what_is_carried_over_waits_for_f_plus_1() {
    covers!("MINBFT-V10");
    let (mut world, new_view, _) = five_with_a_new_view();
    all_said(&mut world, 1, 4);
    assert!(world.works_in(4, 1));
    assert_eq!(world.executed(4), 0, "the primary and itself are two of three");
    all_said(&mut world, 2, 4);
    assert_eq!(world.executed(4), 0);
    let accept = world.accept(2, &new_view);
    world.say(4, &accept);
    assert_eq!(world.journal(4), ["op1"]);
}

// MINBFT-C1 "A checkpoint is taken … after the last batch that a new view carried over."
#[test]
fn a_checkpoint_follows_what_was_carried_over() {
    covers!("MINBFT-C1");
    let (mut world, new_view, _) = five_with_a_new_view();
    for by in [1, 2] {
        all_said(&mut world, by, 4);
    }
    assert!(world.sent_by(4, Kind::Checkpoint).is_empty());
    let accept = world.accept(2, &new_view);
    world.say(4, &accept);
    assert_eq!(world.executed(4), 1);
    let sent = world.sent_by(4, Kind::Checkpoint);
    assert!(matches!(&sent[..], [one] if matches!(&one.body, Body::Checkpoint(own) if own.seq == Seq(1))));
}

// MINBFT-V18 "A CHECKPOINT at a counter value of this view counts as its sender's commitment to the NEW-VIEW …"
#[test]
fn a_checkpoint_of_the_view_counts_as_acceptance() {
    covers!("MINBFT-V18");
    let (mut world, _, _) = five_with_a_new_view();
    for by in [1, 2] {
        all_said(&mut world, by, 4);
    }
    assert_eq!(world.executed(4), 0, "the primary and itself");
    let place = Place::of_checkpoint(View(1), Seq(4)).expect("possible");
    let body = Body::Checkpoint(crate::Checkpoint {
        seq: Seq(4),
        digest: Digest::ZERO,
        epochs: Vec::new(),
        given: false,
    });
    let checkpoint = world.certify_at(2, place, body);
    world.say(4, &checkpoint);
    assert_eq!(world.executed(4), 1);
}

#[test]
fn its_own_acceptance_must_be_certified_first() {
    covers!("MINBFT-V10");
    let (mut world, new_view, _) = five_with_a_new_view();
    for by in [0, 2] {
        all_said(&mut world, by, 4);
    }
    world.node_mut(4).stalled = true;
    all_said(&mut world, 1, 4);
    for by in [2, 3] {
        if by == 3 {
            world.view_change(3, 1);
            all_said(&mut world, 3, 4);
        }
        let accept = world.accept(by, &new_view);
        world.say(4, &accept);
    }
    assert_eq!(world.minbft(4).started.accepted.count(), 3, "the primary, 2 and 3");
    assert_eq!(world.executed(4), 0);
    world.unstall(4);
    assert_eq!(world.journal(4), ["op1"]);
}

#[test]
fn the_new_primary_proposes_after_f_plus_1() {
    covers!("MINBFT-V10");
    let mut world = World::all(5, SMALL);
    // All commit to the first batch, and no COMMIT arrives: the new view carries it over.
    world.links(|flight| if flight.kind() == Kind::Commit { Fate::Lose } else { Fate::Pass });
    let first = world.frame(1, 1, "a");
    world.request_all(&first);
    world.crash(0);
    world.links(|flight| if flight.kind() == Kind::AcceptNewView { Fate::Hold } else { Fate::Pass });
    world.wishes(&[1, 2, 3], 1, 1);
    let second = world.frame(2, 1, "b");
    world.request_all(&second);
    world.pass(500_000);
    assert!(world.works_in(1, 1));
    assert!(world.sent_by(1, Kind::Prepare).is_empty());
    world.open();
    assert_eq!(world.sent_by(1, Kind::Prepare).len(), 1);
    assert_eq!(world.journal(2), ["a", "b"]);
}

// MINBFT-V11 (guard) "A message of a view that this replica has not entered waits; one of a view that
// its sender left proves the sender faulty; one of a view that this replica left is followed and not
// counted."
#[test]
fn messages_of_a_later_view_wait() {
    covers!("MINBFT-V11");
    let (mut world, new_view, _) = five_with_a_new_view();
    let accept = world.accept(2, &new_view);
    let frame = world.frame(1, 2, "next");
    world.request(&[4], &frame);
    let prepare = world.prepare(1, 2, &[&frame]);
    let commit = world.commit(2, &prepare);
    // Replica 2's messages come before the NEW-VIEW does.
    all_said(&mut world, 2, 4);
    assert!(world.minbft(4).peer(r(2)).gate.processed() < accept.value());
    assert_eq!(world.minbft(4).peer(r(2)).gate.held(), 2);
    all_said(&mut world, 1, 4);
    assert_eq!(world.minbft(4).peer(r(2)).gate.processed(), commit.value(), "now it is their turn");
    assert_eq!(world.journal(4), ["op1", "next"]);
    assert!(world.accused_nobody(4));
}

// Nobody needs to have shown a VIEW-CHANGE: a faulty replica's counter may jump over it.
#[test]
fn commitments_ahead_of_ones_view_wait_whatever_came_before() {
    covers!("MINBFT-V11");
    for changing in [false, true] {
        let mut world = World::with(5, SMALL, &[4]);
        if changing {
            world.wishes(&[0, 2, 3], 4, 1);
        }
        let frames = world.frames_held(1, &[4]);
        let batch = batch(world.wall(), &[&frames[0]]);
        let body = Body::Prepare(Prepare { view: View(1), seq: Seq(1), batch });
        let prepare = world.certify_at(1, CounterValue::new(1, 2), body);
        let body = Body::Commit(crate::Commit { prepare: prepare.clone() });
        let commit = world.certify_at(2, CounterValue::new(1, 2), body);
        world.say(4, &prepare);
        world.say(4, &commit);
        for puppet in [1, 2] {
            assert_eq!(world.minbft(4).peer(r(puppet)).gate.processed(), CounterValue(0));
            assert_eq!(world.minbft(4).peer(r(puppet)).gate.held(), 1);
        }
        assert!(world.minbft(4).slots.is_empty());
        assert!(world.accused_nobody(4));
    }
}

// D12: what is ahead of this replica's own window waits in the hold-back; a drop would look like a fault.
#[test]
fn commitments_ahead_of_ones_window_wait() {
    covers!("MINBFT-V11");
    let mut world = World::with(5, SMALL, &[4]);
    let frames = world.frames_held(10, &[4]);
    world.ordered_by_puppet(&[4], &frames[..8]);
    let digest = Digest([8; 32]);
    let own = world.checkpoint(0, 4, digest);
    world.say(4, &own);
    let ahead = [world.prepare(0, 9, &[&frames[8]]), world.prepare(0, 10, &[&frames[9]])];
    for prepare in &ahead {
        world.say(4, prepare);
    }
    let minbft = world.minbft(4);
    assert_eq!(minbft.peer(r(0)).gate.processed(), own.value());
    assert_eq!((minbft.peer(r(0)).gate.held(), minbft.slots.len()), (2, 8));
    for other in [1, 2] {
        let vote = world.checkpoint(other, 4, digest);
        world.say(4, &vote);
    }
    assert_eq!(world.minbft(4).stable.0, Seq(4));
    assert_eq!(world.minbft(4).peer(r(0)).gate.processed(), ahead[1].value(), "the window moved");
    assert!(world.accused_nobody(4));
}

#[test]
fn messages_of_a_left_view_do_not_count() {
    covers!("MINBFT-V11");
    let mut world = World::with(3, SMALL, &[2]);
    let frames = world.frames_held(2, &[2]);
    let prepares: Vec<_> = (1..).zip(&frames).map(|(seq, frame)| world.prepare(0, seq, &[frame])).collect();
    let commits: Vec<_> = prepares.iter().map(|prepare| world.commit(1, prepare)).collect();
    world.wishes(&[0, 1], 2, 1);
    for message in prepares.iter().chain(&commits) {
        world.say(2, message);
    }
    assert_eq!(world.minbft(2).peer(r(0)).gate.processed(), prepares[1].value(), "followed");
    assert_eq!(world.minbft(2).peer(r(1)).gate.processed(), commits[1].value(), "followed");
    assert!(world.minbft(2).slots.is_empty() && world.executed(2) == 0, "not counted");
    assert_eq!(world.commits(2), [0u64; 0]);
    assert!(world.accused_nobody(2));
    // Followed means judged, too.
    let skipped = world.prepare(0, 4, &[]);
    world.say(2, &skipped);
    assert!(world.condemned(2, 0).is_some());
}

// A left view's values are below the VIEW-CHANGE's, so the place in the counter (U2) tells it already.
#[test]
fn a_commitment_in_a_view_that_its_sender_left_condemns_it() {
    covers!("MINBFT-U2");
    let mut world = World::with(3, SMALL, &[2]);
    let prepare = world.prepare(0, 1, &[]);
    world.view_change(1, 1);
    let late = world.commit(1, &prepare);
    all_said(&mut world, 1, 2);
    assert!(late.value() > CounterValue::new(1, 0));
    assert!(world.condemned(2, 1).is_some());
    assert_eq!(world.minbft(2).slots.get(&Seq(1)).map_or(0, |slot| slot.commits.len()), 0);
}

/// Replica 1, the primary of view 1, is correct; puppet 0 shows this PREPARE(1) of its own.
pub(super) fn primary_sees(seen: Batch, hold: &[&Arc<troth_types::Frame>]) -> World {
    let mut world = World::with(3, SMALL, &[1]);
    for frame in hold {
        world.request(&[1], frame);
    }
    world.prepare_batch(0, 1, seen);
    let change = world.view_change(0, 1);
    world.wishes(&[0, 2], 1, 1);
    // It left view 0 before the PREPARE came: only the log makes it matter.
    let prepare = world.said(0)[0].clone();
    world.say(1, &prepare);
    world.say(1, &change);
    world
}

// MINBFT-V12 (guard) "A replica bases a NEW-VIEW on a VIEW-CHANGE only when it holds and has verified
// every frame that the log's commitments name, their times are not ahead of its clock, and the start
// of the log's highest view is known and valid."
#[test]
fn a_new_view_rests_on_frames_that_are_here() {
    covers!("MINBFT-V12");
    let outside = World::with(3, SMALL, &[]);
    let (frame, nobodys) = (outside.frame(1, 1, "a"), outside.frame(1, 1, "nobody has it"));
    let good = batch(outside.wall(), &[&frame]);
    let world = primary_sees(good, &[&frame]);
    assert_eq!(world.sent_by(1, Kind::NewView).len(), 1);
    let unknown = batch(outside.wall(), &[&nobodys]);
    let mut world = primary_sees(unknown, &[&frame]);
    assert!(world.sent_by(1, Kind::NewView).is_empty());
    world.pass(SMALL.status_interval);
    let asked = world.sent.iter().any(|flight| flight.kind() == Kind::FetchFrames);
    assert!(asked, "it asks for what is missing");
    // Another VIEW-CHANGE that needs nothing will do.
    let change = world.view_change(2, 1);
    world.say(1, &change);
    let new_view = world.sent_by(1, Kind::NewView)[0].new_view().expect("NEW-VIEW").clone();
    assert_eq!(new_view.changes.iter().map(|change| change.from).collect::<Vec<_>>(), [r(1), r(2)]);
    assert!(world.accused_nobody(1), "nobody can tell who is to blame");
}

#[test]
fn a_new_view_rests_on_times_that_have_come() {
    covers!("MINBFT-V12");
    let outside = World::with(3, SMALL, &[]);
    let frame = outside.frame(1, 1, "a");
    let mut world =
        primary_sees(batch(outside.wall().after(SMALL.clock_bound + 50_000), &[&frame]), &[&frame]);
    assert!(world.sent_by(1, Kind::NewView).is_empty());
    world.pass(SMALL.status_interval);
    assert_eq!(world.sent_by(1, Kind::NewView).len(), 1, "the clock has come near enough");
}

#[test]
fn a_new_view_rests_on_starts_that_are_known() {
    covers!("MINBFT-V12");
    // Replica 2, primary of view 2, is correct and never saw view 1, in which puppet 0 committed.
    let mut world = World::with(3, SMALL, &[2]);
    let frames = world.frames_held(1, &[2]);
    let changes = [world.view_change(0, 1), world.view_change(1, 1)];
    let new_view = world.new_view(1, &[&changes[1], &changes[0]], &[]);
    world.accept(0, &new_view);
    let prepare = world.prepare(1, 1, &[&frames[0]]);
    world.commit(0, &prepare);
    let change = world.view_change(0, 2);
    world.wishes(&[0, 1], 2, 2);
    all_said(&mut world, 0, 2);
    assert_eq!(world.minbft(2).peer(r(0)).gate.processed(), change.value());
    assert!(world.sent_by(2, Kind::NewView).is_empty());
    assert_eq!(world.minbft(2).known_views.wanted(0), Some(View(1)), "it asks for the start of view 1");
    world.inject(0, 2, Message::Evidence(new_view));
    let mine = world.sent_by(2, Kind::NewView)[0].new_view().expect("NEW-VIEW").clone();
    assert_eq!(mine.chosen, [prepare.prepare().expect("PREPARE").batch.clone()]);
}

// "… and likewise what that start carries over": a faulty primary has a view begin with a frame that nobody has, and shows a
// log of that view which names none.
#[test]
fn a_new_view_rests_on_what_the_highest_start_carries_over() {
    covers!("MINBFT-V12");
    let outside = World::with(3, SMALL, &[]);
    let later = outside.wall().after(SMALL.clock_bound + 50_000);
    for (time, comes) in [(outside.wall(), true), (later, false)] {
        let mut world = World::with(3, SMALL, &[2]);
        let frame = world.frame(1, 1, "a");
        world.prepare_batch(0, 1, batch(time, &[&frame]));
        let changes = [world.view_change(0, 1), world.view_change(1, 1)];
        let new_view = world.new_view(1, &[&changes[1], &changes[0]], &[]);
        assert_eq!(new_view.new_view().expect("NEW-VIEW").chosen.len(), 1);
        let shown = world.view_change(1, 2);
        world.wishes(&[0, 1], 2, 2);
        all_said(&mut world, 1, 2);
        assert_eq!(world.minbft(2).peer(r(1)).gate.processed(), shown.value());
        assert!(world.minbft(2).known_views.get(View(1)).is_some(), "it follows from what it shows");
        assert!(world.sent_by(2, Kind::NewView).is_empty(), "and cannot be stood for");
        world.request(&[2], &frame);
        assert_eq!(!world.sent_by(2, Kind::NewView).is_empty(), comes);
        world.pass(SMALL.status_interval);
        let mine = world.sent_by(2, Kind::NewView)[0].new_view().expect("NEW-VIEW").clone();
        assert_eq!(mine.chosen.len(), 1);
        assert!(world.accused_nobody(2));
    }
}

#[test]
fn a_start_that_nobody_can_show_stops_no_new_view() {
    covers!("MINBFT-V12");
    // Puppet 0 claims to have accepted a view that never began; puppet 2 shows an ordinary log.
    let mut world = World::with(3, SMALL, &[1]);
    world.wishes(&[0, 2], 1, 4);
    let accept = AcceptNewView { view: View(2), new_view: Digest([6; 32]) };
    world.certify_at(0, CounterValue::new(2, 1), Body::AcceptNewView(accept));
    world.view_change(0, 4);
    all_said(&mut world, 0, 1);
    assert!(world.minbft(1).changes.contains_key(&r(0)), "nothing in it is provably wrong");
    assert!(world.sent_by(1, Kind::NewView).is_empty());
    let change = world.view_change(2, 4);
    world.say(1, &change);
    let new_view = world.sent_by(1, Kind::NewView)[0].new_view().expect("NEW-VIEW").clone();
    assert_eq!(new_view.changes.iter().map(|change| change.from).collect::<Vec<_>>(), [r(1), r(2)]);
}

// MINBFT-V17: where few commit to starts each rests on the one before, and a replica that was away judges all of them.
#[test]
fn a_long_chain_of_starts_is_judged_from_its_beginning() {
    covers!("MINBFT-V17");
    let mut world = World::with(3, SMALL, &[2]);
    let mut starts: Vec<Arc<Certified>> = Vec::new();
    let last = 125;
    for view in (1..last).filter(|view| view % 3 != 2) {
        let changes = [world.view_change(0, view), world.view_change(1, view)];
        let of_primary = usize::from(world.group.primary(View(view)).0);
        let shown = [&changes[of_primary], &changes[1 - of_primary]];
        let earlier: Vec<Arc<Certified>> = starts.clone();
        starts.push(world.new_view(view, &shown, &earlier.iter().collect::<Vec<_>>()));
    }
    assert!(starts.len() > 80);
    let change = world.view_change(0, last);
    world.wishes(&[0, 1], 2, last);
    // What it missed of 0 lies behind a gap that it may not pass over: 0 shows all of it.
    all_said(&mut world, 0, 2);
    let mut asked = 0;
    while world.sent_by(2, Kind::NewView).is_empty() {
        let wanted = world.minbft(2).known_views.wanted(asked).expect("it has to know the last one");
        let start = starts.iter().find(|start| start.new_view().is_some_and(|start| start.view == wanted));
        world.inject(1, 2, Message::Evidence(Arc::clone(start.expect("somebody began it"))));
        asked += 1;
        assert!(asked < 10 * starts.len() as u64, "{:?}", world.minbft(2).known_views.wanted(asked));
    }
    let mine = world.sent_by(2, Kind::NewView)[0].new_view().expect("NEW-VIEW").clone();
    assert!(mine.changes.iter().any(|shown| shown.digest == change.digest));
    assert!(world.accused_nobody(2));
}

/// What replica 4 of five thinks of a NEW-VIEW of view 1 that the test may change.
fn judged(change: impl Fn(&mut World, &mut NewView)) -> Judgement {
    let mut world = World::with(5, SMALL, &[4]);
    let frames = world.frames_held(1, &[4]);
    let prepare = world.prepare(0, 1, &[&frames[0]]);
    world.commit(1, &prepare);
    let changes: Vec<_> = [0, 1, 2].map(|by| world.view_change(by, 1)).to_vec();
    let mut body = world.new_view_body(1, &[&changes[1], &changes[0], &changes[2]], &[]);
    change(&mut world, &mut body);
    let message = world.certify_at(1, CounterValue::new(1, 1), Body::NewView(body));
    world.minbft(4).judge_new_view(&message, message.new_view().expect("NEW-VIEW"))
}

fn invalid(change: impl Fn(&mut World, &mut NewView)) -> bool {
    matches!(judged(change), Judgement::Invalid(_))
}

// MINBFT-V13 (guard) "A NEW-VIEW is valid when it shows f+1 valid VIEW-CHANGEs of distinct replicas, its
// primary's own among them, and base and S are what they lead to. An invalid one proves the primary
// faulty."
#[test]
fn a_new_view_must_follow_from_what_it_shows() {
    covers!("MINBFT-V13");
    assert!(matches!(judged(|_, _| ()), Judgement::Valid { .. }));
    assert!(invalid(|_, body| drop(body.changes.pop())), "f VIEW-CHANGEs");
    assert!(invalid(|_, body| body.changes[2] = body.changes[1].clone()), "one replica twice");
    let padded = |_: &mut World, body: &mut NewView| body.changes.push(body.changes[1].clone());
    assert!(invalid(padded), "no replica twice, not even beyond f+1");
    let without_own = |world: &mut World, body: &mut NewView| body.changes[0] = world.view_change(3, 1);
    assert!(invalid(without_own));
    let four = |world: &mut World, body: &mut NewView| body.changes.push(world.view_change(3, 1));
    assert!(matches!(judged(four), Judgement::Valid { .. }), "more than f+1 do no harm");
    let other_view = |world: &mut World, body: &mut NewView| body.changes[2] = world.view_change(3, 2);
    assert!(invalid(other_view));
    let invalid_inside = |world: &mut World, body: &mut NewView| {
        let mut change = world.change_body(3, 1, Default::default());
        change.requests.clear();
        body.changes[2] = world.certify_change(3, change);
    };
    assert!(invalid(invalid_inside));
    let misplaced = |world: &mut World, body: &mut NewView| {
        let change = world.change_body(3, 1, Default::default());
        body.changes[2] = world.certify_at(3, CounterValue::new(1, 7), Body::ViewChange(change));
    };
    assert!(invalid(misplaced));
    assert!(invalid(|_, body| body.chosen.clear()), "nothing may be left out");
    assert!(invalid(|_, body| body.chosen.push(Batch::default())), "nothing may be added");
    assert!(invalid(|_, body| body.chosen[0].time.0 += 1), "nothing may be changed");
    assert!(invalid(|_, body| body.base = (Seq(4), Digest::ZERO)));
    assert!(invalid(|_, body| body.base.1 = Digest([1; 32])));
    assert!(invalid(|_, body| body.view = View(6)), "its place in the counter says view 1");
}

#[test]
fn an_invalid_new_view_condemns_the_primary() {
    covers!("MINBFT-V13");
    for broken in [false, true] {
        let mut world = World::with(3, SMALL, &[2]);
        world.wishes(&[0, 1], 2, 1);
        let changes = [world.view_change(0, 1), world.view_change(1, 1)];
        let mut body = world.new_view_body(1, &[&changes[1], &changes[0]], &[]);
        if broken {
            body.chosen.push(Batch::default());
        }
        world.certify(1, Body::NewView(body));
        all_said(&mut world, 1, 2);
        assert_eq!(world.condemned(2, 1).is_some(), broken);
        assert_eq!(world.works_in(2, 1), !broken);
        assert_eq!(world.wanted(2), if broken { 2 } else { 1 });
    }
}

#[test]
fn a_new_view_by_a_backup_condemns_it() {
    covers!("MINBFT-U2");
    let mut world = World::with(5, SMALL, &[4]);
    let changes: Vec<_> = [0, 1, 2].map(|by| world.view_change(by, 1)).to_vec();
    let body = world.new_view_body(1, &[&changes[1], &changes[0], &changes[2]], &[]);
    world.certify(2, Body::NewView(body));
    all_said(&mut world, 2, 4);
    assert!(world.condemned(4, 2).is_some());
    assert!(!world.works_in(4, 1));
}

#[test]
fn a_new_view_justifies_that_others_follow() {
    covers!("MINBFT-V13");
    let mut world = World::with(3, SMALL, &[2]);
    let changes = [world.view_change(0, 1), world.view_change(1, 1)];
    world.new_view(1, &[&changes[1], &changes[0]], &[]);
    all_said(&mut world, 1, 2);
    assert!(world.works_in(2, 1), "the requests inside the VIEW-CHANGEs are reason enough");
    assert_eq!(world.sent_by(2, Kind::ViewChange).len(), 1);
}

// MINBFT-V14 (guard) "A replica accepts a NEW-VIEW only when it holds and has verified every frame of S
// above what it executed, and their times are not ahead of its clock."
#[test]
fn a_new_view_waits_for_its_frames_and_times() {
    covers!("MINBFT-V14");
    for n in [3, 5] {
        let me = n - 1;
        for late in [false, true] {
            let mut world = World::with(n, SMALL, &[me]);
            let frame = world.frame(1, 1, "a");
            let ahead = if late { SMALL.clock_bound + 50_000 } else { 0 };
            if late {
                world.request(&[me], &frame);
            }
            world.prepare_batch(0, 1, batch(world.wall().after(ahead), &[&frame]));
            let changes: Vec<_> = (0..=n / 2).map(|by| world.view_change(by, 1)).collect();
            let mut order: Vec<_> = changes.iter().collect();
            order.swap(0, 1);
            world.new_view(1, &order, &[]);
            all_said(&mut world, 1, me);
            assert!(!world.works_in(me, 1));
            assert!(world.accused_nobody(me));
            if late {
                world.pass(SMALL.status_interval);
            } else {
                world.show(0, me, &[&frame]);
            }
            assert!(world.works_in(me, 1));
        }
    }
}

// MINBFT-V15 "A replica enters a view by COMMIT(NEW-VIEW); its next own number follows S."
#[test]
fn a_view_is_entered_by_commit_new_view() {
    covers!("MINBFT-V15");
    let (mut world, new_view, _) = five_with_a_new_view();
    all_said(&mut world, 1, 4);
    let accept = world.sent_by(4, Kind::AcceptNewView)[0].clone();
    assert_eq!(accept.value(), CounterValue::new(1, 1));
    let Body::AcceptNewView(AcceptNewView { view, new_view: digest }) = &accept.body else { panic!() };
    assert_eq!((*view, *digest), (View(1), new_view.digest));
    let frame = world.frame(1, 2, "next");
    world.request(&[4], &frame);
    let prepare = world.prepare(1, 2, &[&frame]);
    world.say(4, &prepare);
    assert_eq!(world.commits(4), [2], "1 is S");
    let again = world.prepare(1, 2, &[&frame]);
    world.say(4, &again);
    assert!(world.condemned(4, 1).is_some(), "the primary's numbers follow S as well");
}

#[test]
fn the_primarys_first_number_follows_s() {
    covers!("MINBFT-V15");
    for (first, good) in [(1, false), (2, true), (3, false)] {
        let (mut world, _, _) = five_with_a_new_view();
        all_said(&mut world, 1, 4);
        let prepare = world.prepare(1, first, &[]);
        world.say(4, &prepare);
        assert_eq!(world.condemned(4, 1).is_none(), good, "PREPARE({first})");
    }
    // A backup's as well.
    for (first, good) in [(2, true), (3, false)] {
        let (mut world, new_view, _) = five_with_a_new_view();
        world.accept(2, &new_view);
        let prepares = [world.prepare(1, 2, &[]), world.prepare(1, 3, &[])];
        all_said(&mut world, 1, 4);
        let commit = world.commit(2, &prepares[first as usize - 2]);
        all_said(&mut world, 2, 4);
        assert_eq!(world.minbft(4).peer(r(2)).gate.processed() == commit.value(), good);
        assert_eq!(world.condemned(4, 2).is_none(), good, "COMMIT({first})");
    }
}

#[test]
fn a_correct_primary_goes_on_after_s() {
    covers!("MINBFT-V15");
    let mut world = World::all(3, SMALL);
    for number in 1..=6 {
        let frame = world.frame(1, number, "op");
        world.request_all(&frame);
    }
    world.crash(0);
    let frame = world.frame(1, 7, "last");
    world.request_all(&frame);
    world.pass(2_000_000);
    let Prepare { view, seq, .. } = world.sent_by(1, Kind::Prepare)[0].prepare().expect("PREPARE").clone();
    assert_eq!((view, seq), (View(1), Seq(7)));
}

// MINBFT-V16 (guard) "A COMMIT(NEW-VIEW) counts for the NEW-VIEW that this replica accepted; one for
// another proves its sender faulty."
#[test]
fn an_acceptance_of_another_new_view_condemns() {
    covers!("MINBFT-V16");
    for good in [true, false] {
        let (mut world, new_view, _) = five_with_a_new_view();
        all_said(&mut world, 1, 4);
        let digest = if good { new_view.digest } else { Digest([7; 32]) };
        let accept = world.certify(2, Body::AcceptNewView(AcceptNewView { view: View(1), new_view: digest }));
        all_said(&mut world, 2, 4);
        assert_eq!(world.condemned(4, 2).is_none(), good);
        assert_eq!(world.minbft(4).started.accepted.contains(r(2)), good);
        assert_eq!(world.executed(4), u64::from(good));
        assert_eq!(world.minbft(4).peer(r(2)).gate.processed() == accept.value(), good);
    }
}
