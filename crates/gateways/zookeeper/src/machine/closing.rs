//! What is left of a connection that the gateway has closed: what its client has not read. It has a little time for that, in
//! which all of it takes room.

use super::connection::Stage;
use super::{ConnectionId, Machine, Output};
use crate::settings::PACKET;
use std::collections::BTreeMap;
use troth_zookeeper::MAX_SHOWN;

/// The most that a client may leave unread and be given time for: one of the longest answers, and short ones behind it. Who
/// lets more wait does not read.
const LEFT: usize = MAX_SHOWN + (64 << 10);
/// Those who are given time have such a part of what all connections may hold, so that who connects anew again and again takes
/// no more of it.
const PART: usize = 8;

/// The connections that are closed and have something unread.
#[derive(Debug, Default)]
pub(super) struct Closing {
    left: BTreeMap<ConnectionId, usize>,
    bytes: usize,
}

impl Closing {
    /// What all of them have left.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    fn add(&mut self, id: ConnectionId, bytes: usize) {
        if bytes > 0 {
            self.left.insert(id, bytes);
            self.bytes += bytes;
        }
    }

    fn written(&mut self, id: ConnectionId, bytes: usize) {
        let Some(left) = self.left.get_mut(&id) else { return };
        let gone = bytes.min(*left);
        *left -= gone;
        self.bytes -= gone;
        if *left == 0 {
            self.left.remove(&id);
        }
    }

    /// Nothing is written to it any more.
    pub(super) fn ended(&mut self, id: ConnectionId) {
        self.bytes -= self.left.remove(&id).unwrap_or(0);
    }
}

impl Machine {
    /// So many packets have gone to a client, of so many bytes together.
    pub fn written(&mut self, id: ConnectionId, packets: usize, bytes: usize) {
        let took = packets.saturating_mul(PACKET).saturating_add(bytes);
        match self.connections.get_mut(&id) {
            Some(connection) => connection.unwritten = connection.unwritten.saturating_sub(took),
            None => self.closing.written(id, took),
        }
        self.count(id);
    }

    /// Ends a connection; `flush`: what was written goes out first, if that is not too much.
    pub(super) fn close(&mut self, id: ConnectionId, flush: bool) {
        let connection = self.connections.get(&id).filter(|connection| connection.gone.is_none());
        let Some(connection) = connection else { return self.forget(id) };
        let left = connection.unwritten;
        // What a word is answered with is as long as there are connections, and all that there is.
        let reads = left <= LEFT || matches!(connection.stage, Stage::New);
        self.forget(id);
        rule!("ZKG-B6");
        let has_room = self.closing.bytes + left <= self.settings.memory_bytes / PART;
        let flush = flush && reads && has_room;
        if flush {
            self.closing.add(id, left);
        }
        self.outputs.push_back(Output::Close { connection: id, flush });
    }
}
