//! The secret files: one per replica and one per client, readable by their owner only.

use super::checks::Checks;
use super::cluster::{ClientEntry, Cluster, TrustedKind};
use super::error::{ConfigError, Source};
use super::make::{MakeError, SECRET_HEAD, random};
use super::raw::{RawClientSecret, RawOperatorSecret, RawReplicaSecret, RawTrustedSecret};
use super::renew::replace_file;
use super::{TrustedHome, hex};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use toml::Spanned;
use troth_auth::{Ed25519Signer, Signer};
use troth_link::{Identity, PeerId};
use troth_trusted::{Certifier, Epoch, MacKey, SigningKey};
use troth_types::{ClientId, Configuration, Member, OPERATOR, ReplicaId};

/// What one replica knows and nobody else does.
pub struct ReplicaSecret {
    /// Which replica.
    pub replica: ReplicaId,
    /// Its trusted component's epoch: the one in cluster.toml, or a later one under which it was readmitted; 0 where
    /// it has none.
    pub epoch: Epoch,
    /// Where it listens, where that is not what cluster.toml says.
    pub address: Option<String>,
    /// Where it serves `/status` and `/metrics`, where that is not what cluster.toml says.
    pub http: Option<String>,
    /// Its Noise static private key.
    pub link: [u8; 32],
    /// Its host's signing key.
    pub host: Ed25519Signer,
    /// Its trusted component's key; nothing where that lives in a process of its own, or there is none.
    pub trusted: Option<Certifier>,
    /// The key that checks HMAC certificates, where the group uses them.
    pub mac: Option<MacKey>,
}

/// What a trusted component in a process of its own knows and nobody else does.
pub struct TrustedSecret {
    /// Whose component it is.
    pub replica: ReplicaId,
    /// Its epoch.
    pub epoch: Epoch,
    /// Its key.
    pub key: Certifier,
}

/// What one client knows and nobody else does.
pub struct ClientSecret {
    /// Which client.
    pub client: ClientId,
    /// Its Noise static private key.
    pub link: [u8; 32],
    /// The seed of its Ed25519 signing key.
    pub seed: [u8; 32],
}

impl ReplicaSecret {
    /// Where the replica listens: what its own file says, where it was moved; else what `cluster.toml` says.
    #[must_use]
    pub fn listens_at<'a>(&'a self, cluster: &'a Cluster) -> &'a str {
        self.address.as_ref().unwrap_or(&cluster.replica(self.replica).address)
    }

    /// Reads and checks a replica's secret file against the cluster's configuration.
    ///
    /// # Errors
    /// Names the file, the line and the mend.
    pub fn load(file: &Path, cluster: &Cluster) -> Result<Self, ConfigError> {
        let source = private(file)?;
        let raw: RawReplicaSecret = source.parse()?;
        let checks = Checks(&source);
        let replica = member(&checks, &raw.replica, cluster)?;
        same_group(&source, &raw.group, cluster)?;
        let entry = cluster.replica(replica);

        // With an epoch of its own it was written by `troth admin`, and cluster.toml knows nothing of it.
        let first = raw.epoch.is_none();
        let link: [u8; 32] = checks.bytes(&raw.link_secret, "link_secret")?;
        fits(&source, &raw.link_secret, !first || link_key(&link) == entry.link_key, "link_key")?;
        let host = Ed25519Signer::from_seed(checks.bytes(&raw.host_secret, "host_secret")?);
        fits(&source, &raw.host_secret, !first || host.public_key() == entry.host_key, "host_key")?;
        let (trusted, mac) = match (cluster.trusted_home, &raw.trusted_secret) {
            (TrustedHome::InProcess, Some(secret)) => {
                let (key, mac) = component_key(&source, secret, cluster, replica, first)?;
                (Some(key), mac)
            }
            (TrustedHome::InProcess, None) => {
                return Err(source.error(
                    0..0,
                    "there is no trusted_secret, and the trusted component lives in the replica's process",
                    "add it, or set trusted_home = \"process\" where the component's key is in a file of its own",
                ));
            }
            (TrustedHome::Process, Some(secret)) => {
                return Err(source.error(
                    secret.span(),
                    "the trusted component lives in a process of its own, and the replica has its key",
                    "move this line to the component's own secret.toml (in trusted-N), so that who takes over the \
                     replica does not find it here",
                ));
            }
            (TrustedHome::Process | TrustedHome::Nowhere, None) => (None, None),
            (TrustedHome::Nowhere, Some(secret)) => {
                return Err(source.error(
                    secret.span(),
                    "this group's replicas have no trusted components, and here is the key of one",
                    "remove this line",
                ));
            }
        };
        if let (TrustedHome::Nowhere, Some(epoch)) = (cluster.trusted_home, &raw.epoch) {
            return Err(source.error(
                epoch.span(),
                "an epoch is a trusted component's, and this group's replicas have none",
                "remove this line",
            ));
        }
        let epoch = raw.epoch.as_ref().map_or(entry.epoch, |epoch| Epoch(*epoch.get_ref()));
        let address = |value: &Option<Spanned<String>>| {
            value.as_ref().map(|address| checks.address(address)).transpose()
        };
        let (address, http) = (address(&raw.address)?, address(&raw.http)?);
        Ok(Self { replica, epoch, address, http, link, host, trusted, mac })
    }
}

impl ReplicaSecret {
    /// Whether these are the keys that the replica began with, and its host has others in this configuration: it was given
    /// those, or another host has its place. Of later keys a configuration alone does not tell which are newer.
    #[must_use]
    pub fn is_succeeded(&self, cluster: &Cluster, configuration: &Configuration) -> bool {
        let own = link_key(&self.link);
        let other = |member: &Member| member.host().link != own;
        own == cluster.replica(self.replica).link_key && configuration.member(self.replica).is_some_and(other)
    }
}

impl TrustedSecret {
    /// Reads and checks a trusted component's secret file against the cluster's configuration.
    ///
    /// # Errors
    /// Names the file, the line and the mend.
    pub fn load(file: &Path, cluster: &Cluster) -> Result<Self, ConfigError> {
        let source = private(file)?;
        let raw: RawTrustedSecret = source.parse()?;
        let replica = member(&Checks(&source), &raw.replica, cluster)?;
        same_group(&source, &raw.group, cluster)?;
        let first = raw.epoch.is_none();
        let (key, _) = component_key(&source, &raw.trusted_secret, cluster, replica, first)?;
        let epoch = raw.epoch.as_ref();
        let epoch = epoch.map_or(cluster.replica(replica).epoch, |epoch| Epoch(*epoch.get_ref()));
        Ok(Self { replica, epoch, key })
    }
}

impl ClientSecret {
    /// Reads and checks a client's secret file against the cluster's configuration.
    ///
    /// # Errors
    /// Names the file, the line and the mend.
    pub fn load(file: &Path, cluster: &Cluster) -> Result<Self, ConfigError> {
        let source = private(file)?;
        let raw: RawClientSecret = source.parse()?;
        let checks = Checks(&source);
        same_group(&source, &raw.group, cluster)?;
        let client = ClientId(*raw.client.get_ref());
        let entry = cluster.clients.get(&client).ok_or_else(|| {
            source.error(
                raw.client.span(),
                format!("the group has no client {}, as far as it is known here", client.0),
                "be one of its clients; one that `troth admin add-client` added needs the configuration.toml that was \
                 written then beside cluster.toml; or it was removed by the operator",
            )
        })?;
        let link: [u8; 32] = checks.bytes(&raw.link_secret, "link_secret")?;
        fits(&source, &raw.link_secret, link_key(&link) == entry.link_key, "link_key")?;
        let seed = checks.bytes(&raw.secret, "secret")?;
        let public = Ed25519Signer::from_seed(seed).public_key();
        fits(&source, &raw.secret, public == entry.key, "key")?;
        Ok(Self { client, link, seed })
    }

    /// Reads and checks the operator's secret file against the cluster's configuration.
    ///
    /// # Errors
    /// Names the file, the line and the mend.
    pub fn load_operator(file: &Path, cluster: &Cluster) -> Result<Self, ConfigError> {
        let source = private(file)?;
        let raw: RawOperatorSecret = source.parse()?;
        let checks = Checks(&source);
        same_group(&source, &raw.group, cluster)?;
        let entry = cluster.operator.ok_or_else(|| {
            source.error(
                raw.group.span(),
                "cluster.toml has no [operator], so nobody may change this group's configuration",
                "make a new cluster with `troth init` of this version, which gives it one",
            )
        })?;
        let link: [u8; 32] = checks.bytes(&raw.link_secret, "link_secret")?;
        fits(&source, &raw.link_secret, link_key(&link) == entry.link_key, "link_key")?;
        let seed = checks.bytes(&raw.secret, "secret")?;
        let public = Ed25519Signer::from_seed(seed).public_key();
        fits(&source, &raw.secret, public == entry.key, "key")?;
        Ok(Self { client: OPERATOR, link, seed })
    }

    /// New keys for a client that the group does not have yet.
    ///
    /// # Errors
    /// [`MakeError::Random`].
    pub fn new(client: ClientId) -> Result<Self, MakeError> {
        Ok(Self { client, link: random()?, seed: random()? })
    }

    /// Reads the secret file of a client that the group may not have yet.
    ///
    /// # Errors
    /// Names the file, the line and the mend.
    pub fn load_new(file: &Path, cluster: &Cluster) -> Result<Self, ConfigError> {
        let source = private(file)?;
        let raw: RawClientSecret = source.parse()?;
        let checks = Checks(&source);
        same_group(&source, &raw.group, cluster)?;
        let link = checks.bytes(&raw.link_secret, "link_secret")?;
        let seed = checks.bytes(&raw.secret, "secret")?;
        Ok(Self { client: ClientId(*raw.client.get_ref()), link, seed })
    }

    /// The public keys, as the group's configuration has them.
    #[must_use]
    pub fn entry(&self) -> ClientEntry {
        ClientEntry { link_key: link_key(&self.link), key: Ed25519Signer::from_seed(self.seed).public_key() }
    }

    /// Writes the secret file.
    ///
    /// # Errors
    /// [`MakeError::File`].
    pub fn write(&self, file: &Path, cluster: &Cluster) -> Result<(), MakeError> {
        let text = format!(
            "{SECRET_HEAD}group = \"{}\"\nclient = {}\nlink_secret = \"{}\"\nsecret = \"{}\"\n",
            hex::encode(&cluster.group.id().0),
            self.client.0,
            hex::encode(&self.link),
            hex::encode(&self.seed)
        );
        replace_file(file, text.as_bytes(), 0o600)
    }
}

/// A replica of the cluster.
pub(super) fn member(
    checks: &Checks<'_>,
    number: &Spanned<u64>,
    cluster: &Cluster,
) -> Result<ReplicaId, ConfigError> {
    let last = cluster.group.n() as u64 - 1;
    let number = checks.number(number, 0, last, "the replica's number")?;
    Ok(ReplicaId(u16::try_from(number).expect("below the number of replicas")))
}

/// A component's key, and what checks the group's certificates where that is the same key.
fn component_key(
    source: &Source,
    secret: &Spanned<String>,
    cluster: &Cluster,
    replica: ReplicaId,
    first: bool,
) -> Result<(Certifier, Option<MacKey>), ConfigError> {
    let bytes: [u8; 32] = Checks(source).bytes(secret, "trusted_secret")?;
    Ok(match cluster.trusted {
        TrustedKind::Hmac => {
            let key = MacKey::new(&bytes);
            (Certifier::Mac(key.clone()), Some(key))
        }
        TrustedKind::Ed25519 => {
            let key = SigningKey::new(&bytes);
            let good = !first || cluster.replica(replica).trusted_key.as_ref() == Some(&key.verifier());
            fits(source, secret, good, "trusted_key")?;
            (Certifier::Signature(key), None)
        }
        TrustedKind::Nothing => {
            return Err(source.error(
                secret.span(),
                "this group's replicas have no trusted components",
                "remove the file",
            ));
        }
    })
}

/// The public key of a Noise static private key.
pub(crate) fn link_key(secret: &[u8; 32]) -> [u8; 32] {
    // The key does not depend on whom it names.
    Identity::new(PeerId::Client(ClientId(0)), *secret).public_key().0
}

/// What to do where a secret file is not there. Nothing makes the keys of a group that runs once more.
fn mend_for_missing(file: &Path) -> String {
    const COPY: &str = "copy it to this machine from where `troth init` made the cluster";
    let (own, above) = (file.file_name(), file.parent().and_then(Path::file_name));
    match (own.and_then(|name| name.to_str()), above.and_then(|name| name.to_str())) {
        (Some("operator.toml"), _) => format!("{COPY}, or from its backup: it is made once"),
        (_, Some("clients")) => {
            format!(
                "{COPY}; a client that never had one: `troth admin add-client` where the operator's key is"
            )
        }
        _ => format!("{COPY}; where it is lost: docs/operating/readmission.md"),
    }
}

/// What is wrong with a file of secret keys, or the directory of a replica or a component, that others than its owner may
/// open; nothing where it is closed to them, or cannot be looked at.
#[must_use]
pub fn seen_by_others(place: &Path) -> Option<ConfigError> {
    let data = std::fs::metadata(place).ok()?;
    let mode = data.permissions().mode() & 0o777;
    let (whose, closed) = match data.is_dir() {
        true => ("is for its owner alone and open to others", 700),
        false => ("holds secret keys and others may read it", 600),
    };
    (mode & 0o077 != 0).then(|| ConfigError {
        file: place.to_path_buf(),
        place: None,
        problem: format!("{whose} (mode {mode:o})"),
        mend: format!("chmod {closed} {}", place.display()),
    })
}

/// Reads a file that nobody but its owner may read.
pub(super) fn private(file: &Path) -> Result<Source, ConfigError> {
    let source = Source::read(file, &mend_for_missing(file))?;
    match seen_by_others(file) {
        Some(open) => Err(open),
        None => Ok(source),
    }
}

pub(super) fn same_group(
    source: &Source,
    group: &Spanned<String>,
    cluster: &Cluster,
) -> Result<(), ConfigError> {
    let expected = hex::encode(&cluster.group.id().0);
    if *group.get_ref() == expected {
        return Ok(());
    }
    Err(source.error(
        group.span(),
        format!("these keys belong to another group than cluster.toml, which defines {expected}"),
        "put the cluster.toml back that was made with these keys: services and what is set for them ([zookeeper]), \
         keys, epochs, clients, limits, checkpoint_interval and window define the group and cannot change in a running one",
    ))
}

fn fits(source: &Source, value: &Spanned<String>, good: bool, public: &str) -> Result<(), ConfigError> {
    if good {
        return Ok(());
    }
    Err(source.error(
        value.span(),
        format!("this secret does not belong to the {public} in cluster.toml"),
        "use the secret file and the cluster.toml of the same `troth init`",
    ))
}
