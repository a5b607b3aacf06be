//! The group's answers to the requests of a session, and what its client is told.

use super::handshake::only;
use super::line::{Pending, Reply, State, What};
use super::measures::Ended;
use super::requests::too_large;
use super::sasl::no_token;
use super::{ConnectionId, Machine, wire};
use bytes::Bytes;
use troth_client::ClientError;
use troth_types::{Limits, Time, Wire};
use troth_zookeeper::{Answer, Code, MAX_SHOWN, Replied, opcode};

/// What a write may be answered with beside its own bytes, for each of them and in all.
const ANSWERED_EACH: usize = 8;
const ANSWERED: usize = 16 << 10;

/// Whether this stands in the place of an answer that was too large for the group. No other answer is of transaction 0, but those
/// of a group in which nothing has happened yet.
fn is_mark(answer: &Answer) -> bool {
    let error = Code::MarshallingError.number();
    matches!(answer, Answer::Reply { zxid: 0, error: of, body } if *of == error && body.is_empty())
}

/// Whether a mark is what came of this request, one of so many that went together, and stands in the place of no other answer:
/// it had a frame of its own, in which there is room for any answer that may be shown. `fresh`: no transaction is known.
fn is_what_came(pending: &Pending, requests: usize, fresh: bool, limits: &Limits) -> bool {
    rule!("ZKG-R5");
    let shown = pending.operation.len().saturating_mul(ANSWERED_EACH).saturating_add(ANSWERED);
    let fits = shown <= limits.result_bytes && requests == 1;
    pending.alone || fresh && fits && !pending.repeats
}

/// Whether a session that is told so is over, or elsewhere.
fn ends_session(error: i32) -> bool {
    [Code::SessionExpired, Code::SessionMoved].map(Code::number).contains(&error)
}

/// What an answer means for the request `what`: a reply, or the end of the connection without one.
fn reply_of(what: &What, answer: Answer) -> Option<Reply> {
    let Answer::Reply { zxid, error, body } = answer else { return None };
    rule!("ZKG-R3");
    if ends_session(error) {
        return None;
    }
    let (last, body) = match what {
        What::Request(opcode::AUTH) if error == Code::MarshallingError.number() => return None,
        What::Request(opcode::AUTH) => (error != 0, body),
        What::Request(opcode::CLOSE_SESSION) => (true, body),
        What::Request(_) => (error == Code::Unimplemented.number(), body),
        What::Identify(token) if error == 0 => (false, token.clone()),
        What::Identify(_) => (true, no_token()),
    };
    Some(Reply { zxid, error, body, last })
}

fn shown_bytes(answer: &Answer) -> usize {
    match answer {
        Answer::Reply { body, .. } => body.len(),
        _ => 0,
    }
}

impl Machine {
    /// Requests of a session were ordered, or were not.
    pub(super) fn executed(
        &mut self,
        now: Time,
        id: ConnectionId,
        (numbers, sent): (&[u64], Time),
        results: Result<Vec<Bytes>, ClientError>,
    ) {
        let limits = self.settings.limits;
        let Some(connection) = self.connections.get_mut(&id) else { return };
        connection.line.ordered();
        let answers: Option<Vec<Option<Answer>>> = match results {
            Ok(results) => results.iter().map(|result| Answer::from_wire(result).ok().map(Some)).collect(),
            Err(ClientError::TooLarge) => Some(vec![None; numbers.len()]),
            Err(_) => None,
        };
        rule!("ZKG-R1");
        let Some(answers) = answers.filter(|answers| answers.len() == numbers.len()) else {
            return self.end(id, true, Ended::Unanswered);
        };
        rule!("ZKG-L5");
        let ahead = answers.iter().flatten().find_map(Answer::is_ahead_of);
        if ahead.is_some() {
            self.behind = ahead;
            return self.end(id, true, Ended::Ahead);
        }
        rule!("ZKG-L4");
        let fresh = self.known == 0;
        let heard = numbers.iter().zip(&answers).any(|(number, answer)| match answer {
            // It may stand for the answer that nothing was done.
            Some(answer) if is_mark(answer) => {
                let pending = connection.line.get_mut(*number);
                pending.is_some_and(|pending| is_what_came(pending, numbers.len(), fresh, &limits))
            }
            answer => answer.is_some(),
        });
        if let Some(session) = connection.session() {
            match heard {
                true => session.confirm(sent),
                false => session.alive = true,
            }
        }
        self.expect(id, numbers, &answers);
        // Nobody is told, so what could not be shown is no matter.
        let gone = self.connections.get(&id).is_some_and(|connection| connection.gone.is_some());
        let mut over = false;
        for (at, (number, answer)) in numbers.iter().zip(answers).enumerate() {
            let Some(connection) = self.connections.get_mut(&id) else { return };
            let Some(pending) = connection.line.get_mut(*number) else { continue };
            let is_answer = gone || is_what_came(pending, numbers.len(), fresh, &limits);
            if answer.as_ref().is_some_and(is_mark) && !is_answer {
                over = !connection.line.repeat(&numbers[at..]);
                break;
            }
            let reply = match answer {
                Some(answer) => reply_of(&pending.what, answer),
                None => Some(too_large()),
            };
            match reply {
                Some(reply) => pending.state = State::Settled(reply),
                // What came before it is still told.
                None => {
                    over = true;
                    break;
                }
            }
        }
        if over {
            self.flush(now, id);
            return self.end(id, true, Ended::Unanswered);
        }
        self.flush(now, id);
        // What is sent from here on is executed after whatever these tell of.
        self.release(id);
        self.dispatch(now, id);
    }

    /// A read was answered, or was not; `fast`: without being ordered.
    pub(super) fn looked(
        &mut self,
        now: Time,
        id: ConnectionId,
        number: u64,
        results: Result<Vec<Bytes>, ClientError>,
        fast: bool,
    ) {
        let Some(connection) = self.connections.get_mut(&id) else { return };
        let is_answer = fast || connection.gone.is_some();
        let Some(pending) = connection.line.get_mut(number) else { return };
        let mut shown = 0;
        let reply = match results {
            Err(ClientError::TooLarge) => Some(too_large()),
            results => match only(results) {
                Some(answer) if is_mark(&answer) => {
                    rule!("ZKG-R5");
                    // It may have been ordered in one frame with what others asked for. One that was not ordered stood alone.
                    match is_answer {
                        true => connection.line.settled(number, too_large()),
                        false => connection.line.ask_apart(number),
                    }
                    return self.advance(now, id);
                }
                Some(Answer::Ahead(agreed)) => {
                    self.behind = Some(agreed);
                    return self.end(id, true, Ended::Ahead);
                }
                answer => {
                    shown = answer.as_ref().map_or(0, shown_bytes);
                    answer.and_then(|answer| reply_of(&pending.what, answer))
                }
            },
        };
        match reply {
            Some(reply) => connection.line.seen(number, reply),
            None => return self.end(id, true, Ended::Unanswered),
        }
        self.saw(id, shown);
        self.advance(now, id);
    }

    /// Reads that stood in one operation were answered, or were not.
    pub(super) fn looked_together(
        &mut self,
        now: Time,
        id: ConnectionId,
        numbers: &[u64],
        results: Result<Vec<Bytes>, ClientError>,
    ) {
        let answer = match results {
            Err(ClientError::TooLarge) => {
                Some(Answer::Reply { zxid: 0, error: too_large().error, body: Bytes::new() })
            }
            results => only(results),
        };
        let Some(connection) = self.connections.get_mut(&id) else { return };
        match answer {
            Some(Answer::Replies { zxid, replies }) if replies.len() == numbers.len() => {
                let most = replies.iter().map(|replied| replied.body.len()).max().unwrap_or(0);
                for (number, Replied { error, body }) in numbers.iter().zip(replies) {
                    let Some(pending) = connection.line.get_mut(*number) else { return };
                    match reply_of(&pending.what, Answer::Reply { zxid, error, body }) {
                        Some(reply) => connection.line.seen(*number, reply),
                        None => return self.end(id, true, Ended::Unanswered),
                    }
                }
                self.saw(id, most);
            }
            Some(Answer::Ahead(agreed)) => {
                self.behind = Some(agreed);
                return self.end(id, true, Ended::Ahead);
            }
            // Too much together, mostly.
            Some(Answer::Reply { error, .. }) if error != 0 && !ends_session(error) => {
                rule!("ZKG-R6");
                if connection.gone.is_some() {
                    numbers.iter().for_each(|number| connection.line.seen(*number, too_large()));
                } else {
                    connection.line.ask_each(numbers);
                }
                let limits = &self.settings.limits;
                self.saw(id, limits.result_bytes.min(MAX_SHOWN) / numbers.len().max(1));
            }
            _ => return self.end(id, true, Ended::Unanswered),
        }
        self.advance(now, id);
    }

    /// Learns from answers how large they are.
    fn expect(&mut self, id: ConnectionId, numbers: &[u64], answers: &[Option<Answer>]) {
        let Some(connection) = self.connections.get_mut(&id) else { return };
        let mut most = 0;
        for (number, answer) in numbers.iter().zip(answers) {
            let Some(answer) = answer else { continue };
            // A list that is too long to be shown weighs as much for the group; what makes no sense is answered alike.
            let refused =
                matches!(answer, Answer::Reply { error, .. } if *error == Code::MarshallingError.number());
            let too_long =
                refused && connection.line.get_mut(*number).is_some_and(|pending| pending.may_be_long);
            let bytes = if too_long { self.settings.limits.result_bytes } else { shown_bytes(answer) };
            most = most.max(bytes);
        }
        self.saw(id, most);
    }

    /// A connection was shown so much by one answer.
    fn saw(&mut self, id: ConnectionId, bytes: usize) {
        self.expected = self.expected.max(bytes);
        if let Some(connection) = self.connections.get_mut(&id) {
            connection.expected = connection.expected.max(bytes);
        }
    }

    /// Time has passed: what was large may be so no longer.
    pub(super) fn expect_less(&mut self) {
        let of_connections = self.connections.values_mut().map(|connection| &mut connection.expected);
        for expected in of_connections.chain([&mut self.expected]) {
            *expected -= expected.div_ceil(16);
        }
    }

    /// Writes the replies that are there, in the order of the requests, and between them the events that waited for them.
    pub(super) fn flush(&mut self, now: Time, id: ConnectionId) {
        loop {
            let Some(connection) = self.connections.get_mut(&id) else { return };
            let gone = connection.gone.is_some();
            let shown = connection.session().filter(|_| !gone).map_or(0, |session| session.shown);
            let Some((pending, reply)) = connection.line.take_answered(shown) else { return };
            self.outstanding -= 1;
            if gone {
                self.measures.lost(&pending.what);
                self.done(id, pending.bytes);
                if reply.last {
                    return self.forget(id);
                }
                continue;
            }
            self.release_up_to(id, reply.zxid);
            self.show(id, reply.zxid);
            rule!("ZKG-R2");
            self.write(id, wire::reply(pending.xid, reply.zxid, reply.error, &reply.body));
            self.note(id, now, pending.since, pending.xid, &pending.what, reply.zxid);
            self.measures.answered(now, &pending, &reply);
            self.note_slow(now, id, &pending, &reply);
            self.done(id, pending.bytes);
            if reply.last {
                return self.close(id, true);
            }
        }
    }

    /// The client of a session is shown a transaction.
    pub(super) fn show(&mut self, id: ConnectionId, zxid: i64) {
        self.known = self.known.max(zxid);
        if let Some(session) = self.connections.get_mut(&id).and_then(|connection| connection.session()) {
            session.shown = session.shown.max(zxid);
        }
    }
}
