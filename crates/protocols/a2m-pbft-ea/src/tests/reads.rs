//! Reads: of which state a replica proves the end of its history, and what a client believes.

use super::harness::{Net, covers, frame, group, r, verifier};
use super::stable::order_many;
use bytes::Bytes;
use std::sync::Arc;
use troth_auth::{HISTORY_LOG, History, ModelSigner, encode_attestation};
use troth_client::{ClientCore, Config, Output, Proven};
use troth_core::Agreement;
use troth_trusted::a2m::{Content, Request};
use troth_trusted::{CounterValue, Epoch};
use troth_types::{
    AttestedRead, ClientId, Event, HistoryEnd, ReadReply, Reply, ReplyBody, Seq, Time, ToClient, ToReplica,
};

/// The rule stands in the client's own crate, whose marks are not counted.
macro_rules! about {
    ($label:literal) => {};
}

#[test]
fn an_end_is_of_the_state_that_was_there_when_it_was_asked_for() {
    covers!("A2MPBFTEA-E2");
    covers!("A2MPBFTEA-E3");
    let mut net = Net::new(1);
    assert!(!net.ask_end(2, 0, [1; 32]), "an empty log proves nothing");
    order_many(&mut net, 2);
    net.node_mut(2).slow_history = true;
    net.order(&frame(3, 1));
    assert!(net.node(2).replica.may_answer_reads());
    assert!(!net.ask_end(2, 2, [1; 32]), "the append of 3 is on its way already");
    assert!(net.ask_end(2, 3, [2; 32]), "its append comes before");
    net.order(&frame(4, 1));
    assert_eq!(net.node(2).executed_up_to(), Seq(4));
    net.hurry(2);
    let claims: Vec<_> = net.node(2).ends.iter().map(|end| end.claim).collect();
    assert_eq!(claims.len(), 1);
    assert_eq!((claims[0].request, claims[0].nonce), (Request::End, [2; 32]));
    assert_eq!(claims[0].slot, CounterValue::new(0, 3), "4 was asked for later");
    assert!(matches!(claims[0].content, Content::Assigned { .. }));
    assert!(net.ask_end(2, 4, [3; 32]));
}

#[test]
fn a_read_needs_f_plus_1_equal_answers_and_ends() {
    about!("A2MPBFTEA-E1");
    about!("A2MPBFTEA-E4");
    let group = group(2);
    let history =
        History::new(group.id(), HISTORY_LOG, Arc::new(verifier(&group)), group.all().map(|_| Epoch(1)));
    let config =
        Config { history: Some(Proven { history, session: [1; 32] }), ..Config::new(group, ClientId(1)) };
    let mut client = ClientCore::new(config, Arc::new(ModelSigner::new(1)));
    client.read(Time(1), Bytes::from_static(b"get")).expect("taken");
    let mut reads = Vec::new();
    while let Some(output) = client.poll() {
        if let Output::Send { message: ToReplica::Read(read), .. } = output {
            reads.push(read);
        }
    }
    let (read, asked) = (reads[0].clone(), reads.len());
    assert_eq!(asked, 5);
    let nonce = read.nonce.expect("a nonce");
    let mut net = Net::new(2);
    order_many(&mut net, 2);
    // Replica 3 has not heard of what the others executed last.
    assert!(net.ask_end(3, 2, nonce.0));
    net.node_mut(3).down = true;
    net.order(&frame(3, 1));
    let results = vec![Bytes::from_static(b"right")];
    let mut say = |net: &mut Net, from: u16, executed: u64| {
        if from != 3 {
            assert!(net.ask_end(from, executed, nonce.0));
        }
        let mut attestation = Vec::new();
        encode_attestation(&net.node_mut(from).ends.pop().expect("attested"), &mut attestation);
        let end = HistoryEnd { attestation: attestation.into(), index: 0, count: 1, path: Vec::new() };
        let body = match group.designated(ClientId(1), read.number) == r(from) {
            true => ReplyBody::Full(results.clone()),
            false => ReplyBody::Digest(Reply::results_digest(&results)),
        };
        let reply = ReadReply { client: ClientId(1), number: read.number, events_up_to: 0, body };
        client.on_message(
            Time(2),
            r(from),
            ToClient::AttestedRead(AttestedRead { reply, end, renewed: Vec::new() }),
        );
        let mut done = None;
        while let Some(output) = client.poll() {
            if let Output::Done { result, .. } = output {
                done = result.ok();
            }
        }
        done
    };
    assert_eq!(say(&mut net, 3, 2), None);
    assert_eq!(say(&mut net, 2, 3), None);
    assert_eq!(say(&mut net, 0, 3), None, "two of the same state, and one of an older one");
    assert!(say(&mut net, 1, 3).is_some());
}

/// What a client makes of a read that f+1 replicas answer from the state after batch 2, having been told of its first event by
/// so many, brought about by this batch: whether it believes the answer, and whether it has it ordered.
fn told_and_read(seq: u64, tellers: u16) -> (bool, bool) {
    let group = group(1);
    let history =
        History::new(group.id(), HISTORY_LOG, Arc::new(verifier(&group)), group.all().map(|_| Epoch(1)));
    let config =
        Config { history: Some(Proven { history, session: [1; 32] }), ..Config::new(group, ClientId(1)) };
    let mut client = ClientCore::new(config, Arc::new(ModelSigner::new(1)));
    let event =
        Event { client: ClientId(1), index: 1, seq: Seq(seq), payload: Bytes::from_static(b"changed") };
    for from in 0..tellers {
        client.on_message(Time(1), r(from), ToClient::Event(event.clone()));
    }
    client.read(Time(1), Bytes::from_static(b"get")).expect("taken");
    let mut sent = None;
    while let Some(output) = client.poll() {
        if let Output::Send { message: ToReplica::Read(read), .. } = output {
            sent = Some(read);
        }
    }
    let read = sent.expect("it is read fast");
    let mut net = Net::new(1);
    order_many(&mut net, 2);
    let designated = group.designated(ClientId(1), read.number);
    let results = vec![Bytes::from_static(b"right")];
    for from in [designated.0, (designated.0 + 1) % 3] {
        assert!(net.ask_end(from, 2, read.nonce.expect("a nonce").0));
        let mut attestation = Vec::new();
        encode_attestation(&net.node_mut(from).ends.pop().expect("attested"), &mut attestation);
        let end = HistoryEnd { attestation: attestation.into(), index: 0, count: 1, path: Vec::new() };
        let body = ReplyBody::Full(results.clone());
        let events_up_to = u64::from(tellers > 1);
        let reply = ReadReply { client: ClientId(1), number: read.number, events_up_to, body };
        client.on_message(
            Time(2),
            r(from),
            ToClient::AttestedRead(AttestedRead { reply, end, renewed: Vec::new() }),
        );
    }
    let (mut believed, mut ordered) = (false, false);
    while let Some(output) = client.poll() {
        believed |= matches!(output, Output::Done { result: Ok(_), .. });
        ordered |= matches!(output, Output::Send { message: ToReplica::Request { .. }, .. });
    }
    (believed, ordered)
}

#[test]
fn a_read_shows_what_the_client_was_told_before_it_began() {
    about!("A2MPBFTEA-E5");
    assert_eq!(told_and_read(2, 2), (true, false));
    assert_eq!(told_and_read(3, 2), (false, true), "both histories end before the event");
    assert_eq!(told_and_read(3, 1), (true, false), "nobody believes one replica");
}
