//! The ordered index over the keys a service scans: a B+ tree whose nodes versions share.
//!
//! Keys stand one behind the other in a buffer of each leaf: an allocation for each would take more memory than a
//! short key. A write copies the nodes on its path that a clone shares, so a clone costs nothing, however many keys
//! there are, and what follows it neither.

use std::sync::Arc;

/// A leaf of more bytes is split.
const LEAF_BYTES: usize = 1024;
/// A branch of more children is split.
const MOST_CHILDREN: usize = 64;

/// The keys with one prefix that have a value now. Derived from the map's content, so no part of
/// any digest; a clone shares what neither of the two writes.
#[derive(Clone, Debug)]
pub(crate) struct Ordered {
    prefix: Box<[u8]>,
    root: Arc<Node>,
}

#[derive(Clone, Debug)]
enum Node {
    Leaf(Keys),
    /// Each child with a bound that is not above its keys and above those of the children before it. The first one's
    /// is empty: whatever is below the second is the first child's, also what comes after its lowest key has gone.
    Branch(Bounds, Vec<Arc<Node>>),
}

/// Keys in order, each `length: u16 ‖ key`.
#[derive(Clone, Debug, Default)]
struct Keys(Box<[u8]>);

impl Keys {
    fn iter(&self) -> Iter<'_> {
        Iter(&self.0)
    }

    /// Where a key stands or would stand, and whether it is there.
    fn find(&self, key: &[u8]) -> (usize, bool) {
        let mut at = 0;
        for other in self.iter() {
            if other >= key {
                return (at, other == key);
            }
            at += 2 + other.len();
        }
        (at, false)
    }

    fn insert_at(&mut self, at: usize, key: &[u8]) {
        let mut bytes = Vec::with_capacity(self.0.len() + 2 + key.len());
        bytes.extend_from_slice(&self.0[..at]);
        put(&mut bytes, key);
        bytes.extend_from_slice(&self.0[at..]);
        self.0 = bytes.into_boxed_slice();
    }

    fn remove_at(&mut self, at: usize) {
        let end = at + 2 + Iter(&self.0[at..]).next().map_or(0, <[u8]>::len);
        self.0 = [&self.0[..at], &self.0[end..]].concat().into_boxed_slice();
    }

    /// Leaves what is before a place; returns what is behind it.
    fn split_off(&mut self, at: usize) -> Self {
        let behind = Self(self.0[at..].into());
        self.0 = self.0[..at].into();
        behind
    }

    fn append(&mut self, more: &Self) {
        self.0 = [&self.0[..], &more.0[..]].concat().into_boxed_slice();
    }

    /// The key that begins at a place.
    fn at(&self, at: usize) -> &[u8] {
        Iter(&self.0[at..]).next().expect("asked only where there is one")
    }
}

/// The bounds of a branch's children, with the place where each begins: they are looked through more often than they change.
#[derive(Clone, Debug)]
struct Bounds {
    keys: Keys,
    starts: Box<[u32]>,
}

impl Bounds {
    fn of(keys: Keys) -> Self {
        let starts = keys.iter().scan(0, |at, key| {
            let start = *at;
            *at += u32::try_from(2 + key.len()).expect("keys are bounded");
            Some(start)
        });
        let starts = starts.collect();
        Self { keys, starts }
    }

    /// The empty one, and these.
    fn of_rest<'a>(rest: impl Iterator<Item = &'a [u8]>) -> Self {
        let mut bytes = Vec::new();
        put(&mut bytes, b"");
        rest.for_each(|bound| put(&mut bytes, bound));
        Self::of(Keys(bytes.into_boxed_slice()))
    }

    /// Where a bound begins, or all of them end.
    fn start(&self, index: usize) -> usize {
        self.starts.get(index).map_or(self.keys.0.len(), |start| *start as usize)
    }

    fn bound(&self, index: usize) -> &[u8] {
        self.keys.at(self.start(index))
    }

    /// Which child has a key, if one has: the last whose bound is not above it.
    fn child_of(&self, key: &[u8]) -> usize {
        self.starts.partition_point(|start| self.keys.at(*start as usize) <= key).saturating_sub(1)
    }

    fn insert(&mut self, index: usize, bound: &[u8]) {
        self.keys.insert_at(self.start(index), bound);
        *self = Self::of(core::mem::take(&mut self.keys));
    }

    fn remove(&mut self, index: usize) {
        self.keys.remove_at(self.start(index));
        *self = Self::of(core::mem::take(&mut self.keys));
    }

    /// Leaves those before an index; returns the bound that parts the two, and those of the children from there on.
    fn split_off(&mut self, index: usize) -> (Box<[u8]>, Self) {
        let behind = self.keys.split_off(self.start(index));
        *self = Self::of(core::mem::take(&mut self.keys));
        (behind.at(0).into(), Self::of_rest(behind.iter().skip(1)))
    }

    /// Takes in those of the sibling behind, whose first child has this bound here.
    fn append(&mut self, bound: &[u8], more: &Self) {
        let mut bytes = core::mem::take(&mut self.keys.0).into_vec();
        put(&mut bytes, bound);
        more.keys.iter().skip(1).for_each(|bound| put(&mut bytes, bound));
        *self = Self::of(Keys(bytes.into_boxed_slice()));
    }
}

fn put(bytes: &mut Vec<u8>, key: &[u8]) {
    let length = u16::try_from(key.len()).expect("keys are bounded");
    bytes.extend_from_slice(&length.to_le_bytes());
    bytes.extend_from_slice(key);
}

/// Keys from some place on.
#[derive(Clone, Debug)]
struct Iter<'a>(&'a [u8]);

impl<'a> Iterator for Iter<'a> {
    type Item = &'a [u8];
    #[inline]
    fn next(&mut self) -> Option<&'a [u8]> {
        let (length, rest) = self.0.split_first_chunk()?;
        let (key, rest) = rest.split_at(usize::from(u16::from_le_bytes(*length)));
        self.0 = rest;
        Some(key)
    }
}

impl Node {
    fn contains(&self, key: &[u8]) -> bool {
        let mut node = self;
        loop {
            match node {
                Self::Leaf(keys) => return keys.find(key).1,
                Self::Branch(bounds, children) => node = &children[bounds.child_of(key)],
            }
        }
    }

    /// Puts a key in that is not there; returns what was split off, with a key that parts the two.
    fn insert(self: &mut Arc<Self>, key: &[u8]) -> Option<(Box<[u8]>, Arc<Self>)> {
        match Arc::make_mut(self) {
            Self::Leaf(keys) => {
                keys.insert_at(keys.find(key).0, key);
                let bytes = keys.0.len();
                if bytes <= LEAF_BYTES {
                    return None;
                }
                let starts = keys.iter().scan(0, |at, key| {
                    *at += 2 + key.len();
                    Some(*at)
                });
                // Nothing where the only key is a long one.
                let middle = starts.take_while(|at| *at < bytes).find(|at| *at >= bytes / 2)?;
                let right = keys.split_off(middle);
                Some((right.at(0).into(), Arc::new(Self::Leaf(right))))
            }
            Self::Branch(bounds, children) => {
                let index = bounds.child_of(key);
                let (bound, right) = children[index].insert(key)?;
                bounds.insert(index + 1, &bound);
                children.insert(index + 1, right);
                if children.len() <= MOST_CHILDREN {
                    return None;
                }
                let middle = children.len() / 2;
                let (bound, right) = bounds.split_off(middle);
                Some((bound, Arc::new(Self::Branch(right, children.split_off(middle)))))
            }
        }
    }

    /// Removes a key that is there.
    fn remove(self: &mut Arc<Self>, key: &[u8]) {
        match Arc::make_mut(self) {
            Self::Leaf(keys) => keys.remove_at(keys.find(key).0),
            Self::Branch(bounds, children) => {
                let index = bounds.child_of(key);
                children[index].remove(key);
                if children[index].is_empty() {
                    // The child before it has its keys from now on, or the one behind where it was the first.
                    let bound = index.max(1).min(children.len() - 1);
                    children.remove(index);
                    bounds.remove(bound);
                    return;
                }
                // Few keys in many nodes would take more memory than many keys.
                let left = index.min(children.len().saturating_sub(2));
                if left + 1 < children.len() && children[left].fits(&children[left + 1]) {
                    let right = children.remove(left + 1);
                    let bound: Box<[u8]> = bounds.bound(left + 1).into();
                    bounds.remove(left + 1);
                    Arc::make_mut(&mut children[left]).append(&right, &bound);
                }
            }
        }
    }

    fn is_empty(&self) -> bool {
        match self {
            Self::Leaf(keys) => keys.0.is_empty(),
            Self::Branch(_, children) => children.is_empty(),
        }
    }

    /// Whether both are one of about half the size at most.
    fn fits(&self, right: &Self) -> bool {
        match (self, right) {
            (Self::Leaf(left), Self::Leaf(right)) => left.0.len() + right.0.len() <= LEAF_BYTES / 2,
            (Self::Branch(_, left), Self::Branch(_, right)) => left.len() + right.len() <= MOST_CHILDREN / 2,
            _ => false,
        }
    }

    /// Takes in the sibling behind it, whose bound this was.
    fn append(&mut self, right: &Self, bound: &[u8]) {
        match (self, right) {
            (Self::Leaf(left), Self::Leaf(right)) => left.append(right),
            (Self::Branch(bounds, left), Self::Branch(more, right)) => {
                bounds.append(bound, more);
                left.extend_from_slice(right);
            }
            _ => unreachable!("siblings are of one kind"),
        }
    }
}

impl Ordered {
    pub(crate) fn new(prefix: &[u8]) -> Self {
        Self { prefix: prefix.into(), root: Arc::new(Node::Leaf(Keys::default())) }
    }

    /// The index over these keys, each of which comes once: quicker than one after the other.
    pub(crate) fn of_all<'a>(prefix: &[u8], keys: impl Iterator<Item = &'a [u8]>) -> Self {
        let keys: Vec<&[u8]> = keys.filter(|key| key.starts_with(prefix)).collect();
        let mut this = Self::new(prefix);
        let Some(first) = keys.first() else { return this };
        // Most comparisons are of the eight bytes behind what all keys have in common, and touch no key.
        let common = keys.iter().fold(first.len(), |common, key| {
            first.iter().zip(*key).take(common).take_while(|(a, b)| a == b).count()
        });
        let mut keyed: Vec<(u64, &[u8])> =
            keys.into_iter().map(|key| (number_at(key, common), key)).collect();
        keyed.sort_unstable();
        let mut nodes = Vec::new();
        let (mut bytes, mut first) = (Vec::new(), None);
        for (_, key) in keyed {
            if !bytes.is_empty() && bytes.len() + 2 + key.len() > LEAF_BYTES * 7 / 8 {
                let keys = Keys(core::mem::take(&mut bytes).into_boxed_slice());
                nodes.push((first.take().expect("it has keys"), Arc::new(Node::Leaf(keys))));
            }
            first.get_or_insert(key);
            put(&mut bytes, key);
        }
        nodes.push((first.expect("there are keys"), Arc::new(Node::Leaf(Keys(bytes.into_boxed_slice())))));
        while nodes.len() > 1 {
            let above = nodes.chunks(MOST_CHILDREN * 7 / 8).map(|part| {
                let bounds = Bounds::of_rest(part[1..].iter().map(|(first, _)| *first));
                let children = part.iter().map(|(_, node)| node.clone()).collect();
                (part[0].0, Arc::new(Node::Branch(bounds, children)))
            });
            nodes = above.collect();
        }
        this.root = nodes.remove(0).1;
        this
    }

    pub(crate) fn prefix(&self) -> &[u8] {
        &self.prefix
    }

    pub(crate) fn insert(&mut self, key: &[u8]) {
        if !key.starts_with(&self.prefix) || self.root.contains(key) {
            return;
        }
        if let Some((bound, right)) = self.root.insert(key) {
            let bounds = Bounds::of_rest(core::iter::once(&*bound));
            self.root = Arc::new(Node::Branch(bounds, vec![self.root.clone(), right]));
        }
    }

    pub(crate) fn remove(&mut self, key: &[u8]) {
        if !key.starts_with(&self.prefix) || !self.root.contains(key) {
            return;
        }
        self.root.remove(key);
        while let Node::Branch(_, children) = &*self.root {
            match &children[..] {
                [] => self.root = Arc::new(Node::Leaf(Keys::default())),
                [only] => self.root = only.clone(),
                _ => break,
            }
        }
    }

    pub(crate) fn from<'a>(&'a self, start: &[u8]) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        let mut scan = Scan { path: Vec::new(), leaf: Iter(&[]) };
        let mut node = &*self.root;
        loop {
            match node {
                Node::Leaf(keys) => {
                    scan.leaf = Iter(&keys.0[keys.find(start).0..]);
                    return scan;
                }
                Node::Branch(bounds, children) => {
                    let index = bounds.child_of(start);
                    scan.path.push(children[index + 1..].iter());
                    node = &children[index];
                }
            }
        }
    }
}

#[cfg(test)]
impl Ordered {
    /// Panics where a key stands in a child that it would not be looked for in.
    pub(crate) fn check(&self) {
        fn check<'a>(node: &'a Node, from: &[u8], below: Option<&[u8]>) -> Option<&'a [u8]> {
            match node {
                Node::Leaf(keys) => {
                    assert!(keys.iter().zip(keys.iter().skip(1)).all(|(one, next)| one < next));
                    assert!(keys.iter().all(|key| key >= from && below.is_none_or(|below| key < below)));
                    keys.iter().next()
                }
                Node::Branch(bounds, children) => {
                    let all: Vec<&[u8]> = (0..children.len()).map(|index| bounds.bound(index)).collect();
                    assert_eq!(bounds.keys.iter().collect::<Vec<_>>(), all);
                    let bounds = all;
                    assert!(bounds[0].is_empty() && bounds.windows(2).all(|pair| pair[0] < pair[1]));
                    for (index, child) in children.iter().enumerate() {
                        let from = if index == 0 { from } else { bounds[index] };
                        check(child, from, bounds.get(index + 1).copied().or(below));
                    }
                    None
                }
            }
        }
        check(&self.root, b"", None);
    }
}

fn number_at(key: &[u8], at: usize) -> u64 {
    let mut bytes = [0; 8];
    let part = &key[at..key.len().min(at + 8)];
    bytes[..part.len()].copy_from_slice(part);
    u64::from_be_bytes(bytes)
}

/// Keys in order.
struct Scan<'a> {
    /// Of each branch on the way the children that are to come.
    path: Vec<core::slice::Iter<'a, Arc<Node>>>,
    leaf: Iter<'a>,
}

impl<'a> Iterator for Scan<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        loop {
            if let Some(key) = self.leaf.next() {
                return Some(key);
            }
            let Some(node) = self.path.last_mut()?.next() else {
                self.path.pop();
                continue;
            };
            match &**node {
                Node::Leaf(keys) => self.leaf = keys.iter(),
                Node::Branch(_, children) => self.path.push(children.iter()),
            }
        }
    }
}
