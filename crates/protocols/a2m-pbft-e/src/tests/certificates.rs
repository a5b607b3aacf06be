//! Certificates in which a component vouches that does not count there, and how they are made anew.

use super::harness::{Net, configuration, covers, frame, r};
use super::renewal::{is_attested, vote_for, without_checkpoints};
use crate::{Body, Message, Timer, is_replaced};
use std::sync::Arc;
use troth_core::Agreement;
use troth_pbft::{Record, StableProof};
use troth_trusted::a2m::Content;
use troth_types::{Digest, Seq};

/// Replicas 2 and 3 have other components since the third batch.
const ADMITTED: [(u16, u64, u64); 2] = [(2, 2, 3), (3, 2, 3)];

/// A group that has executed four batches and heard no CHECKPOINT; replica 2's new log is to begin with the checkpoint there.
fn waiting() -> Net {
    let mut net = without_checkpoints(1..=3);
    net.renew(2, 2);
    for replica in 0..4 {
        net.step(r(replica), |replica, cx| replica.on_requests(cx, vec![frame(1, 4)]));
    }
    net.run_where(|flight| !is_attested(&flight.message));
    net.admit(&ADMITTED);
    assert!(net.node(2).replica.history().is_to_begin());
    net
}

/// The true CHECKPOINT of a replica at the fourth batch, by its component of this epoch.
fn vote(net: &Net, from: u16, epoch: u64) -> Message {
    assert_eq!(net.node(0).executed_up_to(), Seq(4));
    vote_for(net, from, 4, epoch, net.node(0).state)
}

/// The certificate of replicas 0, 1 and 3, the last by its component of this epoch.
fn certificate(net: &Net, epoch_of_3: u64) -> Message {
    certificate_of(net, [(0, 1), (1, 1), (3, epoch_of_3)])
}

/// The certificate of these replicas, by their components of these epochs.
fn certificate_of(net: &Net, by: [(u16, u64); 3]) -> Message {
    certificate_for(net, by, net.node(0).state)
}

/// As [`certificate_of`], for a state with this digest.
fn certificate_for(net: &Net, by: [(u16, u64); 3], state: Digest) -> Message {
    let votes = by.map(|(from, epoch)| match vote_for(net, from, 4, epoch, state) {
        Message::Signed(signed) => signed,
        other => panic!("a CHECKPOINT is signed: {other:?}"),
    });
    Message::Stable(Arc::new(StableProof { votes: votes.into() }))
}

fn is_whole(proof: &StableProof) -> bool {
    let known = configuration(&ADMITTED);
    proof.votes.len() >= 3 && proof.votes.iter().all(|vote| !is_replaced(&known, vote))
}

/// Asserts that the log of replica 2 began with a certificate by components that count, which its own log on disk has too.
fn assert_begun(net: &Net) {
    let node = net.node(2);
    assert!(!node.replica.history().is_to_begin());
    assert!(is_whole(node.replica.pbft().stable_proof()));
    let last = node.records.iter().rev().find_map(|record| match record {
        Record::Stable(proof) => Some(proof),
        _ => None,
    });
    assert!(is_whole(last.expect("it was stable")));
    assert!(!node.replica.pbft().seeks_votes());
}

/// Asserts that replica 2 knows the checkpoint to be stable and its log does not begin.
fn assert_waits(net: &Net) {
    assert_eq!(net.node(2).replica.status().stable, Seq(4));
    assert!(net.node(2).replica.history().is_to_begin());
    assert!(net.node(2).replica.pbft().seeks_votes());
}

#[test]
fn a_vote_that_counts_takes_the_place_of_one_that_does_not_before_or_after() {
    covers!("A2MPBFTE-N9");
    for comes_first in [false, true] {
        let mut net = waiting();
        let (bad, good) = (certificate(&net, 1), vote(&net, 3, 2));
        if comes_first {
            net.tell(3, 2, good);
            net.tell(3, 2, bad);
        } else {
            net.tell(3, 2, bad);
            assert_waits(&net);
            for (vote, is_sought) in
                [(vote(&net, 0, 1), false), (vote(&net, 3, 1), false), (good.clone(), true)]
            {
                assert_eq!(net.node(2).replica.is_worth_checking(&vote), is_sought, "{vote:?}");
            }
            let progress = net.node(2).replica.progress();
            net.tell(3, 2, good.clone());
            assert_ne!(net.node(2).replica.progress(), progress, "nobody is charged for it");
            assert!(!net.node(2).replica.is_worth_checking(&good), "once");
        }
        assert_begun(&net);
    }
}

#[test]
fn a_vote_for_another_state_or_history_takes_no_place() {
    covers!("A2MPBFTE-N9");
    let mut net = waiting();
    let bad = certificate(&net, 1);
    net.tell(3, 2, bad);
    let other_state = vote_for(&net, 3, 4, 2, Digest([7; 32]));
    let Message::Signed(mut other_history) = vote(&net, 3, 2) else { panic!("a CHECKPOINT is signed") };
    let Body::Attested(attested) = &mut Arc::make_mut(&mut other_history).body else {
        panic!("it vouches for a history")
    };
    let Content::Assigned { digest, .. } = &mut attested.attestation.claim.content else {
        panic!("of a batch")
    };
    digest[0] ^= 1;
    for vote in [other_state, Message::Signed(other_history)] {
        assert!(!net.node(2).replica.is_worth_checking(&vote));
        net.tell(3, 2, vote);
        assert_waits(&net);
    }
}

#[test]
fn a_certificate_by_components_that_count_takes_the_place_of_one_that_is_not() {
    covers!("A2MPBFTE-N9");
    let mut net = waiting();
    let (bad, good) = (certificate(&net, 1), certificate(&net, 2));
    net.tell(3, 2, bad.clone());
    assert_waits(&net);
    assert!(!net.node(2).replica.is_worth_checking(&bad), "it brings nothing a second time");
    assert!(net.node(2).replica.is_worth_checking(&good));
    net.tell(1, 2, good.clone());
    assert_begun(&net);
    assert!(!net.node(2).replica.is_worth_checking(&good), "once");
}

#[test]
fn who_lacks_votes_that_count_asks_for_them() {
    covers!("A2MPBFTE-N9");
    let mut net = waiting();
    // Replica 0 has its own vote, and those of the others' present components.
    for (from, epoch) in [(1, 1), (3, 2)] {
        let message = vote(&net, from, epoch);
        net.tell(from, 0, message);
    }
    assert_eq!(net.node(0).replica.status().stable, Seq(4));
    let bad = certificate(&net, 1);
    net.tell(3, 2, bad);
    assert_waits(&net);
    // Eight rounds, for nothing else is under way.
    for _ in 0..8 {
        net.fire(2, Timer::Status);
    }
    net.run();
    assert_begun(&net);
}

#[test]
fn a_certificate_that_was_made_anew_is_the_one_after_a_restart() {
    covers!("A2MPBFTE-N9");
    let mut net = waiting();
    let (bad, good) = (certificate(&net, 1), vote(&net, 3, 2));
    net.tell(3, 2, bad);
    net.tell(3, 2, good);
    assert_begun(&net);
    // Nobody tells it anything, not even the configuration.
    net.renew(2, 2);
    assert!(is_whole(net.node(2).replica.pbft().stable_proof()));
}

#[test]
fn who_lacks_votes_itself_says_its_own_to_who_asks() {
    covers!("A2MPBFTE-N9");
    let mut net = waiting();
    // Both have a certificate that is no better, and the vote of replica 0 was lost on its way.
    let bad = certificate_of(&net, [(1, 1), (2, 1), (3, 1)]);
    for replica in [0, 2] {
        net.tell(3, replica, bad.clone());
    }
    assert_waits(&net);
    assert!(net.node(0).replica.pbft().seeks_votes());
    let voters =
        |net: &Net| net.node(2).replica.pbft().stable_votes().map(|vote| vote.from).collect::<Vec<_>>();
    assert!(!voters(&net).contains(&r(0)));
    for _ in 0..8 {
        net.fire(2, Timer::Status);
    }
    net.run();
    assert!(voters(&net).contains(&r(0)));
}

#[test]
fn nothing_is_made_anew_before_it_is_known_which_components_count() {
    covers!("A2MPBFTE-N9");
    let mut net = without_checkpoints(1..=2);
    // What follows replica 1 does not hear.
    net.node_mut(1).down = true;
    for number in 3..=4 {
        for replica in 0..4 {
            net.step(r(replica), |replica, cx| replica.on_requests(cx, vec![frame(1, number)]));
        }
        net.run_where(|flight| !is_attested(&flight.message));
    }
    net.node_mut(1).down = false;
    let known = Arc::new(configuration(&[(2, 2, 1)]));
    net.step(r(1), |replica, cx| replica.on_configured(cx, &known));
    // Replica 3 was given another component by the third batch.
    let good = certificate(&net, 2);
    net.tell(0, 1, good);
    let node = net.node(1);
    assert_eq!((node.replica.status().stable, node.executed_up_to()), (Seq(4), Seq(2)));
    assert!(!node.replica.pbft().seeks_votes());
    assert!(!node.replica.is_worth_checking(&vote(&net, 3, 1)));
}

#[test]
fn who_knows_its_own_state_to_be_wrong_makes_nothing_anew() {
    covers!("A2MPBFTE-N9");
    let mut net = waiting();
    // What it executed may be of another history, and so may what it knows of components.
    let other = certificate_for(&net, [(0, 1), (1, 1), (3, 1)], Digest([7; 32]));
    net.tell(3, 2, other);
    assert_eq!(net.node(2).repairs, [(Seq(4), Digest([7; 32]))]);
    assert!(!net.node(2).replica.pbft().seeks_votes());
}
