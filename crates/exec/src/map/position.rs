//! Where a key stands in the trie.

use troth_types::Hasher;

/// The deepest level of the trie: the number of nibbles in a position.
pub(crate) const MAX_DEPTH: usize = 32;

/// A key's place in the trie: the first 16 bytes of its SHA-256 digest. Whoever chooses the keys
/// cannot choose their places, so nobody outside can make the trie deep or a probe sequence long;
/// the price, one compression per access, is below 100 ns on the machines that serve. Keys are still
/// told apart by their bytes: two keys at one position would merely share a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Position([u8; 16]);

impl Position {
    /// The position of a key.
    pub(crate) fn of(key: &[u8]) -> Self {
        let mut hasher = Hasher::new("troth/key/v1");
        hasher.fixed(key);
        let mut position = [0; 16];
        position.copy_from_slice(&hasher.finish().0[..16]);
        Self(position)
    }

    /// Which child to take at a depth, `0..16`.
    pub(crate) fn nibble(&self, depth: usize) -> usize {
        let byte = self.0[depth / 2];
        usize::from(if depth.is_multiple_of(2) { byte >> 4 } else { byte & 15 })
    }

    /// Bits for a hash table: the end of the position, which the upper trie does not use.
    pub(crate) fn table_bits(&self) -> u64 {
        u64::from_le_bytes(self.0[8..].try_into().expect("eight bytes"))
    }
}
