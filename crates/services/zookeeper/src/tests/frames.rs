//! Operations of one frame are executed as if each had a frame of its own.

use super::support::{create, secret, set, watching};
use crate::events::{IDENTITY, LOOK, MAX_MISSED, MAX_WORK};
use crate::jute::Output;
use crate::message::{Answer, Attachment, Operation, Said};
use crate::proof::{Carrier, key_of, prove};
use crate::service::{MAX_COUNTED, MAX_GIVEN_UP, MAX_PROOFS};
use crate::{ZooKeeper, opcode};
use bytes::Bytes;
use std::sync::Arc;
use troth_auth::{Directory, FrameVerifier, ModelScheme, ModelSigner, Signer};
use troth_core::{Execution, Ordered, Outcome, VerifiedFrame};
use troth_exec::Executor;
use troth_types::{ClientId, Digest, Event, FrameDraft, GroupId, Limits, ReplyBody, Seq, Time, Wire};

const NOW: Time = Time(1_700_000_000_000_000);
const GATEWAY: ClientId = ClientId(1);

fn frame(number: u64, operations: &[Operation]) -> VerifiedFrame {
    frame_of(Limits::DEFAULT, number, operations)
}

fn frame_of(limits: Limits, number: u64, operations: &[Operation]) -> VerifiedFrame {
    let group = GroupId([1; 16]);
    let signer = ModelSigner::new(GATEWAY.0);
    let mut scheme = ModelScheme::default();
    scheme.register(&signer);
    let directory = Directory::of_clients(group, [(GATEWAY, signer.public_key())]);
    let operations = operations.iter().map(|operation| Said::wire(NOW, &operation.to_wire())).collect();
    let draft = FrameDraft { group, client: GATEWAY, number, events_seen: 0, operations };
    let signature = signer.sign(&draft.signing_digest());
    let verifier = FrameVerifier::new(Arc::new(directory), Arc::new(scheme), limits);
    verifier.verify(Arc::new(draft.sign(signature))).expect("signed above")
}

fn run(executor: &mut Executor<ZooKeeper>, frames: Vec<VerifiedFrame>) -> Outcome {
    let seq = executor.executed().next();
    executor.execute(&Ordered { seq, time: NOW, seed: Digest([9; 32]), frames })
}

/// A service with one session.
fn opened() -> (Executor<ZooKeeper>, Attachment) {
    opened_with(Limits::DEFAULT)
}

fn opened_with(limits: Limits) -> (Executor<ZooKeeper>, Attachment) {
    let mut executor = Executor::new(ZooKeeper::default(), limits);
    let open = Operation::Open { timeout: 10_000, key: key_of(&secret(1)), who: Vec::new() };
    let outcome = run(&mut executor, vec![frame(1, &[open])]);
    match answers(&outcome).remove(0) {
        Answer::Attached { at, .. } => (executor, at),
        other => panic!("opening was answered with {other:?}"),
    }
}

fn answers(outcome: &Outcome) -> Vec<Answer> {
    let results = outcome.replies.iter().flat_map(|reply| match &reply.body {
        ReplyBody::Full(results) => results.clone(),
        ReplyBody::Digest(_) => panic!("replies are whole here"),
    });
    results.map(|result| Answer::from_wire(&result).expect("answers decode")).collect()
}

fn content(executor: &Executor<ZooKeeper>) -> Vec<(Vec<u8>, Bytes)> {
    executor.state().scan(b"").map(|(key, value)| (key.to_vec(), value)).collect()
}

fn payloads(events: &[Event]) -> Vec<Bytes> {
    events.iter().map(|event| event.payload.clone()).collect()
}

#[test]
fn operations_of_one_frame_are_as_if_each_had_its_own() {
    let (mut together, at) = opened();
    let (mut apart, _) = opened();
    let requests = [
        (opcode::EXISTS, watching("/a", true)),
        (opcode::CREATE, create("/a", "1", 0)),
        // It is there already: no transaction.
        (opcode::CREATE, create("/a", "2", 0)),
        (opcode::SET_DATA, set("/a", "3", 0)),
        // The version is another: none either.
        (opcode::SET_DATA, set("/a", "4", 0)),
        (opcode::CREATE, create("/a/n-", "", 2)),
        (opcode::CREATE, create("/a/n-", "", 2)),
        (opcode::GET_DATA, watching("/a", true)),
        (opcode::SET_DATA, set("/a", "5", -1)),
        (opcode::CREATE, create("/e", "", 1)),
    ];
    let operations = requests.map(|(code, body)| Operation::Request { at, code, body });
    let one = run(&mut together, vec![frame(2, &operations)]);
    let frames =
        (2..).zip(&operations).map(|(number, operation)| frame(number, std::slice::from_ref(operation)));
    let many = run(&mut apart, frames.collect());

    let told = answers(&one);
    assert_eq!(told, answers(&many));
    let zxids = |answer: &Answer| match answer {
        Answer::Reply { zxid, .. } => *zxid,
        other => panic!("a request was answered with {other:?}"),
    };
    let zxids: Vec<_> = told.iter().map(zxids).collect();
    assert_eq!(zxids[9] - zxids[0], 6, "each transaction has a number of its own: {zxids:?}");
    assert_eq!(payloads(&one.events), payloads(&many.events));
    assert!(!one.events.is_empty(), "watches fired");
    assert_eq!(content(&together), content(&apart));
    assert_eq!(together.executed(), Seq(2));
}

/// Lists that are too long to be shown cost as much as if they were: one frame may ask for a thousand of them.
#[test]
fn a_frame_looks_at_no_more_lists_than_it_could_show() {
    let (mut executor, at) = opened();
    let request = |code, body| Operation::Request { at, code, body };
    run(&mut executor, vec![frame(2, &[request(opcode::CREATE, create("/d", "", 0))])]);
    let long = "x".repeat(2_000);
    for number in 0..6 {
        let child = |place| request(opcode::CREATE, create(&format!("/d/{number}{place:03}{long}"), "", 0));
        let children: Vec<Operation> = (0..200).map(child).collect();
        run(&mut executor, vec![frame(3 + number, &children)]);
    }
    let lists = vec![request(opcode::GET_CHILDREN, watching("/d", false)); 10];
    let others = [
        request(opcode::SET_DATA, set("/d", "1", -1)),
        request(opcode::GET_DATA, watching("/d", true)),
        request(opcode::PING, Bytes::new()),
    ];
    let answers = answers(&run(&mut executor, vec![frame(9, &[lists, others.into()].concat())]));
    let of = |answer: &Answer| match answer {
        Answer::Reply { zxid, error, .. } => (*zxid != 0, *error),
        other => panic!("answered with {other:?}"),
    };
    let too_long = crate::Code::MarshallingError.number();
    let shown: Vec<_> = answers.iter().map(of).collect();
    assert_eq!(shown[..5], [(true, too_long); 5], "it is said of as many as could be shown");
    assert_eq!(shown[5..10], [(false, too_long); 5], "and of the others that they were not looked at");
    // They may be of somebody else.
    assert_eq!(shown[10..], [(true, 0); 3], "what changes something happens, and what shows one node");
    let session = crate::sessions::Session::find(&mut &executor.state(), at.session).expect("a session");
    assert_eq!(session.watches, 1);
}

/// What makes no sense has the error of a list that is too long, and costs nothing: others' lists stand in the same frame.
#[test]
fn what_makes_no_sense_takes_nobody_s_room_for_lists() {
    let (mut executor, at) = opened();
    let request = |code, body| Operation::Request { at, code, body };
    let senseless = vec![request(opcode::GET_CHILDREN, Bytes::new()); 10];
    let list = request(opcode::GET_CHILDREN, watching("/", true));
    let answers = answers(&run(&mut executor, vec![frame(2, &[senseless, vec![list]].concat())]));
    let error = |answer: &Answer| match answer {
        Answer::Reply { zxid, error, .. } => (*zxid != 0, *error),
        other => panic!("answered with {other:?}"),
    };
    let errors: Vec<_> = answers.iter().map(error).collect();
    assert_eq!(errors[..10], [(true, crate::Code::MarshallingError.number()); 10]);
    assert_eq!(errors[10], (true, 0));
}

/// Counting what is below a node shows four bytes, and one frame may ask for it a thousand times.
#[test]
fn the_operations_of_a_frame_count_only_so_many_nodes_together() {
    let (mut executor, at) = opened();
    let request = |code, body| Operation::Request { at, code, body };
    let path = |path: &str| {
        let mut out = Output::new();
        out.text(path);
        out.finish()
    };
    run(&mut executor, vec![frame(2, &[request(opcode::CREATE, create("/d", "", 0))])]);
    for number in 0..2 {
        let child = |place| request(opcode::CREATE, create(&format!("/d/{number}-{place}"), "", 0));
        run(&mut executor, vec![frame(3 + number, &(0..550).map(child).collect::<Vec<_>>())]);
    }
    let counts = vec![request(opcode::GET_ALL_CHILDREN_NUMBER, path("/d")); 1_000];
    let others = [
        request(opcode::CREATE, create("/zookeeper/quota/d", "", 0)),
        request(opcode::CREATE, create("/zookeeper/quota/d/zookeeper_stats", "", 0)),
        request(opcode::GET_DATA, watching("/d", false)),
    ];
    let errors = |executor: &mut Executor<ZooKeeper>, number, operations: &[Operation]| -> Vec<i32> {
        let error = |answer: &Answer| match answer {
            Answer::Reply { error, .. } => *error,
            other => panic!("answered with {other:?}"),
        };
        answers(&run(executor, vec![frame(number, operations)])).iter().map(error).collect()
    };
    let too_much = crate::Code::QuotaExceeded.number();
    let shown = errors(&mut executor, 5, &[counts, others.clone().into()].concat());
    let most = MAX_COUNTED / 1_100;
    assert!(shown[..most].iter().all(|error| *error == 0));
    assert!(shown[most..1_000].iter().all(|error| *error == too_much));
    assert_eq!(shown[1_000..], [0, too_much, 0], "a quota counts what it begins with");
    // The next frame counts anew; each node for which a quota begins counts four times.
    assert_eq!(errors(&mut executor, 6, &others[1..]), [0, 0]);
    let again = [
        request(opcode::DELETE, super::support::versioned("/zookeeper/quota/d/zookeeper_stats", -1)),
        request(opcode::CREATE, create("/zookeeper/quota/d/zookeeper_stats", "", 0)),
    ];
    let shown = errors(&mut executor, 7, &vec![again; 500].concat());
    let most = MAX_COUNTED / (4 * 1_100);
    let begun = |range: core::ops::Range<usize>| shown[2 * range.start + 1..2 * range.end].iter().step_by(2);
    assert!(begun(0..most).all(|error| *error == 0) && begun(most..500).all(|error| *error == too_much));
}

/// Transactions that are too much to tell, each given up when that is known, and no more of them than a few.
#[test]
fn a_frame_gives_up_only_so_many_transactions() {
    let (mut executor, at) = opened();
    let request = |code, body| Operation::Request { at, code, body };
    let long = format!("/{}", "x".repeat(3_900));
    let open = Operation::Open { timeout: 10_000, key: key_of(&secret(1)), who: Vec::new() };
    let opened = answers(&run(&mut executor, vec![frame(2, &vec![open; 100])]));
    let sessions = opened.iter().map(|answer| match answer {
        Answer::Attached { at, .. } => *at,
        other => panic!("opening was answered with {other:?}"),
    });
    let mut watch = Output::new();
    watch.text(&long).int(0);
    let body = watch.finish();
    let watches = sessions.map(|at| Operation::Request { at, code: opcode::ADD_WATCH, body: body.clone() });
    let all = [vec![request(opcode::CREATE, create(&long, "", 0))], watches.collect()].concat();
    run(&mut executor, vec![frame(3, &all)]);
    let looks = MAX_WORK / (LOOK + long.len() + IDENTITY);
    let changes = looks / 100 + 1;
    let multi = request(opcode::MULTI, super::bounds::times(changes, opcode::SET_DATA, &set(&long, "x", -1)));
    let one = request(opcode::SET_DATA, set(&long, "y", -1));
    let frame = frame(4, &[vec![multi; MAX_GIVEN_UP as usize + 2], vec![one]].concat());
    let answers = answers(&run(&mut executor, vec![frame]));
    let failed = |answer: &Answer| match answer {
        Answer::Reply { error: 0, body, .. } => super::bounds::failed(body),
        other => panic!("answered with {other:?}"),
    };
    let failed: Vec<_> = answers.iter().map(failed).collect();
    let (all, too_much) = (MAX_GIVEN_UP as usize, crate::Code::QuotaExceeded.number());
    assert!(failed[..all].iter().all(|failed| *failed == Some((changes - 1, too_much))), "{failed:?}");
    assert_eq!(failed[all..all + 2], [Some((0, too_much)); 2], "they are not tried");
    assert_eq!(failed[all + 2], None, "a single change happens");
}

/// Clients of one gateway that connect anew at a time share its outbox, and there may be as many of them in a frame as it has
/// bytes for.
#[test]
fn what_was_missed_is_bounded_for_a_whole_frame() {
    let (mut executor, at) = opened();
    let open = Operation::Open { timeout: 10_000, key: key_of(&secret(2)), who: Vec::new() };
    let Answer::Attached { at: other, .. } = answers(&run(&mut executor, vec![frame(2, &[open])])).remove(0)
    else {
        panic!("it opens")
    };
    let asks = |at: Attachment, count: usize| {
        let body = super::bounds::rewatch((0..count).map(|number| format!("/{number}")));
        Operation::Request { at, code: opcode::SET_WATCHES, body }
    };
    let stays = |executor: &Executor<ZooKeeper>, at: Attachment| {
        crate::sessions::Session::find(&mut &executor.state(), at.session).expect("a session").at() == at
    };
    run(&mut executor, vec![frame(3, &[asks(at, MAX_MISSED - 1), asks(other, 1)])]);
    assert!(stays(&executor, at) && stays(&executor, other));
    run(&mut executor, vec![frame(4, &[asks(at, MAX_MISSED - 1), asks(other, 2)])]);
    assert!(stays(&executor, at) && !stays(&executor, other), "it connects anew, and asks once more");
}

/// A proof takes longer to look at than most operations.
#[test]
fn the_operations_of_a_frame_have_only_so_many_proofs_looked_at() {
    let limits = Limits { frame_operations: 4096, ..Limits::DEFAULT };
    let (mut executor, at) = opened_with(limits);
    let attach = |gateway| {
        let carrier = Carrier { group: GroupId::default(), gateway: ClientId(gateway) };
        let proof = prove(&secret(1), carrier, at.session);
        Operation::Attach { session: at.session, proof, timeout: 10_000, who: Vec::new() }
    };
    let most = usize::try_from(MAX_PROOFS).expect("few");
    let (good, bad) = (vec![attach(GATEWAY.0)], vec![attach(GATEWAY.0 + 1); most - 1]);
    let mut unknown = good.clone();
    if let Operation::Attach { session, .. } = &mut unknown[0] {
        *session ^= 1;
    }
    let all = [bad, good.clone(), good.clone(), unknown].concat();
    let told = answers(&run(&mut executor, vec![frame_of(limits, 2, &all)]));
    let error = |answer: &Answer| match answer {
        Answer::Reply { error, .. } => *error,
        Answer::Attached { .. } => 0,
        other => panic!("answered with {other:?}"),
    };
    let errors: Vec<i32> = told.iter().map(error).collect();
    let (expired, later) = (crate::Code::SessionExpired.number(), crate::Code::QuotaExceeded.number());
    assert_eq!(errors[..most - 1], vec![expired; most - 1]);
    assert_eq!(errors[most - 1..], [0, later, expired], "that of nobody is not said to be over");
    let told = answers(&run(&mut executor, vec![frame(3, &good)]));
    assert_eq!(told.iter().map(error).collect::<Vec<_>>(), [0], "what waited is as good as before");
}
