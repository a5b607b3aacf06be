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

/// A component whose answers come no earlier than a delay after the question, whatever home it lives in: what a
/// protocol costs where its component is slower than this machine's (A2M paper §6.3). What is asked together is
/// answered together, after one delay.
///
/// It waits in [`TrustedComponent::call`]. Who must not wait asks from a thread of its own, and is told so by
/// [`TrustedComponent::call_soon`], [`TrustedComponent::attest_beside`] and [`Component::logs_soon`], which do nothing.
pub(crate) struct Delayed {
    component: Box<dyn Component>,
    delay: Duration,
}

impl Delayed {
    /// This component, with this delay.
    pub(crate) fn new(component: Box<dyn Component>, delay: Duration) -> Self {
        Self { component, delay }
    }
}

impl TrustedComponent for Delayed {
    fn identity(&self) -> Identity {
        self.component.identity()
    }

    fn call(&mut self, calls: &[Call]) -> Vec<Answer> {
        let due = Instant::now() + self.delay;
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
        let due = Instant::now() + self.delay;
        let logged = self.component.logs(operations);
        wait_until(due);
        logged
    }

    fn logs_soon(&mut self, _: &[Operation]) -> Option<Logged> {
        None
    }
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
