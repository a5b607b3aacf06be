//! The gateway of the coordination service: clients that send any bytes, before a group that answers late, not at all, or
//! with any bytes. To no connection is anything written after its end, and what is written are packets.

use crate::bytes::Steps;
use crate::{Bound, Target};
use bytes::{BufMut, Bytes};
use std::collections::BTreeSet;
use troth_client::ClientError;
use troth_exec::{Application, MerkleMap, OpContext, State, StateView};
use troth_types::{ClientId, Digest, GroupId, Seq, Time};
use troth_zookeeper::jute::Output as Record;
use troth_zookeeper::{ZooKeeper, opcode};
use troth_zookeeper_gateway::{
    CallId, ConnectionId, Frame, Frames, Log, Machine, Output, Peer, Place, Record as Line, Settings,
};

pub(super) const TARGET: Target = Target {
    name: "zookeeper-gateway",
    run,
    seeds,
    // A service, and a few versions of pages.
    bound: Bound { fixed: 2 << 20, per_byte: 4096 },
    longest: 4096,
};

const GATEWAY: ClientId = ClientId(1);

/// A call that has no answer yet.
struct Call {
    call: CallId,
    operations: Vec<Bytes>,
    reads: bool,
}

struct World {
    machine: Machine,
    service: ZooKeeper,
    map: MerkleMap,
    now: u64,
    seq: u64,
    connections: Vec<(ConnectionId, Frames)>,
    open: BTreeSet<ConnectionId>,
    calls: Vec<Call>,
    events: Vec<(ClientId, Bytes)>,
}

impl World {
    fn new() -> Self {
        let settings = Settings {
            words: ["*".to_owned()].into(),
            packet_bytes: 2048,
            outstanding_requests: 40,
            // Short requests reach the bound on their number, long ones that on their bytes.
            outstanding_bytes: 8192 + 40 * 512,
            unwritten_bytes: 16384,
            connections: 6,
            users: [("me".to_owned(), "secret".to_owned())].into(),
            audit: Some(Log::at(Place::Stdout)),
            slow: Some((core::time::Duration::ZERO, Log::at(Place::Stdout))),
            ..Settings::default()
        };
        let carrier = troth_zookeeper::Carrier { group: GroupId::default(), gateway: GATEWAY };
        Self {
            machine: Machine::new(settings, carrier),
            service: ZooKeeper::default(),
            map: MerkleMap::with_order(b""),
            now: 1_700_000_000_000_000,
            seq: 0,
            connections: Vec::new(),
            open: BTreeSet::new(),
            calls: Vec::new(),
            events: Vec::new(),
        }
    }

    fn connect(&mut self) {
        let id = ConnectionId(self.connections.len() as u64);
        self.connections.push((id, Frames::new(2048)));
        self.open.insert(id);
        let address = "127.0.0.1:9".parse().expect("an address");
        self.machine.opened(Time(self.now), id, Peer { address, certificate: None, random: [7; 32] });
    }

    /// What a client sends reaches the machine as the reader cuts it.
    fn stream(&mut self, at: usize, bytes: &[u8]) {
        let (id, frames) = &mut self.connections[at];
        frames.buffer().put_slice(bytes);
        let mut packets = Vec::new();
        loop {
            match frames.take_next() {
                Ok(Some(Frame::Packet(packet))) => {
                    assert!(packet.len() <= 2048, "a packet over the limit");
                    packets.push(packet);
                }
                Ok(Some(Frame::Word(word))) => self.machine.word(Time(self.now), *id, word),
                Ok(None) => break,
                Err(_) => {
                    self.open.remove(id);
                    self.machine.closed(Time(self.now), *id);
                    return;
                }
            }
        }
        self.machine.packets(Time(self.now), *id, packets);
    }

    fn execute(&mut self, operation: &Bytes, reads: bool) -> Bytes {
        if reads {
            return self.service.query(&StateView::new(&self.map), GATEWAY, operation);
        }
        self.seq += 1;
        let (seq, now) = (Seq(self.seq), Time(self.now));
        let mut cx = OpContext::new(GATEWAY, self.seq, seq, now, Digest::ZERO, &mut self.events);
        self.service.execute(&mut State::new(&mut self.map), &mut cx, operation)
    }

    fn answer(&mut self, steps: &mut Steps<'_>) {
        if self.calls.is_empty() {
            return;
        }
        let Call { call, operations, reads } = self.calls.remove(steps.below(self.calls.len()));
        let results = match steps.byte() {
            0 => Err(ClientError::TimedOut),
            1 => Err(ClientError::TooLarge),
            2 => Ok(vec![Bytes::copy_from_slice(steps.chunk())]),
            _ => Ok(operations.iter().map(|operation| self.execute(operation, reads)).collect()),
        };
        for (_, event) in std::mem::take(&mut self.events) {
            self.machine.event(&event);
        }
        self.machine.answered(Time(self.now), call, results);
    }

    fn collect(&mut self) {
        while let Some(line) = self.machine.poll_record() {
            let (Line::Audit(line) | Line::Refused(line) | Line::Slow(line)) = line else { continue };
            assert!(line.bytes().all(|byte| (0x20..0x7f).contains(&byte)), "it has a line's end: {line}");
        }
        while let Some(output) = self.machine.poll() {
            match output {
                Output::Write { to, bytes } => {
                    assert!(self.open.contains(&to) && !bytes.is_empty(), "it is written to nobody");
                    self.machine.written(to, 1, bytes.len());
                }
                Output::Done { connection, .. } => assert!(self.open.contains(&connection)),
                Output::Close { connection, .. } => {
                    assert!(self.open.remove(&connection), "it is closed twice");
                }
                Output::Execute { call, operations } | Output::ExecuteApart { call, operations } => {
                    assert!(!operations.is_empty());
                    self.calls.push(Call { call, operations, reads: false });
                }
                Output::Read { call, operation, .. } => {
                    self.calls.push(Call { call, operations: vec![operation], reads: true });
                }
            }
        }
    }
}

fn run(input: &[u8]) {
    let mut steps = Steps::new(input);
    let mut world = World::new();
    world.connect();
    for _ in 0..200 {
        if steps.is_over() {
            break;
        }
        let at = steps.below(world.connections.len());
        match steps.byte() % 8 {
            0 if world.connections.len() < 12 => world.connect(),
            1 => {
                let id = world.connections[at].0;
                world.open.remove(&id);
                world.machine.closed(Time(world.now), id);
            }
            2 => {
                world.now += 1000 * u64::from(steps.short());
                world.machine.tick(Time(world.now));
            }
            3 => world.machine.event(&Bytes::copy_from_slice(steps.chunk())),
            4 | 5 => world.answer(&mut steps),
            _ => {
                let chunk = steps.chunk();
                if world.open.contains(&world.connections[at].0) {
                    world.stream(at, chunk);
                }
            }
        }
        world.collect();
    }
    world.machine.stop();
    world.collect();
    assert!(world.open.is_empty() && world.machine.connections() == 0, "a connection outlives the gateway");
}

fn packet(fill: impl FnOnce(&mut Record)) -> Vec<u8> {
    let mut out = Record::new();
    fill(&mut out);
    let record = out.finish();
    let length = u32::try_from(record.len()).expect("short").to_be_bytes();
    [&length, &record[..]].concat()
}

/// A client sends this, and a call is answered.
fn step(bytes: &[u8]) -> Vec<u8> {
    [&[0, 7, u8::try_from(bytes.len()).expect("short")], bytes, &[0, 4, 0, 9, 0, 4, 0, 9]].concat()
}

fn seeds() -> Vec<Vec<u8>> {
    let hello = packet(|out| {
        out.int(0).long(0).int(9000).long(0).buffer(&[0; 16]).boolean(false);
    });
    let again = packet(|out| {
        out.int(0).long(9).int(9000).long(77).buffer(&[7; 16]);
    });
    let create = packet(|out| {
        out.int(1)
            .int(opcode::CREATE)
            .text("/a")
            .text("x")
            .length(1)
            .int(31)
            .text("world")
            .text("anyone")
            .int(0);
    });
    let get = packet(|out| {
        out.int(2).int(opcode::GET_DATA).text("/a").boolean(true);
    });
    let set = packet(|out| {
        out.int(3).int(opcode::SET_DATA).text("/a").text("y").int(-1);
    });
    let auth = packet(|out| {
        out.int(-4).int(opcode::AUTH).int(0).text("digest").text("me:secret");
    });
    let sasl = packet(|out| {
        out.int(4).int(opcode::SASL).text("");
    });
    let ping = packet(|out| {
        out.int(-2).int(opcode::PING);
    });
    let close = packet(|out| {
        out.int(5).int(opcode::CLOSE_SESSION);
    });
    let all = [&hello, &create, &get, &set, &ping, &auth, &sasl, &close];
    let mut seeds = vec![all.map(|bytes| step(bytes)).concat(), step(&again), step(b"ruok"), step(b"cons")];
    seeds.extend(all[1..].iter().map(|bytes| [step(&hello), step(bytes)].concat()));
    seeds.push([step(&hello), step(&[create, set, get, ping].concat())].concat());
    seeds
}
