//! Which rules a test has passed.

use std::cell::RefCell;
use std::collections::BTreeMap;

thread_local! {
    static PASSED: RefCell<BTreeMap<&'static str, u64>> = const { RefCell::new(BTreeMap::new()) };
}

/// A rule's code is passed.
pub(crate) fn pass(label: &'static str) {
    PASSED.with_borrow_mut(|passed| *passed.entry(label).or_default() += 1);
}

pub(crate) fn passes(label: &str) -> u64 {
    PASSED.with_borrow(|passed| passed.get(label).copied().unwrap_or(0))
}

/// While it lives, a rule must be passed.
pub(crate) struct Covers(&'static str, u64);

impl Covers {
    pub(crate) fn new(label: &'static str) -> Self {
        Self(label, passes(label))
    }
}

impl Drop for Covers {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            assert!(passes(self.0) > self.1, "this test never came to {}", self.0);
        }
    }
}

/// The test is about this rule.
macro_rules! covers {
    ($label:literal) => {
        let _covers = $crate::tests::marks::Covers::new($label);
    };
}
pub(crate) use covers;
