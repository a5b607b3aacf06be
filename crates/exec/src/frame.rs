//! The operations of one frame, as a service executes them.

use crate::{Application, OpContext, clients, configuration};
use bytes::Bytes;
use core::fmt;
use troth_core::VerifiedFrame;
use troth_types::{ClientId, Digest, Limits, OPERATOR, OperationsIter, Seq, Time};

/// Bytes of a result for which those before it leave room.
const SMALL: usize = 4096;

/// The batch that a frame is part of.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Within {
    pub(crate) seq: Seq,
    pub(crate) time: Time,
    pub(crate) seed: Digest,
}

/// Whether an operation is not executed because its frame made that much already: a frame of a few bytes per
/// read must not make work without end for results that are thrown away. Writes are executed all the same:
/// their effect is what was asked for.
pub(crate) fn passes_over(
    app: &impl Application,
    limits: &Limits,
    client: ClientId,
    operation: &Bytes,
    made_bytes: usize,
) -> bool {
    let only_reads = || match client {
        OPERATOR => configuration::only_reads(operation),
        _ => app.only_reads(operation),
    };
    made_bytes > limits.client_bytes && only_reads()
}

/// The operations of a frame, one after the other, and their results: [`FrameOperations::next`] gives an
/// operation, [`FrameOperations::answer`] takes its result.
pub struct FrameOperations<'f> {
    client: ClientId,
    number: u64,
    within: Within,
    operations: OperationsIter<'f>,
    limits: &'f Limits,
    passes_over: &'f dyn Fn(&Bytes, usize) -> bool,
    too_large: &'f dyn Fn() -> Bytes,
    /// Operations that [`FrameOperations::next`] has given or passed over.
    taken: usize,
    results: Vec<Bytes>,
    result_bytes: u64,
    /// What the operations have made, shown or not. The same at every replica, like all that decides
    /// here: results and their order are.
    made_bytes: usize,
    events: Vec<(ClientId, Bytes)>,
}

impl fmt::Debug for FrameOperations<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FrameOperations")
            .field("client", &self.client)
            .field("number", &self.number)
            .field("left", &self.operations.len())
            .field("taken", &self.taken)
            .field("answered", &self.results.len())
            .finish_non_exhaustive()
    }
}

impl<'f> FrameOperations<'f> {
    pub(crate) fn new(
        frame: &'f VerifiedFrame,
        within: Within,
        limits: &'f Limits,
        passes_over: &'f dyn Fn(&Bytes, usize) -> bool,
        too_large: &'f dyn Fn() -> Bytes,
    ) -> Self {
        Self {
            client: frame.client(),
            number: frame.number(),
            within,
            operations: frame.operations().iter(),
            limits,
            passes_over,
            too_large,
            taken: 0,
            results: Vec::with_capacity(frame.operations().len()),
            result_bytes: 0,
            made_bytes: 0,
            events: Vec::new(),
        }
    }

    /// The next operation to execute and what it may know, or that there is none.
    ///
    /// # Panics
    /// If the one before has no answer yet: the service's bug.
    #[expect(clippy::should_implement_trait, reason = "what is given borrows from this")]
    pub fn next(&mut self) -> Option<(OpContext<'_>, Bytes)> {
        assert_eq!(self.results.len(), self.taken, "every operation is answered");
        for operation in self.operations.by_ref() {
            let index = self.taken;
            self.taken += 1;
            if (self.passes_over)(&operation, self.made_bytes) {
                self.results.push((self.too_large)());
                continue;
            }
            let Within { seq, time, seed } = self.within;
            let mut cx = OpContext::new(self.client, self.number, seq, time, seed, &mut self.events);
            cx.index = index;
            return Some((cx, operation));
        }
        None
    }

    /// Whether the operations so far have made as much as all results together may have: what a read behind them shows would
    /// be thrown away. For services whose reads are more than that ([`Application::only_reads`] has the others).
    #[must_use]
    pub fn made_enough(&self) -> bool {
        self.made_bytes > self.limits.client_bytes
    }

    /// The result of the operation that was given last. One over the group's limits is not shown.
    ///
    /// # Panics
    /// If it has one already: the service's bug.
    pub fn answer(&mut self, result: Bytes) {
        self.answer_weighing(result, 0);
    }

    /// The same of an operation that looked at more than its result shows: it counts as so many bytes, if it has fewer. They
    /// must be the same at every replica, as results are.
    ///
    /// # Panics
    /// As [`FrameOperations::answer`].
    pub fn answer_weighing(&mut self, result: Bytes, weight: usize) {
        assert_eq!(self.results.len() + 1, self.taken, "an operation is answered once");
        self.made_bytes = self.made_bytes.saturating_add(result.len().max(weight));
        // What is large leaves room for small results of those behind it: most results of writes are small, and without them
        // their callers do not know what came of them.
        let reserved = match result.len() {
            0..=SMALL => 0,
            _ => (self.operations.len() * SMALL).min(self.limits.client_bytes / 2) as u64,
        };
        self.results.push(match clients::fits(self.limits, self.result_bytes + reserved, &result) {
            Some(total) => {
                self.result_bytes = total - reserved;
                result
            }
            None => (self.too_large)(),
        });
    }

    /// The results, in order, and the events by receiver.
    pub(crate) fn finish(self) -> (Vec<Bytes>, Vec<(ClientId, Bytes)>) {
        assert!(
            self.results.len() == self.taken && self.operations.len() == 0,
            "every operation is executed"
        );
        (self.results, self.events)
    }
}
