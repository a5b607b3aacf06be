//! What a gateway decides: a pure machine. Packets, answers and events come in, and so do time and randomness; packets to
//! write and calls of the group come out. One file for each subject.

mod audit;
mod closing;
mod connection;
mod frames;
mod handshake;
mod identities;
mod leaving;
mod line;
mod liveness;
mod measures;
mod record;
mod replies;
mod reports;
mod requests;
mod sasl;
mod slow;
mod statistics;
mod watches;
mod wire;
mod words;

pub use frames::{Frame, Frames, TooLong};
pub(crate) use measures::{
    BOUNDS, ENDED, ENTERED, Gauges, Histogram, Measures, OPERATIONS, OUTCOMES, PATHS, REFUSED,
};
pub use record::Record;
pub(crate) use reports::reports;
pub use words::{FOUR_LETTER_WORDS, is_word};

#[cfg(test)]
pub(crate) use liveness::LOOKED_AT_ALL;
#[cfg(test)]
pub(crate) use sasl::read_fields;

use crate::Settings;
use crate::settings::{PACKET, REQUEST};
use audit::Audited;
use bytes::Bytes;
use closing::Closing;
use connection::{Connection, Stage};
use core::net::{IpAddr, SocketAddr};
use liveness::Liveness;
use measures::{Ended, Refused};
use record::Records;
use statistics::Statistics;
use std::collections::{BTreeMap, VecDeque};
use troth_client::{ClientError, Course, Way};
use troth_types::Time;
use troth_zookeeper::{Attachment, Carrier};

/// A connection, as who runs the machine numbers them: each number once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConnectionId(pub u64);

/// A call of the group, by which its answer is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CallId(pub u64);

/// Who is at the other end of a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Peer {
    /// Where.
    pub address: SocketAddr,
    /// The subject of the certificate that it showed, where it showed one.
    pub certificate: Option<String>,
    /// Randomness for this connection: the password of a session that it opens, and a nonce.
    pub random: [u8; 32],
}

/// What the machine wants done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// These bytes go to a client. [`Machine::written`] says when they are gone.
    Write {
        /// Through which connection.
        to: ConnectionId,
        /// A packet with its length, or the answer to a word.
        bytes: Bytes,
    },
    /// So much of what a client asked for is done with: a request, and the bytes of its packet.
    Done {
        /// Through which connection it came.
        connection: ConnectionId,
        /// The bytes of its packet, without its length.
        bytes: usize,
    },
    /// A connection is over. [`Machine::closed`] says when nothing is written to it any more.
    Close {
        /// Which.
        connection: ConnectionId,
        /// Whether what was written goes out first; otherwise the client does not read.
        flush: bool,
    },
    /// Operations to have ordered together ([`troth_client::front::Client::execute_all`]).
    Execute {
        /// How the answer is known.
        call: CallId,
        /// The operations.
        operations: Vec<Bytes>,
    },
    /// The same in a frame of the group's client that nobody shares
    /// ([`troth_client::front::Client::execute_apart_noting`]).
    ExecuteApart {
        /// How the answer is known.
        call: CallId,
        /// The operations.
        operations: Vec<Bytes>,
    },
    /// An operation that reads ([`troth_client::front::Client::read`]).
    Read {
        /// How the answer is known.
        call: CallId,
        /// The operation.
        operation: Bytes,
        /// Whether it need not show the present, but all that was answered and told before
        /// ([`troth_client::front::Client::read_recent`]).
        recent: bool,
    },
}

/// What a call is for.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Purpose {
    /// How far the group is, for a client that says that it has seen more.
    Reach(ConnectionId),
    /// A session for a connection: the one that it had, or 0 for a new one.
    Enter(ConnectionId, i64),
    /// The end of a session whose client is gone.
    Abandon,
    /// Requests of a session, in order, by their numbers in its line; and when they were sent.
    Requests(ConnectionId, Vec<u64>, Time),
    /// What only reads: one request, or those that stand in one operation together.
    Look(ConnectionId, Vec<u64>),
    /// Signs of life, or none where the gateway would know what there is; and when they were sent.
    Touch(Vec<Attachment>, Time),
}

/// The gateway.
#[derive(Debug)]
pub struct Machine {
    settings: Settings,
    carrier: Carrier,
    connections: BTreeMap<ConnectionId, Connection>,
    /// How many connections an address has.
    addresses: BTreeMap<IpAddr, usize>,
    /// The connection through which each session is attached here.
    attached: BTreeMap<Attachment, ConnectionId>,
    /// How many calls are under way that attach a session; those that open one are counted under 0.
    entering: BTreeMap<i64, usize>,
    /// Of those sessions, the last attachment that was over before it was known here.
    early_overs: BTreeMap<i64, u64>,
    /// Where those have gone from for whom the group is asked yet.
    leaving: BTreeMap<ConnectionId, IpAddr>,
    calls: BTreeMap<CallId, Purpose>,
    next_call: u64,
    /// Requests of all connections without a reply.
    outstanding: usize,
    /// Bytes that all connections make the gateway hold, beside those that are closed.
    held_bytes: usize,
    closing: Closing,
    /// The last transaction of the group that an answer or an event showed.
    known: i64,
    /// The bytes that what a read shows may have, as far as the last answers to anybody tell.
    expected: usize,
    liveness: Liveness,
    /// The agreed time of which the group said that it is far behind this machine's.
    behind: Option<Time>,
    statistics: Statistics,
    measures: Measures,
    slow: slow::Pace,
    /// What is written down when calls are answered; empty where nobody writes it down.
    audits: BTreeMap<CallId, Audited>,
    failures: audit::Failures,
    /// The key of what tells identities of one name apart.
    fingerprints: Option<[u8; 32]>,
    records: Records,
    outputs: VecDeque<Output>,
}

impl Machine {
    /// Without connections: of this gateway.
    #[must_use]
    pub fn new(settings: Settings, carrier: Carrier) -> Self {
        Self {
            settings,
            carrier,
            connections: BTreeMap::new(),
            addresses: BTreeMap::new(),
            attached: BTreeMap::new(),
            entering: BTreeMap::new(),
            early_overs: BTreeMap::new(),
            leaving: BTreeMap::new(),
            calls: BTreeMap::new(),
            next_call: 0,
            outstanding: 0,
            held_bytes: 0,
            closing: Closing::default(),
            known: 0,
            expected: 0,
            liveness: Liveness::default(),
            behind: None,
            statistics: Statistics::default(),
            measures: Measures::default(),
            slow: slow::Pace::default(),
            audits: BTreeMap::new(),
            failures: audit::Failures::default(),
            fingerprints: None,
            records: Records::default(),
            outputs: VecDeque::new(),
        }
    }

    /// The next thing that the machine wants done, in order. Take all of them after each input.
    pub fn poll(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    /// The next line for a log, in order. Take all of them after each input, too. There are none where the settings name no log
    /// for them.
    pub fn poll_record(&mut self) -> Option<Record> {
        self.records.0.pop_front()
    }

    /// The agreed time, if the group has said since the last call of this that what it was asked was ahead of it by more than
    /// it bears (ZKG-L5).
    pub fn take_behind(&mut self) -> Option<Time> {
        self.behind.take()
    }

    /// Connections now.
    #[must_use]
    pub fn connections(&self) -> usize {
        self.connections.len()
    }

    /// A client has connected. Where there are too many, the connection is closed at once.
    pub fn opened(&mut self, now: Time, id: ConnectionId, peer: Peer) {
        rule!("ZKG-B3");
        let address = peer.address.ip().to_canonical();
        let of_address = self.addresses.get(&address).copied().unwrap_or(0);
        let most = self.settings.connections_per_address;
        // Those count, too, for whom the group is asked though they are gone.
        let of_all = self.connections.len() + self.leaving.len() >= self.settings.connections;
        if of_all || (most > 0 && of_address >= most) {
            self.statistics.rejected += 1;
            self.measures.rejected[usize::from(!of_all)] += 1;
            self.outputs.push_back(Output::Close { connection: id, flush: false });
            return;
        }
        let before = self.connections.insert(id, Connection::new(now, peer));
        assert!(before.is_none(), "connections are numbered anew");
        self.addresses.insert(address, of_address + 1);
        self.connection_began(now);
    }

    /// Packets have come from a client, in order; they go on together. The reader must have kept to the bounds
    /// ([`Settings::outstanding_requests`], [`Settings::outstanding_bytes`]).
    pub fn packets(&mut self, now: Time, id: ConnectionId, packets: Vec<Bytes>) {
        for packet in packets {
            self.packet(now, id, packet);
        }
        self.advance(now, id);
        self.count(id);
    }

    /// So many bytes have come of a packet that is not whole yet: the gateway holds them as it holds what waits.
    pub fn part(&mut self, id: ConnectionId, bytes: usize) {
        if let Some(connection) = self.connections.get_mut(&id).filter(|connection| connection.gone.is_none())
        {
            connection.part = bytes;
        }
        self.count(id);
    }

    fn packet(&mut self, now: Time, id: ConnectionId, packet: Bytes) {
        let Some(connection) = self.connections.get_mut(&id).filter(|connection| connection.gone.is_none())
        else {
            return;
        };
        connection.part = 0;
        connection.heard = now;
        connection.statistics.received += 1;
        self.statistics.totals.received += 1;
        connection.requests += 1;
        connection.bytes += packet.len() + REQUEST;
        rule!("ZKG-B2");
        let most = self.settings.most_outstanding_bytes();
        if connection.requests > self.settings.outstanding_requests || connection.bytes > most {
            self.measures.refuse(Refused::Outstanding);
            return self.end(id, false, Ended::Outstanding);
        }
        match &mut connection.stage {
            Stage::New => self.enter(now, id, packet),
            // Java's clients over TLS send all that they have at once. What was read may be a small part of what the reader had
            // room for.
            Stage::Entering(entering) => entering.early.push(Bytes::copy_from_slice(&packet)),
            Stage::Attached(_) => self.request(now, id, &packet),
        }
    }

    /// The group has answered a call. Whatever events came before must have been handed in already.
    pub fn answered(&mut self, now: Time, call: CallId, results: Result<Vec<Bytes>, ClientError>) {
        self.answered_on(now, call, results, &Course::default());
    }

    /// The same, with where its time went.
    pub fn answered_on(
        &mut self,
        now: Time,
        call: CallId,
        results: Result<Vec<Bytes>, ClientError>,
        course: &Course,
    ) {
        let Some(purpose) = self.calls.remove(&call) else { return };
        // Replicas answer reads also where they are too few to order anything.
        if results.is_ok() && !matches!(purpose, Purpose::Look(..) | Purpose::Reach(_)) {
            self.group_answered();
        }
        self.audit(now, call, &results);
        self.follow(now, &purpose, course);
        match purpose {
            Purpose::Reach(id) => self.reached(now, id, results),
            Purpose::Enter(id, session) => {
                self.entered(now, (id, session), results);
                self.count(id);
            }
            Purpose::Abandon => {}
            Purpose::Requests(id, numbers, sent) => {
                self.executed(now, id, (&numbers, sent), results);
                self.count(id);
            }
            Purpose::Look(id, numbers) => {
                match numbers[..] {
                    [number] => self.looked(now, id, number, results, course.way == Way::Fast),
                    _ => self.looked_together(now, id, &numbers, results),
                }
                self.count(id);
            }
            Purpose::Touch(touched, sent) => self.touched(now, (touched, sent), results),
        }
    }

    /// Ends all connections.
    pub fn stop(&mut self) {
        let all: Vec<ConnectionId> = self.connections.keys().copied().collect();
        for id in all {
            self.close(id, true);
        }
    }

    /// Goes on with a connection's requests: writes what is answered, and sends what may go.
    fn advance(&mut self, now: Time, id: ConnectionId) {
        self.flush(now, id);
        self.dispatch(now, id);
    }

    fn ask(&mut self, purpose: Purpose) -> CallId {
        let call = self.call();
        self.calls.insert(call, purpose);
        call
    }

    /// A number for a call.
    fn call(&mut self) -> CallId {
        self.next_call += 1;
        CallId(self.next_call)
    }

    /// Notes where the time of requests went that are answered now.
    fn follow(&mut self, now: Time, purpose: &Purpose, course: &Course) {
        let (id, numbers) = match purpose {
            Purpose::Requests(id, numbers, _) | Purpose::Look(id, numbers) => (id, numbers.as_slice()),
            Purpose::Reach(_) | Purpose::Enter(..) | Purpose::Abandon | Purpose::Touch(..) => return,
        };
        let Some(connection) = self.connections.get_mut(id) else { return };
        for number in numbers {
            if let Some(pending) = connection.line.get_mut(*number) {
                pending.times.answered = Some(now);
                // Empty but of what was slow: nothing is allocated.
                pending.times.course.clone_from(course);
            }
        }
    }

    fn write(&mut self, id: ConnectionId, bytes: Bytes) {
        let Some(connection) = self.connections.get_mut(&id) else { return };
        if connection.gone.is_some() {
            return;
        }
        rule!("ZKG-B4");
        connection.unwritten += bytes.len() + PACKET;
        if connection.unwritten > self.settings.unwritten_bytes {
            return self.end(id, false, Ended::Unread);
        }
        connection.statistics.sent += 1;
        self.statistics.totals.sent += 1;
        self.outputs.push_back(Output::Write { to: id, bytes });
    }

    /// What a packet asked for is done with.
    fn done(&mut self, id: ConnectionId, bytes: usize) {
        let Some(connection) = self.connections.get_mut(&id) else { return };
        connection.requests -= 1;
        connection.bytes -= bytes + REQUEST;
        if connection.gone.is_none() {
            self.outputs.push_back(Output::Done { connection: id, bytes });
        }
    }

    /// An address has one connection less.
    fn free(&mut self, address: IpAddr) {
        if let Some(count) = self.addresses.get_mut(&address) {
            *count -= 1;
            if *count == 0 {
                self.addresses.remove(&address);
            }
        }
    }

    fn forget(&mut self, id: ConnectionId) {
        let Some(connection) = self.connections.remove(&id) else { return };
        for pending in connection.line.waiting() {
            self.measures.lost(&pending.what);
        }
        self.held_bytes -= connection.counted;
        self.outstanding -= connection.line.len();
        let address = connection.address.ip().to_canonical();
        match &connection.stage {
            Stage::Entering(entering) if entering.asked => drop(self.leaving.insert(id, address)),
            _ => self.free(address),
        }
        if let Stage::Attached(session) = connection.stage {
            self.attached.remove(&session.at);
        }
    }
}
