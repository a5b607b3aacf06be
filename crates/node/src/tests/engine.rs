//! The loop's turn, on a replica of a group of three that nobody is connected to.

use super::config::{Scratch, plan};
use crate::clock::Clock;
use crate::config::{ClientSecret, Cluster, Layout, ReplicaSecret, TrustedKind, make};
use crate::durable::Standing;
use crate::engine::Engine;
use crate::inbox::{Inbox, Party};
use crate::runtime::engine;
use bytes::Bytes;
use troth_exec::Executor;
use troth_kv::Null;
use troth_minbft::MinBft;
use troth_types::{ClientId, Read, ReplicaId, ToReplica, Wire};

/// The files of a fresh group, as replica 0 and client 1 read them.
pub(super) fn files(name: &str) -> (Cluster, ReplicaSecret, ClientSecret) {
    let scratch = Scratch::new(name);
    let layout = Layout::new(&scratch.0);
    make(&layout, &plan(TrustedKind::Hmac)).expect("a fresh directory");
    let cluster = Cluster::load(&layout.cluster()).expect("just made");
    let secret = ReplicaSecret::load(&layout.replica_secret(ReplicaId(0)), &cluster).expect("just made");
    let client = ClientSecret::load(&layout.client_secret(ClientId(1)), &cluster).expect("just made");
    (cluster, secret, client)
}

/// Replica 0 of a fresh group, which answers everything with so many bytes.
fn replica(name: &str, result_bytes: usize) -> Engine<MinBft, Executor<Null>> {
    let (cluster, secret, _) = files(name);
    let executor = Executor::new(Null::new(result_bytes), cluster.limits);
    engine(&cluster, secret, executor, Clock::new(), Standing::Volatile).expect("a fresh replica starts")
}

/// Puts reads whose results replica 0 sends whole into the lane of client 1.
fn read(inbox: &Inbox, count: u64, operation: &Bytes) {
    let lane = Inbox::lane(Party::Client(ClientId(1)));
    for number in (2..).step_by(3).take(usize::try_from(count).expect("few")) {
        let read = Read { client: ClientId(1), number, operation: operation.clone() };
        inbox.push(&lane, ToReplica::Read(read).to_wire());
    }
}

/// Answers to clients so far; nobody is connected, so each was dropped.
fn answers(engine: &Engine<MinBft, Executor<Null>>) -> u64 {
    engine.counters.client_dropped
}

#[test]
fn a_turn_ends_after_so_many_bytes_of_answers_and_the_rest_has_its_turn() {
    const EACH: usize = 256 << 10;
    let mut engine = replica("turn-answers", EACH);
    let inbox = Inbox::new();
    read(&inbox, 100, &Bytes::new());
    let mut turns = 0;
    while turns == 0 || engine.has_asked() {
        let before = answers(&engine);
        engine.turn(&inbox).expect("the component goes on");
        let answered = answers(&engine) - before;
        assert!((1..=4).contains(&answered), "{answered} answers of {EACH} bytes in one turn");
        turns += 1;
    }
    assert_eq!(answers(&engine), 100, "none is lost");
    assert!(inbox.is_empty());
}

#[test]
fn a_turn_takes_so_many_bytes_of_clients() {
    let mut engine = replica("turn-messages", 0);
    let inbox = Inbox::new();
    read(&inbox, 100, &Bytes::from(vec![0; 256 << 10]));
    engine.turn(&inbox).expect("the component goes on");
    assert!((1..=4).contains(&engine.counters.client_messages_in));
    while engine.has_asked() || !inbox.is_empty() {
        engine.turn(&inbox).expect("the component goes on");
    }
    assert_eq!(answers(&engine), 100, "none is lost");
}

#[test]
fn small_answers_share_a_turn() {
    let mut engine = replica("turn-small", 0);
    let inbox = Inbox::new();
    read(&inbox, 100, &Bytes::new());
    engine.turn(&inbox).expect("the component goes on");
    assert_eq!(engine.counters.client_messages_in, 100);
    while engine.has_asked() {
        engine.turn(&inbox).expect("the component goes on");
    }
    assert_eq!(answers(&engine), 100);
}
