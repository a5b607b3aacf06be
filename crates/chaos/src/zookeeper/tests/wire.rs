//! Packets, as ZooKeeper's own records have them.

use crate::zookeeper::journal::{Ask, Change, Done, Lasts};
use crate::zookeeper::wire::{self, Packet};
use bytes::{Bytes, BytesMut};
use troth_zookeeper::jute::Output;

fn packet(fill: impl FnOnce(&mut Output)) -> Bytes {
    let mut out = Output::new();
    fill(&mut out);
    out.finish()
}

fn stat(out: &mut Output) {
    out.long(3).long(5).long(0).long(0).int(2).int(7).int(0).long(0x77).int(1).int(4).long(9);
}

#[test]
fn requests_are_the_records_that_they_are_said_to_be() {
    let create = Ask::Create { path: "/a".to_owned(), value: "x".to_owned(), lasts: Lasts::SessionNumbered };
    let expected = packet(|out| {
        out.int(9).int(15).text("/a").buffer(b"x").length(1).int(31).text("world").text("anyone").int(3);
    });
    assert_eq!(wire::request(9, &create)[4..], expected);
    let set = Ask::Set { path: "/a".to_owned(), value: "x".to_owned(), expected: None };
    assert_eq!(
        wire::request(9, &set)[4..],
        packet(|out| {
            out.int(9).int(5).text("/a").buffer(b"x").int(-1);
        })
    );
    let rewatch = Ask::Rewatch {
        seen: 7,
        data: vec!["/a".to_owned()],
        exists: vec!["/b".to_owned()],
        children: vec!["/c".to_owned()],
    };
    assert_eq!(wire::xid(&rewatch, 9), -8);
    let expected = packet(|out| {
        out.int(-8).int(105).long(7).length(1).text("/a").length(1).text("/b").length(1).text("/c");
        out.length(0).length(0);
    });
    assert_eq!(wire::request(-8, &rewatch)[4..], expected);
    assert_eq!(wire::connect(7, 6000, 0, &[0; 16]).len(), 4 + 4 + 8 + 4 + 8 + 4 + 16 + 1);
}

#[test]
fn packets_are_taken_whole() {
    let all = [wire::ping(), wire::ping()].concat();
    for cut in 0..=all.len() {
        let mut buffer = BytesMut::from(&all[..cut]);
        let taken = std::iter::from_fn(|| wire::take(&mut buffer).unwrap()).count();
        assert_eq!(taken, cut / 12);
    }
    assert!(wire::take(&mut BytesMut::from(&[0xff; 4][..])).is_err(), "a negative length");
    assert!(wire::take(&mut BytesMut::from(&[0x7f; 4][..])).is_err(), "a long one");
}

#[test]
fn answers_are_read() {
    let pong = packet(|out| {
        out.int(-2).long(4).int(0);
    });
    assert_eq!(wire::packet(&pong), Ok(Packet::Pong));
    let event = packet(|out| {
        out.int(-1).long(6).int(0).int(3).int(3).text("/a");
    });
    let fired = Packet::Fired { zxid: 6, change: Change::Data, path: "/a".to_owned() };
    assert_eq!(wire::packet(&event), Ok(fired));
    let unknown = packet(|out| {
        out.int(-1).long(6).int(0).int(9).int(3).text("/a");
    });
    assert!(wire::packet(&unknown).is_err());
    let reply = packet(|out| {
        out.int(5).long(8).int(-101);
    });
    let no_node = Packet::Reply { xid: 5, zxid: 8, error: -101, body: Bytes::new() };
    assert_eq!(wire::packet(&reply), Ok(no_node));

    let get = Ask::Get { path: "/a".to_owned(), watch: false };
    let body = packet(|out| {
        out.buffer(b"x");
        stat(out);
    });
    let Ok(Done::Value { value, stat: read }) = wire::done(&get, &body) else { panic!() };
    assert_eq!(value, "x");
    assert_eq!((read.created, read.modified, read.version, read.owner, read.children), (3, 5, 2, 0x77, 9));
    assert!(wire::done(&get, &body.slice(..20)).is_err(), "it ends inside a field");
    let children = Ask::Children { path: "/a".to_owned(), watch: false };
    let body = packet(|out| {
        out.length(2).text("b").text("c");
        stat(out);
    });
    let Ok(Done::Children { names, .. }) = wire::done(&children, &body) else { panic!() };
    assert_eq!(names, ["b", "c"]);

    let attached = packet(|out| {
        out.int(0).int(6000).long(0x55).buffer(&[1; 16]).boolean(false);
    });
    let attached = wire::attached(&attached).unwrap();
    assert_eq!((attached.timeout, attached.session, attached.password.len()), (6000, 0x55, 16));
}
