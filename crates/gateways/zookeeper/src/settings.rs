//! What a gateway must be told.

use core::net::SocketAddr;
use core::time::Duration;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use troth_types::Limits;

/// What a request without a reply takes beside the bytes of its packet: the shortest ones cost this.
pub(crate) const REQUEST: usize = 512;

/// What a packet that waits for its client to read it takes beside its bytes: its place among those that wait, and what an
/// allocation has beside what is asked for. The shortest ones, of twenty bytes, take three times that.
pub(crate) const PACKET: usize = 64;

/// Where the certificates are that clients see, as PEM. Files that change are read again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsFiles {
    /// The gateway's certificate, and those between it and an authority.
    pub certificates: PathBuf,
    /// Its private key.
    pub key: PathBuf,
    /// What is asked of clients; nothing where there is none.
    pub clients: Option<TlsClients>,
}

/// What is asked of clients that connect with TLS. The subject of a certificate that is shown is attested to the group (`x509`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsClients {
    /// The authorities of whom a client's certificate must be.
    pub authorities: PathBuf,
    /// Whether a client without one is turned away.
    pub required: bool,
}

/// Where the lines of a log go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// To standard output, from where a service manager takes them.
    Stdout,
    /// To a file, which only its user may read.
    File(PathBuf),
}

/// A log for operators: one JSON object a line. What it cannot take, because its disk is full or nobody reads it, is lost and
/// counted; nothing waits for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Log {
    /// Where the lines go.
    pub place: Place,
    /// Bytes of a file after which it is put aside, as `FILE.1`, and another one begun.
    pub file_bytes: u64,
    /// Files that are kept, with the one that is written: the oldest goes.
    pub files: u32,
}

impl Log {
    /// A log there, of ten files of 64 MiB at most.
    #[must_use]
    pub fn at(place: Place) -> Self {
        Self { place, file_bytes: 64 << 20, files: 10 }
    }
}

/// How a gateway serves, and its bounds.
#[derive(Clone, PartialEq, Eq)]
pub struct Settings {
    /// Where clients connect. Port 0 takes a free one ([`Gateway::addresses`](crate::Gateway::addresses) says which).
    pub listen: Vec<SocketAddr>,
    /// Where clients connect with TLS, and how; nowhere where there is none.
    pub secure: Option<(Vec<SocketAddr>, TlsFiles)>,
    /// Where the admin pages are (`/commands`), over plain HTTP; nowhere where there is none. Whoever reaches them may ask.
    pub admin: Option<SocketAddr>,
    /// The group's limits: what goes together to the group must fit one frame.
    pub limits: Limits,
    /// The longest packet of a client, in bytes behind its length (`jute.maxbuffer`). Who sends a longer one is closed.
    pub packet_bytes: usize,
    /// The one address from which clients are taken, others being closed at once; any where there is none.
    pub only: Option<SocketAddr>,
    /// Connections in all. More are closed at once.
    pub connections: usize,
    /// Connections of one address (`maxClientCnxns`); 0 for any number.
    pub connections_per_address: usize,
    /// Requests of one connection without a reply; the gateway reads no further until there are fewer.
    pub outstanding_requests: usize,
    /// Their bytes, and 512 for each; at least one packet goes.
    pub outstanding_bytes: usize,
    /// Bytes that wait for a client to read them, and 64 for each packet. Who lets more wait is closed.
    pub unwritten_bytes: usize,
    /// Bytes of all connections together: requests without a reply, replies that wait for others, and what waits to be read by
    /// clients, also of those that were closed meanwhile. Where there are more, the connection with the most is closed.
    pub memory_bytes: usize,
    /// How long a connection may take until it has a session.
    pub handshake: Duration,
    /// The four-letter words that are answered (`4lw.commands.whitelist`); `*` stands for all that there are.
    pub words: BTreeSet<String>,
    /// What reads may show.
    pub consistency: Consistency,
    /// What `envi` says beside the version: names and values.
    pub environment: Vec<(String, String)>,
    /// By how much the group's time may be ahead of this machine's before whoever runs the gateway is told of it.
    pub clock_behind: Duration,
    /// Who may authenticate with SASL (DIGEST-MD5): passwords by user.
    pub users: BTreeMap<String, String>,
    /// The log of who asked for which change, and what came of it; none where there is none.
    pub audit: Option<Log>,
    /// The log of requests that took at least so long from their packet to their reply; none where there is none.
    pub slow: Option<(Duration, Log)>,
}

/// What reads may show.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Consistency {
    /// The present: everything that anybody was told before the read was sent.
    #[default]
    Linearizable,
    /// What ZooKeeper promises: everything that the session itself was told before, and never less than it was shown. What
    /// others wrote may be missing.
    Sequential,
}

impl Settings {
    /// [`Settings::outstanding_bytes`], and room for a packet.
    pub(crate) fn most_outstanding_bytes(&self) -> usize {
        self.outstanding_bytes.max(self.packet_bytes.saturating_add(REQUEST))
    }
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            listen: Vec::new(),
            secure: None,
            admin: None,
            limits: Limits::DEFAULT,
            packet_bytes: 0xf_ffff,
            only: None,
            connections: 10_000,
            connections_per_address: 60,
            outstanding_requests: 4096,
            outstanding_bytes: 8 << 20,
            unwritten_bytes: 32 << 20,
            memory_bytes: 512 << 20,
            handshake: Duration::from_secs(10),
            words: BTreeSet::from(["srvr".to_owned()]),
            consistency: Consistency::Linearizable,
            environment: Vec::new(),
            clock_behind: Duration::from_millis(800),
            users: BTreeMap::new(),
            audit: None,
            slow: None,
        }
    }
}

impl core::fmt::Debug for Settings {
    /// Leaves the passwords out.
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Settings")
            .field("listen", &self.listen)
            .field("secure", &self.secure)
            .field("connections", &self.connections)
            .field("connections_per_address", &self.connections_per_address)
            .field("words", &self.words)
            .finish_non_exhaustive()
    }
}
