//! The versioned Merkle map: an ordered key → bytes map with a digest of its content, cheap
//! snapshots and cheap rollback.
//!
//! * **Writes** go into an overlay, found by hash; reads look there, then in the sealed overlays
//!   that have not been merged yet, then in the trie.
//! * **Sealing** ([`MerkleMap::seal`]) sets the overlay aside in O(1). [`MerkleMap::poll`] merges it
//!   into the trie and hashes what changed, in slices as long as the caller can afford.
//! * **The trie** ([`Tree`]) is shared between versions node by node, so several checkpoints cost
//!   only what differs, and cloning the map costs a few reference counts.
//! * **There is one hash per access**: the SHA-256 position of the key serves the overlay's table
//!   and the trie alike, because either could otherwise be attacked by chosen keys; point access
//!   needs no second index beside the trie, whose upper levels stay in the processor's cache.

mod discarded;
mod moving;
mod node;
mod ordered;
mod overlay;
mod page;
mod position;
mod stored;
mod tree;

pub(crate) use discarded::Discarded;
pub(crate) use node::{BRANCH_TAG, Body, Children, Node, WIDTH, check_blob, check_branch, node_digest};
pub(crate) use page::{Blob, MOST_ENTRIES, Page, entries, entry_at, page_of_entries};
pub use stored::StoreId;
pub use tree::Tree;

use bytes::Bytes;
use core::fmt;
use moving::Moving;
use ordered::Ordered;
use overlay::{Overlay, Written};
pub(crate) use position::MAX_DEPTH;
use position::Position;
use std::collections::VecDeque;
use std::sync::Arc;

/// The most bytes of a key.
pub const MAX_KEY_BYTES: usize = 4096;
/// The most bytes of a value: a value must fit one piece of a state transfer.
pub const MAX_VALUE_BYTES: usize = 12 << 20;

/// What a merged write costs in units of the budget, about: it copies a page and the branches above it that another
/// version shares, whose children are all over the memory.
const MERGE: usize = 4;

/// Names a seal of one map; later seals have larger numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SealId(u64);

/// A point to which writes can be rolled back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark {
    seal: u64,
    undo: usize,
}

/// The map.
#[derive(Clone)]
pub struct MerkleMap {
    current: Arc<Overlay>,
    /// What the current overlay said before each write since the first mark.
    undo: Vec<(usize, Written)>,
    /// How many older ones were forgotten, since the mark that is rolled back to is a later one.
    forgotten: usize,
    marked: bool,
    seals: u64,
    sealed: VecDeque<Layer>,
    tree: Arc<Node>,
    /// The oldest layer has been merged; what remains is hashing.
    hashing: bool,
    order: Option<Ordered>,
    emptying: Emptying,
    moving: Moving,
}

/// What is left of merged layers. A clone of the map has none of it.
#[derive(Default)]
struct Emptying {
    /// Its writes are dropped in slices: freeing a hundred thousand at once is a pause.
    merged: Option<Overlay>,
    /// Empty, and with room. A layer in fresh memory costs a page fault for each page of it, which on a
    /// virtual machine is half the time of its writes.
    spare: Option<Overlay>,
}

impl Clone for Emptying {
    fn clone(&self) -> Self {
        Self::default()
    }
}

impl Emptying {
    /// Drops writes while the budget lasts.
    fn go_on(&mut self, budget: &mut usize) {
        let Some(overlay) = &mut self.merged else { return };
        if overlay.empty_some(budget) {
            self.spare = self.merged.take().filter(Overlay::is_worth_keeping);
        }
    }
}

#[derive(Clone)]
struct Layer {
    overlay: Arc<Overlay>,
    id: SealId,
    merged: usize,
}

impl fmt::Debug for MerkleMap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MerkleMap")
            .field("written", &self.current.writes().len())
            .field("sealed", &self.sealed.len())
            .field("merged_entries", &self.tree.entries())
            .finish_non_exhaustive()
    }
}

impl Default for MerkleMap {
    fn default() -> Self {
        Self::new()
    }
}

impl MerkleMap {
    /// An empty map without an ordered index.
    #[must_use]
    pub fn new() -> Self {
        Self::from_tree(&Tree::empty(), None)
    }

    /// An empty map that can be scanned over the keys that start with `prefix`.
    #[must_use]
    pub fn with_order(prefix: &[u8]) -> Self {
        Self::from_tree(&Tree::empty(), Some(prefix))
    }

    /// A map with a tree's content. With `prefix` it can be scanned; building that index looks at
    /// every key.
    #[must_use]
    pub fn from_tree(tree: &Tree, prefix: Option<&[u8]>) -> Self {
        Self::of(tree, prefix.map(|prefix| Ordered::of_all(prefix, tree.keys().into_iter())))
    }

    /// A map with a tree's content that can be scanned as this one. Only what differs is looked at.
    #[must_use]
    pub fn moved_to(mut self, tree: &Tree) -> Self {
        let Some(mut order) = self.order.take() else { return Self::of(tree, None) };
        let old = self.tree_now();
        if old.entries() == 0 {
            return Self::from_tree(tree, Some(order.prefix()));
        }
        Node::for_each_difference(Some(old.root()), Some(tree.root()), &mut |key, has| {
            if has { order.insert(key) } else { order.remove(key) }
        });
        Self::of(tree, Some(order))
    }

    fn of(tree: &Tree, order: Option<Ordered>) -> Self {
        Self {
            current: Arc::default(),
            undo: Vec::new(),
            forgotten: 0,
            marked: false,
            seals: 0,
            sealed: VecDeque::new(),
            tree: tree.root().clone(),
            hashing: false,
            order,
            emptying: Emptying::default(),
            moving: Moving::default(),
        }
    }

    /// Panics where the ordered index contradicts itself.
    #[cfg(test)]
    pub(crate) fn check_order(&self) {
        self.order.as_ref().expect("a map with an index").check();
    }

    /// The prefix over which the map can be scanned.
    #[must_use]
    pub fn order_prefix(&self) -> Option<&[u8]> {
        self.order.as_ref().map(Ordered::prefix)
    }

    /// The value under a key.
    #[must_use]
    pub fn get(&self, key: &[u8]) -> Option<Bytes> {
        self.get_at(&Position::of(key), key)
    }

    fn get_at(&self, position: &Position, key: &[u8]) -> Option<Bytes> {
        let layers = self.sealed.iter().rev().map(|layer| &layer.overlay);
        for overlay in core::iter::once(&self.current).chain(layers) {
            match overlay.get(position, key) {
                Some(Written::Value(value)) => return Some(value.clone()),
                Some(Written::Removed) => return None,
                Some(Written::Untouched) | None => {}
            }
        }
        self.tree.get(position, key)
    }

    /// Puts a value under a key.
    ///
    /// # Panics
    /// If key or value are over [`MAX_KEY_BYTES`] or [`MAX_VALUE_BYTES`].
    pub fn insert(&mut self, key: &[u8], value: Bytes) {
        assert!(key.len() <= MAX_KEY_BYTES, "a key is bounded where it enters");
        assert!(value.len() <= MAX_VALUE_BYTES, "a value is bounded where it enters");
        let was_there = self.write(key, Written::Value(value));
        // What the layer had a value for is in the index.
        if let Some(order) = self.order.as_mut().filter(|_| !was_there) {
            order.insert(key);
        }
    }

    /// Removes the value under a key, if there is one.
    pub fn remove(&mut self, key: &[u8]) {
        self.write(key, Written::Removed);
        if let Some(order) = &mut self.order {
            order.remove(key);
        }
    }

    /// Whether the newest layer had a value for it before.
    fn write(&mut self, key: &[u8], written: Written) -> bool {
        let change = Arc::make_mut(&mut self.current).write(Position::of(key), key, written);
        let had_value = matches!(change.1, Written::Value(_));
        if self.marked {
            self.undo.push(change);
        }
        had_value
    }

    /// The entries from `from` on, in key order, among those with the index's prefix.
    ///
    /// # Panics
    /// If the map was built without an ordered index.
    pub fn scan<'a>(&'a self, from: &[u8]) -> impl Iterator<Item = (&'a [u8], Bytes)> + use<'a> {
        self.keys(from).map(|key| (key, self.get(key).expect("the index holds only keys with a value")))
    }

    /// The same without the values, each of which would cost as much as to look it up alone.
    ///
    /// # Panics
    /// If the map was built without an ordered index.
    pub fn keys<'a>(&'a self, from: &[u8]) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        let order = self.order.as_ref().expect("scans were asked for when the map was built");
        order.from(from)
    }

    /// A point to roll back to, until the next seal or [`MerkleMap::release`].
    pub fn mark(&mut self) -> Mark {
        self.marked = true;
        Mark { seal: self.seals, undo: self.forgotten + self.undo.len() }
    }

    /// Undoes every write since the mark.
    ///
    /// # Panics
    /// If the mark was released, or sealed over.
    pub fn rollback(&mut self, mark: Mark) {
        assert!(self.marked && mark.seal == self.seals, "a mark ends with its seal");
        let kept = mark.undo.checked_sub(self.forgotten).expect("a mark that is needed was not forgotten");
        assert!(kept <= self.undo.len(), "marks roll back to the past");
        let mut touched = Vec::new();
        let current = Arc::make_mut(&mut self.current);
        for (index, before) in self.undo.drain(kept..).rev() {
            current.put_back(index, before);
            touched.push(index);
        }
        if let Some(mut order) = self.order.take() {
            for index in touched {
                let write = &self.current.writes()[index];
                let key = self.current.key(write);
                if self.get_at(&write.position, key).is_some() {
                    order.insert(key)
                } else {
                    order.remove(key)
                }
            }
            self.order = Some(order);
        }
    }

    /// Forgets the marks before this one, the oldest that may still be rolled back to.
    pub fn forget_before(&mut self, mark: Mark) {
        assert!(self.marked && mark.seal == self.seals, "a mark ends with its seal");
        let passed = mark.undo.checked_sub(self.forgotten).expect("marks are forgotten in their order");
        self.undo.drain(..passed);
        self.forgotten = mark.undo;
    }

    /// Forgets all marks: what was written stays written.
    pub fn release(&mut self) {
        self.marked = false;
        self.undo.clear();
        self.forgotten = 0;
    }

    /// Seals the current content as a version, in O(1), and releases all marks. Its tree comes
    /// from [`MerkleMap::poll`].
    pub fn seal(&mut self) -> SealId {
        self.release();
        self.seals += 1;
        let id = SealId(self.seals);
        let fresh = self.emptying.spare.take().unwrap_or_else(|| Overlay::sized_like(&self.current));
        let overlay = core::mem::replace(&mut self.current, Arc::new(fresh));
        self.sealed.push_back(Layer { overlay, id, merged: 0 });
        id
    }

    /// Keys that were written since the last seal.
    #[must_use]
    pub fn written(&self) -> usize {
        self.current.writes().len()
    }

    /// Keys that the oldest seal whose tree has not been handed out says something of; none where there is no such seal.
    #[must_use]
    pub fn sealed_writes(&self) -> usize {
        self.sealed.front().map_or(0, |layer| layer.overlay.writes().len())
    }

    /// Seals whose trees have not been handed out.
    #[must_use]
    pub fn pending(&self) -> usize {
        self.sealed.len()
    }

    /// Whether nothing is pending and [`MerkleMap::poll`] has something to do all the same: pages to move, so that the memory
    /// between them is given back.
    #[must_use]
    pub fn is_moving(&self) -> bool {
        self.sealed.is_empty() && self.moving.is_ready(self.tree.entries())
    }

    /// Merges and hashes sealed writes while the budget (units of about a microsecond) lasts;
    /// returns the oldest pending seal when its tree is complete and hashed.
    pub fn poll(&mut self, budget: &mut usize) -> Option<(SealId, Tree)> {
        self.emptying.go_on(budget);
        let Some(layer) = self.sealed.front_mut() else {
            self.moving.go_on(&mut self.tree, budget);
            return None;
        };
        while !self.hashing {
            let Some(write) = layer.overlay.writes().get(layer.merged) else {
                self.hashing = true;
                break;
            };
            let value = match &write.written {
                Written::Value(value) => Some(value),
                Written::Removed | Written::Untouched => None,
            };
            let cost = MERGE + value.map_or(0, |value| value.len() / 2048);
            if *budget == 0 {
                return None;
            }
            *budget = budget.saturating_sub(cost);
            layer.merged += 1;
            if write.written != Written::Untouched {
                node::write(&mut self.tree, &write.position, layer.overlay.key(write), value);
            }
        }
        if !self.tree.hash_some(budget) {
            return None;
        }
        self.hashing = false;
        let layer = self.sealed.pop_front().expect("looked at above");
        self.moving.merged(layer.merged, self.tree.entries());
        if let Ok(overlay) = Arc::try_unwrap(layer.overlay) {
            self.emptying.merged = Some(overlay);
        }
        Some((layer.id, Tree::new(self.tree.clone())))
    }

    /// The tree of the current content, merged and hashed at once; the map itself is unchanged.
    #[must_use]
    pub fn tree_now(&self) -> Tree {
        let mut copy = self.clone();
        let id = copy.seal();
        loop {
            let mut unbounded = usize::MAX;
            let (done, tree) = copy.poll(&mut unbounded).expect("an unbounded budget finishes a seal");
            if done == id {
                return tree;
            }
        }
    }
}
