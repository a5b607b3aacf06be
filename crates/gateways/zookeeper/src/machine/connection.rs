//! What is known of a connection.

use super::line::Line;
use super::measures::Ended;
use super::sasl::Sasl;
use super::statistics::Numbers;
use super::watches::Held;
use super::wire::ConnectRequest;
use super::{ConnectionId, Machine, Peer};
use bytes::Bytes;
use core::net::SocketAddr;
use troth_types::Time;
use troth_zookeeper::acl::Id;
use troth_zookeeper::{Attachment, Password};

/// A connection of a client.
#[derive(Debug)]
pub(super) struct Connection {
    pub(super) address: SocketAddr,
    /// Who its client is, as far as a gateway sees it.
    pub(super) who: Vec<Id>,
    /// Who it has proved to be since; kept only where somebody writes down who does what.
    pub(super) proven: Vec<String>,
    /// How many it proved to be before those.
    pub(super) proven_before: usize,
    pub(super) random: [u8; 32],
    pub(super) opened: Time,
    /// When the last packet came.
    pub(super) heard: Time,
    /// Since when its client is gone; then what it asked for is done yet.
    pub(super) gone: Option<Time>,
    pub(super) stage: Stage,
    pub(super) sasl: Sasl,
    /// Its session's requests.
    pub(super) line: Line,
    /// Events that wait for an answer that may come before them.
    pub(super) held: Held,
    /// Packets that are not done with, and their bytes with what each takes beside.
    pub(super) requests: usize,
    pub(super) bytes: usize,
    /// Bytes that have come of a packet that is not whole.
    pub(super) part: usize,
    /// Bytes on their way to the client, with what each packet takes beside.
    pub(super) unwritten: usize,
    /// The bytes that what one of its reads shows may have, as far as the last answers tell.
    pub(super) expected: usize,
    /// What of all of this is counted in what all connections hold.
    pub(super) counted: usize,
    pub(super) statistics: Numbers,
}

/// How far it is.
#[derive(Debug)]
pub(super) enum Stage {
    /// Nothing has come.
    New,
    /// The group was asked for a session.
    Entering(Entering),
    /// It has one.
    Attached(Session),
}

/// A client that waits for its session.
#[derive(Debug)]
pub(super) struct Entering {
    pub(super) request: ConnectRequest,
    /// The password of the session that it opens, or that it showed.
    pub(super) password: Password,
    /// Bytes of its first packet.
    pub(super) bytes: usize,
    /// When the group was asked for the session.
    pub(super) sent: Time,
    /// Whether it has not answered what it was asked for this client.
    pub(super) asked: bool,
    /// What came behind it.
    pub(super) early: Vec<Bytes>,
}

/// A session as it is attached here.
#[derive(Debug)]
pub(super) struct Session {
    pub(super) at: Attachment,
    /// Microseconds without a sign of life after which it ends.
    pub(super) timeout: u64,
    /// The last transaction that its client was shown, here or before.
    pub(super) shown: i64,
    /// Whether its client gave a sign of life that the group has not heard of.
    pub(super) alive: bool,
    /// When the last call was sent by which the group has heard of its client: its answer came. The group does not end the
    /// session before its time-out has passed from here on.
    pub(super) confirmed: Time,
}

impl Session {
    /// The group has heard of the client by a call that was sent then.
    pub(super) fn confirm(&mut self, sent: Time) {
        self.confirmed = self.confirmed.max(sent);
    }
}

impl Connection {
    pub(super) fn new(now: Time, peer: Peer) -> Self {
        let address = peer.address.ip().to_canonical();
        let mut who = vec![Id::new("ip", &address.to_string())];
        who.extend(peer.certificate.iter().map(|subject| Id::new("x509", subject)));
        Self {
            address: peer.address,
            who,
            proven: Vec::new(),
            proven_before: 0,
            random: peer.random,
            opened: now,
            heard: now,
            gone: None,
            stage: Stage::New,
            sasl: Sasl::default(),
            line: Line::default(),
            held: Held::default(),
            requests: 0,
            bytes: 0,
            part: 0,
            unwritten: 0,
            expected: 0,
            counted: 0,
            statistics: Numbers::default(),
        }
    }

    /// The bytes that it makes the gateway hold.
    fn held_bytes(&self) -> usize {
        self.bytes + self.part + self.unwritten + self.held.bytes() + self.line.seen_bytes()
    }

    pub(super) fn session(&mut self) -> Option<&mut Session> {
        match &mut self.stage {
            Stage::Attached(session) => Some(session),
            Stage::New | Stage::Entering(_) => None,
        }
    }
}

impl Machine {
    /// What all connections make the gateway hold, those too that are closed and have something unread.
    pub(super) fn all_held(&self) -> usize {
        self.held_bytes + self.closing.bytes()
    }

    /// Counts anew what a connection holds, and closes the one that holds most where all hold too much.
    pub(super) fn count(&mut self, id: ConnectionId) {
        if let Some(connection) = self.connections.get_mut(&id) {
            let held = connection.held_bytes();
            self.held_bytes = self.held_bytes - connection.counted + held;
            connection.counted = held;
        }
        rule!("ZKG-B5");
        while self.all_held() > self.settings.memory_bytes {
            let most = self.connections.iter().max_by_key(|(_, connection)| connection.counted);
            let Some(id) = most.map(|(id, _)| *id) else { return };
            self.end(id, false, Ended::Memory);
        }
    }
}
