//! The task that owns the machine.

use super::connection::{Inbound, Outlet, Target, prepare};
use super::{ClientConfig, ConnectError, Status};
use crate::{ClientCore, ClientError, Course, Output, SubmitError, Ticket};
use bytes::Bytes;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Semaphore, mpsc, oneshot};
use tokio::task::JoinSet;
use tokio::time::Instant;
use troth_auth::Ed25519Signer;
use troth_link::{Identity, PeerId};
use troth_types::{ClientId, Event, ReplicaId, Seq, Time, ToReplica, Wire};

/// Commands and batches of messages taken per turn.
const TURN: usize = 1024;

pub(super) type Results = (Result<Vec<Bytes>, ClientError>, Course);

/// What handles ask for.
#[derive(Debug)]
pub(super) enum Command {
    /// In a frame that nobody shares, if `apart` says so.
    Execute {
        operations: Vec<Bytes>,
        apart: bool,
        answer: oneshot::Sender<Results>,
    },
    Read {
        operation: Bytes,
        recent: bool,
        answer: oneshot::Sender<Results>,
    },
    Events {
        answer: oneshot::Sender<mpsc::Receiver<Event>>,
    },
    Status {
        answer: oneshot::Sender<Status>,
    },
    NameLateAfter {
        micros: u64,
    },
    Close {
        answer: oneshot::Sender<()>,
    },
}

/// Somebody who waits for the first f+1 connections.
type Ready = oneshot::Sender<Result<(), ConnectError>>;

pub(super) struct Engine {
    core: ClientCore,
    config: Setup,
    started: Instant,
    commands: mpsc::Receiver<Command>,
    /// Commands that the machine cannot take yet.
    held: VecDeque<Command>,
    inbound: mpsc::Receiver<Inbound>,
    outlets: Vec<Outlet>,
    /// Ends the connections with the task.
    _connections: JoinSet<()>,
    answers: BTreeMap<Ticket, oneshot::Sender<Results>>,
    events: Option<EventStream>,
    ready: Option<Ready>,
    ready_by: Instant,
    /// The latest message and its encoding: the same frame goes to all replicas.
    encoded: Option<(ToReplica, Bytes)>,
    closed: bool,
}

/// What the task needs of the configuration later on.
struct Setup {
    client: ClientId,
    group: troth_types::Group,
    outbox_events: usize,
}

impl Engine {
    pub(super) fn new(
        config: &ClientConfig,
        commands: mpsc::Receiver<Command>,
        ready: Ready,
    ) -> Result<Self, ConnectError> {
        let signer = Arc::new(Ed25519Signer::from_seed(config.signing_seed));
        let mut core = ClientCore::new(config.core()?, signer);
        let identity = Identity::new(PeerId::Client(config.client), config.link_secret);
        let (sender, inbound) = mpsc::channel(2 * config.group.n());
        let mut connections = JoinSet::new();
        let mut outlets = Vec::new();
        for (replica, place) in config.group.all().zip(&config.replicas) {
            core.on_connection(Time(0), replica, false);
            let target = Target {
                replica,
                address: place.address.clone(),
                key: place.key,
                identity: identity.clone(),
                settings: config.link_settings(),
                reconnect_first: config.reconnect_first,
                reconnect_longest: config.reconnect_longest,
            };
            let (outlet, work) = prepare(target, sender.clone());
            outlets.push(outlet);
            connections.spawn(work);
        }
        let started = Instant::now();
        Ok(Self {
            core,
            config: Setup {
                client: config.client,
                group: config.group,
                outbox_events: config.limits.outbox_events,
            },
            started,
            commands,
            held: VecDeque::new(),
            inbound,
            outlets,
            _connections: connections,
            answers: BTreeMap::new(),
            events: None,
            ready: Some(ready),
            ready_by: started + Duration::from_micros(config.timing.unavailable_after),
            encoded: None,
            closed: false,
        })
    }

    /// Runs until the last handle is gone or one of them closes the session.
    pub(super) async fn run(mut self) {
        let mut commands = Vec::new();
        let mut inbound = Vec::new();
        while !self.closed {
            let wake = self.wake();
            tokio::select! {
                count = self.commands.recv_many(&mut commands, TURN), if self.held.is_empty() => {
                    if count == 0 {
                        return;
                    }
                }
                _ = self.inbound.recv_many(&mut inbound, TURN) => {}
                () = sleep_until(wake) => {}
            }
            // Whatever else is ready joins this turn, and so the same frame and the same write.
            while inbound.len() < TURN
                && let Ok(more) = self.inbound.try_recv()
            {
                inbound.push(more);
            }
            while self.held.is_empty()
                && commands.len() < TURN
                && let Ok(more) = self.commands.try_recv()
            {
                commands.push(more);
            }
            self.turn(&mut commands, &mut inbound);
        }
    }

    fn turn(&mut self, commands: &mut Vec<Command>, inbound: &mut Vec<Inbound>) {
        let now = self.now();
        for message in inbound.drain(..) {
            match message {
                Inbound::Up(replica) => self.core.on_connection(now, replica, true),
                Inbound::Down(replica) => self.core.on_connection(now, replica, false),
                Inbound::Messages(from, batch) => {
                    for message in batch {
                        self.core.on_message(now, from, message);
                    }
                }
            }
        }
        self.core.on_timer(now);
        self.held.extend(commands.drain(..));
        self.acknowledge();
        // A frame that is made makes room for more.
        loop {
            self.obey_held(now);
            self.hand_out();
            if self.held.front().is_none_or(|command| !self.has_room(command)) {
                break;
            }
        }
        self.tell_ready();
    }

    fn has_room(&self, command: &Command) -> bool {
        match command {
            Command::Execute { operations, .. } => self.core.has_room(operations),
            Command::Read { operation, .. } => self.core.has_room(std::slice::from_ref(operation)),
            Command::Events { .. }
            | Command::Status { .. }
            | Command::NameLateAfter { .. }
            | Command::Close { .. } => true,
        }
    }

    fn obey_held(&mut self, now: Time) {
        while let Some(command) = self.held.pop_front() {
            if !self.has_room(&command) {
                self.held.push_front(command);
                break;
            }
            self.obey(now, command);
        }
    }

    fn obey(&mut self, now: Time, command: Command) {
        match command {
            Command::Execute { operations, apart, answer } => {
                let taken = match apart {
                    true => self.core.submit_apart(now, operations),
                    false => self.core.submit(now, operations),
                };
                self.expect(taken, answer);
            }
            Command::Read { operation, recent, answer } => {
                let taken = match recent {
                    true => self.core.read_recent(now, operation),
                    false => self.core.read(now, operation),
                };
                self.expect(taken, answer);
            }
            Command::Events { answer } => {
                let (stream, receiver) = EventStream::new(self.config.outbox_events, self.config.client);
                self.events = Some(stream);
                // Nobody there to take it: the first event finds the stream closed.
                let _ = answer.send(receiver);
            }
            Command::Status { answer } => {
                let view = self.core.view_hint();
                let primary = self.config.group.primary(view);
                let unreachable = self.core.unreachable();
                let status = Status {
                    view,
                    primary,
                    unreachable,
                    outstanding: self.core.outstanding(),
                    confirmed: self.core.confirmed(),
                    fast_reads: self.core.fast_reads(),
                    fallen_back: self.core.fallen_back(),
                    replicas: self.config.group.all().map(|one| self.core.standing(one)).collect(),
                };
                let _ = answer.send(status);
            }
            Command::NameLateAfter { micros } => self.core.name_late_after(micros),
            Command::Close { answer } => {
                self.core.close();
                self.closed = true;
                let _ = answer.send(());
            }
        }
    }

    fn expect(&mut self, taken: Result<Ticket, SubmitError>, answer: oneshot::Sender<Results>) {
        match taken {
            Ok(ticket) => {
                self.answers.insert(ticket, answer);
            }
            // A caller that went away does not care.
            Err(error) => drop(answer.send((Err(error.into()), Course::default()))),
        }
    }

    fn hand_out(&mut self) {
        while let Some(output) = self.core.poll() {
            match output {
                Output::Send { to, message } => self.send(to, message),
                Output::Done { ticket, result, course } => {
                    if let Some(answer) = self.answers.remove(&ticket) {
                        let _ = answer.send((result, course));
                    }
                }
                Output::Event(event) => match &mut self.events {
                    Some(stream) => stream.push(event),
                    None => self.core.acknowledge_events(event.index),
                },
            }
        }
    }

    fn send(&mut self, to: ReplicaId, message: ToReplica) {
        let bytes = match &self.encoded {
            Some((known, bytes)) if *known == message => bytes.clone(),
            _ => {
                let bytes = message.to_wire();
                self.encoded = Some((message, bytes.clone()));
                bytes
            }
        };
        self.outlets[usize::from(to.0)].send(&bytes);
    }

    /// Frees replicas of the events that the application has taken.
    fn acknowledge(&mut self) {
        let Some(stream) = &mut self.events else { return };
        self.core.acknowledge_events(stream.taken());
        if stream.sender.is_closed() {
            self.events = None;
        }
    }

    fn tell_ready(&mut self) {
        let answer = if self.core.is_connected() {
            Ok(())
        } else if Instant::now() >= self.ready_by {
            Err(ConnectError::Unavailable { unreachable: self.core.unreachable() })
        } else {
            return;
        };
        if let Some(ready) = self.ready.take() {
            let _ = ready.send(answer);
        }
    }

    fn now(&self) -> Time {
        Time(u64::try_from(self.started.elapsed().as_micros()).unwrap_or(u64::MAX))
    }

    fn wake(&self) -> Option<Instant> {
        let timer = self.core.next_wake().map(|time| self.started + Duration::from_micros(time.0));
        let ready = self.ready.as_ref().map(|_| self.ready_by);
        [timer, ready].into_iter().flatten().min()
    }
}

async fn sleep_until(wake: Option<Instant>) {
    match wake {
        Some(wake) => tokio::time::sleep_until(wake).await,
        None => std::future::pending().await,
    }
}

/// Events on their way to the application, as many as an outbox holds. When the application takes them too slowly, those that do
/// not fit are lost and a marker stands for them. A place is kept for it, so that it is there before any result that reveals
/// what is lost.
struct EventStream {
    sender: mpsc::Sender<Event>,
    client: ClientId,
    /// Indices handed over that the application may not have taken yet.
    waiting: VecDeque<u64>,
    taken: u64,
    /// Whether the last that was handed over is a marker.
    marked: bool,
}

impl EventStream {
    /// A stream of at most so many events, and what receives them.
    fn new(events: usize, client: ClientId) -> (Self, mpsc::Receiver<Event>) {
        let (sender, receiver) = mpsc::channel(events.max(1).saturating_add(1).min(Semaphore::MAX_PERMITS));
        (Self { sender, client, waiting: VecDeque::new(), taken: 0, marked: false }, receiver)
    }

    fn push(&mut self, event: Event) {
        let index = event.index;
        // The last place is the marker's.
        let fits = self.sender.capacity() > 1;
        if !fits && self.marked {
            // The marker is still there, since it is the last; it stands for this one, too.
            if let Some(last) = self.waiting.back_mut() {
                *last = index;
            }
            return;
        }
        let marker = Event { client: self.client, index, seq: Seq::default(), payload: Bytes::new() };
        // Where nobody takes them any more they are as good as taken.
        if self.sender.try_send(if fits { event } else { marker }).is_ok() {
            self.waiting.push_back(index);
            self.marked = !fits;
        }
    }

    /// The index of the last event that the application took.
    fn taken(&mut self) -> u64 {
        let waiting = self.sender.max_capacity() - self.sender.capacity();
        while self.waiting.len() > waiting {
            self.taken = self.waiting.pop_front().unwrap_or(self.taken);
        }
        self.taken
    }
}
