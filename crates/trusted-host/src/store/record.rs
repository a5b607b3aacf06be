//! The bytes of a record, and what may stand in its slot.

use super::directory::BootId;
use super::format::{BLOCK, Block, CHECKSUM, Decoder, Encoder, Layout, is_zero};
use super::subject::Subject;
use troth_trusted::Identity;

/// Where the second copy of a record begins in its slot.
const HALF: usize = BLOCK / 2;
const MAGIC: &[u8; 8] = b"TROTHREC";
/// Where the state begins in a record.
const STATE_AT: usize = 8 + 8 + 8 + 16;

/// Where a record has its kind, the length of its blob behind it.
const fn kind_at<S: Subject>() -> usize {
    STATE_AT + S::LENGTH
}

/// Length of a record of counters of version 1.
const fn plain<S: Subject>() -> usize {
    kind_at::<S>() + CHECKSUM
}

/// Length of any other record without a blob.
const fn shortest<S: Subject>() -> usize {
    kind_at::<S>() + 1 + 2 + CHECKSUM
}

/// The longest blob in bytes: what is left of half a block.
pub(super) const fn most_blob<S: Subject>() -> usize {
    HALF - shortest::<S>()
}

const START: u8 = 1;
const MOVE: u8 = 2;
const MOVE_BESIDE: u8 = 3;

/// One of the two copies in a slot, with the zeros behind it.
type Half = [u8; HALF];

/// Why a record was written.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    /// The store was opened.
    Start,
    /// A counter moved, or a file of logs begins. What was kept beside the moves before is needed no more.
    Move,
    /// A counter moved, with this blob beside it; or logs changed, and the blob says how.
    MoveBeside(Vec<u8>),
}

/// What one store writes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Record<S> {
    pub(super) generation: u64,
    pub(super) index: u64,
    pub(super) boot: BootId,
    pub(super) state: S,
    pub(super) kind: Kind,
}

impl Kind {
    fn code(&self) -> u8 {
        match self {
            Self::Start => START,
            Self::Move => MOVE,
            Self::MoveBeside(_) => MOVE_BESIDE,
        }
    }

    fn blob(&self) -> &[u8] {
        match self {
            Self::Start | Self::Move => &[],
            Self::MoveBeside(blob) => blob,
        }
    }
}

impl<S: Subject> Record<S> {
    /// Writes the slot of this record into `block`, all of it. The blob has at most [`most_blob`] bytes.
    pub(super) fn fill(&self, layout: Layout, block: &mut Block) {
        block.fill(0);
        let (first, second) = block.split_at_mut(HALF);
        let mut out = Encoder { out: first, at: 0 };
        out.put(MAGIC);
        out.put(&self.generation.to_be_bytes());
        out.put(&self.index.to_be_bytes());
        out.put(&self.boot.0);
        self.state.put(&mut out);
        if layout != Layout::Plain {
            let blob = self.kind.blob();
            out.put(&[self.kind.code()]);
            out.put(&(blob.len() as u16).to_be_bytes());
            out.put(blob);
        }
        out.checksum();
        second.copy_from_slice(first);
    }

    /// The record that a copy begins with, and where it ends there.
    fn from_copy(copy: &Half, layout: Layout) -> Option<(Self, usize)> {
        let end = match layout {
            Layout::Plain => plain::<S>(),
            Layout::WithBlobs | Layout::Based => shortest::<S>() + usize::from(length_in::<S>(copy)),
        };
        let mut parts = Decoder::opened_unversioned(copy.get(..end)?, MAGIC)?;
        let (generation, index) = (parts.number()?, parts.number()?);
        let boot = BootId(parts.take()?);
        let state = S::from_part(parts.part(S::LENGTH)?)?;
        let kind = match layout {
            // What kind it was is not told there, and as there are no blobs nothing depends on it.
            Layout::Plain => Kind::Move,
            Layout::WithBlobs | Layout::Based => {
                let [code, _, _] = parts.take()?;
                match (code, parts.0) {
                    (START, []) => Kind::Start,
                    (MOVE, []) => Kind::Move,
                    (MOVE_BESIDE, blob) => Kind::MoveBeside(blob.to_vec()),
                    _ => return None,
                }
            }
        };
        Some((Self { generation, index, boot, state, kind }, end))
    }
}

/// The length of the blob as it stands in a copy.
fn length_in<S: Subject>(copy: &Half) -> u16 {
    u16::from_be_bytes([copy[kind_at::<S>() + 1], copy[kind_at::<S>() + 2]])
}

/// Where the record ends at the latest of which these bytes are left, those that are missing being zero;
/// `None` if there is none.
fn longest<S: Subject>(copy: &Half, layout: Layout) -> Option<usize> {
    if layout == Layout::Plain {
        return Some(plain::<S>());
    }
    // Zeros may be missing bytes, so this is the shortest length, and with ones in their place the longest.
    let length = usize::from(length_in::<S>(copy));
    let missing = |byte: u8| if byte == 0 { 0xFF } else { byte };
    match copy[kind_at::<S>()] {
        START | MOVE => (length == 0).then_some(shortest::<S>()),
        0 | MOVE_BESIDE if length <= most_blob::<S>() => {
            let most = length_in::<S>(copy).to_be_bytes().map(missing);
            Some(shortest::<S>() + usize::from(u16::from_be_bytes(most)).min(most_blob::<S>()))
        }
        _ => None,
    }
}

/// What stands in a slot.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Slot<S> {
    /// Nothing but zeros: never written.
    Empty,
    /// A record, as it was written.
    Whole(Box<Record<S>>),
    /// A record that can be read, of a write that did not reach its end.
    Partly(Box<Record<S>>),
    /// A write that was interrupted before a record could be read from it.
    Torn,
    /// What neither a record nor an interrupted write leaves.
    Damaged(&'static str),
}

/// The record that belongs into a slot by its place.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    pub(super) layout: Layout,
    pub(super) generation: u64,
    pub(super) index: u64,
    pub(super) identity: Identity,
}

/// A damaged place that reaches over the end of one copy into the other leaves a record readable if it is
/// shorter than half a block by this.
const SPLICE: usize = 64;

impl<S: Subject> Slot<S> {
    /// Tells what stands in the slot at this place.
    ///
    /// An interrupted write leaves some bytes of its block as they were, zero. An acknowledged record
    /// stands there twice and whole. So where one can be read from the copies, that is the newest record
    /// whatever became of the rest; and a record can be lost only with the same bytes of both copies, never
    /// by one damaged place, also where a long blob lets the copies touch. A byte that is neither as written
    /// nor zero was not left by any write of ours. Move and blob are under one checksum, so there is never
    /// one without the other.
    pub(super) fn read(block: &Block, place: &Place) -> Self {
        if is_zero(block) {
            return Self::Empty;
        }
        let (first, second) = halves(block);
        let Some((record, written)) = readable::<S>(&first, &second, place.layout) else {
            return Self::unreadable(&first, &second, place);
        };
        if !place.is_of(&record) {
            return Self::Damaged("a record of another place");
        }
        let whole = first == written && second == written;
        let interrupted = || may_be_part(&first, &written) && may_be_part(&second, &written);
        match whole {
            true => Self::Whole(Box::new(record)),
            false if interrupted() => Self::Partly(Box::new(record)),
            false => Self::Damaged("a record whose two copies differ, or bytes beside it"),
        }
    }

    /// What stands in a slot of which no copy can be read.
    fn unreadable(first: &Half, second: &Half, place: &Place) -> Self {
        let mut known = [0; HALF];
        let known_length = place.known::<S>(&mut known);
        for copy in [first, second] {
            if !may_be_part(&copy[..8 * 3], &known[..8 * 3])
                || !may_be_part(&copy[STATE_AT..known_length], &known[STATE_AT..known_length])
            {
                return Self::Damaged("neither a record nor a part of the one that belongs here");
            }
        }
        let mut joined = [0; HALF];
        for ((joined, one), other) in joined.iter_mut().zip(first).zip(second) {
            if one != other && *one != 0 && *other != 0 {
                return Self::Damaged("two copies that no single write left");
            }
            *joined = one | other;
        }
        let record = Record::<S>::from_copy(&joined, place.layout);
        let end = record.as_ref().map(|(_, end)| *end).or_else(|| longest::<S>(&joined, place.layout));
        match (record, end) {
            (_, None) => Self::Damaged("a record of no kind that there is"),
            (_, Some(end)) if !is_zero(&joined[end..]) => {
                Self::Damaged("bytes that are not zero beside the record")
            }
            (Some((record, _)), _) if place.is_of(&record) => Self::Partly(Box::new(record)),
            (Some(_), _) => Self::Damaged("a record of another place"),
            (None, _) => Self::Torn,
        }
    }
}

impl Place {
    fn is_of<S: Subject>(&self, record: &Record<S>) -> bool {
        record.generation == self.generation
            && record.index == self.index
            && record.state.identity() == self.identity
    }

    /// Puts down those bytes of a record at this place that do not depend on the counters (not the
    /// boot id, which may be of an earlier boot), and returns where they end.
    fn known<S: Subject>(&self, out: &mut Half) -> usize {
        let mut out = Encoder { out, at: 0 };
        out.put(MAGIC);
        out.put(&self.generation.to_be_bytes());
        out.put(&self.index.to_be_bytes());
        out.put(&[0; 16]);
        out.put(S::TAG);
        out.identity(&self.identity);
        out.at
    }
}

fn halves(block: &Block) -> (Half, Half) {
    let (mut first, mut second) = ([0; HALF], [0; HALF]);
    first.copy_from_slice(&block[..HALF]);
    second.copy_from_slice(&block[HALF..]);
    (first, second)
}

/// The record that can be read from the first copy, from the second, or from the beginning of the first
/// and the rest of the second, with the copy as it was written.
fn readable<S: Subject>(first: &Half, second: &Half, layout: Layout) -> Option<(Record<S>, Half)> {
    (0..=HALF / SPLICE).rev().find_map(|parts| {
        let cut = parts * SPLICE;
        let mut copy = *second;
        copy[..cut].copy_from_slice(&first[..cut]);
        let (record, end) = Record::from_copy(&copy, layout)?;
        copy[end..].fill(0);
        Some((record, copy))
    })
}

/// Whether `found` is what an interrupted write of `written` over zeros can leave.
fn may_be_part(found: &[u8], written: &[u8]) -> bool {
    found.iter().zip(written).all(|(found, written)| *found == 0 || found == written)
}
