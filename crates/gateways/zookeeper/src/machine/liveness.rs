//! Signs of life: those of the clients, which the group must hear of, and those that do not come.

use super::connection::{Session, Stage};
use super::handshake::only;
use super::measures::Ended;
use super::{ConnectionId, Machine, Output, Purpose};
use crate::settings::REQUEST;
use bytes::Bytes;
use troth_client::ClientError;
use troth_types::{Time, Wire};
use troth_zookeeper::{Answer, Attachment, MAX_TOUCHED, Operation, Tally};

/// Sessions are renewed so many times within the shortest time-out of one.
const RENEWALS: u64 = 4;
/// Within that time it is looked so many times for what is late.
const CHECKS: u64 = 20;
/// The longest time between two looks, in microseconds.
const LONGEST: u64 = 500_000;
/// The shortest.
const SHORTEST: u64 = 5_000;
/// The bytes of an attachment in an operation.
const ATTACHMENT: usize = 16;
/// Microseconds after which the group is asked what there is, if no answer has said so meanwhile.
const LOOK: u64 = 10_000_000;
/// Microseconds without an answer after which nobody is served: a view change takes less.
const SILENT: u64 = 5_000_000;
/// What tests count by how often all connections are looked at.
#[cfg(test)]
pub(crate) const LOOKED_AT_ALL: &str = "all connections were looked at";

/// When to look next.
#[derive(Debug, Default)]
pub(super) struct Liveness {
    check_at: Option<Time>,
    touch_at: Option<Time>,
    /// Whether signs of life are on their way.
    touching: bool,
    /// Whether the group did nothing of the last ones, because this machine's clock is ahead of its.
    ahead: bool,
    /// When the group is asked what there is; never, before somebody wants to know.
    look_at: Option<Time>,
    /// What there was when it said so last.
    tally: Option<Tally>,
    /// Microseconds by which its time was ahead of this machine's then, where that was more than clocks may differ by.
    behind: Option<u64>,
    /// What this machine's clock says, which what is said to the group is dated by: other than the time that passes here it
    /// may be set.
    day: Option<Time>,
    /// Whether nobody was told of that yet.
    tells: bool,
    /// When it was asked first, since it answered last.
    unanswered: Option<Time>,
    /// Whether whoever runs the gateway was told that it does not answer.
    told_silent: bool,
}

impl Session {
    /// Whether the group may end the session soon without this gateway being told: what it last confirmed is too long ago.
    pub(super) fn is_unconfirmed(&self, now: Time) -> bool {
        self.confirmed.after(self.timeout / 3 * 2) <= now
    }

    /// Whether its client gives signs of life so seldom that the next one should not wait for the others.
    pub(super) fn is_behind(&self, now: Time) -> bool {
        self.confirmed.after(self.timeout / 2) <= now
    }
}

impl Machine {
    /// When [`Machine::tick`] wants to be called, whatever else happens before.
    #[must_use]
    pub fn next_wake(&self) -> Option<Time> {
        self.liveness.check_at
    }

    /// From now on the group is asked now and then what there is, whether or not anybody is here.
    pub fn begin(&mut self, now: Time) {
        (self.liveness.look_at, self.liveness.check_at) = (Some(now), Some(now));
    }

    /// What time of day it is, by the clock that dates what is said to the group (ZKG-L5); before answers are handed in.
    pub fn set_day(&mut self, day: Time) {
        self.liveness.day = Some(day);
    }

    /// What there was when the group said so last.
    pub(super) fn tally(&self) -> Option<Tally> {
        self.liveness.tally
    }

    /// Microseconds by which this machine's clock is behind the group's, where that is more than clocks may differ by.
    pub(super) fn clock_behind(&self) -> u64 {
        self.liveness.behind.unwrap_or(0)
    }

    /// The same, if the group has said so since the last call of this (ZKG-L6).
    pub fn take_clock_behind(&mut self) -> Option<u64> {
        std::mem::take(&mut self.liveness.tells).then_some(self.liveness.behind).flatten()
    }

    /// The group has answered something.
    pub(super) fn group_answered(&mut self) {
        self.liveness.unanswered = None;
    }

    /// Whether the group has not answered for so long that nobody is served.
    pub(super) fn is_cut_off(&self, now: Time) -> bool {
        rule!("ZKG-L7");
        self.liveness.unanswered.is_some_and(|asked| asked.after(SILENT) <= now)
    }

    /// Whether nobody is served any more, or is again, if that has changed since the last call of this.
    pub fn take_cut_off(&mut self, now: Time) -> Option<bool> {
        let is = self.is_cut_off(now);
        (std::mem::replace(&mut self.liveness.told_silent, is) != is).then_some(is)
    }

    /// Time has passed.
    pub fn tick(&mut self, now: Time) {
        if self.liveness.check_at.is_none_or(|at| at > now) {
            return;
        }
        self.close_late(now);
        let due = |at: Option<Time>| at.is_some_and(|at| at <= now);
        if due(self.liveness.touch_at) || due(self.liveness.look_at) {
            self.touch(now);
        }
        self.expect_less();
        self.liveness.check_at = None;
        self.schedule_check(now);
    }

    /// The shortest time-out of a session, in microseconds.
    fn shortest(&self) -> Option<u64> {
        #[cfg(test)]
        crate::tests::marks::pass(LOOKED_AT_ALL);
        let timeout = |connection: &super::Connection| match &connection.stage {
            Stage::Attached(session) => Some(session.timeout),
            Stage::New | Stage::Entering(_) => None,
        };
        self.connections.values().filter_map(timeout).min()
    }

    /// Microseconds within which a connection has to come to a session.
    fn handshake(&self) -> u64 {
        u64::try_from(self.settings.handshake.as_micros()).unwrap_or(u64::MAX)
    }

    /// Looks often enough for who is late by so many microseconds.
    fn check_within(&mut self, now: Time, micros: u64) {
        let at = now.after((micros / CHECKS).clamp(SHORTEST, LONGEST));
        self.liveness.check_at = Some(self.liveness.check_at.map_or(at, |known| known.min(at)));
    }

    /// There is a connection more. When it is looked for the others is known: none of them is looked at because somebody comes.
    pub(super) fn connection_began(&mut self, now: Time) {
        rule!("ZKG-L3");
        self.check_within(now, self.handshake());
    }

    fn schedule_check(&mut self, now: Time) {
        if self.connections.is_empty() {
            self.liveness.touch_at = None;
            self.liveness.check_at = self.liveness.look_at;
            return;
        }
        let handshake = self.handshake();
        self.check_within(now, self.shortest().unwrap_or(handshake).min(handshake));
    }

    /// A session with this time-out, in microseconds, is attached.
    pub(super) fn session_began(&mut self, now: Time, timeout: u64) {
        rule!("ZKG-L1");
        let touch_at = now.after(timeout / RENEWALS);
        self.liveness.touch_at = Some(self.liveness.touch_at.map_or(touch_at, |at| at.min(touch_at)));
        self.check_within(now, timeout);
    }

    fn close_late(&mut self, now: Time) {
        let handshake = self.handshake();
        let mut late: Vec<(ConnectionId, Ended)> = Vec::new();
        for (id, connection) in &self.connections {
            rule!("ZKG-L3");
            rule!("ZKG-L4");
            let (is_late, why) = match &connection.stage {
                Stage::Attached(session) if connection.gone.is_some() => {
                    rule!("ZKG-S6");
                    (connection.gone.is_some_and(|gone| gone.after(session.timeout) <= now), Ended::Silent)
                }
                Stage::New | Stage::Entering(_) => {
                    (connection.opened.after(handshake) <= now, Ended::Handshake)
                }
                Stage::Attached(session) if session.is_unconfirmed(now) => {
                    (true, if self.liveness.ahead { Ended::Ahead } else { Ended::Unconfirmed })
                }
                // From one that is not read because of its bounds nothing can be heard.
                Stage::Attached(_) if self.is_full(connection) => (false, Ended::Silent),
                Stage::Attached(session) => (connection.heard.after(session.timeout) <= now, Ended::Silent),
            };
            if is_late {
                late.push((*id, why));
            }
        }
        for (id, why) in late {
            self.end(id, true, why);
        }
    }

    fn is_full(&self, connection: &super::Connection) -> bool {
        connection.requests >= self.settings.outstanding_requests
            || connection.bytes + self.settings.packet_bytes + REQUEST
                > self.settings.most_outstanding_bytes()
    }

    fn session_of(&mut self, at: Attachment) -> Option<&mut Session> {
        let id = self.attached.get(&at)?;
        self.connections.get_mut(id).and_then(super::Connection::session)
    }

    /// The next signs of life go with the next tick, which comes at once.
    pub(super) fn touch_soon(&mut self, now: Time) {
        self.liveness.touch_at = Some(now);
        if !self.liveness.touching {
            self.liveness.check_at = Some(now);
        }
    }

    /// Tells the group of the clients that gave a sign of life and nothing to order.
    fn touch(&mut self, now: Time) {
        let is_due = |at: Option<Time>| at.is_some_and(|at| at <= now);
        let looks = is_due(self.liveness.look_at);
        if self.liveness.touching {
            // What is due waits for the answer, and nothing wakes without end for it.
            if looks {
                self.liveness.look_at = Some(now.after(LONGEST));
            }
            return;
        }
        if looks {
            self.liveness.look_at = Some(now.after(LOOK));
        }
        if is_due(self.liveness.touch_at) {
            self.liveness.touch_at = self.shortest().map(|shortest| now.after(shortest / RENEWALS));
        }
        let mut touched = Vec::new();
        for connection in self.connections.values_mut() {
            // What is on its way to be ordered is a sign of life itself.
            let ordering = connection.line.is_ordering() || connection.gone.is_some();
            if let Some(session) = connection.session()
                && session.alive
                && !ordering
            {
                session.alive = false;
                touched.push(session.at);
            }
        }
        if touched.is_empty() && !looks {
            return;
        }
        let room = self.settings.limits.frame_bytes.saturating_sub(256) / ATTACHMENT;
        let most = MAX_TOUCHED.min(room.max(1));
        let mut calls: Vec<Vec<Attachment>> = touched.chunks(most).map(<[Attachment]>::to_vec).collect();
        if calls.is_empty() {
            calls.push(Vec::new());
        }
        for touched in calls {
            let operation = Operation::Touch(touched.clone()).to_wire();
            let call = self.ask(Purpose::Touch(touched, now));
            self.liveness.touching = true;
            self.liveness.unanswered.get_or_insert(now);
            self.outputs.push_back(Output::Execute { call, operations: vec![operation] });
        }
    }

    /// What there is, and what time it is there. An honest primary's time is ahead of a good clock by `clock_bound_ms` at most.
    fn learn(&mut self, now: Time, tally: Tally) {
        rule!("ZKG-L6");
        if self.liveness.look_at.is_some() {
            self.liveness.look_at = Some(now.after(LOOK));
        }
        let ahead = tally.time.0.saturating_sub(self.liveness.day.unwrap_or(now).0);
        let bears = u64::try_from(self.settings.clock_behind.as_micros()).unwrap_or(u64::MAX);
        self.liveness.behind = (ahead > bears).then_some(ahead);
        self.liveness.tells |= ahead > bears;
        self.liveness.tally = Some(tally);
    }

    /// The group has heard of signs of life, or has not.
    pub(super) fn touched(
        &mut self,
        now: Time,
        (touched, sent): (Vec<Attachment>, Time),
        results: Result<Vec<Bytes>, ClientError>,
    ) {
        self.liveness.touching = self.calls.values().any(|purpose| matches!(purpose, Purpose::Touch(..)));
        let answer = only(results);
        rule!("ZKG-L5");
        let ahead = answer.as_ref().and_then(Answer::is_ahead_of);
        self.liveness.ahead = ahead.is_some();
        self.behind = ahead.or(self.behind);
        if ahead.is_some() {
            self.liveness.behind = None;
        }
        if self.liveness.touch_at.is_some_and(|at| at <= now) {
            // That waited for this answer.
            self.liveness.check_at = Some(now);
        }
        if let Some(Answer::Heard { over, tally }) = answer {
            self.learn(now, tally);
            for at in over {
                self.over(at);
            }
            for at in touched {
                if let Some(session) = self.session_of(at) {
                    session.confirm(sent);
                }
            }
            return;
        }
        // The next time, then.
        for at in touched {
            if let Some(session) = self.session_of(at) {
                session.alive = true;
            }
        }
    }
}
