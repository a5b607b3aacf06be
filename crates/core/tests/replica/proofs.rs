//! Replies that wait for the proof of their place, and what is held for them.

use crate::stubs::Silence;
use std::collections::BTreeMap;
use std::sync::Arc;
use troth_auth::{Seal, Verified};
use troth_core::{
    Agreement, Cx, Env, Execution, Input, Installing, Lookup, Machine as _, Ordered, Outcome, Output, Proven,
    Reached, Replica, ReplicaTimer, ReplyProof, Start, Status, VerifiedFrame,
};
use troth_trusted::a2m::{Attestation, Claim, Content, LogId, Request, slot_nonce};
use troth_trusted::{CounterId, CounterValue, Epoch, Proof};
use troth_types::{
    Batch, ClientId, Configuration, Digest, Event, FrameDraft, Group, GroupId, Read, ReadReply, ReplicaId,
    Reply, ReplyBody, Seq, Signature, StateFetch, StatePiece, Time, ToClient, View,
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
}

/// Does what it is told to by timers, and writes down which frames are to be ordered, and why.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Proving {
    stable: u64,
    wanted: Vec<(&'static str, u64)>,
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
        false
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
    fn query(&self, _: &Read) -> ReadReply {
        unreachable!("nobody reads")
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

impl One {
    fn new() -> Self {
        let group = Group::hybrid(GroupId([1; 16]), 3).expect("2f+1");
        Self(Replica::new(ReplicaId(0), group, Proving::default(), Done::default()))
    }

    /// Clients' frames that are answered.
    fn input(&mut self, input: Input<Silence, ReplicaTimer<Step>>) -> Vec<u64> {
        let mut out = Vec::new();
        self.0.input(Env { now: Time(1), wall: Time(1) }, input, &mut out);
        let answered = out.into_iter().filter_map(|output| match output {
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
