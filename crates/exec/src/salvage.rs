//! What a state transfer keeps of the targets that it gave up, so that one slower than the checkpoint interval still
//! ends, and what it lets go so that it stays within what a target has.

use crate::map::{Body, Node};
use std::collections::BTreeMap;
use std::sync::Arc;
use troth_types::Digest;

/// What is counted for a branch, or for a page beside its bytes.
const NODE_BYTES: usize = 512;

/// What the target that is given up says of a node kept from an earlier one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// It is part of it.
    Used,
    /// The transfer did not come to that place.
    Unknown,
    /// Something else stands at its place, or nothing.
    Obsolete,
}

/// Complete nodes of abandoned targets, one for each place.
#[derive(Clone, Debug, Default)]
pub(crate) struct Salvage {
    nodes: BTreeMap<Vec<u8>, Arc<Node>>,
    /// The most bytes that one target was found to have of what is here.
    most: usize,
}

impl Salvage {
    /// The node that was kept for a place, if it has this digest.
    pub(crate) fn get(&self, place: &[u8], digest: &Digest) -> Option<&Arc<Node>> {
        self.nodes.get(place).filter(|node| node.digest() == *digest)
    }

    /// What is kept when another target is given up: what it had, `fetched` or found here, and of what it did not come to no
    /// more bytes than one target was ever found to have. The state may shrink where it was walked and grow where it was not, again
    /// and again, and nobody would come to know that the rest is obsolete.
    pub(crate) fn after(
        self,
        fetched: Vec<(Vec<u8>, Arc<Node>)>,
        fate: impl Fn(&[u8], &Node) -> Fate,
    ) -> Self {
        let mut nodes = BTreeMap::new();
        let mut unknown = Vec::new();
        let mut had = 0;
        // Backwards, as the target is walked: what is come to next is kept first, and what is below a node before it.
        for (place, node) in self.nodes.into_iter().rev() {
            match fate(&place, &node) {
                Fate::Used => {
                    had += bytes_of(&node);
                    nodes.insert(place, node);
                }
                Fate::Unknown => unknown.push((place, node)),
                Fate::Obsolete => {}
            }
        }
        for (place, node) in fetched {
            had += bytes_of(&node);
            nodes.insert(place, node);
        }
        let most = self.most.max(had);
        let mut room = most;
        for (place, node) in unknown {
            let Some(rest) = room.checked_sub(bytes_of(&node)) else { break };
            room = rest;
            nodes.insert(place, node);
        }
        Self { nodes, most }
    }

    /// What is kept, in bytes.
    #[cfg(test)]
    pub(crate) fn bytes(&self) -> usize {
        self.nodes.values().map(|node| bytes_of(node)).sum()
    }
}

/// What a node takes without those below it.
fn bytes_of(node: &Node) -> usize {
    NODE_BYTES
        + match node.body() {
            Body::Page(page) => page.bytes().len() + page.blobs().map(|value| value.len()).sum::<usize>(),
            Body::Branch(..) => 0,
        }
}
