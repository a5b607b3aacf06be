//! Homes of attested logs in memory, with stores that survive a restart or fail on demand.

use crate::support::{IDENTITY, pair};
use std::sync::{Arc, Mutex, PoisonError};
use troth_trusted::a2m::{A2m, LOGS, LogStore, Logs, Operation};
use troth_trusted::{Certifier, Epoch, Identity, MacVerifier, StoreFailed, VolatileStore};
use troth_trusted_host::conformance::logs::{LogHome, ROOM};
use troth_trusted_host::{InProcessLogs, LogRoom, TrustedLogs, log_room};

/// After so many calls the whole state is written again.
const CALLS_KEPT: usize = 5;

/// What a [`MemoryStore`] holds: a state and what was done since then.
#[derive(Clone, Debug, Default)]
pub struct Memory {
    base: Vec<u8>,
    since: Vec<Vec<Operation>>,
    broken: bool,
}

impl Memory {
    /// The logs that it holds.
    pub fn logs(&self) -> Logs<LogRoom> {
        let logs = Logs::read(&self.base, log_room([ROOM; LOGS])).expect("an intact state");
        logs.replay(&self.since.concat()).expect("operations that follow it")
    }
}

/// A store whose content outlives the component.
#[derive(Clone, Debug, Default)]
pub struct MemoryStore(Arc<Mutex<Memory>>);

impl MemoryStore {
    pub fn with<T>(&self, f: impl FnOnce(&mut Memory) -> T) -> T {
        f(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

fn write(logs: &Logs<LogRoom>) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(logs.written_len());
    logs.write(|part| bytes.extend(part));
    bytes
}

impl LogStore<LogRoom> for MemoryStore {
    fn store(&mut self, before: &Logs<LogRoom>, operations: &[Operation]) -> Result<(), StoreFailed> {
        self.with(|memory| {
            if memory.broken {
                return Err(StoreFailed::Unknown);
            }
            if memory.since.len() == CALLS_KEPT {
                (memory.base, memory.since) = (write(before), Vec::new());
            }
            memory.since.push(operations.to_vec());
            Ok(())
        })
    }
}

/// Components in this process over a [`MemoryStore`].
pub struct MemoryHome {
    pub certifier: Certifier,
    pub store: MemoryStore,
    pub epoch: Epoch,
}

impl MemoryHome {
    pub fn new(certifier: Certifier) -> Self {
        Self { certifier, store: MemoryStore::default(), epoch: IDENTITY.epoch }
    }
}

impl LogHome for MemoryHome {
    fn identity(&self) -> Identity {
        IDENTITY
    }

    fn fresh(&mut self, epoch: Epoch) -> Box<dyn TrustedLogs> {
        (self.store, self.epoch) = (MemoryStore::default(), epoch);
        let identity = Identity { epoch, ..IDENTITY };
        self.store.with(|memory| memory.base = write(&Logs::new(identity, log_room([ROOM; LOGS]))));
        self.restart().expect("this home is durable")
    }

    fn restart(&mut self) -> Option<Box<dyn TrustedLogs>> {
        let identity = Identity { epoch: self.epoch, ..IDENTITY };
        let logs = self.store.with(|memory| memory.logs());
        let component = A2m::restart(identity, self.certifier.clone(), self.store.clone(), logs);
        Some(Box::new(InProcessLogs::new(component.expect("its own logs"))))
    }

    fn break_store(&mut self) -> bool {
        self.store.with(|memory| memory.broken = true);
        true
    }

    fn shared_with(&self, secret: &[u8; 32]) -> MacVerifier {
        pair(&self.certifier, secret)
    }
}

/// Components in this process that keep nothing.
pub struct VolatileHome(pub Certifier);

impl LogHome for VolatileHome {
    fn identity(&self) -> Identity {
        IDENTITY
    }

    fn fresh(&mut self, epoch: Epoch) -> Box<dyn TrustedLogs> {
        let identity = Identity { epoch, ..IDENTITY };
        let component = A2m::start(identity, self.0.clone(), VolatileStore, log_room([ROOM; LOGS]));
        Box::new(InProcessLogs::new(component))
    }

    fn restart(&mut self) -> Option<Box<dyn TrustedLogs>> {
        None
    }

    fn break_store(&mut self) -> bool {
        false
    }

    fn shared_with(&self, secret: &[u8; 32]) -> MacVerifier {
        pair(&self.0, secret)
    }
}
