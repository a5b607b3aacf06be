//! MINBFT-W and MINBFT-C: the window, checkpoints and garbage collection.

use super::harness::{Fate, Kind, SMALL, World, covers, r};
use crate::evidence::check_stable;
use crate::message::{Body, Message, StableProof};
use std::sync::Arc;
use troth_core::{Agreement, Cx, Effect};
use troth_types::{Digest, Seq};

/// Replica 2 of three executed 1 to 8 with puppet 0; what it says of 4 and 8 is stable.
fn eight_are_stable() -> (World, Vec<Arc<crate::Certified>>) {
    let mut world = World::with(3, SMALL, &[2]);
    let frames = world.frames_held(10, &[2]);
    let mut prepares = world.ordered_by_puppet(&[2], &frames[..8]);
    for own in world.sent_by(2, Kind::Checkpoint) {
        let Body::Checkpoint(checkpoint) = &own.body else { panic!("a CHECKPOINT") };
        let vote = world.checkpoint(0, checkpoint.seq.0, checkpoint.digest);
        world.say(2, &vote);
    }
    assert_eq!((world.executed(2), world.stable(2)), (8, Seq(8)));
    let ninth = world.prepare(0, 9, &[&frames[8]]);
    world.say(2, &ninth);
    prepares.push(ninth);
    (world, prepares)
}

// MINBFT-W1 (guard) "A commitment at [v|p|k] is to an n with p < n ≤ p + L; any other proves the sender faulty. …"
#[test]
fn a_commitment_beyond_the_senders_window_condemns_it() {
    covers!("MINBFT-W1");
    for checkpointed in [false, true] {
        let (mut world, prepares) = eight_are_stable();
        for prepare in &prepares {
            if checkpointed && prepare.prepare().expect("PREPARE").seq == Seq(5) {
                let own = world.checkpoint(1, 4, world.minbft(2).stable.1);
                world.say(2, &own);
            }
            assert!(world.condemned(2, 1).is_none());
            let commit = world.commit(1, prepare);
            world.say(2, &commit);
        }
        assert_eq!(world.condemned(2, 1).is_none(), checkpointed, "9 > 0 + 8, and 9 ≤ 4 + 8");
    }
}

/// Each stands in the log of its sender here until that one's next checkpoint: who has many numbers below one checkpoint
/// would fill everybody's memory.
#[test]
fn a_commitment_not_above_its_senders_own_checkpoint_condemns_it() {
    covers!("MINBFT-W1");
    for checkpointed in [4, 8] {
        let (mut world, prepares) = eight_are_stable();
        for prepare in &prepares[..4] {
            let commit = world.commit(1, prepare);
            world.say(2, &commit);
        }
        let own = world.checkpoint(1, checkpointed, world.minbft(2).stable.1);
        world.say(2, &own);
        let commit = world.commit(1, &prepares[4]);
        world.say(2, &commit);
        assert_eq!(world.condemned(2, 1).is_none(), checkpointed == 4, "5 > 4, and 5 ≤ 8");
    }
}

#[test]
fn a_proposal_beyond_the_primarys_window_condemns_it() {
    covers!("MINBFT-W1");
    let mut world = World::with(5, SMALL, &[4]);
    let frames = world.frames_held(9, &[4]);
    let prepares = world.ordered_by_puppet(&[4], &frames[..8]);
    for prepare in &prepares {
        let commit = world.commit(1, prepare);
        world.say(4, &commit);
    }
    assert_eq!(world.executed(4), 8);
    // Stable by 1, 2 and 4; the primary itself never shows a checkpoint.
    let digest = world.state_digest(4);
    for other in [1, 2] {
        let vote = world.checkpoint(other, 8, digest);
        world.say(4, &vote);
    }
    assert_eq!(world.stable(4), Seq(8));
    let ninth = world.prepare(0, 9, &[&frames[8]]);
    world.say(4, &ninth);
    assert!(world.condemned(4, 0).is_some());
}

// MINBFT-W2 (guard) "A replica itself commits to n only if n ≤ min(h, its own last CHECKPOINT) + L."
#[test]
fn its_own_checkpoint_bounds_its_commitments() {
    covers!("MINBFT-W2");
    // Replica 4 of five commits to 1 to 8 and executes none of them: it lacks a quorum.
    let mut world = World::with(5, SMALL, &[4]);
    let frames = world.frames_held(9, &[4]);
    let prepares = world.ordered_by_puppet(&[4], &frames[..8]);
    assert_eq!(world.commits(4), (1..=8).collect::<Vec<_>>());
    for other in [0, 1, 2] {
        let vote = world.checkpoint(other, 8, Digest([5; 32]));
        world.say(4, &vote);
    }
    assert_eq!((world.stable(4), world.executed(4)), (Seq(8), 0));
    let ninth = world.prepare(0, 9, &[&frames[8]]);
    world.say(4, &ninth);
    for other in [1, 2] {
        for prepare in prepares.iter().take(0).chain([&ninth]) {
            let commit = world.commit(other, prepare);
            world.say(4, &commit);
        }
    }
    assert_eq!(world.commits(4).len(), 8, "9 > min(8, 0) + 8");
    assert!(world.condemned(4, 0).is_none());
}

#[test]
fn what_is_stable_bounds_its_proposals() {
    covers!("MINBFT-W2");
    let config = crate::Config { pipeline: 100, ..SMALL };
    let mut world = World::with(3, config, &[0]);
    world.frames_one_by_one(20);
    assert_eq!(world.executed(0), 8);
    assert_eq!(world.minbft(0).own_checkpoint.seq, Seq(8), "its own is ahead");
    assert_eq!(world.sent_by(0, Kind::Prepare).len(), 8, "9 > min(0, 8) + 8");
    let vote = world.checkpoint(1, 4, world.minbft(0).own_digests[&Seq(4)]);
    world.say(0, &vote);
    let last = world.sent_by(0, Kind::Prepare).last().expect("some").prepare().expect("PREPARE").seq;
    assert_eq!((world.stable(0), last), (Seq(4), Seq(9)), "all that waited fits one batch");
}

// MINBFT-C1 "A checkpoint is taken after every batch whose number is a multiple of K, and after the
// last batch that a new view carried over."
#[test]
fn checkpoints_are_taken_every_k_and_at_the_start_of_a_view() {
    covers!("MINBFT-C1");
    let mut world = World::all(3, SMALL);
    for number in 1..=9 {
        let frame = world.frame(1, number, "op");
        world.request_all(&frame);
    }
    let seqs = |world: &World, replica| -> Vec<u64> {
        let sent = world.sent_by(replica, Kind::Checkpoint);
        sent.iter()
            .map(|message| match &message.body {
                Body::Checkpoint(checkpoint) => checkpoint.seq.0,
                _ => 0,
            })
            .collect()
    };
    assert_eq!(seqs(&world, 1), [4, 8]);
    world.wishes(&[1, 2], 1, 1);
    world.run();
    assert!(world.works_in(1, 1) && world.works_in(2, 1));
    assert_eq!(world.minbft(1).started.end(), Seq(9));
    for replica in [0, 1, 2] {
        assert_eq!(seqs(&world, replica), [4, 8, 8, 9], "replica {replica}, 8 once in each view");
    }
    assert_eq!(world.stable(1), Seq(9));
}

// MINBFT-C2 (guard) "A checkpoint is stable when f+1 distinct replicas have certified the same number
// and digest."
#[test]
fn stable_at_f_plus_1_equal_checkpoints() {
    covers!("MINBFT-C2");
    let mut world = World::with(5, SMALL, &[4]);
    let (digest, other) = (Digest([1; 32]), Digest([2; 32]));
    for (by, digest) in [(0, digest), (1, other), (2, digest)] {
        let vote = world.checkpoint(by, 4, digest);
        world.say(4, &vote);
        world.say(4, &vote);
        assert_eq!(world.stable(4), Seq(0), "no three are equal");
    }
    let vote = world.checkpoint(3, 4, digest);
    world.say(4, &vote);
    assert_eq!(world.minbft(4).stable, (Seq(4), digest));
}

#[test]
fn a_proof_counts_distinct_replicas_and_equal_votes() {
    covers!("MINBFT-C2");
    for (n, quorum) in [(3, 2), (5, 3)] {
        let mut world = World::with(n, SMALL, &[]);
        let group = world.group;
        let all: Vec<u16> = (0..n).collect();
        let good = world.stable_proof(&all[..quorum], 4, Digest([1; 32]));
        assert_eq!(check_stable(&group, &crate::Config::DEFAULT, &good), Ok((Seq(4), Digest([1; 32]))));
        let mut below = good.clone();
        below.votes.pop();
        assert!(check_stable(&group, &crate::Config::DEFAULT, &below).is_err());
        let mut repeated = below.clone();
        repeated.votes.push(repeated.votes[0].clone());
        assert!(
            check_stable(&group, &crate::Config::DEFAULT, &repeated).is_err(),
            "one replica, counted once"
        );
        let odd = world.checkpoint(n - 1, 4, Digest([2; 32]));
        let mut mixed = below.clone();
        mixed.votes.push(odd);
        assert!(check_stable(&group, &crate::Config::DEFAULT, &mixed).is_err());
        let later = world.checkpoint(n - 1, 8, Digest([1; 32]));
        let mut other_number = below.clone();
        other_number.votes.push(later);
        assert!(check_stable(&group, &crate::Config::DEFAULT, &other_number).is_err());
        assert_eq!(
            check_stable(&group, &crate::Config::DEFAULT, &StableProof::default()),
            Ok((Seq(0), Digest::ZERO))
        );
    }
}

#[test]
fn a_bad_proof_moves_nobody() {
    covers!("MINBFT-C2");
    let mut world = World::with(5, SMALL, &[4]);
    let proof = world.stable_proof(&[0, 1], 4, Digest([1; 32]));
    world.inject(0, 4, Message::Stable(Arc::new(proof.clone())));
    assert_eq!(world.stable(4), Seq(0));
    let mut enough = proof;
    enough.votes.push(world.checkpoint(2, 4, Digest([1; 32])));
    world.inject(0, 4, Message::Stable(Arc::new(enough)));
    assert_eq!(world.stable(4), Seq(4));
}

// MINBFT-C3 (guard) "CHECKPOINT(n) is certified in ascending order, and never between a VIEW-CHANGE and the
// acceptance of the NEW-VIEW; the last one is certified again in each new view, before any commitment, because
// it bounds them (W1)."
#[test]
fn checkpoints_ascend() {
    covers!("MINBFT-C3");
    for (seqs, good) in [([4, 8], true), ([4, 4], false), ([8, 4], false)] {
        let (mut world, _) = eight_are_stable();
        for seq in seqs {
            let vote = world.checkpoint(1, seq, Digest::ZERO);
            world.say(2, &vote);
        }
        assert_eq!(world.condemned(2, 1).is_none(), good, "{seqs:?}");
    }
}

#[test]
fn its_own_checkpoints_ascend_and_wait_for_the_view() {
    covers!("MINBFT-C3");
    let mut world = World::with(3, SMALL, &[2]);
    world.wishes(&[0, 1], 2, 1);
    assert!(!world.minbft(2).active());
    let certified = |minbft: &mut crate::MinBft, world: &World, seq: u64| -> usize {
        let (env, mut effects) = (world.env(r(2)), Vec::new());
        let mut cx = Cx::new(env.now, env.wall, r(2), &world.group, &mut effects);
        minbft.on_checkpoint(&mut cx, Seq(seq), Digest([3; 32]));
        effects
            .iter()
            .filter(|effect| matches!(effect, Effect::Certify { body: Body::Checkpoint(_), .. }))
            .count()
    };
    let mut changing = world.minbft(2).clone();
    assert_eq!(certified(&mut changing, &world, 4), 0, "not while the view changes");
    assert_eq!(changing.due_checkpoints.len(), 1);
    let mut active = World::with(3, SMALL, &[2]).minbft(2).clone();
    assert_eq!(certified(&mut active, &world, 4), 1);
    assert_eq!(certified(&mut active, &world, 4), 0, "once");
    assert_eq!(certified(&mut active, &world, 3), 0, "ascending");
    assert_eq!(certified(&mut active, &world, 8), 1);
    // What waited is certified once the view has begun.
    let changes = [world.view_change(0, 1), world.view_change(1, 1)];
    let new_view = world.new_view(1, &[&changes[0], &changes[1]], &[]);
    world.say(2, &changes[1]);
    world.say(2, &new_view);
    assert!(world.works_in(2, 1));
    let mut entered = world.minbft(2).clone();
    entered.due_checkpoints = changing.due_checkpoints.clone();
    assert_eq!(certified(&mut entered, &world, 3), 1);
}

// MINBFT-C4 "When n is stable, a replica drops of each sender's messages what precedes that sender's
// newest CHECKPOINT(p) with p + L ≤ n, and frames that no batch above n names."
#[test]
fn logs_are_cut_a_window_below_what_is_stable() {
    covers!("MINBFT-C4");
    for n in [3, 5] {
        let mut world = World::all(n, SMALL);
        for number in 1..=20 {
            let frame = world.frame(1, number, "op");
            world.request_all(&frame);
            let minbft = world.minbft(2);
            let stable = minbft.stable.0.0;
            for peer in &minbft.peers {
                let first = &peer.log.front().expect("something").message;
                let anchor = stable.saturating_sub(SMALL.window);
                match &first.body {
                    Body::Checkpoint(checkpoint) => assert_eq!(checkpoint.seq.0, anchor),
                    _ => assert!(anchor < 4, "nothing is kept that nobody needs"),
                }
            }
        }
        let minbft = world.minbft(2);
        assert_eq!(minbft.stable.0, Seq(20));
        assert!(minbft.frames.is_empty(), "no batch above 20 names a frame");
        assert!(minbft.checkpoint_votes.keys().all(|seq| *seq == Seq(20)));
        let frame = world.frame(1, 21, "op");
        world.request_all(&frame);
        assert_eq!(world.minbft(2).frames.len(), 1, "this one is named above 20");
    }
}

#[test]
fn what_may_matter_in_a_view_change_is_kept() {
    covers!("MINBFT-C4");
    // Pipelining: commitments to 9 and more precede CHECKPOINT(8); they must survive the cut at 8.
    let mut world = World::with(5, SMALL, &[4]);
    let frames = world.frames_held(8, &[4]);
    let prepares = world.ordered_by_puppet(&[4], &frames);
    assert_eq!(world.commits(4).len(), 8, "all committed to before CHECKPOINT(4)");
    for prepare in &prepares[..4] {
        let commit = world.commit(1, prepare);
        world.say(4, &commit);
    }
    let digest = world.state_digest(4);
    for other in [0, 1] {
        let vote = world.checkpoint(other, 4, digest);
        world.say(4, &vote);
    }
    assert_eq!(world.stable(4), Seq(4));
    let own: Vec<_> = world.minbft(4).peer(r(4)).log.iter().collect();
    assert_eq!(own.len(), 9, "eight COMMITs and a CHECKPOINT");
    assert!(world.minbft(4).frames.complete(&frames[4..].iter().map(|f| f.digest()).collect::<Vec<_>>()));
}

// MINBFT-C5 "A replica that is behind shortens its own log at each of its checkpoints that a stable one
// covers."
#[test]
fn one_that_is_always_behind_shortens_its_log_all_the_same() {
    covers!("MINBFT-C5");
    let (world, _) = eight_are_stable();
    let (env, group) = (world.env(r(2)), world.group);
    let mut minbft = world.minbft(2).clone();
    let mut taken = |seq| {
        let mut effects = Vec::new();
        let mut cx = Cx::new(env.now, env.wall, r(2), &group, &mut effects);
        minbft.on_checkpoint(&mut cx, Seq(seq), Digest([9; 32]));
        effects.iter().any(|effect| matches!(effect, Effect::Compact(at) if at.0 == seq))
    };
    assert!(taken(7), "8 is stable, and 7 will never be shown to be");
    assert!(!taken(9));
}

// MINBFT-R4 "Its CHECKPOINTs go on to be its votes."
#[test]
fn what_f_plus_1_vouched_for_is_stable_though_all_of_them_restarted() {
    covers!("MINBFT-R4");
    let mut world = World::with(3, SMALL, &[0, 1]);
    world.links(|flight| if flight.kind() == Kind::Checkpoint { Fate::Lose } else { Fate::Pass });
    for number in 1..=SMALL.interval {
        let frame = world.frame(1, number, &format!("op{number}"));
        world.request(&[0, 1], &frame);
    }
    let vouched = |world: &World, replica| world.minbft(replica).own_checkpoint.seq;
    assert!((0..2).all(|replica| vouched(&world, replica) == Seq(4) && world.stable(replica) == Seq(0)));
    for replica in 0..2 {
        world.node_mut(replica).disk.sync();
        world.crash(replica);
    }
    for replica in 0..2 {
        world.restart(replica);
    }
    world.open();
    world.pass(1_000_000);
    assert_eq!((world.stable(0), world.stable(1)), (Seq(4), Seq(4)));
    assert!(world.works_in(0, 0), "without a view change");
}
