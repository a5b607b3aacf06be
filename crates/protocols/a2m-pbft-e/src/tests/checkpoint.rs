//! Checkpoints that vouch for the history, and what follows a state transfer.

use super::harness::{Net, covers, frame, r};
use crate::{Body, Message, Timer};
use troth_core::{Agreement, Note};
use troth_pbft::Checkpoint;
use troth_trusted::a2m::{LogId, Operation};
use troth_trusted_host::TrustedLogs;
use troth_types::{Digest, ReplicaId, Seq};

fn is_attested(message: &Message) -> bool {
    matches!(message, Message::Signed(signed) if matches!(signed.body, Body::Attested(_)))
}

fn stable(net: &Net, replica: u16) -> u64 {
    net.node(replica).replica.status().stable.0
}

#[test]
fn a_checkpoint_is_signed_once_its_batch_is_attested() {
    covers!("A2MPBFTE-C1");
    let mut net = Net::new();
    net.node_mut(3).stalled = true;
    net.order_many(1..=4);
    assert!(!net.node(3).trail.iter().any(|step| step.starts_with("sign")), "{:?}", net.node(3).trail);
    net.unstall(3);
    assert!(net.node(3).trail.iter().any(|step| step == "sign CHECKPOINT"));
}

#[test]
fn a_checkpoint_is_stable_when_a_quorum_vouches_for_state_and_history() {
    covers!("A2MPBFTE-C2");
    let mut net = Net::new();
    for number in 1..=4 {
        let frame = frame(1, number);
        for replica in 0..4 {
            net.step(r(replica), |replica, cx| replica.on_requests(cx, vec![frame.clone()]));
        }
        net.run_where(|flight| !is_attested(&flight.message));
    }
    let votes: Vec<Body> = (0..4)
        .map(|replica| {
            let held = net.node(replica).replica.history().held(Seq(4)).expect("attested");
            let (seq, digest) = (Seq(4), Digest([7; 32]));
            let checkpoint = Checkpoint { seq, digest };
            Body::Attested(troth_pbft::AttestedCheckpoint {
                checkpoint,
                attestation: held.attestation.clone().expect("attested for everybody"),
            })
        })
        .collect();
    // The same state, and no history.
    for from in 1..4 {
        let plain = net.signed(from, Body::Checkpoint(Checkpoint { seq: Seq(4), digest: Digest([7; 32]) }));
        assert!(!net.node(0).replica.is_worth_checking(&plain));
        net.tell(from, 0, plain);
    }
    assert_eq!(stable(&net, 0), 0, "a CHECKPOINT without a history counts for nothing");
    // The same state with another history.
    let Body::Attested(mut other) = votes[3].clone() else { panic!("attested") };
    if let troth_trusted::a2m::Content::Assigned { digest, .. } = &mut other.attestation.claim.content {
        *digest = [9; 32];
    }
    for (from, body) in [(1, votes[1].clone()), (2, votes[2].clone()), (3, Body::Attested(other))] {
        let message = net.signed(from, body);
        net.tell(from, 0, message);
    }
    assert_eq!(stable(&net, 0), 0, "two histories are no quorum");
    let message = net.signed(3, votes[3].clone());
    net.tell(3, 0, message);
    assert_eq!(stable(&net, 0), 4);
}

#[test]
fn a_stable_checkpoint_truncates_the_log() {
    let mut net = Net::new();
    net.order_many(1..=5);
    assert_eq!(stable(&net, 2), 4);
    let ask =
        |slot| Operation::Lookup { log: LogId(0), slot: troth_trusted::CounterValue(slot), nonce: [0; 32] };
    let answers = net.node_mut(2).logs.call(&[ask(3), ask(4)]).expect("lookups");
    let content = |at: usize| match &answers[at] {
        troth_trusted::a2m::Answer::Attested(attestation) => attestation.claim.content,
        troth_trusted::a2m::Answer::Done => panic!("a lookup is answered"),
    };
    assert!(matches!(content(0), troth_trusted::a2m::Content::Forgotten { .. }), "{:?}", content(0));
    assert!(matches!(content(1), troth_trusted::a2m::Content::Assigned { .. }), "{:?}", content(1));
}

/// A group in which replica 3 slept through twelve batches and has had the state of the last sent.
pub(super) fn with_a_transfer() -> Net {
    let mut net = Net::new();
    transfer(&mut net, 1);
    net
}

/// Replica 3 sleeps from this batch to the twelfth and has the state of the last sent.
fn transfer(net: &mut Net, first: u64) {
    net.node_mut(3).down = true;
    net.order_many(first..=12);
    net.node_mut(3).down = false;
    let proof = Message::Stable(net.node(0).replica.pbft().stable_proof().clone());
    net.tell(0, 3, proof);
    assert_eq!(net.node(3).transfers.last().map(|(seq, _)| *seq), Some(Seq(12)));
    net.install(3, 0);
    net.wire.clear();
}

#[test]
fn after_a_state_transfer_the_log_waits_for_what_led_there() {
    covers!("A2MPBFTE-T1");
    covers!("A2MPBFTE-T2");
    covers!("A2MPBFTE-T3");
    covers!("A2MPBFTE-T4");
    let mut net = with_a_transfer();
    assert_eq!(net.node(3).replica.history().lacks(), Some(Seq(1)));
    net.order_many(13..=13);
    assert_eq!(net.node(3).executed_up_to(), Seq(13));
    assert!(net.node(3).released.is_empty(), "nothing is proven over a gap");
    // What somebody invents is not appended, and neither is what begins elsewhere.
    net.tell(1, 3, Message::History(Seq(1), vec![Digest([5; 32]); 13]));
    let truth = net.node(1).replica.history().values_from(Seq(2));
    net.tell(1, 3, Message::History(Seq(2), truth));
    assert_eq!(net.node(3).replica.history().lacks(), Some(Seq(1)));
    assert!(net.node(3).notes.iter().any(|note| matches!(note, Note::Ignored { from: ReplicaId(1), .. })));
    net.fire(3, Timer::Status);
    net.run();
    assert_eq!(net.node(3).replica.history().lacks(), None);
    assert_eq!(net.node(3).entry(13), net.node(0).entry(13));
    assert!(net.node(3).released.contains_key(&Seq(13)));
}

#[test]
fn what_is_shown_counts_as_far_as_a_certificate_shows_it() {
    covers!("A2MPBFTE-T4");
    let mut net = with_a_transfer();
    net.order_many(13..=13);
    // True up to the certificate's number, and invented behind it.
    let mut values = net.node(1).replica.history().values_from(Seq(1));
    values.truncate(12);
    values.push(Digest([5; 32]));
    net.tell(1, 3, Message::History(Seq(1), values));
    assert_eq!(net.node(3).entry(13), net.node(0).entry(13), "what it executed itself it knows itself");
}

#[test]
fn history_is_shown_to_each_once_in_a_while() {
    covers!("A2MPBFTE-T3");
    let mut net = Net::new();
    net.order_many(1..=3);
    net.wire.clear();
    let answers = |net: &Net, to| {
        let shown = |message: &Message| matches!(message, Message::History(..));
        net.wire.iter().filter(|flight| flight.to == r(to) && shown(&flight.message)).count()
    };
    for _ in 0..5 {
        net.tell(3, 0, Message::FetchHistory(Seq(1)));
        net.tell(2, 0, Message::FetchHistory(Seq(2)));
        net.tell(1, 0, Message::FetchHistory(Seq(9)));
    }
    assert_eq!((answers(&net, 3), answers(&net, 2), answers(&net, 1)), (1, 1, 0));
    net.now += 1_000_000;
    net.tell(3, 0, Message::FetchHistory(Seq(1)));
    assert_eq!(answers(&net, 3), 2);
}

/// F-A6: as the paper has it, the replica goes on at once and nobody is asked for what its log lacks. Its component says that
/// the log jumped, so that what it attests then is nobody else's history.
#[cfg(feature = "literal")]
#[test]
fn a_log_that_advances_is_told_from_those_that_were_appended_to() {
    let lookup = |net: &mut Net, slot| {
        let ask =
            Operation::Lookup { log: LogId(0), slot: troth_trusted::CounterValue(slot), nonce: [0; 32] };
        match net.node_mut(3).logs.call(&[ask]).expect("a lookup").pop() {
            Some(troth_trusted::a2m::Answer::Attested(attestation)) => attestation.claim.content,
            other => panic!("{other:?}"),
        }
    };
    let mut net = Net::new();
    let replica = &mut net.node_mut(3).replica;
    *replica = replica.clone().literally(Some(crate::Flaw::Advance));
    net.order_many(1..=2);
    transfer(&mut net, 3);
    assert_eq!(net.node(3).replica.history().lacks(), None, "it asks nobody");
    net.order_many(13..=13);
    let (own, other) = (net.node(3).entry(13).expect("attested"), net.node(0).entry(13).expect("attested"));
    assert_eq!(own.value, other.value);
    assert_ne!(own.digest, other.digest);
    let skipped = lookup(&mut net, 12);
    assert!(matches!(skipped, troth_trusted::a2m::Content::Skipped { .. }), "{skipped:?}");
}
