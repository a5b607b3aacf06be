//! Counters of sequential children that go on from elsewhere.

use super::support::{World, create, create_for, set, versioned, watching};
use crate::acl::{Acl, perms};
use crate::jute::Output;
use crate::{Code, opcode};
use bytes::Bytes;

fn continued(path: &str, creations: i32) -> Bytes {
    let mut out = Output::new();
    out.text(path).int(creations);
    out.finish()
}

#[test]
fn sequential_names_go_on_behind_those_that_were_given_elsewhere() {
    let mut world = World::new();
    let at = world.open(1);
    world.create(at, "/q", "", 0);
    world.create(at, "/q/kept", "", 0);
    let before = world.stat(at, "/q").expect("a node");
    world.well(at, opcode::GET_CHILDREN, watching("/q", true));
    world.well(at, opcode::CONTINUE_SEQUENCE, continued("/q", 41));
    assert!(world.fired().is_empty(), "no child came or went");
    let after = world.stat(at, "/q").expect("a node");
    assert_eq!(after.child_version, 2 * 41 - 1);
    assert_eq!((after.children_zxid, after.modified_zxid), (before.children_zxid, before.modified_zxid));
    assert_eq!(world.create(at, "/q/n-", "", 2), "/q/n-0000000041");
    world.decodes();
}

#[test]
fn they_never_go_back() {
    let mut world = World::new();
    let at = world.open(1);
    world.create(at, "/q", "", 0);
    for _ in 0..3 {
        let path = world.create(at, "/q/n-", "", 2);
        world.well(at, opcode::DELETE, versioned(&path, -1));
    }
    world.well(at, opcode::CONTINUE_SEQUENCE, continued("/q", 1));
    world.well(at, opcode::CONTINUE_SEQUENCE, continued("/q", 0));
    assert_eq!(world.create(at, "/q/n-", "", 2), "/q/n-0000000003", "it was given here");
    // Not even past the highest number, where names have a minus sign.
    world.well(at, opcode::CONTINUE_SEQUENCE, continued("/q", i32::MAX));
    assert_eq!(world.create(at, "/q/n-", "", 2), "/q/n-2147483647");
    for lower in [0, 4, i32::MAX] {
        world.well(at, opcode::CONTINUE_SEQUENCE, continued("/q", lower));
    }
    assert_eq!(world.create(at, "/q/n-", "", 2), "/q/n--2147483648");
}

#[test]
fn who_may_only_create_children_may_not_use_up_their_names() {
    let mut world = World::new();
    let at = world.open(1);
    let list = [Acl::world(perms::ALL & !perms::ADMIN)];
    world.well(at, opcode::CREATE, create_for("/q", "", &list, 0));
    let refused = world.ill(at, opcode::CONTINUE_SEQUENCE, continued("/q", i32::MAX));
    assert_eq!(refused, Code::NoAuth.number());
    assert_eq!(world.create(at, "/q/n-", "", 2), "/q/n-0000000000");
    assert_eq!(world.ill(at, opcode::CONTINUE_SEQUENCE, continued("/none", 1)), Code::NoNode.number());
    for bad in [continued("/q", -1), continued("q", 1)] {
        assert_eq!(world.ill(at, opcode::CONTINUE_SEQUENCE, bad), Code::BadArguments.number());
    }
}

#[test]
fn a_container_does_not_go_because_of_children_that_it_had_elsewhere() {
    let mut world = World::new();
    world.service.timeouts = (4_000, 100_000_000);
    let at = world.open(1);
    world.well(at, opcode::CREATE_CONTAINER, create("/c", "", 4));
    world.well(at, opcode::CONTINUE_SEQUENCE, continued("/c", 7));
    // Nor because of what is written into it.
    world.well(at, opcode::SET_DATA, set("/c", "new", -1));
    world.pass(200_000);
    let at = world.open(1);
    assert_eq!(world.create(at, "/c/n-", "", 2), "/c/n-0000000007");
    // One that has lost its last child here goes.
    world.well(at, opcode::DELETE, versioned("/c/n-0000000007", -1));
    world.well(at, opcode::SET_DATA, set("/c", "newer", -1));
    world.pass(61_000);
    let at = world.open(1);
    assert_eq!(world.stat(at, "/c").map(|_| ()), Err(Code::NoNode.number()));
}
