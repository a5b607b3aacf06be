//! Counters, their values, and who owns them.

/// Number of counters of one component, `CounterId(0)` to `CounterId(7)`.
///
/// Eight is enough for the named counters of CheapBFT (paper 004 §2.2.1) with room for several
/// ordering lanes, and lets the set of counters that moved together fit in one byte.
pub const COUNTERS: usize = 8;

/// A SHA-256 digest made by the caller with its own domain separation.
pub type Digest = [u8; 32];

/// The value of a counter: 128 bits, so that `[view|count]` fits and it never wraps in practice.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct CounterValue(pub u128);

impl CounterValue {
    /// The structured value `[view|count]`: values order by view first, so moving to `[v|0]` makes
    /// every promise for an older view impossible from then on (guide.md §7.2).
    pub const fn new(view: u64, count: u64) -> Self {
        Self(((view as u128) << 64) | count as u128)
    }

    /// The view of a structured value: its upper 64 bits.
    pub const fn view(self) -> u64 {
        (self.0 >> 64) as u64
    }

    /// The count within the view of a structured value: its lower 64 bits.
    pub const fn count(self) -> u64 {
        self.0 as u64
    }

    /// The following value, or `None` after the last one. It carries from count into view; a
    /// protocol that uses structured values stops long before the count is spent.
    pub const fn next(self) -> Option<Self> {
        self.plus(1)
    }

    /// The value `steps` further, or `None` beyond the last one.
    pub const fn plus(self, steps: u128) -> Option<Self> {
        match self.0.checked_add(steps) {
            Some(value) => Some(Self(value)),
            None => None,
        }
    }
}

/// The number of one of the [`COUNTERS`] counters of a component.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct CounterId(pub u16);

impl CounterId {
    /// The bit of this counter in a set of counters, or `None` where there is no such counter.
    pub(crate) const fn bit(self) -> Option<u8> {
        1u8.checked_shl(self.0 as u32)
    }
}

/// One life of a component: a component that may have lost its state starts a new one.
///
/// Others learn it from configuration or an ordered reconfiguration, never from traffic.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Epoch(pub u64);

/// Which component speaks.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Identity {
    /// The replication group; no certificate of one group means anything in another.
    pub group: [u8; 16],
    /// The replica that hosts the component.
    pub replica: u16,
    /// The component's configured epoch.
    pub epoch: Epoch,
}

/// One counter going from a value to a higher one.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Move {
    /// The counter that moves.
    pub counter: CounterId,
    /// Its value before.
    pub previous: CounterValue,
    /// Its value after; the move claims every value above `previous` up to this one.
    pub new: CounterValue,
}

/// Two to [`COUNTERS`] moves of different counters, in ascending order of counter.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Moves {
    moves: [Move; COUNTERS],
    len: usize,
}

impl Moves {
    /// The given moves, or `None` unless there are two to eight, strictly ascending by counter and
    /// all of existing counters. One order only, so that equal sets are equal bytes.
    pub fn new(moves: &[Move]) -> Option<Self> {
        let last = moves.last()?;
        let ascending = moves.is_sorted_by(|a, b| a.counter < b.counter);
        if moves.len() < 2 || !ascending || last.counter.bit().is_none() {
            return None;
        }
        let mut all = [*last; COUNTERS];
        all.get_mut(..moves.len())?.copy_from_slice(moves);
        Some(Self { moves: all, len: moves.len() })
    }

    /// The moves, ascending by counter.
    pub fn as_slice(&self) -> &[Move] {
        &self.moves[..self.len]
    }

    /// The move of the given counter, if it is among them.
    pub fn get(&self, counter: CounterId) -> Option<Move> {
        self.as_slice().iter().find(|m| m.counter == counter).copied()
    }
}
