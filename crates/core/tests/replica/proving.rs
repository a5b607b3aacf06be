//! A replica of a protocol that proves its replies and the end of its history when it is told to.

use crate::stubs::Silence;
use bytes::Bytes;
use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::sync::Arc;
use troth_auth::{Seal, Verified, decode_attestation};
use troth_core::{
    Agreement, BatchRun, Cx, Env, Execution, Input, Installing, Lookup, Machine as _, Meter, Ordered,
    Outcome, Output, Proven, Reached, Replica, ReplicaTimer, ReplyProof, Start, Status, VerifiedFrame,
    Voucher,
};
use troth_trusted::a2m::{Attestation, Claim, Content, LogId, Request, slot_nonce};
use troth_trusted::run::{Path, root_over};
use troth_trusted::{CounterId, CounterValue, Epoch, Proof, RunProof};
use troth_types::{
    AttestedRead, Batch, ClientId, Configuration, Digest, Event, FrameDraft, Group, GroupId, Read, ReadReply,
    Reader, ReplicaId, Reply, ReplyBody, Seq, Signature, StateFetch, StatePiece, Time, ToClient, View, Wire,
};

pub(crate) const CLIENT: ClientId = ClientId(1);

/// What the protocol does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Step {
    /// The batch of this number is executed; it has the frame of this number.
    Execute(u64),
    /// The place of this batch is proven.
    Prove(u64),
    /// This checkpoint is stable.
    Stable(u64),
    /// The end of the history is attested as it was asked for.
    End,
    /// The state is wrong.
    Wrong(u64),
    /// The state at this checkpoint is to be fetched.
    Fetch(u64),
}

/// Does what it is told to by timers, and writes down which frames are to be ordered, and why.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Proving {
    pub(crate) stable: u64,
    /// The batch whose proof is kept.
    pub(crate) here: Option<u64>,
    pub(crate) wanted: Vec<(&'static str, u64)>,
    /// Whether its history ends elsewhere than its executor stands.
    pub(crate) astray: bool,
    /// For which state, and under which nonce, the end was asked for.
    pub(crate) ends: Vec<(u64, [u8; 32])>,
}

impl Proving {
    fn want(&mut self, why: &'static str, frames: &[VerifiedFrame]) {
        self.wanted.extend(frames.iter().map(|frame| (why, frame.number())));
    }
}

pub(crate) fn frame(number: u64) -> VerifiedFrame {
    let draft = FrameDraft {
        group: GroupId([1; 16]),
        client: CLIENT,
        number,
        events_seen: 0,
        operations: Vec::new(),
    };
    Verified::made_here(Arc::new(draft.sign(Signature([1; 64]))))
}

pub(crate) fn proof(number: u64) -> Arc<ReplyProof> {
    let slot = CounterValue::new(0, number);
    let content = Content::Assigned { value: [0; 32], digest: [0; 32] };
    let claim = Claim { request: Request::Lookup, log: LogId(0), slot, nonce: slot_nonce(slot), content };
    let attestation = Attestation { epoch: Epoch(1), claim, proof: Proof::Mac([0; 32]) };
    let batch = Batch { time: Time(number), frames: vec![frame(number).digest()] };
    let run = BatchRun::of(&batch).expect("a small batch");
    Arc::new(ReplyProof::new(&attestation, run, vec![(CLIENT, number)]))
}

impl Agreement for Proving {
    const NAME: &'static str = "proving";
    const PROVES_REPLIES: bool = true;
    type Body = ();
    type Message = Silence;
    type Timer = Step;
    type Record = ();

    fn digest((): &(), _: GroupId, _: ReplicaId) -> Digest {
        Digest::ZERO
    }
    fn voucher((): &()) -> Voucher {
        Voucher::Host
    }
    fn seal((): (), _: Digest, _: ReplicaId, _: Seal) -> Silence {
        Silence
    }
    fn position(_: &Silence) -> Option<(CounterId, CounterValue)> {
        None
    }
    fn on_start(&mut self, _: &mut Cx<'_, Self>, _: Start<Self>) {}
    fn on_requests(&mut self, _: &mut Cx<'_, Self>, frames: Vec<VerifiedFrame>) {
        self.want("new", &frames);
    }
    fn on_requests_again(&mut self, _: &mut Cx<'_, Self>, frames: Vec<VerifiedFrame>) {
        self.want("its client asks", &frames);
    }
    fn on_shown_again(&mut self, _: &mut Cx<'_, Self>, from: ReplicaId, frames: Vec<VerifiedFrame>) {
        assert_eq!(from, ReplicaId(1));
        self.want("a replica shows it", &frames);
    }
    fn on_known_frames(&mut self, _: &mut Cx<'_, Self>, frames: Vec<VerifiedFrame>) {
        self.want("known", &frames);
    }
    fn on_message(&mut self, _: &mut Cx<'_, Self>, _: ReplicaId, _: Verified<Silence>) {}
    fn on_timer(&mut self, cx: &mut Cx<'_, Self>, step: Step) {
        match step {
            Step::Execute(number) => cx.deliver(Ordered {
                seq: Seq(number),
                time: Time(number),
                seed: Digest::ZERO,
                frames: vec![frame(number)],
            }),
            Step::Prove(number) => cx.release(Seq(number), proof(number)),
            Step::Stable(number) => {
                self.stable = number;
                cx.stable(Seq(number), Digest::ZERO);
            }
            Step::End => {
                let (executed, nonce) = *self.ends.last().expect("it was asked for");
                let slot = CounterValue::new(0, executed);
                let content = Content::Assigned { value: [0; 32], digest: [0; 32] };
                let claim = Claim { request: Request::End, log: LogId(0), slot, nonce, content };
                cx.end_attested(Attestation { epoch: Epoch(1), claim, proof: Proof::Mac([0; 32]) });
            }
            Step::Fetch(number) => cx.fetch_state(Seq(number), Digest::ZERO, vec![ReplicaId(1)]),
            Step::Wrong(number) => cx.repair_state(Seq(number), Digest::ZERO, vec![ReplicaId(1)]),
        }
    }
    fn on_executed(&mut self, _: &mut Cx<'_, Self>, _: Reached, _: &Outcome) {}
    fn on_configured(&mut self, _: &mut Cx<'_, Self>, _: &Arc<Configuration>) {}
    fn on_checkpoint(&mut self, _: &mut Cx<'_, Self>, _: Seq, _: Digest) {}
    fn on_installed(
        &mut self,
        _: &mut Cx<'_, Self>,
        _: Reached,
        _: Digest,
        _: &dyn Fn(ClientId, u64) -> bool,
    ) {
    }
    fn frame(&self, _: &Digest) -> Option<VerifiedFrame> {
        None
    }
    fn proven(&self, seq: Seq) -> Proven {
        match seq.0 {
            here if self.here == Some(here) => Proven::Here(proof(here)),
            gone if gone <= self.stable => Proven::Gone,
            _ => Proven::Coming,
        }
    }
    fn may_answer_reads(&self) -> bool {
        true
    }
    fn attest_end(&mut self, _: &mut Cx<'_, Self>, executed: Seq, nonce: [u8; 32]) -> bool {
        if !self.astray {
            self.ends.push((executed.0, nonce));
        }
        !self.astray
    }
    fn retained(&self) -> (Vec<Silence>, Vec<()>) {
        (Vec::new(), Vec::new())
    }
    fn view(&self) -> View {
        View(0)
    }
    fn status(&self) -> Status {
        Status::default()
    }
}

/// Remembers what it executed.
#[derive(Clone, Debug, Default)]
pub(crate) struct Done {
    /// Bytes of each answer to a read, beside what it says.
    pub(crate) padding: usize,
    /// Bytes of what came of each frame.
    pub(crate) result: usize,
    pub(crate) executed: BTreeMap<u64, Seq>,
    /// How many installations were given up.
    pub(crate) abandoned: usize,
    /// Bytes of the events in its client's outbox.
    pub(crate) events: Vec<usize>,
    /// Frames whose results are not kept any more, and those that were overtaken.
    pub(crate) gone: Vec<u64>,
    pub(crate) overtaken: Vec<u64>,
    pub(crate) configuration: Arc<Configuration>,
    /// How long each read takes in the eyes of who looks on, if somebody does.
    pub(crate) watch: Option<Watch>,
}

/// Sees every read take so many microseconds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Watch(pub(crate) u64);

impl Meter for Watch {
    fn begins(&self) {}
    fn executed(&self, _: ClientId) {}
    fn answered(&self, _: ClientId) -> u64 {
        self.0
    }
}

impl Execution for Done {
    type Snapshot = ();

    fn meter(&self) -> Option<&dyn Meter> {
        self.watch.as_ref().map(|watch| watch as &dyn Meter)
    }
    fn executed(&self) -> Seq {
        self.executed.values().copied().max().unwrap_or_default()
    }
    fn configuration(&self) -> &Arc<Configuration> {
        &self.configuration
    }
    fn last_time(&self) -> Time {
        Time(0)
    }
    fn next_deadline(&self) -> Option<Time> {
        None
    }
    fn lookup(&self, client: ClientId, number: u64) -> Lookup {
        let Some(seq) = self.executed.get(&number).copied() else { return Lookup::New };
        match number {
            gone if self.gone.contains(&gone) => return Lookup::ResultGone(seq),
            overtaken if self.overtaken.contains(&overtaken) => return Lookup::TooOld,
            _ => {}
        }
        let body = ReplyBody::Full(vec![vec![0; self.result].into()]);
        Lookup::Executed(Box::new(Reply { client, number, seq, view: View(0), events_up_to: 0, body }))
    }
    fn execute(&mut self, ordered: &Ordered) -> Outcome {
        let done: Vec<(ClientId, u64)> =
            ordered.frames.iter().map(|frame| (frame.client(), frame.number())).collect();
        self.executed.extend(done.iter().map(|(_, number)| (*number, ordered.seq)));
        let done =
            done.into_iter().map(|(client, number)| troth_core::Done { client, number, now: true }).collect();
        Outcome { done, ..Outcome::default() }
    }
    fn execute_tentatively(&mut self, _: &Ordered) -> Outcome {
        unreachable!("every place is final")
    }
    fn commit(&mut self, _: Seq) {}
    fn roll_back(&mut self, _: Seq) {
        unreachable!("every place is final")
    }
    /// Every read is answered with how much was executed.
    fn query(&self, read: &Read) -> ReadReply {
        let mut result = self.executed().0.to_wire().to_vec();
        result.resize(result.len() + self.padding, 0);
        let body = ReplyBody::Full(vec![result.into()]);
        ReadReply { client: read.client, number: read.number, events_up_to: 0, body }
    }
    fn outbox(&self, _: ClientId) -> RangeInclusive<u64> {
        1..=self.events.len() as u64
    }
    fn event(&self, client: ClientId, index: u64) -> Event {
        let payload = Bytes::from(vec![1; self.events[index as usize - 1]]);
        Event { client, index, seq: Seq(1), payload }
    }
    fn checkpoint(&mut self) {}
    fn poll_checkpoint(&mut self, _: usize) -> Option<(Seq, Digest)> {
        None
    }
    fn hashing(&self) -> bool {
        false
    }
    fn stable(&mut self, _: Seq) {}
    fn serve(&self, _: &StateFetch) -> Option<StatePiece> {
        None
    }
    fn abandon_install(&mut self) {
        self.abandoned += 1;
    }
    fn begin_install(&mut self, _: Seq, _: Digest) -> Vec<StateFetch> {
        Vec::new()
    }
    fn on_piece(&mut self, _: &StatePiece) -> Installing {
        Installing::NotWanted
    }
    fn wanted(&mut self) -> Vec<StateFetch> {
        Vec::new()
    }
    fn snapshot(&self, _: Seq) -> Option<()> {
        None
    }
    fn restore(&mut self, (): ()) -> (Seq, Digest) {
        (Seq(0), Digest::ZERO)
    }
}

pub(crate) struct One(pub(crate) Replica<Proving, Done>, pub(crate) Time);

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Told {
    Answer(AttestedRead),
    Refusal(u64),
}

impl Told {
    /// The number of the read that is answered; none where it is refused.
    pub(crate) fn answers(&self) -> Option<u64> {
        match self {
            Self::Answer(read) => Some(read.reply.number),
            Self::Refusal(_) => None,
        }
    }
}

/// The state that an answer shows, where it proves it under this nonce to this END.
pub(crate) fn shows(told: &Told, number: u64, nonce: u8, root: [u8; 32]) -> ReplyBody {
    let Told::Answer(AttestedRead { reply, end, .. }) = told else { panic!("{told:?}") };
    assert_eq!((reply.client, reply.number), (CLIENT, number));
    let siblings: Vec<[u8; 32]> = end.path.iter().map(|sibling| sibling.0).collect();
    let path = Path::new(&siblings).expect("a path");
    let proof = RunProof { index: end.index, count: end.count, path };
    assert_eq!(root_over(&proof, &[nonce; 32]), Some(root));
    let attestation = decode_attestation(&mut Reader::new(&end.attestation)).expect("an attestation");
    assert_eq!(attestation.claim.nonce, root);
    reply.body.clone()
}

pub(crate) fn state(number: u64, of: u64) -> ReplyBody {
    let results = vec![of.to_wire()];
    let group = Group::hybrid(GroupId([1; 16]), 3).expect("2f+1");
    match group.designated(CLIENT, number) == ReplicaId(0) {
        true => ReplyBody::Full(results),
        false => ReplyBody::Digest(Reply::results_digest(&results)),
    }
}

impl One {
    pub(crate) fn new() -> Self {
        Self::with(Done::default())
    }

    pub(crate) fn with(done: Done) -> Self {
        let group = Group::hybrid(GroupId([1; 16]), 3).expect("2f+1");
        Self(Replica::new(ReplicaId(0), group, Proving::default(), done), Time(1))
    }

    /// The same, where the proofs of one batch are kept.
    pub(crate) fn with_proof_of(batch: u64, done: Done) -> Self {
        let group = Group::hybrid(GroupId([1; 16]), 3).expect("2f+1");
        let agreement = Proving { here: Some(batch), ..Proving::default() };
        Self(Replica::new(ReplicaId(0), group, agreement, done), Time(1))
    }

    pub(crate) fn outputs(
        &mut self,
        input: Input<Silence, ReplicaTimer<Step>>,
    ) -> Vec<Output<Replica<Proving, Done>>> {
        let mut out = Vec::new();
        self.0.input(Env { now: self.1, wall: Time(1) }, input, &mut out);
        out
    }

    /// What clients that read are told: what it is and which read it answers.
    pub(crate) fn told(&mut self, input: Input<Silence, ReplicaTimer<Step>>) -> Vec<Told> {
        let told = self.outputs(input).into_iter().filter_map(|output| match output {
            Output::Client(ToClient::AttestedRead(read)) => Some(Told::Answer(read)),
            Output::Client(ToClient::Refusal(refusal)) if refusal.read => Some(Told::Refusal(refusal.number)),
            _ => None,
        });
        told.collect()
    }

    pub(crate) fn read(&mut self, number: u64, nonce: Option<u8>) -> Vec<Told> {
        let nonce = nonce.map(|nonce| Digest([nonce; 32]));
        self.told(Input::Read(Read { client: CLIENT, number, nonce, least: None, operation: Bytes::new() }))
    }

    /// A read of some client, with an operation of so many bytes.
    pub(crate) fn read_of(&mut self, client: u64, number: u64, bytes: usize) -> Vec<Told> {
        let operation = Bytes::from(vec![0; bytes]);
        let nonce = Some(Digest([client as u8; 32]));
        self.told(Input::Read(Read { client: ClientId(client), number, nonce, least: None, operation }))
    }

    pub(crate) fn reads(&mut self, step: Step) -> Vec<Told> {
        self.told(Input::Timer(ReplicaTimer::Protocol(step)))
    }

    /// Clients' frames that are answered.
    pub(crate) fn input(&mut self, input: Input<Silence, ReplicaTimer<Step>>) -> Vec<u64> {
        let answered = self.outputs(input).into_iter().filter_map(|output| match output {
            Output::Client(ToClient::Attested(attested)) => Some(attested.reply.number),
            _ => None,
        });
        answered.collect()
    }

    pub(crate) fn step(&mut self, step: Step) -> Vec<u64> {
        self.input(Input::Timer(ReplicaTimer::Protocol(step)))
    }
}
