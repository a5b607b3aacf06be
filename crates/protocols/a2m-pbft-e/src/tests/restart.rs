//! The start from the log.

use super::harness::{Net, covers, logs};
use crate::Record;
use troth_core::Agreement;
use troth_types::Seq;

#[test]
fn that_a_batch_was_executed_is_durable_before_it_is_appended() {
    covers!("A2MPBFTE-R1");
    let mut net = Net::new();
    net.order_many(1..=1);
    let trail = &net.node(2).trail;
    let executed = trail.iter().position(|step| step == "executed 1").expect("it is persisted");
    let asked = trail.iter().rposition(|step| step == "ask").expect("it is appended");
    assert!(executed < asked, "{trail:?}");
}

#[test]
fn a_replica_that_starts_again_asks_where_its_log_ends_and_appends_nothing_twice() {
    covers!("A2MPBFTE-R2");
    let mut net = Net::new();
    net.order_many(1..=3);
    let (before, records) = (net.node(2).entry(3), net.node(2).records.clone());
    // The component refuses a second append, which the harness does not forgive.
    net.restart(2, records);
    assert_eq!(net.node(2).halted, None);
    assert_eq!((net.node(2).executed_up_to(), net.node(2).entry(3)), (Seq(3), before));
    assert_eq!(net.node(2).released.len(), 3, "clients may be answered again");
    net.order_many(4..=5);
    assert_eq!(net.node(2).entry(5), net.node(0).entry(5));
}

#[test]
fn what_was_executed_and_not_appended_before_a_crash_is_appended_after_it() {
    covers!("A2MPBFTE-R2");
    let mut net = Net::new();
    net.order_many(1..=2);
    net.node_mut(2).stalled = true;
    net.order_many(3..=3);
    let records = net.node(2).records.clone();
    net.restart(2, records);
    assert_eq!(net.node(2).entry(3), net.node(0).entry(3));
}

#[test]
fn a_log_that_was_set_back_is_noticed() {
    covers!("A2MPBFTE-R3");
    let mut net = Net::new();
    net.order_many(1..=2);
    let old = net.node(2).records.clone();
    net.order_many(3..=3);
    net.restart(2, old);
    assert!(net.node(2).halted.is_some_and(|why| why.contains("set back")), "{:?}", net.node(2).halted);
}

#[test]
fn a_component_that_holds_another_history_ends_the_replica() {
    covers!("A2MPBFTE-R3");
    let mut net = Net::new();
    net.order_many(1..=2);
    let records = net.node(2).records.clone();
    // As if 2 had been made to append something else.
    let mut other = Net::new();
    other.order_many(7..=8);
    net.node_mut(2).logs = std::mem::replace(&mut other.node_mut(2).logs, logs(2));
    net.restart(2, records);
    assert!(net.node(2).halted.is_some_and(|why| why.contains("not that of the group")));
}

#[test]
fn a_segment_of_the_log_has_the_values_of_the_history() {
    covers!("A2MPBFTE-R4");
    let mut net = Net::new();
    net.order_many(1..=6);
    let (_, records) = net.node(2).replica.retained();
    let kept: Vec<_> = records
        .iter()
        .filter_map(|record| match record {
            Record::History(from, values) => Some((*from, values.len())),
            _ => None,
        })
        .collect();
    assert_eq!(kept, [(Seq(1), 6)]);
}
