//! A small deterministic world: PBFT replicas without hosts. Effects are carried out at once, in their order; what a
//! test does not want delivered it takes off the wire. The executor is a hash over what was executed.

use crate::message::{Body, Message, Record};
use crate::{Config, Pbft, Timer};
use bytes::Bytes;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use troth_auth::{Seal, Verified};
use troth_core::{Agreement, Cx, Done, Effect, Note, Ordered, Outcome, Reached, Start, To, VerifiedFrame};
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
        group: GroupId(*b"tests-of-pbft---"),
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

/// A replica and what became of its effects.
pub(super) struct Node {
    pub(super) pbft: Pbft,
    pub(super) executed: Vec<Ordered>,
    /// Where a transferred state begins.
    base: Seq,
    state: Digest,
    /// The tentative batches, with the state before each.
    pub(super) ahead: VecDeque<(Ordered, Digest)>,
    /// All that were ever executed tentatively, with the view.
    pub(super) tentatively: Vec<(Seq, View)>,
    pub(super) deadline: Option<Time>,
    pub(super) timers: BTreeMap<Timer, Time>,
    pub(super) records: Vec<Record>,
    /// What was persisted, remembered and sent, in order, for tests of the order.
    pub(super) trail: Vec<&'static str>,
    pub(super) notes: Vec<Note>,
    pub(super) frames_asked: Vec<(To, Vec<Digest>)>,
    pub(super) frames_shown: Vec<(ReplicaId, usize)>,
    pub(super) transfers: Vec<(Seq, Digest, Vec<ReplicaId>)>,
    pub(super) repairs: Vec<(Seq, Digest)>,
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
}

impl Net {
    /// n = 3f+1 fresh replicas.
    pub(super) fn new(f: u16) -> Self {
        Self::with(f, SMALL)
    }

    pub(super) fn with(f: u16, config: Config) -> Self {
        let group = Group::general(GroupId(*b"tests-of-pbft---"), 3 * f + 1).expect("3f+1");
        let nodes = group.all().map(|me| Node::new(Pbft::new(me, group, config))).collect();
        let mut net = Self { group, config, nodes, wire: VecDeque::new(), shown: Vec::new(), now: 1_000 };
        for replica in group.all() {
            net.step(replica, |pbft, cx| pbft.on_start(cx, Start::Fresh));
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
    pub(super) fn step(&mut self, replica: ReplicaId, event: impl FnOnce(&mut Pbft, &mut Cx<'_, Pbft>)) {
        let index = usize::from(replica.0);
        let mut effects = Vec::new();
        let (now, wall) = (Time(self.now), Time(WALL + self.now));
        event(&mut self.nodes[index].pbft, &mut Cx::new(now, wall, replica, &self.group, &mut effects));
        let mut queue = VecDeque::from(effects);
        while let Some(effect) = queue.pop_front() {
            let mut more = Vec::new();
            let node = &mut self.nodes[index];
            let mut cx = Cx::new(now, wall, replica, &self.group, &mut more);
            match effect {
                Effect::Send { to, message } => {
                    node.trail.push("send");
                    self.wire.extend(flights(&self.group, replica, to, &message));
                }
                Effect::Broadcast(message) => {
                    node.trail.push("broadcast");
                    self.wire.extend(flights(&self.group, replica, To::Others, &message));
                    // Its own copy comes back like any other message, later.
                    self.wire.push_back(Flight { from: replica, to: replica, message });
                }
                Effect::Sign { body, to } => {
                    node.trail.push("sign");
                    let message = sealed(&self.group, replica, body);
                    self.wire.extend(flights(&self.group, replica, to, &message));
                    node.pbft.on_message(&mut cx, replica, Verified::made_here(message));
                }
                Effect::BroadcastSigned(body) => {
                    node.trail.push("broadcast");
                    let message = sealed(&self.group, replica, body);
                    self.wire.extend(flights(&self.group, replica, To::Others, &message));
                    self.wire.push_back(Flight { from: replica, to: replica, message });
                }
                Effect::Certify { .. } | Effect::CertifyInLog { .. } => {
                    unreachable!("PBFT has nothing certified")
                }
                Effect::Trusted { .. } | Effect::Draw(_) => unreachable!("PBFT asks nothing of a component"),
                Effect::Release { .. } | Effect::EndAttested(_) | Effect::Halt(_) => {
                    unreachable!("PBFT holds nothing back, and goes on")
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
                    node.frames_shown.push((to, frames.len()));
                    self.shown.push((to, frames));
                }
                Effect::ShowFrames { to: To::Others, .. } => unreachable!("frames are shown to the primary"),
                Effect::Deliver(ordered) => {
                    assert!(node.ahead.is_empty(), "nothing final follows what is tentative");
                    let (reached, outcome) = node.execute(&ordered);
                    node.executed.push(ordered);
                    node.pbft.on_executed(&mut cx, reached, &outcome);
                }
                Effect::DeliverTentatively { ordered, view } => {
                    node.trail.push("tentative");
                    node.tentatively.push((ordered.seq, view));
                    let before = node.state;
                    let (reached, outcome) = node.execute(&ordered);
                    node.ahead.push_back((ordered, before));
                    node.pbft.on_executed(&mut cx, reached, &outcome);
                }
                Effect::Commit { through } => node.commit(through),
                Effect::Rollback { to } => node.roll_back(to),
                Effect::Checkpoint => {
                    assert!(node.ahead.is_empty(), "a checkpoint holds what is final");
                    let (seq, state) = (node.executed_up_to(), node.state);
                    node.pbft.on_checkpoint(&mut cx, seq, state);
                }
                Effect::Stable { .. } | Effect::Compact(_) => {}
                Effect::FetchState { seq, digest, sources } => node.transfers.push((seq, digest, sources)),
                Effect::RepairState { seq, digest, .. } => node.repairs.push((seq, digest)),
                Effect::Note(note) => node.notes.push(note),
            }
            queue.extend(more);
        }
        self.nodes[index].pbft.invariants();
    }

    /// Gives a frame to these replicas, as its client would.
    pub(super) fn request(&mut self, frame: &VerifiedFrame, to: impl IntoIterator<Item = u16>) {
        for replica in to {
            self.step(r(replica), |pbft, cx| pbft.on_requests(cx, vec![frame.clone()]));
        }
    }

    /// A message reaches a replica.
    pub(super) fn tell(&mut self, from: u16, to: u16, message: Message) {
        self.step(r(to), |pbft, cx| pbft.on_message(cx, r(from), Verified::made_here(message)));
    }

    /// Delivers what is on the wire, and what follows, as far as `passes`; the rest is lost.
    pub(super) fn run_where(&mut self, passes: impl Fn(&Flight) -> bool) {
        for _ in 0..100_000 {
            if let Some((to, frames)) = self.shown.pop() {
                if !self.nodes[usize::from(to.0)].down {
                    self.step(to, |pbft, cx| pbft.on_requests(cx, frames));
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
        self.step(r(replica), |pbft, cx| pbft.on_timer(cx, timer));
    }

    /// A replica leaves its view for the next.
    pub(super) fn leave(&mut self, replica: u16) {
        self.step(r(replica), |pbft, cx| pbft.leave_view(cx, pbft.view.next()));
    }

    /// Orders a frame everywhere.
    pub(super) fn order(&mut self, frame: &VerifiedFrame) {
        let all: Vec<u16> = self.group.all().map(|replica| replica.0).collect();
        self.request(frame, all);
        self.run();
    }

    /// A body as this replica signs it.
    pub(super) fn signed(&self, from: u16, body: Body) -> Message {
        sealed(&self.group, r(from), body)
    }

    /// The state of this number and digest is in force at a replica.
    pub(super) fn install(&mut self, replica: u16, seq: Seq, digest: Digest) {
        let node = self.node_mut(replica);
        node.state = digest;
        node.base = seq;
        node.executed.clear();
        node.ahead.clear();
        let reached = Reached { seq, time: Time(WALL), deadline: None };
        self.step(r(replica), |pbft, cx| pbft.on_installed(cx, reached, digest, &|_, _| false));
    }

    /// A replica starts again with nothing but these records.
    pub(super) fn restart(&mut self, replica: u16) {
        let records = self.node(replica).records.clone();
        let mut node = Node::new(Pbft::new(r(replica), self.group, self.config));
        node.records.clone_from(&records);
        self.nodes[usize::from(replica)] = node;
        let start = Start::Recovered {
            own: Vec::new(),
            records,
            snapshot: (Seq(0), Digest::ZERO),
            reached: Reached::default(),
        };
        self.step(r(replica), |pbft, cx| pbft.on_start(cx, start));
    }

    /// Messages of a kind on the wire, from this replica.
    pub(super) fn sent(&self, from: u16, is: impl Fn(&Message) -> bool) -> usize {
        self.wire.iter().filter(|flight| flight.from == r(from) && is(&flight.message)).count()
    }
}

impl Node {
    fn new(pbft: Pbft) -> Self {
        Self {
            pbft,
            executed: Vec::new(),
            base: Seq(0),
            state: Digest::ZERO,
            ahead: VecDeque::new(),
            tentatively: Vec::new(),
            deadline: None,
            timers: BTreeMap::new(),
            records: Vec::new(),
            trail: Vec::new(),
            notes: Vec::new(),
            frames_asked: Vec::new(),
            frames_shown: Vec::new(),
            transfers: Vec::new(),
            repairs: Vec::new(),
            down: false,
        }
    }

    /// The last batch whose place is final.
    pub(super) fn executed_up_to(&self) -> Seq {
        self.executed.last().map_or(self.base, |ordered| ordered.seq)
    }

    fn commit(&mut self, through: Seq) {
        while let Some((ordered, _)) = self.ahead.pop_front_if(|(first, _)| first.seq <= through) {
            self.executed.push(ordered);
        }
    }

    fn roll_back(&mut self, to: Seq) {
        assert!(to >= self.executed_up_to(), "what is final stays");
        while let Some((_, before)) = self.ahead.pop_back_if(|(last, _)| last.seq > to) {
            self.state = before;
        }
    }

    fn execute(&mut self, ordered: &Ordered) -> (Reached, Outcome) {
        let last = self.ahead.back().map_or(self.executed_up_to(), |(last, _)| last.seq);
        assert_eq!(ordered.seq, last.next(), "execution goes in order");
        let mut state = Hasher::new("test/state");
        state.digest(&self.state).number(ordered.seq.0);
        for frame in &ordered.frames {
            state.digest(&frame.digest());
        }
        self.state = state.finish();
        let before = || self.executed.iter().chain(self.ahead.iter().map(|(ordered, _)| ordered));
        let is_new = |frame: &VerifiedFrame| !before().any(|other| other.frames.contains(frame));
        let done = |frame: &VerifiedFrame| Done {
            client: frame.client(),
            number: frame.number(),
            now: is_new(frame),
        };
        let done = ordered.frames.iter().map(done).collect();
        let reached = Reached { seq: ordered.seq, time: ordered.time, deadline: self.deadline };
        (reached, Outcome { done, ..Outcome::default() })
    }

    /// The digests of the frames that were executed finally, in order.
    pub(super) fn history(&self) -> Vec<Digest> {
        self.executed.iter().flat_map(|ordered| ordered.frames.iter().map(|frame| frame.digest())).collect()
    }

    pub(super) fn ignored(&self) -> usize {
        self.notes.iter().filter(|note| matches!(note, Note::Ignored { .. })).count()
    }

    pub(super) fn accused(&self) -> Vec<ReplicaId> {
        self.pbft.status().accused
    }

    pub(super) fn view(&self) -> View {
        self.pbft.view()
    }
}

fn flights(group: &Group, from: ReplicaId, to: To, message: &Message) -> Vec<Flight> {
    let receivers: Vec<ReplicaId> = match to {
        To::One(one) => vec![one],
        To::Others => group.all().filter(|other| *other != from).collect(),
    };
    receivers.into_iter().map(|to| Flight { from, to, message: message.clone() }).collect()
}

fn sealed(group: &Group, from: ReplicaId, body: Body) -> Message {
    let digest = Pbft::digest(&body, group.id(), from);
    Pbft::seal(body, digest, from, Seal::Signature(Signature([from.0 as u8; 64])))
}
