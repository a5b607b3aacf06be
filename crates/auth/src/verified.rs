//! Values that have been authenticated.

use core::ops::Deref;

/// A value whose authenticity this process has checked, or made itself. Only this crate builds
/// one, so a function that takes a `Verified<T>` cannot be reached by bytes that nobody checked.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Verified<T>(T);

impl<T> Verified<T> {
    pub(crate) fn new(value: T) -> Self {
        Self(value)
    }

    /// A value that this process made itself (its own message, back from its own trusted
    /// component). Never call it on anything that came from outside.
    #[must_use]
    pub fn made_here(value: T) -> Self {
        Self(value)
    }

    /// A frame with a wrong tag for this replica that more than f distinct replicas vote for: one of them is correct and
    /// found its own tag right (PBFT, OSDI '99 §5.2; guide.md §2.1). Whoever calls it has counted them.
    #[must_use]
    pub fn vouched(value: T) -> Self {
        Self(value)
    }

    /// The value.
    #[must_use]
    pub fn into_inner(self) -> T {
        self.0
    }
}

impl<T> Deref for Verified<T> {
    type Target = T;
    fn deref(&self) -> &T {
        &self.0
    }
}
