//! Bodies that a component keeps beside its counters: one sync for both, and the log is whole after a crash.

use super::config::{Scratch, plan};
use crate::assembly::engine;
use crate::beside::{Desk, Done};
use crate::bodies::{Bodies, behind};
use crate::clock::Clock;
use crate::component::Component;
use crate::config::{ClientSecret, Cluster, Layout, ReplicaSecret, TrustedKind, make};
use crate::durable::{Footing, Found, Opened};
use crate::engine::Engine;
use crate::inbox::{Inbox, Party};
use crate::journal::Journal;
use crate::run_error::RunError;
use bytes::Bytes;
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;
use troth_auth::{Ed25519Signer, Signer};
use troth_core::{LogRecord, RecoveryError};
use troth_exec::{Executor, Snapshot};
use troth_kv::Null;
use troth_minbft::{COUNTER, MinBft};
use troth_trusted::{CounterId, CounterValue, Identity, Resumed, TrustedCore, VolatileStore};
use troth_trusted_host::{Answer, Call, InProcess, TrustedComponent};
use troth_types::{ClientId, FrameDraft, ReplicaId, Seq, ToReplica, Wire, Wish};

/// A component that outlives its replica, with what it keeps.
#[derive(Clone)]
struct Keeping(Arc<Mutex<Kept>>);

struct Kept {
    component: InProcess<VolatileStore>,
    blobs: Vec<Vec<u8>>,
    /// Blobs that it has still room for.
    room: usize,
}

impl Keeping {
    fn new(core: TrustedCore<VolatileStore>) -> Self {
        Self(Arc::new(Mutex::new(Kept { component: InProcess::new(core), blobs: Vec::new(), room: 1_000 })))
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.0.lock().expect("no panic while it is locked")
    }
}

impl Component for Keeping {}

impl TrustedComponent for Keeping {
    fn identity(&self) -> Identity {
        self.kept().component.identity()
    }
    fn call(&mut self, calls: &[Call]) -> Vec<Answer> {
        let mut kept = self.kept();
        if calls.iter().any(|call| matches!(call, Call::Attest { .. })) {
            kept.blobs.clear();
        }
        kept.component.call(calls)
    }
    fn attest_beside(&mut self, call: &Call, blob: &[u8]) -> Option<Answer> {
        let mut kept = self.kept();
        kept.room = kept.room.checked_sub(1)?;
        kept.blobs.push(blob.to_vec());
        kept.component.call(std::slice::from_ref(call)).pop()
    }
    fn blobs(&mut self) -> Vec<Vec<u8>> {
        self.kept().blobs.clone()
    }
}

/// A disk that loses at a crash whatever was not synced; a sync is done at once.
#[derive(Clone, Default)]
struct Losing(Rc<RefCell<Written>>, Desk);

#[derive(Default)]
struct Written {
    durable: Vec<Bytes>,
    unsynced: Vec<Bytes>,
    syncs: usize,
}

impl Journal<Snapshot> for Losing {
    fn append(&mut self, record: Bytes) {
        self.0.borrow_mut().unsynced.push(record);
    }
    fn wants_segment(&self) -> bool {
        false
    }
    fn new_segment(&mut self, _: Snapshot, _: bool) {}
    fn base(&self) -> Seq {
        Seq(0)
    }
    fn sync(&mut self) {
        let mut written = self.0.borrow_mut();
        let unsynced = std::mem::take(&mut written.unsynced);
        written.durable.extend(unsynced);
        written.syncs += 1;
        self.1.leave(Done::Synced);
    }
    fn snapshot_done(&mut self, _: Seq) {}
}

/// Replica 0, the primary of a group of three whose others are away, on such a disk with such a component.
struct Machine {
    _scratch: Scratch,
    layout: Layout,
    cluster: Cluster,
    component: Keeping,
    durable: Vec<Bytes>,
    /// The client's last request.
    asked: u64,
}

/// What a life did.
struct Life {
    runs: u64,
    syncs: usize,
}

impl Machine {
    fn new(name: &str) -> Self {
        let scratch = Scratch::new(name);
        let layout = Layout::new(&scratch.0);
        make(&layout, &plan(TrustedKind::Hmac)).expect("a fresh directory");
        let cluster = Cluster::load(&layout.cluster()).expect("just made");
        let secret = ReplicaSecret::load(&layout.replica_secret(ReplicaId(0)), &cluster).expect("just made");
        let identity = cluster.identity(ReplicaId(0), secret.epoch);
        let core = TrustedCore::start(identity, secret.trusted.expect("in process"), VolatileStore);
        let component = Keeping::new(core);
        Self { _scratch: scratch, layout, cluster, component, durable: Vec::new(), asked: 0 }
    }

    fn request(&mut self) -> Bytes {
        self.asked += 1;
        let client =
            ClientSecret::load(&self.layout.client_secret(ClientId(1)), &self.cluster).expect("there");
        let draft = FrameDraft {
            group: self.cluster.group.id(),
            client: ClientId(1),
            number: self.asked,
            events_seen: 0,
            operations: vec![Bytes::copy_from_slice(&self.asked.to_be_bytes())],
        };
        let signature = Ed25519Signer::from_seed(client.seed).sign(&draft.signing_digest());
        ToReplica::Request { frame: Arc::new(draft.sign(signature)), wish: Wish::Usual }.to_wire()
    }

    /// Starts, orders so many batches one at a time, and crashes.
    fn live(&mut self, requests: u64) -> Result<Life, RunError> {
        let secret =
            ReplicaSecret::load(&self.layout.replica_secret(ReplicaId(0)), &self.cluster).expect("there");
        let resumed = match self.component.call(&[Call::Resume { counter: COUNTER }]).pop() {
            Some(Answer::Resumed(resumed)) => *resumed,
            other => panic!("{other:?}"),
        };
        let mut log = self.durable.clone();
        let missing = behind(Seq(0), &log, self.component.blobs()).expect("what a replica made");
        log.extend(missing.iter().cloned());
        let found =
            (resumed != Resumed::Unmoved).then_some(Found { snapshot: None, log, resumed: Some(resumed) });
        let desk = Desk::default();
        let disk = Losing(Rc::default(), desk.clone());
        disk.0.borrow_mut().durable.clone_from(&self.durable);
        disk.0.borrow_mut().unsynced = missing;
        let opened = Opened {
            component: Some(Box::new(self.component.clone())),
            journal: Box::new(disk.clone()),
            desk: desk.clone(),
            found,
        };
        let executor = crate::assembly::executor(&self.cluster, Null::new(8));
        let footing = Footing::Durable(Box::new(opened));
        let mut engine: Engine<MinBft, Executor<Null>> =
            engine(&self.cluster, secret, executor, Clock::new(), footing)?;
        engine.bodies = Bodies::new(true);
        let inbox = Inbox::new();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime");
        engine.commands()?;
        let mut sent = engine.counters.peer_dropped;
        for number in 0..=requests {
            if number > 0 {
                // As many as are under way: less would wait for them (MINBFT-N2), and nobody commits.
                for _ in 0..1 << number.saturating_sub(2) {
                    inbox.push(&inbox.lane(Party::Client(ClientId(1))), self.request());
                }
                engine.turn(&inbox)?;
            }
            while engine.blocked.is_some() {
                assert_eq!(engine.counters.peer_dropped, sent, "nothing leaves before it is durable");
                let soon = async { tokio::time::timeout(Duration::from_secs(60), desk.woken()).await };
                runtime.block_on(soon).expect("disk and component answer");
                engine.turn(&inbox)?;
            }
            assert!(number == 0 || engine.counters.peer_dropped > sent, "the PREPARE has left");
            sent = engine.counters.peer_dropped;
        }
        let written = disk.0.borrow();
        self.durable.clone_from(&written.durable);
        Ok(Life { runs: engine.counters.attestations, syncs: written.syncs })
    }

    /// The values of the bodies that a start finds.
    fn values(&mut self) -> Vec<u128> {
        let mut log = self.durable.clone();
        log.extend(behind(Seq(0), &log, self.component.blobs()).expect("what a replica made"));
        let values = log.iter().filter_map(|record| match LogRecord::from_wire(record) {
            Ok(LogRecord::Own { new, .. }) => Some(new.0),
            _ => None,
        });
        values.collect()
    }
}

#[test]
fn a_run_costs_one_sync_and_the_log_is_whole_after_a_crash() {
    let mut machine = Machine::new("bodies-one");
    // As many as it has under way while nobody commits.
    let life = machine.live(4).expect("goes on");
    // The first is made durable in the log, the rest beside their counters.
    assert_eq!((life.runs, life.syncs), (4, 1));
    assert_eq!(machine.component.kept().blobs.len(), 3);
    assert_eq!(machine.values(), [1, 2, 3, 4]);
    let values = machine.values();
    for _ in 0..3 {
        machine.live(0).expect("everything that was certified is there");
        assert_eq!(machine.values()[..4], values);
    }
}

#[test]
fn a_start_that_does_nothing_loses_nothing() {
    let mut machine = Machine::new("bodies-idle");
    machine.live(3).expect("goes on");
    let values = machine.values();
    for _ in 0..3 {
        // What it was found to lack is with the component as long as the log has not been synced with it.
        machine.live(0).expect("starts");
        assert_eq!(machine.values()[..3], values);
    }
    machine.live(1).expect("goes on");
}

#[test]
fn without_what_the_component_keeps_the_log_is_older_than_it_and_refused() {
    let mut machine = Machine::new("bodies-lost");
    machine.live(3).expect("goes on");
    machine.component.kept().blobs.clear();
    match machine.live(1) {
        Err(RunError::Start(RecoveryError::BodyMissing(..))) => {}
        Err(other) => panic!("refused for another reason: {other}"),
        Ok(_) => panic!("it votes without knowing what it said"),
    }
}

#[test]
fn a_component_without_room_has_the_log_synced_instead() {
    let mut machine = Machine::new("bodies-room");
    machine.component.kept().room = 2;
    let life = machine.live(4).expect("goes on");
    assert_eq!((life.runs, life.syncs), (4, 2), "two beside the counter");
    assert!(machine.component.kept().blobs.is_empty(), "the log has them");
    machine.live(0).expect("goes on");
}

fn own(value: u128, body: &'static [u8]) -> Bytes {
    let (previous, new) = (CounterValue(value - 1), CounterValue(value));
    LogRecord::Own { counter: CounterId(0), previous, new, body: Bytes::from_static(body) }.to_wire()
}

/// The blob of a phase with these records on this base.
fn blob(base: u64, records: &[Bytes]) -> Vec<u8> {
    let mut bodies = Bodies::new(true);
    bodies.let_go();
    records.iter().for_each(|record| bodies.append(Seq(base), record));
    bodies.blob().expect("short enough").to_vec()
}

#[test]
fn only_what_the_log_lacks_is_put_behind_it() {
    let note = |text: &'static [u8]| LogRecord::Machine(Bytes::from_static(text)).to_wire();
    let (first, second) = ([note(b"a"), own(1, b"x")], [note(b"b"), own(2, b"y")]);
    let blobs = vec![blob(7, &first), blob(7, &second)];
    let all: Vec<Bytes> = first.iter().chain(&second).cloned().collect();
    assert_eq!(behind(Seq(7), &[], blobs.clone()), Ok(all.clone()));
    // The log may have been written further than it was synced: up to any record.
    assert_eq!(behind(Seq(7), &all[..1], blobs.clone()), Ok(all.clone()));
    assert_eq!(behind(Seq(7), &all[..2], blobs.clone()), Ok(second.to_vec()));
    assert_eq!(behind(Seq(7), &all[..3], blobs.clone()), Ok(second.to_vec()));
    assert_eq!(behind(Seq(7), &all, blobs.clone()), Ok(Vec::new()));
    // A base that was begun since has carried over what matters of them; one that was not yet durable has not.
    assert_eq!(behind(Seq(8), &[], blobs.clone()), Ok(Vec::new()));
    assert_eq!(behind(Seq(6), &[], blobs), Ok(all));
}

#[test]
fn what_no_replica_gave_the_component_is_refused() {
    let whole = blob(0, &[own(1, b"x")]);
    for blob in [Vec::new(), whole[..8].to_vec(), whole[..whole.len() - 1].to_vec(), vec![0xff; 40]] {
        assert!(behind(Seq(0), &[], vec![blob.clone()]).is_err(), "{blob:?}");
    }
    let no_body = blob(0, &[LogRecord::CarriedOver(1).to_wire()]);
    assert!(behind(Seq(0), &[], vec![no_body]).is_err());
}

#[test]
fn what_is_too_long_and_every_so_many_th_run_is_for_the_log() {
    let mut bodies = Bodies::new(true);
    bodies.append(Seq(0), &own(1, b"x"));
    assert!(bodies.blob().is_none(), "the first");
    bodies.are_in_the_log();
    bodies.let_go();
    let beside = std::iter::from_fn(|| {
        bodies.append(Seq(0), &own(1, b"x"));
        bodies.blob()?;
        bodies.are_beside();
        Some(())
    });
    assert_eq!(beside.take(1_000).count(), 64);
    bodies.are_in_the_log();
    bodies.let_go();
    bodies.append(Seq(0), &Bytes::from(vec![0; 4_096]));
    assert!(bodies.blob().is_none(), "longer than a component's block");
    bodies.are_in_the_log();
    bodies.let_go();
    bodies.append(Seq(0), &own(2, b"y"));
    assert!(bodies.blob().is_some());
    // A new segment is begun by the log alone, and until the component lets go what it keeps.
    bodies.need_log();
    bodies.are_in_the_log();
    bodies.append(Seq(0), &own(2, b"y"));
    assert!(bodies.blob().is_none());
}
