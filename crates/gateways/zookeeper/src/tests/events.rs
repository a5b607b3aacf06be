//! What the group tells of its own accord, and when its clients hear of it.

use super::marks::covers;
use super::support::{Packet, World, brief, create, get, open_settings, record, set};
use crate::Settings;
use bytes::Bytes;
use troth_types::Wire;
use troth_zookeeper::{Attachment, Notice, opcode};

const CHANGED: (i32, i64) = (-1, 3);

#[test]
fn an_event_comes_before_the_reply_that_reveals_it() {
    covers!("ZKG-E1");
    let mut world = World::new();
    let client = world.open(0);
    world.ask(client, 1, opcode::CREATE, &create("/a", "", 0));
    world.ask(client, 2, opcode::GET_DATA, &get("/a", true));
    // Its own change, and somebody else's.
    world.send(client, 3, opcode::SET_DATA, &set("/a", "x"));
    world.settle();
    assert_eq!(brief(&world.take(client)), [CHANGED, (3, 0)]);
    world.ask(client, 4, opcode::GET_DATA, &get("/a", true));
    let other = world.open(0);
    world.send(other, 1, opcode::SET_DATA, &set("/a", "y"));
    world.execute(0);
    world.send(client, 5, opcode::GET_DATA, &get("/a", false));
    world.execute(1);
    world.answer(1);
    assert_eq!(brief(world.packets(client)), [CHANGED, (5, 0)]);
    let Packet::Event { zxid: of_event, path, .. } = &world.packets(client)[0] else { panic!("an event") };
    let Packet::Reply { zxid: of_reply, .. } = &world.packets(client)[1] else { panic!("a reply") };
    assert_eq!((path.as_str(), of_event <= of_reply), ("/a", true));
}

#[test]
fn an_event_comes_behind_the_reply_that_set_its_watch() {
    covers!("ZKG-E2");
    let mut world = World::new();
    let (client, other) = (world.open(0), world.open(0));
    world.ask(client, 1, opcode::CREATE, &create("/a", "", 0));
    // The watch is set, and fires; the event overtakes the reply.
    world.send(client, 2, opcode::GET_DATA, &get("/a", true));
    world.execute(0);
    world.send(other, 1, opcode::SET_DATA, &set("/a", "x"));
    world.execute(1);
    world.answer(1);
    assert!(world.packets(client).is_empty(), "the client does not know of its watch yet");
    world.answer(0);
    assert_eq!(brief(&world.take(client)), [(2, 0), CHANGED]);
    // The same within what goes together, through the client's own change.
    world.send(client, 3, opcode::SET_DATA, &set("/a", ""));
    world.send(client, 4, opcode::GET_DATA, &get("/a", true));
    world.send(client, 5, opcode::SET_DATA, &set("/a", "x"));
    world.send(client, 6, opcode::GET_DATA, &get("/a", true));
    world.settle();
    assert_eq!(brief(world.packets(client)), [(3, 0), (4, 0), CHANGED, (5, 0), (6, 0)]);
}

#[test]
fn an_event_that_waited_comes_before_what_is_executed_later() {
    covers!("ZKG-E2");
    let mut world = World::new();
    let (client, other) = (world.open(0), world.open(0));
    world.ask(client, 1, opcode::CREATE, &create("/a", "", 0));
    world.ask(client, 2, opcode::GET_DATA, &get("/a", true));
    world.send(client, 3, opcode::CREATE, &create("/b", "", 0));
    world.send(client, 4, opcode::CREATE, &create("/c", "", 0));
    world.execute(0);
    world.send(other, 1, opcode::SET_DATA, &set("/a", "x"));
    world.execute(1);
    world.answer(1);
    assert!(world.packets(client).is_empty());
    world.answer(0);
    // The next call is on its way, and the event has not waited for it.
    assert_eq!(world.calls.len(), 1);
    assert_eq!(brief(world.packets(client)), [(3, 0), CHANGED]);
    world.settle();
    assert_eq!(brief(world.packets(client)), [(3, 0), CHANGED, (4, 0)]);
}

#[test]
fn who_may_have_missed_events_is_closed() {
    covers!("ZKG-E3");
    let mut world = World::of(2, &open_settings());
    let (client, other, elsewhere) = (world.open(0), world.open(0), world.open(1));
    let (early, enters) = (world.connect(0), world.connect(0));
    world.packet(enters, super::support::hello(0, 10_000, 0, &[]));
    world.lose(0);
    assert_eq!(
        [client, other, enters, early, elsewhere].map(|of| world.closed(of)),
        [Some(true), Some(true), Some(true), None, None]
    );
    // What this gateway does not understand it could not pass on.
    world.gateways[1].event(&Bytes::from_static(b"what later releases say"));
    world.tick();
    assert_eq!(world.closed(elsewhere), Some(true));
}

#[test]
fn what_is_told_of_another_attachment_is_nobodys_here() {
    covers!("ZKG-E4");
    let mut world = World::new();
    let client = world.open(0);
    world.ask(client, 1, opcode::CREATE, &create("/a", "", 0));
    world.ask(client, 2, opcode::GET_DATA, &get("/a", true));
    world.send(client, 3, opcode::SET_DATA, &set("/a", "x"));
    world.execute(0);
    let [Notice::Fired { at, kind, path, zxid }] = &world.unheard(0)[..] else { panic!("one event") };
    let earlier = Attachment { number: at.number - 1, ..*at };
    let stranger = Attachment { session: at.session + 1, ..*at };
    for at in [earlier, stranger] {
        let notice = Notice::Fired { at, kind: *kind, path: path.clone(), zxid: *zxid };
        world.gateways[0].event(&notice.to_wire());
        world.gateways[0].event(&Notice::Over(at).to_wire());
    }
    world.tick();
    assert!(world.packets(client).is_empty() && world.closed(client).is_none());
    world.settle();
    assert_eq!(brief(world.packets(client)), [CHANGED, (3, 0)]);
}

#[test]
fn watches_are_set_again_after_a_connection_was_lost() {
    let mut world = World::new();
    let first = world.connect(0);
    world.packet(first, super::support::hello(0, 10_000, 0, &[]));
    world.settle();
    let session = world.session(first);
    world.take(first);
    world.ask(first, 1, opcode::CREATE, &create("/a", "", 0));
    world.ask(first, 2, opcode::CREATE, &create("/b", "", 0));
    world.gone(first);
    let other = world.open(0);
    world.ask(other, 1, opcode::SET_DATA, &set("/a", "x"));
    let again = world.connect(0);
    world.packet(again, super::support::hello(3, 10_000, session, &super::support::PASSWORD));
    world.settle();
    world.take(again);
    let watches = record(|out| {
        out.long(3).length(2).text("/a").text("/b").length(0).length(0);
    });
    world.send(again, -8, opcode::SET_WATCHES, &watches);
    world.settle();
    assert_eq!(brief(&world.take(again)), [CHANGED, (-8, 0)], "what it has missed, and then the reply");
    world.ask(other, 2, opcode::SET_DATA, &set("/b", "x"));
    assert_eq!(brief(world.packets(again)), [CHANGED]);
}

#[test]
fn events_that_wait_are_bounded() {
    covers!("ZKG-E2");
    let mut world = World::of(1, &Settings { unwritten_bytes: 1_000, ..open_settings() });
    let (client, other) = (world.open(0), world.open(0));
    world.ask(client, 1, opcode::CREATE, &create("/a", "", 0));
    world.written(client, usize::MAX);
    let recursive = record(|out| {
        out.text("/").int(1);
    });
    world.ask(client, 2, opcode::ADD_WATCH, &recursive);
    world.written(client, usize::MAX);
    world.send(client, 3, opcode::CREATE, &create("/b", "", 0));
    let mut count = 0;
    while world.closed(client).is_none() {
        world.send(other, count, opcode::SET_DATA, &set("/a", ""));
        world.execute(1);
        world.answer(1);
        world.written(other, usize::MAX);
        count += 1;
        assert!(count < 20, "events without end wait");
    }
    assert_eq!(count, 11, "34 bytes each, and what keeps them");
}
