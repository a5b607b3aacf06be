//! What clients send, and what they read in the answers.

use super::support::Packet;
use bytes::Bytes;
use troth_zookeeper::jute::{Input, Output as Record};
use troth_zookeeper::opcode;

pub fn hello(seen: i64, timeout: i32, session: i64, password: &[u8]) -> Bytes {
    record(|out| {
        out.int(0).long(seen).int(timeout).long(session).buffer(password).boolean(false);
    })
}

pub fn record(fill: impl FnOnce(&mut Record)) -> Bytes {
    let mut out = Record::new();
    fill(&mut out);
    out.finish()
}

pub fn request(xid: i32, code: i32, body: &Bytes) -> Bytes {
    let head = record(|out| {
        out.int(xid).int(code);
    });
    Bytes::from([&head[..], &body[..]].concat())
}

pub fn create(path: &str, data: &str, flags: i32) -> Bytes {
    record(|out| {
        out.text(path).text(data).length(1).int(31).text("world").text("anyone").int(flags);
    })
}

pub fn set(path: &str, data: &str) -> Bytes {
    record(|out| {
        out.text(path).text(data).int(-1);
    })
}

pub fn get(path: &str, watch: bool) -> Bytes {
    record(|out| {
        out.text(path).boolean(watch);
    })
}

pub fn auth(scheme: &str, credentials: &str) -> Bytes {
    record(|out| {
        out.int(0).text(scheme).text(credentials);
    })
}

pub fn ping() -> Bytes {
    request(-2, opcode::PING, &Bytes::new())
}

/// The data of an answer to a read of them.
pub fn data(body: &Bytes) -> String {
    let data = Input::new(body).buffer().expect("data").expect("data");
    String::from_utf8(data.to_vec()).expect("a text")
}

/// Number, error and transaction of replies, and kinds and transactions of events.
pub fn brief(packets: &[Packet]) -> Vec<(i32, i64)> {
    let one = |packet: &Packet| match packet {
        Packet::Reply { xid, error, .. } => (*xid, i64::from(*error)),
        Packet::Event { kind, .. } => (-1, i64::from(*kind)),
        other => panic!("neither a reply nor an event: {other:?}"),
    };
    packets.iter().map(one).collect()
}
