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
    /// What a look is worth that finds less than half of what is borne, where any other good one is worth 1: only
    /// the former tells that less would do, but no doubling stays for ever.
    const WELL_WITHIN: u32 = 6;
    /// What good looks since the last blame must be worth for nobody to be blamed any more.
    const FORGIVES: u32 = 96;
    /// What they must be worth for one doubling to be taken back.
    const REGAINS: u32 = 240;

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

    /// A look at a primary that found it as fast as it should be, or well within that.
    pub fn good(&mut self, well_within: bool) {
        self.good += if well_within { Self::WELL_WITHIN } else { 1 };
        if self.good >= Self::FORGIVES {
            self.blamed = Voters::NONE;
        }
        if self.good >= Self::REGAINS {
            self.good = 0;
            self.doublings = self.doublings.saturating_sub(1);
        }
    }
}
