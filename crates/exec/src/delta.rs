//! What a replica says of a node that it holds where another stands in the target, and what it is answered: only
//! what differs. A fingerprint is two bytes, so two different things share one now and then; what is put together
//! counts only once it has the digest that the parent names, and is asked for whole otherwise.
//!
//! An answer is `0 ‖ the item whole`, `1 ‖ which entries of the held page stay, a bit each ‖ the other entries` or
//! `2 ‖ mask: u16 ‖ which children of the held branch stay: u16 ‖ the digests of the others`.

use crate::map::{BRANCH_TAG, Body, MOST_ENTRIES, Node, WIDTH, entry_at, page_of_entries};
use bytes::Bytes;
use troth_types::{Hasher, Malformed, Reader, Wire};

/// The most entries of a page of which fingerprints are sent. All pages but those of colliding positions have fewer.
const MAX_ENTRIES: usize = 32;
const WHOLE: u8 = 0;
const PAGE: u8 = 1;
const BRANCH: u8 = 2;

type Fingerprint = [u8; 2];

/// What is held at a place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Held {
    /// Nothing that could help.
    Nothing,
    /// A page with these entries.
    Page(Vec<Fingerprint>),
    /// A branch with children at these nibbles.
    Branch(u16, Vec<Fingerprint>),
}

fn of_entry(entry: &[u8]) -> Fingerprint {
    let mut hasher = Hasher::new("troth/entry/v1");
    hasher.fixed(entry);
    let digest = hasher.finish();
    [digest.0[0], digest.0[1]]
}

impl Held {
    /// What to say of a node.
    pub(crate) fn of(node: &Node) -> Self {
        match node.body() {
            Body::Page(page) if page.len() > MAX_ENTRIES => Self::Nothing,
            Body::Page(page) => Self::Page(page.entries().map(|entry| of_entry(page.raw(&entry))).collect()),
            Body::Branch(_, children) => {
                let mut mask = 0;
                let mut fingerprints = Vec::with_capacity(WIDTH);
                for (nibble, child) in children.iter().enumerate() {
                    let Some(child) = child else { continue };
                    mask |= 1 << nibble;
                    let digest = child.digest();
                    fingerprints.push([digest.0[0], digest.0[1]]);
                }
                Self::Branch(mask, fingerprints)
            }
        }
    }
}

impl Wire for Held {
    fn encode(&self, out: &mut Vec<u8>) {
        let fingerprints = match self {
            Self::Nothing => return out.push(WHOLE),
            Self::Page(fingerprints) => {
                out.push(PAGE);
                out.push(u8::try_from(fingerprints.len()).expect("larger pages are not told of"));
                fingerprints
            }
            Self::Branch(mask, fingerprints) => {
                out.push(BRANCH);
                mask.encode(out);
                fingerprints
            }
        };
        out.extend_from_slice(fingerprints.as_flattened());
    }
    fn decode(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        let read = |reader: &mut Reader<'_>, count: usize| {
            (0..count).map(|_| Ok([u8::decode(reader)?, u8::decode(reader)?])).collect::<Result<Vec<_>, _>>()
        };
        match u8::decode(reader)? {
            WHOLE => Ok(Self::Nothing),
            PAGE => {
                let count = usize::from(u8::decode(reader)?);
                if count > MAX_ENTRIES {
                    return Err(Malformed::TooLong("the entries of a page", count as u64));
                }
                Ok(Self::Page(read(reader, count)?))
            }
            BRANCH => {
                let mask = u16::decode(reader)?;
                Ok(Self::Branch(mask, read(reader, mask.count_ones() as usize)?))
            }
            other => Err(Malformed::Tag("what is held", u64::from(other))),
        }
    }
}

/// The answer that holds an item whole.
pub(crate) fn whole(item: &[u8]) -> Vec<u8> {
    [&[WHOLE], item].concat()
}

/// The answer for a node to whoever holds this in its place.
pub(crate) fn difference(node: &Node, held: &Held) -> Vec<u8> {
    match (node.body(), held) {
        (Body::Page(page), Held::Page(fingerprints)) => {
            let mut out = vec![0; 1 + fingerprints.len().div_ceil(8)];
            out[0] = PAGE;
            let mut next = 0;
            for entry in page.entries() {
                let raw = page.raw(&entry);
                let own = of_entry(raw);
                match fingerprints[next..].iter().position(|held| *held == own) {
                    Some(ahead) => {
                        let index = next + ahead;
                        out[1 + index / 8] |= 1 << (index % 8);
                        next = index + 1;
                    }
                    None => out.extend_from_slice(raw),
                }
            }
            out
        }
        (Body::Branch(_, children), Held::Branch(held_mask, fingerprints)) => {
            let (mut mask, mut kept) = (0_u16, 0_u16);
            let mut out = vec![BRANCH, 0, 0, 0, 0];
            let mut held = fingerprints.iter();
            for (nibble, child) in children.iter().enumerate() {
                let bit = 1 << nibble;
                let fingerprint = if held_mask & bit != 0 { held.next() } else { None };
                let Some(child) = child else { continue };
                mask |= bit;
                let digest = child.digest();
                if fingerprint.is_some_and(|held| digest.0.starts_with(held)) {
                    kept |= bit;
                } else {
                    out.extend_from_slice(&digest.0);
                }
            }
            out[1..3].copy_from_slice(&mask.to_le_bytes());
            out[3..5].copy_from_slice(&kept.to_le_bytes());
            out
        }
        _ => whole(&node.encoding()),
    }
}

/// An answer.
#[derive(Debug)]
pub(crate) enum Item {
    /// The item itself.
    Whole(Bytes),
    /// What comes of the held node; another than was meant where fingerprints were alike.
    Changed(Bytes),
}

/// Reads an answer to what was said of `held`; nothing where it is none.
pub(crate) fn read_difference(answer: &Bytes, held: Option<&Node>) -> Option<Item> {
    let rest = answer.get(1..)?;
    match (answer[0], held.map(Node::body)) {
        (WHOLE, _) => Some(Item::Whole(answer.slice(1..))),
        (PAGE, Some(Body::Page(page))) => {
            let (stays, mut others) = rest.split_at_checked(page.len().div_ceil(8))?;
            let mut merged = Vec::with_capacity(2 * page.len());
            for (index, entry) in page.entries().enumerate() {
                if stays[index / 8] & (1 << (index % 8)) != 0 {
                    merged.push((entry.key, page.raw(&entry)));
                }
            }
            while !others.is_empty() {
                let (key, end) = entry_at(others, 0)?;
                // An answer may be as long as a piece, and an entry as short as its lengths: millions would be sorted.
                if merged.len() == usize::from(MOST_ENTRIES) {
                    return None;
                }
                merged.push((key, &others[..end]));
                others = &others[end..];
            }
            merged.sort_by_key(|(key, _)| *key);
            Some(Item::Changed(page_of_entries(merged.iter().map(|(_, raw)| *raw))?))
        }
        (BRANCH, Some(Body::Branch(_, children))) => {
            let (masks, mut digests) = rest.split_at_checked(4)?;
            let mask = u16::from_le_bytes([masks[0], masks[1]]);
            let kept = u16::from_le_bytes([masks[2], masks[3]]);
            let mut bytes = vec![BRANCH_TAG, masks[0], masks[1]];
            for (nibble, child) in children.iter().enumerate().filter(|(nibble, _)| mask & (1 << nibble) != 0)
            {
                if kept & (1 << nibble) != 0 {
                    bytes.extend_from_slice(&child.as_ref()?.digest().0);
                } else {
                    let (digest, after) = digests.split_at_checked(32)?;
                    bytes.extend_from_slice(digest);
                    digests = after;
                }
            }
            digests.is_empty().then(|| Item::Changed(Bytes::from(bytes)))
        }
        _ => None,
    }
}
