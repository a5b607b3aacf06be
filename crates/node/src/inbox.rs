//! What connections have read and the loop has not yet taken: one bounded lane per connection.
//!
//! A full lane stops its connection's reading, so the sender is slowed by TCP and nothing is lost.
//! Lanes of replicas and of clients are taken in separate rounds with budgets of their own: a flood
//! from one side leaves the other its share of every turn.

use bytes::Bytes;
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;
use tokio::sync::Notify;
use troth_types::{ClientId, ReplicaId};

/// Bytes that one lane may hold before its connection stops reading.
const LANE_BYTES: usize = 4 << 20;
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
}

impl Lane {
    /// Whether the connection may go on reading.
    pub(crate) fn has_room(&self) -> bool {
        self.bytes.get() < LANE_BYTES && self.messages.borrow().len() < LANE_MESSAGES
    }

    /// Forgets what was not taken: a party that connects again and again must not fill memory with
    /// what its former connections left.
    pub(crate) fn discard(&self) {
        self.messages.borrow_mut().clear();
        self.bytes.set(0);
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
    wake: Notify,
}

impl Inbox {
    pub(crate) fn new() -> Self {
        Self { replicas: RefCell::default(), clients: RefCell::default(), wake: Notify::new() }
    }

    /// A lane for a new connection.
    pub(crate) fn lane(party: Party) -> Rc<Lane> {
        Rc::new(Lane {
            party,
            messages: RefCell::default(),
            bytes: Cell::new(0),
            listed: Cell::new(false),
            room: Notify::new(),
        })
    }

    /// Puts a message into a lane. The caller looks at [`Lane::has_room`] between reads; one read may
    /// overfill the lane by what it held.
    pub(crate) fn push(&self, lane: &Rc<Lane>, message: Bytes) {
        lane.bytes.set(lane.bytes.get() + message.len());
        lane.messages.borrow_mut().push_back(message);
        if !lane.listed.replace(true) {
            self.listed(lane.party).borrow_mut().push_back(Rc::clone(lane));
        }
    }

    fn listed(&self, party: Party) -> &RefCell<VecDeque<Rc<Lane>>> {
        match party {
            Party::Replica(_) => &self.replicas,
            Party::Client(_) => &self.clients,
        }
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

    /// Takes messages of replicas, in turn, until `take` says that it has enough.
    pub(crate) fn take_replicas(&self, take: impl FnMut(Party, Bytes) -> bool) {
        Self::take(&self.replicas, take);
    }

    /// Takes messages of clients, in turn, until `take` says that it has enough.
    pub(crate) fn take_clients(&self, take: impl FnMut(Party, Bytes) -> bool) {
        Self::take(&self.clients, take);
    }

    fn take(list: &RefCell<VecDeque<Rc<Lane>>>, mut take: impl FnMut(Party, Bytes) -> bool) {
        let mut list = list.borrow_mut();
        let mut more = true;
        while more {
            let Some(lane) = list.pop_front() else { return };
            let mut messages = lane.messages.borrow_mut();
            for _ in 0..ROUND {
                let Some(message) = messages.pop_front() else { break };
                lane.bytes.set(lane.bytes.get() - message.len());
                more = take(lane.party, message);
                if !more {
                    break;
                }
            }
            let left = !messages.is_empty();
            drop(messages);
            lane.room.notify_one();
            lane.listed.set(left);
            if left {
                list.push_back(lane);
            }
        }
    }
}
