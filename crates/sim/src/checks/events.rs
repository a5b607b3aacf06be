//! Events: each client delivers its outbox in order, without gaps, nothing else, and before the reply
//! that reveals it; and what it asks for afterwards shows what they told it.

use super::ReplyIntegrity;
use bytes::Bytes;
use std::collections::BTreeMap;
use troth_kv::{Answer, Change, Operation};
use troth_types::{ClientId, Event, Wire};

/// What clients delivered.
#[derive(Debug, Default)]
pub struct EventOrder {
    delivered: BTreeMap<ClientId, u64>,
    /// When each client was told of which version of a key, in that order.
    told: BTreeMap<(ClientId, Bytes), Vec<(u64, u64)>>,
    /// Events delivered to all clients.
    pub count: u64,
}

impl EventOrder {
    /// A correct client delivered an event.
    pub fn delivered(&mut self, event: &Event, replies: &ReplyIntegrity) -> Result<(), String> {
        self.count += 1;
        let last = self.delivered.entry(event.client).or_default();
        if event.index != *last + 1 {
            return Err(format!("{} delivered event {} after {last}", event.client, event.index));
        }
        *last = event.index;
        let known =
            replies.model.events.get(&event.client).and_then(|events| events.get(event.index as usize - 1));
        match known {
            Some((_, payload)) if *payload == event.payload => Ok(()),
            Some((_, payload)) => Err(format!("{event:?} should say {payload:?}")),
            // The model cannot tell yet.
            None if replies.is_behind() && event.seq > replies.model.seq => Ok(()),
            None => Err(format!("{event:?} never happened")),
        }
    }

    /// How many events a client has delivered.
    #[must_use]
    pub fn delivered_to(&self, client: ClientId) -> u64 {
        self.delivered.get(&client).copied().unwrap_or(0)
    }

    /// A correct client shows results to its application.
    pub fn shown(
        &self,
        client: ClientId,
        operations: &[Bytes],
        results: &[Bytes],
        replies: &ReplyIntegrity,
    ) -> Result<(), String> {
        let needed = replies.matching(client, operations, results).map(|done| done.events_up_to).min();
        let delivered = self.delivered.get(&client).copied().unwrap_or(0);
        match needed {
            Some(needed) if needed > delivered => Err(format!(
                "{client} shows a reply that reveals event {needed}, having delivered {delivered}"
            )),
            _ => Ok(()),
        }
    }

    /// A correct client was told something at this time.
    pub fn told(&mut self, now: u64, event: &Event) {
        if let Ok(change) = Change::from_wire(&event.payload) {
            self.told.entry((event.client, change.key)).or_default().push((now, change.version));
        }
    }

    /// A correct client got an answer to what it asked at the time `invoked`.
    pub fn answered(
        &self,
        client: ClientId,
        invoked: u64,
        operation: &Operation,
        answer: &Answer,
    ) -> Result<(), String> {
        match (operation, answer) {
            (Operation::Get { key }, Answer::Value { version, .. })
            | (Operation::CompareAndSwap { key, .. }, Answer::Mismatch { current: Some(version) }) => {
                self.shows(client, invoked, key, *version)
            }
            (
                Operation::Put { key, .. } | Operation::CompareAndSwap { key, .. },
                Answer::Written { version },
            )
            | (
                Operation::Delete { key } | Operation::CompareAndSwap { key, .. },
                Answer::Deleted { version },
            ) => self.shows(client, invoked, key, *version),
            (Operation::Scan { .. }, Answer::Entries { entries, .. }) => {
                entries.iter().try_for_each(|entry| self.shows(client, invoked, &entry.key, entry.version))
            }
            _ => Ok(()),
        }
    }

    fn shows(&self, client: ClientId, invoked: u64, key: &Bytes, version: u64) -> Result<(), String> {
        let told = self.told.get(&(client, key.clone())).into_iter().flatten();
        match told.filter(|(at, _)| *at < invoked).map(|(_, told)| *told).max() {
            Some(told) if told > version => Err(format!(
                "{client} asked at {invoked} and was shown version {version} of {key:?}, told of {told} before"
            )),
            _ => Ok(()),
        }
    }
}
