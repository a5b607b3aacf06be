//! One client. Every request is a submission of its own; what is ready when the client speaks goes
//! out as one frame.

use bytes::Bytes;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use troth_auth::{Authenticators, Ed25519Signer, History, Signer};
use troth_client::{Acceptance, ClientCore, Config, Output, Proven};
use troth_node::config::{ClientSecret, Cluster, Protocol};
use troth_types::{
    ClientId, Frame, FrameDraft, Group, Limits, ReplicaId, Reply, ReplyBody, Time, ToClient, ToReplica, Wire,
    Wish,
};

/// What a client wants after a step.
#[derive(Debug, Default)]
pub(crate) struct Wants {
    /// Messages, and which server gets each.
    pub(crate) sends: Vec<(usize, Bytes)>,
    /// Requests that have their result, by number from 0.
    pub(crate) done: Vec<u64>,
    /// Why requests failed that did; none may.
    pub(crate) failed: Vec<String>,
    /// Frames signed.
    pub(crate) frames: u64,
}

/// A client as the load generator drives it.
pub(crate) trait Caller {
    /// How many servers it talks to.
    fn servers(&self) -> usize;
    /// Takes the next request.
    fn submit(&mut self, now: Time, operation: Bytes);
    /// Takes a server's message.
    fn on_message(&mut self, now: Time, from: usize, message: ToClient);
    /// Lets time pass.
    fn on_time(&mut self, now: Time);
    /// When time has it do something, unless something comes before.
    fn next_wake(&self) -> Option<Time>;
    /// Says what it wants now.
    fn poll(&mut self, wants: &mut Wants);
}

/// What clients of a group believe. They share what they have checked of the replicas' histories, as the clients of one
/// process do who were configured together: a batch has frames of several of them.
#[derive(Clone)]
pub(crate) struct Belief {
    group: Group,
    limits: Limits,
    acceptance: Acceptance,
    primary_shows: bool,
    /// The histories, and the cluster by which each client has keys of its own with their components.
    history: Option<(History, Arc<Cluster>)>,
}

impl Belief {
    /// The same with so many operations in a frame at most.
    pub(crate) fn with_frame_operations(mut self, most: usize) -> Self {
        self.limits.frame_operations = most;
        self
    }

    /// As the cluster's configuration has it.
    pub(crate) fn of(cluster: &Cluster) -> Self {
        let group = cluster.group;
        let acceptance = match cluster.protocol {
            Protocol::Pbft => Acceptance::pbft(&group),
            Protocol::MinBft | Protocol::A2mPbftE | Protocol::A2mPbftEa => Acceptance::hybrid(&group),
        };
        let history = cluster.shared_history().map(|history| (history, Arc::new(cluster.clone())));
        let primary_shows = cluster.protocol.primary_shows();
        Self { group, limits: cluster.limits, acceptance, primary_shows, history }
    }
}

/// A client of a replica group: the client's own machine, which accepts what f+1 replicas say.
pub(crate) struct Replicated {
    core: ClientCore,
    servers: usize,
    /// The newest frame, which goes to every replica, and its encoding.
    encoded: Option<(Arc<Frame>, Wish, Bytes)>,
    /// Whether it goes on where a request has no result.
    careless: bool,
}

impl Replicated {
    /// A client that signs everything.
    pub(crate) fn new(belief: &Belief, secret: &ClientSecret) -> Self {
        Self::with(belief, secret, None)
    }

    /// The same with the keys of its authenticators, where the group takes such.
    pub(crate) fn with(
        belief: &Belief,
        secret: &ClientSecret,
        authenticators: Option<Authenticators>,
    ) -> Self {
        let Belief { group, limits, acceptance, primary_shows, history } = belief.clone();
        let signer = Ed25519Signer::from_seed(secret.seed);
        // It reads nothing without having it ordered, so it makes no nonces.
        let history = history.map(|(history, cluster)| Proven {
            history: history.of_client(cluster.component_pairs(&secret.link)),
            session: [0; 32],
        });
        let config = Config {
            acceptance,
            primary_shows,
            limits,
            authenticators,
            history,
            ..Config::new(group, secret.client)
        };
        Self {
            core: ClientCore::new(config, Arc::new(signer)),
            servers: group.n(),
            encoded: None,
            careless: false,
        }
    }

    /// One that goes on where a request has no result: who asks for more than is kept for it has none of some.
    pub(crate) fn careless(self) -> Self {
        Self { careless: true, ..self }
    }

    fn encode(&mut self, message: &ToReplica, frames: &mut u64) -> Bytes {
        let ToReplica::Request { frame, wish } = message else { return message.to_wire() };
        match &self.encoded {
            Some((known, known_wish, bytes)) if Arc::ptr_eq(known, frame) && known_wish == wish => {
                bytes.clone()
            }
            _ => {
                *frames += u64::from(matches!(wish, Wish::Usual | Wish::Alone));
                let bytes = message.to_wire();
                self.encoded = Some((Arc::clone(frame), *wish, bytes.clone()));
                bytes
            }
        }
    }
}

impl Caller for Replicated {
    fn servers(&self) -> usize {
        self.servers
    }

    fn submit(&mut self, now: Time, operation: Bytes) {
        self.core.submit(now, vec![operation]).expect("the plan stays within the client's bounds");
    }

    fn on_message(&mut self, now: Time, from: usize, message: ToClient) {
        let from = ReplicaId(u16::try_from(from).expect("a group counts in u16"));
        self.core.on_message(now, from, message);
    }

    fn on_time(&mut self, now: Time) {
        self.core.on_timer(now);
    }

    fn next_wake(&self) -> Option<Time> {
        self.core.next_wake()
    }

    fn poll(&mut self, wants: &mut Wants) {
        while let Some(output) = self.core.poll() {
            match output {
                Output::Send { to, message } => {
                    let bytes = self.encode(&message, &mut wants.frames);
                    wants.sends.push((usize::from(to.0), bytes));
                }
                Output::Done { ticket, result, .. } => match result {
                    Ok(results) if results.len() == 1 => wants.done.push(ticket.0),
                    Ok(results) => wants.failed.push(format!("{} results for one operation", results.len())),
                    Err(_) if self.careless => wants.done.push(ticket.0),
                    Err(why) => wants.failed.push(why.to_string()),
                },
                // The null service has none.
                Output::Event(event) => wants.failed.push(format!("an event nobody asked for: {event:?}")),
            }
        }
    }
}

/// A client of the unreplicated service, which believes its only server.
pub(crate) struct Plain {
    client: ClientId,
    group: Group,
    limits: Limits,
    signer: Ed25519Signer,
    waiting: VecDeque<Bytes>,
    /// Requests that went into frames before.
    framed: u64,
    next_number: u64,
    /// Frames under way: their first request and how many there are.
    flights: BTreeMap<u64, (u64, usize)>,
    done: Vec<u64>,
    failed: Vec<String>,
}

impl Plain {
    pub(crate) fn new(group: Group, client: ClientId, limits: Limits, signer: Ed25519Signer) -> Self {
        Self {
            client,
            group,
            limits,
            signer,
            waiting: VecDeque::new(),
            framed: 0,
            next_number: 1,
            flights: BTreeMap::new(),
            done: Vec::new(),
            failed: Vec::new(),
        }
    }

    fn on_reply(&mut self, reply: Reply) {
        let Some((first, count)) = self.flights.remove(&reply.number) else { return };
        match reply.body {
            ReplyBody::Full(results) if results.len() == count => {
                self.done.extend(first..first + count as u64);
            }
            other => self.failed.push(format!("no {count} results: {other:?}")),
        }
    }

    /// The next frame: what waits, within the group's limits.
    fn frame(&mut self) -> Frame {
        let mut bytes = 128;
        let mut operations = Vec::new();
        while let Some(operation) = self.waiting.front()
            && operations.len() < self.limits.frame_operations
            && bytes + operation.len() + 4 <= self.limits.frame_bytes
        {
            bytes += operation.len() + 4;
            operations.extend(self.waiting.pop_front());
        }
        let number = self.next_number;
        self.next_number += 1;
        self.flights.insert(number, (self.framed, operations.len()));
        self.framed += operations.len() as u64;
        let draft =
            FrameDraft { group: self.group.id(), client: self.client, number, events_seen: 0, operations };
        let signature = self.signer.sign(&draft.signing_digest());
        draft.sign(signature)
    }
}

impl Caller for Plain {
    fn servers(&self) -> usize {
        1
    }

    fn submit(&mut self, _now: Time, operation: Bytes) {
        self.waiting.push_back(operation);
    }

    fn on_message(&mut self, _now: Time, _from: usize, message: ToClient) {
        match message {
            ToClient::Reply(reply) => self.on_reply(reply),
            other => self.failed.push(format!("no reply: {other:?}")),
        }
    }

    fn on_time(&mut self, _now: Time) {}

    fn next_wake(&self) -> Option<Time> {
        None
    }

    fn poll(&mut self, wants: &mut Wants) {
        wants.done.append(&mut self.done);
        wants.failed.append(&mut self.failed);
        let window = usize::try_from(self.limits.client_window).unwrap_or(usize::MAX);
        while !self.waiting.is_empty() && self.flights.len() < window {
            let message = ToReplica::Request { frame: Arc::new(self.frame()), wish: Wish::Usual };
            wants.frames += 1;
            wants.sends.push((0, message.to_wire()));
        }
    }
}
