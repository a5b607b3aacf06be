//! What a client may make a gateway hold.

use super::marks::covers;
use super::support::{PASSWORD, Packet, World, create, get, hello, open_settings, ping, request};
use crate::{Frame, Frames, Settings, TooLong};
use bytes::{BufMut, Bytes};
use troth_zookeeper::opcode;

#[test]
fn packets_are_cut_out_of_the_stream() {
    let mut frames = Frames::new(10);
    assert_eq!(frames.take_next(), Ok(None));
    frames.buffer().put_slice(&[0, 0, 0]);
    assert_eq!(frames.take_next(), Ok(None));
    frames.buffer().put_slice(&[3, 1, 2, 3, 0, 0, 0, 0, 0, 0, 0, 10, 9]);
    assert_eq!(frames.take_next(), Ok(Some(Frame::Packet(Bytes::from_static(&[1, 2, 3])))));
    assert_eq!(frames.take_next(), Ok(Some(Frame::Packet(Bytes::new()))));
    assert_eq!(frames.take_next(), Ok(None));
    frames.buffer().put_slice(&[9; 9]);
    assert_eq!(frames.take_next(), Ok(Some(Frame::Packet(Bytes::from_static(&[9; 10])))));
}

#[test]
fn a_length_that_no_packet_has_is_refused_before_the_packet_is_there() {
    covers!("ZKG-B1");
    for length in [11, i32::MAX, -1, i32::MIN, 0x0fff_4fff] {
        let mut frames = Frames::new(10);
        frames.buffer().put_i32(length);
        assert_eq!(frames.take_next(), Err(TooLong), "{length}");
    }
}

#[test]
fn a_word_is_one_only_in_the_place_of_the_first_packet() {
    let mut frames = Frames::new(10);
    frames.buffer().put_slice(b"ruok\nand more");
    assert_eq!(frames.take_next(), Ok(Some(Frame::Word(*b"ruok"))));
    assert_eq!(frames.take_next(), Ok(None), "nothing behind it is read");
    let mut frames = Frames::new(10);
    frames.buffer().put_slice(&[0, 0, 0, 1, 1]);
    frames.buffer().put_slice(b"ruok");
    assert!(matches!(frames.take_next(), Ok(Some(Frame::Packet(_)))));
    assert_eq!(frames.take_next(), Err(TooLong));
}

#[test]
fn a_reader_that_does_not_keep_to_the_bounds_is_cut_off() {
    covers!("ZKG-B2");
    let mut world = World::of(1, &Settings { outstanding_requests: 4, ..open_settings() });
    let client = world.open(0);
    for xid in 1..5 {
        world.send(client, xid, opcode::CREATE, &create("/a", "", 0));
    }
    assert_eq!(world.closed(client), None);
    world.send(client, 5, opcode::CREATE, &create("/a", "", 0));
    assert_eq!(world.closed(client), Some(false));
    // What is done with does not count.
    let client = world.open(0);
    for xid in 1..50 {
        world.packet(client, ping());
        world.send(client, xid, opcode::EXISTS, &get("/", false));
        world.settle();
    }
    assert_eq!((world.closed(client), world.told[&client].done), (None, 1 + 2 * 49));
    // Bytes count too.
    let settings = Settings { outstanding_bytes: 1000, packet_bytes: 900, ..open_settings() };
    let mut world = World::of(1, &settings);
    let client = world.open(0);
    let packet = request(1, opcode::SET_DATA, &Bytes::from(vec![0; 600]));
    world.packet(client, packet.clone());
    assert_eq!(world.closed(client), None);
    world.packet(client, packet);
    assert_eq!(world.closed(client), Some(false));
}

#[test]
fn what_has_come_of_a_packet_counts_before_the_packet_is_whole() {
    covers!("ZKG-B5");
    let mut world = World::of(1, &Settings { memory_bytes: 10_000, ..open_settings() });
    let clients: Vec<_> = (0..3).map(|_| world.open(0)).collect();
    for client in &clients {
        world.written(*client, usize::MAX);
    }
    world.part(clients[0], 4_000);
    world.part(clients[1], 5_000);
    assert!(clients.iter().all(|client| world.closed(*client).is_none()));
    // It came whole: it counts once.
    world.packet(clients[0], request(1, opcode::SET_DATA, &Bytes::from(vec![0; 4_000])));
    assert!(clients.iter().all(|client| world.closed(*client).is_none()));
    world.part(clients[2], 2_000);
    assert_eq!([0, 1, 2].map(|at| world.closed(clients[at])), [None, Some(false), None], "who holds most");
}

#[test]
fn what_all_connections_hold_is_bounded_together() {
    covers!("ZKG-B5");
    let mut world = World::of(1, &Settings { memory_bytes: 13_000, ..open_settings() });
    let clients: Vec<_> = (0..3).map(|_| world.open(0)).collect();
    for client in &clients {
        world.written(*client, usize::MAX);
    }
    // Requests without a reply.
    let packet = |bytes: usize| request(1, opcode::SET_DATA, &Bytes::from(vec![0; bytes]));
    for (client, bytes) in clients.iter().zip([3_000, 5_000, 2_500]) {
        world.packet(*client, packet(bytes));
    }
    assert!(clients.iter().all(|client| world.closed(*client).is_none()));
    world.packet(clients[2], packet(1_000));
    assert_eq!([0, 1, 2].map(|at| world.closed(clients[at])), [None, Some(false), None], "who holds most");
    // What is done with makes room.
    world.settle();
    world.written(clients[0], usize::MAX);
    world.packet(clients[2], packet(8_000));
    assert_eq!(world.closed(clients[0]), None);
    world.settle();
    world.written(clients[2], usize::MAX);
    // Answers that wait for the one before them, and bytes on their way.
    let (reads, other) = (world.open(0), world.open(0));
    world.ask(reads, 1, opcode::CREATE, &create("/a", &"x".repeat(3_000), 0));
    for xid in 2..7 {
        world.send(reads, xid, opcode::GET_DATA, &get("/a", false));
    }
    for at in 1..4 {
        world.execute(at);
    }
    for _ in 1..4 {
        assert_eq!(world.closed(reads), None);
        world.answer(1);
    }
    world.execute(1);
    world.answer(1);
    assert_eq!([reads, other].map(|client| world.closed(client)), [Some(false), None]);
    while world.closed(other).is_none() {
        world.packet(other, ping());
        assert!(world.packets(other).len() < 1_000, "bytes without end wait");
    }
}

#[test]
fn the_shortest_requests_count_for_what_they_take() {
    covers!("ZKG-B2");
    covers!("ZKG-B5");
    let most = |settings: Settings| {
        let mut world = World::of(1, &Settings { outstanding_requests: 1_000, ..settings });
        let client = world.open(0);
        world.written(client, usize::MAX);
        let sent = (0..1_000).take_while(|xid| {
            world.send(client, *xid, opcode::SYNC, &Bytes::new());
            world.closed(client).is_none()
        });
        sent.count()
    };
    let (packet_bytes, bytes) = (1_000, 40_000);
    assert_eq!(most(Settings { memory_bytes: bytes, ..open_settings() }), 76);
    assert_eq!(most(Settings { outstanding_bytes: bytes, packet_bytes, ..open_settings() }), 76);
}

#[test]
fn the_shortest_answers_count_for_what_they_take() {
    covers!("ZKG-B4");
    covers!("ZKG-B5");
    let most = |settings: Settings| {
        let mut world = World::of(1, &settings);
        let client = world.open(0);
        for _ in 0..1_000 {
            world.packet(client, ping());
            if world.closed(client).is_some() {
                break;
            }
        }
        world.packets(client).len()
    };
    // Twenty bytes each, and 64 for what keeps them.
    assert_eq!(most(Settings { unwritten_bytes: 20_000, ..open_settings() }), 236);
    assert_eq!(most(Settings { memory_bytes: 20_000, ..open_settings() }), 237);
    // All of it is given back when they have gone out.
    let mut world = World::of(1, &Settings { unwritten_bytes: 1_000, ..open_settings() });
    let client = world.open(0);
    world.written(client, usize::MAX);
    for _ in 0..100 {
        world.packet(client, ping());
        world.written(client, 20);
    }
    let held = world.gateways[0].measured(world.time()).1.held_bytes;
    assert_eq!((world.closed(client), held), (None, 0));
}

#[test]
fn what_comes_before_there_is_a_session_holds_no_more_than_it_counts_for() {
    covers!("ZKG-B5");
    let mut world = World::of(1, &Settings { outstanding_requests: 201, ..open_settings() });
    // As the reader cuts packets out of its buffer.
    let cut = |packet: &Bytes| {
        let whole = Bytes::from([&packet[..], &[0; 60_000]].concat());
        (whole.slice(..packet.len()), whole)
    };
    let session = {
        let client = world.connect(0);
        world.packet(client, hello(0, 10_000, 0, &[]));
        world.settle();
        world.session(client)
    };
    let client = world.connect(0);
    let (packet, whole) = cut(&hello(0, 10_000, session, &PASSWORD));
    world.packet(client, packet);
    assert!(whole.is_unique());
    // As many as may be outstanding: Java's clients over TLS do not wait for their session.
    for xid in 1..=200 {
        let (packet, whole) = cut(&request(xid, opcode::SYNC, &get("/", false)));
        world.packet(client, packet);
        assert!(whole.is_unique());
    }
    assert_eq!(world.closed(client), None);
    world.settle();
    assert_eq!((world.packets(client).len(), world.closed(client)), (201, None));
    let (packet, whole) = cut(&request(201, opcode::CREATE, &create("/a", "", 0)));
    world.packet(client, packet);
    assert!(whole.is_unique() && world.calls.len() == 1);
    // One more than that.
    let client = world.connect(0);
    let mut packets = vec![hello(0, 10_000, session, &PASSWORD)];
    packets.extend((0..201).map(|_| ping()));
    world.burst(client, packets);
    assert_eq!(world.closed(client), Some(false));
}

#[test]
fn reads_of_one_connection_are_bounded_and_so_is_its_first_packet() {
    covers!("ZKG-B5");
    let mut world = World::new();
    let client = world.open(0);
    for xid in 0..200 {
        world.send(client, xid, opcode::EXISTS, &get("/", false));
    }
    assert_eq!(world.calls.len(), 64);
    world.settle();
    assert_eq!((world.packets(client).len(), world.closed(client)), (200, None));
    let mut frames = Frames::new(10_000);
    frames.buffer().put_i32(5_000);
    assert_eq!(frames.take_next(), Err(TooLong), "before it is there");
    let mut frames = Frames::new(10_000);
    frames.buffer().put_slice(&[0, 0, 0, 1, 1, 0, 0, 19, 136]);
    assert!(matches!(frames.take_next(), Ok(Some(Frame::Packet(_)))));
    assert_eq!(frames.take_next(), Ok(None), "later ones may be longer");
    let other = world.connect(0);
    world.packet(other, super::support::hello(0, 10_000, 0, &[0; 5_000]));
    assert_eq!(world.closed(other), Some(false));
}

#[test]
fn who_does_not_read_is_closed() {
    covers!("ZKG-B4");
    let mut world = World::of(1, &Settings { unwritten_bytes: 800, ..open_settings() });
    let (reads, does_not) = (world.open(0), world.open(0));
    let mut pings = 0;
    while world.closed(does_not).is_none() {
        for client in [reads, does_not] {
            world.packet(client, ping());
        }
        world.written(reads, 20);
        pings += 1;
        assert!(pings < 100, "without end it is written to who does not read");
    }
    assert_eq!((world.closed(does_not), world.closed(reads)), (Some(false), None));
    let pings =
        world.packets(does_not).iter().filter(|packet| matches!(packet, Packet::Reply { .. })).count();
    assert!(pings >= 7, "{pings}");
}
