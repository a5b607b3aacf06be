//! A small deterministic world: hosts that run MinBFT with a real executor, their disks and trusted
//! components, links in order, a clock that a test moves. A replica without a host is a puppet: the
//! test certifies and signs in its name, with its own component and key, as a faulty host could.

use super::journal::Journal;
use crate::message::{Body, Certified, Message, RequestViewChange, SignedRequest};
use crate::place::Place;
use crate::{Config, MinBft, Timer};
use bytes::Bytes;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use troth_auth::{Directory, FrameVerifier, MessageVerifier, ModelScheme, ModelSigner, Seal, Signer, Ui};
use troth_core::{
    Agreement, Command, Env, Host, Input, Note, PeerMessage, RecoveryError, Repeated, Replica, ReplicaTimer,
    Request, Resume, To,
};
use troth_exec::{Executor, Snapshot};
use troth_trusted::{
    Certifier, CounterId, CounterValue, Epoch, Identity, MacKey, Resumed, TrustedCore, VolatileStore,
};
use troth_trusted_host::{Answer, Call, GroupVerifier, InProcess, MemberKey, TrustedComponent};
use troth_types::{
    Change, ClientEntry, ClientId, ComponentKey, Configuration, Digest, Frame, FrameDraft, Group, GroupId,
    HostKeys, Member, OPERATOR, ReplicaId, Seq, Time, ToClient, View, Wire, Wish,
};

/// What a test's hosts run.
pub(super) type App = Replica<MinBft, Executor<Journal>>;

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

/// Replica number.
pub(super) fn r(number: u16) -> ReplicaId {
    ReplicaId(number)
}

/// What a message is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    Prepare,
    Commit,
    Checkpoint,
    ViewChange,
    NewView,
    AcceptNewView,
    Request,
    Status,
    Stable,
    Evidence,
    FetchFrames,
    Frames,
    FetchState,
    StatePiece,
}

/// A message on its way.
#[derive(Clone, Debug)]
pub(super) struct Flight {
    pub(super) from: ReplicaId,
    pub(super) to: ReplicaId,
    pub(super) message: PeerMessage<Message>,
}

impl Flight {
    /// What it is.
    pub(super) fn kind(&self) -> Kind {
        match &self.message {
            PeerMessage::Protocol(Message::Certified(message)) => kind(&message.body),
            PeerMessage::Protocol(Message::RequestViewChange(_)) => Kind::Request,
            PeerMessage::Protocol(Message::Status(_)) => Kind::Status,
            PeerMessage::Protocol(Message::Stable(_)) => Kind::Stable,
            PeerMessage::Protocol(Message::Evidence(_)) => Kind::Evidence,
            PeerMessage::FetchFrames(_) => Kind::FetchFrames,
            PeerMessage::Frames(_) => Kind::Frames,
            PeerMessage::FetchState(_) => Kind::FetchState,
            PeerMessage::StatePiece(_) => Kind::StatePiece,
        }
    }

    /// The certified message it is.
    pub(super) fn certified(&self) -> Option<&Arc<Certified>> {
        match &self.message {
            PeerMessage::Protocol(Message::Certified(message)) => Some(message),
            _ => None,
        }
    }
}

/// The kind of a body.
pub(super) fn kind(body: &Body) -> Kind {
    match body {
        Body::Prepare(_) => Kind::Prepare,
        Body::Commit(_) => Kind::Commit,
        Body::Checkpoint(_) => Kind::Checkpoint,
        Body::ViewChange(_) => Kind::ViewChange,
        Body::NewView(_) => Kind::NewView,
        Body::AcceptNewView(_) => Kind::AcceptNewView,
        Body::RequestViewChange(_) => Kind::Request,
    }
}

/// What a link does with a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    Pass,
    Lose,
    Hold,
}

type Filter = Box<dyn Fn(&Flight) -> Fate>;

/// A disk: what is durable, and what was appended since the last sync.
#[derive(Clone, Debug)]
pub(super) struct Disk {
    /// Whether its log may be compacted.
    pub(super) segments: bool,
    pub(super) snapshot: Option<Snapshot>,
    pub(super) log: Vec<Bytes>,
    unsynced: Vec<Unsynced>,
}

impl Default for Disk {
    fn default() -> Self {
        Self { segments: true, snapshot: None, log: Vec::new(), unsynced: Vec::new() }
    }
}

#[derive(Clone, Debug)]
enum Unsynced {
    Segment(Snapshot),
    Record(Bytes),
}

impl Disk {
    pub(super) fn sync(&mut self) {
        for unsynced in self.unsynced.drain(..) {
            match unsynced {
                Unsynced::Segment(snapshot) => {
                    self.snapshot = Some(snapshot);
                    self.log.clear();
                }
                Unsynced::Record(bytes) => self.log.push(bytes),
            }
        }
    }
}

/// One replica's host and what belongs to it.
pub(super) struct Node {
    pub(super) host: Option<Host<App>>,
    pub(super) component: InProcess<VolatileStore>,
    /// The epoch of its component.
    epoch: u64,
    pub(super) disk: Disk,
    pub(super) timers: BTreeMap<ReplicaTimer<Timer>, Time>,
    pub(super) notes: Vec<Note>,
    pub(super) answers: Vec<ToClient>,
    /// Microseconds by which its time of day is ahead.
    pub(super) skew: i64,
    /// Its component does not answer.
    pub(super) stalled: bool,
    question: Option<Call>,
    /// The batch that it computes wrongly, once; 0 is none.
    pub(super) wrong_at: Arc<AtomicU64>,
    /// It crashes before the command that follows this many more.
    pub(super) crash_in: Option<u64>,
    /// What the puppet certified.
    said: Vec<Arc<Certified>>,
}

/// The world.
pub(super) struct World {
    pub(super) group: Group,
    pub(super) configuration: Arc<Configuration>,
    /// What the group begins with, as every replica's state does.
    first: Arc<Configuration>,
    pub(super) config: Config,
    pub(super) now: u64,
    pub(super) nodes: Vec<Node>,
    links: VecDeque<Flight>,
    pub(super) held: Vec<Flight>,
    /// Everything that was sent, in order.
    pub(super) sent: Vec<Flight>,
    filter: Filter,
    messages: MessageVerifier,
    pub(super) frames: FrameVerifier,
}

fn signer(replica: ReplicaId) -> ModelSigner {
    ModelSigner::new(1000 + u64::from(replica.0))
}

/// Of the host that takes the place of a replica's first one.
pub(super) fn later_signer(replica: ReplicaId) -> ModelSigner {
    ModelSigner::new(2000 + u64::from(replica.0))
}

fn client_signer(client: u64) -> ModelSigner {
    ModelSigner::new(client)
}

fn group_key() -> MacKey {
    MacKey::new(&[9; 32])
}

fn identity(group: &Group, replica: ReplicaId) -> Identity {
    Identity { group: group.id().0, replica: replica.0, epoch: Epoch(1) }
}

/// What a test's group begins with.
fn configuration(group: &Group) -> Arc<Configuration> {
    let member = |replica| {
        let host = HostKeys { signing: signer(replica).public_key().0, ..HostKeys::default() };
        Member::new(1, ComponentKey::Group, host)
    };
    let client = |client| {
        let key = client_signer(client).public_key().0;
        (ClientId(client), ClientEntry { key, link: [0; 32], removed: false })
    };
    Arc::new(Configuration::new(
        group.all().map(member).collect(),
        (1..=8).chain([OPERATOR.0]).map(client).collect(),
    ))
}

impl World {
    /// A world of `n` replicas, of which these are correct and run; the others are puppets.
    pub(super) fn with(n: u16, config: Config, correct: &[u16]) -> Self {
        let group = Group::hybrid(GroupId(*b"minbft-test-grp\0"), n).expect("an odd number");
        let mut scheme = ModelScheme::default();
        for replica in group.all() {
            scheme.register(&signer(replica));
            scheme.register(&later_signer(replica));
        }
        for client in (1..=8).chain([OPERATOR.0]) {
            scheme.register(&client_signer(client));
        }
        let configuration = configuration(&group);
        let directory = Arc::new(Directory::new(group.id(), Arc::clone(&configuration)));
        let scheme = Arc::new(scheme);
        let members = group.all().flat_map(|replica| (1..=4).map(move |epoch| (replica, epoch))).map(
            |(replica, epoch)| {
                let identity = Identity { epoch: Epoch(epoch), ..identity(&group, replica) };
                (identity, MemberKey::Mac(group_key().verifier()))
            },
        );
        let certificates = Arc::new(GroupVerifier::new(members).expect("named once"));
        let node = |replica| Node {
            host: None,
            component: InProcess::new(TrustedCore::start(
                identity(&group, replica),
                Certifier::Mac(group_key()),
                VolatileStore,
            )),
            epoch: 1,
            disk: Disk::default(),
            timers: BTreeMap::new(),
            notes: Vec::new(),
            answers: Vec::new(),
            skew: 0,
            stalled: false,
            question: None,
            wrong_at: Arc::default(),
            crash_in: None,
            said: Vec::new(),
        };
        let mut world = Self {
            group,
            first: Arc::clone(&configuration),
            configuration,
            config,
            now: 1_000_000,
            nodes: group.all().map(node).collect(),
            links: VecDeque::new(),
            held: Vec::new(),
            sent: Vec::new(),
            filter: Box::new(|_| Fate::Pass),
            messages: MessageVerifier::new(directory.clone(), scheme.clone(), certificates),
            frames: FrameVerifier::new(directory, scheme, config.limits),
        };
        for replica in correct {
            world.start(r(*replica));
        }
        world
    }

    /// A world of `n` correct replicas.
    pub(super) fn all(n: u16, config: Config) -> Self {
        Self::with(n, config, &(0..n).collect::<Vec<_>>())
    }

    pub(super) fn node(&self, replica: u16) -> &Node {
        &self.nodes[usize::from(replica)]
    }

    pub(super) fn node_mut(&mut self, replica: u16) -> &mut Node {
        &mut self.nodes[usize::from(replica)]
    }

    /// A replica's agreement state.
    pub(super) fn minbft(&self, replica: u16) -> &MinBft {
        self.app(replica).agreement()
    }

    pub(super) fn app(&self, replica: u16) -> &App {
        self.node(replica).host.as_ref().expect("it runs").machine()
    }

    /// What a replica executed, in order.
    pub(super) fn journal(&self, replica: u16) -> Vec<String> {
        Journal::entries(&self.app(replica).execution().state())
    }

    pub(super) fn executed(&self, replica: u16) -> u64 {
        self.minbft(replica).reached.seq.0
    }

    pub(super) fn condemned(&self, by: u16, who: u16) -> Option<&'static str> {
        self.minbft(by).peer(r(who)).condemned
    }

    pub(super) fn accused_nobody(&self, by: u16) -> bool {
        self.group.all().all(|replica| self.condemned(by, replica.0).is_none())
    }

    pub(super) fn env(&self, replica: ReplicaId) -> Env {
        let skew = self.nodes[usize::from(replica.0)].skew;
        Env { now: Time(self.now), wall: Time((WALL + self.now).checked_add_signed(skew).expect("in range")) }
    }

    /// The time of day at a replica.
    pub(super) fn wall(&self) -> Time {
        Time(WALL + self.now)
    }

    fn machine(&self, replica: ReplicaId) -> App {
        let epoch = self.nodes[usize::from(replica.0)].epoch;
        let agreement = MinBft::new(replica, self.group, self.config).with_epoch(epoch);
        let app = Journal { wrong_at: Arc::clone(&self.nodes[usize::from(replica.0)].wrong_at) };
        Replica::new(
            replica,
            self.group,
            agreement,
            Executor::with_configuration(
                app,
                self.config.limits,
                Arc::clone(&self.first),
                self.config.window + self.config.interval,
            ),
        )
    }

    fn start(&mut self, replica: ReplicaId) {
        let env = self.env(replica);
        let host =
            Host::fresh(self.machine(replica), replica, self.group, Arc::new(signer(replica)), true, env);
        self.nodes[usize::from(replica.0)].host = Some(host.expect("a fresh machine starts"));
        self.pump(replica);
    }

    /// Stops a replica; what was not synced is lost.
    pub(super) fn crash(&mut self, replica: u16) {
        let node = self.node_mut(replica);
        node.host = None;
        node.disk.unsynced.clear();
        node.timers.clear();
        node.question = None;
        node.crash_in = None;
    }

    /// A replica's component is replaced by one of another epoch, which certified nothing.
    pub(super) fn new_component(&mut self, replica: u16, epoch: u64) {
        let identity = Identity { epoch: Epoch(epoch), ..identity(&self.group, r(replica)) };
        let node = self.node_mut(replica);
        node.component =
            InProcess::new(TrustedCore::start(identity, Certifier::Mac(group_key()), VolatileStore));
        node.epoch = epoch;
        node.said.clear();
    }

    /// A replica's machine is lost; another one starts with a component of this epoch.
    pub(super) fn lose(&mut self, replica: u16, epoch: u64) {
        self.crash(replica);
        self.node_mut(replica).disk = Disk::default();
        self.new_component(replica, epoch);
        self.start(r(replica));
    }

    /// The operator's frame.
    pub(super) fn operator_frame(&self, number: u64, change: &Change) -> Arc<Frame> {
        let draft = FrameDraft {
            group: self.group.id(),
            client: OPERATOR,
            number,
            events_seen: 0,
            operations: vec![change.to_wire()],
        };
        let signature = client_signer(OPERATOR.0).sign(&draft.signing_digest());
        Arc::new(draft.sign(signature))
    }

    /// Starts a replica again from its disk and component.
    pub(super) fn restart(&mut self, replica: u16) {
        self.try_restart(replica).expect("its log is whole");
    }

    pub(super) fn try_restart(&mut self, replica: u16) -> Result<(), RecoveryError> {
        let resumed = self.resumed(replica);
        let (machine, env) = (self.machine(r(replica)), self.env(r(replica)));
        let disk = &self.node(replica).disk;
        let signer = Arc::new(signer(r(replica)));
        let snapshot = disk.snapshot.clone();
        let counters = [resumed];
        let resume = Resume { counters: &counters, logs: &[] };
        let host = Host::recover(machine, r(replica), self.group, signer, env, snapshot, &disk.log, resume)?;
        self.node_mut(replica).host = Some(host);
        self.pump(r(replica));
        Ok(())
    }

    fn resumed(&mut self, replica: u16) -> Resumed {
        match self.node_mut(replica).component.call(&[Call::Resume { counter: CounterId(0) }]).pop() {
            Some(Answer::Resumed(resumed)) => *resumed,
            other => panic!("the component answers: {other:?}"),
        }
    }

    /// Carries out what a host wants done, until it wants nothing.
    pub(super) fn pump(&mut self, replica: ReplicaId) {
        let index = usize::from(replica.0);
        loop {
            let env = self.env(replica);
            let node = &mut self.nodes[index];
            if let Some(host) = &mut node.host {
                host.allow_segments(node.disk.segments);
            }
            let Some(command) = node.host.as_mut().and_then(Host::command) else { return };
            if let Some(left) = node.crash_in.as_mut() {
                if *left == 0 {
                    return self.crash(replica.0);
                }
                *left -= 1;
            }
            match command {
                Command::Append(bytes) => node.disk.unsynced.push(Unsynced::Record(bytes)),
                Command::NewSegment { snapshot, .. } => node.disk.unsynced.push(Unsynced::Segment(snapshot)),
                Command::Sync => node.disk.sync(),
                Command::Attest(call) if node.stalled => node.question = Some(call),
                Command::Attest(call) => {
                    let answer = node.component.call(&[call]).pop().expect("one answer");
                    node.host.as_mut().expect("it runs").attested(env, answer);
                }
                Command::Peer { to, message } => {
                    let receivers: Vec<ReplicaId> = match to {
                        To::One(one) => vec![one],
                        To::Others => self.group.all().filter(|other| *other != replica).collect(),
                    };
                    for to in receivers {
                        let flight = Flight { from: replica, to, message: message.clone() };
                        self.sent.push(flight.clone());
                        self.links.push_back(flight);
                    }
                }
                Command::Logs(_) | Command::Draw(_) => unreachable!("MinBFT asks no logs and draws nothing"),
                Command::Return(_) => unreachable!("MinBFT certifies what it sends to all"),
                Command::Client(message) => node.answers.push(message),
                Command::SetTimer { timer, at } => {
                    node.timers.insert(timer, at);
                }
                Command::CancelTimer(timer) => {
                    node.timers.remove(&timer);
                }
                Command::Configured(configuration) => self.learn(&configuration),
                Command::Note(note) => node.notes.push(note),
                Command::Halt(refusal) => panic!("{replica} halts: {refusal:?}"),
            }
        }
    }

    /// Everybody can check what the newest configuration lets in; who believes it is for the machines to say.
    pub(super) fn learn(&mut self, configuration: &Arc<Configuration>) {
        if configuration.number > self.configuration.number {
            self.configuration = Arc::clone(configuration);
            let directory = Directory::new(self.group.id(), Arc::clone(configuration));
            self.messages = self.messages.with_directory(Arc::new(directory));
        }
    }

    /// The stalled component answers, and goes on answering.
    pub(super) fn unstall(&mut self, replica: u16) {
        let env = self.env(r(replica));
        let node = self.node_mut(replica);
        node.stalled = false;
        if let Some(call) = node.question.take() {
            let answer = node.component.call(&[call]).pop().expect("one answer");
            node.host.as_mut().expect("it runs").attested(env, answer);
        }
        self.pump(r(replica));
        self.run();
    }

    /// From now on links treat messages so.
    pub(super) fn links(&mut self, filter: impl Fn(&Flight) -> Fate + 'static) {
        self.filter = Box::new(filter);
    }

    /// From now on everything passes, what was held first.
    pub(super) fn open(&mut self) {
        self.filter = Box::new(|_| Fate::Pass);
        let held = std::mem::take(&mut self.held);
        self.links.extend(held);
        self.run();
    }

    /// Delivers whatever is on its way, without any time passing.
    pub(super) fn run(&mut self) {
        let mut steps = 0;
        while let Some(flight) = self.links.pop_front() {
            steps += 1;
            assert!(steps < 200_000, "the world does not come to rest");
            match (self.filter)(&flight) {
                Fate::Pass => self.deliver(flight),
                Fate::Lose => {}
                Fate::Hold => self.held.push(flight),
            }
        }
    }

    fn deliver(&mut self, flight: Flight) {
        let Flight { from, to, message } = flight;
        let input = match message {
            PeerMessage::Protocol(message) => match self.messages.verify(message) {
                Ok(verified) => Input::Message(from, verified),
                Err(_) => return,
            },
            PeerMessage::FetchFrames(digests) => Input::FetchFrames(from, digests),
            PeerMessage::Frames(frames) => {
                Input::Frames(from, self.frames.verify_all(frames).into_iter().flatten().collect())
            }
            PeerMessage::FetchState(fetch) => Input::FetchState(from, fetch),
            PeerMessage::StatePiece(piece) => Input::StatePiece(from, piece),
        };
        self.input(to, input);
    }

    pub(super) fn input(&mut self, to: ReplicaId, input: Input<Message, ReplicaTimer<Timer>>) {
        let env = self.env(to);
        let node = &mut self.nodes[usize::from(to.0)];
        let Some(host) = node.host.as_mut() else { return };
        host.input(env, input);
        host.machine().agreement().invariants();
        self.pump(to);
    }

    /// Lets time pass: timers fire in order, messages take none.
    pub(super) fn pass(&mut self, micros: u64) {
        let end = self.now + micros;
        self.run();
        loop {
            let due =
                self.nodes.iter().enumerate().flat_map(|(index, node)| {
                    node.timers.iter().map(move |(timer, at)| (*at, index, *timer))
                });
            let Some((at, index, timer)) = due.min().filter(|(at, _, _)| at.0 <= end) else { break };
            self.now = self.now.max(at.0);
            self.nodes[index].timers.remove(&timer);
            self.input(ReplicaId(index as u16), Input::Timer(timer));
            self.run();
        }
        self.now = end;
    }

    /// A client's frame.
    pub(super) fn frame(&self, client: u64, number: u64, operation: &str) -> Arc<Frame> {
        let draft = FrameDraft {
            group: self.group.id(),
            client: ClientId(client),
            number,
            events_seen: 0,
            operations: vec![Bytes::copy_from_slice(operation.as_bytes())],
        };
        let signature = client_signer(client).sign(&draft.signing_digest());
        Arc::new(draft.sign(signature))
    }

    /// The client sends a frame to these replicas.
    pub(super) fn request(&mut self, to: &[u16], frame: &Arc<Frame>) {
        let frame = self.frames.verify(frame.clone()).expect("clients sign well");
        for to in to {
            self.input(r(*to), Input::Requests(vec![Request { frame: frame.clone(), wish: Wish::Usual }]));
        }
        self.run();
    }

    /// Frames reach a replica in one go.
    pub(super) fn requests(&mut self, to: u16, frames: &[Arc<Frame>]) {
        let request = |frame: &Arc<Frame>| {
            let frame = self.frames.verify(frame.clone()).expect("clients sign well");
            Request { frame, wish: Wish::Usual }
        };
        let requests = frames.iter().map(request).collect();
        self.input(r(to), Input::Requests(requests));
        self.run();
    }

    /// The client asks again for what may be executed.
    pub(super) fn repeat(&mut self, to: u16, client: u64, number: u64) {
        let repeated = Repeated { client: ClientId(client), number, events_seen: 0, wish: Wish::Usual };
        self.input(r(to), Input::Repeated(repeated));
        self.run();
    }

    /// The client sends to all that run.
    pub(super) fn request_all(&mut self, frame: &Arc<Frame>) {
        let all: Vec<u16> = self.group.all().map(|replica| replica.0).collect();
        self.request(&all, frame);
    }

    /// Whether a message is authentic.
    pub(super) fn authentic(&self, message: &Message) -> Result<(), troth_auth::MessageError> {
        self.messages.verify(message.clone()).map(drop)
    }

    /// A puppet's message arrives.
    pub(super) fn inject(&mut self, from: u16, to: u16, message: Message) {
        self.messages.verify(message.clone()).expect("a puppet's messages are authentic");
        self.links.push_back(Flight { from: r(from), to: r(to), message: PeerMessage::Protocol(message) });
        self.run();
    }

    /// Anything arrives, as bytes from outside would: it may be refused.
    pub(super) fn arrive(&mut self, from: u16, to: u16, message: PeerMessage<Message>) {
        self.links.push_back(Flight { from: r(from), to: r(to), message });
        self.run();
    }

    /// Whether a message passes verification; if so it arrives.
    pub(super) fn arrive_checked(&mut self, from: u16, to: u16, message: Message) -> bool {
        let good = self.messages.verify(message.clone()).is_ok();
        self.arrive(from, to, PeerMessage::Protocol(message));
        good
    }

    /// A puppet's certified message arrives.
    pub(super) fn say(&mut self, to: u16, message: &Arc<Certified>) {
        self.inject(message.from.0, to, Message::Certified(message.clone()));
    }

    /// Where a replica's counter stands.
    pub(super) fn counter(&mut self, replica: u16) -> CounterValue {
        match self.node_mut(replica).component.call(&[Call::Read { counter: CounterId(0) }]).pop() {
            Some(Answer::Value(value)) => value,
            other => panic!("the component answers: {other:?}"),
        }
    }

    /// Certifies anything in a replica's name at the next value of its counter, a CHECKPOINT at its place.
    pub(super) fn certify(&mut self, replica: u16, body: Body) -> Arc<Certified> {
        let now = self.counter(replica);
        let place = match &body {
            Body::Checkpoint(checkpoint) => Place::of_checkpoint(View(now.view()), checkpoint.seq),
            _ => None,
        };
        let next = place.filter(|place| *place > now).unwrap_or(now.next().expect("not spent"));
        self.certify_at(replica, next, body)
    }

    /// Certifies anything in a replica's name at a value of its counter.
    pub(super) fn certify_at(&mut self, replica: u16, new: CounterValue, body: Body) -> Arc<Certified> {
        let previous = self.counter(replica);
        let digest = body.digest(self.group.id(), r(replica));
        let call = Call::Attest { counter: CounterId(0), previous, new, digest: digest.0 };
        let answer = self.node_mut(replica).component.call(&[call]).pop().expect("one answer");
        let certificate = answer.attested().expect("the value is above the last").clone();
        let seal = Seal::Ui(Ui { certificate, run: None });
        let Message::Certified(message) = MinBft::seal(body, digest, r(replica), seal) else {
            panic!("it was certified")
        };
        self.node_mut(replica).said.push(message.clone());
        message
    }

    /// What a puppet certified so far.
    pub(super) fn said(&self, replica: u16) -> Vec<Arc<Certified>> {
        self.node(replica).said.clone()
    }

    /// A replica's signed REQ-VIEW-CHANGE.
    pub(super) fn wish(&self, replica: u16, to: u64) -> Arc<SignedRequest> {
        self.wish_signed(replica, to, &signer(r(replica)))
    }

    /// The same, signed by a host with this key.
    pub(super) fn wish_signed(&self, replica: u16, to: u64, host: &ModelSigner) -> Arc<SignedRequest> {
        let request = RequestViewChange { to: View(to) };
        let digest = Body::RequestViewChange(request.clone()).digest(self.group.id(), r(replica));
        let signature = host.sign(&digest);
        Arc::new(SignedRequest { from: r(replica), request, digest, signature })
    }

    /// Replicas ask for a view change; their requests reach one replica.
    pub(super) fn wishes(&mut self, from: &[u16], at: u16, to: u64) {
        for from in from {
            let wish = self.wish(*from, to);
            self.inject(*from, at, Message::RequestViewChange(wish));
        }
    }

    /// The certified messages of a kind that a replica sent, each once, in order.
    pub(super) fn sent_by(&self, replica: u16, kind: Kind) -> Vec<Arc<Certified>> {
        let mut found: Vec<Arc<Certified>> = Vec::new();
        for flight in self.sent.iter().filter(|flight| flight.from == r(replica) && flight.kind() == kind) {
            if let Some(message) = flight.certified().filter(|message| message.from == r(replica))
                && !found.iter().any(|known| known.value() == message.value())
            {
                found.push(message.clone());
            }
        }
        found
    }

    /// The numbers that a replica committed to by COMMIT.
    pub(super) fn commits(&self, replica: u16) -> Vec<u64> {
        self.sent_by(replica, Kind::Commit)
            .iter()
            .filter_map(|message| match &message.body {
                Body::Commit(commit) => commit.prepare.prepare().map(|prepare| prepare.seq.0),
                _ => None,
            })
            .collect()
    }

    /// The digest of a state as a replica's checkpoint would have it now.
    pub(super) fn state_digest(&self, replica: u16) -> Digest {
        self.app(replica).execution().digest_now()
    }

    /// The stable checkpoint that a replica knows.
    pub(super) fn stable(&self, replica: u16) -> Seq {
        self.minbft(replica).stable.0
    }
}

/// All of a small group's replicas but `late` order this many requests; nothing reaches `late`.
pub fn one_missed_them(n: u16, late: u16, count: u64) -> World {
    let mut world = World::all(n, SMALL);
    world.links(move |flight| if flight.to == r(late) { Fate::Lose } else { Fate::Pass });
    let others: Vec<u16> = (0..n).filter(|other| *other != late).collect();
    for number in 1..=count {
        let frame = world.frame(1, number, &format!("op{number}"));
        world.request(&others, &frame);
    }
    world
}
