//! What is appended, when replies go, checkpoints that vouch for the history, and what follows a state transfer.

use super::craft::Bench;
use super::harness::{Net, authentic, covers, frame, history_of, logs, r};
use super::stable::order_many;
use super::view_change::kind;
use crate::Timer;
use crate::message::{Attested, Body, Checkpoint, Message};
use crate::place::{HISTORY, flattened};
use std::sync::Arc;
use troth_core::{Agreement, Proven};
use troth_trusted::a2m::{Answer, Content, Operation, slot_nonce};
use troth_trusted_host::TrustedLogs as _;
use troth_types::{Digest, Seq, View};

/// What the history of a replica holds, as it knows: x and d.
fn entry(net: &Net, replica: u16, seq: u64) -> Option<(Digest, Digest)> {
    net.node(replica).replica.history().held(Seq(seq)).map(|held| (held.value, held.digest))
}

#[test]
fn what_is_executed_is_appended_in_order_and_alike_everywhere() {
    covers!("A2MPBFTEA-H1");
    let mut net = Net::new(1);
    order_many(&mut net, 3);
    let all = |net: &Net, replica| (1..=3).map(|seq| entry(net, replica, seq)).collect::<Vec<_>>();
    let first = all(&net, 0);
    assert!(first.iter().all(Option::is_some) && first[0] != first[1], "{first:?}");
    assert!((1..3).all(|replica| all(&net, replica) == first));
}

#[test]
fn replies_wait_for_the_attestation() {
    covers!("A2MPBFTEA-H2");
    let mut net = Net::new(1);
    net.node_mut(2).slow_history = true;
    net.order(&frame(1, 1));
    assert_eq!(net.node(2).executed_up_to(), Seq(1));
    assert!(net.node(2).released.is_empty(), "nothing is shown before it is attested");
    assert_eq!(net.node(1).released.len(), 1);
    net.hurry(2);
    let (first, proof) = (frame(1, 1), &net.node(2).released[&Seq(1)]);
    assert!(proof.place_of(first.client(), first.number()).is_some());
    assert!(proof.place_of(first.client(), 2).is_none());
}

#[test]
fn proofs_are_there_above_the_stable_checkpoint_and_gone_up_to_it() {
    covers!("A2MPBFTEA-H3");
    let mut net = Net::new(1);
    order_many(&mut net, 3);
    assert!(matches!(net.node(1).replica.proven(Seq(3)), Proven::Here(_)));
    net.order(&frame(4, 1));
    net.order(&frame(5, 1));
    let proven = |seq| net.node(1).replica.proven(Seq(seq));
    assert_eq!((proven(3), proven(4)), (Proven::Gone, Proven::Gone), "4 is stable");
    assert!(matches!(proven(5), Proven::Here(_)));
    assert_eq!(proven(6), Proven::Coming);
}

#[test]
fn a_frame_that_is_executed_is_ordered_again_and_proven_under_its_new_place() {
    let mut net = Net::new(1);
    let first = frame(1, 1);
    net.order(&first);
    net.order(&first);
    for replica in 0..3 {
        let released = &net.node(replica).released;
        assert_eq!(released.len(), 2);
        assert!(released[&Seq(2)].place_of(first.client(), 1).is_some(), "{:?}", r(replica));
    }
}

#[test]
fn a_checkpoint_waits_for_the_attestation_of_its_batch() {
    covers!("A2MPBFTEA-C3");
    let mut net = Net::new(1);
    net.node_mut(2).slow_history = true;
    order_many(&mut net, 4);
    let vouched = |net: &Net| net.node(2).own.iter().filter(|message| kind(message) == "CHECKPOINT").count();
    assert_eq!((net.node(2).executed_up_to(), vouched(&net)), (Seq(4), 0));
    net.hurry(2);
    assert_eq!(vouched(&net), 1);
}

#[test]
fn a_checkpoint_counts_with_its_senders_history_at_its_number_alone() {
    covers!("A2MPBFTEA-C6");
    let mut bench = Bench::new(1);
    let good = bench.checkpoint(0, 4, 1, 1);
    assert!(authentic(&bench.group, &Message::Attested(good)));
    let group = bench.group;
    let mut others = logs(&group, r(1));
    let look = |logs: &mut super::harness::Logs, seq| {
        let slot = flattened(View(0), Seq(seq));
        let answers = logs.call(&[Operation::Lookup { log: HISTORY, slot, nonce: slot_nonce(slot) }]);
        match answers.expect("lookups are answered").pop() {
            Some(Answer::Attested(attestation)) => attestation,
            _ => unreachable!("a lookup has an answer"),
        }
    };
    let of_another = history_of(&mut others, Seq(8), 1);
    let of_another_number = look(&mut bench.logs[0], 4);
    let nothing = look(&mut bench.logs[0], 8);
    for history in [of_another, of_another_number, nothing] {
        let mut fresh = logs(&group, r(0));
        let body = Body::Checkpoint(Checkpoint { seq: Seq(8), digest: Digest([1; 32]), history });
        let message = super::harness::attested(&group, &mut fresh, r(0), body);
        assert!(!authentic(&group, &message), "{message:?}");
    }
}

fn is_checkpoint(message: &Message) -> bool {
    kind(message) == "CHECKPOINT"
}

#[test]
fn votes_for_two_histories_are_no_quorum() {
    covers!("A2MPBFTEA-C2");
    let mut net = Net::new(1);
    for number in 1..=4 {
        net.request(&frame(number, 1), 0..3);
        net.run_where(|flight| !is_checkpoint(&flight.message));
    }
    let own = |net: &Net, from: u16| -> Arc<Attested> {
        let mut own = net.node(from).own.iter();
        match own.find(|message| is_checkpoint(message)) {
            Some(Message::Attested(message)) => message.clone(),
            _ => panic!("it vouched"),
        }
    };
    // The same state as 1 vouches for, over a history of another component with the same keys.
    let mut elsewhere = logs(&net.group, r(1));
    let history = history_of(&mut elsewhere, Seq(4), 9);
    let checkpoint = own(&net, 1).checkpoint().cloned().expect("a CHECKPOINT");
    let body = Body::Checkpoint(Checkpoint { history, ..checkpoint });
    let forked = super::harness::attested(&net.group, &mut elsewhere, r(1), body);
    net.tell(1, 0, forked);
    assert_eq!(net.node(0).replica.stable.0, Seq(0));
    let good = Message::Attested(own(&net, 2));
    net.tell(2, 0, good);
    assert_eq!(net.node(0).replica.stable.0, Seq(4));
}

#[test]
fn a_stable_checkpoint_truncates_the_history() {
    covers!("A2MPBFTEA-C7");
    let mut net = Net::new(1);
    order_many(&mut net, 5);
    let ask = |seq| Operation::Lookup { log: HISTORY, slot: flattened(View(0), Seq(seq)), nonce: [0; 32] };
    let answers = net.node_mut(2).logs.call(&[ask(3), ask(4)]).expect("lookups are answered");
    let content = |at: usize| match &answers[at] {
        Answer::Attested(attestation) => attestation.claim.content,
        Answer::Done => panic!("a lookup has an answer"),
    };
    assert!(matches!(content(0), Content::Forgotten { .. }), "{:?}", content(0));
    assert!(matches!(content(1), Content::Assigned { .. }), "{:?}", content(1));
}

/// A group in which replica 2 slept through twelve batches and has had the state of the last sent.
fn with_a_transfer() -> Net {
    let mut net = Net::new(1);
    net.node_mut(2).down = true;
    for number in 1..=12 {
        net.request(&frame(number, 1), 0..2);
        net.run();
    }
    net.node_mut(2).down = false;
    let proof = Message::Stable(net.node(0).replica.stable_proof().clone());
    net.tell(0, 2, proof);
    let (seq, digest, _) = net.node(2).transfers.last().cloned().expect("it is a window behind");
    assert_eq!(seq, Seq(12));
    net.install(2, seq, digest);
    net.wire.clear();
    net
}

#[test]
fn after_a_state_transfer_the_log_waits_for_what_led_there() {
    covers!("A2MPBFTEA-T4");
    covers!("A2MPBFTEA-T5");
    covers!("A2MPBFTEA-T6");
    covers!("A2MPBFTEA-T7");
    let mut net = with_a_transfer();
    assert_eq!(net.node(2).replica.history().lacks(), Some(Seq(1)));
    net.order(&frame(13, 1));
    assert_eq!(net.node(2).executed_up_to(), Seq(13));
    assert!(net.node(2).released.is_empty(), "nothing is proven over a gap");
    // What somebody invents is not appended, and neither is what begins elsewhere.
    let ignored = net.node(2).ignored();
    net.tell(1, 2, Message::History(Seq(1), vec![Digest([5; 32]); 13]));
    let truth = net.node(1).replica.history().values_from(Seq(2));
    net.tell(1, 2, Message::History(Seq(2), truth));
    assert_eq!(net.node(2).replica.history().lacks(), Some(Seq(1)));
    assert!(!net.node(2).replica.status().votes, "its word counts for no client");
    assert_eq!(net.node(2).ignored(), ignored + 2);
    net.fire(2, Timer::Status);
    net.run();
    assert_eq!(net.node(2).replica.history().lacks(), None);
    assert!(net.node(2).replica.status().votes);
    assert_eq!(entry(&net, 2, 13), entry(&net, 0, 13));
    assert!(net.node(2).released.contains_key(&Seq(13)));
    assert!(
        net.node(2).own.iter().any(is_checkpoint),
        "it vouches for the state that was sent, once its log is there"
    );
}

#[test]
fn what_is_shown_counts_as_far_as_a_certificate_shows_it() {
    covers!("A2MPBFTEA-T7");
    let mut net = with_a_transfer();
    net.order(&frame(13, 1));
    // True up to the certificate's number, and invented behind it.
    let mut values = net.node(1).replica.history().values_from(Seq(1));
    values.truncate(12);
    values.push(Digest([5; 32]));
    net.tell(1, 2, Message::History(Seq(1), values));
    assert_eq!(entry(&net, 2, 13), entry(&net, 0, 13), "what it executed itself it knows itself");
}

#[test]
fn the_others_are_asked_in_turn() {
    covers!("A2MPBFTEA-T5");
    let mut net = with_a_transfer();
    let mut asked = Vec::new();
    for _ in 0..4 {
        net.fire(2, Timer::Status);
        let fetch = |message: &Message| matches!(message, Message::FetchHistory(Seq(1)));
        asked.extend(net.wire.iter().filter(|flight| fetch(&flight.message)).map(|flight| flight.to.0));
        net.wire.clear();
    }
    assert!(asked == [0, 1, 0, 1] || asked == [1, 0, 1, 0], "{asked:?}");
}

#[test]
fn history_is_shown_to_each_once_in_a_while() {
    covers!("A2MPBFTEA-T6");
    let mut net = Net::new(1);
    order_many(&mut net, 3);
    net.wire.clear();
    let answers = |net: &Net, to| {
        let shown = |message: &Message| matches!(message, Message::History(..));
        net.wire.iter().filter(|flight| flight.to == r(to) && shown(&flight.message)).count()
    };
    for _ in 0..5 {
        net.tell(2, 0, Message::FetchHistory(Seq(1)));
        net.tell(1, 0, Message::FetchHistory(Seq(9)));
        net.tell(1, 0, Message::FetchHistory(Seq(0)));
    }
    assert_eq!((answers(&net, 2), answers(&net, 1)), (1, 0));
    net.now += 1_000_000;
    net.tell(2, 0, Message::FetchHistory(Seq(1)));
    assert_eq!(answers(&net, 2), 2);
}

#[test]
fn a_replica_that_starts_again_asks_where_its_history_ends_and_appends_nothing_twice() {
    covers!("A2MPBFTEA-R14");
    let mut net = Net::new(1);
    order_many(&mut net, 3);
    let before = entry(&net, 2, 3);
    // The component refuses a second append, which the harness does not forgive.
    net.restart(2);
    assert_eq!(net.node(2).halted, None);
    assert_eq!((net.node(2).executed_up_to(), entry(&net, 2, 3)), (Seq(3), before));
    assert_eq!(net.node(2).released.len(), 3, "clients may be answered again");
    net.order(&frame(4, 1));
    net.order(&frame(5, 1));
    assert_eq!(entry(&net, 2, 5), entry(&net, 0, 5));
}

#[test]
fn what_was_executed_and_not_appended_before_a_crash_is_appended_after_it() {
    covers!("A2MPBFTEA-R14");
    let mut net = Net::new(1);
    order_many(&mut net, 2);
    net.node_mut(2).slow_history = true;
    net.order(&frame(3, 1));
    net.restart(2);
    assert_eq!(entry(&net, 2, 3), entry(&net, 0, 3));
}

#[test]
fn a_log_whose_history_was_set_back_stops_the_replica() {
    covers!("A2MPBFTEA-R15");
    let mut net = Net::new(1);
    order_many(&mut net, 2);
    let (records, own) = (net.node(2).records.clone(), net.node(2).own.clone());
    // It appends one more, as nothing but its history tells.
    let logs = &mut net.node_mut(2).logs;
    history_of(logs, Seq(3), 1);
    let logs = logs.clone();
    net.restart_from(2, records, own, logs);
    assert!(net.node(2).halted.is_some_and(|why| why.contains("set back")), "{:?}", net.node(2).halted);
}

#[test]
fn a_fresh_replica_whose_component_has_a_history_stops() {
    covers!("A2MPBFTEA-R15");
    let mut net = Net::new(1);
    order_many(&mut net, 2);
    let mut fresh = Net::new(1);
    // The first event again, over a component that was used before.
    fresh.node_mut(2).logs = net.node(2).logs.clone();
    fresh.step(r(2), |replica, cx| replica.on_start(cx, troth_core::Start::Fresh));
    assert!(fresh.node(2).halted.is_some_and(|why| why.contains("set back")), "{:?}", fresh.node(2).halted);
}

#[test]
fn a_component_that_holds_another_history_stops_the_replica() {
    covers!("A2MPBFTEA-R15");
    let mut net = Net::new(1);
    order_many(&mut net, 2);
    let mut other = Net::new(1);
    other.order(&frame(7, 1));
    other.order(&frame(8, 1));
    let (records, own) = (net.node(2).records.clone(), net.node(2).own.clone());
    let logs = other.node(2).logs.clone();
    net.restart_from(2, records, own, logs);
    assert!(net.node(2).halted.is_some_and(|why| why.contains("not that of the group")));
}

#[test]
fn a_segment_of_the_log_has_the_values_of_the_history() {
    covers!("A2MPBFTEA-R16");
    let mut net = Net::new(1);
    order_many(&mut net, 6);
    let values = net.node(2).replica.history().values_from(Seq(1));
    assert_eq!(values.len(), 6);
    net.restart(2);
    let (own, records) = net.node(2).replica.retained();
    let logs = net.node(2).logs.clone();
    net.restart_from(2, records, own, logs);
    assert_eq!(net.node(2).halted, None);
    assert_eq!(net.node(2).replica.history().values_from(Seq(1)), values);
}
