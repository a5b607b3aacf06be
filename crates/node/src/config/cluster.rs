//! A checked `cluster.toml`: public, and the same file for every replica and client.

use super::authentication::{self, Auth};
use super::checks::{self, Checks};
use super::durability::{self, Durability};
use super::error::{ConfigError, Source};
use super::home::{self, TrustedHome};
use super::layout::Layout;
use super::protocol::Protocol;
use super::raw::{RawCluster, RawReplica};
use super::zookeeper;
use crate::served::largest_message;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use toml::Spanned;
use troth_auth::{Directory, PublicKey};
use troth_disk::MAX_RECORD;
use troth_trusted::{Epoch, Identity, SignatureVerifier};
use troth_types::{
    ClientId, ComponentKey, Configuration, Digest, Group, GroupId, Hasher, HostKeys, Limits, Member,
    OPERATOR, ReplicaId,
};
use troth_zookeeper::ZooKeeper;

/// What the replicas serve.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Service {
    /// Keys and values.
    Kv,
    /// Nothing; for measurements of the way there and back.
    Null,
    /// A coordination service, to gateways that ZooKeeper's clients connect to.
    ZooKeeper,
}

impl Service {
    /// All of them.
    pub(crate) const ALL: [Self; 3] = [Self::Kv, Self::Null, Self::ZooKeeper];

    /// The name in the configuration.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Kv => "kv",
            Self::Null => "null",
            Self::ZooKeeper => "zookeeper",
        }
    }
}

/// How trusted components prove what they certified.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TrustedKind {
    /// HMAC-SHA-256 under one key that all components share (MinBFT's USIG-Hmac).
    Hmac,
    /// Ed25519, a key per component (USIG-Sign).
    Ed25519,
    /// There are none: the group's protocol trusts nothing.
    Nothing,
}

impl TrustedKind {
    /// The name in the configuration.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Hmac => "hmac",
            Self::Ed25519 => "ed25519",
            Self::Nothing => "none",
        }
    }
}

/// A replica as everybody knows it.
#[derive(Clone, Debug)]
pub struct ReplicaEntry {
    /// Where it listens for replicas and clients: `host:port`.
    pub address: String,
    /// Where it serves `/status` and `/metrics`, if it does.
    pub http: Option<String>,
    /// Its Noise static public key.
    pub link_key: [u8; 32],
    /// Its host's Ed25519 public key.
    pub host_key: PublicKey,
    /// Its trusted component's epoch; 0 where it has none.
    pub epoch: Epoch,
    /// Its trusted component's public key; only for [`TrustedKind::Ed25519`].
    pub trusted_key: Option<SignatureVerifier>,
}

/// A client as every replica knows it.
#[derive(Clone, Copy, Debug)]
pub struct ClientEntry {
    /// Its Noise static public key.
    pub link_key: [u8; 32],
    /// The key of its frames' signatures.
    pub key: PublicKey,
}

/// How patient the protocol is and how much it keeps in the air. All replicas use the same values;
/// of those for checkpoints and window the group's name makes sure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timing {
    /// Milliseconds until the oldest pending request makes a replica suspect the primary.
    pub suspect_after_ms: u64,
    /// Milliseconds until a replica that waits for a new primary wants the next one.
    pub view_timeout_ms: u64,
    /// Milliseconds between status messages while something is missing.
    pub status_interval_ms: u64,
    /// Milliseconds by which a batch's time may be ahead of a replica's clock; a new one's may be behind it by this and
    /// `suspect_after_ms`.
    pub clock_bound_ms: u64,
    /// Batches between two checkpoints.
    pub checkpoint_interval: u64,
    /// Batches that may be in the air above the stable checkpoint.
    pub window: u64,
    /// Batches that the primary may have under way.
    pub pipeline: u64,
    /// How many times as long as the others take to agree a primary may let requests wait.
    pub primary_slower_by: u64,
}

impl Default for Timing {
    fn default() -> Self {
        let default = troth_minbft::Config::DEFAULT;
        Self {
            suspect_after_ms: default.request_timeout / 1000,
            view_timeout_ms: default.view_timeout / 1000,
            status_interval_ms: default.status_interval / 1000,
            clock_bound_ms: default.clock_bound / 1000,
            checkpoint_interval: default.interval,
            window: default.window,
            pipeline: default.pipeline,
            primary_slower_by: default.slower_by,
        }
    }
}

impl Timing {
    /// What a group that serves this has where nothing else is said. Sessions end by the agreed time, so the coordination
    /// service has a primary's clock be closer to the others' ([`ZooKeeper::grace`]).
    #[must_use]
    pub fn of(service: Service) -> Self {
        match service {
            Service::ZooKeeper => Self { clock_bound_ms: 250, ..Self::default() },
            _ => Self::default(),
        }
    }
}

/// Bytes of a record of the log beside the message that it holds, at most.
pub(super) const RECORD_OVERHEAD: usize = 64;

/// A checked cluster configuration.
#[derive(Clone, Debug)]
pub struct Cluster {
    /// The group that it defines.
    pub group: Group,
    /// How the replicas agree.
    pub protocol: Protocol,
    /// By what clients' frames show whose they are.
    pub auth: Auth,
    /// What is served.
    pub service: Service,
    /// The coordination service, where that is served: with what all replicas have alike.
    pub zookeeper: ZooKeeper,
    /// How trusted components certify.
    pub trusted: TrustedKind,
    /// Where each replica's trusted component lives.
    pub trusted_home: TrustedHome,
    /// What each replica keeps.
    pub durability: Durability,
    /// The replicas, by number.
    pub replicas: Vec<ReplicaEntry>,
    /// The clients.
    pub clients: BTreeMap<ClientId, ClientEntry>,
    /// The client [`OPERATOR`], who may change the configuration; nothing where nobody may.
    pub operator: Option<ClientEntry>,
    /// The bounds that all share.
    pub limits: Limits,
    /// Patience and pipelining.
    pub timing: Timing,
    /// The digest of the state that every replica begins with, where the group was restored from a backup.
    pub genesis: Option<Digest>,
}

fn mend_for_missing(file: &Path) -> &'static str {
    if file.parent().is_none_or(|root| Layout::new(root).is_free()) {
        "give the directory of a cluster with --dir, or have one made there by `troth init`, or by `troth up` while that runs"
    } else {
        "give the directory of a cluster with --dir, or have one made there by `troth init`"
    }
}

impl Cluster {
    /// Reads and checks a `cluster.toml`.
    ///
    /// # Errors
    /// Names the file, the line and the mend.
    pub fn load(file: &Path) -> Result<Self, ConfigError> {
        Self::check(&Source::read(file, mend_for_missing(file))?)
    }

    /// Who the replicas and clients are before the first change. It becomes replicated state, so it has no
    /// addresses: each machine's `cluster.toml` may have others (a relay, a private network) without making
    /// another group. An empty address means the one there.
    #[must_use]
    pub fn configuration(&self) -> Arc<Configuration> {
        let member = |replica: &ReplicaEntry| {
            let component = match &replica.trusted_key {
                Some(key) => ComponentKey::Ed25519(key.to_bytes()),
                None => ComponentKey::Group,
            };
            let host =
                HostKeys { signing: replica.host_key.0, link: replica.link_key, address: String::new() };
            Member::new(replica.epoch.0, component, host)
        };
        let client = |(id, client): (ClientId, &ClientEntry)| {
            let (key, link) = (client.key.0, client.link_key);
            (id, troth_types::ClientEntry { key, link, removed: false })
        };
        let members = self.replicas.iter().map(member).collect();
        let clients = self.clients.iter().map(|(id, entry)| (*id, entry));
        let clients = clients.chain(self.operator.iter().map(|entry| (OPERATOR, entry)));
        Arc::new(Configuration::new(members, clients.map(client).collect()))
    }

    /// The keys by which frames and messages are checked before the first change.
    #[must_use]
    pub fn directory(&self) -> Arc<Directory> {
        Arc::new(Directory::new(self.group.id(), self.configuration()))
    }

    /// Batches for which a replica that was admitted may not vote.
    #[must_use]
    pub fn settling(&self) -> u64 {
        self.timing.window + self.timing.checkpoint_interval
    }

    /// Who a replica's trusted component of an epoch is.
    #[must_use]
    pub fn identity(&self, replica: ReplicaId, epoch: Epoch) -> Identity {
        Identity { group: self.group.id().0, replica: replica.0, epoch }
    }

    /// A replica's entry.
    ///
    /// # Panics
    /// If the group has no such replica.
    #[must_use]
    pub fn replica(&self, replica: ReplicaId) -> &ReplicaEntry {
        &self.replicas[usize::from(replica.0)]
    }

    fn check(source: &Source) -> Result<Self, ConfigError> {
        let raw: RawCluster = source.parse()?;
        let checks = Checks(source);
        checks.number(&raw.version, 1, 1, "the version of the format")?;
        let protocols = Protocol::ALL.map(|protocol| (protocol.name(), protocol));
        let protocol = checks.one_of(&raw.protocol, &protocols, "protocol")?;
        let auth = authentication::check(&checks, raw.auth.as_ref(), protocol)?;
        let durability = durability::check(&checks, &raw.durability, raw.durability_interval_ms.as_ref())?;
        let services = Service::ALL.map(|service| (service.name(), service));
        let service = checks.one_of(&raw.service, &services, "service")?;
        let mut zookeeper = zookeeper::check(&checks, raw.zookeeper.as_ref(), service)?;
        let trusted = home::components(&checks, &raw, protocol)?;
        let trusted_home = home::check(&checks, raw.trusted_home.as_ref(), trusted)?;
        let nonce: [u8; 32] = checks.bytes(&raw.nonce, "the nonce")?;
        let genesis = raw.genesis.as_ref().map(|genesis| checks.bytes(genesis, "genesis").map(Digest));
        let genesis = genesis.transpose()?;
        let limits = checks.limits(&raw.limits)?;
        let timing = checks.timing(&raw.timing, service)?;
        if service == Service::ZooKeeper {
            zookeeper::fits(&checks, &raw, &timing, zookeeper.grace)?;
        }
        let replicas = replicas(&checks, &raw.replica, trusted)?;
        let clients = clients(&checks, &raw)?;
        let operator = operator(&checks, &raw)?;
        checks.distinct_keys(&raw)?;

        let id = group_id(
            protocol,
            auth,
            service,
            &zookeeper,
            trusted,
            &nonce,
            genesis,
            &limits,
            &timing,
            &replicas,
            &clients,
            operator.as_ref(),
        );
        let count = u16::try_from(replicas.len()).unwrap_or(0);
        let group = protocol.group(id, count).map_err(|why| {
            let span = raw.replica.last().map_or(0..0, Spanned::span);
            let mend = format!("for protocol = \"{}\" have {}", protocol.name(), protocol.sizes());
            source.error(span, why.to_string(), mend)
        })?;
        if service == Service::ZooKeeper {
            zookeeper.group = id;
            zookeeper.config = zookeeper::text(id, protocol.name(), &replicas);
        }
        let cluster = Self {
            group,
            protocol,
            auth,
            service,
            zookeeper,
            trusted,
            trusted_home,
            durability,
            replicas,
            clients,
            operator,
            limits,
            timing,
            genesis,
        };
        // A replica logs the NEW-VIEW by which it enters a view.
        let largest = largest_message(&cluster);
        if protocol != Protocol::MinBft && largest > MAX_RECORD - RECORD_OVERHEAD {
            let span =
                raw.timing.window.as_ref().or(raw.limits.batch_frames.as_ref()).map_or(0..0, Spanned::span);
            let problem = format!(
                "with {count} replicas, a window of {} and batches of {} frames a new view may take {largest} bytes, more than a \
                 record of the log can hold",
                cluster.timing.window, cluster.limits.batch_frames
            );
            return Err(source.error(span, problem, "make window or batch_frames smaller"));
        }
        Ok(cluster)
    }
}

fn replicas(
    checks: &Checks<'_>,
    raw: &[Spanned<RawReplica>],
    trusted: TrustedKind,
) -> Result<Vec<ReplicaEntry>, ConfigError> {
    if let Some(beyond) = raw.get(usize::from(checks::MAX_REPLICAS)) {
        let problem = format!("there are {} [[replica]] tables", raw.len());
        let mend = format!("have at most {} of them", checks::MAX_REPLICAS);
        return Err(checks.0.error(beyond.span(), problem, mend));
    }
    let mut replicas = Vec::new();
    for (index, spanned) in raw.iter().enumerate() {
        let entry = spanned.get_ref();
        checks.number(
            &entry.id,
            index as u64,
            index as u64,
            "the replica's number, counted from 0 in order,",
        )?;
        let trusted_key = match (trusted, &entry.trusted_key) {
            (TrustedKind::Hmac | TrustedKind::Nothing, None) => None,
            (TrustedKind::Nothing, Some(key)) => {
                return Err(checks.0.error(
                    key.span(),
                    "this group's replicas have no trusted components",
                    "remove trusted_key",
                ));
            }
            (TrustedKind::Hmac, Some(key)) => {
                return Err(checks.0.error(
                    key.span(),
                    "components with HMAC share a secret key and have no public ones",
                    "remove trusted_key, or set trusted = \"ed25519\"",
                ));
            }
            (TrustedKind::Ed25519, None) => {
                return Err(checks.0.error(
                    spanned.span(),
                    format!("replica {index} has no trusted_key"),
                    "add the component's Ed25519 public key as trusted_key, or set trusted = \"hmac\"",
                ));
            }
            (TrustedKind::Ed25519, Some(key)) => {
                let bytes = checks.bytes(key, "trusted_key")?;
                Some(SignatureVerifier::from_bytes(&bytes).ok_or_else(|| {
                    checks.0.error(
                        key.span(),
                        "trusted_key is not an Ed25519 key",
                        "copy it from the replica's own machine",
                    )
                })?)
            }
        };
        replicas.push(ReplicaEntry {
            address: checks.address(&entry.address)?,
            http: entry.http.as_ref().map(|http| checks.address(http)).transpose()?,
            link_key: checks.bytes(&entry.link_key, "link_key")?,
            host_key: PublicKey(checks.bytes(&entry.host_key, "host_key")?),
            epoch: home::epoch(checks, index, spanned, trusted)?,
            trusted_key,
        });
    }
    Ok(replicas)
}

fn clients(checks: &Checks<'_>, raw: &RawCluster) -> Result<BTreeMap<ClientId, ClientEntry>, ConfigError> {
    let mut clients = BTreeMap::new();
    for spanned in &raw.client {
        let entry = spanned.get_ref();
        let id = ClientId(*entry.id.get_ref());
        if id.0 == 0 {
            return Err(checks.0.error(
                entry.id.span(),
                "client 0 is the service itself",
                "number clients from 1",
            ));
        }
        let client = ClientEntry {
            link_key: checks.bytes(&entry.link_key, "link_key")?,
            key: PublicKey(checks.bytes(&entry.key, "key")?),
        };
        if clients.insert(id, client).is_some() {
            let problem = format!("there are two clients with number {}", id.0);
            return Err(checks.0.error(entry.id.span(), problem, "give each client its own number"));
        }
    }
    Ok(clients)
}

fn operator(checks: &Checks<'_>, raw: &RawCluster) -> Result<Option<ClientEntry>, ConfigError> {
    let Some(spanned) = &raw.operator else { return Ok(None) };
    let entry = spanned.get_ref();
    let link_key = checks.bytes(&entry.link_key, "link_key")?;
    Ok(Some(ClientEntry { link_key, key: PublicKey(checks.bytes(&entry.key, "key")?) }))
}

/// The group's name: a digest over everything that decides what is valid in it. The checkpoint interval
/// and the window are part of that: a replica that has others than its peers takes their honest logs for
/// proofs against them. Addresses, patience and what the primary keeps under way may change without
/// making another group.
#[expect(clippy::too_many_arguments, reason = "each is one thing that names the group")]
fn group_id(
    protocol: Protocol,
    auth: Auth,
    service: Service,
    zookeeper: &ZooKeeper,
    trusted: TrustedKind,
    nonce: &[u8; 32],
    genesis: Option<Digest>,
    limits: &Limits,
    timing: &Timing,
    replicas: &[ReplicaEntry],
    clients: &BTreeMap<ClientId, ClientEntry>,
    operator: Option<&ClientEntry>,
) -> GroupId {
    let mut hasher = Hasher::new("troth/group/v2");
    hasher.bytes(protocol.name().as_bytes()).bytes(service.name().as_bytes());
    hasher.bytes(trusted.name().as_bytes()).fixed(nonce);
    hasher
        .number(limits.client_window)
        .number(limits.frame_operations as u64)
        .number(limits.frame_bytes as u64);
    hasher.number(limits.batch_frames as u64).number(limits.result_bytes as u64);
    hasher.number(limits.outbox_events as u64).number(limits.client_bytes as u64);
    hasher.number(timing.checkpoint_interval).number(timing.window);
    hasher.number(replicas.len() as u64);
    for replica in replicas {
        hasher.fixed(&replica.link_key).fixed(&replica.host_key.0).number(replica.epoch.0);
        hasher.bytes(&replica.trusted_key.as_ref().map_or(Vec::new(), |key| key.to_bytes().to_vec()));
    }
    hasher.number(clients.len() as u64);
    for (id, client) in clients {
        hasher.number(id.0).fixed(&client.link_key).fixed(&client.key.0);
    }
    // Absent where a group begins with nothing, so that the names of such groups stay what they were.
    if let Some(genesis) = genesis {
        hasher.bytes(b"genesis").digest(&genesis);
    }
    // Without one the name is what it was before there were operators.
    if let Some(operator) = operator {
        hasher.bytes(b"operator").fixed(&operator.link_key).fixed(&operator.key.0);
    }
    // The same with frames that are signed.
    if auth != Auth::Signed {
        hasher.bytes(auth.name().as_bytes());
    }
    // Other services have none of this.
    if service == Service::ZooKeeper {
        zookeeper::name(zookeeper, &mut hasher);
    }
    let digest = hasher.finish();
    let mut id = [0; 16];
    id.copy_from_slice(&digest.0[..16]);
    GroupId(id)
}

/// The group that a `cluster.toml` with this text defines.
pub(crate) fn group_of(file: &Path, text: &str) -> Result<GroupId, ConfigError> {
    let source = Source { file: file.to_path_buf(), text: text.to_owned() };
    Ok(Cluster::check(&source)?.group.id())
}
