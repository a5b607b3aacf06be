//! MINBFT-E3 and E8: what a readmitted replica begins on, where a liar vouches for it as of a view that nobody reaches.

use super::harness::{Fate, Kind, SMALL, World, covers, r};
use super::paper_epochs::{admit, order, proof_with};
use super::replaced::step;
use crate::MinBft;
use crate::message::{Body, Message, StableProof, Status};
use crate::place::Place;
use std::sync::Arc;
use troth_core::{Agreement as _, Effect, To};
use troth_types::{Digest, Seq, View};

/// A STATUS of a group of so many, of one that has executed what is stable and processed nothing.
fn status_of(n: usize, stable: Seq) -> Message {
    let processed = vec![0; n];
    Message::Status(Status { view: View(0), processed, stable, executed: stable, round: 7, wants: None })
}

/// A proof with one of its votes in the place of the liar's, which is of view 100.
fn with_a_far_vote(world: &mut World, liar: u16, good: &StableProof) -> Arc<StableProof> {
    let mut votes = good.votes.clone();
    let value = Place::of_checkpoint(View(100), good.target().0).expect("possible");
    votes[0] = world.certify_at(liar, value, good.votes[0].body.clone());
    Arc::new(StableProof { votes })
}

/// Replicas 0, 1, 2 and 4 of five, where 4 was lost and asks for nothing that reaches the others. Nobody but the liar 3 tells
/// it of checkpoints, and no vote for the one behind its admission reaches anybody yet.
fn readmitting(held: u64) -> World {
    let mut world = World::with(5, SMALL, &[0, 1, 2, 4]);
    order(&mut world, 1..=5);
    world.lose(4, 2);
    let change = world.operator_frame(1, &admit(4, 2));
    let of_checkpoints = [Kind::Checkpoint, Kind::Stable, Kind::ViewChange, Kind::NewView];
    world.links(move |flight| match flight.certified().map(|message| &message.body) {
        Some(Body::Checkpoint(checkpoint)) if checkpoint.seq == Seq(held) => Fate::Hold,
        _ if flight.to == r(4) && of_checkpoints.contains(&flight.kind()) && flight.from != r(3) => {
            Fate::Lose
        }
        _ => Fate::Pass,
    });
    world.request_all(&change);
    world.pass(1_000_000);
    world
}

// MINBFT-E3 "Votes for a number that is stable go on to be counted, and the f+1 of the lowest views are its proof."
#[test]
fn votes_of_a_stable_number_are_counted_until_none_is_of_a_far_view() {
    covers!("MINBFT-E3");
    let mut world = World::with(5, SMALL, &[4]);
    world.wishes(&[0, 1, 2], 4, 2);
    let vote = |world: &mut World, by: u16, view: u64| {
        let seq = Seq(SMALL.interval);
        let body = Body::Checkpoint(crate::Checkpoint {
            seq,
            digest: Digest([7; 32]),
            epochs: Vec::new(),
            given: false,
        });
        let value = Place::of_checkpoint(View(view), seq).expect("possible");
        let vote = world.certify_at(by, value, body);
        world.say(4, &vote);
    };
    for (by, view) in [(0, 1), (1, 0), (2, 0)] {
        vote(&mut world, by, view);
    }
    assert_eq!(world.stable(4), Seq(SMALL.interval));
    assert_eq!(world.minbft(4).stable_proof().view(), View(1));
    vote(&mut world, 3, 0);
    let proof = world.minbft(4).stable_proof();
    assert_eq!((proof.view(), proof.votes.len()), (View(0), 3), "1, 2 and 3 are f+1 without 0");
    // What is below is let go of.
    let votes = world.minbft(4).checkpoint_votes.clone();
    assert_eq!(votes.keys().collect::<Vec<_>>(), [&Seq(SMALL.interval)]);
    let later = proof_with(&mut world, &[0, 1, 2], 2 * SMALL.interval, &[]);
    world.inject(0, 4, Message::Stable(Arc::new(later)));
    assert!(world.minbft(4).checkpoint_votes.is_empty());
}

// MINBFT-E3: a liar that is faster than the last of the others has them all know a proof of a far view first.
#[test]
fn a_liar_that_is_first_to_vouch_keeps_no_readmitted_replica_out() {
    covers!("MINBFT-E3");
    covers!("MINBFT-E8");
    for restarted in [false, true] {
        came_back_beside_a_fast_liar(restarted);
    }
}

fn came_back_beside_a_fast_liar(restarted: bool) {
    let settled = 16;
    let mut world = readmitting(settled);
    assert!(world.stable(0) < Seq(settled) && world.executed(0) >= settled, "nobody heard f+1 votes");
    let votes = [0, 1, 2].map(|by| world.sent_by(by, Kind::Checkpoint).pop().expect("it vouches")).to_vec();
    let far = with_a_far_vote(&mut world, 3, &StableProof { votes });
    for to in [0, 1, 2, 4] {
        world.inject(3, to, Message::Stable(Arc::clone(&far)));
    }
    assert!((0..3).all(|replica| world.minbft(replica).stable_proof().view() == View(100)));
    for replica in (0..3).filter(|_| restarted) {
        world.node_mut(replica).disk.sync();
        world.crash(replica);
        world.restart(replica);
    }
    world.open();
    world.pass(500_000);
    assert!((0..3).all(|replica| world.minbft(replica).stable_proof().view() == View(0)), "{restarted}");
    world.pass(3_000_000);
    assert!(world.minbft(4).status().votes, "{}", world.minbft(4).describe());
    assert_eq!(world.minbft(0).view, View(1), "one view change, for its sake");
    assert!((0..3).all(|replica| world.accused_nobody(replica)));
}

// MINBFT-E3 "Who could not begin on what it knows says that it knows none …": it has the state meanwhile, and asks for no
// view in vain. E8: nor do others spend their one welcome on what could not be begun.
#[test]
fn a_readmitted_replica_asks_until_it_knows_a_checkpoint_to_begin_on() {
    covers!("MINBFT-E3");
    covers!("MINBFT-E8");
    let mut world = readmitting(u64::MAX);
    let good = world.minbft(0).stable_proof().clone();
    assert!(good.target().0 >= Seq(6 + SMALL.window), "the readmission is settled");
    let far = with_a_far_vote(&mut world, 3, &good);
    world.inject(3, 4, Message::Stable(Arc::clone(&far)));
    world.pass(1_000_000);
    assert_eq!((world.stable(4), world.minbft(4).told_stable()), (good.target().0, Seq(0)));
    assert_eq!(world.minbft(0).told_stable(), good.target().0, "who has begun says what it knows");
    world.open();
    world.pass(3_000_000);
    assert!(world.minbft(4).status().votes, "{}", world.minbft(4).describe());
    assert_eq!(world.minbft(0).view, View(1));
    assert_eq!(world.minbft(4).told_stable(), world.stable(4));
}

// MINBFT-E3: the one view change for its sake (E8) is not made while it could not begin in the next view.
#[test]
fn nobody_welcomes_who_could_not_begin_on_what_is_known() {
    covers!("MINBFT-E3");
    let settled = 16;
    let mut world = readmitting(settled);
    let votes = [0, 1, 2].map(|by| world.sent_by(by, Kind::Checkpoint).pop().expect("it vouches")).to_vec();
    let good = StableProof { votes };
    let far = with_a_far_vote(&mut world, 3, &good);
    world.inject(3, 0, Message::Stable(far));
    assert_eq!(world.minbft(0).stable_proof().view(), View(100));
    world.wishes(&[4], 0, 1);
    assert_eq!(world.wanted(0), 0, "it waits until it knows better");
    world.inject(1, 0, Message::Stable(Arc::new(good)));
    assert_eq!(world.minbft(0).stable_proof().view(), View(0));
    world.wishes(&[4], 0, 1);
    assert_eq!(world.wanted(0), 1);
}

// MINBFT-E3, E8: f silent replicas leave f others, whose word is not that of f+1.
#[test]
fn a_readmitted_replica_takes_the_state_though_only_f_others_speak() {
    covers!("MINBFT-E8");
    let mut world = World::with(3, SMALL, &[0, 1]);
    world.wishes(&[0, 1], 0, 1);
    world.wishes(&[0, 1], 1, 1);
    world.pass(1_000_000);
    assert_eq!(world.minbft(0).view, View(1));
    order(&mut world, 1..=5);
    let change = world.operator_frame(1, &admit(2, 2));
    world.request_all(&change);
    world.pass(1_000_000);
    assert!(world.stable(0) >= Seq(6 + SMALL.window) && world.minbft(0).stable_proof().view() == View(1));
    world.crash(1);
    world.lose(2, 2);
    world.pass(3_000_000);
    assert_eq!(world.stable(2), world.stable(0), "{}", world.minbft(2).describe());
    assert!(world.wanted(2) > 0, "it asks, so that f+1 leave the view together");
}

// MINBFT-E3 "… keeps the one whose votes are of the lowest views": it missed the view change for its sake, and the others have
// vouched for a checkpoint in the view since.
#[test]
fn a_readmitted_replica_that_missed_its_view_change_begins_in_that_view() {
    covers!("MINBFT-E3");
    for restarted in [false, true] {
        let mut world = World::with(3, SMALL, &[0, 1, 2]);
        order(&mut world, 1..=5);
        world.lose(2, 2);
        let change = world.operator_frame(1, &admit(2, 2));
        let missed = [Kind::Request, Kind::ViewChange, Kind::NewView, Kind::Checkpoint];
        world.links(move |flight| match flight.to == r(2) && missed.contains(&flight.kind()) {
            true => Fate::Lose,
            false => Fate::Pass,
        });
        world.request_all(&change);
        world.pass(1_000_000);
        assert_eq!((world.minbft(0).view, world.minbft(0).active()), (View(1), true), "they welcomed it");
        let first = world.stable(2);
        assert!(first >= Seq(6 + SMALL.window));
        order(&mut world, 6..=30);
        world.pass(1_000_000);
        assert_eq!(world.minbft(2).stable_proof().view(), View(1), "{}", world.minbft(2).describe());
        assert!(!world.minbft(2).status().votes && world.stable(2) > first);
        if restarted {
            world.node_mut(2).disk.sync();
            world.crash(2);
            world.restart(2);
        }
        world.open();
        world.pass(3_000_000);
        assert!(world.minbft(2).status().votes, "{restarted}: {}", world.minbft(2).describe());
        assert_eq!(world.minbft(0).view, View(1), "in the view that began for its sake");
        assert!((0..3).all(|replica| world.accused_nobody(replica)));
    }
}

// MINBFT-E8 "… where it has not begun 64 status rounds later, once more, and then after pauses that double."
#[test]
fn who_does_not_begin_has_views_changed_for_its_sake_ever_more_seldom() {
    covers!("MINBFT-E8");
    let world = readmitting(u64::MAX);
    let signed = world.wish(4, 1);
    let mut minbft = world.minbft(0).clone();
    let begins = minbft.round;
    let mut follows = |rounds: u64| {
        (minbft.round, minbft.wanted_view) = (begins + rounds, View(0));
        step(&world, &mut minbft, |minbft, cx| minbft.welcome(cx, &signed));
        minbft.wanted_view == View(1)
    };
    let rounds = [0, 1, 63, 64, 65, 64 + 127, 64 + 128, 64 + 129, 192 + 255, 192 + 256];
    let followed: Vec<u64> = rounds.into_iter().filter(|rounds| follows(*rounds)).collect();
    assert_eq!(followed, [0, 64, 192, 448]);
}

// MINBFT-R10 "… nor a machine that was replaced, and goes on with the same keys, keep the one in its place from being answered."
#[test]
fn who_lacks_the_stable_checkpoint_is_answered_beside_who_does_not() {
    covers!("MINBFT-R10");
    let mut world = readmitting(u64::MAX);
    world.open();
    let stable = world.stable(0);
    let status = |stable: Seq| status_of(5, stable);
    world.links(|flight| if flight.to == r(4) { Fate::Lose } else { Fate::Pass });
    world.now += SMALL.status_interval;
    world.inject(4, 0, status(stable));
    let before = world.sent.len();
    world.inject(4, 0, status(Seq(0)));
    let shown =
        world.sent[before..].iter().filter(|flight| flight.kind() == Kind::Stable && flight.to == r(4));
    assert_eq!(shown.count(), 1);
    let before = world.sent.len();
    world.inject(4, 0, status(Seq(0)));
    assert_eq!(world.sent.len(), before, "once");
}

// MINBFT-V21 "Nor does a replica count one in its own name that it has not made."
#[test]
fn what_a_replaced_machine_asks_for_is_not_what_the_one_in_its_place_does() {
    covers!("MINBFT-V21");
    let mut world = World::with(3, SMALL, &[2]);
    let frame = world.frame(1, 1, "op");
    world.request(&[2], &frame);
    world.pass(4 * SMALL.request_timeout);
    assert_eq!(world.wanted(2), 1, "nobody orders it");
    world.inject(1, 2, Message::RequestViewChange(world.wish(2, 900)));
    let status = status_of(3, Seq(0));
    let before = world.sent.len();
    world.inject(1, 2, status);
    let shown = world.sent[before..].iter().filter_map(|flight| match &flight.message {
        troth_core::PeerMessage::Protocol(Message::RequestViewChange(request)) if flight.to == r(1) => {
            Some((request.from, request.request.to))
        }
        _ => None,
    });
    assert_eq!(shown.collect::<Vec<_>>(), [(r(2), View(1))], "what it has asked for itself");
}

// MINBFT-R3: who left its view because others asked, and did not ask itself, says why.
#[test]
fn who_is_in_a_later_view_shows_what_it_left_the_earlier_one_for() {
    covers!("MINBFT-R3");
    let mut world = World::with(3, SMALL, &[0]);
    world.wishes(&[1, 2], 0, 1);
    assert_eq!(world.minbft(0).view, View(1));
    world.now += SMALL.status_interval;
    let before = world.sent.len();
    let status = status_of(3, Seq(0));
    world.inject(2, 0, status);
    let shown =
        world.sent[before..].iter().filter(|flight| flight.kind() == Kind::Request && flight.to == r(2));
    assert_eq!(shown.count(), 1, "that of 1");
}

// MINBFT-R3: and who was started again since, and has let go of its VIEW-CHANGE, by what the view began with.
#[test]
fn who_has_let_go_of_its_view_change_shows_what_its_view_began_with() {
    covers!("MINBFT-R3");
    let mut world = World::with(3, SMALL, &[0]);
    world.wishes(&[1, 2], 0, 1);
    let changes = [world.view_change(1, 1), world.view_change(2, 1)];
    let start = world.new_view(1, &[&changes[0], &changes[1]], &[]);
    for by in [1, 2] {
        world.said(by).iter().for_each(|message| world.say(0, message));
    }
    world.now += SMALL.status_interval;
    let mut minbft = world.minbft(0).clone();
    assert!(
        minbft.active() && minbft.known_views.get(View(1)).is_some_and(|known| known.digest == start.digest)
    );
    minbft.changes.clear();
    let Message::Status(status) = status_of(3, Seq(0)) else { panic!("made just now") };
    let shown = step(&world, &mut minbft, |minbft, cx| minbft.on_status(cx, r(2), &status));
    let of = |effect: &Effect<MinBft>| match effect {
        Effect::Send { to: To::One(to), message: Message::RequestViewChange(request) } if *to == r(2) => {
            Some(request.from)
        }
        _ => None,
    };
    // Two are f+1 of three, and 2 has its own.
    let from: Vec<_> = shown.iter().filter_map(of).collect();
    assert!(!from.is_empty() && !from.contains(&r(2)), "{from:?}");
}
