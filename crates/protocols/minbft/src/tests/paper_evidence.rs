//! MINBFT-V17, T4, R6: the starts of earlier views as evidence, and executing again after a restart.

use super::harness::{Fate, SMALL, World, covers, r};
use crate::message::Message;
use std::sync::Arc;
use troth_types::{Configuration, Digest, Seq, View};

/// Five replicas of which 4 is correct; puppets 0 and 1 committed in view 1, whose start 4 never saw.
/// Returns the NEW-VIEW of view 1, and what replica 4 has to judge: a VIEW-CHANGE for view 2.
fn a_view_unseen(world: &mut World) -> Arc<crate::Certified> {
    let changes = [world.view_change(1, 1), world.view_change(0, 1), world.view_change(2, 1)];
    world.new_view(1, &[&changes[0], &changes[1], &changes[2]], &[])
}

// MINBFT-V17 (guard) "The start of an earlier view is known when its NEW-VIEW follows from what it shows,
// or when f+1 replicas, its primary among them, have certified that they accepted it"
#[test]
fn a_start_is_known_by_judgement_or_by_f_plus_1_commitments() {
    covers!("MINBFT-V17");
    let mut world = World::with(5, SMALL, &[4]);
    let new_view = a_view_unseen(&mut world);
    let accepts = [world.accept(0, &new_view), world.accept(2, &new_view)];
    let (group, config) = (world.minbft(4).group, world.minbft(4).config);
    let mut known = crate::known_views::KnownViews::default();
    known.want(View(1));
    known.offer(&accepts[0]);
    known.offer(&new_view);
    assert!(
        known.take_accepted(&group, &Configuration::default(), &config).is_none(),
        "the primary and one more are not f+1 of five"
    );
    known.offer(&accepts[0]);
    assert!(known.take_accepted(&group, &Configuration::default(), &config).is_none(), "the same one twice");
    known.offer(&accepts[1]);
    assert_eq!(known.take_accepted(&group, &Configuration::default(), &config), Some(View(1)));
    assert_eq!(known.get(View(1)).map(|held| held.digest), Some(new_view.digest));
    // Asked for and shown by one replica alone, it is judged.
    world.inject(0, 4, Message::Evidence(new_view.clone()));
    assert!(world.minbft(4).known_views.get(View(1)).is_none(), "nobody asked");
    let wants = &mut world.minbft(4).clone();
    wants.known_views.want(View(1));
    assert_eq!(wants.known_views.wanted(0), Some(View(1)));
}

#[test]
fn an_invalid_start_is_not_known_and_condemns_its_primary() {
    covers!("MINBFT-V17");
    let mut world = World::with(3, SMALL, &[2]);
    let frames = world.frames_held(1, &[2]);
    let changes = [world.view_change(0, 1), world.view_change(1, 1)];
    let mut body = crate::NewView {
        view: View(1),
        changes: vec![changes[1].clone(), changes[0].clone()],
        base: (Seq(0), Digest::ZERO),
        chosen: Vec::new(),
    };
    body.chosen.push(troth_types::Batch { time: world.wall(), frames: vec![frames[0].digest()] });
    let forged = world.certify(1, crate::Body::NewView(body));
    world.accept(0, &forged);
    let prepare = world.prepare(1, 1, &[&frames[0]]);
    world.commit(0, &prepare);
    world.view_change(0, 2);
    world.wishes(&[0, 1], 2, 2);
    for message in world.said(0) {
        world.say(2, &message);
    }
    assert_eq!(world.minbft(2).known_views.wanted(0), Some(View(1)), "it asks for the start of view 1");
    world.inject(0, 2, Message::Evidence(forged));
    assert!(world.minbft(2).known_views.get(View(1)).is_none());
    assert!(
        world.condemned(2, 1).is_some(),
        "the primary of view 1 made a NEW-VIEW that follows from nothing"
    );
}

// MINBFT-T4 "Where the NEW-VIEW of the view it moved to lies in such a gap, it enters the view by that
// NEW-VIEW as evidence (V17), with the commitments that come with it."
#[test]
fn a_view_whose_start_was_passed_over_is_entered_by_evidence() {
    covers!("MINBFT-T4");
    let mut world = World::all(3, SMALL);
    world.links(|flight| if flight.to == r(2) { Fate::Lose } else { Fate::Pass });
    // Replica 2 hears of the wish for view 1 and nothing else, while the others work there.
    world.wishes(&[0, 1], 0, 1);
    world.wishes(&[0, 1], 1, 1);
    world.wishes(&[0, 1], 2, 1);
    world.pass(50_000);
    for number in 1..=24 {
        let frame = world.frame(1, number, &format!("op{number}"));
        world.request(&[0, 1], &frame);
    }
    assert!(world.works_in(0, 1) && !world.works_in(2, 1));
    world.open();
    world.pass(3_000_000);
    assert!(world.works_in(2, 1), "it came into the view whose start the others show as evidence");
    assert_eq!(world.executed(2), 24);
}

// MINBFT-R6 "What it executed it executes again from its log: a CHECKPOINT that it certified is a promise to
// show that state."
#[test]
fn a_restart_executes_again_what_was_executed() {
    covers!("MINBFT-R6");
    let mut world = World::all(3, SMALL);
    for number in 1..=6 {
        let frame = world.frame(1, number, &format!("op{number}"));
        world.request_all(&frame);
    }
    let before = world.executed(1);
    assert!(before >= 5, "something above the stable checkpoint");
    // Alone, cut off from everybody, it must reach what it had.
    world.links(|flight| if flight.to == r(1) { Fate::Lose } else { Fate::Pass });
    let digest = world.state_digest(1);
    world.crash(1);
    world.restart(1);
    // The last batch's record rides with the next sync; everything before it is there.
    assert!(world.executed(1) + 1 >= before);
    if world.executed(1) == before {
        assert_eq!(world.state_digest(1), digest);
    }
}
