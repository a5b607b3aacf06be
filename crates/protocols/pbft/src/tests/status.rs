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
        wishes: false,
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
fn batches_are_shown_a_few_times_in_an_interval_and_no_more() {
    covers!("PBFT-R12");
    let mut net = Net::new(1);
    net.order(&frame(1, 1));
    let known = *net.node(0).pbft.batches.keys().next().expect("it was executed");
    let ask = |net: &mut Net, digest: Digest| {
        net.tell(3, 0, Message::FetchBatches(vec![digest]));
        net.sent(0, |message| matches!(message, Message::Batches(_)))
    };
    // What is not here costs no answer, and takes none away from what is.
    assert_eq!(ask(&mut net, Digest([9; 32])), 0);
    assert_eq!(ask(&mut net, known), 1);
    assert_eq!(ask(&mut net, known), 1, "it was shown just now");
    // One of them takes the time of one.
    net.now += SMALL.status_interval / 256;
    assert_eq!(ask(&mut net, known), 2);
}

#[test]
fn a_batch_that_f_plus_1_voted_for_and_the_primary_did_not_show_is_asked_for_soon() {
    covers!("PBFT-R8");
    let mut net = Net::new(1);
    let one = frame(1, 1);
    net.request(&one, 0..4);
    net.run_where(|flight| flight.to != r(3) || !matches!(flight.message, Message::PrePrepare(_)));
    assert!(net.node(3).history().is_empty() && net.node(0).history() == [one.digest()]);
    // Before the next STATUS.
    let due = net.node(3).timers[&Timer::Fetch];
    assert!(due < net.node(3).timers[&Timer::Status]);
    net.fire(3, Timer::Fetch);
    net.run();
    assert_eq!(net.node(3).history(), [one.digest()]);
}
