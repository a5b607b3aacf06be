//! A kept checkpoint that can leave the executor: held in memory at the price of what later states do
//! not share with it, encoded as a whole (`version ‖ seq ‖ time ‖ entries ‖ (key ‖ value)…`, entries in
//! the order of the tree, so that equal states have equal bytes), or in parts, of which a later snapshot
//! needs only those that the store lacks.

use crate::map::{
    Blob, Body, Children, MAX_DEPTH, MAX_KEY_BYTES, MAX_VALUE_BYTES, Node, Page, StoreId, check_blob,
    check_branch, entries, node_digest,
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

    /// The content.
    #[must_use]
    pub fn tree(&self) -> &Tree {
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

    /// All parts, each with the digest that names it.
    #[must_use]
    pub fn parts(&self) -> Parts {
        Parts { store: None, nodes: vec![self.tree.root().clone()], blobs: Vec::new() }
    }

    /// The parts that a store does not have, as far as [`Snapshot::put_in`] was told. One that was replaced and then
    /// became again what it was comes again: what a reader keeps by digest is right either way.
    #[must_use]
    pub fn parts_not_in(&self, store: StoreId) -> Parts {
        Parts { store: Some(store), ..self.parts() }
    }

    /// Says that a store has all parts of this snapshot, and will have them for as long as it has this number.
    pub fn put_in(&self, store: StoreId) {
        self.tree.root().put_in(store);
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

/// See [`Snapshot::parts`]. Holds the snapshot's tree, and may be walked on any thread.
#[derive(Clone, Debug)]
pub struct Parts {
    /// What is there already.
    store: Option<StoreId>,
    /// Nodes to come.
    nodes: Vec<Arc<Node>>,
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
            let node = self.nodes.pop()?;
            if self.store.is_some_and(|store| node.is_in(store)) {
                continue;
            }
            match node.body() {
                Body::Page(page) => {
                    let lacking = page.blobs_not_in(self.store);
                    self.blobs.extend(lacking.map(|(digest, value)| (digest, value.clone())));
                }
                Body::Branch(_, children) => self.nodes.extend(children.iter().flatten().cloned()),
            }
            return Some((node.digest(), Bytes::from(node.encoding())));
        }
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
            blobs.push(Blob::new(value));
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
