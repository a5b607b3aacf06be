//! What each party costs this replica, and when it has to wait for it.
//!
//! A message that brings the group nothing costs time all the same: it is opened, decoded, checked. What such
//! messages cost is charged to whoever sent them. An account refills at a fixed rate; one that is overdrawn
//! leaves its party's lane unread until it has refilled, so the sender is slowed by TCP and everybody else goes
//! on. What is of use is never charged to a replica: a group under load must not slow itself.
//!
//! What clients cost is in `shares.rs`.

use std::cell::Cell;
use troth_types::{ReplicaId, Time};

/// Microseconds of useless work that a replica may cause per second, lasting.
const PEER_RATE: u64 = 50_000;
/// The same at once.
const PEER_BURST: u64 = 250_000;
/// Microseconds of work with frames that are held already and were not asked for that a replica may cause per second,
/// lasting. Honest ones cause some: a backup shows the primary 64 frames of 256 KiB together every 12 ms at most, by
/// default every 25 ms. That is 41 ms for their bytes and 20 ms for their number.
const AGAIN_RATE: u64 = 150_000;
/// The same at once.
const AGAIN_BURST: u64 = 1_000_000;
/// Bytes that a replica may send of held frames for each time that it is asked for frames: as many as an answer has.
const ANSWER: usize = 4 << 20;
/// The most of them that it may have left.
const MOST_ASKED: usize = 4 * ANSWER;
/// Microseconds of work with such frames that count as asked for per second, lasting. How often somebody is asked he may
/// bring about himself: a primary names to one replica what nobody has. What is beyond counts as not asked for.
const ASKED_RATE: u64 = 50_000;
/// The same at once: the largest answers that may be due.
const ASKED_BURST: u64 = 250_000;
/// Bytes of state and frames that a replica may fetch per second, lasting.
const FETCH_RATE: u64 = 32 << 20;
/// The same at once.
const FETCH_BURST: u64 = 64 << 20;

/// Bytes that cost a microsecond to open, decode and hash, about.
pub(crate) const BYTES_PER_MICRO: u64 = 256;
/// Microseconds that the smallest message costs before anybody looks into it.
const LEAST: u64 = 2;
/// An account that refills.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Account {
    rate: u64,
    burst: i64,
    /// The deepest debt.
    debt: i64,
    left: i64,
    at: Time,
}

impl Account {
    /// One that refills by so much a second, with so much at once, and whose debt is never deeper than that.
    pub(crate) fn new(rate: u64, burst: u64) -> Self {
        Self::with_debt(rate, burst, burst)
    }

    /// The same with another bound on its debt.
    pub(crate) fn with_debt(rate: u64, burst: u64, debt: u64) -> Self {
        let [burst, debt] = [burst, debt].map(|amount| i64::try_from(amount).expect("a constant"));
        Self { rate, burst, debt, left: burst, at: Time(0) }
    }

    /// Whether nothing of it is used.
    pub(crate) fn is_full(&self) -> bool {
        self.left == self.burst
    }

    pub(crate) fn refill(&mut self, now: Time) {
        let since = now.0.saturating_sub(self.at.0).min(1_000_000_000);
        let more = since * self.rate / 1_000_000;
        self.left = self.left.saturating_add_unsigned(more).min(self.burst);
        // What is less than a unit is not lost while it refills.
        self.at = if self.left == self.burst { now } else { self.at.after(more * 1_000_000 / self.rate) };
    }

    /// The same, and from now on so much a second.
    pub(crate) fn refill_from_now_at(&mut self, now: Time, rate: u64) {
        self.refill(now);
        self.rate = rate;
    }

    pub(crate) fn charge(&mut self, now: Time, cost: u64) {
        self.refill(now);
        // A pause of this process in the middle of a measurement must not silence anybody for minutes.
        self.left = self.left.saturating_sub_unsigned(cost).max(-self.debt);
    }

    /// Whether it is overdrawn, or would be by more than this.
    pub(crate) fn lacks(&mut self, now: Time, amount: u64) -> bool {
        self.refill(now);
        self.left.saturating_sub_unsigned(amount) < 0
    }

    /// When it is not overdrawn any more, if it is.
    pub(crate) fn overdrawn(&mut self, now: Time) -> Option<Time> {
        self.refill(now);
        let missing = u64::try_from(-self.left).ok().filter(|missing| *missing > 0)?;
        Some(now.after(missing.saturating_mul(1_000_000) / self.rate + 1))
    }
}

/// What decoding and checking a message cost, by its length and the time that it took.
pub(crate) fn cost(length: usize, spent: u64) -> u64 {
    LEAST + (length as u64 / BYTES_PER_MICRO).max(spent)
}

/// What replicas cost.
#[derive(Debug)]
pub(crate) struct PeerCharges {
    useless: Vec<Cell<Account>>,
    again: Vec<Cell<Account>>,
    /// Bytes of frames that each was asked for and has not sent, at most.
    asked: Vec<Cell<usize>>,
    /// What of that is for nothing.
    answers: Vec<Cell<Account>>,
    fetched: Vec<Cell<Account>>,
}

impl PeerCharges {
    pub(crate) fn new(replicas: usize) -> Self {
        Self {
            useless: vec![Cell::new(Account::new(PEER_RATE, PEER_BURST)); replicas],
            again: vec![Cell::new(Account::new(AGAIN_RATE, AGAIN_BURST)); replicas],
            asked: vec![Cell::new(0); replicas],
            answers: vec![Cell::new(Account::new(ASKED_RATE, ASKED_BURST)); replicas],
            fetched: vec![Cell::new(Account::new(FETCH_RATE, FETCH_BURST)); replicas],
        }
    }

    /// A replica caused so many microseconds of work that was of no use.
    pub(crate) fn useless(&self, replica: ReplicaId, now: Time, micros: u64) {
        with(&self.useless, replica, |account| account.charge(now, micros));
    }

    /// A replica is asked for frames: they are welcome, also those that another which was asked sends first.
    pub(crate) fn asks(&self, replica: ReplicaId) {
        let asked = &self.asked[usize::from(replica.0)];
        asked.set((asked.get() + ANSWER).min(MOST_ASKED));
    }

    /// A replica showed a frame of so many bytes that is held already. Whether it may have been asked for it, and has not
    /// been shown as many such as replicas are in a second.
    pub(crate) fn was_asked(&self, replica: ReplicaId, now: Time, bytes: usize) -> bool {
        let asked = &self.asked[usize::from(replica.0)];
        let left = asked.get().checked_sub(bytes);
        asked.set(left.unwrap_or(0));
        left.is_some()
            && with(&self.answers, replica, |account| {
                let took = cost(bytes, 0);
                let may = !account.lacks(now, took);
                if may {
                    account.charge(now, took);
                }
                may
            })
    }

    /// A replica caused so many microseconds of work with frames that are held already and that it was not asked for.
    pub(crate) fn again(&self, replica: ReplicaId, now: Time, micros: u64) {
        with(&self.again, replica, |account| account.charge(now, micros));
    }

    /// A replica was sent so many bytes that it had asked for.
    pub(crate) fn fetched(&self, replica: ReplicaId, now: Time, bytes: usize) {
        with(&self.fetched, replica, |account| account.charge(now, bytes as u64));
    }

    /// To find what a replica asked for took so many microseconds: beside the bytes of it that are sent it costs as many as are
    /// read in that time.
    pub(crate) fn looked_up(&self, replica: ReplicaId, now: Time, micros: u64) {
        let worth = micros.saturating_mul(BYTES_PER_MICRO);
        with(&self.fetched, replica, |account| account.charge(now, worth));
    }

    /// Until when nothing is read from a replica, if so.
    pub(crate) fn rests(&self, replica: ReplicaId, now: Time) -> Option<Time> {
        let useless = with(&self.useless, replica, |account| account.overdrawn(now));
        useless.max(with(&self.again, replica, |account| account.overdrawn(now)))
    }

    /// Until when a replica is sent nothing that it asked for, if so.
    pub(crate) fn may_fetch_from(&self, replica: ReplicaId, now: Time) -> Option<Time> {
        with(&self.fetched, replica, |account| account.overdrawn(now))
    }
}

fn with<T>(accounts: &[Cell<Account>], replica: ReplicaId, act: impl FnOnce(&mut Account) -> T) -> T {
    let cell = &accounts[usize::from(replica.0)];
    let mut account = cell.get();
    let result = act(&mut account);
    cell.set(account);
    result
}
