//! What the group tells of its own accord.

use super::connection::{Connection, Stage};
use super::measures::Ended;
use super::{ConnectionId, Machine, wire};
use crate::settings::PACKET;
use bytes::Bytes;
use std::collections::VecDeque;
use troth_types::Wire;
use troth_zookeeper::{Attachment, Notice};

/// Events that may have to come behind a reply that is not there yet.
#[derive(Debug, Default)]
pub(super) struct Held {
    events: VecDeque<(i64, Bytes)>,
    bytes: usize,
}

impl Held {
    /// Their bytes, with what each packet takes beside.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// There is nobody to tell.
    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }

    fn push(&mut self, zxid: i64, packet: Bytes) {
        self.bytes += packet.len() + PACKET;
        self.events.push_back((zxid, packet));
    }

    /// Takes the first, if it is not of a later transaction.
    fn take_up_to(&mut self, zxid: i64) -> Option<(i64, Bytes)> {
        if self.events.front()?.0 > zxid {
            return None;
        }
        let (zxid, packet) = self.events.pop_front()?;
        self.bytes -= packet.len() + PACKET;
        Some((zxid, packet))
    }
}

impl Machine {
    /// The group tells something. Nothing at all stands for events that are lost.
    pub fn event(&mut self, payload: &Bytes) {
        if payload.is_empty() {
            return self.lost();
        }
        match Notice::from_wire(payload) {
            Ok(Notice::Fired { at, kind, path, zxid }) => self.fired(at, kind, &path, zxid),
            Ok(Notice::Over(at)) => self.over(at),
            // A later release may say more than this one understands; to leave it out would be to lose it.
            Err(_) => self.lost(),
        }
    }

    /// Nobody knows what the clients were not told: they connect anew and say what they watch.
    fn lost(&mut self) {
        rule!("ZKG-E3");
        self.measures.lost_markers += 1;
        // What was lost may have been told of a session whose answer is still on its way, too.
        let has =
            |connection: &Connection| connection.gone.is_none() && !matches!(connection.stage, Stage::New);
        let all = self.connections.iter().filter(|(_, connection)| has(connection));
        let ids: Vec<ConnectionId> = all.map(|(id, _)| *id).collect();
        for id in ids {
            self.end(id, true, Ended::EventsLost);
        }
    }

    fn fired(&mut self, at: Attachment, kind: i32, path: &str, zxid: i64) {
        self.known = self.known.max(zxid);
        rule!("ZKG-E4");
        let Some(id) = self.attached.get(&at).copied() else { return };
        let Some(connection) = self.connections.get_mut(&id).filter(|connection| connection.gone.is_none())
        else {
            return;
        };
        let packet = wire::event(zxid, kind, path);
        rule!("ZKG-E2");
        if connection.line.is_ordering() {
            connection.held.push(zxid, packet);
            if connection.held.bytes + connection.unwritten > self.settings.unwritten_bytes {
                self.end(id, false, Ended::Unread);
            }
            return self.count(id);
        }
        self.show(id, zxid);
        self.measures.events += 1;
        self.write(id, packet);
        self.count(id);
    }

    /// The session has ended, or is attached elsewhere.
    pub(super) fn over(&mut self, at: Attachment) {
        rule!("ZKG-S4");
        if let Some(id) = self.attached.get(&at).copied() {
            return self.end(id, true, Ended::Over);
        }
        // Perhaps the answer that attaches it here is still on its way. One that is only being opened nobody else can attach, and
        // if it ends signs of life say so.
        if self.entering.contains_key(&at.session) {
            let number = self.early_overs.entry(at.session).or_default();
            *number = at.number.max(*number);
        }
    }

    /// Whether it was told already that this attachment, whose answer came now, is over.
    pub(super) fn is_over_already(&self, at: Attachment) -> bool {
        self.early_overs.get(&at.session).is_some_and(|number| *number >= at.number)
    }

    /// An answer has come that attaches this session. What was over already is forgotten where no other is on its way.
    pub(super) fn forget_overs(&mut self, session: i64) {
        let Some(calls) = self.entering.get_mut(&session) else { return };
        *calls -= 1;
        if *calls == 0 {
            self.entering.remove(&session);
            self.early_overs.remove(&session);
        }
    }

    /// Writes the held events that a reply with this transaction may reveal.
    pub(super) fn release_up_to(&mut self, id: ConnectionId, zxid: i64) {
        rule!("ZKG-E1");
        loop {
            let Some(connection) = self.connections.get_mut(&id) else { return };
            let Some((zxid, packet)) = connection.held.take_up_to(zxid) else { return };
            self.show(id, zxid);
            self.measures.events += 1;
            self.write(id, packet);
        }
    }

    /// Writes the held events: all that was on its way to be ordered has its replies.
    pub(super) fn release(&mut self, id: ConnectionId) {
        self.release_up_to(id, i64::MAX);
    }
}
