//! `troth import zookeeper` from servers that lie, are old, or change while they are read.

use crate::gateway::{Connection, gateway};
use crate::killed::all;
use crate::support::{Running, Scratch, init_with, run, troth};
use bytes::Bytes;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::Command;
use std::sync::{Arc, Mutex};
use troth_zookeeper::jute::{Input, Output};
use troth_zookeeper::opcode;

/// Bytes of a list that is longer than what is taken.
const TOO_LONG: usize = 3 << 20;

/// Bytes of a name, and children of that node: their names fit a packet, their paths no memory.
const LONG_NAME: usize = 3900;
const CHILDREN: usize = 220_000;
/// KiB that an import may take in all, far less than those paths do.
const MEMORY: u64 = 700_000;

/// What a server is like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Like {
    /// It names children that are none, and lists more than anybody takes.
    Hostile,
    /// It knows nothing of watches on a whole tree, and is in use.
    Old,
    /// A node changes right after it was compared, of which the server tells.
    Changing,
    /// Below what clients take for the root there is a node with the name of the servers' own.
    Namesake,
    /// A counter of sequential children has wrapped.
    Wrapped,
    /// A node with a long name has very many children.
    Wide,
    /// It has what goes by itself: a container, with a node that stays, and a node with a time to live.
    Fading,
}

struct Server {
    like: Like,
    /// How often the node was read that changes.
    reads: u32,
    told: bool,
    zxid: i64,
}

impl Server {
    /// Serves on a free port; where.
    fn start(like: Like) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("bound").to_string();
        let server = Arc::new(Mutex::new(Self { like, reads: 0, told: false, zxid: 7 }));
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let server = Arc::clone(&server);
                std::thread::spawn(move || serve(stream, &server));
            }
        });
        address
    }

    /// Children by a node's path; none where there is no such node.
    fn children(&self, path: &str) -> Option<&'static [&'static str]> {
        match (self.like, path) {
            (Like::Hostile, "/") => Some(&["", ".", "..", "a/b", "long", "ok"]),
            (Like::Hostile, "/long") => Some(&["any"]),
            (Like::Hostile, "/ok") => Some(&[]),
            (Like::Namesake, "/app") => Some(&["zookeeper", "ok"]),
            (Like::Namesake, "/app/zookeeper") => Some(&["n"]),
            (Like::Namesake, "/app/ok" | "/app/zookeeper/n") => Some(&[]),
            (Like::Fading, "/") => Some(&["box", "full", "hot"]),
            (Like::Fading, "/full") => Some(&["n"]),
            (Like::Fading, "/box" | "/hot" | "/full/n") => Some(&[]),
            (Like::Wrapped, "/n") => Some(&["a", "b"]),
            (Like::Wrapped, "/n/a" | "/n/b") => Some(&[]),
            (Like::Wide, _) => Some(&["n"]),
            (_, "/") => Some(&["n"]),
            (_, "/n") => Some(&[]),
            _ => None,
        }
    }

    /// The error and the record that a request is answered with.
    fn answer(&mut self, code: i32, path: &str) -> (i32, Output) {
        let mut out = Output::new();
        if code == opcode::ADD_WATCH {
            // As for ZooKeeper, whether there is such a node or not.
            return (if self.like == Like::Changing { 0 } else { -6 }, out);
        }
        let Some(children) = self.children(path) else { return (-101, out) };
        match code {
            opcode::SYNC => {
                out.text(path);
                return (0, out);
            }
            opcode::GET_DATA => {
                self.reads += u32::from(path == "/n");
                let new = self.like == Like::Changing && path == "/n" && self.reads > 2;
                out.buffer(if new { b"new" } else { b"old" });
            }
            opcode::GET_ACL => {
                out.length(1).int(31).text("world").text("anyone");
            }
            opcode::GET_CHILDREN2 if path == "/long" => {
                out.buffer(&vec![0; TOO_LONG]);
            }
            opcode::GET_CHILDREN2 if self.like == Like::Wide && path == "/" => {
                out.length(1).text(&"w".repeat(LONG_NAME));
            }
            opcode::GET_CHILDREN2 if self.like == Like::Wide => {
                out.length(CHILDREN);
                (0..CHILDREN).for_each(|number| {
                    out.text(&format!("{number:x}"));
                });
            }
            opcode::GET_CHILDREN2 => {
                out.length(children.len());
                for name in children {
                    out.text(name);
                }
            }
            _ => {}
        }
        let count = i32::try_from(children.len()).expect("few");
        let owner = match path {
            "/box" | "/full" => i64::MIN,
            "/hot" => (0xff << 56) | (1 << 39),
            _ => 0,
        };
        // Twice 2^31 created, less those that are there.
        let changes = if self.like == Like::Wrapped && path == "/n" { -count } else { count };
        out.long(1).long(1).long(0).long(0).int(0).int(changes).int(0).long(owner).int(3).int(count).long(1);
        (0, out)
    }
}

fn framed(stream: &mut TcpStream, record: &[u8]) -> std::io::Result<()> {
    let length = u32::try_from(record.len()).expect("short").to_be_bytes();
    stream.write_all(&[&length[..], record].concat())
}

fn packet(stream: &mut TcpStream) -> std::io::Result<Bytes> {
    let mut length = [0; 4];
    stream.read_exact(&mut length)?;
    let mut packet = vec![0; u32::from_be_bytes(length) as usize];
    stream.read_exact(&mut packet)?;
    Ok(Bytes::from(packet))
}

/// A connection until its client leaves.
fn serve(mut stream: TcpStream, server: &Mutex<Server>) -> Option<()> {
    packet(&mut stream).ok()?;
    let mut out = Output::new();
    out.int(0).int(30_000).long(7).buffer(&[1; 16]).boolean(false);
    framed(&mut stream, &out.finish()).ok()?;
    let mut watches = false;
    loop {
        let request = packet(&mut stream).ok()?;
        let mut input = Input::new(&request);
        let (xid, code) = (input.int().ok()?, input.int().ok()?);
        let path = input.text().ok().flatten().unwrap_or_default();
        let mut server = server.lock().expect("no server panics");
        if matches!(server.like, Like::Old | Like::Changing) {
            server.zxid += 1;
        }
        watches |= code == opcode::ADD_WATCH;
        if code == opcode::SYNC && watches && server.reads >= 2 && !server.told {
            server.told = true;
            let mut event = Output::new();
            event.int(-1).long(server.zxid).int(0).int(3).int(3).text("/n");
            framed(&mut stream, &event.finish()).ok()?;
        }
        let (error, record) = server.answer(code, &path);
        let mut head = Output::new();
        head.int(xid).long(server.zxid).int(error);
        framed(&mut stream, &[&head.finish()[..], &record.finish()].concat()).ok()?;
        if error == -6 {
            return None;
        }
    }
}

/// A group with a gateway; the group, and where that serves.
struct Group {
    _scratch: Scratch,
    _running: (Vec<Running>, Running),
    gateway: String,
}

impl Group {
    fn new(name: &str) -> Self {
        let scratch = Scratch::new(name);
        init_with(&scratch.0, &["--service", "zookeeper", "--durability", "memory"]);
        let replicas = all(&scratch.0);
        let (process, gateway) = gateway(&scratch.0, &[]);
        Self { _scratch: scratch, _running: (replicas, process), gateway }
    }

    /// Imports from a server; the exit code, and what is said.
    fn import(&self, like: Like) -> (Option<i32>, String) {
        self.import_from(&Server::start(like), &[])
    }

    /// The same, with more options.
    fn import_from(&self, from: &str, more: &[&str]) -> (Option<i32>, String) {
        let dir = &self._scratch.0;
        let all = ["import", "zookeeper", "--from", from, "--to", &self.gateway];
        let output = run(dir, &[&all[..], more].concat());
        let said = [output.stdout, output.stderr].concat();
        (output.status.code(), String::from_utf8_lossy(&said).into_owned())
    }
}

#[test]
fn what_no_node_can_be_is_named_and_the_rest_comes() {
    let group = Group::new("import-hostile");
    let (code, said) = group.import(Like::Hostile);
    assert_eq!(code, Some(1), "{said}");
    for name in ["/", "/.", "/..", "/a/b"] {
        assert!(said.contains(&format!("  {name}: no path that Troth takes\n")), "{name}: {said}");
    }
    let listed = "/long: its children were not listed: the answer has ";
    assert!(said.contains(listed) && said.contains("Troth shows at most 2 MiB"), "{said}");
    assert!(said.contains("nodes that could not be read or written"), "{said}");
    let (mut client, _) = Connection::open(&group.gateway, None);
    assert_eq!(&client.data("/ok").expect("it came")[..], b"old");
    assert_eq!(&client.data("/long").expect("it came")[..], b"old");
    assert_eq!(client.data("/a"), Err(-101));
}

#[test]
fn equality_with_a_source_that_is_in_use_and_tells_of_no_change_is_none() {
    let group = Group::new("import-old");
    let (code, said) = group.import(Like::Old);
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("Written: 1 created"), "{said}");
    assert!(
        said.contains("does not tell what changed") && said.contains("stop all who write there"),
        "{said}"
    );
    assert!(!said.contains("Both trees are equal"), "{said}");
}

#[test]
fn what_changes_after_it_was_compared_is_compared_again() {
    let group = Group::new("import-changing");
    let (code, said) = group.import(Like::Changing);
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("/n: its data are others\n") && said.contains("1 differences"), "{said}");
}

#[test]
fn a_node_where_the_group_keeps_its_own_is_named_and_never_taken_for_equal() {
    let group = Group::new("import-namesake");
    let from = [&Server::start(Like::Namesake), "/app"].concat();
    // Delete-extra takes nothing away there.
    for more in [&["--dry-run"][..], &["--delete-extra"], &["--compare-only"]] {
        let (code, said) = group.import_from(&from, more);
        assert_eq!(code, Some(1), "{more:?}: {said}");
        let named = "/app/zookeeper: the group keeps this place for itself";
        assert!(said.contains(named) && !said.contains("trees are equal"), "{more:?}: {said}");
    }
    let (mut client, _) = Connection::open(&group.gateway, None);
    assert_eq!(&client.data("/ok").expect("it came")[..], b"old");
    assert_eq!(client.data("/zookeeper/n"), Err(-101));
    assert!(client.data("/zookeeper/quota").is_ok());
}

#[test]
fn a_counter_that_cannot_be_told_is_named_and_not_continued() {
    let group = Group::new("import-wrapped");
    for more in [&["--dry-run"][..], &[], &["--compare-only"]] {
        let (code, said) = group.import_from(&Server::start(Like::Wrapped), more);
        assert_eq!(code, Some(1), "{more:?}: {said}");
        assert!(said.contains("  /n: the counter of its sequential children is past"), "{more:?}: {said}");
        assert!(!said.contains("trees are equal"), "{more:?}: {said}");
    }
}

#[test]
fn names_are_counted_as_they_come_and_not_when_all_are_there() {
    let group = Group::new("import-wide");
    let from = Server::start(Like::Wide);
    let dir = &group._scratch.0;
    let import = troth(dir);
    // Under a bound on memory, which is the shell's to set.
    let mut bounded = Command::new("sh");
    bounded.env("TROTH_DIR", dir);
    bounded.args(["-c", &format!("ulimit -v {MEMORY} && exec \"$0\" \"$@\"")]).arg(import.get_program());
    bounded.args(["import", "zookeeper", "--dry-run", "--from", &from]);
    bounded.args(["--to", &group.gateway]);
    let output = bounded.output().expect("it runs");
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(5), "{said}");
    assert!(said.contains("more nodes side by side than can be kept in mind"), "{said}");
}

#[test]
fn what_goes_by_itself_is_missed_where_it_never_was() {
    let group = Group::new("import-fading");
    let from = Server::start(Like::Fading);
    let (code, said) = group.import_from(&from, &["--compare-only"]);
    assert_eq!(code, Some(1), "{said}");
    for path in ["/box", "/full", "/full/n", "/hot"] {
        assert!(said.contains(&format!("  {path}: only the source has it")), "{path}: {said}");
    }
    let (code, said) = group.import_from(&from, &[]);
    assert_eq!(code, Some(0), "{said}");
    let (code, said) = group.import_from(&from, &["--compare-only"]);
    assert_eq!(code, Some(0), "{said}");
}
