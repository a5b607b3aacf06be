//! The keys that a client shares with components: those that the components have, and no others.

use crate::component_pairs::{LinkComponentPairs, MOST_RENEWED};
use std::collections::BTreeMap;
use troth_auth::{ComponentPairs, HISTORY_LOG};
use troth_trusted::a2m::{A2m, Answer, LOGS, Operation, slot_nonce};
use troth_trusted::agreement::PeerKey;
use troth_trusted::{
    Certifier, CounterValue, Epoch, Identity, MacKey, MacVerifier, SigningKey, VolatileStore,
};
use troth_trusted_host::log_room;
use troth_types::{ComponentKey, Configuration, HostKeys, Member, ReplicaId};

const SECRET: [u8; 32] = [0x61; 32];

fn identity(replica: u16, epoch: u64) -> Identity {
    Identity { group: [7; 16], replica, epoch: Epoch(epoch) }
}

fn signing(seed: u8) -> SigningKey {
    SigningKey::new(&[seed; 32])
}

fn public(seed: u8) -> ComponentKey {
    ComponentKey::Ed25519(signing(seed).verifier().to_bytes())
}

/// Whether the client is convinced, by this key, of what the component with that seed says to it.
fn convinced(pair: &MacVerifier, of: Identity, seed: u8) -> bool {
    let room = log_room([1; LOGS]);
    let mut component = A2m::start(of, Certifier::Signature(signing(seed)), VolatileStore, room);
    let (log, slot) = (HISTORY_LOG, CounterValue(1));
    let (nonce, peer) = (slot_nonce(slot), PeerKey::new(&SECRET).public());
    let asked = Operation::LookupFor { log, slot, nonce, peer };
    let Ok(Answer::Attested(made)) = component.one(asked) else { panic!("it answers") };
    made.verify_lookup(pair, &of, log, slot, &nonce).is_some()
}

#[test]
fn a_client_shares_a_key_with_each_component_and_with_those_that_come_later() {
    let no_point = ComponentKey::Ed25519(core::array::from_fn(|at| if at == 0 { 2 } else { 0 }));
    let members = [public(1), public(2), ComponentKey::Group, no_point];
    let members = members.map(|component| Member::new(1, component, HostKeys::default()));
    let pairs = LinkComponentPairs::new(&Configuration::new(members.to_vec(), BTreeMap::new()), &SECRET);
    let first = |replica| pairs.with(ReplicaId(replica), None);
    assert!(convinced(&first(0).expect("a key"), identity(0, 1), 1));
    assert!(convinced(&first(1).expect("a key"), identity(1, 1), 2));
    assert!(!convinced(&first(0).expect("a key"), identity(1, 1), 2));
    for replica in 2..5 {
        assert!(first(replica).is_none(), "the group's, no point, and no replica");
    }
    // Whoever took a replica's place is known by the key that is told; whatever is told, so many are kept.
    for round in 0..MOST_RENEWED as u8 + 2 {
        let later = pairs.with(ReplicaId(0), Some(&public(10 + round))).expect("a key");
        assert!(pairs.renewed() <= MOST_RENEWED);
        if round.is_multiple_of(16) {
            assert!(convinced(&later, identity(0, 2), 10 + round));
            assert!(!convinced(&first(0).expect("a key"), identity(0, 2), 10 + round));
        }
    }
    assert!(pairs.with(ReplicaId(0), Some(&ComponentKey::Group)).is_none());
    assert!(!convinced(&MacKey::new(&[0; 32]).verifier(), identity(0, 1), 1));
}
