//! The load: connections that each keep their share of requests outstanding, and write and read many of them with one
//! call, so that what is measured is the servers.

use super::records::{Template, accepted, answered, connect, take};
use crate::Failure;
use crate::cli::Clients;
use crate::load::Controls;
use std::collections::VecDeque;
use std::rc::Rc;
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// Nodes that are written and read: as many as there are keys in the measurement of the key-value service.
pub(super) const NODES: u64 = 10_000;
/// Bytes of room for what is read.
const ROOM: usize = 64 << 10;
/// Requests under way while nothing is measured.
const AT_ONCE: usize = 100;
/// How long an ensemble may take for any one thing: nothing here is slow but what is broken.
const PATIENCE: Duration = Duration::from_secs(20);

/// What is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Work {
    /// Data of so many bytes are written to nodes that are there.
    Set(usize),
    /// Nodes with so many bytes are made.
    Create(usize),
    /// Data are read.
    Get,
    /// Seven reads for three writes of so many bytes.
    Mixed(usize),
}

impl Work {
    /// Bytes of what is written.
    fn bytes(self) -> usize {
        match self {
            Self::Set(bytes) | Self::Create(bytes) | Self::Mixed(bytes) => bytes,
            Self::Get => 0,
        }
    }
}

/// A connection with its session.
pub(super) struct Connection {
    stream: TcpStream,
    read: Vec<u8>,
    /// Bytes of `read` that hold something.
    filled: usize,
    out: Vec<u8>,
    xid: i32,
    /// Requests on their way, in order: when each left.
    under_way: VecDeque<(i32, Instant)>,
}

fn silent(_: tokio::time::error::Elapsed) -> Failure {
    format!("a server says nothing for {} s", PATIENCE.as_secs()).into()
}

impl Connection {
    /// Opens a session.
    pub(super) async fn open(address: &str) -> Result<Self, Failure> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        let (read, out) = (vec![0; ROOM], connect());
        let mut connection = Self { stream, read, filled: 0, out, xid: 0, under_way: VecDeque::new() };
        connection.flush().await?;
        let mut given = None;
        while given.is_none() {
            connection.fill().await?;
            connection.packets(|_, packet| {
                given = Some(accepted(packet));
                Ok(())
            })?;
        }
        if given == Some(true) { Ok(connection) } else { Err(format!("{address} gives no session").into()) }
    }

    fn ask(&mut self, request: &Template, now: Instant) {
        self.xid += 1;
        request.write(self.xid, &mut self.out);
        self.under_way.push_back((self.xid, now));
    }

    async fn flush(&mut self) -> Result<(), Failure> {
        tokio::time::timeout(PATIENCE, self.stream.write_all(&self.out)).await.map_err(silent)??;
        self.out.clear();
        Ok(())
    }

    /// Reads once.
    async fn fill(&mut self) -> Result<usize, Failure> {
        if self.filled == self.read.len() {
            self.read.resize(2 * self.filled, 0);
        }
        let reading = self.stream.read(&mut self.read[self.filled..]);
        match tokio::time::timeout(PATIENCE, reading).await.map_err(silent)?? {
            0 => Err("a server closed its connection".into()),
            count => {
                self.filled += count;
                Ok(count)
            }
        }
    }

    /// Hands on every whole packet that was read.
    fn packets(
        &mut self,
        mut each: impl FnMut(&mut VecDeque<(i32, Instant)>, &[u8]) -> Result<(), String>,
    ) -> Result<(), String> {
        let mut rest = &self.read[..self.filled];
        while let Some(packet) = take(&mut rest)? {
            each(&mut self.under_way, packet)?;
        }
        let (left, end) = (rest.len(), self.filled);
        self.read.copy_within(end - left..end, 0);
        self.filled = left;
        Ok(())
    }

    /// Counts the answers that were read, and gives how many they are.
    fn answers(&mut self, controls: &Controls) -> Result<usize, String> {
        let (now, keep) = (Instant::now(), controls.keep.get());
        let (mut count, mut latencies) = (0, controls.latencies.borrow_mut());
        self.packets(|under_way, packet| {
            let answer = answered(packet)?;
            let Some((xid, left)) = under_way.pop_front() else {
                return Err(format!("an answer to nothing: {answer:?}"));
            };
            if answer.xid != xid || answer.error != 0 {
                return Err(format!("request {xid} was answered with {answer:?}"));
            }
            count += 1;
            if keep {
                let micros = now.saturating_duration_since(left).as_micros();
                latencies.push((u32::try_from(micros).unwrap_or(u32::MAX), 1));
            }
            Ok(())
        })?;
        Ok(count)
    }

    /// Has all of this done, so many at a time.
    pub(super) async fn all(
        &mut self,
        requests: impl Iterator<Item = Template>,
        at_once: usize,
    ) -> Result<(), Failure> {
        let (controls, now) = (Controls::default(), Instant::now());
        let mut requests = requests.peekable();
        while requests.peek().is_some() || !self.under_way.is_empty() {
            while self.under_way.len() < at_once
                && let Some(request) = requests.next()
            {
                self.ask(&request, now);
            }
            self.flush().await?;
            self.fill().await?;
            self.answers(&controls)?;
        }
        Ok(())
    }
}

/// The path of a node that is there from the start.
pub(super) fn path(number: u64) -> String {
    format!("/key-{number:012}")
}

/// Below which a connection makes nodes.
fn place(connection: u16) -> String {
    format!("/made-by-{connection}")
}

/// What a connection asks for next.
struct Requests {
    work: Work,
    templates: Rc<Templates>,
    value: Vec<u8>,
    place: String,
    state: u64,
    made: u64,
}

impl Requests {
    fn new(work: Work, seed: u16, templates: Rc<Templates>) -> Self {
        let (value, place, state) = (vec![7; work.bytes()], place(seed), u64::from(seed) + 1);
        Self { work, templates, value, place, state, made: 0 }
    }

    /// A number that the next calls do not repeat soon.
    fn draw(&mut self) -> u64 {
        self.state =
            self.state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        self.state >> 33
    }

    fn next(&mut self, connection: &mut Connection, now: Instant) {
        let node = usize::try_from(self.draw() % NODES).expect("nodes are few");
        let reads = match self.work {
            Work::Get => true,
            Work::Mixed(_) => self.draw() % 10 < 7,
            Work::Set(_) | Work::Create(_) => false,
        };
        match self.work {
            _ if reads => connection.ask(&self.templates.reads[node], now),
            Work::Set(_) | Work::Mixed(_) | Work::Get => connection.ask(&self.templates.writes[node], now),
            Work::Create(_) => {
                let path = format!("{}/{:09}", self.place, self.made);
                self.made += 1;
                connection.ask(&Template::create(&path, &self.value), now);
            }
        }
    }
}

/// The requests that are made once: making them is none of the servers' work.
pub(super) struct Templates {
    reads: Vec<Template>,
    writes: Vec<Template>,
}

impl Templates {
    pub(super) fn new(work: Work) -> Self {
        let value = vec![7; work.bytes()];
        let all = |make: &dyn Fn(&str) -> Template| (0..NODES).map(|number| make(&path(number))).collect();
        Self { reads: all(&Template::get), writes: all(&|path| Template::set(path, &value)) }
    }
}

/// One connection's part of a round: from its session's opening to its end. Nodes that it made are removed again.
pub(super) async fn drive(
    address: String,
    number: u16,
    clients: Clients,
    work: Work,
    templates: Rc<Templates>,
    controls: Rc<Controls>,
) -> Result<(), Failure> {
    let mut connection = Connection::open(&address).await?;
    let mut requests = Requests::new(work, number, templates);
    let makes = matches!(work, Work::Create(_));
    if makes {
        connection.all([Template::create(&requests.place, &[])].into_iter(), 1).await?;
    }
    let share = clients.share(number) as usize;
    while controls.go_on.get() || !connection.under_way.is_empty() {
        if controls.go_on.get() && connection.under_way.len() < share {
            let now = Instant::now();
            while connection.under_way.len() < share {
                requests.next(&mut connection, now);
            }
            connection.flush().await?;
            count(&controls, |progress| progress.writes += 1);
        }
        let bytes = connection.fill().await?;
        let answers = connection.answers(&controls)?;
        count(&controls, |progress| {
            progress.reads += 1;
            progress.bytes_in += bytes as u64;
            progress.done += answers as u64;
        });
    }
    if makes {
        let made =
            (0..requests.made).map(|number| Template::delete(&format!("{}/{number:09}", requests.place)));
        connection.all(made.chain([Template::delete(&requests.place)]), share.max(AT_ONCE)).await?;
    }
    connection.all([Template::close()].into_iter(), 1).await
}

fn count(controls: &Controls, change: impl FnOnce(&mut crate::load::Progress)) {
    let mut progress = controls.progress.get();
    change(&mut progress);
    controls.progress.set(progress);
}

/// Writes the nodes that are written and read, each once; makes them where they are not there yet.
pub(crate) async fn write_nodes(address: &str, bytes: usize, new: bool) -> Result<(), Failure> {
    let (mut connection, value) = (Connection::open(address).await?, vec![7; bytes]);
    let write = if new { Template::create } else { Template::set };
    let nodes = (0..NODES).map(|number| write(&path(number), &value));
    connection.all(nodes, AT_ONCE).await?;
    connection.all([Template::close()].into_iter(), 1).await
}
