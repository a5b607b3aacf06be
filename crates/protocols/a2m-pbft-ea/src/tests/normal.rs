//! §4.3.1: the three phases.

use super::harness::{Net, SMALL, WALL, batch, covers, frame, r};
use crate::message::{Body, Message, PrePrepare, Vote};
use crate::{Attested, Config, place};
use std::sync::Arc;
use troth_types::{Batch, Digest, Seq, Time, View};

fn body(message: &Message) -> Option<&Body> {
    match message {
        Message::Attested(message) => Some(&message.body),
        _ => None,
    }
}

pub(super) fn is_prepare(message: &Message) -> bool {
    matches!(body(message), Some(Body::Prepare(_)))
}

pub(super) fn is_commit(message: &Message) -> bool {
    matches!(body(message), Some(Body::Commit(_)))
}

fn own(net: &Net, replica: u16) -> Vec<Arc<Attested>> {
    let attested = |message: &Message| match message {
        Message::Attested(message) => Some(message.clone()),
        _ => None,
    };
    net.node(replica).own.iter().filter_map(attested).collect()
}

/// A PREPREPARE that the component of replica 0 attests, whatever its host thinks.
fn proposal(net: &mut Net, view: u64, seq: u64, batch: Batch) -> Message {
    let body = Body::PrePrepare(PrePrepare { view: View(view), seq: Seq(seq), batch });
    let group = net.group;
    super::harness::attested(&group, &mut net.node_mut(0).logs, r(0), body)
}

#[test]
fn three_phases_order_a_request_everywhere() {
    covers!("A2MPBFTEA-N1");
    covers!("A2MPBFTEA-N2");
    covers!("A2MPBFTEA-N3");
    covers!("A2MPBFTEA-N4");
    covers!("A2MPBFTEA-N5");
    covers!("A2MPBFTEA-N11");
    for f in 1..=3 {
        let mut net = Net::new(f);
        let frame = frame(1, 1);
        net.order(&frame);
        for replica in net.group.all() {
            assert_eq!(net.node(replica.0).history(), [frame.digest()], "f = {f}, {replica}");
        }
    }
}

#[test]
fn each_vote_fills_the_slot_of_its_view_and_number() {
    covers!("A2MPBFTEA-L1");
    covers!("A2MPBFTEA-L2");
    let mut net = Net::new(1);
    net.order(&frame(1, 1));
    let mine = own(&net, 1);
    let slots: Vec<_> = mine.iter().filter_map(|message| place::of(&message.body)).collect();
    let at = place::flattened(View(0), Seq(1));
    assert_eq!(slots, [(place::PREPARE, at), (place::COMMIT, at)]);
    // Its component has nothing else to say for that slot.
    let digest = Digest([1; 32]);
    let body = Body::Commit(Vote { view: View(0), seq: Seq(1), digest });
    let mut changed = (*mine[1]).clone();
    changed.body = body.clone();
    assert!(!super::harness::authentic(&net.group, &Message::Attested(Arc::new(changed.clone()))));
    changed.digest = body.digest(net.group.id(), r(1));
    assert!(!super::harness::authentic(&net.group, &Message::Attested(Arc::new(changed))));
}

#[test]
fn an_attestation_of_one_log_does_not_stand_for_another() {
    covers!("A2MPBFTEA-L1");
    let mut net = Net::new(1);
    net.order(&frame(1, 1));
    let mine = own(&net, 1);
    // The PREPARE's attestation below a COMMIT: same slot, other log.
    let mut forged = (*mine[1]).clone();
    forged.attestation = mine[0].attestation.clone();
    assert!(!super::harness::authentic(&net.group, &Message::Attested(Arc::new(forged))));
}

#[test]
fn nobody_votes_for_a_number_before_the_one_before_it() {
    covers!("A2MPBFTEA-N6");
    let mut net = Net::new(1);
    let (one, two) = (frame(1, 1), frame(2, 1));
    for frame in [&one, &two] {
        for replica in 1..3 {
            net.step(r(replica), |replica, cx| replica.admit(cx, (*frame).clone()));
        }
    }
    let first = proposal(&mut net, 0, 1, batch(&[&one]));
    let second = proposal(&mut net, 0, 2, batch(&[&two]));
    net.tell(0, 1, second);
    assert_eq!(net.sent(1, is_prepare), 0, "a gap would hide in the log");
    net.tell(0, 1, first);
    assert_eq!(net.sent(1, is_prepare), 4, "two PREPAREs to two others");
}

#[test]
fn nobody_commits_to_a_number_before_the_one_before_it() {
    covers!("A2MPBFTEA-N9");
    covers!("A2MPBFTEA-N10");
    let mut net = Net::new(2);
    let (one, two) = (frame(1, 1), frame(2, 1));
    net.request(&one, 0..5);
    net.request(&two, 0..5);
    // The PREPAREs for 1 are lost, those for 2 are not.
    let first = |message: &Message| matches!(body(message), Some(Body::Prepare(vote)) if vote.seq == Seq(1));
    net.run_where(|flight| !first(&flight.message));
    let commits = |net: &Net, replica: u16| {
        own(net, replica).iter().filter(|message| message.commit().is_some()).count()
    };
    assert_eq!(commits(&net, 1), 0);
    net.compare_notes();
    net.compare_notes();
    assert!((0..5).all(|replica| net.node(replica).executed_up_to() >= Seq(1)));
}

#[test]
fn one_batch_at_a_time_is_the_paper() {
    covers!("A2MPBFTEA-N2");
    let mut net = Net::with(1, Config { pipeline: 1, ..SMALL });
    net.request(&frame(1, 1), 0..3);
    net.request(&frame(2, 1), 0..3);
    let proposals = net.sent(0, |message| matches!(body(message), Some(Body::PrePrepare(_))));
    assert_eq!(proposals, 2, "one PREPREPARE to two others");
    net.run();
    assert!((0..3).all(|replica| net.node(replica).history().len() == 2));
}

#[test]
fn a_prepared_certificate_needs_the_primarys_own_proposal() {
    covers!("A2MPBFTEA-N10");
    let mut net = Net::new(1);
    let one = frame(1, 1);
    net.request(&one, 1..3);
    // Two backups would be a quorum.
    let group = net.group;
    let vote = Vote { view: View(0), seq: Seq(1), digest: batch(&[&one]).digest() };
    for backup in [1u16, 2] {
        let mut logs = super::harness::logs(&group, r(backup));
        let prepare = super::harness::attested(&group, &mut logs, r(backup), Body::Prepare(vote));
        net.tell(backup, 2, prepare);
    }
    assert_eq!(net.sent(2, is_commit), 0);
}

#[test]
fn a_backup_proposes_nothing_and_the_primary_prepares_nothing() {
    covers!("A2MPBFTEA-N3");
    covers!("A2MPBFTEA-N4");
    let mut net = Net::new(1);
    let one = frame(1, 1);
    net.request(&one, 1..3);
    let group = net.group;
    let body = Body::PrePrepare(PrePrepare { view: View(0), seq: Seq(1), batch: batch(&[&one]) });
    let mut logs = super::harness::logs(&group, r(1));
    let proposal = super::harness::attested(&group, &mut logs, r(1), body);
    net.tell(1, 2, proposal);
    assert_eq!(net.sent(2, is_prepare), 0);
    assert_eq!(net.node(2).ignored(), 1);
    let vote = Vote { view: View(0), seq: Seq(1), digest: batch(&[&one]).digest() };
    let mut logs = super::harness::logs(&group, r(0));
    let prepare = super::harness::attested(&group, &mut logs, r(0), Body::Prepare(vote));
    net.tell(0, 2, prepare);
    assert_eq!(net.node(2).ignored(), 2);
}

#[test]
fn a_batch_without_its_frames_gets_no_vote_until_they_come() {
    covers!("A2MPBFTEA-N7");
    let mut net = Net::new(1);
    let one = frame(1, 1);
    let message = proposal(&mut net, 0, 1, batch(&[&one]));
    net.tell(0, 1, message);
    assert_eq!(net.sent(1, is_prepare), 0);
    net.request(&one, [1]);
    assert_eq!(net.sent(1, is_prepare), 2);
}

#[test]
fn a_batch_of_another_time_or_without_reason_gets_no_vote_of_its_own() {
    covers!("A2MPBFTEA-N8");
    let at = |time: u64| Batch { time: Time(time), frames: vec![frame(1, 1).digest()] };
    let mut net = Net::new(1);
    let oldest = WALL + net.now - SMALL.clock_bound - SMALL.request_timeout;
    net.request(&frame(1, 1), [1]);
    let message = proposal(&mut net, 0, 1, at(oldest));
    net.tell(0, 1, message);
    assert_eq!(net.sent(1, is_prepare), 2, "on the edge");
    let empty = Batch { time: Time(WALL), frames: Vec::new() };
    for bad in [at(WALL + 60_000_000), at(oldest - 1), empty] {
        let mut net = Net::new(1);
        net.request(&frame(1, 1), [1]);
        let message = proposal(&mut net, 0, 1, bad.clone());
        net.tell(0, 1, message);
        assert_eq!(net.sent(1, is_prepare), 0);
        // Another correct replica found it good: f+1 voted.
        let group = net.group;
        let vote = Vote { view: View(0), seq: Seq(1), digest: bad.digest() };
        let mut logs = super::harness::logs(&group, r(2));
        let prepare = super::harness::attested(&group, &mut logs, r(2), Body::Prepare(vote));
        net.tell(2, 1, prepare);
        assert_eq!(net.sent(1, is_prepare), 2);
    }
}

#[test]
fn nothing_is_executed_on_fewer_than_f_plus_1_commits() {
    covers!("A2MPBFTEA-N11");
    let mut net = Net::new(2);
    let one = frame(1, 1);
    net.request(&one, 0..5);
    // Everybody hears one other's COMMIT only.
    net.run_where(|flight| !is_commit(&flight.message) || flight.from.0 == (flight.to.0 + 1) % 5);
    assert!((0..5).all(|replica| net.node(replica).executed.is_empty()));
}

#[test]
fn commits_of_another_view_decide_nothing() {
    covers!("A2MPBFTEA-N5");
    let mut net = Net::new(1);
    let one = frame(1, 1);
    net.request(&one, [2]);
    let message = proposal(&mut net, 0, 1, batch(&[&one]));
    net.tell(0, 2, message);
    let group = net.group;
    let vote = Vote { view: View(1), seq: Seq(1), digest: batch(&[&one]).digest() };
    for from in [0, 1] {
        let mut logs = super::harness::logs(&group, r(from));
        let commit = super::harness::attested(&group, &mut logs, r(from), Body::Commit(vote));
        net.tell(from, 2, commit);
    }
    assert!(net.node(2).executed.is_empty());
}

#[test]
fn frames_of_far_numbers_are_not_fetched() {
    covers!("A2MPBFTEA-R6");
    let mut net = Net::new(1);
    let missing = |number: u8| Batch { time: Time(WALL), frames: vec![Digest([number; 32])] };
    let near = proposal(&mut net, 0, SMALL.pipeline, missing(1));
    let far = proposal(&mut net, 0, SMALL.pipeline + 1, missing(2));
    net.tell(0, 1, near);
    net.tell(0, 1, far);
    net.fire(1, crate::Timer::Fetch);
    let asked: Vec<Digest> = net.node(1).frames_asked.iter().flat_map(|(_, asked)| asked.clone()).collect();
    assert_eq!(asked, [Digest([1; 32])]);
}

#[test]
fn votes_are_durable_with_what_they_rest_on() {
    covers!("A2MPBFTEA-R1");
    covers!("A2MPBFTEA-R2");
    let mut net = Net::new(1);
    net.order(&frame(1, 1));
    let trail = &net.node(1).trail;
    let attests: Vec<usize> = (0..trail.len()).filter(|at| trail[*at] == "attest").collect();
    assert!(attests.len() >= 2 && attests.iter().all(|at| trail[at - 1] == "persist"), "{trail:?}");
}
