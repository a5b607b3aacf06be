//! Operations of one frame are executed as if each had a frame of its own.

use super::support::{create, secret, set, watching};
use crate::message::{Answer, Attachment, Operation, Said, sealed};
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
    let group = GroupId([1; 16]);
    let signer = ModelSigner::new(GATEWAY.0);
    let mut scheme = ModelScheme::default();
    scheme.register(&signer);
    let directory = Directory::of_clients(group, [(GATEWAY, signer.public_key())]);
    let operations = operations.iter().map(|operation| Said::wire(NOW, &operation.to_wire())).collect();
    let draft = FrameDraft { group, client: GATEWAY, number, events_seen: 0, operations };
    let signature = signer.sign(&draft.signing_digest());
    let verifier = FrameVerifier::new(Arc::new(directory), Arc::new(scheme), Limits::DEFAULT);
    verifier.verify(Arc::new(draft.sign(signature))).expect("signed above")
}

fn run(executor: &mut Executor<ZooKeeper>, frames: Vec<VerifiedFrame>) -> Outcome {
    let seq = executor.executed().next();
    executor.execute(&Ordered { seq, time: NOW, seed: Digest([9; 32]), frames })
}

/// A service with one session.
fn opened() -> (Executor<ZooKeeper>, Attachment) {
    let mut executor = Executor::new(ZooKeeper::default(), Limits::DEFAULT);
    let open = Operation::Open { timeout: 10_000, password: sealed(&secret(1)), who: Vec::new() };
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
