//! The requests of a session, on their way to the group.

use super::line::{Expected, Going, Line, Pending, Reply, State, What, fits};
use super::measures::{Ended, OK, PING, Refused, Times};
use super::{ConnectionId, Machine, Output, Purpose, wire};
use crate::Consistency;
use bytes::Bytes;
use troth_types::{Limits, Time, Wire};
use troth_zookeeper::{Code, MAX_READS, MAX_SHOWN, Operation, looks_at_one, may_be_long, only_reads, opcode};

impl Machine {
    /// A packet of a client that has a session.
    pub(super) fn request(&mut self, now: Time, id: ConnectionId, packet: &Bytes) {
        let Some(connection) = self.connections.get_mut(&id) else { return };
        let Some(session) = connection.session() else { return };
        let Ok((xid, code, body)) = wire::read_request(packet) else {
            self.measures.refuse(Refused::Malformed);
            return self.end(id, false, Ended::Malformed);
        };
        session.alive = true;
        let (at, shown) = (session.at, session.shown);
        let (unconfirmed, behind) = (session.is_unconfirmed(now), session.is_behind(now));
        if behind {
            self.touch_soon(now);
        }
        if code == opcode::PING {
            rule!("ZKG-L4");
            if unconfirmed {
                return self.end(id, true, Ended::Unconfirmed);
            }
            rule!("ZKG-L2");
            self.measures.requests[PING][OK] += 1;
            self.write(id, wire::reply(wire::PING_XID, shown, 0, &[]));
            return self.done(id, packet.len());
        }
        if code == opcode::SASL {
            return self.sasl(now, id, xid, packet.len(), &body);
        }
        let (reads, may_be_long) = (only_reads(code, &body), may_be_long(code, &body));
        let operation = Operation::Request { at, code, body }.to_wire();
        let what = What::Request(code);
        let ends = catches_up(&what) || matches!(code, opcode::AUTH | opcode::CLOSE_SESSION);
        let mut pending = Pending {
            xid,
            what,
            bytes: packet.len(),
            since: now,
            operation,
            reads,
            gathers: reads && looks_at_one(code),
            may_be_long,
            repeats: reads || reads_and_watches(code),
            alone: false,
            ends,
            watches: !reads && reads_and_watches(code) || watches_alone(code),
            times: Times::default(),
            state: State::Waiting,
        };
        if !fits(&pending.operation, &self.settings.limits) {
            self.measures.refuse(Refused::TooLarge);
            pending.state = State::Settled(too_large());
            pending.operation = Bytes::new();
        }
        self.wait(id, pending);
    }

    /// A request is without a reply from now on.
    pub(super) fn wait(&mut self, id: ConnectionId, pending: Pending) {
        if let Some(connection) = self.connections.get_mut(&id) {
            connection.line.push(pending);
            self.outstanding += 1;
        }
    }

    /// Sends what may go now.
    pub(super) fn dispatch(&mut self, now: Time, id: ConnectionId) {
        let Some(connection) = self.connections.get_mut(&id) else { return };
        if connection.gone.is_some() && !connection.line.has_waiting() {
            // What is under way is done without it.
            return self.forget(id);
        }
        let expected = Expected {
            together: connection.expected.max(shared(self.expected, &self.settings.limits)),
            // A connection that has just come knows nothing, and what goes before a write must not be too much.
            before: connection.expected.max(self.expected),
        };
        match connection.line.go(&self.settings.limits, expected) {
            Going::Nothing => {}
            Going::Together(numbers) => {
                if let Some(session) = connection.session() {
                    // The group hears of the client by this.
                    session.alive = false;
                }
                sent(&mut connection.line, &numbers, now);
                let operations = operations(connection, &numbers);
                rule!("ZKG-R5");
                // Of these a mark in place of the answer is to be what came of them. Where nothing is known of the group, it may
                // be for any request by itself.
                let is_alone = |number: &u64| {
                    connection.line.get_mut(*number).is_some_and(|one| one.alone || catches_up(&one.what))
                };
                let apart = numbers.iter().any(is_alone) || self.known == 0 && numbers.len() == 1;
                let call = self.call();
                self.audit_requests(call, id, &numbers);
                self.calls.insert(call, Purpose::Requests(id, numbers, now));
                self.outputs.push_back(match apart {
                    true => Output::ExecuteApart { call, operations },
                    false => Output::Execute { call, operations },
                });
            }
            Going::Reads(going) => {
                rule!("ZKG-C1");
                let recent = self.settings.consistency == Consistency::Sequential;
                for numbers in going {
                    let Some(connection) = self.connections.get_mut(&id) else { return };
                    sent(&mut connection.line, &numbers, now);
                    let mut operations = operations(connection, &numbers);
                    let operation = match operations.len() {
                        1 => operations.pop(),
                        _ => Operation::together(operations.iter()),
                    };
                    let operation = operation.expect("they are requests of one attachment, and few");
                    let call = self.ask(Purpose::Look(id, numbers));
                    self.outputs.push_back(Output::Read { call, operation, recent });
                }
            }
        }
    }
}

/// What answers to others have a connection expect of its own: never so much that one large answer to somebody would have
/// everybody's reads go one by one.
fn shared(expected: usize, limits: &Limits) -> usize {
    rule!("ZKG-O8");
    expected.min(limits.result_bytes.min(MAX_SHOWN) / 2 / MAX_READS)
}

/// Whether a request with this code changes nothing but what is watched.
fn reads_and_watches(code: i32) -> bool {
    use opcode::{EXISTS, GET_ACL, GET_CHILDREN, GET_CHILDREN2, GET_DATA};
    matches!(code, EXISTS | GET_ACL | GET_CHILDREN | GET_CHILDREN2 | GET_DATA)
}

/// Whether it asks for what its client missed. That is counted for a whole frame, so each has one of its own.
fn catches_up(what: &What) -> bool {
    rule!("ZKG-O6");
    matches!(what, What::Request(opcode::SET_WATCHES | opcode::SET_WATCHES2))
}

/// Whether one with this code does nothing else than that.
fn watches_alone(code: i32) -> bool {
    matches!(code, opcode::ADD_WATCH | opcode::SET_WATCHES | opcode::SET_WATCHES2)
}

/// Notes that these go to the group now.
fn sent(line: &mut Line, numbers: &[u64], now: Time) {
    for number in numbers {
        if let Some(pending) = line.get_mut(*number) {
            pending.times.sent = Some(now);
        }
    }
}

fn operations(connection: &mut super::Connection, numbers: &[u64]) -> Vec<Bytes> {
    let of = |number: &u64| connection.line.get_mut(*number).map(|pending| pending.operation.clone());
    numbers.iter().filter_map(of).collect()
}

/// What the group cannot take, and has not executed.
pub(super) fn too_large() -> Reply {
    rule!("ZKG-R4");
    Reply { zxid: 0, error: Code::MarshallingError.number(), body: Bytes::new(), last: false }
}
