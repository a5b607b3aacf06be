//! The world: hosts, clients, network and adversaries on one heap of events, in virtual time.

mod byzantine;
mod client;
mod deliver;
mod event;
mod faults;
mod heirs;
mod kv;
mod logs;
mod losses;
mod network;
mod node;
mod operator;
mod pump;
mod relapses;
mod selective;
mod setup;
mod trace;
mod workload;

pub use client::FRESH;
pub use event::Agenda;
pub(crate) use losses::MOST_EPOCHS;
pub use network::Network;
pub use node::Machine;
pub(crate) use node::WALL_START;
pub use selective::Selective;
pub(crate) use setup::limits;
pub(crate) use workload::{Called, Workload};

use crate::adversary::{Adversary, Pact};
use crate::checks::{Checks, ClientState, Violation};
use crate::component::WireWatch;
use crate::zookeeper::audit;
use crate::{Message, Options, Protocol, Rng};
use byzantine::ByzantineClient;
use client::Client;
use event::{Envelope, Event};
use node::{Blueprint, Node};
use operator::Operator;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;
use trace::Trace;
pub use trace::take as last_lines;
use troth_auth::{FrameVerifier, MessageVerifier};
use troth_core::{Agreement as _, Execution as _, PeerMessage};
use troth_types::ReplicaId;

/// Virtual microseconds between two looks at the whole.
const LOOK: u64 = 20_000;
/// Virtual microseconds after the healing within which everything must finish.
const LIVENESS_BOUND: u64 = 120_000_000;

std::thread_local! {
    static ACTOR: std::cell::Cell<Option<(usize, ReplicaId, bool)>> = const { std::cell::Cell::new(None) };
}

/// Who acts on this thread, for the report of a failed assertion.
#[must_use]
pub fn actor() -> String {
    match ACTOR.get() {
        None => "the world".to_owned(),
        Some((node, replica, true)) => format!("node {node} of the faulty {replica}"),
        Some((node, replica, false)) => format!("node {node}, {replica}"),
    }
}

/// What a run came to.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// The first violation.
    pub violation: Option<Violation>,
    /// A rolling hash of all events.
    pub hash: u64,
    /// Messages and requests delivered.
    pub steps: u64,
    /// Requests that took effect.
    pub ordered: u64,
    /// View changes: the highest view that a correct replica worked in.
    pub view_changes: u64,
    /// The highest stable checkpoint.
    pub stable: u64,
    /// State transfers completed by correct replicas.
    pub transfers: u64,
    /// Restarts of correct replicas.
    pub restarts: u64,
    /// Machines lost or replaced.
    pub losses: u64,
    /// Replicas that voted again afterwards.
    pub readmissions: u64,
    /// Frames whose tag was wrong for a correct replica that they were shown to.
    pub doubtful: u64,
    /// What adversaries and Byzantine clients did that correct ones would not.
    pub effective: u64,
    /// Accusations of faulty replicas.
    pub accusations: u64,
    /// Events delivered to clients.
    pub events: u64,
    /// Reads answered, and how many of them without being ordered.
    pub reads: u64,
    /// The latter.
    pub fast_reads: u64,
    /// Batches that correct replicas executed tentatively and undid.
    pub undone: u64,
    /// Histories too long to judge.
    pub undecided: u64,
    /// Virtual microseconds from the healing until everything was done.
    pub healing: u64,
    /// Virtual microseconds that a request after the healing waited for its answer, at most.
    pub waited: u64,
    /// What the coordination service did, and how often.
    pub service: BTreeMap<&'static str, u64>,
    /// The last things that happened, where a trace was asked for.
    pub trace: Vec<String>,
    /// What the faulty replicas were.
    pub adversaries: Vec<&'static str>,
}

/// A seed's world.
pub struct World<P: Protocol> {
    options: Options,
    blueprint: Blueprint,
    agenda: Agenda<P>,
    network: Network,
    selective: Selective,
    nodes: Vec<Node<P>>,
    /// The nodes that play each replica.
    hosts: Vec<Vec<usize>>,
    clients: Vec<Client>,
    byzantine: Vec<ByzantineClient>,
    operator: Operator,
    /// The number of the newest configuration that any node knows.
    newest: u64,
    loss_rng: Rng,
    adversaries: Vec<Adversary<P>>,
    pact: Rc<RefCell<Pact>>,
    pact_until: u64,
    /// Until when the present stage of those who relapse lasts, as far as that is known.
    stage_until: u64,
    /// Whether somebody works in a later view than when those who relapse fell silent.
    entered: bool,
    messages: MessageVerifier,
    frames: FrameVerifier,
    watch: Arc<WireWatch>,
    checks: Checks,
    storage_rng: Rng,
    fault_rng: Rng,
    adversary_rng: Rng,
    nonce_rng: Rng,
    wire_countdown: u64,
    invariants_countdown: u64,
    healed: bool,
    /// The run has gone as far as it was meant to.
    over: bool,
    next_look: u64,
    outcome: Outcome,
    trace: Trace,
}

impl<P: Protocol> World<P> {
    /// Runs a seed to its end; keeps the last `traced` lines of what happened.
    #[must_use]
    pub fn run(options: &Options, traced: usize) -> Outcome {
        let mut world = Self::new(options, traced);
        world.start();
        while world.checks.violation.is_none() && !world.over && world.step() {}
        world.finish()
    }

    /// Lets the next event happen; false when the run is over.
    fn step(&mut self) -> bool {
        let Some(event) = self.agenda.take_next() else {
            self.checks.judge("liveness", &[], Err("nothing is left to happen".to_owned()));
            return false;
        };
        if self.agenda.now >= self.next_look {
            self.next_look = self.agenda.now + LOOK;
            if self.look() {
                return false;
            }
        }
        self.happen(event);
        true
    }

    fn mix(&mut self, code: u64, detail: u64) {
        let mut hash = self.outcome.hash ^ self.agenda.now.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        hash = hash.rotate_left(23).wrapping_mul(0xbf58_476d_1ce4_e5b9) ^ (code << 56) ^ detail;
        self.outcome.hash = hash;
    }

    fn happen(&mut self, event: Event<P>) {
        match event {
            Event::Peer(node, envelope) => {
                self.mix(1, (node as u64) << 16 | u64::from(envelope.from.0));
                self.deliver_peer(node, &envelope);
            }
            Event::Client(node, message) => {
                self.mix(2, node as u64);
                self.deliver_client(node, message);
            }
            Event::Answer(client, from, message) => {
                self.mix(3, (client as u64) << 16 | u64::from(from.0));
                self.outcome.steps += 1;
                let now = self.agenda.now;
                self.trace.note(now, || format!("{from} -> client {client}: {message:?}"));
                self.clients[client].hear(now, from, message);
                self.settle_client(client);
            }
            Event::Timer(node, life, timer, at) => self.timer(node, life, timer, at),
            Event::Synced(node, life) => {
                self.mix(5, node as u64);
                self.synced(node, life);
            }
            Event::Attested(node, life, answer) => {
                self.mix(6, node as u64);
                self.attested(node, life, answer);
            }
            Event::Logged(node, life, answers) => {
                self.mix(19, node as u64);
                self.logged(node, life, answers);
            }
            Event::ClientWake(client) => {
                let now = self.agenda.now;
                if self.clients[client].wake_at == Some(now) {
                    self.mix(7, client as u64);
                    self.clients[client].wake_at = None;
                    self.clients[client].wake(now);
                    self.settle_client(client);
                }
            }
            Event::Think(client) => {
                self.mix(8, client as u64);
                self.clients[client].submit(self.agenda.now, self.checks.reads.revealed());
                self.settle_client(client);
                if self.clients[client].has_room() {
                    let pause = self.clients[client].pause().max(100);
                    self.agenda.after(pause, Event::Think(client));
                }
            }
            Event::Read(client) => {
                self.mix(14, client as u64);
                self.clients[client].read(self.agenda.now, self.checks.reads.revealed());
                self.settle_client(client);
            }
            Event::ByzantineClient(index) => self.byzantine_client(index),
            Event::OperatorAnswer(from, message) => {
                self.mix(17, u64::from(from.0));
                self.answer_operator(from, message);
            }
            Event::OperatorWake => {
                if self.operator.wake_at == Some(self.agenda.now) {
                    self.operator.wake_at = None;
                    self.settle_operator();
                }
            }
            Event::OperatorLooks => self.hand_out(),
            Event::Lose => self.lose(),
            Event::Fault => self.network_fault(),
            Event::Crash => self.crash_someone(),
            Event::Restart(node, life) => self.restart(node, life),
            Event::Tick => self.tick(),
        }
    }

    /// Carries out what a client wants, and plans its next moments.
    fn settle_client(&mut self, index: usize) {
        let now = self.agenda.now;
        let mut send = Vec::new();
        let ended = self.clients[index].drain(now, &mut self.checks, &mut send);
        for sending in send {
            for node in self.hosts[usize::from(sending.to.0)].clone() {
                for delay in self.network.copies().into_iter().flatten() {
                    self.agenda.after(delay, Event::Client(node, sending.message.clone()));
                }
            }
        }
        for _ in 0..ended {
            let pause = self.clients[index].pause();
            self.agenda.after(pause, Event::Think(index));
        }
        if let Some(at) = self.clients[index].next_wake() {
            let at = at.max(now + 1);
            if self.clients[index].wake_at.is_none_or(|planned| planned > at || planned < now) {
                self.clients[index].wake_at = Some(at);
                self.agenda.at(at, Event::ClientWake(index));
            }
        }
    }

    /// Looks at the whole now and then; true when the run is over.
    fn look(&mut self) -> bool {
        if !self.options.trust_blind {
            let result = self.checks.trusted.look(&self.watch);
            self.checks.judge("trusted uniqueness", &[], result);
        }
        for index in 0..self.nodes.len() {
            self.look_for_votes(index);
            self.look_at(index);
        }
        if self.checks.violation.is_some() {
            return true;
        }
        let now = self.agenda.now;
        if !self.healed {
            let satisfied = self.clients.iter().all(Client::satisfied) && now >= self.options.fault_phase / 3;
            if self.checks.beyond && now >= self.options.fault_phase {
                // Nothing need come of what is still under way.
                return true;
            }
            if satisfied || now >= self.options.fault_phase {
                self.heal();
            }
            return false;
        }
        let states: Vec<ClientState> = self.clients.iter().map(Client::state).collect();
        let away = self.nodes.iter().find(|node| node.adversary.is_none() && !node.votes);
        let away = away.filter(|_| P::REPLACES || P::RENEWS_LOGS).map(|node| node.replica);
        match self.checks.liveness.look(now, &states, away) {
            Ok(over) if over && self.wants_more() => {
                self.more();
                false
            }
            Ok(over) if over => self.checks.outlasts(now),
            Ok(_) => false,
            // A printed rule is searched for a wrong answer; the others are judged for missing ones.
            Err(_) if self.options.literal.as_deref().is_some_and(|rule| !P::costs_progress(rule)) => true,
            Err(missing) => {
                let described = self.describe();
                let now = self.agenda.now;
                for node in self.nodes.iter().filter(|node| node.adversary.is_none()) {
                    if let Some(host) = &node.host {
                        self.trace.note(now, || host.machine().agreement().describe());
                    }
                }
                self.checks.judge("liveness", &[], Err(format!("{missing}; {described}")));
                true
            }
        }
    }

    fn look_at(&mut self, index: usize) {
        let node = &self.nodes[index];
        let (None, Some(host)) = (node.adversary, &node.host) else { return };
        let excess = P::excess(host.machine().agreement(), &self.options);
        // Per number of the window: a body, its certificate, a frame of each; and the retained ones.
        let window = self.options.window as usize;
        let per_number = 4 + self.options.batch_frames;
        let most = 2_000 + 4 * window * per_number * usize::from(self.options.n);
        let result = self.checks.bounded.look(node.storage.len(), most, excess);
        self.checks.judge("bounds", &[index], result);
    }

    fn describe(&self) -> String {
        let one = |node: &Node<P>| match &node.host {
            None => format!("{} down", node.replica),
            Some(host) => {
                let status = host.machine().status();
                format!(
                    "{}{} view {} {} executed {} stable {} pending {}",
                    node.replica,
                    if node.adversary.is_some() { " (faulty)" } else { "" },
                    status.view.0,
                    if status.active { "active" } else { "changing" },
                    status.executed.0,
                    status.stable.0,
                    status.pending
                )
            }
        };
        self.nodes.iter().map(one).collect::<Vec<_>>().join("; ")
    }

    /// Remembers who acts, for the report of a failed assertion.
    fn acts(&self, index: usize) {
        let node = &self.nodes[index];
        ACTOR.set(Some((index, node.replica, node.adversary.is_some())));
    }

    fn faulty(&self, replica: ReplicaId) -> bool {
        self.options.faulty(replica.0).is_some()
    }

    fn finish(mut self) -> Outcome {
        for client in &mut self.clients {
            client.finish(self.agenda.now, &mut self.checks);
        }
        if self.checks.violation.is_none() {
            let result = self.checks.linear.judge();
            self.checks.judge("linearizability", &[], result);
            let result = self.checks.reads.settle(&self.checks.replies);
            self.checks.judge("fast reads", &[], result);
            self.audit();
        }
        let mut outcome = std::mem::take(&mut self.outcome);
        outcome.ordered = self.checks.once.count() as u64;
        outcome.stable = self.checks.stable.highest.0;
        outcome.effective = self.adversaries.iter().map(|adversary| adversary.effective).sum::<u64>()
            + self.byzantine.iter().map(|client| client.effective).sum::<u64>();
        outcome.accusations = self.checks.accused.rightly + self.checks.accused.clients_rightly;
        outcome.events = self.checks.events.count;
        outcome.reads = self.clients.iter().map(|client| client.reads).sum();
        outcome.fast_reads = self.clients.iter().map(Client::fast_reads).sum();
        outcome.undecided = self.checks.linear.undecided;
        let liveness = &self.checks.liveness;
        outcome.waited = liveness.waited;
        outcome.healing = liveness.done_at.map_or(0, |done| done - liveness.healed_at);
        outcome.adversaries = self.adversaries.iter().map(|adversary| adversary.strategy.name()).collect();
        outcome.service = self.checks.done_by_service();
        outcome.trace = last_lines();
        outcome.violation = self.checks.violation.take();
        outcome
    }

    /// Compares the whole state of every correct replica with the model's at its place of the order.
    fn audit(&mut self) {
        for index in 0..self.nodes.len() {
            let node = &self.nodes[index];
            let (None, Some(host)) = (node.adversary, &node.host) else { continue };
            let executor = host.machine().execution().inner();
            let (executed, committed) = (executor.executed(), executor.committed());
            let Some(model) = self.checks.replies.model.coordination(executed) else { continue };
            if executed == committed {
                let result = audit(executor.application(), &executor.state(), model);
                self.checks.audited += *result.as_ref().unwrap_or(&0);
                self.checks.judge("equal states", &[index], result.map(|_| ()));
            }
        }
    }

    fn send_envelope(&mut self, to: usize, envelope: &Rc<Envelope<P>>, extra: u64) {
        let receiver = self.nodes[to].replica;
        let now = self.agenda.now;
        let kind = kind::<P>(&envelope.message);
        if !self.network.hears(now, envelope.from.0, receiver.0)
            || !self.selective.passes(now, envelope.from.0, receiver.0, kind)
        {
            return;
        }
        for delay in self.network.copies().into_iter().flatten() {
            self.agenda.after(delay + extra, Event::Peer(to, Rc::clone(envelope)));
        }
    }
}

/// A short name of what replicas send each other.
fn kind<P: Protocol>(message: &PeerMessage<Message<P>>) -> &'static str {
    match message {
        PeerMessage::Protocol(message) => P::kind(message),
        PeerMessage::FetchFrames(_) => "FETCH-FRAMES",
        PeerMessage::Frames(_) => "FRAMES",
        PeerMessage::FetchState(_) => "FETCH-STATE",
        PeerMessage::StatePiece(_) => "STATE-PIECE",
    }
}
