//! The task that owns the machine.

use super::Group;
use super::admin;
use super::clock::{Clock, time_of_day};
use super::connection::{Handle, prepare};
use super::counts::Counts;
use super::listen::{accept_all, accept_secure};
use super::log::Writer;
use super::tls::Tls;
use crate::Settings;
use crate::machine::{CallId, ConnectionId, Machine, Output, Peer, Record};
use crate::metrics::{self, Scrape};
use bytes::Bytes;
use core::net::SocketAddr;
use core::time::Duration;
use std::collections::BTreeMap;
use std::sync::Arc;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{mpsc, oneshot};
use tokio::task::{JoinError, JoinSet};
use tokio::time::Instant;
use tokio_rustls::server::TlsStream;
use troth_client::{ClientError, Course};
use troth_types::{Event, Time};
use troth_zookeeper::Said;

/// Messages taken per turn.
const TURN: usize = 256;
/// The least time between two warnings.
const BETWEEN_WARNINGS: Duration = Duration::from_secs(60);
/// How long connections may take to end when the gateway does.
const GOING: Duration = Duration::from_secs(3);

/// What the other tasks say.
#[derive(Debug)]
pub(super) enum Inbound {
    Opened(Accepted, SocketAddr),
    Packets(ConnectionId, Vec<Bytes>),
    /// So many bytes have come of a packet that is not whole.
    Part(ConnectionId, usize),
    Word(ConnectionId, [u8; 4]),
    /// So many packets have gone out, of so many bytes.
    Written(ConnectionId, usize, usize),
    Closed(ConnectionId),
    /// Somebody asks for an admin page.
    Report(String, oneshot::Sender<Option<String>>),
    /// Somebody asks for the metrics.
    Metrics(oneshot::Sender<String>),
}

/// A connection that was taken.
#[derive(Debug)]
pub(super) enum Accepted {
    Plain(TcpStream),
    /// With the subject of the client's certificate.
    Secure(Box<TlsStream<TcpStream>>, Option<String>),
}

type Answer = (CallId, Result<Vec<Bytes>, ClientError>, Course);

/// Through what others come in.
pub(super) struct Doors {
    pub(super) listeners: Vec<(TcpListener, Option<Tls>)>,
    pub(super) pages: Option<TcpListener>,
    pub(super) counts: Arc<Counts>,
}

/// The logs that are written.
#[derive(Debug)]
pub(super) struct Logs {
    pub(super) audit: Option<Writer>,
    pub(super) slow: Option<Writer>,
}

pub(super) struct Hub<G> {
    machine: Machine,
    settings: Settings,
    group: G,
    events: mpsc::Receiver<Event>,
    inbound: mpsc::Sender<Inbound>,
    inbox: mpsc::Receiver<Inbound>,
    calls: JoinSet<Answer>,
    listeners: JoinSet<()>,
    connections: JoinSet<()>,
    handles: BTreeMap<ConnectionId, Handle>,
    next: u64,
    clock: Clock,
    counts: Arc<Counts>,
    logs: Logs,
    /// Pages that wait for what the group's client says.
    pages: JoinSet<()>,
    /// When it was last said why clients are not served.
    warned: Option<Instant>,
    /// When it was last said that packets were too long, and how many had been by then.
    refused: (Option<Instant>, u64),
}

/// What is said to the group, with the time of day.
fn said_now(operations: &[Bytes]) -> Vec<Bytes> {
    rule!("ZKG-L5");
    let now = time_of_day();
    operations.iter().map(|operation| Said::wire(now, operation)).collect()
}

async fn answered(
    call: CallId,
    answer: impl Future<Output = (Result<Vec<Bytes>, ClientError>, Course)>,
) -> Answer {
    let (results, course) = answer.await;
    (call, results, course)
}

async fn sleep_until(wake: Option<Instant>) {
    match wake {
        Some(wake) => tokio::time::sleep_until(wake).await,
        None => core::future::pending().await,
    }
}

impl<G: Group> Hub<G> {
    pub(super) fn new(
        settings: Settings,
        group: G,
        events: mpsc::Receiver<Event>,
        (inbound, inbox): (mpsc::Sender<Inbound>, mpsc::Receiver<Inbound>),
        doors: Doors,
        logs: Logs,
    ) -> Self {
        let counts = doors.counts;
        let mut listeners = JoinSet::new();
        for (listener, tls) in doors.listeners {
            let (inbound, counts) = (inbound.clone(), Arc::clone(&counts));
            match tls {
                None => listeners.spawn(accept_all(listener, settings.only, inbound, counts)),
                Some(tls) => listeners.spawn(accept_secure(listener, tls, settings.clone(), inbound, counts)),
            };
        }
        if let Some(listener) = doors.pages {
            listeners.spawn(admin::serve(listener, inbound.clone()));
        }
        let mut machine = Machine::new(settings.clone(), group.carrier());
        let mut key = [0; 32];
        // Without a key that nobody knows nothing is told by it.
        if getrandom::fill(&mut key).is_ok() {
            machine.fingerprint_with(key);
        }
        Self {
            machine,
            settings,
            group,
            events,
            inbound,
            inbox,
            calls: JoinSet::new(),
            listeners,
            connections: JoinSet::new(),
            handles: BTreeMap::new(),
            next: 0,
            clock: Clock::new(),
            counts,
            logs,
            pages: JoinSet::new(),
            warned: None,
            refused: (None, 0),
        }
    }

    /// Runs until it is told to stop, or the group's client ends.
    pub(super) async fn run(mut self, mut stopped: oneshot::Receiver<()>) {
        let mut messages = Vec::new();
        self.machine.begin(self.clock.now());
        loop {
            let wake = self.machine.next_wake().map(|time| self.clock.at(time));
            tokio::select! {
                event = self.events.recv() => match event {
                    Some(event) => self.machine.event(&event.payload),
                    None => break,
                },
                Some(answer) = self.calls.join_next() => {
                    if !self.take_answers(answer) {
                        break;
                    }
                }
                _ = self.inbox.recv_many(&mut messages, TURN) => {
                    for message in messages.drain(..) {
                        self.obey(message);
                    }
                }
                () = sleep_until(wake) => self.machine.tick(self.clock.now()),
                // The handle was dropped, or says so.
                _ = &mut stopped => break,
            }
            self.hand_out();
            if let Some(agreed) = self.machine.take_behind() {
                self.warn_of_the_clock(agreed);
            }
            match self.machine.take_cut_off(self.clock.now()) {
                Some(true) => tracing::warn!(
                    "the group does not answer, and nobody is served: fewer replicas than it needs are here, or reachable from here"
                ),
                Some(false) => tracing::warn!("the group answers again"),
                None => {}
            }
            if let Some(behind) = self.machine.take_clock_behind() {
                self.warn_of_a_late_clock(behind);
            }
            while self.connections.try_join_next().is_some() {}
            while self.pages.try_join_next().is_some() {}
        }
        self.go_down().await;
    }

    /// Takes an answer and all others that are there. Whatever was told before one of them is there too, and is taken first.
    fn take_answers(&mut self, first: Result<Answer, JoinError>) -> bool {
        let mut answers = vec![first];
        while let Some(more) = self.calls.try_join_next() {
            answers.push(more);
        }
        while let Ok(event) = self.events.try_recv() {
            self.machine.event(&event.payload);
        }
        let now = self.clock.now();
        self.machine.set_day(time_of_day());
        for answer in answers {
            // No call panics; one that did would leave its connection without an answer.
            let Ok((call, results, course)) = answer else { return false };
            if matches!(results, Err(ClientError::TooOld)) && self.may_warn() {
                tracing::warn!(
                    "another process uses the keys of this gateway's client of the group, and was heard after it: each ends the \
                     other's connections; give every process keys of its own (`troth admin add-client`)"
                );
            }
            self.machine.answered_on(now, call, results, &course);
            // One answer may be about many changes.
            self.write_records();
        }
        true
    }

    fn obey(&mut self, message: Inbound) {
        let now = self.clock.now();
        match message {
            Inbound::Opened(stream, address) => self.open(now, stream, address),
            Inbound::Packets(id, packets) => self.machine.packets(now, id, packets),
            Inbound::Part(id, bytes) => self.machine.part(id, bytes),
            Inbound::Word(id, word) => self.machine.word(now, id, word),
            Inbound::Written(id, packets, bytes) => self.machine.written(id, packets, bytes),
            Inbound::Report(name, answer) => {
                // Whoever asked may have gone.
                let _ = answer.send(self.machine.report(now, &name));
            }
            Inbound::Metrics(answer) => self.measure(answer),
            Inbound::Closed(id) => {
                self.machine.closed(now, id);
                self.handles.remove(&id);
                self.warn_of_long_packets();
            }
        }
    }

    fn open(&mut self, now: Time, stream: Accepted, address: SocketAddr) {
        let mut random = [0; 32];
        if getrandom::fill(&mut random).is_err() {
            // Passwords that can be guessed are worse than no service.
            return;
        }
        self.next += 1;
        let id = ConnectionId(self.next);
        let (handle, task) = prepare(id, &self.settings, self.inbound.clone(), Arc::clone(&self.counts));
        self.handles.insert(id, handle);
        let certificate = match stream {
            Accepted::Plain(stream) => {
                let (reader, writer) = stream.into_split();
                self.connections.spawn(task.run(reader, writer));
                None
            }
            Accepted::Secure(stream, certificate) => {
                let (reader, writer) = tokio::io::split(*stream);
                self.connections.spawn(task.run(reader, writer));
                certificate
            }
        };
        self.machine.opened(now, id, Peer { address, certificate, random });
    }

    /// Makes a page of metrics as soon as the group's client has said how it does.
    fn measure(&mut self, answer: oneshot::Sender<String>) {
        let (measures, gauges) = self.machine.measured(self.clock.now());
        let counts = |log: &Option<Writer>| log.as_ref().map(Writer::counts);
        let logs = [counts(&self.logs.audit), counts(&self.logs.slow)];
        let (counts, started) = (Arc::clone(&self.counts), self.clock.began.0 as f64 / 1e6);
        let status = self.group.status();
        self.pages.spawn(async move {
            let group = status.await;
            let page = metrics::text(Scrape { measures, gauges, counts, logs, group, started });
            // Whoever asked may have gone.
            let _ = answer.send(page);
        });
    }

    fn write_records(&mut self) {
        while let Some(record) = self.machine.poll_record() {
            let log = if let Record::Slow(_) = record { &self.logs.slow } else { &self.logs.audit };
            let Some(log) = log else { continue };
            match record {
                Record::Audit(line) | Record::Slow(line) => log.write(line),
                Record::Refused(line) => log.write_if_idle(line),
                Record::Lost(lines) => log.lose(lines),
            }
        }
    }

    /// Whether it is long enough ago that something was said.
    fn may_warn(&mut self) -> bool {
        let may = self.warned.is_none_or(|warned| warned.elapsed() >= BETWEEN_WARNINGS);
        if may {
            self.warned = Some(Instant::now());
        }
        may
    }

    /// Whose packets are too long is disconnected, and sees no more than that.
    fn warn_of_long_packets(&mut self) {
        let (warned, told) = self.refused;
        let all = self.counts.too_long.get();
        if all == told || warned.is_some_and(|warned| warned.elapsed() < BETWEEN_WARNINGS) {
            return;
        }
        self.refused = (Some(Instant::now()), all);
        tracing::warn!(
            "a client was disconnected that sent a packet of more than {} bytes (--packet-bytes; clients have jute.maxbuffer for \
             it), or what is no packet; such clients since this was last said: {}",
            self.settings.packet_bytes,
            all - told
        );
    }

    /// Who runs the gateway must learn why nobody is served.
    fn warn_of_the_clock(&mut self, agreed: Time) {
        if !self.may_warn() {
            return;
        }
        let seconds = time_of_day().0.saturating_sub(agreed.0) as f64 / 1e6;
        tracing::warn!(
            "this machine's clock is {seconds:.1} s ahead of the group's, which does nothing of what it says so early: set it, \
             or look for a replica that proposes old times"
        );
    }

    /// Nobody is turned away, but whose clock is late has sessions end early where a replica lies.
    fn warn_of_a_late_clock(&mut self, behind: u64) {
        if !self.may_warn() {
            return;
        }
        let seconds = behind as f64 / 1e6;
        tracing::warn!(
            "this machine's clock is {seconds:.1} s behind the group's: set it, or a faulty replica may have sessions end before \
             their time"
        );
    }

    fn hand_out(&mut self) {
        self.write_records();
        while let Some(output) = self.machine.poll() {
            match output {
                Output::Write { to, bytes } => {
                    if let Some(handle) = self.handles.get(&to) {
                        handle.write(bytes);
                    }
                }
                Output::Done { connection, bytes } => {
                    if let Some(handle) = self.handles.get(&connection) {
                        handle.done(bytes);
                    }
                }
                Output::Close { connection, flush } => {
                    if let Some(handle) = self.handles.remove(&connection) {
                        handle.close(flush);
                    }
                }
                Output::Execute { call, operations } => {
                    let answer = self.group.execute_noting(said_now(&operations));
                    self.calls.spawn(answered(call, answer));
                }
                Output::ExecuteApart { call, operations } => {
                    let answer = self.group.execute_apart_noting(said_now(&operations));
                    self.calls.spawn(answered(call, answer));
                }
                Output::Read { call, operation, recent } => {
                    // It may have to be ordered.
                    let said = Said::wire(time_of_day(), &operation);
                    let answer = self.group.read_noting(said, recent);
                    self.calls.spawn(async move {
                        let (result, course) = answer.await;
                        (call, result.map(|result| vec![result]), course)
                    });
                }
            }
        }
    }

    async fn go_down(mut self) {
        self.listeners.abort_all();
        self.machine.stop();
        // What is answered already is told as what it is, and of all else nobody will know what came of it.
        while let Some(Ok((call, results, course))) = self.calls.try_join_next() {
            self.machine.answered_on(self.clock.now(), call, results, &course);
            self.write_records();
        }
        rule!("ZKG-W2");
        while self.machine.give_up_one(self.clock.now()) {
            self.write_records();
        }
        self.hand_out();
        // They say when they end; nobody listens any more.
        self.inbox.close();
        let ended = async { while self.connections.join_next().await.is_some() {} };
        let _ = tokio::time::timeout(GOING, ended).await;
        for log in [self.logs.audit.take(), self.logs.slow.take()].into_iter().flatten() {
            log.end().await;
        }
    }
}
