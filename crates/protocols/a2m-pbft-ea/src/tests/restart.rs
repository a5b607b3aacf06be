//! A start from the log, and status messages.

use super::craft::Bench;
use super::harness::{Net, covers, frame, r};
use super::normal::is_commit;
use super::stable::order_many;
use super::view_change::kind;
use crate::message::{Message, Record};
use crate::{A2mPbftEa, Timer};
use troth_core::Agreement;
use troth_types::{Seq, View};

#[test]
fn a_restarted_replica_goes_on_from_its_votes() {
    covers!("A2MPBFTEA-R10");
    covers!("A2MPBFTEA-R11");
    let mut net = Net::new(1);
    net.request(&frame(1, 1), 0..3);
    net.run_where(|flight| !is_commit(&flight.message));
    let before = net.node(1).replica.own_commitments();
    assert_eq!(before.len(), 1);
    net.restart(1);
    let after = &net.node(1).replica;
    assert_eq!(after.own_commitments(), before);
    assert_eq!((after.prepared_up_to, after.committed_up_to), (Seq(1), Seq(1)));
    net.compare_notes();
    net.compare_notes();
    assert_eq!(net.node(1).history().len(), 1);
}

#[test]
fn an_abandonment_survives_a_crash() {
    covers!("A2MPBFTEA-R3");
    covers!("A2MPBFTEA-R11");
    let mut net = Net::new(1);
    net.request(&frame(1, 1), 0..3);
    net.run_where(|flight| !is_commit(&flight.message));
    net.node_mut(0).down = true;
    net.suspect([1, 2]);
    net.run_where(|flight| kind(&flight.message) == "WANTVIEWCHANGE");
    // The logs were advanced; the VIEWCHANGE was never made.
    let old = net.node(1);
    let is_change = |message: &Message| kind(message) == "VIEWCHANGE";
    let own: Vec<Message> = old.own.iter().filter(|message| !is_change(message)).cloned().collect();
    let (records, logs) = (old.records.clone(), old.logs.clone());
    assert!(records.iter().any(|record| matches!(record, Record::Leaving(_))));
    // Its component has not filled the slot of the VIEWCHANGE either.
    let fresh = super::harness::without_view_change(&net.group, &logs, r(1));
    net.restart_from(1, records, own, fresh);
    assert_eq!(net.node(1).halted, None);
    assert!(!net.node(1).replica.active);
    net.compare_notes();
    net.compare_notes();
    assert_eq!(net.node(1).view(), View(1));
    assert!(net.node(1).replica.active);
    assert_eq!(net.node(1).history().len(), 1);
}

#[test]
fn a_replica_in_a_later_view_comes_back_there() {
    covers!("A2MPBFTEA-R4");
    covers!("A2MPBFTEA-R10");
    let mut net = Net::new(1);
    net.node_mut(0).down = true;
    net.request(&frame(1, 1), 1..3);
    net.suspect([1, 2]);
    net.run();
    net.restart(1);
    let after = &net.node(1).replica;
    assert_eq!((after.view, after.entered, after.active), (View(1), View(1), true));
    net.compare_notes();
    net.request(&frame(2, 1), 1..3);
    net.run();
    assert_eq!(net.node(2).history().len(), 2);
    assert_eq!(net.node(1).history().len(), 2);
}

// A2MPBFTEA-R10: what f+1 others committed to is kept as what this replica judged itself is: it could not be shown again.
#[test]
fn a_start_that_others_commitments_prove_survives_a_crash() {
    covers!("A2MPBFTEA-R10");
    let (mut net, mut bench) = (Net::new(1), Bench::new(1));
    (1..3).for_each(|replica| net.node_mut(replica).down = true);
    let changes = [1, 2].map(|from| bench.view_change(from, 0, 1, None, Vec::new()));
    let start = bench.new_view(changes.to_vec(), None);
    let accepts = [1, 2].map(|from| bench.accept(from, &start));
    // It has left for a later view when it comes, and enters it no more.
    for wanted in bench.wanted(2) {
        net.tell(1, 0, Message::Want(wanted));
    }
    net.run();
    assert_eq!(net.node(0).view(), View(2));
    for message in accepts.into_iter().chain([start.clone()]) {
        net.tell(1, 0, Message::Attested(message));
    }
    let shows = |net: &Net| {
        let known = &net.node(0).replica.known_views;
        assert!(known.valid(&net.group, View(1)).is_some_and(|known| known.digest == start.digest));
        assert_eq!(known.accepts(View(1)).count(), 2);
    };
    shows(&net);
    net.restart(0);
    assert!(!net.node(0).replica.active);
    shows(&net);
}

#[test]
fn a_log_older_than_the_component_stops_the_replica() {
    covers!("A2MPBFTEA-R11");
    let mut net = Net::new(1);
    net.request(&frame(1, 1), 0..3);
    net.run();
    let old = net.node(1);
    let (records, logs) = (old.records.clone(), old.logs.clone());
    let own = old.own.iter().filter(|message| !is_commit(message)).cloned().collect();
    net.restart_from(1, records, own, logs);
    assert!(net.node(1).halted.is_some());
}

#[test]
fn a_component_that_was_set_back_stops_the_replica() {
    covers!("A2MPBFTEA-R11");
    let mut net = Net::new(1);
    net.request(&frame(1, 1), 0..3);
    net.run();
    let before = net.node(1).logs.clone();
    net.node_mut(0).down = true;
    net.request(&frame(2, 1), 1..3);
    net.run();
    net.suspect([1, 2]);
    net.run_where(|flight| kind(&flight.message) == "WANTVIEWCHANGE");
    let old = net.node(1);
    let (records, own) = (old.records.clone(), old.own.clone());
    let change = own.iter().find(|message| kind(message) == "VIEWCHANGE").expect("it left the view").clone();
    let Message::Attested(change) = change else { panic!("it is attested") };
    // Its slot was filled again at the start, as its attestation had not reached the disk; the abandonment was not.
    let mut set_back = before.clone();
    super::harness::fill_again(&mut set_back, &net.group, &change);
    net.restart_from(1, records.clone(), own.clone(), set_back);
    assert!(net.node(1).halted.is_some_and(|why| why.contains("older")), "{:?}", net.node(1).halted);
    // Neither does it go on where a vote is gone.
    let without = |message: &&Message| kind(message) != "VIEWCHANGE";
    let votes: Vec<Message> = own.iter().filter(without).cloned().collect();
    net.restart_from(1, records.clone(), votes.clone(), before);
    let halted = net.node(1).halted;
    assert_eq!(halted, None, "its votes are all in the component");
    let none = super::harness::logs(&net.group, r(1));
    net.restart_from(1, records, votes, none);
    assert!(net.node(1).halted.is_some_and(|why| why.contains("older")), "{:?}", net.node(1).halted);
}

#[test]
fn a_component_that_was_set_back_is_noticed_where_all_messages_are_forgotten() {
    covers!("A2MPBFTEA-R11");
    let mut net = Net::new(1);
    let before = net.node(1).logs.clone();
    order_many(&mut net, 8);
    // A fresh segment of the log, in which only the marks say how far the logs went.
    let (own, records) = net.node(1).replica.retained();
    let marks: Vec<Record> =
        records.into_iter().filter(|record| matches!(record, Record::Filled(_))).collect();
    let none = |message: &Message| matches!(message, Message::Attested(_));
    let own: Vec<Message> = own.into_iter().filter(|message| !none(message)).collect();
    net.restart_from(1, marks, own, before);
    assert!(net.node(1).halted.is_some_and(|why| why.contains("older")), "{:?}", net.node(1).halted);
}

#[test]
fn what_a_fresh_log_holds_rebuilds_the_same_promises() {
    covers!("A2MPBFTEA-R10");
    let mut net = Net::new(1);
    order_many(&mut net, 5);
    net.request(&frame(9, 1), 0..3);
    net.run_where(|flight| !is_commit(&flight.message));
    let (own, records) = net.node(1).replica.retained();
    let before = net.node(1).replica.own_commitments();
    assert!(!before.is_empty());
    let logs = net.node(1).logs.clone();
    net.restart_from(1, records, own, logs);
    assert_eq!(net.node(1).halted, None);
    assert_eq!(net.node(1).replica.own_commitments(), before);
}

#[test]
fn a_proposal_that_only_one_backup_saw_reaches_the_others() {
    covers!("A2MPBFTEA-R8");
    covers!("A2MPBFTEA-R9");
    let mut net = Net::new(1);
    net.request(&frame(1, 1), 0..3);
    net.run_where(|flight| flight.to != r(2));
    net.node_mut(0).down = true;
    assert!(net.node(2).executed.is_empty());
    net.compare_notes();
    net.compare_notes();
    assert_eq!(net.node(2).history().len(), 1, "what is attested may be shown by anybody");
}

#[test]
fn a_status_is_answered_now_and_then() {
    covers!("A2MPBFTEA-R8");
    let mut net = Net::new(1);
    net.request(&frame(1, 1), 0..3);
    net.run_where(|flight| flight.to != r(2));
    net.now += net.config.status_interval;
    net.fire(2, Timer::Status);
    let status =
        net.wire.iter().find(|flight| kind(&flight.message) == "STATUS").cloned().expect("it is busy");
    net.wire.clear();
    net.tell(2, 1, status.message.clone());
    let first = net.wire.len();
    assert!(first > 0);
    net.tell(2, 1, status.message);
    assert_eq!(net.wire.len(), first);
}

#[test]
fn the_logs_forget_only_what_is_durably_stable() {
    covers!("A2MPBFTEA-R12");
    let mut net = Net::new(1);
    order_many(&mut net, 4);
    let trail = &net.node(1).trail;
    // The first is that which asks where the history ends.
    let trusted: Vec<usize> = (1..trail.len()).filter(|at| trail[*at] == "trusted").collect();
    let follows = |at: &usize| ["persist", "trusted"].contains(&trail[at - 1]);
    assert!(trusted.len() > 1 && trusted.iter().all(follows), "{trail:?}");
}

#[test]
fn what_was_executed_on_others_word_is_still_committed_to() {
    covers!("A2MPBFTEA-R13");
    let mut net = Net::new(2);
    net.request(&frame(1, 1), 0..5);
    // Replica 4 hears the proposal and COMMITs, and no PREPARE.
    net.run_where(|flight| flight.to != r(4) || kind(&flight.message) != "PREPARE");
    let node = &net.node(4).replica;
    assert_eq!((node.delivered, node.committed_up_to), (Seq(1), Seq(0)));
    net.compare_notes();
    net.compare_notes();
    assert_eq!(net.node(4).replica.committed_up_to, Seq(1));
}

#[test]
fn frames_are_asked_of_the_primary_and_then_of_all() {
    covers!("A2MPBFTEA-R6");
    covers!("A2MPBFTEA-R7");
    let mut net = Net::new(1);
    net.request(&frame(1, 1), [0]);
    net.run();
    assert!(net.node(1).executed.is_empty());
    net.fire(1, Timer::Fetch);
    assert_eq!(net.node(1).frames_asked.len(), 1);
    net.fire(1, Timer::Status);
    assert_eq!(net.node(1).frames_asked.len(), 2);
}

#[test]
fn what_a_checkpoint_rests_on_is_durable_before_it() {
    covers!("A2MPBFTEA-R5");
    let mut net = Net::new(1);
    order_many(&mut net, 4);
    let executed = |record: &Record| matches!(record, Record::Executed(seq, _) if *seq == Seq(4));
    assert!(net.node(1).records.iter().any(executed));
    assert_eq!(<A2mPbftEa as Agreement>::NAME, "a2m-pbft-ea");
    let trail = &net.node(1).trail;
    let appends: Vec<usize> = (0..trail.len()).filter(|at| trail[*at] == "append").collect();
    assert!(appends.len() == 4 && appends.iter().all(|at| trail[at - 1] == "persist"), "{trail:?}");
}

#[test]
fn however_many_views_its_log_tells_of_a_replica_comes_back_in_the_last_one() {
    covers!("A2MPBFTEA-R10");
    let mut net = Net::new(1);
    for _ in 0..140 {
        for replica in 0..2 {
            net.step(r(replica), |replica, cx| replica.suspect(cx, "a test"));
        }
        net.run();
    }
    let before = net.node(1).replica.entered;
    assert!(before >= View(140), "{before}");
    net.restart(1);
    let after = &net.node(1).replica;
    assert_eq!((net.node(1).halted, after.entered, after.active), (None, before, true));
    net.compare_notes();
    net.order(&frame(1, 1));
    assert_eq!(net.node(1).history().len(), 1);
}

#[test]
fn one_whose_log_lacks_the_start_of_its_view_does_not_go_on() {
    covers!("A2MPBFTEA-R10");
    let mut net = Net::new(1);
    net.request(&frame(1, 1), 0..3);
    net.suspect([0, 1, 2]);
    net.run();
    let old = net.node(0);
    assert!(old.replica.entered > View(0));
    let (mut records, own, logs) = (old.records.clone(), old.own.clone(), old.logs.clone());
    records.retain(|record| !matches!(record, Record::NewView(_)));
    net.restart_from(0, records, own, logs);
    assert!(net.node(0).halted.is_some());
}
