//! What connections have read and the loop has not yet taken: one bounded lane per connection.
//!
//! A full lane stops its connection's reading, so the sender is slowed by TCP and nothing is lost.
//! Lanes of replicas and of clients are taken in separate rounds with budgets of their own: a flood
//! from one side leaves the other its share of every turn. A lane whose party has had its share rests: it
//! is not taken from before its time, fills, and stops its connection's reading.

use bytes::Bytes;
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;
use tokio::sync::Notify;
use troth_types::{ClientId, ReplicaId, Time};

/// Bytes that one lane may hold before its connection stops reading.
pub(crate) const LANE_BYTES: usize = 4 << 20;
/// Bytes that all lanes of clients may hold together before only those read on that hold nothing.
pub(crate) const CLIENTS_BYTES: usize = 64 << 20;
/// Messages that one lane may hold before its connection stops reading.
const LANE_MESSAGES: usize = 4096;
/// Messages taken from a lane before the next one has its turn.
const ROUND: usize = 16;

/// Who is at the other end of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Party {
    /// A replica of the group.
    Replica(ReplicaId),
    /// A client of the group.
    Client(ClientId),
}

/// One connection's messages.
pub(crate) struct Lane {
    party: Party,
    messages: RefCell<VecDeque<Bytes>>,
    bytes: Cell<usize>,
    listed: Cell<bool>,
    room: Notify,
    /// Bytes in all lanes of clients, where it is one of them.
    together: Option<Rc<Cell<usize>>>,
}

impl Lane {
    /// Whether the connection may go on reading.
    pub(crate) fn has_room(&self) -> bool {
        let held = self.bytes.get();
        let together = self.together.as_ref().map_or(0, |together| together.get());
        held < LANE_BYTES
            && self.messages.borrow().len() < LANE_MESSAGES
            && (held == 0 || together < CLIENTS_BYTES)
    }

    fn add(&self, bytes: usize) {
        self.bytes.set(self.bytes.get() + bytes);
        if let Some(together) = &self.together {
            together.set(together.get() + bytes);
        }
    }

    fn subtract(&self, bytes: usize) {
        self.bytes.set(self.bytes.get() - bytes);
        if let Some(together) = &self.together {
            together.set(together.get() - bytes);
        }
    }

    /// Forgets what was not taken, and the room for it: a party that connects again and again must not fill memory with
    /// what its former connections left, also where the lane rests.
    fn discard(&self) {
        drop(self.messages.take());
        self.subtract(self.bytes.get());
    }

    fn is_empty(&self) -> bool {
        self.messages.borrow().is_empty()
    }

    /// Waits until the connection may go on reading.
    pub(crate) async fn room(&self) {
        while !self.has_room() {
            self.room.notified().await;
        }
    }
}

/// All lanes that hold something, and what wakes the loop.
pub(crate) struct Inbox {
    replicas: RefCell<VecDeque<Rc<Lane>>>,
    clients: RefCell<VecDeque<Rc<Lane>>>,
    /// Lanes that are not taken from before a time.
    resting: RefCell<Vec<(Time, Rc<Lane>)>>,
    clients_bytes: Rc<Cell<usize>>,
    wake: Notify,
}

impl Inbox {
    pub(crate) fn new() -> Self {
        Self {
            replicas: RefCell::default(),
            clients: RefCell::default(),
            resting: RefCell::default(),
            clients_bytes: Rc::default(),
            wake: Notify::new(),
        }
    }

    /// A lane for a new connection.
    pub(crate) fn lane(&self, party: Party) -> Rc<Lane> {
        let together = matches!(party, Party::Client(_)).then(|| Rc::clone(&self.clients_bytes));
        Rc::new(Lane {
            party,
            together,
            messages: RefCell::default(),
            bytes: Cell::new(0),
            listed: Cell::new(false),
            room: Notify::new(),
        })
    }

    /// Puts a message into a lane. The caller looks at [`Lane::has_room`] between reads; one read may
    /// overfill the lane by what it held.
    pub(crate) fn push(&self, lane: &Rc<Lane>, message: Bytes) {
        lane.add(message.len());
        lane.messages.borrow_mut().push_back(message);
        if !lane.listed.replace(true) {
            self.listed(lane.party).borrow_mut().push_back(Rc::clone(lane));
        }
    }

    /// The connection of a lane has ended. Nothing is left of it in any list, also while nothing is taken from any, as behind
    /// a disk without space.
    pub(crate) fn end(&self, lane: &Rc<Lane>) {
        lane.discard();
        if lane.listed.replace(false) {
            let others = |other: &Rc<Lane>| !Rc::ptr_eq(other, lane);
            self.listed(lane.party).borrow_mut().retain(others);
            self.resting.borrow_mut().retain(|(_, other)| others(other));
        }
    }

    fn listed(&self, party: Party) -> &RefCell<VecDeque<Rc<Lane>>> {
        match party {
            Party::Replica(_) => &self.replicas,
            Party::Client(_) => &self.clients,
        }
    }

    /// Whether a replica's lane holds something that may be taken now.
    pub(crate) fn has_of_replicas(&self) -> bool {
        !self.replicas.borrow().is_empty()
    }

    /// Wakes the loop.
    pub(crate) fn wake(&self) {
        self.wake.notify_one();
    }

    /// Waits until somebody wakes the loop.
    pub(crate) async fn woken(&self) {
        self.wake.notified().await;
    }

    /// Whether a lane holds something.
    pub(crate) fn is_empty(&self) -> bool {
        self.replicas.borrow().is_empty() && self.clients.borrow().is_empty()
    }

    /// Lists lanes again that have rested, and forgets those that were discarded meanwhile.
    pub(crate) fn rested(&self, now: Time) {
        self.resting.borrow_mut().retain(|(until, lane)| {
            if lane.is_empty() {
                lane.listed.set(false);
                return false;
            }
            let rests = *until > now;
            if !rests {
                self.listed(lane.party).borrow_mut().push_back(Rc::clone(lane));
            }
            rests
        });
    }

    /// When the first lane has rested, if one rests.
    pub(crate) fn next_rested(&self) -> Option<Time> {
        self.resting.borrow().iter().map(|(until, _)| *until).min()
    }

    /// Takes messages of replicas, in turn, until `take` says that it has enough. Before each, `rests`
    /// says until when nothing is taken from its party, if so.
    pub(crate) fn take_replicas(
        &self,
        rests: impl FnMut(Party) -> Option<Time>,
        take: impl FnMut(Party, Bytes) -> bool,
    ) {
        self.take(&self.replicas, rests, take);
    }

    /// As [`Inbox::take_replicas`], of clients.
    pub(crate) fn take_clients(
        &self,
        rests: impl FnMut(Party) -> Option<Time>,
        take: impl FnMut(Party, Bytes) -> bool,
    ) {
        self.take(&self.clients, rests, take);
    }

    fn take(
        &self,
        list: &RefCell<VecDeque<Rc<Lane>>>,
        mut rests: impl FnMut(Party) -> Option<Time>,
        mut take: impl FnMut(Party, Bytes) -> bool,
    ) {
        let mut list = list.borrow_mut();
        let mut more = true;
        while more {
            let Some(lane) = list.pop_front() else { return };
            let mut until = None;
            for _ in 0..ROUND {
                until = rests(lane.party);
                if until.is_some() {
                    break;
                }
                let Some(message) = lane.messages.borrow_mut().pop_front() else { break };
                lane.subtract(message.len());
                more = take(lane.party, message);
                if !more {
                    break;
                }
            }
            let left = !lane.is_empty();
            if lane.has_room() {
                lane.room.notify_one();
            }
            lane.listed.set(left);
            match until.filter(|_| left) {
                Some(until) => self.resting.borrow_mut().push((until, lane)),
                None if left => list.push_back(lane),
                None => {}
            }
        }
    }
}
