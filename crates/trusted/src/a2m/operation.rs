//! What can be asked of the logs, and why it is refused.

use super::log::{Log, Marks, Storage};
use super::{LogId, Nonce, Peer, Slot, rule};
use crate::value::Digest;

/// One operation on one log (paper 000 §3.1). A nonce beside a change asks for the lookup of the slot that
/// it fills, in the same call (paper 000 §6.3, "batching").
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Operation {
    /// `append(q, x)`: fills the next slot.
    Append {
        /// The log.
        log: LogId,
        /// The slot after the log's last, so that an append which was done and is asked for again is
        /// refused instead of filling another slot.
        slot: Slot,
        /// What to fill it with.
        value: Digest,
        /// With this nonce the slot is looked up afterwards.
        nonce: Option<Nonce>,
    },
    /// `advance(q, n, d, x)`: fills a slot further up and skips those before it.
    Advance {
        /// The log.
        log: LogId,
        /// The slot, anywhere above the log's last.
        slot: Slot,
        /// The digest that the chain goes on from: of the history up to the slot before, where that is
        /// known.
        previous: Digest,
        /// What to fill it with.
        value: Digest,
        /// With this nonce the slot is looked up afterwards.
        nonce: Option<Nonce>,
    },
    /// `truncate(q, n)`: forgets every slot below this one.
    Truncate {
        /// The log.
        log: LogId,
        /// The lowest slot to keep: above the log's low mark, at most its last.
        slot: Slot,
    },
    /// `lookup(q, n, z)`: what the log says of a slot.
    Lookup {
        /// The log.
        log: LogId,
        /// The slot.
        slot: Slot,
        /// The nonce.
        nonce: Nonce,
    },
    /// `lookup(q, n, z)` for one client, attested by a MAC under the key that the component shares with it
    /// (paper 000 §3.3). It convinces nobody else.
    LookupFor {
        /// The log.
        log: LogId,
        /// The slot.
        slot: Slot,
        /// The nonce.
        nonce: Nonce,
        /// The client.
        peer: Peer,
    },
    /// `end(q, z)`: what the log says of its last slot, and which one that is.
    End {
        /// The log.
        log: LogId,
        /// The nonce, or the root over many ([`run`](crate::run)).
        nonce: Nonce,
    },
}

/// Why an operation cannot be done.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unfit {
    /// There is no such log.
    NoSuchLog,
    /// The log does not end before the slot that an append names.
    Elsewhere {
        /// Its last slot.
        high: Slot,
    },
    /// The slot that the log shall advance to is not above its last.
    NotAhead {
        /// Its last slot.
        high: Slot,
    },
    /// The last slot that there can be is filled.
    Spent,
    /// The log has no room for another entry before it is truncated. What a truncation sets free is there
    /// from the next call on.
    Full,
    /// The log keeps nothing between this slot and its low mark, or does not reach it.
    OutsideLog {
        /// Its low mark.
        low: Slot,
        /// Its last slot.
        high: Slot,
    },
}

/// Why a call was not carried out. Nothing has changed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LogRefusal {
    /// One of the operations cannot be done, so none was.
    Operation {
        /// Which one, from zero.
        index: usize,
        /// Why.
        why: Unfit,
    },
    /// The call has more than [`MOST_OPERATIONS`](super::MOST_OPERATIONS).
    TooMany,
    /// The store has no room for the changes now. The same call may succeed later.
    NoSpace,
    /// A store failed earlier or now: what is durable is unknown, so nothing more is attested until the
    /// component starts again from its store.
    Halted,
}

impl Operation {
    /// The log that it is about.
    pub fn log(&self) -> LogId {
        match *self {
            Self::Append { log, .. }
            | Self::Advance { log, .. }
            | Self::Truncate { log, .. }
            | Self::Lookup { log, .. }
            | Self::LookupFor { log, .. }
            | Self::End { log, .. } => log,
        }
    }

    /// Whether it changes the log, so that a store must know of it.
    pub fn changes(&self) -> bool {
        !matches!(self, Self::Lookup { .. } | Self::LookupFor { .. } | Self::End { .. })
    }

    /// Does to the marks of the log what [`Operation::apply`] does to the log.
    pub(super) fn mark(&self, marks: &mut Marks) -> Result<(), Unfit> {
        match *self {
            Self::Append { slot, .. } => marks.append(slot),
            Self::Advance { slot, .. } => marks.advance(slot),
            Self::Truncate { slot, .. } => marks.truncate(slot),
            Self::Lookup { .. } | Self::LookupFor { .. } | Self::End { .. } => Ok(()),
        }
    }

    pub(super) fn apply<E: Storage>(&self, log: &mut Log<E>) -> Result<(), Unfit> {
        rule!("A2M-C1");
        match *self {
            Self::Append { slot, value, .. } => log.append(slot, value),
            Self::Advance { slot, previous, value, .. } => log.advance(slot, &previous, value),
            Self::Truncate { slot, .. } => log.truncate(slot),
            Self::Lookup { .. } | Self::LookupFor { .. } | Self::End { .. } => Ok(()),
        }
    }
}
