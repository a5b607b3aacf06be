//! The connections as the loop sees them: queue a message, flush once per turn.

use crate::connection::Outgoing;
use crate::counters::Counters;
use crate::inbox::Party;
use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::time::{Duration, Instant};
use troth_link::{LinkError, LinkKey};
use troth_types::{ClientId, Group, ReplicaId, Time};

/// Between two lines of the log that say that there is no room for more clients, or that no version is spoken with a
/// replica which spoke one in between.
const SAY_AGAIN: Duration = Duration::from_secs(10);

/// Microseconds for which a message may be held back that its receiver gets along without.
const HOLD: u64 = 1_000;

/// The newest connection of each party. An older one of the same party is closed when a newer
/// comes, so their number is bounded by the group's configuration.
pub(crate) struct Links {
    me: ReplicaId,
    replicas: Vec<Option<Rc<Outgoing>>>,
    clients: BTreeMap<ClientId, Rc<Outgoing>>,
    /// Clients that may be connected: what the process has descriptors for, less a reserve.
    most_clients: usize,
    /// When it was said last that there are as many.
    said_full: Option<Instant>,
    /// Bytes that wait for all clients.
    pub(crate) clients_unsent: Rc<Cell<usize>>,
    dirty: Vec<Rc<Outgoing>>,
    /// Connections with something that can wait, and until when it does.
    later: Vec<Rc<Outgoing>>,
    later_due: Option<Time>,
    /// Replicas of whom it was already said that a message to or from them was too large.
    too_large: BTreeSet<ReplicaId>,
    /// The version that is spoken with each connected replica that has said a word.
    versions: BTreeMap<ReplicaId, u16>,
    /// Replicas of whom it was said that no version is spoken with them, when, and whether that holds since.
    speechless: BTreeMap<ReplicaId, (Instant, bool)>,
}

impl Links {
    pub(crate) fn new(me: ReplicaId, group: &Group) -> Self {
        Self {
            me,
            replicas: vec![None; group.n()],
            clients: BTreeMap::new(),
            most_clients: usize::MAX,
            said_full: None,
            clients_unsent: Rc::default(),
            dirty: Vec::new(),
            later: Vec::new(),
            later_due: None,
            too_large: BTreeSet::new(),
            versions: BTreeMap::new(),
            speechless: BTreeMap::new(),
        }
    }

    /// Lets no more than so many clients be connected.
    pub(crate) fn allow_clients(&mut self, most: usize) {
        self.most_clients = most;
    }

    /// Whether a party may have a connection. Replicas always may: descriptors are kept for them.
    pub(crate) fn has_room_for(&mut self, party: Party) -> bool {
        let Party::Client(client) = party else { return true };
        // One in the place of an older one takes no more.
        let room = self.clients.len() < self.most_clients || self.clients.contains_key(&client);
        if !room && self.said_full.is_none_or(|said| said.elapsed() > SAY_AGAIN) {
            self.said_full = Some(Instant::now());
            tracing::warn!(
                %client, connected = self.clients.len(),
                "refuses a client's connection: as many clients are connected as the process has descriptors for; mend: \
                 raise the hard limit on open files (ulimit -Hn)"
            );
        }
        room
    }

    /// This replica.
    pub(crate) fn me(&self) -> ReplicaId {
        self.me
    }

    /// All replicas but this one.
    pub(crate) fn others(&self) -> impl Iterator<Item = ReplicaId> + use<> {
        let (me, n) = (self.me, self.replicas.len());
        (0..n)
            .map(|index| ReplicaId(u16::try_from(index).expect("a group counts in u16")))
            .filter(move |id| *id != me)
    }

    /// Queues a message; tells whether it was taken. What is not taken is lost: the protocol asks
    /// again for what it misses (STATUS).
    pub(crate) fn tell_replica(&mut self, replica: ReplicaId, message: &[u8]) -> bool {
        let Some(link) = self.queue_for(replica, message) else { return false };
        if link.mark_dirty() {
            self.dirty.push(link);
        }
        true
    }

    /// The same for what can wait: it goes with whatever is written next on the connection, or when it has waited
    /// for [`HOLD`].
    pub(crate) fn tell_replica_later(&mut self, replica: ReplicaId, message: &[u8], now: Time) -> bool {
        let Some(link) = self.queue_for(replica, message) else { return false };
        if link.mark_later() {
            self.later.push(link);
            self.later_due.get_or_insert(now.after(HOLD));
        }
        true
    }

    /// When something has waited for long enough.
    pub(crate) fn next_due(&self) -> Option<Time> {
        self.later_due
    }

    fn queue_for(&mut self, replica: ReplicaId, message: &[u8]) -> Option<Rc<Outgoing>> {
        let link = self.replicas.get(usize::from(replica.0))?.as_ref()?;
        match link.queue(message) {
            Ok(()) => Some(Rc::clone(link)),
            Err(why) => {
                if matches!(why, LinkError::TooLarge { .. }) {
                    self.too_large(replica, &why);
                }
                None
            }
        }
    }

    /// Notes that a message to or from a replica is over the connection's limit, and says so the first
    /// time: what is dropped so is not repaired by asking again, and may be what all wait for. Tells
    /// whether it was the first time.
    pub(crate) fn too_large(&mut self, replica: ReplicaId, why: &LinkError) -> bool {
        let first = self.too_large.insert(replica);
        if first {
            tracing::error!(
                %replica, %why,
                "a message between replicas was refused as too large: the replica is faulty, or this is a bug; please report it"
            );
        }
        first
    }

    /// Notes which version is spoken with a replica.
    pub(crate) fn speaks(&mut self, replica: ReplicaId, version: u16) {
        if let Some((_, still)) = self.speechless.get_mut(&replica) {
            *still = false;
        }
        if self.versions.insert(replica, version) != Some(version) {
            tracing::debug!(%replica, version, "speaks with a replica");
        }
    }

    /// Notes at `now` that no version is spoken with a replica, and says so the first time, and again where one was spoken
    /// since, but not more often than [`SAY_AGAIN`]: a faulty one may take turns. Tells whether it was said.
    pub(crate) fn speaks_nothing(&mut self, replica: ReplicaId, why: &LinkError, now: Instant) -> bool {
        let say = match self.speechless.get(&replica) {
            Some((said, still)) => !still && now.saturating_duration_since(*said) > SAY_AGAIN,
            None => true,
        };
        if say {
            self.speechless.insert(replica, (now, true));
            tracing::error!(%replica, %why, "cannot talk to a replica");
        }
        say
    }

    /// The version that is spoken with each connected replica, by number.
    pub(crate) fn versions(&self) -> BTreeMap<u16, u16> {
        let up =
            |replica: &&ReplicaId| self.replicas.get(usize::from(replica.0)).is_some_and(Option::is_some);
        self.versions.keys().filter(up).map(|replica| (replica.0, self.versions[replica])).collect()
    }

    /// As [`Links::tell_replica`]; the client asks again for what it misses.
    pub(crate) fn tell_client(&mut self, client: ClientId, message: &[u8]) -> bool {
        match self.clients.get(&client) {
            Some(link) => {
                let queued = link.queue(message).is_ok();
                if queued && link.mark_dirty() {
                    self.dirty.push(Rc::clone(link));
                }
                queued
            }
            None => false,
        }
    }

    /// Writes what was queued: one system call per connection where the socket takes it. What a
    /// connection's own task writes later is not counted.
    pub(crate) fn flush(&mut self, counters: &mut Counters, now: Time) {
        if self.later_due.is_some_and(|due| due <= now) {
            self.later_due = None;
            for link in self.later.drain(..) {
                link.is_due();
                if link.mark_dirty() {
                    self.dirty.push(link);
                }
            }
        }
        for link in self.dirty.drain(..) {
            let written = link.flush();
            counters.bytes_out += written.bytes;
            counters.writes += written.calls;
            counters.sealed += written.records;
        }
    }

    /// Writes what can wait, too: nothing follows any more.
    pub(crate) fn flush_all(&mut self) {
        for link in self.later.drain(..).chain(self.dirty.drain(..)) {
            link.flush();
        }
    }

    /// Puts a replica's new connection in the place of its old one.
    pub(crate) fn replica_up(&mut self, replica: ReplicaId, link: Rc<Outgoing>) {
        if let Some(old) = self.replicas[usize::from(replica.0)].replace(link) {
            old.close();
        }
    }

    /// Puts a client's new connection in the place of its old one.
    pub(crate) fn client_up(&mut self, client: ClientId, link: Rc<Outgoing>) {
        if let Some(old) = self.clients.insert(client, link) {
            old.close();
        }
    }

    /// Closes the connections of parties who are not known by the key that they showed; gives who they were.
    pub(crate) fn close_strangers(&mut self, knows: impl Fn(Party, LinkKey) -> bool) -> Vec<Party> {
        let replicas = (0u16..).zip(&self.replicas);
        let replicas =
            replicas.filter_map(|(replica, link)| Some((Party::Replica(ReplicaId(replica)), link.as_ref()?)));
        let clients = self.clients.iter().map(|(client, link)| (Party::Client(*client), link));
        let strangers = replicas.chain(clients).filter(|(party, link)| !knows(*party, link.key()));
        strangers
            .map(|(party, link)| {
                link.close();
                party
            })
            .collect()
    }

    /// Forgets a connection that ended, unless a newer one stands in its place.
    pub(crate) fn replica_down(&mut self, replica: ReplicaId, link: &Rc<Outgoing>) {
        let place = &mut self.replicas[usize::from(replica.0)];
        if place.as_ref().is_some_and(|current| Rc::ptr_eq(current, link)) {
            *place = None;
            self.versions.remove(&replica);
        }
    }

    /// Forgets a connection that ended, unless a newer one stands in its place.
    pub(crate) fn client_down(&mut self, client: ClientId, link: &Rc<Outgoing>) {
        if self.clients.get(&client).is_some_and(|current| Rc::ptr_eq(current, link)) {
            self.clients.remove(&client);
        }
    }

    /// Whether a replica is connected, or this one itself.
    pub(crate) fn reaches(&self, replica: ReplicaId) -> bool {
        replica == self.me || self.replicas.get(usize::from(replica.0)).is_some_and(Option::is_some)
    }

    /// The replicas connected.
    pub(crate) fn replicas_up(&self) -> Vec<u16> {
        (0u16..).zip(&self.replicas).filter(|(_, link)| link.is_some()).map(|(index, _)| index).collect()
    }

    /// How many clients are connected.
    pub(crate) fn clients_up(&self) -> usize {
        self.clients.len()
    }

    /// Whether everything that was queued has been written.
    pub(crate) fn is_flushed(&self) -> bool {
        self.replicas.iter().flatten().chain(self.clients.values()).all(|link| link.is_flushed())
    }
}
