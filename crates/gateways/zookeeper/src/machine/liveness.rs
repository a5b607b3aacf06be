//! Signs of life: those of the clients, which the group must hear of, and those that do not come.

use super::connection::{Session, Stage};
use super::handshake::only;
use super::measures::Ended;
use super::{ConnectionId, Machine, Output, Purpose};
use bytes::Bytes;
use troth_client::ClientError;
use troth_types::{Time, Wire};
use troth_zookeeper::{Answer, Attachment, MAX_TOUCHED, Operation};

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

/// When to look next.
#[derive(Debug, Default)]
pub(super) struct Liveness {
    check_at: Option<Time>,
    touch_at: Option<Time>,
    /// Whether signs of life are on their way.
    touching: bool,
    /// Whether the group did nothing of the last ones, because this machine's clock is ahead of its.
    ahead: bool,
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

    /// Time has passed.
    pub fn tick(&mut self, now: Time) {
        if self.liveness.check_at.is_none_or(|at| at > now) {
            return;
        }
        self.close_late(now);
        if self.liveness.touch_at.is_some_and(|at| at <= now) {
            self.touch(now);
        }
        self.expected -= self.expected.div_ceil(16);
        self.liveness.check_at = None;
        self.schedule_check(now);
    }

    /// The shortest time-out of a session, in microseconds.
    fn shortest(&self) -> Option<u64> {
        let timeout = |connection: &super::Connection| match &connection.stage {
            Stage::Attached(session) => Some(session.timeout),
            Stage::New | Stage::Entering(_) => None,
        };
        self.connections.values().filter_map(timeout).min()
    }

    pub(super) fn schedule_check(&mut self, now: Time) {
        if self.connections.is_empty() {
            self.liveness.touch_at = None;
            return;
        }
        if self.liveness.check_at.is_none() {
            let handshake = u64::try_from(self.settings.handshake.as_micros()).unwrap_or(u64::MAX);
            let within = self.shortest().unwrap_or(handshake).min(handshake) / CHECKS;
            self.liveness.check_at = Some(now.after(within.clamp(SHORTEST, LONGEST)));
        }
    }

    /// A session with this time-out, in microseconds, is attached.
    pub(super) fn session_began(&mut self, now: Time, timeout: u64) {
        rule!("ZKG-L1");
        let touch_at = now.after(timeout / RENEWALS);
        self.liveness.touch_at = Some(self.liveness.touch_at.map_or(touch_at, |at| at.min(touch_at)));
        let check_at = now.after((timeout / CHECKS).clamp(SHORTEST, LONGEST));
        self.liveness.check_at = Some(self.liveness.check_at.map_or(check_at, |at| at.min(check_at)));
    }

    fn close_late(&mut self, now: Time) {
        let handshake = u64::try_from(self.settings.handshake.as_micros()).unwrap_or(u64::MAX);
        let mut late: Vec<(ConnectionId, Ended)> = Vec::new();
        for (id, connection) in &self.connections {
            rule!("ZKG-L3");
            rule!("ZKG-L4");
            let (is_late, why) = match &connection.stage {
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
            || connection.bytes + self.settings.packet_bytes > self.settings.most_outstanding_bytes()
    }

    fn session_of(&mut self, at: Attachment) -> Option<&mut Session> {
        let id = self.attached.get(&at)?;
        self.connections.get_mut(id).and_then(super::Connection::session)
    }

    /// The next signs of life go with the next tick, which comes at once.
    pub(super) fn touch_soon(&mut self, now: Time) {
        if !self.liveness.touching {
            (self.liveness.touch_at, self.liveness.check_at) = (Some(now), Some(now));
        }
    }

    /// Tells the group of the clients that gave a sign of life and nothing to order.
    fn touch(&mut self, now: Time) {
        self.liveness.touch_at = self.shortest().map(|shortest| now.after(shortest / RENEWALS));
        if self.liveness.touching {
            return;
        }
        let mut touched = Vec::new();
        for connection in self.connections.values_mut() {
            // What is on its way to be ordered is a sign of life itself.
            let ordering = connection.line.is_ordering();
            if let Some(session) = connection.session()
                && session.alive
                && !ordering
            {
                session.alive = false;
                touched.push(session.at);
            }
        }
        if touched.is_empty() {
            return;
        }
        let room = self.settings.limits.frame_bytes.saturating_sub(256) / ATTACHMENT;
        let most = MAX_TOUCHED.min(room.max(1));
        let calls: Vec<Vec<Attachment>> = touched.chunks(most).map(<[Attachment]>::to_vec).collect();
        for touched in calls {
            let operation = Operation::Touch(touched.clone()).to_wire();
            let call = self.ask(Purpose::Touch(touched, now));
            self.liveness.touching = true;
            self.outputs.push_back(Output::Execute { call, operations: vec![operation] });
        }
    }

    /// The group has heard of signs of life, or has not.
    pub(super) fn touched(
        &mut self,
        (touched, sent): (Vec<Attachment>, Time),
        results: Result<Vec<Bytes>, ClientError>,
    ) {
        self.liveness.touching = self.calls.values().any(|purpose| matches!(purpose, Purpose::Touch(..)));
        let answer = only(results);
        rule!("ZKG-L5");
        let ahead = answer.as_ref().and_then(Answer::is_ahead_of);
        self.liveness.ahead = ahead.is_some();
        self.behind = ahead.or(self.behind);
        if let Some(Answer::Over(over)) = answer {
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
