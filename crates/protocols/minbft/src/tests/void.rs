//! MINBFT-E2 beyond the present view: what a replaced component certified shows no start of an earlier view and no base of the
//! next one. And MINBFT-V14: a base that is not known to be stable is not begun on.

use super::harness::{SMALL, World, covers, r};
use super::paper_epochs::proof_with;
use super::replaced::{learns, settled_admission, step};
use crate::checkpoint::DueCheckpoint;
use crate::message::{Body, Message, StableProof};
use crate::place::Place;
use crate::state::Phase;
use crate::view_change::Judgement;
use std::sync::Arc;
use troth_types::{Seq, View};

/// A proof that rests on the component that replica 3 of five has no more, beside 0 and 1.
fn forged(world: &mut World, seq: u64) -> StableProof {
    let mut scratch = World::with(5, SMALL, &[]);
    let forged = proof_with(&mut scratch, &[0, 1, 3], seq, &[]);
    assert!(forged.votes.iter().all(|vote| world.authentic(&Message::Certified(vote.clone())).is_ok()));
    forged
}

// MINBFT-E2: nor is a checkpoint that rests on it the base of a view.
#[test]
fn no_view_begins_from_a_checkpoint_that_a_replaced_component_vouches_for() {
    covers!("MINBFT-E2");
    let (mut world, _) = settled_admission();
    world.configuration = Arc::clone(&world.minbft(4).configuration);
    let forged = forged(&mut world, 10 * SMALL.interval);
    let changes = [1, 2].map(|by| world.view_change(by, 1));
    let body = world.change_body(0, 1, forged);
    let lie = world.certify_change(0, body);
    let body = world.new_view_body(1, &[&changes[0], &changes[1], &lie], &[]);
    assert_eq!(body.base.0, Seq(10 * SMALL.interval));
    let message = world.certify(1, Body::NewView(body.clone()));
    assert!(matches!(world.minbft(4).judge_new_view(&message, &body), Judgement::Open));
    let (mut minbft, mut admitted) = (world.minbft(4).clone(), None);
    step(&world, &mut minbft, |minbft, cx| admitted = minbft.admissible(cx, &lie));
    assert!(admitted.is_none(), "nor would it base one on that");
    // It does not prove its sender faulty: who has not executed the admission believes it.
    world.wishes(&[0, 1, 2], 4, 1);
    for by in [0, 1, 2] {
        world.said(by).iter().for_each(|message| world.say(4, message));
    }
    assert!(!world.works_in(4, 1) && world.accused_nobody(4));
    assert_eq!(world.stable(4), Seq(3 * SMALL.interval));
}

// MINBFT-V14 "… and knows its base to be stable": a start that others accepted may have one that nobody shows.
#[test]
fn a_view_is_not_entered_before_its_base_is_known_to_be_stable() {
    covers!("MINBFT-V14");
    for as_evidence in [false, true] {
        let (mut world, _) = settled_admission();
        world.configuration = Arc::clone(&world.minbft(4).configuration);
        let base = 4 * SMALL.interval;
        let forged = forged(&mut world, base);
        let changes = [1, 2].map(|by| world.view_change(by, 1));
        let body = world.change_body(0, 1, forged);
        let lie = world.certify_change(0, body);
        let start = world.new_view(1, &[&changes[0], &changes[1], &lie], &[]);
        let mut minbft = world.minbft(4).clone();
        (minbft.view, minbft.phase) = (View(1), Phase::Changing);
        minbft.known_views.hold(View(1), start.clone(), None);
        if as_evidence {
            minbft.peer_mut(r(1)).gate.start_at(Place::of_start(View(1)));
        }
        let enters = |minbft: &mut crate::MinBft| {
            step(&world, minbft, |minbft, cx| match as_evidence {
                true => minbft.try_enter_known(cx),
                false => drop(minbft.on_new_view(cx, &start, start.new_view().expect("a NEW-VIEW"))),
            });
            minbft.active()
        };
        assert!(!enters(&mut minbft), "{as_evidence}");
        let mut scratch = World::with(5, SMALL, &[]);
        let sound = Arc::new(proof_with(&mut scratch, &[0, 1, 2], base, &[(r(3), 2)]));
        step(&world, &mut minbft, |minbft, cx| minbft.adopt_stable(cx, &sound));
        assert!(enters(&mut minbft), "{as_evidence}");
    }
}

// MINBFT-T3: of checkpoints that were reached by transfer while nothing may be certified the last is certified.
#[test]
fn checkpoints_reached_by_transfer_do_not_pile_up() {
    covers!("MINBFT-T3");
    let world = World::with(5, SMALL, &[4]);
    let mut minbft = world.minbft(4).clone();
    minbft.phase = Phase::Changing;
    for seq in (1..=8).map(|number| Seq(number * SMALL.interval)) {
        let reached = troth_core::Reached { seq, ..troth_core::Reached::default() };
        let digest = troth_types::Digest([seq.0 as u8; 32]);
        step(&world, &mut minbft, |minbft, cx| minbft.installed(cx, reached, digest, &|_, _| false));
        assert_eq!(minbft.due_checkpoints, [DueCheckpoint { seq, digest, given: true }]);
    }
    learns(&world, &mut minbft, (*world.configuration).clone());
    assert_eq!(minbft.due_checkpoints.len(), 1);
}
