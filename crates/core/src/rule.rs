//! Coverage marks: `rule!("MINBFT-N3")` stands where the code implements that rule of the
//! specification page. With the feature `marks` each passage is counted, so that a test can demand
//! that it really exercised the rule; without it the mark costs nothing.

/// Marks the place that implements a labelled rule.
#[macro_export]
macro_rules! rule {
    ($label:literal) => {
        $crate::marks::hit($label)
    };
}

/// Counts of passed marks, per thread.
pub mod marks {
    #[cfg(feature = "marks")]
    mod counting {
        use std::cell::RefCell;
        use std::collections::BTreeMap;

        thread_local! {
            static HITS: RefCell<BTreeMap<&'static str, u64>> = const { RefCell::new(BTreeMap::new()) };
        }

        /// Counts one passage.
        pub fn hit(label: &'static str) {
            HITS.with_borrow_mut(|hits| *hits.entry(label).or_default() += 1);
        }

        /// How often this thread passed the mark.
        #[must_use]
        pub fn hits(label: &str) -> u64 {
            HITS.with_borrow(|hits| hits.get(label).copied().unwrap_or(0))
        }
    }
    #[cfg(feature = "marks")]
    pub use counting::{hit, hits};

    /// Counts nothing.
    #[cfg(not(feature = "marks"))]
    #[inline(always)]
    pub fn hit(_: &'static str) {}
}
