//! What is answered long after it was asked, and who is charged for it: events that are asked for again, and reads that
//! waited.

use super::asked::signed;
use super::engine::{files, files_of};
use crate::assembly::{engine, executor};
use crate::charges::BYTES_PER_MICRO;
use crate::clock::Clock;
use crate::delayed::TrustedDelay;
use crate::durable::Footing;
use crate::engine::{Blocked, Engine};
use crate::inbox::{Inbox, Party};
use bytes::Bytes;
use std::sync::Arc;
use troth_auth::{Ed25519, FrameVerifier, Seal, Ui};
use troth_core::{Agreement, Execution, Ordered, PeerMessage};
use troth_exec::{Application, Executor, OpContext, State, StateView};
use troth_kv::Null;
use troth_minbft::{Body, COUNTER, MinBft, Prepare};
use troth_trusted::{CounterValue, TrustedCore, VolatileStore};
use troth_types::{
    Batch, ClientId, Digest, Event, Read, ReadReply, ReplicaId, ReplyBody, Seq, Time, ToClient, ToReplica,
    View, Wire, Wish,
};

/// Tells its client of each operation, at length.
#[derive(Clone, Debug)]
struct Teller;

/// Bytes of each event.
const EVENT: usize = 16 << 10;

impl Application for Teller {
    fn execute(&self, _: &mut State<'_>, cx: &mut OpContext<'_>, _: &Bytes) -> Bytes {
        cx.emit(ClientId(1), Bytes::from(vec![7; EVENT]));
        Bytes::new()
    }
    fn query(&self, _: &StateView<'_>, _: ClientId, _: &Bytes) -> Bytes {
        Bytes::new()
    }
}

#[test]
fn who_has_a_full_outbox_repeated_is_charged_and_keeps_nobody_waiting() {
    let (cluster, secret, client) = files("late-events");
    let mut executor = executor(&cluster, Teller);
    let frame = signed(&cluster, &client, 1, vec![Bytes::new(); 64]);
    let verifier = FrameVerifier::new(cluster.directory(), Arc::new(Ed25519), cluster.limits);
    let verified = verifier.verify_all(vec![Arc::clone(&frame)]).remove(0).expect("its client signed it");
    executor.execute(&Ordered { seq: Seq(1), time: Time(1), seed: Digest::ZERO, frames: vec![verified] });
    let footing = Footing::Volatile(TrustedDelay::default());
    let mut engine: Engine<MinBft, _> =
        engine(&cluster, secret, executor, Clock::new(), footing).expect("a fresh replica starts");
    let inbox = Inbox::new();
    let lane = inbox.lane(Party::Client(ClientId(1)));
    for _ in 0..50 {
        let request = ToReplica::Request { frame: Arc::clone(&frame), wish: Wish::Full };
        inbox.push(&lane, request.to_wire());
    }
    // What waits for the disk is counted by its length.
    engine.blocked = Some(Blocked::Sync);
    engine.turn(&inbox).expect("goes on");
    let waits = engine.host.backlog_bytes();
    assert!(
        (256 << 10..=2 << 20).contains(&waits),
        "{waits} bytes, of a MiB for each of 50 times that it asks"
    );
    let now = engine.clock.now();
    let takes = engine.client_charges.get_mut().read(ClientId(1), now, 0);
    assert!(takes >= (256 << 10) / BYTES_PER_MICRO, "{takes} microseconds are its own");
}

/// A backup at which many reads of client 2 wait for batch 1, and the proposal of that batch.
struct Behind {
    engine: Engine<MinBft, Executor<Null>>,
    inbox: Inbox,
    prepare: Bytes,
}

impl Behind {
    fn new(name: &str, reads: u64, result: usize) -> Self {
        let (cluster, secret, client) = files_of(name, ReplicaId(1));
        // Every component of this group has the same key.
        let (primary, key) = (ReplicaId(0), secret.trusted.clone().expect("in process"));
        let state = executor(&cluster, Null::new(result));
        let footing = Footing::Volatile(TrustedDelay::default());
        let mut engine: Engine<MinBft, _> =
            engine(&cluster, secret, state, Clock::new(), footing).expect("a fresh replica starts");
        let inbox = Inbox::new();
        let lane = inbox.lane(Party::Client(ClientId(2)));
        for number in 1..=reads {
            let least = Some(Seq(1));
            let read = Read { client: ClientId(2), number, nonce: None, least, operation: Bytes::new() };
            inbox.push(&lane, ToReplica::Read(read).to_wire());
        }
        let frame = signed(&cluster, &client, 1, vec![Bytes::new()]);
        let own = inbox.lane(Party::Client(ClientId(1)));
        inbox.push(&own, ToReplica::Request { frame: Arc::clone(&frame), wish: Wish::Usual }.to_wire());
        while !inbox.is_empty() || engine.has_asked() {
            engine.turn(&inbox).expect("goes on");
        }
        assert_eq!(engine.counters.client_dropped, 0, "they wait");

        let batch = Batch { time: engine.clock.env().wall, frames: vec![frame.digest()] };
        let body = Body::Prepare(Prepare { view: View(0), seq: Seq(1), batch });
        let digest = MinBft::digest(&body, cluster.group.id(), primary);
        let identity = cluster.identity(primary, cluster.replica(primary).epoch);
        let mut component = TrustedCore::start(identity, key, VolatileStore);
        let certificate = component
            .attest(COUNTER, CounterValue(0), CounterValue(1), &digest.0)
            .expect("it was just started");
        let seal = Seal::Ui(Ui { certificate, run: None });
        let prepare = PeerMessage::Protocol(MinBft::seal(body, digest, primary, seal)).to_wire();
        Self { engine, inbox, prepare }
    }

    fn turn(&mut self) {
        self.engine.turn(&self.inbox).expect("goes on");
    }

    fn hears_of_the_batch(&mut self) {
        let lane = self.inbox.lane(Party::Replica(ReplicaId(0)));
        self.inbox.push(&lane, self.prepare.clone());
        self.turn();
    }

    /// Answers for which there is no connection.
    fn answers(&self) -> u64 {
        self.engine.counters.client_dropped
    }
}

#[test]
fn reads_that_waited_are_their_clients_and_not_who_brings_the_batch() {
    const READS: u64 = 200;
    let mut behind = Behind::new("late-reads", READS, 256 << 10);
    let takes = |behind: &mut Behind| {
        let now = behind.engine.clock.now();
        behind.engine.client_charges.get_mut().read(ClientId(2), now, 0)
    };
    let before = takes(&mut behind);
    behind.hears_of_the_batch();
    assert_eq!(behind.answers(), 1, "the frame is, and no read in the step that brought the batch");
    let mut turns = 0;
    while behind.answers() < 1 + READS {
        behind.turn();
        turns += 1;
        assert!(turns <= READS, "they have their turns");
    }
    assert!(turns > 1, "a turn has no time for all of them");
    assert_ne!(takes(&mut behind), before, "what they took was charged");
}

/// No timer is set or fires for it meanwhile: that is among what waits.
#[test]
fn reads_that_waited_are_answered_while_the_disk_is_waited_for() {
    const READS: u64 = 20;
    let mut behind = Behind::new("late-reads-behind-the-disk", READS, 1 << 10);
    behind.hears_of_the_batch();
    assert!(behind.engine.host.machine().has_late_answer());
    behind.engine.blocked = Some(Blocked::Sync);
    let before = behind.engine.host.backlog_bytes();
    behind.turn();
    assert!(!behind.engine.host.machine().has_late_answer(), "20 KiB are little for a turn");
    let waits = behind.engine.host.backlog_bytes() - before;
    assert!(waits >= 5 << 10, "{waits} bytes of answers wait for the disk");
    assert_eq!(behind.answers(), 1, "and none has gone");
}

#[test]
fn reads_that_waited_go_on_waiting_where_much_waits_for_the_disk() {
    const READS: u64 = 400;
    let mut behind = Behind::new("late-reads-behind-much", READS, 256 << 10);
    behind.hears_of_the_batch();
    behind.engine.blocked = Some(Blocked::Sync);
    for _ in 0..READS {
        behind.turn();
    }
    assert!(
        behind.engine.host.machine().has_late_answer(),
        "100 MiB of answers are not made for them to wait"
    );
    assert!(behind.engine.is_crowded());
    behind.engine.blocked = None;
    let mut turns = 0;
    while behind.answers() < 1 + READS {
        behind.turn();
        turns += 1;
        assert!(turns <= READS, "they have their turns");
    }
}

#[test]
fn who_is_told_of_what_others_write_does_not_rest_for_it() {
    let mut behind = Behind::new("told-of-much", 1, 0);
    let now = behind.engine.clock.now();
    let charges = behind.engine.client_charges.get_mut();
    for client in [1, 2] {
        charges.asked(ClientId(client), now, 64, true);
    }
    charges.contended(true);
    for index in 1..=8 {
        let event = Event { client: ClientId(2), index, seq: Seq(1), payload: vec![7; 1 << 20].into() };
        behind.engine.tell_client(ToClient::Event(event));
    }
    assert_eq!(behind.engine.client_charges.get_mut().rests(ClientId(2), now), None);
    // An answer of that size is its own.
    let body = ReplyBody::Full(vec![vec![7; 8 << 20].into()]);
    let reply = ReadReply { client: ClientId(2), number: 1, events_up_to: 0, body };
    behind.engine.tell_client(ToClient::ReadReply(reply));
    assert!(behind.engine.client_charges.get_mut().rests(ClientId(2), now).is_some());
}
