//! The events of an outbox that a client asks for again.
//!
//! An outbox may hold very much, and to ask for it takes a small frame: each answer repeats a part of it, and the next
//! goes on behind that. At the end it begins anew, as what was sent may have been lost.

use crate::replica::Outputs;
use crate::{Agreement, Execution, Output, Replica};
use std::collections::BTreeMap;
use troth_types::{ClientId, Frame, ToClient, Wish};

/// Bytes of events in one answer, about.
const BYTES: usize = 256 << 10;
/// What an event costs beside its own bytes, in bytes that take as long to send: an answer has some 250 small ones.
const EVENT: usize = 1 << 10;

/// Where the next answers go on.
#[derive(Clone, Debug, Default)]
pub(crate) struct RepeatedEvents {
    /// The last index that was sent to clients whose outbox has more. One entry for a client at most.
    sent: BTreeMap<ClientId, u64>,
}

impl<A: Agreement, X: Execution> Replica<A, X> {
    /// Repeats events of a client that has seen those up to an index.
    pub(crate) fn repeat_events(&mut self, client: ClientId, seen: u64, out: &mut Outputs<A, X>) {
        let sent = self.repeated_events.sent.remove(&client).unwrap_or(0);
        let kept = self.execution.outbox(client);
        let after = if sent < *kept.end() { sent.max(seen) } else { seen };
        // Of batches whose place is not final there are some in the outbox, and none to be seen.
        let (committed, mut bytes) = (self.execution.committed(), 0);
        for index in after.saturating_add(1).max(*kept.start())..=*kept.end() {
            let event = self.execution.event(client, index);
            if event.seq > committed {
                break;
            }
            bytes += EVENT + event.payload.len();
            out.push(Output::Client(ToClient::Event(event)));
            if bytes >= BYTES && index < *kept.end() {
                self.repeated_events.sent.insert(client, index);
                break;
            }
        }
    }

    /// Bytes of the answer to a client's frame that was executed, about; nothing where it was not.
    pub fn answer_bytes(&self, frame: &Frame, wish: Wish) -> usize {
        let (client, number) = (frame.client(), frame.number());
        if wish == Wish::Nothing || self.execution.is_new(client, number) {
            return 0;
        }
        let lacks = wish == Wish::Full && *self.execution.outbox(client).end() > frame.events_seen();
        self.execution.kept_bytes(client, number) + if lacks { BYTES } else { 0 }
    }
}
