//! The client's machine among replicas that say anything. It keeps to its bounds, ends each submission once, and
//! accepts no result that fewer than f+1 replicas gave.

use crate::bytes::Steps;
use crate::{Bound, Target, samples};
use bytes::Bytes;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use troth_auth::{HISTORY_LOG, History, ModelSigner, encode_attestation};
use troth_client::{Acceptance, Bounds, ClientCore, Config, Output, Proven, Ticket};
use troth_trusted::a2m::{Attestation, Claim, Content, Request};
use troth_trusted::{CounterValue, Epoch, Proof};
use troth_trusted_host::GroupVerifier;
use troth_types::{
    AttestedRead, AttestedReply, ClientId, ComponentKey, Digest, Event, Group, HistoryEnd, Limits, ReadReply,
    Refusal, RefusalReason, Renewed, ReplicaId, Reply, ReplyBody, Seq, Time, ToClient, View, Wire,
};

pub(super) const TARGET: Target =
    Target { name: "client", run, seeds, bound: Bound { fixed: 512 << 10, per_byte: 1024 }, longest: 4096 };

const ME: ClientId = ClientId(1);
const BOUNDS: Bounds = Bounds {
    queue_operations: 16,
    queue_bytes: 1 << 10,
    reads: 4,
    reply_bytes: 1 << 12,
    event_bytes: 1 << 10,
};

fn run(input: &[u8]) {
    let mut steps = Steps::new(input);
    // Of PBFT, where tentative replies count, or of three replicas with trusted components; some of these must prove their
    // histories, and none of them can.
    let kind = steps.byte();
    let (pbft, proves) = (kind.is_multiple_of(2), kind % 4 == 3);
    let group = if pbft { Group::general(samples::GROUP, 4) } else { Group::hybrid(samples::GROUP, 3) };
    let group = group.expect("a size of its kind");
    let acceptance = if pbft { Acceptance::pbft(&group) } else { Acceptance::hybrid(&group) };
    let events_seen = (!steps.one_in(4)).then_some(0);
    let limits = Limits { client_window: 4, outbox_events: 4, ..Limits::DEFAULT };
    let nobody = Arc::new(GroupVerifier::new([]).expect("nobody is there twice"));
    let history = proves.then(|| Proven {
        history: History::new(samples::GROUP, HISTORY_LOG, nobody, [Epoch(1); 4]),
        session: [1; 32],
    });
    let config =
        Config { acceptance, limits, bounds: BOUNDS, events_seen, history, ..Config::new(group, ME) };
    let mut client = ClientCore::new(config, Arc::new(ModelSigner::new(ME.0)));
    let mut now = Time(1);
    let mut ended: BTreeSet<Ticket> = BTreeSet::new();
    // Who gave which result.
    let mut said: BTreeMap<Bytes, BTreeSet<ReplicaId>> = BTreeMap::new();
    for replica in group.all() {
        client.on_connection(now, replica, true);
    }
    for _ in 0..200 {
        if steps.is_over() {
            break;
        }
        let from = ReplicaId(u16::from(steps.byte() % 5));
        match steps.byte() % 8 {
            0 => drop(client.submit(now, vec![Bytes::copy_from_slice(steps.chunk())])),
            1 => drop(client.read(now, Bytes::copy_from_slice(steps.chunk()))),
            2 => {
                now = now.after(u64::from(steps.short()) * 50);
                client.on_timer(now);
            }
            3 if group.contains(from) => client.on_connection(now, from, !steps.one_in(4)),
            4 => {
                // Any bytes that are a message.
                if let Ok(message) = ToClient::from_wire(&Bytes::copy_from_slice(steps.chunk())) {
                    remember(&mut said, &group, from, &message);
                    client.on_message(now, from, message);
                }
            }
            _ => {
                let message = message(&mut steps);
                remember(&mut said, &group, from, &message);
                client.on_message(now, from, message);
            }
        }
        while let Some(output) = client.poll() {
            let Output::Done { ticket, result, .. } = output else { continue };
            assert!(ended.insert(ticket), "a submission ended twice");
            for result in result.into_iter().flatten() {
                let by = said.get(&result).map_or(0, BTreeSet::len);
                assert!(by >= group.weak(), "a result was accepted that {by} replicas gave");
                assert!(!proves, "a result was accepted that nobody proved");
            }
        }
        assert!(
            client.unconfirmed_bytes() <= group.n() * (BOUNDS.reply_bytes + BOUNDS.event_bytes),
            "over its bounds"
        );
        let _ = (client.view_hint(), client.next_wake(), client.confirmed(), client.unreachable());
        group.all().for_each(|replica| drop(format!("{:?}", client.standing(replica))));
    }
    client.close();
}

/// Whoever gave a digest gave every result with it: what is accepted is then checked by its bytes.
fn remember(
    said: &mut BTreeMap<Bytes, BTreeSet<ReplicaId>>,
    group: &Group,
    from: ReplicaId,
    message: &ToClient,
) {
    let body = match message {
        ToClient::Reply(reply)
        | ToClient::Tentative(reply)
        | ToClient::Attested(AttestedReply { reply, .. }) => &reply.body,
        ToClient::ReadReply(reply) | ToClient::AttestedRead(AttestedRead { reply, .. }) => &reply.body,
        ToClient::Event(_) | ToClient::Refusal(_) => return,
    };
    if !group.contains(from) {
        return;
    }
    match body {
        ReplyBody::Full(results) => {
            for result in results {
                said.entry(result.clone()).or_default().insert(from);
            }
        }
        ReplyBody::Digest(digest) => {
            for result in [&b"yes"[..], b"no", b""] {
                let result = Bytes::from_static(result);
                if Reply::results_digest(std::slice::from_ref(&result)) == *digest {
                    said.entry(result).or_default().insert(from);
                }
            }
        }
    }
}

/// A message that is likely to mean something.
fn message(steps: &mut Steps<'_>) -> ToClient {
    let number = u64::from(steps.byte() % 8);
    let seq = Seq(u64::from(steps.byte() % 8));
    let events_up_to = u64::from(steps.byte() % 3);
    let results: Vec<Bytes> = match steps.byte() % 4 {
        0 => vec![Bytes::from_static(b"yes")],
        1 => vec![Bytes::from_static(b"no")],
        2 => vec![Bytes::new()],
        _ => (0..steps.byte() % 4).map(|_| Bytes::copy_from_slice(steps.chunk())).collect(),
    };
    let body = match steps.byte() % 3 {
        0 => ReplyBody::Digest(Reply::results_digest(&results)),
        1 => ReplyBody::Full(results),
        _ if steps.byte() == 0 => ReplyBody::Digest(Digest([1; 32])),
        _ => ReplyBody::Full(results),
    };
    let client = if steps.byte() == 255 { ClientId(2) } else { ME };
    match steps.byte() % 5 {
        4 => {
            let reply = ReadReply { client, number, events_up_to, body };
            let attestation = Bytes::copy_from_slice(steps.chunk());
            let (index, count) = (u16::from(steps.byte()), u16::from(steps.byte()));
            let path = vec![Digest([steps.byte(); 32]); usize::from(steps.byte() % 9)];
            let end = HistoryEnd { attestation, index, count, path };
            let component = ComponentKey::Ed25519([steps.byte(); 32]);
            let renewed = match steps.one_in(2) {
                true => vec![Renewed { replica: ReplicaId(1), epoch: 2, component }],
                false => Vec::new(),
            };
            ToClient::AttestedRead(AttestedRead { reply, end, renewed })
        }
        0 => ToClient::Event(Event {
            client,
            index: number,
            seq,
            payload: Bytes::copy_from_slice(steps.chunk()),
        }),
        1 => ToClient::ReadReply(ReadReply { client, number, events_up_to, body }),
        2 => {
            const REASONS: [RefusalReason; 6] = [
                RefusalReason::TooLarge,
                RefusalReason::Unauthorised,
                RefusalReason::TooOld,
                RefusalReason::WindowFull,
                RefusalReason::NotReady,
                RefusalReason::Removed,
            ];
            let reason = REASONS[steps.below(REASONS.len())];
            ToClient::Refusal(Refusal { client, number, read: steps.one_in(2), reason })
        }
        _ => {
            let view = View(steps.byte().into());
            let reply = Reply { client, number, seq, view, events_up_to, body };
            if view.0.is_multiple_of(2) { ToClient::Reply(reply) } else { ToClient::Tentative(reply) }
        }
    }
}

fn seeds() -> Vec<Vec<u8>> {
    let submit = [0, 0, 2, b'o', b'p'];
    let reply = |from: u8| [from, 5, 1, 1, 0, 0, 1, 0, 3, 0];
    let read_reply = |from: u8| [from, 5, 1, 1, 0, 0, 1, 0, 1];
    let mut seeds = vec![
        [&[1][..], &submit, &reply(0), &reply(1)].concat(),
        [&[1][..], &[0, 1, 1, b'k'], &read_reply(0), &read_reply(1), &read_reply(2)].concat(),
        [&[0][..], &submit, &[0, 2, 255, 255], &reply(2), &[0, 3, 0]].concat(),
    ];
    let end = Attestation {
        epoch: Epoch(1),
        claim: Claim {
            request: Request::End,
            log: HISTORY_LOG,
            slot: CounterValue(2),
            nonce: [1; 32],
            content: Content::Assigned { value: [1; 32], digest: [2; 32] },
        },
        proof: Proof::Mac([3; 32]),
    };
    let mut attestation = Vec::new();
    encode_attestation(&end, &mut attestation);
    let length = u8::try_from(attestation.len()).expect("short");
    let proven = |from: u8| {
        let said = [from, 5, 1, 1, 0, 0, 1, 0, 4, length];
        [&said[..], &attestation, &[0, 1, 0, 0]].concat()
    };
    seeds.push([&[3][..], &[0, 1, 1, b'k'], &proven(0), &proven(1), &proven(2)].concat());
    for message in samples::to_client() {
        let bytes = message.to_wire();
        let length = u8::try_from(bytes.len()).expect("short");
        seeds.push([&[1][..], &submit, &[0, 4, length], &bytes[..]].concat());
    }
    seeds
}
