//! Answers that are too large for the group together, or each by itself.

use super::marks::covers;
use super::support::{
    Client, Packet, World, brief, create, data, get, open_settings, ping, record, request, set,
};
use crate::Settings;
use troth_client::{ClientError, Course, Way};
use troth_types::{Limits, Wire};
use troth_zookeeper::{Answer, Code, Tally, opcode};

/// A group that keeps so many bytes of answers for a frame, and has a node with that many bytes of data less 200.
fn world(client_bytes: usize) -> (World, Client) {
    let limits = Limits { client_bytes, result_bytes: client_bytes, ..Limits::DEFAULT };
    let mut world = World::of(1, &Settings { limits, ..open_settings() });
    let client = world.open(0);
    world.ask(client, 1, opcode::CREATE, &create("/a", &"x".repeat(client_bytes - 200), 0));
    (world, client)
}

/// Executes the first call as the group does: what is over the bound is left out.
fn answer(world: &mut World, client_bytes: usize) {
    world.execute(0);
    let (results, _) = world.calls[0].answer.as_mut().expect("it was executed");
    let mut total = 0;
    for result in results {
        if total + result.len() > client_bytes {
            let error = Code::MarshallingError.number();
            *result = Answer::Reply { zxid: 0, error, body: bytes::Bytes::new() }.to_wire();
        } else {
            total += result.len();
        }
    }
    world.answer(0);
}

fn settle(world: &mut World, client_bytes: usize) -> usize {
    let mut calls = 0;
    while !world.calls.is_empty() {
        answer(world, client_bytes);
        calls += 1;
        assert!(calls < 100, "it goes on without end");
    }
    calls
}

fn delete(path: &str) -> bytes::Bytes {
    record(|out| {
        out.text(path).int(-1);
    })
}

fn watches(xids: std::ops::Range<i32>) -> Vec<bytes::Bytes> {
    xids.map(|xid| request(xid, opcode::GET_DATA, &get("/a", true))).collect()
}

#[test]
fn reads_whose_answers_are_too_large_together_go_again() {
    covers!("ZKG-R5");
    let (mut world, client) = world(10_000);
    world.burst(client, watches(2..8));
    settle(&mut world, 10_000);
    let told = world.take(client);
    assert_eq!(brief(&told), (2..8).map(|xid| (xid, 0)).collect::<Vec<_>>());
    for packet in told {
        let Packet::Reply { body, .. } = packet else { panic!("a reply") };
        assert_eq!(data(&body).len(), 9_800);
    }
    // One that is too large by itself has an error, whichever way it goes.
    world.send(client, 8, opcode::GET_DATA, &get("/a", true));
    settle(&mut world, 5_000);
    world.send(client, 9, opcode::GET_DATA, &get("/a", false));
    settle(&mut world, 5_000);
    world.burst(client, watches(10..12));
    settle(&mut world, 5_000);
    let error = Code::MarshallingError.number();
    assert_eq!(brief(&world.take(client)), [8, 9, 10, 11].map(|xid| (xid, i64::from(error))));
    assert_eq!(world.closed(client), None);
}

#[test]
fn reads_in_one_operation_that_are_too_large_together_go_by_themselves() {
    covers!("ZKG-R6");
    let reads = |xids: std::ops::Range<i32>| -> Vec<bytes::Bytes> {
        xids.map(|xid| request(xid, opcode::GET_DATA, &get("/a", false))).collect()
    };
    // By the group's bound, or because no such operation can be taken.
    for fails in [false, true] {
        let (mut world, client) = world(10_000);
        world.burst(client, reads(2..6));
        assert_eq!(world.calls.len(), 1, "the gateway has not seen how much they show");
        if fails {
            world.fail(0, ClientError::TooLarge);
        } else {
            answer(&mut world, 10_000);
        }
        assert_eq!((world.calls.len(), world.take(client).len()), (4, 0));
        assert!(world.calls.iter().all(|call| call.reads));
        settle(&mut world, 10_000);
        assert_eq!(brief(&world.take(client)), (2..6).map(|xid| (xid, 0)).collect::<Vec<_>>());
        // Now it has.
        world.burst(client, reads(6..9));
        assert_eq!(world.calls.len(), 3);
        settle(&mut world, 10_000);
        assert_eq!(brief(&world.take(client)), (6..9).map(|xid| (xid, 0)).collect::<Vec<_>>());
    }
    // Without an answer they are not answered.
    let unanswered = [
        Answer::Replies { zxid: 1, replies: Vec::new() },
        Answer::Heard { over: Vec::new(), tally: Tally::default() },
        Answer::Reply { zxid: 1, error: 0, body: bytes::Bytes::new() },
        Answer::Reply { zxid: 1, error: Code::SessionMoved.number(), body: bytes::Bytes::new() },
    ];
    for answer in unanswered {
        let (mut world, client) = world(10_000);
        world.burst(client, reads(2..6));
        world.execute(0);
        world.calls[0].answer.as_mut().expect("it was executed").0 = vec![answer.to_wire()];
        world.answer(0);
        assert_eq!((world.take(client).len(), world.closed(client)), (0, Some(true)), "{answer:?}");
        assert!(world.calls.is_empty());
    }
}

#[test]
fn a_write_whose_answer_is_not_there_ends_the_connection() {
    covers!("ZKG-R5");
    let (mut world, client) = world(10_000);
    let mut burst = watches(2..3);
    burst.push(request(3, opcode::SET_DATA, &set("/a", "other")));
    world.burst(client, burst.clone());
    // The reads before it are told.
    answer(&mut world, 9_900);
    assert_eq!((brief(&world.take(client)), world.closed(client)), (vec![(2, 0)], Some(true)));
    assert!(world.calls.is_empty());
    // A read that would see the write that went with it does not go again.
    let (mut world, client) = self::world(10_000);
    world.burst(client, burst);
    answer(&mut world, 2);
    assert_eq!((world.take(client).len(), world.closed(client)), (0, Some(true)));
}

#[test]
fn no_write_goes_behind_reads_that_may_be_too_large() {
    covers!("ZKG-O7");
    let (mut world, client) = world(10_000);
    world.ask(client, 2, opcode::GET_DATA, &get("/a", false));
    let mut burst = watches(3..6);
    burst.push(request(6, opcode::SET_DATA, &set("/a", "other")));
    burst.extend(watches(7..9));
    world.burst(client, burst);
    settle(&mut world, 10_000);
    let told = world.take(client);
    let lengths: Vec<usize> = told
        .iter()
        .filter_map(|packet| match packet {
            Packet::Reply { xid: 3..=5 | 7..=8, error: 0, body, .. } => Some(data(body).len()),
            _ => None,
        })
        .collect();
    assert_eq!(lengths, [9_800, 9_800, 9_800, 5, 5]);
    assert_eq!(world.closed(client), None);
    // What is small goes together again, after a while.
    for _ in 0..10 {
        world.packet(client, ping());
        world.pass(3_000);
    }
    let mut burst = watches(9..12);
    burst.push(request(12, opcode::SET_DATA, &set("/a", "other")));
    world.burst(client, burst);
    let sent: Vec<usize> = world.calls.iter().map(|call| call.operations.len()).collect();
    assert_eq!(sent, [4]);
}

#[test]
fn what_is_no_record_is_told_so_in_a_group_in_which_nothing_has_happened() {
    let mut world = World::new();
    let client = world.open(0);
    let error = Code::MarshallingError.number();
    let wrong = bytes::Bytes::from_static(b"?");
    assert_eq!(world.ask(client, 1, opcode::CREATE, &wrong).0, error);
    assert_eq!(world.ask(client, 2, opcode::GET_DATA, &wrong).0, error);
    assert_eq!(world.closed(client), None);
}

#[test]
fn one_clients_large_answers_do_not_have_the_reads_of_others_go_one_by_one() {
    covers!("ZKG-O8");
    let (mut world, client) = world(1 << 19);
    let other = world.open(0);
    world.ask(other, 1, opcode::CREATE, &create("/b", "small", 0));
    let reads = |path: &str| (2..66).map(|xid| request(xid, opcode::GET_DATA, &get(path, false))).collect();
    for xid in 2..4 {
        assert_eq!(world.ask(client, xid, opcode::GET_DATA, &get("/a", false)).0, 0);
        world.burst(other, reads("/b"));
        assert_eq!(world.calls.len(), 1, "they go together");
        world.settle();
        assert_eq!(world.take(other).len(), 64);
    }
    world.burst(client, reads("/b"));
    assert_eq!(world.calls.len(), 64, "its own do not");
    world.settle();
}

/// What it knew of large answers went with the connection, and its client does the same again.
#[test]
fn a_connection_that_has_just_come_sends_no_write_behind_more_than_a_frame_may_show() {
    covers!("ZKG-O7");
    let (mut world, client) = world(1 << 19);
    assert_eq!(world.ask(client, 2, opcode::GET_DATA, &get("/a", false)).0, 0);
    world.gone(client);
    let client = world.open(0);
    let mut burst = watches(1..10);
    burst.push(request(10, opcode::CREATE, &create("/b", "", 0)));
    world.burst(client, burst);
    assert!(world.calls[0].operations.len() <= 2, "{}", world.calls[0].operations.len());
    settle(&mut world, 1 << 19);
    assert_eq!(brief(&world.take(client)), (1..11).map(|xid| (xid, 0)).collect::<Vec<_>>());
    assert_eq!(world.closed(client), None);
}

#[test]
fn what_could_not_be_shown_keeps_nothing_of_one_who_is_gone_from_being_done() {
    covers!("ZKG-S6");
    let (mut world, owner) = world(10_000);
    let sessions = world.sessions();
    world.gone(owner);
    let client = world.open(0);
    // Read before anything is known of its size, and with a write behind.
    let mut burst = watches(1..3);
    burst.push(request(3, opcode::CREATE, &create("/b", "", 1)));
    world.burst(client, burst);
    world.burst(
        client,
        vec![
            request(4, opcode::DELETE, &delete("/a")),
            request(5, opcode::CLOSE_SESSION, &bytes::Bytes::new()),
        ],
    );
    world.gone(client);
    let calls = settle(&mut world, 10_000);
    assert!(calls <= 3, "{calls}: nothing is asked again that nobody is told");
    assert_eq!((world.sessions(), world.gateways[0].connections()), (sessions, 0));
    let other = world.open(0);
    let gone = i64::from(Code::NoNode.number());
    world.send(other, 1, opcode::EXISTS, &get("/a", false));
    world.send(other, 2, opcode::EXISTS, &get("/b", false));
    settle(&mut world, 10_000);
    assert_eq!(brief(&world.take(other)), [(1, gone), (2, gone)]);
}

#[test]
fn what_was_read_by_itself_without_being_ordered_is_not_ordered_for_being_too_large() {
    covers!("ZKG-R5");
    let (mut world, client) = world(10_000);
    world.send(client, 2, opcode::GET_DATA, &get("/a", false));
    world.execute(0);
    let error = Code::MarshallingError.number();
    let mark = Answer::Reply { zxid: 0, error, body: bytes::Bytes::new() }.to_wire();
    let call = world.calls.pop_front().expect("it was asked").call;
    let now = world.time();
    let fast = Course { way: Way::Fast, ..Course::default() };
    world.gateways[0].answered_on(now, call, Ok(vec![mark]), &fast);
    world.tick();
    assert_eq!((brief(&world.take(client)), world.calls.len()), (vec![(2, i64::from(error))], 0));
}

#[test]
fn what_is_no_record_has_nobody_expect_long_answers() {
    let (mut world, client) = world(10_000);
    let wrong = bytes::Bytes::from_static(b"?");
    for (xid, code) in [(1, opcode::GET_DATA), (2, opcode::GET_CHILDREN), (3, opcode::MULTI_READ)] {
        assert_eq!(world.ask(client, xid, code, &wrong).0, Code::MarshallingError.number());
    }
    let mut burst = watches(9..12);
    burst.push(request(12, opcode::SET_DATA, &set("/a", "other")));
    world.burst(client, burst);
    let sent: Vec<usize> = world.calls.iter().map(|call| call.operations.len()).collect();
    assert_eq!(sent, [4]);
}

/// Executes the first call, whose frame has answers to others that leave no room for its own.
fn answer_without_room(world: &mut World) {
    answer(world, 2);
}

#[test]
fn an_answer_that_had_no_room_beside_those_to_others_is_asked_for_in_a_frame_of_its_own() {
    covers!("ZKG-R5");
    // As a read that had to be ordered, or one that sets a watch; by itself or with others of its session.
    for (watch, together) in [(false, false), (true, false), (true, true)] {
        let (mut world, client) = world(10_000);
        let last = if together { 4 } else { 3 };
        let reads = (2..last).map(|xid| request(xid, opcode::GET_DATA, &get("/a", watch))).collect();
        world.burst(client, reads);
        assert!(world.calls.len() == 1 && world.calls[0].reads != watch && !world.calls[0].apart);
        answer_without_room(&mut world);
        let call = &world.calls[0];
        assert_eq!((call.operations.len(), call.reads, call.apart), (1, false, true));
        settle(&mut world, 10_000);
        assert_eq!(brief(&world.take(client)), (2..last).map(|xid| (xid, 0)).collect::<Vec<_>>());
        // Where it has no room there, that is what came of it.
        world.send(client, 9, opcode::GET_DATA, &get("/a", watch));
        answer_without_room(&mut world);
        answer_without_room(&mut world);
        let error = i64::from(Code::MarshallingError.number());
        assert_eq!((brief(&world.take(client)), world.calls.len()), (vec![(9, error)], 0));
    }
}

#[test]
fn a_gateway_that_knows_of_no_transaction_takes_a_mark_for_an_answer_only_in_a_frame_of_its_own() {
    covers!("ZKG-R5");
    let mut world = World::of(2, &open_settings());
    let first = world.open(0);
    world.ask(first, 1, opcode::CREATE, &create("/a", "", 0));
    let client = world.open(1);
    world.send(client, 1, opcode::SET_DATA, &set("/a", "one"));
    assert!(world.calls[0].apart);
    world.settle();
    world.send(client, 2, opcode::SET_DATA, &set("/a", "two"));
    assert!(!world.calls[0].apart);
    // A write is not executed twice, whatever its answer is.
    answer_without_room(&mut world);
    assert_eq!((brief(&world.take(client)), world.closed(client)), (vec![(1, 0)], Some(true)));
    assert!(world.calls.is_empty());
}

#[test]
fn that_there_was_no_room_for_an_answer_is_no_sign_that_the_client_was_heard_of() {
    covers!("ZKG-L4");
    // Whether it has a frame of its own, in which the answer that nothing was done has room.
    for alone in [false, true] {
        let (mut world, client) = world(10_000);
        world.now += 6_000_000;
        world.burst(client, watches(2..3));
        answer_without_room(&mut world);
        assert!(world.calls.len() == 1 && world.calls[0].apart, "it is asked again");
        if alone {
            answer_without_room(&mut world);
        }
        // Two thirds of the time-out since it opened its session.
        world.now += 700_000;
        world.tick();
        assert_eq!(world.closed(client), (!alone).then_some(true));
    }
}

#[test]
fn who_was_not_heard_of_by_what_it_asked_for_gives_another_sign_of_life() {
    covers!("ZKG-L1");
    let (mut world, client) = world(10_000);
    // Nothing of it reaches the group.
    for xid in 2..40 {
        world.burst(client, watches(xid..xid + 1));
        if !world.calls.is_empty() {
            world.fail(0, ClientError::TooLarge);
        }
        world.now += 1_000_000;
        world.tick();
        world.settle();
    }
    assert_eq!((world.take(client).len(), world.closed(client)), (38, None));
}
