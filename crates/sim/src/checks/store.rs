//! A naive key-value store with watches: what the replicated one must be.

use bytes::Bytes;
use std::collections::{BTreeMap, BTreeSet};
use troth_kv::{Answer, Change, Entry, Operation, Watch};
use troth_types::{ClientId, Wire};

/// The store, with what its last operation told whom.
#[derive(Debug, Default)]
pub struct Store {
    entries: BTreeMap<Bytes, (u64, Bytes)>,
    writes: u64,
    watches: BTreeSet<(ClientId, Watch)>,
}

/// What is told to whom.
type Told = Vec<(ClientId, Bytes)>;

impl Store {
    /// Executes an operation.
    pub fn execute(&mut self, client: ClientId, operation: &Bytes, told: &mut Told) -> Bytes {
        let answer = match Operation::from_wire(operation) {
            Ok(operation) => self.answer(client, operation, told),
            Err(_) => Answer::Malformed,
        };
        answer.to_wire()
    }

    fn answer(&mut self, client: ClientId, operation: Operation, told: &mut Told) -> Answer {
        match operation {
            Operation::Get { key } => match self.entries.get(&key) {
                Some((version, value)) => Answer::Value { version: *version, value: value.clone() },
                None => Answer::NotFound,
            },
            Operation::Put { key, value } => self.put(key, value, told),
            Operation::Delete { key } => self.delete(key, told),
            Operation::CompareAndSwap { key, expected, value } => {
                let current = self.entries.get(&key).map(|(version, _)| *version);
                match value {
                    _ if current != expected => Answer::Mismatch { current },
                    Some(value) => self.put(key, value, told),
                    None => self.delete(key, told),
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

    fn put(&mut self, key: Bytes, value: Bytes, told: &mut Told) -> Answer {
        self.writes += 1;
        self.entries.insert(key.clone(), (self.writes, value));
        self.tell(&key, false, told);
        Answer::Written { version: self.writes }
    }

    fn delete(&mut self, key: Bytes, told: &mut Told) -> Answer {
        if self.entries.remove(&key).is_none() {
            return Answer::NotFound;
        }
        self.writes += 1;
        self.tell(&key, true, told);
        Answer::Deleted { version: self.writes }
    }

    fn tell(&self, key: &Bytes, deleted: bool, told: &mut Told) {
        let matches = |watch: &Watch| match watch {
            Watch::Key(watched) => watched == key,
            Watch::Prefix(prefix) => key.starts_with(prefix),
        };
        let hear: BTreeSet<ClientId> =
            self.watches.iter().filter(|(_, watch)| matches(watch)).map(|(client, _)| *client).collect();
        for client in hear {
            told.push((client, Change { key: key.clone(), deleted, version: self.writes }.to_wire()));
        }
    }
}
