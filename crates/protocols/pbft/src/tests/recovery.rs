//! The start from the log.

use super::harness::{Net, SMALL, covers, frame};
use crate::Timer;
use crate::message::Message;
use troth_types::{Seq, View};

#[test]
fn promises_hold_after_a_restart() {
    covers!("PBFT-R9");
    let mut net = Net::new(1);
    let one = frame(1, 1);
    net.request(&one, 0..4);
    // One's own copy does not travel.
    net.run_where(|flight| flight.from == flight.to || !matches!(flight.message, Message::Commit(_)));
    let before = net.node(2).pbft.clone();
    net.restart(2);
    let after = &net.node(2).pbft;
    assert_eq!(after.pre_prepared, before.pre_prepared);
    assert_eq!(after.prepared, before.prepared);
    assert!(after.slots[&Seq(1)].prepared, "its COMMIT may have been sent");
    // With its votes the rest goes on as if nothing had been.
    net.restart(0);
    for _ in 0..3 {
        net.now += SMALL.status_interval;
        for replica in 0..4 {
            net.fire(replica, Timer::Status);
        }
        net.run();
    }
    for replica in 0..4 {
        assert_eq!(net.node(replica).history(), [one.digest()], "replica {replica}");
    }
}

#[test]
fn one_that_was_leaving_sends_the_same_view_change_again() {
    covers!("PBFT-R9");
    let mut net = Net::new(1);
    net.request(&frame(1, 1), [2]);
    net.leave(2);
    let before = net.node(2).pbft.changes.clone();
    net.restart(2);
    assert_eq!(net.node(2).view(), View(1));
    assert!(!net.node(2).pbft.active);
    assert_eq!(net.node(2).pbft.changes, before);
}

#[test]
fn one_that_entered_a_view_is_in_it_after_a_restart() {
    covers!("PBFT-R9");
    let mut net = Net::new(1);
    net.node_mut(0).down = true;
    let one = frame(1, 1);
    net.request(&one, 1..4);
    for replica in 1..4 {
        net.fire(replica, Timer::Request);
    }
    net.run();
    for replica in 1..4 {
        net.restart(replica);
        let pbft = &net.node(replica).pbft;
        assert_eq!((pbft.view, pbft.active), (View(1), true));
        assert_eq!(net.node(replica).history(), [one.digest()], "what was executed is executed again");
    }
    let two = frame(2, 1);
    net.request(&two, 1..4);
    net.run();
    assert_eq!(net.node(3).history(), [one.digest(), two.digest()]);
}

#[test]
fn frames_that_were_promised_outlive_a_restart_amid_a_view_change() {
    covers!("PBFT-R9");
    let mut net = Net::new(1);
    let one = frame(1, 1);
    net.request(&one, 0..4);
    net.run_where(|flight| flight.from == flight.to || !matches!(flight.message, Message::Commit(_)));
    for replica in 0..4 {
        net.leave(replica);
    }
    net.run_where(|_| false);
    for replica in 0..4 {
        net.restart(replica);
        let pbft = &net.node(replica).pbft;
        assert!(pbft.frames.get(&one.digest()).is_some(), "replica {replica} said that it has it");
        let (_, records) = troth_core::Agreement::retained(pbft);
        assert!(records.iter().any(|record| matches!(record, crate::Record::Frame(_))));
    }
    // The client is gone; its request is carried over and executed all the same.
    for _ in 0..3 {
        net.now += SMALL.status_interval;
        for replica in 0..4 {
            net.fire(replica, Timer::Status);
        }
        net.run();
    }
    for replica in 0..4 {
        assert_eq!(net.node(replica).history(), [one.digest()], "replica {replica}");
    }
}

#[test]
fn a_segment_carries_over_what_a_restart_needs() {
    let mut net = Net::new(1);
    for number in 1..=SMALL.interval + 1 {
        net.order(&frame(number, 1));
    }
    let (own, records) = troth_core::Agreement::retained(&net.node(1).pbft);
    assert!(own.is_empty(), "nothing is certified");
    let before = net.node(1).pbft.clone();
    net.node_mut(1).records = records;
    net.restart(1);
    let after = &net.node(1).pbft;
    assert_eq!((after.stable, &after.prepared), (before.stable, &before.prepared));
    assert_eq!(after.pre_prepared, before.pre_prepared);
    assert_eq!(after.decided, before.decided);
}

#[test]
fn a_torn_segment_promises_nothing_of_a_view_that_it_does_not_name() {
    covers!("PBFT-R9");
    let mut net = Net::new(1);
    let one = frame(1, 1);
    net.request(&one, 0..4);
    net.run_where(|flight| flight.from == flight.to || !matches!(flight.message, Message::Commit(_)));
    // The log before the segment ends here: what came later was lost with the machine.
    let old = net.node(2).records.clone();
    net.node_mut(0).down = true;
    for replica in 1..4 {
        net.fire(replica, Timer::Request);
    }
    net.run();
    let moved = net.node(2).pbft.clone();
    assert!(moved.active && moved.pre_prepared[&Seq(1)].values().any(|view| *view == View(1)));
    let (_, segment) = troth_core::Agreement::retained(&moved);
    for cut in 0..=segment.len() {
        net.node_mut(2).records = [&old[..], &segment[..cut]].concat();
        net.restart(2);
        let pbft = &net.node(2).pbft;
        let promised = pbft.pre_prepared.values().flat_map(|at| at.values());
        let prepared = pbft.prepared.values().map(|entry| &entry.view);
        assert!(promised.chain(prepared).all(|view| *view <= pbft.view), "cut at {cut}");
    }
    assert_eq!(net.node(2).pbft.view, View(1));
}
