//! MINBFT-T: state transfer.

use super::harness::{Fate, Kind, SMALL, World, covers, one_missed_them, r};
use crate::message::{Body, Message};
use std::sync::Arc;
use troth_core::Note;
use troth_trusted::CounterValue;
use troth_types::{Digest, Seq, View};

// MINBFT-T1 "A replica that is behind a stable checkpoint and does not catch up, or is a whole window
// behind, fetches that checkpoint's state from those who vouch for it."
#[test]
fn a_whole_window_behind_fetches_the_state() {
    covers!("MINBFT-T1");
    for n in [3, 5] {
        let mut world = one_missed_them(n, n - 1, 20);
        assert_eq!(world.executed(n - 1), 0);
        world.open();
        world.pass(1_500_000);
        assert_eq!(world.journal(n - 1).len(), 20);
        assert!(world.sent.iter().any(|flight| flight.kind() == Kind::StatePiece));
        assert!(world.node(n - 1).notes.iter().any(|note| matches!(note, Note::TransferDone { .. })));
        assert!(world.accused_nobody(n - 1));
    }
}

#[test]
fn one_who_does_not_catch_up_fetches_the_state() {
    covers!("MINBFT-T1");
    let mut world = one_missed_them(3, 2, 5);
    world.links(|flight| match flight.kind() {
        Kind::Frames if flight.to == r(2) => Fate::Lose,
        _ => Fate::Pass,
    });
    world.pass(3_000_000);
    assert_eq!(world.stable(2), Seq(4));
    assert_eq!(world.executed(2), 4, "by transfer, for it never got the frames");
    let asked: Vec<_> = world
        .sent
        .iter()
        .filter(|flight| flight.kind() == Kind::FetchState)
        .map(|flight| flight.to)
        .collect();
    let vouching: Vec<_> = world.minbft(2).stable_proof.votes.iter().map(|vote| vote.from).collect();
    assert!(!asked.is_empty() && asked.iter().all(|to| vouching.contains(to)));
}

// "One whose state is on its way goes on with that of a later stable checkpoint as soon as it knows one …"
#[test]
fn one_whose_state_is_on_its_way_goes_on_with_a_later_one_at_once() {
    covers!("MINBFT-T1");
    let mut world = World::with(3, SMALL, &[2]);
    let frames = world.frames_held(2, &[2]);
    world.ordered_by_puppet(&[2], &frames);
    let told = |world: &mut World, seq| {
        let proof = world.stable_proof(&[0, 1], seq, Digest([1; 32]));
        world.inject(0, 2, Message::Stable(Arc::new(proof)));
        let asked = world.sent.iter().filter_map(|flight| match &flight.message {
            troth_core::PeerMessage::FetchState(fetch) => Some(fetch.seq.0),
            _ => None,
        });
        asked.collect::<std::collections::BTreeSet<u64>>().into_iter().collect::<Vec<u64>>()
    };
    assert_eq!(told(&mut world, 4), [0; 0], "it lets the ordinary messages arrive");
    world.pass(4 * SMALL.status_interval + 10_000);
    // The others let go of the state at 4 as they made 8 stable, which is not a window ahead of 2.
    assert_eq!((world.executed(2), told(&mut world, 8)), (2, vec![4, 8]));
}

#[test]
fn one_that_has_the_state_is_given_no_more_time_than_messages_take() {
    covers!("MINBFT-T1");
    let mut world = one_missed_them(3, 2, 20);
    world.open();
    while !world.node(2).notes.iter().any(|note| matches!(note, Note::TransferDone { .. })) {
        world.pass(SMALL.status_interval / 4);
    }
    assert_eq!(world.executed(2), 20);
    world.links(|flight| match flight.kind() {
        Kind::Frames if flight.to == r(2) => Fate::Lose,
        _ => Fate::Pass,
    });
    for number in 21..=25 {
        let frame = world.frame(1, number, "more");
        world.request(&[0, 1], &frame);
    }
    world.pass(5 * SMALL.status_interval);
    assert_eq!(world.executed(2), 24, "by transfer, for it never got the frames");
}

// MINBFT-T2 (guard) "It goes on with each sender at an own CHECKPOINT(p) of that sender with p + L ≤ h,
// and only there may it pass over a gap."
#[test]
fn a_gap_is_passed_over_at_a_covering_checkpoint_only() {
    covers!("MINBFT-T2");
    for (checkpoint, passes) in [(8, true), (9, false), (1 << 43, false)] {
        let mut world = World::with(5, SMALL, &[4]);
        let before = world.prepare(0, 1, &[]);
        world.commit(1, &before);
        let anchor = world.checkpoint(1, checkpoint, Digest([1; 32]));
        let proof = world.stable_proof(&[0, 2, 3], 16, Digest([1; 32]));
        world.say(4, &anchor);
        world.inject(0, 4, Message::Stable(Arc::new(proof)));
        assert_eq!(world.stable(4), Seq(16));
        let processed = world.minbft(4).peer(r(1)).gate.processed();
        assert_eq!(processed == anchor.value(), passes, "CHECKPOINT({checkpoint}) when 16 is stable");
        assert!(passes || processed == CounterValue(0));
    }
}

// MINBFT-T5 (guard) "After that no commitment of that sender to an n ≤ h counts: one that contradicts it may
// have been passed over."
#[test]
fn what_was_passed_over_is_not_proposed_again() {
    covers!("MINBFT-T5");
    let mut world = World::with(3, SMALL, &[2]);
    let frames = world.frames_held(4, &[2]);
    world.ordered_by_puppet(&[2], &frames[..2]);
    assert_eq!(world.executed(2), 2);
    // The primary has another batch executed as 3 elsewhere, and begins anew at a checkpoint of long ago.
    world.prepare(0, 3, &[&frames[2]]);
    let anchor = world.checkpoint(0, 1, Digest([7; 32]));
    let again = world.prepare(0, 3, &[&frames[3]]);
    let proof = world.stable_proof(&[0, 1], 9, Digest([1; 32]));
    world.inject(0, 2, Message::Stable(Arc::new(proof)));
    world.say(2, &anchor);
    world.say(2, &again);
    let commit = world.commit(1, &again);
    world.say(2, &commit);
    assert_eq!(world.minbft(2).peer(r(0)).gate.processed(), again.value(), "followed");
    assert_eq!((world.commits(2), world.executed(2)), (vec![1, 2], 2), "and not counted");
}

#[test]
fn nothing_but_a_checkpoint_passes_over_a_gap() {
    let mut world = World::with(5, SMALL, &[4]);
    world.prepare(0, 1, &[]);
    let second = world.prepare(0, 2, &[]);
    world.view_change(0, 1);
    let proof = world.stable_proof(&[1, 2, 3], 16, Digest([1; 32]));
    world.inject(1, 4, Message::Stable(Arc::new(proof)));
    world.say(4, &second);
    let change = world.said(0)[2].clone();
    world.say(4, &change);
    assert_eq!(world.minbft(4).peer(r(0)).gate.processed(), CounterValue(0));
}

#[test]
fn after_a_transfer_the_others_are_counted_again() {
    covers!("MINBFT-T2");
    let mut world = one_missed_them(3, 2, 20);
    world.open();
    world.pass(1_500_000);
    assert_eq!(world.executed(2), 20);
    // Without replica 1 the group needs the one that was late, and it needs the primary's messages.
    world.crash(1);
    for number in 21..=30 {
        let frame = world.frame(1, number, &format!("op{number}"));
        world.request(&[0, 2], &frame);
    }
    world.pass(1_000_000);
    assert_eq!((world.executed(0), world.executed(2)), (30, 30));
    assert_eq!(world.minbft(0).view, View(0));
    assert!(world.accused_nobody(0) && world.accused_nobody(2));
}

#[test]
fn a_source_that_answers_rubbish_does_not_hold_a_transfer_up() {
    covers!("MINBFT-T1");
    for liars in [1, 2] {
        let mut world = one_missed_them(5, 4, 20);
        world.open();
        // Those who lie answer each question at once, and whenever they are not asked, too.
        world.links(move |flight| match &flight.message {
            troth_core::PeerMessage::StatePiece(piece)
                if flight.from.0 < liars && piece.content != "rubbish" =>
            {
                Fate::Lose
            }
            _ => Fate::Pass,
        });
        for _ in 0..200 {
            world.pass(10_000);
            let asked = world.sent.iter().rev().find_map(|flight| match &flight.message {
                troth_core::PeerMessage::FetchState(fetch) if flight.from == r(4) => Some(fetch.clone()),
                _ => None,
            });
            let Some(fetch) = asked else { continue };
            for liar in 0..liars {
                let content = bytes::Bytes::from_static(b"rubbish");
                let (seq, digest, path) = (fetch.seq, fetch.digest, fetch.path.clone());
                let piece = troth_types::StatePiece { seq, digest, path, content };
                world.arrive(liar, 4, troth_core::PeerMessage::StatePiece(piece));
            }
        }
        assert_eq!(world.executed(4), 20, "{liars} liars");
    }
}

#[test]
fn only_the_one_that_was_asked_is_judged_by_its_pieces() {
    let mut world = one_missed_them(5, 4, 20);
    world.open();
    world.links(|flight| match &flight.message {
        troth_core::PeerMessage::StatePiece(piece) if piece.content != "rubbish" => Fate::Lose,
        _ => Fate::Pass,
    });
    world.pass(1_500_000);
    let questions = |world: &World| -> Vec<(troth_types::ReplicaId, troth_types::StateFetch)> {
        let asked = world.sent.iter().filter_map(|flight| match &flight.message {
            troth_core::PeerMessage::FetchState(fetch) if flight.from == r(4) => {
                Some((flight.to, fetch.clone()))
            }
            _ => None,
        });
        asked.collect()
    };
    let before = questions(&world);
    let (asked, fetch) = before.last().expect("it is behind").clone();
    let content = bytes::Bytes::from_static(b"rubbish");
    let piece = troth_types::StatePiece { seq: fetch.seq, digest: fetch.digest, path: fetch.path, content };
    for from in (0..4).filter(|from| r(*from) != asked) {
        world.arrive(from, 4, troth_core::PeerMessage::StatePiece(piece.clone()));
        assert_eq!(questions(&world).len(), before.len(), "replica {from} was not asked");
    }
    world.arrive(asked.0, 4, troth_core::PeerMessage::StatePiece(piece));
    let after = questions(&world);
    assert!(after.len() > before.len(), "asked at once");
    assert_ne!(after[before.len()].0, asked, "the next one");
}

// MINBFT-T3 "After the installation it certifies its own CHECKPOINT and tries again everything that
// waited."
#[test]
fn after_the_installation_it_certifies_its_checkpoint() {
    covers!("MINBFT-T3");
    let mut world = one_missed_them(3, 2, 20);
    world.open();
    world.pass(1_500_000);
    let first = &world.sent_by(2, Kind::Checkpoint)[0];
    let Body::Checkpoint(checkpoint) = &first.body else { panic!("a CHECKPOINT") };
    assert_eq!(checkpoint.seq, Seq(20));
    assert_eq!(checkpoint.digest, world.minbft(0).stable.1);
}

#[test]
fn what_the_state_holds_is_not_pending_any_more() {
    covers!("MINBFT-T3");
    let mut world = World::all(3, SMALL);
    world.links(|flight| if flight.to == r(2) { Fate::Lose } else { Fate::Pass });
    world.frames_held(20, &[0, 1, 2]);
    assert_eq!(world.minbft(2).pool.len(), 20);
    world.open();
    world.pass(500_000);
    assert!(world.node(2).notes.iter().any(|note| matches!(note, Note::TransferDone { seq: Seq(20) })));
    assert!(world.minbft(2).pool.is_empty(), "all twenty are executed");
    world.pass(5_000_000);
    assert_eq!(world.wanted(2), 0, "and nobody is suspected for them");
}

#[test]
fn what_waited_for_the_state_is_tried_again() {
    covers!("MINBFT-T3");
    // Replica 2 misses the frame of 2, so it stands at 1 while 3 and more are in its slots.
    let mut world = World::all(3, SMALL);
    world.links(|flight| match flight.kind() {
        Kind::Frames if flight.to == r(2) => Fate::Lose,
        Kind::FetchState => Fate::Hold,
        _ => Fate::Pass,
    });
    for number in 1..=6 {
        let frame = world.frame(1, number, &format!("op{number}"));
        let to: &[u16] = if number == 2 { &[0, 1] } else { &[0, 1, 2] };
        world.request(to, &frame);
    }
    world.pass(600_000);
    assert_eq!((world.executed(2), world.stable(2)), (1, Seq(4)));
    assert!(!world.held.is_empty(), "it asks for the state at 4");
    world.open();
    world.run();
    assert_eq!(world.executed(2), 6, "4 by transfer, 5 and 6 from its slots");
    for replica in 0..3 {
        assert!(world.accused_nobody(replica), "COMMIT(5) follows CHECKPOINT(4)");
    }
    let order: Vec<_> = world.minbft(2).peer(r(2)).log.iter().map(|l| l.message.body.kind()).collect();
    let own_checkpoint = order.iter().position(|kind| *kind == "CHECKPOINT");
    assert!(own_checkpoint < order.iter().rposition(|kind| *kind == "COMMIT"));
}
