//! Reads that need not show the present, and what they show all the same.

use super::marks::covers;
use super::support::{
    Client, PASSWORD, Packet, World, auth, brief, create, data, get, hello, open_settings, record, set,
};
use crate::{Consistency, Settings};
use bytes::Bytes;
use troth_zookeeper::{Code, opcode};

fn sequential_settings() -> Settings {
    Settings { consistency: Consistency::Sequential, ..open_settings() }
}

/// Two gateways whose reads may be behind.
fn sequential() -> World {
    World::of(2, &sequential_settings())
}

/// Lets all calls be answered, reads from states as old as they may be.
fn settle_behind(world: &mut World) {
    while !world.calls.is_empty() {
        if world.calls[0].answer.is_none() {
            world.execute_behind(0, usize::MAX >> 8);
        }
        world.answer(0);
    }
}

/// The error and the body of the last reply.
fn told(world: &mut World, client: Client) -> (i32, Bytes) {
    match world.take(client).pop() {
        Some(Packet::Reply { error, body, .. }) => (error, body),
        other => panic!("no reply: {other:?}"),
    }
}

/// What is read from a state as old as it may be.
fn read(world: &mut World, client: Client) -> String {
    world.send(client, 99, opcode::GET_DATA, &get("/a", false));
    settle_behind(world);
    let (error, body) = told(world, client);
    assert_eq!(error, 0);
    data(&body)
}

fn sync() -> Bytes {
    record(|out| {
        out.text("/a");
    })
}

#[test]
fn only_where_it_is_asked_for_need_reads_not_show_the_present() {
    covers!("ZKG-C1");
    for (settings, recent) in [(open_settings(), false), (sequential_settings(), true)] {
        let mut world = World::of(1, &settings);
        let client = world.open(0);
        for (code, body) in [
            (opcode::EXISTS, get("/", false)),
            (opcode::GET_DATA, get("/", false)),
            (opcode::GET_CHILDREN2, get("/", false)),
        ] {
            world.send(client, 1, code, &body);
            assert_eq!((world.calls[0].reads, world.calls[0].least.is_some()), (true, recent));
            world.settle();
        }
        // What changes anything, be it what is watched, is ordered.
        for (code, body) in [(opcode::GET_DATA, get("/", true)), (opcode::SYNC, sync())] {
            world.send(client, 1, code, &body);
            assert!(!world.calls[0].reads);
            world.settle();
        }
    }
}

#[test]
fn a_session_sees_what_it_wrote_and_what_was_before_its_sync_and_may_miss_what_others_write() {
    covers!("ZKG-C1");
    let mut world = sequential();
    let (client, other) = (world.open(0), world.open(1));
    world.ask(client, 1, opcode::CREATE, &create("/a", "own", 0));
    assert_eq!(read(&mut world, client), "own");
    world.ask(other, 1, opcode::SET_DATA, &set("/a", "another's"));
    assert_eq!(read(&mut world, client), "own", "that is what this consistency is");
    assert_eq!(read(&mut world, other), "another's");
    world.ask(client, 2, opcode::SYNC, &sync());
    assert_eq!(read(&mut world, client), "another's");
    // What a session is, is seen too, though no transaction tells of it.
    world.ask(client, 3, opcode::AUTH, &auth("digest", "me:secret"));
    world.send(client, 4, opcode::WHO_AM_I, &Bytes::new());
    settle_behind(&mut world);
    let (error, body) = told(&mut world, client);
    assert_eq!(error, 0);
    assert!(body.windows(6).any(|bytes| bytes == b"digest"), "it has said who it is: {body:?}");
}

#[test]
fn no_session_is_shown_less_than_before_by_any_gateway() {
    covers!("ZKG-O5");
    covers!("ZKG-C2");
    let mut world = sequential();
    let (client, other) = (world.open(0), world.open(1));
    world.ask(client, 1, opcode::CREATE, &create("/a", "old", 0));
    world.ask(other, 1, opcode::SET_DATA, &set("/a", "new"));
    // One read happens to show the present, the next would be behind it: it is asked again, ordered.
    world.ask(client, 2, opcode::GET_DATA, &get("/a", false));
    world.send(client, 3, opcode::GET_DATA, &get("/a", false));
    world.execute_behind(0, 1);
    world.answer(0);
    assert!(world.packets(client).is_empty() && !world.calls[0].reads);
    settle_behind(&mut world);
    assert_eq!(data(&told(&mut world, client).1), "new");
    // Its client goes to a gateway that has heard of nothing, and shows what it saw: that gateway asks for the present.
    let mut world = sequential();
    let writer = world.open(0);
    let first = world.connect(0);
    world.packet(first, hello(0, 10_000, 0, &[]));
    world.settle();
    let session = world.session(first);
    world.ask(writer, 1, opcode::CREATE, &create("/a", "old", 0));
    world.ask(writer, 2, opcode::SET_DATA, &set("/a", "new"));
    world.send(first, 1, opcode::GET_DATA, &get("/a", false));
    world.settle();
    let Some(Packet::Reply { zxid: seen, .. }) = world.take(first).pop() else { panic!("a reply") };
    let second = world.connect(1);
    world.packet(second, hello(seen, 10_000, session, &PASSWORD));
    assert_eq!((world.calls[0].reads, world.calls[0].least), (true, None));
    settle_behind(&mut world);
    assert!(matches!(world.take(second)[..], [Packet::Connected { .. }]));
    assert_eq!(read(&mut world, second), "new");
    assert_eq!(world.closed(second), None);
}

#[test]
fn an_event_is_told_before_the_read_that_shows_what_it_tells() {
    covers!("ZKG-E1");
    let mut world = sequential();
    let (client, other) = (world.open(0), world.open(1));
    world.ask(client, 1, opcode::CREATE, &create("/a", "old", 0));
    world.ask(client, 2, opcode::GET_DATA, &get("/a", true));
    world.send(other, 1, opcode::SET_DATA, &set("/a", "new"));
    world.execute(0);
    world.answer(0);
    assert_eq!(read(&mut world, client), "old");
    world.send(client, 3, opcode::GET_DATA, &get("/a", false));
    world.execute(0);
    world.answer(0);
    assert_eq!(brief(world.packets(client)), [(-1, 3), (3, 0)]);
    world.take(client);
    assert_eq!(read(&mut world, client), "new", "it was told of the change");
    assert_eq!(world.ask(client, 4, opcode::EXISTS, &get("/none", false)).0, Code::NoNode.number());
}
