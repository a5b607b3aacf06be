//! Packets, as ZooKeeper's own records have them.

use crate::wire::{
    self, Connected, Frame, Frames, Kind, Packet, Stat, read_acl, read_children, read_connected, read_data,
    read_packet, read_stat,
};
use bytes::{BufMut, Bytes};
use troth_zookeeper::acl::{Acl, Id};
use troth_zookeeper::jute::Output;

fn packet(fill: impl FnOnce(&mut Output)) -> Bytes {
    let mut out = Output::new();
    fill(&mut out);
    out.finish()
}

fn put_stat(out: &mut Output) {
    out.long(3).long(5).long(11).long(12).int(2).int(7).int(1).long(0x77).int(1).int(4).long(9);
}

const STAT: Stat = Stat {
    created: 3,
    modified: 5,
    version: 2,
    child_version: 7,
    acl_version: 1,
    owner: 0x77,
    length: 1,
    children: 4,
    children_changed: 9,
};

#[test]
fn answers_are_read() {
    let connected = packet(|out| {
        out.int(0).int(6000).long(0x55).buffer(&[1; 16]).boolean(false);
    });
    let expected = Connected { timeout: 6000, session: 0x55, password: Bytes::from(vec![1; 16]) };
    assert_eq!(read_connected(&connected), Ok(expected));
    let pong = packet(|out| {
        out.int(-2).long(4).int(0);
    });
    assert_eq!(read_packet(&pong), Ok(Packet::Pong));
    let event = packet(|out| {
        out.int(-1).long(6).int(0).int(3).int(3).text("/a");
    });
    assert_eq!(read_packet(&event), Ok(Packet::Event { kind: 3, path: "/a".to_owned() }));
    let reply = packet(|out| {
        out.int(5).long(8).int(-101);
    });
    let no_node = Packet::Reply { xid: 5, zxid: 8, error: -101, body: Bytes::new() };
    assert_eq!(read_packet(&reply), Ok(no_node));

    let data = packet(|out| {
        out.buffer(b"x");
        put_stat(out);
    });
    assert_eq!(read_data(&data), Ok((Some(Bytes::from("x")), STAT)));
    let none = packet(|out| {
        out.int(-1);
        put_stat(out);
    });
    assert_eq!(read_data(&none), Ok((None, STAT)), "none are told from empty ones");
    assert_eq!(read_stat(&packet(put_stat)), Ok(STAT));
    let children = packet(|out| {
        out.length(2).text("b").text("c");
        put_stat(out);
    });
    assert_eq!(read_children(&children), Ok((vec!["b".to_owned(), "c".to_owned()], STAT)));
    let acl = packet(|out| {
        out.length(1).int(31).text("digest").text("me:x");
        put_stat(out);
    });
    assert_eq!(read_acl(&acl), Ok(vec![Acl { perms: 31, id: Id::new("digest", "me:x") }]));
    for cut in 0..children.len() {
        assert!(read_children(&children.slice(..cut)).is_err(), "it ends inside a field");
    }
}

#[test]
fn lists_take_no_more_room_than_what_was_sent_may_need() {
    for count in [i32::MAX, 1000] {
        let long = packet(|out| {
            out.int(count).text("b");
        });
        assert!(read_children(&long).is_err() && read_acl(&long).is_err());
    }
}

#[test]
fn kinds_are_told_by_the_owner() {
    let kind = |owner| Stat { owner, ..STAT }.kind();
    assert_eq!(kind(0), Kind::Persistent);
    assert_eq!(kind(i64::MIN), Kind::Container);
    assert_eq!(kind(0xff00_0000_0000_1388_u64.cast_signed()), Kind::Ttl(5000));
    assert_eq!(kind(0xff00_00ff_ffff_ffff_u64.cast_signed()), Kind::Ttl((1 << 40) - 1));
    // Sessions of servers with the numbers 1, 200 and, where there are no extended types, 255.
    for owner in [0x0100_0003_d7a2_c000_u64, 0xc800_0003_d7a2_c000, 0xff01_93d7_a2c0_0001] {
        assert_eq!(kind(owner.cast_signed()), Kind::Ephemeral);
    }
}

#[test]
fn the_next_number_is_that_of_the_children_that_ever_were() {
    let told = |creations: i32, children: i32| {
        let child_version = creations.wrapping_mul(2).wrapping_sub(children);
        Stat { child_version, children, ..STAT }.creations()
    };
    for (creations, children) in
        [(0, 0), (1, 1), (7, 0), (1_200_000_000, 5), (i32::MAX, 1_000), (i32::MAX, 0)]
    {
        assert_eq!(told(creations, children), creations);
    }
    assert_eq!(told(i32::MIN, 3), 0, "past the end the highest bit is lost");
    let root = Stat { child_version: -1, children: 1, ..STAT };
    assert_eq!(root.creations(), 0, "the first nodes were created by nobody");
}

#[test]
fn a_stream_is_cut_wherever_it_is_torn_and_long_packets_are_passed_over() {
    let reply = |xid: i32, bytes: usize| {
        let body = vec![7; bytes];
        let record = packet(|out| {
            out.int(xid).long(1).int(0);
        });
        wire::framed(&[&record[..], &body].concat())
    };
    let stream = [reply(1, 10), reply(2, 5000), reply(3, 0), reply(4, 84)].concat();
    for step in [1, 3, 16, 17, 100, 5000, stream.len()] {
        let mut frames = Frames::new(100);
        let mut taken = Vec::new();
        for part in stream.chunks(step) {
            frames.buffer().put_slice(part);
            while let Some(frame) = frames.take_next().expect("lengths are right") {
                taken.push(match frame {
                    Frame::Packet(packet) => (packet[3], packet.len(), false),
                    Frame::TooLong(head, length) => (head[3], length, true),
                });
            }
            assert!(frames.buffer().len() <= 104.max(step), "no more is held than the longest packet");
        }
        assert_eq!(taken, [(1, 26, false), (2, 5016, true), (3, 16, false), (4, 100, false)], "step {step}");
    }
    let mut frames = Frames::new(100);
    frames.buffer().put_slice(&[0xff; 4]);
    assert!(frames.take_next().is_err(), "a negative length");
}
