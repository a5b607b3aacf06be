//! Attestations for single clients: whom they convince.

use super::*;
use curve25519_dalek::montgomery::MontgomeryPoint;
use hmac::{Hmac, KeyInit, Mac};
use sha2::{Digest as _, Sha256, Sha512};
use troth_trusted::a2m::Peer;
use troth_trusted::a2m::attestation::statement;
use troth_trusted::a2m::peers::PEERS;
use troth_trusted::agreement::PeerKey;
use troth_trusted::{MacVerifier, Proof, SigningKey};

fn lookup_for(number: u128, peer: Peer) -> Operation {
    Operation::LookupFor { log: Q, slot: slot(number), nonce: Z, peer }
}

fn peer(secret: &[u8; 32]) -> Peer {
    PeerKey::new(secret).public()
}

fn secret(client: u16) -> [u8; 32] {
    let mut secret = [0x77; 32];
    secret[8..10].copy_from_slice(&client.to_be_bytes());
    secret
}

/// Whether this key finds that the slot holds something, by this attestation.
fn convinces(key: &MacVerifier, made: &Attestation, number: u128) -> bool {
    made.verify_lookup(key, &IDENTITY, Q, slot(number), &Z).is_some()
}

/// A component with this certifier, one slot of its log filled.
fn component(certifier: Certifier) -> Component {
    let mut a2m = A2m::start(IDENTITY, certifier, VolatileStore, room(4));
    done(&mut a2m, &[append(Q, 1, 1)]);
    a2m
}

/// What the component says to one client convinces this one, whoever else asked, and nobody else.
fn assert_for_one(certifier: Certifier, key_of: impl Fn(&[u8; 32]) -> MacVerifier, clients: u16) {
    let mut a2m = component(certifier);
    let other = key_of(&secret(u16::MAX));
    for _ in 0..2 {
        for client in 0..clients {
            let key = key_of(&secret(client));
            let made = attested(&mut a2m, lookup_for(1, peer(&secret(client))));
            assert!(matches!(made.proof, Proof::Mac(_)));
            assert!(convinces(&key, &made, 1), "client {client}");
            assert!(!convinces(&key, &made, 2) && !convinces(&other, &made, 1));
            assert!(!convinces(&mac_key().verifier(), &made, 1), "not who holds the group's key alone");
            assert!(!convinces(&key, &attested(&mut a2m, lookup(Q, 1)), 1), "not what is said to all");
        }
    }
    // The last of the clients, after so many others.
    let last = attested(&mut a2m, lookup_for(2, peer(&secret(clients - 1))));
    assert_eq!(last.claim.content, Content::Unassigned { high: slot(1) });
    assert!(convinces(&key_of(&secret(clients - 1)), &last, 2));
}

#[test]
fn a_lookup_for_one_client_convinces_this_client_alone() {
    covers!("A2M-A5");
    // More clients than keys are kept, which cost next to nothing here.
    let many = PEERS as u16 + 9;
    assert_for_one(Certifier::Mac(mac_key()), |secret| mac_key().verifier().shared_with(&peer(secret)), many);
    let key = SigningKey::new(&[9; 32]);
    let public = key.verifier();
    let key_of = |secret: &[u8; 32]| public.shared_with(&PeerKey::new(secret)).expect("a point");
    assert_for_one(Certifier::Signature(key), key_of, 12);
    // The same client has another key with another component.
    let made = attested(
        &mut component(Certifier::Signature(SigningKey::new(&[8; 32]))),
        lookup_for(1, peer(&secret(3))),
    );
    assert!(!convinces(&key_of(&secret(3)), &made, 1));
}

#[test]
fn clients_whose_places_are_taken_share_their_own_keys_all_the_same() {
    covers!("A2M-A5");
    let key = SigningKey::new(&[9; 32]);
    let public = key.verifier();
    let mut a2m = component(Certifier::Signature(key));
    // The first bytes name the place: all of these want the same one.
    let mut client = peer(&secret(1));
    let mut all = Vec::new();
    for last in 0..PEERS as u16 + 3 {
        client[30..].copy_from_slice(&last.to_be_bytes());
        all.push(attested(&mut a2m, lookup_for(1, client)).proof);
    }
    let made = attested(&mut a2m, lookup_for(1, peer(&secret(1))));
    assert!(convinces(&public.shared_with(&PeerKey::new(&secret(1))).expect("a point"), &made, 1));
    assert!(!all.contains(&made.proof), "each has a key of its own");
}

#[test]
fn bytes_that_are_nobody_s_key_are_answered_and_convince_no_client() {
    covers!("A2M-A5");
    let key = SigningKey::new(&[9; 32]);
    let public = key.verifier();
    let mut a2m = component(Certifier::Signature(key));
    let honest = public.shared_with(&PeerKey::new(&secret(1))).expect("a point");
    let mut order_eight = [0; 32];
    order_eight[0] = 1;
    for nobody in [[0; 32], order_eight, [0xff; 32]] {
        assert!(!convinces(&honest, &attested(&mut a2m, lookup_for(1, nobody)), 1));
    }
}

#[test]
fn what_a_client_is_shown_is_the_mac_of_these_bytes_under_this_key() {
    covers!("A2M-A5");
    let (seed, client) = ([9; 32], secret(5));
    let key = SigningKey::new(&seed);
    let public = key.verifier().to_bytes();
    let made = attested(&mut component(Certifier::Signature(key)), lookup_for(1, peer(&client)));
    let mut scalar = [0; 32];
    scalar.copy_from_slice(&Sha512::digest(seed)[..32]);
    let shared = MontgomeryPoint(peer(&client)).mul_clamped(scalar).to_bytes();
    let key = Sha256::digest([&b"troth-a2m-peers/v1"[..], &shared, &public, &peer(&client)].concat());
    let mac = |key: &[u8], of: &[u8]| {
        let whole =
            <Hmac<Sha256> as KeyInit>::new_from_slice(key).expect("any key").chain_update(of).finalize();
        Proof::Mac((*whole.as_bytes()).into())
    };
    assert_eq!(made.proof, mac(&key, &statement(&IDENTITY, &made.claim)));
    let made = attested(&mut component(Certifier::Mac(mac_key())), lookup_for(1, peer(&client)));
    let Proof::Mac(key) = mac(&[7; 32], &[&b"troth-a2m-peers/v1"[..], &peer(&client)].concat()) else {
        panic!("a MAC")
    };
    assert_eq!(made.proof, mac(&key, &statement(&IDENTITY, &made.claim)));
}
