//! State transfer between any two states, with an adversary at the wire.

use super::support::{SMALL, Script, checkpoint, frame, run, scan, transfer};
use crate::Executor;
use bytes::Bytes;
use proptest::prelude::*;
use troth_core::{Execution, Installing};
use troth_types::{Digest, Limits, Seq, StateFetch, StatePiece};

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
    assert!(all > 4000 * 90 && little < all / 20, "{little} of {all} bytes");
}

#[test]
fn large_values_held_already_do_not_move() {
    let mut server = with(&[(1, 9000), (2, 10)]);
    let mut replica = server.clone();
    run(&mut server, &[frame(2, 1, &["set key2 other"])]);
    let goal = checkpoint(&mut server);
    let moved = transfer(&server, &mut replica, goal, nothing);
    assert_eq!(replica.digest_now(), goal.1);
    assert!(moved < 9000, "{moved}");
}

#[test]
fn a_replica_that_holds_the_target_fetches_the_head_only() {
    let mut server = with(&[(1, 9000), (2, 10)]);
    let goal = checkpoint(&mut server);
    let mut replica = server.clone();
    let fetches = replica.begin_install(goal.0, goal.1);
    let [fetch] = &fetches[..] else { panic!("one fetch") };
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
    let piece = server.serve(&old[0]).expect("kept");
    assert_eq!(replica.on_piece(&piece), Installing::NotWanted);
    let false_name = StatePiece { seq: second.0, digest: second.1, ..piece };
    assert_eq!(replica.on_piece(&false_name), Installing::Rejected);
    let unknown = StateFetch { digest: Digest([3; 32]), ..new[0].clone() };
    assert_eq!(server.serve(&unknown), None);
    transfer(&server, &mut replica, second, nothing);
    assert_eq!(replica.digest_now(), second.1);
}
