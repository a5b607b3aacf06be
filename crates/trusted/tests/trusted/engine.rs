//! Single calls of the engine. The sequences are in `exhaustive.rs`.

use crate::support::{IDENTITY, mac_key, moves, step, volatile_core};
use troth_trusted::{
    Certifier, CounterId, CounterValue, Epoch, Identity, NotOurState, Refusal, Resumed, State, Store,
    StoreFailed, TrustedCore, VolatileStore,
};

const A: [u8; 32] = [0xa; 32];
const B: [u8; 32] = [0xb; 32];

/// Keeps everything it is told, and fails from the given write on.
#[derive(Clone, Debug)]
struct Journal {
    states: Vec<State>,
    writes_left: usize,
}

impl Store for Journal {
    fn store(&mut self, state: &State) -> Result<(), StoreFailed> {
        self.writes_left = self.writes_left.checked_sub(1).ok_or(StoreFailed::Unknown)?;
        self.states.push(state.clone());
        Ok(())
    }
}

fn journalled(writes_left: usize) -> TrustedCore<Journal> {
    let journal = Journal { states: Vec::new(), writes_left };
    TrustedCore::start(IDENTITY, Certifier::Mac(mac_key()), journal)
}

#[test]
fn a_refusal_says_where_the_counter_stands() {
    let mut core = volatile_core();
    let counter = CounterId(2);
    core.attest(counter, CounterValue(0), CounterValue(5), &A).expect("a first move");
    let current = CounterValue(5);
    for (previous, new, expected) in [
        (4, 6, Refusal::Elsewhere { counter, current }),
        (6, 7, Refusal::Elsewhere { counter, current }),
        (0, 5, Refusal::Elsewhere { counter, current }),
        (5, 5, Refusal::NotAhead { counter, current }),
        (5, 4, Refusal::NotAhead { counter, current }),
    ] {
        let answer = core.attest(counter, CounterValue(previous), CounterValue(new), &B);
        assert_eq!(answer, Err(expected));
        assert_eq!(core.read(counter), Ok(current));
    }
    for absent in [8, 9, 256, u16::MAX].map(CounterId) {
        let unknown = Refusal::UnknownCounter(absent);
        assert_eq!(core.attest(absent, CounterValue(0), CounterValue(1), &A), Err(unknown));
        assert_eq!(core.read(absent), Err(unknown));
        assert_eq!(core.resume(absent), Err(unknown));
    }
    assert!(core.attest(CounterId(7), CounterValue(0), CounterValue(1), &A).is_ok());
}

#[test]
fn a_move_is_stored_once_and_a_repeat_or_refusal_not_at_all() {
    let mut core = journalled(usize::MAX);
    core.attest(CounterId(0), CounterValue(0), CounterValue(1), &A).expect("a move");
    core.attest(CounterId(0), CounterValue(0), CounterValue(1), &A).expect("its repeat");
    core.attest(CounterId(0), CounterValue(0), CounterValue(1), &B).expect_err("another digest");
    core.attest_multi(&moves(&[step(0, 1, 2), step(3, 0, 9)]), &B).expect("two moves");
    core.attest_multi(&moves(&[step(0, 1, 2), step(3, 0, 9)]), &B).expect("their repeat");
    let journal = core.into_store();
    let values: Vec<_> =
        journal.states.iter().map(|s| (s.counters[0].value.0, s.counters[3].value.0)).collect();
    assert_eq!(values, [(1, 0), (2, 9)]);
}

#[test]
fn a_component_restarts_from_its_own_state_only() {
    let mut core = journalled(usize::MAX);
    let certificate = core.attest(CounterId(0), CounterValue(0), CounterValue(1), &A).expect("a move");
    let state = core.into_store().states.pop().expect("the move was stored");
    let restart =
        |identity| TrustedCore::restart(identity, Certifier::Mac(mac_key()), VolatileStore, state.clone());
    let again = restart(IDENTITY).expect("its own state");
    assert_eq!(again.identity(), IDENTITY);
    assert_eq!(again.resume(CounterId(0)), Ok(Resumed::One { certificate, digest: A }));
    for other in [
        Identity { epoch: Epoch(IDENTITY.epoch.0 + 1), ..IDENTITY },
        Identity { replica: 9, ..IDENTITY },
        Identity { group: [0; 16], ..IDENTITY },
    ] {
        assert_eq!(restart(other).map(|_| ()), Err(NotOurState));
    }
}

#[test]
fn a_failed_store_halts_the_component_for_good() {
    let mut core = journalled(1);
    core.attest(CounterId(0), CounterValue(0), CounterValue(1), &A).expect("the store holds one");
    let failed = core.attest(CounterId(0), CounterValue(1), CounterValue(2), &A);
    assert_eq!(failed, Err(Refusal::Halted));
    for (previous, new) in [(0, 1), (1, 2), (2, 3)] {
        let answer = core.attest(CounterId(0), CounterValue(previous), CounterValue(new), &A);
        assert_eq!(answer, Err(Refusal::Halted));
    }
    let together = moves(&[step(1, 0, 1), step(2, 0, 1)]);
    assert_eq!(core.attest_multi(&together, &A), Err(Refusal::Halted));
    assert_eq!(core.read(CounterId(0)), Err(Refusal::Halted));
    assert_eq!(core.resume(CounterId(0)), Err(Refusal::Halted));
    assert_eq!(core.resume(CounterId(99)), Err(Refusal::Halted));
}

/// Has no space as often as it says, then keeps everything.
struct Full {
    refusals_left: usize,
    stored: Vec<State>,
}

impl Store for Full {
    fn store(&mut self, state: &State) -> Result<(), StoreFailed> {
        match self.refusals_left.checked_sub(1) {
            Some(left) => self.refusals_left = left,
            None => self.stored.push(state.clone()),
        }
        if self.stored.is_empty() { Err(StoreFailed::NoSpace) } else { Ok(()) }
    }
}

#[test]
fn a_store_without_space_refuses_the_move_and_halts_nothing() {
    let full = Full { refusals_left: 2, stored: Vec::new() };
    let mut core = TrustedCore::start(IDENTITY, Certifier::Mac(mac_key()), full);
    let first = |core: &mut TrustedCore<Full>, digest| {
        core.attest(CounterId(0), CounterValue(0), CounterValue(1), digest)
    };
    assert_eq!(first(&mut core, &A), Err(Refusal::NoSpace));
    assert_eq!(core.read(CounterId(0)), Ok(CounterValue(0)), "nothing has moved");
    assert_eq!(core.resume(CounterId(0)), Ok(Resumed::Unmoved));
    let together = moves(&[step(0, 0, 1), step(2, 0, 1)]);
    assert_eq!(core.attest_multi(&together, &A), Err(Refusal::NoSpace));
    first(&mut core, &B).expect("there is space, and the value is free");
    let elsewhere = Refusal::Elsewhere { counter: CounterId(0), current: CounterValue(1) };
    assert_eq!(first(&mut core, &A), Err(elsewhere), "not a repeat: it was never certified");
    assert_eq!(core.into_store().stored.len(), 1);
}

#[test]
fn resume_gives_the_last_certificate_of_each_counter() {
    let mut core = volatile_core();
    let alone = core.attest(CounterId(0), CounterValue(0), CounterValue(1), &A).expect("a move");
    let together = moves(&[step(1, 0, 1), step(6, 0, 2), step(7, 0, 3)]);
    let multi = core.attest_multi(&together, &B).expect("three moves");
    assert_eq!(core.resume(CounterId(0)), Ok(Resumed::One { certificate: alone, digest: A }));
    for counter in [1, 6, 7].map(CounterId) {
        let expected = Resumed::Multi { certificate: multi.clone(), digest: B };
        assert_eq!(core.resume(counter), Ok(expected));
    }
    assert_eq!(core.resume(CounterId(5)), Ok(Resumed::Unmoved));
    core.attest(CounterId(6), CounterValue(2), CounterValue(3), &A).expect("one goes on");
    assert_eq!(core.resume(CounterId(1)), Ok(Resumed::Superseded));
    assert_eq!(core.resume(CounterId(7)), Ok(Resumed::Superseded));
    assert!(matches!(core.resume(CounterId(6)), Ok(Resumed::One { .. })));
}
