//! Connections: who listens, who dials, how bytes come in and go out.
//!
//! A replica dials every replica with a lower number and listens for the others and for clients. A
//! party's newest connection stands; an older one is closed.

use crate::config::{Cluster, ReplicaSecret};
use crate::inbox::{Lane, Party};
use crate::pace::Pace;
use crate::places::Places;
use crate::runtime::Shared;
use crate::served::largest_message;
use core::net::{IpAddr, SocketAddr};
use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;
use troth_core::{Agreement, Execution};
use troth_link::{
    Identity, LinkError, LinkKey, LinkReader, LinkWriter, PeerId, Settings, Versions, accept_when, connect,
};
use troth_types::{Configuration, ReplicaId};

/// Handshakes under way at a time; one more and the oldest is given up.
pub(crate) const MOST_HANDSHAKES: usize = 64;
/// One handshake in each such time has its arithmetic done, lasting: a tenth of the thread's time, about.
const HANDSHAKE_EVERY: Duration = Duration::from_millis(2);
/// The same at once: all clients of a group may come back together.
const HANDSHAKES_AT_ONCE: u32 = 2_000;
/// Descriptors that are no client's: handshakes under way, other replicas' connections, files, and room to spare.
pub(crate) const RESERVED_DESCRIPTORS: usize = 2 * MOST_HANDSHAKES + 256;
/// Bytes that may wait for a replica. Beyond, messages are dropped: STATUS asks for them again.
pub(crate) const REPLICA_UNSENT: usize = 64 << 20;
/// What a client's message takes on the wire beside the frame or the read in it, and room to spare.
pub(crate) const CLIENT_OVERHEAD: usize = 64 << 10;
/// Bytes that may wait for a client. Beyond, messages are dropped: the client asks again.
const CLIENT_UNSENT: usize = 16 << 20;
/// Bytes that may wait for all clients together. Beyond, only those are sent something for whom nothing waits.
pub(crate) const CLIENTS_UNSENT: usize = 128 << 20;
/// Bytes that may wait for a client however much waits for the others.
pub(crate) const CLIENT_UNSENT_AT_LEAST: usize = 256 << 10;
/// The first pause between two attempts to dial; doubles.
const DIAL_FIRST: Duration = Duration::from_millis(50);
/// The longest pause between two attempts to dial.
const DIAL_LONGEST: Duration = Duration::from_secs(2);

/// What a replica needs to make connections: its own key and everybody's.
pub(crate) struct Meeting {
    me: ReplicaId,
    identity: Identity,
    settings: Settings,
    /// The versions of replicas' messages that this replica speaks.
    pub(crate) versions: Versions,
    /// The most bytes of one message from a client: replicas' messages are far larger, and a limit for
    /// them would let every client pin as much.
    client_message: usize,
    /// Where replicas listen of whom the configuration does not say it.
    addresses: Vec<String>,
    configuration: RefCell<Arc<Configuration>>,
}

impl Meeting {
    pub(crate) fn new(cluster: &Cluster, secret: &ReplicaSecret, configuration: &Arc<Configuration>) -> Self {
        let default = Settings::new(cluster.group.id());
        let max_message = default.max_message.max(largest_message(cluster));
        let settings = Settings { max_message, max_unsent: REPLICA_UNSENT.max(max_message), ..default };
        Self {
            me: secret.replica,
            identity: Identity::new(PeerId::Replica(secret.replica), secret.link),
            settings,
            versions: Versions::SPOKEN,
            client_message: cluster.limits.frame_bytes + CLIENT_OVERHEAD,
            addresses: cluster.replicas.iter().map(|replica| replica.address.clone()).collect(),
            configuration: RefCell::new(Arc::clone(configuration)),
        }
    }

    /// Goes by this configuration from now on; tells whether it is not older than the one before.
    pub(crate) fn adopt(&self, configuration: &Arc<Configuration>) -> bool {
        let mut present = self.configuration.borrow_mut();
        let newer = configuration.number >= present.number;
        if newer {
            *present = Arc::clone(configuration);
        }
        newer
    }

    /// Whether a party is in the present configuration and has this key there. Before every use of a
    /// connection: the configuration may have changed while its ends met.
    pub(crate) fn knows(&self, party: Party, key: LinkKey) -> bool {
        self.link_key(party) == Some(key)
    }

    /// Whether the present configuration has this replica with the key that it has.
    pub(crate) fn knows_me(&self) -> bool {
        self.knows(Party::Replica(self.me), LinkKey(self.identity.public_key().0))
    }

    fn link_key(&self, party: Party) -> Option<LinkKey> {
        let configuration = self.configuration.borrow();
        match party {
            Party::Replica(replica) => {
                configuration.member(replica).map(|member| LinkKey(member.host().link))
            }
            Party::Client(client) => {
                configuration.client(client).filter(|entry| !entry.removed).map(|entry| LinkKey(entry.link))
            }
        }
    }

    /// Whether this is the address of a replica, as far as the configuration says it in digits.
    fn is_of_a_replica(&self, address: IpAddr) -> bool {
        let configuration = self.configuration.borrow();
        let hosts = configuration.members().iter().map(|member| member.host().address.clone());
        let address = address.to_canonical();
        let is_it = |text: &str| text.parse::<SocketAddr>().is_ok_and(|at| at.ip().to_canonical() == address);
        self.addresses.iter().any(|text| is_it(text)) || hosts.into_iter().any(|text| is_it(&text))
    }

    /// Where a replica listens now, and its key.
    fn place(&self, replica: ReplicaId) -> (String, LinkKey) {
        let configuration = self.configuration.borrow();
        let host = configuration.member(replica).expect("a group's replicas are all configured").host();
        let address = match host.address.as_str() {
            "" => self.addresses[usize::from(replica.0)].clone(),
            address => address.to_owned(),
        };
        (address, LinkKey(host.link))
    }

    /// The key that a caller must hold. Replicas with lower numbers are dialled and do not call.
    fn key(&self, caller: PeerId) -> Option<LinkKey> {
        match caller {
            PeerId::Replica(replica) if replica > self.me => self.link_key(Party::Replica(replica)),
            PeerId::Replica(_) => None,
            PeerId::Client(client) => self.link_key(Party::Client(client)),
        }
    }
}

/// The sending half of a connection: queued to by the loop, written once per turn.
pub(crate) struct Outgoing {
    writer: RefCell<LinkWriter>,
    /// The other end's key.
    key: LinkKey,
    most_unsent: usize,
    /// Bytes that wait for all clients, where it is one of them, and what it has added there.
    together: Option<Rc<Cell<usize>>>,
    added: Cell<usize>,
    dirty: Cell<bool>,
    /// Among those that have something that can wait.
    later: Cell<bool>,
    /// The socket was full: the connection's own task writes the rest, and only it.
    behind: Cell<bool>,
    work: Notify,
    closed: Cell<bool>,
    close: Notify,
}

impl Outgoing {
    pub(crate) fn new(
        writer: LinkWriter,
        party: Party,
        key: LinkKey,
        clients_unsent: &Rc<Cell<usize>>,
    ) -> Rc<Self> {
        let most_unsent = match party {
            Party::Replica(_) => REPLICA_UNSENT,
            Party::Client(_) => CLIENT_UNSENT,
        };
        Rc::new(Self {
            writer: RefCell::new(writer),
            key,
            most_unsent,
            together: matches!(party, Party::Client(_)).then(|| Rc::clone(clients_unsent)),
            added: Cell::new(0),
            dirty: Cell::new(false),
            later: Cell::new(false),
            behind: Cell::new(false),
            work: Notify::new(),
            closed: Cell::new(false),
            close: Notify::new(),
        })
    }

    /// Queues a message.
    ///
    /// # Errors
    /// [`LinkError::Full`] where too much waits, [`LinkError::TooLarge`] where it will never be taken.
    pub(crate) fn queue(&self, message: &[u8]) -> Result<(), LinkError> {
        let mut writer = self.writer.borrow_mut();
        let waiting = writer.unsent();
        // One message is taken up to the connection's limit however much that is, so that nothing
        // within it is too large for ever.
        let together = self.together.as_ref().map_or(0, |together| together.get());
        // Those who do not read must not cost the others their answers.
        let crowded = together > CLIENTS_UNSENT && waiting > CLIENT_UNSENT_AT_LEAST;
        let full = waiting + message.len() > self.most_unsent || crowded;
        if waiting > 0 && full {
            return Err(LinkError::Full);
        }
        let queued = writer.queue(message);
        self.tell(writer.unsent());
        queued
    }

    /// Counts what waits here among what waits for all clients.
    fn tell(&self, unsent: usize) {
        if let Some(together) = &self.together {
            together.set(together.get() + unsent - self.added.replace(unsent));
        }
    }

    /// Notes that there is something to write; tells whether that is news.
    pub(crate) fn mark_dirty(&self) -> bool {
        !self.dirty.replace(true)
    }

    /// Notes that there is something to write which can wait; tells whether that is news.
    pub(crate) fn mark_later(&self) -> bool {
        !self.later.replace(true)
    }

    /// Notes that what could wait has waited.
    pub(crate) fn is_due(&self) {
        self.later.set(false);
    }

    /// Writes what is queued as far as the socket takes it without waiting; the rest is written by
    /// the connection's task. Returns what went out.
    pub(crate) fn flush(&self) -> troth_link::Counters {
        self.dirty.set(false);
        if self.behind.get() {
            return troth_link::Counters::default();
        }
        let before = self.writer.borrow().counters();
        match self.poll_flush(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(Ok(())) => {}
            Poll::Ready(Err(_)) => self.close(),
            Poll::Pending => {
                self.behind.set(true);
                self.work.notify_one();
            }
        }
        let after = self.writer.borrow().counters();
        troth_link::Counters {
            messages: after.messages - before.messages,
            bytes: after.bytes - before.bytes,
            records: after.records - before.records,
            calls: after.calls - before.calls,
        }
    }

    /// A flush may be dropped and begun again: it goes on where it stopped.
    fn poll_flush(&self, cx: &mut Context<'_>) -> Poll<Result<(), LinkError>> {
        let mut writer = self.writer.borrow_mut();
        let flushed = pin!(writer.flush()).poll(cx);
        self.tell(writer.unsent());
        flushed
    }

    /// Whether nothing waits to be written.
    pub(crate) fn is_flushed(&self) -> bool {
        self.closed.get() || self.writer.borrow().unsent() == 0
    }

    /// The key that the other end showed.
    pub(crate) fn key(&self) -> LinkKey {
        self.key
    }

    /// Ends the connection.
    pub(crate) fn close(&self) {
        self.closed.set(true);
        self.close.notify_one();
    }

    /// Writes whenever the loop could not; ends with the connection.
    async fn write(&self) -> Result<(), LinkError> {
        loop {
            self.work.notified().await;
            poll_fn(|cx| self.poll_flush(cx)).await?;
            self.behind.set(false);
        }
    }
}

impl Drop for Outgoing {
    fn drop(&mut self) {
        self.tell(0);
    }
}

/// Answers callers until dropped.
pub(crate) async fn listen<A: Agreement + 'static, X: Execution + 'static>(
    shared: Rc<Shared<A, X>>,
    meeting: Rc<Meeting>,
    listener: TcpListener,
) {
    // Replicas' machines have places and turns of their own: nobody else's calls keep a group from coming together.
    let of = || (Places::new(MOST_HANDSHAKES), Rc::new(Pace::new(HANDSHAKE_EVERY, HANDSHAKES_AT_ONCE)));
    let (others, replicas) = (of(), of());
    loop {
        match listener.accept().await {
            Ok((stream, from)) => {
                let (places, pace) = if meeting.is_of_a_replica(from.ip()) { &replicas } else { &others };
                let (shared, meeting, pace) = (Rc::clone(&shared), Rc::clone(&meeting), Rc::clone(pace));
                let place = places.take(from.ip());
                tokio::task::spawn_local(async move {
                    match place.hold(meet(&meeting, &pace, stream)).await {
                        Some(Ok((party, key, reader, writer))) => {
                            converse(&shared, &meeting, (party, key), reader, writer).await;
                        }
                        Some(Err(why)) => {
                            shared.engine.borrow_mut().counters.connections_refused += 1;
                            tracing::debug!(%why, "refused a connection");
                        }
                        None => {
                            shared.engine.borrow_mut().counters.connections_refused += 1;
                            tracing::debug!("gave up the oldest of too many handshakes");
                        }
                    }
                });
            }
            // Out of descriptors, most likely: what runs goes on, and ends make room.
            Err(_) => tokio::time::sleep(DIAL_FIRST).await,
        }
    }
}

/// A party and the key that it showed, and both directions of its connection.
type Met = (Party, LinkKey, LinkReader, LinkWriter);

async fn meet(meeting: &Meeting, pace: &Pace, stream: TcpStream) -> Result<Met, LinkError> {
    let shown = Cell::new(None);
    let key_of = |caller| {
        shown.set(meeting.key(caller));
        shown.get()
    };
    let (caller, mut reader, writer) =
        accept_when(stream, &meeting.identity, &meeting.settings, pace.turn(), key_of).await?;
    let key = shown.get().ok_or(LinkError::UnknownPeer(caller))?;
    let party = match caller {
        PeerId::Replica(replica) => Party::Replica(replica),
        PeerId::Client(client) => {
            reader.restrict(meeting.client_message);
            Party::Client(client)
        }
    };
    Ok((party, key, reader, writer))
}

/// Keeps a connection to a replica with a lower number.
pub(crate) async fn dial<A: Agreement + 'static, X: Execution + 'static>(
    shared: Rc<Shared<A, X>>,
    meeting: Rc<Meeting>,
    replica: ReplicaId,
) {
    let mut pause = DIAL_FIRST;
    loop {
        let since = Instant::now();
        let (address, key) = meeting.place(replica);
        match connect(address.as_str(), &meeting.identity, &key, &meeting.settings).await {
            Ok((reader, writer)) => {
                converse(&shared, &meeting, (Party::Replica(replica), key), reader, writer).await;
                if since.elapsed() > DIAL_LONGEST {
                    pause = DIAL_FIRST;
                }
            }
            Err(why) => tracing::debug!(%replica, %why, "cannot reach a replica"),
        }
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(DIAL_LONGEST);
    }
}

/// Reads and writes until either end closes.
async fn converse<A: Agreement, X: Execution>(
    shared: &Shared<A, X>,
    meeting: &Meeting,
    (party, key): (Party, LinkKey),
    reader: LinkReader,
    mut writer: LinkWriter,
) {
    if !meeting.knows(party, key) {
        return;
    }
    let ours = meeting.versions;
    if matches!(party, Party::Replica(_)) {
        writer.queue(&ours.first_message()).expect("a new connection has room for its first message");
    }
    let (room, clients_unsent) = {
        let links = &mut shared.engine.borrow_mut().links;
        (links.has_room_for(party), Rc::clone(&links.clients_unsent))
    };
    if !room {
        shared.engine.borrow_mut().counters.connections_refused += 1;
        return;
    }
    let outgoing = Outgoing::new(writer, party, key, &clients_unsent);
    // Not with the next message: the other end waits to hear.
    outgoing.flush();
    let lane = shared.inbox.lane(party);
    {
        let links = &mut shared.engine.borrow_mut().links;
        match party {
            Party::Replica(replica) => links.replica_up(replica, Rc::clone(&outgoing)),
            Party::Client(client) => links.client_up(client, Rc::clone(&outgoing)),
        }
    }
    tracing::debug!(?party, "connected");
    tokio::select! {
        ended = read(shared, ours, party, &lane, reader) => {
            if let Err(why) = ended {
                if let (Party::Replica(replica), LinkError::NoCommonVersion { .. }) = (party, &why) {
                    let mut engine = shared.engine.borrow_mut();
                    engine.links.speaks_nothing(replica, &why, Instant::now());
                    engine.counters.connections_refused += 1;
                }
                if let (Party::Replica(replica), LinkError::TooLarge { .. }) = (party, &why) {
                    shared.engine.borrow_mut().links.too_large(replica, &why);
                }
                tracing::debug!(?party, %why, "lost a connection");
            }
        }
        ended = outgoing.write() => {
            if let Err(why) = ended {
                tracing::debug!(?party, %why, "lost a connection");
            }
        }
        () = outgoing.close.notified() => {}
    }
    shared.inbox.end(&lane);
    let links = &mut shared.engine.borrow_mut().links;
    match party {
        Party::Replica(replica) => links.replica_down(replica, &outgoing),
        Party::Client(client) => links.client_down(client, &outgoing),
    }
}

/// Brings messages into the lane; the loop is woken once per read, not per message.
async fn read<A: Agreement, X: Execution>(
    shared: &Shared<A, X>,
    ours: Versions,
    party: Party,
    lane: &Rc<Lane>,
    mut reader: LinkReader,
) -> Result<(), LinkError> {
    let mut seen = reader.counters();
    if let Party::Replica(replica) = party {
        let Some(first) = reader.next().await? else { return Ok(()) };
        let said = Versions::of_first_message(&first);
        let theirs = said.unwrap_or(Versions::UNSAID);
        let version = ours.common(theirs).ok_or(LinkError::NoCommonVersion { theirs, ours })?;
        shared.engine.borrow_mut().links.speaks(replica, version);
        if said.is_none() {
            shared.inbox.push(lane, first);
            shared.inbox.wake();
        }
    }
    while let Some(message) = reader.next().await? {
        shared.inbox.push(lane, message);
        while lane.has_room()
            && let Some(message) = reader.buffered()?
        {
            shared.inbox.push(lane, message);
        }
        let now = reader.counters();
        {
            let counters = &mut shared.engine.borrow_mut().counters;
            counters.reads += now.calls - seen.calls;
            counters.bytes_in += now.bytes - seen.bytes;
            counters.opened += now.records - seen.records;
        }
        seen = now;
        shared.inbox.wake();
        lane.room().await;
    }
    Ok(())
}
