//! What happens in the world, and the heap that puts it in order.

use crate::protocol::Logged;
use crate::{Message, Protocol};
use std::cell::OnceCell;
use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;
use std::rc::Rc;
use troth_auth::{FrameVerifier, MessageVerifier, Verified};
use troth_core::{Agreement, PeerMessage, ReplicaTimer, VerifiedFrame};
use troth_trusted_host::Answer;
use troth_types::{Configuration, GroupId, ReplicaId, ToClient, ToReplica};

/// A message between replicas on its way, shared by all its receivers. Whether it is authentic is a
/// function of the message and the group's keys, so it is found out once.
pub struct Envelope<P: Protocol> {
    /// Who sends it: the connection tells.
    pub from: ReplicaId,
    /// What it says.
    pub message: PeerMessage<Message<P>>,
    verified: OnceCell<Opened<P>>,
    epochs: OnceCell<Vec<(ReplicaId, u64)>>,
}

/// What a receiver may act on.
#[derive(Clone)]
pub enum Opened<P: Protocol> {
    /// An authentic protocol message.
    Protocol(Verified<Message<P>>),
    /// The authentic ones of the frames.
    Frames(Vec<VerifiedFrame>),
    /// A question or a piece of state, which proves itself.
    Plain,
    /// A forgery.
    Forged,
}

impl<P: Protocol> Envelope<P> {
    /// A message on its way.
    pub fn new(from: ReplicaId, message: PeerMessage<Message<P>>) -> Self {
        Self { from, message, verified: OnceCell::new(), epochs: OnceCell::new() }
    }

    /// Whether a receiver with this configuration can check every certificate in it.
    pub fn is_known_to(&self, group: GroupId, configuration: &Configuration) -> bool {
        let PeerMessage::Protocol(message) = &self.message else { return true };
        let epochs = self.epochs.get_or_init(|| troth_auth::epochs_in(message, group));
        epochs.iter().all(|(replica, epoch)| configuration.admission(*replica, *epoch).is_some())
    }

    /// What a receiver may act on.
    pub fn open(&self, messages: &MessageVerifier, frames: &FrameVerifier) -> &Opened<P> {
        self.verified.get_or_init(|| match &self.message {
            PeerMessage::Protocol(message) => match messages.verify(message.clone()) {
                Ok(verified) => Opened::Protocol(verified),
                Err(_) => Opened::Forged,
            },
            PeerMessage::Frames(list) => {
                Opened::Frames(frames.verify_all(list.clone()).into_iter().flatten().collect())
            }
            PeerMessage::FetchFrames(_) | PeerMessage::FetchState(_) | PeerMessage::StatePiece(_) => {
                Opened::Plain
            }
        })
    }
}

/// A protocol's timers as a host names them.
pub type Timer<P> = ReplicaTimer<<<P as Protocol>::Agreement as Agreement>::Timer>;

/// One thing that happens.
pub enum Event<P: Protocol> {
    /// A message of a replica reaches a node.
    Peer(usize, Rc<Envelope<P>>),
    /// A message of a client reaches a node.
    Client(usize, ToReplica),
    /// A message of a replica reaches a client.
    Answer(usize, ReplicaId, ToClient),
    /// A node's timer may be due; stale ones are recognised by life and time.
    Timer(usize, u32, Timer<P>, u64),
    /// A node's sync is complete.
    Synced(usize, u32),
    /// A node's component answers.
    Attested(usize, u32, Answer),
    /// A node's component answers what was asked of its logs.
    Logged(usize, u32, Logged),
    /// A client wants to look at the clock.
    ClientWake(usize),
    /// A client has thought long enough.
    Think(usize),
    /// A client reads now, whatever else it waits for.
    Read(usize),
    /// A Byzantine client acts.
    ByzantineClient(usize),
    /// A message of a replica reaches the operator.
    OperatorAnswer(ReplicaId, ToClient),
    /// The operator wants to look at the clock.
    OperatorWake,
    /// The operator looks whether every replica follows.
    OperatorLooks,
    /// A machine is lost, or replaced.
    Lose,
    /// A network fault begins.
    Fault,
    /// A crash somewhere.
    Crash,
    /// A node starts again.
    Restart(usize, u32),
    /// Adversaries look around.
    Tick,
}

struct Entry<P: Protocol> {
    at: u64,
    order: u64,
    event: Event<P>,
}

impl<P: Protocol> PartialEq for Entry<P> {
    fn eq(&self, other: &Self) -> bool {
        (self.at, self.order) == (other.at, other.order)
    }
}
impl<P: Protocol> Eq for Entry<P> {}
impl<P: Protocol> PartialOrd for Entry<P> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
impl<P: Protocol> Ord for Entry<P> {
    fn cmp(&self, other: &Self) -> Ordering {
        (self.at, self.order).cmp(&(other.at, other.order))
    }
}

/// Events by (time, order of scheduling).
pub struct Agenda<P: Protocol> {
    heap: BinaryHeap<Reverse<Entry<P>>>,
    scheduled: u64,
    /// Virtual microseconds.
    pub now: u64,
}

impl<P: Protocol> Default for Agenda<P> {
    fn default() -> Self {
        Self { heap: BinaryHeap::new(), scheduled: 0, now: 0 }
    }
}

impl<P: Protocol> Agenda<P> {
    /// Schedules an event.
    pub fn at(&mut self, at: u64, event: Event<P>) {
        self.scheduled += 1;
        let entry = Entry { at: at.max(self.now), order: self.scheduled, event };
        self.heap.push(Reverse(entry));
    }

    /// Schedules an event `after` microseconds from now.
    pub fn after(&mut self, after: u64, event: Event<P>) {
        self.at(self.now + after, event);
    }

    /// The next event; the clock moves to it.
    pub fn take_next(&mut self) -> Option<Event<P>> {
        let Reverse(entry) = self.heap.pop()?;
        self.now = entry.at;
        Some(entry.event)
    }
}
