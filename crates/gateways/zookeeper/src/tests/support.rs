//! Gateways of one group, and the group's state machine behind them, as pure as they are: each call is executed, and its answer
//! and the events are handed in, when the test says so.

pub use super::packets::*;
use crate::{CallId, ConnectionId, Machine, Output, Peer, Record as Line, Settings};
use bytes::Bytes;
use std::collections::{BTreeMap, VecDeque};
use troth_client::{ClientError, Course};
use troth_exec::{Application, MerkleMap, OpContext, State, StateView};
use troth_types::{ClientId, Digest, GroupId, Seq, Time, Wire};
use troth_zookeeper::Carrier;
use troth_zookeeper::jute::Input;
use troth_zookeeper::{Notice, Said, ZooKeeper};

/// A client's view of its connection.
#[derive(Clone, Debug, Default)]
pub struct Told {
    /// Packets, the oldest first.
    pub packets: Vec<Packet>,
    /// Whether the gateway closed it, and whether it wrote what there was before.
    pub closed: Option<bool>,
    /// Whether it went by itself: then nobody is told anything.
    pub gone: bool,
    /// Packets that the gateway is done with.
    pub done: usize,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Packet {
    Connected { timeout: i32, session: i64, password: [u8; 16], read_only: Option<bool> },
    Reply { xid: i32, zxid: i64, error: i32, body: Bytes },
    Event { zxid: i64, kind: i32, path: String },
    Text(String),
}

/// A call on its way.
#[derive(Clone, Debug)]
pub struct Call {
    pub gateway: usize,
    pub call: CallId,
    pub operations: Vec<Bytes>,
    /// The gateway's time of day when it was sent.
    pub said: Time,
    pub reads: bool,
    /// Whether nobody else's operations are in its frame.
    pub apart: bool,
    /// The batch that a read must show that need not show the present.
    pub least: Option<u64>,
    /// What came of it, and the events before it.
    pub answer: Option<(Vec<Bytes>, usize)>,
    /// The batch that it was.
    batch: u64,
}

/// A connection of a client to one of the gateways.
pub type Client = (usize, ConnectionId);

pub struct World {
    pub service: ZooKeeper,
    pub map: MerkleMap,
    pub now: u64,
    seq: u64,
    /// The states after each batch from the first.
    states: Vec<MerkleMap>,
    pub gateways: Vec<Machine>,
    /// All events of each gateway, and how many were handed in.
    events: Vec<(Vec<Bytes>, usize)>,
    /// The batch of each event of each gateway.
    caused: Vec<Vec<u64>>,
    /// The highest batch of which each gateway was told, by answers to what was ordered and by events.
    shown: Vec<u64>,
    pub calls: VecDeque<Call>,
    pub told: BTreeMap<Client, Told>,
    /// Lines for logs that the gateways made, of all of them.
    pub lines: Vec<Line>,
    next: u64,
}

pub const PASSWORD: [u8; 16] = [7; 16];

pub fn open_settings() -> Settings {
    Settings { words: ["*".to_owned()].into(), ..Settings::default() }
}

impl World {
    pub fn new() -> Self {
        Self::of(1, &open_settings())
    }

    pub fn of(gateways: usize, settings: &Settings) -> Self {
        Self {
            service: ZooKeeper { timeouts: (1_000, 40_000), ..ZooKeeper::default() },
            map: MerkleMap::with_order(b""),
            now: 1_700_000_000_000_000,
            seq: 0,
            states: vec![MerkleMap::with_order(b"")],
            gateways: (0..gateways)
                .map(|number| Carrier { group: GroupId::default(), gateway: ClientId(number as u64) })
                .map(|carrier| Machine::new(settings.clone(), carrier))
                .collect(),
            events: vec![(Vec::new(), 0); gateways],
            caused: vec![Vec::new(); gateways],
            shown: vec![0; gateways],
            calls: VecDeque::new(),
            told: BTreeMap::new(),
            lines: Vec::new(),
            next: 0,
        }
    }

    pub fn time(&self) -> Time {
        Time(self.now)
    }

    /// A connection, without a word yet.
    pub fn connect(&mut self, gateway: usize) -> Client {
        self.connect_from(gateway, "127.0.0.1:4000")
    }

    pub fn connect_from(&mut self, gateway: usize, address: &str) -> Client {
        self.next += 1;
        let id = ConnectionId(self.next);
        let mut random = [0; 32];
        random[..16].copy_from_slice(&PASSWORD);
        random[16..24].copy_from_slice(&self.next.to_be_bytes());
        let peer = Peer { address: address.parse().expect("an address"), certificate: None, random };
        self.told.insert((gateway, id), Told::default());
        let now = self.time();
        self.gateways[gateway].opened(now, id, peer);
        self.collect();
        (gateway, id)
    }

    /// A connection with a session of ten seconds.
    pub fn open(&mut self, gateway: usize) -> Client {
        let client = self.connect(gateway);
        self.packet(client, hello(0, 10_000, 0, &[]));
        self.settle();
        assert!(matches!(self.packets(client)[..], [Packet::Connected { timeout: 10_000, .. }]));
        self.told.get_mut(&client).expect("a client").packets.clear();
        client
    }

    /// The session that such a connection was given.
    pub fn packet(&mut self, client: Client, packet: Bytes) {
        self.burst(client, vec![packet]);
    }

    pub fn burst(&mut self, client: Client, packets: Vec<Bytes>) {
        let now = self.time();
        self.gateways[client.0].packets(now, client.1, packets);
        self.collect();
    }

    pub fn send(&mut self, client: Client, xid: i32, code: i32, body: &Bytes) {
        self.packet(client, request(xid, code, body));
    }

    /// Sends a request and lets it be answered.
    pub fn ask(&mut self, client: Client, xid: i32, code: i32, body: &Bytes) -> (i32, Bytes) {
        self.send(client, xid, code, body);
        self.settle();
        let packets = std::mem::take(&mut self.told.get_mut(&client).expect("a client").packets);
        match packets.last() {
            Some(Packet::Reply { xid: of, error, body, .. }) if *of == xid => (*error, body.clone()),
            other => panic!("request {xid} was answered with {other:?}"),
        }
    }

    pub fn packets(&self, client: Client) -> &[Packet] {
        &self.told[&client].packets
    }

    pub fn take(&mut self, client: Client) -> Vec<Packet> {
        std::mem::take(&mut self.told.get_mut(&client).expect("a client").packets)
    }

    pub fn closed(&self, client: Client) -> Option<bool> {
        self.told[&client].closed
    }

    fn collect(&mut self) {
        for gateway in 0..self.gateways.len() {
            while let Some(line) = self.gateways[gateway].poll_record() {
                self.lines.push(line);
            }
            while let Some(output) = self.gateways[gateway].poll() {
                match output {
                    Output::Write { to, bytes } => {
                        let told = self.told.get_mut(&(gateway, to)).expect("a client");
                        assert!(told.closed.is_none() && !told.gone, "nothing is written to what is closed");
                        let first = told.packets.is_empty() && told.done == 0;
                        told.packets.push(decode(&bytes, first));
                    }
                    Output::Done { connection, .. } => {
                        let told = self.told.get_mut(&(gateway, connection)).expect("a client");
                        assert!(!told.gone, "nobody reads");
                        told.done += 1;
                    }
                    Output::Close { connection, flush } => {
                        let told = self.told.get_mut(&(gateway, connection)).expect("a client");
                        assert!(!told.gone, "it is closed already");
                        assert_eq!(told.closed.replace(flush), None, "it is closed once");
                    }
                    Output::Execute { call, operations } => {
                        self.ask_group(gateway, call, operations, (false, false), None)
                    }
                    Output::ExecuteApart { call, operations } => {
                        self.ask_group(gateway, call, operations, (false, true), None)
                    }
                    Output::Read { call, operation, recent } => {
                        let least = recent.then_some(self.shown[gateway]);
                        self.ask_group(gateway, call, vec![operation], (true, false), least);
                    }
                }
            }
        }
    }

    fn ask_group(
        &mut self,
        gateway: usize,
        call: CallId,
        operations: Vec<Bytes>,
        (reads, apart): (bool, bool),
        least: Option<u64>,
    ) {
        let said = self.time();
        self.calls.push_back(Call {
            gateway,
            call,
            operations,
            said,
            reads,
            apart,
            least,
            answer: None,
            batch: 0,
        });
    }

    /// Executes a call that is on its way; a read in the present.
    pub fn execute(&mut self, at: usize) {
        self.execute_behind(at, 0);
    }

    /// The same, but a read that need not show the present is answered from a state up to so many batches before it.
    pub fn execute_behind(&mut self, at: usize, behind: usize) {
        let Call { gateway, operations, said, reads, least, answer, .. } = self.calls[at].clone();
        assert!(answer.is_none(), "it is executed once");
        // As the shell does.
        let operations: Vec<Bytes> = operations.iter().map(|operation| Said::wire(said, operation)).collect();
        let client = ClientId(gateway as u64);
        let mut told = Vec::new();
        let mut shows = self.seq;
        let results = if reads {
            let behind = u64::try_from(behind).expect("few").min(self.seq - least.unwrap_or(self.seq));
            shows -= behind;
            let view = StateView::new(&self.states[usize::try_from(shows).expect("few")]);
            operations.iter().map(|operation| self.service.query(&view, client, operation)).collect()
        } else {
            self.seq += 1;
            shows = self.seq;
            let (seq, now) = (Seq(self.seq), Time(self.now));
            let run = |operation: &Bytes| {
                let mut cx = OpContext::new(client, 1, seq, now, Digest::ZERO, &mut told);
                self.service.execute(&mut State::new(&mut self.map), &mut cx, operation)
            };
            operations.iter().map(run).collect()
        };
        self.tell(told);
        if !reads {
            self.states.push(self.map.clone());
        }
        let events = self.caused[gateway].iter().filter(|seq| **seq <= shows).count();
        self.calls[at].answer = Some((results, events));
        self.calls[at].batch = if reads { 0 } else { shows };
    }

    fn tell(&mut self, told: Vec<(ClientId, Bytes)>) {
        for (to, payload) in told {
            let to = usize::try_from(to.0).expect("few");
            self.events[to].0.push(payload);
            self.caused[to].push(self.seq);
        }
    }

    /// Hands in the next event of a gateway, if there is one.
    pub fn hear(&mut self, gateway: usize) -> bool {
        let (events, heard) = &mut self.events[gateway];
        let Some(event) = events.get(*heard).cloned() else { return false };
        let caused = self.caused[gateway][*heard];
        self.shown[gateway] = self.shown[gateway].max(caused);
        *heard += 1;
        self.gateways[gateway].event(&event);
        self.collect();
        true
    }

    /// Hands in the answer to a call that was executed, and before it the events that were before it.
    pub fn answer(&mut self, at: usize) {
        let call = self.calls.remove(at).expect("a call");
        let (results, events) = call.answer.expect("it was executed");
        while self.events[call.gateway].1 < events {
            self.hear(call.gateway);
        }
        self.shown[call.gateway] = self.shown[call.gateway].max(call.batch);
        let now = self.time();
        self.gateways[call.gateway].answered(now, call.call, Ok(results));
        self.collect();
    }

    pub fn fail(&mut self, at: usize, error: ClientError) {
        let call = self.calls.remove(at).expect("a call");
        let now = self.time();
        self.gateways[call.gateway].answered(now, call.call, Err(error));
        self.collect();
    }

    /// Hands in the answer to a call that was executed, as having taken this course.
    pub fn answer_on(&mut self, at: usize, course: &Course) {
        let call = self.calls.remove(at).expect("a call");
        let (results, _) = call.answer.expect("it was executed");
        let now = self.time();
        self.gateways[call.gateway].answered_on(now, call.call, Ok(results), course);
        self.collect();
    }

    /// Until nothing is on its way.
    pub fn settle(&mut self) {
        while !self.calls.is_empty() {
            if self.calls[0].answer.is_none() {
                self.execute(0);
            }
            self.answer(0);
        }
        for gateway in 0..self.gateways.len() {
            while self.hear(gateway) {}
        }
    }

    /// Lets so many milliseconds pass, in which the group works and the gateways wake when they want to.
    pub fn pass(&mut self, millis: u64) {
        let until = self.now + millis * 1000;
        loop {
            let due = self.service.next_deadline(&StateView::new(&self.map));
            let wakes = self.gateways.iter().filter_map(Machine::next_wake);
            let Some(next) = wakes.chain(due).min().filter(|next| next.0 <= until) else { break };
            self.now = self.now.max(next.0);
            if due.is_some_and(|due| due.0 <= self.now) {
                self.deadline();
            }
            self.tick();
            self.settle();
        }
        self.now = until;
    }

    /// What is due in the group by now happens, without a batch of its own.
    pub fn pass_deadlines(&mut self) {
        self.deadline();
    }

    /// Entries of sessions that the group has.
    pub fn sessions(&self) -> usize {
        StateView::new(&self.map).scan(b"s").count()
    }

    pub fn tick(&mut self) {
        let now = self.time();
        self.gateways.iter_mut().for_each(|gateway| gateway.tick(now));
        self.collect();
    }

    fn deadline(&mut self) {
        self.seq += 1;
        let (seq, now) = (Seq(self.seq), Time(self.now));
        let mut told = Vec::new();
        let mut cx = OpContext::new(ClientId(0), 0, seq, now, Digest::ZERO, &mut told);
        self.service.on_deadline(&mut State::new(&mut self.map), &mut cx);
        self.tell(told);
        self.states.push(self.map.clone());
    }

    /// Hands in an event that the group's client makes itself: some are lost.
    pub fn lose(&mut self, gateway: usize) {
        self.gateways[gateway].event(&Bytes::new());
        self.collect();
    }

    pub fn gone(&mut self, client: Client) {
        let now = self.time();
        if let Some(told) = self.told.get_mut(&client).filter(|told| told.closed.is_none()) {
            told.gone = true;
        }
        self.gateways[client.0].closed(now, client.1);
        self.collect();
    }

    /// A packet with so many bytes has gone out; `usize::MAX`: all have.
    pub fn written(&mut self, client: Client, bytes: usize) {
        self.gateways[client.0].written(client.1, 1, bytes);
        self.collect();
    }

    pub fn part(&mut self, client: Client, bytes: usize) {
        self.gateways[client.0].part(client.1, bytes);
        self.collect();
    }

    pub fn word(&mut self, client: Client, word: &[u8; 4]) -> String {
        let now = self.time();
        self.gateways[client.0].word(now, client.1, *word);
        self.collect();
        assert_eq!(self.closed(client), Some(true));
        match self.packets(client) {
            [Packet::Text(text)] => text.clone(),
            other => panic!("a word was answered with {other:?}"),
        }
    }

    /// The session of a connection that was just answered.
    pub fn session(&self, client: Client) -> i64 {
        match self.packets(client) {
            [Packet::Connected { session, .. }, ..] => *session,
            other => panic!("no session: {other:?}"),
        }
    }

    /// What the notices say that a gateway has not been handed.
    pub fn unheard(&self, gateway: usize) -> Vec<Notice> {
        let (events, heard) = &self.events[gateway];
        events[*heard..].iter().map(|event| Notice::from_wire(event).expect("a notice")).collect()
    }
}

/// What a gateway wrote. The first packet of a connection answers its first; a word is answered without a frame.
fn decode(bytes: &Bytes, first: bool) -> Packet {
    let mut input = Input::new(bytes);
    let length = input.int().unwrap_or(-1);
    if usize::try_from(length).ok().is_none_or(|length| Some(length) != bytes.len().checked_sub(4)) {
        return Packet::Text(String::from_utf8(bytes.to_vec()).expect("a text"));
    }
    let packet = bytes.slice(4..);
    let mut input = Input::new(&packet);
    if first && matches!(packet.len(), 36 | 37) {
        assert_eq!(input.int(), Ok(0));
        let (timeout, session) = (input.int().expect("a time-out"), input.long().expect("a session"));
        let password = input.buffer().expect("a password").expect("a password");
        let password = <[u8; 16]>::try_from(&password[..]).expect("sixteen bytes");
        return Packet::Connected { timeout, session, password, read_only: input.boolean().ok() };
    }
    let (xid, zxid) = (input.int().expect("a header"), input.long().expect("a header"));
    let error = input.int().expect("a header");
    if xid == -1 {
        assert_eq!(error, 0);
        let (kind, state) = (input.int().expect("an event"), input.int().expect("an event"));
        assert_eq!(state, 3);
        let path = input.text().expect("a path").expect("a path");
        assert_eq!(input.remaining(), 0);
        return Packet::Event { zxid, kind, path };
    }
    Packet::Reply { xid, zxid, error, body: packet.slice(16..) }
}
