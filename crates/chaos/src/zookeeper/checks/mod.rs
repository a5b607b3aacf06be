//! What must hold, found out from what clients saw alone. Transactions are positions of the order; each reply says which one
//! it reflects.

mod changes;
mod ephemerals;
mod lives;
mod locks;
mod order;
mod registers;
mod watches;

pub(crate) use ephemerals::ephemerals;
pub(crate) use lives::left_behind;
pub(crate) use locks::{locks, owned};
pub(crate) use order::order;
pub(crate) use registers::{records, versions};
pub(crate) use watches::watches;

use super::journal::Journal;

/// The most complaints of a check that are shown.
const SHOWN: usize = 5;

/// All checks but the judge's: what does not hold.
pub(crate) fn all(journals: &[Journal]) -> Vec<String> {
    let told = watches(journals);
    let all = [order(journals), told.wrong, ephemerals(journals), locks(journals), versions(journals)];
    all.into_iter().flat_map(|wrong| wrong.into_iter().take(SHOWN)).collect()
}
