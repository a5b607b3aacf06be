//! MINBFT-R16 to R18: what makes a replica look at VIEW-CHANGEs and evidence again, what does not, and what is dear.

use super::craft::batch;
use super::harness::{Kind, SMALL, World, covers, r};
use super::paper_new_view::primary_sees;
use crate::message::Message;
use crate::place::Place;
use std::sync::Arc;
use troth_core::{Agreement as _, Input, Request, marks};
use troth_trusted::CounterValue;
use troth_types::{Digest, Seq, View, Wish};

/// How often a VIEW-CHANGE was judged so far, looked through, and looked at.
fn looks() -> [u64; 3] {
    ["MINBFT-V3", "MINBFT-V12", "MINBFT-R16"].map(marks::hits)
}

// MINBFT-R16 "The primary of a view that has yet to begin looks at the VIEW-CHANGEs that it may base it on (V12) again when
// something came that may let it begin …"
#[test]
fn what_brings_nothing_has_no_view_change_looked_at() {
    covers!("MINBFT-R16");
    let outside = World::with(3, SMALL, &[]);
    let (held, late) = (outside.frame(1, 1, "a"), outside.frame(1, 2, "late"));
    let mut world = primary_sees(batch(outside.wall(), &[&held, &late]), &[&held]);
    assert!(world.sent_by(1, Kind::NewView).is_empty(), "a frame is missing");
    let before = looks();
    for number in 3..20 {
        let wish = world.wish(0, number);
        world.inject(0, 1, Message::RequestViewChange(wish));
        let frame = world.frame(2, number, "another");
        world.request(&[1], &frame);
    }
    assert_eq!(world.minbft(1).view, View(1));
    assert_eq!(looks(), before);
    // With a STATUS the first thing that it lacks is looked at, and no more than that.
    world.pass(3 * SMALL.status_interval);
    assert_eq!(looks()[..2], before[..2]);
    assert!(looks()[2] <= before[2] + 3);
    // The frame comes.
    let frame = world.frames.verify(Arc::clone(&late)).expect("clients sign well");
    world.input(r(1), Input::Requests(vec![Request { frame, wish: Wish::Usual }]));
    world.run();
    assert_eq!(world.sent_by(1, Kind::NewView).len(), 1);
    let [judged, through, _] = looks();
    assert!(through > before[1], "all of it, once more");
    assert_eq!(judged, before[0] + 2, "those in its own NEW-VIEW; what they prove was known before");
}

// MINBFT-R17 (guard) "A REQ-VIEW-CHANGE that is not above its sender's last one …, and evidence (V17) that was not asked for or
// is here, is passed over before it is checked, and charged."
#[test]
fn requests_and_evidence_that_can_do_nothing_are_not_worth_a_check() {
    covers!("MINBFT-R17");
    let mut world = World::with(5, SMALL, &[4]);
    let wish = |world: &World, to| Message::RequestViewChange(world.wish(0, to));
    let worth = |world: &World, message: &Message| world.minbft(4).is_worth_checking(message);
    let two = wish(&world, 2);
    assert!(worth(&world, &two));
    world.inject(0, 4, two.clone());
    assert!(!worth(&world, &two) && !worth(&world, &wish(&world, 1)) && worth(&world, &wish(&world, 3)));

    let changes = [1, 0, 2].map(|by| world.view_change(by, 1));
    let start = world.new_view(1, &[&changes[0], &changes[1], &changes[2]], &[]);
    let accepts = [world.accept(0, &start), world.accept(2, &start)];
    let evidence = |message: &Arc<_>| Message::Evidence(Arc::clone(message));
    assert!(!worth(&world, &evidence(&start)), "nobody asked");
    let mut asks = world.minbft(4).clone();
    asks.known_views.want(View(1));
    let elsewhere = Place { view: View(1), checkpoint: Seq(0), count: 2 }.value();
    let body = start.body.clone();
    let second = world.certify_at(1, elsewhere, body);
    assert!(!asks.is_worth_checking(&evidence(&second)), "a view starts at one value");
    for message in [&start, &accepts[0], &accepts[1]] {
        assert!(asks.is_worth_checking(&evidence(message)));
        assert!(asks.known_views.offer(message));
        assert!(!asks.is_worth_checking(&evidence(message)), "it is here");
        assert!(!asks.known_views.offer(message));
    }
}

// MINBFT-R17 "Evidence that rests on the start of another view is judged again once that is known."
#[test]
fn evidence_that_rests_on_another_is_judged_when_that_is_known_and_not_before() {
    covers!("MINBFT-R17");
    // Puppets 0 and 1 worked in views 1 and 2, of which replica 2 saw nothing; it asks for the starts of both.
    let mut world = World::with(3, SMALL, &[2]);
    let frames = world.frames_held(1, &[2]);
    let changes = [world.view_change(0, 1), world.view_change(1, 1)];
    let first = world.new_view(1, &[&changes[1], &changes[0]], &[]);
    world.accept(0, &first);
    let prepare = world.prepare(1, 1, &[&frames[0]]);
    world.commit(0, &prepare);
    let changes = [world.view_change(0, 3), world.view_change(1, 3)];
    let second = world.new_view(3, &[&changes[0], &changes[1]], &[&first]);
    let mut known = crate::known_views::KnownViews::default();
    known.want(View(3));
    assert!(known.offer(&second));
    assert_eq!(known.to_judge().len(), 1);
    known.rests_on(View(3), View(1));
    assert!(known.to_judge().is_empty(), "its ground is not here");
    let wanted: Vec<_> = (0..4).filter_map(|round| known.wanted(round)).collect();
    assert_eq!(wanted, [1, 1, 1, 3].map(View), "what can be judged when it comes, and each in its turn");
    assert!(!known.offer(&second), "nothing new");
    known.hold(View(1), first.clone(), None);
    assert_eq!(known.to_judge(), [second]);
}

// MINBFT-R18 (guard) "A VIEW-CHANGE or NEW-VIEW that was checked and is not the next of its author's is charged …"
#[test]
fn what_shows_many_signatures_has_its_turn_or_not() {
    covers!("MINBFT-R18");
    let mut world = World::with(3, SMALL, &[2]);
    let certified = |message: &Arc<_>| Message::Certified(Arc::clone(message));
    let first = world.view_change(0, 1);
    let second = world.view_change(0, 2);
    let dear = |world: &World, message: &Message| world.minbft(2).author_of_dear(message);
    assert_eq!(dear(&world, &certified(&first)), Some(r(0)));
    assert_eq!(dear(&world, &Message::RequestViewChange(world.wish(0, 1))), None);
    let turns = |world: &World| world.minbft(2).turns(r(0));
    let before = turns(&world);
    world.inject(1, 2, certified(&second));
    assert_eq!(turns(&world), before, "those before it are not here");
    world.inject(0, 2, certified(&first));
    assert_eq!(turns(&world), second.value().0.rotate_left(1), "both had their turn");

    // The next one is in its turn, also where it has to wait for something else.
    let mut world = World::with(3, SMALL, &[2]);
    let before = turns(&world);
    let ahead = world.checkpoint(0, 10 * SMALL.window, Digest([1; 32]));
    let far = world.view_change(0, 1);
    world.inject(1, 2, certified(&far));
    assert_eq!(turns(&world), before);
    world.inject(0, 2, certified(&ahead));
    assert_eq!(world.minbft(2).peer(r(0)).gate.processed(), CounterValue(0), "it waits");
    let waits = turns(&world);
    assert_ne!(waits, before);
    world.inject(0, 2, certified(&ahead));
    assert_eq!(turns(&world), waits, "and it comes once");
}
