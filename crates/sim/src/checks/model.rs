//! A naive key-value store with client table, watches and events: what the replicated one must be.

use bytes::Bytes;
use std::collections::{BTreeMap, BTreeSet};
use troth_kv::{Answer, Change, Entry, Operation, Watch};
use troth_types::{ClientId, Frame, Seq, Wire};

/// One executed frame as the model has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Done {
    /// Where it took effect.
    pub seq: Seq,
    /// Its operations.
    pub operations: Vec<Bytes>,
    /// Their results.
    pub results: Vec<Bytes>,
    /// The client's events up to and including this frame's.
    pub events_up_to: u64,
}

/// The model after a prefix of the order.
#[derive(Debug, Default)]
pub struct Model {
    /// The last batch applied.
    pub seq: Seq,
    window: u64,
    entries: BTreeMap<Bytes, (u64, Bytes)>,
    writes: u64,
    watches: BTreeSet<(ClientId, Watch)>,
    slots: BTreeMap<(ClientId, u64), u64>,
    /// Every frame that took effect.
    pub done: BTreeMap<(ClientId, u64), Done>,
    /// How many frames took effect at each number.
    pub effects: BTreeMap<Seq, usize>,
    /// Every event's payload, by client and index - 1.
    pub events: BTreeMap<ClientId, Vec<Bytes>>,
}

impl Model {
    /// The empty store of a group with this client window.
    #[must_use]
    pub fn new(window: u64) -> Self {
        Self { window, ..Self::default() }
    }

    /// Applies the next batch.
    pub fn apply<'a>(&mut self, frames: impl Iterator<Item = &'a Frame>) {
        self.seq = Seq(self.seq.0 + 1);
        for frame in frames {
            let slot = self.slots.entry((frame.client(), frame.number() % self.window)).or_default();
            if frame.number() <= *slot {
                continue;
            }
            *slot = frame.number();
            let results =
                frame.operations().iter().map(|operation| self.run(frame.client(), operation)).collect();
            let events_up_to = self.events.get(&frame.client()).map_or(0, |events| events.len() as u64);
            let operations = frame.operations().to_vec();
            let done = Done { seq: self.seq, operations, results, events_up_to };
            *self.effects.entry(self.seq).or_default() += 1;
            self.done.insert((frame.client(), frame.number()), done);
        }
    }

    fn run(&mut self, client: ClientId, operation: &Bytes) -> Bytes {
        let answer = match Operation::from_wire(operation) {
            Ok(operation) => self.answer(client, operation),
            Err(_) => Answer::Malformed,
        };
        answer.to_wire()
    }

    fn answer(&mut self, client: ClientId, operation: Operation) -> Answer {
        match operation {
            Operation::Get { key } => match self.entries.get(&key) {
                Some((version, value)) => Answer::Value { version: *version, value: value.clone() },
                None => Answer::NotFound,
            },
            Operation::Put { key, value } => self.put(key, value),
            Operation::Delete { key } => self.delete(key),
            Operation::CompareAndSwap { key, expected, value } => {
                let current = self.entries.get(&key).map(|(version, _)| *version);
                match value {
                    _ if current != expected => Answer::Mismatch { current },
                    Some(value) => self.put(key, value),
                    None => self.delete(key),
                }
            }
            Operation::Scan { start, end, limit } => {
                let mut entries: Vec<Entry> = self
                    .entries
                    .iter()
                    .filter(|(key, _)| **key >= start && end.as_ref().is_none_or(|end| *key < end))
                    .map(|(key, (version, value))| Entry {
                        key: key.clone(),
                        version: *version,
                        value: value.clone(),
                    })
                    .collect();
                let rest = entries.split_off(entries.len().min(limit as usize));
                Answer::Entries { entries, next: rest.into_iter().next().map(|entry| entry.key) }
            }
            Operation::Watch(watch) => {
                self.watches.insert((client, watch));
                Answer::Watching
            }
            Operation::Unwatch(watch) => {
                if self.watches.remove(&(client, watch)) {
                    Answer::Unwatched
                } else {
                    Answer::NotFound
                }
            }
        }
    }

    fn put(&mut self, key: Bytes, value: Bytes) -> Answer {
        self.writes += 1;
        self.entries.insert(key.clone(), (self.writes, value));
        self.tell(&key, false);
        Answer::Written { version: self.writes }
    }

    fn delete(&mut self, key: Bytes) -> Answer {
        if self.entries.remove(&key).is_none() {
            return Answer::NotFound;
        }
        self.writes += 1;
        self.tell(&key, true);
        Answer::Deleted { version: self.writes }
    }

    fn tell(&mut self, key: &Bytes, deleted: bool) {
        let matches = |watch: &Watch| match watch {
            Watch::Key(watched) => watched == key,
            Watch::Prefix(prefix) => key.starts_with(prefix),
        };
        let told: BTreeSet<ClientId> =
            self.watches.iter().filter(|(_, watch)| matches(watch)).map(|(client, _)| *client).collect();
        for client in told {
            let payload = Change { key: key.clone(), deleted, version: self.writes }.to_wire();
            self.events.entry(client).or_default().push(payload);
        }
    }
}
