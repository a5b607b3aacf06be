//! What waits for the trusted component: one queue, so that the order of answers is the order of questions.

use super::Host;
use crate::log::LogRecord;
use crate::{Machine, Ticket, To};
use troth_trusted::a2m::{LogId, MOST_OPERATIONS, Operation, Slot, slot_nonce};
use troth_trusted::{CounterId, CounterValue, run};
use troth_trusted_host::repetition::CallSoFar;
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
    /// Hands over what it is as operations. A message's slot is looked up with the slot as nonce: what a filled slot
    /// holds never changes, so the answer need not be fresh (paper 000 §4.2.1).
    fn each(&self, mut hand: impl FnMut(&Operation)) {
        match self {
            Self::Message { log, slot, digest, .. } => hand(&Operation::Advance {
                log: *log,
                slot: *slot,
                previous: [0; 32],
                value: digest.0,
                nonce: Some(slot_nonce(*slot)),
            }),
            Self::Call { operations, .. } => operations.iter().for_each(hand),
        }
    }
}

/// A call of the component, as far as it is put together.
#[derive(Default)]
struct Call {
    so_far: CallSoFar,
    operations: usize,
}

impl Call {
    /// Whether this may be added: there is room, the call can still be answered again where its answer is lost, and
    /// nothing in it waits for what the call itself sets free.
    fn admits<M: Machine>(&self, asked: &Asked<M>) -> bool {
        let (mut count, mut fits) = (self.operations, true);
        asked.each(|operation| {
            count += 1;
            fits &= self.so_far.admits(operation) && !self.so_far.waits_for_room(operation);
        });
        fits && count <= MOST_OPERATIONS
    }

    fn add<M: Machine>(&mut self, asked: &Asked<M>) {
        asked.each(|operation| {
            self.operations += 1;
            self.so_far.add(operation);
        });
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

    /// All that is wanted of the logs before the next move of a counter, as far as one call can do it and be answered
    /// again.
    fn take_operations(&mut self, first: Asked<M>) {
        let mut call = Call::default();
        call.add(&first);
        self.asked.push(first);
        while let Some(Wanted::Logs(next)) = self.wanted.pop_front_if(|next| match next {
            Wanted::Move(_) => false,
            Wanted::Logs(next) => call.admits(next),
        }) {
            call.add(&next);
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

    /// What is asked of the logs, as operations.
    pub(super) fn operations(&self) -> Vec<Operation> {
        let mut all = Vec::new();
        for asked in &self.asked {
            asked.each(|operation| all.push(*operation));
        }
        all
    }
}
