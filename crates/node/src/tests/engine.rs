//! The loop's turn, on a replica of a group of three that nobody is connected to.

use super::config::{Scratch, plan};
use crate::beside::{Desk, Done};
use crate::clock::Clock;
use crate::config::{ClientSecret, Cluster, Layout, ReplicaSecret, TrustedKind, make};
use crate::durable::{Opened, Standing};
use crate::engine::{Blocked, Engine, Stopped};
use crate::inbox::{Inbox, Party};
use crate::journal::Journal;
use crate::runtime::{engine, executor};
use bytes::Bytes;
use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;
use troth_auth::{Ed25519Signer, Signer};
use troth_exec::{Executor, Snapshot};
use troth_kv::Null;
use troth_minbft::MinBft;
use troth_trusted::{TrustedCore, VolatileStore};
use troth_trusted_host::InProcess;
use troth_types::{ClientId, FrameDraft, Read, ReplicaId, Seq, ToReplica, Wire};

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
    let executor = executor(&cluster, Null::new(result_bytes));
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

/// A disk that answers when the test says so; counts what was appended and the syncs asked for.
#[derive(Clone, Default)]
struct Slow(Rc<Cell<(usize, usize)>>);

impl Journal<Snapshot> for Slow {
    fn append(&mut self, _: Bytes) {
        let (appended, syncs) = self.0.get();
        self.0.set((appended + 1, syncs));
    }
    fn wants_segment(&self) -> bool {
        true
    }
    fn new_segment(&mut self, _: Snapshot, _: bool) {}
    fn sync(&mut self) {
        let (appended, syncs) = self.0.get();
        self.0.set((appended, syncs + 1));
    }
    fn snapshot_done(&mut self, _: Seq) {}
}

/// Replica 0, the primary of a fresh group, on a slow disk, with an operation to order.
fn durable(name: &str) -> (Engine<MinBft, Executor<Null>>, Slow, Desk, Inbox) {
    let (cluster, secret, client) = files(name);
    let (slow, desk) = (Slow::default(), Desk::default());
    let identity = cluster.identity(ReplicaId(0), cluster.replica(ReplicaId(0)).epoch);
    let component = InProcess::new(TrustedCore::start(
        identity,
        secret.trusted.clone().expect("in process"),
        VolatileStore,
    ));
    let opened = Opened {
        component: Box::new(component),
        journal: Box::new(slow.clone()),
        desk: desk.clone(),
        found: None,
    };
    let executor = executor(&cluster, Null::new(8));
    let standing = Standing::Durable(Box::new(opened));
    let mut engine =
        engine(&cluster, secret, executor, Clock::new(), standing).expect("a fresh replica starts");
    engine.commands().expect("there is nothing to refuse");
    let draft = FrameDraft {
        group: cluster.group.id(),
        client: ClientId(1),
        number: 1,
        events_seen: 0,
        operations: vec![Bytes::from_static(b"x")],
    };
    let signature = Ed25519Signer::from_seed(client.seed).sign(&draft.signing_digest());
    let request = ToReplica::Request { frame: Arc::new(draft.sign(signature)), full: false };
    let inbox = Inbox::new();
    inbox.push(&Inbox::lane(Party::Client(ClientId(1))), request.to_wire());
    (engine, slow, desk, inbox)
}

#[test]
fn nothing_is_certified_before_its_body_is_durable_nor_sent_before_it_is_certified() {
    let (mut engine, slow, desk, inbox) = durable("durable-order");
    engine.turn(&inbox).expect("goes on");
    let (appended, syncs) = slow.0.get();
    assert!(appended > 0 && syncs == 1, "{appended} records, {syncs} syncs");
    assert_eq!(engine.blocked, Some(Blocked::Sync));
    // Turns while it waits certify nothing and send nothing.
    engine.turn(&inbox).expect("goes on");
    assert_eq!((engine.counters.attestations, engine.counters.peer_dropped), (0, 0));

    desk.leave(Done::Synced);
    engine.turn(&inbox).expect("goes on");
    assert_eq!(engine.counters.attestations, 1);
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    while engine.blocked == Some(Blocked::Attest) {
        assert_eq!(engine.counters.peer_dropped, 0, "its certificate is not there yet");
        runtime.block_on(desk.woken());
        engine.turn(&inbox).expect("goes on");
    }
    assert_eq!(engine.counters.peer_dropped, 2, "the PREPARE, for two replicas to whom nobody connects");
}

#[test]
fn a_disk_that_failed_ends_the_replica_and_a_full_one_does_not() {
    let (mut engine, _, desk, inbox) = durable("durable-failed");
    engine.turn(&inbox).expect("goes on");
    desk.leave(Done::DiskFull("no space".to_string()));
    engine.turn(&inbox).expect("waits for space");
    assert!(engine.disk_full && engine.blocked == Some(Blocked::Sync));
    desk.leave(Done::DiskSpace);
    engine.turn(&inbox).expect("goes on");
    assert!(!engine.disk_full);
    desk.leave(Done::DiskFailed("input/output error".to_string()));
    assert!(matches!(engine.turn(&inbox), Err(Stopped::Disk(why)) if why.contains("input/output")));
}
