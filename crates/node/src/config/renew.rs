//! The secret files of one replica, read to be written anew: a replica that goes on under another epoch, on
//! another host or with other keys.

use super::cluster::{Cluster, TrustedKind};
use super::error::{ConfigError, Source};
use super::make::{MakeError, SECRET_HEAD, random};
use super::raw::{RawReplicaSecret, RawTrustedSecret};
use super::secret::{link_key, member, private, same_group};
use super::{Layout, TrustedHome, checks::Checks, hex};
use core::fmt::Write as _;
use std::fs::{File, OpenOptions};
use std::io;
use std::io::Write as _;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt, fchown};
use std::path::Path;
use troth_auth::{Ed25519Signer, Signer};
use troth_trusted::{Epoch, SigningKey};
use troth_types::{ComponentKey, HostKeys, ReplicaId};

/// All secrets of one replica, its trusted component's among them.
#[derive(Clone)]
pub struct ReplicaKeys {
    /// Which replica.
    pub replica: ReplicaId,
    /// Its component's epoch.
    pub epoch: Epoch,
    /// Where it listens, where that is not what `cluster.toml` says.
    pub address: Option<String>,
    /// Where it serves `/status` and `/metrics`, where that is not what `cluster.toml` says.
    pub http: Option<String>,
    link: [u8; 32],
    host: [u8; 32],
    component: [u8; 32],
}

impl ReplicaKeys {
    /// Reads them from where they lie: the replica's secret file and, where the component has one of its own,
    /// that. What an interrupted [`ReplicaKeys::write`] left is taken as it was meant.
    ///
    /// # Errors
    /// Names the file, the line and the mend.
    pub fn load(layout: &Layout, cluster: &Cluster, replica: ReplicaId) -> Result<Self, ConfigError> {
        let own = |raw: &Option<toml::Spanned<u64>>| {
            raw.as_ref().map_or(cluster.replica(replica).epoch, |epoch| Epoch(*epoch.get_ref()))
        };
        let (source, raw) = read_replica(&layout.replica_secret(replica), cluster, replica)?;
        let (checks, mut epoch) = (Checks(&source), own(&raw.epoch));
        let component = match cluster.trusted_home {
            TrustedHome::Nowhere => {
                return Err(source.error(
                    0..0,
                    format!("a replica of protocol \"{}\" has no trusted component", cluster.protocol.name()),
                    "nothing here is to be made anew for it",
                ));
            }
            TrustedHome::InProcess => match &raw.trusted_secret {
                Some(secret) => checks.bytes(secret, "trusted_secret")?,
                None => return Err(source.error(0..0, "there is no trusted_secret", "restore the file")),
            },
            TrustedHome::Process => {
                let source = private(&layout.trusted_secret(replica))?;
                let raw: RawTrustedSecret = source.parse()?;
                same_group(&source, &raw.group, cluster)?;
                epoch = epoch.max(own(&raw.epoch));
                Checks(&source).bytes(&raw.trusted_secret, "trusted_secret")?
            }
        };
        Ok(Self {
            replica,
            epoch,
            address: raw.address.as_ref().map(|address| checks.address(address)).transpose()?,
            http: raw.http.as_ref().map(|http| checks.address(http)).transpose()?,
            link: checks.bytes(&raw.link_secret, "link_secret")?,
            host: checks.bytes(&raw.host_secret, "host_secret")?,
            component,
        })
    }

    /// New keys for a replica on a new host. Where all components share one key, that is `shared`.
    ///
    /// # Errors
    /// [`MakeError::Random`].
    pub fn new(replica: ReplicaId, epoch: Epoch, shared: Option<[u8; 32]>) -> Result<Self, MakeError> {
        let component = match shared {
            Some(shared) => shared,
            None => random()?,
        };
        let (link, host) = (random()?, random()?);
        Ok(Self { replica, epoch, address: None, http: None, link, host, component })
    }

    /// The key that all components share, from any replica's secret file.
    ///
    /// # Errors
    /// Names the file, the line and the mend.
    pub fn shared_in(file: &Path, cluster: &Cluster) -> Result<Option<[u8; 32]>, ConfigError> {
        let source = private(file)?;
        let raw: RawReplicaSecret = source.parse()?;
        same_group(&source, &raw.group, cluster)?;
        raw.trusted_secret.map(|secret| Checks(&source).bytes(&secret, "trusted_secret")).transpose()
    }

    /// Another component, of this epoch.
    ///
    /// # Errors
    /// [`MakeError::Random`].
    pub fn renew_component(&mut self, cluster: &Cluster, epoch: Epoch) -> Result<(), MakeError> {
        self.epoch = epoch;
        if cluster.trusted == TrustedKind::Ed25519 {
            self.component = random()?;
        }
        Ok(())
    }

    /// Other keys for links and signatures; the component stays.
    ///
    /// # Errors
    /// [`MakeError::Random`].
    pub fn renew_host(&mut self) -> Result<(), MakeError> {
        (self.link, self.host) = (random()?, random()?);
        Ok(())
    }

    /// What others check the component's certificates with.
    #[must_use]
    pub fn component(&self, cluster: &Cluster) -> ComponentKey {
        match cluster.trusted {
            // Nobody asks where there is none.
            TrustedKind::Hmac | TrustedKind::Nothing => ComponentKey::Group,
            TrustedKind::Ed25519 => {
                ComponentKey::Ed25519(SigningKey::new(&self.component).verifier().to_bytes())
            }
        }
    }

    /// What others know the host by. An empty address is the one in `cluster.toml`.
    #[must_use]
    pub fn host(&self) -> HostKeys {
        HostKeys {
            signing: Ed25519Signer::from_seed(self.host).public_key().0,
            link: link_key(&self.link),
            address: self.address.clone().unwrap_or_default(),
        }
    }

    /// Writes the secret files anew, each in one step; the component's first, by which an interrupted call is
    /// found again. A file keeps its owner.
    ///
    /// # Errors
    /// [`MakeError::File`].
    pub fn write(&self, layout: &Layout, cluster: &Cluster) -> Result<(), MakeError> {
        if cluster.trusted_home == TrustedHome::Process {
            let text = format!(
                "{SECRET_HEAD}group = \"{}\"\nreplica = {}\nepoch = {}\ntrusted_secret = \"{}\"\n",
                hex::encode(&cluster.group.id().0),
                self.replica.0,
                self.epoch.0,
                hex::encode(&self.component),
            );
            replace_file(&layout.trusted_secret(self.replica), text.as_bytes(), 0o600)?;
        }
        self.write_replica(&layout.replica_secret(self.replica), cluster)
    }

    /// Writes what the replica's own secret file holds to a file.
    ///
    /// # Errors
    /// [`MakeError::File`].
    pub fn write_replica(&self, file: &Path, cluster: &Cluster) -> Result<(), MakeError> {
        let mut text = format!(
            "{SECRET_HEAD}group = \"{}\"\nreplica = {}\nepoch = {}\nlink_secret = \"{}\"\nhost_secret = \"{}\"\n",
            hex::encode(&cluster.group.id().0),
            self.replica.0,
            self.epoch.0,
            hex::encode(&self.link),
            hex::encode(&self.host),
        );
        if cluster.trusted_home == TrustedHome::InProcess {
            writeln!(text, "trusted_secret = \"{}\"", hex::encode(&self.component))
                .expect("a string takes all");
        }
        for (name, value) in [("address", &self.address), ("http", &self.http)] {
            if let Some(value) = value {
                writeln!(text, "{name} = \"{value}\"").expect("a string takes all");
            }
        }
        replace_file(file, text.as_bytes(), 0o600)
    }

    /// The same replica with the link and signing keys, and the addresses, that another file of it holds.
    ///
    /// # Errors
    /// Names the file, the line and the mend.
    pub fn with_host_of(&self, file: &Path, cluster: &Cluster) -> Result<Self, ConfigError> {
        let (source, raw) = read_replica(file, cluster, self.replica)?;
        let checks = Checks(&source);
        Ok(Self {
            link: checks.bytes(&raw.link_secret, "link_secret")?,
            host: checks.bytes(&raw.host_secret, "host_secret")?,
            address: raw.address.as_ref().map(|address| checks.address(address)).transpose()?,
            http: raw.http.as_ref().map(|http| checks.address(http)).transpose()?,
            ..self.clone()
        })
    }
}

fn read_replica(
    file: &Path,
    cluster: &Cluster,
    replica: ReplicaId,
) -> Result<(Source, RawReplicaSecret), ConfigError> {
    let source = private(file)?;
    let raw: RawReplicaSecret = source.parse()?;
    same_group(&source, &raw.group, cluster)?;
    let found = member(&Checks(&source), &raw.replica, cluster)?;
    if found != replica {
        let problem = format!("this is replica {}'s, not replica {}'s", found.0, replica.0);
        return Err(source.error(raw.replica.span(), problem, "put each secret file back where it belongs"));
    }
    Ok((source, raw))
}

/// Puts a file in the place of what stands there, durably and in one step. It belongs to whom that, or else
/// the directory, belongs to. Root does this in directories of users whom it gives no more than that: no link that
/// one of them lays is followed, and what is given away is what was opened, whatever its name means by then.
pub(super) fn replace_file(path: &Path, bytes: &[u8], mode: u32) -> Result<(), MakeError> {
    // A plain name has an empty parent.
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let new = path.with_extension("toml.new");
    let write = || {
        let owner = std::fs::metadata(path).or_else(|_| std::fs::metadata(directory))?;
        // What an interrupted call left, or what was laid there.
        match std::fs::remove_file(&new) {
            Err(why) if why.kind() != io::ErrorKind::NotFound => return Err(why),
            _ => {}
        }
        // A link in this place is an error: what must be new is opened through none.
        let mut file = OpenOptions::new().write(true).create_new(true).mode(mode).open(&new)?;
        // The process's mask may have taken some of it.
        file.set_permissions(std::fs::Permissions::from_mode(mode))?;
        let made = file.metadata()?;
        if (made.uid(), made.gid()) != (owner.uid(), owner.gid()) {
            fchown(&file, Some(owner.uid()), Some(owner.gid()))?;
        }
        file.write_all(bytes)?;
        file.sync_all()?;
        std::fs::rename(&new, path)?;
        File::open(directory)?.sync_all()
    };
    write().map_err(|why| MakeError::File(path.to_path_buf(), why))
}
