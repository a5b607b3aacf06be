//! What gateways are told of the group: what there is, counted as it comes and goes.

use super::support::{World, attaching, create, set, versioned, watching};
use crate::jute::Output;
use crate::message::Tally;
use crate::{MAX_GOES, opcode};
use troth_types::Time;

/// What the service keeps itself.
const PLANTED: [&str; 4] = ["/", "/zookeeper", "/zookeeper/quota", "/zookeeper/config"];

#[test]
fn nodes_and_their_bytes_are_counted_as_they_come_and_go() {
    let mut world = World::new();
    let at = world.open(1);
    let planted = Tally {
        time: Time(world.now),
        nodes: 4,
        bytes: PLANTED.iter().map(|path| path.len() as u64).sum::<u64>() + world.service.config.len() as u64,
        ..Tally::default()
    };
    assert_eq!(world.tally(), planted);
    world.create(at, "/a", "four", 0);
    world.create(at, "/a/b", "", 1);
    let with_both = Tally { nodes: 6, ephemerals: 1, bytes: planted.bytes + 6 + 4, ..planted };
    assert_eq!(world.tally(), with_both);
    // One kept apart from its node, and then not.
    world.well(at, opcode::SET_DATA, set("/a", &"x".repeat(5_000), -1));
    assert_eq!(world.tally().bytes, with_both.bytes + 4_996);
    world.well(at, opcode::SET_DATA, set("/a", "four", -1));
    assert_eq!(world.tally(), with_both);
    // What does not happen is not counted, nor is half of a transaction.
    world.ill(at, opcode::CREATE, create("/a", "", 0));
    world.ill(at, opcode::DELETE, versioned("/a", -1));
    let mut half = Output::new();
    for path in ["/c", "/a"] {
        half.int(opcode::CREATE).boolean(false).int(-1).raw(&create(path, "data", 0));
    }
    half.int(-1).boolean(true).int(-1);
    world.well(at, opcode::MULTI, half.finish());
    assert!(world.stat(at, "/c").is_err());
    assert_eq!(world.tally(), with_both);
    world.well(at, opcode::CLOSE_SESSION, bytes::Bytes::new());
    assert_eq!(world.tally(), Tally { nodes: 5, ephemerals: 0, bytes: planted.bytes + 6, ..planted });
    let other = world.open(1);
    world.well(other, opcode::DELETE, versioned("/a", -1));
    assert_eq!(world.tally(), planted);
}

#[test]
fn what_a_quota_writes_of_itself_is_counted() {
    let mut world = World::new();
    let at = world.open(1);
    for (path, data) in [
        ("/a", ""),
        ("/zookeeper/quota/a", ""),
        ("/zookeeper/quota/a/zookeeper_limits", "count=5,bytes=5"),
        ("/zookeeper/quota/a/zookeeper_stats", ""),
    ] {
        world.create(at, path, data, 0);
    }
    let before = world.tally();
    let used = |world: &mut World| {
        world.get(at, "/zookeeper/quota/a/zookeeper_stats").expect("stats").0.len() as u64
    };
    let was = used(&mut world);
    for number in 0..12 {
        world.create(at, &format!("/a/{number:02}"), "", 0);
    }
    let grown = used(&mut world) - was;
    assert_eq!((world.tally().nodes, grown), (before.nodes + 12, 1), "from count=1 to count=13");
    assert_eq!(world.tally().bytes, before.bytes + 12 * 5 + grown);
}

#[test]
fn what_goes_with_a_session_in_steps_is_counted_in_steps() {
    let mut world = World::new();
    let (at, other) = (world.open(1), world.open(2));
    world.create(at, "/a", "", 0);
    for number in 0..MAX_GOES + 10 {
        world.create(other, &format!("/a/{number}"), "", 1);
    }
    assert_eq!(world.tally().ephemerals, MAX_GOES as u64 + 10);
    world.well(other, opcode::CLOSE_SESSION, bytes::Bytes::new());
    assert_eq!(world.tally().ephemerals, 10);
}

#[test]
fn watched_paths_are_counted_for_each_session_once() {
    let mut world = World::new();
    let (at, other) = (world.open(1), world.open(2));
    world.create(at, "/a", "", 0);
    for session in [at, other] {
        world.well(session, opcode::GET_DATA, watching("/a", true));
        world.well(session, opcode::GET_CHILDREN, watching("/a", true));
        world.ill(session, opcode::EXISTS, watching("/b", true));
    }
    assert_eq!(world.tally().watches, 4);
    world.well(at, opcode::SET_DATA, set("/a", "x", -1));
    assert_eq!(world.tally().watches, 4, "of the children");
    world.create(at, "/a/c", "", 0);
    world.create(at, "/b", "", 0);
    assert_eq!(world.tally().watches, 0);
    for session in [at, other] {
        world.well(session, opcode::GET_DATA, watching("/a", true));
        world.well(session, opcode::GET_DATA, watching("/b", true));
    }
    world.well(other, opcode::CLOSE_SESSION, bytes::Bytes::new());
    assert_eq!(world.tally().watches, 2);
    // Whoever attaches anew says what it watches.
    let password = super::support::secret(1);
    world.run(1, &attaching(1, at.session, password));
    assert_eq!(world.tally().watches, 0);
}
