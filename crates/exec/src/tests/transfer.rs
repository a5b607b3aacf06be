//! State transfer between any two states, with an adversary at the wire.

use super::support::{SMALL, Script, checkpoint, frame, run, scan, transfer, transfer_from};
use crate::delta::{Held, difference};
use crate::place::Question;
use crate::{Executor, StoreId};
use bytes::Bytes;
use core::num::NonZeroU32;
use proptest::prelude::*;
use troth_core::{Execution, Installing};
use troth_types::{Digest, Limits, Seq, StateFetch, StatePiece, Wire, put_bytes};

const ROOMY: Limits = Limits { client_window: 4096, result_bytes: 10_000, client_bytes: 100_000, ..SMALL };

fn with(sets: &[(u16, u16)]) -> Executor<Script> {
    let mut executor = Executor::new(Script::default(), ROOMY);
    for (index, chunk) in sets.chunks(8).enumerate() {
        let operations: Vec<String> = chunk
            .iter()
            .map(|(key, length)| format!("set key{key} {}", "v".repeat(usize::from(*length) + 1)))
            .collect();
        let operations: Vec<&str> = operations.iter().map(String::as_str).collect();
        run(&mut executor, &[frame(1, index as u64 + 1, &operations)]);
    }
    executor
}

fn sets() -> impl Strategy<Value = Vec<(u16, u16)>> {
    proptest::collection::vec((0_u16..400, prop_oneof![4 => 0_u16..40, 1 => 500_u16..2000]), 0..500)
}

fn nothing(_: &StatePiece) -> Option<StatePiece> {
    None
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn any_state_reaches_any_other(local in sets(), target in sets(), more in any::<u64>()) {
        let mut server = with(&target);
        let goal = checkpoint(&mut server);
        let mut replica = with(&local);
        let mut noise = more;
        let tamper = |piece: &StatePiece| {
            noise = noise.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let mut content = piece.content.to_vec();
            match noise >> 60 {
                0 => return None,
                // The answer to a probe is empty.
                _ if content.is_empty() => content.push(noise as u8),
                1 => content.truncate((noise >> 20) as usize % content.len()),
                2 => content.push(noise as u8),
                _ => {
                    let at = (noise >> 20) as usize % content.len();
                    content[at] ^= 1 << ((noise >> 10) % 8);
                }
            }
            // A cut at the boundary of an item is a good piece of fewer items.
            let cut = noise >> 60 == 1 && !piece.path.is_empty();
            (!cut).then(|| StatePiece { content: Bytes::from(content), ..piece.clone() })
        };
        transfer(&server, &mut replica, goal, tamper);
        prop_assert_eq!(replica.digest_now(), goal.1);
        prop_assert_eq!(replica.executed(), goal.0);
        prop_assert_eq!(replica.snapshot(goal.0), server.snapshot(goal.0), "equal and kept");
        prop_assert_eq!(scan(&replica), scan(&server), "the ordered index is rebuilt");
        // Both go on alike.
        let next = [frame(3, 1, &["set key1 x", "del key2", "add n 1"])];
        prop_assert_eq!(run(&mut replica, &next), run(&mut server, &next));
        prop_assert_eq!(replica.digest_now(), server.digest_now());
    }

    #[test]
    fn garbage_never_panics(path in proptest::collection::vec(any::<u8>(), 0..60),
                            content in proptest::collection::vec(any::<u8>(), 0..200)) {
        let mut server = with(&[(1, 5), (2, 900)]);
        let (seq, digest) = checkpoint(&mut server);
        let path = Bytes::from(path);
        let _ = server.serve(&StateFetch { seq, digest, path: path.clone() });
        let mut replica = Executor::new(Script::default(), ROOMY);
        replica.begin_install(seq, digest);
        let content = Bytes::from(content);
        let piece = StatePiece { seq, digest, path, content };
        prop_assert!(matches!(replica.on_piece(&piece), Installing::Rejected | Installing::NotWanted));
        prop_assert_eq!(replica.executed(), Seq(0), "it stands where it stood");
    }
}

#[test]
fn only_what_differs_moves() {
    let everything: Vec<(u16, u16)> = (0..4000).map(|key| (key, 90)).collect();
    let mut server = with(&everything);
    let mut replica = server.clone();
    run(&mut server, &[frame(2, 1, &["set key17 x", "set key18 y"])]);
    let goal = checkpoint(&mut server);
    let little = transfer(&server, &mut replica, goal, nothing);
    assert_eq!(replica.digest_now(), goal.1);
    let mut fresh = Executor::new(Script::default(), ROOMY);
    let all = transfer(&server, &mut fresh, goal, nothing);
    assert_eq!(fresh.digest_now(), goal.1);
    assert!(all > 4000 * 90 && little < all / 100, "{little} of {all} bytes");
}

/// As a release before this one: it answers no question of what differs.
fn of_old(server: &Executor<Script>, fetch: &StateFetch) -> Option<StatePiece> {
    if fetch.path.first() == Some(&u8::MAX) { None } else { server.serve(fetch) }
}

#[test]
fn one_that_answers_no_questions_is_asked_for_whole_nodes() {
    let everything: Vec<(u16, u16)> = (0..4000).map(|key| (key, 90)).collect();
    let mut server = with(&everything);
    let mut replica = server.clone();
    let changed: Vec<String> = (0..60).map(|key| format!("set key{} x", key * 60)).collect();
    let changed: Vec<&str> = changed.iter().map(String::as_str).collect();
    run(&mut server, &[frame(2, 1, &changed)]);
    let goal = checkpoint(&mut server);
    let mut again = replica.clone();
    let whole = transfer_from(|fetch| of_old(&server, fetch), &mut replica, goal, nothing);
    assert_eq!(replica.digest_now(), goal.1);
    // One that answers at first and not any more: another replica's turn has come.
    let mut answers = 3;
    let mixed = |fetch: &StateFetch| {
        answers -= 1;
        if answers >= 0 { server.serve(fetch) } else { of_old(&server, fetch) }
    };
    transfer_from(mixed, &mut again, goal, nothing);
    assert_eq!(again.digest_now(), goal.1);
    let mut third = with(&everything);
    let differences = transfer(&server, &mut third, goal, nothing);
    assert_eq!(third.digest_now(), goal.1);
    assert!(differences < whole / 2, "{differences} against {whole}");
}

#[test]
fn fingerprints_that_are_alike_cost_a_whole_node_and_no_more() {
    // Everything the replica holds is said to stay as it is.
    let everything: Vec<(u16, u16)> = (0..400).map(|key| (key, 9)).collect();
    let mut server = with(&everything);
    let mut replica = server.clone();
    run(&mut server, &[frame(2, 1, &["set key7 x", "set key200 y"])]);
    let goal = checkpoint(&mut server);
    let mut old = replica.clone();
    let (seq, _) = checkpoint(&mut old);
    let old = old.snapshot(seq).expect("just made");
    let mut lies = 0;
    let serve = |fetch: &StateFetch| {
        let piece = server.serve(fetch)?;
        let question = Question::from_wire(&fetch.path).unwrap_or_default();
        let said = |held: &Held| *held != Held::Nothing;
        if question.places.is_empty() || !question.places.iter().all(|(_, held)| said(held)) {
            return Some(piece);
        }
        let mut content = Vec::new();
        for (place, held) in &question.places {
            put_bytes(&mut content, &difference(old.tree().root().at(&place.nibbles)?, held));
            lies += 1;
        }
        Some(StatePiece { content: Bytes::from(content), ..piece })
    };
    transfer_from(serve, &mut replica, goal, nothing);
    assert!(lies > 2, "{lies}");
    assert_eq!(replica.digest_now(), goal.1);
}

#[test]
fn large_values_held_already_do_not_move() {
    let mut server = with(&[(1, 9000), (2, 10)]);
    let mut replica = server.clone();
    run(&mut server, &[frame(2, 1, &["set key2 other"])]);
    let goal = checkpoint(&mut server);
    let store = StoreId(NonZeroU32::MIN);
    let (before, _) = checkpoint(&mut replica);
    replica.snapshot(before).expect("kept").put_in(store);
    let moved = transfer(&server, &mut replica, goal, nothing);
    assert_eq!(replica.digest_now(), goal.1);
    assert!(moved < 9000, "{moved}");
    let lacking: Vec<usize> = {
        let snapshot = replica.snapshot(goal.0).expect("kept");
        snapshot.parts_not_in(store).map(|(_, bytes)| bytes.len()).collect()
    };
    assert!(!lacking.is_empty() && lacking.iter().all(|bytes| *bytes < 9000), "the disk has it: {lacking:?}");
}

#[test]
fn nothing_is_held_of_a_piece_beside_what_was_verified() {
    let server = {
        let mut server = with(&(0..800).map(|key| (key, 40)).collect::<Vec<_>>());
        let goal = checkpoint(&mut server);
        (server, goal)
    };
    let (server, goal) = server;
    let mut replica = Executor::new(Script::default(), ROOMY);
    let mut wants = std::collections::VecDeque::from(replica.begin_install(goal.0, goal.1));
    let mut pieces = 0;
    while let Some(fetch) = wants.pop_front() {
        let Some(piece) = server.serve(&fetch) else { continue };
        let content = Bytes::copy_from_slice(&piece.content);
        let piece = StatePiece { content, ..piece };
        match replica.on_piece(&piece) {
            Installing::Wants(more) => wants.extend(more),
            Installing::Done => break,
            _ => continue,
        }
        pieces += 1;
        assert!(piece.content.is_unique(), "a slice of piece {pieces} is held");
    }
    assert!(pieces > 3, "{pieces}");
    assert_eq!(replica.digest_now(), goal.1);
}

#[test]
fn a_replica_that_holds_the_target_fetches_the_head_only() {
    let mut server = with(&[(1, 9000), (2, 10)]);
    let goal = checkpoint(&mut server);
    let mut replica = server.clone();
    let fetches = replica.begin_install(goal.0, goal.1);
    let [_, fetch] = &fetches[..] else { panic!("the head, and who answers what differs") };
    let piece = server.serve(fetch).expect("kept");
    assert_eq!(replica.on_piece(&piece), Installing::Done);
    assert_eq!(replica.on_piece(&piece), Installing::NotWanted, "the installation is over");
    assert!(replica.wanted().is_empty());
}

#[test]
fn a_target_that_moves_on_keeps_what_was_brought() {
    let everything: Vec<(u16, u16)> = (0..4000).map(|key| (key, 600)).collect();
    let mut server = with(&everything);
    let mut replica = Executor::new(Script::default(), ROOMY);
    let (mut moved, mut rounds) = (0, 0);
    let mut number = 0;
    let goal = loop {
        // The server makes a checkpoint and keeps no other, while the replica takes 30 pieces.
        number += 1;
        run(&mut server, &[frame(2, number, &[&format!("set key{number} x")])]);
        let goal = checkpoint(&mut server);
        server.stable(goal.0);
        let mut wants = replica.begin_install(goal.0, goal.1);
        let mut done = false;
        for _ in 0..30 {
            let Some(fetch) = wants.pop() else { break };
            let piece = server.serve(&fetch).expect("kept");
            moved += piece.content.len();
            match replica.on_piece(&piece) {
                Installing::Wants(more) => wants.extend(more),
                Installing::Done => done = true,
                other => panic!("a good piece was answered with {other:?}"),
            }
        }
        rounds += 1;
        assert!(rounds < 100, "the transfer never ends");
        if done {
            break goal;
        }
        let again = replica.begin_install(goal.0, goal.1);
        assert_eq!(again, replica.wanted(), "asking again for the same target loses nothing");
    };
    assert_eq!(replica.digest_now(), goal.1);
    assert_eq!(replica.digest_now(), server.digest_now());
    assert!(rounds > 3 && moved < 2 * 4000 * 600, "{rounds} rounds, {moved} bytes");
}

#[test]
fn pieces_of_another_target_are_not_taken() {
    let mut server = with(&[(1, 5)]);
    let first = checkpoint(&mut server);
    run(&mut server, &[frame(2, 1, &["set a b"])]);
    let second = checkpoint(&mut server);
    let mut replica = Executor::new(Script::default(), ROOMY);
    let old = replica.begin_install(first.0, first.1);
    let new = replica.begin_install(second.0, second.1);
    assert_eq!(replica.wanted(), new, "restarted");
    let piece = server.serve(old.last().expect("the head")).expect("kept");
    assert_eq!(replica.on_piece(&piece), Installing::NotWanted);
    let false_name = StatePiece { seq: second.0, digest: second.1, ..piece };
    assert_eq!(replica.on_piece(&false_name), Installing::Rejected);
    let unknown = StateFetch { digest: Digest([3; 32]), ..new[0].clone() };
    assert_eq!(server.serve(&unknown), None);
    transfer(&server, &mut replica, second, nothing);
    assert_eq!(replica.digest_now(), second.1);
}
