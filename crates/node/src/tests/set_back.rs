//! A component whose counters were set back by exactly its last run, which nothing on the replica's own
//! disk tells from a crash before that run was certified.

use super::config::{Scratch, plan};
use crate::assembly::engine;
use crate::beside::{Desk, Done};
use crate::clock::Clock;
use crate::component::Component;
use crate::config::{ClientSecret, Cluster, Layout, ReplicaSecret, TrustedKind, make};
use crate::durable::{Footing, Found, Opened};
use crate::engine::{Blocked, Engine};
use crate::inbox::{Inbox, Party};
use crate::journal::Journal;
use bytes::Bytes;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use troth_auth::{Ed25519Signer, Signer};
use troth_exec::{Executor, Snapshot};
use troth_kv::Null;
use troth_minbft::{COUNTER, MinBft};
use troth_trusted::{Identity, Resumed, TrustedCore, VolatileStore};
use troth_trusted_host::{Answer, Call, InProcess, TrustedComponent};
use troth_types::{ClientId, FrameDraft, ReplicaId, Seq, ToReplica, Wire, Wish};

/// All that was ever certified: digests by the values they stand under.
type Ledger = Arc<Mutex<BTreeMap<u128, [u8; 32]>>>;

/// A component whose certificates are written down; each value may have one digest.
struct Watched(InProcess<VolatileStore>, Ledger);

impl Component for Watched {}

impl TrustedComponent for Watched {
    fn identity(&self) -> Identity {
        self.0.identity()
    }
    fn call(&mut self, calls: &[Call]) -> Vec<Answer> {
        let answers = self.0.call(calls);
        for (call, answer) in calls.iter().zip(&answers) {
            if let (Call::Attest { new, digest, .. }, Answer::Attested(_)) = (call, answer) {
                let mut ledger = self.1.lock().expect("no panic while it is locked");
                let known = *ledger.entry(new.0).or_insert(*digest);
                assert_eq!(known, *digest, "value {} was certified for two digests", new.0);
            }
        }
        answers
    }
}

/// A disk on which everything is durable at once.
#[derive(Clone, Default)]
struct Quick(Rc<RefCell<Vec<Bytes>>>, Desk);

impl Journal<Snapshot> for Quick {
    fn append(&mut self, record: Bytes) {
        self.0.borrow_mut().push(record);
    }
    fn wants_segment(&self) -> bool {
        false
    }
    fn new_segment(&mut self, _: Snapshot, _: bool) {}
    fn base(&self) -> Seq {
        Seq(0)
    }
    fn sync(&mut self) {
        self.1.leave(Done::Synced);
    }
    fn snapshot_done(&mut self, _: Seq) {}
}

/// A life of replica 0, the primary, in which client 1 asks for this; until so many runs are certified.
fn life(
    layout: &Layout,
    log: Vec<Bytes>,
    ledger: &Ledger,
    operation: &'static [u8],
    runs: u64,
) -> Vec<Bytes> {
    let cluster = Cluster::load(&layout.cluster()).expect("made before");
    let secret = ReplicaSecret::load(&layout.replica_secret(ReplicaId(0)), &cluster).expect("made before");
    let client = ClientSecret::load(&layout.client_secret(ClientId(1)), &cluster).expect("made before");
    let desk = Desk::default();
    let journal = Quick(Rc::new(RefCell::new(log.clone())), desk.clone());
    // Each life begins with a component that knows of none before: set back by whatever they certified.
    let key = secret.trusted.clone().expect("in process");
    let core = TrustedCore::start(
        cluster.identity(ReplicaId(0), cluster.replica(ReplicaId(0)).epoch),
        key,
        VolatileStore,
    );
    let mut component = Watched(InProcess::new(core), Arc::clone(ledger));
    let resumed = match component.call(&[Call::Resume { counter: COUNTER }]).pop() {
        Some(Answer::Resumed(resumed)) => *resumed,
        other => panic!("{other:?}"),
    };
    assert_eq!(resumed, Resumed::Unmoved);
    let found = (!log.is_empty()).then_some(Found { snapshot: None, log, resumed: Some(resumed) });
    let opened = Opened {
        component: Some(Box::new(component)),
        journal: Box::new(journal.clone()),
        desk: desk.clone(),
        found,
    };
    let executor = crate::assembly::executor(&cluster, Null::new(8));
    let standing = Footing::Durable(Box::new(opened));
    let mut engine: Engine<MinBft, Executor<Null>> =
        engine(&cluster, secret, executor, Clock::new(), standing).expect("it starts");
    engine.commands().expect("there is nothing to refuse");
    let draft = FrameDraft {
        group: cluster.group.id(),
        client: ClientId(1),
        number: 1,
        events_seen: 0,
        operations: vec![Bytes::from_static(operation)],
    };
    let signature = Ed25519Signer::from_seed(client.seed).sign(&draft.signing_digest());
    let request = ToReplica::Request { frame: Arc::new(draft.sign(signature)), wish: Wish::Usual };
    let inbox = Inbox::new();
    inbox.push(&inbox.lane(Party::Client(ClientId(1))), request.to_wire());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime");
    engine.turn(&inbox).expect("goes on");
    while engine.counters.attestations < runs || engine.blocked == Some(Blocked::Attest) {
        let soon = async { tokio::time::timeout(Duration::from_secs(60), desk.woken()).await };
        runtime.block_on(soon).expect("disk and component answer");
        engine.turn(&inbox).expect("goes on");
    }
    journal.0.take()
}

#[test]
fn a_component_set_back_by_its_last_run_certifies_the_same_again() {
    let scratch = Scratch::new("set-back");
    let layout = Layout::new(&scratch.0);
    make(&layout, &plan(TrustedKind::Hmac)).expect("a fresh directory");
    let ledger = Ledger::default();
    let first = life(&layout, Vec::new(), &ledger, b"one story", 1);
    assert_eq!(ledger.lock().expect("no panic").keys().copied().collect::<Vec<_>>(), [1]);
    // What the log holds of the run are its bodies: its certificate comes with the next.
    let bodies = first.len();
    assert!(bodies > 0);
    // Asked for something else, it goes on above what it is made to repeat; the ledger would panic.
    let second = life(&layout, first, &ledger, b"another story", 1);
    assert!(second.len() > bodies);
    assert!(ledger.lock().expect("no panic").len() >= 2, "it goes on");
}
