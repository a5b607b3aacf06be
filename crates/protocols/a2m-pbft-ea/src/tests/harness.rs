//! A small deterministic world: A2M-PBFT-EA replicas without hosts. Effects are carried out at once, in their order; what a
//! test does not want delivered it takes off the wire. The executor is a hash over what was executed.

use crate::message::{Body, Message, Record};
use crate::{A2mPbftEa, Config, Timer};
use bytes::Bytes;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use troth_auth::{Authentic, Evidence, Seal, Verified};
use troth_core::{
    Agreement, Cx, Done, Effect, Note, Ordered, Outcome, Reached, ReplyProof, Start, Ticket, To,
    VerifiedFrame,
};
use troth_trusted::a2m::{
    A2m, Answer, Attestation, Content, LOGS, LogId, Nonce, Operation, Slot, slot_nonce,
};
use troth_trusted::{Certifier, Epoch, Identity, MacKey, VolatileStore};
use troth_trusted_host::{
    AttestationVerifier, GroupVerifier, InProcessLogs, MemberKey, TrustedLogs, log_room,
};
use troth_types::{
    Batch, ClientId, Digest, FrameDraft, Group, GroupId, Hasher, ReplicaId, Seq, Signature, Time, View,
};

/// The time of day when a world begins.
pub(super) const WALL: u64 = 1_700_000_000_000_000;

/// A configuration with small intervals and the default times.
pub(super) const SMALL: Config = Config { interval: 4, window: 8, pipeline: 4, ..Config::DEFAULT };

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

/// A client's frame.
pub(super) fn frame(client: u64, number: u64) -> VerifiedFrame {
    let draft = FrameDraft {
        group: GroupId(*b"tests-of-a2m-ea-"),
        client: ClientId(client),
        number,
        events_seen: 0,
        operations: vec![Bytes::from_static(b"operation")],
    };
    Verified::made_here(Arc::new(draft.sign(Signature([1; 64]))))
}

/// A batch of these frames.
pub(super) fn batch(frames: &[&VerifiedFrame]) -> Batch {
    Batch { time: Time(WALL), frames: frames.iter().map(|frame| frame.digest()).collect() }
}

/// n = 2f+1.
pub(super) fn group(f: u16) -> Group {
    Group::hybrid(GroupId(*b"tests-of-a2m-ea-"), 2 * f + 1).expect("2f+1")
}

pub(super) fn key() -> MacKey {
    MacKey::new(&[9; 32])
}

fn identity(group: &Group, replica: ReplicaId) -> Identity {
    Identity { group: group.id().0, replica: replica.0, epoch: Epoch(1) }
}

/// The logs of a replica's component.
pub(super) type Logs = InProcessLogs<VolatileStore>;

pub(super) fn logs(group: &Group, replica: ReplicaId) -> Logs {
    let identity = identity(group, replica);
    InProcessLogs::new(A2m::start(identity, Certifier::Mac(key()), VolatileStore, log_room([400; LOGS])))
}

/// The same with room for just so many CHECKPOINTs.
pub(super) fn logs_of(group: &Group, replica: ReplicaId, checkpoints: usize) -> Logs {
    let mut room = [400; LOGS];
    room[usize::from(crate::place::CHECKPOINT.0)] = checkpoints;
    let identity = identity(group, replica);
    InProcessLogs::new(A2m::start(identity, Certifier::Mac(key()), VolatileStore, log_room(room)))
}

/// The same with room for a whole window and more.
pub(super) fn roomy(group: &Group, replica: ReplicaId) -> Logs {
    let identity = identity(group, replica);
    InProcessLogs::new(A2m::start(identity, Certifier::Mac(key()), VolatileStore, log_room([1 << 14; LOGS])))
}

/// Has a slot filled with a body's digest.
pub(super) fn attested(group: &Group, logs: &mut Logs, from: ReplicaId, body: Body) -> Message {
    let (log, slot) = crate::place::of(&body).expect("it has a slot");
    let digest = A2mPbftEa::digest(&body, group.id(), from);
    fill(logs, log, slot, digest.0)
        .map(|seal| A2mPbftEa::seal(body, digest, from, seal))
        .expect("the slot is free")
}

fn fill(logs: &mut Logs, log: LogId, slot: Slot, value: [u8; 32]) -> Option<Seal> {
    let nonce = Some(slot_nonce(slot));
    let answers = logs.call(&[Operation::Advance { log, slot, previous: [0; 32], value, nonce }]).ok()?;
    match answers.into_iter().next() {
        Some(Answer::Attested(attestation)) => Some(Seal::Slot(attestation)),
        _ => None,
    }
}

/// The same component as it was before it filled the slot of its last VIEWCHANGE.
pub(super) fn without_view_change(group: &Group, now: &Logs, replica: ReplicaId) -> Logs {
    let (mut now, mut before) = (now.clone(), logs(group, replica));
    for log in [crate::place::PREPARE, crate::place::COMMIT] {
        let mut slot = Slot::default();
        // Slot after slot: what it skipped leads to the next one that is filled.
        while let Some(next) = slot.next() {
            let answers =
                now.call(&[Operation::Lookup { log, slot: next, nonce: [0; 32] }]).expect("answered");
            let Some(Answer::Attested(attestation)) = answers.into_iter().next() else { break };
            let (at, value) = match attestation.claim.content {
                Content::Assigned { value, .. } => (next, value),
                Content::Skipped { end, value, .. } => (end, value),
                _ => break,
            };
            fill(&mut before, log, at, value);
            slot = at;
        }
    }
    before
}

/// Fills the slot of an own message once more.
pub(super) fn fill_again(logs: &mut Logs, group: &Group, message: &crate::message::Attested) {
    let (log, slot) = crate::place::of(&message.body).expect("it has a slot");
    let digest = A2mPbftEa::digest(&message.body, group.id(), message.from);
    fill(logs, log, slot, digest.0).expect("the slot is empty");
}

/// What a test's hosts sign with: nobody forges here.
pub(super) fn signature(from: ReplicaId) -> Signature {
    Signature([from.0 as u8; 64])
}

/// Who checks the components of a group.
pub(super) fn verifier(group: &Group) -> GroupVerifier {
    let members = group.all().map(|replica| (identity(group, replica), MemberKey::Mac(key().verifier())));
    GroupVerifier::new(members).expect("each component is named once")
}

/// Has a slot of the history log filled, whatever was executed.
pub(super) fn history_of(logs: &mut Logs, seq: Seq, value: u8) -> Attestation {
    let slot = crate::place::flattened(View(0), seq);
    match fill(logs, crate::place::HISTORY, slot, [value; 32]) {
        Some(Seal::Slot(attestation)) => attestation,
        _ => panic!("the slot is free"),
    }
}

/// Checks what a message claims, as its receiver would.
pub(super) fn authentic(group: &Group, message: &Message) -> bool {
    let verifier = verifier(group);
    let mut claims = Vec::new();
    message.claims(group.id(), &mut claims).is_ok()
        && claims.iter().all(|claim| {
            let look = |looked: &troth_auth::Looked<'_>| {
                verifier.lookup(claim.by.0, looked.attestation, looked.log, looked.slot, &looked.nonce)
            };
            match &claim.evidence {
                Evidence::Assigned(looked) => {
                    matches!(look(looked), Some(Content::Assigned { value, .. }) if value == claim.digest.0)
                }
                Evidence::Skipped(looked) => {
                    matches!(look(looked), Some(Content::Skipped { value, .. }) if value == claim.digest.0)
                }
                Evidence::Signature(given) => **given == signature(claim.by),
                _ => false,
            }
        })
}

/// A replica and what became of its effects.
pub(super) struct Node {
    pub(super) logs: Logs,
    /// Own messages, durable with their attestations.
    pub(super) own: Vec<Message>,
    /// Why it stopped.
    pub(super) halted: Option<&'static str>,
    pub(super) replica: A2mPbftEa,
    pub(super) executed: Vec<Ordered>,
    /// Where a transferred state begins.
    base: Seq,
    state: Digest,
    pub(super) deadline: Option<Time>,
    pub(super) timers: BTreeMap<Timer, Time>,
    pub(super) records: Vec<Record>,
    /// What was persisted, remembered and sent, in order, for tests of the order.
    pub(super) trail: Vec<&'static str>,
    pub(super) notes: Vec<Note>,
    pub(super) frames_asked: Vec<(To, Vec<Digest>)>,
    pub(super) transfers: Vec<(Seq, Digest, Vec<ReplicaId>)>,
    /// Frames that it showed the primary.
    pub(super) shown: Vec<VerifiedFrame>,
    pub(super) repairs: Vec<(Seq, Digest)>,
    /// The proofs with which replies went out.
    pub(super) released: BTreeMap<Seq, Arc<ReplyProof>>,
    /// The ends of its history that were attested for reads.
    pub(super) ends: Vec<Attestation>,
    /// What its component was asked of the history and has not answered, while it is slow with that.
    pub(super) asked: VecDeque<(Ticket, Vec<Operation>)>,
    pub(super) slow_history: bool,
    /// It hears and does nothing.
    pub(super) down: bool,
}

/// A message on its way.
#[derive(Clone, Debug)]
pub(super) struct Flight {
    pub(super) from: ReplicaId,
    pub(super) to: ReplicaId,
    pub(super) message: Message,
}

/// Replicas and the wire between them.
pub(super) struct Net {
    pub(super) group: Group,
    pub(super) config: Config,
    pub(super) nodes: Vec<Node>,
    pub(super) wire: VecDeque<Flight>,
    /// Frames on their way from one replica to another.
    shown: Vec<(ReplicaId, Vec<VerifiedFrame>)>,
    pub(super) now: u64,
    nonces: u64,
}

impl Net {
    /// n = 2f+1 fresh replicas.
    pub(super) fn new(f: u16) -> Self {
        Self::with(f, SMALL)
    }

    pub(super) fn with(f: u16, config: Config) -> Self {
        let group = group(f);
        let node = |me| Node::new(A2mPbftEa::new(me, group, config), logs(&group, me));
        let nodes = group.all().map(node).collect();
        let mut net =
            Self { group, config, nodes, wire: VecDeque::new(), shown: Vec::new(), now: 1_000, nonces: 0 };
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

    /// One event at a replica, and all that follows from it there.
    pub(super) fn step(
        &mut self,
        replica: ReplicaId,
        event: impl FnOnce(&mut A2mPbftEa, &mut Cx<'_, A2mPbftEa>),
    ) {
        let index = usize::from(replica.0);
        let mut effects = Vec::new();
        let (now, wall) = (Time(self.now), Time(WALL + self.now));
        event(&mut self.nodes[index].replica, &mut Cx::new(now, wall, replica, &self.group, &mut effects));
        let mut queue = VecDeque::from(effects);
        while let Some(effect) = queue.pop_front() {
            let mut more = Vec::new();
            let node = &mut self.nodes[index];
            let mut cx = Cx::new(now, wall, replica, &self.group, &mut more);
            match effect {
                Effect::DeliverTentatively { .. } | Effect::Commit { .. } | Effect::Rollback { .. } => {
                    unreachable!("nothing is executed before its place is final")
                }
                Effect::Send { to, message } => {
                    node.trail.push("send");
                    self.wire.extend(flights(&self.group, replica, to, &message));
                }
                Effect::Release { seq, proof } => {
                    node.trail.push("release");
                    assert!(node.released.insert(seq, proof).is_none(), "released once");
                }
                Effect::Broadcast(_) | Effect::BroadcastSigned(_) | Effect::Certify { .. } => {
                    unreachable!("what it sends to all is attested or signed")
                }
                Effect::CertifyInLog { log, slot, body, to } => {
                    node.trail.push("attest");
                    let digest = A2mPbftEa::digest(&body, self.group.id(), replica);
                    let seal =
                        fill(&mut node.logs, log, slot, digest.0).expect("a correct replica's slot is free");
                    let message = A2mPbftEa::seal(body, digest, replica, seal);
                    node.own.push(message.clone());
                    self.wire.extend(flights(&self.group, replica, to, &message));
                    node.replica.on_message(&mut cx, replica, Verified::made_here(message));
                }
                Effect::Trusted { ticket, operations }
                    if node.slow_history && operations[0].log() == crate::place::HISTORY =>
                {
                    node.asked.push_back((ticket, operations));
                }
                Effect::Trusted { ticket, operations } => {
                    let appends = |operation: &Operation| matches!(operation, Operation::Append { .. });
                    node.trail.push(if operations.iter().any(appends) { "append" } else { "trusted" });
                    let answers = node.logs.call(&operations).expect("a correct replica is not refused");
                    node.replica.on_trusted(&mut cx, ticket, answers);
                }
                Effect::Draw(ticket) => {
                    self.nonces += 1;
                    let mut nonce: Nonce = [0; 32];
                    nonce[..8].copy_from_slice(&self.nonces.to_le_bytes());
                    node.replica.on_drawn(&mut cx, ticket, nonce);
                }
                Effect::Sign { body, to } => {
                    node.trail.push("sign");
                    let digest = A2mPbftEa::digest(&body, self.group.id(), replica);
                    let message = A2mPbftEa::seal(body, digest, replica, Seal::Signature(signature(replica)));
                    self.wire.extend(flights(&self.group, replica, to, &message));
                    node.replica.on_message(&mut cx, replica, Verified::made_here(message));
                }
                Effect::EndAttested(end) => node.ends.push(end),
                Effect::Halt(why) => {
                    node.halted = Some(why);
                    node.down = true;
                }
                Effect::SetTimer { timer, at } => drop(node.timers.insert(timer, at)),
                Effect::CancelTimer(timer) => drop(node.timers.remove(&timer)),
                Effect::Persist(record) => {
                    node.trail.push("persist");
                    node.records.push(record);
                }
                Effect::Remember(record) => node.records.push(record),
                Effect::FetchFrames { to, digests } => node.frames_asked.push((to, digests)),
                Effect::ShowFrames { to: To::One(to), frames } => {
                    node.shown.extend_from_slice(&frames);
                    self.shown.push((to, frames));
                }
                Effect::ShowFrames { to: To::Others, .. } => unreachable!("frames are shown to the primary"),
                Effect::Deliver(ordered) => {
                    let (reached, outcome) = node.execute(ordered);
                    node.replica.on_executed(&mut cx, reached, &outcome);
                }
                Effect::Checkpoint => {
                    let (seq, state) = (node.executed_up_to(), node.state);
                    node.replica.on_checkpoint(&mut cx, seq, state);
                }
                Effect::Stable { .. } | Effect::Compact(_) => {}
                Effect::FetchState { seq, digest, sources } => node.transfers.push((seq, digest, sources)),
                Effect::RepairState { seq, digest, .. } => node.repairs.push((seq, digest)),
                Effect::Note(note) => node.notes.push(note),
            }
            queue.extend(more);
        }
        self.nodes[index].replica.invariants();
    }

    /// The component of a replica answers what it was asked of the history.
    pub(super) fn hurry(&mut self, replica: u16) {
        self.node_mut(replica).slow_history = false;
        while let Some((ticket, operations)) = self.node_mut(replica).asked.pop_front() {
            let answers = self.node_mut(replica).logs.call(&operations).expect("it is not refused");
            self.step(r(replica), |replica, cx| replica.on_trusted(cx, ticket, answers));
        }
    }

    /// Asks a replica for the end of its history, for reads of this state; whether it has it attested.
    pub(super) fn ask_end(&mut self, replica: u16, executed: u64, nonce: Nonce) -> bool {
        let mut asked = false;
        self.step(r(replica), |replica, cx| asked = replica.attest_end(cx, Seq(executed), nonce));
        asked
    }

    /// Gives a frame to these replicas, as its client would.
    pub(super) fn request(&mut self, frame: &VerifiedFrame, to: impl IntoIterator<Item = u16>) {
        for replica in to {
            self.step(r(replica), |replica, cx| replica.on_requests(cx, vec![frame.clone()]));
        }
    }

    /// A message reaches a replica.
    pub(super) fn tell(&mut self, from: u16, to: u16, message: Message) {
        if authentic(&self.group, &message) {
            self.step(r(to), |replica, cx| replica.on_message(cx, r(from), Verified::made_here(message)));
        }
    }

    /// Delivers what is on the wire, and what follows, as far as `passes`; the rest is lost.
    pub(super) fn run_where(&mut self, passes: impl Fn(&Flight) -> bool) {
        for _ in 0..100_000 {
            if let Some((to, frames)) = self.shown.pop() {
                if !self.nodes[usize::from(to.0)].down {
                    self.step(to, |replica, cx| replica.on_requests(cx, frames));
                }
                continue;
            }
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

    /// A timer of a replica is due.
    pub(super) fn fire(&mut self, replica: u16, timer: Timer) {
        let at = self.node_mut(replica).timers.remove(&timer).expect("the timer is set");
        self.now = self.now.max(at.0);
        self.step(r(replica), |replica, cx| replica.on_timer(cx, timer));
    }

    /// Orders a frame everywhere.
    pub(super) fn order(&mut self, frame: &VerifiedFrame) {
        let all: Vec<u16> = self.group.all().map(|replica| replica.0).collect();
        self.request(frame, all);
        self.run();
    }

    /// The state of this number and digest is in force at a replica.
    pub(super) fn install(&mut self, replica: u16, seq: Seq, digest: Digest) {
        let node = self.node_mut(replica);
        node.state = digest;
        node.base = seq;
        node.executed.clear();
        let reached = Reached { seq, time: Time(WALL), deadline: None };
        self.step(r(replica), |replica, cx| replica.on_installed(cx, reached, digest, &|_, _| false));
    }

    /// A replica starts again with nothing but these records.
    pub(super) fn restart(&mut self, replica: u16) {
        let old = self.node(replica);
        let (records, own, logs) = (old.records.clone(), old.own.clone(), old.logs.clone());
        self.restart_from(replica, records, own, logs);
    }

    /// A replica starts again with just these records, own messages and logs.
    pub(super) fn restart_from(&mut self, replica: u16, records: Vec<Record>, own: Vec<Message>, logs: Logs) {
        let mut node = Node::new(A2mPbftEa::new(r(replica), self.group, self.config), logs);
        node.records.clone_from(&records);
        node.own.clone_from(&own);
        self.nodes[usize::from(replica)] = node;
        let mut own = own;
        own.sort_by_key(<A2mPbftEa as Agreement>::slot);
        let (snapshot, reached) = ((Seq(0), Digest::ZERO), Reached::default());
        let start = Start::Recovered { own, records, snapshot, reached };
        self.step(r(replica), |replica, cx| replica.on_start(cx, start));
    }

    /// These replicas' requests time out: they want the next view.
    pub(super) fn suspect(&mut self, replicas: impl IntoIterator<Item = u16>) {
        for replica in replicas {
            self.fire(replica, Timer::Request);
        }
    }

    /// Everybody compares notes, and hears what comes of it.
    pub(super) fn compare_notes(&mut self) {
        for replica in self.group.all() {
            if !self.node(replica.0).down {
                self.now += self.config.status_interval;
                self.fire(replica.0, Timer::Status);
            }
        }
        self.run();
    }

    /// Messages of a kind on the wire, from this replica.
    pub(super) fn sent(&self, from: u16, is: impl Fn(&Message) -> bool) -> usize {
        self.wire.iter().filter(|flight| flight.from == r(from) && is(&flight.message)).count()
    }
}

impl Node {
    fn new(replica: A2mPbftEa, logs: Logs) -> Self {
        Self {
            logs,
            own: Vec::new(),
            halted: None,
            replica,
            executed: Vec::new(),
            base: Seq(0),
            state: Digest::ZERO,
            deadline: None,
            timers: BTreeMap::new(),
            records: Vec::new(),
            trail: Vec::new(),
            notes: Vec::new(),
            frames_asked: Vec::new(),
            transfers: Vec::new(),
            shown: Vec::new(),
            repairs: Vec::new(),
            released: BTreeMap::new(),
            ends: Vec::new(),
            asked: VecDeque::new(),
            slow_history: false,
            down: false,
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
        let is_new = |frame: &VerifiedFrame| !self.executed.iter().any(|other| other.frames.contains(frame));
        let done = |frame: &VerifiedFrame| Done {
            client: frame.client(),
            number: frame.number(),
            now: is_new(frame),
        };
        let done = ordered.frames.iter().map(done).collect();
        let reached = Reached { seq: ordered.seq, time: ordered.time, deadline: self.deadline };
        self.executed.push(ordered);
        (reached, Outcome { done, ..Outcome::default() })
    }

    /// Its state is not what was executed.
    pub(super) fn spoil(&mut self) {
        self.state = Digest([7; 32]);
    }

    /// The digests of the frames that were executed, in order.
    pub(super) fn history(&self) -> Vec<Digest> {
        self.executed.iter().flat_map(|ordered| ordered.frames.iter().map(|frame| frame.digest())).collect()
    }

    pub(super) fn ignored(&self) -> usize {
        self.notes.iter().filter(|note| matches!(note, Note::Ignored { .. })).count()
    }

    pub(super) fn accused(&self) -> Vec<ReplicaId> {
        self.replica.status().accused
    }

    pub(super) fn view(&self) -> View {
        self.replica.view()
    }
}

fn flights(group: &Group, from: ReplicaId, to: To, message: &Message) -> Vec<Flight> {
    let receivers: Vec<ReplicaId> = match to {
        To::One(one) => vec![one],
        To::Others => group.all().filter(|other| *other != from).collect(),
    };
    receivers.into_iter().map(|to| Flight { from, to, message: message.clone() }).collect()
}
