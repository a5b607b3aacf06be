//! Numbers that follow from a seed (splitmix64). The same seed makes the same choices; what the
//! processes do meanwhile is theirs.

/// A stream of numbers.
#[derive(Clone, Debug)]
pub(crate) struct Random(u64);

impl Random {
    /// The stream of this number below a seed: streams do not shift each other.
    pub(crate) fn stream(seed: u64, number: u64) -> Self {
        let mut first = Self(seed ^ number.wrapping_mul(0xd134_2543_de82_ef95));
        Self(first.next())
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// One of `low..=high`.
    pub(crate) fn range(&mut self, low: u64, high: u64) -> u64 {
        // The remainder's bias is far below what any choice here would show.
        low + self.next() % (high - low + 1)
    }

    /// An index below a length.
    pub(crate) fn index(&mut self, length: usize) -> usize {
        usize::try_from(self.range(0, length as u64 - 1)).expect("below a usize")
    }

    /// Puts a list into another order.
    pub(crate) fn shuffle<T>(&mut self, list: &mut [T]) {
        for last in (1..list.len()).rev() {
            list.swap(last, self.index(last + 1));
        }
    }
}
