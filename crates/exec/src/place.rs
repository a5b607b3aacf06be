//! Places in a state's tree, and the pieces a replica serves for them (guide.md §1.5).
//!
//! A fetch with an empty path asks for the head: the agreed time and the root node. Any other path
//! is a list of places; the piece holds what stands there, as many from the front of the list as
//! fit. A place is `depth: u8 ‖ nibbles, two to a byte ‖ what: u8`, where `what` is [`NODE`] or the
//! number of a large value in the page at those nibbles.
//!
//! A path that begins with [`DIFFERENCES`] is a [`Question`]: it says of each place what the asker holds there, and
//! its piece holds what differs. The piece's path is the question's number alone. Earlier releases answer no such
//! path, so a question without places, whose answer is empty, finds out who does.

use crate::Tree;
use crate::delta::{Held, difference, whole};
pub(crate) use crate::map::MAX_DEPTH;
use crate::map::{Body, Node};
use bytes::Bytes;
use troth_types::{Digest, Hasher, Malformed, Reader, Seq, StateFetch, StatePiece, Time, Wire, put_bytes};

/// The most places in one fetch.
pub(crate) const MAX_PLACES: usize = 16;
/// A piece stops growing at this size; it may hold one larger item.
const PIECE_BYTES: usize = 512 << 10;
/// The most bytes of one item in a piece.
const MAX_ITEM_BYTES: usize = 1 << 24;
const NODE: u8 = u8::MAX;
/// No list of places begins so: no tree is that deep.
const DIFFERENCES: u8 = u8::MAX;
/// The most places in one question.
const MAX_ASKED: usize = 64;
/// A question stops growing at this size: a path has at most 1024 bytes.
const QUESTION_BYTES: usize = 900;
/// [`DIFFERENCES`] and the number.
const QUESTION_HEAD: usize = 5;
/// The path of the question without places.
pub(crate) const PROBE: &[u8] = &[DIFFERENCES, 0, 0, 0, 0];

/// The digest of a checkpoint: everything replicas must agree on after batch `seq`.
pub(crate) fn state_digest(seq: Seq, time: Time, root: &Digest) -> Digest {
    let mut hasher = Hasher::new("troth/state/v1");
    hasher.number(seq.0).number(time.0).digest(root);
    hasher.finish()
}

/// What stands at a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum What {
    /// A node of the tree.
    Node,
    /// A large value of the page there, by number.
    Blob(u8),
}

/// A place in the tree.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place {
    /// The way from the root, a nibble a step.
    pub(crate) nibbles: Vec<u8>,
    /// What stands there.
    pub(crate) what: What,
}

impl Wire for Place {
    fn encode(&self, out: &mut Vec<u8>) {
        out.push(u8::try_from(self.nibbles.len()).expect("the tree is 32 deep"));
        for pair in self.nibbles.chunks(2) {
            out.push(pair[0] << 4 | pair.get(1).copied().unwrap_or(0));
        }
        out.push(match self.what {
            What::Node => NODE,
            What::Blob(index) => index,
        });
    }
    fn decode(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        let depth = usize::from(u8::decode(reader)?);
        if depth > MAX_DEPTH {
            return Err(Malformed::TooLong("a place", depth as u64));
        }
        let mut nibbles = Vec::with_capacity(depth + 1);
        for _ in 0..depth.div_ceil(2) {
            let pair = u8::decode(reader)?;
            nibbles.extend([pair >> 4, pair & 15]);
        }
        if nibbles.len() > depth && nibbles.pop() != Some(0) {
            return Err(Malformed::Invalid("a place of odd depth ends in a zero nibble"));
        }
        let what = match u8::decode(reader)? {
            NODE => What::Node,
            index => What::Blob(index),
        };
        Ok(Self { nibbles, what })
    }
}

/// The path that asks for these places.
pub(crate) fn path_of(places: &[Place]) -> Bytes {
    let mut out = Vec::new();
    for place in places {
        place.encode(&mut out);
    }
    Bytes::from(out)
}

fn places_of(path: &Bytes) -> Result<Vec<Place>, Malformed> {
    let mut reader = Reader::new(path);
    let mut places = Vec::new();
    while reader.remaining() > 0 {
        if places.len() == MAX_PLACES {
            return Err(Malformed::TooLong("a list of places", MAX_PLACES as u64 + 1));
        }
        places.push(Place::decode(&mut reader)?);
    }
    Ok(places)
}

/// What stands at some places, asked by one who holds something there.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub(crate) struct Question {
    /// Told apart by it are the questions of one transfer.
    pub(crate) number: u32,
    /// The places, and what is held there.
    pub(crate) places: Vec<(Place, Held)>,
}

impl Question {
    /// Whether there is room for one more place.
    pub(crate) fn has_room(&self, size: usize) -> bool {
        self.places.len() < MAX_ASKED && size < QUESTION_BYTES
    }
}

impl Wire for Question {
    fn encode(&self, out: &mut Vec<u8>) {
        out.push(DIFFERENCES);
        self.number.encode(out);
        for (place, held) in &self.places {
            place.encode(out);
            held.encode(out);
        }
    }
    fn decode(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        match u8::decode(reader)? {
            DIFFERENCES => {}
            other => return Err(Malformed::Tag("a question", u64::from(other))),
        }
        let number = Wire::decode(reader)?;
        let mut places = Vec::new();
        while reader.remaining() > 0 {
            if places.len() == MAX_ASKED {
                return Err(Malformed::TooLong("a list of places", MAX_ASKED as u64 + 1));
            }
            places.push((Place::decode(reader)?, Held::decode(reader)?));
        }
        Ok(Self { number, places })
    }
}

/// Whether a path asks for differences, or is that of the answer.
pub(crate) fn is_question(path: &Bytes) -> bool {
    path.first() == Some(&DIFFERENCES)
}

/// The path of the piece that answers a path.
pub(crate) fn answer_of(path: &Bytes) -> Bytes {
    if is_question(path) { path.slice(..path.len().min(QUESTION_HEAD)) } else { path.clone() }
}

/// The head of a state as a piece.
pub(crate) fn head(time: Time, tree: &Tree) -> Bytes {
    let mut out = Vec::new();
    time.encode(&mut out);
    out.extend_from_slice(&tree.root().encoding());
    Bytes::from(out)
}

/// A head piece: the time and the root's encoding.
pub(crate) fn read_head(content: &Bytes) -> Option<(Time, Bytes)> {
    let mut reader = Reader::new(content);
    let time = Wire::decode(&mut reader).ok()?;
    Some((time, content.slice(content.len() - reader.remaining()..)))
}

/// The piece for a fetch from a tree; nothing where the path asks for what the tree does not have.
pub(crate) fn piece(time: Time, tree: &Tree, fetch: &StateFetch) -> Option<StatePiece> {
    let path = &fetch.path;
    let content = if path.is_empty() {
        head(time, tree)
    } else if is_question(path) {
        differences(tree, &Question::from_wire(path).ok()?)?
    } else {
        nodes(tree, &places_of(path).ok()?)?
    };
    Some(StatePiece { seq: fetch.seq, digest: fetch.digest, path: answer_of(path), content })
}

fn nodes(tree: &Tree, places: &[Place]) -> Option<Bytes> {
    let mut out = Vec::new();
    for place in places {
        if out.len() >= PIECE_BYTES {
            break;
        }
        let node = tree.root().at(&place.nibbles)?;
        match place.what {
            What::Node => put_bytes(&mut out, &node.encoding()),
            What::Blob(index) => put_bytes(&mut out, blob(node, index)?),
        }
    }
    Some(Bytes::from(out))
}

fn differences(tree: &Tree, question: &Question) -> Option<Bytes> {
    let mut out = Vec::new();
    for (place, held) in &question.places {
        if out.len() >= PIECE_BYTES {
            break;
        }
        let node = tree.root().at(&place.nibbles)?;
        match place.what {
            What::Node => put_bytes(&mut out, &difference(node, held)),
            What::Blob(index) => put_bytes(&mut out, &whole(blob(node, index)?)),
        }
    }
    Some(Bytes::from(out))
}

fn blob(node: &Node, index: u8) -> Option<&Bytes> {
    match node.body() {
        Body::Page(page) => page.blob(usize::from(index)),
        Body::Branch(..) => None,
    }
}

/// The items of a piece that is not a head: at least one, at most `limit`.
pub(crate) fn read_items(content: &Bytes, limit: usize) -> Option<Vec<Bytes>> {
    let mut reader = Reader::new(content);
    let mut items = Vec::new();
    while reader.remaining() > 0 {
        if items.len() == limit {
            return None;
        }
        items.push(reader.bytes("an item of a piece", MAX_ITEM_BYTES).ok()?);
    }
    (!items.is_empty()).then_some(items)
}
