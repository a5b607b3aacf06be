//! Any order of requests, executions, events and answers: what each client is shown is the group's history, forwards.

use super::support::{Client, Packet, World, create, data, get, open_settings, ping, request, set};
use crate::{Consistency, Settings};
use proptest::prelude::*;
use std::collections::BTreeMap;
use troth_types::Limits;
use troth_zookeeper::opcode;

const NODES: [&str; 2] = ["/a", "/b"];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Asked {
    Set(usize),
    Get(usize),
    Watch(usize),
}

#[derive(Clone, Copy, Debug)]
enum Step {
    /// Of which client, and whether more comes in the same burst.
    Ask(usize, Asked, bool),
    Ping(usize),
    Execute(usize),
    Answer(usize),
    Hear(usize),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let asked = (0..3u8, 0..NODES.len()).prop_map(|(what, node)| match what {
        0 => Asked::Set(node),
        1 => Asked::Get(node),
        _ => Asked::Watch(node),
    });
    let step = prop_oneof![
        6 => (0..3usize, asked, any::<bool>()).prop_map(|(client, asked, more)| Step::Ask(client, asked, more)),
        1 => (0..3usize).prop_map(Step::Ping),
        5 => any::<usize>().prop_map(Step::Execute),
        4 => any::<usize>().prop_map(Step::Answer),
        2 => (0..2usize).prop_map(Step::Hear),
    ];
    prop::collection::vec(step, 1..160)
}

struct Seen {
    client: Client,
    asked: Vec<Asked>,
    burst: Vec<bytes::Bytes>,
}

impl Seen {
    fn value(&self, number: usize) -> String {
        format!("{:?} {number}", self.client)
    }

    fn ask(&mut self, asked: Asked) {
        let xid = i32::try_from(self.asked.len()).expect("few");
        let packet = match asked {
            Asked::Set(node) => {
                request(xid, opcode::SET_DATA, &set(NODES[node], &self.value(self.asked.len())))
            }
            Asked::Get(node) => request(xid, opcode::GET_DATA, &get(NODES[node], false)),
            Asked::Watch(node) => request(xid, opcode::GET_DATA, &get(NODES[node], true)),
        };
        self.asked.push(asked);
        self.burst.push(packet);
    }
}

/// The transactions that set each node, with what they set.
type History = Vec<BTreeMap<i64, String>>;

fn history(world: &World, all: &[Seen]) -> History {
    let mut history = vec![BTreeMap::new(); NODES.len()];
    for seen in all {
        for packet in world.packets(seen.client) {
            if let Packet::Reply { xid: xid @ 0.., zxid, .. } = packet {
                let number = usize::try_from(*xid).expect("a number");
                if let Asked::Set(node) = seen.asked[number] {
                    let before = history[node].insert(*zxid, seen.value(number));
                    assert_eq!(before, None, "a transaction is one client's");
                }
            }
        }
    }
    history
}

/// What one client was shown.
fn check(world: &World, seen: &Seen, history: &History) {
    let mut next = 0;
    // Of all packets, and of replies.
    let (mut last, mut replied) = (0, 0);
    let mut armed: [Option<i64>; NODES.len()] = [None; NODES.len()];
    for packet in world.packets(seen.client) {
        match packet {
            Packet::Reply { xid: -2, zxid, .. } => assert_eq!(*zxid, last, "a ping shows what was shown"),
            Packet::Reply { xid, zxid, error, body } => {
                assert_eq!((*xid, *error), (next, 0), "replies come in the order of the requests");
                assert!(*zxid >= last, "from {last} back to {zxid}");
                for (node, since) in armed.iter().enumerate() {
                    let missed = since
                        .and_then(|since| history[node].range(since..=*zxid).find(|(at, _)| **at > since));
                    assert_eq!(missed, None, "the reply reveals a change that the client was not told of");
                }
                let asked = seen.asked[usize::try_from(next).expect("a number")];
                if let Asked::Get(node) | Asked::Watch(node) = asked {
                    let then = history[node].range(..=*zxid).next_back();
                    assert_eq!(data(body), then.map_or("", |(_, value)| value), "what was there at {zxid}");
                }
                if matches!(asked, Asked::Set(_)) {
                    assert!(*zxid > replied, "nothing before it has seen it");
                }
                if let Asked::Watch(node) = asked {
                    armed[node].get_or_insert(*zxid);
                }
                (next, last, replied) = (next + 1, *zxid, *zxid);
            }
            Packet::Event { zxid, kind, path } => {
                let node = NODES.iter().position(|node| node == path).expect("a node");
                let since = armed[node].take().expect("an event of a watch that the client knows of");
                let first = history[node].range(since + 1..).next().map(|(zxid, _)| *zxid);
                assert_eq!((*kind, Some(*zxid)), (3, first), "the first change since the watch");
                last = last.max(*zxid);
            }
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(usize::try_from(next).expect("a number"), seen.asked.len(), "everything is answered");
    for (node, since) in armed.iter().enumerate() {
        let missed = since.and_then(|since| history[node].range(since + 1..).next());
        assert_eq!(missed, None, "a watched change of which the client was never told");
    }
    assert_eq!(world.closed(seen.client), None);
}

fn run(steps: Vec<Step>, frame_operations: usize, consistency: Consistency) {
    let limits = Limits { frame_operations, ..Limits::DEFAULT };
    let mut world = World::of(2, &Settings { limits, consistency, ..open_settings() });
    let first = world.open(0);
    for (number, node) in (1..).zip(NODES) {
        world.ask(first, number, opcode::CREATE, &create(node, "", 0));
    }
    let clients = [0, 0, 1].map(|gateway| world.open(gateway));
    let mut all = clients.map(|client| Seen { client, asked: Vec::new(), burst: Vec::new() });
    for step in steps {
        match step {
            Step::Ask(client, asked, more) => {
                all[client].ask(asked);
                if !more {
                    let burst = std::mem::take(&mut all[client].burst);
                    world.burst(all[client].client, burst);
                }
            }
            Step::Ping(client) => world.packet(all[client].client, ping()),
            Step::Execute(which) => {
                let waiting: Vec<usize> =
                    (0..world.calls.len()).filter(|at| world.calls[*at].answer.is_none()).collect();
                if !waiting.is_empty() {
                    // What remains says how far behind a read is that may be.
                    world.execute_behind(waiting[which % waiting.len()], which / waiting.len() % 8);
                }
            }
            Step::Answer(which) => {
                let executed: Vec<usize> =
                    (0..world.calls.len()).filter(|at| world.calls[*at].answer.is_some()).collect();
                if !executed.is_empty() {
                    world.answer(executed[which % executed.len()]);
                }
            }
            Step::Hear(gateway) => {
                world.hear(gateway);
            }
        }
    }
    for seen in &mut all {
        let burst = std::mem::take(&mut seen.burst);
        world.burst(seen.client, burst);
    }
    world.settle();
    let history = history(&world, &all);
    all.iter().for_each(|seen| check(&world, seen, &history));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, ..ProptestConfig::default() })]

    #[test]
    fn each_client_is_shown_the_groups_history_forwards(steps in steps(), frame_operations in 1..6usize) {
        run(steps, frame_operations, Consistency::Linearizable);
    }

    #[test]
    fn so_is_one_whose_reads_may_be_behind(steps in steps(), frame_operations in 1..6usize) {
        run(steps, frame_operations, Consistency::Sequential);
    }
}
