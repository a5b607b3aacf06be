//! A small deterministic world: A2M-PBFT-E replicas without hosts, each with the logs of a component in this process.
//! Effects are carried out at once, in their order; the component answers at once unless it is stalled.

use crate::{A2mPbftE, Body, Message, Record, Timer};
use bytes::Bytes;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use troth_auth::{Seal, Verified};
use troth_core::{
    Agreement, Cx, Done, Effect, Note, Ordered, Outcome, Reached, ReplyProof, Start, Ticket, To,
    VerifiedFrame,
};
use troth_pbft::{Config, HistoryEntry};
use troth_trusted::a2m::{A2m, Attestation, LOGS, LogRefusal, Nonce, Operation};
use troth_trusted::{Certifier, Epoch, Identity, MacKey, SigningKey, VolatileStore};
use troth_trusted_host::{GroupVerifier, InProcessLogs, MemberKey, TrustedLogs, log_room};
use troth_types::{
    Change, ClientEntry, ClientId, ComponentKey, Configuration, Digest, FrameDraft, Group, GroupId, Hasher,
    HostKeys, Member, Renewed, ReplicaId, Seq, Signature, Time,
};

pub(super) const WALL: u64 = 1_700_000_000_000_000;
pub(super) const SMALL: Config = Config { interval: 4, window: 8, pipeline: 4, ..Config::DEFAULT };
const GROUP: GroupId = GroupId(*b"tests-of-a2m-e--");

/// Demands, when the test ends, that it passed the mark of this rule.
pub(super) struct Covers(&'static str, u64);

impl Covers {
    pub(super) fn new(label: &'static str) -> Self {
        Self(label, troth_core::marks::hits(label))
    }
}

impl Drop for Covers {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            assert!(troth_core::marks::hits(self.0) > self.1, "this test never came to {}", self.0);
        }
    }
}

/// The test is about this rule: at its end the rule's mark must have been passed.
macro_rules! covers {
    ($label:literal) => {
        let _covers = $crate::tests::harness::Covers::new($label);
    };
}
pub(super) use covers;

pub(super) fn r(number: u16) -> ReplicaId {
    ReplicaId(number)
}

pub(super) fn group() -> Group {
    Group::general(GROUP, 4).expect("3f+1")
}

pub(super) fn frame(client: u64, number: u64) -> VerifiedFrame {
    let draft = FrameDraft {
        group: GROUP,
        client: ClientId(client),
        number,
        events_seen: 0,
        operations: vec![Bytes::from_static(b"operation")],
    };
    Verified::made_here(Arc::new(draft.sign(Signature([1; 64]))))
}

fn identity(replica: u16, epoch: u64) -> Identity {
    Identity { group: GROUP.0, replica, epoch: Epoch(epoch) }
}

/// The key of the group's components.
pub(super) fn mac_key() -> MacKey {
    MacKey::new(&[3; 32])
}

/// Who checks the components of the group.
pub(super) fn verifier() -> GroupVerifier {
    let key = mac_key();
    let members = (0..4).map(|replica| (identity(replica, 1), MemberKey::Mac(key.verifier())));
    GroupVerifier::new(members).expect("each component once")
}

pub(super) fn logs(replica: u16) -> InProcessLogs<VolatileStore> {
    logs_of(replica, 1)
}

/// The empty logs of a component of this epoch.
pub(super) fn logs_of(replica: u16, epoch: u64) -> InProcessLogs<VolatileStore> {
    let certifier = Certifier::Mac(mac_key());
    let mut room = [0; LOGS];
    room[0] = A2mPbftE::room(&SMALL);
    InProcessLogs::new(A2m::start(identity(replica, epoch), certifier, VolatileStore, log_room(room)))
}

/// The empty logs of a component that took the place of another and has a key of its own, and how it is told to clients.
pub(super) fn renewed_logs(replica: u16, epoch: u64) -> (InProcessLogs<VolatileStore>, Renewed) {
    let key = SigningKey::new(&[5; 32]);
    let component = ComponentKey::Ed25519(key.verifier().to_bytes());
    let mut room = [0; LOGS];
    room[0] = A2mPbftE::room(&SMALL);
    let started =
        A2m::start(identity(replica, epoch), Certifier::Signature(key), VolatileStore, log_room(room));
    (InProcessLogs::new(started), Renewed { replica: r(replica), epoch, component })
}

pub(super) struct Node {
    pub(super) replica: A2mPbftE,
    pub(super) logs: InProcessLogs<VolatileStore>,
    pub(super) executed: Vec<Ordered>,
    base: Seq,
    pub(super) state: Digest,
    pub(super) timers: BTreeMap<Timer, Time>,
    pub(super) records: Vec<Record>,
    /// What was persisted, asked, signed and released, in order.
    pub(super) trail: Vec<String>,
    pub(super) released: BTreeMap<Seq, Arc<ReplyProof>>,
    /// The ends that were attested for reads.
    pub(super) ends: Vec<Attestation>,
    pub(super) notes: Vec<Note>,
    pub(super) halted: Option<&'static str>,
    pub(super) transfers: Vec<(Seq, Digest)>,
    /// Stable states that are to take the place of its own.
    pub(super) repairs: Vec<(Seq, Digest)>,
    /// Its own states have no digests yet.
    pub(super) hashes_late: bool,
    /// Frames that it showed the primary.
    pub(super) shown: Vec<VerifiedFrame>,
    /// Questions that the component has not been asked, while it is stalled.
    pub(super) asked: VecDeque<(Ticket, Vec<Operation>)>,
    pub(super) stalled: bool,
    pub(super) down: bool,
}

#[derive(Clone, Debug)]
pub(super) struct Flight {
    pub(super) from: ReplicaId,
    pub(super) to: ReplicaId,
    pub(super) message: Message,
}

pub(super) struct Net {
    pub(super) group: Group,
    pub(super) nodes: Vec<Node>,
    pub(super) wire: VecDeque<Flight>,
    pub(super) now: u64,
}

impl Net {
    pub(super) fn new() -> Self {
        let group = group();
        let nodes = group.all().map(|me| Node::new(me, logs(me.0))).collect();
        let mut net = Self { group, nodes, wire: VecDeque::new(), now: 1_000 };
        for replica in group.all() {
            net.step(replica, |replica, cx| replica.on_start(cx, Start::Fresh));
        }
        net
    }

    pub(super) fn node(&self, replica: u16) -> &Node {
        &self.nodes[usize::from(replica)]
    }

    pub(super) fn node_mut(&mut self, replica: u16) -> &mut Node {
        &mut self.nodes[usize::from(replica)]
    }

    pub(super) fn step(&mut self, me: ReplicaId, event: impl FnOnce(&mut A2mPbftE, &mut Cx<'_, A2mPbftE>)) {
        let index = usize::from(me.0);
        let mut effects = Vec::new();
        let (now, wall) = (Time(self.now), Time(WALL + self.now));
        event(&mut self.nodes[index].replica, &mut Cx::new(now, wall, me, &self.group, &mut effects));
        let mut queue = VecDeque::from(effects);
        while let Some(effect) = queue.pop_front() {
            let mut more = Vec::new();
            let node = &mut self.nodes[index];
            let mut cx = Cx::new(now, wall, me, &self.group, &mut more);
            match effect {
                Effect::Send { to, message } => self.wire.extend(flights(&self.group, me, to, &message)),
                Effect::Broadcast(message) => {
                    self.wire.extend(flights(&self.group, me, To::Others, &message));
                    self.wire.push_back(Flight { from: me, to: me, message });
                }
                Effect::Sign { body, to } => {
                    node.trail.push(format!("sign {}", body.kind()));
                    let message = sealed(me, body);
                    self.wire.extend(flights(&self.group, me, to, &message));
                    node.replica.on_message(&mut cx, me, Verified::made_here(message));
                }
                Effect::Trusted { ticket, operations } => {
                    node.trail.push("ask".to_owned());
                    node.asked.push_back((ticket, operations));
                }
                Effect::Release { seq, proof } => {
                    node.trail.push(format!("release {}", seq.0));
                    assert!(node.released.insert(seq, proof).is_none(), "released once");
                }
                Effect::EndAttested(end) => node.ends.push(end),
                Effect::Halt(why) => node.halted = Some(why),
                Effect::DeliverTentatively { .. } | Effect::Commit { .. } | Effect::Rollback { .. } => {
                    unreachable!("nothing is executed before its place is final")
                }
                Effect::Certify { .. } | Effect::CertifyInLog { .. } | Effect::Draw(_) => {
                    unreachable!("nothing is certified or drawn")
                }
                Effect::BroadcastSigned(_) => {
                    unreachable!("the links vouch for the three phases")
                }
                Effect::SetTimer { timer, at } => drop(node.timers.insert(timer, at)),
                Effect::CancelTimer(timer) => drop(node.timers.remove(&timer)),
                Effect::Persist(record) => {
                    if let Record::Executed(seq, _) = &record {
                        node.trail.push(format!("executed {}", seq.0));
                    }
                    node.records.push(record);
                }
                Effect::Remember(record) => node.records.push(record),
                Effect::FetchFrames { .. } => {}
                Effect::ShowFrames { frames, .. } => node.shown.extend(frames),
                Effect::Deliver(ordered) => {
                    let (reached, outcome) = node.execute(ordered);
                    node.replica.on_executed(&mut cx, reached, &outcome);
                }
                Effect::Checkpoint if node.hashes_late => {}
                Effect::Checkpoint => {
                    let (seq, state) = (node.executed_up_to(), node.state);
                    node.replica.on_checkpoint(&mut cx, seq, state);
                }
                Effect::Stable { .. } | Effect::Compact(_) => {}
                Effect::RepairState { seq, digest, .. } => node.repairs.push((seq, digest)),
                Effect::FetchState { seq, digest, .. } => node.transfers.push((seq, digest)),
                Effect::Note(note) => node.notes.push(note),
            }
            queue.extend(more);
            if queue.is_empty() && !self.nodes[index].stalled {
                let mut more = Vec::new();
                self.nodes[index].answer(&mut Cx::new(now, wall, me, &self.group, &mut more));
                queue.extend(more);
            }
        }
        self.nodes[index].replica.invariants();
    }

    /// The component of a replica answers all that it was asked.
    pub(super) fn unstall(&mut self, replica: u16) {
        self.node_mut(replica).stalled = false;
        self.step(r(replica), |_, cx| cx.note(Note::TransferStarted { seq: Seq(0) }));
    }

    pub(super) fn tell(&mut self, from: u16, to: u16, message: Message) {
        self.step(r(to), |replica, cx| replica.on_message(cx, r(from), Verified::made_here(message)));
    }

    pub(super) fn run_where(&mut self, passes: impl Fn(&Flight) -> bool) {
        for _ in 0..100_000 {
            let Some(flight) = self.wire.pop_front() else { return };
            if passes(&flight) && !self.nodes[usize::from(flight.to.0)].down {
                self.tell(flight.from.0, flight.to.0, flight.message);
            }
        }
        panic!("the messages never end");
    }

    pub(super) fn run(&mut self) {
        self.run_where(|_| true);
    }

    pub(super) fn fire(&mut self, replica: u16, timer: Timer) {
        let at = self.node_mut(replica).timers.remove(&timer).expect("the timer is set");
        self.now = self.now.max(at.0);
        self.step(r(replica), |replica, cx| replica.on_timer(cx, timer));
    }

    /// Asks a replica for the end of its history, for reads of this state; whether it has it attested.
    pub(super) fn ask_end(&mut self, replica: u16, executed: u64, nonce: Nonce) -> bool {
        let mut asked = false;
        self.step(r(replica), |replica, cx| asked = replica.attest_end(cx, Seq(executed), nonce));
        asked
    }

    /// Orders a frame at all that are up.
    pub(super) fn order(&mut self, frame: &VerifiedFrame) {
        for replica in self.group.all() {
            if !self.nodes[usize::from(replica.0)].down {
                self.step(replica, |replica, cx| replica.on_requests(cx, vec![frame.clone()]));
            }
        }
        self.run();
    }

    pub(super) fn order_many(&mut self, numbers: core::ops::RangeInclusive<u64>) {
        numbers.for_each(|number| self.order(&frame(1, number)));
    }

    /// What another replica's state at its last batch is becomes this one's.
    pub(super) fn install(&mut self, replica: u16, from: u16) {
        let (seq, state) = (self.node(from).executed_up_to(), self.node(from).state);
        let node = self.node_mut(replica);
        (node.base, node.state) = (seq, state);
        node.executed.clear();
        let reached = Reached { seq, time: Time(WALL), deadline: None };
        self.step(r(replica), |replica, cx| replica.on_installed(cx, reached, state, &|_, _| false));
    }

    /// A replica starts again with these records and its component.
    pub(super) fn restart(&mut self, replica: u16, records: Vec<Record>) {
        let logs = std::mem::replace(&mut self.node_mut(replica).logs, logs(replica));
        self.start_again(replica, records, Node::new(r(replica), logs));
    }

    /// A replica starts again with its records, its component and a configuration that admits these components.
    pub(super) fn restart_knowing(&mut self, replica: u16, admitted: &[(u16, u64, u64)]) {
        let records = self.node(replica).records.clone();
        let logs = std::mem::replace(&mut self.node_mut(replica).logs, logs(replica));
        let mut node = Node::new(r(replica), logs);
        let known = Arc::new(configuration(admitted));
        let mut effects = Vec::new();
        node.replica.on_configured(&mut cx_of(&self.group, r(replica), &mut effects), &known);
        let promises = |effect: &Effect<A2mPbftE>| {
            matches!(
                effect,
                Effect::Persist(_) | Effect::Broadcast(_) | Effect::Send { .. } | Effect::Sign { .. }
            )
        };
        assert!(!effects.iter().any(promises), "before it knows what it promised: {effects:?}");
        self.start_again(replica, records, node);
    }

    /// A replica starts again from its records with the empty logs of a component of this epoch. The group knows the first
    /// epoch only.
    pub(super) fn renew(&mut self, replica: u16, epoch: u64) {
        let records = self.node(replica).records.clone();
        let mut node = Node::new(r(replica), logs_of(replica, epoch));
        node.replica = node.replica.with_epoch(epoch);
        let known = Arc::new(configuration(&[]));
        node.replica.on_configured(&mut cx_of(&self.group, r(replica), &mut Vec::new()), &known);
        self.start_again(replica, records, node);
    }

    /// Everybody has executed the batches that admit these components.
    pub(super) fn admit(&mut self, admitted: &[(u16, u64, u64)]) {
        let known = Arc::new(configuration(admitted));
        for replica in self.group.all() {
            self.step(replica, |replica, cx| replica.on_configured(cx, &known));
        }
    }

    /// Everybody knows of these clients, and by which keys their connections are theirs.
    pub(super) fn configure_clients(&mut self, clients: &[(ClientId, [u8; 32])]) {
        let entry = |link: &[u8; 32]| ClientEntry { key: [0; 32], link: *link, removed: false };
        let clients = clients.iter().map(|(client, link)| (*client, entry(link))).collect();
        let known = Arc::new(Configuration::new(configuration(&[]).members().to_vec(), clients));
        for replica in self.group.all() {
            self.step(replica, |replica, cx| replica.on_configured(cx, &known));
        }
    }

    fn start_again(&mut self, replica: u16, records: Vec<Record>, mut node: Node) {
        node.records.clone_from(&records);
        self.nodes[usize::from(replica)] = node;
        let start = Start::Recovered {
            own: Vec::new(),
            records,
            snapshot: (Seq(0), Digest::ZERO),
            reached: Reached::default(),
        };
        self.step(r(replica), |replica, cx| replica.on_start(cx, start));
    }

    pub(super) fn signed(&self, from: u16, body: Body) -> Message {
        sealed(r(from), body)
    }
}

/// The group's configuration with components that were admitted: replica, epoch, batch.
pub(super) fn configuration(admitted: &[(u16, u64, u64)]) -> Configuration {
    let members = (0..4).map(|_| Member::new(1, ComponentKey::Group, HostKeys::default())).collect();
    let mut configuration = Configuration::new(members, BTreeMap::new());
    for (replica, epoch, at) in admitted {
        let (replica, component) = (r(*replica), ComponentKey::Group);
        let change = Change::Admit { replica, epoch: *epoch, component, host: None };
        configuration.apply(&change, Seq(*at), 0, 1).expect("it may be admitted");
    }
    configuration
}

pub(super) fn cx_of<'a>(
    group: &'a Group,
    me: ReplicaId,
    effects: &'a mut Vec<Effect<A2mPbftE>>,
) -> Cx<'a, A2mPbftE> {
    Cx::new(Time(1_000), Time(WALL), me, group, effects)
}

impl Node {
    fn new(me: ReplicaId, logs: InProcessLogs<VolatileStore>) -> Self {
        Self {
            replica: A2mPbftE::new(me, group(), SMALL),
            logs,
            executed: Vec::new(),
            base: Seq(0),
            state: Digest::ZERO,
            timers: BTreeMap::new(),
            records: Vec::new(),
            trail: Vec::new(),
            released: BTreeMap::new(),
            ends: Vec::new(),
            notes: Vec::new(),
            halted: None,
            transfers: Vec::new(),
            repairs: Vec::new(),
            hashes_late: false,
            shown: Vec::new(),
            asked: VecDeque::new(),
            stalled: false,
            down: false,
        }
    }

    /// Asks the component the first question that waits.
    fn answer(&mut self, cx: &mut Cx<'_, A2mPbftE>) {
        if let Some((ticket, operations)) = self.asked.pop_front() {
            let answers = self
                .logs
                .call(&operations)
                .unwrap_or_else(|why: LogRefusal| panic!("the component refuses {operations:?}: {why:?}"));
            self.replica.on_trusted(cx, ticket, answers);
            // One who has more to be asked comes back here.
            cx.note(Note::TransferStarted { seq: Seq(0) });
        }
    }

    pub(super) fn executed_up_to(&self) -> Seq {
        self.executed.last().map_or(self.base, |ordered| ordered.seq)
    }

    fn execute(&mut self, ordered: Ordered) -> (Reached, Outcome) {
        assert_eq!(ordered.seq, self.executed_up_to().next(), "execution goes in order");
        let mut state = Hasher::new("test/state");
        state.digest(&self.state).number(ordered.seq.0);
        for frame in &ordered.frames {
            state.digest(&frame.digest());
        }
        self.state = state.finish();
        let done = |frame: &VerifiedFrame| Done { client: frame.client(), number: frame.number(), now: true };
        let done = ordered.frames.iter().map(done).collect();
        let reached = Reached { seq: ordered.seq, time: ordered.time, deadline: None };
        self.executed.push(ordered);
        (reached, Outcome { done, ..Outcome::default() })
    }

    /// What its history log holds at a number, as it knows.
    pub(super) fn entry(&self, seq: u64) -> Option<HistoryEntry> {
        let held = self.replica.history().held(Seq(seq))?;
        Some(HistoryEntry { value: held.value, digest: held.digest })
    }
}

fn flights(group: &Group, from: ReplicaId, to: To, message: &Message) -> Vec<Flight> {
    let receivers: Vec<ReplicaId> = match to {
        To::One(one) => vec![one],
        To::Others => group.all().filter(|other| *other != from).collect(),
    };
    receivers.into_iter().map(|to| Flight { from, to, message: message.clone() }).collect()
}

fn sealed(from: ReplicaId, body: Body) -> Message {
    let digest = A2mPbftE::digest(&body, GROUP, from);
    A2mPbftE::seal(body, digest, from, Seal::Signature(Signature([from.0 as u8; 64])))
}
