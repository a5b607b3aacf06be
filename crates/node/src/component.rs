//! A trusted component as a replica asks it: its counters, and its logs where the protocol uses them.

use troth_trusted::Identity;
use troth_trusted::a2m::{Answer as LogAnswer, LogRefusal, Operation, Unfit};
use troth_trusted_host::{Answer, Call, TrustedComponent, TrustedLogs};

/// What a component says to operations on its logs.
pub(crate) type Logged = Result<Vec<LogAnswer>, LogRefusal>;

/// One home's component, with all that it keeps.
pub(crate) trait Component: TrustedComponent {
    /// As [`TrustedLogs::call`].
    fn logs(&mut self, operations: &[Operation]) -> Logged {
        no_logs(operations)
    }

    /// As [`TrustedLogs::call_soon`].
    fn logs_soon(&mut self, operations: &[Operation]) -> Option<Logged> {
        Some(self.logs(operations))
    }
}

/// What a component without logs says.
fn no_logs(_: &[Operation]) -> Logged {
    Err(LogRefusal::Operation { index: 0, why: Unfit::NoSuchLog })
}

/// Counters in this process, beside logs where the protocol uses them.
pub(crate) struct Here<C> {
    counters: C,
    logs: Option<Box<dyn TrustedLogs>>,
}

impl<C: TrustedComponent> Here<C> {
    /// These.
    pub(crate) fn new(counters: C, logs: Option<Box<dyn TrustedLogs>>) -> Self {
        Self { counters, logs }
    }
}

impl<C: TrustedComponent> TrustedComponent for Here<C> {
    fn identity(&self) -> Identity {
        self.counters.identity()
    }

    fn call(&mut self, calls: &[Call]) -> Vec<Answer> {
        self.counters.call(calls)
    }

    fn call_soon(&mut self, call: &Call) -> Option<Answer> {
        self.counters.call_soon(call)
    }

    fn attest_beside(&mut self, call: &Call, blob: &[u8]) -> Option<Answer> {
        self.counters.attest_beside(call, blob)
    }

    fn blobs(&mut self) -> Vec<Vec<u8>> {
        self.counters.blobs()
    }
}

impl<C: TrustedComponent> Component for Here<C> {
    fn logs(&mut self, operations: &[Operation]) -> Logged {
        match &mut self.logs {
            Some(logs) => logs.call(operations),
            None => no_logs(operations),
        }
    }

    fn logs_soon(&mut self, operations: &[Operation]) -> Option<Logged> {
        match &mut self.logs {
            Some(logs) => logs.call_soon(operations),
            None => Some(no_logs(operations)),
        }
    }
}
