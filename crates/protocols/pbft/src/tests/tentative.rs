//! §5.1: tentative execution and reads.

use super::harness::{Flight, Net, SMALL, batch, covers, frame, r};
use crate::message::{Entry, Message, Vote};
use crate::{Config, Timer};
use bytes::Bytes;
use std::sync::Arc;
use troth_auth::Verified;
use troth_core::{Agreement, VerifiedFrame};
use troth_types::{Digest, FrameDraft, GroupId, OPERATOR, Seq, Signature, View};

fn is_commit(message: &Message) -> bool {
    matches!(message, Message::Commit(_))
}

/// Everything prepares everywhere, and nothing commits.
fn prepare(net: &mut Net, frames: &[VerifiedFrame]) {
    for frame in frames {
        net.request(frame, 0..4);
        net.run_where(|flight| !is_commit(&flight.message));
    }
}

fn ahead(net: &Net, replica: u16) -> Vec<u64> {
    net.node(replica).ahead.iter().map(|(ordered, _)| ordered.seq.0).collect()
}

#[test]
fn what_prepared_is_executed_before_it_commits() {
    covers!("PBFT-E1");
    covers!("PBFT-E2");
    let mut net = Net::new(1);
    let one = frame(1, 1);
    prepare(&mut net, std::slice::from_ref(&one));
    for replica in 0..4 {
        assert_eq!((net.node(replica).history().len(), ahead(&net, replica)), (0, vec![1]), "{replica}");
        // Whoever waits for it waits until it is final.
        assert_eq!(net.node(replica).pbft.pool.len(), 1);
        assert!(net.node(replica).timers.contains_key(&Timer::Request));
    }
    let vote = Vote { view: View(0), seq: Seq(1), digest: net.node(1).pbft.prepared[&Seq(1)].digest };
    for from in [0, 2, 3] {
        net.tell(from, 1, Message::Commit(vote));
    }
    assert_eq!(net.node(1).history(), [one.digest()]);
    assert_eq!((ahead(&net, 1).len(), net.node(1).pbft.pool.len()), (0, 0));
    assert_eq!(net.node(1).tentatively, [(Seq(1), View(0))], "it is executed once");
}

#[test]
fn the_promise_is_durable_before_the_tentative_reply_can_leave() {
    covers!("PBFT-E1");
    let mut net = Net::new(1);
    prepare(&mut net, &[frame(1, 1)]);
    let trail = &net.node(1).trail;
    let tentative = trail.iter().position(|what| *what == "tentative").expect("it was executed");
    let persisted = trail[..tentative].iter().filter(|what| **what == "persist").count();
    assert_eq!(persisted, 3, "the frame, the promise, and that it prepared: {trail:?}");
}

#[test]
fn nothing_is_executed_before_all_in_front_of_it_is() {
    covers!("PBFT-E1");
    let mut net = Net::new(1);
    let frames = [frame(1, 1), frame(2, 1)];
    let batches = [batch(&[&frames[0]]), batch(&[&frames[1]])];
    net.request(&frames[0], [1]);
    net.request(&frames[1], [1]);
    for seq in [2, 1] {
        let proposed = batches[seq as usize - 1].clone();
        let digest = proposed.digest();
        let proposal = crate::message::PrePrepare { view: View(0), seq: Seq(seq), batch: proposed };
        net.tell(0, 1, Message::PrePrepare(proposal));
        net.run_where(|flight| flight.from == flight.to && !is_commit(&flight.message));
        assert!(ahead(&net, 1).is_empty(), "it has not prepared");
        for from in [2, 3] {
            net.tell(from, 1, Message::Prepare(Vote { view: View(0), seq: Seq(seq), digest }));
        }
        let expected: &[u64] = if seq == 2 { &[] } else { &[1, 2] };
        assert_eq!(ahead(&net, 1), expected);
    }
}

#[test]
fn no_more_than_the_pipeline_is_executed_ahead_nor_beyond_a_checkpoint() {
    covers!("PBFT-E1");
    for (config, expected) in [
        (Config { pipeline: 2, ..SMALL }, vec![1, 2]),
        (Config { pipeline: 6, ..SMALL }, vec![1, 2, 3, 4]),
        (Config { tentative: false, ..SMALL }, Vec::new()),
    ] {
        let mut net = Net::with(1, config);
        for seq in 1..=6 {
            let one = frame(seq, 1);
            net.request(&one, [1]);
            let proposed = batch(&[&one]);
            let digest = proposed.digest();
            let proposal = crate::message::PrePrepare { view: View(0), seq: Seq(seq), batch: proposed };
            net.tell(0, 1, Message::PrePrepare(proposal));
            net.run_where(|flight| flight.from == flight.to && !is_commit(&flight.message));
            for from in [2, 3] {
                net.tell(from, 1, Message::Prepare(Vote { view: View(0), seq: Seq(seq), digest }));
            }
        }
        assert_eq!(ahead(&net, 1), expected, "the state of batch 4 is a checkpoint");
    }
}

#[test]
fn a_change_of_the_group_waits_until_its_place_is_final() {
    covers!("PBFT-E1");
    let mut net = Net::new(1);
    let draft = FrameDraft {
        group: GroupId(*b"tests-of-pbft---"),
        client: OPERATOR,
        number: 1,
        events_seen: 0,
        operations: vec![Bytes::from_static(b"operation")],
    };
    let change = Verified::made_here(Arc::new(draft.sign(Signature([1; 64]))));
    prepare(&mut net, &[change.clone(), frame(1, 1)]);
    assert!(ahead(&net, 1).is_empty());
    net.fire(1, Timer::Status);
    for replica in 0..4 {
        let vote = Vote { view: View(0), seq: Seq(1), digest: net.node(1).pbft.prepared[&Seq(1)].digest };
        for from in 0..4 {
            net.tell(from, replica, Message::Commit(vote));
        }
        assert_eq!(net.node(replica).history(), [change.digest()]);
    }
}

#[test]
fn leaving_a_view_undoes_what_was_not_final() {
    covers!("PBFT-E3");
    let mut net = Net::new(1);
    let frames = [frame(1, 1), frame(2, 1)];
    prepare(&mut net, &frames);
    assert_eq!(ahead(&net, 1), [1, 2]);
    net.leave(1);
    assert!(ahead(&net, 1).is_empty());
    assert_eq!(net.node(1).pbft.pool.len(), 2, "they are pending as before");
    net.leave(2);
    net.run();
    for replica in 0..4 {
        let expected: Vec<_> = frames.iter().map(|frame| frame.digest()).collect();
        assert_eq!(net.node(replica).history(), expected, "what prepared at a quorum stays, {replica}");
        assert_eq!(net.node(replica).pbft.pool.len(), 0);
    }
}

#[test]
fn a_new_view_that_comes_at_once_undoes_it_too() {
    covers!("PBFT-E3");
    let mut net = Net::new(1);
    let one = frame(1, 1);
    net.request(&one, 0..4);
    // Only at replica 3 does anything prepare.
    net.run_where(|flight| {
        let prepare = matches!(flight.message, Message::Prepare(_));
        !is_commit(&flight.message) && (!prepare || flight.to == r(3) || flight.from == flight.to)
    });
    assert_eq!((ahead(&net, 3), ahead(&net, 2).len()), (vec![1], 0));
    net.node_mut(3).down = true;
    for replica in [0, 1, 2] {
        net.leave(replica);
    }
    let mut new_view = None;
    while let Some(flight) = net.wire.pop_front() {
        if let Message::Signed(signed) = &flight.message
            && signed.new_view().is_some()
        {
            new_view = Some(flight.message.clone());
        }
        if flight.to != r(3) {
            net.tell(flight.from.0, flight.to.0, flight.message);
        }
    }
    net.node_mut(3).down = false;
    net.tell(1, 3, new_view.expect("replica 1 began the view"));
    assert_eq!(net.node(3).view(), View(1));
    assert!(ahead(&net, 3).is_empty(), "it had not left the view before");
}

#[test]
fn reads_wait_for_all_that_this_replica_vouched_for() {
    covers!("PBFT-E4");
    let mut net = Net::new(1);
    let frames = [frame(1, 1), frame(2, 1)];
    assert_eq!(net.node(1).pbft.reads_from(), Seq(0));
    prepare(&mut net, &frames[..1]);
    assert_eq!(net.node(1).pbft.reads_from(), Seq(1));
    assert_eq!(net.node(1).executed_up_to(), Seq(0), "before it is final, too");
    // It is said in the log, so a restart changes nothing.
    net.restart(1);
    assert_eq!(net.node(1).pbft.reads_from(), Seq(1));
    assert!(net.node(1).pbft.may_answer_reads());
    // While it has no view, nothing is ruled out.
    net.leave(2);
    assert_eq!((net.node(2).view(), net.node(2).pbft.reads_from()), (View(1), Seq(1)));
}

#[test]
fn what_a_new_view_left_out_is_waited_for_no_longer() {
    covers!("PBFT-E4");
    let mut net = Net::new(1);
    let one = frame(1, 1);
    net.request(&one, 0..4);
    net.run_where(|flight| {
        let prepare = matches!(flight.message, Message::Prepare(_));
        !is_commit(&flight.message) && (!prepare || flight.to == r(3) || flight.from == flight.to)
    });
    assert_eq!(net.node(3).pbft.reads_from(), Seq(1));
    // 0, 1 and 2, where nothing prepared, begin view 1 with nothing, and order nothing there.
    for replica in [0, 1, 2] {
        net.node_mut(replica).pbft.pool.retain(|_, _| false);
    }
    net.leave(0);
    net.leave(1);
    net.leave(2);
    net.run_where(|flight| flight.from != r(3));
    assert_eq!((net.node(3).view(), net.node(3).pbft.started.end), (View(1), Seq(0)));
    assert_eq!(net.node(3).pbft.reads_from(), Seq(0));
    assert!(net.node(3).pbft.prepared.is_empty(), "the start of the view refutes it (V18)");
    // Of what lies beyond its window a start says nothing, and it binds nobody all the same.
    let beyond = Seq(SMALL.window + 1);
    let left = Entry { seq: beyond, digest: Digest([9; 32]), view: View(0) };
    net.node_mut(3).pbft.prepared.insert(beyond, left);
    assert_eq!(net.node(3).pbft.reads_from(), Seq(0));
}

#[test]
fn what_is_stable_was_vouched_for() {
    covers!("PBFT-E4");
    let mut net = Net::new(1);
    net.node_mut(3).down = true;
    for number in 1..=SMALL.interval {
        net.order(&frame(number, 1));
    }
    let proof = net.node(0).pbft.stable_proof.clone();
    assert_eq!(proof.target().0, Seq(SMALL.interval));
    net.node_mut(3).down = false;
    net.tell(0, 3, Message::Stable(proof));
    assert_eq!(net.node(3).pbft.reads_from(), Seq(SMALL.interval), "it has executed nothing of it");
}

/// F-P3: those whom a faulty primary left out get what they need of any correct replica that executed it.
#[test]
fn whoever_executed_a_batch_goes_on_showing_it_until_it_is_stable() {
    covers!("PBFT-R7");
    let mut net = Net::new(1);
    let one = frame(1, 1);
    net.request(&one, 0..4);
    // Replica 3 hears nothing of it, whatever is sent at first.
    net.run_where(|flight| flight.to != r(3) || flight.from == r(3));
    for replica in [0, 1, 2] {
        assert_eq!(net.node(replica).history(), [one.digest()]);
    }
    // Later, and more than once, as long as it says that it lacks it.
    for round in 1..=3 {
        net.now += SMALL.status_interval;
        net.fire(3, Timer::Status);
        let mut commits = 0;
        while let Some(flight) = net.wire.pop_front() {
            commits += usize::from(is_commit(&flight.message) && flight.to == r(3) && flight.from != r(3));
            if round == 3 || flight.to != r(3) {
                net.tell(flight.from.0, flight.to.0, flight.message);
            }
        }
        assert_eq!(commits, 3, "round {round}");
    }
    net.run();
    assert_eq!(net.node(3).history(), [one.digest()]);
}

#[test]
fn where_somebody_never_votes_replies_are_final() {
    covers!("PBFT-E5");
    let mut net = Net::new(1);
    let of_three = |flight: &Flight| flight.from != r(3) || !matches!(flight.message, Message::Prepare(_));
    for number in 1..=20 {
        net.request(&frame(1, number), 0..4);
        net.run_where(of_three);
    }
    let executed: Vec<u64> = net.node(1).tentatively.iter().map(|(seq, _)| seq.0).collect();
    assert_eq!(executed, (1..=16).collect::<Vec<u64>>());
    assert_eq!(net.node(1).history().len(), 20);
    // One that everybody votes for is enough to begin again.
    net.request(&frame(1, 21), 0..4);
    net.run();
    net.request(&frame(1, 22), 0..4);
    net.run();
    assert_eq!(net.node(1).tentatively.last().map(|(seq, _)| seq.0), Some(22));
}
