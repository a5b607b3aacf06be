//! Nodes: creating, reading, setting, deleting.

use super::support::{World, attaching, create, put_acl, set, versioned, watching, world as all};
use crate::jute::{Input, Output};
use crate::{Answer, Attachment, Code, Operation, opcode};
use bytes::Bytes;

#[test]
fn a_group_begins_with_the_nodes_that_zookeeper_has() {
    let mut world = World::new();
    let at = world.open(1);
    assert_eq!(world.children(at, "/"), ["zookeeper"]);
    assert_eq!(world.children(at, "/zookeeper"), ["config", "quota"]);
    let root = world.stat(at, "/").expect("the root");
    assert_eq!((root.created_zxid, root.child_version, root.children), (0, -1, 1));
    for special in ["/", "/zookeeper", "/zookeeper/quota", "/zookeeper/config"] {
        assert_eq!(world.ill(at, opcode::DELETE, versioned(special, -1)), Code::BadArguments.number());
    }
}

#[test]
fn a_group_whose_first_operation_is_refused_has_them_too() {
    let mut world = World::new();
    let nobody = Attachment { session: 7, number: 1 };
    let attach = attaching(1, 7, [0; 16]);
    let unknown = Operation::Request { at: nobody, code: opcode::PING, body: Bytes::new() };
    for first in [attach, unknown] {
        let refused = world.run(1, &first);
        assert!(matches!(refused, Answer::Reply { error, .. } if error != 0), "{refused:?}");
    }
    let at = world.open(1);
    assert_eq!(world.children(at, "/zookeeper"), ["config", "quota"]);
    world.create(at, "/a", "", 0);
}

#[test]
fn no_data_at_all_are_told_from_empty_ones() {
    let mut world = World::new();
    let at = world.open(1);
    let none = |path: &str, rest: &dyn Fn(&mut Output)| {
        let mut out = Output::new();
        out.text(path).int(-1);
        rest(&mut out);
        out.finish()
    };
    let creation = none("/none", &|out| {
        put_acl(out, &all());
        out.int(0);
    });
    world.well(at, opcode::CREATE, creation);
    let data = |world: &mut World| {
        let answer = world.read(at, opcode::GET_DATA, watching("/none", false)).expect("a node");
        Input::new(&answer).buffer().expect("a record")
    };
    assert_eq!(data(&mut world), None);
    assert_eq!(world.stat(at, "/none").expect("a node").length, 0);
    // Large ones have an entry of their own, which goes with them.
    world.well(at, opcode::SET_DATA, set("/none", &"x".repeat(5000), -1));
    assert_eq!(world.entries(b'd'), 1);
    world.well(
        at,
        opcode::SET_DATA,
        none("/none", &|out| {
            out.int(-1);
        }),
    );
    assert_eq!((data(&mut world), world.entries(b'd')), (None, 0));
    world.well(at, opcode::SET_DATA, set("/none", "", -1));
    assert_eq!(data(&mut world), Some(Bytes::new()));
}

#[test]
fn a_node_holds_its_data_and_its_stat_tells_its_history() {
    let mut world = World::new();
    let at = world.open(1);
    assert_eq!(world.create(at, "/a", "one", 0), "/a");
    let (data, first) = world.get(at, "/a").expect("a node");
    assert_eq!(data, Bytes::from("one"));
    assert_eq!((first.version, first.length, first.owner), (0, 3, 0));
    assert_eq!(first.created_zxid, first.modified_zxid);
    assert_eq!(first.created, 1_700_000_000_000);
    world.now += 5_000;
    world.well(at, opcode::SET_DATA, set("/a", "three", 0));
    let (data, second) = world.get(at, "/a").expect("a node");
    assert_eq!((data, second.version, second.length), (Bytes::from("three"), 1, 5));
    assert_eq!((second.created, second.modified), (first.created, first.created + 5));
    assert!(second.modified_zxid > first.modified_zxid && second.created_zxid == first.created_zxid);
    assert_eq!(world.ill(at, opcode::SET_DATA, set("/a", "x", 0)), Code::BadVersion.number());
    assert_eq!(world.ill(at, opcode::SET_DATA, set("/b", "x", -1)), Code::NoNode.number());
    assert_eq!(world.ill(at, opcode::DELETE, versioned("/a", 0)), Code::BadVersion.number());
    world.well(at, opcode::DELETE, versioned("/a", 1));
    assert_eq!(world.get(at, "/a"), Err(Code::NoNode.number()));
}

#[test]
fn children_come_and_go_under_their_parents() {
    let mut world = World::new();
    let at = world.open(1);
    world.create(at, "/a", "", 0);
    assert_eq!(world.ill(at, opcode::CREATE, create("/a", "", 0)), Code::NodeExists.number());
    assert_eq!(world.ill(at, opcode::CREATE, create("/b/c", "", 0)), Code::NoNode.number());
    // Names around the separator: none of them is taken for a child of another.
    for name in ["/a/b", "/a/c", "/a!", "/a.b", "/a/b/d", "/ab"] {
        world.create(at, name, "", 0);
    }
    assert_eq!(world.children(at, "/a"), ["b", "c"]);
    assert_eq!(world.children(at, "/a/b"), ["d"]);
    let mut top = world.children(at, "/");
    top.sort();
    assert_eq!(top, ["a", "a!", "a.b", "ab", "zookeeper"]);
    assert_eq!(world.ill(at, opcode::DELETE, versioned("/a", -1)), Code::NotEmpty.number());
    let before = world.stat(at, "/a").expect("a node");
    assert_eq!((before.children, before.child_version), (2, 2));
    world.well(at, opcode::DELETE, versioned("/a/c", -1));
    let after = world.stat(at, "/a").expect("a node");
    assert_eq!((after.children, after.child_version), (1, 3));
    assert!(after.children_zxid > before.children_zxid && after.modified_zxid == before.modified_zxid);
}

#[test]
fn sequential_nodes_are_numbered_by_what_was_ever_created() {
    let mut world = World::new();
    let at = world.open(1);
    world.create(at, "/q", "", 0);
    assert_eq!(world.create(at, "/q/n-", "", 2), "/q/n-0000000000");
    assert_eq!(world.create(at, "/q/other", "", 0), "/q/other");
    world.well(at, opcode::DELETE, versioned("/q/n-0000000000", -1));
    assert_eq!(world.create(at, "/q/n-", "", 2), "/q/n-0000000002");
    assert_eq!(world.create(at, "/q/", "", 2), "/q/0000000003");
    assert_eq!(world.create(at, "/q/e", "", 3), "/q/e0000000004");
}

#[test]
fn large_data_come_and_go() {
    let mut world = World::new();
    let at = world.open(1);
    let large = "x".repeat(900_000);
    world.create(at, "/large", &large, 0);
    assert_eq!(world.entries(b'd'), 1);
    assert_eq!(world.get(at, "/large").expect("a node").0.len(), 900_000);
    world.well(at, opcode::SET_DATA, set("/large", "small", -1));
    assert_eq!(world.entries(b'd'), 0);
    assert_eq!(world.get(at, "/large").expect("a node").0, Bytes::from("small"));
    world.well(at, opcode::SET_DATA, set("/large", &large, -1));
    world.well(at, opcode::DELETE, versioned("/large", -1));
    assert_eq!(world.entries(b'd'), 0);
}

#[test]
fn the_number_of_all_below_is_counted() {
    let mut world = World::new();
    let at = world.open(1);
    for name in ["/a", "/a/b", "/a/b/c", "/a/d", "/a.x"] {
        world.create(at, name, "", 0);
    }
    let mut count = |path: &str| {
        let answer = world.read(at, opcode::GET_ALL_CHILDREN_NUMBER, super::support::path(path));
        Input::new(&answer.expect("a number")).int().expect("a number")
    };
    assert_eq!((count("/a"), count("/a/b"), count("/a.x"), count("/")), (3, 1, 0, 8));
}

#[test]
fn what_is_no_request_gets_zookeeper_s_own_error() {
    let mut world = World::new();
    let at = world.open(1);
    assert_eq!(
        world.ill(at, opcode::CREATE, Bytes::from_static(b"\0\0\0\x05/a")),
        Code::MarshallingError.number()
    );
    assert_eq!(world.ill(at, opcode::CREATE, create("/a", "", 99)), Code::BadArguments.number());
    assert_eq!(world.ill(at, 4711, Bytes::new()), Code::Unimplemented.number());
    assert_eq!(world.ill(at, opcode::RECONFIG, Bytes::new()), Code::MarshallingError.number());
    let negative = Bytes::from_static(b"\xff\xff\xff\xfe");
    assert_eq!(world.ill(at, opcode::EXISTS, negative), Code::MarshallingError.number());
    assert_eq!(world.ill(at, opcode::EXISTS, watching("a", false)), Code::BadArguments.number());
}

/// In a request -1 stands for any version: a node that had it could not be asked for.
#[test]
fn no_node_has_a_version_that_stands_for_any() {
    let mut world = World::new();
    let at = world.open(1);
    world.create(at, "/a", "", 0);
    let mut state = troth_exec::State::new(&mut world.map);
    let mut changes = crate::store::Changes::over(&mut state);
    let mut node = crate::tree::find(&mut changes, "/a").expect("it is there");
    (node.version, node.acl_version) = (-3, -2);
    changes.put_entry(&crate::keys::node("/a"), &node);
    changes.apply();
    for (before, after) in [(-3, -2), (-2, 0), (0, 1)] {
        world.well(at, opcode::SET_DATA, set("/a", "x", before));
        assert_eq!(world.stat(at, "/a").expect("it is there").version, after);
    }
    let mut out = Output::new();
    out.text("/a");
    put_acl(&mut out, &all());
    out.int(-2);
    world.well(at, opcode::SET_ACL, out.finish());
    assert_eq!(world.stat(at, "/a").expect("it is there").acl_version, 0);
}
