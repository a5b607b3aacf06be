//! Each block by itself.
use crate::*;
use troth_trusted::CounterValue;
use troth_types::{ClientId, Digest, ReplicaId};

fn at(count: u64) -> CounterValue {
    CounterValue::new(0, count)
}

#[test]
fn a_gate_releases_in_counter_order_and_once() {
    let mut gate = CounterGate::new(8);
    assert_eq!(gate.offer(at(1), at(2), 'b'), Offered::Held);
    assert_eq!(gate.offer(at(1), at(2), 'b'), Offered::Duplicate);
    assert!(gate.has_gap() && gate.next().is_none());
    assert_eq!(gate.offer(at(0), at(1), 'a'), Offered::Held);
    let mut out = Vec::new();
    while let Some(message) = gate.next() {
        out.push(message);
        gate.advance();
    }
    assert_eq!(out, ['a', 'b']);
    assert_eq!(gate.processed(), at(2));
    assert_eq!(gate.offer(at(0), at(1), 'a'), Offered::Duplicate);
    assert!(!gate.has_gap());
}

#[test]
fn a_gate_follows_predecessors_over_jumps_of_the_view() {
    let mut gate = CounterGate::new(8);
    gate.offer(at(0), at(1), 'a');
    gate.advance();
    assert_eq!(gate.offer(at(2), CounterValue::new(1, 0), 'v'), Offered::Held);
    assert!(gate.next().is_none(), "value 2 is missing before the view change");
    gate.offer(at(1), at(2), 'b');
    gate.advance();
    assert_eq!(gate.next(), Some('v'));
    gate.advance();
    assert_eq!(gate.processed(), CounterValue::new(1, 0));
}

#[test]
fn a_full_gate_keeps_what_is_nearest() {
    let mut gate = CounterGate::new(2);
    assert_eq!(gate.offer(at(5), at(6), 'f'), Offered::Held);
    assert_eq!(gate.offer(at(7), at(8), 'h'), Offered::Held);
    assert_eq!(gate.offer(at(9), at(10), 'x'), Offered::Full);
    assert_eq!(gate.offer(at(0), at(1), 'a'), Offered::Held);
    assert_eq!(gate.held(), 2);
    assert_eq!(gate.next(), Some('a'));
}

#[test]
fn a_gate_jumps_only_to_what_fits() {
    let mut gate = CounterGate::new(8);
    for (count, message) in [(3, 'c'), (5, 'e'), (7, 'g')] {
        gate.offer(at(count), at(count + 1), message);
    }
    assert!(!gate.jump_to(|message| *message == 'z'));
    assert!(gate.jump_to(|message| *message == 'e'));
    assert_eq!((gate.next(), gate.held()), (Some('e'), 2));
}

#[test]
fn voters_are_counted_once() {
    let voters: Voters = [0, 2, 2, 0].map(ReplicaId).into_iter().collect();
    assert_eq!(voters.count(), 2);
    assert!(voters.contains(ReplicaId(2)) && !voters.contains(ReplicaId(1)));
}

#[test]
fn the_pool_keeps_one_request_per_slot_and_the_order_of_arrival() {
    let mut pool = RequestPool::new(4);
    let digest = |n: u8| Digest([n; 32]);
    assert_eq!(pool.admit(ClientId(2), 1, digest(1)), Admitted::New);
    assert_eq!(pool.admit(ClientId(1), 1, digest(2)), Admitted::New);
    assert_eq!(pool.admit(ClientId(1), 1, digest(3)), Admitted::Pending, "whatever its digest");
    assert_eq!(pool.admit(ClientId(1), 5, digest(4)), Admitted::SlotTaken);
    assert_eq!(pool.oldest().map(|(_, digest)| digest), Some(digest(1)));
    assert_eq!(pool.propose(1), [digest(1)]);
    assert_eq!(pool.propose(9), [digest(2)]);
    assert!(pool.propose(9).is_empty() && !pool.has_unproposed());
    pool.restart(|carried| *carried == digest(1));
    assert_eq!(pool.propose(9), [digest(2)]);
    assert_eq!(pool.done(ClientId(2), 1), Some(digest(1)));
    assert_eq!(pool.done(ClientId(2), 1), None);
    assert_eq!(pool.done(ClientId(1), 5), Some(digest(2)), "a later number overtakes the slot");
    assert!(pool.is_empty());
}

#[test]
fn the_back_off_doubles_and_takes_one_step_back_per_progress() {
    let mut back_off = BackOff::default();
    back_off.failed();
    back_off.failed();
    assert_eq!(back_off.of(10), 40);
    back_off.progressed();
    assert_eq!(back_off.of(10), 20);
    for _ in 0..100 {
        back_off.failed();
    }
    assert_eq!(back_off.of(1), 64);
}

#[test]
fn a_replica_votes_once_and_none_beyond_the_largest_group() {
    let mut voters = Voters::NONE;
    for replica in [0, 127, 127, 5] {
        voters.insert(ReplicaId(replica));
    }
    assert_eq!(voters.count(), 3);
    let members: Vec<u16> = (0..=300).filter(|replica| voters.contains(ReplicaId(*replica))).collect();
    assert_eq!(members, [0, 5, 127]);
}
