//! Components over the durable store pass the suite, on the simulated disk and on a real one.

use super::disk::{Disk, TestDirectory};
use super::machine::Scratch;
use super::support::FEW;
use crate::support::{IDENTITY, mac, signature, verifier};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use troth_trusted::{Certifier, Epoch, Identity, Kept, State, Store, StoreFailed, TrustedCore};
use troth_trusted_host::conformance::{Home, RULES, conformance};
use troth_trusted_host::store::directory::Directory;
use troth_trusted_host::store::{DiskStore, Opened, Policy, RealDirectory, SLOTS};
use troth_trusted_host::{InProcess, TrustedComponent};

/// The component that a store's content calls for.
fn component<D: Directory + 'static>(
    opened: Opened<D>,
    identity: Identity,
    certifier: Certifier,
) -> Box<dyn TrustedComponent>
where
    D::File: 'static,
{
    let core = match opened.last {
        None => TrustedCore::start(identity, certifier, opened.store),
        Some(state) => TrustedCore::restart(identity, certifier, opened.store, state).expect("its own state"),
    };
    Box::new(InProcess::new(core))
}

/// Components on the simulated disk.
struct SimulatedHome {
    certifier: Certifier,
    disk: Disk,
    epoch: Epoch,
}

impl SimulatedHome {
    fn open(&self) -> (Opened<TestDirectory>, Identity) {
        let identity = Identity { epoch: self.epoch, ..IDENTITY };
        let opened = DiskStore::open_in(self.disk.directory(), identity, Policy::Always, FEW);
        (opened.expect("a sound disk"), identity)
    }
}

impl Home for SimulatedHome {
    fn identity(&self) -> Identity {
        IDENTITY
    }

    fn fresh(&mut self, epoch: Epoch) -> Box<dyn TrustedComponent> {
        (self.disk, self.epoch) = (Disk::new(), epoch);
        self.restart().expect("this home is durable")
    }

    fn restart(&mut self) -> Option<Box<dyn TrustedComponent>> {
        let (opened, identity) = self.open();
        Some(component(opened, identity, self.certifier.clone()))
    }

    fn break_store(&mut self) -> bool {
        self.disk.break_down();
        true
    }
}

/// A store on a real disk that fails on demand.
struct Breakable {
    store: DiskStore<RealDirectory>,
    broken: Arc<AtomicBool>,
}

impl Store for Breakable {
    fn store(&mut self, state: &State) -> Result<(), StoreFailed> {
        if self.broken.load(Ordering::Relaxed) { Err(StoreFailed::Unknown) } else { self.store.store(state) }
    }

    fn store_beside(&mut self, state: &State, blob: &[u8]) -> Result<Kept, StoreFailed> {
        if self.broken.load(Ordering::Relaxed) {
            Err(StoreFailed::Unknown)
        } else {
            self.store.store_beside(state, blob)
        }
    }

    fn blob(&self, index: usize) -> Option<&[u8]> {
        self.store.blob(index)
    }
}

/// Components on a disk of this machine.
struct RealHome {
    certifier: Certifier,
    scratch: Scratch,
    epoch: Epoch,
    slots: u32,
    broken: Arc<AtomicBool>,
}

impl Home for RealHome {
    fn identity(&self) -> Identity {
        IDENTITY
    }

    fn fresh(&mut self, epoch: Epoch) -> Box<dyn TrustedComponent> {
        (self.scratch, self.epoch, self.broken) = (Scratch::new(), epoch, Arc::default());
        self.restart().expect("this home is durable")
    }

    fn restart(&mut self) -> Option<Box<dyn TrustedComponent>> {
        let identity = Identity { epoch: self.epoch, ..IDENTITY };
        let directory = RealDirectory::new(self.scratch.path()).expect("a directory");
        let opened =
            DiskStore::open_in(directory, identity, Policy::Always, self.slots).expect("a sound disk");
        let store = Breakable { store: opened.store, broken: Arc::clone(&self.broken) };
        let certifier = self.certifier.clone();
        let core = match opened.last {
            None => TrustedCore::start(identity, certifier, store),
            Some(state) => TrustedCore::restart(identity, certifier, store, state).expect("its own state"),
        };
        Some(Box::new(InProcess::new(core)))
    }

    fn break_store(&mut self) -> bool {
        self.broken.store(true, Ordering::Relaxed);
        true
    }
}

#[test]
fn a_home_on_the_simulated_disk_holds_every_rule() {
    for certifier in [mac(), signature()] {
        let mut home =
            SimulatedHome { certifier: certifier.clone(), disk: Disk::new(), epoch: IDENTITY.epoch };
        let report = conformance(&mut home, &verifier(&certifier)).expect("no rule is broken");
        assert_eq!(report.held, RULES);
    }
}

#[test]
fn a_home_on_a_real_disk_holds_every_rule() {
    for (certifier, slots) in [(mac(), FEW), (signature(), SLOTS)] {
        let mut home = RealHome {
            certifier: certifier.clone(),
            scratch: Scratch::new(),
            epoch: IDENTITY.epoch,
            slots,
            broken: Arc::default(),
        };
        let report = conformance(&mut home, &verifier(&certifier)).expect("no rule is broken");
        assert_eq!(report.held, RULES);
    }
}
