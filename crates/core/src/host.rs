//! The one loop around both machines, as a machine without IO. The runtime and the simulator execute
//! its commands in order; the simulator crashes between any two of them.
//!
//! A phase: append what must be durable (records, the previous run's certificate, the bodies about to
//! be certified), sync once, release what waited for that, have the component certify one run.
//! The certified messages then leave, and come back as this machine's own input. What is asked of the component's
//! logs takes the place of a run.

mod backlog;
mod logs;
mod wanted;

use crate::log::{self, Encoder, LogRecord, RecoveryError, seal_run};
use crate::{Env, Input, Machine, MachineStart, Note, Output, PeerMessage, Ticket, To};
use bytes::Bytes;
use std::collections::VecDeque;
use std::sync::Arc;
use troth_auth::{Seal, Signer, Verified};
use troth_trusted::a2m::{Attestation, LogRefusal, Operation};
use troth_trusted::{Refusal, Resumed, run};
use troth_trusted_host::{Answer, Call};
use troth_types::{Configuration, Group, ReplicaId, Seq, Time, ToClient, Wire};
use wanted::{Asked, Moving, Wanted};

/// One thing for the host's executor to do, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command<M: Machine> {
    /// Append a record to the log.
    Append(Bytes),
    /// Start a fresh segment of the log and write this snapshot in the background. When both the
    /// snapshot and the records up to the next sync are durable, they replace everything before, all or
    /// nothing; until then everything before stays.
    NewSegment {
        /// The snapshot.
        snapshot: M::Snapshot,
        /// What follows rests on it: it takes the place of one that is still being written, and the next
        /// sync is complete only when it is durable. Comes also where [`Host::allow_segments`] says no.
        needed: bool,
    },
    /// Make everything appended durable before going on.
    Sync,
    /// Ask the trusted component; go on with [`Host::attested`].
    Attest(Call),
    /// Have the trusted component carry out these operations on its logs, all in one call; go on with
    /// [`Host::logged`].
    Logs(Vec<Operation>),
    /// Draw a nonce that nobody can foresee; go on with [`Host::drawn`].
    Draw(Ticket),
    /// Send to replicas.
    Peer {
        /// Whom it is for.
        to: To,
        /// The message.
        message: PeerMessage<M::Message>,
    },
    /// What was sent to every replica is durable here: go on with [`Host::returned`].
    Return(M::Message),
    /// Send to a client.
    Client(ToClient),
    /// Set or move a timer.
    SetTimer {
        /// Which.
        timer: M::Timer,
        /// When it is due.
        at: Time,
    },
    /// Forget a timer.
    CancelTimer(M::Timer),
    /// Check from now on what comes by the keys of this configuration.
    Configured(Arc<Configuration>),
    /// Tell the observers.
    Note(Note),
    /// Stop: this host must not go on.
    Halt(Halt),
}

/// Why a host must not go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Halt {
    /// The component no longer follows this host's counters.
    Counters(Refusal),
    /// The component no longer follows what this host asks of its logs.
    Logs(LogRefusal),
    /// What the machine knows of itself contradicts its component.
    Machine(&'static str),
}

/// What a component says of itself when its host starts again.
#[derive(Clone, Copy, Debug, Default)]
pub struct Resume<'a> {
    /// What it certified last, for each counter.
    pub counters: &'a [Resumed],
    /// What its logs hold where [`settle_slots`](crate::settle_slots) asks.
    pub logs: &'a [Attestation],
}

/// Drives one machine.
pub struct Host<M: Machine> {
    machine: M,
    me: ReplicaId,
    group: Group,
    signer: Arc<dyn Signer>,
    /// Whether the executor keeps a log; without one, no record is even encoded.
    durable: bool,
    outputs: Vec<Output<M>>,
    appends: Vec<Bytes>,
    /// Whether anything that waits for the log is among the appends.
    urgent: bool,
    waiting: Vec<Command<M>>,
    wanted: VecDeque<Wanted<M>>,
    run: Vec<Moving<M>>,
    /// What was asked of the component's logs and is not answered.
    asked: Vec<Asked<M>>,
    tree: run::Tree,
    compact: Option<Seq>,
    /// A checkpoint that nothing in the log leads to.
    rebase: Option<Seq>,
    /// Whether the log may be compacted now.
    segments: bool,
    ready: VecDeque<Command<M>>,
    /// Bytes of all that waits in `appends`, `waiting` and `ready`, about.
    held: usize,
    /// What comes back to the machine, in its order.
    own: VecDeque<Input<M::Message, M::Timer>>,
}

impl<M: Machine> Host<M> {
    /// Starts a machine that never ran.
    pub fn fresh(
        machine: M,
        me: ReplicaId,
        group: Group,
        signer: Arc<dyn Signer>,
        durable: bool,
        env: Env,
    ) -> Result<Self, RecoveryError> {
        let mut host = Self::new(machine, me, group, signer, durable);
        host.machine.start(env, MachineStart::Fresh, &mut host.outputs).map_err(RecoveryError::Machine)?;
        host.settle(env);
        Ok(host)
    }

    /// Starts a machine again from its log: the last durable snapshot, the records since, and what the
    /// component says of itself.
    #[allow(clippy::too_many_arguments)]
    pub fn recover(
        machine: M,
        me: ReplicaId,
        group: Group,
        signer: Arc<dyn Signer>,
        env: Env,
        snapshot: Option<M::Snapshot>,
        log: &[Bytes],
        resumed: Resume<'_>,
    ) -> Result<Self, RecoveryError> {
        let recovered = log::recover::<M>(log, resumed, me, group.id())?;
        let mut host = Self::new(machine, me, group, signer, true);
        // The component repeats only its last certificate: what it repeated now must be in the log before
        // the next one is made, or a second crash would lose it.
        for last in resumed.counters {
            if let Resumed::One { certificate, .. } = last {
                host.append(LogRecord::Certified(certificate.clone()));
            }
        }
        for attestation in recovered.attested {
            host.append(LogRecord::Attested(attestation));
        }
        let start = MachineStart::Recovered { snapshot, own: recovered.own, records: recovered.records };
        host.machine.start(env, start, &mut host.outputs).map_err(RecoveryError::Machine)?;
        host.settle(env);
        Ok(host)
    }

    fn new(machine: M, me: ReplicaId, group: Group, signer: Arc<dyn Signer>, durable: bool) -> Self {
        Self {
            machine,
            me,
            group,
            signer,
            durable,
            outputs: Vec::new(),
            appends: Vec::new(),
            urgent: false,
            waiting: Vec::new(),
            wanted: VecDeque::new(),
            run: Vec::new(),
            asked: Vec::new(),
            tree: run::Tree::default(),
            compact: None,
            rebase: None,
            segments: true,
            ready: VecDeque::new(),
            held: 0,
            own: VecDeque::new(),
        }
    }

    /// The machine, to look at.
    #[must_use]
    pub fn machine(&self) -> &M {
        &self.machine
    }

    /// Says whether a fresh segment is welcome: not while a snapshot is being written, nor so soon after the
    /// last that a start would gain little. What is needed comes all the same.
    pub fn allow_segments(&mut self, allowed: bool) {
        self.segments = allowed;
    }

    /// Commands and certificates that wait, about: what to bound while the disk or the component does
    /// not answer.
    #[must_use]
    pub fn backlog(&self) -> usize {
        self.ready.len() + self.waiting.len() + self.wanted.len() + self.appends.len()
    }

    /// The machine, for adversaries that change a replica's mind. Nothing that serves calls this.
    #[cfg(feature = "adversary")]
    pub fn machine_mut(&mut self) -> &mut M {
        &mut self.machine
    }

    /// Gives the machine one input. Many inputs may go in before the commands are taken out: they then
    /// share a sync and a run.
    pub fn input(&mut self, env: Env, input: Input<M::Message, M::Timer>) {
        self.machine.input(env, input, &mut self.outputs);
        self.settle(env);
    }

    /// Gives the component's answer to the last [`Command::Attest`].
    pub fn attested(&mut self, env: Env, answer: Answer) {
        let run = std::mem::take(&mut self.run);
        assert!(!run.is_empty(), "an answer belongs to a question");
        let certificate = match answer {
            Answer::Attested(certificate) => certificate,
            Answer::Refused(refusal) => {
                return self.ready.push_back(Command::Halt(Halt::Counters(refusal)));
            }
            _ => return self.ready.push_back(Command::Halt(Halt::Counters(Refusal::Halted))),
        };
        if self.durable {
            self.append(LogRecord::Certified(certificate.clone()));
        }
        let receivers: Vec<To> = run.iter().map(|wanted| wanted.to).collect();
        let bodies = run.into_iter().map(|wanted| (wanted.body, wanted.digest)).collect();
        let messages = seal_run::<M>(&certificate, bodies, &self.tree, self.me);
        for (to, message) in receivers.into_iter().zip(messages) {
            self.sealed(to, message);
        }
        self.settle(env);
    }

    /// A certified message leaves and comes back. Its body and what certifies it are durable: nothing holds it back.
    fn sealed(&mut self, to: To, message: M::Message) {
        let command = Command::Peer { to, message: PeerMessage::Protocol(message.clone()) };
        self.hold(&command);
        self.ready.push_back(command);
        self.comes_back(message);
    }

    /// An own message is this machine's next input.
    fn comes_back(&mut self, message: M::Message) {
        self.own.push_back(Input::Message(self.me, Verified::made_here(message)));
    }

    /// Gives this replica its own copy of a message that went to every replica; what it rests on is durable.
    pub fn returned(&mut self, env: Env, message: M::Message) {
        self.comes_back(message);
        self.settle(env);
    }

    /// The question to the component that stands behind what is ready. Where [`Command::Sync`] has just been
    /// taken out, a component that keeps what was appended beside its own record may be asked at once,
    /// instead of the sync: then bodies and counter are durable together, and [`Host::answered`] goes on.
    #[must_use]
    pub fn question(&self) -> Option<&Call> {
        self.ready.iter().find_map(|command| match command {
            Command::Attest(call) => Some(call),
            _ => None,
        })
    }

    /// Gives the answer to [`Host::question`], asked before its turn; what was appended is durable with it.
    pub fn answered(&mut self, env: Env, answer: Answer) {
        let asked = self.ready.iter().position(|command| matches!(command, Command::Attest(_)));
        self.ready.remove(asked.expect("an answer belongs to a question"));
        self.attested(env, answer);
    }

    /// The next command, if there is one.
    pub fn command(&mut self) -> Option<Command<M>> {
        if self.ready.is_empty() {
            self.phase();
        }
        let command = self.ready.pop_front();
        if let Some(command) = &command {
            self.release(command);
        } else if self.waiting.is_empty() && self.appends.is_empty() {
            debug_assert_eq!(self.held, 0, "what is counted is taken out");
        }
        command
    }

    /// Sorts outputs, and steps the machine with its own messages until none is left.
    fn settle(&mut self, env: Env) {
        loop {
            let outputs = std::mem::take(&mut self.outputs);
            for output in outputs {
                self.sort(output);
            }
            let Some(input) = self.own.pop_front() else { return };
            self.machine.input(env, input, &mut self.outputs);
        }
    }

    /// Has a record appended with whatever is made durable next.
    fn append(&mut self, record: LogRecord) {
        let record = record.to_wire();
        self.hold_record(&record);
        self.appends.push(record);
    }

    /// Holds a command back until what was appended before is durable.
    fn wait(&mut self, command: Command<M>) {
        self.hold(&command);
        self.waiting.push(command);
    }

    fn sort(&mut self, output: Output<M>) {
        match output {
            Output::Peer { to, message } => self.wait(Command::Peer { to, message }),
            Output::Broadcast(message) => self.broadcast(message),
            Output::Client(message) => self.wait(Command::Client(message)),
            Output::Certify { counter, previous, new, body, to } => {
                let digest = M::digest(&body, self.group.id(), self.me);
                self.wanted.push_back(Wanted::Move(Moving { counter, previous, new, body, digest, to }));
            }
            Output::CertifyInLog { log, slot, body, to } => {
                let digest = M::digest(&body, self.group.id(), self.me);
                self.wanted.push_back(Wanted::Logs(Asked::Message { log, slot, body, digest, to }));
            }
            Output::Trusted { ticket, operations } => {
                self.wanted.push_back(Wanted::Logs(Asked::Call { ticket, operations }));
            }
            Output::Draw(ticket) => self.ready.push_back(Command::Draw(ticket)),
            Output::Sign { body, to } => {
                let message = self.sign(body);
                self.wait(Command::Peer { to, message: PeerMessage::Protocol(message.clone()) });
                self.comes_back(message);
            }
            Output::BroadcastSigned(body) => {
                let message = self.sign(body);
                self.broadcast(message);
            }
            Output::SetTimer { timer, at } => self.ready.push_back(Command::SetTimer { timer, at }),
            Output::CancelTimer(timer) => self.ready.push_back(Command::CancelTimer(timer)),
            Output::Persist(record) => {
                if self.durable {
                    self.urgent = true;
                    self.append(LogRecord::Machine(record.to_wire()));
                }
            }
            Output::Remember(record) => {
                if self.durable {
                    self.append(LogRecord::Machine(record.to_wire()));
                }
            }
            Output::Compact(seq) => self.compact = self.compact.max(Some(seq)),
            Output::Rebase(seq) => self.rebase = Some(seq),
            Output::Configured(configuration) => self.ready.push_back(Command::Configured(configuration)),
            Output::Note(note) => self.ready.push_back(Command::Note(note)),
            Output::Halt(reason) => self.ready.push_back(Command::Halt(Halt::Machine(reason))),
        }
    }

    fn sign(&self, body: M::Body) -> M::Message {
        let digest = M::digest(&body, self.group.id(), self.me);
        M::seal(body, digest, self.me, Seal::Signature(self.signer.sign(&digest)))
    }

    /// Sends a message to every replica; the own copy comes back when what it rests on is durable.
    fn broadcast(&mut self, message: M::Message) {
        let sent = PeerMessage::Protocol(message.clone());
        self.wait(Command::Peer { to: To::Others, message: sent });
        self.wait(Command::Return(message));
    }

    /// Lays out one phase of commands.
    fn phase(&mut self) {
        let asks = self.run.is_empty() && self.asked.is_empty() && !self.wanted.is_empty();
        // Records alone wait for something that depends on them.
        if self.waiting.is_empty() && !asks {
            return;
        }
        self.compact();
        if asks {
            self.take();
            if self.durable {
                let bodies: Vec<LogRecord> = self.under_way().collect();
                self.urgent |= !bodies.is_empty();
                bodies.into_iter().for_each(|body| self.append(body));
            }
        }
        if std::mem::take(&mut self.urgent) {
            self.ready.extend(self.appends.drain(..).map(Command::Append));
            self.ready.push_back(Command::Sync);
        }
        self.ready.extend(self.waiting.drain(..));
        if asks {
            let question = self.ask();
            self.ready.push_back(question);
        }
    }

    /// The question to the component for what was taken.
    fn ask(&mut self) -> Command<M> {
        let (Some(first), Some(last)) = (self.run.first(), self.run.last()) else {
            return Command::Logs(self.operations());
        };
        let digests: Vec<[u8; 32]> = self.run.iter().map(|wanted| wanted.digest.0).collect();
        let digest = self.tree.build(&digests).expect("a run has 1 to 256 messages");
        let (counter, previous, new) = (first.counter, first.previous, last.new);
        Command::Attest(Call::Attest { counter, previous, new, digest })
    }

    /// Begins a fresh segment where the machine said that one may or must begin. A later checkpoint serves
    /// for an earlier one, if its state is there.
    fn compact(&mut self) {
        if !self.durable || (!self.segments && self.rebase.is_none()) {
            return;
        }
        let (compact, rebase) = (self.compact.take(), self.rebase.take());
        let snapshot = compact.max(rebase).and_then(|seq| self.machine.snapshot(seq));
        if let Some(snapshot) = snapshot.or_else(|| rebase.and_then(|seq| self.machine.snapshot(seq))) {
            self.new_segment(snapshot, rebase.is_some());
        } else {
            // Not forgotten: nothing in the log leads there.
            self.rebase = rebase;
        }
    }

    /// Begins a segment that could stand alone: what still matters of the old one is carried over. The
    /// mark comes last, so that a segment that is torn before it changes nothing.
    fn new_segment(&mut self, snapshot: M::Snapshot, needed: bool) {
        self.ready.push_back(Command::NewSegment { snapshot, needed });
        let (messages, records) = self.machine.retained();
        let mut encoder = Encoder::default();
        let mut all: Vec<Bytes> = Vec::with_capacity(messages.len() + records.len() + self.run.len() + 1);
        all.extend(messages.iter().map(|message| encoder.sealed(message)));
        all.extend(records.iter().map(|record| encoder.machine(record)));
        // What the component is asked for has its bodies in the old segment only.
        all.extend(self.under_way().map(|record| record.to_wire()));
        all.push(LogRecord::CarriedOver(all.len() as u64).to_wire());
        all.iter().for_each(|record| self.hold_record(record));
        self.appends.splice(0..0, all);
        self.urgent = true;
    }
}
