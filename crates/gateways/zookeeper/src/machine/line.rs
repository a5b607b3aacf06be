//! A session's requests, in the order in which they came: none is answered before those that came before it.

use super::measures::Times;
use bytes::Bytes;
use core::ops::Range;
use std::collections::VecDeque;
use troth_types::{Limits, Time};
use troth_zookeeper::{MAX_READS, MAX_SHOWN, Said};

/// The bytes of a frame beside its operations, and those of an operation's length in it and of when it is said.
const FRAME_OVERHEAD: usize = 128;
const OPERATION_OVERHEAD: usize = 4 + Said::OVERHEAD;
/// What one operation has beside the requests that stand in it together: their number.
const READS_OVERHEAD: usize = 4;
/// Reads of one connection on their way together: what comes of those behind the first waits for it.
const MOST_ASKED: usize = 64;

/// The bytes that what a read shows may have, as far as one knows.
#[derive(Clone, Copy, Debug)]
pub(super) struct Expected {
    /// Of those that go in one operation: what is wrong of it costs a question more.
    pub(super) together: usize,
    /// Of those that go before a write: what is wrong of it may cost the connection.
    pub(super) before: usize,
}

/// What a request is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum What {
    /// The operation of a client.
    Request(i32),
    /// The client has proved with SASL who it is; this is the last word of that to it.
    Identify(Bytes),
}

/// A request without a written reply.
#[derive(Clone, Debug)]
pub(super) struct Pending {
    pub(super) xid: i32,
    pub(super) what: What,
    /// Bytes of its packet.
    pub(super) bytes: usize,
    pub(super) since: Time,
    /// What the group is asked.
    pub(super) operation: Bytes,
    /// Whether it need not be ordered.
    pub(super) reads: bool,
    /// Whether, as a read, it may go in one operation with others.
    pub(super) gathers: bool,
    /// Whether its answer may be a list that is too long to be shown.
    pub(super) may_be_long: bool,
    /// Whether it may be executed again: it reads, and watches at most.
    pub(super) repeats: bool,
    /// Whether it goes by itself, in a frame that nobody shares: with others its answer was too large.
    pub(super) alone: bool,
    /// Whether nothing that comes behind it goes with it: its answer may end the connection.
    pub(super) ends: bool,
    /// Whether it sets watches.
    pub(super) watches: bool,
    pub(super) times: Times,
    pub(super) state: State,
}

/// How far it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum State {
    Waiting,
    /// On its way to be ordered.
    Ordered,
    /// On its way as a read.
    Asked,
    /// Answered as a read.
    Seen(Reply),
    /// Answered as it was ordered, or by the gateway itself.
    Settled(Reply),
}

/// What its client is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Reply {
    pub(super) zxid: i64,
    pub(super) error: i32,
    pub(super) body: Bytes,
    /// Whether the connection ends with it.
    pub(super) last: bool,
}

/// What may go to the group now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Going {
    Nothing,
    /// These, together and in order.
    Together(Vec<u64>),
    /// These, as reads: what stands together in one operation.
    Reads(Vec<Vec<u64>>),
}

/// The line.
#[derive(Clone, Debug, Default)]
pub(super) struct Line {
    /// The number of the first that waits.
    first: u64,
    waiting: VecDeque<Pending>,
    /// Whether some are on their way to be ordered.
    ordering: bool,
    /// How many are on their way as reads.
    asked: usize,
    /// Bytes of what was seen and not told.
    seen: usize,
}

/// Whether an operation fits a frame.
pub(super) fn fits(operation: &Bytes, limits: &Limits) -> bool {
    limits.frame_operations > 0 && FRAME_OVERHEAD + OPERATION_OVERHEAD + operation.len() <= limits.frame_bytes
}

impl Line {
    pub(super) fn push(&mut self, pending: Pending) {
        self.waiting.push_back(pending);
    }

    /// All that are without a written reply.
    pub(super) fn waiting(&self) -> impl Iterator<Item = &Pending> {
        self.waiting.iter()
    }

    pub(super) fn len(&self) -> usize {
        self.waiting.len()
    }

    /// Whether requests of the session are on their way to be ordered.
    pub(super) fn is_ordering(&self) -> bool {
        self.ordering
    }

    pub(super) fn seen_bytes(&self) -> usize {
        self.seen
    }

    pub(super) fn get_mut(&mut self, number: u64) -> Option<&mut Pending> {
        let at = usize::try_from(number.checked_sub(self.first)?).ok()?;
        self.waiting.get_mut(at)
    }

    /// Whether something has not been sent yet.
    pub(super) fn has_waiting(&self) -> bool {
        self.waiting.iter().any(|pending| pending.state == State::Waiting)
    }

    /// Marks what goes now as going.
    pub(super) fn go(&mut self, limits: &Limits, expected: Expected) -> Going {
        rule!("ZKG-O1");
        if self.ordering {
            return Going::Nothing;
        }
        let waits = |pending: &Pending| pending.state == State::Waiting;
        let Some(from) = self.waiting.iter().position(waits) else { return Going::Nothing };
        rule!("ZKG-O6");
        let is_last = |pending: &Pending| matches!(&pending.state, State::Settled(reply) if reply.last);
        let until = self.waiting.iter().position(is_last).unwrap_or(self.waiting.len());
        if from >= until {
            return Going::Nothing;
        }
        rule!("ZKG-O3");
        if !self.waiting.range(from..until).any(|pending| waits(pending) && !pending.reads) {
            return Going::Reads(self.go_reading(from..until, limits, expected.together));
        }
        rule!("ZKG-O2");
        if self.asked > 0 {
            return Going::Nothing;
        }
        Going::Together(self.go_together(from..until, limits, expected.before))
    }

    fn go_reading(&mut self, of: Range<usize>, limits: &Limits, expected: usize) -> Vec<Vec<u64>> {
        let most = (limits.result_bytes.min(MAX_SHOWN) / 2 / expected.max(1)).clamp(1, MAX_READS);
        let (mut going, mut together): (Vec<Vec<u64>>, Option<(usize, usize)>) = (Vec::new(), None);
        for (at, pending) in self.waiting.iter_mut().enumerate().take(of.end).skip(of.start) {
            rule!("ZKG-B5");
            if self.asked >= MOST_ASKED {
                break;
            }
            if pending.state != State::Waiting {
                continue;
            }
            pending.state = State::Asked;
            self.asked += 1;
            let (number, bytes) = (self.first + at as u64, pending.operation.len());
            rule!("ZKG-O8");
            if !pending.gathers || pending.alone {
                going.push(vec![number]);
                continue;
            }
            match &mut together {
                // It may have to be ordered, in a frame.
                Some((of, held))
                    if going[*of].len() < most
                        && FRAME_OVERHEAD + OPERATION_OVERHEAD + *held + bytes <= limits.frame_bytes =>
                {
                    *held += bytes;
                    going[*of].push(number);
                }
                _ => {
                    together = Some((going.len(), READS_OVERHEAD + bytes));
                    going.push(vec![number]);
                }
            }
        }
        going
    }

    fn go_together(&mut self, of: Range<usize>, limits: &Limits, expected: usize) -> Vec<u64> {
        let (mut going, mut bytes, mut shown) = (Vec::new(), FRAME_OVERHEAD, 0_usize);
        for (at, pending) in self.waiting.iter_mut().enumerate().take(of.end).skip(of.start) {
            // What was read already may be older than what goes now; it goes again. What has an answer of the gateway's own
            // keeps it.
            if matches!(pending.state, State::Settled(_)) {
                continue;
            }
            bytes += OPERATION_OVERHEAD + pending.operation.len();
            rule!("ZKG-O4");
            let full = going.len() >= limits.frame_operations || bytes > limits.frame_bytes;
            rule!("ZKG-O7");
            let unshown = pending.alone || shown > limits.client_bytes / 2;
            if (full || unshown) && !going.is_empty() {
                break;
            }
            if pending.repeats {
                shown = shown.saturating_add(expected);
            }
            if let State::Seen(reply) = &pending.state {
                self.seen -= reply.body.len();
            }
            pending.state = State::Ordered;
            going.push(self.first + at as u64);
            rule!("ZKG-O6");
            if pending.ends || pending.alone {
                break;
            }
        }
        self.ordering = true;
        going
    }

    /// What was on its way to be ordered has been answered.
    pub(super) fn ordered(&mut self) {
        self.ordering = false;
    }

    /// A read has been answered.
    pub(super) fn seen(&mut self, number: u64, reply: Reply) {
        self.asked -= 1;
        let bytes = reply.body.len();
        if let Some(pending) = self.get_mut(number) {
            pending.state = State::Seen(reply);
            self.seen += bytes;
        }
    }

    /// A read has been answered with what its client is told, however old it is.
    pub(super) fn settled(&mut self, number: u64, reply: Reply) {
        self.asked -= 1;
        if let Some(pending) = self.get_mut(number) {
            pending.state = State::Settled(reply);
        }
    }

    /// A read has no answer that says anything of it: it is ordered, by itself.
    pub(super) fn ask_apart(&mut self, number: u64) {
        self.asked -= 1;
        if let Some(pending) = self.get_mut(number) {
            pending.state = State::Waiting;
            (pending.reads, pending.alone) = (false, true);
        }
    }

    /// Has these asked again, in order, if all of them may be: the answers to the first, and perhaps to more, were too large
    /// beside the others.
    pub(super) fn repeat(&mut self, numbers: &[u64]) -> bool {
        let mut again = |number: &u64| {
            let Some(pending) = self.get_mut(*number).filter(|pending| pending.repeats) else { return false };
            pending.state = State::Waiting;
            true
        };
        if !numbers.iter().all(&mut again) {
            return false;
        }
        if let Some(first) = numbers.first().and_then(|number| self.get_mut(*number)) {
            first.alone = true;
        }
        true
    }

    /// What stood in one operation of reads has no answer together: each is asked again, by itself.
    pub(super) fn ask_each(&mut self, numbers: &[u64]) {
        self.asked -= numbers.len();
        for number in numbers {
            if let Some(pending) = self.get_mut(*number) {
                pending.state = State::Waiting;
                pending.gathers = false;
            }
        }
    }

    /// Nobody is told anything any more: what only reads, and watches at most, and is not on its way, is done with.
    pub(super) fn tell_nobody(&mut self) {
        for pending in self.waiting.iter_mut().filter(|pending| pending.repeats || pending.watches) {
            if matches!(pending.state, State::Waiting | State::Seen(_)) {
                let nothing = Reply { zxid: 0, error: 0, body: Bytes::new(), last: false };
                pending.state = State::Settled(nothing);
            }
        }
        self.seen = 0;
    }

    /// Takes the first request, if it is answered. One that was read and shows less than the client was shown already is
    /// asked again, ordered.
    pub(super) fn take_answered(&mut self, shown: i64) -> Option<(Pending, Reply)> {
        let first = self.waiting.front_mut()?;
        if let State::Seen(reply) = &first.state {
            rule!("ZKG-O5");
            if reply.zxid < shown {
                self.seen -= reply.body.len();
                first.reads = false;
                first.state = State::Waiting;
                return None;
            }
        }
        if !matches!(first.state, State::Seen(_) | State::Settled(_)) {
            return None;
        }
        let mut pending = self.waiting.pop_front()?;
        self.first += 1;
        if let State::Seen(reply) = &pending.state {
            self.seen -= reply.body.len();
        }
        match core::mem::replace(&mut pending.state, State::Waiting) {
            State::Seen(reply) | State::Settled(reply) => Some((pending, reply)),
            State::Waiting | State::Ordered | State::Asked => None,
        }
    }
}
