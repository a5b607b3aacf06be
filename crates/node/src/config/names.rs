//! Names that a command line may say for one of a few things.

use std::fmt;

/// None of them has this name; it says which there are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownName(Vec<&'static str>);

impl fmt::Display for UnknownName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "say one of {}", self.0.join(", "))
    }
}

impl std::error::Error for UnknownName {}

/// The one of all that has this name.
pub(super) fn named<T: Copy>(
    name: &str,
    all: &[T],
    name_of: impl Fn(T) -> &'static str,
) -> Result<T, UnknownName> {
    let unknown = || UnknownName(all.iter().map(|one| name_of(*one)).collect());
    all.iter().copied().find(|one| name_of(*one) == name).ok_or_else(unknown)
}
