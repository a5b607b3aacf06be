//! The conformance suite through the socket of a process with its sandbox on.

use crate::child::COUNTERS;
use crate::place::{Place, Trusted};
use crate::support::{IDENTITY, mac, pair, verifier};
use crate::{Ran, Test};
use troth_trusted::{Epoch, Identity, MacVerifier};
use troth_trusted_host::conformance::logs::{LOG_RULES, LogHome, log_conformance};
use troth_trusted_host::conformance::{Home, RULES, Rule, conformance};
use troth_trusted_host::{TrustedComponent, TrustedLogs};

pub const TESTS: &[Test] = &[
    ("homes::a_hardened_process_holds_every_rule", a_hardened_process_holds_every_rule),
    ("homes::so_do_logs_in_a_hardened_process", so_do_logs_in_a_hardened_process),
    ("homes::and_so_it_does_on_the_store_that_ships", and_so_it_does_on_the_store_that_ships),
];

struct ProcessHome {
    place: Place,
    epoch: Epoch,
    disk: bool,
    trusted: Option<Trusted>,
}

impl ProcessHome {
    fn start(&mut self) -> Box<dyn TrustedComponent> {
        // Killed, not stopped: what it certified must be on the disk by then.
        if let Some(trusted) = self.trusted.take() {
            drop(trusted);
        }
        let mut task = self.place.task();
        task.epoch = Some(self.epoch.0);
        task.disk = self.disk;
        self.trusted = Some(self.place.start(&task));
        Box::new(self.place.connect())
    }
}

impl Home for ProcessHome {
    fn identity(&self) -> Identity {
        IDENTITY
    }

    fn fresh(&mut self, epoch: Epoch) -> Box<dyn TrustedComponent> {
        self.trusted = None;
        self.place = Place::new();
        self.epoch = epoch;
        self.start()
    }

    fn restart(&mut self) -> Option<Box<dyn TrustedComponent>> {
        Some(self.start())
    }

    fn break_store(&mut self) -> bool {
        std::fs::write(self.place.state().join("broken"), []).expect("a file");
        true
    }
}

fn holds_every_rule(disk: bool) -> Ran {
    let mut home = ProcessHome { place: Place::new(), epoch: IDENTITY.epoch, disk, trusted: None };
    let report = conformance(&mut home, &verifier(&mac())).expect("no rule is broken");
    // The store of these tests keeps no blobs, the one that ships does.
    let not_applicable: &[Rule] = if disk { &[] } else { &[Rule::BlobBesideMove] };
    assert_eq!(report.not_applicable, not_applicable);
    assert_eq!(report.held.len(), RULES.len() - not_applicable.len());
    let counters = std::fs::read_dir(home.place.state().join(COUNTERS)).expect("their directory").count();
    assert_eq!(counters > 0, disk, "the counters are where they should be");
    Ran::Through
}

fn a_hardened_process_holds_every_rule() -> Ran {
    holds_every_rule(false)
}

fn and_so_it_does_on_the_store_that_ships() -> Ran {
    holds_every_rule(true)
}

/// The same process with logs, over both stores that ship.
struct LogsInProcess {
    place: Place,
    epoch: Epoch,
    slots: Option<u32>,
    trusted: Option<Trusted>,
}

impl LogHome for LogsInProcess {
    fn identity(&self) -> Identity {
        IDENTITY
    }

    fn fresh(&mut self, epoch: Epoch) -> Box<dyn TrustedLogs> {
        self.trusted = None;
        (self.place, self.epoch) = (Place::new(), epoch);
        self.restart().expect("this home is durable")
    }

    fn restart(&mut self) -> Option<Box<dyn TrustedLogs>> {
        // Killed, not stopped: what it attested must be on the disk by then.
        if let Some(trusted) = self.trusted.take() {
            drop(trusted);
        }
        let mut task = self.place.task();
        (task.epoch, task.slots, task.logs) = (Some(self.epoch.0), self.slots, true);
        self.trusted = Some(self.place.start(&task));
        Some(Box::new(self.place.connect()))
    }

    fn break_store(&mut self) -> bool {
        std::fs::write(self.place.state().join("broken"), []).expect("a file");
        true
    }

    fn shared_with(&self, secret: &[u8; 32]) -> MacVerifier {
        pair(&mac(), secret)
    }
}

fn so_do_logs_in_a_hardened_process() -> Ran {
    for slots in [None, Some(4)] {
        let (place, epoch) = (Place::new(), IDENTITY.epoch);
        let mut home = LogsInProcess { place, epoch, slots, trusted: None };
        let report = log_conformance(&mut home, &verifier(&mac())).expect("no rule is broken");
        assert_eq!(report.held, LOG_RULES);
    }
    Ran::Through
}
