//! Events: each client delivers its outbox in order, without gaps, nothing else, and before the reply
//! that reveals it.

use super::ReplyIntegrity;
use bytes::Bytes;
use std::collections::BTreeMap;
use troth_types::{ClientId, Event};

/// What clients delivered.
#[derive(Debug, Default)]
pub struct EventOrder {
    delivered: BTreeMap<ClientId, u64>,
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
            Some(payload) if *payload == event.payload => Ok(()),
            Some(payload) => Err(format!("{event:?} should say {payload:?}")),
            // The model cannot tell yet.
            None if replies.is_behind() && event.seq > replies.model.seq => Ok(()),
            None => Err(format!("{event:?} never happened")),
        }
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
}
