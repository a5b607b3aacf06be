//! A replica: agreement and execution in one machine, and what every protocol needs around them:
//! replies, reads, frames for peers, state transfer.

use crate::delivery::Undecided;
use crate::held::HeldReplies;
use crate::reads::HeldReads;
use crate::{
    Agreement, Cx, Effect, Env, Execution, Input, Installing, Lookup, Machine, MachineStart, Note, Output,
    PeerMessage, Reached, Start, Status, To, Voucher, machine::MAX_FRAMES, repeated_events::RepeatedEvents,
    repetitions::Repetitions, transfer::Transfer, unasked::Unasked,
};
use std::collections::VecDeque;
use std::sync::Arc;
use troth_auth::Seal;
use troth_trusted::a2m::{LogId, Slot};
use troth_trusted::{CounterId, CounterValue};
use troth_types::{
    ClientId, Configuration, Digest, Frame, Group, GroupId, ReplicaId, Seq, StateFetch, StatePiece, Time,
};

/// Bytes of the frames in one message, unless a single one is larger.
const FRAMES_MESSAGE: usize = 1 << 20;
/// Bytes of all the frames in answer to one question, unless the first is larger.
const FRAMES_ANSWER: usize = 4 << 20;

/// Units of checkpoint hashing done after each input; about this many microseconds.
const HASHING_PER_INPUT: usize = 100;
/// How many of them are used up at one reading of the clock: a runtime hands over all that came in a turn with one, and a
/// turn of a hundred messages must not hash a hundred times.
const HASHINGS_PER_INSTANT: u32 = 2;

/// Names of a replica's timers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ReplicaTimer<T> {
    /// One of the protocol's.
    Protocol(T),
    /// The state transfer has waited long enough.
    Transfer,
    /// A checkpoint's digest is not finished.
    Hashing,
    /// A read that waited may be answered: it has a turn of its own, which is its client's.
    Reads,
}

/// A replica of agreement protocol `A` that executes with `X`.
#[derive(Clone, Debug)]
pub struct Replica<A: Agreement, X: Execution> {
    pub(crate) me: ReplicaId,
    pub(crate) group: Group,
    pub(crate) agreement: A,
    pub(crate) execution: X,
    /// The state that everybody began with, to install into what must not be mixed with a wrong one.
    genesis: X,
    /// What takes the place of a wrong state once its transfer is complete. Until then clients are not answered.
    pub(crate) repair: Option<X>,
    pub(crate) transfer: Option<Transfer>,
    /// The tentative batches, in order.
    pub(crate) undecided: VecDeque<Undecided>,
    pub(crate) reads: HeldReads,
    hashing: bool,
    /// When it was hashed last, and how many whole slices then.
    hashed: (Time, u32),
    /// Pieces of state that were of use.
    pieces: u64,
    /// Replies that wait for the proof of their batch's place.
    pub(crate) held: HeldReplies,
    /// The last stable checkpoint that was told of.
    pub(crate) stable: Seq,
    /// Of frames that were asked for again: under which batch they are answered.
    pub(crate) repeated: Repetitions,
    pub(crate) repeated_events: RepeatedEvents,
    /// Frames whose clients ask others for the answer.
    pub(crate) unasked: Unasked,
}

impl<A: Agreement, X: Execution> PartialEq for Replica<A, X> {
    fn eq(&self, other: &Self) -> bool {
        (self.me, &self.agreement, self.execution.executed(), &self.transfer)
            == (other.me, &other.agreement, other.execution.executed(), &other.transfer)
    }
}

impl<A: Agreement, X: Execution> Eq for Replica<A, X> {}

pub(crate) type Outputs<A, X> = Vec<Output<Replica<A, X>>>;

impl<A: Agreement, X: Execution> Replica<A, X> {
    /// A replica in its genesis state.
    pub fn new(me: ReplicaId, group: Group, agreement: A, execution: X) -> Self {
        assert!(group.contains(me), "a replica belongs to its group");
        let genesis = execution.clone();
        Self {
            me,
            group,
            agreement,
            execution,
            genesis,
            repair: None,
            transfer: None,
            undecided: VecDeque::new(),
            reads: HeldReads::default(),
            hashing: false,
            hashed: (Time(0), 0),
            pieces: 0,
            held: HeldReplies::default(),
            stable: Seq(0),
            repeated: Repetitions::default(),
            repeated_events: RepeatedEvents::default(),
            unasked: Unasked::default(),
        }
    }

    /// The agreement protocol's state.
    pub fn agreement(&self) -> &A {
        &self.agreement
    }

    /// The executor.
    pub fn execution(&self) -> &X {
        &self.execution
    }

    /// A number that changes whenever a message of another replica brings this one further, in agreement or
    /// with a state that it fetches; `None` while that cannot be told.
    pub fn progress(&self) -> Option<u128> {
        self.agreement.progress().map(|agreed| agreed.wrapping_add(u128::from(self.pieces) << 64))
    }

    /// How many replicas the group has.
    pub fn replicas(&self) -> usize {
        self.group.n()
    }

    /// What a person wants to see.
    pub fn status(&self) -> Status {
        Status { executed: self.execution.committed(), ..self.agreement.status() }
    }

    pub(crate) fn reached(&self) -> Reached {
        Reached {
            seq: self.execution.executed(),
            time: self.execution.last_time(),
            deadline: self.execution.next_deadline(),
        }
    }

    /// Runs one event of the protocol and everything that follows from it.
    pub(crate) fn step(
        &mut self,
        env: Env,
        out: &mut Outputs<A, X>,
        event: impl FnOnce(&mut A, &mut Cx<'_, A>),
    ) {
        let mut effects = Vec::new();
        let mut cx = Cx::new(env.now, env.wall, self.me, &self.group, &mut effects);
        event(&mut self.agreement, &mut cx);
        self.carry_out(env, effects, out);
    }

    fn carry_out(&mut self, env: Env, effects: Vec<Effect<A>>, out: &mut Outputs<A, X>) {
        let mut queue = VecDeque::from(effects);
        while let Some(effect) = queue.pop_front() {
            let mut more = Vec::new();
            match effect {
                Effect::Send { to, message } => {
                    out.push(Output::Peer { to, message: PeerMessage::Protocol(message) });
                }
                Effect::Broadcast(message) => out.push(Output::Broadcast(message)),
                Effect::Certify { counter, previous, new, body, to } => {
                    out.push(Output::Certify { counter, previous, new, body, to });
                }
                Effect::CertifyInLog { log, slot, body, to } => {
                    out.push(Output::CertifyInLog { log, slot, body, to });
                }
                Effect::Trusted { ticket, operations } => out.push(Output::Trusted { ticket, operations }),
                Effect::Draw(ticket) => out.push(Output::Draw(ticket)),
                Effect::Sign { body, to } => out.push(Output::Sign { body, to }),
                Effect::BroadcastSigned(body) => out.push(Output::BroadcastSigned(body)),
                Effect::SetTimer { timer, at } => {
                    out.push(Output::SetTimer { timer: ReplicaTimer::Protocol(timer), at });
                }
                Effect::CancelTimer(timer) => out.push(Output::CancelTimer(ReplicaTimer::Protocol(timer))),
                Effect::Persist(record) => out.push(Output::Persist(record)),
                Effect::Remember(record) => out.push(Output::Remember(record)),
                Effect::FetchFrames { to, digests } => {
                    for some in digests.chunks(MAX_FRAMES) {
                        out.push(Output::Peer { to, message: PeerMessage::FetchFrames(some.to_vec()) });
                    }
                }
                Effect::ShowFrames { to, frames } => {
                    let mut frames = frames.into_iter().map(troth_auth::Verified::into_inner).peekable();
                    while frames.peek().is_some() {
                        let some = frames.by_ref().take(MAX_FRAMES).collect();
                        out.push(Output::Peer { to, message: PeerMessage::Frames(some) });
                    }
                }
                Effect::Deliver(ordered) => self.deliver(env, &ordered, &mut more, out),
                Effect::DeliverTentatively { ordered, view } => {
                    self.deliver_tentatively(env, &ordered, view, &mut more, out);
                }
                Effect::Commit { through } => self.commit(env, through, &mut more, out),
                Effect::Rollback { to } => self.roll_back(to, out),
                Effect::Release { seq, proof } => self.release(env.now, seq, &proof, out),
                Effect::EndAttested(end) => self.end_attested(&end, out),
                Effect::Checkpoint => {
                    self.execution.checkpoint();
                    self.hashing = true;
                }
                Effect::Stable { seq, .. } => {
                    self.execution.stable(seq);
                    self.answers_stable(seq);
                    out.push(Output::Compact(seq));
                }
                Effect::Compact(seq) => out.push(Output::Compact(seq)),
                Effect::FetchState { seq, digest, sources } => {
                    self.begin_transfer(env, seq, digest, sources, out)
                }
                Effect::RepairState { seq, digest, sources } => {
                    if self.repair.is_none() {
                        self.reads.refuse_all(out);
                        self.transfer = None;
                        self.repair = Some(self.genesis.clone());
                    }
                    self.begin_transfer(env, seq, digest, sources, out);
                }
                Effect::Note(note) => out.push(Output::Note(note)),
                Effect::Halt(reason) => out.push(Output::Halt(reason)),
            }
            // What an event led to comes before what stood behind it in the queue only where it must:
            // effects keep the order in which they were asked for.
            queue.extend(more);
        }
    }

    /// Tells the protocol and those who check what comes who the replicas are now.
    pub(crate) fn configured(
        &mut self,
        env: Env,
        configuration: &Arc<Configuration>,
        effects: &mut Vec<Effect<A>>,
        out: &mut Outputs<A, X>,
    ) {
        out.push(Output::Configured(Arc::clone(configuration)));
        let mut cx = Cx::new(env.now, env.wall, self.me, &self.group, effects);
        self.agreement.on_configured(&mut cx, configuration);
    }

    /// Hashes a slice of what checkpoints wait for.
    fn hash(&mut self, env: Env, out: &mut Outputs<A, X>) {
        if !self.hashing && !self.execution.hashing() {
            return;
        }
        self.hashed = if env.now > self.hashed.0 { (env.now, 0) } else { self.hashed };
        if self.hashed.1 == HASHINGS_PER_INSTANT {
            return out.push(Output::SetTimer { timer: ReplicaTimer::Hashing, at: env.now.after(1) });
        }
        match self.execution.poll_checkpoint(HASHING_PER_INPUT) {
            Some((seq, digest)) => {
                self.step(env, out, |agreement, cx| agreement.on_checkpoint(cx, seq, digest))
            }
            None => {
                self.hashing = self.execution.hashing();
                self.hashed.1 += u32::from(self.hashing);
            }
        }
        if self.hashing {
            out.push(Output::SetTimer { timer: ReplicaTimer::Hashing, at: env.now });
        }
    }

    /// The frames that somebody asks for, in messages that any link carries. What exceeds an answer is asked
    /// for again: a faulty replica must not have this one copy without end.
    fn frames_for(&self, mut digests: Vec<Digest>) -> Vec<Vec<Arc<Frame>>> {
        digests.truncate(MAX_FRAMES);
        digests.sort_unstable();
        digests.dedup();
        let (mut messages, mut some, mut total, mut size) = (Vec::new(), Vec::new(), 0, 0);
        for frame in digests.iter().filter_map(|digest| self.agreement.frame(digest)) {
            let frame = frame.into_inner();
            let bytes = frame.size();
            if total > 0 && total + bytes > FRAMES_ANSWER {
                break;
            }
            if size > 0 && size + bytes > FRAMES_MESSAGE {
                messages.push(std::mem::take(&mut some));
                size = 0;
            }
            total += bytes;
            size += bytes;
            some.push(frame);
        }
        if !some.is_empty() {
            messages.push(some);
        }
        messages
    }

    fn begin_transfer(
        &mut self,
        env: Env,
        seq: Seq,
        digest: Digest,
        mut sources: Vec<ReplicaId>,
        out: &mut Outputs<A, X>,
    ) {
        sources.retain(|source| *source != self.me);
        let under_way = self.transfer.as_ref().is_some_and(|transfer| transfer.seq >= seq);
        // An older state must not replace a newer one, unless that is wrong.
        let older = self.repair.is_none() && seq <= self.execution.committed();
        if sources.is_empty() || under_way || older {
            return;
        }
        let wants = self.repair.as_mut().unwrap_or(&mut self.execution).begin_install(seq, digest);
        let transfer = Transfer::new(seq, digest, sources);
        self.transfer = Some(match &self.transfer {
            Some(earlier) => transfer.after(earlier),
            None => transfer,
        });
        self.ask(env, wants, out);
    }

    /// What the state under way still lacks.
    fn wanted(&mut self) -> Vec<StateFetch> {
        self.repair.as_mut().unwrap_or(&mut self.execution).wanted()
    }

    /// Asks the one whose turn it is, and the next one later.
    fn ask(&mut self, env: Env, wants: Vec<StateFetch>, out: &mut Outputs<A, X>) {
        let Some(transfer) = &mut self.transfer else { return };
        for fetch in wants {
            let source = transfer.source();
            out.push(Output::Peer { to: To::One(source), message: PeerMessage::FetchState(fetch) });
        }
        let at = transfer.asked(env.now);
        out.push(Output::SetTimer { timer: ReplicaTimer::Transfer, at });
    }

    fn on_piece(&mut self, env: Env, from: ReplicaId, piece: &StatePiece, out: &mut Outputs<A, X>) {
        let Some(transfer) = &mut self.transfer else { return };
        if !transfer.expects(from, piece) {
            return;
        }
        match self.repair.as_mut().unwrap_or(&mut self.execution).on_piece(piece) {
            Installing::Wants(wants) => {
                self.pieces += 1;
                // What is under way has its time anew where nothing more is asked for, too.
                let wants = if transfer.progressed(env.now) { self.wanted() } else { wants };
                self.ask(env, wants, out);
            }
            Installing::Done => {
                let (seq, digest) = (transfer.seq, transfer.digest);
                self.transfer = None;
                if let Some(repaired) = self.repair.take() {
                    self.execution = repaired;
                }
                out.push(Output::CancelTimer(ReplicaTimer::Transfer));
                out.push(Output::Note(Note::TransferDone { seq }));
                out.push(Output::Rebase(seq));
                self.installed(env, digest, out);
            }
            Installing::Rejected => {
                let at_once = transfer.rejected();
                out.push(Output::Note(Note::Suspected {
                    replica: from,
                    reason: "a piece of state does not verify",
                }));
                // To rest is to ask for nothing until the timer is due.
                let wants = if at_once { self.wanted() } else { Vec::new() };
                self.ask(env, wants, out);
            }
            Installing::NotWanted => {}
        }
    }

    fn installed(&mut self, env: Env, digest: Digest, out: &mut Outputs<A, X>) {
        self.undecided.clear();
        self.reads.refuse_all(out);
        // What was executed is not this state's past any more.
        self.held.clear();
        let reached = self.reached();
        let mut effects = Vec::new();
        let configuration = Arc::clone(self.execution.configuration());
        self.configured(env, &configuration, &mut effects, out);
        let mut cx = Cx::new(env.now, env.wall, self.me, &self.group, &mut effects);
        let execution = &self.execution;
        let executed = |client: ClientId, number: u64| execution.lookup(client, number) != Lookup::New;
        self.agreement.on_installed(&mut cx, reached, digest, &executed);
        self.carry_out(env, effects, out);
    }
}

impl<A: Agreement, X: Execution> Machine for Replica<A, X> {
    type Body = A::Body;
    type Message = A::Message;
    type Timer = ReplicaTimer<A::Timer>;
    type Record = A::Record;
    type Snapshot = X::Snapshot;

    fn start(
        &mut self,
        env: Env,
        start: MachineStart<Self>,
        out: &mut Vec<Output<Self>>,
    ) -> Result<(), &'static str> {
        let start = match start {
            MachineStart::Fresh => Start::Fresh,
            MachineStart::Recovered { snapshot, own, records } => {
                let snapshot = match snapshot {
                    Some(snapshot) => self.execution.restore(snapshot),
                    None => (Seq(0), Digest::ZERO),
                };
                Start::Recovered { own, records, snapshot, reached: self.reached() }
            }
        };
        let mut effects = Vec::new();
        let configuration = Arc::clone(self.execution.configuration());
        self.configured(env, &configuration, &mut effects, out);
        self.carry_out(env, effects, out);
        self.step(env, out, |agreement, cx| agreement.on_start(cx, start));
        Ok(())
    }

    fn input(
        &mut self,
        env: Env,
        input: Input<A::Message, ReplicaTimer<A::Timer>>,
        out: &mut Vec<Output<Self>>,
    ) {
        match input {
            Input::Requests(requests) => self.on_requests(env, requests, out),
            Input::Repeated(repeated) => self.on_repeated(env.now, repeated, out),
            Input::Read(read) => self.on_read(&read, out),
            Input::Message(from, message) => {
                self.step(env, out, |agreement, cx| agreement.on_message(cx, from, message));
            }
            Input::Frames(from, frames) => self.on_frames(env, from, frames, out),
            Input::Doubtful(_, frames) => {
                self.step(env, out, |agreement, cx| agreement.on_doubtful_frames(cx, frames));
            }
            Input::FetchFrames(from, digests) => {
                let answers = self.frames_for(digests).into_iter().map(PeerMessage::Frames);
                out.extend(answers.map(|message| Output::Peer { to: To::One(from), message }));
            }
            Input::FetchState(from, fetch) => {
                let piece = self.execution.serve(&fetch).map(PeerMessage::StatePiece);
                out.extend(piece.map(|message| Output::Peer { to: To::One(from), message }));
            }
            Input::StatePiece(from, piece) => self.on_piece(env, from, &piece, out),
            Input::Timer(ReplicaTimer::Protocol(timer)) => {
                self.step(env, out, |agreement, cx| agreement.on_timer(cx, timer));
            }
            Input::Timer(ReplicaTimer::Transfer) => {
                if let Some(transfer) = &mut self.transfer {
                    transfer.timed_out();
                    let wants = self.wanted();
                    self.ask(env, wants, out);
                }
            }
            Input::Timer(ReplicaTimer::Hashing) => {}
            Input::Timer(ReplicaTimer::Reads) => self.answer_next_late(env, out),
            Input::Trusted(ticket, answers) => {
                self.step(env, out, |agreement, cx| agreement.on_trusted(cx, ticket, answers));
            }
            Input::Drawn(ticket, nonce) => {
                self.step(env, out, |agreement, cx| agreement.on_drawn(cx, ticket, nonce));
            }
        }
        self.hash(env, out);
        self.go_on_with_reads(env, out);
    }

    fn digest(body: &A::Body, group: GroupId, from: ReplicaId) -> Digest {
        A::digest(body, group, from)
    }

    fn voucher(body: &A::Body) -> Voucher {
        A::voucher(body)
    }

    fn seal(body: A::Body, digest: Digest, from: ReplicaId, seal: Seal) -> A::Message {
        A::seal(body, digest, from, seal)
    }

    fn position(message: &A::Message) -> Option<(CounterId, CounterValue)> {
        A::position(message)
    }

    fn slot(message: &A::Message) -> Option<(LogId, Slot)> {
        A::slot(message)
    }

    fn snapshot(&self, seq: Seq) -> Option<X::Snapshot> {
        // No log begins at a state that is wrong.
        if self.repair.is_some() { None } else { self.execution.snapshot(seq) }
    }

    fn retained(&self) -> (Vec<A::Message>, Vec<A::Record>) {
        self.agreement.retained()
    }
}
