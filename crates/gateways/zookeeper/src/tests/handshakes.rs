//! How clients come to their sessions.

use super::marks::covers;
use super::support::{PASSWORD, Packet, World, create, get, hello, open_settings, ping, record, request};
use crate::Settings;
use bytes::Bytes;
use troth_client::ClientError;
use troth_types::Wire;
use troth_zookeeper::{Answer, Code, opcode};

const REFUSED: Packet =
    Packet::Connected { timeout: 0, session: 0, password: [0; 16], read_only: Some(false) };

#[test]
fn a_client_is_given_a_session_and_its_password() {
    covers!("ZKG-S1");
    let mut world = World::new();
    let client = world.connect(0);
    world.packet(client, hello(0, 10_000, 0, &[0; 16]));
    assert!(world.packets(client).is_empty(), "not before the group has said so");
    world.settle();
    let session = world.session(client);
    assert!(session != 0);
    let expected = Packet::Connected { timeout: 10_000, session, password: PASSWORD, read_only: Some(false) };
    assert_eq!(world.packets(client), [expected]);
    // An old client, which does not say whether it would take less than a session, is not told either.
    let old = world.connect(0);
    let packet = hello(0, 10_000, 0, &[0; 16]);
    world.packet(old, packet.slice(..packet.len() - 1));
    world.settle();
    assert!(matches!(world.packets(old), [Packet::Connected { read_only: None, .. }]));
}

#[test]
fn what_comes_before_the_session_is_there_waits() {
    let mut world = World::new();
    let client = world.connect(0);
    let early = vec![
        hello(0, 10_000, 0, &[]),
        request(1, opcode::CREATE, &create("/a", "", 0)),
        ping(),
        request(2, opcode::EXISTS, &get("/a", false)),
    ];
    world.burst(client, early);
    world.settle();
    let told = world.take(client);
    assert!(matches!(told[0], Packet::Connected { .. }));
    let xids: Vec<i32> = told[1..]
        .iter()
        .map(|packet| match packet {
            Packet::Reply { xid, error: 0, .. } => *xid,
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(xids, [-2, 1, 2]);
    assert_eq!(world.told[&client].done, 4);
}

#[test]
fn a_session_is_found_again_through_another_gateway() {
    covers!("ZKG-S4");
    let mut world = World::of(2, &super::support::open_settings());
    let client = world.connect(0);
    world.packet(client, hello(0, 10_000, 0, &[]));
    world.settle();
    let session = world.session(client);
    world.send(client, 1, opcode::CREATE, &create("/e", "", 1));
    world.settle();
    let moved = world.connect(1);
    world.packet(moved, hello(0, 10_000, session, &PASSWORD));
    world.settle();
    assert_eq!(world.session(moved), session);
    assert_eq!(world.closed(client), Some(true), "its former connection is over");
    assert_eq!(world.ask(moved, 1, opcode::EXISTS, &get("/e", false)).0, 0);
    // Back, and through the same gateway again.
    for _ in 0..2 {
        let back = world.connect(0);
        world.packet(back, hello(0, 10_000, session, &PASSWORD));
        world.settle();
        assert_eq!((world.session(back), world.closed(back)), (session, None));
    }
    assert_eq!(world.gateways.iter().map(crate::Machine::connections).sum::<usize>(), 1);
}

/// What a replica sees of a session is of no use to whoever colludes with it.
#[test]
fn no_replica_is_shown_a_password_or_a_proof_of_use_to_others() {
    covers!("ZKG-S7");
    let mut world = World::of(2, &super::support::open_settings());
    let shown = |world: &World| {
        let all = world.calls.iter().flat_map(|call| &call.operations);
        all.map(|operation| operation.to_vec()).collect::<Vec<_>>()
    };
    let client = world.connect(0);
    world.packet(client, hello(0, 10_000, 0, &[]));
    let opening = shown(&world);
    world.settle();
    let session = world.session(client);
    let moved = world.connect(1);
    world.packet(moved, hello(0, 10_000, session, &PASSWORD));
    let attaching = shown(&world);
    assert_eq!((opening.len(), attaching.len()), (1, 1));
    for operation in opening.iter().chain(&attaching) {
        assert!(!operation.windows(PASSWORD.len()).any(|part| part == PASSWORD));
    }
    // The same of another gateway does nothing.
    world.calls[0].gateway = 0;
    world.execute(0);
    let (results, _) = world.calls[0].answer.clone().expect("it is executed");
    let expired = Code::SessionExpired.number();
    let answer = Answer::from_wire(&results[0]).expect("an answer");
    assert!(matches!(answer, Answer::Reply { error, .. } if error == expired), "{answer:?}");
    assert_eq!(world.closed(client), None);
}

#[test]
fn who_has_no_session_there_is_told_so_and_closed() {
    covers!("ZKG-S3");
    let mut world = World::new();
    let client = world.connect(0);
    world.packet(client, hello(0, 10_000, 0, &[]));
    world.settle();
    let session = world.session(client);
    for (session, password) in
        [(session, &[9; 16][..]), (session + 1, &PASSWORD), (session, &PASSWORD[..15]), (session, &[])]
    {
        let other = world.connect(0);
        world.packet(other, hello(0, 10_000, session, password));
        world.settle();
        assert_eq!(world.packets(other), [REFUSED]);
        assert_eq!(world.closed(other), Some(true));
    }
    assert_eq!(world.closed(client), None);
}

#[test]
fn that_a_session_is_over_is_said_by_the_group_alone() {
    covers!("ZKG-S3");
    let mut world = World::new();
    let failures = [
        ClientError::TimedOut,
        ClientError::Unsent,
        ClientError::TooOld,
        ClientError::TooLarge,
        ClientError::Closed { sent: false },
    ];
    for error in failures {
        let client = world.connect(0);
        world.packet(client, hello(0, 10_000, 77, &PASSWORD));
        world.fail(0, error);
        assert!(world.packets(client).is_empty() && world.closed(client).is_some());
    }
    // Nor is it over because this gateway has too many.
    world.service.sessions = 0;
    let client = world.connect(0);
    world.packet(client, hello(0, 10_000, 0, &[]));
    world.settle();
    assert!(world.packets(client).is_empty() && world.closed(client).is_some());
}

#[test]
fn who_has_seen_what_the_group_has_not_is_closed_without_a_word() {
    covers!("ZKG-S2");
    let mut world = World::of(2, &super::support::open_settings());
    let client = world.open(0);
    assert_eq!(world.ask(client, 1, opcode::CREATE, &create("/a", "", 0)).0, 0);
    // The session's beginning was a transaction, and the node's is the second.
    for (seen, comes) in [(3, false), (i64::MAX, false), (2, true)] {
        let other = world.connect(1);
        world.packet(other, hello(seen, 10_000, 0, &[]));
        world.settle();
        assert_eq!(world.closed(other).is_none(), comes, "who has seen {seen}");
        assert_eq!(world.packets(other).is_empty(), !comes);
    }
    // Nobody who could say how far the group is answers.
    let other = world.connect(1);
    world.packet(other, hello(99, 10_000, 0, &[]));
    world.fail(0, ClientError::TimedOut);
    assert!(world.packets(other).is_empty() && world.closed(other).is_some());
}

#[test]
fn a_first_packet_that_is_none_closes() {
    let mut world = World::new();
    for packet in [
        Bytes::new(),
        Bytes::from_static(&[0; 20]),
        record(|out| {
            out.int(0).long(0).int(0).long(0).int(-2);
        }),
    ] {
        let client = world.connect(0);
        world.packet(client, packet);
        assert!(world.calls.is_empty() && world.closed(client).is_some());
    }
}

#[test]
fn connections_have_bounds_in_all_and_for_each_address() {
    covers!("ZKG-B3");
    let settings = Settings { connections: 5, connections_per_address: 2, ..Settings::default() };
    let mut world = World::of(1, &settings);
    let a: Vec<_> = (0..3).map(|_| world.connect_from(0, "10.0.0.1:1")).collect();
    assert_eq!(a.iter().map(|client| world.closed(*client)).collect::<Vec<_>>(), [None, None, Some(false)]);
    // The same address in other words.
    let mapped = world.connect_from(0, "[::ffff:10.0.0.1]:1");
    assert_eq!(world.closed(mapped), Some(false));
    let b: Vec<_> = ["10.0.0.2:1", "10.0.0.2:2", "10.0.0.3:1", "10.0.0.4:1"]
        .map(|address| world.connect_from(0, address))
        .into();
    assert_eq!(
        b.iter().map(|client| world.closed(*client)).collect::<Vec<_>>(),
        [None, None, None, Some(false)]
    );
    world.gone(a[0]);
    let again = world.connect_from(0, "10.0.0.1:9");
    assert_eq!(world.closed(again), None);
    assert_eq!(world.gateways[0].connections(), 5);
}

#[test]
fn who_it_is_the_group_is_told() {
    let mut world = World::new();
    let client = world.open(0);
    let (_, body) = world.ask(client, 1, opcode::WHO_AM_I, &Bytes::new());
    let mut input = troth_zookeeper::jute::Input::new(&body);
    assert_eq!(input.int(), Ok(1));
    assert_eq!(input.text(), Ok(Some("ip".to_owned())));
    assert_eq!(input.text(), Ok(Some("127.0.0.1".to_owned())));
    assert_eq!(world.ask(client, 2, opcode::GET_DATA, &get("/none", false)).0, Code::NoNode.number());
}

/// Who connects and goes, again and again, has no more sessions asked for than it may have connections, and none that is
/// left over.
#[test]
fn who_is_gone_keeps_its_place_until_the_group_has_answered() {
    covers!("ZKG-S5");
    let mut world = World::of(1, &Settings { connections_per_address: 3, ..open_settings() });
    for _ in 0..10 {
        let client = world.connect(0);
        if world.closed(client).is_none() {
            world.packet(client, hello(0, 10_000, 0, &[]));
            world.gone(client);
        }
    }
    assert_eq!(world.calls.len(), 3, "so many are asked for");
    world.settle();
    assert_eq!(world.sessions(), 0, "and closed again");
    let client = world.connect(0);
    assert_eq!(world.closed(client), None, "their places are free");
    world.packet(client, hello(0, 10_000, 0, &[]));
    world.settle();
    let (session, entries) = (world.session(client), world.sessions());
    // A session that was there before stays: its client may come to another gateway.
    let again = world.connect(0);
    world.packet(again, hello(0, 10_000, session, &PASSWORD));
    world.gone(again);
    world.settle();
    assert_eq!(world.sessions(), entries);
    assert_eq!(world.closed(client), Some(true), "it is attached elsewhere");
}

/// Ends of attachments are remembered only of sessions that are on their way here.
#[test]
fn one_client_that_attaches_its_session_again_and_again_costs_nobody_his_connection() {
    covers!("ZKG-S4");
    let mut world = World::new();
    let (client, honest) = (world.connect(0), world.open(0));
    world.packet(client, hello(0, 10_000, 0, &[]));
    world.settle();
    let session = world.session(client);
    // There is always a call under way that attaches it, and the one before is over.
    let mut last = client;
    for _ in 0..5_000 {
        let next = world.connect(0);
        world.packet(next, hello(0, 10_000, session, &PASSWORD));
        world.gone(last);
        if world.calls.len() > 1 {
            world.execute(0);
            world.answer(0);
        }
        last = next;
    }
    assert_eq!(world.closed(honest), None);
    world.settle();
    assert_eq!((world.closed(honest), world.closed(last)), (None, None));
}
