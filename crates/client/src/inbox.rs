//! Events on their way: counted per replica, delivered in order.

use bytes::Bytes;
use std::collections::BTreeMap;
use troth_types::{Event, Group, ReplicaId};

/// The bytes an event costs beside its payload.
const EVENT_OVERHEAD: usize = 64;

/// Copies of events that not enough replicas have confirmed yet.
#[derive(Clone, Debug)]
pub(crate) struct Inbox {
    /// The last event delivered; unknown until the session's first outcome where the
    /// configuration does not say.
    delivered: Option<u64>,
    weak: usize,
    /// Events that one outbox can hold: no correct replica sends an index further ahead.
    window: u64,
    share: usize,
    replicas: Vec<Copies>,
}

/// One replica's copies, by index.
#[derive(Clone, Debug, Default)]
struct Copies {
    by_index: BTreeMap<u64, Event>,
    bytes: usize,
}

impl Copies {
    fn remove(&mut self, index: u64) -> Option<Event> {
        let event = self.by_index.remove(&index)?;
        self.bytes -= event.payload.len() + EVENT_OVERHEAD;
        Some(event)
    }

    /// Keeps the copy, and the lowest indices where not all fit: those are delivered first.
    fn put(&mut self, event: Event, most: u64, share: usize) {
        self.remove(event.index);
        self.bytes += event.payload.len() + EVENT_OVERHEAD;
        self.by_index.insert(event.index, event);
        while self.bytes > share || self.by_index.len() as u64 > most {
            let Some(&highest) = self.by_index.keys().next_back() else { break };
            self.remove(highest);
        }
    }
}

impl Inbox {
    pub(crate) fn new(group: &Group, delivered: Option<u64>, window: u64, share: usize) -> Self {
        let replicas = vec![Copies::default(); group.n()];
        Self { delivered, weak: group.weak(), window, share, replicas }
    }

    /// The last event delivered, if the session knows where it began.
    pub(crate) fn delivered(&self) -> Option<u64> {
        self.delivered
    }

    /// Begins after `index`.
    pub(crate) fn begin_after(&mut self, index: u64) {
        assert!(self.delivered.is_none(), "a session's events begin once");
        self.delivered = Some(index);
        for copies in &mut self.replicas {
            let outside: Vec<u64> = copies
                .by_index
                .keys()
                .copied()
                .filter(|known| *known <= index || *known - index > self.window)
                .collect();
            for known in outside {
                copies.remove(known);
            }
        }
    }

    /// Takes a replica's copy. Those delivered already or too far ahead are ignored.
    pub(crate) fn offer(&mut self, from: ReplicaId, mut event: Event) {
        let inside = match self.delivered {
            Some(last) => event.index > last && event.index - last <= self.window,
            None => event.index > 0,
        };
        if !inside || event.payload.len() + EVENT_OVERHEAD > self.share {
            return;
        }
        // Its own copy: a slice would keep the whole receive buffer in memory.
        event.payload = Bytes::copy_from_slice(&event.payload);
        self.replicas[usize::from(from.0)].put(event, self.window, self.share);
    }

    /// The next event, when f+1 replicas sent equal copies of it.
    pub(crate) fn next(&mut self) -> Option<Event> {
        let index = self.delivered?.checked_add(1)?;
        let copies: Vec<&Event> =
            self.replicas.iter().filter_map(|copies| copies.by_index.get(&index)).collect();
        let agreed = copies
            .iter()
            .find(|event| copies.iter().filter(|other| other == event).count() >= self.weak)
            .map(|event| (*event).clone())?;
        for copies in &mut self.replicas {
            copies.remove(index);
        }
        self.delivered = Some(index);
        Some(agreed)
    }

    /// Whether copies wait that cannot be delivered yet.
    pub(crate) fn is_waiting(&self) -> bool {
        self.replicas.iter().any(|copies| !copies.by_index.is_empty())
    }

    /// Bytes held now, of all replicas.
    pub(crate) fn bytes(&self) -> usize {
        self.replicas.iter().map(|copies| copies.bytes).sum()
    }
}
