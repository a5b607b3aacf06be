use crate::inbox::{Inbox, Party};
use bytes::Bytes;
use troth_types::{ClientId, ReplicaId};

fn message(of: u8, length: usize) -> Bytes {
    Bytes::from(vec![of; length])
}

#[test]
fn lanes_have_turns_and_keep_their_order() {
    let inbox = Inbox::new();
    let (first, second) = (Inbox::lane(Party::Client(ClientId(1))), Inbox::lane(Party::Client(ClientId(2))));
    for _ in 0..40 {
        inbox.push(&first, message(1, 1));
    }
    inbox.push(&second, message(2, 1));
    let mut taken = Vec::new();
    inbox.take_clients(|_, bytes| {
        taken.push(bytes[0]);
        taken.len() < 20
    });
    assert!(taken.contains(&2), "a client with much does not hold another back");
    inbox.take_clients(|_, bytes| {
        taken.push(bytes[0]);
        true
    });
    assert_eq!(taken.len(), 41);
    assert!(inbox.is_empty());
}

#[test]
fn replicas_and_clients_are_taken_apart() {
    let inbox = Inbox::new();
    inbox.push(&Inbox::lane(Party::Client(ClientId(1))), message(1, 1));
    let mut taken = 0;
    inbox.take_replicas(|_, _| {
        taken += 1;
        true
    });
    assert_eq!(taken, 0);
    assert!(!inbox.is_empty());
}

#[test]
fn a_full_lane_has_no_room_until_it_is_taken() {
    let inbox = Inbox::new();
    let lane = Inbox::lane(Party::Replica(ReplicaId(1)));
    while lane.has_room() {
        inbox.push(&lane, message(0, 1 << 20));
    }
    inbox.take_replicas(|_, _| true);
    assert!(lane.has_room());
    for _ in 0..10_000 {
        if lane.has_room() {
            inbox.push(&lane, message(0, 0));
        }
    }
    assert!(!lane.has_room(), "the number of messages is bounded too");
}
