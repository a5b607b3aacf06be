//! What is appended, and when replies go.

use super::harness::{Net, covers, frame, r};
use troth_core::{Agreement, Proven};
use troth_trusted::a2m::Operation;
use troth_types::Seq;

#[test]
fn what_is_executed_is_appended_in_order_and_alike_everywhere() {
    covers!("A2MPBFTE-H1");
    let mut net = Net::new();
    net.order_many(1..=3);
    let histories: Vec<_> =
        (0..4).map(|replica| (1..=3).map(|seq| net.node(replica).entry(seq)).collect::<Vec<_>>()).collect();
    assert!(histories[0].iter().all(Option::is_some), "{histories:?}");
    assert!(histories.iter().all(|history| *history == histories[0]));
    assert_ne!(histories[0][0], histories[0][1]);
}

#[test]
fn replies_wait_for_the_attestation() {
    covers!("A2MPBFTE-H2");
    let mut net = Net::new();
    net.node_mut(2).stalled = true;
    net.order(&frame(1, 1));
    assert_eq!(net.node(2).executed_up_to(), Seq(1));
    assert!(net.node(2).released.is_empty(), "nothing is shown before it is attested");
    assert_eq!(net.node(1).released.len(), 1);
    net.unstall(2);
    let proof = &net.node(2).released[&Seq(1)];
    let first = frame(1, 1);
    assert!(proof.place_of(first.client(), first.number()).is_some());
    assert!(proof.place_of(first.client(), 2).is_none());
}

#[test]
fn appends_are_asked_for_in_the_order_of_execution_while_the_component_is_slow() {
    let mut net = Net::new();
    net.node_mut(2).stalled = true;
    net.order_many(1..=3);
    let appended = net.node(2).asked.iter().flat_map(|(_, operations)| operations);
    let slots: Vec<u128> = appended
        .filter_map(|operation| match operation {
            Operation::Append { slot, .. } => Some(slot.0),
            _ => None,
        })
        .collect();
    assert_eq!(slots, [1, 2, 3]);
    net.unstall(2);
    assert_eq!(net.node(2).released.len(), 3);
}

#[test]
fn proofs_are_there_above_the_stable_checkpoint_and_gone_up_to_it() {
    covers!("A2MPBFTE-H3");
    let mut net = Net::new();
    net.order_many(1..=3);
    assert!(matches!(net.node(1).replica.proven(Seq(3)), Proven::Here(_)));
    net.order_many(4..=5);
    let proven = |seq| net.node(1).replica.proven(Seq(seq));
    assert_eq!((proven(3), proven(4)), (Proven::Gone, Proven::Gone), "4 is stable");
    assert!(matches!(proven(5), Proven::Here(_)));
    assert_eq!(proven(6), Proven::Coming);
}

#[test]
fn a_frame_that_is_executed_is_ordered_again_and_proven_under_its_new_place() {
    let mut net = Net::new();
    let first = frame(1, 1);
    net.order(&first);
    net.order(&first);
    for replica in 0..4 {
        let released = &net.node(replica).released;
        assert_eq!(released.len(), 2);
        assert!(released[&Seq(2)].place_of(first.client(), 1).is_some(), "{:?}", r(replica));
    }
}
