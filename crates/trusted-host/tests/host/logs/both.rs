//! Counters and logs of one component: one epoch, whichever is lost.

use super::ledger::{FEW, Ledger, ROOM};
use crate::store::disk::{Crash, Disk, TestDirectory, TestFile};
use crate::store::machine::Scratch;
use crate::support::IDENTITY;
use std::io;
use troth_trusted::{CounterValue, Epoch, Identity, State, Store};
use troth_trusted_host::store::directory::{BootId, Directory};
use troth_trusted_host::store::{
    Both, BothOpened, DiskStore, How, OpenedLogs, Policy, SLOTS, StoreError, open_both_in,
};

/// A directory within the one directory of a simulated disk: the names that begin in this way.
struct Within(TestDirectory, &'static str);

impl Within {
    fn name(&self, name: &str) -> String {
        format!("{}{name}", self.1)
    }
}

impl Directory for Within {
    type File = TestFile;

    fn lock(&mut self) -> io::Result<bool> {
        Ok(true)
    }
    fn boot(&self) -> io::Result<BootId> {
        self.0.boot()
    }
    fn names(&self) -> io::Result<Vec<String>> {
        let within = |name: String| name.strip_prefix(self.1).map(str::to_owned);
        Ok(self.0.names()?.into_iter().filter_map(within).collect())
    }
    fn open(&self, name: &str) -> io::Result<TestFile> {
        self.0.open(&self.name(name))
    }
    fn create(&self, name: &str) -> io::Result<TestFile> {
        self.0.create(&self.name(name))
    }
    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.0.rename(&self.name(from), &self.name(to))
    }
    fn remove(&self, name: &str) -> io::Result<()> {
        self.0.remove(&self.name(name))
    }
    fn sync(&self) -> io::Result<()> {
        self.0.sync()
    }
}

const COUNTERS: &str = "counters/";
const LOGS: &str = "logs/";

fn open_as(disk: &Disk, identity: Identity) -> BothOpened<Within> {
    let within = |prefix| Within(disk.directory(), prefix);
    let both = Both { identity, policy: Policy::Always, room: ROOM, slots: FEW };
    open_both_in(within(COUNTERS), within(LOGS), both)
}

fn open(disk: &Disk) -> BothOpened<Within> {
    open_as(disk, IDENTITY)
}

fn counters_alone(disk: &Disk) -> Result<DiskStore<Within>, StoreError> {
    let directory = Within(disk.directory(), COUNTERS);
    DiskStore::open_in(directory, IDENTITY, Policy::Always, FEW).map(|opened| opened.store)
}

fn state(value: u128) -> State {
    let mut state = State::new(IDENTITY);
    state.counters[0].value = CounterValue(value);
    state
}

/// A component that moved a counter once for each call to its logs.
fn lived(disk: &Disk, calls: u128) -> Ledger {
    let mut ledger = Ledger::new();
    let (mut counters, logs) = open(disk).expect("an empty disk");
    assert_eq!((counters.how, logs.how), (How::Fresh, How::Fresh));
    (1..=calls).for_each(|value| counters.store.store(&state(value)).expect("a sound disk"));
    ledger.live(logs, calls);
    ledger
}

/// Removes the files of one of the stores.
fn lose(disk: &Disk, prefix: &str) {
    disk.names().iter().filter(|name| name.starts_with(prefix)).for_each(|name| disk.take_away(name));
}

fn refused_as_lost(opened: BothOpened<Within>) {
    let error = opened.expect_err("one of the two is missing");
    assert!(matches!(error, StoreError::Contradiction { .. }) && error.ends_the_epoch(), "{error}");
}

#[test]
fn both_are_resumed() {
    let disk = Disk::new();
    let mut ledger = lived(&disk, 5);
    for _ in 0..3 {
        let (counters, logs) = open(&disk).expect("whole");
        assert_eq!(counters.last, Some(state(5)));
        assert_eq!((counters.how, logs.how), (How::Resumed, How::Resumed));
        ledger.live(logs, 1);
    }
}

#[test]
fn whichever_is_lost_the_epoch_is_over() {
    covers!("A2M-S5");
    for calls in [0, 1, 9] {
        for lost in [COUNTERS, LOGS] {
            let disk = Disk::new();
            lived(&disk, calls);
            lose(&disk, lost);
            refused_as_lost(open(&disk));
            refused_as_lost(open(&disk));
            let later = Identity { epoch: Epoch(8), ..IDENTITY };
            let (counters, logs) = open_as(&disk, later).expect("a later epoch");
            assert_eq!((counters.how, logs.how), (How::Fresh, How::Fresh));
        }
    }
}

#[test]
fn logs_that_stayed_behind_in_an_earlier_epoch_are_lost_to_this_one() {
    let disk = Disk::new();
    lived(&disk, 2);
    let logs = disk.copied();
    let later = Identity { epoch: Epoch(8), ..IDENTITY };
    drop(open_as(&disk, later).expect("a later epoch"));
    lose(&disk, LOGS);
    for name in logs.names().iter().filter(|name| name.starts_with(LOGS)) {
        disk.plant(name, &logs.read(name));
    }
    refused_as_lost(open_as(&disk, later));
}

#[test]
fn an_epoch_that_began_without_logs_never_gets_any() {
    covers!("A2M-S5");
    let disk = Disk::new();
    drop(counters_alone(&disk).expect("an empty disk"));
    refused_as_lost(open(&disk));
    drop(counters_alone(&disk).expect("counters go on as ever"));
    let later = Identity { epoch: Epoch(8), ..IDENTITY };
    drop(open_as(&disk, later).expect("a later epoch"));
}

fn after_a_crash(disk: &Disk, ledger: &Ledger, opened: OpenedLogs<Within>) {
    let mut ledger = ledger.clone();
    ledger.live(opened, 2);
    let (_, logs) = open(disk).expect("whole");
    ledger.live(logs, 0);
}

#[test]
fn a_crash_amid_the_first_start_leaves_an_epoch_that_starts() {
    covers!("A2M-S5");
    for call in 1.. {
        let disk = Disk::new();
        disk.crash_at(call, 1000);
        let mut ledger = Ledger::new();
        if let Ok((_, logs)) = open(&disk) {
            ledger.live(logs, 3);
        }
        if !disk.crashed() {
            assert!(call > 30, "{call} calls are too few for two stores");
            return;
        }
        let lost = (0..6).map(Crash::LostSome);
        for crash in [Crash::Killed, Crash::LostAll, Crash::LostNothing].into_iter().chain(lost) {
            let disk = disk.after(crash);
            let (_, logs) = open(&disk).unwrap_or_else(|error| panic!("call {call}, {crash:?}: {error}"));
            let mut ledger = ledger.clone();
            ledger.context = format!("call {call}, {crash:?}");
            after_a_crash(&disk, &ledger, logs);
        }
    }
}

/// Until the logs have started nothing was attested, and from then on neither may be missing.
#[test]
fn a_store_lost_after_a_crash_amid_the_first_start_is_refused_once_both_had_started() {
    for call in 1.. {
        let disk = Disk::new();
        disk.crash_at(call, 1000);
        let started = open(&disk).is_ok();
        if !disk.crashed() {
            assert!(started);
            return;
        }
        assert!(!started, "a start that failed is not one");
        for lost in [COUNTERS, LOGS] {
            let disk = disk.after(Crash::Killed);
            lose(&disk, lost);
            match open(&disk) {
                Ok((counters, logs)) => assert_eq!((counters.last, logs.how), (None, How::Fresh)),
                Err(error) => {
                    assert!(matches!(error, StoreError::Contradiction { .. }), "call {call}: {error}")
                }
            }
        }
    }
}

#[test]
fn both_are_kept_on_a_real_disk() {
    let (counters_at, logs_at) = (Scratch::new(), Scratch::new());
    let both = Both { identity: IDENTITY, policy: Policy::Always, room: ROOM, slots: SLOTS };
    let open = || both.open(counters_at.path(), logs_at.path());
    let (mut counters, logs) = open().expect("a sound disk");
    counters.store.store(&state(1)).expect("a sound disk");
    let mut ledger = Ledger::new();
    ledger.live(logs, 4);
    drop(counters);
    let (counters, logs) = open().expect("a sound disk");
    assert_eq!(counters.last, Some(state(1)));
    ledger.live(logs, 4);
    drop(counters);
    let elsewhere = Scratch::new();
    let error = both.open(counters_at.path(), elsewhere.path()).expect_err("no logs there");
    assert_eq!(
        error.to_string(),
        "the store's files contradict each other: counters have started in this epoch, logs have not; mend: \
         mount what belongs there, else leave the replica stopped, and put no copy in its place"
    );
}

fn open_under(disk: &Disk, policy: Policy) -> BothOpened<Within> {
    let within = |prefix| Within(disk.directory(), prefix);
    open_both_in(within(COUNTERS), within(LOGS), Both { identity: IDENTITY, policy, room: ROOM, slots: FEW })
}

/// What a component that lived under this policy holds.
fn lived_under(disk: &Disk, policy: Policy) -> Ledger {
    let mut ledger = Ledger::new();
    let (_, logs) = open_under(disk, policy).expect("an empty disk");
    ledger.live(logs, 9);
    ledger
}

#[test]
fn logs_are_as_durable_as_the_policy_says() {
    covers!("A2M-S4");
    for policy in [Policy::Always, Policy::Interval, Policy::Memory] {
        for crash in [Crash::Killed, Crash::LostAll, Crash::LostNothing] {
            let disk = Disk::new();
            let mut ledger = lived_under(&disk, policy);
            let disk = disk.after(crash);
            let resumes = match policy {
                Policy::Always => true,
                Policy::Interval => crash == Crash::Killed,
                Policy::Memory => false,
            };
            match open_under(&disk, policy) {
                Ok((_, logs)) => {
                    assert!(resumes, "{policy}, {crash:?}");
                    ledger.live(logs, 1);
                }
                Err(error) => {
                    assert!(!resumes && error.ends_the_epoch(), "{policy}, {crash:?}: {error}");
                }
            }
        }
    }
}

#[test]
fn logs_under_another_policy_begin_with_a_file_of_their_own() {
    covers!("A2M-S4");
    let disk = Disk::new();
    let mut ledger = lived_under(&disk, Policy::Interval);
    let (_, logs) = open_under(&disk, Policy::Always).expect("the same boot");
    drop(logs);
    let disk = disk.after(Crash::LostAll);
    let (_, logs) = open_under(&disk, Policy::Always).expect("durable from then on");
    ledger.live(logs, 2);
    let disk = disk.after(Crash::LostAll);
    let (_, logs) = open_under(&disk, Policy::Interval).expect("durable so far");
    ledger.live(logs, 1);
    let error = open_under(&disk.after(Crash::LostAll), Policy::Always).expect_err("no longer durable");
    assert!(matches!(error, StoreError::Unproven { policy: Policy::Interval, .. }), "{error}");
}
