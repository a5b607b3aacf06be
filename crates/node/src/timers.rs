//! The machine's timers: each name is set at most once.

use std::collections::{BTreeMap, BTreeSet};
use troth_types::Time;

/// Timers by name, and the same by due time.
#[derive(Clone, Debug)]
pub(crate) struct Timers<T> {
    due: BTreeMap<T, Time>,
    order: BTreeSet<(Time, T)>,
}

impl<T: Copy + Ord> Timers<T> {
    pub(crate) fn new() -> Self {
        Self { due: BTreeMap::new(), order: BTreeSet::new() }
    }

    /// Sets or moves a timer.
    pub(crate) fn set(&mut self, timer: T, at: Time) {
        self.cancel(timer);
        self.due.insert(timer, at);
        self.order.insert((at, timer));
    }

    /// Forgets a timer, if it is set.
    pub(crate) fn cancel(&mut self, timer: T) {
        if let Some(at) = self.due.remove(&timer) {
            self.order.remove(&(at, timer));
        }
    }

    /// When the first is due.
    pub(crate) fn next(&self) -> Option<Time> {
        self.order.first().map(|(at, _)| *at)
    }

    /// Takes the timers that are due, first due first.
    pub(crate) fn take_due(&mut self, now: Time) -> Vec<T> {
        let mut taken = Vec::new();
        while let Some((at, timer)) = self.order.first().copied().filter(|(at, _)| *at <= now) {
            self.order.remove(&(at, timer));
            self.due.remove(&timer);
            taken.push(timer);
        }
        taken
    }
}
