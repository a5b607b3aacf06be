//! §5.1 as a client sees it: a replica with its executor, from the votes of the others to the answers.

use super::harness::{SMALL, WALL, batch, covers, r};
use crate::message::{Message, PrePrepare, Status, Vote};
use crate::{Pbft, Timer};
use bytes::Bytes;
use std::sync::Arc;
use troth_auth::Verified;
use troth_core::{
    Env, Execution, Input, Machine, MachineStart, Output, Repeated, Replica, ReplicaTimer, Request,
    VerifiedFrame,
};
use troth_exec::{Application, Executor, OpContext, State, StateView};
use troth_types::{
    ClientId, FrameDraft, FrameProof, Group, GroupId, Limits, Read, RefusalReason, ReplyBody, Seq, Signature,
    Tag, Time, ToClient, View, Wish,
};

/// Holds one value; who writes it tells client 9.
#[derive(Clone, Debug)]
struct Cell;

impl Application for Cell {
    fn execute(&self, state: &mut State<'_>, cx: &mut OpContext<'_>, operation: &Bytes) -> Bytes {
        state.insert(b"cell", operation.clone());
        cx.emit(ClientId(9), operation.clone());
        Bytes::from_static(b"written")
    }
    fn query(&self, state: &StateView<'_>, _: ClientId, _: &Bytes) -> Bytes {
        state.get(b"cell").unwrap_or_default()
    }
}

const GROUP: GroupId = GroupId(*b"tests-of-pbft---");

fn write_of(client: u64, number: u64) -> VerifiedFrame {
    let operations = vec![Bytes::from(format!("value {number}"))];
    let draft = FrameDraft { group: GROUP, client: ClientId(client), number, events_seen: 0, operations };
    Verified::made_here(Arc::new(draft.sign(Signature([1; 64]))))
}

/// Replica 1 of four, the others played by the test.
struct One(Replica<Pbft, Executor<Cell>>);

impl One {
    fn new() -> Self {
        Self::with(SMALL.limits)
    }

    fn with(limits: Limits) -> Self {
        let group = Group::general(GROUP, 4).expect("3f+1");
        let mut one =
            Self(Replica::new(r(1), group, Pbft::new(r(1), group, SMALL), Executor::new(Cell, limits)));
        let mut out = Vec::new();
        one.0.start(env(), MachineStart::Fresh, &mut out).expect("it never ran");
        one
    }

    /// One input and what follows at once: the replica's own messages, but for its COMMIT, and the turns that it wants at
    /// this time; what it tells clients.
    fn input(&mut self, input: Input<Message, ReplicaTimer<Timer>>) -> Vec<ToClient> {
        self.turns(input).concat()
    }

    /// The same, by turns.
    fn turns(&mut self, input: Input<Message, ReplicaTimer<Timer>>) -> Vec<Vec<ToClient>> {
        let (mut turns, mut inputs) = (Vec::new(), vec![input]);
        while let Some(input) = inputs.pop() {
            let (mut out, mut said) = (Vec::new(), Vec::new());
            self.0.input(env(), input, &mut out);
            for output in out {
                match output {
                    Output::Client(message) => said.push(message),
                    Output::SetTimer { timer: timer @ (ReplicaTimer::Hashing | ReplicaTimer::Reads), at }
                        if at == env().now =>
                    {
                        inputs.push(Input::Timer(timer));
                    }
                    Output::Broadcast(message) if !matches!(message, Message::Commit(_)) => {
                        inputs.push(Input::Message(r(1), Verified::made_here(message)));
                    }
                    _ => {}
                }
            }
            turns.push(said);
        }
        turns
    }

    fn hear(&mut self, from: u16, message: Message) -> Vec<ToClient> {
        self.input(Input::Message(r(from), Verified::made_here(message)))
    }

    /// The batch of this write prepares here.
    fn prepare(&mut self, seq: u64) -> Vec<ToClient> {
        self.prepare_of(1, seq)
    }

    fn prepare_of(&mut self, client: u64, seq: u64) -> Vec<ToClient> {
        let frame = write_of(client, seq);
        let mut said = self.input(Input::Requests(vec![Request { frame: frame.clone(), wish: Wish::Usual }]));
        let batch = batch(&[&frame]);
        let vote = vote(client, seq);
        said.extend(self.hear(0, Message::PrePrepare(PrePrepare { view: View(0), seq: Seq(seq), batch })));
        for from in [2, 3] {
            said.extend(self.hear(from, Message::Prepare(vote)));
        }
        said
    }

    fn commit(&mut self, seq: u64) -> Vec<ToClient> {
        self.commit_of(1, seq)
    }

    fn commit_of(&mut self, client: u64, seq: u64) -> Vec<ToClient> {
        let commit = Message::Commit(vote(client, seq));
        [0, 2, 3].into_iter().flat_map(|from| self.hear(from, commit.clone())).collect()
    }

    fn read(&mut self, number: u64) -> Vec<ToClient> {
        self.read_of(5, number, None)
    }

    /// One that need only show the batch `least`, where it names one.
    fn read_of(&mut self, client: u64, number: u64, least: Option<u64>) -> Vec<ToClient> {
        let (client, least) = (ClientId(client), least.map(Seq));
        self.input(Input::Read(Read { client, number, nonce: None, least, operation: Bytes::new() }))
    }

    /// The client that is told of every write asks once more for a write of its own.
    fn told_again(&mut self) -> Vec<ToClient> {
        let repeated = Repeated { client: ClientId(9), number: 1, events_seen: 0, wish: Wish::Full };
        self.input(Input::Repeated(repeated))
    }

    fn again(&mut self, number: u64) -> Vec<ToClient> {
        let repeated = Repeated { client: ClientId(1), number, events_seen: 0, wish: Wish::Full };
        self.input(Input::Repeated(repeated))
    }
}

fn env() -> Env {
    Env { now: Time(1_000), wall: Time(WALL) }
}

fn vote(client: u64, seq: u64) -> Vote {
    Vote { view: View(0), seq: Seq(seq), digest: batch(&[&write_of(client, seq)]).digest() }
}

/// What a client is told, in short: `t1` and `r1` a tentative and a final reply to write 1, `e1` an event, `=1` the
/// value 1 as read, `no` a read refused.
fn told(messages: &[ToClient]) -> Vec<String> {
    let shown = |body: &ReplyBody| match body {
        ReplyBody::Full(results) => String::from_utf8_lossy(&results[0]).replace("value ", ""),
        ReplyBody::Digest(_) => "digest".to_owned(),
    };
    let mut told: Vec<String> = messages
        .iter()
        .map(|message| match message {
            ToClient::Tentative(reply) => {
                assert_eq!(reply.view, View(0), "the view in which it prepared");
                format!("t{}", reply.number)
            }
            ToClient::Reply(reply) => format!("r{}", reply.number),
            ToClient::Event(event) => format!("e{}", event.index),
            ToClient::ReadReply(reply) => format!("={}", shown(&reply.body)),
            ToClient::Attested(_) | ToClient::AttestedRead(_) => unreachable!("PBFT proves no reply"),
            ToClient::Refusal(refusal) => {
                assert_eq!((refusal.read, refusal.reason), (true, RefusalReason::NotReady));
                "no".to_owned()
            }
        })
        .collect();
    told.sort();
    told
}

/// A read's number of which replica 1 shows the result.
fn designated(nth: usize) -> u64 {
    let group = Group::general(GROUP, 4).expect("3f+1");
    (1..).filter(|number| group.designated(ClientId(5), *number) == r(1)).nth(nth).expect("its turn comes")
}

#[test]
fn replies_come_at_once_and_say_that_they_are_tentative_and_events_wait() {
    covers!("PBFT-E1");
    covers!("PBFT-E2");
    let mut one = One::new();
    assert_eq!(told(&one.prepare(1)), ["t1"]);
    assert_eq!(told(&one.again(1)), ["t1"], "as long as its place is not final");
    assert_eq!(told(&one.prepare(2)), ["t2"]);
    assert_eq!(told(&one.commit(1)), ["e1"], "the reply was sent");
    assert_eq!(told(&one.again(1)), ["r1"]);
    assert_eq!(told(&one.again(2)), ["t2"]);
    assert_eq!(told(&one.commit(2)), ["e2"]);
    assert_eq!(one.0.execution().executed(), Seq(2));
}

#[test]
fn events_that_are_repeated_are_those_of_final_batches() {
    covers!("PBFT-E2");
    let mut one = One::new();
    one.prepare_of(9, 1);
    one.commit_of(9, 1);
    one.prepare(2);
    assert_eq!(told(&one.told_again()), ["e1", "r1"]);
    one.commit(2);
    assert_eq!(told(&one.told_again()), ["e1", "e2", "r1"]);
}

#[test]
fn a_read_shows_what_is_tentative_and_leaves_when_it_is_final() {
    covers!("PBFT-E4");
    let mut one = One::new();
    let numbers: Vec<u64> = (0..4).map(designated).collect();
    assert_eq!(told(&one.read(numbers[0])), ["="], "nothing is under way");
    one.prepare(1);
    assert!(one.read(numbers[1]).is_empty());
    one.prepare(2);
    assert!(one.read(numbers[2]).is_empty());
    assert_eq!(told(&one.commit(1)), ["=1", "e1"]);
    assert_eq!(told(&one.commit(2)), ["=2", "e2"]);
    assert_eq!(told(&one.read(numbers[3])), ["=2"]);
}

#[test]
fn a_read_waits_for_a_batch_that_prepared_before_those_in_front_of_it() {
    covers!("PBFT-E4");
    let mut one = One::new();
    let number = designated(0);
    assert!(one.prepare(2).is_empty(), "1 has not come");
    assert!(one.read(number).is_empty(), "this replica has vouched for 2");
    assert_eq!(told(&one.prepare(1)), ["t1", "t2"]);
    assert_eq!(told(&one.commit(1)), ["e1"]);
    assert_eq!(told(&one.commit(2)), ["=2", "e2"]);
}

#[test]
fn a_recent_read_waits_for_the_batch_that_it_names_and_for_no_other() {
    covers!("PBFT-E6");
    let mut one = One::new();
    let numbers: Vec<u64> = (0..4).map(designated).collect();
    assert!(one.prepare(2).is_empty(), "1 has not come");
    assert_eq!(
        told(&one.read_of(5, numbers[0], Some(0))),
        ["="],
        "what this replica vouched for need not show"
    );
    assert!(one.read_of(5, numbers[1], Some(1)).is_empty());
    assert_eq!(told(&one.prepare(1)), ["t1", "t2"]);
    assert_eq!(told(&one.commit(1)), ["e1"], "its answer shows 2, which is not final");
    assert_eq!(told(&one.commit(2)), ["=2", "e2"]);
    assert_eq!(told(&one.read_of(5, numbers[2], Some(2))), ["=2"]);
    assert!(one.read_of(5, numbers[3], Some(2 + 1024)).is_empty());
    assert_eq!(told(&one.read_of(5, 999, Some(2 + 1025))), ["no"], "nobody was told of that");
    assert_eq!(told(&one.read_of(5, 999, Some(u64::MAX))), ["no"]);
}

#[test]
fn recent_reads_share_the_room_with_the_others() {
    covers!("PBFT-E6");
    let mut one = One::new();
    for client in 10..18 {
        let refused =
            (1..=600).filter(|number| !one.read_of(client, *number, Some(1 + number % 3)).is_empty());
        assert_eq!(refused.count(), 600 - 512, "one client has its share");
    }
    // All room is taken: the newest of one that holds most gives way, the last that waits for batch 3.
    let said = one.read_of(50, 1, Some(1));
    assert!(
        matches!(&said[..], [ToClient::Refusal(refusal)] if refusal.client == ClientId(17) && refusal.number == 512),
        "{said:?}"
    );
    one.prepare(1);
    assert_eq!(one.commit(1).len(), 1 + 8 * 170 + 1, "those that wait for batch 1");
    assert!(one.read_of(51, 1, Some(2)).is_empty());
}

#[test]
fn reads_that_waited_for_the_same_batch_each_have_a_turn_of_their_own() {
    covers!("PBFT-E6");
    let mut one = One::new();
    for number in 1..=100 {
        assert!(one.read_of(5, number, Some(1)).is_empty());
    }
    let frame = write_of(1, 1);
    one.input(Input::Requests(vec![Request { frame: frame.clone(), wish: Wish::Usual }]));
    one.hear(0, Message::PrePrepare(PrePrepare { view: View(0), seq: Seq(1), batch: batch(&[&frame]) }));
    // It executes, and makes the answers, which wait for the batch to be final.
    let turns = one.turns(Input::Message(r(2), Verified::made_here(Message::Prepare(vote(1, 1)))));
    assert!(turns.len() > 100, "{} turns", turns.len());
    assert_eq!(one.0.answered_late(), Some(ClientId(5)), "it is charged for what its read takes");
    let said = one.commit(1);
    assert_eq!(said.iter().filter(|it| matches!(it, ToClient::ReadReply(_))).count(), 100);
}

#[test]
fn reads_that_waited_are_answered_in_turn_of_their_clients() {
    covers!("PBFT-E6");
    let mut one = One::new();
    for number in 1..=5 {
        assert!(one.read_of(5, number, Some(number.div_ceil(3))).is_empty());
    }
    for client in [6, 7] {
        assert!(one.read_of(client, 9, Some(1)).is_empty());
    }
    one.prepare(1);
    let said = one.commit(1).into_iter();
    let answered = said.filter(|it| matches!(it, ToClient::ReadReply(_)));
    let clients: Vec<u64> = answered.map(|it| it.client().0).collect();
    assert_eq!(
        clients,
        [5, 6, 7, 5, 5],
        "who asks little waits for nobody who asks much; two wait for batch 2"
    );
}

#[test]
fn one_client_waits_for_no_more_reads_than_its_share() {
    let mut one = One::new();
    one.prepare(1);
    let refused = (1..=600).filter(|number| !one.read(*number).is_empty()).count();
    assert_eq!(refused, 600 - 512);
    let other = Read { client: ClientId(6), number: 1, nonce: None, least: None, operation: Bytes::new() };
    assert!(one.input(Input::Read(other)).is_empty(), "another one has room");
    assert_eq!(one.commit(1).len(), 1 + 512 + 1);
    one.prepare(2);
    assert!(one.read(601).is_empty(), "there is room again");
}

#[test]
fn what_is_undone_was_never_so() {
    covers!("PBFT-E3");
    let mut one = One::new();
    let number = designated(0);
    one.prepare(1);
    assert!(one.read(number).is_empty());
    let mut said = one.input(Input::Timer(ReplicaTimer::Protocol(Timer::Request)));
    assert!(said.is_empty(), "it does not leave alone");
    for other in [2, 3] {
        let wish = Message::Status(Status {
            view: View(0),
            active: true,
            stable: Seq(0),
            executed: Seq(0),
            slots: Vec::new(),
            changes: 0,
            wishes: true,
        });
        said.extend(one.input(Input::Message(r(other), Verified::made_here(wish))));
    }
    assert_eq!(told(&said), ["no"], "the client has it ordered");
    assert!(one.again(1).is_empty(), "it is as if it had not been executed");
    assert_eq!((one.0.execution().executed(), one.0.execution().state().get(b"cell")), (Seq(0), None));
}

/// A write with tags, which it is proposed with, and signed, as its client sends it again.
fn tagged_and_signed(number: u64) -> (VerifiedFrame, VerifiedFrame) {
    let signed = write_of(1, number);
    let proof = FrameProof::Authenticator([Tag([1; 16]); 4].into());
    (Verified::made_here(Arc::new(signed.draft().prove(proof))), signed)
}

/// The frame comes without signature, and its batch prepares here.
fn prepare_tagged(one: &mut One, frame: &VerifiedFrame) -> Vote {
    one.input(Input::Requests(vec![Request { frame: frame.clone(), wish: Wish::Usual }]));
    let batch = batch(&[frame]);
    let vote = Vote { view: View(0), seq: Seq(1), digest: batch.digest() };
    one.hear(0, Message::PrePrepare(PrePrepare { view: View(0), seq: Seq(1), batch }));
    let said: Vec<_> = [2, 3].into_iter().flat_map(|from| one.hear(from, Message::Prepare(vote))).collect();
    assert_eq!(told(&said), ["t1"]);
    vote
}

#[test]
fn what_comes_again_while_it_may_be_undone_is_answered_and_waited_for() {
    covers!("PBFT-E2");
    let (tagged, signed) = tagged_and_signed(1);
    for shown_by_another in [false, true] {
        let mut one = One::new();
        let vote = prepare_tagged(&mut one, &tagged);
        assert_eq!(one.0.agreement().pool.oldest(), None, "nobody is suspected for it");
        assert!(!one.0.is_done(ClientId(1), 1), "a replica must look at what comes again");
        if shown_by_another {
            one.input(Input::Frames(r(3), vec![signed.clone()]));
        } else {
            let again = Request { frame: signed.clone(), wish: Wish::Full };
            assert_eq!(told(&one.input(Input::Requests(vec![again]))), ["t1"]);
        }
        let pool = &one.0.agreement().pool;
        assert_eq!((pool.oldest(), pool.len()), (Some((0, signed.digest())), 1), "now the primary is");
        for from in [0, 2, 3] {
            one.hear(from, Message::Commit(vote));
        }
        assert!(one.0.is_done(ClientId(1), 1) && one.0.agreement().pool.is_empty());
        let again = Request { frame: signed.clone(), wish: Wish::Full };
        assert_eq!(told(&one.input(Input::Requests(vec![again]))), ["r1"]);
        assert!(one.0.agreement().pool.is_empty());
    }
}

#[test]
fn what_lost_its_result_while_it_may_be_undone_is_refused_and_waited_for() {
    covers!("PBFT-E2");
    for shown_by_another in [false, true] {
        // Room for the results of one write.
        let mut one = One::with(Limits { client_bytes: 12, ..SMALL.limits });
        let ((first, signed), (second, _)) = (tagged_and_signed(1), tagged_and_signed(2));
        let asked = [&first, &second].map(|frame| Request { frame: frame.clone(), wish: Wish::Usual });
        one.input(Input::Requests(asked.into()));
        let batch = batch(&[&first, &second]);
        let vote = Vote { view: View(0), seq: Seq(1), digest: batch.digest() };
        one.hear(0, Message::PrePrepare(PrePrepare { view: View(0), seq: Seq(1), batch }));
        [2, 3].into_iter().for_each(|from| drop(one.hear(from, Message::Prepare(vote))));
        assert_eq!((one.0.execution().executed(), one.0.agreement().pool.oldest()), (Seq(1), None));
        assert!(!one.0.is_done(ClientId(1), 1));
        if shown_by_another {
            one.input(Input::Frames(r(3), vec![signed.clone()]));
        } else {
            let said = one.input(Input::Requests(vec![Request { frame: signed.clone(), wish: Wish::Full }]));
            assert!(
                matches!(&said[..], [ToClient::Refusal(refusal)] if refusal.reason == RefusalReason::TooOld)
            );
        }
        assert_eq!(one.0.agreement().pool.oldest().map(|(_, digest)| digest), Some(signed.digest()));
        [0, 2, 3].into_iter().for_each(|from| drop(one.hear(from, Message::Commit(vote))));
        assert!(one.0.is_done(ClientId(1), 1) && one.0.agreement().pool.is_empty());
    }
}
