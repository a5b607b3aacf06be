//! How much batches do of the work on sealed writes, which slices between them do otherwise.

use crate::MerkleMap;

/// Seals that may wait for their digests before batches take part in the work: as long as the slices between them keep
/// up, a batch costs itself alone.
const PENDING_BESIDE: usize = 1;

/// A seal of more keys is worked on by batches at once: until it is done everything since the one before it is kept, and
/// batches that write so much leave no time anyway.
const LARGE_SEAL: usize = 1 << 16;

/// Units of work on sealed writes (about a microsecond) that a batch does for each key that it wrote, and for each seal
/// beyond [`PENDING_BESIDE`]: what merging and hashing a write takes, so that a seal is done before the next one follows.
const WORK_PER_WRITE: usize = 8;

/// Bytes of a batch's operations for which it does one more: merging a large value hashes and copies it.
const BYTES_PER_WORK: usize = 1 << 10;

/// Seals that batches leave to the slices between them.
pub(crate) fn beside(map: &MerkleMap) -> usize {
    if map.sealed_writes() > LARGE_SEAL { 0 } else { PENDING_BESIDE }
}

/// What is known of the work between batches.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Pace {
    /// Units that were done between batches on the oldest seal, and that none has been excused yet.
    ahead: usize,
}

impl Pace {
    /// Units that a batch does which wrote so many keys and, at most, so many bytes, where so many seals are not left to
    /// slices. Under a load that leaves no time between batches seals would pile up, with all that was written since, until
    /// one of them had to be finished at once: with ten million keys that was a second and a half. What was done between
    /// batches counts, so a load that leaves time pays in slices and not in its batches.
    pub(crate) fn part(&mut self, seals: usize, writes: usize, bytes: usize) -> usize {
        let work = writes.saturating_mul(WORK_PER_WRITE).saturating_add(bytes / BYTES_PER_WORK);
        let due = work.saturating_mul(seals);
        let part = due.saturating_sub(self.ahead);
        self.ahead = self.ahead.saturating_sub(due);
        part
    }

    /// So many units were done between batches on what is sealed.
    pub(crate) fn sliced(&mut self, units: usize) {
        self.ahead = self.ahead.saturating_add(units);
    }

    /// The oldest seal is done: what was done of it excuses nobody from the next.
    pub(crate) fn sealed_done(&mut self) {
        self.ahead = 0;
    }
}
