//! What a gateway counts for its operators, from its beginning on. All that happens for it on the way of a request is that
//! numbers are added up; they become text when somebody asks.

use super::line::{Pending, Reply, What};
use super::{ConnectionId, Machine};
use troth_client::{Course, Way};
use troth_types::Time;
use troth_zookeeper::{Code, opcode};

/// The operations that are told apart, under the names of ZooKeeper's interface.
pub(crate) const OPERATIONS: [&str; 24] = [
    "create",
    "delete",
    "exists",
    "getData",
    "setData",
    "getACL",
    "setACL",
    "getChildren",
    "sync",
    "ping",
    "check",
    "multi",
    "multiRead",
    "auth",
    "sasl",
    "setWatches",
    "addWatch",
    "checkWatches",
    "removeWatches",
    "getEphemerals",
    "getAllChildrenNumber",
    "whoAmI",
    "closeSession",
    "other",
];
/// The place of a ping in it.
pub(super) const PING: usize = 9;

/// What became of a request.
pub(crate) const OUTCOMES: [&str; 3] = ["ok", "error", "lost"];
/// It was answered without an error.
pub(super) const OK: usize = 0;
/// It was answered with an error.
const ERROR: usize = 1;
/// The connection ended before it was answered; it may have been executed.
const LOST: usize = 2;

/// How requests were answered, for their latencies.
pub(crate) const PATHS: [&str; 3] = ["read_fast", "read_ordered", "write"];

/// The upper bounds of latencies that are told apart, in microseconds.
pub(crate) const BOUNDS: [u64; 17] = [
    100, 250, 500, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000, 500_000, 1_000_000,
    2_500_000, 5_000_000, 10_000_000, 30_000_000,
];

/// Latencies, in microseconds.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Histogram {
    /// Those up to each of the bounds, and above the one before it; behind them those above all.
    pub(crate) buckets: [u64; BOUNDS.len() + 1],
    pub(crate) sum: u64,
}

impl Histogram {
    fn add(&mut self, micros: u64) {
        let at = BOUNDS.iter().position(|bound| micros <= *bound).unwrap_or(BOUNDS.len());
        self.buckets[at] += 1;
        self.sum = self.sum.saturating_add(micros);
    }
}

/// Why the gateway ended a connection, but for the usual ways.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ended {
    /// A packet could not be read.
    Malformed,
    /// More was outstanding than its reader may let through.
    Outstanding,
    /// Its client did not read what it was told.
    Unread,
    /// All connections together held too much, and this one the most.
    Memory,
    /// It had no session in time.
    Handshake,
    /// Its client gave no sign of life.
    Silent,
    /// The group did not confirm signs of life in time.
    Unconfirmed,
    /// Nobody knows what it was not told.
    EventsLost,
    /// Its session is over, or attached elsewhere.
    Over,
    /// The group did not answer, or not in a way that can be passed on.
    Unanswered,
    /// The group's time is behind this machine's clock by more than it bears.
    Ahead,
}

/// The names of [`Ended`], in order.
pub(crate) const ENDED: [&str; 11] = [
    "malformed",
    "outstanding",
    "unread",
    "memory",
    "handshake_late",
    "silent",
    "unconfirmed",
    "events_lost",
    "session_over",
    "unanswered",
    "clock_ahead",
];

/// Why a packet was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refused {
    /// It could not be read, or was no first packet.
    Malformed,
    /// It came above what may be outstanding.
    Outstanding,
    /// It does not fit what the group takes, or its answer does not.
    TooLarge,
    /// A four-letter word that is not answered.
    Word,
}

/// The names of [`Refused`], in order.
pub(crate) const REFUSED: [&str; 4] = ["malformed", "outstanding", "too_large", "word"];

/// What came of clients' first packets.
pub(crate) const ENTERED: [&str; 3] = ["attached", "expired", "failed"];
/// It has its session.
pub(super) const ATTACHED: usize = 0;
/// There is no such session.
pub(super) const EXPIRED: usize = 1;
/// The group did not say.
pub(super) const FAILED: usize = 2;

/// The counts.
#[derive(Clone, Debug, Default)]
pub(crate) struct Measures {
    pub(crate) requests: [[u64; OUTCOMES.len()]; OPERATIONS.len()],
    pub(crate) latencies: [Histogram; PATHS.len()],
    pub(crate) entered: [u64; ENTERED.len()],
    pub(crate) ended: [u64; ENDED.len()],
    pub(crate) refused: [u64; REFUSED.len()],
    /// Connections that were too many in all, and too many of one address.
    pub(crate) rejected: [u64; 2],
    pub(crate) events: u64,
    pub(crate) lost_markers: u64,
    pub(crate) watches: u64,
    /// Requests that were slower than they should be, and those of them of which no line was made.
    pub(crate) slow: u64,
    pub(crate) slow_untold: u64,
}

/// How things are, beside what was counted.
#[derive(Clone, Debug, Default)]
pub(crate) struct Gauges {
    pub(crate) connections: usize,
    pub(crate) sessions: usize,
    pub(crate) outstanding: usize,
    pub(crate) held_bytes: usize,
    pub(crate) memory_bytes: usize,
    pub(crate) known: i64,
    /// Nothing before the group has said so.
    pub(crate) tally: Option<troth_zookeeper::Tally>,
    /// Microseconds.
    pub(crate) clock_behind: u64,
    pub(crate) serves: bool,
}

/// Where the time of a request went.
#[derive(Clone, Debug, Default)]
pub(super) struct Times {
    /// When the group was asked, the last time.
    pub(super) sent: Option<Time>,
    /// When it answered.
    pub(super) answered: Option<Time>,
    pub(super) course: Course,
}

/// The place of a request's operation.
pub(super) fn operation(what: &What) -> usize {
    let What::Request(code) = what else { return 14 };
    match *code {
        opcode::CREATE | opcode::CREATE2 | opcode::CREATE_CONTAINER | opcode::CREATE_TTL => 0,
        opcode::DELETE => 1,
        opcode::EXISTS => 2,
        opcode::GET_DATA => 3,
        opcode::SET_DATA => 4,
        opcode::GET_ACL => 5,
        opcode::SET_ACL => 6,
        opcode::GET_CHILDREN | opcode::GET_CHILDREN2 => 7,
        opcode::SYNC => 8,
        opcode::PING => PING,
        opcode::CHECK => 10,
        opcode::MULTI => 11,
        opcode::MULTI_READ => 12,
        opcode::AUTH => 13,
        opcode::SASL => 14,
        opcode::SET_WATCHES | opcode::SET_WATCHES2 => 15,
        opcode::ADD_WATCH => 16,
        opcode::CHECK_WATCHES => 17,
        opcode::REMOVE_WATCHES => 18,
        opcode::GET_EPHEMERALS => 19,
        opcode::GET_ALL_CHILDREN_NUMBER => 20,
        opcode::WHO_AM_I => 21,
        opcode::CLOSE_SESSION => 22,
        _ => 23,
    }
}

/// The path of [`PATHS`] on which a request was answered that only reads, or watches at most, or not.
fn path(reads: bool, way: Way) -> usize {
    match (reads, way) {
        (false, _) => 2,
        (true, Way::Fast) => 0,
        (true, _) => 1,
    }
}

impl Measures {
    /// A reply was written.
    pub(super) fn answered(&mut self, now: Time, pending: &Pending, reply: &Reply) {
        let outcome = if reply.error == 0 { OK } else { ERROR };
        self.requests[operation(&pending.what)][outcome] += 1;
        // What the gateway answered by itself says nothing of the group.
        if pending.times.sent.is_some() {
            let path = path(pending.repeats, pending.times.course.way);
            self.latencies[path].add(now.0.saturating_sub(pending.since.0));
        }
        let missing = pending.what == What::Request(opcode::EXISTS) && reply.error == Code::NoNode.number();
        if pending.watches && (reply.error == 0 || missing) {
            self.watches += 1;
        }
    }

    /// Nobody is told what came of a request.
    pub(super) fn lost(&mut self, what: &What) {
        self.requests[operation(what)][LOST] += 1;
    }

    pub(super) fn refuse(&mut self, why: Refused) {
        self.refused[why as usize] += 1;
    }
}

impl Machine {
    /// What was counted, and how things are.
    pub(crate) fn measured(&self, now: Time) -> (Measures, Gauges) {
        let gauges = Gauges {
            connections: self.connections.len(),
            sessions: self.attached.len(),
            outstanding: self.outstanding(),
            held_bytes: self.all_held(),
            memory_bytes: self.settings.memory_bytes,
            known: self.known,
            tally: self.tally(),
            clock_behind: self.clock_behind(),
            serves: !self.is_cut_off(now),
        };
        (self.measures.clone(), gauges)
    }

    /// Ends a connection for this reason.
    pub(super) fn end(&mut self, id: ConnectionId, flush: bool, why: Ended) {
        if self.connections.get(&id).is_some_and(|connection| connection.gone.is_none()) {
            self.measures.ended[why as usize] += 1;
        }
        self.close(id, flush);
    }
}
