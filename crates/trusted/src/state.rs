//! What must survive a crash, and where it is kept.

use crate::certificate::Writer;
use crate::value::{COUNTERS, CounterValue, Digest, Epoch, Identity};
use sha2::{Digest as _, Sha256};

/// One counter with the last move it made.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CounterState {
    /// Its value now.
    pub value: CounterValue,
    /// Its value before the last move.
    pub previous: CounterValue,
    /// The digest of the last move.
    pub digest: Digest,
    /// The set of counters that made this move together, bit `i` for counter `i`; zero before the
    /// first move.
    pub together: u8,
}

impl CounterState {
    const UNMOVED: Self =
        Self { value: CounterValue(0), previous: CounterValue(0), digest: [0; 32], together: 0 };
}

/// Everything a component must remember. It holds no secret.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct State {
    /// Whose state it is, so that a file of another component or epoch is refused.
    pub identity: Identity,
    /// All counters.
    pub counters: [CounterState; COUNTERS],
}

const TAG: &[u8; 14] = b"troth-state/v1";
const COUNTER_LEN: usize = 16 + 16 + 32 + 1;
const BODY: usize = TAG.len() + 16 + 2 + 8 + COUNTERS * COUNTER_LEN;

impl State {
    /// Length in bytes of an encoded state.
    pub const LEN: usize = BODY + 32;

    /// The state before the first move: every counter stands at zero.
    pub fn new(identity: Identity) -> Self {
        Self { identity, counters: [CounterState::UNMOVED; COUNTERS] }
    }

    /// The state as bytes that end in their SHA-256. The checksum finds torn and damaged records; it
    /// does not stop a host that rewrites or restores the file (guide.md §7.4).
    pub fn to_bytes(&self) -> [u8; Self::LEN] {
        let mut out = Writer::<{ Self::LEN }>::new();
        out.put(TAG);
        out.identity(&self.identity);
        for counter in &self.counters {
            out.value(counter.value);
            out.value(counter.previous);
            out.put(&counter.digest);
            out.put(&[counter.together]);
        }
        let checksum = Sha256::digest(out.written());
        out.put(&checksum);
        out.finish()
    }

    /// The state that [`State::to_bytes`] encoded, or `None` if a byte is not as it was written.
    pub fn from_bytes(bytes: &[u8; Self::LEN]) -> Option<Self> {
        let mut rest = Reader(bytes);
        let tag: [u8; TAG.len()] = rest.take()?;
        let identity = Identity {
            group: rest.take()?,
            replica: u16::from_be_bytes(rest.take()?),
            epoch: Epoch(u64::from_be_bytes(rest.take()?)),
        };
        let mut state = Self::new(identity);
        for counter in &mut state.counters {
            *counter = CounterState {
                value: CounterValue(u128::from_be_bytes(rest.take()?)),
                previous: CounterValue(u128::from_be_bytes(rest.take()?)),
                digest: rest.take()?,
                together: u8::from_be_bytes(rest.take()?),
            };
        }
        let checksum: [u8; 32] = rest.take()?;
        let intact = tag == *TAG && Sha256::digest(&bytes[..BODY])[..] == checksum;
        intact.then_some(state)
    }
}

/// Reads fixed-length parts from left to right.
pub(crate) struct Reader<'a>(pub(crate) &'a [u8]);

impl Reader<'_> {
    pub(crate) fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (part, rest) = self.0.split_first_chunk::<N>()?;
        self.0 = rest;
        Some(*part)
    }
}

/// Why a state is not kept.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum StoreFailed {
    /// There is no room for it. The store holds exactly what it held, and will whatever is stored next.
    NoSpace,
    /// What the store holds is unknown.
    Unknown,
}

/// What a store did with a state and the blob that was to stand beside it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kept {
    /// Both are durable, and a crash could have left only both or neither.
    Both,
    /// It keeps no such blob now, or never does. Nothing has happened: the store holds what it held.
    Neither,
}

/// Where a component keeps its state.
pub trait Store {
    /// Makes `state` durable, then returns; only afterwards does a certificate leave the component.
    ///
    /// # Errors
    /// [`StoreFailed::NoSpace`], after which the component goes on as if it had not been asked;
    /// [`StoreFailed::Unknown`], after which it halts for good.
    fn store(&mut self, state: &State) -> Result<(), StoreFailed>;

    /// Makes `state` durable as [`Store::store`] does, and the caller's `blob` with it. What the blob says
    /// is the caller's affair.
    ///
    /// # Errors
    /// As [`Store::store`].
    fn store_beside(&mut self, state: &State, blob: &[u8]) -> Result<Kept, StoreFailed> {
        let _ = (state, blob);
        Ok(Kept::Neither)
    }

    /// The blob at `index`, from zero and oldest first, of those kept since the last [`Store::store`],
    /// whether in this run or before it. A store that wraps another one forwards this and
    /// [`Store::store_beside`] together.
    fn blob(&self, _index: usize) -> Option<&[u8]> {
        None
    }
}

/// Keeps nothing: a restart is amnesia, and the component must come back under a new epoch.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct VolatileStore;

impl Store for VolatileStore {
    fn store(&mut self, _state: &State) -> Result<(), StoreFailed> {
        Ok(())
    }
}
