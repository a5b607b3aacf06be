//! What other replicas show of frames whose authenticator is wrong here, and what comes again of a tentative batch.

use super::config::{Scratch, plan};
use crate::assembly::{engine, executor};
use crate::clock::Clock;
use crate::config::{Auth, ClientSecret, Cluster, Layout, Plan, Protocol, ReplicaSecret, TrustedKind, make};
use crate::delayed::TrustedDelay;
use crate::durable::Footing;
use crate::engine::Engine;
use crate::inbox::{Inbox, Party};
use bytes::Bytes;
use std::sync::Arc;
use troth_auth::{Ed25519Signer, Signer};
use troth_core::{Execution, PeerMessage};
use troth_exec::Executor;
use troth_kv::Null;
use troth_pbft::{Message, Pbft, PrePrepare, Vote};
use troth_types::{
    Batch, ClientId, Digest, Frame, FrameDraft, FrameProof, GroupId, ReplicaId, Seq, Tag, Time, ToReplica,
    View, Wire, Wish,
};

/// Replica 1 of a fresh group that takes authenticators, the group's name, and what client 1 signs with.
fn backup(name: &str) -> (Engine<Pbft, Executor<Null>>, GroupId, Ed25519Signer) {
    let scratch = Scratch::new(name);
    let layout = Layout::new(&scratch.0);
    let address = |i: u16| (format!("127.0.0.1:{}", 4700 + i), format!("127.0.0.1:{}", 4800 + i));
    let addresses = (0..4).map(address).collect();
    let of = plan(TrustedKind::Hmac);
    make(&layout, &Plan { protocol: Protocol::Pbft, auth: Auth::Mac, addresses, ..of }).expect("a fresh one");
    let cluster = Cluster::load(&layout.cluster()).expect("just made");
    let secret = ReplicaSecret::load(&layout.replica_secret(ReplicaId(1)), &cluster).expect("just made");
    let executor = executor(&cluster, Null::new(8));
    let made = engine(&cluster, secret, executor, Clock::new(), Footing::Volatile(TrustedDelay::default()));
    let client = ClientSecret::load(&layout.client_secret(ClientId(1)), &cluster).expect("just made");
    (made.expect("a fresh replica starts"), cluster.group.id(), Ed25519Signer::from_seed(client.seed))
}

/// A frame of client 1 with tags that are nobody's.
fn made_up(group: GroupId, number: u64) -> Arc<Frame> {
    let operations = vec![Bytes::from(vec![0; 1000])];
    let draft = FrameDraft { group, client: ClientId(1), number, events_seen: 0, operations };
    Arc::new(draft.prove(FrameProof::Authenticator([Tag([1; 16]); 4].into())))
}

/// What replica 0, the primary, sends, and what the turn that takes it adds to its debt.
fn hears(engine: &mut Engine<Pbft, Executor<Null>>, message: PeerMessage<Message>) -> u64 {
    hears_of(engine, 0, message)
}

fn hears_of(engine: &mut Engine<Pbft, Executor<Null>>, from: u16, message: PeerMessage<Message>) -> u64 {
    let (inbox, before) = (Inbox::new(), engine.counters.peer_useless_micros);
    inbox.push(&inbox.lane(Party::Replica(ReplicaId(from))), message.to_wire());
    engine.turn(&inbox).expect("goes on");
    engine.counters.peer_useless_micros - before
}

#[test]
fn frames_with_wrong_tags_that_nobody_wants_are_not_checked_and_are_charged() {
    let (mut engine, group, _) = backup("doubtful-frames");
    let frames: Vec<_> = (1..=8).map(|number| made_up(group, number)).collect();
    let show = || PeerMessage::Frames(frames.clone());
    assert!(hears(&mut engine, show()) > 0, "no proposal names them");
    assert_eq!(engine.counters.frames_doubtful, 0, "nor is anything to be found out");
    let named: Vec<Digest> = frames.iter().map(|frame| frame.digest()).collect();
    let batch = Batch { time: Time(1), frames: named };
    let proposal = PrePrepare { view: View(0), seq: Seq(1), batch };
    hears(&mut engine, PeerMessage::Protocol(Message::PrePrepare(proposal)));
    assert_eq!(hears(&mut engine, show()), 0, "they may be their client's");
    assert_eq!(engine.counters.frames_doubtful, 8);
    assert!(hears(&mut engine, show()) > 0, "they are in doubt already");
    assert_eq!(engine.counters.frames_doubtful, 8);
}

#[test]
fn what_comes_again_of_a_tentative_batch_is_checked() {
    let (mut engine, group, client) = backup("tentative-again");
    let signed = |events_seen| {
        let operations = vec![Bytes::from_static(b"x")];
        let draft = FrameDraft { group, client: ClientId(1), number: 1, events_seen, operations };
        let signature = client.sign(&draft.signing_digest());
        Arc::new(draft.sign(signature))
    };
    let batch = Batch { time: Time(1), frames: vec![signed(0).digest()] };
    let vote = Vote { view: View(0), seq: Seq(1), digest: batch.digest() };
    let proposal = PrePrepare { view: View(0), seq: Seq(1), batch };
    hears(&mut engine, PeerMessage::Protocol(Message::PrePrepare(proposal)));
    hears(&mut engine, PeerMessage::Frames(vec![signed(0)]));
    hears_of(&mut engine, 2, PeerMessage::Protocol(Message::Prepare(vote)));
    let again = |engine: &mut Engine<Pbft, Executor<Null>>, events_seen| {
        let inbox = Inbox::new();
        let request = ToReplica::Request { frame: signed(events_seen), wish: Wish::Full };
        inbox.push(&inbox.lane(Party::Client(ClientId(1))), request.to_wire());
        let before = engine.counters.frames_verified;
        engine.turn(&inbox).expect("goes on");
        engine.counters.frames_verified - before
    };
    let reached = |engine: &Engine<Pbft, Executor<Null>>| {
        let execution = engine.host.machine().execution();
        (execution.committed(), execution.executed())
    };
    assert_eq!(reached(&engine), (Seq(0), Seq(1)));
    assert_eq!(again(&mut engine, 1), 1, "it may have to wait for it, and so must know whose it is");
    for from in [0, 2] {
        hears_of(&mut engine, from, PeerMessage::Protocol(Message::Commit(vote)));
    }
    assert_eq!(reached(&engine), (Seq(1), Seq(1)));
    assert_eq!(again(&mut engine, 2), 0, "it is done");
}
