//! What waits for the trusted component: one queue, so that the order of answers is the order of questions.

use super::Host;
use crate::log::LogRecord;
use crate::{Machine, Ticket, To};
use troth_trusted::a2m::{LogId, MOST_OPERATIONS, Operation, Slot, slot_nonce};
use troth_trusted::{CounterId, CounterValue, run};
use troth_types::{Digest, Wire};

/// One thing that is wanted of the component.
pub(super) enum Wanted<M: Machine> {
    /// The move of a counter, for a message.
    Move(Moving<M>),
    /// Something of its logs.
    Logs(Asked<M>),
}

/// A message to be certified by the move of a counter.
pub(super) struct Moving<M: Machine> {
    pub(super) counter: CounterId,
    pub(super) previous: CounterValue,
    pub(super) new: CounterValue,
    pub(super) body: M::Body,
    pub(super) digest: Digest,
    pub(super) to: To,
}

/// Something of the component's logs.
pub(super) enum Asked<M: Machine> {
    /// A message whose digest shall fill a slot.
    Message { log: LogId, slot: Slot, body: M::Body, digest: Digest, to: To },
    /// Operations whose answers the machine wants.
    Call { ticket: Ticket, operations: Vec<Operation> },
}

impl<M: Machine> Asked<M> {
    /// How many operations of a call it takes.
    fn weight(&self) -> usize {
        match self {
            Self::Message { .. } => 1,
            Self::Call { operations, .. } => operations.len(),
        }
    }

    /// The logs whose ends it asks for.
    fn ends(&self) -> impl Iterator<Item = LogId> + use<'_, M> {
        let operations = match self {
            Self::Message { .. } => &[][..],
            Self::Call { operations, .. } => operations,
        };
        operations.iter().filter_map(|operation| match operation {
            Operation::End { log, .. } => Some(*log),
            _ => None,
        })
    }

    /// Whether it changes a log.
    fn changes(&self, log: LogId) -> bool {
        match self {
            Self::Message { log: filled, .. } => *filled == log,
            Self::Call { operations, .. } => {
                operations.iter().any(|operation| operation.changes() && operation.log() == log)
            }
        }
    }
}

impl<M: Machine> Host<M> {
    /// Takes from the front of what is wanted as much as one call of the component can do.
    pub(super) fn take(&mut self) {
        match self.wanted.pop_front().expect("asked only where something is wanted") {
            Wanted::Move(first) => self.take_run(first),
            Wanted::Logs(first) => self.take_operations(first),
        }
    }

    /// The longest run of consecutive values. A jump stands alone: only then may a certificate skip values.
    fn take_run(&mut self, first: Moving<M>) {
        let mut last = (first.counter, first.new);
        let jump = first.previous.next() != Some(first.new);
        self.run.push(first);
        while !jump && self.run.len() < run::MAX_RUN {
            let Some(Wanted::Move(next)) = self.wanted.pop_front_if(|next| match next {
                Wanted::Move(next) => {
                    (next.counter, next.previous) == last && next.previous.next() == Some(next.new)
                }
                Wanted::Logs(_) => false,
            }) else {
                break;
            };
            last = (next.counter, next.new);
            self.run.push(next);
        }
    }

    /// All that is wanted of the logs before the next move of a counter, while it fits into a call and that can be answered
    /// again: a log does not change after it was asked for its end, or that answer could not be had a second time
    /// (A2M-C4).
    fn take_operations(&mut self, first: Asked<M>) {
        let mut weight = first.weight();
        let mut ended: Vec<LogId> = first.ends().collect();
        self.asked.push(first);
        while let Some(Wanted::Logs(next)) = self.wanted.pop_front_if(|next| match next {
            Wanted::Move(_) => false,
            Wanted::Logs(next) => {
                weight + next.weight() <= MOST_OPERATIONS && !ended.iter().any(|log| next.changes(*log))
            }
        }) {
            weight += next.weight();
            ended.extend(next.ends());
            self.asked.push(next);
        }
    }

    /// The records of the bodies that the component is asked to certify.
    pub(super) fn under_way(&self) -> impl Iterator<Item = LogRecord> + use<'_, M> {
        let moving = self.run.iter().map(|wanted| LogRecord::Own {
            counter: wanted.counter,
            previous: wanted.previous,
            new: wanted.new,
            body: wanted.body.to_wire(),
        });
        let filling = self.asked.iter().filter_map(|asked| match asked {
            Asked::Message { log, slot, body, .. } => {
                Some(LogRecord::OwnInLog { log: *log, slot: *slot, body: body.to_wire() })
            }
            Asked::Call { .. } => None,
        });
        moving.chain(filling)
    }

    /// What is asked of the logs, as operations. A message's slot is looked up with the slot as nonce: what a filled slot
    /// holds never changes, so the answer need not be fresh (paper 000 §4.2.1).
    pub(super) fn operations(&self) -> Vec<Operation> {
        let mut all = Vec::new();
        for asked in &self.asked {
            match asked {
                Asked::Message { log, slot, digest, .. } => all.push(Operation::Advance {
                    log: *log,
                    slot: *slot,
                    previous: [0; 32],
                    value: digest.0,
                    nonce: Some(slot_nonce(*slot)),
                }),
                Asked::Call { operations, .. } => all.extend_from_slice(operations),
            }
        }
        all
    }
}
