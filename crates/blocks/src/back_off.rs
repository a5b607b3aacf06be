//! Time-outs that double (MinBFT §4, view change; guide.md §1.6).

/// The number of failures in a row, and the time-out that follows from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct BackOff {
    failures: u32,
}

impl BackOff {
    /// Doubling stops here, at 64 times the base: beyond, a group that has healed would wait longer than
    /// any operator.
    const MOST: u32 = 6;

    /// One more failure.
    pub fn failed(&mut self) {
        self.failures = (self.failures + 1).min(Self::MOST);
    }

    /// A checkpoint interval of progress takes one doubling back; a single request does not.
    pub fn progressed(&mut self) {
        self.failures = self.failures.saturating_sub(1);
    }

    /// The time-out now, from the base of the same unit.
    #[must_use]
    pub fn of(&self, base: u64) -> u64 {
        base << self.failures
    }
}
