//! §4.3.1: checkpoints, garbage collection and state transfer.

use super::craft::Bench;
use super::harness::{Net, SMALL, batch, covers, frame, r};
use super::normal::is_prepare;
use crate::message::{Attested, Body, Checkpoint, Message, StableProof};
use crate::state::Started;
use crate::{Config, Timer, place, proven};
use std::sync::Arc;
use troth_core::Agreement;
use troth_trusted::a2m::{Answer, Content, Operation};
use troth_trusted_host::TrustedLogs as _;
use troth_types::{Digest, Seq, View};

/// The CHECKPOINTs that a small log has room for.
const CHECKPOINTS: usize = 4;

/// Orders this many frames everywhere.
pub(super) fn order_many(net: &mut Net, count: u64) {
    for number in 1..=count {
        net.order(&frame(number, 1));
    }
}

#[test]
fn f_plus_1_equal_checkpoints_are_stable() {
    covers!("A2MPBFTEA-C1");
    covers!("A2MPBFTEA-C2");
    covers!("A2MPBFTEA-C3");
    covers!("A2MPBFTEA-C4");
    let mut net = Net::new(1);
    order_many(&mut net, 4);
    for replica in 0..3 {
        let node = &net.node(replica).replica;
        assert_eq!(node.stable.0, Seq(4));
        assert_eq!(proven(&net.group, node.stable_proof()), Some(node.stable));
        assert!(node.slots.is_empty() && node.decided.is_empty());
    }
}

#[test]
fn a_certificate_counts_replicas_and_equal_votes() {
    covers!("A2MPBFTEA-C2");
    let group = Net::new(1).group;
    // Of this state, with this in the slot of the history.
    let vote = |from: u16, state: u8, value: u8| Bench::new(1).checkpoint(from, 4, state, value);
    let proof = |votes: Vec<_>| proven(&group, &StableProof { votes });
    assert_eq!(proof(vec![vote(0, 1, 1), vote(1, 1, 1)]), Some((Seq(4), Digest([1; 32]))));
    assert_eq!(proof(vec![vote(0, 1, 1), vote(0, 1, 1)]), None);
    assert_eq!(proof(vec![vote(0, 1, 1), vote(1, 2, 1)]), None, "two states");
    assert_eq!(proof(vec![vote(0, 1, 1), vote(1, 1, 2)]), None, "two histories");
    assert_eq!(proof(vec![vote(0, 1, 1)]), None);
    assert_eq!(proof(Vec::new()), Some((Seq(0), Digest::ZERO)));
    // Nobody takes such a certificate for one message either.
    let authentic =
        |votes: Vec<_>| super::harness::authentic(&group, &Message::Stable(Arc::new(StableProof { votes })));
    assert!(authentic(vec![vote(0, 1, 1), vote(1, 1, 1)]));
    assert!(!authentic(vec![vote(0, 1, 1), vote(1, 1, 2)]));
}

#[test]
fn checkpoints_that_can_make_nothing_stable_are_passed_over() {
    covers!("A2MPBFTEA-R18");
    let (mut net, mut bench) = (Net::new(1), Bench::new(1));
    let worth = |net: &Net, message: &Message| net.node(0).replica.is_worth_checking(message);
    let (first, second) = (bench.checkpoint(1, 4, 1, 1), bench.checkpoint(2, 4, 1, 1));
    assert!(worth(&net, &Message::Attested(first.clone())));
    for seq in [0, 5, 2 * SMALL.window + 4] {
        let body = Body::Checkpoint(Checkpoint { seq: Seq(seq), ..said(&first) });
        let vote = Attested { body, ..(*first).clone() };
        assert!(!worth(&net, &Message::Attested(Arc::new(vote))), "{seq} is no number of one that may count");
    }
    net.tell(1, 0, Message::Attested(first.clone()));
    assert!(!worth(&net, &Message::Attested(first.clone())), "it is here");
    let proof = |votes: &[&Arc<Attested>]| {
        Message::Stable(Arc::new(StableProof { votes: votes.iter().map(|vote| (*vote).clone()).collect() }))
    };
    let whole = proof(&[&first, &second]);
    assert!(worth(&net, &whole));
    assert!(!worth(&net, &proof(&[&first])) && !worth(&net, &proof(&[&first, &first])));
    net.tell(1, 0, whole.clone());
    assert_eq!(net.node(0).replica.stable.0, Seq(4));
    assert!(!worth(&net, &whole) && !worth(&net, &proof(&[])), "no higher one");
    assert!(!worth(&net, &Message::Attested(second.clone())), "it is stable");
    net.node_mut(0).replica.delivered = Seq(4);
    assert!(worth(&net, &Message::Attested(second.clone())), "it is late, and no more than that");
    net.tell(2, 0, Message::Attested(second.clone()));
    assert!(!worth(&net, &Message::Attested(second)) && !worth(&net, &Message::Attested(first)));
}

fn said(message: &Attested) -> Checkpoint {
    message.checkpoint().cloned().expect("a CHECKPOINT")
}

#[test]
fn nobody_is_brought_to_the_end_of_the_numbers() {
    covers!("A2MPBFTEA-C2");
    let mut bench = Bench::new(1);
    let last = (1 << 63) - 1;
    for seq in [last, last + 1, u64::MAX] {
        let votes = vec![bench.checkpoint(0, seq, 4, 5), bench.checkpoint(1, seq, 4, 5)];
        let expected = (seq == last).then_some((Seq(seq), Digest([4; 32])));
        assert_eq!(proven(&bench.group, &StableProof { votes }), expected, "{seq}");
    }
}

#[test]
fn the_logs_forget_what_is_stable() {
    covers!("A2MPBFTEA-C5");
    let mut net = Net::new(1);
    order_many(&mut net, 9);
    for log in [place::PREPARE, place::COMMIT] {
        let look = |seq| Operation::Lookup { log, slot: place::flattened(View(0), Seq(seq)), nonce: [0; 32] };
        let answers = net.node_mut(1).logs.call(&[look(4), look(9)]).expect("lookups are answered");
        let contents: Vec<Content> = answers
            .into_iter()
            .map(|answer| match answer {
                Answer::Attested(attestation) => attestation.claim.content,
                Answer::Done => unreachable!("a lookup has an answer"),
            })
            .collect();
        assert!(matches!(contents[0], Content::Forgotten { .. }), "{contents:?}");
        assert!(matches!(contents[1], Content::Assigned { .. }), "{contents:?}");
    }
}

#[test]
fn a_replica_that_leaves_lets_its_logs_be() {
    covers!("A2MPBFTEA-C5");
    let mut net = Net::new(1);
    for number in 1..=4 {
        net.request(&frame(number, 1), 0..3);
        // Nobody tells replica 1 of a checkpoint.
        let checkpoint = |message: &Message| matches!(message, Message::Attested(it) if matches!(it.body, Body::Checkpoint(_)));
        net.run_where(|flight| flight.to != r(1) || !checkpoint(&flight.message));
    }
    let proof = net.node(0).replica.stable_proof().clone();
    assert_eq!((proof.target().0, net.node(1).replica.stable.0), (Seq(4), Seq(0)));
    net.request(&frame(9, 1), 0..3);
    net.suspect([1, 2]);
    net.run_where(|flight| matches!(flight.message, Message::Want(_)));
    assert!(!net.node(1).replica.active);
    net.tell(0, 1, Message::Stable(proof));
    assert_eq!(net.node(1).replica.stable.0, Seq(4));
    let slot = place::flattened(View(0), Seq(5));
    let look = Operation::Lookup { log: place::COMMIT, slot, nonce: [0; 32] };
    let answers = net.node_mut(1).logs.call(&[look]).expect("lookups are answered");
    let Some(Answer::Attested(attestation)) = answers.into_iter().next() else {
        unreachable!("it has an answer")
    };
    assert!(
        !matches!(attestation.claim.content, Content::Forgotten { .. }),
        "a later view change must show it"
    );
}

#[test]
fn the_log_of_checkpoints_is_truncated_while_a_view_is_left() {
    covers!("A2MPBFTEA-C5");
    let mut net = Net::new(1);
    net.node_mut(1).logs = super::harness::logs_of(&net.group, r(1), CHECKPOINTS);
    // Replica 1 leaves for view 1 on the word of replica 2, which shows nothing more of it to anybody.
    let want = |net: &mut Net, replica| {
        net.step(r(replica), |replica, cx| replica.suspect(cx, "a test"));
    };
    want(&mut net, 2);
    want(&mut net, 1);
    net.run_where(|flight| (flight.from, flight.to) == (r(2), r(1)));
    assert!(!net.node(1).replica.active);
    // It hears what the others decide in view 0, and vouches for each of their checkpoints.
    let more = 3 * CHECKPOINTS as u64;
    for number in 1..=SMALL.interval * more {
        net.request(&frame(number, 1), 0..3);
        net.run_where(|flight| flight.from != r(1) || flight.to == r(1));
    }
    let node = &net.node(1).replica;
    assert_eq!((node.stable.0, node.active), (Seq(SMALL.interval * more), false));
    assert_eq!(node.delivered, node.stable.0);
    assert_eq!(node.forgotten.get(&place::CHECKPOINT), Some(&place::flattened(View(0), node.stable.0)));
    let others = [place::PREPARE, place::COMMIT, place::VIEW_CHANGE, place::NEW_VIEW];
    assert!(others.iter().all(|log| !node.forgotten.contains_key(log)), "{:?}", node.forgotten);
    net.restart(1);
    let node = net.node(1);
    assert_eq!((node.halted, node.replica.active, node.replica.view), (None, false, View(1)));
}

#[test]
fn a_replica_far_behind_has_the_state_transferred() {
    covers!("A2MPBFTEA-T1");
    covers!("A2MPBFTEA-T2");
    let mut net = Net::new(1);
    net.node_mut(2).down = true;
    for number in 1..=8 {
        net.request(&frame(number, 1), 0..2);
        net.run();
    }
    net.node_mut(2).down = false;
    (0..8).for_each(|_| net.compare_notes());
    let (seq, digest, _) = net.node(2).transfers.last().cloned().expect("it fetches the state");
    assert_eq!(seq, Seq(8));
    net.install(2, seq, digest);
    net.run();
    net.order(&frame(20, 1));
    assert_eq!(net.node(2).executed_up_to(), Seq(9));
}

#[test]
fn one_whose_state_is_on_its_way_goes_on_with_a_later_one_at_once() {
    covers!("A2MPBFTEA-T1");
    let mut net = Net::with(1, Config { window: 16, ..SMALL });
    net.node_mut(2).down = true;
    let told = |net: &mut Net, numbers: std::ops::RangeInclusive<u64>| {
        for number in numbers {
            net.request(&frame(number, 1), 0..2);
            net.run();
        }
        let proof = net.node(0).replica.stable_proof().clone();
        net.node_mut(2).down = false;
        net.tell(0, 2, Message::Stable(proof));
        net.node_mut(2).down = true;
        net.node(2).transfers.iter().map(|(seq, ..)| seq.0).collect::<Vec<u64>>()
    };
    assert_eq!(told(&mut net, 1..=4), [0; 0]);
    net.node_mut(2).down = false;
    net.fire(2, Timer::Behind);
    // The others let go of the state at 4 as they made 8 stable.
    assert_eq!(told(&mut net, 5..=8), [4, 8]);
    net.node_mut(2).down = false;
    let digest = net.node(0).replica.stable.1;
    net.install(2, Seq(8), digest);
    assert_eq!(told(&mut net, 9..=12), [4, 8], "it lets the ordinary messages arrive again");
}

#[test]
fn a_replica_votes_for_nothing_while_its_state_is_transferred() {
    covers!("A2MPBFTEA-C8");
    let mut net = Net::new(1);
    net.node_mut(2).down = true;
    for number in 1..=8 {
        net.request(&frame(number, 1), 0..2);
        net.run();
    }
    net.node_mut(2).down = false;
    let proof = Message::Stable(net.node(0).replica.stable_proof().clone());
    net.tell(0, 2, proof);
    let (seq, digest, _) = net.node(2).transfers.last().cloned().expect("it is a window behind");
    net.order(&frame(20, 1));
    let votes = |net: &Net| net.node(2).own.iter().filter(|it| is_prepare(it)).count();
    assert_eq!((votes(&net), net.node(1).executed_up_to()), (0, Seq(9)), "the others do without it");
    net.install(2, seq, digest);
    net.order(&frame(21, 1));
    assert_eq!((votes(&net), net.node(2).executed_up_to()), (2, Seq(10)));
}

#[test]
fn a_wrong_state_is_thrown_away() {
    covers!("A2MPBFTEA-T3");
    let mut net = Net::new(1);
    // What its executor did before was wrong.
    net.node_mut(2).spoil();
    order_many(&mut net, 4);
    assert_eq!(net.node(2).repairs.len(), 1);
    let good = net.node(0).replica.stable;
    net.install(2, good.0, good.1);
    assert!(!net.node(2).replica.repairing);
}

#[test]
fn own_checkpoints_are_vouched_for_once() {
    covers!("A2MPBFTEA-C3");
    let mut net = Net::new(1);
    order_many(&mut net, 4);
    let checkpoints = |message: &&Message| matches!(message, Message::Attested(it) if matches!(it.body, Body::Checkpoint(_)));
    assert_eq!(net.node(1).own.iter().filter(checkpoints).count(), 1);
    let proof: Arc<StableProof> = net.node(1).replica.stable_proof().clone();
    net.tell(0, 1, Message::Stable(proof));
    assert_eq!(net.node(1).own.iter().filter(checkpoints).count(), 1);
}

#[test]
fn nothing_is_executed_beyond_what_the_history_has_room_for() {
    covers!("A2MPBFTEA-N13");
    let mut net = Net::new(1);
    let furthest = 2 * SMALL.window;
    let tells_of_a_checkpoint = |message: &Message| match message {
        Message::Attested(message) => matches!(message.body, Body::Checkpoint(_)),
        message => matches!(message, Message::Stable(_)),
    };
    for number in 1..=furthest {
        net.request(&frame(number, 1), 0..3);
        net.run_where(|flight| flight.to != r(1) || !tells_of_a_checkpoint(&flight.message));
    }
    let delivered = |net: &Net| net.node(1).replica.delivered.0;
    assert_eq!((delivered(&net), net.node(1).replica.stable.0), (furthest, Seq(0)));
    // It enters a view that starts there: f+1 replicas have committed to that, and none showed it what is stable.
    let more: Vec<_> = (1..=4).map(|number| frame(furthest + number, 1)).collect();
    more.iter().for_each(|frame| net.request(frame, [1]));
    let chosen: Vec<_> = more.iter().map(|frame| batch(&[frame])).collect();
    net.step(r(1), |replica, cx| {
        replica.started = Started { by: None, base: Seq(furthest), chosen };
        (replica.prepared_up_to, replica.committed_up_to) = (Seq(furthest + 4), Seq(furthest + 4));
        replica.progress(cx);
    });
    assert_eq!((delivered(&net), net.node(1).halted), (furthest, None));
    let proof = net.node(0).replica.stable_proof().clone();
    assert_eq!(proof.target().0, Seq(furthest));
    net.tell(0, 1, Message::Stable(proof));
    assert_eq!((delivered(&net), net.node(1).halted), (furthest + 4, None));
}
