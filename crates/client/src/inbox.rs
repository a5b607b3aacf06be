//! Events on their way: counted per replica, delivered in order.

use crate::Config;
use bytes::Bytes;
use std::collections::BTreeMap;
use troth_types::{ClientId, Event, ReplicaId, Seq};

/// The bytes an event costs beside its payload.
const EVENT_OVERHEAD: usize = 64;

/// How far the events reach that were delivered. Whatever is asked for afterwards must show as much.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(crate) struct Told {
    /// The index of the last one, of earlier sessions too.
    pub(crate) index: u64,
    /// The highest batch that is said to have brought one about.
    pub(crate) batch: Seq,
}

/// Copies of events that not enough replicas have confirmed yet.
#[derive(Clone, Debug)]
pub(crate) struct Inbox {
    /// The last event delivered; unknown until the session's first outcome where the
    /// configuration does not say.
    delivered: Option<u64>,
    /// The highest batch of an event delivered.
    batch: Seq,
    /// Replicas that must say the same: f+1, or a quorum where replies prove histories. Events prove nothing.
    needed: usize,
    /// Copies kept per replica: as many as an outbox holds.
    most: usize,
    /// Bytes kept per replica.
    share: usize,
    replicas: Vec<Copies>,
}

/// One replica's copies, by index.
#[derive(Clone, Debug, Default)]
struct Copies {
    by_index: BTreeMap<u64, Event>,
    /// The replica's outbox overflowed: it holds no event up to this index any more.
    lost_up_to: u64,
    bytes: usize,
}

impl Copies {
    fn remove(&mut self, index: u64) {
        if let Some(event) = self.by_index.remove(&index) {
            self.bytes -= event.payload.len() + EVENT_OVERHEAD;
        }
    }

    fn remove_up_to(&mut self, index: u64) {
        while let Some((&lowest, _)) = self.by_index.first_key_value() {
            if lowest > index {
                break;
            }
            self.remove(lowest);
        }
    }

    /// Keeps the copy, and the lowest indices where not all fit: those are delivered first.
    fn put(&mut self, event: Event, most: usize, share: usize) {
        self.remove(event.index);
        self.bytes += event.payload.len() + EVENT_OVERHEAD;
        self.by_index.insert(event.index, event);
        while self.bytes > share || self.by_index.len() > most {
            let Some(&highest) = self.by_index.keys().next_back() else { break };
            self.remove(highest);
        }
    }
}

impl Inbox {
    pub(crate) fn new(config: &Config) -> Self {
        let replicas = vec![Copies::default(); config.group.n()];
        Self {
            delivered: config.events_seen,
            batch: Seq::default(),
            needed: config.believed(),
            most: config.limits.outbox_events,
            share: config.bounds.event_bytes,
            replicas,
        }
    }

    /// The last event delivered, if the session knows where it began.
    pub(crate) fn delivered(&self) -> Option<u64> {
        self.delivered
    }

    /// How far what was delivered reaches.
    pub(crate) fn told(&self) -> Told {
        Told { index: self.delivered.unwrap_or(0), batch: self.batch }
    }

    /// Begins after `index`.
    pub(crate) fn begin_after(&mut self, index: u64) {
        assert!(self.delivered.is_none(), "a session's events begin once");
        self.advance(index);
    }

    /// Takes a replica's copy. An empty payload is a marker: the replica's outbox overflowed and
    /// lost every event up to and including this index.
    pub(crate) fn offer(&mut self, from: ReplicaId, mut event: Event) {
        if event.index <= self.delivered.unwrap_or(0) || event.payload.len() + EVENT_OVERHEAD > self.share {
            return;
        }
        let copies = &mut self.replicas[usize::from(from.0)];
        if event.payload.is_empty() {
            // Its earlier copies would otherwise keep those behind the gap out.
            copies.lost_up_to = copies.lost_up_to.max(event.index);
            copies.remove_up_to(event.index);
            return;
        }
        // Its own copy: a slice would keep the whole receive buffer in memory.
        event.payload = Bytes::copy_from_slice(&event.payload);
        copies.put(event, self.most, self.share);
    }

    /// The next event: one that as many replicas as are believed sent equal copies of, or an empty one in the
    /// place of all that so many say they lost.
    pub(crate) fn next(&mut self, client: ClientId) -> Option<Event> {
        let index = self.delivered?.checked_add(1)?;
        let copies: Vec<&Event> =
            self.replicas.iter().filter_map(|copies| copies.by_index.get(&index)).collect();
        let agreed = copies
            .iter()
            .find(|event| copies.iter().filter(|other| other == event).count() >= self.needed)
            .map(|event| (*event).clone());
        if let Some(event) = agreed {
            self.advance(index);
            self.batch = self.batch.max(event.seq);
            return Some(event);
        }
        let lost = self.lost_up_to();
        (lost >= index).then(|| {
            self.advance(lost);
            Event { client, index: lost, seq: Seq::default(), payload: Bytes::new() }
        })
    }

    /// What as many replicas as are believed, hence a correct one, no longer hold. Their markers move while they
    /// execute, so it is the highest index that so many of them have reached.
    fn lost_up_to(&self) -> u64 {
        let mut lost: Vec<u64> = self.replicas.iter().map(|copies| copies.lost_up_to).collect();
        lost.sort_unstable();
        lost[lost.len() - self.needed]
    }

    fn advance(&mut self, index: u64) {
        self.delivered = Some(index);
        for copies in &mut self.replicas {
            copies.remove_up_to(index);
        }
    }

    /// Whether copies wait that cannot be delivered yet.
    pub(crate) fn is_waiting(&self) -> bool {
        let delivered = self.delivered.unwrap_or(0);
        self.replicas.iter().any(|copies| !copies.by_index.is_empty() || copies.lost_up_to > delivered)
    }

    /// Whether as many replicas as are believed, one of them correct, sent later events than the next one, and not that.
    pub(crate) fn is_behind(&self) -> bool {
        let delivered = self.delivered.unwrap_or(0);
        let waits = |copies: &&Copies| {
            let first = copies.by_index.first_key_value();
            first.is_some_and(|(first, _)| *first > delivered + 1) || copies.lost_up_to > delivered
        };
        self.replicas.iter().filter(waits).count() >= self.needed
    }

    /// Bytes held now, of all replicas.
    pub(crate) fn bytes(&self) -> usize {
        self.replicas.iter().map(|copies| copies.bytes).sum()
    }
}
