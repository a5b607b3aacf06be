//! The requests of a session, on their way to the group.

use super::line::{Going, Pending, Reply, State, What, fits};
use super::{ConnectionId, Machine, Output, Purpose, wire};
use crate::Consistency;
use bytes::Bytes;
use troth_types::{Time, Wire};
use troth_zookeeper::{Code, Operation, only_reads, opcode};

impl Machine {
    /// A packet of a client that has a session.
    pub(super) fn request(&mut self, now: Time, id: ConnectionId, packet: &Bytes) {
        let Some(connection) = self.connections.get_mut(&id) else { return };
        let Some(session) = connection.session() else { return };
        let Ok((xid, code, body)) = wire::read_request(packet) else { return self.close(id, false) };
        session.alive = true;
        let (at, shown) = (session.at, session.shown);
        let (unconfirmed, behind) = (session.is_unconfirmed(now), session.is_behind(now));
        if behind {
            self.touch_soon(now);
        }
        if code == opcode::PING {
            rule!("ZKG-L4");
            if unconfirmed {
                return self.close(id, true);
            }
            rule!("ZKG-L2");
            self.write(id, wire::reply(wire::PING_XID, shown, 0, &[]));
            return self.done(id, packet.len());
        }
        if code == opcode::SASL {
            return self.sasl(now, id, xid, packet.len(), &body);
        }
        let reads = only_reads(code, &body);
        let operation = Operation::Request { at, code, body }.to_wire();
        let ends = matches!(code, opcode::AUTH | opcode::CLOSE_SESSION);
        let mut pending = Pending {
            xid,
            what: What::Request(code),
            bytes: packet.len(),
            since: now,
            operation,
            reads,
            repeats: reads || reads_and_watches(code),
            alone: false,
            ends,
            state: State::Waiting,
        };
        if !fits(&pending.operation, &self.settings.limits) {
            pending.state = State::Settled(too_large());
            pending.operation = Bytes::new();
        }
        if let Some(connection) = self.connections.get_mut(&id) {
            connection.line.push(pending);
        }
    }

    /// Sends what may go now.
    pub(super) fn dispatch(&mut self, now: Time, id: ConnectionId) {
        let Some(connection) = self.connections.get_mut(&id) else { return };
        match connection.line.go(&self.settings.limits, self.expected) {
            Going::Nothing => {}
            Going::Together(numbers) => {
                if let Some(session) = connection.session() {
                    // The group hears of the client by this.
                    session.alive = false;
                }
                let operations = operations(connection, &numbers);
                let call = self.ask(Purpose::Requests(id, numbers, now));
                self.outputs.push_back(Output::Execute { call, operations });
            }
            Going::Reads(numbers) => {
                rule!("ZKG-C1");
                let recent = self.settings.consistency == Consistency::Sequential;
                for (number, operation) in numbers.iter().zip(operations(connection, &numbers)) {
                    let call = self.ask(Purpose::Look(id, *number));
                    self.outputs.push_back(Output::Read { call, operation, recent });
                }
            }
        }
    }
}

/// Whether a request with this code changes nothing but what is watched.
fn reads_and_watches(code: i32) -> bool {
    use opcode::{EXISTS, GET_ACL, GET_CHILDREN, GET_CHILDREN2, GET_DATA};
    matches!(code, EXISTS | GET_ACL | GET_CHILDREN | GET_CHILDREN2 | GET_DATA)
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
