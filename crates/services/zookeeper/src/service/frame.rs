//! What the operations of one frame leave to each other: the counters, and what is left of what they may do together.

use crate::counters::Counters;
use crate::store::Changes;
use crate::tree::MAX_LOOKED;

/// The most nodes that the operations of one frame count together: those below a node that is asked about, and four times
/// those for which a quota begins, as each of these is read.
pub const MAX_COUNTED: usize = MAX_LOOKED << 2;
/// The most transactions of one frame that are given up for the work of telling of them. Those behind fail at once.
pub const MAX_GIVEN_UP: u32 = 4;

/// The most proofs of one frame that are looked at, as that takes longer than most operations. Who shows one behind them is to
/// come again. It is as many as a frame has operations where nothing else is set: what all clients of a gateway show together
/// stands in its frames, and few of them must not use it up for the others.
pub const MAX_PROOFS: u32 = 1024;

/// The counters between the operations of a frame.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Count {
    /// As they are now; the state has them again after [`Count::finish`].
    pub(super) now: Counters,
    /// As the state has them.
    pub(super) written: Counters,
    pub(super) spent: Spent,
}

/// What the operations of a frame have spent of what they may together.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Spent {
    pub(super) counted: usize,
    pub(super) given_up: u32,
    pub(super) proofs: u32,
    /// Events of clients that connected anew.
    pub(super) missed: usize,
}

impl Count {
    /// The end of the frame: nobody reads the counters from the state before.
    pub(crate) fn finish(self, changes: &mut Changes<'_, '_>) {
        if self.now != self.written {
            self.now.keep(changes);
        }
        changes.apply();
    }
}
