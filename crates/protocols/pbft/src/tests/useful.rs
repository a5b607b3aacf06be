//! What brings a replica further, and what only costs it time.

use super::harness::{Net, SMALL, batch, covers, frame, r};
use crate::Pbft;
use crate::message::{Body, Checkpoint, Message, PrePrepare, StableProof, Status, ViewChange, Vote};
use std::sync::Arc;
use troth_core::Agreement;
use troth_types::{Digest, Seq, View};

fn progress(net: &Net) -> Option<u128> {
    <Pbft as Agreement>::progress(&net.node(1).pbft)
}

/// Whether this message brought replica 1 further.
fn brings(net: &mut Net, from: u16, message: Message) -> bool {
    let before = progress(net).expect("it works in its view");
    net.tell(from, 1, message);
    before != progress(net).expect("it works in its view")
}

fn view_change(net: &Net, from: u16, to: u64) -> Message {
    let (stable, prepared, pre_prepared) = (StableProof::default(), Vec::new(), Vec::new());
    net.signed(from, Body::ViewChange(ViewChange { to: View(to), stable, prepared, pre_prepared }))
}

#[test]
fn each_vote_brings_something_once() {
    covers!("PBFT-R13");
    let mut net = Net::new(1);
    let one = frame(1, 1);
    let batch = batch(&[&one]);
    let vote = Vote { view: View(0), seq: Seq(1), digest: batch.digest() };
    let proposal = Message::PrePrepare(PrePrepare { view: View(0), seq: Seq(1), batch });
    for (from, message) in [
        (0, proposal),
        (2, Message::Prepare(vote)),
        (3, Message::Prepare(vote)),
        (0, Message::Commit(vote)),
        (2, Message::Commit(vote)),
    ] {
        assert!(brings(&mut net, from, message.clone()), "{message:?} is new");
        assert!(!brings(&mut net, from, message), "and is not new a second time");
    }
    let other = Vote { digest: Digest([9; 32]), ..vote };
    assert!(!brings(&mut net, 2, Message::Prepare(other)) && !brings(&mut net, 2, Message::Commit(other)));
    let elsewhere = Vote { view: View(3), ..vote };
    assert!(!brings(&mut net, 2, Message::Prepare(elsewhere)), "of another view");
    let far = Vote { seq: Seq(10 * SMALL.window), ..vote };
    assert!(!brings(&mut net, 2, Message::Commit(far)), "beyond the windows");
}

#[test]
fn questions_and_what_nobody_asked_for_bring_nothing() {
    let mut net = Net::new(1);
    let status = |wishes| {
        let (view, stable, executed) = (View(0), Seq(0), Seq(0));
        Message::Status(Status {
            view,
            active: true,
            stable,
            executed,
            slots: Vec::new(),
            changes: 0,
            wishes,
        })
    };
    for wishes in [true, false, true] {
        assert!(!brings(&mut net, 2, status(wishes)), "a wish may be changed without end");
    }
    assert!(!brings(&mut net, 3, Message::FetchBatches(vec![Digest([1; 32])])));
    assert!(!brings(&mut net, 3, Message::Batches(vec![batch(&[])])));
    assert!(!brings(&mut net, 3, Message::Stable(Arc::default())));
    assert!(!brings(&mut net, 3, Message::WrongTags(vec![Digest([1; 32])])));
}

#[test]
fn checkpoints_bring_something_until_they_are_stable() {
    let mut net = Net::new(1);
    let vote = |net: &Net, from, digest| {
        net.signed(
            from,
            Body::Checkpoint(Checkpoint { seq: Seq(SMALL.interval), digest: Digest([digest; 32]) }),
        )
    };
    let [first, again, other] = [vote(&net, 0, 1), vote(&net, 0, 1), vote(&net, 0, 2)];
    assert!(brings(&mut net, 0, first));
    assert!(!brings(&mut net, 0, again));
    assert!(!brings(&mut net, 0, other), "however often it changes its mind");
    for from in [0, 2, 3] {
        let right = vote(&net, from, 1);
        net.tell(from, 1, right);
    }
    assert_eq!(progress(&net), None, "it is behind what is stable, and cannot tell");
}

#[test]
fn one_view_change_of_each_brings_something_in_each_view() {
    covers!("PBFT-R13");
    let mut net = Net::new(1);
    for (to, news) in [(1, true), (2, false), (3, false), (3, false), (900, false)] {
        let message = view_change(&net, 2, to);
        assert_eq!(brings(&mut net, 2, message), news, "to view {to}");
    }
    net.step(r(1), |pbft, cx| pbft.leave_view(cx, View(1)));
    assert_eq!(progress(&net), None, "while it changes views it holds on to what it will need");
}

#[test]
fn what_nobody_needs_of_view_changes_is_told_apart_while_the_view_changes() {
    covers!("PBFT-R13");
    let mut net = Net::new(1);
    net.step(r(1), |pbft, cx| pbft.leave_view(cx, View(1)));
    let charged = |net: &Net| <Pbft as Agreement>::broken(&net.node(1).pbft);
    let before = charged(&net);
    for (from, to, in_vain) in [(3, 1, 0), (3, 2, 0), (3, 3, 1), (3, 4, 2), (3, 900, 3), (0, 1, 3)] {
        let message = view_change(&net, from, to);
        net.tell(from, 1, message);
        assert_eq!(charged(&net) - before, in_vain, "of {from} to view {to}");
    }
}

#[test]
fn a_view_change_to_a_view_that_was_left_is_its_sender_s_to_pay_for() {
    let mut net = Net::new(1);
    net.step(r(1), |pbft, cx| pbft.leave_view(cx, View(5)));
    let charged = |net: &Net| <Pbft as Agreement>::broken(&net.node(1).pbft);
    let before = charged(&net);
    for to in 1..=4 {
        let message = view_change(&net, 3, to);
        net.tell(3, 1, message);
        assert_eq!(charged(&net) - before, to);
    }
    let present = view_change(&net, 3, 5);
    net.tell(3, 1, present);
    assert_eq!(charged(&net) - before, 4, "that is the one which counts");
}
