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
use troth_exec::{Application, OpContext, State, StateView};
use troth_kv::Null;
use troth_minbft::{Body, COUNTER, MinBft, Prepare};
use troth_trusted::{CounterValue, TrustedCore, VolatileStore};
use troth_types::{Batch, ClientId, Digest, Read, ReplicaId, Seq, Time, ToReplica, View, Wire, Wish};

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

/// A backup that hears of batch 1 when many of a client's reads wait for it.
#[test]
fn reads_that_waited_are_their_clients_and_not_who_brings_the_batch() {
    const RESULT: usize = 256 << 10;
    const READS: u64 = 200;
    let (cluster, secret, client) = files_of("late-reads", ReplicaId(1));
    // Every component of this group has the same key.
    let (primary, key) = (ReplicaId(0), secret.trusted.clone().expect("in process"));
    let state = executor(&cluster, Null::new(RESULT));
    let footing = Footing::Volatile(TrustedDelay::default());
    let mut engine: Engine<MinBft, _> =
        engine(&cluster, secret, state, Clock::new(), footing).expect("a fresh replica starts");
    let inbox = Inbox::new();
    let lane = inbox.lane(Party::Client(ClientId(2)));
    for number in 1..=READS {
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
    let answers = |engine: &Engine<MinBft, _>| engine.counters.client_dropped;
    assert_eq!(answers(&engine), 0, "they wait");

    let batch = Batch { time: engine.clock.env().wall, frames: vec![frame.digest()] };
    let body = Body::Prepare(Prepare { view: View(0), seq: Seq(1), batch });
    let digest = MinBft::digest(&body, cluster.group.id(), primary);
    let identity = cluster.identity(primary, cluster.replica(primary).epoch);
    let mut component = TrustedCore::start(identity, key, VolatileStore);
    let certificate =
        component.attest(COUNTER, CounterValue(0), CounterValue(1), &digest.0).expect("it was just started");
    let seal = Seal::Ui(Ui { certificate, run: None });
    let prepare = PeerMessage::Protocol(MinBft::seal(body, digest, primary, seal)).to_wire();
    inbox.push(&inbox.lane(Party::Replica(primary)), prepare);
    let takes = |engine: &mut Engine<MinBft, _>| {
        let now = engine.clock.now();
        engine.client_charges.get_mut().read(ClientId(2), now, 0)
    };
    let before = takes(&mut engine);
    engine.turn(&inbox).expect("goes on");
    assert_eq!(answers(&engine), 1, "the frame is, and no read in the step that brought the batch");
    let mut turns = 0;
    while answers(&engine) < 1 + READS {
        engine.turn(&inbox).expect("goes on");
        turns += 1;
        assert!(turns <= READS, "they have their turns");
    }
    assert!(turns > 1, "a turn has no time for all of them");
    assert_ne!(takes(&mut engine), before, "what they took was charged");
}
