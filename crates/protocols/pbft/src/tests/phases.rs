//! §4: PRE-PREPARE, PREPARE and COMMIT that are signed.

use super::harness::{Flight, Net, SMALL, batch, covers, frame, r};
use crate::message::{Body, Message, Phase, PrePrepare, Vote};
use crate::{Config, Timer};
use troth_core::Agreement;
use troth_types::{Batch, Digest, Seq, View};

const SIGNED: Config = Config { signs_phases: true, ..SMALL };

fn proposal(seq: u64, batch: &Batch) -> Phase {
    Phase::PrePrepare(PrePrepare { view: View(0), seq: Seq(seq), batch: batch.clone() })
}

fn vote(seq: u64, digest: Digest) -> Vote {
    Vote { view: View(0), seq: Seq(seq), digest }
}

/// The message of the three phases on its way, where it is signed by its sender.
fn signed(flight: &Flight) -> Option<&Phase> {
    match &flight.message {
        Message::Signed(message) if message.from == flight.from => match &message.body {
            Body::Phase(phase) => Some(phase),
            _ => None,
        },
        _ => None,
    }
}

fn plain(flight: &Flight) -> bool {
    matches!(flight.message, Message::PrePrepare(_) | Message::Prepare(_) | Message::Commit(_))
}

#[test]
fn everything_is_signed_where_the_group_signs_everything() {
    covers!("PBFT-S1");
    let mut net = Net::with(1, SIGNED);
    let one = frame(1, 1);
    net.request(&one, 0..4);
    let mut kinds = [0; 3];
    while let Some(flight) = net.wire.pop_front() {
        assert!(!plain(&flight), "{flight:?} is not signed");
        match signed(&flight) {
            Some(Phase::PrePrepare(_)) => kinds[0] += 1,
            Some(Phase::Prepare(_)) => kinds[1] += 1,
            Some(Phase::Commit(_)) => kinds[2] += 1,
            None => {}
        }
        net.tell(flight.from.0, flight.to.0, flight.message);
    }
    assert_eq!(kinds, [4, 3 * 4, 4 * 4], "to everybody, the sender too");
    for replica in 0..4 {
        assert_eq!(net.node(replica).history(), [one.digest()]);
        assert_eq!(net.node(replica).accused(), []);
    }
}

#[test]
fn what_is_sent_again_is_signed_too() {
    let mut net = Net::with(1, SIGNED);
    net.request(&frame(1, 1), 0..4);
    // Nothing reaches the last replica.
    net.run_where(|flight| flight.to != r(3));
    assert!(net.node(3).history().is_empty());
    for _ in 0..4 {
        net.now += SIGNED.status_interval;
        net.fire(3, Timer::Status);
        net.run_where(|flight| {
            assert!(!plain(flight), "{flight:?} is not signed");
            true
        });
    }
    assert_eq!(net.node(3).history().len(), 1, "it got what it lacked");
}

#[test]
fn a_view_changes_where_everything_is_signed() {
    let mut net = Net::with(1, SIGNED);
    let (one, two) = (frame(1, 1), frame(2, 1));
    net.request(&one, 0..4);
    // It prepares everywhere and commits nowhere.
    net.run_where(|flight| !matches!(signed(flight), Some(Phase::Commit(_))));
    for replica in 1..4 {
        net.leave(replica);
    }
    net.run();
    net.order(&two);
    for replica in 0..4 {
        assert_eq!(net.node(replica).history(), [one.digest(), two.digest()]);
        assert_eq!(net.node(replica).view(), View(1));
        assert_eq!(net.node(replica).accused(), []);
    }
}

#[test]
fn only_what_the_group_expects_counts_and_for_its_signer() {
    covers!("PBFT-S2");
    let one = frame(1, 1);
    let batch = batch(&[&one]);
    let digest = batch.digest();
    for (config, signs) in [(SIGNED, true), (SMALL, false)] {
        let mut net = Net::with(1, config);
        net.request(&one, [1]);
        net.wire.clear();
        let said = |net: &Net, from: u16, phase: Phase, is_signed: bool| match is_signed {
            true => net.signed(from, Body::Phase(phase)),
            false => phase.into(),
        };
        // Of the other kind of group: nothing of it counts.
        let ignored = net.node(1).ignored();
        let wrong = said(&net, 0, proposal(1, &batch), !signs);
        net.tell(0, 1, wrong);
        for from in [0, 2, 3] {
            let prepare = said(&net, from, Phase::Prepare(vote(1, digest)), !signs);
            let commit = said(&net, from, Phase::Commit(vote(1, digest)), !signs);
            net.tell(from, 1, prepare);
            net.tell(from, 1, commit);
        }
        assert_eq!(net.node(1).ignored(), ignored + 7);
        assert!(net.wire.is_empty() && net.node(1).history().is_empty(), "it voted for nothing");
        let right = said(&net, 0, proposal(1, &batch), signs);
        net.tell(0, 1, right);
        for from in [0, 2, 3] {
            let commit = said(&net, from, Phase::Commit(vote(1, digest)), signs);
            net.tell(from, 1, commit);
        }
        assert_eq!(net.node(1).history(), [one.digest()]);
    }
}

#[test]
fn a_signed_vote_is_its_signers_whoever_shows_it() {
    covers!("PBFT-S2");
    let mut net = Net::with(1, SIGNED);
    let one = frame(1, 1);
    let batch = batch(&[&one]);
    net.request(&one, [1]);
    let right = net.signed(0, Body::Phase(proposal(1, &batch)));
    // The proposal of the primary, shown by a backup.
    net.tell(3, 1, right);
    let commit = |net: &Net, from| net.signed(from, Body::Phase(Phase::Commit(vote(1, batch.digest()))));
    for shows in [0, 2, 3] {
        let of_two = commit(&net, 2);
        net.tell(shows, 1, of_two);
    }
    assert!(net.node(1).history().is_empty(), "one replica's, however many show it");
    for from in [0, 3] {
        let theirs = commit(&net, from);
        net.tell(2, 1, theirs);
    }
    assert_eq!(net.node(1).history(), [one.digest()]);
}

#[test]
fn who_signs_two_things_of_one_number_is_faulty_for_all_to_see() {
    covers!("PBFT-S3");
    let (one, two) = (batch(&[&frame(1, 1)]), batch(&[&frame(2, 1)]));
    let twice: [(u16, [Phase; 2]); 3] = [
        (0, [proposal(1, &one), proposal(1, &two)]),
        (2, [Phase::Prepare(vote(1, one.digest())), Phase::Prepare(vote(1, two.digest()))]),
        (2, [Phase::Commit(vote(1, one.digest())), Phase::Commit(vote(1, two.digest()))]),
    ];
    for (by, said) in twice {
        let mut net = Net::with(1, SIGNED);
        let mut unsigned = Net::with(1, SMALL);
        for phase in said {
            // What is said again is not said twice.
            for _ in 0..2 {
                assert_eq!(net.node(1).accused(), []);
                let message = net.signed(by, Body::Phase(phase.clone()));
                // The last of them is shown by somebody else.
                net.tell(3, 1, message);
                if net.node(1).accused() == [r(by)] {
                    break;
                }
            }
            unsigned.tell(by, 1, phase.into());
        }
        assert_eq!(net.node(1).accused(), [r(by)]);
        assert_eq!(unsigned.node(1).accused(), [], "nobody else would believe it");
    }
}

/// Who passes on what others signed before it comes by itself has them charged for whatever is checked of it again.
#[test]
fn what_is_known_of_a_number_already_is_passed_over() {
    covers!("PBFT-R14");
    let mut net = Net::with(1, SIGNED);
    let (one, other) = (batch(&[&frame(1, 1)]), batch(&[&frame(2, 1)]));
    let digests = [one.digest(), other.digest()];
    let worth = |net: &Net, from: u16, phase: &Phase| {
        net.node(3).pbft.is_worth_checking(&net.signed(from, Body::Phase(phase.clone())))
    };
    let all = |seq: u64, batch: &Batch| {
        let vote = vote(seq, batch.digest());
        [(0, proposal(seq, batch)), (2, Phase::Prepare(vote)), (2, Phase::Commit(vote))]
    };
    for ((from, phase), (_, contradicts)) in all(1, &one).iter().zip(&all(1, &other)) {
        assert!(worth(&net, *from, phase));
        let relayed = net.signed(*from, Body::Phase(phase.clone()));
        net.tell(1, 3, relayed);
        assert!(!worth(&net, *from, phase), "{phase:?} is here");
        assert!(worth(&net, *from, contradicts), "{contradicts:?} shows that its sender is faulty");
    }
    assert!(worth(&net, 1, &Phase::Prepare(vote(1, digests[0]))), "another's vote");
    let elsewhere = Vote { view: View(1), seq: Seq(2), digest: digests[0] };
    assert!(!worth(&net, 2, &Phase::Commit(elsewhere)), "another view");
    for (from, phase) in all(3 * SIGNED.window, &one) {
        assert!(!worth(&net, from, &phase), "{phase:?} is of no number that is near");
    }
}
