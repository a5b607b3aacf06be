//! A version of the map that does not change any more.

use super::node::{Body, Node};
use super::page::{Blob, Page};
use super::position::Position;
use bytes::Bytes;
use core::fmt;
use std::sync::Arc;
use troth_types::Digest;

/// An immutable, hashed version. Versions share what they have in common.
#[derive(Clone)]
pub struct Tree(Arc<Node>);

impl fmt::Debug for Tree {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Tree({} entries, {:?})", self.0.entries(), self.digest())
    }
}

impl Tree {
    pub(crate) fn new(root: Arc<Node>) -> Self {
        Self(root)
    }

    /// The version without entries.
    #[must_use]
    pub fn empty() -> Self {
        Self(Arc::new(Node::new(Body::Page(Page::empty()))))
    }

    pub(crate) fn root(&self) -> &Arc<Node> {
        &self.0
    }

    pub(crate) fn into_root(self) -> Arc<Node> {
        self.0
    }

    /// The digest of the content: equal content, equal digest.
    #[must_use]
    pub fn digest(&self) -> Digest {
        self.0.digest()
    }

    /// The number of entries.
    #[must_use]
    pub fn entries(&self) -> u64 {
        self.0.entries()
    }

    /// The value under a key.
    #[must_use]
    pub fn get(&self, key: &[u8]) -> Option<Bytes> {
        self.0.get(&Position::of(key), key)
    }

    /// The large value under a key, as it is shared.
    pub(crate) fn blob_of(&self, key: &[u8]) -> Option<&Arc<Blob>> {
        self.0.blob_of(&Position::of(key), key)
    }

    /// Visits every entry, in the order of the tree, which is the same for equal content.
    pub fn for_each(&self, mut visit: impl FnMut(&[u8], Bytes)) {
        self.0.for_each_page(&mut |page| {
            for entry in page.entries() {
                visit(entry.key, page.value(&entry));
            }
        });
    }

    pub(crate) fn keys(&self) -> Vec<&[u8]> {
        let mut keys = Vec::with_capacity(usize::try_from(self.entries()).unwrap_or(0));
        self.0.for_each_page(&mut |page| keys.extend(page.entries().map(|entry| entry.key)));
        keys
    }
}
