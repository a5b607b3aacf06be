//! How a connection comes to a session.

use super::connection::{Entering, Session, Stage};
use super::frames::FIRST_PACKET;
use super::measures::{ATTACHED, EXPIRED, Ended, FAILED, Refused};
use super::{ConnectionId, Machine, Output, Purpose, wire};
use bytes::Bytes;
use troth_client::ClientError;
use troth_types::{Time, Wire};
use troth_zookeeper::{Answer, Attachment, Code, Operation, Password, key_of, opcode, prove};

/// Nobody's session: asking for it shows how far the group is.
const NOBODY: Attachment = Attachment { session: 0, number: 0 };

/// The answer to the only operation of a call.
pub(super) fn only(results: Result<Vec<Bytes>, ClientError>) -> Option<Answer> {
    let results = results.ok()?;
    let [result] = results.as_slice() else { return None };
    Answer::from_wire(result).ok()
}

impl Machine {
    /// The first packet of a client.
    pub(super) fn enter(&mut self, now: Time, id: ConnectionId, packet: Bytes) {
        let Some(connection) = self.connections.get_mut(&id) else { return };
        rule!("ZKG-B5");
        let request = wire::read_connect(&packet).ok().filter(|_| packet.len() <= FIRST_PACKET);
        let Some(mut request) = request else {
            self.measures.refuse(Refused::Malformed);
            return self.end(id, false, Ended::Malformed);
        };
        let opens = request.session == 0;
        let own = connection.random.first_chunk().copied().unwrap_or_default();
        let shown = Password::try_from(&request.password[..]);
        let password = if opens { Ok(own) } else { shown };
        let Ok(password) = password else {
            // No session has such a password.
            return self.refuse(id, request.read_only.is_some());
        };
        // It is a part of what the reader had room for.
        request.password = Bytes::new();
        let seen = request.seen;
        connection.stage = Stage::Entering(Entering {
            request,
            password,
            bytes: packet.len(),
            sent: now,
            asked: true,
            early: Vec::new(),
        });
        if seen <= self.known {
            return self.ask_for_session(now, id);
        }
        // It may have learnt through another gateway what this one has not.
        let operation = Operation::Request { at: NOBODY, code: opcode::PING, body: Bytes::new() };
        let call = self.ask(Purpose::Reach(id));
        rule!("ZKG-C2");
        let (operation, recent) = (operation.to_wire(), false);
        self.outputs.push_back(Output::Read { call, operation, recent });
    }

    /// How far the group is, for a client that has seen more than this gateway.
    pub(super) fn reached(&mut self, now: Time, id: ConnectionId, results: Result<Vec<Bytes>, ClientError>) {
        let answer = only(results);
        if let Some(Answer::Reply { zxid, .. }) = answer {
            self.known = self.known.max(zxid);
        }
        let Some(connection) = self.connections.get_mut(&id) else { return self.left(id) };
        let Stage::Entering(entering) = &mut connection.stage else { return };
        entering.asked = false;
        rule!("ZKG-S2");
        match answer {
            Some(Answer::Reply { .. }) if entering.request.seen <= self.known => {
                self.ask_for_session(now, id)
            }
            // What it has seen was of another group, or is lost; or nobody answers.
            other => self.keep_out(id, other.as_ref()),
        }
    }

    fn ask_for_session(&mut self, now: Time, id: ConnectionId) {
        let Some(connection) = self.connections.get_mut(&id) else { return };
        let Stage::Entering(entering) = &mut connection.stage else { return };
        (entering.sent, entering.asked) = (now, true);
        let timeout = u32::try_from(entering.request.timeout).unwrap_or(0);
        let (who, password) = (connection.who.clone(), &entering.password);
        rule!("ZKG-S7");
        let operation = match entering.request.session {
            0 => Operation::Open { timeout, key: key_of(password), who },
            session => {
                let proof = prove(password, self.carrier, session);
                Operation::Attach { session, proof, timeout, who }
            }
        };
        let session = entering.request.session;
        *self.entering.entry(session).or_default() += 1;
        let call = self.ask(Purpose::Enter(id, session));
        self.audit_session(call, id);
        self.outputs.push_back(Output::Execute { call, operations: vec![operation.to_wire()] });
    }

    /// The group gives a session, or does not.
    pub(super) fn entered(
        &mut self,
        now: Time,
        (id, session): (ConnectionId, i64),
        results: Result<Vec<Bytes>, ClientError>,
    ) {
        let answer = only(results);
        let over = matches!(answer, Some(Answer::Attached { at, .. }) if self.is_over_already(at));
        self.forget_overs(session);
        let Some(connection) = self.connections.get_mut(&id) else {
            self.left(id);
            return match answer {
                Some(Answer::Attached { at, .. }) if session == 0 => self.abandon(at),
                _ => {}
            };
        };
        let Stage::Entering(entering) = &mut connection.stage else { return };
        entering.asked = false;
        let says_read_only = entering.request.read_only.is_some();
        let opened = session == 0;
        match answer {
            Some(Answer::Attached { .. }) if over => {
                rule!("ZKG-S4");
                self.end(id, false, Ended::Over);
            }
            Some(Answer::Attached { at, timeout }) => {
                rule!("ZKG-S1");
                let (shown, bytes, sent) = (entering.request.seen.max(0), entering.bytes, entering.sent);
                let early = core::mem::take(&mut entering.early);
                let millis = i32::try_from(timeout).unwrap_or(i32::MAX);
                let answer = wire::connected(millis, at.session, &entering.password, says_read_only);
                let timeout = u64::from(timeout) * 1000;
                let session = Session { at, timeout, shown, alive: false, confirmed: sent };
                if session.is_unconfirmed(now) {
                    self.end(id, false, Ended::Unconfirmed);
                    if opened {
                        self.abandon(at);
                    }
                    return;
                }
                self.measures.entered[ATTACHED] += 1;
                connection.stage = Stage::Attached(session);
                self.attached.insert(at, id);
                self.session_began(now, timeout);
                self.write(id, answer);
                self.done(id, bytes);
                for packet in early {
                    self.request(now, id, &packet);
                }
                self.advance(now, id);
            }
            Some(Answer::Reply { error, zxid, .. }) => {
                self.known = self.known.max(zxid);
                rule!("ZKG-S3");
                if error == Code::SessionExpired.number() {
                    self.refuse(id, says_read_only);
                } else {
                    // The session may be there; another gateway may have room.
                    self.measures.entered[FAILED] += 1;
                    self.end(id, false, Ended::Unanswered);
                }
            }
            other => self.keep_out(id, other.as_ref()),
        }
    }

    /// A client is gone, and so is now what the group was asked for it: its place is free.
    fn left(&mut self, id: ConnectionId) {
        if let Some(address) = self.leaving.remove(&id) {
            self.free(address);
        }
    }

    /// A session was opened for a client that is gone: nobody else knows of it, or can ask for it.
    fn abandon(&mut self, at: Attachment) {
        rule!("ZKG-S5");
        let call = self.ask(Purpose::Abandon);
        let close = Operation::Request { at, code: opcode::CLOSE_SESSION, body: Bytes::new() };
        self.outputs.push_back(Output::Execute { call, operations: vec![close.to_wire()] });
    }

    /// A client has no session through this gateway now, for what the group answered.
    fn keep_out(&mut self, id: ConnectionId, answer: Option<&Answer>) {
        self.measures.entered[FAILED] += 1;
        let ahead = answer.and_then(Answer::is_ahead_of);
        self.behind = ahead.or(self.behind);
        self.end(id, false, if ahead.is_some() { Ended::Ahead } else { Ended::Unanswered });
    }

    /// There is no such session.
    fn refuse(&mut self, id: ConnectionId, says_read_only: bool) {
        self.measures.entered[EXPIRED] += 1;
        self.write(id, wire::refused(says_read_only));
        self.close(id, true);
    }
}
