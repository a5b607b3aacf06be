//! MINBFT-E12: who has a state from others vouches for it in a view that says nothing of when it came about, and says so.

use super::harness::{Fate, Kind, SMALL, World, covers, r};
use super::paper_epochs::{admit, after_admission, order};
use super::replaced::{learns, step};
use crate::MinBft;
use crate::evidence::{check_stable, evidence};
use crate::message::{Body, Certified, Checkpoint, Message, StableProof};
use crate::place::Place;
use std::sync::Arc;
use troth_core::{Agreement as _, Effect, Reached};
use troth_types::{Digest, Seq, View};

const STATE: Digest = Digest([7; 32]);

/// Replica 4 of five, which has executed that replica 3 was admitted in batch 1, or knows of no admission.
fn knowing(world: &World, of_admission: bool) -> MinBft {
    let mut minbft = world.minbft(4).clone();
    if of_admission {
        learns(world, &mut minbft, after_admission(world, 3, 1));
    }
    minbft
}

/// The CHECKPOINTs that were asked for.
fn vouched(effects: &[Effect<MinBft>]) -> Vec<Checkpoint> {
    let of = |effect: &Effect<MinBft>| match effect {
        Effect::Certify { body: Body::Checkpoint(checkpoint), .. } => Some(checkpoint.clone()),
        _ => None,
    };
    effects.iter().filter_map(of).collect()
}

fn installs(world: &World, minbft: &mut MinBft, seq: u64) -> Vec<Checkpoint> {
    let reached = Reached { seq: Seq(seq), ..Reached::default() };
    vouched(&step(world, minbft, |minbft, cx| minbft.installed(cx, reached, STATE, &|_, _| false)))
}

/// What a replica in a later view repeats there.
fn repeats(world: &World, minbft: &mut MinBft) -> Vec<Checkpoint> {
    minbft.view = View(1);
    minbft.requested = Place::of_start(View(1));
    vouched(&step(world, minbft, MinBft::try_checkpoint))
}

/// A CHECKPOINT that names replica 3 as readmitted.
fn vote(seq: u64, given: bool) -> Checkpoint {
    Checkpoint { seq: Seq(seq), digest: STATE, epochs: vec![(r(3), 2)], given }
}

/// Such CHECKPOINTs, of these replicas.
fn votes(world: &mut World, by: &[u16], seq: u64, given: bool) -> Vec<Arc<Certified>> {
    by.iter().map(|by| world.certify(*by, Body::Checkpoint(vote(seq, given)))).collect()
}

// MINBFT-E12 (guard) "Who has the state of a batch from others, and names replaced components there, marks its CHECKPOINT …"
#[test]
fn who_has_a_state_from_others_says_so_where_components_were_replaced() {
    covers!("MINBFT-E12");
    let world = World::with(5, SMALL, &[4]);
    for of_admission in [true, false] {
        let mut minbft = knowing(&world, of_admission);
        let said = installs(&world, &mut minbft, 4);
        assert_eq!(
            said.iter().map(|vote| (vote.seq, vote.given)).collect::<Vec<_>>(),
            [(Seq(4), of_admission)]
        );
        // What it executes behind that is its own.
        let said =
            vouched(&step(&world, &mut minbft, |minbft, cx| minbft.checkpoint_taken(cx, Seq(8), STATE)));
        assert_eq!(said.iter().map(|vote| (vote.seq, vote.given)).collect::<Vec<_>>(), [(Seq(8), false)]);
    }
}

// MINBFT-E12: a checkpoint that is taken of a state that was given makes it nobody's own.
#[test]
fn a_state_from_others_stays_one_where_it_is_hashed_again() {
    covers!("MINBFT-E12");
    let world = World::with(5, SMALL, &[4]);
    let mut minbft = knowing(&world, true);
    minbft.phase = crate::state::Phase::Changing;
    assert_eq!(installs(&world, &mut minbft, 4), []);
    step(&world, &mut minbft, |minbft, cx| minbft.checkpoint_taken(cx, Seq(4), STATE));
    minbft.phase = crate::state::Phase::Active;
    assert_eq!(vouched(&step(&world, &mut minbft, MinBft::try_checkpoint)), [vote(4, true)]);
}

// MINBFT-E12 "… also where it repeats it"
#[test]
fn what_was_said_of_a_given_state_is_repeated_in_later_views_and_after_a_restart() {
    covers!("MINBFT-E12");
    let mut world = World::with(5, SMALL, &[4]);
    for given in [true, false] {
        let mut minbft = knowing(&world, true);
        minbft.own_checkpoint = vote(4, given);
        assert_eq!(repeats(&world, &mut minbft), [vote(4, given)]);
        let own = votes(&mut World::with(5, SMALL, &[]), &[4], 4, given);
        let own = own.into_iter().map(Message::Certified).collect();
        let mut minbft = MinBft::new(r(4), world.group, world.config);
        learns(&world, &mut minbft, after_admission(&world, 3, 1));
        step(&world, &mut minbft, |minbft, cx| {
            minbft.recover(
                cx,
                own,
                Vec::new(),
                (Seq(4), STATE),
                Reached { seq: Seq(4), ..Reached::default() },
            );
        });
        assert_eq!(repeats(&world, &mut minbft), [vote(4, given)]);
    }
    // Nothing tells where a state came from that was not vouched for before the crash.
    let mut minbft = MinBft::new(r(4), world.group, world.config);
    learns(&world, &mut minbft, after_admission(&world, 3, 1));
    let said = step(&world, &mut minbft, |minbft, cx| {
        minbft.recover(
            cx,
            Vec::new(),
            Vec::new(),
            (Seq(4), STATE),
            Reached { seq: Seq(4), ..Reached::default() },
        );
        minbft.try_checkpoint(cx);
    });
    assert_eq!(vouched(&said), [vote(4, true)]);
    world.open();
}

// MINBFT-E12 "A marked vote goes with marked ones alone, and is as of a view above all for E3."
#[test]
fn no_readmitted_replica_begins_on_states_that_were_given() {
    covers!("MINBFT-E12");
    for given in [false, true] {
        let mut world = World::with(5, SMALL, &[]);
        let proof = StableProof { votes: votes(&mut world, &[0, 1, 2], 12, given) };
        assert_eq!(check_stable(&world.group, &world.config, &proof), Ok((Seq(12), STATE)), "it is stable");
        let mixed = StableProof {
            votes: [votes(&mut world, &[0, 1], 12, given), votes(&mut world, &[2], 12, !given)].concat(),
        };
        assert!(check_stable(&world.group, &world.config, &mixed).is_err());
        world.new_component(3, 2);
        let configuration = after_admission(&world, 3, 1);
        let body = world.change_body(3, 900, proof);
        let begins = world.certify_change(3, body);
        let judged = evidence(&world.group, &configuration, &world.config, &begins);
        assert_eq!(judged.is_ok(), !given, "{judged:?}");
    }
}

// MINBFT-E12, E3: where both are known the votes of those who executed are kept.
#[test]
fn the_votes_of_those_who_executed_take_the_place_of_those_who_were_given_the_state() {
    covers!("MINBFT-E12");
    let mut world = World::with(5, SMALL, &[4]);
    let marked = votes(&mut world, &[0, 1, 2], 4, true);
    let mut plain = votes(&mut World::with(5, SMALL, &[]), &[0, 1, 2], 4, false);
    let mut minbft = world.minbft(4).clone();
    let stable = Arc::new(StableProof { votes: marked });
    step(&world, &mut minbft, |minbft, cx| minbft.adopt_stable(cx, &stable));
    assert_eq!((minbft.stable.0, minbft.stable_proof().view()), (Seq(4), View(u64::MAX)));
    plain.rotate_left(1);
    let executed = Arc::new(StableProof { votes: plain });
    step(&world, &mut minbft, |minbft, cx| minbft.adopt_stable(cx, &executed));
    assert_eq!(minbft.stable_proof(), &executed);
    step(&world, &mut minbft, |minbft, cx| minbft.adopt_stable(cx, &stable));
    assert_eq!(minbft.stable_proof(), &executed, "and stay");
}

// MINBFT-E12, E8: a readmission ends beside a replica that is behind, and has the state in question from others.
#[test]
fn a_readmission_ends_though_one_has_its_state_from_others() {
    covers!("MINBFT-E12");
    let mut world = World::with(5, SMALL, &[0, 1, 2, 3, 4]);
    order(&mut world, 1..=5);
    world.lose(4, 2);
    let change = world.operator_frame(1, &admit(4, 2));
    // 3 misses what is ordered, and is told of what is stable.
    world.links(|flight| match flight.to == r(3) && matches!(flight.kind(), Kind::Prepare | Kind::Commit) {
        true => Fate::Lose,
        false => Fate::Pass,
    });
    world.request_all(&change);
    world.pass(3_000_000);
    let settled = Seq(6 + SMALL.window);
    let said = world.sent_by(3, Kind::Checkpoint);
    let given = said.iter().filter_map(|message| match &message.body {
        Body::Checkpoint(checkpoint) => Some((checkpoint.seq, checkpoint.given)),
        _ => None,
    });
    assert!(given.clone().any(|(seq, given)| given && seq >= settled), "{:?}", given.collect::<Vec<_>>());
    assert!(world.minbft(4).status().votes, "{}", world.minbft(4).describe());
    assert!((0..4).all(|replica| world.accused_nobody(replica)));
    world.open();
    order(&mut world, 6..=9);
    world.pass(1_000_000);
    assert!((0..5).all(|replica| world.journal(replica).len() == 9));
}

// MINBFT-E12: two liars vouch beforehand, as of an early view, for what is executed in a later one, and who was cut off in that
// early view has the state from others. With it they are f+1, and i-new began in the next view.
#[test]
fn a_state_that_was_given_admits_nobody_into_the_view_of_who_has_it() {
    covers!("MINBFT-E12");
    for given in [true, false] {
        let mut world = World::with(5, SMALL, &[]);
        let beforehand = votes(&mut world, &[0, 1], 12, false);
        let behind = votes(&mut world, &[2], 12, given);
        world.new_component(3, 2);
        let mut minbft = MinBft::new(r(3), world.group, world.config).with_epoch(2);
        learns(&world, &mut minbft, after_admission(&world, 3, 1));
        minbft.view = View(1);
        for vote in beforehand.iter().chain(&behind) {
            step(&world, &mut minbft, |minbft, cx| minbft.accept(cx, Arc::clone(vote)));
        }
        minbft.due_view_change = Some((0..3).map(|by| world.wish(by, 1)).collect());
        assert_eq!((minbft.stable.0, minbft.may_change()), (Seq(if given { 0 } else { 12 }), !given));
    }
}
