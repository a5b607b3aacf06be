//! The trie: its shape and digest are functions of the content alone.
//!
//! A subtree of at most [`PAGE_ENTRIES`] entries is one page; a larger one is a branch with a child
//! for each next nibble of the positions below it. Nothing of the order of writes enters, so equal
//! content has equal digests whatever its history. A node's digest is the hash of its encoding, a
//! branch's encoding being `0 ‖ mask: u16 ‖ digest of each child in the mask`; so any node is
//! verified alone against the digest its parent names.

use super::page::{Blob, Page, blob_digest};
use super::position::{MAX_DEPTH, Position};
use super::stored::{StoreId, Stored};
use bytes::Bytes;
use std::collections::BTreeSet;
use std::sync::{Arc, OnceLock};
use troth_types::{Digest, Hasher};

/// The most entries of a page. Larger pages cost hashing per write, smaller ones memory per entry.
pub(crate) const PAGE_ENTRIES: usize = 32;
/// The children of a branch.
pub(crate) const WIDTH: usize = 16;
pub(crate) const BRANCH_TAG: u8 = 0;

/// The children of a branch, by nibble.
pub(crate) type Children = [Option<Arc<Node>>; WIDTH];

/// A node of the trie.
#[derive(Debug)]
pub(crate) struct Node {
    /// Filled by hashing, which may come long after the write; emptied by every write below.
    digest: OnceLock<Digest>,
    /// Where it is stored with everything below it.
    stored: Stored,
    body: Body,
}

/// What a page that is moved costs in units of the budget, about, with its share of the branches above it.
const MOVE: usize = 3;

/// A copy is made to be written.
impl Clone for Node {
    fn clone(&self) -> Self {
        Self { digest: self.digest.clone(), stored: Stored::default(), body: self.body.clone() }
    }
}

/// What a node is.
#[derive(Clone, Debug)]
pub(crate) enum Body {
    /// A leaf.
    Page(Page),
    /// A branch and the number of entries below it.
    Branch(u64, Box<Children>),
}

/// The digest of a node with this encoding.
pub(crate) fn node_digest(encoding: &[u8]) -> Digest {
    let mut hasher = Hasher::new("troth/node/v1");
    hasher.fixed(encoding);
    hasher.finish()
}

impl Node {
    /// A node whose digest is not known yet.
    pub(crate) fn new(body: Body) -> Self {
        Self { digest: OnceLock::new(), stored: Stored::default(), body }
    }

    /// A node that was verified against this digest.
    pub(crate) fn verified(body: Body, digest: Digest) -> Self {
        Self { digest: OnceLock::from(digest), stored: Stored::default(), body }
    }

    /// The same in another place.
    fn moved(&self) -> Self {
        Self { digest: self.digest.clone(), stored: self.stored.copied(), body: self.body.clone() }
    }

    /// The body, which is written: neither the digest nor where it is stored is that of what follows.
    fn body_to_write(&mut self) -> &mut Body {
        self.digest = OnceLock::new();
        self.stored = Stored::default();
        &mut self.body
    }

    /// Whether a store has this node and everything below it.
    pub(crate) fn is_in(&self, store: StoreId) -> bool {
        self.stored.is_in(store)
    }

    /// Says of this node and everything below it that a store has it.
    pub(crate) fn put_in(&self, store: StoreId) {
        if self.is_in(store) {
            return;
        }
        match &self.body {
            Body::Page(page) => page.put_in(store),
            Body::Branch(_, children) => {
                for child in children.iter().flatten() {
                    child.put_in(store);
                }
            }
        }
        self.stored.put_in(store);
    }

    pub(crate) fn body(&self) -> &Body {
        &self.body
    }

    pub(crate) fn into_body(self) -> Body {
        self.body
    }

    /// The number of entries below this node.
    pub(crate) fn entries(&self) -> u64 {
        match &self.body {
            Body::Page(page) => page.len() as u64,
            Body::Branch(entries, _) => *entries,
        }
    }

    /// The value under a key.
    pub(crate) fn get(&self, position: &Position, key: &[u8]) -> Option<Bytes> {
        self.page_of(position)?.get(key)
    }

    /// The large value of a key, as the page there shares it with others.
    pub(crate) fn blob_of(&self, position: &Position, key: &[u8]) -> Option<&Arc<Blob>> {
        self.page_of(position)?.blob_of(key)
    }

    fn page_of(&self, position: &Position) -> Option<&Page> {
        let mut node = self;
        for depth in 0.. {
            match &node.body {
                Body::Page(page) => return Some(page),
                Body::Branch(_, children) => node = children[position.nibble(depth)].as_deref()?,
            }
        }
        None
    }

    /// The node at a path of nibbles from here.
    pub(crate) fn at<'a>(self: &'a Arc<Self>, path: &[u8]) -> Option<&'a Arc<Self>> {
        let mut node = self;
        for nibble in path {
            let Body::Branch(_, children) = &node.body else { return None };
            node = children.get(usize::from(*nibble))?.as_ref()?;
        }
        Some(node)
    }

    /// Visits the keys that are not the same below two nodes that stand in one place, each with whether the new
    /// one has it. Only what differs is looked at.
    pub(crate) fn for_each_difference(
        old: Option<&Arc<Self>>,
        new: Option<&Arc<Self>>,
        visit: &mut impl FnMut(&[u8], bool),
    ) {
        if let (Some(old), Some(new)) = (old, new) {
            if Arc::ptr_eq(old, new) || old.digest() == new.digest() {
                return;
            }
            if let (Body::Branch(_, old), Body::Branch(_, new)) = (&old.body, &new.body) {
                for (old, new) in old.iter().zip(new.iter()) {
                    Self::for_each_difference(old.as_ref(), new.as_ref(), visit);
                }
                return;
            }
        }
        let keys = |node: Option<&Arc<Self>>| {
            let mut keys = BTreeSet::new();
            if let Some(node) = node {
                node.for_each_page(&mut |page| keys.extend(page.entries().map(|entry| entry.key.to_vec())));
            }
            keys
        };
        let (old, new) = (keys(old), keys(new));
        old.difference(&new).for_each(|key| visit(key, false));
        new.difference(&old).for_each(|key| visit(key, true));
    }

    /// The pages below this node, in path order.
    pub(crate) fn for_each_page<'a>(&'a self, visit: &mut impl FnMut(&'a Page)) {
        match &self.body {
            Body::Page(page) => visit(page),
            Body::Branch(_, children) => {
                for child in children.iter().flatten() {
                    child.for_each_page(visit);
                }
            }
        }
    }

    /// The encoding; the digests of the children must be known.
    pub(crate) fn encoding(&self) -> Vec<u8> {
        match &self.body {
            Body::Page(page) => page.bytes().to_vec(),
            Body::Branch(_, children) => {
                let mut bytes = Vec::with_capacity(3 + 32 * WIDTH);
                bytes.extend_from_slice(&[BRANCH_TAG, 0, 0]);
                let mut mask = 0_u16;
                for (nibble, child) in children.iter().enumerate() {
                    if let Some(child) = child {
                        mask |= 1 << nibble;
                        bytes.extend_from_slice(&child.digest().0);
                    }
                }
                bytes[1..3].copy_from_slice(&mask.to_le_bytes());
                bytes
            }
        }
    }

    /// The digest, hashing whatever below has not been hashed.
    pub(crate) fn digest(&self) -> Digest {
        *self.digest.get_or_init(|| match &self.body {
            Body::Page(page) => node_digest(page.bytes()),
            Body::Branch(..) => node_digest(&self.encoding()),
        })
    }

    /// Hashes below this node while the budget (units of about a microsecond) lasts; whether the
    /// node's own digest is known now.
    pub(crate) fn hash_some(&self, budget: &mut usize) -> bool {
        if self.digest.get().is_some() {
            return true;
        }
        let cost = match &self.body {
            Body::Page(page) => 1 + page.bytes().len() / 2048,
            Body::Branch(_, children) => {
                if !children.iter().flatten().all(|child| child.hash_some(budget)) {
                    return false;
                }
                1
            }
        };
        if *budget == 0 {
            return false;
        }
        *budget = budget.saturating_sub(cost);
        self.digest();
        true
    }
}

/// Writes a key (or removes it, without a value) below `node`, which stands at `depth`. Nodes that
/// another tree shares are copied, the rest is changed in place.
pub(crate) fn write(root: &mut Arc<Node>, position: &Position, key: &[u8], value: Option<&Bytes>) {
    // A write that changes nothing must not cost the digests of a whole path. This look also tells
    // the recursion that the entry count will change as it expects.
    let says = match root.page_of(position) {
        Some(page) => page.says(key, value),
        None => value.is_none(),
    };
    if !says {
        write_below(root, 0, position, key, value);
    }
}

fn write_below(node: &mut Arc<Node>, depth: usize, position: &Position, key: &[u8], value: Option<&Bytes>) {
    if let Body::Page(page) = &node.body {
        let page = page.written(key, value);
        let body = if page.len() > PAGE_ENTRIES && depth < MAX_DEPTH {
            split(&page, depth)
        } else {
            Body::Page(page)
        };
        replace(node, body);
        return;
    }
    let body = Arc::make_mut(node).body_to_write();
    let Body::Branch(entries, children) = body else { unreachable!("pages returned above") };
    let slot = &mut children[position.nibble(depth)];
    let before = slot.as_ref().map_or(0, |child| child.entries());
    let child = slot.get_or_insert_with(|| Arc::new(Node::new(Body::Page(Page::empty()))));
    write_below(child, depth + 1, position, key, value);
    let after = child.entries();
    if after == 0 {
        *slot = None;
    }
    *entries = *entries + after - before;
    if *entries <= PAGE_ENTRIES as u64 {
        *body = Body::Page(collapse(children));
    }
}

fn replace(node: &mut Arc<Node>, body: Body) {
    match Arc::get_mut(node) {
        Some(own) => *own = Node::new(body),
        None => *node = Arc::new(Node::new(body)),
    }
}

/// Makes the pages below `node` anew, in path order, from the one at the path `from` on, as long as `may` says so, which is
/// shown what each costs, in units of about a microsecond, and the page that is replaced. Branches that another tree shares
/// are copied. Whether all are done; else `next` is the path of the next one.
pub(crate) fn move_pages(
    node: &mut Arc<Node>,
    from: &[u8],
    next: &mut Vec<u8>,
    may: &mut impl FnMut(usize, &Arc<Node>) -> bool,
) -> bool {
    if let Body::Page(page) = &node.body {
        if !may(MOVE + page.bytes().len() / 2048, node) {
            return false;
        }
        *node = Arc::new(node.moved());
        return true;
    }
    if Arc::get_mut(node).is_none() {
        *node = Arc::new(node.moved());
    }
    let own = Arc::get_mut(node).expect("nobody else has what was made just now");
    let Body::Branch(_, children) = &mut own.body else { unreachable!("pages returned above") };
    let first = from.first().copied().unwrap_or(0);
    for (nibble, child) in (0_u8..).zip(children.iter_mut()).skip(usize::from(first)) {
        let Some(child) = child else { continue };
        let rest = if nibble == first { from.get(1..).unwrap_or_default() } else { &[] };
        next.push(nibble);
        if !move_pages(child, rest, next, may) {
            return false;
        }
        next.pop();
    }
    true
}

fn split(page: &Page, depth: usize) -> Body {
    let entries: Vec<_> =
        page.entries().map(|entry| (Position::of(entry.key).nibble(depth), entry)).collect();
    let children = core::array::from_fn(|nibble| {
        let mine = entries.iter().filter(|(at, _)| *at == nibble).map(|(_, entry)| (page, *entry));
        mine.clone().next()?;
        let part = Page::gather(mine);
        let body = if part.len() > PAGE_ENTRIES && depth + 1 < MAX_DEPTH {
            split(&part, depth + 1)
        } else {
            Body::Page(part)
        };
        Some(Arc::new(Node::new(body)))
    });
    Body::Branch(page.len() as u64, Box::new(children))
}

fn collapse(children: &Children) -> Page {
    let mut pages = Vec::new();
    for child in children.iter().flatten() {
        child.for_each_page(&mut |page| pages.push(page));
    }
    let mut entries: Vec<_> =
        pages.iter().flat_map(|page| page.entries().map(move |entry| (*page, entry))).collect();
    entries.sort_by_key(|(_, entry)| entry.key);
    Page::gather(entries.iter().copied())
}

/// A branch from outside: the digests of its children by nibble, where the bytes are one.
pub(crate) fn check_branch(bytes: &[u8]) -> Option<[Option<Digest>; WIDTH]> {
    let (head, mut rest) = bytes.split_at_checked(3)?;
    let mask = u16::from_le_bytes([head[1], head[2]]);
    if head[0] != BRANCH_TAG || rest.len() != mask.count_ones() as usize * 32 {
        return None;
    }
    let mut children = [None; WIDTH];
    for (nibble, child) in children.iter_mut().enumerate() {
        if mask & (1 << nibble) != 0 {
            let (digest, after) = rest.split_at(32);
            *child = Some(Digest(digest.try_into().expect("split at 32")));
            rest = after;
        }
    }
    Some(children)
}

/// Whether a blob from outside is the one a page names.
pub(crate) fn check_blob(bytes: &[u8], length: usize, digest: &Digest) -> bool {
    bytes.len() == length && blob_digest(bytes) == *digest
}
