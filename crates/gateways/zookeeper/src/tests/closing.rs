//! What clients have not read of connections that are closed.

use super::marks::covers;
use super::support::{Client, Packet, World, create, get, open_settings};
use crate::Settings;
use bytes::Bytes;
use troth_zookeeper::opcode;

const DATA: usize = 300_000;

fn world(settings: Settings) -> World {
    let mut world = World::of(1, &settings);
    let owner = world.open(0);
    world.ask(owner, 1, opcode::CREATE, &create("/a", &"x".repeat(DATA), 0));
    world.written(owner, usize::MAX);
    world
}

/// A client that has read nothing of so many answers, and closes its session: whether what there is goes out.
fn closes(world: &mut World, answers: i32) -> (Client, bool) {
    let client = world.open(0);
    for xid in 0..answers {
        assert_eq!(world.ask(client, xid, opcode::GET_DATA, &get("/a", false)).0, 0);
    }
    world.send(client, answers, opcode::CLOSE_SESSION, &Bytes::new());
    world.settle();
    assert!(matches!(world.packets(client)[..], [Packet::Reply { error: 0, .. }]));
    (client, world.closed(client).expect("its session is over"))
}

fn held(world: &World) -> usize {
    world.gateways[0].measured(world.time()).1.held_bytes
}

#[test]
fn what_a_client_left_when_its_session_ended_counts_until_it_has_gone_out() {
    covers!("ZKG-B6");
    let mut world = world(open_settings());
    let (client, flushed) = closes(&mut world, 6);
    assert!(flushed && held(&world) > 6 * DATA, "{}", held(&world));
    world.written(client, DATA);
    assert!((5 * DATA..6 * DATA).contains(&held(&world)), "{}", held(&world));
    // It has had its time.
    world.gone(client);
    assert_eq!(held(&world), 0);
    let (client, _) = closes(&mut world, 6);
    world.written(client, usize::MAX);
    world.gone(client);
    assert_eq!(held(&world), 0, "each byte once");
}

#[test]
fn who_asks_for_much_and_closes_its_session_at_once_is_told_all_of_it() {
    covers!("ZKG-B6");
    let mut world = world(open_settings());
    assert!(closes(&mut world, 12).1, "nothing can have been read of answers that go out with the last one");
}

#[test]
fn all_that_are_closed_hold_a_part_of_what_all_may_hold() {
    covers!("ZKG-B6");
    let mut world = world(Settings { memory_bytes: 8 * 1_000_000, ..open_settings() });
    let all: Vec<(Client, bool)> = (0..5).map(|_| closes(&mut world, 1)).collect();
    assert_eq!(all.iter().map(|(_, flushed)| *flushed).collect::<Vec<_>>(), [true, true, true, false, false]);
    world.gone(all[0].0);
    assert!(closes(&mut world, 1).1, "there is room again");
    assert!(!closes(&mut world, 1).1);
}

#[test]
fn that_its_session_is_over_a_client_is_told_whatever_others_have_left() {
    covers!("ZKG-B6");
    let left = {
        let mut world = world(open_settings());
        closes(&mut world, 3);
        held(&world)
    };
    let mut world = world(Settings { memory_bytes: 8 * left, ..open_settings() });
    assert!(closes(&mut world, 3).1, "it fits to a byte");
    assert!(!closes(&mut world, 1).1);
    assert!(closes(&mut world, 0).1);
}

#[test]
fn a_word_has_its_answer_however_many_are_there() {
    covers!("ZKG-W1");
    let mut world =
        World::of(1, &Settings { connections: 40_000, connections_per_address: 0, ..open_settings() });
    for _ in 0..30_000 {
        world.connect_from(0, "[2001:db8:1111:2222:3333:4444:5555:6666]:40000");
    }
    let asks = world.connect(0);
    let said = world.word(asks, b"cons");
    assert!(said.len() > (2 << 20) + (64 << 10), "{}", said.len());
}
