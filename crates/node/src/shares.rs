//! What each client costs this replica, and when it has to wait for it.
//!
//! Messages of no use are charged as those of replicas are. Clients share a turn besides: while a request of another client
//! waits, one that has had more than the others on average waits. Alone it may take everything.
//!
//! What a frame takes to be executed is known afterwards, and nothing else is done meanwhile, at any replica. Clients that go
//! on when they have their results get as much less done as that delays them, however idle the processors are. So while others
//! ask, no client has its frames executed and its reads answered for more than its part of the time, whether there is more or not.

use crate::charges::{Account, BYTES_PER_MICRO};
use crate::execution_costs::{Executed, LONGEST};
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
/// Of how many frames each counts as one in what those that follow may take to be executed. The mean, and not the dearest: a
/// frame in whose midst another process had the processor says nothing.
const JUDGED: u64 = 8;

/// What a frame counts as while it is under way of a client of which nothing is known: no more than ten are while others ask.
const UNKNOWN_FRAME: u64 = 5_000;
/// Microseconds per second for which a client has its frames executed and its reads answered while others ask, lasting: its
/// part of all, where more than sixteen ask a sixteenth.
const LEAST_PART: u64 = SECOND / 16;
const SECOND: u64 = 1_000_000;
/// The same at once.
const PART_BURST: u64 = 50_000;
/// The deepest debt of it.
const PART_DEBT: u64 = 1_000_000;
/// What is under way fades by one of so many parts of it between two fadings: within a third of a second, as what is never
/// executed must not count for ever.
const UNDER_WAY_PARTS: u64 = 64;
/// How long a client counts as asking after its last request or read: one that goes on when it has its results asks again.
const ASKED_LATELY: u64 = 50_000;

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
    /// Its part of the time.
    part: Account,
    /// Microseconds that it has had, fading.
    had: u64,
    /// Microseconds that its reads took of late, each.
    reads_take: u64,
    /// Microseconds that its frames took of late to be executed, each.
    frames_take: u64,
    /// Whether any was executed.
    known: bool,
    /// Frames of it that are under way, each in [`UNDER_WAY_PARTS`]. What is executed that was not taken here counts against them
    /// and what never is fades, so it is not exact; it holds back what is long before that is charged.
    under_way: u64,
    /// Whether it was one of those that ask at the last fading.
    asking: bool,
    /// Requests taken from it and not answered.
    waiting: u32,
    /// When it asked last, and when it asked last for what is to be ordered.
    heard: Time,
    asked: Time,
}

impl Share {
    fn new() -> Self {
        Self {
            useless: Account::new(CLIENT_RATE, CLIENT_BURST),
            part: Account::with_debt(LEAST_PART, PART_BURST, PART_DEBT),
            had: 0,
            // Not known: one that asks for much at once must not have all of it taken before the first is done.
            reads_take: UNKNOWN_READ,
            frames_take: 0,
            known: false,
            under_way: 0,
            asking: false,
            waiting: 0,
            heard: Time(0),
            asked: Time(0),
        }
    }

    /// For how many microseconds what is under way of it is executed, to judge by what was before.
    fn comes(&self) -> u64 {
        let each = if self.known { self.frames_take } else { UNKNOWN_FRAME };
        self.under_way * each / UNDER_WAY_PARTS
    }
}

/// Frames per second that a backup passes on to the primary for clients that take it for that, lasting. The primary checks
/// each, and one of which nothing comes is charged to whoever shows it: no client shall have an honest replica rest there.
const PASSED_ON_RATE: u64 = 1_024;
/// The same at once: all that the clients have under way when the view has changed.
const PASSED_ON_BURST: u64 = 4_096;

/// What clients cost.
#[derive(Debug)]
pub(crate) struct ClientCharges {
    clients: BTreeMap<ClientId, Share>,
    faded: Time,
    /// All that the clients have had, how many have had something, and how many wait.
    had: u64,
    active: u64,
    waiting: u64,
    /// How many have asked lately, at the last fading.
    asking: u64,
    /// Whether clients want more than the last turns could take: only then is there anything to share.
    contended: bool,
    /// Frames that may be passed on.
    passed_on: Account,
}

impl Default for ClientCharges {
    fn default() -> Self {
        Self {
            clients: BTreeMap::new(),
            faded: Time(0),
            had: 0,
            active: 0,
            waiting: 0,
            asking: 0,
            contended: false,
            passed_on: Account::new(PASSED_ON_RATE, PASSED_ON_BURST),
        }
    }
}

impl ClientCharges {
    /// Whether one more frame may be passed on to the primary, which counts as done.
    pub(crate) fn may_pass_on(&mut self, now: Time) -> bool {
        let may = !self.passed_on.lacks(now, 1);
        if may {
            self.passed_on.charge(now, 1);
        }
        may
    }

    /// Notes whether a turn left something of clients for the next.
    pub(crate) fn contended(&mut self, contended: bool) {
        self.contended = contended;
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
        self.share(client).heard = now;
        if !waits {
            return;
        }
        let share = self.share(client);
        let news = u64::from(share.waiting == 0);
        share.waiting += 1;
        share.asked = now;
        self.waiting += news;
    }

    /// A frame of this client is taken to be ordered. How many microseconds it may take to be executed, to judge by those
    /// before it.
    pub(crate) fn taken(&mut self, client: ClientId) -> u64 {
        let share = self.share(client);
        share.under_way += UNDER_WAY_PARTS;
        share.frames_take
    }

    /// Frames of a client have been executed, or reads answered in passing.
    pub(crate) fn executed(&mut self, client: ClientId, now: Time, executed: Executed) {
        if executed.reads > 0 {
            let Executed { reads, read_micros, longest_read, .. } = executed;
            self.answered_in_passing(client, now, (u64::from(reads), read_micros, longest_read));
        }
        if executed.frames == 0 {
            return;
        }
        let (count, micros) = (u64::from(executed.frames), executed.micros);
        self.add(client, micros.saturating_sub(count * EXECUTION));
        let share = self.share(client);
        share.part.charge(now, micros);
        share.under_way = share.under_way.saturating_sub(count * UNDER_WAY_PARTS);
        share.known = true;
        let weight = count.min(JUDGED);
        share.frames_take = (share.frames_take * (JUDGED - weight) + micros / count * weight) / JUDGED;
    }

    /// So many reads of a client took so many microseconds, and the longest of them so many.
    fn answered_in_passing(
        &mut self,
        client: ClientId,
        now: Time,
        (count, micros, longest): (u64, u64, u64),
    ) {
        self.add(client, micros.saturating_sub(count * READ));
        let share = self.share(client);
        share.part.charge(now, micros);
        share.reads_take = longest.max(share.reads_take - share.reads_take.div_ceil(16));
    }

    /// A read of so many bytes was taken. How many microseconds it may take, to judge by those before it.
    pub(crate) fn read(&mut self, client: ClientId, now: Time, bytes: usize) -> u64 {
        self.add(client, READ + bytes as u64 / BYTES_PER_MICRO);
        let share = self.share(client);
        share.heard = now;
        share.reads_take
    }

    /// A read, or an answer that was wanted again, took so many microseconds, whatever was sent of it.
    pub(crate) fn served(&mut self, client: ClientId, now: Time, micros: u64) {
        let micros = micros.min(LONGEST);
        self.add(client, micros.saturating_sub(READ));
        let share = self.share(client);
        share.part.charge(now, micros);
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
        if asking.max(waiting) > 0 && share.part.lacks(now, share.comes()) {
            // It waits, so it asks.
            share.heard = now;
            return Some(now.after(REST));
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
        let before = std::mem::replace(&mut self.faded, now);
        let part = SECOND.checked_div(self.asking).map_or(SECOND, |part| part.max(LEAST_PART));
        (self.had, self.active, self.waiting, self.asking) = (0, 0, 0, 0);
        self.clients.retain(|_, share| {
            for _ in 0..rounds.min(64) {
                share.had -= share.had.div_ceil(8);
            }
            if now.0.saturating_sub(share.asked.0) > WAITS {
                share.waiting = 0;
            }
            share.useless.refill(now);
            share.part.refill_from_now_at(now, part);
            for _ in 0..rounds.min(1_024) {
                share.under_way -= share.under_way.div_ceil(UNDER_WAY_PARTS);
            }
            // A turn may have been longer than that: who asked in it asks.
            share.asking = before.0.saturating_sub(share.heard.0) <= ASKED_LATELY && share.heard != Time(0);
            self.had += share.had;
            self.active += u64::from(share.had > 0);
            self.waiting += u64::from(share.waiting > 0);
            self.asking += u64::from(share.asking);
            let idle = share.had == 0 && share.waiting == 0 && share.under_way == 0 && !share.asking;
            !idle || !share.useless.is_full() || !share.part.is_full()
        });
    }
}
