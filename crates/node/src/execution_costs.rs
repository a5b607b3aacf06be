//! How long clients' frames take to be executed.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;
use troth_core::Meter;
use troth_types::ClientId;

/// A frame that was executed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Executed {
    pub(crate) client: ClientId,
    pub(crate) number: u64,
    /// How many operations it had.
    pub(crate) operations: u32,
    /// How many microseconds it took.
    pub(crate) micros: u64,
}

/// The most frames that are remembered until somebody asks: many times what a turn executes. A replica that executes its log
/// as it starts is not asked meanwhile.
const MOST: usize = 1 << 16;

/// Notes what each frame takes, until somebody asks. By the clock and not by the processor's time: to read that costs as much
/// as to execute a small frame.
#[derive(Debug)]
pub(crate) struct ExecutionCosts(Mutex<Costs>);

#[derive(Debug)]
struct Costs {
    began: Instant,
    frames: Vec<Executed>,
}

impl ExecutionCosts {
    pub(crate) fn new() -> Self {
        Self(Mutex::new(Costs { began: Instant::now(), frames: Vec::new() }))
    }

    /// Tells of each frame that was executed since this was asked last.
    pub(crate) fn take(&self, tell: impl FnMut(Executed)) {
        self.costs().frames.drain(..).for_each(tell);
    }

    fn costs(&self) -> MutexGuard<'_, Costs> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Meter for ExecutionCosts {
    fn begins(&self) {
        self.costs().began = Instant::now();
    }

    fn executed(&self, client: ClientId, number: u64, operations: usize) {
        let mut costs = self.costs();
        let micros = u64::try_from(costs.began.elapsed().as_micros()).unwrap_or(u64::MAX);
        if costs.frames.len() < MOST {
            let operations = u32::try_from(operations).unwrap_or(u32::MAX);
            costs.frames.push(Executed { client, number, operations, micros });
        }
    }
}
