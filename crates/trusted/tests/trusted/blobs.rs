//! Moves with a blob beside them.

use crate::support::{IDENTITY, mac_key, moves, step, volatile_core};
use troth_trusted::{
    Certifier, CounterId, CounterValue, Kept, Refusal, State, Store, StoreFailed, TrustedCore, VolatileStore,
};

const A: [u8; 32] = [0xa; 32];
const B: [u8; 32] = [0xb; 32];
const COUNTER: CounterId = CounterId(0);

/// Keeps every state and blob; short blobs only, and nothing at all once it fails.
#[derive(Clone, Debug, Default)]
struct Shelf {
    states: Vec<State>,
    blobs: Vec<Vec<u8>>,
    fails: Option<StoreFailed>,
}

impl Store for Shelf {
    fn store(&mut self, state: &State) -> Result<(), StoreFailed> {
        self.fails.map_or(Ok(()), Err)?;
        self.states.push(state.clone());
        self.blobs.clear();
        Ok(())
    }

    fn store_beside(&mut self, state: &State, blob: &[u8]) -> Result<Kept, StoreFailed> {
        self.fails.map_or(Ok(()), Err)?;
        if blob.len() > 8 {
            return Ok(Kept::Neither);
        }
        self.states.push(state.clone());
        self.blobs.push(blob.to_vec());
        Ok(Kept::Both)
    }

    fn blob(&self, index: usize) -> Option<&[u8]> {
        self.blobs.get(index).map(Vec::as_slice)
    }
}

fn core() -> TrustedCore<Shelf> {
    TrustedCore::start(IDENTITY, Certifier::Mac(mac_key()), Shelf::default())
}

fn beside<S: Store>(
    core: &mut TrustedCore<S>,
    previous: u128,
    digest: &[u8; 32],
    blob: &[u8],
) -> Result<Option<troth_trusted::Certificate>, Refusal> {
    core.attest_beside(COUNTER, CounterValue(previous), CounterValue(previous + 1), digest, blob)
}

#[test]
fn a_move_with_a_blob_is_certified_as_one_without() {
    let (mut core, mut plain) = (core(), volatile_core());
    let without = plain.attest(COUNTER, CounterValue(0), CounterValue(1), &A);
    assert_eq!(beside(&mut core, 0, &A, b"one"), without.map(Some));
    let together = moves(&[step(0, 1, 2), step(3, 0, 9)]);
    let without = plain.attest_multi(&together, &B);
    assert_eq!(core.attest_multi_beside(&together, &B, b"two"), without.map(Some));
    assert_eq!(core.blobs().collect::<Vec<_>>(), [b"one", b"two"]);
    assert_eq!(core.read(CounterId(3)), Ok(CounterValue(9)));
    core.attest(COUNTER, CounterValue(2), CounterValue(3), &A).expect("a move without");
    assert_eq!(core.blobs().count(), 0);
}

#[test]
fn a_blob_that_is_not_kept_leaves_everything_as_it_was() {
    let mut core = core();
    beside(&mut core, 0, &A, b"one").expect("a move").expect("kept");
    let (long, together) = (b"too long by far", moves(&[step(0, 1, 2), step(3, 0, 9)]));
    assert_eq!(beside(&mut core, 1, &A, long), Ok(None));
    assert_eq!(core.attest_multi_beside(&together, &A, long), Ok(None));
    assert_eq!((core.read(COUNTER), core.read(CounterId(3))), (Ok(CounterValue(1)), Ok(CounterValue(0))));
    assert_eq!(core.blobs().count(), 1);
    // The value is free for another digest, as nothing was certified.
    beside(&mut core, 1, &B, b"two").expect("a move").expect("kept");
    let mut volatile = TrustedCore::start(IDENTITY, Certifier::Mac(mac_key()), VolatileStore);
    assert_eq!(beside(&mut volatile, 0, &A, b""), Ok(None));
    assert_eq!(volatile.read(COUNTER), Ok(CounterValue(0)));
    assert_eq!(volatile.blobs().count(), 0);
}

#[test]
fn the_last_move_repeated_with_whatever_blob_stores_nothing() {
    let mut core = core();
    let made = beside(&mut core, 0, &A, b"one").expect("a move").expect("kept");
    for blob in [&b"one"[..], b"other", b"too long by far"] {
        assert_eq!(beside(&mut core, 0, &A, blob), Ok(Some(made.clone())));
    }
    assert_eq!(core.attest(COUNTER, CounterValue(0), CounterValue(1), &A), Ok(made));
    let together = moves(&[step(1, 0, 2), step(3, 0, 9)]);
    let made = core.attest_multi_beside(&together, &B, b"two").expect("two moves");
    assert_eq!(core.attest_multi_beside(&together, &B, b"too long by far"), Ok(made));
    let shelf = core.into_store();
    assert_eq!((shelf.states.len(), shelf.blobs), (2, vec![b"one".to_vec(), b"two".to_vec()]));
}

#[test]
fn a_refused_move_keeps_no_blob() {
    let mut core = core();
    beside(&mut core, 0, &A, b"one").expect("a move").expect("kept");
    let current = CounterValue(1);
    let elsewhere = Refusal::Elsewhere { counter: COUNTER, current };
    assert_eq!(beside(&mut core, 0, &B, b"two"), Err(elsewhere));
    assert_eq!(beside(&mut core, 5, &B, b"two"), Err(elsewhere));
    assert_eq!(
        core.attest_beside(COUNTER, current, current, &B, b"two"),
        Err(Refusal::NotAhead { counter: COUNTER, current })
    );
    let absent = CounterId(8);
    assert_eq!(
        core.attest_beside(absent, current, CounterValue(2), &B, b"two"),
        Err(Refusal::UnknownCounter(absent))
    );
    assert_eq!(core.blobs().collect::<Vec<_>>(), [b"one"]);
}

#[test]
fn a_store_that_fails_with_a_blob_halts_as_without_and_one_without_space_does_not() {
    for (fails, refusal) in
        [(StoreFailed::NoSpace, Refusal::NoSpace), (StoreFailed::Unknown, Refusal::Halted)]
    {
        let shelf = Shelf { fails: Some(fails), ..Shelf::default() };
        let mut core = TrustedCore::start(IDENTITY, Certifier::Mac(mac_key()), shelf);
        assert_eq!(beside(&mut core, 0, &A, b"one"), Err(refusal));
        let halted = refusal == Refusal::Halted;
        assert_eq!(core.read(COUNTER), if halted { Err(Refusal::Halted) } else { Ok(CounterValue(0)) });
        assert_eq!(beside(&mut core, 0, &A, b"too long by far"), Err(refusal));
    }
}
