//! What a turn does for clients that ask again for what is large.

use super::engine::{files, replica};
use crate::assembly::{engine, executor};
use crate::charges::PeerCharges;
use crate::clock::Clock;
use crate::config::{ClientSecret, Cluster};
use crate::delayed::TrustedDelay;
use crate::durable::Footing;
use crate::engine::{ASKED_BYTES, BACKLOG_BYTES, Blocked, Engine};
use crate::inbox::{Inbox, Party};
use bytes::Bytes;
use std::sync::Arc;
use troth_auth::{Ed25519, Ed25519Signer, FrameVerifier, Seal, Signer, Ui};
use troth_core::{Agreement, Execution, Input, Ordered, PeerMessage, To};
use troth_exec::Executor;
use troth_kv::Null;
use troth_minbft::{Body, COUNTER, Message, MinBft, StableProof, ViewChange};
use troth_trusted::{CounterValue, TrustedCore, VolatileStore};
use troth_types::{
    ClientId, Digest, Frame, FrameDraft, Read, ReplicaId, Seq, Time, ToReplica, View, Wire, Wish,
};

/// Bytes of the result of each operation.
const EACH: usize = 1 << 20;

pub(super) fn signed(
    cluster: &Cluster,
    client: &ClientSecret,
    number: u64,
    operations: Vec<Bytes>,
) -> Arc<Frame> {
    let draft =
        FrameDraft { group: cluster.group.id(), client: client.client, number, events_seen: 0, operations };
    let signature = Ed25519Signer::from_seed(client.seed).sign(&draft.signing_digest());
    Arc::new(draft.sign(signature))
}

/// A replica that has executed a frame of client 1, whose results are eight times so much, and the frame.
fn executed(name: &str) -> (Engine<MinBft, Executor<Null>>, Arc<Frame>) {
    let (cluster, secret, client) = files(name);
    let mut executor = executor(&cluster, Null::new(EACH));
    let frame = signed(&cluster, &client, 1, vec![Bytes::new(); 7]);
    let verifier = FrameVerifier::new(cluster.directory(), Arc::new(Ed25519), cluster.limits);
    let verified = verifier.verify_all(vec![Arc::clone(&frame)]).remove(0).expect("its client signed it");
    executor.execute(&Ordered { seq: Seq(1), time: Time(1), seed: Digest::ZERO, frames: vec![verified] });
    let engine = engine(&cluster, secret, executor, Clock::new(), Footing::Volatile(TrustedDelay::default()))
        .expect("a fresh replica starts");
    (engine, frame)
}

fn again(inbox: &Inbox, frame: &Arc<Frame>, count: usize) {
    let lane = inbox.lane(Party::Client(ClientId(1)));
    for _ in 0..count {
        let request = ToReplica::Request { frame: Arc::clone(frame), wish: Wish::Full };
        inbox.push(&lane, request.to_wire());
    }
}

fn answers(engine: &Engine<MinBft, Executor<Null>>) -> u64 {
    engine.counters.client_dropped
}

#[test]
fn one_who_asks_again_for_much_does_not_keep_others_from_being_heard() {
    let (mut engine, frame) = executed("asked-again");
    let inbox = Inbox::new();
    again(&inbox, &frame, 200);
    engine.turn(&inbox).expect("goes on");
    assert_eq!((answers(&engine), engine.has_asked()), (1, false), "a turn takes no more than it answers");
    // Whoever asks meanwhile is heard in the next turn, and with it the other one's part is a half.
    let read = Read { client: ClientId(2), number: 2, nonce: None, least: None, operation: Bytes::new() };
    inbox.push(&inbox.lane(Party::Client(ClientId(2))), ToReplica::Read(read).to_wire());
    let before = engine.counters.client_messages_in;
    engine.turn(&inbox).expect("goes on");
    assert!(engine.counters.client_messages_in - before >= 1);
    assert!(answers(&engine) >= 2);
}

#[test]
fn what_clients_ask_for_behind_a_disk_leaves_room_for_what_the_group_does() {
    let (mut engine, frame) = executed("asked-behind");
    let inbox = Inbox::new();
    engine.blocked = Some(Blocked::Sync);
    again(&inbox, &frame, 200);
    for turn in 0..100 {
        engine.turn(&inbox).expect("goes on");
        assert!(engine.host.backlog_bytes() <= ASKED_BYTES + 8 * EACH, "in turn {turn}");
    }
    assert!(engine.is_crowded() && !engine.is_stuck());
    assert!(engine.asked_in_vain() || !inbox.is_empty(), "the rest waits for the disk");
    // It was charged when it was queued, whenever it is sent.
    let rests = |engine: &mut Engine<MinBft, Executor<Null>>| {
        let now = engine.clock.now();
        let charges = engine.client_charges.get_mut();
        charges.asked(ClientId(2), now, 100, true);
        charges.rests(ClientId(1), now)
    };
    assert!(rests(&mut engine).is_some());
}

#[test]
fn small_answers_behind_a_disk_leave_as_much_room() {
    let mut engine = replica("asked-small", 0);
    let inbox = Inbox::new();
    engine.blocked = Some(Blocked::Sync);
    let lane = inbox.lane(Party::Client(ClientId(1)));
    for number in (2..).step_by(3).take(4_000) {
        let read = Read { client: ClientId(1), number, nonce: None, least: None, operation: Bytes::new() };
        inbox.push(&lane, ToReplica::Read(read).to_wire());
    }
    for _ in 0..400 {
        engine.turn(&inbox).expect("goes on");
    }
    assert!(engine.is_crowded() && !engine.is_stuck(), "{} commands wait", engine.host.backlog());
    assert!(engine.host.backlog() <= 2_500);
}

/// A backup sends what clients sent to it alone on to the primary, which may have no use for them.
#[test]
fn what_one_is_shown_it_has_not_asked_for() {
    let (mut engine, frame) = executed("asked-shown");
    let frames = PeerMessage::<Message>::Frames(vec![frame; 8]);
    for _ in 0..100_000 {
        engine.tell_peers(To::One(ReplicaId(1)), &frames);
    }
    let now = engine.clock.now();
    assert_eq!(engine.peer_charges.may_fetch_from(ReplicaId(1), now), None);
    assert!(engine.shown_bytes > 64 << 20 && engine.fetched_bytes == 0);
}

#[test]
fn what_one_asks_for_is_counted_when_it_is_queued_whenever_it_is_sent() {
    const LARGE: usize = 900 << 10;
    let (cluster, secret, client) = files("asked-fetched");
    let state = executor(&cluster, Null::new(8));
    let footing = Footing::Volatile(TrustedDelay::default());
    let mut engine = engine::<MinBft, _>(&cluster, secret, state, Clock::new(), footing).expect("it starts");
    let inbox = Inbox::new();
    let frames: Vec<_> =
        (1..=16).map(|number| signed(&cluster, &client, number, vec![Bytes::from(vec![0; LARGE])])).collect();
    let lane = inbox.lane(Party::Client(ClientId(1)));
    for frame in &frames {
        let request = ToReplica::Request { frame: Arc::clone(frame), wish: Wish::Usual };
        inbox.push(&lane, request.to_wire());
    }
    while !inbox.is_empty() || engine.has_asked() {
        engine.turn(&inbox).expect("goes on");
    }
    // A replica asks for all of them again and again while the disk does not answer.
    engine.blocked = Some(Blocked::Sync);
    let (before, lane) = (engine.host.backlog_bytes(), inbox.lane(Party::Replica(ReplicaId(1))));
    let digests: Vec<Digest> = frames.iter().map(|frame| frame.digest()).collect();
    for _ in 0..100 {
        let question = PeerMessage::<Message>::FetchFrames(digests.clone()).to_wire();
        inbox.push(&lane, question);
        engine.turn(&inbox).expect("goes on");
    }
    let queued = engine.host.backlog_bytes() - before;
    assert!(queued >= LARGE, "it is answered");
    assert!(engine.host.backlog_bytes() <= ASKED_BYTES + 16 * LARGE, "{queued} bytes wait");
    let mut account = PeerCharges::new(3);
    std::mem::swap(&mut account, &mut engine.peer_charges);
    let now = engine.clock.now();
    // What is left of the burst would be overdrawn by all of it.
    account.fetched(ReplicaId(1), now, (64 << 20) - queued / 2);
    assert!(account.may_fetch_from(ReplicaId(1), now).is_some());
}

/// What the group does itself, which nobody may keep waiting, fills the backlog to its bound: then nothing is taken in until
/// the disk has answered.
#[test]
fn behind_a_disk_that_does_not_answer_nothing_more_is_taken_in_at_last() {
    const LARGE: usize = 900 << 10;
    let (cluster, secret, client) = files("asked-stuck");
    let state = executor(&cluster, Null::new(8));
    let footing = Footing::Volatile(TrustedDelay::default());
    let mut engine = engine::<MinBft, _>(&cluster, secret, state, Clock::new(), footing).expect("it starts");
    let inbox = Inbox::new();
    let lane = inbox.lane(Party::Client(ClientId(1)));
    let ask = |number| {
        let frame = signed(&cluster, &client, number, vec![Bytes::from(vec![0; LARGE])]);
        inbox.push(&lane, ToReplica::Request { frame: Arc::clone(&frame), wish: Wish::Usual }.to_wire());
        frame.digest()
    };
    let digests: Vec<Digest> = (1..=15).map(ask).collect();
    while !inbox.is_empty() || engine.has_asked() {
        engine.turn(&inbox).expect("goes on");
    }
    engine.blocked = Some(Blocked::Sync);
    while engine.host.backlog_bytes() <= BACKLOG_BYTES {
        let (before, env) = (engine.host.backlog_bytes(), engine.clock.env());
        engine.host.input(env, Input::FetchFrames(ReplicaId(1), digests.clone()));
        assert!(engine.host.backlog_bytes() > before);
    }
    assert!(engine.is_stuck());
    ask(16);
    let heard = engine.counters.client_messages_in;
    for _ in 0..10 {
        engine.turn(&inbox).expect("goes on");
    }
    assert!(!inbox.is_empty() && engine.counters.client_messages_in == heard);
    engine.blocked = None;
    while !inbox.is_empty() {
        engine.turn(&inbox).expect("goes on");
    }
    assert!(!engine.is_stuck() && engine.counters.client_messages_in == heard + 1);
}

/// MINBFT-R14: a message that waits for those before it is no garbage, and no more welcome for being sent again.
#[test]
fn what_merely_waits_is_charged_as_what_is_held_already() {
    let (cluster, secret, _) = files("asked-waits");
    let state = executor(&cluster, Null::new(8));
    // Every component of this group has the same key.
    let (sender, key) = (ReplicaId(1), secret.trusted.clone().expect("in process"));
    let footing = Footing::Volatile(TrustedDelay::default());
    let mut engine = engine::<MinBft, _>(&cluster, secret, state, Clock::new(), footing).expect("it starts");
    let identity = cluster.identity(sender, cluster.replica(sender).epoch);
    let mut component = TrustedCore::start(identity, key, VolatileStore);
    let mut says = |previous: u128| {
        let stable = StableProof { votes: Vec::new() };
        let body =
            Body::ViewChange(ViewChange { to: View(1), stable, log: Vec::new(), requests: Vec::new() });
        let digest = MinBft::digest(&body, cluster.group.id(), sender);
        let (previous, new) = (CounterValue(previous), CounterValue(previous + 1));
        let certificate = component.attest(COUNTER, previous, new, &digest.0).expect("it was just started");
        let seal = Seal::Ui(Ui { certificate, run: None });
        PeerMessage::Protocol(MinBft::seal(body, digest, sender, seal)).to_wire()
    };
    let (_first, second) = (says(0), says(1));
    let inbox = Inbox::new();
    let lane = inbox.lane(Party::Replica(sender));
    inbox.push(&lane, second.clone());
    engine.turn(&inbox).expect("goes on");
    assert_eq!(engine.counters.messages_verified, 1);
    let useless = engine.counters.peer_useless_micros;
    for _ in 0..100 {
        inbox.push(&lane, second.clone());
        engine.turn(&inbox).expect("goes on");
    }
    assert_eq!(engine.counters.messages_passed_over, 100);
    assert_eq!(engine.counters.peer_useless_micros, useless, "its author may have had to send it again");
}
