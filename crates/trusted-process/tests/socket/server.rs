//! The server towards clients that are second, slow, wrong or gone.

use crate::served::{PATIENCE, Served, own_uid};
use crate::support::{IDENTITY, Scratch, attest, mac, read, step};
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::mpsc::channel;
use std::time::Duration;
use troth_trusted::{CounterValue, Refusal, TrustedCore, VolatileStore};
use troth_trusted_host::{Answer, TrustedComponent};
use troth_trusted_process::wire::{
    Fault, MAX_FRAME, Malformed, Reply, TurnedAway, VERSION, decode_reply, encode_calls, encode_hello,
};
use troth_trusted_process::{
    ConnectError, Event, Limits, ListenError, RemoteComponent, ServeError, bind, serve,
};

fn core() -> TrustedCore<VolatileStore> {
    TrustedCore::start(IDENTITY, mac(), VolatileStore)
}

/// A connection with nothing said yet.
fn raw(served: &Served) -> UnixStream {
    let socket = UnixStream::connect(&served.path).expect("a server");
    socket.set_read_timeout(Some(PATIENCE.answer)).expect("a time-out");
    socket
}

/// Everything up to the end of the connection.
fn last_words(mut socket: UnixStream) -> Vec<u8> {
    let mut bytes = Vec::new();
    socket.read_to_end(&mut bytes).expect("an end");
    bytes
}

fn turned_away(socket: UnixStream) -> TurnedAway {
    match decode_reply(&last_words(socket)[4..]) {
        Ok(Reply::TurnedAway(why)) => why,
        other => panic!("{other:?}"),
    }
}

fn connected(event: Event) -> bool {
    matches!(event, Event::Connected { .. })
}

#[test]
fn a_second_connection_is_told_busy_and_the_first_goes_on() {
    let scratch = Scratch::new();
    let served = Served::new(scratch.path("socket"), core());
    let mut first = served.connect();
    assert!(connected(served.event()));
    let second = RemoteComponent::connect(&served.path, PATIENCE);
    assert!(matches!(second, Err(ConnectError::TurnedAway(TurnedAway::Busy))), "{second:?}");
    assert!(matches!(served.event(), Event::Busy { .. }));
    assert!(first.call(&[attest(step(0, 0, 1), [1; 32])])[0].attested().is_some());
}

#[test]
fn a_client_that_is_gone_makes_room_at_once() {
    let scratch = Scratch::new();
    let served = Served::new(scratch.path("socket"), core());
    for round in 0..200 {
        let mut client = served.connect();
        assert_eq!(client.call(&[read(0)]), [Answer::Value(CounterValue(round))]);
        assert!(client.call(&[attest(step(0, round, round + 1), [1; 32])])[0].attested().is_some());
    }
    drop(served.connect());
    let mut seen: Vec<Event> = Vec::new();
    while seen.iter().filter(|event| **event == Event::Disconnected).count() < 201 {
        seen.push(served.event());
    }
    assert_eq!(seen.iter().filter(|event| connected(**event)).count(), 201);
    assert!(!seen.iter().any(|event| matches!(event, Event::Busy { .. })));
}

/// The one that is gone has left more than a reading takes, so its end is seen only by asking for it.
#[test]
fn a_client_that_is_gone_makes_room_before_its_last_bytes_are_read() {
    let scratch = Scratch::new();
    let path = scratch.path("socket");
    let listener = bind(&path, own_uid()).expect("a socket");
    let (stop, until) = UnixStream::pair().expect("a pair of sockets");
    let limits = Limits { until: Some(until.into()), ..Limits::new(own_uid()) };
    let (admitted, first_is_in) = channel();
    let (go_on, released) = channel::<()>();
    let server = std::thread::spawn(move || {
        let mut seen = Vec::new();
        serve(&listener, core(), &limits, &mut |event| {
            seen.push(event);
            let _ = admitted.send(());
            let _ = released.recv();
        })
        .map(|()| seen)
    });
    let mut first = UnixStream::connect(&path).expect("a server");
    first_is_in.recv().expect("a server");
    // The server waits. By the time it looks, the first has gone and the second has come.
    first.write_all(&(MAX_FRAME as u32).to_be_bytes()).expect("room");
    first.write_all(&[0; 40_000]).expect("room");
    drop(first);
    let second = UnixStream::connect(&path).expect("a server");
    second.set_read_timeout(Some(PATIENCE.answer)).expect("a time-out");
    drop(go_on);
    let mut hello = Vec::new();
    encode_hello(VERSION, &mut hello);
    (&second).write_all(&hello).expect("room");
    let mut welcome = [0; 39];
    (&second).read_exact(&mut welcome).expect("a welcome");
    assert_eq!(decode_reply(&welcome[4..]), Ok(Reply::Welcome(IDENTITY)));
    drop(stop);
    let seen = server.join().expect("no panic").expect("no error");
    assert!(
        matches!(seen[..], [Event::Connected { .. }, Event::Disconnected, Event::Connected { .. }]),
        "{seen:?}"
    );
}

#[test]
fn a_user_that_may_not_ask_is_refused() {
    let scratch = Scratch::new();
    let limits = Limits::new(own_uid() + 1);
    let served = Served::with_limits(scratch.path("socket"), core(), limits);
    let refused = RemoteComponent::connect(&served.path, PATIENCE);
    assert!(matches!(refused, Err(ConnectError::TurnedAway(TurnedAway::NotPermitted))), "{refused:?}");
    assert!(matches!(served.event(), Event::NotPermitted { uid, .. } if uid == own_uid()));
}

#[test]
fn bytes_that_are_no_frame_end_the_connection_and_not_the_server() {
    let scratch = Scratch::new();
    let served = Served::new(scratch.path("socket"), core());
    let mut calls_before_hello = Vec::new();
    encode_calls([read(0)].iter(), &mut calls_before_hello);
    let too_long = (MAX_FRAME as u32 + 1).to_be_bytes();
    for (bytes, fault) in [
        (calls_before_hello.as_slice(), Fault::Tag(2)),
        (&too_long, Fault::TooLong(MAX_FRAME + 1)),
        (&[0, 0, 0, 0], Fault::Short),
        (b"\0\0\0\x0bGET / HTTP/", Fault::Tag(b'G')),
    ] {
        let mut socket = raw(&served);
        socket.write_all(bytes).expect("room");
        assert_eq!(turned_away(socket), TurnedAway::Malformed);
        assert!(connected(served.event()));
        assert_eq!(served.event(), Event::Malformed(Malformed { fault }));
    }
    assert_eq!(served.connect().call(&[read(0)]), [Answer::Value(CounterValue(0))]);
}

#[test]
fn another_version_is_told_which_one_is_spoken() {
    let scratch = Scratch::new();
    let served = Served::new(scratch.path("socket"), core());
    let mut socket = raw(&served);
    let mut hello = Vec::new();
    encode_hello(VERSION + 1, &mut hello);
    socket.write_all(&hello).expect("room");
    assert_eq!(turned_away(socket), TurnedAway::OtherVersion(VERSION));
    assert!(connected(served.event()));
    assert_eq!(served.event(), Event::OtherVersion(VERSION + 1));
}

#[test]
fn a_client_that_does_not_finish_a_frame_is_dropped() {
    let scratch = Scratch::new();
    let limits = Limits { frame_within: Duration::from_millis(20), ..Limits::new(own_uid()) };
    let served = Served::with_limits(scratch.path("socket"), core(), limits);
    let mut hello = Vec::new();
    encode_hello(VERSION, &mut hello);
    for said in [&[][..], &hello[..5], &[&hello[..], &[0, 0, 1]].concat()] {
        let mut socket = raw(&served);
        socket.write_all(said).expect("room");
        last_words(socket);
        assert!(connected(served.event()));
        assert_eq!(served.event(), Event::Late);
    }
}

#[test]
fn frames_in_pieces_and_several_at_once_are_answered_in_order() {
    let scratch = Scratch::new();
    let served = Served::new(scratch.path("socket"), core());
    let mut bytes = Vec::new();
    encode_hello(VERSION, &mut bytes);
    for value in 0..40 {
        encode_calls([attest(step(0, value, value + 1), [1; 32]), read(0)].iter(), &mut bytes);
    }
    let mut socket = raw(&served);
    let (apart, together) = bytes.split_at(300);
    for byte in apart {
        socket.write_all(&[*byte]).expect("room");
    }
    socket.write_all(together).expect("room");
    for round in 0..=40u128 {
        let mut length = [0; 4];
        socket.read_exact(&mut length).expect("a frame");
        let mut frame = vec![0; u32::from_be_bytes(length) as usize];
        socket.read_exact(&mut frame).expect("a frame");
        if round > 0 {
            let answers = troth_trusted_process::wire::decode_answers(&frame).expect("answers");
            assert_eq!(answers[1], Answer::Value(CounterValue(round)));
        }
    }
}

#[test]
fn a_failing_store_is_answered_and_ends_the_server() {
    let scratch = Scratch::new();
    let served = Served::durable(&scratch, IDENTITY, mac());
    let mut client = served.connect();
    assert!(client.call(&[attest(step(0, 0, 1), [1; 32])])[0].attested().is_some());
    std::fs::write(scratch.path("broken"), []).expect("a file");
    let halted = Answer::Refused(Refusal::Halted);
    assert_eq!(client.call(&[read(0), attest(step(0, 1, 2), [1; 32])])[1], halted);
    assert!(matches!(served.end(), Err(ServeError::StoreFailed)));
    assert_eq!(client.call(&[read(0)]), [halted]);
}

#[test]
fn a_socket_is_never_taken_from_a_living_server() {
    let scratch = Scratch::new();
    let served = Served::new(scratch.path("socket"), core());
    assert!(matches!(bind(&served.path, own_uid()), Err(ListenError::Served(_))));
    let path = served.path.clone();
    drop(served);
    // What is left of a server that ended is replaced; what is no socket is left alone.
    assert!(bind(&path, own_uid()).is_ok());
    let file = scratch.path("file");
    std::fs::write(&file, b"kept").expect("a file");
    assert!(matches!(bind(&file, own_uid()), Err(ListenError::NoSocket(_))));
    assert_eq!(std::fs::read(&file).expect("still there"), b"kept");
}
