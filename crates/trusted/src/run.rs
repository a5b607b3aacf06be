//! Runs: one certificate over up to 256 consecutive values.
//!
//! The certified digest is then the root of a Merkle tree over the digests of the messages, and each
//! message travels with its index and path. So a component that signs, or that waits for a disk, is
//! asked once for all that was ready. A run of one is the plain case: the digest itself is certified,
//! and only then may the counter jump by more than one.
//!
//! Leaves carry their index, the root carries the count, and leaf, node and root have different
//! domains, so a path fits one place of one run only. A message's own digest must come from hashing
//! the message under the caller's domain, never from the wire: else a root could pose as a message.

use crate::value::{CounterValue, Digest, Move};
use sha2::{Digest as _, Sha256};

/// The most messages under one certificate.
pub const MAX_RUN: usize = 256;
/// The most siblings on a path.
pub const MAX_PATH: usize = 8;

/// The siblings from a leaf up to the top of the tree.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Path {
    siblings: [Digest; MAX_PATH],
    len: usize,
}

impl Path {
    /// The path of a run of one.
    pub const EMPTY: Self = Self { siblings: [[0; 32]; MAX_PATH], len: 0 };

    /// The path with these siblings, leaf side first; `None` for more than [`MAX_PATH`].
    pub fn new(siblings: &[Digest]) -> Option<Self> {
        let mut path = Self::EMPTY;
        path.siblings.get_mut(..siblings.len())?.copy_from_slice(siblings);
        path.len = siblings.len();
        Some(path)
    }

    /// The siblings, leaf side first.
    pub fn as_slice(&self) -> &[Digest] {
        &self.siblings[..self.len]
    }
}

/// Where in a run a message stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RunProof {
    /// Its place, from 0.
    pub index: u16,
    /// The length of the run, 1 to [`MAX_RUN`].
    pub count: u16,
    /// Its path in the tree; empty for a run of one.
    pub path: Path,
}

impl RunProof {
    /// The proof of a message that is certified alone.
    pub const SINGLE: Self = Self { index: 0, count: 1, path: Path::EMPTY };
}

/// The counter value that a message holds, and the one that must come before it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Position {
    /// The value of the message.
    pub value: CounterValue,
    /// The value of the message before it: one less inside a run, the previous value of the
    /// certificate for its first.
    pub predecessor: CounterValue,
}

/// The position of a message, or `None` if move and proof do not fit: the index must be within the
/// run, and a run of several must move the counter by exactly its length.
pub fn position(moved: &Move, proof: &RunProof) -> Option<Position> {
    let (index, count) = (u128::from(proof.index), u128::from(proof.count));
    if index >= count || count > MAX_RUN as u128 {
        return None;
    }
    if count == 1 {
        return Some(Position { value: moved.new, predecessor: moved.previous });
    }
    if moved.previous.plus(count)? != moved.new {
        return None;
    }
    let predecessor = moved.previous.plus(index)?;
    Some(Position { value: predecessor.next()?, predecessor })
}

/// The digest that the certificate of `moved` must cover for the message with `digest` to stand
/// where `proof` says, or `None` if the proof has not the shape of such a run.
pub fn certified_digest(moved: &Move, proof: &RunProof, digest: &Digest) -> Option<Digest> {
    position(moved, proof)?;
    root_over(proof, digest)
}

/// What [`Tree::build`] returned for the run in which `digest` stands where `proof` says, or `None` if the
/// proof has not the shape of such a run.
pub fn root_over(proof: &RunProof, digest: &Digest) -> Option<Digest> {
    if proof.index >= proof.count || usize::from(proof.count) > MAX_RUN {
        return None;
    }
    if proof.count == 1 {
        return proof.path.as_slice().is_empty().then_some(*digest);
    }
    let mut siblings = proof.path.as_slice().iter();
    let mut top = leaf(proof.index, digest);
    let (mut at, mut width) = (usize::from(proof.index), usize::from(proof.count));
    while width > 1 {
        if has_sibling(at, width) {
            let sibling = siblings.next()?;
            top = if at % 2 == 0 { node(&top, sibling) } else { node(sibling, &top) };
        }
        at /= 2;
        width = width.div_ceil(2);
    }
    siblings.next().is_none().then(|| root(proof.count, &top))
}

/// Digests that a tree needs room for where no run is longer than this.
pub const fn room(longest: usize) -> usize {
    2 * longest + MAX_PATH
}

/// The tree of one run at a time, reusable so that nothing is cleared or allocated per run; in room for the longest, or in
/// what it is given.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Tree<N = [Digest; room(MAX_RUN)]> {
    nodes: N,
    count: u16,
}

impl Default for Tree {
    fn default() -> Self {
        Self::within([[0; 32]; room(MAX_RUN)])
    }
}

impl<N: AsRef<[Digest]> + AsMut<[Digest]>> Tree<N> {
    /// A tree in this room.
    pub fn within(nodes: N) -> Self {
        Self { nodes, count: 0 }
    }

    /// Builds the tree over the digests of a run and returns the digest to certify; `None` unless
    /// there are 1 to [`MAX_RUN`] and [`room`] for so many. For one it is the digest itself.
    pub fn build(&mut self, digests: &[Digest]) -> Option<Digest> {
        let nodes = self.nodes.as_mut();
        if digests.is_empty() || digests.len() > MAX_RUN || nodes.len() < room(digests.len()) {
            return None;
        }
        self.count = digests.len() as u16;
        if let [only] = digests {
            return Some(*only);
        }
        for (index, (slot, digest)) in (0..).zip(nodes.iter_mut().zip(digests)) {
            *slot = leaf(index, digest);
        }
        let (mut start, mut width) = (0, digests.len());
        while width > 1 {
            let above = start + width;
            for pair in 0..width.div_ceil(2) {
                let (at, next) = (start + 2 * pair, start + 2 * pair + 1);
                nodes[above + pair] = if next < above { node(&nodes[at], &nodes[next]) } else { nodes[at] };
            }
            (start, width) = (above, width.div_ceil(2));
        }
        Some(root(self.count, &nodes[start]))
    }

    /// The proof of the message at `index` of the run built last, or `None` outside it.
    pub fn proof(&self, index: u16) -> Option<RunProof> {
        if index >= self.count {
            return None;
        }
        let mut path = Path::EMPTY;
        let (mut start, mut at, mut width) = (0, usize::from(index), usize::from(self.count));
        while width > 1 {
            if has_sibling(at, width) {
                path.siblings[path.len] = self.nodes.as_ref()[start + (at ^ 1)];
                path.len += 1;
            }
            start += width;
            at /= 2;
            width = width.div_ceil(2);
        }
        Some(RunProof { index, count: self.count, path })
    }
}

/// Whether the node at place `at` of a level has a partner; the last node of an odd level has none and
/// goes up as it is.
fn has_sibling(at: usize, width: usize) -> bool {
    at % 2 == 1 || at + 1 < width
}

fn leaf(index: u16, digest: &Digest) -> Digest {
    hash(&[b"troth-run-leaf/v1", &index.to_be_bytes(), digest])
}

fn node(left: &Digest, right: &Digest) -> Digest {
    hash(&[b"troth-run-node/v1", left, right])
}

fn root(count: u16, top: &Digest) -> Digest {
    hash(&[b"troth-run-root/v1", &count.to_be_bytes(), top])
}

fn hash(parts: &[&[u8]]) -> Digest {
    let mut hasher = Sha256::new();
    for part in parts {
        hasher.update(part);
    }
    hasher.finalize().into()
}
