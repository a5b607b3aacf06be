//! A snapshot that is put together from its parts in the order in which a disk has them: only what the tree lacks is
//! kept of what comes, so a large state takes no more memory while it is read than it does afterwards.

use crate::map::{
    Blob, Body, Children, MAX_DEPTH, Node, Page, WIDTH, check_blob, check_branch, entries, node_digest,
};
use crate::{PartError, Snapshot, Tree};
use bytes::Bytes;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use troth_types::{Digest, Seq, Time};

/// Where a part belongs that has not come.
#[derive(Debug)]
enum Place {
    /// A node, by the branch above it and the nibble there, and its depth.
    Node { above: Option<(usize, usize)>, depth: usize },
    /// A large value: pages, each with its number there and the length that it names.
    Blob(Vec<(usize, usize, usize)>),
}

#[derive(Debug)]
enum Part {
    Page(Digest, Box<[u8]>, Vec<Option<Bytes>>),
    /// The children by their place in the list, which is behind that of the branch.
    Branch(Digest, Box<[Option<usize>; WIDTH]>),
}

/// See the module. Parts above others must come before them for one round to do.
#[derive(Debug)]
pub struct Gathering {
    seq: Seq,
    time: Time,
    parts: Vec<Part>,
    lacks: BTreeMap<Digest, Place>,
    /// Nodes that came: none stands in two places.
    come: BTreeSet<Digest>,
}

impl Gathering {
    /// Of the snapshot whose tree has this root.
    #[must_use]
    pub fn new(seq: Seq, time: Time, root: Digest) -> Self {
        let lacks = BTreeMap::from([(root, Place::Node { above: None, depth: 0 })]);
        Self { seq, time, parts: Vec::new(), lacks, come: BTreeSet::new() }
    }

    /// A part that is lacking, if any is.
    #[must_use]
    pub fn lacks(&self) -> Option<Digest> {
        self.lacks.keys().next().copied()
    }

    /// Takes a part if it is lacking; tells whether it was.
    ///
    /// # Errors
    /// [`PartError::Damaged`] where it is not what its digest names, or no part of a snapshot.
    pub fn offer(&mut self, digest: Digest, bytes: &Bytes) -> Result<bool, PartError> {
        let Some(place) = self.lacks.remove(&digest) else { return Ok(false) };
        let damaged = PartError::Damaged(digest);
        match place {
            Place::Blob(pages) => {
                for (page, number, length) in pages {
                    if !check_blob(bytes, length, &digest) {
                        return Err(damaged);
                    }
                    if let Part::Page(_, _, blobs) = &mut self.parts[page] {
                        blobs[number] = Some(bytes.clone());
                    }
                }
            }
            Place::Node { above, depth } => {
                if node_digest(bytes) != digest {
                    return Err(damaged);
                }
                let own = self.parts.len();
                let part = self.part(digest, bytes, depth).ok_or(damaged)?;
                self.parts.push(part);
                if let Some((above, nibble)) = above
                    && let Part::Branch(_, children) = &mut self.parts[above]
                {
                    children[nibble] = Some(own);
                }
            }
        }
        Ok(true)
    }

    /// A node whose digest is right; from now on what it names is lacking.
    fn part(&mut self, digest: Digest, bytes: &Bytes, depth: usize) -> Option<Part> {
        let own = self.parts.len();
        if Page::check(bytes) {
            let mut blobs = Vec::new();
            for entry in entries(bytes).filter(|entry| entry.blob.is_some()) {
                let place = self.lacks.entry(entry.blob_digest()).or_insert_with(|| Place::Blob(Vec::new()));
                let Place::Blob(pages) = place else { return None };
                pages.push((own, blobs.len(), entry.blob_length()));
                blobs.push(None);
            }
            return Some(Part::Page(digest, Box::from(&bytes[..]), blobs));
        }
        let digests = check_branch(bytes).filter(|_| depth < MAX_DEPTH)?;
        for (nibble, child) in digests.iter().enumerate() {
            let Some(child) = child else { continue };
            // Each holds keys that belong to its own place; parts that name one many times are no tree.
            let place = Place::Node { above: Some((own, nibble)), depth: depth + 1 };
            if !self.come.insert(*child) || self.lacks.insert(*child, place).is_some() {
                return None;
            }
        }
        Some(Part::Branch(digest, Box::default()))
    }

    /// The snapshot.
    ///
    /// # Errors
    /// [`PartError::Missing`], where a part has not come.
    pub fn finish(mut self) -> Result<Snapshot, PartError> {
        if let Some(missing) = self.lacks() {
            return Err(PartError::Missing(missing));
        }
        drop(core::mem::take(&mut self.come));
        let mut nodes: Vec<Option<Arc<Node>>> = vec![None; self.parts.len()];
        while let Some(part) = self.parts.pop() {
            let node = match part {
                Part::Page(digest, bytes, blobs) => {
                    let blobs = blobs.into_iter().flatten().map(Blob::new).collect();
                    Node::verified(Body::Page(Page::from_parts(bytes, blobs)), digest)
                }
                Part::Branch(digest, places) => {
                    let mut children = Children::default();
                    let mut count = 0;
                    for (child, place) in children.iter_mut().zip(*places) {
                        *child = place.and_then(|place| nodes[place].take());
                        count += child.as_ref().map_or(0, |child| child.entries());
                    }
                    Node::verified(Body::Branch(count, Box::new(children)), digest)
                }
            };
            nodes[self.parts.len()] = Some(Arc::new(node));
        }
        let root = nodes[0].take().expect("nothing is lacking, so the root came");
        Ok(Snapshot::of(self.seq, self.time, Tree::new(root)))
    }
}
