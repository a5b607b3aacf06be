//! Components that take the place of others: which of them counts, and where its log begins.

use super::harness::{Net, covers, logs, r};
use crate::{Body, Message};
use troth_core::{Agreement, Note};
use troth_pbft::{AttestedCheckpoint, Checkpoint, Record};
use troth_trusted::CounterValue;
use troth_trusted::a2m::{Answer, Attestation, Content, LogId, Operation};
use troth_trusted_host::TrustedLogs;
use troth_types::{Digest, Seq};

fn stable(net: &Net, replica: u16) -> u64 {
    net.node(replica).replica.status().stable.0
}

/// Where a replica's history ends, as its component says.
fn end(net: &mut Net, replica: u16) -> u128 {
    let end = Operation::End { log: LogId(0), nonce: [0; 32] };
    let answers = net.node_mut(replica).logs.call(&[end]).expect("a question");
    let Answer::Attested(attestation) = &answers[0] else { panic!("it is answered") };
    attestation.claim.slot.0
}

/// A group whose replica 2 lost its component after three batches, the last of which admits another one.
fn renewed() -> Net {
    let mut net = Net::new();
    net.order_many(1..=3);
    net.renew(2, 2);
    net.admit(&[(2, 2, 3)]);
    net
}

#[test]
fn a_new_log_goes_on_from_a_stable_checkpoint_of_the_own_state_and_vouches() {
    covers!("A2MPBFTE-N3");
    let mut net = renewed();
    assert_eq!(net.node(2).executed_up_to(), Seq(3));
    assert!(!net.node(2).replica.status().votes && net.node(1).replica.status().votes);
    assert_eq!(end(&mut net, 2), 0, "nothing of what it executed before is in it");
    // The others make 4 stable, with a batch without frames.
    net.run();
    assert_eq!((stable(&net, 2), end(&mut net, 2)), (4, 0));
    assert!(net.node(2).released.is_empty());
    // A read asks for an end that its component does not have yet.
    assert!(!net.ask_end(2, 4, [1; 32]));
    net.order_many(5..=7);
    assert!(net.node(2).replica.status().votes);
    for number in 5..=7 {
        let (own, other) = (net.node(2).entry(number), net.node(0).entry(number));
        assert!(own.is_some() && own == other, "the histories differ at {number}");
        assert!(net.node(2).released.contains_key(&Seq(number)));
    }
    let before = net.node_mut(2).logs.call(&[Operation::Lookup {
        log: LogId(0),
        slot: CounterValue(4),
        nonce: [0; 32],
    }]);
    let Answer::Attested(before) = &before.expect("a lookup")[0] else { panic!("it is answered") };
    assert!(matches!(before.claim.content, Content::Skipped { .. }), "{:?}", before.claim.content);
    // Without 3 the others need its vote.
    net.node_mut(3).down = true;
    net.order_many(8..=8);
    assert_eq!(stable(&net, 0), 8);
    // It starts again from a log that knows less than the component.
    let records = net.node(2).records.clone();
    let logs = std::mem::replace(&mut net.node_mut(2).logs, logs(2));
    net.renew(2, 2);
    net.node_mut(2).logs = logs;
    net.node_mut(2).records = records;
    net.admit(&[(2, 2, 3)]);
    assert_eq!(net.node(2).halted, None);
}

#[test]
fn nothing_is_appended_to_a_component_that_the_configuration_does_not_name() {
    covers!("A2MPBFTE-N1");
    let mut net = Net::new();
    net.order_many(1..=3);
    net.renew(2, 2);
    // What admits it is not executed yet.
    net.order_many(4..=9);
    assert_eq!((stable(&net, 2), end(&mut net, 2)), (8, 0));
    // The checkpoint that it knows is below what admits it: the earlier component counts there.
    net.admit(&[(2, 2, 9)]);
    assert_eq!((stable(&net, 2), end(&mut net, 2)), (8, 0));
    net.order_many(10..=11);
    assert_eq!((stable(&net, 2), end(&mut net, 2)), (12, 13));
    // One that another one takes the place of fills nothing more.
    net.admit(&[(2, 2, 9), (2, 3, 13)]);
    net.order_many(12..=16);
    assert_eq!(end(&mut net, 2), 13);
    assert!(!net.node(2).replica.status().votes);
}

#[test]
fn a_new_log_does_not_begin_where_the_own_state_is_another() {
    covers!("A2MPBFTE-N4");
    for (own, begins) in [(Digest([7; 32]), true), (Digest([8; 32]), false)] {
        let mut net = renewed();
        // Of the others nothing came to it but the batch.
        for replica in 0..4 {
            let frame = super::harness::frame(1, 4);
            net.step(r(replica), |replica, cx| replica.on_requests(cx, vec![frame]));
        }
        net.run_where(|flight| !is_attested(&flight.message));
        net.step(r(2), |replica, cx| replica.on_checkpoint(cx, Seq(4), own));
        for from in [0, 1, 3] {
            let message = vote(&net, from, 4, 1);
            net.tell(from, 2, message);
        }
        assert_eq!(stable(&net, 2), 4);
        assert_eq!(!net.node(2).replica.history().is_to_begin(), begins);
    }
}

/// The CHECKPOINT of a replica at a number, with the attestation of another replica's component as of this epoch.
fn vote(net: &Net, from: u16, at: u64, epoch: u64) -> Message {
    vote_for(net, from, at, epoch, Digest([7; 32]))
}

/// As [`vote`], for a state with this digest.
pub(super) fn vote_for(net: &Net, from: u16, at: u64, epoch: u64, digest: Digest) -> Message {
    let held = net.node(0).replica.history().held(Seq(at)).expect("attested");
    let mut attestation: Attestation = held.attestation.clone().expect("attested for everybody");
    attestation.epoch.0 = epoch;
    let checkpoint = Checkpoint { seq: Seq(at), digest };
    net.signed(from, Body::Attested(AttestedCheckpoint { checkpoint, attestation }))
}

pub(super) fn is_attested(message: &Message) -> bool {
    matches!(message, Message::Signed(signed) if matches!(signed.body, Body::Attested(_)))
}

/// A group that has executed so many batches and heard no CHECKPOINT.
pub(super) fn without_checkpoints(numbers: core::ops::RangeInclusive<u64>) -> Net {
    let mut net = Net::new();
    for number in numbers {
        for replica in 0..4 {
            let frame = super::harness::frame(1, number);
            net.step(r(replica), |replica, cx| replica.on_requests(cx, vec![frame]));
        }
        net.run_where(|flight| !is_attested(&flight.message));
    }
    net
}

#[test]
fn a_checkpoint_counts_by_the_component_that_its_sender_had_there() {
    covers!("A2MPBFTE-N2");
    for (admitted, epoch, counts) in [(3, 1, false), (3, 2, true), (4, 1, true), (4, 2, false)] {
        let mut net = without_checkpoints(1..=4);
        net.admit(&[(2, 2, admitted)]);
        for (from, epoch) in [(1, 1), (3, 1), (2, epoch)] {
            let message = vote(&net, from, 4, epoch);
            let worth = net.node(0).replica.is_worth_checking(&message);
            assert_eq!(worth, counts || from != 2, "nothing comes of a signature that does not count");
            net.tell(from, 0, message);
        }
        let case = format!("epoch {epoch} of 2, whose second was admitted by {admitted}");
        assert_eq!(stable(&net, 0) == 4, counts, "{case}");
        let ignored = |note: &Note| matches!(note, Note::Ignored { from, .. } if *from == r(2));
        assert_eq!(net.node(0).notes.iter().any(ignored), !counts, "{case}");
    }
}

#[test]
fn a_new_log_does_not_go_on_from_what_a_replaced_component_vouched_for() {
    covers!("A2MPBFTE-N4");
    let proof_with = |epoch| {
        let mut net = without_checkpoints(1..=4);
        if epoch > 1 {
            net.admit(&[(3, epoch, 3)]);
        }
        for from in [0, 1, 3] {
            let message = vote(&net, from, 4, if from == 3 { epoch } else { 1 });
            net.tell(from, 2, message);
        }
        net.node(2).replica.pbft().stable_proof().clone()
    };
    for (epoch, begins) in [(1, false), (2, true)] {
        let mut net = without_checkpoints(1..=3);
        net.renew(2, 2);
        for replica in 0..4 {
            let frame = super::harness::frame(1, 4);
            net.step(r(replica), |replica, cx| replica.on_requests(cx, vec![frame]));
        }
        net.run_where(|flight| !is_attested(&flight.message));
        // The state of the votes is the one that it has.
        net.step(r(2), |replica, cx| replica.on_checkpoint(cx, Seq(4), Digest([7; 32])));
        // It comes before what replaced the component is executed.
        net.tell(0, 2, Message::Stable(proof_with(epoch)));
        assert_eq!(stable(&net, 2), 4);
        net.admit(&[(2, 2, 3), (3, 2, 3)]);
        assert_eq!(!net.node(2).replica.history().is_to_begin(), begins, "epoch {epoch} of 3");
    }
}

#[test]
fn a_vote_that_came_before_its_component_was_known_to_be_replaced_counts_no_more() {
    covers!("A2MPBFTE-N2");
    let mut net = without_checkpoints(1..=4);
    for from in [2, 1] {
        let message = vote(&net, from, 4, 1);
        net.tell(from, 0, message);
    }
    net.admit(&[(2, 2, 3)]);
    let message = vote(&net, 3, 4, 1);
    net.tell(3, 0, message);
    assert_eq!(stable(&net, 0), 0, "two of them count");
    let message = vote(&net, 2, 4, 2);
    net.tell(2, 0, message);
    assert_eq!(stable(&net, 0), 4);
}

#[test]
fn a_group_that_nobody_uses_gets_to_the_checkpoint_where_a_new_log_begins() {
    covers!("A2MPBFTE-N7");
    let mut net = Net::new();
    net.order_many(1..=1);
    net.renew(2, 2);
    net.admit(&[(2, 2, 1)]);
    net.run();
    assert_eq!((stable(&net, 0), stable(&net, 2)), (4, 4));
    assert_eq!(net.node(0).executed_up_to(), Seq(4), "and no further");
    assert!(net.node(0).executed[1..].iter().all(|ordered| ordered.frames.is_empty()));
    assert!(net.node(2).replica.status().votes);
    // By then everybody has a reason for no more of them.
    net.order_many(2..=2);
    assert_eq!(net.node(2).executed_up_to(), Seq(5));
    assert_eq!(end(&mut net, 2), 5);
}

#[test]
fn a_primary_that_starts_again_promises_no_number_a_second_time() {
    covers!("A2MPBFTE-N7");
    let mut net = Net::new();
    net.order_many(1..=2);
    net.renew(2, 2);
    net.admit(&[(2, 2, 2)]);
    // Nothing of what it proposed for the checkpoint came to anybody.
    net.wire.clear();
    net.restart_knowing(0, &[(2, 2, 2)]);
    let proposed: Vec<(u64, u64)> = net
        .node(0)
        .records
        .iter()
        .filter_map(|record| match record {
            Record::PrePrepared(view, seq, _) => Some((view.0, seq.0)),
            _ => None,
        })
        .collect();
    let mut once = proposed.clone();
    once.sort_unstable();
    once.dedup();
    assert_eq!(proposed, once, "each number once in a view");
    assert!(proposed.contains(&(0, 3)), "{proposed:?}");
}
