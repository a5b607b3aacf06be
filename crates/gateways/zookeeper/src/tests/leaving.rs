//! Clients that go before they were answered: what they asked for is done.

use super::marks::covers;
use super::support::{Client, PASSWORD, World, create, get, hello, open_settings, ping, request, set};
use crate::Settings;
use bytes::Bytes;
use proptest::prelude::*;
use troth_client::ClientError;
use troth_zookeeper::{Code, opcode};

/// A connection with an ephemeral node, and what it sends before it goes: the first is on its way by then.
fn goes(world: &mut World) -> Client {
    let client = world.open(0);
    world.ask(client, 1, opcode::CREATE, &create("/here", "", 1));
    world.send(client, 2, opcode::CREATE, &create("/a", "", 0));
    world.burst(
        client,
        vec![
            request(3, opcode::GET_DATA, &get("/a", true)),
            request(4, opcode::CREATE, &create("/b", "", 0)),
            request(5, opcode::SET_DATA, &set("/b", "last")),
            request(6, opcode::GET_DATA, &get("/b", false)),
            request(7, opcode::CLOSE_SESSION, &Bytes::new()),
        ],
    );
    assert_eq!(world.calls.len(), 1, "the others wait");
    world.gone(client);
    client
}

#[test]
fn what_a_client_asked_for_before_it_went_is_done() {
    covers!("ZKG-S6");
    let mut world = World::new();
    let other = world.open(0);
    let sessions = world.sessions();
    let client = goes(&mut world);
    let done = world.told[&client].done;
    world.settle();
    assert_eq!(world.sessions(), sessions, "its session is closed");
    assert_eq!(world.ask(other, 1, opcode::GET_DATA, &get("/here", false)).0, Code::NoNode.number());
    let (error, body) = world.ask(other, 2, opcode::GET_DATA, &get("/b", false));
    assert_eq!((error, super::support::data(&body)), (0, "last".to_owned()));
    assert_eq!(world.gateways[0].connections(), 1, "and it is forgotten");
    // Nobody is told.
    assert_eq!(
        (world.packets(client), world.told[&client].done, world.closed(client)),
        (&[][..], done, None)
    );
}

#[test]
fn who_only_reads_and_goes_asks_the_group_for_nothing_more() {
    covers!("ZKG-S6");
    let mut world = World::new();
    let client = world.open(0);
    world.send(client, 1, opcode::CREATE, &create("/a", "", 0));
    world.burst(client, (2..9).map(|xid| request(xid, opcode::GET_DATA, &get("/a", xid % 2 == 0))).collect());
    world.gone(client);
    world.execute(0);
    world.answer(0);
    assert_eq!((world.calls.len(), world.gateways[0].connections()), (0, 0));
    // Reads that are on their way come to nothing.
    let client = world.open(0);
    world.send(client, 1, opcode::GET_DATA, &get("/a", false));
    world.send(client, 2, opcode::SET_DATA, &set("/a", "new"));
    world.gone(client);
    assert_eq!(world.calls.len(), 1);
    world.settle();
    assert_eq!(world.gateways[0].connections(), 0);
    let other = world.open(0);
    let (_, body) = world.ask(other, 1, opcode::GET_DATA, &get("/a", false));
    assert_eq!(super::support::data(&body), "new");
}

/// What is under way is done without it, and its place is free for its client, which comes again.
#[test]
fn who_has_nothing_left_to_send_is_forgotten_at_once() {
    covers!("ZKG-S6");
    let mut world = World::of(1, &Settings { connections_per_address: 2, ..open_settings() });
    let client = world.open(0);
    world.send(client, 1, opcode::CREATE, &create("/a", "", 0));
    world.gone(client);
    assert_eq!((world.calls.len(), world.gateways[0].connections()), (1, 0));
    let others = [world.connect(0), world.connect(0)];
    assert_eq!(others.map(|client| world.closed(client)), [None, None]);
    world.settle();
    world.packet(others[0], hello(0, 10_000, 0, &[]));
    world.settle();
    world.take(others[0]);
    assert_eq!(world.ask(others[0], 1, opcode::EXISTS, &get("/a", false)).0, 0);
}

/// Its session goes on without what it left.
#[test]
fn who_comes_back_before_it_is_done_ends_it() {
    covers!("ZKG-S6");
    let mut world = World::of(2, &open_settings());
    for gateway in 0..2 {
        let client = world.connect(0);
        world.packet(client, hello(0, 10_000, 0, &[]));
        world.settle();
        let session = world.session(client);
        let node = |name: &str| format!("/{name}{gateway}");
        world.send(client, 1, opcode::CREATE, &create(&node("a"), "", 0));
        world.burst(
            client,
            vec![
                request(2, opcode::CREATE, &create(&node("b"), "", 0)),
                request(3, opcode::CLOSE_SESSION, &Bytes::new()),
            ],
        );
        world.gone(client);
        let back = world.connect(gateway);
        world.packet(back, hello(0, 10_000, session, &PASSWORD));
        world.settle();
        assert_eq!((world.session(back), world.closed(back)), (session, None));
        world.take(back);
        assert_eq!(world.ask(back, 1, opcode::EXISTS, &get(&node("a"), false)).0, 0);
        assert_eq!(world.ask(back, 2, opcode::EXISTS, &get(&node("b"), false)).0, Code::NoNode.number());
        world.pass(1_000);
        world.packet(back, ping());
        assert_eq!(world.closed(back), None);
    }
    assert_eq!(world.gateways[0].connections(), 1);
}

#[test]
fn what_is_left_of_a_client_is_bounded_as_all_others_and_in_time() {
    covers!("ZKG-S6");
    covers!("ZKG-B5");
    // Its time-out is ten seconds, and the group does not answer.
    let mut world = World::new();
    goes(&mut world);
    for _ in 0..19 {
        world.now += 500_000;
        world.tick();
        assert_eq!((world.calls.len(), world.gateways[0].connections()), (1, 1), "no sign of life is given");
    }
    world.now += 1_000_000;
    world.tick();
    assert_eq!(world.gateways[0].connections(), 0);
    world.settle();
    // It counts among the connections of its address until then.
    let mut world = World::of(1, &Settings { connections_per_address: 2, ..open_settings() });
    goes(&mut world);
    let [next, more] = [world.connect(0), world.connect(0)];
    assert_eq!([next, more].map(|client| world.closed(client)), [None, Some(false)]);
    // A call that fails ends it.
    world.fail(0, ClientError::TimedOut);
    assert_eq!((world.calls.len(), world.gateways[0].connections()), (0, 1));
    // So do its bytes, where all hold too much and it the most.
    let mut world = World::of(1, &Settings { memory_bytes: 100_000, ..open_settings() });
    let [client, other] = [world.open(0), world.open(0)];
    for client in [client, other] {
        world.written(client, usize::MAX);
    }
    let packet = |bytes: usize| request(1, opcode::SET_DATA, &Bytes::from(vec![0; bytes]));
    world.packet(client, packet(40_000));
    world.packet(client, packet(10_000));
    world.gone(client);
    world.packet(other, packet(30_000));
    assert_eq!(world.gateways[0].connections(), 2);
    world.packet(other, packet(19_990));
    assert_eq!((world.gateways[0].connections(), world.closed(other)), (1, None), "who holds most");
}

#[derive(Clone, Copy, Debug)]
enum Step {
    /// Which client writes, reads, or reads and watches; and whether more comes in the same burst.
    Ask(usize, u8, bool),
    Execute(usize),
    Answer(usize),
    Hear,
    Go(usize),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        8 => (0..3usize, 0..3u8, any::<bool>()).prop_map(|(client, what, more)| Step::Ask(client, what, more)),
        3 => any::<usize>().prop_map(Step::Execute),
        3 => any::<usize>().prop_map(Step::Answer),
        1 => Just(Step::Hear),
        1 => (0..3usize).prop_map(Step::Go),
    ];
    prop::collection::vec(step, 1..100)
}

/// Whenever three clients go, the last that each wrote before is there in the end.
fn run(steps: Vec<Step>) {
    let mut world = World::new();
    let clients = [0, 1, 2].map(|_| world.open(0));
    let path = |client: usize| format!("/{client}");
    for (number, client) in clients.iter().enumerate() {
        world.ask(*client, 0, opcode::CREATE, &create(&path(number), "", 0));
    }
    let (mut sent, mut written) = ([(); 3].map(|()| (Vec::new(), false)), [0; 3]);
    let mut xid = 0;
    let of = |world: &World, executed: bool| -> Vec<usize> {
        (0..world.calls.len()).filter(|at| world.calls[*at].answer.is_some() == executed).collect()
    };
    for step in steps.into_iter().chain([0, 1, 2].map(Step::Go)) {
        match step {
            Step::Ask(client, what, more) if !sent[client].1 => {
                xid += 1;
                sent[client].0.push(match what {
                    0 => {
                        written[client] = xid;
                        request(xid, opcode::SET_DATA, &set(&path(client), &xid.to_string()))
                    }
                    what => request(xid, opcode::GET_DATA, &get(&path(xid as usize % 3), what == 2)),
                });
                if !more {
                    let burst = std::mem::take(&mut sent[client].0);
                    world.burst(clients[client], burst);
                }
            }
            Step::Execute(which) => {
                let waiting = of(&world, false);
                if !waiting.is_empty() {
                    world.execute(waiting[which % waiting.len()]);
                }
            }
            Step::Answer(which) => {
                let executed = of(&world, true);
                if !executed.is_empty() {
                    world.answer(executed[which % executed.len()]);
                }
            }
            Step::Hear => drop(world.hear(0)),
            Step::Go(client) if !sent[client].1 => {
                let burst = std::mem::take(&mut sent[client].0);
                world.burst(clients[client], burst);
                world.gone(clients[client]);
                sent[client].1 = true;
            }
            Step::Ask(..) | Step::Go(_) => {}
        }
        // What is counted as it comes and goes is held against what there is.
        let _ = world.gateways[0].measured(world.time());
    }
    world.settle();
    assert_eq!(world.gateways[0].connections(), 0, "all are forgotten");
    assert_eq!(world.gateways[0].measured(world.time()).1.outstanding, 0);
    let other = world.open(0);
    for (number, last) in written.into_iter().enumerate() {
        let (_, body) = world.ask(other, 1, opcode::GET_DATA, &get(&path(number), false));
        let expected = if last == 0 { String::new() } else { last.to_string() };
        assert_eq!(super::support::data(&body), expected);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, ..ProptestConfig::default() })]

    #[test]
    fn whenever_a_client_goes_all_that_it_wrote_before_is_there(steps in steps()) {
        run(steps);
    }
}
