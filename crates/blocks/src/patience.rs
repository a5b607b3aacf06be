//! What is borne of a primary before it is found slow or unfair, as parts of a request's time-out and multiples of what
//! the others take (ADR 3); and which requests it was shown.

use std::collections::VecDeque;
use troth_types::{ClientId, Digest, Limits, Seq, Time};

/// Looks at a primary in the time after which the oldest request makes it suspected.
const LOOKS: u64 = 4;
/// Looks that a new primary is spared: it begins with what the last one left.
const SPARED: u64 = 2;
/// The part of the request time-out that no primary is blamed for.
const LEAST: u64 = 256;
/// The part of it that a single request may wait while others overtake it.
const OVERTAKEN: u64 = 20;
/// So many times what requests may typically wait.
const SINGLE: u64 = 8;
/// Clients of whom one does not make the middle.
const SEVERAL: usize = 3;
/// The most batches that a primary has time for: what it does not order is its own backlog, too.
const MOST_ROUNDS: usize = 8;

/// Times are microseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Patience {
    /// How long a request may wait for its execution before its primary is suspected for that alone.
    pub request_timeout: u64,
    /// So many agreements of the others a request may typically wait, for each batch before it.
    pub slower_by: u64,
    /// How long frames take that the primary alone was shown, and that are asked of it.
    pub fetched: u64,
}

impl Patience {
    /// Between two looks at the primary.
    #[must_use]
    pub fn between_looks(&self) -> u64 {
        self.request_timeout / LOOKS
    }

    /// How long a new primary is spared.
    #[must_use]
    pub fn spared(&self) -> u64 {
        SPARED * self.request_timeout / LOOKS
    }

    /// So many agreements requests may typically wait where so many frames, of so many bytes, are still to be ordered in
    /// batches of at most `batch_bytes`.
    #[must_use]
    pub fn agreements(&self, frames: usize, bytes: usize, limits: &Limits, batch_bytes: usize) -> u64 {
        let rounds = 1 + frames / limits.batch_frames + bytes / batch_bytes;
        rounds.min(MOST_ROUNDS) as u64 * self.slower_by
    }

    /// What nobody is blamed for, where so many clients have a say.
    #[must_use]
    pub fn least(&self, clients: Option<usize>) -> u64 {
        let alone = clients.is_some_and(|clients| clients < SEVERAL);
        let shown = if alone { self.request_timeout / OVERTAKEN } else { 0 };
        self.request_timeout / LEAST + self.fetched + shown
    }

    /// How long a single request may wait while others overtake it, where an agreement takes so long.
    #[must_use]
    pub fn overtaken(&self, agreement: Option<u64>) -> u64 {
        let usual = agreement.unwrap_or(0).saturating_mul(self.slower_by * SINGLE);
        (self.request_timeout / OVERTAKEN).max(usual)
    }
}

/// The requests that were shown to the primary and by which it is judged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shown {
    /// Their places in the order of arrival, each with its client.
    pub requests: Vec<(u64, ClientId)>,
    /// When they were shown first.
    pub at: Time,
    /// Whether they were shown twice: once may have been lost.
    pub again: bool,
}

impl Shown {
    /// The most requests shown at once.
    pub const MOST: usize = 64;
    /// The most bytes of them, unless the oldest alone has more: they are shown again and again, and whoever has them already
    /// is held up by each time.
    pub const MOST_BYTES: usize = 256 << 10;

    /// These are shown now, after `before`, whose requests are the first of them that still wait. Where there are such, the
    /// first time counts, and what is shown beside them is not judged.
    #[must_use]
    pub fn after(before: Option<Self>, requests: &[(u64, Digest, ClientId)], now: Time) -> Option<Self> {
        let has = |before: &Self| requests.iter().any(|(order, ..)| before.has(*order));
        if let Some(before) = before.filter(has) {
            return Some(Self { again: true, ..before });
        }
        let requests: Vec<_> = requests.iter().map(|(order, _, client)| (*order, *client)).collect();
        (!requests.is_empty()).then_some(Self { requests, at: now, again: false })
    }

    /// Whether a request, by its place in the order of arrival, is among them.
    #[must_use]
    pub fn has(&self, request: u64) -> bool {
        self.requests.iter().any(|(order, _)| *order == request)
    }

    /// Whether one of a client is among them.
    #[must_use]
    pub fn has_of(&self, client: ClientId) -> bool {
        self.requests.iter().any(|(_, other)| *other == client)
    }
}

/// From when on batches waited for nothing of the primary's, until their execution is known.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct OrderedAt(VecDeque<(Seq, Time)>);

impl OrderedAt {
    /// Of this batch, since then; batches come in order.
    pub fn note(&mut self, seq: Seq, at: Time) {
        self.0.push_back((seq, at));
    }

    /// Of a batch that is executed now; the beginning of time where that was never noted.
    pub fn take(&mut self, seq: Seq) -> Time {
        while let Some((first, at)) = self.0.front().copied() {
            if first > seq {
                break;
            }
            self.0.pop_front();
            if first == seq {
                return at;
            }
        }
        Time(0)
    }

    /// Forgets all.
    pub fn clear(&mut self) {
        self.0.clear();
    }
}

/// How late a replica comes to what is due: on a machine that has other things to do each of its steps waits as long,
/// whatever the primary does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Lateness {
    sum: u64,
    count: u64,
    mean: u64,
}

impl Lateness {
    /// Something that was due then is done now.
    pub fn note(&mut self, due: Time, now: Time) {
        self.sum = self.sum.saturating_add(now.0.saturating_sub(due.0));
        self.count += 1;
    }

    /// Takes the mean of what was noted since it was taken last.
    pub fn take(&mut self) -> u64 {
        self.mean = self.sum.checked_div(self.count).unwrap_or(self.mean);
        (self.sum, self.count) = (0, 0);
        self.mean
    }

    /// The mean that was taken last.
    #[must_use]
    pub fn mean(&self) -> u64 {
        self.mean
    }
}
