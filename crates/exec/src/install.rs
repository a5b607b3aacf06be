//! The receiving side of a state transfer: top-down, every item verified against the digest its
//! parent names, nothing fetched that the local state holds at the same place, and nothing in force
//! before everything is there (guide.md §1.5).
//!
//! When the target moves on before a large transfer is complete, what was verified for the old one
//! serves the new one too where it has the same digest at the same place: a transfer slower than the checkpoint
//! interval still ends.

use crate::Tree;
use crate::delta::{Held, Item, read_difference};
use crate::map::{Blob, Body, Children, Node, Page, WIDTH, check_blob, check_branch, entries, node_digest};
use crate::place::{
    MAX_DEPTH, MAX_PLACES, PROBE, Place, Question, What, answer_of, is_question, path_of, read_head,
    read_items, state_digest,
};
use crate::salvage::{Fate, Salvage};
use bytes::Bytes;
use std::collections::BTreeMap;
use std::sync::Arc;
use troth_types::{Digest, Seq, StateFetch, StatePiece, Time, Wire};

/// Fetches under way at once.
const MAX_FETCHES: usize = 64;

/// A place that must be fetched and the digest of what stands there.
#[derive(Clone, Debug)]
struct Want {
    place: Place,
    expected: Digest,
    /// For a large value: its length.
    length: usize,
    /// What came of the node held there was not it: nothing is said of that again.
    whole: bool,
}

impl Want {
    /// Whether this is what is wanted.
    fn is(&self, item: &[u8]) -> bool {
        match self.place.what {
            What::Node => node_digest(item) == self.expected && is_node(&self.place.nibbles, item),
            What::Blob(_) => check_blob(item, self.length, &self.expected),
        }
    }
}

/// A fetch under way.
#[derive(Clone, Debug)]
struct Asked {
    /// The path that it was asked by.
    path: Bytes,
    wants: Vec<Want>,
}

/// Whether the one that is asked answers what differs from a node that is held. Releases before this answer
/// nothing at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Differences {
    /// Not that it has shown.
    Unknown,
    /// It has, and since then everything was asked for again, maybe of another one.
    Doubtful,
    Answered,
}

#[derive(Clone, Debug)]
enum Child {
    Absent,
    Have(Arc<Node>),
    Coming,
}

/// A verified part of the target that is not in the local state.
#[derive(Clone, Debug)]
enum Part {
    Branch(Digest, Vec<Child>),
    Page(Digest, Bytes, Vec<Option<Arc<Blob>>>),
}

/// Whether bytes are a node that can stand at a place. A certified target holds no others, but what
/// its certifiers say is never a reason to panic.
fn is_node(nibbles: &[u8], bytes: &[u8]) -> bool {
    Page::check(bytes) || (nibbles.len() < MAX_DEPTH && check_branch(bytes).is_some())
}

/// An installation under way. Its memory is bounded by the targets: nothing is kept that was not verified to be part
/// of this one, and beside it what [`Salvage`] keeps, which is at most twice what one of those before had.
#[derive(Clone, Debug)]
pub(crate) struct Install {
    pub(crate) seq: Seq,
    pub(crate) digest: Digest,
    local: Tree,
    salvage: Salvage,
    time: Option<Time>,
    parts: BTreeMap<Vec<u8>, Part>,
    /// To be fetched next; taken from the end, so that the walk is depth-first and the list short.
    queue: Vec<Want>,
    /// By the path of the answer.
    under_way: BTreeMap<Bytes, Asked>,
    differences: Differences,
    /// The number of the last question.
    number: u32,
}

/// What a piece brought.
#[derive(Debug)]
pub(crate) enum Progress {
    /// It was good; these fetches follow.
    Wants(Vec<StateFetch>),
    /// The whole state is there.
    Complete(Time, Tree),
    /// It does not verify.
    Bad,
    /// It was not asked for, or has come before.
    Unasked,
}

impl Install {
    /// The earlier installation, where it is of the same state; else a new one.
    pub(crate) fn after(
        earlier: Option<Self>,
        seq: Seq,
        digest: Digest,
        local: impl FnOnce() -> Tree,
    ) -> Self {
        match earlier {
            Some(same) if (same.seq, same.digest) == (seq, digest) => same,
            abandoned => Self::new(seq, digest, local(), abandoned),
        }
    }

    /// The state that it would have reused.
    pub(crate) fn into_local(self) -> Tree {
        self.local
    }

    /// An installation that will reuse what `local` holds and what an abandoned one had brought.
    pub(crate) fn new(seq: Seq, digest: Digest, local: Tree, abandoned: Option<Self>) -> Self {
        Self {
            seq,
            digest,
            local,
            differences: abandoned.as_ref().map_or(Differences::Unknown, |abandoned| abandoned.differences),
            salvage: abandoned.map_or_else(Salvage::default, Self::into_salvage),
            time: None,
            parts: BTreeMap::new(),
            queue: Vec::new(),
            under_way: BTreeMap::new(),
            number: 0,
        }
    }

    fn into_salvage(mut self) -> Salvage {
        let salvage = core::mem::take(&mut self.salvage);
        if self.time.is_none() {
            return salvage;
        }
        let mut fetched = Vec::new();
        self.assemble(&mut Vec::new(), &mut |place, node| fetched.push((place.to_vec(), node.clone())));
        salvage.after(fetched, |place, node| self.fate(place, node))
    }

    /// What is known of a place in this target where another one had this node.
    fn fate(&self, place: &[u8], node: &Node) -> Fate {
        for (depth, nibble) in place.iter().enumerate() {
            let children = match self.parts.get(&place[..depth]) {
                None => return Fate::Unknown,
                Some(Part::Page(..)) => return Fate::Obsolete,
                Some(Part::Branch(_, children)) => children,
            };
            match &children[usize::from(*nibble)] {
                Child::Absent => return Fate::Obsolete,
                Child::Have(held) => {
                    let stands = held.at(&place[depth + 1..]);
                    let used = stands.is_some_and(|stands| stands.digest() == node.digest());
                    return if used { Fate::Used } else { Fate::Obsolete };
                }
                Child::Coming => {}
            }
        }
        // It would not have been asked for.
        Fate::Obsolete
    }

    /// What is kept of earlier targets, in bytes.
    #[cfg(test)]
    pub(crate) fn salvaged(&self) -> usize {
        self.salvage.bytes()
    }

    fn fetch(&self, path: Bytes) -> StateFetch {
        StateFetch { seq: self.seq, digest: self.digest, path }
    }

    /// Everything under way, to be asked for again, of another one perhaps. Where nobody has answered what differs
    /// since the last time, everything is asked for whole.
    pub(crate) fn wanted(&mut self) -> Vec<StateFetch> {
        self.differences = match self.differences {
            Differences::Answered => Differences::Doubtful,
            Differences::Doubtful | Differences::Unknown => Differences::Unknown,
        };
        if self.differences == Differences::Unknown {
            self.under_way.retain(|answer, asked| {
                if is_question(answer) {
                    self.queue.append(&mut asked.wants);
                }
                !is_question(answer)
            });
        }
        let mut fetches = Vec::new();
        if self.local.entries() > 0 {
            fetches.push(self.fetch(Bytes::from_static(PROBE)));
        }
        if self.time.is_none() {
            fetches.push(self.fetch(Bytes::new()));
        }
        fetches.extend(self.under_way.values().map(|asked| self.fetch(asked.path.clone())));
        fetches.extend(self.ask());
        fetches
    }

    /// Takes a piece of this target.
    pub(crate) fn on_piece(&mut self, piece: &StatePiece) -> Progress {
        if piece.path == PROBE {
            self.differences = Differences::Answered;
            return Progress::Unasked;
        }
        let good = if piece.path.is_empty() {
            if self.time.is_some() {
                return Progress::Unasked;
            }
            self.take_head(&piece.content)
        } else {
            if !self.under_way.contains_key(&piece.path) {
                return Progress::Unasked;
            }
            self.take_items(&piece.path, &piece.content)
        };
        if good.is_none() {
            return Progress::Bad;
        }
        if self.queue.is_empty() && self.under_way.is_empty() {
            let root = self.assemble(&mut Vec::new(), &mut |_, _| {}).expect("nothing is under way");
            return Progress::Complete(self.time.expect("the head came first"), Tree::new(root));
        }
        Progress::Wants(self.ask())
    }

    fn ask(&mut self) -> Vec<StateFetch> {
        let mut fetches = Vec::new();
        while self.under_way.len() < MAX_FETCHES && !self.queue.is_empty() {
            let asked = match self.differences {
                Differences::Unknown => self.ask_whole(),
                Differences::Doubtful | Differences::Answered => self.ask_differences(),
            };
            fetches.push(self.fetch(asked.path.clone()));
            self.under_way.insert(answer_of(&asked.path), asked);
        }
        fetches
    }

    fn ask_whole(&mut self) -> Asked {
        let wants = self.queue.split_off(self.queue.len().saturating_sub(MAX_PLACES));
        let places: Vec<Place> = wants.iter().map(|want| want.place.clone()).collect();
        Asked { path: path_of(&places), wants }
    }

    fn ask_differences(&mut self) -> Asked {
        // None has the number of the question without places.
        self.number = self.number.wrapping_add(1).max(1);
        let mut question = Question { number: self.number, places: Vec::new() };
        let mut path = question.to_wire().to_vec();
        let mut wants = Vec::new();
        while question.has_room(path.len())
            && let Some(want) = self.queue.pop()
        {
            let held = self.held(&want).map_or(Held::Nothing, |node| Held::of(node));
            want.place.encode(&mut path);
            held.encode(&mut path);
            question.places.push((want.place.clone(), held));
            wants.push(want);
        }
        Asked { path: Bytes::from(path), wants }
    }

    /// The node that something is said of where a place is asked for.
    fn held(&self, want: &Want) -> Option<&Arc<Node>> {
        let says = want.place.what == What::Node && !want.whole;
        says.then(|| self.local.root().at(&want.place.nibbles)).flatten()
    }

    fn take_head(&mut self, content: &Bytes) -> Option<()> {
        let (time, encoding) = read_head(content)?;
        let root = node_digest(&encoding);
        if state_digest(self.seq, time, &root) != self.digest {
            return None;
        }
        self.take_node(&[], root, &encoding)?;
        self.time = Some(time);
        Some(())
    }

    /// Takes the items of a list of places: all are checked before any is kept.
    fn take_items(&mut self, path: &Bytes, content: &Bytes) -> Option<()> {
        let asked = self.under_way.get(path)?;
        let items = read_items(content, asked.wants.len())?;
        // Nothing where a node must be asked for whole.
        let mut taken = Vec::with_capacity(items.len());
        for (want, item) in asked.wants.iter().zip(items) {
            let item = if is_question(path) {
                read_difference(&item, self.held(want).map(|node| &**node))?
            } else {
                Item::Whole(item)
            };
            taken.push(match item {
                Item::Whole(item) if want.is(&item) => Some(item),
                Item::Whole(_) => return None,
                Item::Changed(item) => want.is(&item).then_some(item),
            });
        }
        if is_question(path) {
            self.differences = Differences::Answered;
        }
        let mut wants = self.under_way.remove(path)?.wants;
        // What the answer had no room for is asked for again.
        self.queue.extend(wants.split_off(taken.len()));
        for (want, item) in wants.into_iter().zip(taken) {
            match (item, want.place.what) {
                (None, _) => self.queue.push(Want { whole: true, ..want }),
                (Some(item), What::Node) => self.take_node(&want.place.nibbles, want.expected, &item)?,
                (Some(item), What::Blob(index)) => self.take_blob(&want.place.nibbles, index, &item),
            }
        }
        Some(())
    }

    /// Keeps a node whose digest was verified; nothing where its bytes are not a node after all.
    fn take_node(&mut self, nibbles: &[u8], digest: Digest, encoding: &Bytes) -> Option<()> {
        if !is_node(nibbles, encoding) {
            return None;
        }
        let part = match check_branch(encoding) {
            Some(digests) => Part::Branch(digest, self.children(nibbles, &digests)),
            // A copy: a slice would hold the whole piece, whatever else is in it, until all parts are there.
            None => Part::Page(digest, Bytes::copy_from_slice(encoding), self.blobs(nibbles, encoding)),
        };
        self.parts.insert(nibbles.to_vec(), part);
        Some(())
    }

    fn children(&mut self, nibbles: &[u8], digests: &[Option<Digest>; WIDTH]) -> Vec<Child> {
        let local = self.local.root().at(nibbles).cloned();
        let mut children = Vec::with_capacity(WIDTH);
        for (nibble, digest) in (0_u8..).zip(digests) {
            let Some(expected) = *digest else {
                children.push(Child::Absent);
                continue;
            };
            let held = local.as_ref().and_then(|node| node.at(&[nibble]));
            let held = held.filter(|node| node.digest() == expected);
            let nibbles = [nibbles, &[nibble]].concat();
            match held.or_else(|| self.salvage.get(&nibbles, &expected)) {
                Some(node) => children.push(Child::Have(node.clone())),
                None => {
                    children.push(Child::Coming);
                    let place = Place { nibbles, what: What::Node };
                    self.queue.push(Want { place, expected, length: 0, whole: false });
                }
            }
        }
        children
    }

    /// The large values of a page. What the local state has of them is taken as it stands there, with what is known of where
    /// it is stored.
    fn blobs(&mut self, nibbles: &[u8], encoding: &[u8]) -> Vec<Option<Arc<Blob>>> {
        let mut blobs = Vec::new();
        for entry in entries(encoding).filter(|entry| entry.blob.is_some()) {
            let (expected, length) = (entry.blob_digest(), entry.blob_length());
            let held = self.local.blob_of(entry.key);
            let held = held.filter(|blob| check_blob(blob.value(), length, &expected)).cloned();
            if held.is_none() {
                let index = u8::try_from(blobs.len()).expect("a page holds few blobs");
                let place = Place { nibbles: nibbles.to_vec(), what: What::Blob(index) };
                self.queue.push(Want { place, expected, length, whole: false });
            }
            blobs.push(held);
        }
        blobs
    }

    fn take_blob(&mut self, nibbles: &[u8], index: u8, value: &[u8]) {
        if let Some(Part::Page(_, _, blobs)) = self.parts.get_mut(nibbles) {
            // A copy: a slice would hold the whole piece in memory as long as the value lives.
            blobs[usize::from(index)] = Some(Blob::new(Bytes::copy_from_slice(value)));
        }
    }

    /// The node at `path`, where everything below has come; shows `complete` each node fetched for
    /// this target that is, with its place.
    fn assemble(
        &self,
        path: &mut Vec<u8>,
        complete: &mut impl FnMut(&[u8], &Arc<Node>),
    ) -> Option<Arc<Node>> {
        let node = match self.parts.get(path)? {
            Part::Page(digest, bytes, blobs) => {
                let blobs = blobs.iter().cloned().collect::<Option<Vec<Arc<Blob>>>>()?;
                Node::verified(Body::Page(Page::from_parts(&bytes[..], blobs)), *digest)
            }
            Part::Branch(digest, parts) => {
                let mut missing = false;
                let mut entries = 0;
                let mut children = Children::default();
                for (nibble, (part, child)) in (0_u8..).zip(parts.iter().zip(children.iter_mut())) {
                    *child = match part {
                        Child::Absent => continue,
                        Child::Have(node) => Some(node.clone()),
                        Child::Coming => {
                            path.push(nibble);
                            let node = self.assemble(path, complete);
                            path.pop();
                            node
                        }
                    };
                    missing |= child.is_none();
                    entries += child.as_ref().map_or(0, |node| node.entries());
                }
                if missing {
                    return None;
                }
                Node::verified(Body::Branch(entries, Box::new(children)), *digest)
            }
        };
        let node = Arc::new(node);
        complete(path, &node);
        Some(node)
    }
}
