//! MINBFT-V22: what a faulty replica commits to beyond all windows, behind checkpoints that nobody else has.

use super::craft::batch;
use super::harness::{Fate, Kind, SMALL, World, covers, r};
use crate::Config;
use crate::choose::within_window;
use crate::evidence::evidence;
use crate::message::{Certified, StableProof};
use crate::view_change::Judgement;
use std::sync::Arc;
use troth_types::{Batch, Digest, Wire as _};

/// Replica 0, primary of view 0, certifies three windows of empty batches, each behind a checkpoint of a state that nobody
/// has, and leaves the view.
fn far_ahead(world: &mut World) -> Arc<Certified> {
    let window = SMALL.window;
    for seq in 1..=3 * window {
        let empty = batch(world.wall(), &[]);
        world.prepare_batch(0, seq, empty);
        if seq.is_multiple_of(window) && seq < 3 * window {
            world.checkpoint(0, seq, Digest([9; 32]));
        }
    }
    world.view_change(0, 1)
}

// MINBFT-V22: no primary begins a view with it, or what is executed there is so far from all that is stable that nobody who
// was away takes the checkpoints of it for possible: what they wait in front of is never read.
#[test]
fn commitments_beyond_the_window_are_in_no_start_and_strand_nobody() {
    covers!("MINBFT-V22");
    let mut world = World::with(3, SMALL, &[1, 2]);
    let change = far_ahead(&mut world);
    let judged = evidence(&world.group, &world.configuration, &world.config, &change);
    assert!(judged.is_ok(), "nothing in it is out of order");
    world.links(|flight| if flight.to == r(2) || flight.from == r(2) { Fate::Lose } else { Fate::Pass });
    world.wishes(&[0, 2], 1, 1);
    for message in world.said(0) {
        world.say(1, &message);
    }
    world.pass(SMALL.status_interval * 4);
    assert_eq!(world.sent_by(1, Kind::NewView).len(), 0);
    assert_eq!(world.condemned(1, 0), None, "a correct replica may have learnt later what was stable");
    // From now on 0 is silent, and the others hear each other.
    world.open();
    let frame = world.frame(1, 1, "op1");
    world.request(&[1, 2], &frame);
    world.pass(20_000_000);
    for replica in [1, 2] {
        assert_eq!(world.journal(replica), ["op1"]);
    }
}

// MINBFT-V22: nor does a start count that shows one.
#[test]
fn a_start_with_commitments_beyond_the_window_does_not_count_and_proves_nothing() {
    covers!("MINBFT-V22");
    for beyond in [false, true] {
        let mut world = World::with(3, SMALL, &[2]);
        let change = if beyond { far_ahead(&mut world) } else { world.view_change(0, 1) };
        let own = world.view_change(1, 1);
        let message = world.new_view(1, &[&own, &change], &[]);
        let new_view = message.new_view().expect("a NEW-VIEW");
        let judged = world.minbft(2).judge_new_view(&message, new_view);
        assert_eq!(matches!(judged, Judgement::Open), beyond);
        assert_eq!(matches!(judged, Judgement::Valid { .. }), !beyond);
    }
}

// MINBFT-V22: the window is that of the checkpoint that it shows, the last number in it included.
#[test]
fn commitments_up_to_the_end_of_the_window_are_used() {
    covers!("MINBFT-V22");
    for (last, four_is_stable, used) in
        [(8, false, true), (9, false, false), (9, true, true), (12, true, true)]
    {
        let mut world = World::with(3, SMALL, &[]);
        for seq in 1..=last {
            let empty = batch(world.wall(), &[]);
            world.prepare_batch(0, seq, empty);
            if seq == 8 {
                // Which lets it commit up to 12, whoever else is there.
                world.checkpoint(0, 4, Digest([4; 32]));
            }
        }
        let proof = match four_is_stable {
            true => world.stable_proof(&[1, 2], 4, Digest([4; 32])),
            false => StableProof::default(),
        };
        let body = world.change_body(0, 1, proof);
        let change = world.certify_change(0, body);
        let shown = evidence(&world.group, &world.configuration, &world.config, &change).expect("in order");
        assert_eq!(within_window(&world.config, &shown), used, "{last} {four_is_stable}");
    }
}

// MINBFT-V23: a NEW-VIEW that links do not carry is not certified, and none is made larger than it need be.
#[test]
fn a_view_begins_from_the_smallest_view_changes_and_with_none_that_nobody_is_sent() {
    covers!("MINBFT-V23");
    for alone in [true, false] {
        let mut world = World::with(3, Config { message_bytes: 8192, ..SMALL }, &[1]);
        // A faulty primary's log is as large as it likes.
        let digests = vec![Digest([5; 32]); SMALL.limits.batch_frames];
        let frames = world.frames_held(1, &[1]);
        for seq in 1..=SMALL.window {
            let held = if alone { vec![frames[0].digest(); digests.len()] } else { vec![frames[0].digest()] };
            let named = Batch { time: world.wall(), frames: held };
            world.prepare_batch(0, seq, named);
        }
        let (large, small) = (world.view_change(0, 1), world.view_change(2, 1));
        world.wishes(&[0, 2], 1, 1);
        for message in world.said(0) {
            world.say(1, &message);
        }
        world.pass(SMALL.status_interval);
        let begun = world.sent_by(1, Kind::NewView);
        assert_eq!(begun.is_empty(), alone, "{} bytes", large.to_wire().len());
        if alone {
            world.say(1, &small);
            let begun = world.new_view_of(1).expect("a smaller one came");
            let from: Vec<_> =
                begun.new_view().expect("NEW-VIEW").changes.iter().map(|change| change.from).collect();
            assert_eq!(from, [r(1), r(2)]);
        }
    }
}
