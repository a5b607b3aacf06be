//! Quotas, as ZooKeeper's command line sets them.

use super::support::{Stat, World, create, put_acl, set, versioned};
use crate::jute::{Input, Output};
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
fn a_transaction_that_begins_a_quota_counts_what_it_made_and_removed_before() {
    let mut world = World::new();
    let at = world.open(1);
    for path in ["/a", "/a/b", "/zookeeper/quota/a"] {
        world.create(at, path, "1234", 0);
    }
    let mut out = Output::new();
    for (path, data) in [
        ("/a/c", "12"),
        ("/zookeeper/quota/a/zookeeper_limits", "count=9,bytes=-1"),
        ("/zookeeper/quota/a/zookeeper_stats", "count=0,bytes=0"),
    ] {
        if path.ends_with("limits") {
            out.int(opcode::DELETE).boolean(false).int(-1).text("/a/b").int(-1);
        }
        out.int(opcode::CREATE).boolean(false).int(-1).text(path).text(data);
        put_acl(&mut out, &super::support::world());
        out.int(0);
    }
    out.int(-1).boolean(true).int(-1);
    world.well(at, opcode::MULTI, out.finish());
    assert_eq!(used(&mut world, at), "count=2,bytes=6");
}

#[test]
fn what_is_counted_leaves_nothing_behind_of_what_stood_in_its_place() {
    let mut world = World::new();
    let at = with_quota(&mut world, "count=9,bytes=-1");
    let stats = "/zookeeper/quota/a/zookeeper_stats";
    world.well(at, opcode::DELETE, versioned(stats, -1));
    let long = "x".repeat(5_000);
    world.create(at, stats, &long, 0);
    assert_eq!((used(&mut world, at).as_str(), world.entries(b'd')), ("count=2,bytes=5", 0));
    world.well(at, opcode::SET_DATA, set(stats, &long, -1));
    assert_eq!(world.entries(b'd'), 1);
    world.create(at, "/a/c", "", 0);
    assert_eq!(world.entries(b'd'), 0);
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

#[test]
fn data_set_where_a_quota_counts_itself_have_the_length_that_the_answer_says() {
    let mut world = World::new();
    let at = world.open(1);
    let own = "/zookeeper/quota/zookeeper";
    world.create(at, own, "", 0);
    world.create(at, &format!("{own}/zookeeper_limits"), "count=9,bytes=-1", 0);
    world.create(at, &format!("{own}/zookeeper_stats"), "count=0,bytes=0", 0);
    let stats = format!("{own}/zookeeper_stats");
    let answer = world.well(at, opcode::SET_DATA, set(&stats, "count=0,bytes=0", -1));
    let (data, stat) = world.get(at, &stats).expect("stats");
    assert_ne!(data, "count=0,bytes=0", "it counts what was set");
    assert_eq!(Stat::read(&mut Input::new(&answer)), stat, "the answer is of the node as it is now");
}
