//! One replica that runs MinBFT with a real executor, among two that say anything: their components certify and
//! their hosts sign whatever the steps ask for, as those of faulty machines would.

mod craft;

use crate::bytes::Steps;
use crate::samples;
use bytes::Bytes;
use std::collections::BTreeMap;
use std::sync::Arc;
use troth_auth::{Directory, FrameVerifier, MessageVerifier, ModelScheme, ModelSigner, Seal, Signer, Ui};
use troth_core::{
    Agreement, Command, Env, Host, Input, PeerMessage, RecoveryError, Replica, ReplicaTimer, Request, Resume,
};
use troth_exec::{Executor, Snapshot};
use troth_kv::Kv;
use troth_minbft::{Body, Certified, Config, Message, MinBft, Timer};
use troth_trusted::{
    Certifier, CounterId, CounterValue, Epoch, Identity, MacKey, Resumed, TrustedCore, VolatileStore,
};
use troth_trusted_host::{Answer, Call, GroupVerifier, InProcess, MemberKey, TrustedComponent};
use troth_types::{
    ClientEntry, ClientId, ComponentKey, Configuration, Frame, Group, HostKeys, Member, OPERATOR, ReplicaId,
    Time, Wish,
};

pub type App = Replica<MinBft, Executor<Kv>>;

/// The time of day when a world begins.
const WALL: u64 = 1_700_000_000_000_000;
/// Intervals so small that a few batches need a checkpoint.
const SMALL: Config = Config { interval: 4, window: 8, pipeline: 4, ..Config::DEFAULT };
/// Replicas, of which one is correct: what two faulty ones bring about may be unsafe, and must not be a crash.
const REPLICAS: u16 = 3;

/// What survives the replica's process.
#[derive(Clone, Default)]
pub(crate) struct Kept {
    pub(crate) snapshot: Option<Snapshot>,
    pub(crate) log: Vec<Bytes>,
}

/// The replica and everything around it.
pub(crate) struct World {
    group: Group,
    me: ReplicaId,
    host: Host<App>,
    components: Vec<InProcess<VolatileStore>>,
    first: Arc<Configuration>,
    now: u64,
    timers: BTreeMap<ReplicaTimer<Timer>, Time>,
    pub(crate) kept: Kept,
    messages: MessageVerifier,
    frames: FrameVerifier,
    /// Everything that anybody certified, in order.
    said: Vec<Arc<Certified>>,
    /// Frames of clients that the faulty replicas know.
    known: Vec<Arc<Frame>>,
}

fn signer(replica: ReplicaId) -> ModelSigner {
    ModelSigner::new(1000 + u64::from(replica.0))
}

fn configuration(group: &Group) -> Arc<Configuration> {
    let member = |replica| {
        let host = HostKeys { signing: signer(replica).public_key().0, ..HostKeys::default() };
        Member::new(1, ComponentKey::Group, host)
    };
    let client = |client| {
        let key = ModelSigner::new(client).public_key().0;
        (ClientId(client), ClientEntry { key, link: [0; 32], removed: false })
    };
    Arc::new(Configuration::new(
        group.all().map(member).collect(),
        [1, 2, OPERATOR.0].into_iter().map(client).collect(),
    ))
}

impl World {
    /// A world in which this replica is the correct one.
    pub(crate) fn new(me: ReplicaId) -> Self {
        let group = Group::hybrid(samples::GROUP, REPLICAS).expect("an odd number");
        let mut scheme = ModelScheme::default();
        group.all().for_each(|replica| scheme.register(&signer(replica)));
        [1, 2, OPERATOR.0].into_iter().for_each(|client| scheme.register(&ModelSigner::new(client)));
        let first = configuration(&group);
        let directory = Arc::new(Directory::new(group.id(), Arc::clone(&first)));
        let scheme = Arc::new(scheme);
        let key = MacKey::new(&[9; 32]);
        let identity =
            |replica: ReplicaId| Identity { group: group.id().0, replica: replica.0, epoch: Epoch(1) };
        let members = group.all().map(|replica| (identity(replica), MemberKey::Mac(key.verifier())));
        let certificates = Arc::new(GroupVerifier::new(members).expect("named once"));
        let component = |replica| {
            let certifier = Certifier::Mac(MacKey::new(&[9; 32]));
            InProcess::new(TrustedCore::start(identity(replica), certifier, VolatileStore))
        };
        let now = 1_000_000;
        let host = Host::fresh(machine(me, group, &first), me, group, Arc::new(signer(me)), true, env(now));
        let mut world = Self {
            group,
            me,
            host: host.expect("a fresh machine starts"),
            components: group.all().map(component).collect(),
            first,
            now,
            timers: BTreeMap::new(),
            kept: Kept::default(),
            messages: MessageVerifier::new(directory.clone(), scheme.clone(), certificates),
            frames: FrameVerifier::new(directory, scheme, SMALL.limits),
            said: Vec::new(),
            known: Vec::new(),
        };
        world.pump();
        world
    }

    /// Carries out what the host wants done, until it wants nothing. Everything is durable at once.
    fn pump(&mut self) {
        self.host.machine().agreement().invariants();
        while let Some(command) = self.host.command() {
            match command {
                Command::Append(bytes) => self.kept.log.push(bytes),
                Command::NewSegment { snapshot, .. } => {
                    self.kept = Kept { snapshot: Some(snapshot), log: Vec::new() };
                }
                Command::Attest(call) => {
                    let answer = self.ask(self.me, call);
                    self.host.attested(env(self.now), answer);
                }
                Command::Peer { message: PeerMessage::Protocol(Message::Certified(message)), .. } => {
                    let new = message.from == self.me && !self.said.contains(&message);
                    self.said.extend(new.then_some(message));
                }
                Command::Logs(_) | Command::Draw(_) => unreachable!("MinBFT asks no logs and draws nothing"),
                Command::Return(_) => unreachable!("MinBFT certifies what it sends to all"),
                Command::SetTimer { timer, at } => drop(self.timers.insert(timer, at)),
                Command::CancelTimer(timer) => drop(self.timers.remove(&timer)),
                Command::Configured(configuration) => {
                    let directory = Arc::new(Directory::new(self.group.id(), configuration));
                    self.messages = self.messages.with_directory(Arc::clone(&directory));
                    self.frames = self.frames.with_directory(directory);
                }
                Command::Halt(why) => panic!("the replica and its component disagree: {why:?}"),
                Command::Sync | Command::Peer { .. } | Command::Client(_) | Command::Note(_) => {}
            }
        }
    }

    fn ask(&mut self, replica: ReplicaId, call: Call) -> Answer {
        self.components[usize::from(replica.0)].call(&[call]).pop().expect("one answer")
    }

    fn input(&mut self, input: Input<Message, ReplicaTimer<Timer>>) {
        self.host.input(env(self.now), input);
        self.pump();
    }

    /// A message arrives as bytes from outside would: it may be refused.
    fn arrive(&mut self, from: ReplicaId, message: PeerMessage<Message>) {
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
        self.input(input);
    }

    /// A client's frame arrives, and the faulty replicas know it.
    fn request(&mut self, steps: &mut Steps<'_>) {
        let client = [1, 2, OPERATOR.0][steps.below(3)];
        let number = 1 + u64::from(steps.byte() % 8);
        let frame = samples::frame_of(client, number, vec![Bytes::copy_from_slice(steps.chunk())]);
        if let Ok(verified) = self.frames.verify(Arc::clone(&frame)) {
            self.known.push(frame);
            let wish = [Wish::Usual, Wish::Full, Wish::Nothing, Wish::Alone][steps.below(4)];
            self.input(Input::Requests(vec![Request { frame: verified, wish }]));
        }
    }

    /// Time passes, and what is due happens.
    fn pass(&mut self, micros: u64) {
        let end = self.now + micros;
        // A timer may be set again for the same time.
        for _ in 0..50 {
            let due = self.timers.iter().map(|(timer, at)| (*at, *timer)).min();
            let Some((at, timer)) = due.filter(|(at, _)| at.0 <= end) else { break };
            self.now = self.now.max(at.0);
            self.timers.remove(&timer);
            self.input(Input::Timer(timer));
        }
        self.now = end;
    }

    /// The replica's process ends, and another one goes on from what was kept.
    pub(crate) fn restart(&mut self, kept: Kept) -> Result<(), RecoveryError> {
        let resumed: Resumed = match self.ask(self.me, Call::Resume { counter: CounterId(0) }) {
            Answer::Resumed(resumed) => *resumed,
            other => panic!("the component answers: {other:?}"),
        };
        let machine = machine(self.me, self.group, &self.first);
        let signer = Arc::new(signer(self.me));
        self.timers.clear();
        let Kept { snapshot, log } = &kept;
        let counters = [resumed];
        let resume = Resume { counters: &counters, logs: &[] };
        let env = env(self.now);
        self.host = Host::recover(machine, self.me, self.group, signer, env, snapshot.clone(), log, resume)?;
        self.kept = kept;
        self.pump();
        Ok(())
    }

    /// Where a replica's counter stands.
    fn counter(&mut self, replica: ReplicaId) -> CounterValue {
        match self.ask(replica, Call::Read { counter: CounterId(0) }) {
            Answer::Value(value) => value,
            other => panic!("the component answers: {other:?}"),
        }
    }

    /// Certifies anything in a replica's name, where its component does.
    fn certify(&mut self, replica: ReplicaId, new: CounterValue, body: Body) -> Option<Arc<Certified>> {
        let previous = self.counter(replica);
        let digest = body.digest(self.group.id(), replica);
        let answer =
            self.ask(replica, Call::Attest { counter: CounterId(0), previous, new, digest: digest.0 });
        let certificate = answer.attested()?.clone();
        let seal = Seal::Ui(Ui { certificate, run: None });
        let Message::Certified(message) = MinBft::seal(body, digest, replica, seal) else { return None };
        self.said.push(Arc::clone(&message));
        Some(message)
    }
}

fn env(now: u64) -> Env {
    Env { now: Time(now), wall: Time(WALL + now) }
}

fn machine(me: ReplicaId, group: Group, first: &Arc<Configuration>) -> App {
    let executor = Executor::with_configuration(
        Kv::default(),
        SMALL.limits,
        Arc::clone(first),
        SMALL.window + SMALL.interval,
    );
    Replica::new(me, group, MinBft::new(me, group, SMALL), executor)
}
