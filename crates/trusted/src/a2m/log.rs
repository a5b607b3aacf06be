//! One log: its marks, its entries, the chain of digests, what a slot holds (paper 000 §3.1).

use super::operation::Unfit;
use super::{Slot, rule};
use crate::value::{CounterValue, Digest};
use core::fmt;
use sha2::{Digest as _, Sha256};

/// A slot that was filled. Those between two entries were skipped: a jump, however far, takes no entry of
/// its own.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Entry {
    /// The slot.
    pub slot: Slot,
    /// What it was filled with: `x`.
    pub value: Digest,
    /// The digest of the log up to here: `d`.
    pub digest: Digest,
}

impl Entry {
    /// What storage is filled with before it is used.
    pub const UNUSED: Self = Self { slot: CounterValue(0), value: [0; 32], digest: [0; 32] };
}

/// Where the entries of a log are kept: an array, a vector, a borrowed slice. Its length, which never
/// changes, is how many entries the log can hold.
pub trait Storage: AsRef<[Entry]> + AsMut<[Entry]> {}

impl<T: AsRef<[Entry]> + AsMut<[Entry]>> Storage for T {}

/// What a log says of a slot. In the paper `w` is the kind and `n'` the slot named inside.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Content {
    /// The slot was filled; `n'` is the slot itself.
    Assigned {
        /// What it was filled with.
        value: Digest,
        /// The digest of the log up to here.
        digest: Digest,
    },
    /// The slot was passed over and will never be filled. All else is of the slot that the log advanced to.
    Skipped {
        /// That slot.
        end: Slot,
        /// What it was filled with.
        value: Digest,
        /// The digest of the log up to there.
        digest: Digest,
    },
    /// The slot is above the last one, and may still be filled or skipped. Never evidence of what the log
    /// will hold.
    Unassigned {
        /// The last slot of the log.
        high: Slot,
    },
    /// The slot is below what the log keeps. Never evidence of what it held.
    Forgotten {
        /// The lowest slot that is kept.
        low: Slot,
    },
}

/// The digest of a log up to `slot`, which holds `value`: `h(n ‖ x ‖ d)` with the digest up to the slot
/// before (paper 000 §3.1). It names neither component nor log, because equal histories of different
/// components must have equal digests.
pub fn chained(slot: Slot, value: &Digest, previous: &Digest) -> Digest {
    rule!("A2M-L2");
    link(b"troth-a2m-chain/v1", slot, value, previous)
}

/// The same for a slot that a log advanced to which held something before, from a digest that it was given. It is no digest of a log that was
/// only ever appended to: whoever compares such digests sees that this one may have left a history for another.
pub fn jumped(slot: Slot, value: &Digest, previous: &Digest) -> Digest {
    rule!("A2M-L7");
    link(b"troth-a2m-jump/v1", slot, value, previous)
}

fn link(tag: &[u8], slot: Slot, value: &Digest, previous: &Digest) -> Digest {
    let mut hasher = Sha256::new();
    hasher.update(tag);
    hasher.update(slot.0.to_be_bytes());
    hasher.update(value);
    hasher.update(previous);
    hasher.finalize().into()
}

/// How far a log reaches and how full it is. It decides alone what the log accepts, so a list of operations
/// is checked on a copy before any of them is done.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Marks {
    low: Slot,
    high: Slot,
    used: usize,
    capacity: usize,
}

impl Marks {
    pub(super) fn append(&mut self, slot: Slot) -> Result<(), Unfit> {
        rule!("A2M-L1");
        if self.high.next().ok_or(Unfit::Spent)? != slot {
            return Err(Unfit::Elsewhere { high: self.high });
        }
        self.fill(slot)
    }

    pub(super) fn advance(&mut self, slot: Slot) -> Result<(), Unfit> {
        rule!("A2M-L3");
        if slot <= self.high {
            return Err(Unfit::NotAhead { high: self.high });
        }
        self.fill(slot)
    }

    fn fill(&mut self, slot: Slot) -> Result<(), Unfit> {
        rule!("A2M-L4");
        if self.used == self.capacity {
            return Err(Unfit::Full);
        }
        (self.used, self.high) = (self.used + 1, slot);
        Ok(())
    }

    /// Leaves `used` as it is: the room is there once the log itself has let go of its entries.
    pub(super) fn truncate(&mut self, slot: Slot) -> Result<(), Unfit> {
        rule!("A2M-L5");
        if slot <= self.low || slot > self.high {
            return Err(Unfit::OutsideLog { low: self.low, high: self.high });
        }
        self.low = slot;
        Ok(())
    }
}

/// One log.
#[derive(Clone)]
pub struct Log<E> {
    marks: Marks,
    entries: E,
}

impl<E: Storage> Log<E> {
    pub(super) fn new(entries: E) -> Self {
        let (start, capacity) = (CounterValue(0), entries.as_ref().len());
        Self { marks: Marks { low: start, high: start, used: 0, capacity }, entries }
    }

    /// The lowest slot that is kept; zero until the log is truncated for the first time.
    pub fn low(&self) -> Slot {
        self.marks.low
    }

    /// The last slot that was filled; zero if none was.
    pub fn high(&self) -> Slot {
        self.marks.high
    }

    /// How many entries there is room for.
    pub fn room(&self) -> usize {
        self.marks.capacity - self.marks.used
    }

    /// The entries that are kept, in the order of their slots; the last one is at [`Log::high`].
    pub fn entries(&self) -> &[Entry] {
        &self.entries.as_ref()[..self.marks.used]
    }

    /// The digest of the whole log; zeros if it never held anything.
    pub fn digest(&self) -> Digest {
        self.entries().last().map_or([0; 32], |entry| entry.digest)
    }

    /// What the log says of a slot.
    pub fn content(&self, slot: Slot) -> Content {
        rule!("A2M-L6");
        let Marks { low, high, .. } = self.marks;
        if slot < low || slot.0 == 0 {
            return Content::Forgotten { low };
        }
        let entries = self.entries();
        match entries.get(entries.partition_point(|entry| entry.slot < slot)) {
            None => Content::Unassigned { high },
            Some(&Entry { slot: at, value, digest }) if at == slot => Content::Assigned { value, digest },
            Some(&Entry { slot: end, value, digest }) => Content::Skipped { end, value, digest },
        }
    }

    pub(super) fn marks(&self) -> Marks {
        self.marks
    }

    pub(super) fn append(&mut self, slot: Slot, value: Digest) -> Result<(), Unfit> {
        let digest = chained(slot, &value, &self.digest());
        self.marks.append(slot)?;
        self.put(Entry { slot, value, digest });
        Ok(())
    }

    pub(super) fn advance(&mut self, slot: Slot, previous: &Digest, value: Digest) -> Result<(), Unfit> {
        rule!("A2M-L8");
        let begins = self.marks.high == CounterValue(0);
        let digest = if begins { chained(slot, &value, previous) } else { jumped(slot, &value, previous) };
        self.restore(Entry { slot, value, digest })
    }

    /// Takes an entry that the log held before.
    pub(super) fn restore(&mut self, entry: Entry) -> Result<(), Unfit> {
        self.marks.advance(entry.slot)?;
        self.put(entry);
        Ok(())
    }

    fn put(&mut self, entry: Entry) {
        let last = self.marks.used - 1;
        self.entries.as_mut()[last] = entry;
    }

    pub(super) fn truncate(&mut self, slot: Slot) -> Result<(), Unfit> {
        self.marks.truncate(slot)?;
        let (used, entries) = (self.marks.used, self.entries.as_mut());
        let forgotten = entries[..used].partition_point(|entry| entry.slot < slot);
        entries.copy_within(forgotten..used, 0);
        self.marks.used = used - forgotten;
        Ok(())
    }
}

/// Equal are logs that say the same of every slot, whatever room they have.
impl<E: Storage> PartialEq for Log<E> {
    fn eq(&self, other: &Self) -> bool {
        self.low() == other.low() && self.entries() == other.entries()
    }
}

impl<E: Storage> Eq for Log<E> {}

impl<E: Storage> fmt::Debug for Log<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Log").field("low", &self.low()).field("entries", &self.entries()).finish()
    }
}
