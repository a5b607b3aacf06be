//! Reads: of which state a replica proves the end of its history, and what a client believes.

use super::harness::{Net, covers, group, r, verifier};
use bytes::Bytes;
use std::sync::Arc;
use troth_auth::{HISTORY_LOG, History, ModelSigner, encode_attestation};
use troth_client::{ClientCore, Config, Output, Proven, Timing};
use troth_trusted::a2m::{Answer, Attestation, Content, Operation, Request, slot_nonce};
use troth_trusted::run::Tree;
use troth_trusted::{CounterValue, Epoch};
use troth_trusted_host::TrustedLogs as _;
use troth_types::{
    AttestedRead, ClientId, ComponentKey, Digest, Event, HistoryEnd, Read, ReadReply, Refusal, RefusalReason,
    Renewed, Reply, ReplyBody, Seq, Time, ToClient, ToReplica,
};

/// The rule stands in the client's own crate, whose marks are not counted.
macro_rules! about {
    ($label:literal) => {};
}

#[test]
fn an_end_is_of_the_state_that_was_there_when_it_was_asked_for() {
    covers!("A2MPBFTE-E2");
    covers!("A2MPBFTE-E3");
    let mut net = Net::new();
    net.order_many(1..=3);
    net.node_mut(1).stalled = true;
    net.order_many(4..=4);
    assert!(!net.ask_end(1, 3, [1; 32]), "the append of 4 is on its way already");
    assert!(net.ask_end(1, 4, [2; 32]), "its append comes before");
    net.order_many(5..=5);
    assert_eq!(net.node(1).executed_up_to(), Seq(5));
    net.unstall(1);
    let ends: Vec<Attestation> = net.node(1).ends.clone();
    let claim = ends.iter().map(|end| end.claim).next().expect("it is attested");
    assert_eq!((ends.len(), claim.request, claim.nonce), (1, Request::End, [2; 32]));
    let digest = net.node(0).entry(4).expect("attested there").digest;
    assert_eq!(claim.slot, CounterValue::new(0, 4), "5 was asked for later");
    assert!(matches!(claim.content, Content::Assigned { digest: d, .. } if d == digest.0));
}

#[test]
fn what_was_never_written_to_proves_nothing() {
    covers!("A2MPBFTE-E2");
    let mut net = Net::new();
    assert!(!net.ask_end(0, 0, [1; 32]));
}

#[test]
fn a_replica_that_starts_again_proves_all_that_it_ever_proved() {
    covers!("A2MPBFTE-E2");
    let mut net = Net::new();
    net.order_many(1..=3);
    let records = net.node(2).records.clone();
    net.restart(2, records);
    assert!(net.ask_end(2, 3, [1; 32]), "what it remembers is all that there is");
    assert!(!net.ask_end(2, 2, [1; 32]));
}

#[test]
fn a_state_that_came_from_others_is_not_read_before_the_log_holds_what_led_to_it() {
    covers!("A2MPBFTE-E2");
    let mut net = Net::new();
    net.order_many(1..=1);
    net.node_mut(3).down = true;
    net.order_many(2..=4);
    net.node_mut(3).down = false;
    net.install(3, 0);
    assert_eq!(net.node(3).executed_up_to(), Seq(4));
    assert!(!net.ask_end(3, 4, [1; 32]), "its log ends at 1");
}

#[test]
fn a_log_that_somebody_else_went_on_with_ends_the_replica() {
    covers!("A2MPBFTE-E2");
    let mut net = Net::new();
    net.order_many(1..=2);
    let slot = CounterValue::new(0, 3);
    let append = Operation::Append { log: HISTORY_LOG, slot, value: [9; 32], nonce: None };
    net.node_mut(1).logs.call(&[append]).expect("there is room");
    assert!(net.ask_end(1, 2, [1; 32]));
    assert!(net.node(1).halted.is_some() && net.node(1).ends.is_empty());
}

/// A client with a read on its way, and a group that has executed two batches.
struct Scene {
    client: ClientCore,
    net: Net,
    read: Read,
}

fn history() -> History {
    History::new(group().id(), HISTORY_LOG, Arc::new(verifier()), [Epoch(1); 4])
}

fn client(session: u8, signer: u64) -> ClientCore {
    let proven = Proven { history: history(), session: [session; 32] };
    let config = Config { history: Some(proven), ..Config::new(group(), ClientId(1)) };
    ClientCore::new(config, Arc::new(ModelSigner::new(signer)))
}

fn read(client: &mut ClientCore) -> Read {
    client.read(Time(1), Bytes::from_static(b"get")).expect("taken");
    let mut sent = None;
    while let Some(output) = client.poll() {
        if let Output::Send { message: ToReplica::Read(read), .. } = output {
            sent = Some(read);
        }
    }
    sent.expect("it is read fast")
}

#[test]
fn a_recent_read_proves_the_present_like_any_other() {
    about!("A2MPBFTE-E1");
    let mut client = client(1, 1);
    client.read_recent(Time(1), Bytes::from_static(b"get")).expect("taken");
    let Some(Output::Send { message: ToReplica::Read(read), .. }) = client.poll() else {
        panic!("it is read fast")
    };
    assert!(read.nonce.is_some() && read.least.is_none(), "f+1 answers without proof are no proof");
}

impl Scene {
    fn new() -> Self {
        let mut client = client(1, 1);
        let read = read(&mut client);
        let mut net = Net::new();
        net.order_many(1..=2);
        Self { client, net, read }
    }

    fn nonce(&self) -> [u8; 32] {
        self.read.nonce.expect("a nonce").0
    }

    /// What the component of a replica says under the read's nonce, among those of others, and where that stands there.
    fn end(&mut self, replica: u16) -> HistoryEnd {
        let nonces = [[1; 32], self.nonce(), [3; 32]];
        let mut tree = Tree::default();
        let root = tree.build(&nonces).expect("three nonces");
        let executed = self.net.node(replica).executed_up_to().0;
        assert!(self.net.ask_end(replica, executed, root));
        let attestation = self.net.node_mut(replica).ends.pop().expect("attested");
        let proof = tree.proof(1).expect("the second");
        let path = proof.path.as_slice().iter().map(|sibling| Digest(*sibling)).collect();
        HistoryEnd { attestation: encoded(&attestation), index: proof.index, count: proof.count, path }
    }

    /// An answer, in full from the one that owes it.
    fn reply(&self, from: u16, result: &'static [u8]) -> ReadReply {
        let results = vec![Bytes::from_static(result)];
        let full = group().designated(ClientId(1), self.read.number) == r(from);
        let body = match full {
            true => ReplyBody::Full(results),
            false => ReplyBody::Digest(Reply::results_digest(&results)),
        };
        ReadReply { client: ClientId(1), number: self.read.number, events_up_to: 0, body }
    }

    fn say(&mut self, from: u16, result: &'static [u8], end: HistoryEnd) {
        let reply = self.reply(from, result);
        self.client.on_message(
            Time(2),
            r(from),
            ToClient::AttestedRead(AttestedRead { reply, end, renewed: Vec::new() }),
        );
    }

    /// All replicas give this answer, after so many events.
    fn all_say(&mut self, result: &'static [u8], events_up_to: u64) {
        for from in 0..4 {
            let end = self.end(from);
            let reply = ReadReply { events_up_to, ..self.reply(from, result) };
            self.client.on_message(
                Time(2),
                r(from),
                ToClient::AttestedRead(AttestedRead { reply, end, renewed: Vec::new() }),
            );
        }
    }

    /// Three replicas tell of the client's first event, which this batch is said to have brought about.
    fn event(&mut self, seq: u64) {
        let payload = Bytes::from_static(b"changed");
        let event = Event { client: ClientId(1), index: 1, seq: Seq(seq), payload };
        for from in 0..3 {
            self.client.on_message(Time(2), r(from), ToClient::Event(event.clone()));
        }
    }

    /// What came of the read, and whether it is ordered now.
    fn outcome(&mut self) -> (Option<Vec<Bytes>>, bool) {
        let (mut results, mut ordered) = (None, false);
        while let Some(output) = self.client.poll() {
            match output {
                Output::Done { result, .. } => results = result.ok(),
                Output::Send { message: ToReplica::Request { .. }, .. } => ordered = true,
                _ => {}
            }
        }
        (results, ordered)
    }
}

fn encoded(attestation: &Attestation) -> Bytes {
    let mut bytes = Vec::new();
    encode_attestation(attestation, &mut bytes);
    bytes.into()
}

/// What the component of replica 0 attests.
fn asked(net: &mut Net, operation: Operation) -> Bytes {
    match net.node_mut(0).logs.call(&[operation]).expect("answered").pop() {
        Some(Answer::Attested(attestation)) => encoded(&attestation),
        other => panic!("it is attested, not {other:?}"),
    }
}

#[test]
fn a_quorum_of_equal_answers_and_ends_is_believed() {
    about!("A2MPBFTE-E1");
    let mut scene = Scene::new();
    for from in [1, 0, 0, 1] {
        let end = scene.end(from);
        scene.say(from, b"right", end);
    }
    assert_eq!(scene.outcome(), (None, false), "two are 2f");
    let end = scene.end(2);
    scene.say(2, b"right", end);
    assert_eq!(scene.outcome(), (Some(vec![Bytes::from_static(b"right")]), false));
    assert_eq!((scene.client.fast_reads(), scene.client.unconfirmed_bytes()), (1, 0));
}

#[test]
fn equal_results_of_different_states_do_not_add_up() {
    about!("A2MPBFTE-E1");
    let mut scene = Scene::new();
    let old = scene.end(3);
    scene.net.order_many(3..=3);
    scene.say(3, b"right", old);
    // The result itself is there: one of these two owes it.
    assert_eq!(group().designated(ClientId(1), scene.read.number), r(2));
    for from in [1, 2] {
        let end = scene.end(from);
        scene.say(from, b"right", end);
    }
    assert_eq!(scene.outcome(), (None, false), "replica 3 may have missed a write that somebody knows of");
    let end = scene.end(0);
    scene.say(0, b"right", end);
    assert!(scene.outcome().0.is_some());
}

#[test]
fn one_that_lies_beside_two_has_it_ordered() {
    about!("A2MPBFTE-E4");
    let mut scene = Scene::new();
    for (from, result) in [(0, &b"right"[..]), (1, b"wrong"), (2, b"right"), (3, b"else")] {
        let end = scene.end(from);
        scene.say(from, if result == b"right" { b"right" } else { b"wrong" }, end);
    }
    assert_eq!(scene.outcome(), (None, true));
}

#[test]
fn answers_that_do_not_come_have_it_ordered() {
    about!("A2MPBFTE-E4");
    let mut scene = Scene::new();
    scene.client.on_timer(Time(1 + Timing::DEFAULT.read_wait));
    assert_eq!(scene.outcome(), (None, true));
}

/// Lets a replica say something that proves nothing beside two good answers, and then the truth: it has spoken.
fn proves_nothing(say: impl FnOnce(&mut Scene)) {
    let mut scene = Scene::new();
    say(&mut scene);
    for from in [1, 2] {
        let end = scene.end(from);
        scene.say(from, b"right", end);
        assert_eq!(scene.outcome(), (None, false), "only two have proven it");
    }
    let end = scene.end(3);
    scene.say(3, b"right", end);
    let (results, ordered) = scene.outcome();
    assert!(results.is_some() && !ordered, "three others are enough");
}

#[test]
fn an_end_proves_the_present_of_one_replica_to_one_read() {
    about!("A2MPBFTE-E1");
    proves_nothing(|scene| {
        // Under another nonce: what the component said before the read began.
        assert!(scene.net.ask_end(0, 2, [8; 32]));
        let attestation = encoded(&scene.net.node_mut(0).ends.pop().expect("attested"));
        let end = HistoryEnd { attestation, index: 0, count: 1, path: Vec::new() };
        scene.say(0, b"right", end);
    });
    proves_nothing(|scene| {
        // A lookup of the last slot, under the read's own nonce, and one that everybody has.
        let (slot, nonce) = (CounterValue::new(0, 2), scene.nonce());
        let looked = asked(&mut scene.net, Operation::Lookup { log: HISTORY_LOG, slot, nonce });
        let end = HistoryEnd { attestation: looked, index: 0, count: 1, path: Vec::new() };
        scene.say(0, b"right", end);
    });
    proves_nothing(|scene| {
        let slot = CounterValue::new(0, 2);
        let looked =
            asked(&mut scene.net, Operation::Lookup { log: HISTORY_LOG, slot, nonce: slot_nonce(slot) });
        let end = HistoryEnd { attestation: looked, index: 0, count: 1, path: Vec::new() };
        scene.say(0, b"right", end);
    });
    proves_nothing(|scene| {
        // Another's.
        let end = scene.end(1);
        scene.say(0, b"right", end);
    });
    proves_nothing(|scene| {
        let end = HistoryEnd { index: 0, ..scene.end(0) };
        scene.say(0, b"right", end);
    });
    proves_nothing(|scene| {
        let end = scene.end(0);
        let mut bytes = end.attestation.to_vec();
        bytes.push(0);
        scene.say(0, b"right", HistoryEnd { attestation: bytes.into(), ..end });
    });
    proves_nothing(|scene| {
        let reply = scene.reply(0, b"right");
        scene.client.on_message(Time(2), r(0), ToClient::ReadReply(reply));
    });
    proves_nothing(|scene| {
        let (number, reason) = (scene.read.number, RefusalReason::NotReady);
        let refusal = Refusal { client: ClientId(1), number, read: true, reason };
        scene.client.on_message(Time(2), r(0), ToClient::Refusal(refusal));
    });
}

#[test]
fn a_read_shows_what_the_client_was_told_before_it_began() {
    about!("A2MPBFTE-E5");
    let right = || Some(vec![Bytes::from_static(b"right")]);
    let mut scene = Scene::new();
    scene.event(3);
    scene.all_say(b"right", 0);
    assert_eq!(scene.outcome(), (right(), false), "it began before");
    scene.read = read(&mut scene.client);
    scene.all_say(b"right", 1);
    assert_eq!(scene.outcome(), (None, true), "its history ends before the event, so it is ordered");
    let mut scene = Scene::new();
    scene.event(2);
    scene.outcome();
    scene.read = read(&mut scene.client);
    scene.all_say(b"right", 0);
    assert_eq!(scene.outcome(), (None, true), "a state in which the event never was");
    let mut scene = Scene::new();
    scene.event(2);
    scene.outcome();
    scene.read = read(&mut scene.client);
    scene.all_say(b"right", 1);
    assert_eq!(scene.outcome(), (right(), false));
}

#[test]
fn an_empty_log_proves_nothing() {
    about!("A2MPBFTE-E1");
    let mut net = Net::new();
    let nonce = Digest([5; 32]);
    let end = asked(&mut net, Operation::End { log: HISTORY_LOG, nonce: nonce.0 });
    let end = HistoryEnd { attestation: end, index: 0, count: 1, path: Vec::new() };
    assert_eq!(history().end(r(0), &nonce, &end, &[]), None, "it may be a component that begins anew");
}

#[test]
fn nonces_are_used_once_and_foreseen_by_nobody() {
    about!("A2MPBFTE-E1");
    about!("A2MPBFTE-E6");
    about!("A2MPBFTEA-E6");
    let nonces = |session, signer, count: usize| {
        let mut client = client(session, signer);
        (0..count).map(|_| read(&mut client).nonce.expect("a nonce")).collect::<Vec<_>>()
    };
    let own = nonces(1, 1, 3);
    assert!(own[0] != own[1] && own[1] != own[2] && own[0] != own[2]);
    // Who does not sign as the client does not make its nonces; nor are those of another session the same, though it begins
    // with the same number.
    assert!(nonces(1, 2, 3).iter().all(|nonce| !own.contains(nonce)));
    assert!(nonces(2, 1, 3).iter().all(|nonce| !own.contains(nonce)));
}

#[test]
fn an_end_counts_by_the_component_that_its_sender_says_counts_there() {
    about!("A2MPBFTE-N6");
    let mut scene = Scene::new();
    let (nonce, end) = (scene.read.nonce.expect("a nonce"), scene.end(0));
    let renewed = |replica| Renewed { replica: r(replica), epoch: 2, component: ComponentKey::Group };
    let ended = |renewed: &[Renewed]| history().end(r(0), &nonce, &end, renewed);
    assert!(ended(&[]).is_some());
    assert_eq!(ended(&[renewed(0)]), None, "another component of its replica counts");
    assert!(ended(&[renewed(3)]).is_some());
    assert_ne!(ended(&[]), ended(&[renewed(3)]), "it says something else");
}
