//! One turn of the loop: verify what came, step the machine, carry out the host's commands, leave
//! what goes out in the connections' queues. Synchronous; the only place that touches the host.

use crate::asked::Asked;
use crate::beside::{Attestor, Desk, Done};
use crate::bodies::Bodies;
use crate::charges::PeerCharges;
use crate::clock::Clock;
use crate::connection::Meeting;
use crate::counters::Counters;
use crate::execution_costs::ExecutionCosts;
use crate::fetches::Fetches;
use crate::inbox::Inbox;
use crate::intake::Item;
use crate::journal::Journal;
use crate::keys::Keys;
use crate::links::Links;
use crate::shares::ClientCharges;
use crate::timers::Timers;
use crate::turns::Longest;
use std::cell::RefCell;
use std::collections::{BTreeSet, VecDeque};
use std::rc::Rc;
use std::sync::Arc;
use troth_auth::{FrameError, FrameVerifier, MessageVerifier};
use troth_core::{
    Agreement, Command, Env, Execution, Halt, Host, Input, Machine, PeerMessage, Replica, ReplicaTimer,
    Request,
};
use troth_trusted::Refusal as ComponentRefusal;
use troth_trusted::a2m::{LogRefusal, Operation};
use troth_trusted_host::Answer;
use troth_types::{ClientId, Configuration, Refusal, RefusalReason, ReplicaId, Seq, Time, ToClient};

/// Microseconds that the loop waits for the component and nobody notices.
const STALL_MICROS: u64 = 20_000;
/// What may wait for the disk or the component before the turn takes nothing more in. A healthy one
/// answers long before; where it does not, senders are slowed and nothing is lost.
const BACKLOG: usize = 8_192;
/// Bytes of the same, about.
pub(crate) const BACKLOG_BYTES: usize = 64 << 20;
/// Bytes of it beyond which nobody is answered.
pub(crate) const ASKED_BYTES: usize = BACKLOG_BYTES / 4;

pub(crate) type Peers<A> = PeerMessage<<A as Agreement>::Message>;
pub(crate) type MachineInput<A, X> = Input<<A as Agreement>::Message, <Replica<A, X> as Machine>::Timer>;

/// What a turn works with.
pub(crate) struct Engine<A: Agreement, X: Execution> {
    pub(crate) me: ReplicaId,
    pub(crate) host: Host<Replica<A, X>>,
    pub(crate) attestor: Attestor,
    /// What the present phase appends, for a component that keeps it beside its record.
    pub(crate) bodies: Bodies,
    /// Keeps the log and the snapshots, where the replica is durable.
    pub(crate) journal: Option<Box<dyn Journal<X::Snapshot>>>,
    /// Where the threads beside the loop leave what they have done.
    pub(crate) desk: Desk,
    /// What the host's next command waits for.
    pub(crate) blocked: Option<Blocked>,
    /// Whether the loop has waited so long for the component that messages are late through it.
    pub(crate) stalled: bool,
    /// Whether the disk has no space.
    pub(crate) disk_full: bool,
    /// Makes the two that follow anew when the configuration changes.
    pub(crate) keys: Keys,
    /// The stable checkpoint that its own state differs from, until that is repaired.
    pub(crate) diverged: Option<Seq>,
    /// Clients that were seen to sign two frames under one number, the first ones.
    pub(crate) accused_clients: BTreeSet<ClientId>,
    /// What the log says of suspected replicas.
    pub(crate) suspicions: crate::notes::Suspicions,
    /// Whether the component finds no space for its counters.
    pub(crate) counters_full: bool,
    /// Who may connect.
    pub(crate) meeting: Rc<Meeting>,
    pub(crate) frames: FrameVerifier,
    pub(crate) messages: MessageVerifier,
    pub(crate) timers: Timers<<Replica<A, X> as Machine>::Timer>,
    pub(crate) clock: Clock,
    pub(crate) counters: Counters,
    pub(crate) links: Links,
    /// Checked messages of clients that the turns so far had no room for, in the order they came.
    /// Nothing more is taken from clients before it is empty: it holds what one turn takes.
    pub(crate) asked: VecDeque<Asked>,
    /// What replicas' useless messages and questions cost.
    pub(crate) peer_charges: PeerCharges,
    /// What clients' messages cost.
    pub(crate) client_charges: RefCell<ClientCharges>,
    /// What clients' frames took to execute since a turn has charged it.
    pub(crate) execution_costs: Arc<ExecutionCosts>,
    /// What replicas asked for and were not sent yet.
    pub(crate) fetches: Fetches<MachineInput<A, X>>,
    /// Bytes sent in this turn to replicas that had asked for them.
    pub(crate) fetched_bytes: usize,
    /// Bytes of frames and of state that single replicas were sent in this turn, whether they asked for them or not.
    pub(crate) shown_bytes: usize,
    /// Bytes of answers to clients in this turn.
    pub(crate) answered_bytes: usize,
    /// Bytes of events that clients were told.
    pub(crate) event_bytes: usize,
    /// The longest turn of late, without what it waited for the trusted component.
    pub(crate) longest_turn: Longest,
    /// Microseconds that this turn has waited for the trusted component.
    pub(crate) waited: u64,
    #[cfg(feature = "demo-adversary")]
    pub(crate) liar: Option<crate::liar::Liar>,
    #[cfg(feature = "demo-adversary")]
    pub(crate) tyrant: Option<crate::tyrant::Tyrant<MachineInput<A, X>>>,
    /// A planted bug.
    #[cfg(feature = "faults")]
    pub(crate) early: Option<crate::faults::Early>,
}

/// What the host's next command waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Blocked {
    /// A sync of the log.
    Sync,
    /// An answer of the component.
    Attest,
}

/// Why a replica ends by itself.
#[derive(Debug)]
pub(crate) enum Stopped {
    /// The component no longer follows it.
    Component(ComponentRefusal),
    /// The component's logs no longer follow it.
    Logs(LogRefusal),
    /// What it knows of itself contradicts its component.
    Machine(&'static str),
    /// Its disk failed.
    Disk(String),
    /// The operating system gives no random bytes.
    NoRandomness,
    /// A thread beside the loop panicked.
    Panicked(&'static str),
}

impl<A: Agreement, X: Execution> Engine<A, X> {
    /// Does one turn, and writes what it left for the connections; an error ends the replica.
    pub(crate) fn turn(&mut self, inbox: &Inbox) -> Result<(), Stopped> {
        let began = self.clock.now();
        self.waited = 0;
        let done = self.work(inbox);
        self.flush();
        let now = self.clock.now();
        self.longest_turn.took(now, now.0.saturating_sub(began.0).saturating_sub(self.waited));
        done
    }

    fn work(&mut self, inbox: &Inbox) -> Result<(), Stopped> {
        self.counters.turns += 1;
        (self.answered_bytes, self.fetched_bytes, self.shown_bytes) = (0, 0, 0);
        self.take_done()?;
        if self.is_stuck() {
            return Ok(());
        }
        let env = self.clock.env();
        inbox.rested(env.now);
        let charges = self.client_charges.get_mut();
        charges.fade(env.now);
        let executed = self.execution_costs.take().into_iter();
        executed.for_each(|(client, frames)| charges.executed(client, env.now, frames));
        // What came while the loop waited is looked at before anybody is suspected of silence.
        if !std::mem::take(&mut self.stalled) {
            for timer in self.timers.take_due(env.now) {
                // It wakes the loop, and that is all.
                if timer != ReplicaTimer::Reads {
                    self.input(env, Input::Timer(timer));
                }
            }
        }
        self.serve_late_answers(env)?;
        #[cfg(feature = "demo-adversary")]
        self.let_go(env);
        let mut items = Vec::new();
        let mut frames = Vec::new();
        self.take_replicas(inbox, &mut items, &mut frames);
        if self.asked.is_empty() {
            self.take_clients(inbox, &mut items, &mut frames);
        }

        let mut checked = self.check_together(&items, frames);
        let mut verdicts = std::mem::take(&mut checked.frames).into_iter();
        let spoilt = checked.bad_frame;
        for item in items {
            match item {
                Item::Ready(from, input, spent) => {
                    self.peer_input(env, from, input, spent);
                }
                Item::Said(from, message, spent) => {
                    self.said(env, (from, message, spent), |good| checked.cost(good));
                }
                Item::Shown(from, shown, spent) => {
                    self.shown(env, (from, shown, spent), spoilt, &mut verdicts)
                }
                Item::Known(asked) => self.asked.push_back(asked),
                Item::Read(read) => self.asked.push_back(Asked::Read(read)),
                Item::Asked(client, number, wish) => match verdicts.next().expect("one verdict per frame") {
                    Ok(frame) => {
                        self.counters.frames_verified += 1;
                        self.asked.push_back(self.asked_again(Request { frame, wish }));
                    }
                    Err(why) => {
                        self.counters.frames_refused += 1;
                        self.client_charges.get_mut().useless(client, env.now, spoilt);
                        self.refuse(client, number, why);
                    }
                },
            }
        }
        self.serve_clients(env)?;
        self.serve_replicas(env)?;
        self.commands()
    }

    /// Takes what the threads beside the loop have done, and goes on where they were waited for.
    fn take_done(&mut self) -> Result<(), Stopped> {
        while let Some(done) = self.desk.take() {
            match done {
                Done::Synced => {
                    assert_eq!(self.blocked.take(), Some(Blocked::Sync), "a sync was asked for");
                    #[cfg(feature = "faults")]
                    self.synced_late();
                    self.commands()?;
                }
                Done::Snapshot(seq) => self.journal().snapshot_done(seq),
                #[cfg(feature = "faults")]
                done @ (Done::Attested(_) | Done::Logged(_)) if self.early.is_some() => {
                    self.answered_early(done)?;
                }
                done @ (Done::Attested(_) | Done::Logged(_)) => {
                    assert_eq!(self.blocked.take(), Some(Blocked::Attest), "the component was asked");
                    self.component_answered(done);
                    self.commands()?;
                }
                Done::DiskFull(why) => {
                    self.disk_full = true;
                    tracing::error!(why, "the disk is full: waits until there is space; nothing is lost");
                }
                Done::DiskSpace => {
                    self.disk_full = false;
                    tracing::warn!("the disk has space again: goes on");
                }
                Done::CountersFull => {
                    self.counters_full = true;
                    tracing::error!(
                        "the trusted component finds no space for its counters: nothing is certified until there \
                         is; nothing is lost"
                    );
                }
                Done::CountersSpace => {
                    self.counters_full = false;
                    tracing::warn!("there is space for the trusted counters again: goes on");
                }
                Done::Panicked(thread) => return Err(Stopped::Panicked(thread)),
                Done::DiskFailed(why) => return Err(Stopped::Disk(why)),
            }
        }
        Ok(())
    }

    /// Whether so much waits for the disk or the component that nothing more is taken in.
    pub(crate) fn is_stuck(&self) -> bool {
        let full = || self.host.backlog() > BACKLOG || self.host.backlog_bytes() > BACKLOG_BYTES;
        self.blocked.is_some() && full()
    }

    /// Whether so much waits for the disk or the component that nothing is answered that can wait: what parties ask for must
    /// not keep what the group does from being taken in.
    pub(crate) fn is_crowded(&self) -> bool {
        let much = || self.host.backlog() > BACKLOG / 4 || self.host.backlog_bytes() > ASKED_BYTES;
        self.is_stuck() || self.blocked.is_some() && much()
    }

    pub(crate) fn input(&mut self, env: Env, input: MachineInput<A, X>) {
        self.counters.inputs += 1;
        #[cfg(feature = "demo-adversary")]
        let Some(input) = self.keep_or_pass(env, input) else { return };
        self.host.input(env, input);
    }

    /// When something is let go that a tyrant holds back.
    pub(crate) fn next_held(&self) -> Option<Time> {
        #[cfg(feature = "demo-adversary")]
        return self.tyrant.as_ref().and_then(crate::tyrant::Tyrant::next);
        #[cfg(not(feature = "demo-adversary"))]
        None
    }

    #[cfg(feature = "demo-adversary")]
    fn keep_or_pass(&mut self, env: Env, input: MachineInput<A, X>) -> Option<MachineInput<A, X>> {
        let Some(tyrant) = &mut self.tyrant else { return Some(input) };
        match input {
            Input::Requests(requests) => {
                let pass = |request: Request| {
                    let client = request.frame.client();
                    match tyrant.request(env.now, client, Input::Requests(vec![request]))? {
                        Input::Requests(requests) => requests.into_iter().next(),
                        _ => unreachable!("it gives back what it was given"),
                    }
                };
                let passed: Vec<Request> = requests.into_iter().filter_map(pass).collect();
                (!passed.is_empty()).then_some(Input::Requests(passed))
            }
            Input::Frames(from, frames) => match frames.first().map(|frame| frame.client()) {
                Some(client) => tyrant.request(env.now, client, Input::Frames(from, frames)),
                None => Some(Input::Frames(from, frames)),
            },
            other => Some(other),
        }
    }

    /// What the tyrant held back for long enough.
    #[cfg(feature = "demo-adversary")]
    fn let_go(&mut self, env: Env) {
        while let Some((to, bytes)) = self.tyrant.as_mut().and_then(|tyrant| tyrant.proposal(env.now)) {
            self.counters.peer_messages_out += 1;
            self.links.tell_replica(to, &bytes);
        }
        while let Some(input) = self.tyrant.as_mut().and_then(|tyrant| tyrant.late_request(env.now)) {
            self.host.input(env, input);
        }
    }

    fn refuse(&mut self, client: ClientId, number: u64, why: FrameError) {
        let reason = match why {
            FrameError::TooLarge => RefusalReason::TooLarge,
            FrameError::OtherGroup
            | FrameError::UnknownClient
            | FrameError::BadSignature
            | FrameError::NotSigned => RefusalReason::Unauthorised,
            // It comes again with a signature.
            FrameError::BadTag => return,
        };
        self.tell_client(ToClient::Refusal(Refusal { client, number, read: false, reason }));
    }

    /// Carries out what the host asks for, until it asks for nothing more or must wait.
    pub(crate) fn commands(&mut self) -> Result<(), Stopped> {
        while self.blocked.is_none() {
            if let Some(journal) = &self.journal {
                self.host.allow_segments(journal.wants_segment());
            }
            let Some(command) = self.host.command() else { return Ok(()) };
            #[cfg(feature = "faults")]
            let Some(command) = self.put_off(command) else { continue };
            match command {
                Command::Append(record) => {
                    let base = self.journal().base();
                    self.bodies.append(base, &record);
                    self.journal().append(record);
                }
                Command::NewSegment { snapshot, needed } => {
                    self.bodies.need_log();
                    self.journal().new_segment(snapshot, needed);
                }
                Command::Sync => self.make_durable(),
                Command::Attest(call) => {
                    self.counters.attestations += 1;
                    self.bodies.let_go();
                    if self.attestor.is_waited_for() {
                        self.links.flush(&mut self.counters, self.clock.now());
                    }
                    let asked = self.clock.now();
                    let answer = self.attestor.ask(call);
                    self.waited_since(asked);
                    match answer {
                        Some(answer) => self.attested(answer),
                        None => self.blocked = Some(Blocked::Attest),
                    }
                }
                Command::Peer { to, message } => self.tell_peers(to, &message),
                Command::Return(message) => self.host.returned(self.clock.env(), message),
                Command::Client(message) => self.tell_client(message),
                Command::SetTimer { timer, at } => self.timers.set(timer, at),
                Command::CancelTimer(timer) => self.timers.cancel(timer),
                Command::Configured(configuration) => self.configured(&configuration),
                Command::Note(note) => self.note(&note),
                Command::Logs(operations) => self.ask_logs(operations),
                Command::Draw(ticket) => {
                    let mut nonce = [0; 32];
                    if getrandom::fill(&mut nonce).is_err() {
                        return Err(Stopped::NoRandomness);
                    }
                    self.host.drawn(self.clock.env(), ticket, nonce);
                }
                Command::Halt(Halt::Counters(refusal)) => return Err(Stopped::Component(refusal)),
                Command::Halt(Halt::Logs(refusal)) => return Err(Stopped::Logs(refusal)),
                Command::Halt(Halt::Machine(why)) => return Err(Stopped::Machine(why)),
            }
        }
        Ok(())
    }

    fn ask_logs(&mut self, operations: Vec<Operation>) {
        self.counters.attestations += 1;
        if self.attestor.is_waited_for() {
            self.links.flush(&mut self.counters, self.clock.now());
        }
        let asked = self.clock.now();
        let logged = self.attestor.ask_logs(operations);
        self.waited_since(asked);
        match logged {
            Some(logged) => self.host.logged(self.clock.env(), logged),
            None => self.blocked = Some(Blocked::Attest),
        }
    }

    /// Makes durable what was appended: beside the counter of the run that follows, where the component keeps
    /// it there, else in the log. The log has it in memory then, in its order, and is synced with it later.
    fn make_durable(&mut self) {
        if let (Some(blob), Some(call)) = (self.bodies.blob(), self.host.question()) {
            // What was certified before is not held back by the wait.
            self.links.flush(&mut self.counters, self.clock.now());
            let asked = self.clock.now();
            let answer = self.attestor.ask_beside(call, blob);
            self.waited_since(asked);
            if let Some(answer) = answer {
                self.counters.attestations += 1;
                self.bodies.are_beside();
                return self.host.answered(self.clock.env(), answer);
            }
        }
        self.bodies.are_in_the_log();
        if self.journal().write_now() {
            return;
        }
        self.counters.syncs += 1;
        self.blocked = Some(Blocked::Sync);
        self.journal().sync();
    }

    /// The loop has waited for the component and for nothing else.
    fn waited_since(&mut self, asked: Time) {
        let waited = self.clock.now().0.saturating_sub(asked.0);
        self.waited += waited;
        self.stalled |= waited > STALL_MICROS;
    }

    /// Checks from now on what comes, and who comes, by this configuration, unless a later one is known
    /// already: a replica that starts behind the others executes its way there.
    pub(crate) fn configured(&mut self, configuration: &Arc<Configuration>) {
        let knew_me = self.meeting.knows_me();
        if !self.meeting.adopt(configuration) {
            return;
        }
        if knew_me && !self.meeting.knows_me() {
            tracing::warn!(
                "the operator gave this replica's place to a host with other keys (`troth admin replace`, or `rekey`): the \
                 others do not hear this one any more; mend: stop it, and start it again only with the new keys, where they \
                 are its own"
            );
        }
        self.frames = self.keys.frames(configuration);
        self.messages = self.keys.messages(configuration);
        let meeting = Rc::clone(&self.meeting);
        for party in self.links.close_strangers(|party, key| meeting.knows(party, key)) {
            tracing::info!(
                ?party,
                "closes the connection of one that the configuration does not know so any more"
            );
        }
    }

    pub(crate) fn journal(&mut self) -> &mut dyn Journal<X::Snapshot> {
        self.journal.as_deref_mut().expect("a host without durability keeps no log")
    }

    /// The host goes on with what the component's thread has left.
    pub(crate) fn component_answered(&mut self, done: Done) {
        match done {
            Done::Attested(answer) => self.attested(answer),
            Done::Logged(logged) => self.host.logged(self.clock.env(), logged),
            _ => unreachable!("the component leaves nothing else"),
        }
    }

    pub(crate) fn attested(&mut self, answer: Answer) {
        self.host.attested(self.clock.env(), answer);
    }

    /// Writes what the turn left for the connections, once for each. A loop that is stuck does not come back soon, so
    /// nothing waits then.
    pub(crate) fn flush(&mut self) {
        let now = if self.is_stuck() { Time(u64::MAX) } else { self.clock.now() };
        self.links.flush(&mut self.counters, now);
    }
}
