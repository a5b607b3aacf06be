//! The events of an outbox that a client asks for again.
//!
//! An outbox may hold very much, and to ask for it takes a small frame: each answer repeats a part of it, and the next
//! goes on behind that. At the end it begins anew. Who asks late may have lost a part and be able to deliver nothing, or have a
//! slow link: it is answered from the first on, and the next time behind all that it was sent, in turn.

use crate::replica::Outputs;
use crate::{Agreement, Execution, Output, Replica};
use std::collections::BTreeMap;
use std::ops::Bound;
use troth_types::{ClientId, Frame, Seq, Time, ToClient, Wish};

/// Bytes of events in one answer, about.
const BYTES: usize = 256 << 10;
/// What an event costs beside its own bytes, in bytes that take as long to send: an answer has some 250 small ones.
const EVENT: usize = 1 << 10;
/// Microseconds after which a question is late. A client that can deliver what comes asks on within 200 ms; one that lacks
/// an earlier part can not, and its pauses grow.
const LATE: u64 = 1_000_000;

/// Where the next answers go on.
#[derive(Clone, Debug, Default)]
pub(crate) struct RepeatedEvents {
    /// Of clients whose outbox has more. One entry for a client at most.
    sent: BTreeMap<ClientId, Sent>,
    /// Clients that asked before there was something to answer, and the events that they had seen. Each is answered in a step of
    /// its own: a batch may have frames of many.
    asked: BTreeMap<ClientId, u64>,
    /// Who had its turn last.
    turn: Option<ClientId>,
}

impl RepeatedEvents {
    /// A client that asked is to be answered, which has seen the events up to an index.
    pub(crate) fn answer_later(&mut self, client: ClientId, seen: u64) {
        let before = self.asked.entry(client).or_default();
        *before = seen.max(*before);
    }

    /// Whether one waits for that.
    pub(crate) fn has_asked(&self) -> bool {
        !self.asked.is_empty()
    }

    /// Takes out the next client that does.
    fn take_asked(&mut self) -> Option<(ClientId, u64)> {
        let behind = (self.turn.map_or(Bound::Unbounded, Bound::Excluded), Bound::Unbounded);
        let next = self.asked.range(behind).next().or_else(|| self.asked.first_key_value());
        let client = *next?.0;
        self.turn = Some(client);
        self.asked.remove_entry(&client)
    }
}

/// What a client was sent.
#[derive(Clone, Copy, Debug)]
struct Sent {
    /// The last index of the last answer, and when that was.
    last: u64,
    at: Time,
    /// The highest one of all answers.
    highest: u64,
    /// The next late question is answered from the first on.
    anew: bool,
}

impl Sent {
    /// Behind which index the next answer begins, nothing where it begins anew, and what the late one after it does.
    fn next(self, now: Time) -> (Option<u64>, bool) {
        match (now < self.at.after(LATE), self.anew) {
            (true, anew) => (Some(self.last), anew),
            (false, true) => (None, false),
            (false, false) => (Some(self.highest), true),
        }
    }
}

impl<A: Agreement, X: Execution> Replica<A, X> {
    /// Answers the next client that waits for events to be repeated: which one that was, if any does.
    pub(crate) fn repeat_events_asked(&mut self, now: Time, out: &mut Outputs<A, X>) -> Option<ClientId> {
        // Where the state is wrong they ask again.
        if self.repair.is_some() {
            self.repeated_events.asked.clear();
        }
        let (client, seen) = self.repeated_events.take_asked()?;
        self.repeat_events(now, client, seen, out);
        Some(client)
    }

    /// Repeats events of a client that has seen those up to an index.
    pub(crate) fn repeat_events(&mut self, now: Time, client: ClientId, seen: u64, out: &mut Outputs<A, X>) {
        let (first, last) = self.execution.outbox(client).into_inner();
        let before = self.repeated_events.sent.remove(&client);
        let (goes_on, anew) = before.map_or((None, true), |before| before.next(now));
        let after = goes_on.filter(|sent| *sent < last).map_or(seen, |sent| sent.max(seen));
        let (committed, mut bytes) = (self.execution.committed(), 0);
        for index in after.saturating_add(1).max(first)..=last {
            let event = self.execution.event(client, index);
            bytes += EVENT;
            // Of batches whose place is not final there are some in the outbox, and none to be seen.
            if event.seq <= committed {
                bytes += event.payload.len();
                out.push(Output::Client(ToClient::Event(event)));
            }
            if bytes >= BYTES && index < last {
                let highest = before.map_or(0, |before| before.highest).max(index);
                self.repeated_events.sent.insert(client, Sent { last: index, at: now, highest, anew });
                // Behind it there is a gap, so that whoever asks for nothing else knows that there is more.
                self.show_last(client, index, last, committed, out);
                break;
            }
        }
    }

    /// Shows the last final event of those behind an index. Their batches ascend.
    fn show_last(&self, client: ClientId, after: u64, last: u64, committed: Seq, out: &mut Outputs<A, X>) {
        let (mut final_to, mut open) = (after, last + 1);
        while open - final_to > 1 {
            let middle = final_to + (open - final_to) / 2;
            match self.execution.event(client, middle).seq <= committed {
                true => final_to = middle,
                false => open = middle,
            }
        }
        if final_to > after {
            out.push(Output::Client(ToClient::Event(self.execution.event(client, final_to))));
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
