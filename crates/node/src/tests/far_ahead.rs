//! MINBFT-R18: what a VIEW-CHANGE costs that does not have its turn.

use super::config::{Scratch, plan};
use crate::assembly::{engine, executor};
use crate::clock::Clock;
use crate::config::{Cluster, Layout, ReplicaSecret, TrustedKind, make};
use crate::delayed::TrustedDelay;
use crate::durable::Footing;
use crate::engine::Engine;
use crate::inbox::{Inbox, Party};
use std::sync::Arc;
use troth_auth::{Seal, Signer, Ui};
use troth_core::{Agreement, PeerMessage};
use troth_exec::Executor;
use troth_kv::Null;
use troth_minbft::place::Place;
use troth_minbft::{
    Body, COUNTER, LogEntry, Message, MinBft, RequestViewChange, SignedRequest, StableProof, ViewChange,
};
use troth_trusted::{CounterValue, TrustedCore, VolatileStore};
use troth_types::{ReplicaId, View, Wire};

/// Entries of a long log.
const LONG: u64 = 2_000;

/// Replica 0 of a fresh group, and what the others have.
struct Scene {
    engine: Engine<MinBft, Executor<Null>>,
    inbox: Inbox,
    cluster: Cluster,
    secrets: Vec<ReplicaSecret>,
}

impl Scene {
    fn new(name: &str) -> Self {
        let scratch = Scratch::new(name);
        let layout = Layout::new(&scratch.0);
        make(&layout, &plan(TrustedKind::Hmac)).expect("a fresh directory");
        let cluster = Cluster::load(&layout.cluster()).expect("just made");
        let load = |id| ReplicaSecret::load(&layout.replica_secret(id), &cluster).expect("just made");
        let secrets = cluster.group.all().map(load).collect();
        let (footing, state) = (Footing::Volatile(TrustedDelay::default()), executor(&cluster, Null::new(8)));
        let engine = engine(&cluster, load(ReplicaId(0)), state, Clock::new(), footing).expect("it starts");
        Self { engine, inbox: Inbox::new(), cluster, secrets }
    }

    fn component(&self, of: ReplicaId) -> TrustedCore<VolatileStore> {
        let key = self.secrets[usize::from(of.0)].trusted.clone().expect("in process");
        TrustedCore::start(self.cluster.identity(of, self.cluster.replica(of).epoch), key, VolatileStore)
    }

    /// A replica's wish for another view.
    fn wish(&self, from: ReplicaId, to: u64) -> Arc<SignedRequest> {
        let body = Body::RequestViewChange(RequestViewChange { to: View(to) });
        let digest = MinBft::digest(&body, self.cluster.group.id(), from);
        let seal = Seal::Signature(self.secrets[usize::from(from.0)].host.sign(&digest));
        match MinBft::seal(body, digest, from, seal) {
            Message::RequestViewChange(wish) => wish,
            other => panic!("{other:?}"),
        }
    }

    /// A VIEW-CHANGE that a component certifies at one value behind another.
    fn view_change(
        &self,
        component: &mut TrustedCore<VolatileStore>,
        (from, previous, new): (ReplicaId, CounterValue, CounterValue),
        log: Vec<LogEntry>,
        requests: Vec<Arc<SignedRequest>>,
    ) -> Message {
        let stable = StableProof { votes: Vec::new() };
        let body = Body::ViewChange(ViewChange { to: View(1), stable, log, requests });
        let digest = MinBft::digest(&body, self.cluster.group.id(), from);
        let certificate = component.attest(COUNTER, previous, new, &digest.0).expect("in its order");
        MinBft::seal(body, digest, from, Seal::Ui(Ui { certificate, run: None }))
    }

    fn hears(&mut self, from: ReplicaId, message: Message) {
        let lane = self.inbox.lane(Party::Replica(from));
        self.inbox.push(&lane, PeerMessage::<Message>::Protocol(message).to_wire());
        self.engine.turn(&self.inbox).expect("goes on");
    }

    /// How many microseconds a replica rests that had used up what it may cost at once.
    fn rests_after(&mut self, from: ReplicaId, message: Message) -> Option<u64> {
        self.engine.peer_charges.again(from, self.engine.clock.now(), 1_000_000);
        let verified = self.engine.counters.messages_verified;
        self.hears(from, message);
        assert_eq!(self.engine.counters.messages_verified, verified + 1);
        let now = self.engine.clock.now();
        self.engine.peer_charges.rests(from, now).map(|until| until.0 - now.0)
    }
}

/// Who shows thousands of certificates, one VIEW-CHANGE after the other that no message before leads to, is slowed while
/// views change, too. Who moves to the next view is not, however long its log.
#[test]
fn a_view_change_out_of_its_turn_is_charged_while_views_change() {
    let mut scene = Scene::new("far-ahead");
    let (liar, honest) = (ReplicaId(1), ReplicaId(2));
    let wishes = [scene.wish(liar, 1), scene.wish(honest, 1)];
    for wish in &wishes {
        scene.hears(wish.from, Message::RequestViewChange(Arc::clone(wish)));
    }
    assert!(!scene.engine.host.machine().agreement().status().active, "f+1 want another view");

    let mut component = scene.component(liar);
    let behind = |at| (liar, CounterValue::new(0, at), CounterValue::new(0, at + 1));
    let entry = |at| match scene.view_change(&mut component, behind(at), Vec::new(), Vec::new()) {
        Message::Certified(message) => message.log_entry(),
        other => panic!("{other:?}"),
    };
    let log: Vec<LogEntry> = (0..LONG).map(entry).collect();
    let far = scene.view_change(&mut component, behind(LONG), log, Vec::new());
    let useless = scene.engine.counters.peer_useless_micros;
    let rests = scene.rests_after(liar, far).expect("it costs what it takes to check");
    assert!(rests < 7_000_000, "not for long");
    assert_eq!(scene.engine.counters.peer_useless_micros, useless, "those before it may yet come");

    let mut component = scene.component(honest);
    let value = Place::of_view_change(View(1));
    let at = (honest, CounterValue(0), value);
    let moves = scene.view_change(&mut component, at, Vec::new(), wishes.to_vec());
    assert_eq!(scene.rests_after(honest, moves), None);
    assert_eq!(
        scene.engine.host.machine().agreement().turns(honest),
        value.0.rotate_left(1),
        "nothing waits"
    );
}
