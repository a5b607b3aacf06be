//! Messages of view changes that can bring nothing are passed over before their signatures are checked, and what breaks a
//! rule is charged while views change, too.

use super::config::{Scratch, plan};
use crate::assembly::{engine, executor};
use crate::clock::Clock;
use crate::config::{Cluster, Layout, Plan, Protocol, ReplicaSecret, TrustedKind, make};
use crate::delayed::TrustedDelay;
use crate::durable::Footing;
use crate::inbox::{Inbox, Party};
use bytes::Bytes;
use troth_auth::{Seal, Signer};
use troth_core::{Agreement, PeerMessage};
use troth_kv::Null;
use troth_pbft::{Body, NewView, Pbft, StableProof, ViewChange};
use troth_types::{Digest, ReplicaId, Seq, View, Wire};

fn view_change(to: u64) -> Body {
    let (prepared, pre_prepared) = (Vec::new(), Vec::new());
    Body::ViewChange(ViewChange { to: View(to), stable: StableProof::default(), prepared, pre_prepared })
}

/// One that follows from nothing.
fn new_view(view: u64) -> Body {
    let (changes, chosen) = (Vec::new(), Vec::new());
    Body::NewView(NewView { view: View(view), changes, base: (Seq(0), Digest::ZERO), chosen })
}

#[test]
fn what_can_bring_nothing_is_charged_unchecked_and_what_breaks_a_rule_is_charged() {
    let scratch = Scratch::new("passed-over");
    let layout = Layout::new(&scratch.0);
    let address = |i: u16| (format!("127.0.0.1:{}", 4700 + i), format!("127.0.0.1:{}", 4800 + i));
    let addresses = (0..4).map(address).collect();
    make(&layout, &Plan { protocol: Protocol::Pbft, addresses, ..plan(TrustedKind::Hmac) }).expect("fresh");
    let cluster = Cluster::load(&layout.cluster()).expect("just made");
    let secret =
        |id| ReplicaSecret::load(&layout.replica_secret(ReplicaId(id)), &cluster).expect("just made");
    let footing = Footing::Volatile(TrustedDelay::default());
    let state = executor(&cluster, Null::new(8));
    let mut engine = engine::<Pbft, _>(&cluster, secret(1), state, Clock::new(), footing).expect("it starts");
    let inbox = Inbox::new();
    let says = |from: u16, body: Body| -> Bytes {
        let digest = Pbft::digest(&body, cluster.group.id(), ReplicaId(from));
        let seal = Seal::Signature(secret(from).host.sign(&digest));
        PeerMessage::Protocol(Pbft::seal(body, digest, ReplicaId(from), seal)).to_wire()
    };
    let lane = |from| inbox.lane(Party::Replica(ReplicaId(from)));

    // The same twice in a turn, and once more in the next.
    let moves = says(2, view_change(6));
    for _ in 0..2 {
        inbox.push(&lane(2), moves.clone());
    }
    engine.turn(&inbox).expect("goes on");
    inbox.push(&lane(2), moves);
    engine.turn(&inbox).expect("goes on");
    assert_eq!((engine.counters.messages_verified, engine.counters.messages_passed_over), (1, 2));
    inbox.push(&lane(3), says(3, view_change(6)));
    engine.turn(&inbox).expect("goes on");
    assert!(!engine.host.machine().agreement().status().active, "f+1 have moved");

    // A view that is over; then one that follows from nothing, while this replica waits for that very one.
    inbox.push(&lane(2), says(2, new_view(2)));
    engine.turn(&inbox).expect("goes on");
    assert_eq!((engine.counters.messages_verified, engine.counters.messages_passed_over), (2, 3));
    for count in 3..5 {
        let before = engine.counters.peer_useless_micros;
        inbox.push(&lane(2), says(2, new_view(6)));
        engine.turn(&inbox).expect("goes on");
        assert_eq!(engine.counters.messages_verified, count);
        assert!(engine.counters.peer_useless_micros > before, "it is charged each time");
    }
}
