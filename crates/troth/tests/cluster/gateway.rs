//! The gateway as a process, spoken to in ZooKeeper's protocol.

use crate::killed::all;
use crate::pbft_reads::{executed, runtime, session_of};
use crate::support::{PATIENCE, Running, Scratch, init, init_with, run, troth, until, up_printing};
use bytes::Bytes;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Stdio;
use troth_types::ClientId;
use troth_zookeeper::jute::{Input, Output};
use troth_zookeeper::opcode;

/// How the line begins that says where a gateway serves.
const SERVES: &str = "Serves ZooKeeper's clients on ";

/// Starts a gateway on a free port; where it serves.
pub fn gateway(dir: &Path, arguments: &[&str]) -> (Running, String) {
    gateway_saying(dir, arguments, 0)
}

/// As [`gateway`], where it says so many lines before.
pub fn gateway_saying(dir: &Path, arguments: &[&str], before: usize) -> (Running, String) {
    let mut command = troth(dir);
    command.args(["gateway", "zookeeper", "--listen", "127.0.0.1:0"]).args(arguments);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("the command starts");
    let mut lines = BufReader::new(child.stdout.take().expect("piped")).lines();
    let line = lines.nth(before).expect("it says where").expect("text");
    let place = line.strip_prefix(SERVES).unwrap_or_else(|| panic!("it serves: {line:?}"));
    (Running(child), place.to_owned())
}

/// A ZooKeeper client's connection.
pub struct Connection {
    stream: TcpStream,
    xid: i32,
}

/// A session and its password.
pub type Known = (i64, Bytes);

impl Connection {
    pub fn open(place: &str, known: Option<&Known>) -> (Self, Known) {
        let stream = TcpStream::connect(place).expect("the gateway listens");
        stream.set_read_timeout(Some(PATIENCE)).expect("a time-out");
        let mut connection = Self { stream, xid: 0 };
        let (session, password) = known.cloned().unwrap_or((0, Bytes::from(vec![0; 16])));
        let mut out = Output::new();
        out.int(0).long(0).int(30_000).long(session).buffer(&password).boolean(false);
        connection.send(&out.finish());
        let answer = connection.receive();
        let mut input = Input::new(&answer);
        let (_, timeout) = (input.int().expect("a version"), input.int().expect("a time-out"));
        assert_eq!(timeout, 30_000, "the session is there");
        let session = input.long().expect("a session");
        (connection, (session, input.buffer().expect("a record").expect("a password")))
    }

    fn send(&mut self, packet: &[u8]) {
        let length = u32::try_from(packet.len()).expect("short").to_be_bytes();
        self.stream.write_all(&[&length[..], packet].concat()).expect("sent");
    }

    fn receive(&mut self) -> Bytes {
        let mut length = [0; 4];
        self.stream.read_exact(&mut length).expect("an answer");
        let mut packet = vec![0; u32::from_be_bytes(length) as usize];
        self.stream.read_exact(&mut packet).expect("all of it");
        Bytes::from(packet)
    }

    /// Error and record of the answer.
    pub fn ask(&mut self, code: i32, record: &[u8]) -> (i32, Bytes) {
        self.xid += 1;
        let mut out = Output::new();
        out.int(self.xid).int(code);
        self.send(&[&out.finish()[..], record].concat());
        let answer = self.receive();
        let mut input = Input::new(&answer);
        assert_eq!(input.int(), Ok(self.xid), "the answer to this request");
        input.long().expect("a transaction");
        let error = input.int().expect("an error");
        (error, answer.slice(16..))
    }

    pub fn create(&mut self, path: &str, data: &[u8], flags: i32) -> i32 {
        let mut out = Output::new();
        out.text(path).buffer(data).length(1).int(31).text("world").text("anyone").int(flags);
        self.ask(opcode::CREATE, &out.finish()).0
    }

    pub fn data(&mut self, path: &str) -> Result<Bytes, i32> {
        let mut out = Output::new();
        out.text(path).boolean(false);
        match self.ask(opcode::GET_DATA, &out.finish()) {
            (0, record) => Ok(Input::new(&record).buffer().expect("a record").expect("data")),
            (error, _) => Err(error),
        }
    }
}

pub fn word(place: &str, word: &str) -> String {
    let mut stream = TcpStream::connect(place).expect("the gateway listens");
    stream.set_read_timeout(Some(PATIENCE)).expect("a time-out");
    stream.write_all(word.as_bytes()).expect("sent");
    let mut said = String::new();
    stream.read_to_string(&mut said).expect("text");
    said
}

/// What a gateway that must not start says.
pub fn refused(dir: &Path, arguments: &[&str]) -> (Option<i32>, String) {
    let output = run(dir, &[&["gateway", "zookeeper"], arguments].concat());
    (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
}

#[test]
fn a_session_goes_on_through_another_gateway_when_the_first_is_killed() {
    let scratch = Scratch::new("gateway");
    let dir = scratch.0.as_path();
    init_with(dir, &["--service", "zookeeper"]);
    let mut replicas = all(dir);
    let (first, place) = gateway(dir, &["--words", "ruok,srvr"]);
    assert_eq!(word(&place, "ruok"), "imok");
    assert!(word(&place, "srvr").contains("Zookeeper version"));
    let (mut client, known) = Connection::open(&place, None);
    assert_eq!(client.create("/kept", b"value", 0), 0);
    assert_eq!(client.create("/own", b"mine", 1), 0);
    assert_eq!(client.create("/kept", b"other", 0), -110, "there is one");

    let pages =
        TcpListener::bind("127.0.0.1:0").and_then(|free| free.local_addr()).expect("a port").to_string();
    let (mut second, other) = gateway_saying(dir, &["--admin", &pages], 1);
    let page = word(&pages, "GET /commands/ruok HTTP/1.0\r\n\r\n");
    assert!(page.starts_with("HTTP/1.") && page.contains("200"), "{page}");
    assert_ne!(place, other);
    first.signal("KILL");
    drop(replicas.remove(0));
    let (mut client, again) = Connection::open(&other, Some(&known));
    assert_eq!(again, known);
    assert_eq!(&client.data("/kept").expect("it is there")[..], b"value");
    assert_eq!(&client.data("/own").expect("its session lives")[..], b"mine");
    assert_eq!(client.ask(opcode::CLOSE_SESSION, &[]).0, 0);
    let (mut client, _) = Connection::open(&other, None);
    assert_eq!(client.data("/own"), Err(-101), "it went with its session");

    second.signal("TERM");
    assert_eq!(second.ends(), Some(0));
}

/// Whether a client gets a session there, and makes a node.
fn is_served(place: &str, path: &str) -> bool {
    let served = || -> std::io::Result<()> {
        let mut stream = TcpStream::connect(place)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        let (mut hello, mut create) = (Output::new(), Output::new());
        hello.int(0).long(0).int(30_000).long(0).buffer(&[0; 16]).boolean(false);
        create.int(1).int(opcode::CREATE);
        create.text(path).buffer(b"").length(1).int(31).text("world").text("anyone").int(0);
        for (packet, behind) in [(hello.finish(), None), (create.finish(), Some(12))] {
            let length = u32::try_from(packet.len()).expect("short").to_be_bytes();
            stream.write_all(&[&length[..], &packet].concat())?;
            let mut length = [0; 4];
            stream.read_exact(&mut length)?;
            let mut answer = vec![0; u32::from_be_bytes(length) as usize];
            stream.read_exact(&mut answer)?;
            if let Some(at) = behind {
                assert_eq!(answer[at..at + 4], [0; 4], "the node is made");
            }
        }
        Ok(())
    };
    served().is_ok()
}

#[test]
fn a_gateway_whose_keys_another_process_used_serves_again() {
    let scratch = Scratch::new("gateway-twice");
    init_with(&scratch.0, &["--service", "zookeeper"]);
    let _replicas = all(&scratch.0);
    let (_gateway, place) = gateway(&scratch.0, &["--client", "1"]);
    assert!(is_served(&place, "/before"));
    runtime().block_on(async {
        let other = session_of(&scratch.0, ClientId(1)).await;
        // More frames than a client has a window for, so that none of the gateway's numbers are left, as a backup may have
        // them ordered to reach a checkpoint.
        for _ in 0..300 {
            // What is ordered, whatever is answered.
            other.execute(Bytes::from_static(b"nothing")).await.expect("it is ordered");
        }
        other.close().await;
    });
    // What was on its way when it found out is lost, as with any connection that ends.
    assert!((0..10).any(|_| is_served(&place, "/after")));
    assert!(is_served(&place, "/then"));
}

#[test]
fn reads_that_need_only_be_recent_are_not_ordered_while_a_replica_is_away() {
    let scratch = Scratch::new("gateway-sequential");
    let dir = scratch.0.as_path();
    init_with(dir, &["--service", "zookeeper"]);
    let mut replicas = all(dir);
    let (_first, present) = gateway(dir, &[]);
    let (_second, recent) = gateway(dir, &["--consistency", "sequential"]);
    // No backup is missed.
    drop(replicas.remove(2));
    for (place, ordered) in [(&recent, false), (&present, true)] {
        let (mut client, _) = Connection::open(place, None);
        let path = format!("/own-{ordered}");
        assert_eq!(client.create(&path, b"first", 0), 0);
        let before = executed(dir);
        for _ in 0..40 {
            assert_eq!(&client.data(&path).expect("its own write")[..], b"first");
        }
        let more = executed(dir) - before;
        // Signs of life are ordered, and a read whose answers differ.
        assert_eq!(more >= 40, ordered, "40 reads took {more} batches");
        assert_eq!(&client.data("/own-false").expect("everybody sees it at last")[..], b"first");
    }
}

#[test]
fn a_gateway_waits_for_a_group_that_is_not_there_yet_and_ends_when_told_to() {
    let scratch = Scratch::new("gateway-waits");
    let dir = scratch.0.as_path();
    init_with(dir, &["--service", "zookeeper"]);
    let mut command = troth(dir);
    command.args(["gateway", "zookeeper", "--listen", "127.0.0.1:0"]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
    let (out, said) = (child.stdout.take().expect("piped"), child.stderr.take().expect("piped"));
    let mut waiting = Running(child);
    let mut line = String::new();
    BufReader::new(said).read_line(&mut line).expect("a line");
    assert!(line.contains("too few replicas are reachable"), "{line}");
    let _replicas = all(dir);
    let mut line = String::new();
    BufReader::new(out).read_line(&mut line).expect("a line");
    assert!(line.starts_with(SERVES), "{line}");
    waiting.signal("INT");
    assert_eq!(waiting.ends(), Some(0));
}

#[test]
fn what_cannot_be_served_is_refused_with_what_to_do() {
    let scratch = Scratch::new("gateway-refused");
    let (dir, keys) = (scratch.0.join("zookeeper"), scratch.0.join("kv"));
    init(&keys);
    let (code, said) = refused(&keys, &[]);
    assert_eq!(code, Some(2));
    assert!(said.contains("\"kv\"") && said.contains("troth init --dir OTHER --service zookeeper"), "{said}");

    init_with(&dir, &["--service", "zookeeper"]);
    let (code, said) = refused(&dir, &["--packet-bytes", "2000000"]);
    assert_eq!(code, Some(2));
    assert!(said.contains("frame_bytes"), "{said}");

    let users = scratch.0.join("users");
    let file = users.to_str().expect("plain");
    let with = |text: &str, mode: u32| {
        std::fs::write(&users, text).expect("our own");
        std::fs::set_permissions(&users, PermissionsExt::from_mode(mode)).expect("our own");
        refused(&dir, &["--users", file])
    };
    let (code, said) = with("me:secret\n", 0o644);
    assert_eq!(code, Some(2));
    assert!(said.contains("chmod 600") && !said.contains("secret"), "{said}");
    for (text, line) in [("me:a\nyou\n", 2), ("me:a\n# you\nme:b\n", 3), (":a\n", 1)] {
        let (code, said) = with(text, 0o600);
        assert_eq!(code, Some(2));
        assert!(said.contains(&format!("users:{line}: ")), "{said}");
    }

    // With TLS there is nothing to guess.
    for half in [&["--tls-listen", "127.0.0.1:0"][..], &["--tls-key", file], &["--tls-clients-optional"]] {
        let (code, said) = refused(&dir, half);
        assert_eq!(code, Some(2), "{said}");
        assert!(said.contains("required arguments were not provided"), "{said}");
    }

    let _replicas = all(&dir);
    let tls = ["--tls-listen", "127.0.0.1:0", "--tls-certificates", file, "--tls-key", file];
    let (code, said) = refused(&dir, &[&["--listen", "127.0.0.1:0"], &tls[..]].concat());
    assert_eq!(code, Some(2));
    assert!(said.contains("certificates: ") && said.contains(file), "{said}");
    let taken = TcpListener::bind("127.0.0.1:0").expect("a port");
    let place = taken.local_addr().expect("bound").to_string();
    let (code, said) = refused(&dir, &["--listen", &place]);
    assert_eq!(code, Some(2));
    assert!(said.contains(&place) && said.contains("--listen"), "{said}");
    let up = run(&scratch.0.join("up"), &["up", "--zookeeper", &place]);
    assert_eq!(up.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&up.stderr).contains(&place), "{up:?}");

    // One process at a time is a client.
    let (_serving, _) = gateway(&dir, &["--client", "3"]);
    let (code, said) = refused(&dir, &["--client", "3", "--listen", "127.0.0.1:0"]);
    assert_eq!(code, Some(5));
    assert!(said.contains("client 3"), "{said}");
}

#[test]
fn up_serves_zookeepers_clients_and_says_how_to_connect() {
    let scratch = Scratch::new("gateway-up");
    let dir = scratch.0.as_path();
    let (mut up, lines) = up_printing(dir, &["--zookeeper=127.0.0.1:0"]);
    let mut place = None;
    for line in lines {
        let line = line.expect("text");
        place = line.split_once("zkCli.sh -server ").map(|(_, place)| place.to_owned()).or(place);
        if line.contains("Logs:") {
            break;
        }
    }
    let place = place.expect("it says where");
    let (mut client, _) = Connection::open(&place, None);
    assert_eq!(client.create("/a", b"value", 0), 0);
    assert_eq!(&client.data("/a").expect("it is there")[..], b"value");

    // Whoever wants another gateway for this group is told how to have one.
    let again = ["up", "--zookeeper=127.0.0.1:0", "--dir", dir.to_str().expect("plain")];
    let said = usage(&dir.join("away"), &again);
    assert!(said.contains(&format!("`troth gateway zookeeper --dir {}`", dir.display())), "{said}");
    // Who sends what is no packet is disconnected, and whoever runs the gateway can read why.
    let mut wild = TcpStream::connect(&place).expect("the gateway listens");
    wild.write_all(&u32::MAX.to_be_bytes()).expect("it is written");
    let log = dir.join("gateway.log");
    until("it is logged", || std::fs::read_to_string(&log).ok()?.contains("--packet-bytes").then_some(()));

    up.signal("INT");
    assert_eq!(up.ends(), Some(0));
    assert!(!dir.exists(), "what it made is gone");
}

/// What a command that is refused says.
fn usage(dir: &Path, arguments: &[&str]) -> String {
    let output = run(dir, arguments);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn whoever_follows_its_errors_comes_to_a_coordination_service() {
    let scratch = Scratch::new("gateway-errors");
    let (dir, away) = (scratch.0.join("none"), scratch.0.join("away"));
    let place = dir.to_str().expect("plain");
    // Where none is there: one for its clients, and in the directory that was named.
    let said = usage(&away, &["gateway", "zookeeper", "--dir", place]);
    assert!(said.contains(&format!("`troth init --dir {place} --service zookeeper`")), "{said}");
    assert!(said.contains(&format!("`troth up --dir {place} --zookeeper`")), "{said}");
    // Whoever makes one is told of the gateway.
    let made = run(&dir, &["init", "--service", "zookeeper"]);
    assert!(made.status.success());
    let said = String::from_utf8_lossy(&made.stdout).into_owned();
    assert!(said.contains(&format!("  troth gateway zookeeper --dir {place}")), "{said}");
}
