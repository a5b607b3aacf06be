//! What is ordered for another replica's sake alone: little, and as much for each of them; and what a replica asks for.

use std::collections::BTreeMap;
use troth_types::{Digest, ReplicaId, Time};

/// The part of the request time-out in which a few frames are ordered again for each of the others: well before that other
/// has waited for half of it.
const PERIODS: u64 = 8;
/// The part of it in which no more is asked of a primary: two periods, so that no period of the primary's, whenever it
/// begins, sees more than is done in one.
const ASKING: u64 = 4;

/// What one replica was done, or what one asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
struct Share {
    frames: usize,
    bytes: usize,
}

impl Share {
    /// Whether a frame of this size goes with it. One does however large it is.
    fn has_room(self, bytes: usize, most_bytes: usize) -> bool {
        self.frames == 0 || self.frames < Favours::MOST && self.bytes.saturating_add(bytes) <= most_bytes
    }

    fn with(self, bytes: usize) -> Self {
        Self { frames: self.frames + 1, bytes: self.bytes.saturating_add(bytes) }
    }
}

/// What each of the others was done in its present period.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Favours {
    period: u64,
    most_bytes: usize,
    done: BTreeMap<ReplicaId, (Time, Share)>,
}

impl Favours {
    /// Frames ordered for each of the others in a period.
    pub const MOST: usize = 16;

    /// At most [`Self::MOST`] frames of together at most so many bytes for each of the others in an eighth of the request
    /// time-out, in microseconds. The first of a period may be larger.
    #[must_use]
    pub fn new(request_timeout: u64, most_bytes: usize) -> Self {
        Self { period: request_timeout / PERIODS, most_bytes, done: BTreeMap::new() }
    }

    /// One more frame, of this size, is asked for now; whether it is done.
    pub fn may(&mut self, replica: ReplicaId, now: Time, bytes: usize) -> bool {
        let (began, share) = self.done.entry(replica).or_insert((now, Share::default()));
        if now >= began.after(self.period) {
            (*began, *share) = (now, Share::default());
        }
        let may = share.has_room(bytes, self.most_bytes);
        if may {
            *share = share.with(bytes);
        }
        may
    }
}

/// The favours that a replica asks of primaries: no more than a correct one does it ([`Favours`] with the same values), so
/// that none of what it shows is in vain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FavoursAsked {
    period: u64,
    most_bytes: usize,
    /// The size of each frame that was shown of late, and when it was last.
    shown: BTreeMap<Digest, (usize, Time)>,
}

impl FavoursAsked {
    /// Of primaries with these [`Favours`].
    #[must_use]
    pub fn new(request_timeout: u64, most_bytes: usize) -> Self {
        Self { period: request_timeout / ASKING, most_bytes, shown: BTreeMap::new() }
    }

    /// Of frames that wait to be ordered again, with their sizes, oldest first: how many of the first ones are shown now.
    /// Those behind one that must wait do not go before it, or it might wait for ever.
    pub fn show(&mut self, frames: impl IntoIterator<Item = (Digest, usize)>, now: Time) -> usize {
        self.shown.retain(|_, (_, at)| at.after(self.period) > now);
        let mut count = 0;
        for (digest, bytes) in frames {
            let empty = Share::default();
            let share = self.shown.values().fold(empty, |share, (bytes, _)| share.with(*bytes));
            if !self.shown.contains_key(&digest) && !share.has_room(bytes, self.most_bytes) {
                break;
            }
            self.shown.insert(digest, (bytes, now));
            count += 1;
        }
        count
    }
}
