//! §4.3: garbage collection, and what follows for one who is behind.

use super::harness::{Net, SMALL, covers, frame, r};
use crate::message::{Body, Checkpoint, Message, StableProof};
use crate::{Config, Timer};
use std::sync::Arc;
use troth_core::Note;
use troth_types::{Digest, Seq};

fn checkpoint(seq: u64, digest: Digest) -> Body {
    Body::Checkpoint(Checkpoint { seq: Seq(seq), digest })
}

fn proof(net: &Net, seq: u64, digest: Digest, by: &[u16]) -> Arc<StableProof> {
    let votes = by.iter().map(|from| match net.signed(*from, checkpoint(seq, digest)) {
        Message::Signed(message) => message,
        _ => unreachable!("a body becomes a signed message"),
    });
    Arc::new(StableProof { votes: votes.collect() })
}

#[test]
fn votes_of_nobody_prove_nothing() {
    covers!("PBFT-C2");
    let net = Net::new(1);
    let good = proof(&net, 8, Digest([1; 32]), &[0, 1, 2]);
    let group = net.node(0).pbft.group;
    assert_eq!(crate::checkpoint::proven(&group, false, &good), Some((Seq(8), Digest([1; 32]))));
    for stranger in [4, 127, 128, u16::MAX] {
        let mut votes = good.votes.clone();
        votes[2] = Arc::new(crate::message::Signed { from: r(stranger), ..(*votes[2]).clone() });
        assert_eq!(crate::checkpoint::proven(&group, false, &StableProof { votes }), None, "{stranger}");
    }
}

#[test]
fn a_checkpoint_is_taken_every_interval_signed_and_stable_at_a_quorum() {
    covers!("PBFT-C1");
    covers!("PBFT-C2");
    covers!("PBFT-C3");
    covers!("PBFT-C4");
    let mut net = Net::new(1);
    for number in 1..=u64::from(SMALL.interval as u32) {
        net.order(&frame(number, 1));
    }
    for replica in 0..4 {
        let pbft = &net.node(replica).pbft;
        assert_eq!(pbft.stable.0, Seq(SMALL.interval));
        assert!(pbft.slots.is_empty() && pbft.prepared.is_empty() && pbft.pre_prepared.is_empty());
        assert!(pbft.decided.is_empty() && pbft.batches.is_empty() && pbft.frames.is_empty());
    }
}

#[test]
fn what_leads_to_a_checkpoint_is_durable_before_the_checkpoint_leaves() {
    covers!("PBFT-R10");
    let mut net = Net::new(1);
    for number in 1..SMALL.interval {
        net.order(&frame(number, 1));
    }
    net.node_mut(1).trail.clear();
    net.order(&frame(9, 1));
    let trail = &net.node(1).trail;
    let signed = trail.iter().position(|what| *what == "sign").expect("its CHECKPOINT");
    // Of the last batch: its frame, the promise, what prepared, and that it was executed.
    assert_eq!(trail[..signed].iter().filter(|what| **what == "persist").count(), 4, "{trail:?}");
    let executed = |record: &crate::Record| matches!(record, crate::Record::Executed(Seq(4), _));
    assert!(net.node(1).records.iter().any(executed));
}

#[test]
fn a_certificate_takes_a_quorum_of_distinct_replicas_that_say_the_same() {
    covers!("PBFT-C2");
    let mut net = Net::new(1);
    let digest = Digest([4; 32]);
    for votes in [&[0u16, 2][..], &[0, 2, 2], &[0, 0, 0]] {
        let proof = proof(&net, 4, digest, votes);
        net.tell(0, 1, Message::Stable(proof));
        assert_eq!(net.node(1).pbft.stable.0, Seq(0), "{votes:?}");
    }
    let mut mixed = (*proof(&net, 4, digest, &[0, 2])).clone();
    mixed.votes.extend(proof(&net, 4, Digest([5; 32]), &[3]).votes.clone());
    net.tell(0, 1, Message::Stable(Arc::new(mixed)));
    assert_eq!(net.node(1).pbft.stable.0, Seq(0));
    let good = proof(&net, 4, digest, &[0, 2, 3]);
    net.tell(0, 1, Message::Stable(good));
    assert_eq!(net.node(1).pbft.stable, (Seq(4), digest));
}

#[test]
fn checkpoints_of_no_interval_and_far_away_ones_take_no_room() {
    covers!("PBFT-C2");
    let mut net = Net::new(1);
    for seq in [3, 4 * SMALL.window, u64::MAX] {
        let message = net.signed(2, checkpoint(seq, Digest([1; 32])));
        net.tell(2, 1, message);
    }
    assert!(net.node(1).pbft.checkpoint_votes.is_empty());
    // What does not hold is a question of the certificate alone.
    let none = proof(&net, 4, Digest([4; 32]), &[0]);
    net.tell(2, 1, Message::Stable(none));
}

#[test]
fn nobody_is_brought_to_the_end_of_the_numbers() {
    covers!("PBFT-C2");
    let mut net = Net::new(1);
    let digest = Digest([4; 32]);
    for seq in [u64::MAX, u64::MAX - SMALL.window, 1 << 63] {
        let proof = proof(&net, seq, digest, &[0, 2, 3]);
        net.tell(0, 1, Message::Stable(proof));
        assert_eq!(net.node(1).pbft.stable.0, Seq(0), "{seq}");
    }
    let last = (1 << 63) - 1;
    let proof = proof(&net, last, digest, &[0, 2, 3]);
    net.tell(0, 1, Message::Stable(proof));
    assert_eq!(net.node(1).pbft.stable, (Seq(last), digest));
    assert_eq!(net.node(1).pbft.highest(), Seq(last + SMALL.window));
}

#[test]
fn a_checkpoint_that_vouches_for_no_history_is_no_vote_where_the_others_do() {
    for histories in [false, true] {
        let mut net = Net::with(1, Config { histories, tentative: false, ..SMALL });
        let message = net.signed(2, checkpoint(SMALL.interval, Digest([1; 32])));
        net.tell(2, 1, message);
        assert_eq!(net.node(1).pbft.checkpoint_votes.is_empty(), histories);
    }
}

#[test]
fn one_that_is_behind_lets_messages_arrive_and_then_fetches_the_state() {
    covers!("PBFT-T1");
    covers!("PBFT-T2");
    let mut net = Net::new(1);
    let digest = Digest([4; 32]);
    let stable = proof(&net, 4, digest, &[0, 2, 3]);
    net.tell(0, 1, Message::Stable(stable));
    assert!(net.node(1).transfers.is_empty());
    net.fire(1, Timer::Behind);
    assert_eq!(net.node(1).transfers, [(Seq(4), digest, vec![r(0), r(2), r(3), r(1)])]);
    net.wire.clear();
    net.install(1, Seq(4), digest);
    assert_eq!(net.node(1).pbft.delivered, Seq(4));
    let own = net.sent(1, |message| match message {
        Message::Signed(signed) => signed.body == checkpoint(4, digest),
        _ => false,
    });
    assert_eq!(own, 3, "who came by transfer vouches, too");
}

#[test]
fn one_whose_state_is_on_its_way_goes_on_with_a_later_one_at_once() {
    covers!("PBFT-T1");
    let mut net = Net::with(1, Config { window: 16, ..SMALL });
    let told = |net: &mut Net, seq, byte| {
        let stable = proof(net, seq, Digest([byte; 32]), &[0, 2, 3]);
        net.tell(0, 1, Message::Stable(stable));
        net.node(1).transfers.iter().map(|(seq, ..)| seq.0).collect::<Vec<u64>>()
    };
    assert_eq!(told(&mut net, 4, 4), [0; 0]);
    net.fire(1, Timer::Behind);
    // The others let go of the state at 4 as they made 8 stable.
    assert_eq!(told(&mut net, 8, 8), [4, 8]);
    net.install(1, Seq(8), Digest([8; 32]));
    assert_eq!(told(&mut net, 12, 12), [4, 8], "it lets the ordinary messages arrive again");
    net.fire(1, Timer::Behind);
    assert_eq!(net.node(1).transfers.len(), 3);
}

#[test]
fn one_that_is_a_window_behind_fetches_the_state_at_once() {
    covers!("PBFT-T1");
    let mut net = Net::new(1);
    let stable = proof(&net, SMALL.window, Digest([4; 32]), &[0, 2, 3]);
    net.tell(0, 1, Message::Stable(stable));
    assert_eq!(net.node(1).transfers.len(), 1);
}

#[test]
fn a_state_that_differs_from_a_stable_one_is_replaced_before_anything_else_is_executed() {
    covers!("PBFT-T3");
    let mut net = Net::new(1);
    for number in 1..=4 {
        net.request(&frame(number, 1), 0..4);
        net.run_where(|flight| {
            !matches!(&flight.message, Message::Signed(signed) if matches!(signed.body, Body::Checkpoint(_)))
        });
    }
    assert_eq!(net.node(1).executed_up_to(), Seq(4));
    let other = Digest([8; 32]);
    let stable = proof(&net, 4, other, &[0, 2, 3]);
    net.tell(0, 1, Message::Stable(stable));
    assert_eq!(net.node(1).repairs, [(Seq(4), other)]);
    assert!(net.node(1).notes.contains(&Note::Diverged { seq: Seq(4) }));
    net.request(&frame(5, 1), 0..4);
    net.run();
    assert_eq!(net.node(1).executed_up_to(), Seq(4), "its state is wrong");
    net.install(1, Seq(4), other);
    assert_eq!(net.node(1).executed_up_to(), Seq(5));
}
