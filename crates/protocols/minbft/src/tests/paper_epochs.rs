//! MINBFT-E1 to E9: components that are replaced.

use super::harness::{Kind, SMALL, World, covers, r};
use crate::epochs::{agreeing, consistent};
use crate::evidence::{check_stable, evidence};
use crate::message::{Body, Certified, Checkpoint, Message, NewView, StableProof};
use crate::view_change::Judgement;
use std::collections::BTreeMap;
use std::sync::Arc;
use troth_core::Agreement as _;
use troth_trusted::CounterValue;
use troth_types::{Change, ComponentKey, Configuration, Digest, ReplicaId, Seq, View};

pub(super) fn admit(replica: u16, epoch: u64) -> Change {
    Change::Admit { replica: r(replica), epoch, component: ComponentKey::Group, host: None }
}

/// The world's configuration after replica `who` was admitted with epoch 2 in batch `at`.
pub(super) fn after_admission(world: &World, who: u16, at: u64) -> Configuration {
    let mut configuration = (*world.configuration).clone();
    configuration.apply(&admit(who, 2), Seq(at), 0, world.group.f()).expect("allowed");
    configuration
}

/// f+1 CHECKPOINTs that name the epochs of replaced components.
pub(super) fn proof_with(
    world: &mut World,
    by: &[u16],
    seq: u64,
    epochs: &[(ReplicaId, u64)],
) -> StableProof {
    let body = Checkpoint { seq: Seq(seq), digest: Digest([7; 32]), epochs: epochs.to_vec(), given: false };
    StableProof { votes: by.iter().map(|by| world.certify(*by, Body::Checkpoint(body.clone()))).collect() }
}

// MINBFT-E1 (guard) "After a batch with an operator's request nothing is executed before its outcome is
// known." MINBFT-E2 (guard) "… no acceptance of a start that reaches above n_r".
#[test]
fn a_start_is_executed_no_further_than_the_replaced_components_acceptance_reaches() {
    covers!("MINBFT-E1");
    covers!("MINBFT-E2");
    let mut world = World::with(5, SMALL, &[4]);
    let change = world.operator_frame(1, &admit(3, 2));
    world.request(&[4], &change);
    let frames = world.frames_held(1, &[4]);
    for (seq, frame) in [(1, &change), (2, &frames[0])] {
        let prepare = world.prepare(0, seq, &[frame]);
        world.commit(1, &prepare);
    }
    world.wishes(&[0, 1, 2], 4, 1);
    let changes: Vec<_> = [0, 1, 2, 3].map(|by| world.view_change(by, 1)).to_vec();
    let new_view = world.new_view(1, &[&changes[1], &changes[0], &changes[2]], &[]);
    assert_eq!(new_view.new_view().expect("NEW-VIEW").chosen.len(), 2);
    for by in [1, 2] {
        world.said(by).iter().for_each(|message| world.say(4, message));
    }
    let accept = world.accept(3, &new_view);
    for message in [&changes[3], &accept] {
        world.say(4, message);
    }
    assert_eq!(world.executed(4), 1, "n_r, which 1, 3 and 4 accepted; what follows, 1 and 4 alone");
    let accept = world.accept(2, &new_view);
    world.say(4, &accept);
    assert_eq!(world.journal(4), ["op1"]);
}

// MINBFT-E2 "… no CHECKPOINT", whatever epochs it names.
#[test]
fn a_proof_that_rests_on_a_replaced_component_is_none() {
    covers!("MINBFT-E2");
    let mut world = World::with(5, SMALL, &[4]);
    let change = world.operator_frame(1, &admit(3, 2));
    world.request(&[4], &change);
    let one = world.prepare(0, 1, &[&change]);
    for by in [0, 1, 2] {
        if by > 0 {
            let commit = world.commit(by, &one);
            world.say(4, &commit);
        }
    }
    world.say(4, &one);
    assert_eq!(world.executed(4), 1);
    // Two faulty ones and the component that 3 has no more.
    let far = SMALL.interval * 4;
    let forged = proof_with(&mut world, &[0, 1, 3], far, &[]);
    world.inject(0, 4, Message::Stable(Arc::new(forged)));
    assert_eq!(world.minbft(4).stable.0, Seq(0));
    // At another number: each of them certified what stands at the place of that one.
    let next = far + SMALL.interval;
    let sound = proof_with(&mut world, &[0, 1, 2], next, &[(r(3), 2)]);
    world.inject(0, 4, Message::Stable(Arc::new(sound)));
    assert_eq!(world.minbft(4).stable.0, Seq(next));
}

// MINBFT-E2 "… nothing that i-old certified for a number above n_r counts, received before or after".
#[test]
fn what_a_replaced_component_promised_beyond_its_end_is_void() {
    covers!("MINBFT-E2");
    let mut world = World::with(5, SMALL, &[4]);
    let change = world.operator_frame(1, &admit(3, 2));
    world.request(&[4], &change);
    let frames = world.frames_held(1, &[4]);
    let one = world.prepare(0, 1, &[&change]);
    let two = world.prepare(0, 2, &[&frames[0]]);
    for by in [2, 3] {
        world.commit(by, &one);
        world.commit(by, &two);
    }
    // Its own commitments come back last, when those of 3 are all there.
    world.node_mut(4).stalled = true;
    world.say(4, &one);
    world.say(4, &two);
    for message in world.said(3) {
        world.say(4, &message);
    }
    assert_eq!(world.executed(4), 0);
    world.unstall(4);
    let epochs = world.minbft(4).configuration.epochs_at(Seq(9));
    assert_eq!(epochs, [(r(3), 2)], "n_r is executed: 0, 3 and 4 committed to it");
    assert_eq!(world.executed(4), 1, "0 and 4 are two of three at 2: the commitment of 3 is void");
    for message in world.said(2) {
        world.say(4, &message);
    }
    assert_eq!(world.journal(4), ["op1"], "with 2 they are three");
}

// MINBFT-E2: a primary whose component was replaced proposes nothing more.
#[test]
fn the_view_of_a_replaced_primary_is_left() {
    covers!("MINBFT-E2");
    let mut world = World::with(3, SMALL, &[1]);
    let change = world.operator_frame(1, &admit(0, 2));
    world.request(&[1], &change);
    let frames = world.frames_held(1, &[1]);
    let prepare = world.prepare(0, 1, &[&change]);
    let void = world.prepare(0, 2, &[&frames[0]]);
    // Both are in its hold-back before it executes the first.
    world.say(1, &void);
    world.say(1, &prepare);
    assert_eq!(world.executed(1), 1);
    assert_eq!(world.minbft(1).wanted_view, View(1));
    assert!(world.accused_nobody(1));
}

// MINBFT-E3 (guard) "i-new begins with a VIEW-CHANGE …"
#[test]
fn a_new_component_begins_with_a_view_change_beyond_its_predecessors_promises() {
    covers!("MINBFT-E3");
    let mut world = World::with(3, SMALL, &[]);
    let configuration = after_admission(&world, 2, 10);
    let named = [(r(2), 2)];
    let below = proof_with(&mut world, &[0, 1], 17, &named);
    let beyond = proof_with(&mut world, &[0, 1], 18, &named);
    world.new_component(2, 2);
    let judge =
        |world: &World, change: &Certified| evidence(&world.group, &configuration, &world.config, change);
    let body = world.change_body(2, 1, below);
    let early = world.certify_change(2, body);
    assert_eq!(
        judge(&world, &early).map(|_| ()),
        Err("a readmitted replica without a stable checkpoint a window behind its admission")
    );
    world.new_component(2, 2);
    let body = world.change_body(2, 1, beyond.clone());
    let good = world.certify_change(2, body);
    assert!(judge(&world, &good).is_ok());
    // A vote for the checkpoint was certified in view 3: somebody left the views below.
    let mut late = beyond;
    let checkpoint = late.votes[1].body.clone();
    let value = crate::place::Place::of_checkpoint(View(3), Seq(18)).expect("possible");
    late.votes[1] = world.certify_at(1, value, checkpoint);
    for (to, good) in [(3, false), (4, true)] {
        world.new_component(2, 2);
        let body = world.change_body(2, to, late.clone());
        let change = world.certify_change(2, body);
        assert_eq!(judge(&world, &change).is_ok(), good, "{to}");
    }
}

// MINBFT-E3: anything else than a VIEW-CHANGE proves it faulty.
#[test]
fn a_new_component_that_begins_otherwise_is_condemned() {
    covers!("MINBFT-E3");
    let mut world = World::with(3, SMALL, &[1]);
    let change = world.operator_frame(1, &admit(2, 2));
    world.request(&[1], &change);
    let prepare = world.prepare(0, 1, &[&change]);
    world.say(1, &prepare);
    assert_eq!(world.executed(1), 1);
    world.new_component(2, 2);
    let commit = world.commit(2, &prepare);
    world.say(1, &commit);
    assert_eq!(world.condemned(1, 2), Some("a readmitted replica that does not begin with a VIEW-CHANGE"));
}

// MINBFT-E4 (guard) "The VIEW-CHANGEs of a NEW-VIEW are consistent …"
#[test]
fn a_view_change_does_not_stand_beside_one_that_shows_its_component_replaced() {
    covers!("MINBFT-E4");
    let mut world = World::with(5, SMALL, &[4]);
    let body = Checkpoint { seq: Seq(4), digest: Digest([7; 32]), epochs: vec![(r(0), 2)], given: false };
    world.certify(1, Body::Checkpoint(body));
    world.wishes(&[0, 1, 2], 4, 1);
    let changes: Vec<Arc<Certified>> = [0, 1, 2, 3].map(|by| world.view_change(by, 1)).to_vec();
    let judge = |world: &mut World, shown: &[usize]| {
        let shown: Vec<&Arc<Certified>> = shown.iter().map(|index| &changes[*index]).collect();
        let body: NewView = world.new_view_body(1, &shown, &[]);
        let message = world.certify(1, Body::NewView(body));
        let new_view = message.new_view().expect("a NEW-VIEW").clone();
        world.minbft(4).judge_new_view(&message, &new_view)
    };
    assert!(matches!(judge(&mut world, &[1, 2, 3]), Judgement::Valid { .. }));
    world.new_component(1, 1);
    // The same values again: what is tested is the content.
    world.certify_at(1, CounterValue::new(1, 0), Body::RequestViewChange(world.wish(1, 1).request.clone()));
    assert!(matches!(judge(&mut world, &[1, 0, 2]), Judgement::Invalid(_)));
}

// MINBFT-E4 "A primary finds as many as a quorum has, its own among them, wherever there are so many."
#[test]
fn a_primary_takes_what_goes_together() {
    covers!("MINBFT-E4");
    let mut world = World::with(5, SMALL, &[]);
    let configuration = (*world.configuration).clone();
    let mut shown: Vec<_> = (0..5)
        .map(|by| {
            let change = world.view_change(by, 1);
            evidence(&world.group, &configuration, &world.config, &change).expect("honest")
        })
        .collect();
    // 1 and 3 know that 2 was replaced; 4 lies about 1.
    for (who, whom) in [(1, 2), (3, 2), (4, 1)] {
        shown[who].epochs = BTreeMap::from([(r(whom), 2)]);
    }
    assert!(!consistent(&world.config, &shown));
    let chosen = agreeing(&world.config, shown, 3).expect("0, 1 and 3 go together");
    let from: Vec<ReplicaId> = chosen.iter().map(|shown| shown.from).collect();
    assert!(from.contains(&r(0)) && consistent(&world.config, &chosen), "{from:?}");
}

// MINBFT-E4 "… of whoever contradicts most either it is left out or all that it contradicts."
#[test]
fn liars_about_components_keep_no_primary_from_those_that_go_together() {
    covers!("MINBFT-E4");
    let mut world = World::with(7, SMALL, &[]);
    let configuration = (*world.configuration).clone();
    // The primary's own, then two liars, three that agree with it, and a third liar.
    let order = [2, 0, 1, 3, 4, 5, 6];
    let mut shown: Vec<_> = order
        .map(|by| {
            let change = world.view_change(by, 1);
            evidence(&world.group, &configuration, &world.config, &change).expect("honest")
        })
        .to_vec();
    for (who, whom) in [(1, &[2, 3][..]), (2, &[4, 5]), (6, &[2, 3, 4, 5])] {
        shown[who].epochs = whom.iter().map(|whom| (r(*whom), 7)).collect();
    }
    let chosen = agreeing(&world.config, shown.clone(), 4).expect("2, 3, 4 and 5 go together");
    assert_eq!(chosen.iter().map(|shown| shown.from).collect::<Vec<_>>(), [2, 3, 4, 5].map(r));
    let mut of_its_own = shown.clone();
    for liar in [1, 2, 6] {
        of_its_own[liar].epochs = BTreeMap::from([(r(2), 7)]);
    }
    assert!(agreeing(&world.config, of_its_own, 4).is_some(), "its own clashes with most, and stays");
    shown[3].epochs = BTreeMap::from([(r(2), 7)]);
    assert!(agreeing(&world.config, shown, 4).is_none(), "no four do");
}

// MINBFT-E5 (guard) "A CHECKPOINT(n) names the epochs … one by another component of its sender than the one
// it names does not count and proves its sender faulty."
#[test]
fn a_checkpoint_is_of_the_component_that_it_names() {
    covers!("MINBFT-E5");
    let mut world = World::with(3, SMALL, &[1]);
    let config = world.config;
    let named = [(r(2), 2)];
    let other = proof_with(&mut world, &[0, 2], 4, &named);
    assert_eq!(check_stable(&world.group, &config, &other), Err("a checkpoint certificate below quorum"));
    let good = proof_with(&mut world, &[0, 1], 8, &named);
    assert!(check_stable(&world.group, &config, &good).is_ok());
    let mut mixed = good;
    mixed.votes[1] = proof_with(&mut world, &[1], 8, &[]).votes.remove(0);
    assert!(check_stable(&world.group, &config, &mixed).is_err(), "they disagree about the epochs");
    world.say(1, &other.votes[1]);
    assert_eq!(world.condemned(1, 2), Some("a CHECKPOINT by a component that it says was replaced"));
}

// MINBFT-E6 (guard) "A replica whose component is not the one that the configuration names certifies
// nothing …"
#[test]
fn a_component_that_nobody_admitted_certifies_nothing() {
    covers!("MINBFT-E6");
    let mut world = World::all(3, SMALL);
    order(&mut world, 1..=10);
    world.lose(2, 2);
    world.sent.clear();
    order(&mut world, 11..=30);
    world.pass(3_000_000);
    assert_eq!(world.counter(2), CounterValue(0));
    assert!(world.executed(2) >= 16, "it follows: {}", world.executed(2));
    assert!(!world.minbft(2).may_answer_reads());
    assert!(!world.minbft(2).status().votes);
    assert!(world.sent_by(2, Kind::Commit).is_empty() && world.accused_nobody(0));
}

// MINBFT-E7 (guard) "… batches may be empty: a readmission ends though no client asks for anything."
// MINBFT-E8 "i-new asks for the next view … and each replica follows it once."
#[test]
fn a_lost_replica_comes_back_and_votes() {
    covers!("MINBFT-E6");
    covers!("MINBFT-E7");
    covers!("MINBFT-E8");
    let mut world = with_a_readmitted_replica();
    assert!(world.executed(0) >= 6 + 8, "empty batches carried it a window on");
    assert_eq!(world.minbft(0).view, View(1), "one view change, for its sake");
    assert!((0..3).all(|replica| world.accused_nobody(replica)));
    // It takes the place of another one now.
    world.crash(0);
    order(&mut world, 6..=9);
    world.pass(3_000_000);
    assert_eq!(world.journal(2).len(), 9);
    assert_eq!(world.journal(1), world.journal(2));
}

// MINBFT-R4 and E6: it may crash at any time while it comes back.
#[test]
fn a_replica_that_comes_back_may_crash_on_its_way() {
    for commands in 0..60 {
        let mut world = World::all(3, SMALL);
        order(&mut world, 1..=5);
        world.lose(2, 2);
        world.node_mut(2).crash_in = Some(commands);
        let change = world.operator_frame(1, &admit(2, 2));
        world.request_all(&change);
        world.pass(700_000);
        world.crash(2);
        world.restart(2);
        world.pass(3_000_000);
        assert!(world.minbft(2).status().votes, "{commands}: {}", world.minbft(2).describe());
        world.crash(0);
        order(&mut world, 6..=9);
        world.pass(3_000_000);
        assert_eq!(world.journal(2).len(), 9, "{commands}");
        assert!((1..3).all(|replica| world.accused_nobody(replica)));
    }
}

// MINBFT-E9 (guard) "The log of a VIEW-CHANGE is of its sender's present component alone."
#[test]
fn a_log_does_not_borrow_from_an_earlier_component() {
    covers!("MINBFT-E9");
    let mut world = World::with(3, SMALL, &[]);
    let configuration = after_admission(&world, 2, 10);
    let stable = proof_with(&mut world, &[0, 1], 20, &[(r(2), 2)]);
    let old = world.view_change(2, 1);
    world.new_component(2, 2);
    let body = world.change_body(2, 1, stable.clone());
    world.certify_change(2, body);
    let mut body = world.change_body(2, 2, stable);
    body.log = vec![old.log_entry()];
    let change = world.certify_change(2, body);
    assert_eq!(
        evidence(&world.group, &configuration, &world.config, &change).map(|_| ()),
        Err("a VIEW-CHANGE whose log is of another component")
    );
}

/// A replica whose component was replaced while it ran stops voting by itself.
#[test]
fn a_replica_that_learns_that_it_was_replaced_stands_aside() {
    let mut world = World::all(3, SMALL);
    order(&mut world, 1..=3);
    let change = world.operator_frame(1, &admit(2, 2));
    world.request_all(&change);
    world.sent.clear();
    order(&mut world, 4..=12);
    assert!(!world.minbft(2).status().votes);
    assert!(world.sent_by(2, Kind::Commit).is_empty() && world.sent_by(2, Kind::Checkpoint).is_empty());
    assert!((0..3).all(|replica| world.accused_nobody(replica)));
    assert_eq!(world.journal(0).len(), 12);
    let told = world
        .sent
        .iter()
        .any(|flight| flight.from == r(2) && flight.certified().is_some_and(|m| m.from == r(2)));
    assert!(!told || world.sent_by(2, Kind::ViewChange).is_empty());
}

/// Three replicas that ordered five requests before 2 was lost, and readmitted it.
pub(super) fn with_a_readmitted_replica() -> World {
    let mut world = World::all(3, SMALL);
    order(&mut world, 1..=5);
    world.lose(2, 2);
    let change = world.operator_frame(1, &admit(2, 2));
    world.request_all(&change);
    world.pass(3_000_000);
    assert!(world.minbft(2).status().votes, "{}", world.minbft(2).describe());
    world
}

/// Client 1's frames with these numbers, each sent to everybody.
pub(super) fn order(world: &mut World, numbers: core::ops::RangeInclusive<u64>) {
    for number in numbers {
        let frame = world.frame(1, number, &format!("op{number}"));
        world.request_all(&frame);
    }
}

/// Old messages of a replaced component reach those who know: they neither count nor condemn.
#[test]
fn what_an_old_component_says_is_not_heard_any_more() {
    let mut world = World::with(3, SMALL, &[1]);
    let change = world.operator_frame(1, &admit(2, 2));
    world.request(&[1], &change);
    let prepare = world.prepare(0, 1, &[&change]);
    world.say(1, &prepare);
    assert_eq!(world.executed(1), 1);
    let vote = world.checkpoint(2, 4, Digest([1; 32]));
    world.inject(2, 1, Message::Certified(vote));
    assert_eq!(world.minbft(1).peer(r(2)).gate.processed(), CounterValue(0));
    assert_eq!(world.minbft(1).peer(r(2)).gate.held(), 0);
    assert!(world.accused_nobody(1));
}

// MINBFT-E9: two components of one replica may certify the same at the same value. Which of them a
// VIEW-CHANGE shows is part of what its sender certifies, or a relay could have it condemned.
#[test]
fn the_epoch_of_what_is_shown_cannot_be_exchanged() {
    let mut world = World::with(3, SMALL, &[]);
    let stable = proof_with(&mut world, &[0, 1], 4, &[]);
    let body = world.change_body(0, 1, stable);
    let honest = Body::ViewChange(body.clone());
    let mut exchanged = body;
    let mut vote = (*exchanged.stable.votes[1]).clone();
    vote.ui.certificate.epoch = troth_trusted::Epoch(2);
    exchanged.stable.votes[1] = Arc::new(vote);
    let group = world.group.id();
    assert_ne!(honest.digest(group, r(0)), Body::ViewChange(exchanged).digest(group, r(0)));
}

// MINBFT-E5: what was certified of a checkpoint is repeated in later views as it was.
#[test]
fn a_checkpoint_is_repeated_with_the_epochs_that_it_named() {
    let mut world = World::all(3, SMALL);
    order(&mut world, 1..=3);
    let change = world.operator_frame(1, &admit(2, 2));
    world.request_all(&change);
    world.pass(3_000_000);
    let vouched = world.minbft(0).own_checkpoint.clone();
    assert_eq!((&*vouched.epochs, vouched.given), (&[(r(2), 2)][..], false));
    world.crash(0);
    world.restart(0);
    assert_eq!(world.minbft(0).own_checkpoint, vouched);
}
