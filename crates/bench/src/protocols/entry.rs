//! The protocols that are measured. A protocol that comes to be served gets an entry here.

use super::Contender;
use crate::protocol::Agreed;
use troth_node::config::Protocol;

/// What a protocol does for one batch, as its paper has it: what replicas send each other and what they ask of trusted
/// components, where no two batches share a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Predicted {
    /// Messages from replica to replica.
    pub(crate) messages: u64,
    /// Calls to trusted components that certify.
    pub(crate) trusted_calls: u64,
}

/// A protocol, and what is said of it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry {
    pub(crate) protocol: Protocol,
    /// The least share of PBFT's operations per second that it must reach.
    pub(crate) least: Option<f64>,
    /// Of a batch in a group of so many replicas.
    pub(crate) predicted: fn(u64) -> Predicted,
}

/// Every protocol that is served, PBFT first.
pub(crate) const ENTRIES: [Entry; 4] = [
    // PRE-PREPARE to n-1; PREPARE by n-1 and COMMIT by n, each to n-1 (OSDI '99, fig. 1).
    Entry {
        protocol: Protocol::Pbft,
        least: None,
        predicted: |n| Predicted { messages: (n - 1) + (n - 1) * (n - 1) + n * (n - 1), trusted_calls: 0 },
    },
    // PREPARE to n-1 and COMMIT by n-1, each to n-1, each with an identifier of its own (MinBFT, fig. 1).
    Entry {
        protocol: Protocol::MinBft,
        least: Some(1.10),
        predicted: |n| Predicted { messages: (n - 1) + (n - 1) * (n - 1), trusted_calls: n },
    },
    // PBFT's messages, and each replica appends what it executed (SOSP '07, §4.2.1).
    Entry {
        protocol: Protocol::A2mPbftE,
        least: Some(0.93),
        predicted: |n| Predicted { messages: (n - 1) + (n - 1) * (n - 1) + n * (n - 1), trusted_calls: n },
    },
    // PBFT's messages among fewer replicas, each of which attests its vote and its COMMIT and appends what it executed
    // (SOSP '07, §4.3.1).
    Entry {
        protocol: Protocol::A2mPbftEa,
        least: Some(0.90),
        predicted: |n| Predicted {
            messages: (n - 1) + (n - 1) * (n - 1) + n * (n - 1),
            trusted_calls: 3 * n,
        },
    },
];

impl Entry {
    /// Its protocol's name.
    pub(crate) fn name(&self) -> &'static str {
        self.protocol.name()
    }

    /// It beside the other protocols, where so many replicas may be faulty.
    pub(crate) fn contends(&'static self, faults: u16) -> Contender {
        Contender { entry: self, name: self.name(), agreed: Agreed::in_process(self.protocol, faults) }
    }

    /// What its paper predicts of a batch where so many replicas may be faulty.
    pub(crate) fn predicted(&self, faults: u16) -> Predicted {
        (self.predicted)(u64::from(self.protocol.replicas(faults)))
    }
}
