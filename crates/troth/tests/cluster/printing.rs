//! Lines that nobody reads any more, and lines that others would like to have printed.

use crate::support::{Running, Scratch, good, init, run, status, troth, unread, until, up_printing};
use std::io::{Read, Write};
use std::net::TcpListener;
use std::path::Path;
use std::process::Stdio;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

#[test]
fn a_replica_outlives_its_log() {
    let scratch = Scratch::new("unlogged");
    let dir = scratch.0.as_path();
    init(dir);
    let child = troth(dir)
        .args(["--log", "debug", "replica", "--id", "0"])
        .stderr(Stdio::from(unread()))
        .spawn()
        .expect("the command starts");
    let mut replica = Running(child);
    until("replica 0 serves, or has ended", || {
        let ended = replica.0.try_wait().expect("our own child");
        (ended.is_some() || status(dir)[0]["pid"].is_u64()).then_some(())
    });
    replica.signal("TERM");
    assert_eq!(replica.ends(), Some(0), "a line that cannot be logged is no reason to stop");
}

#[test]
fn a_reader_that_hangs_up_stops_no_clean_up() {
    let scratch = Scratch::new("unread");
    let dir = scratch.0.as_path();
    let (mut cluster, lines) = up_printing(dir, &[]);
    drop(lines);
    let output = troth(dir).arg("status").stdout(Stdio::from(unread())).output().expect("the command runs");
    assert_eq!((output.status.code(), output.stderr.as_slice()), (Some(0), b"".as_slice()));
    cluster.signal("INT");
    assert_eq!(cluster.ends(), Some(0));
    assert!(!dir.join("clients").exists(), "the keys are gone although nobody read that it stops");

    let init = troth(dir).arg("init").stdout(Stdio::from(unread())).output().expect("the command runs");
    assert_eq!(init.status.code(), Some(0), "{}", String::from_utf8_lossy(&init.stderr));
}

/// Answers one asker at a replica's HTTP address: a byte every 100 ms, for ten seconds at most. Tells
/// whether the asker hung up before.
fn drips(listener: &TcpListener) -> bool {
    let (mut stream, _) = listener.accept().expect("somebody asks");
    // Nobody ever tells: it is the limit that counts.
    let (_tell, told) = channel::<()>();
    (0..100).any(|_| {
        told.recv_timeout(Duration::from_millis(100)) != Err(RecvTimeoutError::Timeout)
            || stream.write_all(b"H").is_err()
    })
}

/// The address where `troth status` looks for replica 0.
fn http_of_replica_0(dir: &Path) -> TcpListener {
    let base = init(dir);
    TcpListener::bind(("127.0.0.1", base + 100)).expect("it was free just now")
}

#[test]
fn a_replica_that_answers_byte_by_byte_holds_nobody() {
    let scratch = Scratch::new("drip");
    let dir = scratch.0.as_path();
    let listener = http_of_replica_0(dir);
    let dripping = std::thread::spawn(move || drips(&listener));
    let said = String::from_utf8(run(dir, &["status"]).stdout).expect("text");
    assert!(dripping.join().expect("it does not panic"), "the status was held for ten seconds");
    assert!(said.contains("unreachable: does not answer"), "{said}");
}

#[test]
fn a_replica_commands_no_terminal() {
    let scratch = Scratch::new("escapes");
    let dir = scratch.0.as_path();
    let listener = http_of_replica_0(dir);
    let answering = std::thread::spawn(move || {
        for _ in 0..2 {
            let (mut stream, _) = listener.accept().expect("somebody asks");
            let mut question = [0; 1024];
            let _ = stream.read(&mut question);
            let _ = stream.write_all("HTTP/1.1 500 \u{1b}[2Jgone\u{9b}31m\r\n\r\n".as_bytes());
        }
    });
    for arguments in [["status"].as_slice(), &["status", "--json"]] {
        let said = String::from_utf8(run(dir, arguments).stdout).expect("text");
        assert!(said.contains("[2Jgone"), "{said:?}");
        assert!(!said.contains(|letter: char| letter.is_control() && letter != '\n'), "{said:?}");
    }
    answering.join().expect("it does not panic");
}

#[test]
fn what_a_program_reads_is_what_was_stored() {
    let scratch = Scratch::new("stored");
    let dir = scratch.0.as_path();
    let (_cluster, _lines) = up_printing(dir, &[]);
    good(dir, &["kv", "put", "key", "\u{1b}[2J"]);
    assert_eq!(good(dir, &["kv", "get", "key"]), "\u{1b}[2J\n");
}
