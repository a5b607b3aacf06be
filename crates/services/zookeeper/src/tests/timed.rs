//! Nodes that go by themselves.

use super::support::{World, put_acl, set, versioned, world};
use crate::jute::Output;
use crate::{Code, opcode};
use bytes::Bytes;
use troth_exec::{Application as _, StateView};

fn with_ttl(path: &str, flags: i32, millis: i64) -> Bytes {
    let mut out = Output::new();
    out.text(path).text("");
    put_acl(&mut out, &world());
    out.int(flags).long(millis);
    out.finish()
}

#[test]
fn a_node_with_a_time_to_live_goes_after_its_last_change() {
    let mut world = World::new();
    world.service.timeouts = (4_000, 100_000_000);
    let at = world.open(1);
    world.well(at, opcode::CREATE_TTL, with_ttl("/a", 5, 3_000));
    let owner = world.stat(at, "/a").expect("a node").owner;
    assert_eq!(owner, 0, "who takes it for a session's believes that it goes with that");
    world.pass(2_000);
    world.well(at, opcode::SET_DATA, set("/a", "x", -1));
    world.pass(2_000);
    world.stat(at, "/a").expect("it was changed");
    world.pass(2_000);
    assert_eq!(world.stat(at, "/a"), Err(Code::NoNode.number()));
    assert_eq!(world.entries(b'g'), 0);
    for bad in [0, -1, 1 << 40] {
        assert_eq!(world.ill(at, opcode::CREATE_TTL, with_ttl("/b", 5, bad)), Code::BadArguments.number());
    }
    assert_eq!(world.ill(at, opcode::CREATE_TTL, with_ttl("/b", 0, 10)), Code::BadArguments.number());
}

#[test]
fn one_with_children_stays_until_they_are_gone() {
    let mut world = World::new();
    let at = world.open(1);
    world.well(at, opcode::CREATE_TTL, with_ttl("/a", 5, 1_000));
    world.create(at, "/a/b", "", 0);
    world.pass(5_000);
    world.stat(at, "/a").expect("it has a child");
    world.well(at, opcode::DELETE, versioned("/a/b", -1));
    let due = world.service.next_deadline(&StateView::new(&world.map)).expect("it is over");
    assert_eq!(due.0, world.now + 1, "no clock comes to what is due already");
    world.pass(1);
    assert_eq!(world.stat(at, "/a"), Err(Code::NoNode.number()));
}

#[test]
fn a_container_goes_when_it_has_been_empty_for_a_while_but_not_before_it_had_children() {
    let mut world = World::new();
    let mut at = world.open(1);
    let create = |path| super::support::create(path, "", 4);
    world.well(at, opcode::CREATE_CONTAINER, create("/new"));
    world.well(at, opcode::CREATE_CONTAINER, create("/used"));
    assert_eq!(world.stat(at, "/used").expect("a node").owner, 0);
    world.create(at, "/used/child", "", 0);
    world.well(at, opcode::DELETE, versioned("/used/child", -1));
    world.pass(30_000);
    at = world.open(1);
    world.stat(at, "/used").expect("not yet");
    world.pass(31_000);
    at = world.open(1);
    assert_eq!(world.stat(at, "/used"), Err(Code::NoNode.number()));
    world.stat(at, "/new").expect("nobody used it");
    assert_eq!(world.entries(b'g'), 0);
}

#[test]
fn a_container_that_is_used_again_meanwhile_stays() {
    let mut world = World::new();
    let at = world.open(1);
    world.well(at, opcode::CREATE_CONTAINER, super::support::create("/c", "", 4));
    world.create(at, "/c/one", "", 0);
    world.well(at, opcode::DELETE, versioned("/c/one", -1));
    world.create(at, "/c/two", "", 0);
    world.pass(120_000);
    let at = world.open(1);
    world.stat(at, "/c").expect("it has a child");
    world.well(at, opcode::DELETE, versioned("/c/two", -1));
    world.pass(61_000);
    let at = world.open(1);
    assert_eq!(world.stat(at, "/c"), Err(Code::NoNode.number()));
}
