//! What is kept of targets that a transfer gave up: enough to end, and no more than a target has.

use super::support::{SMALL, Script, checkpoint, frame, run};
use crate::install::{Install, Progress};
use crate::map::{Body, Node, Page};
use crate::salvage::{Fate, Salvage};
use crate::{Executor, Tree};
use std::sync::Arc;
use troth_core::Execution;
use troth_types::{Digest, Limits, Seq};

const KEYS: u64 = 600;
const LENGTH: usize = 3000;

/// Writes all keys but so many of them anew.
fn rewrite(server: &mut Executor<Script>, round: u64, but: u64) -> (Seq, Digest) {
    let keys: Vec<u64> = (but..KEYS).collect();
    for (index, chunk) in (0..).zip(keys.chunks(16)) {
        let filler = "v".repeat(LENGTH);
        let operations: Vec<String> =
            chunk.iter().map(|key| format!("set key{key} {round}{filler}")).collect();
        let operations: Vec<&str> = operations.iter().map(String::as_str).collect();
        run(server, &[frame(1, round * KEYS + index + 1, &operations)]);
    }
    let goal = checkpoint(server);
    server.stable(goal.0);
    goal
}

/// Takes so many pieces of a target; how many there were.
fn take(server: &Executor<Script>, install: &mut Install, most: usize) -> (usize, bool) {
    let mut wants = install.wanted();
    let mut taken = 0;
    while let Some(fetch) = wants.pop() {
        if taken == most {
            break;
        }
        taken += 1;
        match install.on_piece(&server.serve(&fetch).expect("kept")) {
            Progress::Wants(more) => wants.extend(more),
            Progress::Complete(..) => return (taken, true),
            other => panic!("a good piece was answered with {other:?}"),
        }
    }
    (taken, false)
}

#[test]
fn a_target_that_is_written_anew_each_time_leaves_no_more_than_two_of_it() {
    let limits = Limits { client_window: 4096, ..SMALL };
    let mut server = Executor::new(Script::default(), limits);
    let goal = rewrite(&mut server, 1, 0);
    let mut whole = Install::new(goal.0, goal.1, Tree::empty(), None);
    let (pieces, true) = take(&server, &mut whole, usize::MAX) else { panic!("all is served") };
    let mut install = Install::new(goal.0, goal.1, Tree::empty(), None);
    let mut most = 0;
    for round in 2..30 {
        let (_, complete) = take(&server, &mut install, pieces - 2);
        assert!(!complete, "round {round}");
        let goal = rewrite(&mut server, round, 0);
        install = Install::new(goal.0, goal.1, Tree::empty(), Some(install));
        most = most.max(install.salvaged());
    }
    let state = KEYS as usize * LENGTH;
    assert!(most > state / 4 && most < 5 * state / 2, "{most} bytes of {state}");
}

#[test]
fn a_transfer_that_is_given_up_early_each_time_ends_where_most_stays_as_it_is() {
    let limits = Limits { client_window: 4096, ..SMALL };
    let mut server = Executor::new(Script::default(), limits);
    let goal = rewrite(&mut server, 1, 0);
    let mut whole = Install::new(goal.0, goal.1, Tree::empty(), None);
    let (pieces, true) = take(&server, &mut whole, usize::MAX) else { panic!("all is served") };
    let mut install = Install::new(goal.0, goal.1, Tree::empty(), None);
    let mut rounds = 1;
    while !take(&server, &mut install, pieces / 2).1 {
        rounds += 1;
        assert!(rounds < 20, "the transfer never ends");
        let goal = rewrite(&mut server, rounds, KEYS - 8);
        install = Install::new(goal.0, goal.1, Tree::empty(), Some(install));
        assert!(install.salvaged() < 2 * KEYS as usize * LENGTH);
    }
    assert!(rounds > 2, "{rounds} of {pieces} pieces");
}

fn page(tag: u8) -> Arc<Node> {
    Arc::new(Node::verified(Body::Page(Page::empty()), Digest([tag; 32])))
}

#[test]
fn what_no_target_came_to_is_kept_up_to_what_one_had_and_next_first() {
    let fetched = |tags: core::ops::Range<u8>| tags.map(|tag| (vec![tag], page(tag))).collect::<Vec<_>>();
    let first = Salvage::default().after(fetched(0..8), |_, _| Fate::Unknown);
    let one = first.bytes() / 8;
    // Nothing of the next is known.
    let second = first.after(Vec::new(), |_, _| Fate::Unknown);
    assert_eq!(second.bytes(), 8 * one, "all of it may be wanted");
    // What is used, and what is obsolete.
    let third = second.after(fetched(20..24), |place, _| match place[0] {
        0 => Fate::Used,
        1..4 => Fate::Obsolete,
        _ => Fate::Unknown,
    });
    assert_eq!(third.bytes(), (1 + 4 + 4) * one);
    assert!(third.get(&[1], &Digest([1; 32])).is_none() && third.get(&[4], &Digest([4; 32])).is_some());
    assert!(third.get(&[4], &Digest([5; 32])).is_none(), "another node at its place");
    // What was come to is elsewhere each time: the rest is never more than one target had.
    let mut moving = third;
    for round in 0..20 {
        let base = 100 + 5 * round;
        moving = moving.after(fetched(base..base + 5), |_, _| Fate::Unknown);
        assert!(moving.bytes() <= 2 * 8 * one, "round {round}");
    }
    assert!(moving.get(&[190], &Digest([190; 32])).is_some(), "what is walked first");
    assert!(moving.get(&[20], &Digest([20; 32])).is_none(), "what is walked last");
}
