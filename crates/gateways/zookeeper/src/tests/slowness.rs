//! The lines of requests that took long.

use super::support::{Client, World, create, get, open_settings};
use crate::{Log, Place, Record, Settings};
use core::time::Duration;
use serde_json::{Value, json};
use troth_client::{Course, Way};
use troth_types::ReplicaId;
use troth_zookeeper::opcode;

fn opened() -> (World, Client) {
    let slow = Some((Duration::from_millis(50), Log::at(Place::Stdout)));
    let mut world = World::of(1, &Settings { slow, ..open_settings() });
    let client = world.open(0);
    assert!(world.lines.is_empty(), "a session is no request");
    (world, client)
}

fn lines(world: &mut World) -> Vec<Value> {
    let text = |line: Record| match line {
        Record::Slow(text) => text,
        other => panic!("of another log: {other:?}"),
    };
    let all: Vec<String> = std::mem::take(&mut world.lines).into_iter().map(text).collect();
    all.iter().map(|line| serde_json::from_str(line).expect("JSON")).collect()
}

#[test]
fn a_slow_request_says_where_its_time_went_and_a_quick_one_nothing() {
    let (mut world, client) = opened();
    world.send(client, 1, opcode::CREATE, &create("/a\n", "", 0));
    world.now += 49_999;
    world.settle();
    assert!(lines(&mut world).is_empty());

    // It waits for the one before it, then for the group.
    world.send(client, 2, opcode::CREATE, &create("/a", "", 0));
    world.send(client, 3, opcode::SET_DATA, &super::support::set("/a\n", ""));
    world.now += 30_000;
    world.execute(0);
    world.answer(0);
    world.now += 21_000;
    let late = vec![ReplicaId(2)];
    let course = Course { way: Way::Ordered, tried: 0, queued: 1_000, first: 15_000, matching: 5_000, late };
    world.execute(0);
    world.answer_on(0, &course);
    let told = lines(&mut world);
    assert_eq!(told.len(), 1);
    let mut line = told[0].clone();
    assert!(line["session"].as_str().is_some_and(|session| session.starts_with("0x")));
    line.as_object_mut().expect("an object").remove("session");
    let expected = json!({
        "time": "2023-11-14T22:13:20.100999Z",
        "client": "127.0.0.1:4000",
        "xid": 3,
        "operation": "setData",
        "path": "/a\n",
        "way": "write",
        "error": -8,
        "total_us": 51_000,
        "gateway_queue_us": 30_000,
        "fast_read_us": 0,
        "client_queue_us": 1_000,
        "first_reply_us": 15_000,
        "matching_replies_us": 5_000,
        "earlier_replies_us": 0,
        "late_replicas": [2],
    });
    assert_eq!(line, expected);
}

#[test]
fn a_reply_that_waits_for_an_earlier_one_and_a_read_that_falls_back_are_told_apart() {
    let (mut world, client) = opened();
    world.send(client, 1, opcode::EXISTS, &get("/", false));
    world.send(client, 2, opcode::EXISTS, &get("/", false));
    world.execute(1);
    world.answer_on(1, &Course { way: Way::Fast, ..Course::default() });
    world.now += 60_000;
    world.execute(0);
    world.answer_on(0, &Course { way: Way::FellBack, tried: 20_000, ..Course::default() });
    let told = lines(&mut world);
    let of = |line: &Value| {
        (
            line["way"].as_str().map(str::to_owned),
            line["fast_read_us"].as_u64(),
            line["earlier_replies_us"].as_u64(),
        )
    };
    let expected = [("read_fell_back", 20_000, 0), ("read_fast", 0, 60_000)];
    let expected = expected.map(|(way, tried, earlier)| (Some(way.to_owned()), Some(tried), Some(earlier)));
    assert_eq!(told.iter().map(of).collect::<Vec<_>>(), expected);
}

#[test]
fn where_everything_is_slow_some_lines_tell_of_all() {
    let (mut world, client) = opened();
    for xid in 0..25 {
        world.send(client, xid, opcode::EXISTS, &get("/", false));
    }
    world.now += 60_000;
    world.settle();
    assert_eq!(lines(&mut world).len(), 10);
    world.send(client, 25, opcode::EXISTS, &get("/", false));
    world.now += 1_000_000;
    world.settle();
    let told = lines(&mut world);
    assert_eq!((told.len(), &told[0]["untold_before"]), (1, &json!(15)));
    let (measures, _) = world.gateways[0].measured(world.time());
    assert_eq!((measures.slow, measures.slow_untold), (26, 15));
}
