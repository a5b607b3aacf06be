//! How a seed's world begins.

use super::byzantine::{ByzantineClient, SPOILERS};
use super::client::{Client, Proofs};
use super::event::{Agenda, Event};
use super::heirs::HEIRS_EPOCH;
use super::kv::KvWorkload;
use super::logs::JUMPERS_ROOM;
use super::network::Network;
use super::node::{Blueprint, Node, OwnClock};
use super::operator::Operator;
use super::trace::Trace;
use super::workload::Workload;
use super::{Outcome, Selective, World};
use crate::adversary::{
    Adversary, Amnesia, Janus, Pact, Parrot, Proxy, Puppet, Relapse, Strategy, Succession, Twin,
};
use crate::checks::{Checks, ReplyIntegrity};
use crate::component::{FIRST_EPOCH, GroupPairs, WireWatch, component, component_of, link_of};
use crate::logs::Pretender;
use crate::options::{FaultClass, FaultyKind};
use crate::zookeeper::{Gateway, Town};
use crate::{Options, Protocol, Rng, ServiceKind};
use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;
use std::sync::Arc;
use troth_auth::{
    Directory, FrameVerifier, History, MessageVerifier, ModelPairs, ModelScheme, ModelSigner, Signer,
};
use troth_client::Proven;
use troth_trusted::Epoch;
use troth_types::{
    ClientEntry, ClientId, ComponentKey, Configuration, HostKeys, Limits, Member, OPERATOR, ReplicaId,
};

/// Model signers of replicas count from here.
const REPLICA_KEYS: u64 = 1_000_000;

/// The limits of a seed's group.
pub(crate) fn limits(options: &Options) -> Limits {
    Limits { client_window: options.client_window, batch_frames: options.batch_frames, ..Limits::DEFAULT }
}

struct Keys {
    replicas: Vec<ModelSigner>,
    clients: BTreeMap<ClientId, ModelSigner>,
}

impl Keys {
    fn new(options: &Options) -> Self {
        let all = 1..=(options.clients + options.byzantine_clients) as u64;
        Self {
            replicas: (0..u64::from(options.n)).map(|index| ModelSigner::new(REPLICA_KEYS + index)).collect(),
            clients: all
                .chain([OPERATOR.0])
                .map(|client| (ClientId(client), ModelSigner::new(client)))
                .collect(),
        }
    }

    fn scheme(&self) -> Arc<ModelScheme> {
        let mut scheme = ModelScheme::default();
        for signer in self.replicas.iter().chain(self.clients.values()) {
            scheme.register(signer);
        }
        Arc::new(scheme)
    }

    /// Who is in the group when it begins.
    fn configuration(&self) -> Arc<Configuration> {
        let member = |signer: &ModelSigner| {
            let host = HostKeys { signing: signer.public_key().0, ..HostKeys::default() };
            Member::new(FIRST_EPOCH, ComponentKey::Group, host)
        };
        let client = |(client, signer): (&ClientId, &ModelSigner)| {
            (*client, ClientEntry { key: signer.public_key().0, link: link_of(*client), removed: false })
        };
        let members = self.replicas.iter().map(member).collect();
        Arc::new(Configuration::new(members, self.clients.iter().map(client).collect()))
    }
}

fn strategy<P: Protocol>(options: &Options, kind: FaultyKind, me: ReplicaId) -> Box<dyn Strategy<P>> {
    match kind {
        FaultyKind::Proxy => Box::new(Proxy::new(options.view_timeout * 2)),
        FaultyKind::Twin => Box::new(Twin::new(options.view_timeout * 2)),
        FaultyKind::Janus => Box::new(Janus::default()),
        FaultyKind::Parrot => Box::new(Parrot::new(options.view_timeout * 2)),
        FaultyKind::Amnesia if Rng::stream(options.seed, "amnesia", u64::from(me.0)).one_in(2) => {
            Box::new(Amnesia::at_changes(options.view_timeout / 2))
        }
        FaultyKind::Amnesia => Box::new(Amnesia::new(options.view_timeout * 3)),
        FaultyKind::Relapse => Box::new(Relapse::default()),
        FaultyKind::Heir => P::HEIR.expect("only drawn where there is one")(),
        FaultyKind::Written(index) => (P::strategies()[index].1)(),
    }
}

impl<P: Protocol> World<P> {
    pub(crate) fn new(options: &Options, traced: usize) -> Self {
        let group = P::group(options.f);
        let limits = limits(options);
        let tagged = P::AUTHENTICATORS && Rng::stream(options.seed, "authenticators", 0).one_in(2);
        let spoil = tagged && options.has(FaultClass::Clients);
        let spoil = spoil && Rng::stream(options.seed, "authenticators", 1).one_in(3);
        let byzantine_clients = if spoil { SPOILERS } else { options.byzantine_clients };
        let options = &Options { byzantine_clients, ..options.clone() };
        let keys = Keys::new(options);
        let scheme = keys.scheme();
        let configuration = keys.configuration();
        let directory = Arc::new(Directory::new(group.id(), Arc::clone(&configuration)));
        let watch = WireWatch::new(&group);
        let signers: Vec<Arc<dyn Signer>> =
            keys.replicas.iter().map(|signer| Arc::new(signer.clone()) as Arc<dyn Signer>).collect();
        let client_signer = |id: ClientId| Arc::new(keys.clients[&id].clone());
        let tags = |id: ClientId| tagged.then(|| ModelPairs::of_client(id, &group));
        let history = P::history().map(|log| {
            let first = group.all().map(|_| Epoch(FIRST_EPOCH));
            History::new(group.id(), log, watch.clone(), first)
        });
        // What no other session has had.
        let session_of = |id: ClientId| {
            let mut names = Rng::stream(options.seed, "session", id.0);
            let mut session = [0; 32];
            session.chunks_mut(8).for_each(|part| part.copy_from_slice(&names.next().to_be_bytes()));
            session
        };
        let proven = |id| {
            let history = history.clone().map(|history| history.of_client(Arc::new(GroupPairs(link_of(id)))));
            history.map(|history| Proven { history, session: session_of(id) })
        };
        let operator = Operator::new(
            options,
            group,
            limits,
            Arc::new(keys.clients[&OPERATOR].clone()),
            proven(OPERATOR),
            P::RENEWS_LOGS,
        );
        let town = Rc::new(RefCell::new(Town::default()));
        let workload = |id: ClientId| -> Box<dyn Workload> {
            match options.service {
                ServiceKind::Kv => Box::new(KvWorkload::new(options, id)),
                ServiceKind::ZooKeeper => Box::new(Gateway::new(options, id, Rc::clone(&town))),
            }
        };
        let clients = (1..=options.clients as u64)
            .map(ClientId)
            .map(|id| {
                let acceptance = P::acceptance(&group);
                // In every second seed everything goes to everybody.
                let primary_shows = P::primary_shows() && options.seed.is_multiple_of(2);
                let proofs =
                    Proofs { acceptance, primary_shows, authenticators: tags(id), history: proven(id) };
                Client::new(options, group, limits, id, client_signer(id), proofs, workload(id))
            })
            .collect();
        let byzantine = (1..=options.byzantine_clients as u64)
            .map(|index| {
                let id = ClientId(options.clients as u64 + index);
                let (seed, window) = (options.seed, options.client_window);
                let client =
                    ByzantineClient::new(seed, group, id, keys.clients[&id].clone(), window, tags(id));
                let client = match options.service {
                    ServiceKind::Kv => client,
                    ServiceKind::ZooKeeper => client.among(Rc::clone(&town), options.keys),
                };
                if spoil { client.spoiling(index as usize - 1) } else { client }
            })
            .collect();
        let mut checks = Checks {
            beyond: options.beyond(),
            only: options.only.clone(),
            replies: ReplyIntegrity::of(options.client_window, options.service),
            ..Checks::default()
        };
        checks.liveness.bound = super::LIVENESS_BOUND;
        let mut world = Self {
            options: options.clone(),
            blueprint: Blueprint { options: options.clone(), group, limits, signers, configuration },
            agenda: Agenda::default(),
            network: Network::new(options),
            selective: Selective::new(options),
            nodes: Vec::new(),
            hosts: vec![Vec::new(); group.n()],
            clients,
            byzantine,
            operator,
            newest: 0,
            loss_rng: Rng::stream(options.seed, "losses", 1),
            adversaries: Vec::new(),
            pact: Rc::new(RefCell::new(Pact::default())),
            pact_until: 0,
            stage_until: 0,
            entered: false,
            messages: MessageVerifier::new(Arc::clone(&directory), scheme.clone(), watch.clone())
                .with_attestations(watch.clone()),
            frames: FrameVerifier::new(directory, scheme, limits),
            watch,
            checks,
            storage_rng: Rng::stream(options.seed, "storage", 0),
            fault_rng: Rng::stream(options.seed, "faults", 0),
            adversary_rng: Rng::stream(options.seed, "adversary", 0),
            nonce_rng: Rng::stream(options.seed, "nonces", 0),
            wire_countdown: options.wire_one_in,
            invariants_countdown: 1,
            healed: false,
            over: false,
            next_look: super::LOOK,
            outcome: Outcome::default(),
            trace: Trace::new(traced),
        };
        world.people(&keys);
        world
    }

    /// Puts the replicas there.
    fn people(&mut self, keys: &Keys) {
        let group = self.blueprint.group;
        for replica in group.all() {
            let Some(faulty) = self.options.faulty(replica.0).copied() else {
                self.add_node(replica, None);
                continue;
            };
            let index = self.adversaries.len();
            let strategy = strategy::<P>(&self.options, faulty.kind, replica);
            let hosts = strategy.hosts();
            let signer = keys.replicas[usize::from(replica.0)].clone();
            let nodes = (0..hosts).map(|host| self.add_node(replica, Some((index, host)))).collect();
            self.adversaries.push(Adversary {
                me: replica,
                strategy,
                nodes,
                effective: 0,
                active: true,
                silent: false,
                succession: Succession::default(),
                puppet: Puppet::new(replica, group, component(&group, replica), signer.clone(), hosts),
                heir: Puppet::new(replica, group, component_of(&group, replica, HEIRS_EPOCH), signer, 0),
                logs: P::log_room(&self.options).map(|_| {
                    let count = if self.options.negative { hosts } else { 1 };
                    let real = (0..count).filter_map(|_| self.empty_logs(replica, FIRST_EPOCH, JUMPERS_ROOM));
                    Pretender::new(real.collect(), hosts, self.jumps())
                }),
                heard: VecDeque::new(),
                rng: Rng::stream(self.options.seed, "adversary", 1 + u64::from(replica.0)),
                service: self.options.service,
                pact: Rc::clone(&self.pact),
            });
            self.pact.borrow_mut().members |= 1 << replica.0;
        }
    }

    pub(super) fn add_node(&mut self, replica: ReplicaId, adversary: Option<(usize, usize)>) -> usize {
        let index = self.nodes.len();
        let mut rng = Rng::stream(self.options.seed, "node", index as u64);
        let skew = if self.options.skew == 0 { 0 } else { rng.below(self.options.skew) };
        let local_start = rng.below(1 << 40);
        let component = component(&self.blueprint.group, replica);
        let mut node = Node::new(replica, adversary, component, local_start, skew);
        // Only sessions care for the time.
        if adversary.is_some() && self.options.service == ServiceKind::ZooKeeper {
            node.clock = Some(OwnClock::new(&mut rng, 20 * self.options.clock_bound()));
        }
        node.logs = adversary.is_none().then(|| self.empty_logs(replica, FIRST_EPOCH, 1)).flatten();
        self.nodes.push(node);
        self.hosts[usize::from(replica.0)].push(index);
        index
    }

    /// Everything begins.
    pub(crate) fn start(&mut self) {
        for index in 0..self.nodes.len() {
            let started = self.nodes[index].start(&self.blueprint, 0);
            let result = started.map_err(|why| format!("a fresh start failed: {why}"));
            self.checks.judge("start", &[index], result);
            self.plan_crash(index);
            self.pump(index);
        }
        for client in 0..self.clients.len() {
            for _ in 0..self.options.outstanding {
                let pause = self.clients[client].pause();
                self.agenda.after(pause, Event::Think(client));
            }
        }
        for index in 0..self.byzantine.len() {
            let pause = self.byzantine[index].pause(self.agenda.now);
            self.agenda.after(pause, Event::ByzantineClient(index));
        }
        if self.options.has(FaultClass::Partitions) || self.options.has(FaultClass::Cuts) {
            let pause = self.fault_rng.exponential(self.options.fault_pause);
            self.agenda.after(pause, Event::Fault);
        }
        if self.options.has(FaultClass::Crashes) {
            let pause = self.fault_rng.exponential(self.options.crash_pause);
            self.agenda.after(pause, Event::Crash);
        }
        if self.options.has(FaultClass::Losses) {
            let pause = self.loss_rng.exponential(self.options.fault_phase / 3);
            self.agenda.after(pause, Event::Lose);
        }
        self.agenda.after(1_000, Event::Tick);
    }
}
