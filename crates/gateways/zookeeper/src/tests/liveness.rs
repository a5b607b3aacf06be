//! Signs of life, and those that do not come.

use super::marks::{covers, passes};
use super::support::{Client, Packet, World, create, get, hello, open_settings, ping, request};
use crate::Settings;
use crate::machine::LOOKED_AT_ALL;
use bytes::Bytes;
use core::time::Duration;
use troth_client::ClientError;
use troth_types::{Limits, Time, Wire};
use troth_zookeeper::{Operation, opcode};

fn with_timeout(world: &mut World, millis: i32) -> Client {
    let client = world.connect(0);
    world.packet(client, hello(0, millis, 0, &[]));
    world.settle();
    world.take(client);
    client
}

#[test]
fn a_ping_is_answered_at_once_with_what_the_client_was_shown() {
    covers!("ZKG-L2");
    let mut world = World::new();
    let client = world.open(0);
    world.ask(client, 1, opcode::CREATE, &create("/a", "", 0));
    world.send(client, 2, opcode::CREATE, &create("/b", "", 0));
    world.packet(client, ping());
    let expected = Packet::Reply { xid: -2, zxid: 2, error: 0, body: Bytes::new() };
    assert_eq!(world.packets(client), [expected]);
    assert_eq!(world.calls.len(), 1);
}

#[test]
fn a_session_whose_client_pings_or_reads_lives() {
    covers!("ZKG-L1");
    let mut world = World::new();
    let pings = with_timeout(&mut world, 3_000);
    let reads = with_timeout(&mut world, 1_500);
    for xid in 0..60 {
        if xid % 2 == 0 {
            world.packet(pings, ping());
        }
        world.send(reads, xid, opcode::EXISTS, &get("/", false));
        world.settle();
        world.pass(500);
    }
    assert_eq!([pings, reads].map(|client| world.closed(client)), [None, None]);
    assert_eq!(world.ask(pings, 1, opcode::CREATE, &create("/a", "", 0)).0, 0);
    assert_eq!(world.ask(reads, 100, opcode::EXISTS, &get("/a", false)).0, 0);
}

#[test]
fn signs_of_life_of_all_sessions_go_together_and_often_enough() {
    covers!("ZKG-L1");
    let mut world = World::new();
    let long = with_timeout(&mut world, 20_000);
    let short = with_timeout(&mut world, 2_000);
    let quiet = with_timeout(&mut world, 20_000);
    let mut touched = Vec::new();
    for step in 0..40 {
        if step % 2 == 0 {
            world.packet(short, ping());
            world.packet(long, ping());
        }
        world.now += 100_000;
        world.tick();
        while let Some(call) = world.calls.front() {
            let Ok(Operation::Touch(all)) = Operation::from_wire(&call.operations[0]) else {
                panic!("nothing but signs of life")
            };
            touched.push(all.len());
            world.execute(0);
            world.answer(0);
        }
    }
    assert!(touched.len() >= 6, "three times within the shortest time-out at least: {touched:?}");
    assert!(touched.iter().all(|count| *count == 2), "both, and not who says nothing: {touched:?}");
    assert_eq!(world.closed(quiet), None);
    // Who has something ordered needs no other sign.
    world.take(short);
    world.send(short, 1, opcode::CREATE, &create("/a", "", 0));
    world.settle();
    world.now += 600_000;
    world.tick();
    assert!(world.calls.is_empty());
}

#[test]
fn signs_of_life_that_do_not_arrive_are_given_again() {
    let mut world = World::new();
    let client = with_timeout(&mut world, 2_000);
    world.packet(client, ping());
    world.now += 600_000;
    world.tick();
    assert_eq!(world.calls.len(), 1);
    world.now += 300_000;
    world.packet(client, ping());
    world.tick();
    assert_eq!(world.calls.len(), 1, "one call at a time");
    world.fail(0, ClientError::TimedOut);
    assert_eq!(world.closed(client), None);
    world.now += 300_000;
    world.tick();
    assert_eq!(world.calls.len(), 1);
}

#[test]
fn what_the_group_takes_for_the_future_ends_the_connection() {
    covers!("ZKG-L5");
    let mut world = World::new();
    let ahead = |world: &mut World, at: usize| {
        world.calls[at].said = Time(world.now + 2_000_001);
        world.execute(at);
        world.answer(at);
    };
    // A request, which was not executed.
    let client = world.open(0);
    world.send(client, 1, opcode::CREATE, &create("/a", "", 0));
    ahead(&mut world, 0);
    assert_eq!((world.closed(client), world.take(client)), (Some(true), vec![]));
    // A session.
    let client = world.connect(0);
    world.packet(client, hello(0, 10_000, 0, &[]));
    ahead(&mut world, 0);
    assert_eq!((world.closed(client), world.take(client)), (Some(false), vec![]));
    // A read that had to be ordered.
    let client = world.open(0);
    world.send(client, 1, opcode::EXISTS, &get("/a", false));
    let answer = troth_zookeeper::Answer::Ahead(world.time()).to_wire();
    world.calls[0].answer = Some((vec![answer], 0));
    world.answer(0);
    assert_eq!((world.closed(client), world.take(client)), (Some(true), vec![]));
    assert!(world.gateways[0].take_behind().is_some());
    // A sign of life, which counts for nothing: in the end the client is told that it is not heard of.
    let client = with_timeout(&mut world, 2_000);
    for _ in 0..4 {
        world.packet(client, ping());
        world.now += 300_000;
        world.tick();
        while !world.calls.is_empty() {
            ahead(&mut world, 0);
        }
    }
    assert_eq!(world.closed(client), None);
    world.now += 200_000;
    world.tick();
    assert_eq!(world.closed(client), Some(true));
    assert!(world.gateways[0].take_behind().is_some(), "whoever runs it learns of it");
    assert_eq!(world.gateways[0].take_behind(), None);
    // Once more there is a group: nothing was done.
    let client = world.open(0);
    world.send(client, 1, opcode::CREATE, &create("/a", "", 0));
    world.settle();
    assert!(matches!(world.take(client)[..], [Packet::Reply { xid: 1, error: 0, .. }]));
}

#[test]
fn a_clock_that_is_behind_the_groups_is_told_of() {
    covers!("ZKG-L6");
    let mut world = World::new();
    let client = with_timeout(&mut world, 2_000);
    let answered = |world: &mut World, ahead: u64| {
        world.packet(client, ping());
        world.now += 600_000;
        world.tick();
        world.now += ahead;
        world.execute(0);
        world.now -= ahead;
        world.answer(0);
        world.gateways[0].take_clock_behind()
    };
    let gauge = |world: &World| world.gateways[0].measured(world.time()).1.clock_behind;
    assert_eq!(answered(&mut world, 800_000), None, "clocks may differ");
    assert_eq!((answered(&mut world, 1_500_000), gauge(&world)), (Some(1_500_000), 1_500_000));
    assert_eq!(world.gateways[0].take_clock_behind(), None, "each time once");
    assert_eq!(world.closed(client), None, "its clients are served");
    assert_eq!((answered(&mut world, 0), gauge(&world)), (None, 0));
    // The clock is set back, while the time that passes here goes on as it did.
    let back = Time(world.now - 2_000_000);
    world.gateways[0].set_day(back);
    assert_eq!((answered(&mut world, 0).is_some(), gauge(&world) > 2_000_000), (true, true));
    // Set too far forward, it is another's matter.
    world.packet(client, ping());
    world.now += 600_000;
    world.tick();
    world.calls[0].said = Time(world.now + 2_000_001);
    world.execute(0);
    world.answer(0);
    assert_eq!((world.gateways[0].take_clock_behind(), gauge(&world)), (None, 0));
}

#[test]
fn a_question_of_the_gateway_puts_no_sign_of_life_off() {
    covers!("ZKG-L1");
    covers!("ZKG-L6");
    let mut world = World::new();
    let now = world.time();
    world.gateways[0].begin(now);
    world.pass(1);
    world.now += 5_000_000;
    let client = with_timeout(&mut world, 40_000);
    // The question goes when nothing else is due, and is answered late.
    world.now += 5_100_000;
    world.tick();
    assert_eq!(world.calls.len(), 1);
    world.packet(client, ping());
    world.now += 5_100_000;
    world.tick();
    assert_eq!(world.calls.len(), 1, "one at a time");
    world.execute(0);
    world.answer(0);
    world.tick();
    let [touch] = &world.calls.make_contiguous()[..] else { panic!("signs of life") };
    assert!(
        matches!(Operation::from_wire(&touch.operations[0]), Ok(Operation::Touch(all)) if all.len() == 1)
    );
}

#[test]
fn a_session_that_is_over_loses_its_connection() {
    covers!("ZKG-S4");
    let mut world = World::new();
    let client = with_timeout(&mut world, 1_000);
    // Its signs of life do not reach the group; that it is over does.
    for _ in 0..4 {
        world.packet(client, ping());
        world.now += 400_000;
    }
    world.pass(1_500);
    assert_eq!(world.closed(client), Some(true));
    // The same where only the answer to a sign of life says so.
    let other = with_timeout(&mut world, 1_000);
    world.packet(other, ping());
    world.now += 300_000;
    world.tick();
    let [call] = &mut world.calls.make_contiguous()[..] else { panic!("a sign of life") };
    let Ok(Operation::Touch(touched)) = Operation::from_wire(&call.operations[0]) else { panic!("a touch") };
    let answer = troth_zookeeper::Answer::Heard { over: touched, tally: troth_zookeeper::Tally::default() };
    call.answer = Some((vec![answer.to_wire()], 0));
    world.answer(0);
    assert_eq!(world.closed(other), Some(true));
}

#[test]
fn a_session_that_is_over_before_its_answer_came_is_not_begun() {
    covers!("ZKG-S4");
    let mut world = World::of(2, &open_settings());
    let (first, second) = (world.connect(0), world.connect(1));
    world.packet(first, hello(0, 10_000, 0, &[]));
    world.settle();
    let session = world.session(first);
    // It comes back here, and goes elsewhere, before this gateway has heard that it came.
    let again = world.connect(0);
    world.packet(again, hello(0, 10_000, session, &super::support::PASSWORD));
    world.packet(second, hello(0, 10_000, session, &super::support::PASSWORD));
    world.execute(0);
    world.execute(1);
    while world.hear(0) {}
    world.answer(0);
    assert_eq!((world.packets(again).len(), world.closed(again)), (0, Some(false)));
    world.settle();
    assert_eq!(world.session(second), session);
}

#[test]
fn a_connection_that_is_silent_for_its_time_out_is_closed() {
    covers!("ZKG-L3");
    let limits = Limits { frame_operations: 1, ..Limits::DEFAULT };
    let mut world = World::of(1, &Settings { limits, ..open_settings() });
    let (silent, speaks) = (with_timeout(&mut world, 2_000), with_timeout(&mut world, 2_000));
    // The group hears of both by what they have asked for, one after the other.
    for client in [silent, speaks] {
        world.burst(client, (0..6).map(|xid| request(xid, opcode::CREATE, &create("/a", "", 0))).collect());
    }
    for _ in 0..4 {
        world.now += 450_000;
        world.packet(speaks, ping());
        for _ in 0..2 {
            world.execute(0);
            world.answer(0);
        }
        world.tick();
        assert_eq!(world.closed(silent), None);
    }
    world.now += 450_000;
    world.tick();
    assert_eq!([silent, speaks].map(|client| world.closed(client)), [Some(true), None]);
}

#[test]
fn a_gateway_that_is_cut_off_closes_before_the_group_can_end_the_session() {
    covers!("ZKG-L4");
    let mut world = World::new();
    let (pings, writes) = (with_timeout(&mut world, 3_000), with_timeout(&mut world, 3_000));
    world.send(writes, 1, opcode::CREATE, &create("/a", "", 0));
    let (mut answered, sessions) = (0, world.sessions());
    for step in 1..=20 {
        world.now += 100_000;
        world.packet(pings, ping());
        world.tick();
        // What the group is told is lost on the way, or not answered.
        while world.calls.len() > 1 {
            world.fail(1, ClientError::TimedOut);
        }
        answered = if world.closed(pings).is_none() { step } else { answered };
    }
    assert_eq!(answered, 19, "two thirds of the time-out, and no longer");
    assert_eq!([pings, writes].map(|client| world.closed(client)), [Some(true); 2]);
    assert_eq!(world.packets(pings).len(), answered, "so many pings were answered");
    // The group has ended none of them yet.
    world.pass_deadlines();
    assert_eq!(world.sessions(), sessions);
}

#[test]
fn a_ping_of_a_session_that_may_be_over_is_not_answered() {
    covers!("ZKG-L4");
    let mut world = World::new();
    let client = with_timeout(&mut world, 3_000);
    // Nobody has looked since.
    world.now += 2_000_000;
    world.packet(client, ping());
    assert_eq!((world.packets(client).len(), world.closed(client)), (0, Some(true)));
    // Nor is who had to wait so long for its session told that it has one.
    let late = world.connect(0);
    world.packet(late, hello(0, 3_000, 0, &[]));
    world.execute(0);
    world.now += 2_000_000;
    world.answer(0);
    assert_eq!((world.packets(late).len(), world.closed(late)), (0, Some(false)));
}

#[test]
fn clients_that_ping_seldom_are_confirmed_at_once() {
    covers!("ZKG-L4");
    let mut world = World::new();
    let clients = [3_000, 6_000, 40_000].map(|timeout| (timeout, with_timeout(&mut world, timeout)));
    let mut last = [0; 3];
    let began = world.now;
    for _ in 0..12_000 {
        world.pass(20);
        for ((timeout, client), last) in clients.iter().zip(&mut last) {
            // The second as seldom as it may.
            let every = if *timeout == 6_000 { *timeout * 13 / 20 } else { *timeout / 3 };
            let passed = i32::try_from((world.now - began) / 1000).expect("a few minutes");
            if passed - *last >= every {
                *last = passed;
                world.packet(*client, ping());
            }
        }
    }
    assert_eq!(clients.map(|(_, client)| world.closed(client)), [None; 3]);
}

#[test]
fn a_connection_that_is_not_read_is_not_silent() {
    covers!("ZKG-L3");
    let limits = Limits { frame_operations: 1, ..Limits::DEFAULT };
    // Whatever is outstanding, there is no room for another packet.
    let settings = Settings { limits, packet_bytes: 4_000, outstanding_bytes: 4_000, ..open_settings() };
    let mut world = World::of(1, &settings);
    let client = with_timeout(&mut world, 2_000);
    world.burst(client, (0..6).map(|xid| request(xid, opcode::CREATE, &create("/a", "", 0))).collect());
    for step in 1..=5 {
        world.now += 600_000;
        world.tick();
        assert_eq!(world.closed(client), None, "{step}");
        world.execute(0);
        world.answer(0);
    }
    world.settle();
    world.now += 600_000;
    world.tick();
    assert_eq!(world.closed(client), Some(true));
}

#[test]
fn who_does_not_come_to_a_session_in_time_is_closed() {
    covers!("ZKG-L3");
    let mut world = World::of(1, &Settings { handshake: Duration::from_secs(1), ..open_settings() });
    let (mute, waits) = (world.connect(0), world.connect(0));
    world.packet(waits, hello(0, 10_000, 0, &[]));
    assert_eq!(world.calls.len(), 1);
    let has = world.open(0);
    world.packet(waits, hello(0, 10_000, 0, &[]));
    let late = world.connect(0);
    world.packet(late, hello(0, 10_000, 0, &[]));
    for _ in 0..10 {
        world.now += 110_000;
        world.tick();
    }
    assert_eq!([mute, late].map(|client| world.closed(client)), [Some(true); 2]);
    assert_eq!(world.closed(has), None);
    // Its session comes too late, and ends by itself.
    world.settle();
    assert!(world.packets(late).is_empty());
}

#[test]
fn without_connections_nobody_is_woken() {
    let mut world = World::new();
    assert_eq!(world.gateways[0].next_wake(), None);
    let client = world.open(0);
    assert!(world.gateways[0].next_wake().is_some());
    world.gone(client);
    world.pass(1_000);
    assert_eq!(world.gateways[0].next_wake(), None);
}

#[test]
fn that_somebody_comes_has_nobody_else_looked_at() {
    covers!("ZKG-L3");
    let mut world = World::of(1, &Settings { connections_per_address: 0, ..open_settings() });
    let wakes = |world: &World| world.gateways[0].next_wake().map(|at| at.0 - world.now);
    world.connect(0);
    assert_eq!(wakes(&world), Some(500_000));
    let short = with_timeout(&mut world, 1_000);
    assert_eq!(wakes(&world), Some(50_000));
    let before = passes(LOOKED_AT_ALL);
    for _ in 0..100 {
        world.connect(0);
    }
    assert_eq!((passes(LOOKED_AT_ALL), wakes(&world)), (before, Some(50_000)));
    // That is done now and then.
    world.now += 50_000;
    world.tick();
    assert_eq!((passes(LOOKED_AT_ALL), wakes(&world)), (before + 1, Some(50_000)));
    world.pass(700);
    assert_eq!(world.closed(short), Some(true), "as ever");
}
