//! Makes a new cluster: keys from the operating system's randomness, and the files that hold them.

use super::secret::link_key;
use super::{Layout, Service, TrustedKind, hex};
use core::fmt::Write as _;
use std::fs::{DirBuilder, OpenOptions};
use std::io::{self, Write as _};
use std::net::TcpListener;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use troth_auth::{Ed25519Signer, Signer};
use troth_trusted::SigningKey;
use troth_types::{ClientId, ReplicaId};

/// What cluster to make.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The faulty replicas to bear; there will be 2f+1.
    pub faults: u16,
    /// What it serves.
    pub service: Service,
    /// How trusted components certify.
    pub trusted: TrustedKind,
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
    /// A file could not be written.
    #[error("cannot write {0}: {1}")]
    File(PathBuf, io::Error),
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
    if layout.cluster().exists() {
        return Err(MakeError::Exists(layout.cluster()));
    }
    private_directory(layout.root())?;
    private_directory(&layout.root().join("clients"))?;
    let replicas = 2 * plan.faults + 1;
    assert_eq!(plan.addresses.len(), usize::from(replicas), "one pair of addresses per replica");

    let mut cluster = String::from(HEAD);
    let nonce = random()?;
    writeln!(cluster, "service = \"{}\"", plan.service.name()).expect("a string takes all");
    writeln!(cluster, "durability = \"memory\"").expect("a string takes all");
    writeln!(cluster, "trusted = \"{}\"", plan.trusted.name()).expect("a string takes all");
    writeln!(cluster, "nonce = \"{}\"", hex::encode(&nonce)).expect("a string takes all");
    if !plan.timing.is_empty() {
        write!(cluster, "\n[timing]\n{}", plan.timing).expect("a string takes all");
    }

    let shared: [u8; 32] = random()?;
    let mut secrets: Vec<(PathBuf, String)> = Vec::new();
    for number in 0..replicas {
        let replica = ReplicaId(number);
        private_directory(&layout.replica(replica))?;
        let (link, host) = (random()?, random()?);
        let own: [u8; 32] = if plan.trusted == TrustedKind::Hmac { shared } else { random()? };
        let (address, http) = &plan.addresses[usize::from(number)];
        write!(
            cluster,
            "\n[[replica]]\nid = {number}\naddress = \"{address}\"\nhttp = \"{http}\"\nlink_key = \"{}\"\nhost_key = \"{}\"\nepoch = 1\n",
            hex::encode(&link_key(&link)),
            hex::encode(&Ed25519Signer::from_seed(host).public_key().0),
        )
        .expect("a string takes all");
        if plan.trusted == TrustedKind::Ed25519 {
            let key = SigningKey::new(&own).verifier().to_bytes();
            writeln!(cluster, "trusted_key = \"{}\"", hex::encode(&key)).expect("a string takes all");
        }
        let secret = format!(
            "link_secret = \"{}\"\nhost_secret = \"{}\"\ntrusted_secret = \"{}\"\n",
            hex::encode(&link),
            hex::encode(&host),
            hex::encode(&own),
        );
        secrets.push((layout.replica_secret(replica), format!("replica = {number}\n{secret}")));
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

    let group =
        super::cluster::group_of(&layout.cluster(), &cluster).expect("what is written here is well formed");
    for (file, secret) in secrets {
        let text = format!(
            "# Secret: keep it on the one machine that uses it, readable by its user only.\ngroup = \"{}\"\n{secret}",
            hex::encode(&group.0)
        );
        write_new(&file, text.as_bytes(), 0o600)?;
    }
    // Last, so that a directory with a cluster.toml is complete.
    write_new(&layout.cluster(), cluster.as_bytes(), 0o644)
}

const HEAD: &str = "# A Troth cluster. Public: the same file for every replica and client.
# docs/reference/configuration.md describes every key.
version = 1
protocol = \"minbft\"
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

fn random() -> Result<[u8; 32], MakeError> {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes).map_err(MakeError::Random)?;
    Ok(bytes)
}

fn private_directory(path: &Path) -> Result<(), MakeError> {
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(path)
        .map_err(|why| MakeError::File(path.to_path_buf(), why))
}

fn write_new(path: &Path, bytes: &[u8], mode: u32) -> Result<(), MakeError> {
    let write = || {
        let mut file = OpenOptions::new().write(true).create_new(true).mode(mode).open(path)?;
        file.write_all(bytes)?;
        file.sync_all()
    };
    write().map_err(|why| MakeError::File(path.to_path_buf(), why))
}
