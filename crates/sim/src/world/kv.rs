//! The workload of the key-value service.

use super::workload::{Called, Workload};
use crate::checks::{Call, Checks};
use crate::{Options, Rng};
use bytes::Bytes;
use std::collections::BTreeMap;
use troth_kv::{Answer, Operation, Watch};
use troth_types::{ClientId, Event, Wire};

/// A client of the key-value service.
pub struct KvWorkload {
    id: ClientId,
    keys: u64,
    made: u64,
    /// The last version seen of each key, for compare-and-swap.
    versions: BTreeMap<Bytes, u64>,
}

impl KvWorkload {
    /// A client of a seed's world.
    #[must_use]
    pub fn new(options: &Options, id: ClientId) -> Self {
        Self { id, keys: options.keys, made: 0, versions: BTreeMap::new() }
    }

    fn key(&self, rng: &mut Rng) -> Bytes {
        Bytes::from(format!("k{}", rng.below(self.keys)))
    }

    fn value(&mut self) -> Bytes {
        self.made += 1;
        Bytes::from(format!("{}.{}", self.id.0, self.made))
    }

    fn operation(&mut self, rng: &mut Rng) -> Operation {
        let key = self.key(rng);
        match rng.below(100) {
            0..40 => Operation::Put { key, value: self.value() },
            40..58 => Operation::Get { key },
            58..72 => {
                let expected = self.versions.get(&key).copied();
                let value = (!rng.one_in(5)).then(|| self.value());
                Operation::CompareAndSwap { key, expected, value }
            }
            72..84 => Operation::Delete { key },
            84..90 => Operation::Scan {
                start: Bytes::from_static(b"k"),
                end: Some(Bytes::from_static(b"l")),
                limit: 100,
            },
            90..96 => Operation::Watch(if rng.one_in(3) {
                Watch::Prefix(Bytes::from_static(b"k"))
            } else {
                Watch::Key(key)
            }),
            _ => Operation::Unwatch(Watch::Key(key)),
        }
    }

    fn remember(&mut self, operation: &Operation, answer: Option<&Answer>) {
        let (Operation::Get { key }
        | Operation::Put { key, .. }
        | Operation::Delete { key }
        | Operation::CompareAndSwap { key, .. }) = operation
        else {
            return;
        };
        match answer {
            Some(Answer::Value { version, .. } | Answer::Written { version }) => {
                self.versions.insert(key.clone(), *version);
            }
            Some(Answer::Mismatch { current: Some(version) }) => {
                self.versions.insert(key.clone(), *version);
            }
            Some(Answer::NotFound | Answer::Deleted { .. } | Answer::Mismatch { current: None }) => {
                self.versions.remove(key);
            }
            _ => {}
        }
    }
}

impl Workload for KvWorkload {
    fn operations(&mut self, _: u64, rng: &mut Rng, count: usize) -> Vec<Bytes> {
        (0..count).map(|_| self.operation(rng).to_wire()).collect()
    }

    fn read(&mut self, _: u64, rng: &mut Rng) -> Bytes {
        Operation::Get { key: self.key(rng) }.to_wire()
    }

    fn done(&mut self, call: &Called<'_>, checks: &mut Checks) {
        for (index, operation) in call.operations.iter().enumerate() {
            let operation = Operation::from_wire(operation).expect("it comes from here");
            let answer = call.results.and_then(|results| Answer::from_wire(results.get(index)?).ok());
            self.remember(&operation, answer.as_ref());
            if let Some(answer) = &answer {
                let result = checks.events.answered(self.id, call.invoked, &operation, answer);
                checks.judge("events", &[], result);
            }
            let returned = call.results.map(|_| call.now);
            record(checks, call.invoked, returned, &operation, answer, self.keys);
        }
    }

    fn told(&mut self, now: u64, event: &Event, checks: &mut Checks) {
        checks.events.told(now, event);
    }
}

/// Puts an operation into the histories of the keys it touches.
fn record(
    checks: &mut Checks,
    invoked: u64,
    returned: Option<u64>,
    operation: &Operation,
    answer: Option<Answer>,
    keys: u64,
) {
    match operation {
        Operation::Get { key }
        | Operation::Put { key, .. }
        | Operation::Delete { key }
        | Operation::CompareAndSwap { key, .. } => {
            let call = Call { invoked, returned, operation: operation.clone(), answer };
            checks.linear.add(key.clone(), call);
        }
        Operation::Scan { .. } => {
            let Some(Answer::Entries { entries, .. }) = answer else { return };
            for key in (0..keys).map(|key| Bytes::from(format!("k{key}"))) {
                let found = entries.iter().find(|entry| entry.key == key);
                let answer = found.map_or(Answer::NotFound, |entry| Answer::Value {
                    version: entry.version,
                    value: entry.value.clone(),
                });
                let operation = Operation::Get { key: key.clone() };
                checks.linear.add(key, Call { invoked, returned, operation, answer: Some(answer) });
            }
        }
        Operation::Watch(_) | Operation::Unwatch(_) => {}
    }
}
