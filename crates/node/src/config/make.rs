//! Makes a new cluster: keys from the operating system's randomness, and the files that hold them.

use super::secret::link_key;
use super::{
    Auth, ConfigError, Durability, Layout, Protocol, Service, TrustedHome, TrustedKind, ZooKeeper, checks,
    hex, restored, zookeeper,
};
use core::fmt::Write as _;
use std::collections::BTreeMap;
use std::fs::{DirBuilder, OpenOptions, Permissions};
use std::io::{self, Write as _};
use std::net::TcpListener;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use troth_auth::{Ed25519Signer, Signer};
use troth_trusted::SigningKey;
use troth_types::{ClientId, ReplicaId};

/// What cluster to make.
#[derive(Clone, Debug)]
pub struct Plan {
    /// How the replicas agree.
    pub protocol: Protocol,
    /// By what clients' frames show whose they are.
    pub auth: Auth,
    /// The faulty replicas to bear; there will be as many replicas as the protocol needs for that.
    pub faults: u16,
    /// What it serves.
    pub service: Service,
    /// The settings of the coordination service; of no concern where another one is served.
    pub zookeeper: ZooKeeper,
    /// How trusted components certify; of no concern where the protocol has none.
    pub trusted: TrustedKind,
    /// Where each trusted component lives; of no concern where the protocol has none.
    pub trusted_home: TrustedHome,
    /// What each replica keeps.
    pub durability: Durability,
    /// How many clients get keys.
    pub clients: u16,
    /// Per replica, where it listens and where it serves `/status` and `/metrics`.
    pub addresses: Vec<(String, String)>,
    /// Lines for the `[timing]` table; empty for the defaults.
    pub timing: String,
}

/// Why no cluster was made.
#[derive(Debug, thiserror::Error)]
pub enum MakeError {
    /// There is one already.
    #[error("{0} exists already; choose another directory with --dir, or remove it if nothing runs from it")]
    Exists(PathBuf),
    /// What was asked for is no cluster; nothing was written.
    #[error("{0}")]
    Plan(String),
    /// The cluster's configuration would be refused; nothing was written.
    #[error("no cluster can be made so: {}\n  mend: {}", .0.problem, .0.mend)]
    Config(ConfigError),
    /// Files of a cluster are there, but not all.
    #[error(
        "{file} exists already, of a cluster that was never finished; remove {root}, if nothing runs from it, and begin again"
    )]
    Unfinished {
        /// The file in the way.
        file: PathBuf,
        /// The cluster's directory.
        root: PathBuf,
    },
    /// A file could not be written.
    #[error("cannot write {0}: {1}")]
    File(PathBuf, io::Error),
    /// The first state could not be written.
    #[error(transparent)]
    Genesis(#[from] crate::backup::BackupError),
    /// The operating system gives no random bytes.
    #[error("the operating system gives no random bytes: {0}")]
    Random(getrandom::Error),
    /// No free ports were found.
    #[error("found no free ports on 127.0.0.1 between 10000 and 32000")]
    NoPorts,
}

/// Makes the cluster's files below a directory that must not hold a cluster yet.
///
/// # Errors
/// See [`MakeError`].
pub fn make(layout: &Layout, plan: &Plan) -> Result<(), MakeError> {
    make_with(layout, plan, &Extra::default())
}

/// What a cluster has beyond what its plan says.
#[derive(Default)]
pub(super) struct Extra<'a> {
    /// Lines before the first table of cluster.toml.
    pub(super) lines: String,
    /// Lines for the `[limits]` table; what the service needs where absent.
    pub(super) limits: Option<String>,
    /// The first state, for each replica.
    pub(super) genesis: Option<&'a troth_exec::Snapshot>,
}

/// As [`make`].
pub(super) fn make_with(layout: &Layout, plan: &Plan, extra: &Extra<'_>) -> Result<(), MakeError> {
    if layout.cluster().exists() {
        return Err(MakeError::Exists(layout.cluster()));
    }
    plan.check()?;
    let replicas = plan.protocol.replicas(plan.faults);
    let (kind, home) = plan.protocol.components(plan.trusted, plan.trusted_home);

    let mut cluster = String::from(HEAD);
    let nonce = random()?;
    writeln!(cluster, "protocol = \"{}\"", plan.protocol.name()).expect("a string takes all");
    if plan.auth != Auth::default() {
        writeln!(cluster, "auth = \"{}\"", plan.auth.name()).expect("a string takes all");
    }
    writeln!(cluster, "service = \"{}\"", plan.service.name()).expect("a string takes all");
    cluster += &plan.durability.lines();
    if kind != TrustedKind::Nothing {
        writeln!(cluster, "trusted = \"{}\"", kind.name()).expect("a string takes all");
    }
    if home == TrustedHome::Process {
        writeln!(cluster, "trusted_home = \"{}\"", home.name()).expect("a string takes all");
    }
    writeln!(cluster, "nonce = \"{}\"", hex::encode(&nonce)).expect("a string takes all");
    cluster += &extra.lines;
    let limits = extra.limits.clone().unwrap_or_else(|| match plan.service {
        Service::Kv | Service::Null => String::new(),
        Service::ZooKeeper => restored::limits(&zookeeper::LIMITS),
    });
    if !limits.is_empty() {
        write!(cluster, "\n[limits]\n{limits}").expect("a string takes all");
    }
    if !plan.timing.is_empty() {
        write!(cluster, "\n[timing]\n{}", plan.timing).expect("a string takes all");
    }
    if plan.service == Service::ZooKeeper {
        let lines = zookeeper::lines(&plan.zookeeper);
        if !lines.is_empty() {
            write!(cluster, "\n[zookeeper]\n{lines}").expect("a string takes all");
        }
    }

    let shared: [u8; 32] = random()?;
    let mut secrets: Vec<(PathBuf, String)> = Vec::new();
    for number in 0..replicas {
        let replica = ReplicaId(number);
        let (link, host) = (random()?, random()?);
        let own: [u8; 32] = if kind == TrustedKind::Hmac { shared } else { random()? };
        let (address, http) = &plan.addresses[usize::from(number)];
        write!(
            cluster,
            "\n[[replica]]\nid = {number}\naddress = \"{address}\"\nhttp = \"{http}\"\nlink_key = \"{}\"\nhost_key = \"{}\"\n",
            hex::encode(&link_key(&link)),
            hex::encode(&Ed25519Signer::from_seed(host).public_key().0),
        )
        .expect("a string takes all");
        if kind != TrustedKind::Nothing {
            cluster += "epoch = 1\n";
        }
        if kind == TrustedKind::Ed25519 {
            let key = SigningKey::new(&own).verifier().to_bytes();
            writeln!(cluster, "trusted_key = \"{}\"", hex::encode(&key)).expect("a string takes all");
        }
        let mut secret = format!(
            "replica = {number}\nlink_secret = \"{}\"\nhost_secret = \"{}\"\n",
            hex::encode(&link),
            hex::encode(&host),
        );
        let trusted = format!("trusted_secret = \"{}\"\n", hex::encode(&own));
        match home {
            TrustedHome::Nowhere => {}
            TrustedHome::InProcess => secret += &trusted,
            TrustedHome::Process => {
                secrets.push((layout.trusted_secret(replica), format!("replica = {number}\n{trusted}")));
            }
        }
        secrets.push((layout.replica_secret(replica), secret));
    }
    for number in 1..=u64::from(plan.clients) {
        let (link, seed) = (random()?, random()?);
        write!(
            cluster,
            "\n[[client]]\nid = {number}\nlink_key = \"{}\"\nkey = \"{}\"\n",
            hex::encode(&link_key(&link)),
            hex::encode(&Ed25519Signer::from_seed(seed).public_key().0),
        )
        .expect("a string takes all");
        let secret = format!(
            "client = {number}\nlink_secret = \"{}\"\nsecret = \"{}\"\n",
            hex::encode(&link),
            hex::encode(&seed)
        );
        secrets.push((layout.client_secret(ClientId(number)), secret));
    }

    let (link, seed) = (random()?, random()?);
    write!(
        cluster,
        "\n[operator]\nlink_key = \"{}\"\nkey = \"{}\"\n",
        hex::encode(&link_key(&link)),
        hex::encode(&Ed25519Signer::from_seed(seed).public_key().0),
    )
    .expect("a string takes all");
    secrets.push((
        layout.operator_secret(),
        format!("link_secret = \"{}\"\nsecret = \"{}\"\n", hex::encode(&link), hex::encode(&seed)),
    ));

    // Before anything is written, so that what cannot be leaves nothing behind.
    let group = super::cluster::group_of(&layout.cluster(), &cluster).map_err(MakeError::Config)?;
    let mut open = Vec::new();
    if home == TrustedHome::Process {
        // Two users go through these, each to directories of its own.
        open.push(layout.root().to_path_buf());
        for replica in (0..replicas).map(ReplicaId) {
            open.extend(layout.trusted_socket(replica).parent().map(Path::to_path_buf));
        }
    }
    // What is made on the way to it, too.
    directory(layout.root(), if home == TrustedHome::Process { 0o755 } else { 0o700 })?;
    directory(&layout.root().join("clients"), 0o700)?;
    for replica in (0..replicas).map(ReplicaId) {
        directory(&layout.replica(replica), 0o700)?;
        if home == TrustedHome::Process {
            // The process makes no directories: a component whose counters are gone must not start anew.
            directory(&layout.counters(replica, home), 0o700)?;
            if plan.protocol.uses_logs() {
                directory(&layout.component_logs(replica, home), 0o700)?;
            }
        }
    }
    for path in open {
        directory(&path, 0o755)?;
        let opened = std::fs::set_permissions(&path, Permissions::from_mode(0o755));
        opened.map_err(|why| MakeError::File(path.clone(), why))?;
    }
    for (file, secret) in secrets {
        let text = format!("{SECRET_HEAD}group = \"{}\"\n{secret}", hex::encode(&group.0));
        write_new(layout, &file, text.as_bytes(), 0o600)?;
    }
    if let Some(state) = extra.genesis {
        for replica in (0..replicas).map(ReplicaId) {
            crate::backup::file::write(&layout.genesis(replica), state)?;
        }
    }
    // Last, so that a directory with a cluster.toml is complete.
    write_new(layout, &layout.cluster(), cluster.as_bytes(), 0o644)
}

impl Plan {
    /// Whether there can be such a cluster, in words of who asked for it: the checks of the file would
    /// name lines of a file that is not there. Addresses are written into it as they are, so nothing in
    /// them may mean something to it.
    fn check(&self) -> Result<(), MakeError> {
        let replicas = usize::from(self.protocol.replicas(self.faults));
        if self.faults == 0 || replicas > usize::from(checks::MAX_REPLICAS) {
            let most = self.protocol.most_faults(checks::MAX_REPLICAS);
            return Err(MakeError::Plan(format!(
                "a group cannot bear {} faulty replicas; ask for 1 to {most}",
                self.faults
            )));
        }
        if let Some(superuser) = &self.zookeeper.superuser
            && !zookeeper::is_user(superuser)
        {
            return Err(MakeError::Plan(format!("{}; {}", zookeeper::NO_USER, zookeeper::USER)));
        }
        if self.addresses.len() != replicas {
            let given = self.addresses.len();
            return Err(MakeError::Plan(format!(
                "{replicas} replicas need as many addresses, and there are {given}"
            )));
        }
        let mut whose = BTreeMap::new();
        for (number, (group, http)) in self.addresses.iter().enumerate() {
            for (address, use_of) in [(group, "group"), (http, "/status")] {
                check_address(number, address)?;
                let place = format!("replica {number}'s {use_of} address");
                if let Some(other) = whose.insert(address, place.clone()) {
                    return Err(MakeError::Plan(format!(
                        "{other} and {place} are both {address}; name each machine once, and on one machine \
                         have fewer replicas than lie between the group's ports and those of /status"
                    )));
                }
            }
        }
        Ok(())
    }
}

fn check_address(number: usize, address: &str) -> Result<(), MakeError> {
    let host = address.rsplit_once(':').map_or(address, |(host, _)| host);
    if host.is_empty() {
        return Err(MakeError::Plan(format!(
            "replica {number} has no host; name a machine for every replica, without empty names between commas"
        )));
    }
    // Names, IPv4, and IPv6 in brackets with a zone.
    let known = |letter: char| letter.is_ascii_alphanumeric() || ".-_:[]%".contains(letter);
    if let Some(strange) = host.chars().find(|letter| !known(*letter)) {
        return Err(MakeError::Plan(format!(
            "replica {number}'s host {host:?} has a {strange:?} in it; write a host's name or its IP address"
        )));
    }
    Ok(())
}

/// How every secret file begins.
pub(crate) const SECRET_HEAD: &str =
    "# Secret: keep it on the one machine that uses it, readable by its user only.\n";

const HEAD: &str = "# A Troth cluster. Public: the same file for every replica and client.
# docs/reference/configuration.md describes every key.
version = 1
";

/// `count` ports of 127.0.0.1 that nobody listens on now, from below the range that the system
/// hands out for outgoing connections.
///
/// # Errors
/// [`MakeError::NoPorts`] where there are not enough, [`MakeError::Random`].
pub fn free_ports(count: usize) -> Result<Vec<u16>, MakeError> {
    let mut held = Vec::new();
    let mut ports = Vec::new();
    for _ in 0..200 {
        let [low, high, ..] = random()?;
        let port = 10_000 + u16::from_le_bytes([low, high]) % 22_000;
        if let Ok(listener) = TcpListener::bind(("127.0.0.1", port)) {
            held.push(listener);
            ports.push(port);
        }
        if ports.len() == count {
            return Ok(ports);
        }
    }
    Err(MakeError::NoPorts)
}

pub(crate) fn random() -> Result<[u8; 32], MakeError> {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes).map_err(MakeError::Random)?;
    Ok(bytes)
}

fn directory(path: &Path, mode: u32) -> Result<(), MakeError> {
    DirBuilder::new()
        .recursive(true)
        .mode(mode)
        .create(path)
        .map_err(|why| MakeError::File(path.to_path_buf(), why))
}

fn write_new(layout: &Layout, path: &Path, bytes: &[u8], mode: u32) -> Result<(), MakeError> {
    let write = || {
        let mut file = OpenOptions::new().write(true).create_new(true).mode(mode).open(path)?;
        file.write_all(bytes)?;
        file.sync_all()
    };
    write().map_err(|why| match why.kind() {
        // There was no cluster.toml, which is written last.
        io::ErrorKind::AlreadyExists => {
            MakeError::Unfinished { file: path.to_path_buf(), root: layout.root().to_path_buf() }
        }
        _ => MakeError::File(path.to_path_buf(), why),
    })
}
