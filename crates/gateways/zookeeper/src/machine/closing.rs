//! What is left of a connection that the gateway has closed: what its client has not read. It has a little time for that, in
//! which all of it takes room.

use super::{ConnectionId, Machine, Output};
use crate::settings::PACKET;
use std::collections::BTreeMap;

/// Those who are given time have such a part of what all connections may hold, so that who connects anew again and again takes
/// no more of it.
const PART: usize = 8;
/// Who has no more than this left is given time whatever the others have: why its connection ends is among it.
const LAST_WORDS: usize = 4 << 10;

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

    /// Ends a connection; `flush`: what was written goes out first, if there is room for that.
    pub(super) fn close(&mut self, id: ConnectionId, flush: bool) {
        let connection = self.connections.get(&id).filter(|connection| connection.gone.is_none());
        let Some(connection) = connection else { return self.forget(id) };
        let left = connection.unwritten;
        self.forget(id);
        rule!("ZKG-B6");
        let has_room = self.closing.bytes + left <= self.settings.memory_bytes / PART;
        let flush = flush && (has_room || left <= LAST_WORDS);
        if flush {
            self.closing.add(id, left);
        }
        self.outputs.push_back(Output::Close { connection: id, flush });
    }
}
