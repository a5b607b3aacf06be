//! Doubt in one's own judgement of primaries: of f+1 that are found wanting one after the other, one is correct.

use crate::Voters;
use troth_types::ReplicaId;

/// How much more than it expects a replica bears, because primaries were found wanting that cannot all be faulty.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Doubt {
    blamed: Voters,
    doublings: u32,
    good: u32,
}

impl Doubt {
    /// Beyond, the time-out of a request comes first.
    const MOST: u32 = 8;
    /// Good looks at primaries in a row after which nobody is blamed any more.
    const FORGIVES: u32 = 16;
    /// Good looks in a row after which one doubling is taken back.
    const REGAINS: u32 = 40;

    /// What a replica bears, as a multiple of what it expects.
    #[must_use]
    pub fn bears(&self, expected: u64) -> u64 {
        expected.saturating_mul(1 << self.doublings)
    }

    /// A primary is found wanting. With the `weak`-th one, f+1, the expectation itself is at fault and doubles.
    pub fn blame(&mut self, primary: ReplicaId, weak: usize) {
        self.good = 0;
        self.blamed.insert(primary);
        if self.blamed.count() >= weak {
            self.blamed = Voters::NONE;
            self.doublings = (self.doublings + 1).min(Self::MOST);
        }
    }

    /// A look at a primary that found nothing. Only one that finds less than half of what is borne tells that less
    /// would do.
    pub fn good(&mut self, well_within: bool) {
        self.good += u32::from(well_within);
        if self.good >= Self::FORGIVES {
            self.blamed = Voters::NONE;
        }
        if self.good >= Self::REGAINS {
            self.good = 0;
            self.doublings = self.doublings.saturating_sub(1);
        }
    }
}
