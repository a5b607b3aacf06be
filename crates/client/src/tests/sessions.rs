//! What a process that starts again gives the machine.

use crate::front::{ClientConfig, Session};
use crate::{ClientCore, Output};
use bytes::Bytes;
use std::sync::Arc;
use troth_auth::{Ed25519Signer, HISTORY_LOG, History};
use troth_trusted_host::GroupVerifier;
use troth_types::{ClientId, Digest, Group, GroupId, Time, ToReplica};

/// The nonce of the first read of a session.
fn first_nonce(config: &ClientConfig) -> Digest {
    let signer = Arc::new(Ed25519Signer::from_seed(config.signing_seed));
    let mut core = ClientCore::new(config.core().expect("there is randomness"), signer);
    core.read(Time(1), Bytes::from_static(b"get")).expect("taken");
    let nonces = std::iter::from_fn(|| core.poll()).find_map(|output| match output {
        Output::Send { message: ToReplica::Read(read), .. } => read.nonce,
        _ => None,
    });
    nonces.expect("it is read fast")
}

#[test]
fn no_session_makes_the_nonces_of_another_though_it_begins_with_the_same_number() {
    // The rules A2MPBFTE-E6 and A2MPBFTEA-E6.
    let group = Group::hybrid(GroupId([9; 16]), 3).expect("2f+1");
    let nobody = Arc::new(GroupVerifier::new([]).expect("nobody is there twice"));
    let mut config = ClientConfig::new(ClientId(7), group, [1; 32], [2; 32], Vec::new());
    config.session = Session::Continue { first_number: 5, events_seen: 0 };
    config.history = Some(History::new(group.id(), HISTORY_LOG, nobody, []));
    assert_ne!(first_nonce(&config), first_nonce(&config));
}
