//! TOCS §5.2: status messages.

use super::harness::{Net, SMALL, covers, frame, r};
use crate::Timer;
use crate::message::{Message, PrePrepare, Status};
use troth_core::To;
use troth_types::{Batch, Digest, Seq, Time, View};

/// Everybody compares notes, as often as it takes.
fn compare_notes(net: &mut Net, rounds: usize) {
    for _ in 0..rounds {
        net.now += SMALL.status_interval;
        for replica in 0..net.group.n() as u16 {
            net.fire(replica, Timer::Status);
        }
        net.run();
    }
}

#[test]
fn whatever_was_lost_of_the_three_phases_is_sent_again() {
    covers!("PBFT-R7");
    let lost: [fn(&Message) -> bool; 4] = [
        |message| matches!(message, Message::PrePrepare(_)),
        |message| matches!(message, Message::Prepare(_)),
        |message| matches!(message, Message::Commit(_)),
        |message| matches!(message, Message::PrePrepare(_) | Message::Prepare(_) | Message::Commit(_)),
    ];
    for lost in lost {
        let mut net = Net::new(1);
        let one = frame(1, 1);
        net.request(&one, 0..4);
        // One's own copy does not travel.
        net.run_where(|flight| flight.from == flight.to || !lost(&flight.message));
        compare_notes(&mut net, 4);
        for replica in 0..4 {
            assert_eq!(net.node(replica).history(), [one.digest()], "replica {replica}");
        }
    }
}

#[test]
fn one_that_missed_a_stable_checkpoint_is_shown_its_proof() {
    covers!("PBFT-R7");
    let mut net = Net::new(1);
    net.node_mut(3).down = true;
    for number in 1..=SMALL.interval {
        net.order(&frame(number, 1));
    }
    assert_eq!(net.node(0).pbft.stable.0, Seq(SMALL.interval));
    net.node_mut(3).down = false;
    net.request(&frame(9, 1), [3]);
    compare_notes(&mut net, 2);
    assert_eq!(net.node(3).pbft.stable.0, Seq(SMALL.interval));
}

#[test]
fn frames_that_do_not_come_are_asked_of_all() {
    covers!("PBFT-R5");
    let mut net = Net::new(1);
    let batch = Batch { time: Time(super::harness::WALL), frames: vec![Digest([3; 32])] };
    net.tell(0, 1, Message::PrePrepare(PrePrepare { view: View(0), seq: Seq(1), batch }));
    net.fire(1, Timer::Status);
    assert!(net.node(1).frames_asked.contains(&(To::Others, vec![Digest([3; 32])])));
}

#[test]
fn a_status_is_answered_a_few_times_in_an_interval_and_no_more() {
    covers!("PBFT-R6");
    let mut net = Net::new(1);
    net.request(&frame(1, 1), 0..4);
    net.run_where(|flight| flight.from == flight.to);
    net.now += SMALL.status_interval;
    let status = Status {
        view: View(0),
        active: true,
        stable: Seq(0),
        executed: Seq(0),
        slots: Vec::new(),
        changes: 0,
    };
    net.tell(3, 0, Message::Status(status.clone()));
    let first = net.wire.len();
    assert!(first > 0);
    net.tell(3, 0, Message::Status(status.clone()));
    assert_eq!(net.wire.len(), first);
    assert_eq!(net.node(0).ignored(), 1);
    net.now += SMALL.status_interval;
    net.tell(3, 0, Message::Status(status));
    assert!(net.wire.len() > first);
    assert!(net.wire.iter().all(|flight| flight.to == r(3)));
}

#[test]
fn one_replica_is_not_shown_batches_without_end() {
    covers!("PBFT-R12");
    let mut net = Net::new(1);
    net.order(&frame(1, 1));
    let digest = net.node(0).pbft.decided[&Seq(1)].digest();
    let batches = |net: &Net| net.sent(0, |message| matches!(message, Message::Batches(_)));
    net.now += SMALL.status_interval;
    for _ in 0..9 {
        net.tell(2, 0, Message::FetchBatches(vec![digest]));
    }
    assert_eq!(batches(&net), 1);
    net.tell(3, 0, Message::FetchBatches(vec![digest]));
    assert_eq!(batches(&net), 2, "another one is another matter");
    net.now += SMALL.status_interval / 4;
    net.tell(2, 0, Message::FetchBatches(vec![digest]));
    assert_eq!(batches(&net), 3);
}
