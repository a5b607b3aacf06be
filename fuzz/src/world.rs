//! Replicas that run a protocol with a real executor, among others that say anything: their components certify and
//! their hosts sign whatever the steps ask for, as those of faulty machines would. Either one replica is correct and
//! all others are faulty, who then get it anywhere; or f are faulty and the others are correct, who then must agree.

mod a2m_pbft_ea;
mod component;
mod draw;
mod histories;
mod minbft;
mod moves;
mod node;
mod pbft;

use crate::bytes::Steps;
use bytes::Bytes;
use component::Component;
use node::Node;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use troth_a2m_pbft_e::DIVERGED;
use troth_auth::{
    Directory, FrameVerifier, MessageVerifier, ModelPairs, ModelScheme, ModelSigner, Seal, Signer,
};
use troth_core::{Agreement, Command, Env, Execution, Halt, Input, PeerMessage, Replica, ReplicaTimer, To};
use troth_exec::{Executor, Snapshot};
use troth_kv::Kv;
use troth_trusted::CounterId;
use troth_trusted::a2m::{LOGS, Nonce};
use troth_types::{
    ClientEntry, ClientId, ComponentKey, Configuration, Digest, Frame, Group, HostKeys, Limits, Member,
    OPERATOR, ReplicaId, Seq, Time,
};

pub type App<P> = Replica<P, Executor<Kv>>;

/// The time of day when a world begins.
const WALL: u64 = 1_700_000_000_000_000;
/// Intervals so small that a few batches need a checkpoint.
const INTERVAL: u64 = 4;
const WINDOW: u64 = 8;
const PIPELINE: u64 = 4;
const CLIENTS: [u64; 3] = [1, 2, OPERATOR.0];
/// What one event may make a replica do, for which nothing that it is sent may be too much.
const MOST_COMMANDS: usize = 2_000;
/// Messages on their way between correct replicas; the network loses more.
const MOST_ON_THE_WAY: usize = 256;
/// Messages of correct replicas that the faulty ones remember.
const MOST_SAID: usize = 512;

/// How the replicas and clients of a group vouch for what they say, as `auth` of its configuration has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Auth {
    /// Clients sign, and so do replicas what third parties are shown.
    Signed,
    /// Clients may show authenticators instead.
    Mac,
    /// Replicas sign the three phases too.
    AllSigned,
}

/// A protocol as the world runs it.
pub(crate) trait Fuzzed: Agreement {
    /// How its groups can be set up.
    const AUTHS: &'static [Auth] = &[Auth::Signed];
    /// The counters of its components.
    const COUNTERS: &'static [CounterId] = &[];

    /// A group that tolerates one faulty replica.
    fn group() -> Group;
    /// A replica that has not stepped yet.
    fn agreement(me: ReplicaId, group: Group, auth: Auth) -> Self;
    /// Entries that each log of a component has room for, where it uses logs.
    fn room() -> Option<[usize; LOGS]> {
        None
    }
    /// Whether faulty replicas remember this message of a correct one: it can be shown to others, or says what they
    /// need to know to say the next thing.
    fn is_kept(message: &Self::Message) -> bool;
    /// The state that a CHECKPOINT vouches for.
    fn state(message: &Self::Message) -> Option<Digest>;
    /// A faulty replica vouches for something: `what` is one of 8 to 15.
    fn vouch(world: &mut World<Self>, from: ReplicaId, what: u8, steps: &mut Steps<'_>);
    /// What a faulty replica says without vouching for it, or passes on.
    fn say(world: &mut World<Self>, from: ReplicaId, steps: &mut Steps<'_>) -> Option<Self::Message>;
}

/// What survives a replica's process.
#[derive(Clone, Default)]
pub(crate) struct Kept {
    pub(crate) snapshot: Option<Snapshot>,
    pub(crate) log: Vec<Bytes>,
}

/// The replicas and everything around them.
pub(crate) struct World<P: Fuzzed> {
    group: Group,
    auth: Auth,
    nodes: Vec<Node<P>>,
    faulty: Vec<ReplicaId>,
    components: Vec<Component>,
    first: Arc<Configuration>,
    now: u64,
    /// What correct replicas have sent each other.
    wire: VecDeque<(ReplicaId, ReplicaId, PeerMessage<P::Message>)>,
    /// What anybody said that faulty replicas can use, in order.
    said: Vec<P::Message>,
    /// Frames of clients that the faulty replicas know.
    known: Vec<Arc<Frame>>,
    /// The states that correct replicas have come to.
    states: BTreeMap<Seq, Digest>,
    nonces: u64,
    /// Whether a replica may find that it must not go on: its log is not what it wrote.
    pub(crate) may_halt: bool,
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
    Arc::new(Configuration::new(group.all().map(member).collect(), CLIENTS.into_iter().map(client).collect()))
}

impl<P: Fuzzed> World<P> {
    /// The first byte of an input for a world in which this replica is the correct one, or the faulty one among correct
    /// ones that are `together`.
    pub(crate) fn cast(me: u16, auth: Auth, together: bool) -> u8 {
        let auth = P::AUTHS.iter().position(|known| *known == auth).expect("the protocol has it");
        let cast = usize::from(me) + P::group().n() * (auth + P::AUTHS.len() * usize::from(together));
        u8::try_from(cast).expect("there are few")
    }

    /// The world of this first byte.
    pub(crate) fn new(cast: u8) -> Self {
        let group = P::group();
        let (cast, n) = (usize::from(cast), group.n());
        let me = ReplicaId(u16::try_from(cast % n).expect("a small group"));
        let auth = P::AUTHS[cast / n % P::AUTHS.len()];
        let together = cast / n / P::AUTHS.len() % 2 == 1;
        let (faulty, correct): (Vec<_>, Vec<_>) =
            group.all().partition(|replica| (*replica == me) == together);
        let mut scheme = ModelScheme::default();
        group.all().for_each(|replica| scheme.register(&signer(replica)));
        CLIENTS.into_iter().for_each(|client| scheme.register(&ModelSigner::new(client)));
        let first = configuration(&group);
        let directory = Arc::new(Directory::new(group.id(), Arc::clone(&first)));
        let scheme = Arc::new(scheme);
        let components = Arc::new(component::verifier(&group));
        let messages = MessageVerifier::new(directory.clone(), scheme.clone(), components.clone());
        let messages = messages.with_attestations(components);
        let frames = FrameVerifier::new(directory, scheme, Limits::DEFAULT);
        let now = 1_000_000;
        let node = |me: &ReplicaId| {
            let frames = match auth {
                Auth::Mac => frames.with_pairs(*me, Arc::new(ModelPairs::of(*me))),
                Auth::Signed | Auth::AllSigned => frames.clone(),
            };
            Node::fresh(*me, machine(*me, group, auth, &first), group, env(now), messages.clone(), frames)
        };
        let mut world = Self {
            group,
            auth,
            nodes: correct.iter().map(node).collect(),
            faulty,
            components: group.all().map(|replica| Component::new(&group, replica, P::room())).collect(),
            first: Arc::clone(&first),
            now,
            wire: VecDeque::new(),
            said: Vec::new(),
            known: Vec::new(),
            states: BTreeMap::new(),
            nonces: 0,
            may_halt: false,
        };
        (0..world.nodes.len()).for_each(|at| world.pump(at));
        world
    }

    /// The same with one correct replica, whatever the byte says.
    pub(crate) fn of_one(cast: u8) -> Self {
        let alone = P::group().n() * P::AUTHS.len();
        Self::new(u8::try_from(usize::from(cast) % alone).expect("smaller than a byte"))
    }

    /// Carries out what a replica's host wants done, until it wants nothing. Everything is durable at once.
    fn pump(&mut self, at: usize) {
        let env = env(self.now);
        self.nodes[at].host.machine().agreement().invariants();
        let mut commands = 0;
        while let Some(command) = self.nodes[at].host.command() {
            commands += 1;
            assert!(commands <= MOST_COMMANDS, "one event makes a replica do that much");
            let node = &mut self.nodes[at];
            let component = &mut self.components[usize::from(node.me.0)];
            match command {
                Command::Append(bytes) => node.kept.log.push(bytes),
                Command::NewSegment { snapshot, .. } => {
                    node.kept = Kept { snapshot: Some(snapshot), log: Vec::new() };
                }
                Command::Attest(call) => node.host.attested(env, component.call(call)),
                Command::Logs(operations) => node.host.logged(env, component.logs(&operations)),
                Command::Draw(ticket) => {
                    self.nonces += 1;
                    let nonce = nonce(self.nonces);
                    node.host.drawn(env, ticket, nonce);
                }
                Command::Return(message) => node.host.returned(env, message),
                Command::Peer { to, message } => self.sent(at, to, message),
                Command::SetTimer { timer, at } => drop(node.timers.insert(timer, at)),
                Command::CancelTimer(timer) => drop(node.timers.remove(&timer)),
                Command::Configured(configuration) => node.configured(&self.group, configuration),
                Command::Halt(why) => {
                    assert!(self.may_end(why), "a replica and its component disagree: {why:?}");
                    self.nodes[at].ended = true;
                    return;
                }
                Command::Sync | Command::Client(_) | Command::Note(_) => {}
            }
        }
        self.nodes[at].host.machine().agreement().invariants();
        self.compare(at);
    }

    /// Whether this is an end that a correct replica may come to: where more than f others are faulty, they may certify a
    /// history that is not its own.
    fn may_end(&self, why: Halt) -> bool {
        let is_alone = self.nodes.len() == 1;
        self.may_halt || (is_alone && P::PROVES_REPLIES && why == Halt::Machine(DIVERGED))
    }

    /// Correct replicas never execute differently.
    fn compare(&mut self, at: usize) {
        let execution = self.nodes[at].host.machine().execution();
        let seq = execution.executed();
        if self.nodes.len() == 1 || seq != execution.committed() || seq == self.nodes[at].compared {
            return;
        }
        let digest = execution.digest_now();
        self.nodes[at].compared = seq;
        let known = *self.states.entry(seq).or_insert(digest);
        assert_eq!(known, digest, "two correct replicas differ in what they executed up to {seq}");
    }

    /// A correct replica sends.
    fn sent(&mut self, at: usize, to: To, message: PeerMessage<P::Message>) {
        let from = self.nodes[at].me;
        if let PeerMessage::Protocol(message) = &message
            && P::is_kept(message)
            && self.said.len() < MOST_SAID
            && !self.said.contains(message)
        {
            self.said.push(message.clone());
        }
        for node in self.nodes.iter().filter(|node| node.me != from) {
            let is_for_it = match to {
                To::Others => true,
                To::One(one) => one == node.me,
            };
            if is_for_it && self.wire.len() < MOST_ON_THE_WAY {
                self.wire.push_back((from, node.me, message.clone()));
            }
        }
    }

    fn input(&mut self, at: usize, input: Input<P::Message, ReplicaTimer<P::Timer>>) {
        if !self.nodes[at].ended {
            self.nodes[at].host.input(env(self.now), input);
            self.pump(at);
        }
    }

    /// Time passes, and what is due happens.
    fn pass(&mut self, micros: u64) {
        let end = self.now + micros;
        // A timer may be set again for the same time.
        for _ in 0..50 {
            let due = self
                .nodes
                .iter()
                .enumerate()
                .filter(|(_, node)| !node.ended)
                .flat_map(|(node, it)| it.timers.iter().map(move |(timer, at)| (*at, node, *timer)));
            let Some((at, node, timer)) = due.min().filter(|(at, ..)| at.0 <= end) else { break };
            self.now = self.now.max(at.0);
            self.nodes[node].timers.remove(&timer);
            self.input(node, Input::Timer(timer));
        }
        self.now = end;
    }

    /// A correct replica's process ends, and another one goes on from what was kept.
    ///
    /// # Errors
    /// Why it does not start from that.
    pub(crate) fn restart(&mut self, at: usize, kept: Kept) -> Result<(), String> {
        let me = self.nodes[at].me;
        let component = &mut self.components[usize::from(me.0)];
        let counters: Vec<_> = P::COUNTERS.iter().map(|counter| component.resume(*counter)).collect();
        let logs = match P::room() {
            Some(_) => component.settle::<App<P>>(&kept.log, me, self.group.id())?,
            None => Vec::new(),
        };
        let machine = machine(me, self.group, self.auth, &self.first);
        self.nodes[at].restart(machine, self.group, env(self.now), kept, &counters, &logs)?;
        self.pump(at);
        Ok(())
    }

    /// Where the first correct replica stands.
    #[cfg(test)]
    pub(crate) fn status(&self) -> troth_core::Status {
        self.nodes[0].host.machine().status()
    }

    /// What the first correct replica kept.
    pub(crate) fn kept(&self) -> &Kept {
        &self.nodes[0].kept
    }

    /// Signs anything in a replica's name.
    fn sign(&self, from: ReplicaId, body: P::Body) -> P::Message {
        let digest = P::digest(&body, self.group.id(), from);
        P::seal(body, digest, from, Seal::Signature(signer(from).sign(&digest)))
    }
}

/// Not secret from anybody here, and never drawn twice.
fn nonce(number: u64) -> Nonce {
    let mut nonce = [0; 32];
    nonce[..8].copy_from_slice(&number.to_le_bytes());
    nonce
}

fn env(now: u64) -> Env {
    Env { now: Time(now), wall: Time(WALL + now) }
}

fn machine<P: Fuzzed>(me: ReplicaId, group: Group, auth: Auth, first: &Arc<Configuration>) -> App<P> {
    let executor =
        Executor::with_configuration(Kv::default(), Limits::DEFAULT, Arc::clone(first), WINDOW + INTERVAL);
    Replica::new(me, group, P::agreement(me, group, auth), executor)
}
