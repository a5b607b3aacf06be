//! Replies that wait for the proof of their place, reads whose answers wait for the end of the history, and what is held for
//! them.

use crate::stubs::Silence;
use bytes::Bytes;
use std::collections::BTreeMap;
use std::sync::Arc;
use troth_auth::{Seal, Verified, decode_attestation};
use troth_core::{
    Agreement, Cx, Env, Execution, Input, Installing, Lookup, Machine as _, Ordered, Outcome, Output, Proven,
    Reached, Repeated, Replica, ReplicaTimer, ReplyProof, Start, Status, VerifiedFrame,
};
use troth_trusted::a2m::{Attestation, Claim, Content, LogId, Request, slot_nonce};
use troth_trusted::run::{Path, root_over};
use troth_trusted::{CounterId, CounterValue, Epoch, Proof, RunProof};
use troth_types::{
    AttestedRead, Batch, ClientId, Configuration, Digest, Event, FrameDraft, Group, GroupId, Read, ReadReply,
    Reader, RefusalReason, ReplicaId, Reply, ReplyBody, Seq, Signature, StateFetch, StatePiece, Time,
    ToClient, View, Wire,
};

const CLIENT: ClientId = ClientId(1);

/// What the protocol does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Step {
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
}

/// Does what it is told to by timers, and writes down which frames are to be ordered, and why.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Proving {
    stable: u64,
    wanted: Vec<(&'static str, u64)>,
    /// Whether its history ends elsewhere than its executor stands.
    astray: bool,
    /// For which state, and under which nonce, the end was asked for.
    ends: Vec<(u64, [u8; 32])>,
}

impl Proving {
    fn want(&mut self, why: &'static str, frames: &[VerifiedFrame]) {
        self.wanted.extend(frames.iter().map(|frame| (why, frame.number())));
    }
}

fn frame(number: u64) -> VerifiedFrame {
    let draft = FrameDraft {
        group: GroupId([1; 16]),
        client: CLIENT,
        number,
        events_seen: 0,
        operations: Vec::new(),
    };
    Verified::made_here(Arc::new(draft.sign(Signature([1; 64]))))
}

fn proof(number: u64) -> Arc<ReplyProof> {
    let slot = CounterValue::new(0, number);
    let content = Content::Assigned { value: [0; 32], digest: [0; 32] };
    let claim = Claim { request: Request::Lookup, log: LogId(0), slot, nonce: slot_nonce(slot), content };
    let attestation = Attestation { epoch: Epoch(1), claim, proof: Proof::Mac([0; 32]) };
    let batch = Batch { time: Time(number), frames: vec![frame(number).digest()] };
    Arc::new(ReplyProof::new(&attestation, batch, vec![(CLIENT, number)]))
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
        if seq.0 <= self.stable { Proven::Gone } else { Proven::Coming }
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
struct Done {
    executed: BTreeMap<u64, Seq>,
    /// Frames whose results are not kept any more, and those that were overtaken.
    gone: Vec<u64>,
    overtaken: Vec<u64>,
    configuration: Arc<Configuration>,
}

impl Execution for Done {
    type Snapshot = ();

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
        let body = ReplyBody::Full(Vec::new());
        Lookup::Executed(Box::new(Reply { client, number, seq, view: View(0), events_up_to: 0, body }))
    }
    fn execute(&mut self, ordered: &Ordered) -> Outcome {
        let done: Vec<(ClientId, u64)> =
            ordered.frames.iter().map(|frame| (frame.client(), frame.number())).collect();
        self.executed.extend(done.iter().map(|(_, number)| (*number, ordered.seq)));
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
        let body = ReplyBody::Full(vec![self.executed().0.to_wire()]);
        ReadReply { client: read.client, number: read.number, events_up_to: 0, body }
    }
    fn events_after(&self, _: ClientId, _: u64) -> Vec<Event> {
        Vec::new()
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

struct One(Replica<Proving, Done>);

#[derive(Debug, PartialEq, Eq)]
enum Told {
    Answer(AttestedRead),
    Refusal(u64),
}

/// The state that an answer shows, where it proves it under this nonce to this END.
fn shows(told: &Told, number: u64, nonce: u8, root: [u8; 32]) -> ReplyBody {
    let Told::Answer(AttestedRead { reply, end }) = told else { panic!("{told:?}") };
    assert_eq!((reply.client, reply.number), (CLIENT, number));
    let siblings: Vec<[u8; 32]> = end.path.iter().map(|sibling| sibling.0).collect();
    let path = Path::new(&siblings).expect("a path");
    let proof = RunProof { index: end.index, count: end.count, path };
    assert_eq!(root_over(&proof, &[nonce; 32]), Some(root));
    let attestation = decode_attestation(&mut Reader::new(&end.attestation)).expect("an attestation");
    assert_eq!(attestation.claim.nonce, root);
    reply.body.clone()
}

fn state(number: u64, of: u64) -> ReplyBody {
    let results = vec![of.to_wire()];
    let group = Group::hybrid(GroupId([1; 16]), 3).expect("2f+1");
    match group.designated(CLIENT, number) == ReplicaId(0) {
        true => ReplyBody::Full(results),
        false => ReplyBody::Digest(Reply::results_digest(&results)),
    }
}

impl One {
    fn new() -> Self {
        Self::with(Done::default())
    }

    fn with(done: Done) -> Self {
        let group = Group::hybrid(GroupId([1; 16]), 3).expect("2f+1");
        Self(Replica::new(ReplicaId(0), group, Proving::default(), done))
    }

    fn outputs(&mut self, input: Input<Silence, ReplicaTimer<Step>>) -> Vec<Output<Replica<Proving, Done>>> {
        let mut out = Vec::new();
        self.0.input(Env { now: Time(1), wall: Time(1) }, input, &mut out);
        out
    }

    /// What clients that read are told: what it is and which read it answers.
    fn told(&mut self, input: Input<Silence, ReplicaTimer<Step>>) -> Vec<Told> {
        let told = self.outputs(input).into_iter().filter_map(|output| match output {
            Output::Client(ToClient::AttestedRead(read)) => Some(Told::Answer(read)),
            Output::Client(ToClient::Refusal(refusal)) if refusal.read => Some(Told::Refusal(refusal.number)),
            _ => None,
        });
        told.collect()
    }

    fn read(&mut self, number: u64, nonce: Option<u8>) -> Vec<Told> {
        let nonce = nonce.map(|nonce| Digest([nonce; 32]));
        self.told(Input::Read(Read { client: CLIENT, number, nonce, operation: Bytes::new() }))
    }

    fn reads(&mut self, step: Step) -> Vec<Told> {
        self.told(Input::Timer(ReplicaTimer::Protocol(step)))
    }

    /// Clients' frames that are answered.
    fn input(&mut self, input: Input<Silence, ReplicaTimer<Step>>) -> Vec<u64> {
        let answered = self.outputs(input).into_iter().filter_map(|output| match output {
            Output::Client(ToClient::Attested(attested)) => Some(attested.reply.number),
            _ => None,
        });
        answered.collect()
    }

    fn step(&mut self, step: Step) -> Vec<u64> {
        self.input(Input::Timer(ReplicaTimer::Protocol(step)))
    }
}

#[test]
fn replies_wait_for_their_proof_and_not_for_ever() {
    let mut one = One::new();
    for number in 1..=6 {
        assert!(one.step(Step::Execute(number)).is_empty());
    }
    assert_eq!(one.step(Step::Prove(1)), [1]);
    one.step(Step::Stable(2));
    assert_eq!(one.step(Step::Prove(2)), [2], "proven a little later than stable");
    one.step(Step::Stable(4));
    one.step(Step::Stable(6));
    assert!(one.step(Step::Prove(3)).is_empty() && one.step(Step::Prove(4)).is_empty(), "asked for anew");
    assert_eq!(one.step(Step::Prove(5)), [5]);
}

#[test]
fn what_is_executed_is_told_from_what_is_new_and_who_wants_it_again() {
    let mut one = One::new();
    let show = |one: &mut One, number| one.input(Input::Frames(ReplicaId(1), vec![frame(number)]));
    let ask = |one: &mut One, number| {
        one.input(Input::Requests(vec![troth_core::Request { frame: frame(number), full: false }]))
    };
    show(&mut one, 1);
    ask(&mut one, 2);
    one.step(Step::Execute(1));
    ask(&mut one, 1);
    show(&mut one, 1);
    one.step(Step::Stable(1));
    ask(&mut one, 1);
    let wanted = [("new", 1), ("new", 2), ("a replica shows it", 1), ("its client asks", 1)];
    assert_eq!(one.0.agreement().wanted, wanted, "a proof that is coming is waited for");
}

#[test]
fn what_lost_its_result_is_ordered_again_for_replicas_and_refused_to_its_client() {
    let mut one = One::with(Done { gone: vec![1], overtaken: vec![2], ..Done::default() });
    (1..=2).for_each(|number| drop(one.step(Step::Execute(number))));
    for number in 1..=2 {
        assert!(one.input(Input::Frames(ReplicaId(1), vec![frame(number)])).is_empty());
        assert!(one.0.is_done(CLIENT, number));
        let request = troth_core::Request { frame: frame(number), full: false };
        let again = Repeated { client: CLIENT, number, events_seen: 0, full: false };
        for asked in [Input::Requests(vec![request]), Input::Repeated(again)] {
            let refusals = one.outputs(asked).into_iter().filter_map(|output| match output {
                Output::Client(ToClient::Refusal(refusal)) => Some((refusal.number, refusal.reason)),
                _ => None,
            });
            assert_eq!(refusals.collect::<Vec<_>>(), [(number, RefusalReason::TooOld)]);
        }
    }
    // A replica may wait for the first, as it may have waited before. The other is overtaken for it, too.
    assert_eq!(one.0.agreement().wanted, [("a replica shows it", 1), ("known", 2)]);
}

#[test]
fn reads_share_an_end_and_show_the_state_in_which_it_was_asked_for() {
    let mut one = One::new();
    one.step(Step::Execute(1));
    assert!(one.read(1, Some(1)).is_empty());
    // What comes while the END is under way waits for the next one, and the state goes on.
    for (number, nonce) in [(2, 2), (3, 3), (4, 4)] {
        one.step(Step::Execute(number));
        assert!(one.read(number, Some(nonce)).is_empty());
    }
    assert_eq!(one.0.agreement().ends, [(1, [1; 32])]);
    let told = one.reads(Step::End);
    assert_eq!(told.len(), 1);
    assert_eq!(shows(&told[0], 1, 1, [1; 32]), state(1, 1), "not of the state that is there by now");
    let (executed, root) = one.0.agreement().ends[1];
    assert_eq!(executed, 4);
    let told = one.reads(Step::End);
    assert_eq!(told.len(), 3);
    for (told, number) in told.iter().zip(2..) {
        assert_eq!(shows(told, number, number as u8, root), state(number, 4));
    }
    assert!(one.read(5, Some(5)).is_empty() && one.0.agreement().ends.len() == 3);
}

#[test]
fn what_cannot_be_proven_is_refused() {
    let mut one = One::new();
    one.step(Step::Execute(1));
    assert_eq!(one.read(1, None), [Told::Refusal(1)], "it would be no answer");
    one.0 = {
        let group = Group::hybrid(GroupId([1; 16]), 3).expect("2f+1");
        let astray = Proving { astray: true, ..Proving::default() };
        Replica::new(ReplicaId(0), group, astray, Done::default())
    };
    assert_eq!(one.read(2, Some(2)), [Told::Refusal(2)], "its history ends elsewhere");
}

#[test]
fn what_a_wrong_state_answered_does_not_go() {
    let mut one = One::new();
    one.step(Step::Execute(1));
    one.read(1, Some(1));
    one.read(2, Some(2));
    assert_eq!(one.reads(Step::Wrong(1)), [Told::Refusal(2), Told::Refusal(1)]);
    assert!(one.reads(Step::End).is_empty());
    assert_eq!(one.read(3, Some(3)), [Told::Refusal(3)], "until it is mended");
}

#[test]
fn a_client_that_reads_without_end_has_its_share_and_no_more() {
    let mut one = One::new();
    one.step(Step::Execute(1));
    let refused = (1..=2000).filter(|number| one.read(*number, Some(1)) == [Told::Refusal(*number)]).count();
    assert_eq!(refused, 2000 - 512);
    // All of it ends: so many at a time as one END is for.
    let mut answered = Vec::new();
    for _ in 0..4 {
        answered.push(one.reads(Step::End).len());
    }
    assert_eq!(answered, [1, 256, 255, 0]);
    assert!(one.read(3000, Some(1)).is_empty(), "there is room again");
}
