//! What a host knows of the machine it drives: inputs in, outputs out, nothing else.

use crate::{Note, Ticket, To, VerifiedFrame, Voucher};
use core::fmt::Debug;
use std::sync::Arc;
use troth_auth::{Authentic, Seal, Verified};
use troth_trusted::a2m::{self, LogId, Nonce, Operation, Slot};
use troth_trusted::{CounterId, CounterValue};
use troth_types::{
    ClientId, Configuration, Digest, Frame, GroupId, Malformed, Read, Reader, ReplicaId, Seq, StateFetch,
    StatePiece, Time, ToClient, Wire, Wish, put_list,
};

/// The most frames in one answer; a bound for the decoder.
pub const MAX_FRAMES: usize = 256;

/// The clocks of one step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Env {
    /// The local clock.
    pub now: Time,
    /// The machine's idea of the time of day.
    pub wall: Time,
}

/// What replicas exchange: the protocol's messages and what every protocol needs besides.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PeerMessage<M> {
    /// A message of the protocol.
    Protocol(M),
    /// Asks for the bodies of frames.
    FetchFrames(Vec<Digest>),
    /// Bodies of frames.
    Frames(Vec<Arc<Frame>>),
    /// Asks for a piece of a checkpoint's state.
    FetchState(StateFetch),
    /// A piece of a checkpoint's state.
    StatePiece(StatePiece),
}

impl<M> PeerMessage<M> {
    /// How many kinds there are; the first byte of a message is its kind, from 0. A later release may send
    /// others.
    pub const KINDS: u8 = 5;
}

impl<M: Wire> Wire for PeerMessage<M> {
    fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Self::Protocol(message) => {
                out.push(0);
                message.encode(out);
            }
            Self::FetchFrames(digests) => {
                out.push(1);
                put_list(out, digests);
            }
            Self::Frames(frames) => {
                out.push(2);
                put_list(out, frames);
            }
            Self::FetchState(fetch) => {
                out.push(3);
                fetch.encode(out);
            }
            Self::StatePiece(piece) => {
                out.push(4);
                piece.encode(out);
            }
        }
    }
    fn decode(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        Ok(match u8::decode(reader)? {
            0 => Self::Protocol(Wire::decode(reader)?),
            1 => Self::FetchFrames(reader.list("asked frames", MAX_FRAMES)?),
            2 => Self::Frames(reader.list("frames", MAX_FRAMES)?),
            3 => Self::FetchState(Wire::decode(reader)?),
            4 => Self::StatePiece(Wire::decode(reader)?),
            other => return Err(Malformed::Tag("a replica's message", u64::from(other))),
        })
    }
}

/// The name of a frame that is executed, by the client whose frame it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Repeated {
    /// The client, whose connection it came on.
    pub client: ClientId,
    /// The frame's number.
    pub number: u64,
    /// The events that the client has seen.
    pub events_seen: u64,
    /// What it wants of this replica.
    pub wish: Wish,
}

/// A client's frame, from the client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// The frame.
    pub frame: VerifiedFrame,
    /// What the client wants of this replica.
    pub wish: Wish,
}

/// Something that happened to a machine. Everything in it that could be forged was verified.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Input<M, T> {
    /// Clients' frames, each from its client: what came together is ordered together.
    Requests(Vec<Request>),
    /// A client asks again for what is executed. Its connection tells who asks, so no signature needs to.
    Repeated(Repeated),
    /// A client's read.
    Read(Read),
    /// A protocol message of a replica.
    Message(ReplicaId, Verified<M>),
    /// Frames that a replica showed.
    Frames(ReplicaId, Vec<VerifiedFrame>),
    /// Frames that a replica showed, and whose tag for this one is wrong.
    Doubtful(ReplicaId, Vec<Arc<Frame>>),
    /// A replica asks for frames.
    FetchFrames(ReplicaId, Vec<Digest>),
    /// A replica asks for a piece of state.
    FetchState(ReplicaId, StateFetch),
    /// A piece of state.
    StatePiece(ReplicaId, StatePiece),
    /// A timer is due.
    Timer(T),
    /// What the trusted component answered to operations on its logs.
    Trusted(Ticket, Vec<a2m::Answer>),
    /// A nonce that was asked for.
    Drawn(Ticket, Nonce),
}

/// What a machine wants done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output<M: Machine> {
    /// Send to replicas.
    Peer {
        /// Whom it is for.
        to: To,
        /// The message.
        message: PeerMessage<M::Message>,
    },
    /// Send to the others, and give back as input once what was to be made durable before is.
    Broadcast(M::Message),
    /// Send to the client that the message names.
    Client(ToClient),
    /// Certify, send, and give back as input.
    Certify {
        /// The counter.
        counter: CounterId,
        /// Its value so far.
        previous: CounterValue,
        /// Its value for this body.
        new: CounterValue,
        /// What is certified.
        body: M::Body,
        /// Whom it is for.
        to: To,
    },
    /// Fill a slot of a log, send, and give back as input.
    CertifyInLog {
        /// The log.
        log: LogId,
        /// The slot.
        slot: Slot,
        /// What is certified.
        body: M::Body,
        /// Whom it is for.
        to: To,
    },
    /// Have the trusted component do this with its logs.
    Trusted {
        /// Names the answers.
        ticket: Ticket,
        /// What to do, all or nothing.
        operations: Vec<Operation>,
    },
    /// Draw a nonce.
    Draw(Ticket),
    /// Sign, send, and give back as input.
    Sign {
        /// What is signed.
        body: M::Body,
        /// Whom it is for.
        to: To,
    },
    /// Sign, send to every replica, and give back as input once what was persisted before is durable.
    BroadcastSigned(M::Body),
    /// Set or move a timer.
    SetTimer {
        /// Which.
        timer: M::Timer,
        /// When it is due.
        at: Time,
    },
    /// Forget a timer.
    CancelTimer(M::Timer),
    /// Make durable before anything later leaves.
    Persist(M::Record),
    /// Put into the log with whatever is made durable next.
    Remember(M::Record),
    /// The log may start afresh from the snapshot at this checkpoint.
    Compact(Seq),
    /// The state came from others and stands at this checkpoint: nothing in the log leads there, so the
    /// snapshot is durable before anything later leaves.
    Rebase(Seq),
    /// Check from now on what comes by the keys of this configuration.
    Configured(Arc<Configuration>),
    /// Tell the observers.
    Note(Note),
    /// Stop.
    Halt(&'static str),
}

/// What a machine starts from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MachineStart<M: Machine> {
    /// It never ran.
    Fresh,
    /// It ran, and its log is whole.
    Recovered {
        /// The last durable snapshot, if one was taken.
        snapshot: Option<M::Snapshot>,
        /// Its certified messages since the snapshot, in the order of their values.
        own: Vec<M::Message>,
        /// Its records since the snapshot.
        records: Vec<M::Record>,
    },
}

/// A pure machine that a [`Host`](crate::Host) drives.
pub trait Machine: Clone + Debug + PartialEq + Eq {
    /// What it has certified or signed.
    type Body: Wire + Clone + Debug + Eq;
    /// Its protocol messages.
    type Message: Wire + Authentic + Clone + Debug + Eq;
    /// Names of timers.
    type Timer: Copy + Ord + Debug;
    /// What must survive a crash.
    type Record: Wire + Clone + Debug + Eq;
    /// A checkpoint to start from.
    type Snapshot: Clone + Debug + Eq;

    /// Starts; an error where what it starts from contradicts itself.
    fn start(
        &mut self,
        env: Env,
        start: MachineStart<Self>,
        out: &mut Vec<Output<Self>>,
    ) -> Result<(), &'static str>;
    /// Takes one input.
    fn input(&mut self, env: Env, input: Input<Self::Message, Self::Timer>, out: &mut Vec<Output<Self>>);
    /// The digest certified for a body.
    fn digest(body: &Self::Body, group: GroupId, from: ReplicaId) -> Digest;
    /// What vouches for a message with this body.
    fn voucher(body: &Self::Body) -> Voucher;
    /// The message that a sealed body becomes.
    fn seal(body: Self::Body, digest: Digest, from: ReplicaId, seal: Seal) -> Self::Message;
    /// The counter and value of a message that the trusted component certified.
    fn position(message: &Self::Message) -> Option<(CounterId, CounterValue)>;
    /// The log and slot of a message that the trusted component certified there.
    fn slot(message: &Self::Message) -> Option<(LogId, Slot)> {
        let _ = message;
        None
    }
    /// The snapshot of a kept checkpoint.
    fn snapshot(&self, seq: Seq) -> Option<Self::Snapshot>;
    /// What a fresh log segment must hold besides the snapshot.
    fn retained(&self) -> (Vec<Self::Message>, Vec<Self::Record>);
}
