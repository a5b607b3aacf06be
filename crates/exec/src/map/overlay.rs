//! One layer of writes above the trie.

use super::position::Position;
use bytes::Bytes;

/// Writes for which room is made or kept ahead of them.
const MOST_WRITES: usize = 1 << 16;
/// Bytes of keys for which room is made or kept.
const MOST_KEY_BYTES: usize = 32 * MOST_WRITES;

/// What a layer says of a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Written {
    /// The key has this value.
    Value(Bytes),
    /// The key has no value.
    Removed,
    /// Nothing: the write was rolled back, and layers below decide.
    Untouched,
}

/// A key that a layer wrote.
#[derive(Clone, Debug)]
pub(crate) struct Write {
    pub(crate) position: Position,
    pub(crate) written: Written,
    key_start: usize,
    key_length: usize,
}

/// The writes since the last seal: an append-only list, found through an open-addressing table of
/// list indices. The list gives the merge an order that no hash table decides.
#[derive(Clone, Debug, Default)]
pub(crate) struct Overlay {
    /// Index into `writes` plus one; 0 is free. The length is a power of two or zero.
    table: Vec<u32>,
    writes: Vec<Write>,
    /// The keys of the writes, one behind the other: an allocation for each would be a third of the
    /// time of a write.
    keys: Vec<u8>,
    /// Writes and key bytes to make room for at the first write.
    expected: (usize, usize),
}

impl Overlay {
    /// An empty overlay that expects as many writes as another had, within reason: layers tend to be
    /// of one size, and growing to it again would cost more than the writes. The room is taken at
    /// the first write, not here.
    pub(crate) fn sized_like(other: &Self) -> Self {
        let expected = (other.writes.len().min(MOST_WRITES), other.keys.len().min(MOST_KEY_BYTES));
        Self { expected, ..Self::default() }
    }

    /// The writes, one per key, in the order in which the keys were first written.
    pub(crate) fn writes(&self) -> &[Write] {
        &self.writes
    }

    /// The key of one of the writes.
    pub(crate) fn key(&self, write: &Write) -> &[u8] {
        &self.keys[write.key_start..write.key_start + write.key_length]
    }

    /// Drops writes, from the last to the first, while the budget (units of about a microsecond)
    /// lasts; says whether the layer is empty now. Until then its table is out of date.
    pub(crate) fn empty_some(&mut self, budget: &mut usize) -> bool {
        const WRITES_PER_UNIT: usize = 16;
        const SLOTS_PER_UNIT: usize = 16 << 10;
        let affordable = budget.saturating_mul(WRITES_PER_UNIT).min(self.writes.len());
        self.writes.truncate(self.writes.len() - affordable);
        *budget -= affordable.div_ceil(WRITES_PER_UNIT);
        if !self.writes.is_empty() {
            return false;
        }
        self.keys.clear();
        self.table.fill(0);
        *budget = budget.saturating_sub(self.table.len() / SLOTS_PER_UNIT);
        true
    }

    /// Whether the room of an emptied layer is of a size to be kept for the next.
    pub(crate) fn is_worth_keeping(&self) -> bool {
        self.writes.capacity() <= 2 * MOST_WRITES && self.keys.capacity() <= 2 * MOST_KEY_BYTES
    }

    /// What the layer says of a key; nothing where it never wrote it.
    pub(crate) fn get(&self, position: &Position, key: &[u8]) -> Option<&Written> {
        self.find(position, key).map(|index| &self.writes[index].written)
    }

    fn find(&self, position: &Position, key: &[u8]) -> Option<usize> {
        if self.table.is_empty() {
            return None;
        }
        let mask = self.table.len() - 1;
        let mut slot = position.table_bits() as usize & mask;
        loop {
            let index = self.table[slot].checked_sub(1)? as usize;
            let write = &self.writes[index];
            if write.position == *position && self.key(write) == key {
                return Some(index);
            }
            slot = (slot + 1) & mask;
        }
    }

    /// Writes a key. Returns the index of its write and what the layer said before.
    pub(crate) fn write(&mut self, position: Position, key: &[u8], written: Written) -> (usize, Written) {
        if let Some(index) = self.find(&position, key) {
            let before = core::mem::replace(&mut self.writes[index].written, written);
            return (index, before);
        }
        if (self.writes.len() + 1) * 8 > self.table.len() * 5 {
            self.grow();
        }
        let index = self.writes.len();
        let (key_start, key_length) = (self.keys.len(), key.len());
        self.keys.extend_from_slice(key);
        self.writes.push(Write { position, written, key_start, key_length });
        self.link(index);
        (index, Written::Untouched)
    }

    /// Puts back what the layer said of a write.
    pub(crate) fn put_back(&mut self, index: usize, before: Written) {
        self.writes[index].written = before;
    }

    fn grow(&mut self) {
        if self.table.is_empty() {
            self.writes.reserve(self.expected.0);
            self.keys.reserve(self.expected.1);
        }
        let size = (self.table.len() * 2).max(self.expected.0 * 2).max(16).next_power_of_two();
        self.table = vec![0; size];
        for index in 0..self.writes.len() {
            self.link(index);
        }
    }

    fn link(&mut self, index: usize) {
        let mask = self.table.len() - 1;
        let mut slot = self.writes[index].position.table_bits() as usize & mask;
        while self.table[slot] != 0 {
            slot = (slot + 1) & mask;
        }
        self.table[slot] = u32::try_from(index + 1).expect("a layer holds fewer than 2^32 writes");
    }
}
