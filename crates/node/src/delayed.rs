//! A component that answers as late as a slower one would.

use crate::component::{Component, Logged};
use std::hint::spin_loop;
use std::thread::sleep;
use std::time::{Duration, Instant};
use troth_trusted::Identity;
use troth_trusted::a2m::Operation;
use troth_trusted_host::{Answer, Call, TrustedComponent};

/// What a thread that sleeps may oversleep: so much of a wait is spent looking at the clock.
const OVERSLEPT: Duration = Duration::from_micros(100);

/// What a call of the trusted component takes at least.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TrustedDelay {
    /// So long; zero for as long as it takes.
    pub call: Duration,
    /// Each operation of a call takes that, as if it were asked for in a call of its own; the lookup that comes with a
    /// change of a log is an operation, too.
    pub each: bool,
}

impl TrustedDelay {
    /// Whether there is none.
    pub(crate) fn is_zero(self) -> bool {
        self.call.is_zero()
    }

    fn of(self, operations: usize) -> Duration {
        let times = if self.each { u32::try_from(operations).unwrap_or(u32::MAX) } else { 1 };
        self.call.saturating_mul(times)
    }
}

/// A component whose answers come no earlier than a delay after the question, whatever home it lives in: what a
/// protocol costs where its component is slower than this machine's (A2M paper §6.3). What is asked together is
/// answered together, after one delay.
///
/// It waits in [`TrustedComponent::call`]. Who must not wait asks from a thread of its own, and is told so by
/// [`TrustedComponent::call_soon`], [`TrustedComponent::attest_beside`] and [`Component::logs_soon`], which do nothing.
pub(crate) struct Delayed {
    component: Box<dyn Component>,
    delay: TrustedDelay,
}

impl Delayed {
    /// This component, with this delay.
    pub(crate) fn new(component: Box<dyn Component>, delay: TrustedDelay) -> Self {
        Self { component, delay }
    }
}

impl TrustedComponent for Delayed {
    fn identity(&self) -> Identity {
        self.component.identity()
    }

    fn call(&mut self, calls: &[Call]) -> Vec<Answer> {
        let due = Instant::now() + self.delay.of(calls.len());
        let answers = self.component.call(calls);
        wait_until(due);
        answers
    }

    fn call_soon(&mut self, _: &Call) -> Option<Answer> {
        None
    }

    fn blobs(&mut self) -> Vec<Vec<u8>> {
        self.component.blobs()
    }
}

impl Component for Delayed {
    fn logs(&mut self, operations: &[Operation]) -> Logged {
        let lookups = operations.iter().filter(|operation| is_looked_up(operation)).count();
        let due = Instant::now() + self.delay.of(operations.len() + lookups);
        let logged = self.component.logs(operations);
        wait_until(due);
        logged
    }

    fn logs_soon(&mut self, _: &[Operation]) -> Option<Logged> {
        None
    }
}

/// Whether the slot that a change fills is looked up with it (paper 000 §6.3, "batching").
fn is_looked_up(operation: &Operation) -> bool {
    matches!(operation, Operation::Append { nonce: Some(_), .. } | Operation::Advance { nonce: Some(_), .. })
}

fn wait_until(due: Instant) {
    loop {
        let left = due.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return;
        }
        match left.checked_sub(OVERSLEPT) {
            Some(most) if !most.is_zero() => sleep(most),
            _ => spin_loop(),
        }
    }
}
