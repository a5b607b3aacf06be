//! What the machines of a group cost by themselves: protocol, executor, client table, encoding and decoding, hashing,
//! making HMAC certificates, and all memory that they ask for. Everything in one thread, nothing on a wire or a disk,
//! and nothing checked that is signed or certified.

use super::clock::{Others, look, processor};
use crate::Failure;
use bytes::Bytes;
use std::collections::VecDeque;
use std::sync::Arc;
use troth_auth::{Ed25519Signer, Verified};
use troth_core::{Command, Env, Host, Input, PeerMessage, Replica, ReplicaTimer, Request, To};
use troth_exec::Executor;
use troth_kv::Null;
use troth_minbft::{Config, Message, MinBft, Timer};
use troth_trusted::{Certifier, Epoch, Identity, MacKey, TrustedCore, VolatileStore};
use troth_trusted_host::{InProcess, TrustedComponent};
use troth_types::{
    ClientId, Frame, FrameDraft, Group, GroupId, Limits, ReplicaId, Signature, Time, ToClient, Wire, Wish,
};

/// Batches before it is measured, and batches measured: several checkpoints.
const BATCHES: u64 = 512;

type Machines = Host<Replica<MinBft, Executor<Null>>>;
type MachineInput = Input<Message, ReplicaTimer<Timer>>;

/// What a batch costs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Batch {
    /// Microseconds of processor time, all replicas together.
    pub(crate) micros: f64,
    /// Requests for memory, all replicas together.
    pub(crate) allocations: f64,
    /// Microseconds to read one frame from its bytes, with its two hashes.
    pub(crate) frame: f64,
}

struct Group3 {
    group: Group,
    hosts: Vec<Machines>,
    components: Vec<InProcess<VolatileStore>>,
    wire: VecDeque<(ReplicaId, ReplicaId, Bytes)>,
    now: u64,
    answers: u64,
    others: Others,
    clock: f64,
}

/// Orders batches of so many frames with so many operations each. Machines of durable replicas make records for a log,
/// too.
pub(crate) fn measure(frames: usize, operations: usize, durable: bool) -> Result<Batch, Failure> {
    let mut world = Group3::new(durable)?;
    let (mut number, mut others, clock) = (0, Others::new(), look());
    let mut order = |world: &mut Group3, count: u64| {
        let (mut spent, mut read, mut asked) = (Vec::new(), Vec::new(), 0);
        for _ in 0..count {
            number += 1;
            let written: Vec<Bytes> = (1..=frames as u64)
                .map(|client| frame(world.group.id(), client, number, operations))
                .collect();
            others.run();
            let began = processor();
            let shown: Vec<Arc<Frame>> = written
                .iter()
                .map(|bytes| Arc::new(Frame::from_wire(bytes).expect("it was written just now")))
                .collect();
            read.push(processor() - began - clock);
            let before = crate::allocations::so_far();
            spent.push(world.order(&shown));
            asked += crate::allocations::so_far() - before;
        }
        (spent, read, asked)
    };
    order(&mut world, BATCHES);
    world.answers = 0;
    let (spent, read, asked) = order(&mut world, BATCHES);
    if world.answers != BATCHES * frames as u64 * world.group.n() as u64 {
        return Err("the machines did not answer every frame".into());
    }
    Ok(Batch {
        // The mean, as checkpoints are in some of them.
        micros: spent.iter().sum::<f64>() / BATCHES as f64,
        allocations: asked as f64 / BATCHES as f64,
        frame: read.iter().sum::<f64>() / (BATCHES * frames as u64) as f64,
    })
}

fn frame(group: GroupId, client: u64, number: u64, operations: usize) -> Bytes {
    let operations = vec![Bytes::new(); operations];
    let draft = FrameDraft { group, client: ClientId(client), number, events_seen: 0, operations };
    draft.sign(Signature([0; 64])).to_wire()
}

impl Group3 {
    fn new(durable: bool) -> Result<Self, Failure> {
        let group = Group::hybrid(GroupId(*b"troth-cost-group"), 3)?;
        let config = Config { limits: Limits::DEFAULT, ..Config::DEFAULT };
        let key = MacKey::new(&[7; 32]);
        let components = group
            .all()
            .map(|replica| {
                let identity = Identity { group: group.id().0, replica: replica.0, epoch: Epoch(1) };
                InProcess::new(TrustedCore::start(identity, Certifier::Mac(key.clone()), VolatileStore))
            })
            .collect();
        let mut world = Self {
            group,
            hosts: Vec::new(),
            components,
            wire: VecDeque::new(),
            now: 1_000_000,
            answers: 0,
            others: Others::new(),
            clock: look(),
        };
        for me in group.all() {
            let machine = Replica::new(
                me,
                group,
                MinBft::new(me, group, config),
                Executor::new(Null::default(), config.limits),
            );
            let signer = Arc::new(Ed25519Signer::from_seed([me.0 as u8 + 1; 32]));
            world.hosts.push(Host::fresh(machine, me, group, signer, durable, world.env())?);
        }
        Ok(world)
    }

    fn env(&self) -> Env {
        Env { now: Time(self.now), wall: Time(1_700_000_000_000_000 + self.now) }
    }

    /// Shows every replica these frames and carries out everything that follows; gives the microseconds that took.
    /// Before each step others run: a replica's turn is one of many processes'.
    fn order(&mut self, frames: &[Arc<Frame>]) -> f64 {
        let mut spent = 0.0;
        self.now += 100;
        let env = self.env();
        for replica in self.group.all() {
            let requests = frames
                .iter()
                .map(|frame| Request { frame: Verified::made_here(Arc::clone(frame)), wish: Wish::Usual })
                .collect();
            spent += self.step(replica, env, Input::Requests(requests));
        }
        while let Some((from, to, bytes)) = self.wire.pop_front() {
            self.now += 1;
            let env = self.env();
            let said = PeerMessage::<Message>::from_wire(&bytes).expect("it was written just now");
            if let PeerMessage::Protocol(message) = said {
                let message = Verified::made_here(message);
                spent += self.step(to, env, Input::Message(from, message));
            }
        }
        spent
    }

    fn step(&mut self, me: ReplicaId, env: Env, input: MachineInput) -> f64 {
        self.others.run();
        let began = processor();
        self.hosts[usize::from(me.0)].input(env, input);
        self.carry_out(me);
        processor() - began - self.clock
    }

    fn carry_out(&mut self, me: ReplicaId) {
        let index = usize::from(me.0);
        let env = self.env();
        while let Some(command) = self.hosts[index].command() {
            match command {
                Command::Attest(call) => {
                    let answer = self.components[index].call(&[call]).pop().expect("one answer");
                    self.hosts[index].attested(env, answer);
                }
                Command::Peer { to, message } => {
                    let bytes = message.to_wire();
                    let receivers = self.group.all().filter(|other| match to {
                        To::One(one) => *other == one,
                        To::Others => *other != me,
                    });
                    self.wire.extend(receivers.map(|to| (me, to, bytes.clone())));
                }
                Command::Client(message) => {
                    self.answers += u64::from(matches!(message, ToClient::Reply(_)));
                    std::hint::black_box(message.to_wire());
                }
                _ => {}
            }
        }
    }
}
