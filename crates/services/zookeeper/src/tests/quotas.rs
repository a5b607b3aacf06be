//! Quotas, as ZooKeeper's command line sets them.

use super::support::{World, create, set, versioned};
use crate::{Code, ZooKeeper, opcode};

fn with_quota(world: &mut World, limits: &str) -> crate::Attachment {
    let at = world.open(1);
    world.create(at, "/a", "four", 0);
    world.create(at, "/a/b", "x", 0);
    world.create(at, "/zookeeper/quota/a", "", 0);
    world.create(at, "/zookeeper/quota/a/zookeeper_limits", limits, 0);
    world.create(at, "/zookeeper/quota/a/zookeeper_stats", "count=0,bytes=0", 0);
    at
}

fn used(world: &mut World, at: crate::Attachment) -> String {
    let (data, _) = world.get(at, "/zookeeper/quota/a/zookeeper_stats").expect("stats");
    String::from_utf8(data.to_vec()).expect("a text")
}

#[test]
fn what_is_below_a_quota_is_counted() {
    let mut world = World::new();
    let at = with_quota(&mut world, "count=1,bytes=1");
    assert_eq!(used(&mut world, at), "count=2,bytes=5");
    world.create(at, "/a/b/c", "12345", 0);
    world.well(at, opcode::SET_DATA, set("/a", "", -1));
    assert_eq!(used(&mut world, at), "count=3,bytes=6");
    world.well(at, opcode::DELETE, versioned("/a/b/c", -1));
    world.create(at, "/ab", "12345", 0);
    assert_eq!(used(&mut world, at), "count=2,bytes=1");
    world.well(at, opcode::DELETE, versioned("/zookeeper/quota/a/zookeeper_limits", -1));
    world.create(at, "/a/d", "", 0);
    assert_eq!(used(&mut world, at), "count=2,bytes=1", "there is no quota any more");
}

#[test]
fn hard_limits_hold_where_they_are_enforced() {
    let mut world = World::of(ZooKeeper { enforces_quotas: true, ..ZooKeeper::default() });
    let at = with_quota(&mut world, "count=1,bytes=1=;byteHardLimit=10;countHardLimit=3");
    world.create(at, "/a/c", "123", 0);
    let over = Code::QuotaExceeded.number();
    assert_eq!(world.ill(at, opcode::CREATE, create("/a/d", "", 0)), over);
    assert_eq!(world.ill(at, opcode::SET_DATA, set("/a/c", "123456", -1)), over);
    world.well(at, opcode::SET_DATA, set("/a/c", "12345", -1));
    world.well(at, opcode::SET_DATA, set("/a/c", "1", -1));
    // Nobody else is held to it, nor is anybody where quotas are only counted.
    world.create(at, "/ab", "12345678901", 0);
    let mut world = World::new();
    let at = with_quota(&mut world, "count=1,bytes=1=;byteHardLimit=10;countHardLimit=3");
    for name in ["/a/c", "/a/d", "/a/e"] {
        world.create(at, name, "12345", 0);
    }
}
