//! A kept checkpoint that can leave the executor: held in memory at the price of what later states do
//! not share with it, encoded as a whole (`version ‖ seq ‖ time ‖ entries ‖ (key ‖ value)…`, entries in
//! the order of the tree, so that equal states have equal bytes), or in parts, of which a later snapshot
//! needs only those that an earlier one has not.

use crate::map::{
    Body, Children, MAX_DEPTH, MAX_KEY_BYTES, MAX_VALUE_BYTES, Node, Page, check_blob, check_branch, entries,
    node_digest,
};
use crate::place::state_digest;
use crate::{MerkleMap, Tree};
use bytes::Bytes;
use std::collections::BTreeSet;
use std::sync::Arc;
use thiserror::Error;
use troth_types::{Digest, Reader, Seq, Time, Wire, put_bytes};

const VERSION: u16 = 1;

/// A checkpoint's content and its place in the order.
#[derive(Clone, Debug)]
pub struct Snapshot {
    seq: Seq,
    time: Time,
    tree: Tree,
}

impl PartialEq for Snapshot {
    fn eq(&self, other: &Self) -> bool {
        (self.seq, self.digest()) == (other.seq, other.digest())
    }
}

impl Eq for Snapshot {}

/// Why parts are not the snapshot that was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum PartError {
    /// A part is not there.
    #[error("the part {0:?} is missing")]
    Missing(Digest),
    /// A part's bytes are not what its digest names, or no part at all.
    #[error("the part {0:?} is damaged")]
    Damaged(Digest),
}

impl Snapshot {
    /// The snapshot of a tree at a place in the order.
    #[must_use]
    pub fn of(seq: Seq, time: Time, tree: Tree) -> Self {
        Self { seq, time, tree }
    }

    pub(crate) fn tree(&self) -> &Tree {
        &self.tree
    }

    pub(crate) fn into_tree(self) -> Tree {
        self.tree
    }

    /// The last batch that it holds.
    #[must_use]
    pub fn seq(&self) -> Seq {
        self.seq
    }

    /// The agreed time of that batch.
    #[must_use]
    pub fn time(&self) -> Time {
        self.time
    }

    /// The digest of the tree alone: with it [`Snapshot::from_parts`] finds everything else.
    #[must_use]
    pub fn root(&self) -> Digest {
        self.tree.digest()
    }

    /// The digest that checkpoints are compared by.
    #[must_use]
    pub fn digest(&self) -> Digest {
        state_digest(self.seq, self.time, &self.tree.digest())
    }

    /// The whole as bytes.
    #[must_use]
    pub fn encode(&self) -> Bytes {
        let mut out = Vec::new();
        VERSION.encode(&mut out);
        self.seq.encode(&mut out);
        self.time.encode(&mut out);
        self.tree.entries().encode(&mut out);
        self.tree.for_each(|key, value| {
            put_bytes(&mut out, key);
            put_bytes(&mut out, &value);
        });
        Bytes::from(out)
    }

    /// What [`Snapshot::encode`] wrote; nothing where the bytes are not a snapshot.
    #[must_use]
    pub fn decode(bytes: &Bytes) -> Option<Self> {
        let mut reader = Reader::new(bytes);
        if u16::decode(&mut reader).ok()? != VERSION {
            return None;
        }
        let seq = Wire::decode(&mut reader).ok()?;
        let time = Wire::decode(&mut reader).ok()?;
        let entries = u64::decode(&mut reader).ok()?;
        let mut map = MerkleMap::new();
        for _ in 0..entries {
            let key = reader.bytes("a key", MAX_KEY_BYTES).ok()?;
            let value = reader.bytes("a value", MAX_VALUE_BYTES).ok()?;
            // A copy, so that a small value does not hold the whole snapshot in memory.
            map.insert(&key, Bytes::copy_from_slice(&value));
        }
        reader.finish().ok()?;
        let tree = map.tree_now();
        // Fewer entries than were read: a key stood there twice.
        (tree.entries() == entries).then_some(Self { seq, time, tree })
    }

    /// The parts that `older` does not have, each with the digest that names it; all where there is no
    /// older one. Parts that moved within the tree come again: what a reader keeps by digest is right
    /// either way.
    #[must_use]
    pub fn parts_beyond(&self, older: Option<&Self>) -> Parts {
        let older = older.map(|older| older.tree.root().clone());
        Parts { nodes: vec![(self.tree.root().clone(), older)], blobs: Vec::new() }
    }

    /// The snapshot whose tree has this root, from its parts by digest. Every part is verified, so the
    /// result is exactly what was written or an error.
    ///
    /// # Errors
    /// The first part that is missing or damaged.
    pub fn from_parts(
        seq: Seq,
        time: Time,
        root: Digest,
        part: &impl Fn(&Digest) -> Option<Bytes>,
    ) -> Result<Self, PartError> {
        Ok(Self { seq, time, tree: Tree::new(built(root, 0, part, &mut BTreeSet::new())?) })
    }
}

/// See [`Snapshot::parts_beyond`]. Holds the snapshot's tree, and may be walked on any thread.
#[derive(Clone, Debug)]
pub struct Parts {
    /// Nodes to come, each with what stands in its place in the older tree.
    nodes: Vec<(Arc<Node>, Option<Arc<Node>>)>,
    /// Large values to come.
    blobs: Vec<(Digest, Bytes)>,
}

impl Iterator for Parts {
    type Item = (Digest, Bytes);

    fn next(&mut self) -> Option<Self::Item> {
        if let Some(blob) = self.blobs.pop() {
            return Some(blob);
        }
        loop {
            let (node, older) = self.nodes.pop()?;
            let same = |older: &Arc<Node>| Arc::ptr_eq(older, &node) || older.digest() == node.digest();
            if older.as_ref().is_some_and(same) {
                continue;
            }
            match node.body() {
                Body::Page(page) => {
                    for entry in page.entries() {
                        let Some(value) = entry.blob.and_then(|index| page.blob(index)) else { continue };
                        let digest = entry.blob_digest();
                        if !older.as_ref().is_some_and(|older| has_blob(older, &digest)) {
                            self.blobs.push((digest, value.clone()));
                        }
                    }
                }
                Body::Branch(_, children) => {
                    for (nibble, child) in (0_u8..).zip(children.iter()) {
                        let Some(child) = child else { continue };
                        let older = older.as_ref().and_then(|older| older.at(&[nibble]));
                        self.nodes.push((child.clone(), older.cloned()));
                    }
                }
            }
            return Some((node.digest(), Bytes::from(node.encoding())));
        }
    }
}

/// Whether a page holds a large value with this digest.
fn has_blob(node: &Node, digest: &Digest) -> bool {
    match node.body() {
        Body::Page(page) => {
            page.entries().any(|entry| entry.blob.is_some() && entry.blob_digest() == *digest)
        }
        Body::Branch(..) => false,
    }
}

/// `built_before` are the nodes of the tree so far. The same one cannot stand in two places, as each holds keys
/// that belong to its own; parts that name one many times would make a tree that never ends.
fn built(
    digest: Digest,
    depth: usize,
    part: &impl Fn(&Digest) -> Option<Bytes>,
    built_before: &mut BTreeSet<Digest>,
) -> Result<Arc<Node>, PartError> {
    let bytes = part(&digest).ok_or(PartError::Missing(digest))?;
    let damaged = PartError::Damaged(digest);
    if node_digest(&bytes) != digest || !built_before.insert(digest) {
        return Err(damaged);
    }
    let body = if Page::check(&bytes) {
        let mut blobs = Vec::new();
        for entry in entries(&bytes).filter(|entry| entry.blob.is_some()) {
            let (named, length) = (entry.blob_digest(), entry.blob_length());
            let value = part(&named).ok_or(PartError::Missing(named))?;
            if !check_blob(&value, length, &named) {
                return Err(PartError::Damaged(named));
            }
            blobs.push(value);
        }
        Body::Page(Page::from_parts(&bytes[..], blobs))
    } else {
        let digests = check_branch(&bytes).filter(|_| depth < MAX_DEPTH).ok_or(damaged)?;
        let mut children = Children::default();
        let mut count = 0;
        for (child, digest) in children.iter_mut().zip(digests) {
            if let Some(digest) = digest {
                let node = built(digest, depth + 1, part, built_before)?;
                count += node.entries();
                *child = Some(node);
            }
        }
        Body::Branch(count, Box::new(children))
    };
    Ok(Arc::new(Node::verified(body, digest)))
}
