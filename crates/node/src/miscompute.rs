//! A service that computes one operation wrongly, as a machine with bad memory would; only in builds with the
//! feature `demo-adversary`.

use bytes::Bytes;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use troth_exec::{Application, OpContext, State, StateView};
use troth_types::{ClientId, Time};

/// The operation that goes wrong, counted from the start of the process.
const WRONG: u64 = 5;

/// A service that does as another one, but once.
#[derive(Clone, Debug)]
pub(crate) struct Miscomputes<A> {
    app: A,
    /// Operations so far. Clones count together: what is executed again is executed rightly.
    executed: Arc<AtomicU64>,
}

impl<A> Miscomputes<A> {
    pub(crate) fn new(app: A) -> Self {
        Self { app, executed: Arc::default() }
    }
}

impl<A: Application> Application for Miscomputes<A> {
    const SCANS: bool = A::SCANS;

    fn execute(&self, state: &mut State<'_>, cx: &mut OpContext<'_>, operation: &Bytes) -> Bytes {
        if self.executed.fetch_add(1, Ordering::Relaxed) + 1 == WRONG {
            tracing::warn!("computes an operation wrongly");
            return Bytes::new();
        }
        self.app.execute(state, cx, operation)
    }

    fn query(&self, state: &StateView<'_>, client: ClientId, operation: &Bytes) -> Bytes {
        self.app.query(state, client, operation)
    }

    fn only_reads(&self, operation: &Bytes) -> bool {
        self.app.only_reads(operation)
    }

    fn too_large(&self) -> Bytes {
        self.app.too_large()
    }

    fn outlives_clients(&self, key: &[u8]) -> bool {
        self.app.outlives_clients(key)
    }

    fn next_deadline(&self, state: &StateView<'_>) -> Option<Time> {
        self.app.next_deadline(state)
    }

    fn on_deadline(&self, state: &mut State<'_>, cx: &mut OpContext<'_>) {
        self.app.on_deadline(state, cx);
    }
}
