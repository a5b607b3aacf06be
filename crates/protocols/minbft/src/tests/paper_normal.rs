//! MINBFT-N: normal case operation.

use super::craft::batch;
use super::harness::{Fate, Kind, SMALL, World, covers, r};
use crate::message::{Body, Prepare};
use crate::{Config, Timer};
use troth_core::ReplicaTimer;
use troth_trusted::CounterValue;
use troth_types::{Frame, Seq, View};

const NONE: [u64; 0] = [];

// MINBFT-N1 "A verified request that is not executed is pending until its (client, number) is
// executed, whatever its digest."
#[test]
fn a_request_is_pending_until_its_number_is_executed() {
    covers!("MINBFT-N1");
    let mut world = World::with(3, SMALL, &[2]);
    let (one, other) = (world.frame(1, 1, "one"), world.frame(1, 1, "other"));
    world.request(&[2], &one);
    world.request(&[2], &other);
    assert_eq!(world.minbft(2).pool.len(), 1, "one number is pending once");
    assert!(world.node(2).timers.contains_key(&ReplicaTimer::Protocol(Timer::Request)));
    // The primary has the other one ordered, which this replica gets from somebody.
    let prepare = world.prepare(0, 1, &[&other]);
    world.say(2, &prepare);
    assert_eq!(world.executed(2), 0);
    world.show(1, 2, &[&other]);
    assert_eq!(world.journal(2), ["other"]);
    assert!(world.minbft(2).pool.is_empty(), "executed under another digest");
    assert!(!world.node(2).timers.contains_key(&ReplicaTimer::Protocol(Timer::Request)));
    world.pass(3_000_000);
    assert_eq!(world.wanted(2), 0, "nobody is suspected for it");
    world.request(&[2], &one);
    assert!(world.minbft(2).pool.is_empty(), "and it is not taken in again");
}

#[test]
fn an_unexecuted_request_stays_pending() {
    covers!("MINBFT-N1");
    let mut world = World::with(3, SMALL, &[2]);
    let frames = world.frames_held(2, &[2]);
    world.ordered_by_puppet(&[2], &frames[1..]);
    assert_eq!(world.journal(2), ["op2"]);
    assert_eq!(world.minbft(2).pool.len(), 1);
    world.pass(1_100_000);
    assert_eq!(world.wanted(2), 1, "the primary does not order it");
}

// MINBFT-N2 (guard) "The primary of an agreed view proposes what waits, as soon as fewer than the
// pipeline's depth of batches are under way and the window has room … numbers are consecutive. …"
#[test]
fn the_primary_fills_its_pipeline() {
    covers!("MINBFT-N2");
    let mut world = World::with(3, SMALL, &[0]);
    world.frames_held(15, &[0]);
    let prepares = world.sent_by(0, Kind::Prepare);
    assert_eq!(proposed(&world), [(1, 1), (2, 1), (3, 2), (4, 4)], "no more than the pipeline");
    let commit = world.commit(1, &prepares[0]);
    world.say(0, &commit);
    assert_eq!(proposed(&world)[4..], [(5, 7)], "all that waited, in one batch");
}

/// The batches that replica 0 has proposed: number and frames.
fn proposed(world: &World) -> Vec<(u64, usize)> {
    let prepares = world.sent_by(0, Kind::Prepare);
    let prepares = prepares.iter().map(|message| message.prepare().expect("PREPARE"));
    prepares.map(|prepare| (prepare.seq.0, prepare.batch.frames.len())).collect()
}

// MINBFT-N2 "… and as much waits as is under way, or nothing is under way …"
#[test]
fn what_is_less_than_what_is_under_way_waits_for_it() {
    covers!("MINBFT-N2");
    let mut world = World::with(3, SMALL, &[0]);
    world.frames_held(3, &[0]);
    assert_eq!(proposed(&world), [(1, 1), (2, 1)], "the third is less than the two");
    let prepares = world.sent_by(0, Kind::Prepare);
    let commits = [0, 1].map(|at| world.commit(1, &prepares[at]));
    world.say(0, &commits[0]);
    assert_eq!(proposed(&world)[2..], [(3, 1)], "and as much as the one that is left");
    world.say(0, &commits[1]);
    let frame = world.frame(2, 1, "last");
    world.request(&[0], &frame);
    assert_eq!(proposed(&world)[3..], [(4, 1)]);
}

#[test]
fn the_primary_stays_within_the_window() {
    covers!("MINBFT-N2");
    let config = Config { pipeline: 100, ..SMALL };
    let mut world = World::with(3, config, &[0]);
    world.frames_one_by_one(12);
    assert_eq!(world.sent_by(0, Kind::Prepare).len(), 8, "window 8, nothing stable");
    assert_eq!(world.sent_by(1, Kind::Prepare).len(), 0);
    let mut backup = World::with(3, config, &[1]);
    backup.frames_held(3, &[1]);
    assert!(backup.sent_by(1, Kind::Prepare).is_empty(), "backups propose nothing");
}

// MINBFT-N2 "… what came together goes into one batch …"
#[test]
fn frames_that_come_together_are_proposed_together() {
    covers!("MINBFT-N2");
    let mut world = World::with(3, Config { pipeline: 4, ..SMALL }, &[0]);
    let frames: Vec<_> = (1..=10).map(|number| world.frame(1, number, "x")).collect();
    world.requests(0, &frames);
    let proposed = world.sent_by(0, Kind::Prepare);
    let sizes: Vec<_> =
        proposed.iter().filter_map(|message| Some(message.prepare()?.batch.frames.len())).collect();
    assert_eq!(sizes, [10], "and not four batches of one, and the rest behind them");
}

// MINBFT-N2 "… A batch without frames only when the application's deadline is due and nothing else is
// under way."
#[test]
fn an_empty_batch_needs_a_due_deadline() {
    covers!("MINBFT-N2");
    let mut world = World::all(3, SMALL);
    let due = world.wall().0 + 500_000;
    let frame = world.frame(1, 1, &format!("at:{due}"));
    world.request_all(&frame);
    world.pass(400_000);
    assert_eq!(world.sent_by(0, Kind::Prepare).len(), 1, "not due");
    world.pass(200_000);
    for replica in 0..3 {
        assert_eq!(world.journal(replica), [format!("at:{due}"), "tick".to_string()]);
    }
    world.pass(2_000_000);
    let prepares = world.sent_by(0, Kind::Prepare);
    assert_eq!(prepares.len(), 2, "once");
    assert!(prepares[1].prepare().expect("PREPARE").batch.frames.is_empty());
    assert_eq!(world.wanted(1), 0);
}

#[test]
fn an_empty_batch_waits_for_what_is_under_way() {
    covers!("MINBFT-N2");
    let mut world = World::with(3, SMALL, &[0]);
    let due = world.wall().0 + 500_000;
    let first = world.frame(1, 1, &format!("at:{due}"));
    world.request(&[0], &first);
    let prepare = world.sent_by(0, Kind::Prepare)[0].clone();
    let commit = world.commit(1, &prepare);
    world.say(0, &commit);
    let second = world.frame(1, 2, "second");
    world.request(&[0], &second);
    world.pass(600_000);
    assert_eq!(world.sent_by(0, Kind::Prepare).len(), 2, "the batch under way carries time forward");
}

// MINBFT-N3 (guard) "A PREPARE is the primary's. From anybody else it proves its sender faulty."
#[test]
fn only_the_primary_prepares() {
    covers!("MINBFT-N3");
    for n in [3, 5] {
        let mut world = World::with(n, SMALL, &[2]);
        let frames = world.frames_held(1, &[2]);
        let batch = batch(world.wall(), &[&frames[0]]);
        let body = Body::Prepare(Prepare { view: View(0), seq: Seq(1), batch });
        let by_backup = world.certify(1, body.clone());
        world.say(2, &by_backup);
        assert!(world.condemned(2, 1).is_some());
        assert_eq!(world.commits(2), NONE);
        let by_primary = world.certify(0, body);
        world.say(2, &by_primary);
        assert_eq!(world.commits(2), [1]);
        assert!(world.condemned(2, 0).is_none());
    }
}

// MINBFT-N4 (guard) "The commitments of one sender in one view are consecutive in n; only an own
// CHECKPOINT(n) lets it go on at n+1. A skipped commitment proves the sender faulty."
#[test]
fn a_skipped_prepare_condemns_the_primary() {
    covers!("MINBFT-N4");
    for seqs in [[1, 3], [1, 1], [2, 3]] {
        let mut world = World::with(3, SMALL, &[2]);
        for seq in seqs {
            let prepare = world.prepare(0, seq, &[]);
            world.say(2, &prepare);
        }
        assert!(world.condemned(2, 0).is_some(), "{seqs:?}");
        assert_eq!(world.wanted(2), 1, "a faulty primary is suspected at once");
    }
    let mut world = World::with(3, SMALL, &[2]);
    for seq in [1, 2, 3] {
        let prepare = world.prepare(0, seq, &[]);
        world.say(2, &prepare);
    }
    assert!(world.accused_nobody(2));
}

#[test]
fn a_skipped_commit_condemns_the_backup() {
    covers!("MINBFT-N4");
    // What replica 1 certifies after COMMIT(1): a commitment or a checkpoint.
    enum Step {
        Commit(u64),
        Checkpoint(u64),
    }
    use Step::{Checkpoint, Commit};
    let cases: [(&[Step], bool); 6] = [
        (&[Commit(2), Commit(3)], true),
        (&[Commit(3)], false),
        (&[Commit(1)], false),
        (&[Checkpoint(3), Commit(4)], true),
        (&[Checkpoint(3), Commit(5)], false),
        (&[Checkpoint(3), Commit(3)], false),
    ];
    for (steps, good) in cases {
        let mut world = World::with(3, SMALL, &[2]);
        let frames = world.frames_held(5, &[2]);
        let prepares = world.ordered_by_puppet(&[2], &frames);
        let first = world.commit(1, &prepares[0]);
        world.say(2, &first);
        for step in steps {
            let message = match step {
                Commit(seq) => world.commit(1, &prepares[*seq as usize - 1]),
                Checkpoint(seq) => world.checkpoint(1, *seq, Default::default()),
            };
            world.say(2, &message);
        }
        assert_eq!(world.condemned(2, 1).is_none(), good);
    }
}

// MINBFT-N5 (guard) "A replica certifies a PREPARE, a COMMIT or a COMMIT(NEW-VIEW) only when it holds
// every frame named and has verified the client's signature on each itself."
#[test]
fn no_commitment_without_the_frames() {
    covers!("MINBFT-N5");
    for n in [3, 5] {
        let mut world = World::with(n, SMALL, &[2]);
        let (held, missing) = (world.frame(1, 1, "held"), world.frame(2, 1, "missing"));
        world.request(&[2], &held);
        let prepare = world.prepare(0, 1, &[&held, &missing]);
        world.say(2, &prepare);
        for other in (1..n).filter(|other| *other != 2) {
            let commit = world.commit(other, &prepare);
            world.say(2, &commit);
        }
        assert_eq!(world.commits(2), NONE, "f+1 others do not replace the frame");
        // A frame under the same name cannot be forged, and a bad signature is not let in.
        let forged = {
            let draft = troth_types::FrameDraft {
                group: world.group.id(),
                client: troth_types::ClientId(2),
                number: 1,
                events_seen: 0,
                operations: missing.operations().iter().collect(),
            };
            std::sync::Arc::new(draft.sign(*held.signature().expect("signed")))
        };
        shown(&mut world, &[forged]);
        assert_eq!(world.commits(2), NONE);
        shown(&mut world, std::slice::from_ref(&missing));
        assert_eq!(world.commits(2), [1]);
        assert_eq!(world.journal(2), ["held", "missing"]);
        assert!(world.accused_nobody(2));
    }
}

/// Frames arrive at replica 2 from puppet 1, through the frame verifier.
fn shown(world: &mut World, frames: &[std::sync::Arc<Frame>]) {
    world.arrive(1, 2, troth_core::PeerMessage::Frames(frames.to_vec()));
}

// MINBFT-N6 "A PREPARE that arrives inside a COMMIT is taken as if the primary had sent it."
#[test]
fn a_prepare_may_come_inside_a_commit() {
    covers!("MINBFT-N6");
    for n in [3, 5] {
        let mut world = World::all(n, SMALL);
        world.links(|flight| match flight.kind() {
            Kind::Prepare if flight.to == r(2) => Fate::Lose,
            _ => Fate::Pass,
        });
        for number in 1..=3 {
            let frame = world.frame(1, number, &format!("op{number}"));
            world.request_all(&frame);
        }
        assert_eq!(world.commits(2), [1, 2, 3]);
        assert_eq!(world.journal(2), ["op1", "op2", "op3"]);
    }
}

// What a COMMIT carries must be a PREPARE of its view's primary, and another replica's.
#[test]
fn a_commit_carries_the_primarys_prepare() {
    covers!("MINBFT-N6");
    // (who certified the PREPARE, at which value, who commits to it): only the first is well formed.
    let cases = [(0, 1, 1, true), (1, 1, 3, false), (3, 1, 1, false), (0, 1, 0, false)];
    for (primary, value, by, good) in cases {
        let mut world = World::with(5, SMALL, &[4]);
        let frames = world.frames_held(1, &[4]);
        let batch = batch(world.wall(), &[&frames[0]]);
        let body = Body::Prepare(Prepare { view: View(0), seq: Seq(1), batch });
        let prepare = world.certify_at(primary, CounterValue(value), body);
        let commit = world.commit(by, &prepare);
        if by == primary {
            world.say(4, &prepare);
        }
        world.say(4, &commit);
        assert_eq!(world.condemned(4, by).is_none(), good, "{by} commits to {primary}'s PREPARE");
        assert_eq!(world.commits(4).len(), usize::from(good || primary == 0));
        assert_eq!(world.executed(4), u64::from(good));
    }
    // A PREPARE of view 0 where only messages of view 1 stand.
    let mut world = World::with(5, SMALL, &[4]);
    let body = Body::Prepare(Prepare { view: View(0), seq: Seq(1), batch: batch(world.wall(), &[]) });
    let misplaced = world.certify_at(0, CounterValue::new(1, 2), body);
    let commit = world.commit(1, &misplaced);
    world.say(4, &commit);
    assert!(world.condemned(4, 1).is_some());
}

// MINBFT-N7 (guard) "A backup commits to a batch whose time is not ahead of its clock by more than the
// bound, and not behind it by more than the bound and the request time-out (but for one that fills up,
// E7), and which has a frame or a due deadline, or to one that f+1 others have committed to. Nobody is
// condemned for a batch that fails this."
#[test]
fn a_batch_from_the_future_waits() {
    covers!("MINBFT-N7");
    let mut world = World::with(3, SMALL, &[2]);
    let frames = world.frames_held(2, &[2]);
    let on_the_edge = batch(world.wall().after(SMALL.clock_bound), &[&frames[0]]);
    let beyond = batch(world.wall().after(SMALL.clock_bound + 1), &[&frames[1]]);
    let prepare = world.prepare_batch(0, 1, on_the_edge);
    world.say(2, &prepare);
    assert_eq!(world.commits(2), [1]);
    let prepare = world.prepare_batch(0, 2, beyond);
    world.say(2, &prepare);
    assert_eq!(world.commits(2), [1], "too far ahead");
    assert!(world.accused_nobody(2));
    world.pass(SMALL.status_interval);
    assert_eq!(world.commits(2), [1, 2], "the clock caught up");
}

#[test]
fn a_batch_from_the_past_is_left_to_the_others() {
    covers!("MINBFT-N7");
    let mut world = World::with(3, SMALL, &[2]);
    let frames = world.frames_held(2, &[2]);
    let oldest = world.wall().0 - SMALL.clock_bound - SMALL.request_timeout;
    let first = world.prepare_batch(0, 1, batch(troth_types::Time(oldest), &[&frames[0]]));
    world.say(2, &first);
    assert_eq!(world.commits(2), [1], "on the edge");
    let prepare = world.prepare_batch(0, 2, batch(troth_types::Time(oldest - 1), &[&frames[1]]));
    world.say(2, &prepare);
    assert_eq!(world.commits(2), [1], "no correct primary's clock is so far behind");
    assert!(world.accused_nobody(2));
    for prepare in [first, prepare] {
        let commit = world.commit(1, &prepare);
        world.say(2, &commit);
    }
    assert_eq!(world.commits(2), [1, 2], "another found it good when it was new");
}

#[test]
fn what_others_vouch_for_is_committed_to() {
    covers!("MINBFT-N7");
    for (n, enough) in [(3, 1), (5, 2)] {
        for empty in [false, true] {
            let mut world = World::with(n, SMALL, &[2]);
            let frames = world.frames_held(1, &[2]);
            let odd = if empty {
                batch(world.wall(), &[])
            } else {
                batch(world.wall().after(1 << 50), &[&frames[0]])
            };
            let prepare = world.prepare_batch(0, 1, odd);
            world.say(2, &prepare);
            assert_eq!(world.commits(2), NONE, "no reason of its own");
            let others: Vec<u16> = (1..n).filter(|other| *other != 2).collect();
            for (index, other) in others.iter().take(enough).enumerate() {
                assert_eq!(world.commits(2), NONE, "{index} others are too few");
                let commit = world.commit(*other, &prepare);
                world.say(2, &commit);
            }
            assert_eq!(world.commits(2), [1], "f+1 with the primary");
            assert!(world.accused_nobody(2));
        }
    }
}

#[test]
fn an_empty_batch_with_a_due_deadline_is_committed_to() {
    covers!("MINBFT-N7");
    let mut world = World::with(3, SMALL, &[2]);
    let due = world.wall().0 + 100;
    let frame = world.frame(1, 1, &format!("at:{due}"));
    world.request(&[2], &frame);
    world.ordered_by_puppet(&[2], &[frame]);
    assert_eq!(world.executed(2), 1);
    let early = batch(troth_types::Time(due - 1), &[]);
    let prepare = world.prepare_batch(0, 2, early);
    world.say(2, &prepare);
    assert_eq!(world.commits(2), [1], "before the deadline");
    let mut world2 = World::with(3, SMALL, &[2]);
    let frame = world2.frame(1, 1, &format!("at:{due}"));
    world2.request(&[2], &frame);
    world2.ordered_by_puppet(&[2], &[frame]);
    let prepare = world2.prepare_batch(0, 2, batch(troth_types::Time(due), &[]));
    world2.say(2, &prepare);
    assert_eq!(world2.commits(2), [1, 2]);
}

// MINBFT-N8 (guard) "A batch is executed, in order of n, when f+1 distinct replicas, this one among
// them, have committed to the PREPARE that this replica processed. The PREPARE is the primary's
// commitment."
#[test]
fn a_batch_is_executed_at_f_plus_1() {
    covers!("MINBFT-N8");
    let mut world = World::with(5, SMALL, &[4]);
    let frames = world.frames_held(3, &[4]);
    let prepares = world.ordered_by_puppet(&[4], &frames);
    assert_eq!(world.commits(4), [1, 2, 3]);
    assert_eq!(world.executed(4), 0, "two of three");
    let (first, second) = (world.commit(1, &prepares[0]), world.commit(1, &prepares[1]));
    let repeated = first.clone();
    // In order: 2 has its quorum first only if 1 had it.
    world.say(4, &second);
    assert_eq!(world.executed(4), 0);
    world.say(4, &first);
    world.say(4, &repeated);
    assert_eq!(world.journal(4), ["op1", "op2"]);
}

#[test]
fn commitments_to_another_prepare_do_not_count() {
    covers!("MINBFT-N8");
    let mut world = World::with(5, SMALL, &[4]);
    let frames = world.frames_held(2, &[4]);
    let good = world.prepare(0, 1, &[&frames[0]]);
    let evil = world.prepare(0, 1, &[&frames[1]]);
    world.say(4, &good);
    assert_eq!(world.commits(4), [1]);
    let commit = world.commit(1, &evil);
    world.say(4, &commit);
    assert_eq!(world.executed(4), 0, "replica 1 committed to something else");
    let commit = world.commit(2, &good);
    world.say(4, &commit);
    assert_eq!(world.journal(4), ["op1"]);
}

#[test]
fn its_own_commitment_must_be_certified_first() {
    covers!("MINBFT-N8");
    for n in [3, 5] {
        let mut world = World::with(n, SMALL, &[2]);
        let frames = world.frames_held(1, &[2]);
        world.node_mut(2).stalled = true;
        let prepare = world.prepare(0, 1, &[&frames[0]]);
        world.say(2, &prepare);
        for other in (1..n).filter(|other| *other != 2) {
            let commit = world.commit(other, &prepare);
            world.say(2, &commit);
        }
        assert_eq!(world.executed(2), 0, "its component has not answered");
        world.unstall(2);
        assert_eq!(world.journal(2), ["op1"]);
    }
}

// MINBFT-N9 (guard) "A batch names at most as many frames as the group's limits allow; a longer one proves
// its primary faulty, and whoever committed to it."
#[test]
fn a_batch_beyond_the_limits_condemns_its_primary() {
    covers!("MINBFT-N9");
    let limit = SMALL.limits.batch_frames;
    for (frames, sound) in [(limit, true), (limit + 1, false)] {
        let mut world = World::with(3, SMALL, &[2]);
        let frame = world.frame(1, 1, "op");
        let named: Vec<_> = std::iter::repeat_n(&frame, frames).collect();
        let prepare = world.prepare(0, 1, &named);
        world.say(2, &prepare);
        assert_eq!(world.condemned(2, 0).is_none(), sound);
    }
}

#[test]
fn a_commitment_to_a_batch_beyond_the_limits_condemns_its_sender() {
    covers!("MINBFT-N9");
    let mut world = World::with(3, SMALL, &[2]);
    let frame = world.frame(1, 1, "op");
    let named: Vec<_> = std::iter::repeat_n(&frame, SMALL.limits.batch_frames + 1).collect();
    let prepare = world.prepare(0, 1, &named);
    let commit = world.commit(1, &prepare);
    world.say(2, &commit);
    assert!(world.condemned(2, 1).is_some());
}
