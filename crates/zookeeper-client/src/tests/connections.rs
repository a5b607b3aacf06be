//! Connections to servers that are none.

use crate::{Connection, Event, Refusal, wire};
use bytes::Bytes;
use core::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use troth_zookeeper::jute::Output;
use troth_zookeeper::{MAX_PATH, opcode};

/// A server that gives a session, then answers requests with these packets, whatever they are, and hangs up after the last.
async fn server(answers: Vec<Bytes>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("bound").to_string();
    tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.expect("a client");
        take(&mut stream).await;
        let mut out = Output::new();
        out.int(0).int(30_000).long(7).buffer(&[1; 16]).boolean(false);
        stream.write_all(&wire::framed(&out.finish())).await.expect("written");
        for answer in answers {
            take(&mut stream).await;
            stream.write_all(&answer).await.expect("written");
        }
    });
    address
}

async fn take(stream: &mut TcpStream) {
    let length = stream.read_u32().await.expect("a packet");
    let mut packet = vec![0; length as usize];
    stream.read_exact(&mut packet).await.expect("a packet");
}

fn reply(xid: i32, error: i32, body: &[u8]) -> Bytes {
    let mut out = Output::new();
    out.int(xid).long(9).int(error);
    wire::framed(&[&out.finish()[..], body].concat())
}

fn event(path: &str) -> Bytes {
    let mut out = Output::new();
    out.int(-1).long(9).int(0).int(3).int(3).text(path);
    wire::framed(&out.finish())
}

fn run(test: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(test);
}

#[test]
fn requests_are_answered_in_order_and_what_is_too_long_is_said_so() {
    run(async {
        let answers = vec![
            reply(1, 0, b"one"),
            reply(2, -101, b""),
            reply(3, 0, &[0; 5000]),
            Bytes::from([event("/a"), reply(4, 0, b"four")].concat()),
        ];
        let address = server(answers).await;
        let mut connection = Connection::open(&address, None, 1000, 4).await.expect("a session");
        let pending: Vec<_> = (0..4).map(|_| connection.send(opcode::EXISTS, Bytes::new())).collect();
        let mut outcomes = Vec::new();
        for pending in pending {
            let reply = pending.wait().await.expect("an answer");
            assert_eq!(reply.zxid, 9);
            outcomes.push(reply.outcome);
        }
        let expected = [
            Ok(Bytes::from("one")),
            Err(Refusal::Error(-101)),
            Err(Refusal::TooLong(5016)),
            Ok(Bytes::from("four")),
        ];
        assert_eq!(outcomes, expected);
        assert_eq!(
            connection.event(),
            Some(Event { kind: 3, path: Some("/a".to_owned()) }),
            "told before the answer"
        );
        let lost = connection.ask(opcode::EXISTS, Bytes::new()).await.expect_err("it hung up");
        assert!(lost.to_string().contains("closed"), "{lost}");
    });
}

#[test]
fn servers_that_say_anything_else_are_left() {
    for (answer, why) in [
        (reply(2, 0, b""), "not asked"),
        (Bytes::from_static(b"\0\0\0\x02ab"), "no packet"),
        (Bytes::from_static(b"\xff\xff\xff\xff"), "no packet"),
        (Bytes::from([event("/a"), event("/b")].concat()), "more changes"),
    ] {
        run(async {
            let address = server(vec![answer]).await;
            let connection = Connection::open(&address, None, 1000, 1).await.expect("a session");
            let lost = connection.ask(opcode::EXISTS, Bytes::new()).await.expect_err("no answer");
            assert!(lost.to_string().contains(why), "{lost}");
        });
    }
}

#[test]
fn of_a_path_that_no_node_has_only_an_event_is_kept() {
    run(async {
        let long = "/".repeat(MAX_PATH + 1);
        let answer = Bytes::from([event(&long), event(&long[1..]), reply(1, 0, b"")].concat());
        let address = server(vec![answer]).await;
        let mut connection = Connection::open(&address, None, 10_000, 2).await.expect("a session");
        connection.ask(opcode::EXISTS, Bytes::new()).await.expect("an answer");
        assert_eq!(connection.event(), Some(Event { kind: 3, path: None }));
        assert_eq!(connection.event(), Some(Event { kind: 3, path: Some(long[1..].to_owned()) }));
    });
}

#[test]
fn a_server_that_only_gives_signs_of_life_is_left() {
    run(async {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("bound").to_string();
        tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.expect("a client");
            take(&mut stream).await;
            let mut out = Output::new();
            out.int(0).int(30_000).long(7).buffer(&[1; 16]).boolean(false);
            stream.write_all(&wire::framed(&out.finish())).await.expect("written");
            // The first request has its answer, later packets that of a sign of life.
            take(&mut stream).await;
            stream.write_all(&reply(1, 0, b"")).await.expect("written");
            loop {
                take(&mut stream).await;
                let _ = stream.write_all(&reply(-2, 0, b"")).await;
            }
        });
        let connection = Connection::open(&address, None, 1000, 1).await.expect("a session");
        tokio::time::pause();
        connection.ask(opcode::EXISTS, Bytes::new()).await.expect("an answer");
        // Nothing is asked meanwhile, which is no fault of the server's.
        tokio::time::sleep(Duration::from_secs(600)).await;
        let asked = connection.ask(opcode::EXISTS, Bytes::new());
        let lost = tokio::time::timeout(Duration::from_secs(600), asked).await.expect("it is given up");
        let lost = lost.expect_err("no answer").to_string();
        assert!(lost.contains("no answer for 60 s"), "{lost}");
    });
}
