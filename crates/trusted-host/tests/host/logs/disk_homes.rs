//! Logs over the durable store pass the suite, on the simulated disk and on a real one.

use super::ledger::FEW;
use crate::store::disk::Disk;
use crate::store::machine::Scratch;
use crate::support::{IDENTITY, mac, pair, signature, verifier};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use troth_trusted::a2m::{A2m, LOGS, LogStore, Logs, Operation};
use troth_trusted::{Certifier, Epoch, Identity, MacVerifier, StoreFailed};
use troth_trusted_host::conformance::logs::{LOG_RULES, LogHome, ROOM, log_conformance};
use troth_trusted_host::store::directory::Directory;
use troth_trusted_host::store::{DiskLogs, OpenedLogs, RealDirectory, SLOTS};
use troth_trusted_host::{InProcessLogs, LogRoom, TrustedLogs};

/// A store that fails on demand.
struct Breakable<D: Directory> {
    store: DiskLogs<D>,
    broken: Arc<AtomicBool>,
}

impl<D: Directory> LogStore<LogRoom> for Breakable<D> {
    fn store(&mut self, before: &Logs<LogRoom>, operations: &[Operation]) -> Result<(), StoreFailed> {
        match self.broken.load(Ordering::Relaxed) {
            true => Err(StoreFailed::Unknown),
            false => self.store.store(before, operations),
        }
    }
}

/// Where a [`DiskHome`] keeps its logs.
enum Place {
    Simulated(Disk),
    Real(Scratch, u32),
}

struct DiskHome {
    certifier: Certifier,
    place: Place,
    epoch: Epoch,
    broken: Arc<AtomicBool>,
}

impl DiskHome {
    fn new(certifier: Certifier, place: Place) -> Self {
        Self { certifier, place, epoch: IDENTITY.epoch, broken: Arc::default() }
    }

    fn component<D: Directory + 'static>(&self, opened: OpenedLogs<D>) -> Box<dyn TrustedLogs>
    where
        D::File: 'static,
    {
        let store = Breakable { store: opened.store, broken: Arc::clone(&self.broken) };
        let identity = Identity { epoch: self.epoch, ..IDENTITY };
        let component = A2m::restart(identity, self.certifier.clone(), store, opened.logs);
        Box::new(InProcessLogs::new(component.expect("its own logs")))
    }
}

impl LogHome for DiskHome {
    fn identity(&self) -> Identity {
        IDENTITY
    }

    fn fresh(&mut self, epoch: Epoch) -> Box<dyn TrustedLogs> {
        (self.epoch, self.broken) = (epoch, Arc::default());
        self.place = match &self.place {
            Place::Simulated(_) => Place::Simulated(Disk::new()),
            Place::Real(_, slots) => Place::Real(Scratch::new(), *slots),
        };
        self.restart().expect("this home is durable")
    }

    fn restart(&mut self) -> Option<Box<dyn TrustedLogs>> {
        let identity = Identity { epoch: self.epoch, ..IDENTITY };
        Some(match &self.place {
            Place::Simulated(disk) => {
                let opened = DiskLogs::open_in(disk.directory(), identity, [ROOM; LOGS], FEW);
                self.component(opened.expect("a sound disk"))
            }
            Place::Real(scratch, slots) => {
                let directory = RealDirectory::new(scratch.path()).expect("a directory");
                let opened = DiskLogs::open_in(directory, identity, [ROOM; LOGS], *slots);
                self.component(opened.expect("a sound disk"))
            }
        })
    }

    fn break_store(&mut self) -> bool {
        self.broken.store(true, Ordering::Relaxed);
        true
    }

    fn shared_with(&self, secret: &[u8; 32]) -> MacVerifier {
        pair(&self.certifier, secret)
    }
}

#[test]
fn logs_on_a_disk_hold_every_rule() {
    for (certifier, place) in [
        (mac(), Place::Simulated(Disk::new())),
        (signature(), Place::Simulated(Disk::new())),
        (mac(), Place::Real(Scratch::new(), FEW)),
        (signature(), Place::Real(Scratch::new(), SLOTS)),
    ] {
        let verifier = verifier(&certifier);
        let report = log_conformance(&mut DiskHome::new(certifier, place), &verifier);
        assert_eq!(report.expect("no rule is broken").held, LOG_RULES);
    }
}
