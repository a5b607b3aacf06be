//! What one faulty replica has the others do for nothing.

use super::harness::{Net, SMALL, covers, frame, r};
use crate::message::{Body, Checkpoint, Message, Phase, StableProof, Status};
use crate::{Timer, Vote};
use std::sync::Arc;
use troth_core::{Agreement, VerifiedFrame};
use troth_types::{Digest, Seq, View};

fn checkpoint(net: &Net, from: u16, seq: u64, state: u8) -> Message {
    net.signed(from, Body::Checkpoint(Checkpoint { seq: Seq(seq), digest: Digest([state; 32]) }))
}

fn stable(net: &Net, seq: u64, by: &[u16]) -> Message {
    let votes = by.iter().map(|from| match checkpoint(net, *from, seq, 1) {
        Message::Signed(message) => message,
        _ => unreachable!("a body becomes a signed message"),
    });
    Message::Stable(Arc::new(StableProof { votes: votes.collect() }))
}

#[test]
fn checkpoints_that_can_make_nothing_stable_are_passed_over() {
    covers!("PBFT-R14");
    let mut net = Net::new(1);
    let interval = SMALL.interval;
    let worth = |net: &Net, message: &Message| net.node(1).pbft.is_worth_checking(message);
    let first = checkpoint(&net, 2, interval, 1);
    assert!(worth(&net, &first));
    for seq in [0, interval + 1, 2 * SMALL.window + interval] {
        assert!(!worth(&net, &checkpoint(&net, 2, seq, 1)), "{seq} is no number of one that may count");
    }
    let prepare = Phase::Prepare(Vote { view: View(0), seq: Seq(1), digest: Digest([1; 32]) });
    assert!(!worth(&net, &net.signed(2, Body::Phase(prepare))), "no group of this kind signs it");
    net.tell(2, 1, first.clone());
    assert!(!worth(&net, &first), "it is here");
    assert!(worth(&net, &checkpoint(&net, 2, interval, 2)), "its state may have been wrong before");
    for (by, expected) in [(vec![0, 2, 3], true), (vec![0, 2], false), (vec![2, 2, 2], false)] {
        assert_eq!(worth(&net, &stable(&net, interval, &by)), expected, "by {by:?}");
    }
    let proof = stable(&net, interval, &[0, 2, 3]);
    net.tell(2, 1, proof.clone());
    assert!(!worth(&net, &proof) && !worth(&net, &stable(&net, 0, &[])), "no higher one");
    assert!(!worth(&net, &checkpoint(&net, 3, interval, 1)), "it is stable");
}

#[test]
fn who_changes_its_mind_about_a_checkpoint_again_and_again_pays_for_it() {
    covers!("PBFT-R13");
    let mut net = Net::new(1);
    net.step(r(1), |pbft, cx| pbft.leave_view(cx, View(1)));
    let before = net.node(1).pbft.broken();
    for (state, in_vain) in [(1, 0), (2, 1), (1, 2), (3, 3)] {
        let vote = checkpoint(&net, 2, SMALL.interval, state);
        net.tell(2, 1, vote);
        assert_eq!(net.node(1).pbft.broken() - before, in_vain);
    }
}

/// The STATUS of one that is in this view and has not heard that it began.
fn works_in_no(view: View) -> Message {
    let (stable, executed, slots) = (Seq(0), Seq(0), Vec::new());
    Message::Status(Status {
        view,
        active: false,
        stable,
        executed,
        slots,
        changes: u128::MAX,
        wishes: false,
    })
}

/// NEW-VIEWs that 1 has sent.
fn starts(net: &Net) -> usize {
    net.sent(1, |message| matches!(message, Message::Signed(signed) if signed.new_view().is_some()))
}

#[test]
fn who_says_without_end_that_it_works_in_no_view_is_shown_its_start_ever_more_seldom() {
    covers!("PBFT-R7");
    let mut net = Net::new(1);
    net.node_mut(0).down = true;
    (1..4).for_each(|replica| net.leave(replica));
    net.run();
    assert!(net.node(1).pbft.active && net.node(1).view() == View(1));
    net.node_mut(3).down = true;
    let shown = |net: &mut Net, intervals: u64| {
        net.wire.clear();
        for _ in 0..4 * intervals {
            net.now += SMALL.status_interval / 4;
            net.tell(3, 1, works_in_no(View(1)));
        }
        starts(net)
    };
    assert_eq!(shown(&mut net, 2), 3, "at once, after half an interval, and after a whole one");
    let (soon, later) = (shown(&mut net, 30), shown(&mut net, 160));
    assert!((2..=5).contains(&soon), "{soon}");
    assert_eq!(later, 10, "once in sixteen intervals, for as long as it asks");
    // A view later it may lack that one's.
    (1..3).for_each(|replica| net.leave(replica));
    net.node_mut(3).down = false;
    net.leave(3);
    net.run();
    assert_eq!(net.node(2).view(), View(2));
    assert!(net.node(2).pbft.active);
    net.wire.clear();
    net.now += SMALL.status_interval;
    net.tell(3, 1, works_in_no(View(2)));
    assert_eq!(starts(&net), 1);
}

/// The next primary, 1, has the batches that its view starts with, and none of the frames that these name.
fn lacking_frames() -> (Net, Vec<VerifiedFrame>) {
    let mut net = Net::new(1);
    let frames: Vec<_> = (1..=3).map(|client| frame(client, 1)).collect();
    frames.iter().for_each(|frame| net.request(frame, [0, 2, 3]));
    net.run_where(|flight| flight.to != r(1) && flight.from != r(1));
    net.node_mut(0).down = true;
    (1..4).for_each(|replica| net.leave(replica));
    // The batches come, and their frames do not.
    net.run();
    net.fire(1, Timer::Fetch);
    net.run();
    assert!(!net.node(1).pbft.active && net.node(1).pbft.lacking.is_empty());
    (net, frames)
}

#[test]
fn a_start_is_chosen_again_when_its_last_frame_has_come() {
    covers!("PBFT-V10");
    let (mut net, frames) = lacking_frames();
    for (at, shown) in frames.iter().enumerate() {
        assert!(!net.node(1).pbft.active);
        // What begins with all that it needs is begun in the same step.
        net.step(r(1), |pbft, cx| {
            let digest = shown.digest();
            pbft.frames.insert(shown.clone(), false);
            pbft.frames_came(&[digest]);
            assert_eq!(pbft.reconsider, at == 2, "frame {at}");
            pbft.progress(cx);
        });
    }
    net.run();
    assert!(net.node(1).pbft.active);
    assert_eq!(net.node(2).history().len(), 3);
}

/// Clients spoil the tags for the next primary alone, which was left out: all that it starts with is in doubt there.
#[test]
fn a_start_takes_frames_that_are_in_doubt_however_many() {
    covers!("PBFT-M3");
    let (mut net, frames) = lacking_frames();
    for shown in &frames {
        net.step(r(1), |pbft, cx| pbft.on_doubtful_frames(cx, vec![Arc::clone(shown)]));
        assert!(net.node(1).pbft.doubtful.is_empty(), "a correct replica pre-prepared it");
    }
    net.run();
    assert!(net.node(1).pbft.active);
    assert_eq!(net.node(2).history().len(), 3);
}

#[test]
fn a_start_is_chosen_again_when_its_last_batch_has_come() {
    covers!("PBFT-V10");
    let mut net = Net::new(1);
    for client in 1..=3 {
        net.request(&frame(client, 1), [0, 2, 3]);
        net.run_where(|flight| flight.to != r(1) && flight.from != r(1));
    }
    net.node_mut(0).down = true;
    (1..4).for_each(|replica| net.leave(replica));
    net.run_where(|flight| !matches!(flight.message, Message::Batches(_)));
    let lacking = net.node(1).pbft.lacking.clone();
    assert_eq!(lacking.len(), 3);
    for (at, digest) in lacking.iter().enumerate() {
        let batch = net.node(2).pbft.batch(digest).expect("it prepared there");
        net.step(r(1), |pbft, cx| {
            pbft.on_batches(cx, r(2), vec![batch]);
            assert_eq!(pbft.reconsider, at == 2, "batch {at}");
        });
    }
}
