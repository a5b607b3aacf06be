//! What one turn of the loop does for a party whose messages are of no use.

use super::engine::{files, files_of, replica};
use crate::assembly::{engine, executor};
use crate::clock::Clock;
use crate::delayed::TrustedDelay;
use crate::durable::Footing;
use crate::engine::Engine;
use crate::execution_costs::Executed;
use crate::inbox::{Inbox, Party};
use bytes::Bytes;
use std::sync::Arc;
use troth_auth::{Ed25519Signer, Signer};
use troth_core::{PeerMessage, To};
use troth_exec::Executor;
use troth_kv::Null;
use troth_minbft::{Message, MinBft, Status};
use troth_types::{
    ClientId, Digest, FrameDraft, ReplicaId, Seq, Signature, StateFetch, ToReplica, View, Wire, Wish,
};

const FLOODER: Party = Party::Replica(ReplicaId(1));
const OTHER: Party = Party::Replica(ReplicaId(2));

fn status() -> Bytes {
    let status = Status {
        view: View(0),
        processed: vec![0; 3],
        stable: Seq(0),
        executed: Seq(0),
        round: 0,
        wants: None,
    };
    PeerMessage::Protocol(Message::Status(status)).to_wire()
}

#[test]
fn a_replica_that_sends_garbage_is_not_read_from_for_a_while_and_others_are() {
    let mut engine = replica("flood-garbage", 0);
    let inbox = Inbox::new();
    let lane = inbox.lane(FLOODER);
    let garbage = Bytes::from(vec![0; 4 << 20]);
    for _ in 0..200 {
        inbox.push(&lane, garbage.clone());
    }
    while inbox.next_rested().is_none() {
        assert!(!inbox.is_empty(), "all of it was taken");
        engine.turn(&inbox).expect("goes on");
    }
    let taken = engine.counters.malformed;
    // Each counts as 16 ms at least, of a quarter of a second.
    assert!((1..=20).contains(&taken), "{taken} were taken");
    assert!(engine.counters.peer_rests > 0 && engine.counters.peer_useless_micros >= 250_000);
    assert!(!lane.has_room(), "its connection reads no more");
    inbox.push(&inbox.lane(OTHER), status());
    engine.turn(&inbox).expect("goes on");
    assert_eq!(engine.counters.messages_verified, 1, "another replica is heard");
    assert_eq!(engine.counters.malformed, taken);
}

#[test]
fn messages_that_bring_nothing_are_charged() {
    let mut engine = replica("flood-useless", 0);
    let inbox = Inbox::new();
    let lane = inbox.lane(FLOODER);
    for _ in 0..100 {
        inbox.push(&lane, status());
    }
    engine.turn(&inbox).expect("goes on");
    assert_eq!(engine.counters.messages_verified, 100);
    assert!(engine.counters.peer_useless_micros >= 200, "at least two microseconds each");
}

#[test]
fn a_replica_that_repeats_frames_is_not_read_from_for_a_while() {
    let (cluster, secret, client) = files("flood-again");
    let executor = executor(&cluster, Null::new(0));
    let mut engine = engine::<MinBft, _>(
        &cluster,
        secret,
        executor,
        Clock::new(),
        Footing::Volatile(TrustedDelay::default()),
    )
    .expect("a fresh replica starts");
    let draft = FrameDraft {
        group: cluster.group.id(),
        client: ClientId(1),
        number: 1,
        events_seen: 0,
        operations: vec![Bytes::from_static(b"x"); 1000],
    };
    let signature = Ed25519Signer::from_seed(client.seed).sign(&draft.signing_digest());
    let frame = Arc::new(draft.sign(signature));
    let inbox = Inbox::new();
    let request = ToReplica::Request { frame: Arc::clone(&frame), wish: Wish::Usual };
    inbox.push(&inbox.lane(Party::Client(ClientId(1))), request.to_wire());
    engine.turn(&inbox).expect("goes on");
    assert_eq!(engine.counters.frames_verified, 1);

    // In one message it counts once, and what is no frame at all is of no use.
    let lane = inbox.lane(FLOODER);
    let show = |times| PeerMessage::<Message>::Frames(vec![Arc::clone(&frame); times]).to_wire();
    inbox.push(&lane, show(0));
    engine.turn(&inbox).expect("goes on");
    let useless = engine.counters.peer_useless_micros;
    assert!(useless > 0);
    inbox.push(&lane, show(200));
    engine.turn(&inbox).expect("goes on");
    assert!(engine.counters.peer_useless_micros > useless);
    let mut sent = 0;
    while inbox.next_rested().is_none() {
        sent += 1;
        assert!(sent < 200_000, "it rests when it has cost half a second");
        inbox.push(&lane, show(1));
        engine.turn(&inbox).expect("goes on");
    }
    inbox.push(&inbox.lane(OTHER), status());
    engine.turn(&inbox).expect("goes on");
    assert_eq!(engine.counters.messages_verified, 1, "another replica is heard");
}

/// MINBFT-N14: who sends to the primary alone has its share of this replica's work all the same.
#[test]
fn what_others_show_of_a_client_counts_for_its_share() {
    let (cluster, secret, client) = files_of("flood-shown", ReplicaId(1));
    let executor = executor(&cluster, Null::new(0));
    let footing = Footing::Volatile(TrustedDelay::default());
    let mut engine = engine::<MinBft, _>(&cluster, secret, executor, Clock::new(), footing)
        .expect("a fresh replica starts");
    let signer = Ed25519Signer::from_seed(client.seed);
    let frame = |number| {
        let (group, operations) = (cluster.group.id(), vec![Bytes::from_static(b"x")]);
        let draft = FrameDraft { group, client: ClientId(1), number, events_seen: 0, operations };
        Arc::new(draft.clone().sign(signer.sign(&draft.signing_digest())))
    };
    let inbox = Inbox::new();
    let mut share = |from: Party, numbers: std::ops::RangeInclusive<u64>| {
        let all = engine.counters.frames_verified + numbers.clone().count() as u64;
        let shown: Vec<_> = numbers.map(frame).collect();
        inbox.push(&inbox.lane(from), PeerMessage::<Message>::Frames(shown).to_wire());
        engine.turn(&inbox).expect("goes on");
        assert_eq!(engine.counters.frames_verified, all);
        let now = engine.clock.now();
        let charges = engine.client_charges.get_mut();
        charges.asked(ClientId(2), now, 100, true);
        charges.contended(true);
        assert!(charges.rests(ClientId(2), now).is_none());
        charges.rests(ClientId(1), now).is_some()
    };
    assert!(!share(OTHER, 1..=30), "a backup may show what its client sent everybody");
    assert!(
        share(Party::Replica(ReplicaId(0)), 31..=60),
        "thirty requests that the primary alone had, beside two"
    );
}

/// What a turn takes in it orders, and everybody executes: that must not take long.
#[test]
fn a_turn_takes_as_many_frames_as_are_executed_in_a_turn() {
    let (cluster, secret, client) = files_of("flood-dear", ReplicaId(0));
    let executor = executor(&cluster, Null::new(0));
    let footing = Footing::Volatile(TrustedDelay::default());
    let mut engine = engine::<MinBft, _>(&cluster, secret, executor, Clock::new(), footing)
        .expect("a fresh replica starts");
    let signer = Ed25519Signer::from_seed(client.seed);
    let inbox = Inbox::new();
    let lane = inbox.lane(Party::Client(ClientId(1)));
    let mut taken = |micros: u64, numbers: std::ops::RangeInclusive<u64>| {
        let now = engine.clock.now();
        let executed = Executed { frames: 8, micros: 8 * micros, ..Executed::default() };
        engine.client_charges.get_mut().executed(ClientId(1), now, executed);
        for number in numbers {
            let (group, operations) = (cluster.group.id(), vec![Bytes::from_static(b"x")]);
            let draft = FrameDraft { group, client: ClientId(1), number, events_seen: 0, operations };
            let frame = Arc::new(draft.clone().sign(signer.sign(&draft.signing_digest())));
            inbox.push(&lane, ToReplica::Request { frame, wish: Wish::Usual }.to_wire());
        }
        let before = engine.counters.frames_verified;
        engine.turn(&inbox).expect("goes on");
        engine.counters.frames_verified - before
    };
    assert_eq!(taken(5, 1..=8), 8);
    assert_eq!(taken(4_000, 9..=16), 3, "of 4 ms each, to judge by those before them");
    assert_eq!(taken(60_000, 17..=17), 1, "one at least");
}

/// Several are asked for the same frames, and one comes first: the others have answered as they should.
#[test]
fn whoever_is_asked_for_frames_may_send_what_another_sent_before() {
    let mut engine = replica("flood-asked", 0);
    let question = PeerMessage::<Message>::FetchFrames(vec![Digest::ZERO]);
    engine.tell_peers(To::One(ReplicaId(1)), &question);
    let may = |engine: &mut Engine<MinBft, Executor<Null>>, replica| {
        engine.peer_charges.was_asked(ReplicaId(replica), troth_types::Time(1), 1 << 20)
    };
    assert!(may(&mut engine, 1) && !may(&mut engine, 2));
    engine.tell_peers(To::Others, &question);
    assert!(may(&mut engine, 1) && may(&mut engine, 2));
}

#[test]
fn questions_wait_beside_what_else_a_replica_says() {
    let mut engine = replica("flood-fetches", 0);
    let inbox = Inbox::new();
    let lane = inbox.lane(FLOODER);
    let fetch = StateFetch { seq: Seq(64), digest: Digest::ZERO, path: Bytes::new() };
    for number in 0..60 {
        let fetch = StateFetch { path: Bytes::from(vec![number]), ..fetch.clone() };
        let question = PeerMessage::<Message>::FetchState(fetch).to_wire();
        // Asked twice it is answered once.
        inbox.push(&lane, question.clone());
        inbox.push(&lane, question);
    }
    inbox.push(&lane, status());
    engine.turn(&inbox).expect("goes on");
    assert_eq!(engine.counters.messages_verified, 1, "it was not held up");
    assert_eq!(engine.counters.inputs, 1 + 32, "a turn's share of the questions was looked into");
    assert!(engine.next_fetch().is_some(), "the rest has its turn");
    while engine.next_fetch().is_some() {
        engine.turn(&inbox).expect("goes on");
    }
    assert_eq!(engine.counters.inputs, 1 + 60);
}

#[test]
fn a_client_whose_signatures_are_wrong_is_not_read_from_for_a_while() {
    let (cluster, ..) = files("flood-signatures");
    let mut engine = replica("flood-signatures-2", 0);
    let inbox = Inbox::new();
    let lane = inbox.lane(Party::Client(ClientId(1)));
    let wrong = |number| {
        let operations = vec![Bytes::from_static(b"x")];
        let draft =
            FrameDraft { group: cluster.group.id(), client: ClientId(1), number, events_seen: 0, operations };
        ToReplica::Request { frame: Arc::new(draft.sign(Signature([7; 64]))), wish: Wish::Usual }.to_wire()
    };
    for number in 1..=4_000 {
        inbox.push(&lane, wrong(number));
    }
    while inbox.next_rested().is_none() {
        assert!(!inbox.is_empty(), "all of it was taken");
        engine.turn(&inbox).expect("goes on");
    }
    // At 40 microseconds each at least, of a tenth of a second, and a turn's worth more.
    assert!(engine.counters.frames_refused <= 2_500 + 96, "{}", engine.counters.frames_refused);
    assert!(engine.counters.client_rests > 0);
}
