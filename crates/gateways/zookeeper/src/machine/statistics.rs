//! What is counted, for the four-letter words.

use super::line::What;
use super::{ConnectionId, Machine};
use troth_types::Time;
use troth_zookeeper::opcode;

/// Counts of a gateway or of one connection.
#[derive(Clone, Debug, Default)]
pub(super) struct Numbers {
    pub(super) received: u64,
    pub(super) sent: u64,
    pub(super) latency: Latency,
    pub(super) last: Option<Last>,
}

/// How long replies took, in milliseconds.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Latency {
    least: Option<u64>,
    most: u64,
    sum: u64,
    count: u64,
}

impl Latency {
    fn add(&mut self, millis: u64) {
        self.least = Some(self.least.map_or(millis, |least| least.min(millis)));
        self.most = self.most.max(millis);
        self.sum = self.sum.saturating_add(millis);
        self.count += 1;
    }

    pub(super) fn least(&self) -> u64 {
        self.least.unwrap_or(0)
    }

    pub(super) fn most(&self) -> u64 {
        self.most
    }

    /// To four places.
    pub(super) fn average(&self) -> f64 {
        let ten_thousandths = self.sum.saturating_mul(10_000).checked_div(self.count).unwrap_or(0);
        // Exact up to 2^53, which no latency comes near.
        ten_thousandths as f64 / 10_000.0
    }

    pub(super) fn whole_average(&self) -> u64 {
        self.sum.checked_div(self.count).unwrap_or(0)
    }
}

/// The last request that a connection got a reply to.
#[derive(Clone, Copy, Debug)]
pub(super) struct Last {
    pub(super) operation: &'static str,
    pub(super) xid: i32,
    pub(super) zxid: i64,
    pub(super) at: Time,
    pub(super) latency: u64,
}

/// Counts of the gateway.
#[derive(Debug, Default)]
pub(super) struct Statistics {
    pub(super) totals: Numbers,
    /// Connections that were too many.
    pub(super) rejected: u64,
}

impl Machine {
    /// A reply was written.
    pub(super) fn note(
        &mut self,
        id: ConnectionId,
        now: Time,
        since: Time,
        xid: i32,
        what: &What,
        zxid: i64,
    ) {
        let latency = now.0.saturating_sub(since.0) / 1000;
        self.statistics.totals.latency.add(latency);
        if let Some(connection) = self.connections.get_mut(&id) {
            let operation = operation(what);
            connection.statistics.latency.add(latency);
            connection.statistics.last = Some(Last { operation, xid, zxid, at: now, latency });
        }
    }
}

/// What `cons` calls a request.
fn operation(what: &What) -> &'static str {
    let What::Request(code) = what else { return "SASL" };
    match *code {
        opcode::CREATE | opcode::CREATE2 | opcode::CREATE_CONTAINER | opcode::CREATE_TTL => "CREA",
        opcode::DELETE => "DELE",
        opcode::EXISTS => "EXIS",
        opcode::GET_DATA => "GETD",
        opcode::SET_DATA => "SETD",
        opcode::GET_ACL => "GETA",
        opcode::SET_ACL => "SETA",
        opcode::GET_CHILDREN | opcode::GET_CHILDREN2 => "GETC",
        opcode::SYNC => "SYNC",
        opcode::CHECK => "CHEC",
        opcode::MULTI => "MULT",
        opcode::MULTI_READ => "MLTR",
        opcode::AUTH => "AUTH",
        opcode::SET_WATCHES | opcode::SET_WATCHES2 => "SETW",
        opcode::ADD_WATCH => "ADDW",
        opcode::CHECK_WATCHES => "CHKW",
        opcode::REMOVE_WATCHES => "REMW",
        opcode::GET_EPHEMERALS => "GETE",
        opcode::GET_ALL_CHILDREN_NUMBER => "GETACN",
        opcode::WHO_AM_I => "HOMI",
        opcode::CLOSE_SESSION => "CLOS",
        _ => "NA",
    }
}
