//! Schedules that the rules are there for, end to end.

use super::craft::batch;
use super::harness::{Fate, Kind, SMALL, World, covers, r};
use crate::Config;
use crate::message::{Body, Certified, Message, StableProof};
use std::sync::Arc;
use troth_trusted::CounterValue;
use troth_types::{Batch, Digest, Seq, View};

/// Everything that a puppet certified arrives, in order.
fn all_said(world: &mut World, by: u16, to: u16) {
    for message in world.said(by) {
        world.say(to, &message);
    }
}

fn prefixes_agree(world: &World, replicas: &[u16]) {
    for one in replicas {
        for other in replicas {
            let (one, other) = (world.journal(*one), world.journal(*other));
            let common = one.len().min(other.len());
            assert_eq!(one[..common], other[..common]);
        }
    }
}

/// F-M1 (f = 2, faulty {0, 3}): PREPARE(m) is shown to nobody, NEW-VIEW(1) carries m over and reaches
/// replica 1 alone, view 2 knows nothing of m. Nobody may have executed m.
#[test]
fn what_only_one_new_view_carries_is_not_executed() {
    let mut world = World::with(5, SMALL, &[1, 2, 4]);
    // Replica 1 is the primary of view 1; what it sends reaches nobody but the faulty.
    world.links(|flight| {
        let lonely = flight.from == r(1) && (flight.to == r(2) || flight.to == r(4));
        if lonely || (flight.to == r(1) && flight.from.0 != 0) { Fate::Lose } else { Fate::Pass }
    });
    let m = world.frame(1, 1, "m");
    world.request(&[1], &m);
    world.prepare(0, 1, &[&m]);
    world.wishes(&[0, 2, 3], 1, 1);
    world.view_change(0, 1);
    all_said(&mut world, 0, 1);
    // V1 = {0, 1, 3}: f+1 VIEW-CHANGEs, of which the faulty make two.
    world.view_change(3, 1);
    world.arrive(0, 1, troth_core::PeerMessage::Protocol(Message::Certified(world.said(3)[0].clone())));
    assert_eq!(
        world.new_view_of(1).expect("replica 1 begins view 1").new_view().expect("it").chosen.len(),
        1
    );
    let new_view = world.new_view_of(1).expect("NEW-VIEW");
    // The faulty accept it, one of them openly.
    let accept = world.accept(3, &new_view);
    world.arrive(0, 1, troth_core::PeerMessage::Protocol(Message::Certified(accept)));
    assert_eq!(world.executed(1), 0, "1 and 3 are two of three");
    // View 2: primary 2 with V2 = {2, 3', 4}; the faulty one shows nothing of view 1, for it hides
    // behind replica 0, which never moved there.
    world.wishes(&[0, 3, 4], 2, 2);
    world.wishes(&[0, 2, 3], 4, 2);
    let other = world.frame(2, 1, "other");
    world.request(&[2, 4], &other);
    let change = world.change_body(0, 2, StableProof::default());
    let change = world.certify_change(0, change);
    all_said(&mut world, 0, 2);
    assert_eq!(world.minbft(2).peer(r(0)).gate.processed(), change.value());
    world.pass(500_000);
    // m is only in 0's log, and its frame is with replica 1: 2 begins without 0 or fetches m. Whatever
    // it does, the correct agree.
    world.open();
    world.pass(8_000_000);
    prefixes_agree(&world, &[1, 2, 4]);
    for replica in [1, 2, 4] {
        assert!(world.journal(replica).contains(&"other".to_string()), "the group goes on at {replica}");
        assert!(world.condemned(replica, 1).is_none() && world.condemned(replica, 2).is_none());
    }
}

/// The same with the acceptances missing: two correct replicas, different views, one order.
#[test]
fn a_new_view_without_a_quorum_binds_nobody() {
    let mut world = World::with(5, SMALL, &[1, 2, 4]);
    let m = world.frame(1, 1, "m");
    world.request(&[1, 2, 4], &m);
    world.prepare(0, 1, &[&m]);
    world.links(|flight| if flight.kind() == Kind::AcceptNewView { Fate::Lose } else { Fate::Pass });
    for at in [1, 2, 4] {
        world.wishes(&[0, 3], at, 1);
    }
    world.wishes(&[4], 1, 1);
    world.run();
    world.pass(1_200_000);
    for replica in [1, 2, 4] {
        assert_eq!(world.executed(replica), 0, "no quorum of acceptances has arrived at {replica}");
    }
    world.open();
    world.pass(10_000_000);
    for replica in [1, 2, 4] {
        assert_eq!(world.journal(replica), ["m"]);
    }
}

#[test]
fn a_view_change_keeps_pipelined_commitments() {
    for n in [3, 5] {
        let mut world = World::all(n, SMALL);
        // Four batches are under way; all commit to them, and no COMMIT arrives.
        world.links(|flight| if flight.kind() == Kind::Commit { Fate::Lose } else { Fate::Pass });
        for number in 1..=8 {
            let frame = world.frame(1, number, &format!("op{number}"));
            world.request_all(&frame);
        }
        assert_eq!(world.commits(1), [1, 2, 3, 4]);
        assert!(n == 3 || world.executed(1) == 0, "of three, PREPARE and the own COMMIT are a quorum");
        world.crash(0);
        world.open();
        world.links(
            |flight| if flight.certified().is_some_and(|m| m.from == r(0)) { Fate::Lose } else { Fate::Pass },
        );
        world.wishes(&(1..=n / 2 + 1).collect::<Vec<_>>(), 1, 1);
        world.pass(3_000_000);
        for replica in 1..n {
            let all: Vec<String> = (1..=8).map(|number| format!("op{number}")).collect();
            assert_eq!(world.journal(replica), all, "replica {replica} of {n}");
            assert_eq!(world.minbft(replica).view, View(1));
        }
    }
}

#[test]
fn two_view_changes_in_a_row() {
    for n in [3, 5] {
        let mut world = World::all(n, SMALL);
        for number in 1..=3 {
            let frame = world.frame(1, number, &format!("op{number}"));
            world.request_all(&frame);
        }
        // The primary of view 1 hears everything and nobody hears it.
        world.links(|flight| if flight.from == r(1) { Fate::Lose } else { Fate::Pass });
        let others: Vec<u16> = (0..n).filter(|other| *other != 1).collect();
        for at in &others {
            world.wishes(&others, *at, 1);
        }
        let frame = world.frame(1, 4, "op4");
        world.request_all(&frame);
        world.pass(6_000_000);
        for replica in &others {
            assert_eq!(world.journal(*replica), ["op1", "op2", "op3", "op4"]);
            assert_eq!(world.minbft(*replica).view, View(2));
        }
        world.open();
        world.pass(3_000_000);
        assert_eq!(world.journal(1).len(), 4);
        for replica in 0..n {
            assert!(world.accused_nobody(replica));
        }
    }
}

#[test]
fn a_primary_isolated_right_after_its_new_view() {
    for n in [3, 5] {
        let mut world = World::all(n, SMALL);
        let frame = world.frame(1, 1, "a");
        world.request_all(&frame);
        let backups: Vec<u16> = (1..n).collect();
        // The NEW-VIEW reaches one backup only, and then its sender is cut off.
        world.links(|flight| {
            let cut = flight.from == r(1) || flight.to == r(1);
            match flight.kind() {
                Kind::NewView if flight.from == r(1) && flight.to == r(2) => Fate::Pass,
                Kind::ViewChange | Kind::Request => Fate::Pass,
                _ if cut => Fate::Lose,
                _ => Fate::Pass,
            }
        });
        for at in &backups {
            world.wishes(&backups, *at, 1);
        }
        world.run();
        assert!(world.works_in(1, 1) && world.works_in(2, 1));
        world.links(|flight| if flight.from == r(1) || flight.to == r(1) { Fate::Lose } else { Fate::Pass });
        let frame = world.frame(1, 2, "b");
        world.request_all(&frame);
        world.pass(8_000_000);
        for replica in (0..n).filter(|replica| *replica != 1) {
            assert_eq!(world.journal(replica), ["a", "b"], "replica {replica} of {n}");
        }
        world.open();
        world.pass(4_000_000);
        assert_eq!(world.journal(1), ["a", "b"]);
        prefixes_agree(&world, &(0..n).collect::<Vec<_>>());
    }
}

/// D10: a faulty primary and its own log name a frame that nobody has; a new view must come about.
#[test]
fn a_frame_that_nobody_has_stops_no_view_change() {
    for n in [3, 5] {
        let correct: Vec<u16> = (1..n).collect();
        let mut world = World::with(n, SMALL, &correct);
        let nobodys = world.frame(1, 1, "nobody has it");
        let prepare = world.prepare(0, 1, &[&nobodys]);
        for to in &correct {
            world.say(*to, &prepare);
        }
        let frame = world.frame(2, 1, "a");
        world.request(&correct, &frame);
        world.pass(1_001_000);
        let change = world.view_change(0, 1);
        for to in &correct {
            world.say(*to, &change);
        }
        world.pass(4_000_000);
        for replica in &correct {
            assert_eq!(world.journal(*replica), ["a"], "replica {replica} of {n}");
            assert_eq!(world.minbft(*replica).view, View(1), "at the first attempt");
        }
    }
}

/// D11: a VIEW-CHANGE that shows an older stable checkpoint than the one its view started from.
#[test]
fn an_old_certificate_loses_nothing() {
    // Replica 2 of three is correct. View 1 starts from 4 with one batch after it, on replica 1's word.
    let mut world = World::with(3, SMALL, &[2]);
    let frames = world.frames_held(5, &[2]);
    let prepares = world.ordered_by_puppet(&[2], &frames);
    assert_eq!(world.executed(2), 5);
    let digest = world.minbft(2).own_digests[&Seq(4)];
    let vote = world.checkpoint(0, 4, digest);
    world.say(2, &vote);
    assert_eq!(world.stable(2), Seq(4));
    for prepare in &prepares {
        let commit = world.commit(1, prepare);
        world.say(2, &commit);
    }
    let own = world.sent_by(2, Kind::Checkpoint)[0].clone();
    let stable = StableProof { votes: vec![vote, own] };
    world.wishes(&[0, 1], 2, 1);
    let body = world.change_body(1, 1, stable);
    let change = world.certify_change(1, body);
    let two = world.sent_by(2, Kind::ViewChange)[0].clone();
    let new_view = world.new_view(1, &[&change, &two], &[]);
    assert_eq!(new_view.new_view().expect("NEW-VIEW").base, (Seq(4), digest));
    all_said(&mut world, 1, 2);
    assert!(world.works_in(2, 1));
    assert_eq!(world.minbft(2).started.end(), Seq(5));
    // View 2: replica 1 shows genesis as its stable checkpoint, with its whole log.
    world.wishes(&[0, 1], 2, 2);
    let body = world.change_body(1, 2, StableProof::default());
    let change = world.certify_change(1, body);
    world.say(2, &change);
    let mine = world.new_view_of(2).expect("replica 2 begins view 2");
    let new_view = mine.new_view().expect("NEW-VIEW");
    assert!(new_view.base.0 >= Seq(4));
    let end = new_view.base.0.0 + new_view.chosen.len() as u64;
    assert_eq!(end, 5, "what view 1 carried over is carried over");
    // As if both had only the old certificate, the base of view 1 still counts.
    let shown =
        crate::evidence::evidence(&world.group, &world.configuration, &world.config, &change).expect("valid");
    let started = world.said(1).iter().find_map(|m| m.new_view().cloned()).expect("NEW-VIEW(1)");
    let choice = crate::choose::choose(&world.config, &[shown], |_| Some(&started)).expect("known");
    assert_eq!((choice.base.0, choice.chosen.len()), (Seq(4), 1));
}

#[test]
fn every_replica_restarts_in_turn() {
    for n in [3, 5] {
        let mut world = World::all(n, SMALL);
        let mut number = 0;
        for round in 0..3 {
            for replica in 0..n {
                world.crash(replica);
                for _ in 0..3 {
                    number += 1;
                    let frame = world.frame(1, number, &format!("op{number}"));
                    world.request_all(&frame);
                }
                world.pass(2_500_000);
                world.restart(replica);
                world.pass(2_500_000);
                for other in 0..n {
                    let length = world.journal(other).len() as u64;
                    assert_eq!(length, number, "{other} after {replica} restarted, round {round}, n {n}");
                    assert!(world.accused_nobody(other), "{other} accuses");
                }
            }
        }
        prefixes_agree(&world, &(0..n).collect::<Vec<_>>());
    }
}

#[test]
fn all_replicas_restart_at_once() {
    for n in [3, 5] {
        for count in [1, 3, 6, 11] {
            let mut world = World::all(n, SMALL);
            for number in 1..=count {
                let frame = world.frame(1, number, &format!("op{number}"));
                world.request_all(&frame);
            }
            for _ in 0..2 {
                for replica in 0..n {
                    world.crash(replica);
                }
                for replica in 0..n {
                    world.restart(replica);
                }
                world.pass(3_000_000);
                for replica in 0..n {
                    assert_eq!(world.journal(replica).len() as u64, count, "{replica} of {n} after {count}");
                    assert!(world.accused_nobody(replica));
                }
            }
            let frame = world.frame(1, count + 1, "after");
            world.request_all(&frame);
            world.pass(500_000);
            assert_eq!(world.journal(0).last().map(String::as_str), Some("after"));
        }
    }
}

#[test]
fn a_crash_between_any_two_commands_contradicts_nothing() {
    for victim in 0..3 {
        for at in 0..60 {
            let mut world = World::all(3, SMALL);
            world.node_mut(victim).crash_in = Some(at);
            for number in 1..=6 {
                let frame = world.frame(1, number, &format!("op{number}"));
                world.request_all(&frame);
            }
            world.wishes(&[1, 2], 1, 1);
            world.pass(3_000_000);
            if world.node(victim).host.is_some() {
                world.crash(victim);
            }
            world.restart(victim);
            world.pass(6_000_000);
            let frame = world.frame(1, 7, "op7");
            world.request_all(&frame);
            world.pass(6_000_000);
            for replica in 0..3 {
                assert_eq!(world.journal(replica).len(), 7, "{replica}; {victim} crashed after {at}");
                assert!(world.accused_nobody(replica), "{replica} accuses; {victim} crashed after {at}");
            }
        }
    }
}

#[test]
fn a_frame_known_to_one_backup_is_forwarded() {
    for n in [3, 5] {
        let mut world = World::all(n, SMALL);
        let frame = world.frame(1, 1, "a");
        world.request(&[n - 1], &frame);
        // The other backups ask for the frame when they next compare notes.
        world.pass(SMALL.request_timeout / 2 + 3 * SMALL.status_interval);
        for replica in 0..n {
            assert_eq!(world.journal(replica), ["a"]);
            assert_eq!((world.minbft(replica).view, world.wanted(replica)), (View(0), 0));
        }
    }
}

#[test]
fn a_deadline_passes_under_a_faulty_primary() {
    let mut world = World::all(3, SMALL);
    let due = world.wall().0 + 300_000;
    let frame = world.frame(1, 1, &format!("at:{due}"));
    world.request_all(&frame);
    world.crash(0);
    world.pass(4_000_000);
    for replica in [1, 2] {
        assert_eq!(world.journal(replica).last().map(String::as_str), Some("tick"));
        assert_eq!(world.minbft(replica).view, View(1), "the deadline is work that the primary owes");
    }
}

/// A state transfer, then the messages of those it was taken from count.
#[test]
fn a_transferred_replica_makes_the_quorum() {
    let config = Config { request_timeout: 1 << 40, ..SMALL };
    let mut world = World::all(5, config);
    world.links(|flight| if flight.to.0 >= 3 { Fate::Lose } else { Fate::Pass });
    for number in 1..=17 {
        let frame = world.frame(1, number, "op");
        world.request(&[0, 1, 2], &frame);
    }
    world.open();
    world.pass(2_000_000);
    for gone in [1, 2] {
        world.crash(gone);
    }
    for number in 18..=40 {
        let frame = world.frame(1, number, "op");
        world.request(&[0, 3, 4], &frame);
    }
    world.pass(2_000_000);
    for replica in [0, 3, 4] {
        assert_eq!(world.executed(replica), 40);
        assert_eq!(world.stable(replica), Seq(40));
    }
}

/// A transfer to n, and a crash before the own CHECKPOINT(n): the group still needs this replica.
#[test]
fn a_crash_after_a_transfer_does_not_silence_a_replica() {
    let config = Config { request_timeout: 1 << 40, ..SMALL };
    for left in 0..40 {
        let mut world = World::all(3, config);
        world.links(|flight| if flight.to == r(2) { Fate::Lose } else { Fate::Pass });
        for number in 1..=16 {
            let frame = world.frame(1, number, "op");
            world.request(&[0, 1], &frame);
        }
        world.open();
        world.node_mut(2).crash_in = Some(left);
        world.pass(1_500_000);
        if world.node(2).host.is_some() {
            world.crash(2);
        }
        world.restart(2);
        world.pass(1_500_000);
        world.crash(1);
        for number in 17..=22 {
            let frame = world.frame(1, number, "op");
            world.request(&[0, 2], &frame);
        }
        world.pass(1_500_000);
        assert_eq!((world.executed(0), world.executed(2)), (22, 22), "crashed after {left}");
        assert!(world.accused_nobody(0) && world.accused_nobody(2), "crashed after {left}");
    }
}

/// The anchor of a log may not be a number that a faulty replica made up.
#[test]
fn a_number_beyond_everything_hides_nothing() {
    let mut world = World::with(5, SMALL, &[1]);
    let frames = world.frames_held(1, &[1]);
    let prepare: Arc<Certified> = world.prepare(0, 1, &[&frames[0]]);
    world.commit(2, &prepare);
    for seq in [u64::MAX, u64::MAX - SMALL.window, u64::MAX - 1] {
        world.checkpoint(2, seq, Digest::ZERO);
    }
    let mut body = world.change_body(2, 1, StableProof::default());
    body.log.drain(..1);
    let change = world.certify_change(2, body);
    assert!(crate::evidence::evidence(&world.group, &world.configuration, &world.config, &change).is_err());
    all_said(&mut world, 2, 1);
    assert!(world.minbft(1).peer(r(2)).gate.processed() < CounterValue::new(1, 0));
    assert!(!world.minbft(1).changes.contains_key(&r(2)));
    let far = Body::Prepare(crate::Prepare { view: View(0), seq: Seq(u64::MAX), batch: Batch::default() });
    let far = world.certify(0, far);
    world.say(1, &prepare);
    world.say(1, &far);
    assert!(world.minbft(1).slots.len() <= 1);
    let _ = batch(world.wall(), &[]);
}

/// The time of day steps back while a NEW-VIEW is with the component, so that it waits in its own
/// sender's order; meanwhile the log begins a fresh segment, and the replica crashes.
#[test]
fn an_own_message_that_waits_is_in_every_segment() {
    let mut world = World::with(3, SMALL, &[1]);
    let frames = world.frames_held(5, &[1]);
    world.ordered_by_puppet(&[1], &frames[..4]);
    assert_eq!(world.executed(1), 4);
    world.wishes(&[0, 2], 1, 1);
    let edge = super::craft::batch(world.wall().after(SMALL.clock_bound), &[&frames[4]]);
    let prepare = world.prepare_batch(0, 5, edge);
    world.say(1, &prepare);
    let change = world.view_change(0, 1);
    world.node_mut(1).stalled = true;
    world.say(1, &change);
    assert!(world.minbft(1).proposed_view);
    world.node_mut(1).skew = -1_000_000;
    world.unstall(1);
    assert!(!world.minbft(1).active(), "its own NEW-VIEW waits for the clock");
    let vote = world.checkpoint(2, 4, world.minbft(1).own_digests[&Seq(4)]);
    world.say(1, &vote);
    assert_eq!(world.stable(1), Seq(4));
    world.pass(SMALL.status_interval);
    world.crash(1);
    world.restart(1);
    world.node_mut(1).skew = 0;
    world.pass(SMALL.status_interval);
    assert!(world.works_in(1, 1));
}

/// A primary that orders every request at once and lets no time pass.
#[test]
fn a_deadline_passes_under_a_primary_that_orders_everything_else() {
    covers!("MINBFT-V19");
    let mut world = World::with(3, SMALL, &[1, 2]);
    let due = world.wall().0 + 300_000;
    for number in 1..40 {
        let operation = if number == 1 { format!("at:{due}") } else { "op".to_owned() };
        let frame = world.frame(1, number, &operation);
        world.request(&[1, 2], &frame);
        if world.minbft(1).view == View(0) {
            // Each batch stands at the time of the first one.
            let batch = troth_types::Batch { time: troth_types::Time(1), frames: vec![frame.digest()] };
            let prepare =
                world.certify(0, Body::Prepare(crate::Prepare { view: View(0), seq: Seq(number), batch }));
            world.say(1, &prepare);
            world.say(2, &prepare);
        }
        world.pass(100_000);
        if number.is_multiple_of(4) && world.minbft(1).view == View(0) {
            let digest = world.state_digest(1);
            let checkpoint = world.checkpoint(0, number, digest);
            world.say(1, &checkpoint);
            world.say(2, &checkpoint);
        }
    }
    for replica in [1, 2] {
        assert!(world.journal(replica).contains(&"tick".to_owned()), "{:?}", world.journal(replica));
        assert_eq!(world.minbft(replica).view, View(1), "suspected though no request waited");
    }
}
