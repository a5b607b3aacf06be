//! The loop's turn, on a replica of a group of three that nobody is connected to.

use super::config::{Scratch, plan};
use crate::assembly::{engine, executor};
use crate::beside::{Attestor, Desk, Done};
use crate::clock::Clock;
use crate::component::{Component, Here, Logged};
use crate::config::{ClientSecret, Cluster, Layout, ReplicaSecret, TrustedKind, make};
use crate::delayed::{Delayed, TrustedDelay};
use crate::durable::{Footing, Opened};
use crate::engine::{ASKED_BYTES, Blocked, Engine, Stopped};
use crate::inbox::{Inbox, Party};
use crate::journal::Journal;
use crate::run_error::RunError;
use bytes::Bytes;
use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};
use troth_auth::{Ed25519Signer, Signer};
use troth_core::Note;
use troth_exec::{Executor, Snapshot};
use troth_kv::Null;
use troth_minbft::MinBft;
use troth_trusted::a2m::{Answer as LogAnswer, LogId, Operation};
use troth_trusted::{CounterValue, Epoch, Identity, Refusal, TrustedCore, VolatileStore};
use troth_trusted_host::{Answer, Call, InProcess, TrustedComponent};
use troth_types::{ClientId, FrameDraft, Read, ReplicaId, Seq, ToReplica, Wire, Wish};

/// The files of a fresh group, as replica 0 and client 1 read them.
pub(super) fn files(name: &str) -> (Cluster, ReplicaSecret, ClientSecret) {
    files_of(name, ReplicaId(0))
}

/// The same for another replica.
pub(super) fn files_of(name: &str, replica: ReplicaId) -> (Cluster, ReplicaSecret, ClientSecret) {
    let scratch = Scratch::new(name);
    let layout = Layout::new(&scratch.0);
    make(&layout, &plan(TrustedKind::Hmac)).expect("a fresh directory");
    let cluster = Cluster::load(&layout.cluster()).expect("just made");
    let secret = ReplicaSecret::load(&layout.replica_secret(replica), &cluster).expect("just made");
    let client = ClientSecret::load(&layout.client_secret(ClientId(1)), &cluster).expect("just made");
    (cluster, secret, client)
}

/// Replica 0 of a fresh group, which answers everything with so many bytes.
pub(super) fn replica(name: &str, result_bytes: usize) -> Engine<MinBft, Executor<Null>> {
    let (cluster, secret, _) = files(name);
    let executor = executor(&cluster, Null::new(result_bytes));
    engine(&cluster, secret, executor, Clock::new(), Footing::Volatile(TrustedDelay::default()))
        .expect("a fresh replica starts")
}

/// Puts reads whose results replica 0 sends whole into the lane of client 1.
fn read(inbox: &Inbox, count: u64, operation: &Bytes) {
    let lane = inbox.lane(Party::Client(ClientId(1)));
    for number in (2..).step_by(3).take(usize::try_from(count).expect("few")) {
        let read =
            Read { client: ClientId(1), number, nonce: None, least: None, operation: operation.clone() };
        inbox.push(&lane, ToReplica::Read(read).to_wire());
    }
}

/// Answers to clients so far; nobody is connected, so each was dropped.
fn answers(engine: &Engine<MinBft, Executor<Null>>) -> u64 {
    engine.counters.client_dropped
}

#[test]
fn a_turn_ends_after_so_many_bytes_of_answers_and_the_rest_has_its_turn() {
    const EACH: usize = 256 << 10;
    let mut engine = replica("turn-answers", EACH);
    let inbox = Inbox::new();
    read(&inbox, 100, &Bytes::new());
    let mut turns = 0;
    while turns == 0 || engine.has_asked() || !inbox.is_empty() {
        let before = answers(&engine);
        engine.turn(&inbox).expect("the component goes on");
        let answered = answers(&engine) - before;
        assert!((1..=4).contains(&answered), "{answered} answers of {EACH} bytes in one turn");
        turns += 1;
    }
    assert_eq!(answers(&engine), 100, "none is lost");
    assert!(inbox.is_empty());
}

#[test]
fn a_turn_takes_so_many_bytes_of_clients() {
    let mut engine = replica("turn-messages", 0);
    let inbox = Inbox::new();
    read(&inbox, 100, &Bytes::from(vec![0; 256 << 10]));
    engine.turn(&inbox).expect("the component goes on");
    assert!((1..=4).contains(&engine.counters.client_messages_in));
    while engine.has_asked() || !inbox.is_empty() {
        engine.turn(&inbox).expect("the component goes on");
    }
    assert_eq!(answers(&engine), 100, "none is lost");
}

#[test]
fn small_answers_share_a_turn() {
    let mut engine = replica("turn-small", 0);
    let inbox = Inbox::new();
    // Nothing is known of what they take.
    read(&inbox, 100, &Bytes::new());
    engine.turn(&inbox).expect("the component goes on");
    assert_eq!(engine.counters.client_messages_in, 20);
    while engine.has_asked() || !inbox.is_empty() {
        engine.turn(&inbox).expect("the component goes on");
    }
    assert_eq!(answers(&engine), 100);
    read(&inbox, 100, &Bytes::new());
    engine.turn(&inbox).expect("the component goes on");
    assert_eq!(
        engine.counters.client_messages_in, 150,
        "cheap ones are taken for a little dearer than they were"
    );
}

/// A disk that answers when the test says so; counts what was appended and the syncs asked for.
#[derive(Clone, Default)]
struct Slow(Rc<Cell<(usize, usize)>>, Rc<Cell<bool>>);

impl Slow {
    /// From now on nobody wants a sync of it.
    fn write_at_once(&self) {
        self.1.set(true);
    }
}

impl Journal<Snapshot> for Slow {
    fn append(&mut self, _: Bytes) {
        let (appended, syncs) = self.0.get();
        self.0.set((appended + 1, syncs));
    }
    fn wants_segment(&self) -> bool {
        true
    }
    fn new_segment(&mut self, _: Snapshot, _: bool) {}
    fn base(&self) -> Seq {
        Seq(0)
    }
    fn write_now(&mut self) -> bool {
        self.1.get()
    }
    fn sync(&mut self) {
        let (appended, syncs) = self.0.get();
        self.0.set((appended, syncs + 1));
    }
    fn snapshot_done(&mut self, _: Seq) {}
}

/// Whether the loop waits for the component.
fn is_quick(engine: &mut Engine<MinBft, Executor<Null>>, quick: bool) {
    let Attestor::Beside(aside) = &mut engine.attestor else {
        panic!("a durable replica's component is beside")
    };
    aside.quick = quick;
}

/// Replica 0, the primary of a fresh group, on a slow disk, with an operation to order.
fn durable(name: &str) -> (Engine<MinBft, Executor<Null>>, Slow, Desk, Inbox) {
    durable_with(name, 8, |component| Box::new(Here::new(component, None)))
}

/// As [`durable`], with results of so many bytes and a component that a test has made of the sound one.
fn durable_with(
    name: &str,
    result: usize,
    made_of: impl FnOnce(InProcess<VolatileStore>) -> Box<dyn Component>,
) -> (Engine<MinBft, Executor<Null>>, Slow, Desk, Inbox) {
    let (cluster, secret, client) = files(name);
    let (slow, desk) = (Slow::default(), Desk::default());
    let identity = cluster.identity(ReplicaId(0), cluster.replica(ReplicaId(0)).epoch);
    let component = InProcess::new(TrustedCore::start(
        identity,
        secret.trusted.clone().expect("in process"),
        VolatileStore,
    ));
    let opened = Opened {
        component: Some(made_of(component)),
        journal: Box::new(slow.clone()),
        desk: desk.clone(),
        found: None,
    };
    let executor = executor(&cluster, Null::new(result));
    let footing = Footing::Durable(Box::new(opened));
    let mut engine =
        engine(&cluster, secret, executor, Clock::new(), footing).expect("a fresh replica starts");
    is_quick(&mut engine, false);
    engine.commands().expect("there is nothing to refuse");
    let draft = FrameDraft {
        group: cluster.group.id(),
        client: ClientId(1),
        number: 1,
        events_seen: 0,
        operations: vec![Bytes::from_static(b"x")],
    };
    let signature = Ed25519Signer::from_seed(client.seed).sign(&draft.signing_digest());
    let request = ToReplica::Request { frame: Arc::new(draft.sign(signature)), wish: Wish::Usual };
    let inbox = Inbox::new();
    inbox.push(&inbox.lane(Party::Client(ClientId(1))), request.to_wire());
    (engine, slow, desk, inbox)
}

#[test]
fn nothing_is_certified_before_its_body_is_durable_nor_sent_before_it_is_certified() {
    let (mut engine, slow, desk, inbox) = durable("durable-order");
    engine.turn(&inbox).expect("goes on");
    let (appended, syncs) = slow.0.get();
    assert!(appended > 0 && syncs == 1, "{appended} records, {syncs} syncs");
    assert_eq!(engine.blocked, Some(Blocked::Sync));
    // Turns while it waits certify nothing and send nothing.
    engine.turn(&inbox).expect("goes on");
    assert_eq!((engine.counters.attestations, engine.counters.peer_dropped), (0, 0));

    desk.leave(Done::Synced);
    engine.turn(&inbox).expect("goes on");
    assert_eq!(engine.counters.attestations, 1);
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    while engine.blocked == Some(Blocked::Attest) {
        assert_eq!(engine.counters.peer_dropped, 0, "its certificate is not there yet");
        runtime.block_on(desk.woken());
        engine.turn(&inbox).expect("goes on");
    }
    assert_eq!(engine.counters.peer_dropped, 2, "the PREPARE, for two replicas to whom nobody connects");
}

#[test]
fn where_nothing_is_synced_a_turn_writes_certifies_and_sends() {
    let (mut engine, slow, desk, inbox) =
        durable_with("durable-quick", 8, |component| Box::new(Here::new(component, None)));
    slow.write_at_once();
    is_quick(&mut engine, true);
    engine.turn(&inbox).expect("goes on");
    let (appended, syncs) = slow.0.get();
    assert!(appended > 0 && syncs == 0, "{appended} records, {syncs} syncs");
    assert_eq!((engine.blocked, engine.counters.attestations), (None, 1));
    assert_eq!(engine.counters.peer_dropped, 2, "the PREPARE, for two replicas to whom nobody connects");
    assert!(desk.take().is_none(), "no thread had a part in it");
}

#[test]
fn a_delayed_component_keeps_no_turn_waiting() {
    let late = |component| -> Box<dyn Component> {
        let component: Box<dyn Component> = Box::new(Here::new(component, None));
        Box::new(Delayed::new(component, TrustedDelay { call: Duration::from_millis(200), each: false }))
    };
    let (mut engine, slow, desk, inbox) = durable_with("durable-delayed", 8, late);
    slow.write_at_once();
    is_quick(&mut engine, true);
    let asked = Instant::now();
    engine.turn(&inbox).expect("goes on");
    assert_eq!((engine.blocked, engine.counters.attestations), (Some(Blocked::Attest), 1));
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    while engine.blocked.is_some() {
        assert_eq!(engine.counters.peer_dropped, 0, "its certificate is not there yet");
        runtime.block_on(desk.woken());
        engine.turn(&inbox).expect("goes on");
    }
    assert!(asked.elapsed() >= Duration::from_millis(200), "it was there too early");
    assert!(engine.counters.peer_dropped >= 2, "the PREPARE, for two replicas to whom nobody connects");
}

#[test]
fn a_frame_that_is_held_or_executed_is_not_checked_again() {
    let (mut engine, _, _, inbox) = durable("durable-again");
    let mut request = Bytes::new();
    inbox.take_clients(
        |_| None,
        |_, bytes| {
            request = bytes;
            false
        },
    );
    for _ in 0..3 {
        inbox.push(&inbox.lane(Party::Client(ClientId(1))), request.clone());
        engine.turn(&inbox).expect("goes on");
        assert_eq!((engine.counters.frames_verified, engine.counters.frames_refused), (1, 0));
    }
    assert_eq!(engine.counters.inputs, 3, "the machine hears of each");
}

#[test]
fn a_disk_that_failed_ends_the_replica_and_a_full_one_does_not() {
    let (mut engine, _, desk, inbox) = durable("durable-failed");
    engine.turn(&inbox).expect("goes on");
    desk.leave(Done::DiskFull("no space".to_string()));
    engine.turn(&inbox).expect("waits for space");
    assert!(engine.disk_full && engine.blocked == Some(Blocked::Sync));
    desk.leave(Done::DiskSpace);
    engine.turn(&inbox).expect("goes on");
    assert!(!engine.disk_full);
    desk.leave(Done::DiskFailed("input/output error".to_string()));
    assert!(matches!(engine.turn(&inbox), Err(Stopped::Disk(why)) if why.contains("input/output")));
}

#[test]
fn behind_a_disk_that_does_not_answer_only_so_many_bytes_wait() {
    const EACH: usize = 512 << 10;
    let (mut engine, slow, desk, inbox) =
        durable_with("durable-bytes", EACH, |component| Box::new(Here::new(component, None)));
    engine.turn(&inbox).expect("goes on");
    assert_eq!(engine.blocked, Some(Blocked::Sync));
    // Twice as much as may wait.
    let count = 2 * ASKED_BYTES / EACH;
    read(&inbox, count as u64, &Bytes::new());
    let mut turns = 0;
    while !engine.is_crowded() {
        engine.turn(&inbox).expect("goes on");
        assert!(engine.host.backlog_bytes() <= ASKED_BYTES + 2 * EACH, "turn {turns}");
        turns += 1;
        assert!(turns < 1_000, "{} bytes wait and it takes more", engine.host.backlog_bytes());
    }
    let waiting = engine.host.backlog_bytes();
    engine.turn(&inbox).expect("answers nothing");
    assert_eq!((engine.host.backlog_bytes(), answers(&engine)), (waiting, 0));

    // The disk answers, and every read has its answer.
    let mut synced = 1;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime");
    desk.leave(Done::Synced);
    while answers(&engine) < count as u64 {
        engine.turn(&inbox).expect("goes on");
        match engine.blocked {
            Some(Blocked::Sync) if slow.0.get().1 > synced => {
                synced = slow.0.get().1;
                desk.leave(Done::Synced);
            }
            Some(Blocked::Attest) => runtime.block_on(desk.woken()),
            _ => {}
        }
    }
    assert!(engine.host.backlog_bytes() < EACH);
}

#[test]
fn a_divergence_is_counted_and_shown_until_the_state_is_repaired() {
    let mut engine = replica("diverged", 0);
    engine.note(&Note::TransferDone { seq: Seq(64) });
    assert_eq!((engine.diverged, engine.counters.divergences), (None, 0), "an ordinary transfer is none");
    engine.note(&Note::Diverged { seq: Seq(128) });
    assert_eq!((engine.diverged, engine.counters.divergences), (Some(Seq(128)), 1));
    engine.note(&Note::TransferStarted { seq: Seq(192) });
    assert_eq!(engine.diverged, Some(Seq(128)));
    engine.note(&Note::TransferDone { seq: Seq(192) });
    assert_eq!((engine.diverged, engine.counters.divergences), (None, 1));
}

/// Takes turns, each when something was left on the desk, until one says that it is enough.
fn turns_until(
    engine: &mut Engine<MinBft, Executor<Null>>,
    desk: &Desk,
    inbox: &Inbox,
    mut enough: impl FnMut(&Engine<MinBft, Executor<Null>>) -> bool,
) -> Result<(), Stopped> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime");
    while !enough(engine) {
        let patience = Duration::from_secs(60);
        runtime
            .block_on(async { tokio::time::timeout(patience, desk.woken()).await })
            .expect("a thread beside the loop answers");
        engine.turn(inbox)?;
    }
    Ok(())
}

/// A component that finds no space for its counters at first.
struct Crowded(InProcess<VolatileStore>, usize);

impl Component for Crowded {}

impl TrustedComponent for Crowded {
    fn identity(&self) -> Identity {
        self.0.identity()
    }
    fn call(&mut self, calls: &[Call]) -> Vec<Answer> {
        match self.1.checked_sub(1) {
            Some(left) => {
                self.1 = left;
                vec![Answer::Refused(Refusal::NoSpace); calls.len()]
            }
            None => self.0.call(calls),
        }
    }
}

#[test]
fn a_component_without_space_is_asked_again_until_there_is_some() {
    let (mut engine, _, desk, inbox) =
        durable_with("durable-crowded", 8, |component| Box::new(Crowded(component, 2)));
    engine.turn(&inbox).expect("goes on");
    desk.leave(Done::Synced);
    turns_until(&mut engine, &desk, &inbox, |engine| engine.counters_full).expect("waits for space");
    assert_eq!((engine.blocked, engine.counters.peer_dropped), (Some(Blocked::Attest), 0), "not certified");
    turns_until(&mut engine, &desk, &inbox, |engine| !engine.counters_full).expect("goes on");
    turns_until(&mut engine, &desk, &inbox, |engine| engine.counters.peer_dropped >= 2).expect("goes on");
}

/// A component with a bug.
struct Buggy(Identity);

impl Component for Buggy {}

impl TrustedComponent for Buggy {
    fn identity(&self) -> Identity {
        self.0
    }
    fn call(&mut self, _: &[Call]) -> Vec<Answer> {
        panic!("a bug of a component, on purpose");
    }
}

#[test]
fn a_panic_while_the_component_is_asked_ends_the_replica() {
    let (mut engine, _, desk, inbox) =
        durable_with("durable-buggy", 8, |component| Box::new(Buggy(component.identity())));
    engine.turn(&inbox).expect("goes on");
    desk.leave(Done::Synced);
    let ended = turns_until(&mut engine, &desk, &inbox, |_| false);
    let why = ended.expect_err("nothing more can be certified");
    assert!(matches!(why, Stopped::Panicked("attest")));
    let said = RunError::from(why).to_string();
    assert!(said.contains("attest thread panicked") && said.contains("mend: "), "{said}");
}

/// Answers every call to its logs, and nothing else.
struct Empty(Identity);

impl Component for Empty {
    fn logs(&mut self, operations: &[Operation]) -> Logged {
        Ok(vec![LogAnswer::Done; operations.len()])
    }
}

impl TrustedComponent for Empty {
    fn identity(&self) -> Identity {
        self.0
    }

    fn call(&mut self, calls: &[Call]) -> Vec<Answer> {
        vec![Answer::Refused(Refusal::Halted); calls.len()]
    }
}

#[test]
fn where_nothing_is_bundled_each_operation_takes_the_delay_and_so_does_its_lookup() {
    let (log, slot, value) = (LogId(0), CounterValue(1), [1; 32]);
    let append = |nonce| Operation::Append { log, slot, value, nonce };
    let calls = [append(None), append(Some([2; 32])), Operation::End { log, nonce: [3; 32] }];
    for (each, least) in [(false, 20), (true, 80)] {
        let identity = Identity { group: [1; 16], replica: 0, epoch: Epoch(1) };
        let delay = TrustedDelay { call: Duration::from_millis(20), each };
        let mut late = Delayed::new(Box::new(Empty(identity)), delay);
        let asked = Instant::now();
        assert_eq!(late.logs(&calls).map(|answers| answers.len()), Ok(3));
        assert!(asked.elapsed() >= Duration::from_millis(least), "{each}: {:?}", asked.elapsed());
    }
}
