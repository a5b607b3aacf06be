//! Whom the slots of a history are shown: each client of a batch, or everybody.

use super::history::{component, obey};
use crate::{HistoryLog, KeptHistory};
use std::collections::BTreeMap;
use std::sync::Arc;
use troth_auth::decode_attestation;
use troth_core::{Proven, ReplyProof};
use troth_trusted::a2m::{Operation, slot_nonce};
use troth_trusted::{Epoch, Identity, MacKey};
use troth_trusted_host::repetition::can_be_answered_later;
use troth_trusted_host::{AttestationVerifier, GroupVerifier};
use troth_types::{
    Batch, ClientEntry, ClientId, Configuration, Digest, Group, GroupId, Reader, ReplicaId, Seq, Time,
};

const GROUP: GroupId = GroupId(*b"tests-of-blocks-");

fn link(client: u64) -> [u8; 32] {
    let mut link = [1; 32];
    link[..8].copy_from_slice(&client.to_be_bytes());
    link
}

/// A group with so many clients.
fn clients(count: u64) -> Arc<Configuration> {
    let entry = |client| ClientEntry { key: [0; 32], link: link(client), removed: false };
    let clients = (0..count).map(|client| (ClientId(client), entry(client)));
    Arc::new(Configuration::new(Vec::new(), clients.collect::<BTreeMap<_, _>>()))
}

fn batch(at: u64, frames: usize) -> Batch {
    Batch { time: Time(at), frames: vec![Digest([at as u8; 32]); frames] }
}

/// The account of an empty log in a group with so many clients, its component beside it.
fn scene(count: u64) -> (HistoryLog, impl FnMut(&mut HistoryLog) -> Vec<Seq>) {
    let mut component = component();
    let mut log = HistoryLog::new(GROUP, 1 << 20);
    log.configured(&clients(count));
    let (ticket, operations) = log.start(Seq(0), Seq(0));
    let mut answers = Vec::new();
    component.call(&operations, |answer| answers.push(answer)).expect("it only asks");
    log.answered(ticket, answers).expect("an empty log");
    (log, move |log: &mut HistoryLog| obey(log, &mut component))
}

fn execute(log: &mut HistoryLog, at: u64, of: &[u64]) {
    let done: Vec<_> = of.iter().map(|client| (ClientId(*client), at)).collect();
    log.executed(Seq(at), &batch(at, of.len()), done).expect("a small batch");
}

fn proof(log: &HistoryLog, at: u64) -> Arc<ReplyProof> {
    let Proven::Here(proof) = log.proven(Seq(at)) else { panic!("nothing is proven at {at}") };
    proof
}

/// Whether the attestation of a client's place in this batch convinces everybody, and whether it does this client.
fn convinces(log: &HistoryLog, at: u64, client: u64) -> (bool, bool) {
    let place = proof(log, at).place_of(ClientId(client), at).expect("its place");
    let made = decode_attestation(&mut Reader::new(&place.attestation)).expect("an attestation");
    let key = MacKey::new(&[3; 32]).verifier();
    let identity = Identity { group: GROUP.0, replica: 1, epoch: Epoch(1) };
    let verifier = GroupVerifier::new([(identity, key.clone().into())]).expect("one");
    let (slot, own) = (super::at(at), key.shared_with(&link(client)));
    let nonce = slot_nonce(slot);
    let all = verifier.lookup(1, &made, troth_auth::HISTORY_LOG, slot, &nonce).is_some();
    (all, verifier.lookup_for(&own, 1, &made, troth_auth::HISTORY_LOG, slot, &nonce).is_some())
}

#[test]
fn each_client_of_a_batch_is_shown_its_slot_by_a_mac_of_its_own() {
    let (mut log, mut obey) = scene(5);
    execute(&mut log, 1, &[1, 2, 1]);
    execute(&mut log, 2, &[3]);
    let (_, operations) = log.clone().calls().expect("it appends");
    assert!(can_be_answered_later(&operations), "{operations:?}");
    let signed = |operation: &Operation| matches!(operation, Operation::Append { nonce: Some(_), .. });
    assert!(!operations.iter().any(signed) && operations.len() == 5, "{operations:?}");
    obey(&mut log);
    for (at, client) in [(1, 1), (1, 2), (2, 3)] {
        assert_eq!(convinces(&log, at, client), (false, true), "client {client} of batch {at}");
    }
    assert!(proof(&log, 1).place_of(ClientId(3), 1).is_none(), "it has nothing in that batch");
    assert!(log.held(Seq(1)).expect("attested").attestation.is_none());
}

#[test]
fn where_a_signature_costs_less_or_a_key_is_not_known_everybody_is_shown_it() {
    let (mut log, mut obey) = scene(40);
    let many: Vec<u64> = (0..33).collect();
    execute(&mut log, 1, &many);
    execute(&mut log, 2, &many[..32]);
    execute(&mut log, 3, &[1, 99]);
    execute(&mut log, 4, &[]);
    // Replies go as they are proven: in the order of the batches, by whatever each is.
    assert_eq!(obey(&mut log), [Seq(1), Seq(2), Seq(3), Seq(4)]);
    assert_eq!(convinces(&log, 1, 7), (true, false), "33 clients");
    assert_eq!(convinces(&log, 2, 7), (false, true), "32 clients");
    assert_eq!(convinces(&log, 3, 1), (true, false), "one of them is unknown");
    assert!(log.held(Seq(4)).expect("attested").attestation.is_some(), "nobody asked");
    let (mut large, mut obey) = scene(257);
    execute(&mut large, 1, &[1]);
    obey(&mut large);
    assert_eq!(convinces(&large, 1, 1), (true, false), "more clients than a component keeps keys of");
}

/// CHECKPOINTs are shown to replicas, by each to each: they carry what convinces everybody.
#[test]
fn what_a_checkpoint_shows_is_signed_where_only_clients_were_shown_it() {
    let mut component = component();
    let group = Group::general(GROUP, 4).expect("four");
    let mut kept = KeptHistory::new(&group, ReplicaId(1), 256, 1_000);
    kept.log.configured(&clients(5));
    let (ticket, operations) = kept.start(Seq(0), []);
    let mut answers = Vec::new();
    component.call(&operations, |answer| answers.push(answer)).expect("it only asks");
    kept.log.answered(ticket, answers).expect("an empty log");
    execute(&mut kept.log, 1, &[1]);
    kept.due(Seq(1), Digest([7; 32]));
    assert!(kept.ready(Seq(0)).is_empty(), "nothing is attested");
    obey(&mut kept.log, &mut component);
    assert!(kept.ready(Seq(0)).is_empty(), "nothing that convinces a replica");
    let (_, asked) = kept.log.clone().calls().expect("it asks for that");
    let slot = super::at(1);
    assert_eq!(asked, [Operation::Lookup { log: troth_auth::HISTORY_LOG, slot, nonce: slot_nonce(slot) }]);
    let (ticket, _) = kept.log.calls().expect("as before");
    assert!(kept.ready(Seq(0)).is_empty());
    assert!(kept.log.calls().is_none(), "it is asked for once");
    let mut answers = Vec::new();
    component.call(&asked, |answer| answers.push(answer)).expect("it only asks");
    kept.log.answered(ticket, answers).expect("its own history");
    let ready = kept.ready(Seq(0));
    assert_eq!(ready.len(), 1);
    assert_eq!(convinces(&kept.log, 1, 1), (false, true), "its client is shown what it was shown");
    assert!(kept.ready(Seq(0)).is_empty(), "once");
    // One that is signed waits for one before it that is not yet, but not for one that is not wanted any more.
    execute(&mut kept.log, 2, &[1]);
    execute(&mut kept.log, 3, &[]);
    obey(&mut kept.log, &mut component);
    kept.due(Seq(2), Digest([7; 32]));
    kept.due(Seq(3), Digest([7; 32]));
    assert!(kept.clone().ready(Seq(2)).is_empty());
    assert_eq!(kept.clone().ready(Seq(3)).len(), 1);
    assert!(kept.ready(Seq(0)).is_empty());
    obey(&mut kept.log, &mut component);
    assert_eq!(kept.ready(Seq(0)).iter().map(|(at, ..)| at.0).collect::<Vec<_>>(), [2, 3]);
}
