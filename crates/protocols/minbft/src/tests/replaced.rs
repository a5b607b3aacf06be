//! Components that are replaced: what reaches a replica, or comes out of its log, before it has executed the
//! change or after.

use super::harness::{Kind, SMALL, World, covers, r};
use super::paper_epochs::{admit, after_admission, order, proof_with, with_a_readmitted_replica};
use crate::MinBft;
use crate::checkpoint::DueCheckpoint;
use crate::message::{AcceptNewView, Body, Certified, Message, Record};
use crate::place::Place;
use crate::state::Phase;
use crate::view_change::Judgement;
use std::sync::Arc;
use troth_core::{Agreement as _, Cx, Effect, Reached};
use troth_trusted::CounterValue;
use troth_types::{Configuration, Digest, Seq, View};

/// One step of a replica's agreement alone; what it asks for is returned and not carried out.
pub(super) fn step(
    world: &World,
    minbft: &mut MinBft,
    event: impl FnOnce(&mut MinBft, &mut Cx<'_, MinBft>),
) -> Vec<Effect<MinBft>> {
    let (env, me) = (world.env(minbft.me), minbft.me);
    let mut effects = Vec::new();
    event(minbft, &mut Cx::new(env.now, env.wall, me, &world.group, &mut effects));
    effects
}

pub(super) fn learns(world: &World, minbft: &mut MinBft, configuration: Configuration) {
    let configuration = Arc::new(configuration);
    step(world, minbft, |minbft, cx| minbft.configured(cx, &configuration));
}

// MINBFT-E3: a component that this replica does not know yet may not be what its admission will say.
#[test]
fn a_new_view_on_a_component_that_is_not_known_yet_is_not_taken() {
    let mut world = World::with(3, SMALL, &[2]);
    world.wishes(&[0, 1], 2, 1);
    let own = world.view_change(1, 1);
    world.new_component(0, 2);
    // It shows no stable checkpoint beyond its admission.
    let unknown = world.view_change(0, 1);
    let new_view = world.new_view(1, &[&own, &unknown], &[]);
    // The keys come from a file, ahead of the state.
    let configuration = Arc::new(after_admission(&world, 0, 1));
    world.learn(&configuration);
    for message in [&own, &unknown, &new_view] {
        world.say(2, message);
    }
    assert!(!world.works_in(2, 1));
    assert!(world.minbft(2).known_views.get(View(1)).is_none());
    assert!(!world.minbft(2).changes.contains_key(&r(0)));
    assert!(world.accused_nobody(2), "it cannot judge that yet");
}

#[test]
fn evidence_that_rests_on_a_component_that_is_not_known_yet_is_not_taken() {
    let mut world = World::with(5, SMALL, &[2]);
    let changes = [1, 3, 4].map(|by| world.view_change(by, 1));
    world.new_component(0, 2);
    let unknown = world.view_change(0, 1);
    let new_view = world.new_view(1, &[&changes[0], &changes[1], &unknown], &[]);
    world.accept(4, &new_view);
    world.wishes(&[1, 3, 4], 2, 2);
    for by in [3, 4] {
        world.view_change(by, 2);
        world.said(by).iter().for_each(|message| world.say(2, message));
    }
    assert_eq!(world.minbft(2).known_views.wanted(0), Some(View(1)), "replica 4 committed there");
    let configuration = Arc::new(after_admission(&world, 0, 1));
    world.learn(&configuration);
    world.inject(4, 2, Message::Evidence(new_view));
    assert!(world.minbft(2).known_views.get(View(1)).is_none());
    assert!(world.accused_nobody(2));
}

// MINBFT-V13, with E4: a primary's NEW-VIEW is of the component whose VIEW-CHANGE it shows.
#[test]
fn a_new_view_by_another_component_than_its_primarys_view_change_is_invalid() {
    covers!("MINBFT-V13");
    let mut world = World::with(5, SMALL, &[4]);
    let changes = [1, 0, 2].map(|by| world.view_change(by, 1));
    let shown: Vec<&Arc<Certified>> = changes.iter().collect();
    let body = world.new_view_body(1, &shown, &[]);
    let start = Place::of_start(View(1));
    let same = world.certify_at(1, start, Body::NewView(body.clone()));
    world.new_component(1, 2);
    let other = world.certify_at(1, start, Body::NewView(body.clone()));
    let judge = |message: &Certified| world.minbft(4).judge_new_view(message, &body);
    assert!(matches!(judge(&same), Judgement::Valid { .. }));
    assert!(matches!(
        judge(&other),
        Judgement::Invalid("a NEW-VIEW by another component than its primary's VIEW-CHANGE")
    ));
}

/// Replica 4 of five as it moves to view 1 with the start at hand as evidence, and the acceptances of 2 and 3.
fn before_a_known_start(world: &mut World) -> MinBft {
    let changes = [1, 0, 2, 3].map(|by| world.view_change(by, 1));
    let new_view = world.new_view(1, &[&changes[0], &changes[1], &changes[2]], &[]);
    let mut minbft = world.minbft(4).clone();
    minbft.view = View(1);
    minbft.phase = Phase::Changing;
    minbft.known_views.hold(View(1), new_view.clone(), None);
    for by in [2, 3] {
        assert!(minbft.known_views.accept(&world.accept(by, &new_view)));
    }
    minbft
}

// MINBFT-E2 "… no acceptance of a start that reaches above n_r": those that come with a start as evidence, and
// the NEW-VIEW itself, which is its primary's.
#[test]
fn an_acceptance_of_a_replaced_component_does_not_count_where_it_comes_as_evidence() {
    for (replaced, counted) in [(3, [1, 2]), (1, [2, 3]), (0, [1, 2])] {
        let mut world = World::with(5, SMALL, &[4]);
        let mut minbft = before_a_known_start(&mut world);
        let configuration = after_admission(&world, replaced, 1);
        learns(&world, &mut minbft, configuration);
        // It passed over the start, at a CHECKPOINT behind it.
        minbft.peer_mut(r(1)).gate.start_at(Place::of_start(View(1)));
        step(&world, &mut minbft, MinBft::try_enter_known);
        assert!(minbft.active());
        assert!(!minbft.started.accepted.contains(r(replaced)), "{replaced}");
        assert!(counted.iter().all(|by| minbft.started.accepted.contains(r(*by))), "{replaced}");
    }
}

// MINBFT-E10 "Nothing that i-new says counts before its first message is here and judged": nor an acceptance that comes as
// evidence, which could be that message.
#[test]
fn an_acceptance_that_comes_as_evidence_counts_once_it_is_known_how_its_component_began() {
    covers!("MINBFT-E10");
    for known in [false, true] {
        let mut world = World::with(5, SMALL, &[4]);
        let changes = [1, 0, 2].map(|by| world.view_change(by, 1));
        let new_view = world.new_view(1, &[&changes[0], &changes[1], &changes[2]], &[]);
        world.new_component(3, 2);
        let first = world.view_change(3, 1);
        let accepts = [world.accept(2, &new_view), world.accept(3, &new_view)];
        let mut minbft = world.minbft(4).clone();
        let configuration = after_admission(&world, 3, 1);
        learns(&world, &mut minbft, configuration);
        (minbft.view, minbft.phase) = (View(1), Phase::Changing);
        minbft.known_views.hold(View(1), new_view, None);
        assert!(accepts.iter().all(|accept| minbft.known_views.accept(accept)));
        if known {
            minbft.note_first(&first);
        }
        minbft.peer_mut(r(1)).gate.start_at(Place::of_start(View(1)));
        step(&world, &mut minbft, MinBft::try_enter_known);
        assert!(minbft.active() && minbft.started.accepted.contains(r(2)));
        assert_eq!(minbft.started.accepted.contains(r(3)), known);
    }
}

// MINBFT-E2, R4: the same where the start comes out of the log, which may say less of the configuration than
// its own messages do.
#[test]
fn an_acceptance_of_a_replaced_component_does_not_count_where_it_comes_from_the_log() {
    // The epoch of the NEW-VIEW, and whether the configuration knows epoch 2.
    for (epoch, admitted, counts) in [(1, false, true), (1, true, false), (2, true, true), (2, false, true)] {
        let mut world = World::with(5, SMALL, &[]);
        world.new_component(1, epoch);
        let frames = world.frames_held(2, &[]);
        for (seq, frame) in [(1, &frames[0]), (2, &frames[1])] {
            world.prepare(0, seq, &[frame]);
        }
        let changes = [1, 0, 2].map(|by| world.view_change(by, 1));
        let new_view = world.new_view(1, &[&changes[0], &changes[1], &changes[2]], &[]);
        let own = [world.view_change(4, 1), world.accept(4, &new_view)].map(Message::Certified).to_vec();
        let mut minbft = MinBft::new(r(4), world.group, world.config).with_epoch(1);
        let configuration =
            if admitted { after_admission(&world, 1, 1) } else { (*world.configuration).clone() };
        learns(&world, &mut minbft, configuration);
        let records = vec![Record::NewView(new_view)];
        step(&world, &mut minbft, |minbft, cx| {
            minbft.recover(cx, own, records, (Seq(0), Digest::ZERO), Reached::default());
        });
        assert!(minbft.active() && minbft.started.accepted.contains(r(4)));
        assert_eq!(minbft.started.accepted.contains(r(1)), counts, "epoch {epoch}, known {admitted}");
        // Batch 1 is executed again, and the start reaches above it.
        let configuration = after_admission(&world, 1, 1);
        learns(&world, &mut minbft, configuration);
        assert_eq!(minbft.started.accepted.contains(r(1)), epoch == 2, "epoch {epoch}, known {admitted}");
    }
}

// MINBFT-E1, R6: what is executed again is waited for like anything else.
#[test]
fn a_replica_that_executes_a_change_again_does_not_run_ahead_of_it() {
    covers!("MINBFT-E1");
    let mut world = World::with(3, SMALL, &[2]);
    let change = world.operator_frame(1, &admit(1, 2));
    world.request(&[2], &change);
    let frames = world.frames_held(1, &[2]);
    for (seq, frame) in [(1, &change), (2, &frames[0])] {
        world.prepare(0, seq, &[frame]);
    }
    world.wishes(&[0, 1], 2, 1);
    let changes = [1, 0].map(|by| world.view_change(by, 1));
    world.new_view(1, &[&changes[0], &changes[1]], &[]);
    world.said(1).iter().for_each(|message| world.say(2, message));
    assert_eq!(world.executed(2), 1, "1 accepted the start, and is replaced by its first batch");
    world.node_mut(2).disk.sync();
    world.crash(2);
    world.restart(2);
    assert_eq!(world.executed(2), 1, "what follows is not executed by the acceptance of 1 this time either");
}

/// The state that a replica's log stands on.
fn log_begins(world: &World, replica: u16) -> Seq {
    world.node(replica).disk.snapshot.as_ref().map_or(Seq(0), troth_exec::Snapshot::seq)
}

// MINBFT-E2 "Where i-old is the primary the view is left", and where i-new is, it is not.
#[test]
fn a_replica_that_executes_an_admission_again_asks_for_no_view_change() {
    covers!("MINBFT-E2");
    let mut world = World::all(3, SMALL);
    world.node_mut(0).disk.segments = false;
    order(&mut world, 1..=5);
    world.lose(1, 2);
    let change = world.operator_frame(1, &admit(1, 2));
    world.request_all(&change);
    world.pass(3_000_000);
    assert!(world.works_in(0, 1), "replica 1 came back, and leads");
    assert!(log_begins(&world, 0) < Seq(6), "it executes the admission again");
    world.crash(0);
    world.sent.clear();
    world.restart(0);
    assert_eq!(world.wanted(0), 1);
    world.pass(1_000_000);
    assert!(world.works_in(0, 1) && world.works_in(2, 1));
    assert!(world.sent.iter().all(|flight| flight.kind() != Kind::Request));
    world.crash(2);
    order(&mut world, 6..=9);
    world.pass(1_000_000);
    assert!(world.works_in(0, 1), "the two of them order in it");
    assert_eq!(world.journal(0).len(), 9);
}

// MINBFT-E6 "What has certified was named: i-new goes on after a restart from a state before n_r."
#[test]
fn a_readmitted_replica_goes_on_though_its_state_is_older_than_its_admission() {
    covers!("MINBFT-E6");
    let mut world = World::with(5, SMALL, &[]);
    let frames = world.frames_held(2, &[]);
    for (seq, frame) in [(1, &frames[0]), (2, &frames[1])] {
        world.prepare(0, seq, &[frame]);
    }
    let changes = [1, 0, 2].map(|by| world.view_change(by, 1));
    let new_view = world.new_view(1, &[&changes[0], &changes[1], &changes[2]], &[]);
    world.new_component(4, 2);
    let own = [world.view_change(4, 1), world.accept(4, &new_view)].map(Message::Certified).to_vec();
    let mut minbft = MinBft::new(r(4), world.group, world.config).with_epoch(2);
    learns(&world, &mut minbft, (*world.configuration).clone());
    assert!(!minbft.active() && !minbft.may_certify(), "nobody named it, as far as it knows");
    let records = vec![Record::NewView(new_view)];
    step(&world, &mut minbft, |minbft, cx| {
        minbft.recover(cx, own, records, (Seq(0), Digest::ZERO), Reached::default());
    });
    let goes_on = |minbft: &MinBft| {
        let accepted = minbft.started.accepted.contains(r(4));
        accepted && minbft.active() && minbft.due_view_change.is_none() && minbft.status().votes
    };
    assert!(goes_on(&minbft), "what it certified shows that it was named");
    assert!(!minbft.is_settled(), "what its earlier component promised is not executed here");
    let due = DueCheckpoint { seq: Seq(1), digest: Digest([1; 32]), given: true };
    minbft.due_checkpoints.push_back(due);
    step(&world, &mut minbft, MinBft::try_checkpoint);
    assert_eq!(minbft.own_checkpoint.seq, Seq(0), "whether that is its to certify it cannot tell yet");
    let configuration = after_admission(&world, 4, 1);
    learns(&world, &mut minbft, configuration);
    step(&world, &mut minbft, MinBft::try_checkpoint);
    assert_eq!(minbft.own_checkpoint.seq, Seq(1));
    assert!(goes_on(&minbft), "its acceptance, which reaches above n_r, is not its earlier component's");
}

// MINBFT-E2, T6: a state that is put right may be of before an admission.
#[test]
fn a_configuration_of_before_an_admission_takes_nothing_from_the_new_component() {
    let world = World::with(5, SMALL, &[4]);
    let mut minbft = world.minbft(4).clone();
    let (before, after) = ((*world.configuration).clone(), after_admission(&world, 3, 1));
    learns(&world, &mut minbft, after);
    minbft.peer_mut(r(3)).welcomes = 1;
    learns(&world, &mut minbft, before);
    assert_eq!(minbft.peer(r(3)).welcomes, 1, "what is known of it stays");
}

/// Replica 4 of five, which executed the admission of a component of 3 in batch 1 and knows a stable checkpoint a window
/// behind it.
pub(super) fn settled_admission() -> (World, Arc<Certified>) {
    let mut world = World::with(5, SMALL, &[4]);
    let change = world.operator_frame(1, &admit(3, 2));
    world.request(&[4], &change);
    let prepare = world.prepare(0, 1, &[&change]);
    for by in [1, 2] {
        world.commit(by, &prepare);
        world.said(by).iter().for_each(|message| world.say(4, message));
    }
    world.say(4, &prepare);
    assert_eq!(world.executed(4), 1);
    let stable = proof_with(&mut world, &[0, 1, 2], 3 * SMALL.interval, &[(r(3), 2)]);
    assert!(stable.target().0 >= Seq(1 + SMALL.window));
    world.inject(0, 4, Message::Stable(Arc::new(stable)));
    world.new_component(3, 2);
    (world, prepare)
}

/// The VIEW-CHANGE by which the new component of 3 begins, for view 1.
fn first_of_the_new(world: &mut World) -> Arc<Certified> {
    let stable = (**world.minbft(4).stable_proof()).clone();
    let body = world.change_body(3, 1, stable);
    world.certify_change(3, body)
}

// MINBFT-E10: a component that did not begin as E3 has it hides that behind a gap.
#[test]
fn the_first_message_of_a_new_component_is_never_passed_over() {
    covers!("MINBFT-E10");
    let (mut world, prepare) = settled_admission();
    let junk = world.commit(3, &prepare);
    let vote = world.checkpoint(3, 1, Digest([1; 32]));
    world.say(4, &vote);
    let peer = world.minbft(4).peer(r(3));
    assert_eq!((peer.gate.processed(), peer.gate.held()), (CounterValue(0), 1));
    world.say(4, &junk);
    let why = world.condemned(4, 3);
    assert_eq!(why, Some("a readmitted replica that does not begin with a VIEW-CHANGE"));

    // One that began well is followed over a gap.
    let (mut world, _) = settled_admission();
    let first = first_of_the_new(&mut world);
    let hidden =
        world.certify(3, Body::AcceptNewView(AcceptNewView { view: View(1), new_view: Digest([6; 32]) }));
    let vote = world.checkpoint(3, 1, Digest([1; 32]));
    world.say(4, &vote);
    assert_eq!(world.minbft(4).peer(r(3)).gate.processed(), CounterValue(0));
    world.say(4, &first);
    assert_eq!(world.minbft(4).peer(r(3)).gate.processed(), hidden.value(), "that is passed over");
    assert!(world.accused_nobody(4));
}

// MINBFT-E10: what a VIEW-CHANGE shows of its sender does not tell how its component began.
#[test]
fn a_new_view_on_a_component_whose_beginning_is_not_known_waits_for_it() {
    covers!("MINBFT-E10");
    let (mut world, _) = settled_admission();
    let first = first_of_the_new(&mut world);
    let stable = (**world.minbft(4).stable_proof()).clone();
    let body = world.change_body(3, 6, stable);
    let later = world.certify_change(3, body);
    let changes = [1, 0].map(|by| world.view_change(by, 6));
    let judge = |world: &mut World, shown: &[&Arc<Certified>]| {
        let body = world.new_view_body(6, shown, &[]);
        let message = world.certify_at(1, Place::of_start(View(6)), Body::NewView(body.clone()));
        world.new_component(1, 1);
        world.minbft(4).judge_new_view(&message, &body)
    };
    let configuration = Arc::clone(&world.minbft(4).configuration);
    world.configuration = configuration;
    assert!(matches!(judge(&mut world, &[&changes[0], &changes[1], &later]), Judgement::Open));
    let (mut minbft, mut admitted) = (world.minbft(4).clone(), None);
    step(&world, &mut minbft, |minbft, cx| admitted = minbft.admissible(cx, &later));
    assert!(admitted.is_none(), "nor would it base one on that");
    world.say(4, &first);
    assert!(matches!(judge(&mut world, &[&changes[0], &changes[1], &later]), Judgement::Valid { .. }));
}

// MINBFT-E10: everybody keeps it and shows it, and knows it again from the log.
#[test]
fn how_a_component_began_is_known_to_those_who_come_later() {
    covers!("MINBFT-E10");
    let mut world = with_a_readmitted_replica();
    // Far enough that no log has it any more.
    order(&mut world, 6..=60);
    world.pass(1_000_000);
    let first = world.minbft(0).peer(r(2)).first.clone().expect("it was judged");
    for replica in 0..3 {
        let peer = world.minbft(replica).peer(r(2));
        assert!(peer.log.iter().all(|logged| logged.message.value() != first.value()), "{replica}");
        world.node_mut(replica).disk.sync();
        world.crash(replica);
        world.restart(replica);
        assert_eq!(world.minbft(replica).peer(r(2)).first.as_ref(), Some(&first), "{replica}");
        world.pass(1_000_000);
    }
    // One that begins from nothing is shown it, and goes on with replica 2 alone.
    world.lose(1, 2);
    let change = world.operator_frame(2, &admit(1, 2));
    world.request_all(&change);
    world.pass(4_000_000);
    assert!(world.minbft(1).status().votes, "{}", world.minbft(1).describe());
    assert_eq!(world.minbft(1).peer(r(2)).first.as_ref(), Some(&first));
    world.crash(0);
    order(&mut world, 61..=64);
    // As long as the view changes before have made them wait.
    world.pass(20_000_000);
    assert_eq!(world.journal(1).len(), 64, "{}, {}", world.minbft(1).describe(), world.minbft(2).describe());
    assert_eq!(world.journal(1), world.journal(2));
    assert!((1..3).all(|replica| world.accused_nobody(replica)));
}

// MINBFT-E10: what is executed again is not judged by the beginning of another component.
#[test]
fn a_beginning_is_of_the_component_that_the_configuration_names() {
    covers!("MINBFT-E10");
    let (mut world, _) = settled_admission();
    let first = first_of_the_new(&mut world);
    world.say(4, &first);
    let mut minbft = world.minbft(4).clone();
    assert!(minbft.has_judged_the_first_of(r(3)));
    let mut later = (*minbft.configuration).clone();
    later.apply(&admit(3, 3), Seq(2), 0, world.group.f()).expect("allowed");
    learns(&world, &mut minbft, later);
    assert!(!minbft.has_judged_the_first_of(r(3)), "of a third component nobody knows how it began");
    world.new_component(3, 3);
    let third = first_of_the_new(&mut world);
    minbft.note_first(&third);
    assert!(minbft.has_judged_the_first_of(r(3)));
    minbft.note_first(&first);
    assert_eq!(
        minbft.peer(r(3)).first.as_ref(),
        Some(&third),
        "what is heard of the second again changes nothing"
    );
    // The state is put right by one of before the first admission, and both are executed again.
    let begun = World::with(5, SMALL, &[]);
    learns(&world, &mut minbft, (*begun.configuration).clone());
    learns(&world, &mut minbft, after_admission(&begun, 3, 1));
    assert!(!minbft.has_judged_the_first_of(r(3)), "the second is another one");
    assert_eq!(minbft.peer(r(3)).first.as_ref(), Some(&third), "and the third is known when it comes");
}

// MINBFT-E10, R4: a replica knows from its own messages how its component began.
#[test]
fn a_readmitted_replica_knows_its_own_beginning_though_it_never_came_back() {
    let (mut world, _) = settled_admission();
    let first = first_of_the_new(&mut world);
    let configuration = (*world.minbft(4).configuration).clone();
    let mut minbft = MinBft::new(r(3), world.group, world.config).with_epoch(2);
    learns(&world, &mut minbft, configuration);
    let own = vec![Message::Certified(Arc::clone(&first))];
    step(&world, &mut minbft, |minbft, cx| {
        minbft.recover(cx, own, Vec::new(), (Seq(0), Digest::ZERO), Reached::default());
    });
    let (_, records) = minbft.retained();
    assert!(records.contains(&Record::First(first)));
}
