//! Requests that took longer than they should: where their time went.

use super::line::{Pending, Reply, What};
use super::measures::{OPERATIONS, operation};
use super::record::{Record, hexadecimal, line, moment};
use super::{ConnectionId, Machine};
use serde_json::{Map, Value, json};
use troth_client::Way;
use troth_types::{Time, Wire};
use troth_zookeeper::{Operation, path_of};

/// Lines of a second at most: where everything is slow, some tell of all.
const LINES: u32 = 10;
/// That second, in microseconds.
const WINDOW: u64 = 1_000_000;

/// How many lines there were lately.
#[derive(Debug, Default)]
pub(super) struct Pace {
    since: Time,
    lines: u32,
    /// Requests of which there is no line, since the last.
    untold: u64,
}

impl Pace {
    /// Whether there may be a line now.
    fn allows(&mut self, now: Time) -> bool {
        if self.since.after(WINDOW) <= now {
            (self.since, self.lines) = (now, 0);
        }
        self.lines += 1;
        let allows = self.lines <= LINES;
        if !allows {
            self.untold += 1;
        }
        allows
    }
}

fn way(pending: &Pending) -> &'static str {
    match (pending.times.sent, pending.repeats, pending.times.course.way) {
        (None, ..) => "gateway",
        (Some(_), false, _) => "write",
        (Some(_), true, Way::Fast) => "read_fast",
        (Some(_), true, Way::FellBack) => "read_fell_back",
        (Some(_), true, Way::Ordered) => "read_ordered",
    }
}

/// The path that a request is about.
fn path(pending: &Pending) -> Option<String> {
    let What::Request(code) = pending.what else { return None };
    match Operation::from_wire(&pending.operation) {
        Ok(Operation::Request { body, .. }) => path_of(code, &body),
        _ => None,
    }
}

impl Machine {
    /// A request was answered; it may have taken too long.
    pub(super) fn note_slow(&mut self, now: Time, id: ConnectionId, pending: &Pending, reply: &Reply) {
        let total = now.0.saturating_sub(pending.since.0);
        let Some((threshold, _)) = &self.settings.slow else { return };
        if u128::from(total) < threshold.as_micros() {
            return;
        }
        self.measures.slow += 1;
        if !self.slow.allows(now) {
            self.measures.slow_untold += 1;
            return;
        }
        let (times, course) = (&pending.times, &pending.times.course);
        let between = |from: Time, to: Time| to.0.saturating_sub(from.0);
        let sent = times.sent.unwrap_or(now);
        let answered = times.answered.unwrap_or(now);
        let mut fields = Map::new();
        let mut put = |name: &str, value: Value| fields.insert(name.to_owned(), value);
        put("time", json!(moment(now)));
        if let Some(connection) = self.connections.get(&id) {
            put("client", json!(connection.address.to_string()));
        }
        put("session", json!(self.session_number(id).map(hexadecimal)));
        put("xid", json!(pending.xid));
        put("operation", json!(OPERATIONS[operation(&pending.what)]));
        put("path", json!(path(pending)));
        put("way", json!(way(pending)));
        put("error", json!(reply.error));
        put("total_us", json!(total));
        // In the order in which they come; together they are the whole but for what its way through this process took.
        put("gateway_queue_us", json!(between(pending.since, sent)));
        put("fast_read_us", json!(course.tried));
        put("client_queue_us", json!(course.queued));
        put("first_reply_us", json!(course.first));
        put("matching_replies_us", json!(course.matching));
        put("earlier_replies_us", json!(between(answered, now)));
        let late: Vec<u16> = course.late.iter().map(|replica| replica.0).collect();
        put("late_replicas", json!(late));
        let untold = core::mem::take(&mut self.slow.untold);
        if untold > 0 {
            put("untold_before", json!(untold));
        }
        self.records.0.push_back(Record::Slow(line(fields)));
    }
}
