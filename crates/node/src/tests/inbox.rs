use crate::inbox::{CLIENTS_BYTES, Inbox, LANE_BYTES, Party};
use bytes::Bytes;
use troth_types::{ClientId, ReplicaId, Time};

fn message(of: u8, length: usize) -> Bytes {
    Bytes::from(vec![of; length])
}

#[test]
fn lanes_have_turns_and_keep_their_order() {
    let inbox = Inbox::new();
    let (first, second) = (inbox.lane(Party::Client(ClientId(1))), inbox.lane(Party::Client(ClientId(2))));
    for _ in 0..40 {
        inbox.push(&first, message(1, 1));
    }
    inbox.push(&second, message(2, 1));
    let mut taken = Vec::new();
    inbox.take_clients(
        |_| None,
        |_, bytes| {
            taken.push(bytes[0]);
            taken.len() < 20
        },
    );
    assert!(taken.contains(&2), "a client with much does not hold another back");
    inbox.take_clients(
        |_| None,
        |_, bytes| {
            taken.push(bytes[0]);
            true
        },
    );
    assert_eq!(taken.len(), 41);
    assert!(inbox.is_empty());
}

#[test]
fn replicas_and_clients_are_taken_apart() {
    let inbox = Inbox::new();
    inbox.push(&inbox.lane(Party::Client(ClientId(1))), message(1, 1));
    let mut taken = 0;
    inbox.take_replicas(
        |_| None,
        |_, _| {
            taken += 1;
            true
        },
    );
    assert_eq!(taken, 0);
    assert!(!inbox.is_empty());
}

#[test]
fn a_full_lane_has_no_room_until_it_is_taken() {
    let inbox = Inbox::new();
    let lane = inbox.lane(Party::Replica(ReplicaId(1)));
    while lane.has_room() {
        inbox.push(&lane, message(0, 1 << 20));
    }
    inbox.take_replicas(|_| None, |_, _| true);
    assert!(lane.has_room());
    for _ in 0..10_000 {
        if lane.has_room() {
            inbox.push(&lane, message(0, 0));
        }
    }
    assert!(!lane.has_room(), "the number of messages is bounded too");
}

#[test]
fn a_lane_that_rests_keeps_its_messages_and_holds_nobody_back() {
    let inbox = Inbox::new();
    let (busy, other) = (Party::Replica(ReplicaId(1)), Party::Replica(ReplicaId(2)));
    let lane = inbox.lane(busy);
    for of in 0..3 {
        inbox.push(&lane, message(of, 1));
    }
    inbox.push(&inbox.lane(other), message(9, 1));
    let mut taken = Vec::new();
    let rests = |party| (party == busy).then_some(Time(10));
    inbox.take_replicas(rests, |_, bytes| {
        taken.push(bytes[0]);
        true
    });
    assert_eq!(taken, [9]);
    assert!(inbox.is_empty(), "nothing to do before its time");
    assert_eq!(inbox.next_rested(), Some(Time(10)));
    inbox.push(&lane, message(3, 1));
    inbox.rested(Time(9));
    assert!(inbox.is_empty());
    inbox.rested(Time(10));
    inbox.take_replicas(
        |_| None,
        |_, bytes| {
            taken.push(bytes[0]);
            true
        },
    );
    assert_eq!(taken, [9, 0, 1, 2, 3], "in its order");
    assert_eq!(inbox.next_rested(), None);
}

#[test]
fn lanes_of_clients_are_bounded_together() {
    let inbox = Inbox::new();
    let lanes: Vec<_> = (0..40).map(|client| inbox.lane(Party::Client(ClientId(client)))).collect();
    let mut held = 0;
    for lane in &lanes {
        while lane.has_room() {
            inbox.push(lane, message(0, LANE_BYTES / 4));
            held += LANE_BYTES / 4;
        }
    }
    // Each of the others has one message.
    assert!((CLIENTS_BYTES..CLIENTS_BYTES + 40 * LANE_BYTES / 4).contains(&held), "{held} bytes");
    let peer = inbox.lane(Party::Replica(ReplicaId(1)));
    inbox.push(&peer, message(0, 1));
    assert!(peer.has_room(), "replicas have their own room");
    inbox.end(&lanes[0]);
    inbox.take_clients(|_| None, |_, _| true);
    assert!(lanes.iter().all(|lane| lane.has_room()));
}

#[test]
fn a_lane_that_rests_is_forgotten_with_its_connection() {
    let inbox = Inbox::new();
    let now = Time(1);
    for _ in 0..100 {
        let lane = inbox.lane(Party::Client(ClientId(1)));
        for _ in 0..100 {
            inbox.push(&lane, message(1, 1));
        }
        inbox.take_clients(|_| Some(now.after(1_000_000)), |_, _| true);
        assert!(inbox.next_rested().is_some());
        inbox.end(&lane);
        assert_eq!(inbox.next_rested(), None);
        assert_eq!(std::rc::Rc::strong_count(&lane), 1, "nobody else holds it");
    }
    assert!(inbox.is_empty());
}

/// Behind a disk without space nothing is taken for hours, and who calls again and again leaves nothing all the same.
#[test]
fn a_lane_that_nothing_is_taken_from_is_forgotten_with_its_connection() {
    let inbox = Inbox::new();
    let stays = inbox.lane(Party::Client(ClientId(2)));
    inbox.push(&stays, message(2, 1));
    for party in [Party::Client(ClientId(1)), Party::Replica(ReplicaId(1))] {
        let lane = inbox.lane(party);
        inbox.push(&lane, message(1, 1));
        inbox.end(&lane);
        assert_eq!(std::rc::Rc::strong_count(&lane), 1, "nobody else holds it");
        // A connection may end before it has sent anything, and what is pushed later is listed.
        inbox.end(&lane);
        inbox.push(&lane, message(1, 1));
        assert!(!inbox.is_empty());
        inbox.end(&lane);
    }
    let mut taken = Vec::new();
    inbox.take_clients(
        |_| None,
        |_, bytes| {
            taken.push(bytes[0]);
            true
        },
    );
    assert_eq!(taken, [2]);
    assert!(inbox.is_empty());
}
