//! The service of the tests: it writes down what it executes, and what it was told to do at a time.

use bytes::Bytes;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use troth_exec::{Application, OpContext, State, StateView};
use troth_types::{ClientId, Time};

const LOG: &[u8] = b"log";
const DUE: &[u8] = b"due";

/// Operations are written down in order; `at:T` sets a deadline, at which `tick` is written.
#[derive(Clone, Debug, Default)]
pub(super) struct Journal {
    /// Writes down something else, once, in the batch of this number; 0 is none.
    pub(super) wrong_at: Arc<AtomicU64>,
}

impl Journal {
    /// What was executed, in order.
    pub(super) fn entries(state: &StateView<'_>) -> Vec<String> {
        let log = state.get(LOG).unwrap_or_default();
        log.split(|byte| *byte == b'|')
            .filter(|entry| !entry.is_empty())
            .map(|entry| String::from_utf8_lossy(entry).into_owned())
            .collect()
    }

    fn write(state: &mut State<'_>, entry: &[u8]) {
        let mut log = state.get(LOG).unwrap_or_default().to_vec();
        log.extend_from_slice(entry);
        log.push(b'|');
        state.insert(LOG, Bytes::from(log));
    }
}

impl Application for Journal {
    fn execute(&self, state: &mut State<'_>, cx: &mut OpContext<'_>, operation: &Bytes) -> Bytes {
        if self.wrong_at.compare_exchange(cx.seq.0, 0, Ordering::Relaxed, Ordering::Relaxed).is_ok() {
            Self::write(state, b"wrong");
            return Bytes::from_static(b"wrong");
        }
        if let Some(time) = operation.strip_prefix(b"at:") {
            state.insert(DUE, Bytes::copy_from_slice(time));
        }
        Self::write(state, operation);
        operation.clone()
    }

    fn query(&self, state: &StateView<'_>, _: ClientId, _: &Bytes) -> Bytes {
        state.get(LOG).unwrap_or_default()
    }

    fn next_deadline(&self, state: &StateView<'_>) -> Option<Time> {
        let due = state.get(DUE)?;
        String::from_utf8_lossy(&due).parse().ok().map(Time)
    }

    fn on_deadline(&self, state: &mut State<'_>, _: &mut OpContext<'_>) {
        state.remove(DUE);
        Self::write(state, b"tick");
    }
}
