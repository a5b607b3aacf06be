//! A component over the store, with a ledger of everything it ever certified.

use super::disk::{Disk, TestDirectory};
use crate::support::{IDENTITY, mac};
use std::collections::BTreeMap;
use troth_trusted::{CounterId, CounterValue, Digest, Identity, Refusal, Resumed, State, Store, TrustedCore};
use troth_trusted_host::store::{DiskStore, How, Opened, Policy, StoreError};

/// So few slots that a handful of moves needs several files.
pub const FEW: u32 = 4;

pub type Opening = Result<Opened<TestDirectory>, StoreError>;

pub fn open_as(disk: &Disk, identity: Identity, policy: Policy) -> Opening {
    DiskStore::open_in(disk.directory(), identity, policy, FEW)
}

pub fn open(disk: &Disk) -> Opening {
    open_as(disk, IDENTITY, Policy::Always)
}

/// A state whose first counter stands at `value`.
pub fn state(value: u128) -> State {
    state_of(IDENTITY, value)
}

pub fn state_of(identity: Identity, value: u128) -> State {
    let mut state = State::new(identity);
    let counter = &mut state.counters[0];
    counter.value = CounterValue(value);
    counter.previous = CounterValue(value.saturating_sub(1));
    counter.digest = [value as u8; 32];
    counter.together = u8::from(value > 0);
    state
}

/// Where the first counter of what was resumed stands.
pub fn value(opened: &Opened<TestDirectory>) -> Option<u128> {
    opened.last.as_ref().map(|state| state.counters[0].value.0)
}

/// Stores the states of these values.
pub fn fill(store: &mut impl Store, values: std::ops::RangeInclusive<u128>) {
    for value in values {
        store.store(&state(value)).expect("the disk is sound");
    }
}

/// A disk on which the values 1 to `last` were stored, one after the other, and its store closed.
pub fn filled(last: u128) -> Disk {
    let disk = Disk::new();
    let mut opened = open(&disk).expect("an empty disk");
    assert_eq!(opened.how, How::Fresh);
    fill(&mut opened.store, 1..=last);
    disk
}

/// The name of the only store file.
pub fn store_file(disk: &Disk) -> String {
    let files: Vec<String> = disk.names().into_iter().filter(|name| name.starts_with("counters-")).collect();
    assert_eq!(files.len(), 1, "{files:?}");
    files[0].clone()
}

/// Everything that was ever certified for one counter, over all lives of the component.
#[derive(Clone, Default, Debug)]
pub struct Ledger {
    certified: BTreeMap<u128, Digest>,
    lives: u8,
    /// How often the disk had no space.
    pub refused: u32,
    /// What was done to the disk, with its seed; every failure prints it.
    pub context: String,
}

/// The counter that is moved.
const COUNTER: CounterId = CounterId(0);

impl Ledger {
    fn enter(&mut self, value: CounterValue, digest: Digest) {
        let known = *self.certified.entry(value.0).or_insert(digest);
        assert_eq!(known, digest, "value {} was certified for two digests; {}", value.0, self.context);
    }

    /// Lives one life of a component: starts or restarts it, holds what it resumed against all that was
    /// certified before, moves its counter up to `moves` times, and ends where the disk fails.
    pub fn live(&mut self, opened: Opened<TestDirectory>, moves: u128) {
        self.lives += 1;
        let highest = self.certified.last_key_value().map(|(value, digest)| (*value, *digest));
        let Opened { store, last, .. } = opened;
        let mut core = match last {
            None => {
                assert_eq!(highest, None, "a component that certified came back as new; {}", self.context);
                TrustedCore::start(IDENTITY, mac(), store)
            }
            Some(state) => TrustedCore::restart(IDENTITY, mac(), store, state).expect("its own state"),
        };
        let Ok(stands) = core.read(COUNTER) else { panic!("a fresh core answers") };
        match core.resume(COUNTER).expect("a fresh core answers") {
            Resumed::Unmoved => assert_eq!(highest, None, "an older state was resumed; {}", self.context),
            Resumed::One { certificate, digest } => {
                let kept = highest.is_none_or(|(highest, _)| highest <= stands.0);
                assert!(kept, "an older state was resumed; {}", self.context);
                self.enter(certificate.new, digest);
            }
            other => panic!("{other:?}"),
        }
        for value in stands.0..stands.0 + moves {
            // Another digest in every life, so that a value which is used again is seen.
            let digest = [self.lives; 32];
            match core.attest(COUNTER, CounterValue(value), CounterValue(value + 1), &digest) {
                Ok(certificate) => self.enter(certificate.new, digest),
                // Asked again for another message: what found no space must not come back.
                Err(Refusal::NoSpace) => {
                    self.refused += 1;
                    let other = [self.lives ^ 0x80; 32];
                    match core.attest(COUNTER, CounterValue(value), CounterValue(value + 1), &other) {
                        Ok(certificate) => self.enter(certificate.new, other),
                        Err(_) => return,
                    }
                }
                Err(_) => return,
            }
        }
    }

    /// The highest value certified.
    pub fn highest(&self) -> u128 {
        self.certified.last_key_value().map_or(0, |(value, _)| *value)
    }
}
