//! The order in which requests go and replies come.

use super::marks::covers;
use super::support::{Packet, World, auth, brief, create, data, get, open_settings, request, set};
use crate::Settings;
use bytes::Bytes;
use troth_client::ClientError;
use troth_types::{Limits, Wire};
use troth_zookeeper::{Answer, Code, Operation, Tally, opcode};

#[test]
fn requests_that_must_be_ordered_go_together_and_one_call_at_a_time() {
    covers!("ZKG-O1");
    let mut world = World::new();
    let client = world.open(0);
    world.send(client, 1, opcode::CREATE, &create("/a", "0", 0));
    for xid in 2..6 {
        world.send(client, xid, opcode::SET_DATA, &set("/a", &xid.to_string()));
    }
    world.send(client, 6, opcode::GET_DATA, &get("/a", false));
    world.send(client, 7, opcode::SET_DATA, &set("/a", "7"));
    assert_eq!(world.calls.len(), 1, "more are gathered until the first is answered");
    world.execute(0);
    world.answer(0);
    assert_eq!(world.calls.len(), 1);
    assert_eq!((world.calls[0].operations.len(), world.calls[0].reads), (6, false));
    world.settle();
    let told = world.take(client);
    assert_eq!(brief(&told), [1, 2, 3, 4, 5, 6, 7].map(|xid| (xid, 0)));
    let Packet::Reply { body, .. } = &told[5] else { panic!("a reply") };
    assert_eq!(data(body), "5", "it reads what was written before it, and nothing that was written after");
}

#[test]
fn reads_go_by_themselves_and_are_answered_in_order() {
    covers!("ZKG-O3");
    covers!("ZKG-R2");
    let mut world = World::new();
    let client = world.open(0);
    for xid in 1..4 {
        world.send(client, xid, opcode::EXISTS, &get("/", false));
    }
    assert_eq!(world.calls.iter().filter(|call| call.reads).count(), 3);
    (0..3).for_each(|at| world.execute(at));
    world.answer(2);
    world.answer(1);
    assert!(world.packets(client).is_empty());
    world.answer(0);
    assert_eq!(brief(world.packets(client)), [(1, 0), (2, 0), (3, 0)]);
    // One that sets a watch changes something.
    world.send(client, 4, opcode::EXISTS, &get("/", true));
    assert!(!world.calls[0].reads);
}

#[test]
fn reads_of_one_node_each_that_wait_together_go_in_one_operation() {
    covers!("ZKG-O8");
    let limits = Limits { frame_bytes: 1000, ..Limits::DEFAULT };
    let mut world = World::of(1, &Settings { limits, ..open_settings() });
    let client = world.open(0);
    world.ask(client, 1, opcode::CREATE, &create("/a", "data", 0));
    let read = |xid, code, path| request(xid, code, &get(path, false));
    world.burst(
        client,
        vec![
            read(2, opcode::GET_DATA, "/a"),
            read(3, opcode::GET_CHILDREN, "/"),
            read(4, opcode::EXISTS, "/b"),
            read(5, opcode::GET_CHILDREN2, "/"),
            read(6, opcode::GET_DATA, "/a"),
        ],
    );
    let going = |world: &World| -> Vec<usize> {
        let of = |operation: &Bytes| match Operation::from_wire(operation) {
            Ok(Operation::Reads { reads, .. }) => reads.len(),
            other => usize::from(matches!(other, Ok(Operation::Request { .. }))),
        };
        assert!(world.calls.iter().all(|call| call.reads && call.operations.len() == 1));
        world.calls.iter().map(|call| of(&call.operations[0])).collect()
    };
    assert_eq!(going(&world), [3, 1, 1], "lists may be long: they go by themselves");
    world.settle();
    let told = world.take(client);
    let missing = i64::from(Code::NoNode.number());
    assert_eq!(brief(&told), [(2, 0), (3, 0), (4, missing), (5, 0), (6, 0)]);
    for at in [0, 4] {
        let Packet::Reply { body, .. } = &told[at] else { panic!("a reply") };
        assert_eq!(data(body), "data");
    }
    // Perhaps they are ordered after all: they fit a frame.
    let long = format!("/{}", "x".repeat(200));
    world.burst(client, (7..17).map(|xid| read(xid, opcode::EXISTS, &long)).collect());
    assert_eq!(going(&world), [3, 3, 3, 1]);
    assert!(world.calls.iter().all(|call| call.operations[0].len() + 140 <= limits.frame_bytes));
    world.settle();
    assert_eq!(brief(&world.take(client)), (7..17).map(|xid| (xid, missing)).collect::<Vec<_>>());
}

#[test]
fn what_is_ordered_waits_for_the_reads_before_it() {
    covers!("ZKG-O2");
    let mut world = World::new();
    let client = world.open(0);
    world.ask(client, 1, opcode::CREATE, &create("/a", "old", 0));
    world.send(client, 2, opcode::GET_DATA, &get("/a", false));
    world.send(client, 3, opcode::SET_DATA, &set("/a", "new"));
    world.send(client, 4, opcode::GET_DATA, &get("/a", false));
    assert_eq!(world.calls.len(), 1, "the read may not see what is written after it");
    world.settle();
    let told = world.take(client);
    assert_eq!(brief(&told), [(2, 0), (3, 0), (4, 0)]);
    let (Packet::Reply { body: before, .. }, Packet::Reply { body: after, .. }) = (&told[0], &told[2]) else {
        panic!("replies")
    };
    assert_eq!((data(before), data(after)), ("old".to_owned(), "new".to_owned()));
}

#[test]
fn what_goes_together_fits_a_frame() {
    covers!("ZKG-O4");
    let limits = Limits { frame_operations: 3, frame_bytes: 1000, ..Limits::DEFAULT };
    let mut world = World::of(1, &Settings { limits, ..open_settings() });
    let client = world.open(0);
    world.send(client, 1, opcode::CREATE, &create("/a", "", 0));
    let long = "x".repeat(300);
    for xid in 2..9 {
        world.send(client, xid, opcode::SET_DATA, &set("/a", if xid < 6 { &long } else { "" }));
    }
    let mut sizes = Vec::new();
    while !world.calls.is_empty() {
        let call = &world.calls[0];
        let bytes: usize = call.operations.iter().map(|operation| operation.len() + 4).sum();
        assert!(bytes + 128 <= limits.frame_bytes);
        sizes.push(call.operations.len());
        world.execute(0);
        world.answer(0);
    }
    assert_eq!(sizes, [1, 2, 3, 2]);
    assert_eq!(brief(world.packets(client)), (1..9).map(|xid| (xid, 0)).collect::<Vec<_>>());
}

#[test]
fn what_fits_no_frame_is_an_error_and_happens_not_at_all() {
    covers!("ZKG-R4");
    let limits = Limits { frame_bytes: 1000, ..Limits::DEFAULT };
    let mut world = World::of(1, &Settings { limits, ..open_settings() });
    let client = world.open(0);
    world.send(client, 1, opcode::CREATE, &create("/a", "", 0));
    world.send(client, 2, opcode::SET_DATA, &set("/a", &"x".repeat(900)));
    world.send(client, 3, opcode::GET_DATA, &get("/a", false));
    world.settle();
    let marshalling = i64::from(Code::MarshallingError.number());
    assert_eq!(brief(world.packets(client)), [(1, 0), (2, marshalling), (3, 0)]);
    // The group's own limits may be narrower than what the gateway was told.
    world.take(client);
    world.send(client, 4, opcode::SET_DATA, &set("/a", "y"));
    world.fail(0, ClientError::TooLarge);
    assert_eq!(brief(world.packets(client)), [(4, marshalling)]);
}

#[test]
fn a_read_that_would_go_back_in_time_is_asked_again_in_order() {
    covers!("ZKG-O5");
    let mut world = World::new();
    let (client, other) = (world.open(0), world.open(0));
    world.ask(client, 1, opcode::CREATE, &create("/a", "old", 0));
    world.ask(client, 2, opcode::GET_DATA, &get("/a", true));
    world.send(client, 3, opcode::GET_DATA, &get("/a", false));
    world.send(client, 4, opcode::GET_DATA, &get("/a", false));
    world.execute(0);
    world.execute(1);
    // Meanwhile somebody changes it, and the client is told.
    world.send(other, 1, opcode::SET_DATA, &set("/a", "new"));
    world.execute(2);
    world.answer(2);
    assert_eq!(brief(world.packets(client)), [(-1, 3)]);
    world.answer(1);
    world.answer(0);
    assert_eq!(brief(world.packets(client)), [(-1, 3)], "both reads are older than that");
    assert_eq!((world.calls.len(), world.calls[0].operations.len(), world.calls[0].reads), (1, 2, false));
    world.settle();
    let told = world.take(client);
    assert_eq!(brief(&told), [(-1, 3), (3, 0), (4, 0)]);
    for packet in &told[1..] {
        let Packet::Reply { body, .. } = packet else { panic!("a reply") };
        assert_eq!(data(body), "new");
    }
}

#[test]
fn a_call_without_an_answer_ends_the_connection_without_a_reply() {
    covers!("ZKG-R1");
    let failures = [
        ClientError::TimedOut,
        ClientError::Unsent,
        ClientError::TooOld,
        ClientError::Unauthorised,
        ClientError::Unavailable { unreachable: Vec::new(), sent: true },
        ClientError::Closed { sent: true },
    ];
    for error in failures {
        for (code, body) in [(opcode::SET_DATA, set("/", "")), (opcode::EXISTS, get("/", false))] {
            let mut world = World::new();
            let client = world.open(0);
            world.send(client, 1, code, &body);
            world.fail(0, error.clone());
            assert!(world.packets(client).is_empty() && world.closed(client).is_some());
        }
    }
    // Nor is something made up for what is no answer.
    for results in [
        vec![],
        vec![Bytes::new()],
        vec![Bytes::from_static(b"?")],
        vec![Answer::Heard { over: vec![], tally: Tally::default() }.to_wire()],
    ] {
        let mut world = World::new();
        let client = world.open(0);
        world.send(client, 1, opcode::SET_DATA, &set("/", ""));
        world.execute(0);
        world.calls[0].answer = Some((results, 0));
        world.answer(0);
        assert!(world.packets(client).is_empty() && world.closed(client).is_some());
    }
}

#[test]
fn who_cannot_prove_who_it_is_is_told_so_and_closed() {
    covers!("ZKG-R3");
    covers!("ZKG-O6");
    let mut world = World::new();
    let client = world.open(0);
    assert_eq!(world.ask(client, -4, opcode::AUTH, &auth("digest", "me:secret")).0, 0);
    let burst = vec![
        request(1, opcode::CREATE, &create("/before", "", 0)),
        request(-4, opcode::AUTH, &auth("nonsense", "")),
        request(2, opcode::CREATE, &create("/behind", "", 0)),
    ];
    world.burst(client, burst);
    world.settle();
    assert_eq!(brief(world.packets(client)), [(1, 0), (-4, i64::from(Code::AuthFailed.number()))]);
    assert_eq!(world.closed(client), Some(true));
    let other = world.open(0);
    assert_eq!(world.ask(other, 1, opcode::EXISTS, &get("/before", false)).0, 0);
    assert_eq!(world.ask(other, 2, opcode::EXISTS, &get("/behind", false)).0, Code::NoNode.number());
    // What is no record of that ends the connection, as there.
    world.send(other, -4, opcode::AUTH, &Bytes::new());
    world.settle();
    assert!(world.packets(other).is_empty() && world.closed(other).is_some());
}

#[test]
fn questions_for_what_was_missed_go_one_in_a_frame() {
    covers!("ZKG-O6");
    let mut world = World::new();
    let client = world.open(0);
    let mut watches = troth_zookeeper::jute::Output::new();
    watches.long(0).length(1).text("/gone").length(0).length(0);
    let watches = watches.finish();
    world.burst(client, (0..3).map(|_| request(-8, opcode::SET_WATCHES, &watches)).collect());
    for _ in 0..3 {
        let sent: Vec<_> = world.calls.iter().map(|call| (call.operations.len(), call.apart)).collect();
        assert_eq!(sent, [(1, true)], "nor with what others ask for");
        world.execute(0);
        world.answer(0);
    }
    assert!(world.calls.is_empty());
    let replies = world.take(client);
    assert_eq!(replies.iter().filter(|packet| matches!(packet, Packet::Reply { .. })).count(), 3);
}

#[test]
fn a_session_that_is_closed_is_answered_and_its_connection_with_it() {
    covers!("ZKG-R3");
    let mut world = World::new();
    let client = world.open(0);
    world.send(client, 1, opcode::CREATE, &create("/e", "", 1));
    world.send(client, 2, opcode::CLOSE_SESSION, &Bytes::new());
    world.send(client, 3, opcode::EXISTS, &get("/", false));
    world.settle();
    assert_eq!(brief(world.packets(client)), [(1, 0), (2, 0)]);
    assert_eq!(world.closed(client), Some(true));
    let other = world.open(0);
    assert_eq!(world.ask(other, 1, opcode::EXISTS, &get("/e", false)).0, Code::NoNode.number());
    // Also where nothing is behind it.
    assert_eq!(world.ask(other, 2, opcode::CLOSE_SESSION, &Bytes::new()).0, 0);
    assert_eq!(world.closed(other), Some(true));
}

#[test]
fn errors_are_answered_as_zookeeper_does() {
    let mut world = World::new();
    let client = world.open(0);
    // Bytes that are no such record are an error of the request, and nothing more.
    assert_eq!(
        world.ask(client, 1, opcode::CREATE, &Bytes::from_static(b"?")).0,
        Code::MarshallingError.number()
    );
    assert_eq!(world.ask(client, 2, opcode::GET_DATA, &Bytes::new()).0, Code::MarshallingError.number());
    assert_eq!(world.ask(client, 3, opcode::RECONFIG, &Bytes::new()).0, Code::MarshallingError.number());
    let (error, body) = world.ask(client, 4, opcode::GET_DATA, &get("/none", false));
    assert_eq!((error, body.is_empty()), (Code::NoNode.number(), true));
    assert_eq!(world.closed(client), None);
    // An operation that there is not ends the connection, after it was said.
    assert_eq!(world.ask(client, 5, 4711, &Bytes::new()).0, Code::Unimplemented.number());
    assert_eq!(world.closed(client), Some(true));
    // A packet without a header does so without a word.
    let other = world.open(0);
    world.packet(other, Bytes::from_static(b"short"));
    assert!(world.packets(other).is_empty() && world.closed(other).is_some());
}

#[test]
fn a_request_for_a_session_that_is_elsewhere_ends_the_connection() {
    covers!("ZKG-R3");
    let mut world = World::of(2, &open_settings());
    let client = world.connect(0);
    world.packet(client, super::support::hello(0, 10_000, 0, &[]));
    world.settle();
    let session = world.session(client);
    world.take(client);
    world.send(client, 1, opcode::EXISTS, &get("/", true));
    let moved = world.connect(1);
    world.packet(moved, super::support::hello(0, 10_000, session, &super::support::PASSWORD));
    world.execute(1);
    world.execute(0);
    // The answer comes, though the gateway has not heard that the session is elsewhere.
    let (results, _) = world.calls[0].answer.take().expect("it was executed");
    world.calls[0].answer = Some((results, 0));
    world.answer(0);
    assert!(world.packets(client).is_empty() && world.closed(client).is_some());
}
