//! What each party costs this replica, and when it has to wait for it.
//!
//! A message that brings the group nothing costs time all the same: it is opened, decoded, checked. What such
//! messages cost is charged to whoever sent them. An account refills at a fixed rate; one that is overdrawn
//! leaves its party's lane unread until it has refilled, so the sender is slowed by TCP and everybody else goes
//! on. What is of use is never charged to a replica: a group under load must not slow itself.
//!
//! Clients share a turn besides: while a request of another client waits, one that has had more than the others
//! on average waits. Alone it may take everything. One whose frames or reads take much longer than those of the others has
//! an eighth of the time while they wait, whether there is more or not: clients that go on when they have their results
//! get as much less done as each of these delays them, however idle the processors are.

use crate::execution_costs::Executed;
use std::cell::Cell;
use std::collections::BTreeMap;
use troth_types::{ClientId, ReplicaId, Time};

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
/// Microseconds of useless work that a client may cause per second, lasting.
const CLIENT_RATE: u64 = 10_000;
/// The same at once.
const CLIENT_BURST: u64 = 100_000;
/// Bytes of state and frames that a replica may fetch per second, lasting.
const FETCH_RATE: u64 = 32 << 20;
/// The same at once.
const FETCH_BURST: u64 = 64 << 20;

/// Bytes that cost a microsecond to open, decode and hash, about.
const BYTES_PER_MICRO: u64 = 256;
/// Microseconds that the smallest message costs before anybody looks into it.
const LEAST: u64 = 2;
/// Microseconds to check a client's signature and to have its frame ordered and executed, about.
const FRAME: u64 = 40;
/// Of these, those to execute it.
const EXECUTION: u64 = 10;
/// Frames over which it is judged what those that follow take to execute. In the middle, and not as the dearest: a frame in
/// whose midst another process had the processor says nothing, and what a client may have under way is bounded.
const JUDGED: u64 = 8;
/// The same of a read.
const READ: u64 = 10;

/// What a read of a client may take of whom nothing is known: the first twenty go together.
const UNKNOWN_READ: u64 = 500;
/// What a read may take at least, however little those before it took: what follows cheap ones may cost as much as any, and
/// all that a turn takes is answered before other clients are heard.
pub(crate) const LEAST_READ: u64 = 200;

/// Between two times that what clients have had fades: by an eighth.
const FADE: u64 = 5_000;
/// Microseconds that a frame or a read takes at least to count as long: nothing else is done meanwhile, at any replica.
const LONG: u64 = 1_000;
/// How many times as long as those of the other clients on average it must be.
const LONGER: u64 = 4;
/// Microseconds per second for which a client may have what is long executed while others wait, lasting: an eighth.
const LONG_RATE: u64 = 125_000;
/// The same at once.
const LONG_BURST: u64 = 50_000;
/// Microseconds that a client may have had whatever the others have had.
const FLOOR: u64 = 750;
/// How long a client that has had its share waits before it is looked at again.
const REST: u64 = 2_000;
/// Microseconds for which frames of one client that a turn takes may be executed while others wait.
const OF_ONE: u64 = 2_000;
/// How long a client counts as one that waits after its last request: one that goes on when it has its results asks again.
const ASKED_LATELY: u64 = 50_000;
/// How long a request counts as waiting that nothing answers: it may be one that never will be.
const WAITS: u64 = 1_000_000;

/// An account that refills.
#[derive(Clone, Copy, Debug)]
struct Account {
    rate: u64,
    burst: i64,
    left: i64,
    at: Time,
}

impl Account {
    fn new(rate: u64, burst: u64) -> Self {
        let burst = i64::try_from(burst).expect("a constant");
        Self { rate, burst, left: burst, at: Time(0) }
    }

    fn refill(&mut self, now: Time) {
        let since = now.0.saturating_sub(self.at.0).min(1_000_000_000);
        let more = since * self.rate / 1_000_000;
        self.left = self.left.saturating_add_unsigned(more).min(self.burst);
        // What is less than a unit is not lost while it refills.
        self.at = if self.left == self.burst { now } else { self.at.after(more * 1_000_000 / self.rate) };
    }

    fn charge(&mut self, now: Time, cost: u64) {
        self.refill(now);
        // A pause of this process in the middle of a measurement must not silence anybody for minutes.
        self.left = self.left.saturating_sub_unsigned(cost).max(-self.burst);
    }

    /// When it is not overdrawn any more, if it is.
    fn overdrawn(&mut self, now: Time) -> Option<Time> {
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
    fetched: Vec<Cell<Account>>,
}

impl PeerCharges {
    pub(crate) fn new(replicas: usize) -> Self {
        Self {
            useless: vec![Cell::new(Account::new(PEER_RATE, PEER_BURST)); replicas],
            again: vec![Cell::new(Account::new(AGAIN_RATE, AGAIN_BURST)); replicas],
            asked: vec![Cell::new(0); replicas],
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

    /// A replica showed a frame of so many bytes that is held already. Whether it may have been asked for it.
    pub(crate) fn was_asked(&self, replica: ReplicaId, bytes: usize) -> bool {
        let asked = &self.asked[usize::from(replica.0)];
        let left = asked.get().checked_sub(bytes);
        asked.set(left.unwrap_or(0));
        left.is_some()
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

/// One client.
#[derive(Debug)]
struct Share {
    useless: Account,
    /// What it may have of what takes long.
    long: Account,
    /// Microseconds that it has had, fading.
    had: u64,
    /// Microseconds that its reads took of late, each.
    reads_take: u64,
    /// Microseconds that its frames took of late to be executed, each.
    frames_take: u64,
    /// Whether any was executed.
    known: bool,
    /// The last turn that took frames of it, and for how many microseconds they are executed, to judge by those before them.
    taken: (u64, u64),
    /// Whether it is one of those that have asked lately.
    asking: bool,
    /// Requests taken from it and not answered.
    waiting: u32,
    asked: Time,
}

/// What clients cost.
#[derive(Debug, Default)]
pub(crate) struct ClientCharges {
    clients: BTreeMap<ClientId, Share>,
    faded: Time,
    /// All that the clients have had, how many have had something, and how many wait.
    had: u64,
    active: u64,
    waiting: u64,
    /// Microseconds that a frame takes of each of them together, and of how many that is known.
    frames_take: u64,
    known: u64,
    /// The number of the turn.
    turn: u64,
    /// How many have asked lately, at the last fading.
    asking: u64,
    /// Whether clients want more than the last turns could take: only then is there anything to share.
    contended: bool,
}

impl ClientCharges {
    /// Notes whether a turn left something of clients for the next, as it ends.
    pub(crate) fn contended(&mut self, contended: bool) {
        self.contended = contended;
        self.turn += 1;
    }

    fn share(&mut self, client: ClientId) -> &mut Share {
        self.clients.entry(client).or_insert(Share {
            useless: Account::new(CLIENT_RATE, CLIENT_BURST),
            long: Account::new(LONG_RATE, LONG_BURST),
            had: 0,
            // Not known: one that asks for much at once must not have all of it taken before the first is done.
            reads_take: UNKNOWN_READ,
            // Not known either, but no more of them are under way than its window has.
            frames_take: 0,
            known: false,
            taken: (0, 0),
            asking: false,
            waiting: 0,
            asked: Time(0),
        })
    }

    fn add(&mut self, client: ClientId, micros: u64) {
        let share = self.share(client);
        let news = u64::from(share.had == 0 && micros > 0);
        share.had += micros;
        self.active += news;
        self.had += micros;
    }

    /// A request of so many bytes was taken, and its client waits for this replica's answer or for others'.
    pub(crate) fn asked(&mut self, client: ClientId, now: Time, bytes: usize, waits: bool) {
        self.add(client, FRAME + bytes as u64 / BYTES_PER_MICRO * 2);
        if !waits {
            return;
        }
        let share = self.share(client);
        let news = u64::from(share.waiting == 0);
        share.waiting += 1;
        share.asked = now;
        self.waiting += news;
    }

    /// A frame of this client was taken. How many microseconds it may take to be executed, to judge by those before it.
    pub(crate) fn frame_takes(&mut self, client: ClientId) -> u64 {
        let turn = self.turn;
        let share = self.share(client);
        let before = if share.taken.0 == turn { share.taken.1 } else { 0 };
        share.taken = (turn, before + share.frames_take);
        share.frames_take
    }

    /// Frames of a client have been executed.
    pub(crate) fn executed(&mut self, client: ClientId, now: Time, executed: Executed) {
        let count = u64::from(executed.frames).max(1);
        let micros = u64::try_from(executed.took.as_micros()).unwrap_or(u64::MAX);
        self.add(client, micros.saturating_sub(count * EXECUTION));
        let share = self.share(client);
        let (weight, before) = (count.min(JUDGED), share.frames_take);
        share.frames_take = (before * (JUDGED - weight) + micros / count * weight) / JUDGED;
        share.long.charge(now, micros);
        let (news, after) = (u64::from(!std::mem::replace(&mut share.known, true)), share.frames_take);
        self.known += news;
        self.frames_take = self.frames_take + after - before;
    }

    /// A read of so many bytes was taken. How many microseconds it may take, to judge by those before it.
    pub(crate) fn read(&mut self, client: ClientId, bytes: usize) -> u64 {
        self.add(client, READ + bytes as u64 / BYTES_PER_MICRO);
        self.share(client).reads_take
    }

    /// A read, or an answer that was wanted again, took so many microseconds, whatever was sent of it.
    pub(crate) fn served(&mut self, client: ClientId, now: Time, micros: u64) {
        self.add(client, micros.saturating_sub(READ));
        let share = self.share(client);
        share.long.charge(now, micros);
        // Up at once and down slowly: who mixes dear reads with cheap ones must not have them taken for cheap ones.
        share.reads_take = micros.max(share.reads_take - share.reads_take.div_ceil(16));
    }

    /// A client was sent so many bytes; `outcome`: of a request.
    pub(crate) fn answered(&mut self, client: ClientId, bytes: usize, outcome: bool) {
        self.add(client, bytes as u64 / BYTES_PER_MICRO);
        let share = self.share(client);
        if outcome && share.waiting > 0 {
            share.waiting -= 1;
            self.waiting -= u64::from(share.waiting == 0);
        }
    }

    /// A client caused so many microseconds of work that was of no use.
    pub(crate) fn useless(&mut self, client: ClientId, now: Time, micros: u64) {
        self.share(client).useless.charge(now, micros);
    }

    /// Until when nothing is read from a client, if so.
    pub(crate) fn rests(&mut self, client: ClientId, now: Time) -> Option<Time> {
        let share = self.clients.get_mut(&client)?;
        if let Some(until) = share.useless.overdrawn(now) {
            return Some(until);
        }
        let others = self.active.saturating_sub(u64::from(share.had > 0));
        let waiting = self.waiting - u64::from(share.waiting > 0);
        let asking = self.asking - u64::from(share.asking);
        let beside = asking.max(waiting) > 0;
        if beside && share.taken.0 == self.turn && share.taken.1 >= OF_ONE {
            return Some(now);
        }
        let known = self.known - u64::from(share.known);
        let takes = (self.frames_take - share.frames_take).checked_div(known).unwrap_or(0);
        let longest = share.frames_take.max(share.reads_take);
        if longest >= LONG && longest > LONGER * takes && beside && share.long.overdrawn(now).is_some() {
            return Some(now.after(REST));
        }
        if !self.contended || others == 0 || waiting == 0 {
            return None;
        }
        let average = (self.had - share.had) / others;
        (share.had > average + average / 2 + FLOOR).then(|| now.after(REST))
    }

    /// Lets what was had fade, and forgets whoever has had nothing for long.
    pub(crate) fn fade(&mut self, now: Time) {
        let rounds = now.0.saturating_sub(self.faded.0) / FADE;
        if rounds == 0 {
            return;
        }
        self.faded = now;
        (self.had, self.active, self.waiting) = (0, 0, 0);
        (self.frames_take, self.known, self.asking) = (0, 0, 0);
        self.clients.retain(|_, share| {
            for _ in 0..rounds.min(64) {
                share.had -= share.had.div_ceil(8);
            }
            if now.0.saturating_sub(share.asked.0) > WAITS {
                share.waiting = 0;
            }
            share.useless.refill(now);
            share.long.refill(now);
            self.had += share.had;
            self.active += u64::from(share.had > 0);
            self.waiting += u64::from(share.waiting > 0);
            let full = |account: &Account| account.left == account.burst;
            let stays = share.had > 0 || share.waiting > 0 || !full(&share.useless) || !full(&share.long);
            self.frames_take += if stays { share.frames_take } else { 0 };
            self.known += u64::from(stays && share.known);
            share.asking = now.0.saturating_sub(share.asked.0) <= ASKED_LATELY;
            self.asking += u64::from(stays && share.asking);
            stays
        });
    }
}
