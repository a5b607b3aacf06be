//! What each client costs this replica, and when it has to wait for it.
//!
//! Messages of no use are charged as those of replicas are. Clients share a turn besides: while a request of another client
//! waits, one that has had more than the others on average waits. Alone it may take everything.
//!
//! What a frame takes to be executed is known afterwards, and nothing else is done meanwhile, at any replica. Clients that go
//! on when they have their results get as much less done as such frames delay them, however idle the processors are. So while
//! others ask, one client has no more under way than is executed soon, and one whose frames or reads take much longer than
//! those of the others has an eighth of the time.

use crate::charges::{Account, BYTES_PER_MICRO};
use crate::execution_costs::Executed;
use std::collections::BTreeMap;
use troth_types::{ClientId, Time};

/// Microseconds of useless work that a client may cause per second, lasting.
const CLIENT_RATE: u64 = 10_000;
/// The same at once.
const CLIENT_BURST: u64 = 100_000;

/// Microseconds to check a client's signature and to have its frame ordered and executed, about.
const FRAME: u64 = 40;
/// Of these, those to execute it.
const EXECUTION: u64 = 10;
/// The same of a read.
const READ: u64 = 10;

/// What a read of a client may take of whom nothing is known: the first twenty go together.
const UNKNOWN_READ: u64 = 500;
/// What a read may take at least, however little those before it took: what follows cheap ones may cost as much as any, and
/// all that a turn takes is answered before other clients are heard.
pub(crate) const LEAST_READ: u64 = 200;
/// What a frame of a client may take to be executed of whom nothing is known.
const UNKNOWN_FRAME: u64 = 250;
/// Of how many frames each counts as one in what those that follow may take. The mean, and not the dearest: a frame in whose
/// midst another process had the processor says nothing.
const JUDGED: u64 = 8;

/// Microseconds for which frames of one client that are under way may be executed while others ask, and reads of one that a
/// turn takes; one frame and one read at least.
const SOON: u64 = 500;
/// Where agreement takes longer, frames may take one of so many parts of it: what delays others by little beside what they wait
/// anyway.
const PART: u64 = 8;
/// Of how many frames each counts as one in how long agreement takes.
const ROUNDS: u64 = 64;
/// Until a client is looked at again that has as much under way.
const LOOK: u64 = 1_000;
/// Microseconds that a frame or a read takes at least to count as long.
const LONG: u64 = 500;
/// How many times as long as that of the client in the middle it must be besides.
const LONGER: u64 = 4;
/// Microseconds from which on a frame counts as long also where it is its many operations that take long and not each: a gateway
/// has what many asked for in one.
const VERY_LONG: u64 = 4_000;
/// What an operation takes is counted in so many parts of a microsecond.
const PARTS: u64 = 16;
/// Microseconds per second of long frames and reads that a client may have while others ask, lasting: an eighth.
const LONG_RATE: u64 = 125_000;
/// The same at once.
const LONG_BURST: u64 = 50_000;
/// The deepest debt of them.
const LONG_DEBT: u64 = 400_000;
/// How long it is remembered of one that has nothing that its frames take long.
const REMEMBERED: u64 = 10_000_000;
/// How long a client counts as asking after its last request: one that goes on when it has its results asks again.
const ASKED_LATELY: u64 = 50_000;
/// Who is in the middle is looked for among those of whom something was executed, or read, so lately.
const SEEN_LATELY: u64 = 1_000_000;

/// Between two times that what clients have had fades: by an eighth.
const FADE: u64 = 5_000;
/// Microseconds that a client may have had whatever the others have had.
const FLOOR: u64 = 750;
/// How long a client that has had its share waits before it is looked at again.
const REST: u64 = 2_000;
/// How long a request counts as waiting that nothing answers: it may be one that never will be.
const WAITS: u64 = 1_000_000;

/// One client.
#[derive(Debug)]
struct Share {
    useless: Account,
    /// What it may have of what takes long.
    long: Account,
    /// Microseconds that it has had, fading.
    had: u64,
    /// Microseconds that its reads took of late, each, and when the last was answered.
    reads_take: u64,
    read: Time,
    /// Microseconds that its frames took of late to be executed, each, and when the last was.
    frames_take: u64,
    executed: Time,
    /// Of that each of their operations, in [`PARTS`].
    operations_take: u64,
    /// Numbers of its frames that were taken and not executed, and when they were.
    under_way: Vec<(u64, Time)>,
    /// The last turn that took reads of it, and for how many microseconds, to judge by those before them.
    reading: (u64, u64),
    /// Whether it was one of those that ask at the last fading.
    asking: bool,
    /// Requests taken from it and not answered.
    waiting: u32,
    asked: Time,
}

impl Share {
    fn new() -> Self {
        Self {
            useless: Account::new(CLIENT_RATE, CLIENT_BURST),
            long: Account::with_debt(LONG_RATE, LONG_BURST, LONG_DEBT),
            had: 0,
            reads_take: UNKNOWN_READ,
            read: Time(0),
            frames_take: UNKNOWN_FRAME,
            executed: Time(0),
            operations_take: 0,
            under_way: Vec::new(),
            reading: (0, 0),
            asking: false,
            waiting: 0,
            asked: Time(0),
        }
    }

    /// Whether it has as much under way as is executed soon.
    fn has_enough(&self, turn: u64, round: u64) -> bool {
        let frames = self.under_way.len() as u64 * self.frames_take;
        frames >= SOON.max(round / PART) || self.reading.0 == turn && self.reading.1 >= SOON
    }
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
    /// How many have asked lately, at the last fading.
    asking: u64,
    /// What a frame, an operation of one and a read take of the client in the middle, at the last fading.
    frame_in_the_middle: u64,
    operation_in_the_middle: u64,
    read_in_the_middle: u64,
    /// Microseconds from when a frame is taken until it is executed.
    round: u64,
    /// The number of the turn.
    turn: u64,
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
        self.clients.entry(client).or_insert_with(Share::new)
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

    /// A frame of this client is taken, to be ordered. How many microseconds it may take to be executed, to judge by those
    /// before it.
    pub(crate) fn taken(&mut self, client: ClientId, number: u64, now: Time) -> u64 {
        let share = self.share(client);
        share.under_way.retain(|(taken, _)| *taken != number);
        share.under_way.push((number, now));
        share.frames_take
    }

    /// A frame that was taken is not ordered.
    pub(crate) fn given_up(&mut self, client: ClientId, number: u64) {
        self.share(client).under_way.retain(|(taken, _)| *taken != number);
    }

    /// A frame of a client has been executed.
    pub(crate) fn executed(&mut self, now: Time, frame: Executed) {
        self.add(frame.client, frame.micros.saturating_sub(EXECUTION));
        let (middle, operation_in_the_middle) = (self.frame_in_the_middle, self.operation_in_the_middle);
        let share = self.share(frame.client);
        if let Some(at) = share.under_way.iter().position(|(taken, _)| *taken == frame.number) {
            let (_, taken) = share.under_way.swap_remove(at);
            let took = now.0.saturating_sub(taken.0);
            self.round = (self.round * (ROUNDS - 1) + took) / ROUNDS;
        }
        let share = self.share(frame.client);
        let first = share.executed == Time(0);
        share.executed = now;
        // One alone that is far beyond all before it says more of the machine than of the client.
        let micros = frame.micros.min(LONGER * 2 * share.frames_take + LONG);
        let mean = |before: u64, one: u64| (before * (JUDGED - 1) + one) / JUDGED;
        let each = micros * PARTS / u64::from(frame.operations.max(1));
        share.frames_take = mean(share.frames_take, micros);
        share.operations_take = if first { each } else { mean(share.operations_take, each) };
        let of_many = micros < VERY_LONG && each <= LONGER * operation_in_the_middle;
        if is_long(micros, middle) && !of_many {
            share.long.charge(now, micros);
        }
    }

    /// A read of so many bytes was taken. How many microseconds it may take, to judge by those before it.
    pub(crate) fn read(&mut self, client: ClientId, bytes: usize) -> u64 {
        self.add(client, READ + bytes as u64 / BYTES_PER_MICRO);
        let turn = self.turn;
        let share = self.share(client);
        let before = if share.reading.0 == turn { share.reading.1 } else { 0 };
        share.reading = (turn, before + share.reads_take);
        share.reads_take
    }

    /// A read, or an answer that was wanted again, took so many microseconds, whatever was sent of it.
    pub(crate) fn served(&mut self, client: ClientId, now: Time, micros: u64) {
        self.add(client, micros.saturating_sub(READ));
        let middle = self.read_in_the_middle;
        let share = self.share(client);
        share.read = now;
        if is_long(micros, middle) {
            share.long.charge(now, micros);
        }
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
        let waiting = self.waiting - u64::from(share.waiting > 0);
        let asking = self.asking - u64::from(share.asking);
        if asking.max(waiting) > 0 {
            if share.long.overdrawn(now).is_some() {
                return Some(now.after(REST));
            }
            if share.has_enough(self.turn, self.round) {
                return Some(now.after(LOOK));
            }
        }
        let others = self.active.saturating_sub(u64::from(share.had > 0));
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
        (self.had, self.active, self.waiting, self.asking) = (0, 0, 0, 0);
        let (mut frames, mut operations, mut reads) = (Vec::new(), Vec::new(), Vec::new());
        self.clients.retain(|_, share| {
            for _ in 0..rounds.min(64) {
                share.had -= share.had.div_ceil(8);
            }
            if now.0.saturating_sub(share.asked.0) > WAITS {
                share.waiting = 0;
            }
            share.under_way.retain(|(_, taken)| now.0.saturating_sub(taken.0) <= WAITS);
            share.useless.refill(now);
            share.long.refill(now);
            let seen = |at: Time, within: u64| at != Time(0) && now.0.saturating_sub(at.0) <= within;
            share.asking = seen(share.asked, ASKED_LATELY);
            if seen(share.executed, SEEN_LATELY) {
                frames.push(share.frames_take);
                operations.push(share.operations_take);
            }
            if seen(share.read, SEEN_LATELY) {
                reads.push(share.reads_take);
            }
            self.had += share.had;
            self.active += u64::from(share.had > 0);
            self.waiting += u64::from(share.waiting > 0);
            self.asking += u64::from(share.asking);
            let idle =
                share.had == 0 && share.waiting == 0 && share.useless.is_full() && share.long.is_full();
            !idle || share.asking || share.frames_take >= LONG && seen(share.executed, REMEMBERED)
        });
        self.frame_in_the_middle = middle(frames);
        self.operation_in_the_middle = middle(operations);
        self.read_in_the_middle = middle(reads);
    }
}

/// Whether what takes so many microseconds delays others for long, where that of the client in the middle takes as many.
fn is_long(micros: u64, middle: u64) -> bool {
    micros >= LONG && micros > LONGER * middle
}

/// The one in the middle, of two there the smaller one.
fn middle(mut amounts: Vec<u64>) -> u64 {
    let Some(last) = amounts.len().checked_sub(1) else { return 0 };
    *amounts.select_nth_unstable(last / 2).1
}
