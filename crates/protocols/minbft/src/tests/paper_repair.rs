//! MINBFT-T6: a replica that computed something wrongly says so, falls silent and repairs itself.

use super::harness::{Fate, Kind, SMALL, World, covers, r};
use std::sync::atomic::Ordering;
use troth_core::{Agreement, Input, Note};
use troth_types::{ClientId, Read, Seq, ToClient};

/// All replicas order `count` requests, of which `victim` computes the `wrong`-th wrongly; the state that it
/// asks for then does not come.
fn diverged(n: u16, victim: u16, wrong: u64, count: u64) -> World {
    let mut world = World::all(n, SMALL);
    world.node_mut(victim).wrong_at.store(wrong, Ordering::Relaxed);
    world.links(|flight| if flight.kind() == Kind::FetchState { Fate::Hold } else { Fate::Pass });
    order(&mut world, 1..=count);
    world
}

fn order(world: &mut World, numbers: std::ops::RangeInclusive<u64>) {
    for number in numbers {
        let frame = world.frame(1, number, &format!("op{number}"));
        world.request_all(&frame);
        // Digests take a moment.
        world.pass(1_000);
    }
}

fn alarms(world: &World, replica: u16) -> Vec<Seq> {
    let diverged = world.node(replica).notes.iter().filter_map(|note| match note {
        Note::Diverged { seq } => Some(*seq),
        _ => None,
    });
    diverged.collect()
}

fn read(world: &mut World, at: u16) -> ToClient {
    let read =
        Read { client: ClientId(2), number: 1, nonce: None, least: None, operation: bytes::Bytes::new() };
    let before = world.node(at).answers.len();
    world.input(r(at), Input::Read(read));
    world.node(at).answers[before..].last().expect("a read is answered or refused").clone()
}

// MINBFT-T6 "A replica whose own checkpoint differs from a stable one says so and answers no client …"
#[test]
fn one_that_diverged_says_so_falls_silent_and_repairs_itself() {
    covers!("MINBFT-T6");
    for n in [3, 5] {
        for victim in [0, 1, n - 1] {
            for wrong in 1..=4 {
                let mut world = diverged(n, victim, wrong, 4);
                assert_eq!(alarms(&world, victim), [Seq(4)], "victim {victim}, wrong at {wrong}");
                assert_ne!(world.journal(victim), world.journal((victim + 1) % n));

                // Nothing of the wrong state is shown: not to what is new, what is repeated, nor what is read.
                let before = world.node(victim).answers.len();
                order(&mut world, 5..=6);
                let repeated = world.frame(1, 2, "op2");
                world.request_all(&repeated);
                world.repeat(victim, 1, 2);
                assert_eq!(world.node(victim).answers.len(), before, "victim {victim}, wrong at {wrong}");
                assert!(matches!(read(&mut world, victim), ToClient::Refusal(_)));
                assert_eq!(world.executed((victim + 1) % n), 6, "the others go on");
                assert!(world.minbft(victim).due_checkpoints.is_empty());

                world.open();
                world.pass(1_500_000);
                let expected: Vec<String> = (1..=6).map(|number| format!("op{number}")).collect();
                assert_eq!(world.journal(victim), expected, "victim {victim}, wrong at {wrong}");
                assert_eq!(alarms(&world, victim), [Seq(4)], "once");
                assert!(
                    world.node(victim).answers[before..].iter().any(|answer| matches!(
                        answer,
                        ToClient::Reply(reply) if reply.number == 6
                    )),
                    "it answers again"
                );
                assert!(matches!(read(&mut world, victim), ToClient::ReadReply(_)));
                world.repeat(victim, 1, 6);
                assert!(matches!(
                    world.node(victim).answers.last(),
                    Some(ToClient::Reply(reply)) if reply.number == 6
                ));

                // And it vouches for the next checkpoint as the others do.
                order(&mut world, 7..=9);
                world.pass(100_000);
                assert_eq!(world.minbft(victim).stable.0, Seq(8));
                assert_eq!(world.minbft(victim).own_digests.get(&Seq(8)), Some(&world.minbft(0).stable.1));
                assert!((0..n).all(|one| world.accused_nobody(one)));
            }
        }
    }
}

#[test]
fn what_became_stable_meanwhile_is_fetched_instead() {
    covers!("MINBFT-T6");
    for n in [3, 5] {
        let victim = n - 1;
        let mut world = diverged(n, victim, 3, 14);
        assert_eq!((alarms(&world, victim), world.minbft(victim).stable.0), (vec![Seq(4)], Seq(12)));
        assert_eq!(world.executed(victim), 4, "nothing was executed since");
        world.open();
        world.pass(1_500_000);
        assert_eq!(world.journal(victim), world.journal(0));
        assert_eq!(world.executed(victim), 14);
        assert!(matches!(
            world.node(victim).notes.iter().rev().find(|note| matches!(note, Note::TransferDone { .. })),
            Some(Note::TransferDone { seq: Seq(12) })
        ));
    }
}

#[test]
fn what_was_executed_since_is_executed_again() {
    covers!("MINBFT-T6");
    for n in [3, 5] {
        for wrong in 1..=7 {
            // The victim hears late of those who make the checkpoint stable.
            let (victim, late) = (n - 1, (n - 1) / 2);
            let mut world = World::all(n, SMALL);
            world.node_mut(victim).wrong_at.store(wrong, Ordering::Relaxed);
            world.links(move |flight| {
                if flight.to == r(victim) && flight.from >= r(late) { Fate::Hold } else { Fate::Pass }
            });
            order(&mut world, 1..=7);
            assert_eq!((world.executed(victim), alarms(&world, victim)), (7, vec![]), "n {n}");
            world.open();
            world.pass(3_000_000);
            assert_eq!(world.journal(victim).len(), 7, "n {n}, wrong at {wrong}");
            if wrong <= 4 {
                assert_eq!(alarms(&world, victim), [Seq(4)]);
                assert_eq!(world.journal(victim), world.journal(0), "n {n}, wrong at {wrong}");
            }
            order(&mut world, 8..=9);
            world.pass(1_000_000);
            assert_eq!(world.journal(victim), world.journal(0), "n {n}, wrong at {wrong}: found at 8");
        }
    }
}

#[test]
fn no_log_begins_at_a_wrong_state_and_a_restart_repairs_it_too() {
    covers!("MINBFT-T6");
    for wrong in 1..=4 {
        for count in 4..=10 {
            let mut world = diverged(3, 1, wrong, count);
            assert_eq!(alarms(&world, 1), [Seq(4)]);
            assert_eq!(world.node(1).disk.snapshot, None, "wrong at {wrong}, {count} ordered");
            world.crash(1);
            world.restart(1);
            world.open();
            world.pass(3_000_000);
            assert_eq!(world.journal(1), world.journal(0), "wrong at {wrong}, crash after {count}");
            assert!(world.minbft(1).may_answer_reads());
        }
    }
}

#[test]
fn one_that_is_wrong_again_after_its_repair_is_found_out_again() {
    let mut world = diverged(3, 2, 2, 4);
    world.open();
    world.pass(1_500_000);
    world.node_mut(2).wrong_at.store(7, Ordering::Relaxed);
    order(&mut world, 5..=8);
    world.pass(1_500_000);
    assert_eq!(alarms(&world, 2), [Seq(4), Seq(8)]);
    assert_eq!(world.journal(2), world.journal(0));
}

#[test]
fn a_view_change_during_the_repair_changes_nothing_about_it() {
    for n in [3, 5] {
        // The wrong one is the primary, and others ask for the next view.
        let mut world = diverged(n, 0, 2, 6);
        let others: Vec<u16> = (1..n).collect();
        for at in 0..n {
            world.wishes(&others, at, 1);
        }
        world.pass(1_000_000);
        assert!((1..n).all(|one| world.minbft(one).view.0 >= 1), "n {n}");
        order(&mut world, 7..=9);
        world.pass(1_000_000);
        world.open();
        world.pass(6_000_000);
        order(&mut world, 10..=12);
        world.pass(2_000_000);
        assert_eq!(world.journal(0), world.journal(1), "n {n}: {}", world.minbft(0).describe());
        assert_eq!(world.journal(0).len(), 12);
    }
}
