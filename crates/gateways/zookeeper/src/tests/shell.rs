//! The gateway over real sockets, before a group within this process.

use super::marks::covers;
use super::support::{create, get, hello, request, set};
use crate::{Gateway, Group, Settings};
use bytes::Bytes;
use core::net::SocketAddr;
use core::time::Duration;
use std::sync::{Arc, Mutex};
use std::time::SystemTime;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use tokio::sync::mpsc;
use tokio::time::timeout;
use troth_client::ClientError;
use troth_exec::{Application, MerkleMap, OpContext, State, StateView};
use troth_types::{ClientId, Digest, Event, GroupId, Seq, Time};
use troth_zookeeper::Carrier;
use troth_zookeeper::{ZooKeeper, opcode};

const GATEWAY: ClientId = ClientId(1);
/// Far more than anything here takes.
const PATIENCE: Duration = Duration::from_secs(20);

struct Inner {
    service: ZooKeeper,
    map: MerkleMap,
    seq: u64,
    /// Microseconds by which the agreed time is behind.
    behind: u64,
    /// How long it takes to order something.
    takes: Duration,
    events: mpsc::Sender<Event>,
}

#[expect(clippy::disallowed_methods, reason = "the group has a clock, as its gateways have")]
fn time_of_day() -> Time {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).expect("after 1970");
    Time(u64::try_from(since.as_micros()).expect("before the end of time"))
}

/// One replica that everybody believes.
#[derive(Clone)]
struct Local(Arc<Mutex<Inner>>);

impl Local {
    fn new() -> (Self, mpsc::Receiver<Event>) {
        let (events, receiver) = mpsc::channel(1024);
        let map = MerkleMap::with_order(b"");
        (
            Self(Arc::new(Mutex::new(Inner {
                service: ZooKeeper::default(),
                map,
                seq: 0,
                behind: 0,
                takes: Duration::ZERO,
                events,
            }))),
            receiver,
        )
    }
}

impl Group for Local {
    fn carrier(&self) -> Carrier {
        Carrier { group: GroupId::default(), gateway: GATEWAY }
    }

    fn execute(
        &self,
        operations: Vec<Bytes>,
    ) -> impl Future<Output = Result<Vec<Bytes>, ClientError>> + Send + 'static {
        let group = self.clone();
        async move {
            let takes = group.0.lock().expect("nobody panics with it").takes;
            if !takes.is_zero() {
                tokio::time::sleep(takes).await;
            }
            let mut inner = group.0.lock().expect("nobody panics with it");
            let Inner { service, map, seq, behind, events, .. } = &mut *inner;
            *seq += 1;
            let mut told = Vec::new();
            let run = |operation: &Bytes| {
                let now = Time(time_of_day().0 - *behind);
                let mut cx = OpContext::new(GATEWAY, *seq, Seq(*seq), now, Digest::ZERO, &mut told);
                service.execute(&mut State::new(map), &mut cx, operation)
            };
            let results = operations.iter().map(run).collect();
            for (client, payload) in told {
                let event = Event { client, index: *seq, seq: Seq(*seq), payload };
                events.try_send(event).expect("room");
            }
            Ok(results)
        }
    }

    fn read(
        &self,
        operation: Bytes,
        _: bool,
    ) -> impl Future<Output = Result<Bytes, ClientError>> + Send + 'static {
        let group = self.clone();
        async move {
            let inner = group.0.lock().expect("nobody panics with it");
            Ok(inner.service.query(&StateView::new(&inner.map), GATEWAY, &operation))
        }
    }
}

pub struct Raw<S>(pub S);

impl Raw<TcpStream> {
    async fn connect(address: SocketAddr) -> Self {
        Self(TcpStream::connect(address).await.expect("somebody listens"))
    }

    async fn open(address: SocketAddr) -> Self {
        let mut client = Self::connect(address).await;
        client.send(&hello(0, 10_000, 0, &[])).await;
        assert_eq!(client.receive().await.len(), 37);
        client
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> Raw<S> {
    /// Whether it is given a session.
    pub async fn try_open(&mut self) -> bool {
        let packet = hello(0, 10_000, 0, &[]);
        let length = u32::try_from(packet.len()).expect("short").to_be_bytes();
        let mut answer = [0; 4 + 37];
        let asked = async {
            self.0.write_all(&[&length, &packet[..]].concat()).await?;
            self.0.flush().await?;
            self.0.read_exact(&mut answer).await
        };
        timeout(PATIENCE, asked).await.expect("it ends").is_ok()
    }

    pub async fn send(&mut self, packet: &[u8]) {
        let length = u32::try_from(packet.len()).expect("short").to_be_bytes();
        self.0.write_all(&[&length, packet].concat()).await.expect("it is written");
    }

    pub async fn receive(&mut self) -> Vec<u8> {
        let read = async {
            let length = self.0.read_u32().await.expect("a length");
            let mut packet = vec![0; usize::try_from(length).expect("short")];
            self.0.read_exact(&mut packet).await.expect("a packet");
            packet
        };
        timeout(PATIENCE, read).await.expect("it comes")
    }

    /// The number of the next packet, and its error.
    async fn next(&mut self) -> (i32, i32) {
        let packet = self.receive().await;
        let number = |at: usize| i32::from_be_bytes(packet[at..at + 4].try_into().expect("a header"));
        (number(0), number(12))
    }

    /// All that comes until the connection ends.
    pub async fn rest(&mut self) -> Vec<u8> {
        let mut rest = Vec::new();
        // Where bytes of ours were not read any more, the end is a reset.
        let _ = timeout(PATIENCE, self.0.read_to_end(&mut rest)).await.expect("it ends");
        rest
    }
}

pub async fn gateway(settings: Settings) -> (Gateway, SocketAddr) {
    let (group, events) = Local::new();
    let listen = vec![SocketAddr::from(([127, 0, 0, 1], 0))];
    let gateway = Gateway::over(Settings { listen, ..settings }, group, events).await.expect("it starts");
    let address = gateway.addresses()[0];
    (gateway, address)
}

#[tokio::test]
async fn clients_are_served_over_sockets() {
    let (gateway, address) = gateway(super::support::open_settings()).await;
    let (mut one, mut other) = (Raw::open(address).await, Raw::open(address).await);
    one.send(&request(1, opcode::CREATE, &create("/a", "", 0))).await;
    one.send(&request(2, opcode::GET_DATA, &get("/a", true))).await;
    assert_eq!([one.next().await, one.next().await], [(1, 0), (2, 0)]);
    other.send(&request(1, opcode::SET_DATA, &set("/a", "x"))).await;
    assert_eq!(other.next().await, (1, 0));
    assert_eq!(one.next().await.0, -1);
    // More than a connection may have outstanding, in one write.
    for xid in 0..10_000 {
        one.send(&request(xid, opcode::EXISTS, &get("/a", false))).await;
        if xid % 5_000 == 4_999 {
            for expected in xid - 4_999..=xid {
                assert_eq!(one.next().await, (expected, 0));
            }
        }
    }
    let mut word = Raw::connect(address).await;
    word.0.write_all(b"ruok").await.expect("it is written");
    assert_eq!(word.rest().await, b"imok");
    one.send(&request(3, opcode::CLOSE_SESSION, &Bytes::new())).await;
    assert_eq!(one.next().await, (3, 0));
    assert!(one.rest().await.is_empty());
    gateway.stop().await;
    assert!(other.rest().await.is_empty());
    assert!(TcpStream::connect(address).await.is_err(), "nobody listens any more");
}

#[tokio::test]
async fn what_is_said_has_the_time_of_day() {
    covers!("ZKG-L5");
    let (group, events) = Local::new();
    let listen = vec![SocketAddr::from(([127, 0, 0, 1], 0))];
    let settings = Settings { listen, ..Settings::default() };
    let gateway = Gateway::over(settings, group.clone(), events).await.expect("it starts");
    let address = gateway.addresses()[0];
    let mut client = Raw::open(address).await;
    // A group whose time is an hour ago, and a client with a session and one without.
    group.0.lock().expect("nobody panics with it").behind = 3_600_000_000;
    client.send(&request(1, opcode::CREATE, &create("/a", "", 0))).await;
    assert!(client.rest().await.is_empty());
    assert!(!Raw::connect(address).await.try_open().await);
    // Where it is ahead, what is said is old.
    group.0.lock().expect("nobody panics with it").behind = 0;
    let mut client = Raw::open(address).await;
    client.send(&request(1, opcode::CREATE, &create("/a", "", 0))).await;
    assert_eq!(client.next().await, (1, 0));
}

#[tokio::test]
async fn events_that_are_there_are_taken_before_the_answer() {
    covers!("ZKG-E1");
    let (_gateway, address) = gateway(Settings::default()).await;
    let mut client = Raw::open(address).await;
    client.send(&request(0, opcode::CREATE, &create("/a", "", 0))).await;
    assert_eq!(client.next().await, (0, 0));
    for xid in (1..400).step_by(2) {
        client.send(&request(xid, opcode::GET_DATA, &get("/a", true))).await;
        assert_eq!(client.next().await, (xid, 0));
        client.send(&request(xid + 1, opcode::SET_DATA, &set("/a", ""))).await;
        assert_eq!([client.next().await.0, client.next().await.0], [-1, xid + 1]);
    }
}

#[tokio::test]
async fn a_client_that_sends_too_much_is_closed() {
    let (_gateway, address) = gateway(Settings::default()).await;
    let mut client = Raw::connect(address).await;
    // A session that is not over for its silence before anybody here loses patience.
    client.send(&hello(0, 40_000, 0, &[])).await;
    client.receive().await;
    client.0.write_all(&(1_u32 << 20).to_be_bytes()).await.expect("it is written");
    assert!(client.rest().await.is_empty());
}

/// As the C client's `zookeeper_close` does.
#[tokio::test]
async fn a_client_that_does_not_wait_for_answers_has_all_done() {
    covers!("ZKG-S6");
    for outstanding_requests in [2, 4096] {
        let (group, events) = Local::new();
        group.0.lock().expect("nobody panics with it").takes = Duration::from_millis(30);
        let listen = vec![SocketAddr::from(([127, 0, 0, 1], 0))];
        let settings = Settings { outstanding_requests, listen, ..Settings::default() };
        let gateway = Gateway::over(settings, group, events).await.expect("it starts");
        let address = gateway.addresses()[0];
        let mut client = Raw::open(address).await;
        client.send(&request(0, opcode::CREATE, &create("/here", "", 1))).await;
        // It is on its way when the others come: they wait.
        tokio::time::sleep(Duration::from_millis(5)).await;
        let last = (1, opcode::CREATE, create("/last", "", 0));
        let all = (0..20).map(|_| (1, opcode::SET_DATA, set("/", "")));
        let packets: Vec<u8> = all
            .chain([last, (2, opcode::CLOSE_SESSION, Bytes::new())])
            .flat_map(|(xid, code, body)| {
                let packet = request(xid, code, &body);
                [&u32::try_from(packet.len()).expect("short").to_be_bytes(), &packet[..]].concat()
            })
            .collect();
        client.0.write_all(&packets).await.expect("it is written");
        drop(client);
        let mut other = Raw::open(address).await;
        let done = async {
            for (path, error) in [("/last", 0), ("/here", -101)] {
                loop {
                    other.send(&request(1, opcode::EXISTS, &get(path, false))).await;
                    if other.next().await == (1, error) {
                        break;
                    }
                    tokio::time::sleep(Duration::from_millis(2)).await;
                }
            }
        };
        timeout(Duration::from_secs(5), done).await.expect("long before its time-out");
    }
}

#[tokio::test]
async fn a_reader_waits_until_there_is_room() {
    let settings = Settings { outstanding_requests: 2, ..Settings::default() };
    let (_gateway, address) = gateway(settings).await;
    let mut client = Raw::open(address).await;
    let packets: Vec<u8> = (0..200)
        .flat_map(|xid| {
            let packet = request(xid, opcode::SET_DATA, &set("/", ""));
            [&u32::try_from(packet.len()).expect("short").to_be_bytes(), &packet[..]].concat()
        })
        .collect();
    client.0.write_all(&packets).await.expect("it is written");
    for xid in 0..200 {
        assert_eq!(client.next().await, (xid, 0));
    }
}

#[tokio::test]
async fn the_gateway_ends_with_its_groups_client() {
    let (group, events) = Local::new();
    let listen = vec![SocketAddr::from(([127, 0, 0, 1], 0))];
    let settings = Settings { listen, ..Settings::default() };
    let mut gateway = Gateway::over(settings, group.clone(), events).await.expect("it starts");
    let mut client = Raw::open(gateway.addresses()[0]).await;
    // The sender of its events goes.
    group.0.lock().expect("nobody panics with it").events = mpsc::channel(1).0;
    timeout(PATIENCE, gateway.ended()).await.expect("it ends");
    assert!(client.rest().await.is_empty());
}

#[tokio::test]
async fn the_admin_pages_are_served_over_http() {
    let admin = Some(SocketAddr::from(([127, 0, 0, 1], 0)));
    let (gateway, _) = gateway(Settings { admin, ..Settings::default() }).await;
    let address = gateway.admin().expect("an address");
    for (asked, status, said) in [
        ("GET /commands/ruok HTTP/1.1", "200 OK", "{\"command\":\"ruok\",\"error\":null}"),
        ("GET /commands HTTP/1.1", "200 OK", "<a href=\"/commands/monitor\">monitor</a>"),
        ("GET /commands/none?x=y HTTP/1.1", "404 Not Found", "Unknown command: none"),
        ("GET / HTTP/1.1", "404 Not Found", "/commands"),
        ("POST /commands/srst HTTP/1.1", "405 Method Not Allowed", "GET"),
    ] {
        let mut asks = Raw::connect(address).await;
        asks.0.write_all(format!("{asked}\r\nHost: here\r\n\r\n").as_bytes()).await.expect("it is written");
        let page = String::from_utf8(asks.rest().await).expect("a text");
        assert!(page.starts_with(&format!("HTTP/1.1 {status}\r\n")), "{page}");
        assert!(page.split("\r\n\r\n").nth(1).is_some_and(|body| body.contains(said)), "{page}");
    }
}

/// A group that answers once, and then nothing more.
struct Once(Local, std::sync::atomic::AtomicBool);

impl Group for Once {
    fn carrier(&self) -> Carrier {
        self.0.carrier()
    }

    fn execute(
        &self,
        operations: Vec<Bytes>,
    ) -> impl Future<Output = Result<Vec<Bytes>, ClientError>> + Send + 'static {
        let over = self.1.swap(true, std::sync::atomic::Ordering::Relaxed);
        let answer = self.0.execute(operations);
        async move { if over { core::future::pending().await } else { answer.await } }
    }

    fn read(
        &self,
        operation: Bytes,
        recent: bool,
    ) -> impl Future<Output = Result<Bytes, ClientError>> + Send + 'static {
        self.0.read(operation, recent)
    }
}

#[tokio::test]
async fn what_is_under_way_when_the_gateway_stops_is_written_down_as_unknown() {
    covers!("ZKG-W2");
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("audit.log");
    let (group, events) = Local::new();
    let group = Once(group, false.into());
    let audit = Some(crate::Log::at(crate::Place::File(path.clone())));
    let settings =
        Settings { listen: vec!["127.0.0.1:0".parse().expect("an address")], audit, ..Settings::default() };
    let gateway = Gateway::over(settings, group, events).await.expect("it starts");
    let mut client = Raw::open(gateway.addresses()[0]).await;
    // The gateway answers the sign of life after it has taken what stands before it.
    client.send(&request(1, opcode::CREATE, &create("/a", "", 0))).await;
    client.send(&request(-2, opcode::PING, &Bytes::new())).await;
    assert_eq!(client.receive().await[..4], (-2i32).to_be_bytes());
    timeout(PATIENCE, gateway.stop()).await.expect("it ends");
    let text = std::fs::read_to_string(&path).expect("a log");
    let last = text.lines().last().expect("a line");
    assert!(last.contains("\"path\":\"/a\"") && last.contains("\"result\":\"unknown\""), "{text}");
}

#[tokio::test]
async fn where_one_address_is_named_nobody_else_takes_its_place() {
    let socket = TcpSocket::new_v4().expect("a socket");
    socket.bind(([127, 0, 0, 1], 0).into()).expect("a port");
    let only = Some(socket.local_addr().expect("bound"));
    let (_gateway, address) = gateway(Settings { only, connections: 1, ..Settings::default() }).await;
    assert!(!Raw::connect(address).await.try_open().await, "a stranger");
    let stream = socket.connect(address).await.expect("somebody listens");
    assert!(Raw(stream).try_open().await, "the one that is meant");
}

#[tokio::test]
async fn of_packets_that_go_out_together_each_is_given_back() {
    covers!("ZKG-B4");
    let (_gateway, address) = gateway(Settings { unwritten_bytes: 20_000, ..Settings::default() }).await;
    let mut client = Raw::open(address).await;
    let ping = request(-2, opcode::PING, &Bytes::new());
    let packets = [&u32::try_from(ping.len()).expect("short").to_be_bytes(), &ping[..]].concat().repeat(50);
    for _ in 0..40 {
        client.0.write_all(&packets).await.expect("it is written");
        for _ in 0..50 {
            assert_eq!(client.next().await, (-2, 0));
        }
    }
}
