//! A backup's directory. It gets its name when everything in it is durable, so half a backup never looks
//! whole; and what is read back is held against certificates and digests before anybody uses it.

use super::fetch::{certified, vouched};
use super::manifest::{FORMAT, FORMAT_AS_BEGUN};
use super::{BackupError, Manifest, Source, failed, file};
use crate::config::{Cluster, Layout, Service, TrustedKind, hex};
use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};
use troth_exec::Snapshot as State;
use troth_types::{Configuration, Digest, ReplicaId, Wire};

/// The most bytes of a manifest or of certificates.
const MOST: u64 = 4 << 20;
const MANIFEST: &str = "backup.json";
const CLUSTER: &str = "cluster.toml";
/// Who the replicas and clients were when it was made, where they are not those of `cluster.toml`.
const CONFIGURATION: &str = "configuration";
const PROOF: &str = "checkpoint";
const STATE: &str = "state";

/// A backup that was read and found whole.
#[derive(Debug)]
pub struct Backup {
    /// What it is of.
    pub manifest: Manifest,
    /// The configuration of the group that it is of.
    pub cluster: Cluster,
    /// The application's content, as the first state of a new group.
    pub content: State,
    /// Whether its certificates were checked here too: those of HMAC components can be checked only with a
    /// secret of the old group.
    pub certified: bool,
}

/// Whether this directory is a backup, and so no cluster's, though a `cluster.toml` is in it.
#[must_use]
pub fn is_backup(place: &Path) -> bool {
    place.join(MANIFEST).is_file()
}

/// The application's content of a state that a group with this service holds.
#[must_use]
fn content(service: Service, state: &State) -> State {
    match service {
        Service::Kv => state.content(&troth_kv::Kv::default()),
        Service::Null => state.content(&troth_kv::Null::default()),
        Service::ZooKeeper => state.content(&troth_zookeeper::ZooKeeper::default()),
    }
}

/// Writes what was fetched to a directory that must not exist.
///
/// # Errors
/// [`BackupError`]; nothing has the directory's name then.
pub fn write(
    to: &Path,
    layout: &Layout,
    cluster: &Cluster,
    replica: ReplicaId,
    source: &Source,
    state: &State,
) -> Result<Manifest, BackupError> {
    let coming = begin(to)?;
    let written = fill(&coming, layout, cluster, replica, source, state).and_then(|manifest| {
        sync(&coming)?;
        // A rename onto a directory that somebody made meanwhile fails unless that is empty.
        std::fs::rename(&coming, to).map_err(failed("rename", &coming))?;
        let parent = to.parent().filter(|parent| !parent.as_os_str().is_empty());
        sync(parent.unwrap_or(Path::new(".")))?;
        Ok(manifest)
    });
    if written.is_err() {
        // What is left says by its name that it is of no use.
        drop(std::fs::remove_dir_all(&coming));
    }
    written
}

/// Whether a directory can be made for a backup. Nothing is left of the trial.
///
/// # Errors
/// [`BackupError`], as [`write`] would end with after all was fetched.
pub fn try_place(to: &Path) -> Result<(), BackupError> {
    let coming = begin(to)?;
    std::fs::remove_dir(&coming).map_err(failed("remove", &coming))
}

/// Makes the directory of a backup that is being written, whose name says so; what an interrupted one left there is removed.
fn begin(to: &Path) -> Result<PathBuf, BackupError> {
    if to.symlink_metadata().is_ok() {
        return Err(BackupError::Exists(to.to_path_buf()));
    }
    let mut name = to.as_os_str().to_owned();
    name.push(".incomplete");
    let coming = PathBuf::from(name);
    if coming.join(PROOF).exists() || coming.join(STATE).exists() {
        std::fs::remove_dir_all(&coming).map_err(failed("remove", &coming))?;
    } else {
        // One that was interrupted sooner left it empty; whatever else has the name stays, and stands in the way.
        drop(std::fs::remove_dir(&coming));
    }
    DirBuilder::new().mode(0o700).create(&coming).map_err(failed("make", &coming))?;
    Ok(coming)
}

fn fill(
    coming: &Path,
    layout: &Layout,
    cluster: &Cluster,
    replica: ReplicaId,
    source: &Source,
    state: &State,
) -> Result<Manifest, BackupError> {
    put(&coming.join(PROOF), &source.proof)?;
    let config = layout.cluster();
    put(&coming.join(CLUSTER), &std::fs::read(&config).map_err(failed("read", &config))?)?;
    let format = if source.configuration == cluster.configuration() {
        FORMAT_AS_BEGUN
    } else {
        put(&coming.join(CONFIGURATION), &source.configuration.to_wire())?;
        FORMAT
    };
    let state_bytes = file::write(&coming.join(STATE), state)?;
    let made = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let mut manifest = Manifest {
        format,
        made_unix_s: made.as_secs(),
        group: hex::encode(&cluster.group.id().0),
        service: cluster.service.name().to_owned(),
        replica: replica.0,
        number: source.seq.0,
        agreed_time_us: state.time().0,
        checkpoint_digest: hex::encode(&source.digest.0),
        content_digest: hex::encode(&content(cluster.service, state).root().0),
        entries: state.entries(),
        state_bytes,
        check: String::new(),
    };
    manifest.check = manifest.digest();
    let text = serde_json::to_string_pretty(&manifest).expect("a manifest is plain data") + "\n";
    put(&coming.join(MANIFEST), text.as_bytes())?;
    Ok(manifest)
}

/// Reads a backup and checks all of it.
///
/// # Errors
/// [`BackupError`]: it is none, or not the one that was written.
pub fn read(from: &Path) -> Result<Backup, BackupError> {
    let at = from.join(MANIFEST);
    let damaged = |file: &Path, what: String| BackupError::Damaged { file: file.to_path_buf(), what };
    if matches!(from.try_exists(), Ok(false)) {
        return Err(BackupError::Absent(from.to_path_buf()));
    }
    if !at.exists() {
        return Err(BackupError::NoBackup(from.to_path_buf()));
    }
    let text = get(&at)?;
    let format = serde_json::from_slice::<serde_json::Value>(&text)
        .map_err(|why| damaged(&at, why.to_string()))?["format"]
        .as_u64();
    if let Some(found) = format.filter(|found| *found > FORMAT) {
        return Err(BackupError::Version { found, known: FORMAT });
    }
    let manifest: Manifest = serde_json::from_slice(&text).map_err(|why| damaged(&at, why.to_string()))?;
    if manifest.check != manifest.digest() {
        return Err(damaged(&at, "it is not what was written".to_owned()));
    }

    let config = from.join(CLUSTER);
    present(&config)?;
    let cluster = Cluster::load(&config).map_err(|why| damaged(&config, why.to_string()))?;
    if hex::encode(&cluster.group.id().0) != manifest.group {
        return Err(match cluster.service {
            // What it looks like is part of its group's name.
            Service::ZooKeeper => BackupError::Form(config),
            Service::Kv | Service::Null => damaged(&config, "it is another group's".to_owned()),
        });
    }
    let configuration = if manifest.format == FORMAT_AS_BEGUN {
        cluster.configuration()
    } else {
        let at = from.join(CONFIGURATION);
        let found =
            Configuration::from_wire(&part(&at)?.into()).map_err(|why| damaged(&at, why.to_string()))?;
        Arc::new(found)
    };
    let at = from.join(PROOF);
    let proof = part(&at)?.into();
    let (target, certified) = match cluster.trusted {
        TrustedKind::Ed25519 | TrustedKind::Nothing => {
            (certified(&cluster, &configuration, None, &proof), true)
        }
        TrustedKind::Hmac => (vouched(&cluster, &configuration, &proof), false),
    };
    let (seq, digest) = target.map_err(|why| damaged(&at, why.to_string()))?;
    let says = (manifest.number, manifest.checkpoint_digest.as_str());
    if says != (seq.0, hex::encode(&digest.0).as_str()) {
        return Err(damaged(&at, "it certifies another checkpoint than backup.json names".to_owned()));
    }

    let at = from.join(STATE);
    present(&at)?;
    let state = file::read(&at)?;
    if (state.seq(), state.digest()) != (seq, digest) {
        return Err(damaged(&at, "it is not the state that was certified".to_owned()));
    }
    let content = content(cluster.service, &state);
    if hex::encode(&content.root().0) != manifest.content_digest {
        return Err(damaged(&at, "its content has another digest than backup.json names".to_owned()));
    }
    Ok(Backup { manifest, cluster, content, certified })
}

/// Refuses a backup of which a part is gone: it is damaged, whatever a disk that cannot be read would be.
fn present(file: &Path) -> Result<(), BackupError> {
    let is_gone = std::fs::symlink_metadata(file).is_err_and(|why| why.kind() == ErrorKind::NotFound);
    let gone = || BackupError::Damaged { file: file.to_path_buf(), what: "it is missing".to_owned() };
    if is_gone { Err(gone()) } else { Ok(()) }
}

/// The bytes of a part that must be there.
fn part(file: &Path) -> Result<Vec<u8>, BackupError> {
    present(file)?;
    get(file)
}

impl Backup {
    /// The digest of the content alone, computed from what was read.
    #[must_use]
    pub fn content_digest(&self) -> Digest {
        self.content.root()
    }
}

fn put(path: &Path, bytes: &[u8]) -> Result<(), BackupError> {
    let write = || {
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
        file.write_all(bytes)?;
        file.sync_all()
    };
    write().map_err(failed("write", path))
}

fn get(path: &Path) -> Result<Vec<u8>, BackupError> {
    let read = || {
        let mut bytes = Vec::new();
        File::open(path)?.take(MOST).read_to_end(&mut bytes)?;
        Ok(bytes)
    };
    read().map_err(failed("read", path))
}

fn sync(directory: &Path) -> Result<(), BackupError> {
    File::open(directory).and_then(|handle| handle.sync_all()).map_err(failed("sync", directory))
}
