//! Operations that wait for a frame.

use crate::Ticket;
use bytes::Bytes;
use std::collections::VecDeque;
use troth_types::Limits;

/// The bytes of a frame beside its operations, as [`troth_types::Frame::size`] counts them.
const FRAME_OVERHEAD: usize = 128;
/// The bytes of an operation's length.
const OPERATION_OVERHEAD: usize = 4;

/// The part of a frame that belongs to one submission.
#[derive(Clone, Debug)]
pub(crate) struct Share {
    pub(crate) ticket: Ticket,
    /// How many of the frame's operations, in order.
    pub(crate) operations: usize,
}

#[derive(Clone, Debug)]
struct Waiting {
    ticket: Ticket,
    operations: Vec<Bytes>,
    size: usize,
    /// Whether its frame is for nobody else: what a frame's answers may come to is for all of it.
    apart: bool,
}

/// A bounded line of submissions; each goes whole into one frame, so that it is executed whole.
#[derive(Clone, Debug, Default)]
pub(crate) struct Queue {
    line: VecDeque<Waiting>,
    operations: usize,
    bytes: usize,
}

fn size(operations: &[Bytes]) -> usize {
    operations.iter().map(|operation| operation.len() + OPERATION_OVERHEAD).sum()
}

/// Whether a frame of its own could carry the operations.
pub(crate) fn fits_a_frame(operations: &[Bytes], limits: &Limits) -> bool {
    operations.len() <= limits.frame_operations && size(operations) + FRAME_OVERHEAD <= limits.frame_bytes
}

impl Queue {
    pub(crate) fn is_empty(&self) -> bool {
        self.line.is_empty()
    }

    /// Operations in line.
    pub(crate) fn operations(&self) -> usize {
        self.operations
    }

    /// Bytes in line.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    pub(crate) fn push(&mut self, ticket: Ticket, operations: Vec<Bytes>) {
        self.push_one(ticket, operations, false);
    }

    /// The same, in a frame of its own.
    pub(crate) fn push_apart(&mut self, ticket: Ticket, operations: Vec<Bytes>) {
        self.push_one(ticket, operations, true);
    }

    fn push_one(&mut self, ticket: Ticket, operations: Vec<Bytes>, apart: bool) {
        let waiting = Waiting { ticket, size: size(&operations), operations, apart };
        self.operations += waiting.operations.len();
        self.bytes += waiting.size;
        self.line.push_back(waiting);
    }

    /// Drops the submissions that `live` no longer wants.
    pub(crate) fn retain(&mut self, live: impl Fn(Ticket) -> bool) {
        self.line.retain(|waiting| live(waiting.ticket));
        self.operations = self.line.iter().map(|waiting| waiting.operations.len()).sum();
        self.bytes = self.line.iter().map(|waiting| waiting.size).sum();
    }

    /// Takes what fits one frame: what the client has ready, or the first submission `alone`.
    pub(crate) fn take_frame(&mut self, limits: &Limits, alone: bool) -> (Vec<Bytes>, Vec<Share>) {
        let mut operations = Vec::new();
        let mut shares = Vec::new();
        let mut bytes = FRAME_OVERHEAD;
        // Of the last that was taken.
        let mut apart = alone;
        while let Some(next) = self.line.front() {
            let full = operations.len() + next.operations.len() > limits.frame_operations
                || bytes + next.size > limits.frame_bytes;
            if !shares.is_empty() && (full || apart || next.apart) {
                break;
            }
            let next = self.line.pop_front().expect("the line has a front");
            bytes += next.size;
            apart |= next.apart;
            self.operations -= next.operations.len();
            self.bytes -= next.size;
            shares.push(Share { ticket: next.ticket, operations: next.operations.len() });
            operations.extend(next.operations);
        }
        (operations, shares)
    }
}
