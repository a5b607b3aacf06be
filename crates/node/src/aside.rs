//! What a replica left in a life that is over, put aside before it begins another one. Nothing is deleted.

use crate::config::{Cluster, Layout, TrustedHome};
use rustix::fs::{Mode, OFlags, open};
use std::fs::{DirBuilder, File};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, fchown};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use thiserror::Error;
use troth_disk::{DiskError, Log, RealDisk};
use troth_trusted::Epoch;
use troth_types::ReplicaId;

/// How long a trusted process that was started from its replica may outlive it.
const ENDS_WITH_ITS_REPLICA: Duration = Duration::from_secs(2);
/// Between two looks whether it has ended.
const LOOK: Duration = Duration::from_millis(50);

/// Why it stays where it is.
#[derive(Debug, Error)]
pub enum AsideError {
    /// The replica runs.
    #[error(
        "replica {0} runs from {1}\n  mend: stop it first (SIGTERM), and its `troth trusted` where it has one"
    )]
    Running(u16, PathBuf),
    /// Its trusted component runs in a process of its own.
    #[error(
        "the trusted component of replica {0} still answers at {1}: one that goes on with the keys of before would be of \
         no use to the replica\n  mend: stop its `troth trusted` first (SIGTERM)"
    )]
    ComponentRuns(u16, PathBuf),
    /// Something stands where it would go.
    #[error("cannot put {0} aside: {1} exists\n  mend: move that elsewhere")]
    Exists(PathBuf, PathBuf),
    /// The operating system refused.
    #[error("cannot put {0} aside: {1}")]
    System(PathBuf, io::Error),
    /// An empty directory for new counters cannot be made.
    #[error("cannot make {0}: {1}")]
    Make(PathBuf, io::Error),
}

/// What ends with a replica's component: its counters and logs, the marks that they ran; and the replica's own log and
/// snapshots, unless it goes on with them.
#[must_use]
pub fn remains(layout: &Layout, cluster: &Cluster, replica: ReplicaId) -> Vec<PathBuf> {
    let mut places = vec![layout.counters(replica, cluster.trusted_home)];
    let goes_on = cluster.protocol.renews_components();
    if !goes_on {
        places.insert(0, layout.data(replica));
    }
    if cluster.protocol.uses_logs() {
        places.push(layout.component_logs(replica, cluster.trusted_home));
    }
    if cluster.trusted_home == TrustedHome::Process {
        places.push(layout.trusted_started(replica));
    }
    if !goes_on {
        places.push(layout.started(replica));
    }
    places.retain(|place| match std::fs::read_dir(place) {
        Ok(mut entries) => entries.next().is_some(),
        Err(why) => {
            why.kind() == io::ErrorKind::NotADirectory || why.kind() == io::ErrorKind::PermissionDenied
        }
    });
    places
}

/// A replica that does not run, and cannot be started while this lives.
pub struct Stopped {
    replica: ReplicaId,
    disk: Option<RealDisk>,
}

impl Stopped {
    /// Makes sure that neither a replica nor its trusted process runs.
    ///
    /// # Errors
    /// [`AsideError::Running`], [`AsideError::ComponentRuns`].
    pub fn hold(layout: &Layout, replica: ReplicaId) -> Result<Self, AsideError> {
        let data = layout.data(replica);
        match data.exists().then(|| RealDisk::open(&data)) {
            Some(Err(DiskError::Locked(_))) => Err(AsideError::Running(replica.0, data)),
            // Damaged or not, it goes.
            other => {
                let socket = layout.trusted_socket(replica);
                if still_answers(&socket) {
                    return Err(AsideError::ComponentRuns(replica.0, socket));
                }
                Ok(Self { replica, disk: other.and_then(Result::ok) })
            }
        }
    }

    /// Whether there is a log to go on with. Whether that is whole, the replica finds when it starts.
    #[must_use]
    pub fn has_log(&self) -> bool {
        self.disk.as_ref().is_some_and(|disk| Log::is_there(disk).unwrap_or(false))
    }
}

/// Whether somebody serves a socket for longer than a process takes that ends with its replica.
fn still_answers(socket: &Path) -> bool {
    let give_up = Instant::now() + ENDS_WITH_ITS_REPLICA;
    // One that this user may not reach, or that is busy, has somebody who may serve it.
    let answers = || match UnixStream::connect(socket) {
        Ok(_) => true,
        Err(why) => matches!(why.kind(), io::ErrorKind::PermissionDenied | io::ErrorKind::WouldBlock),
    };
    while answers() {
        if Instant::now() >= give_up {
            return true;
        }
        std::thread::sleep(LOOK);
    }
    false
}

/// Renames what the replica kept until the end of this epoch: `data` becomes `data.old-1`. Its secret file
/// must be of a later epoch by then, or it could begin the old one anew. Gives the new names.
///
/// # Errors
/// [`AsideError`]; what was renamed before the error stays renamed, and a repetition goes on.
pub fn put_aside(
    layout: &Layout,
    cluster: &Cluster,
    stopped: &Stopped,
    ended: Epoch,
) -> Result<Vec<PathBuf>, AsideError> {
    let replica = stopped.replica;
    let counters = layout.counters(replica, cluster.trusted_home);
    let mut moved = Vec::new();
    // The marks last: while they stand, nothing takes the replica for one that never ran.
    for place in remains(layout, cluster, replica) {
        let mut name = place.file_name().unwrap_or_default().to_owned();
        name.push(format!(".old-{}", ended.0));
        let aside = place.with_file_name(name);
        if aside.exists() {
            return Err(AsideError::Exists(place, aside));
        }
        let rename = || {
            std::fs::rename(&place, &aside)?;
            place.parent().map_or(Ok(()), |parent| File::open(parent)?.sync_all())
        };
        rename().map_err(|why| AsideError::System(place.clone(), why))?;
        moved.push(aside);
    }
    if cluster.trusted_home == TrustedHome::Process {
        // The process makes none itself.
        let logs = layout.component_logs(replica, cluster.trusted_home);
        let kept = if cluster.protocol.uses_logs() { vec![counters, logs] } else { vec![counters] };
        for place in kept.into_iter().filter(|place| !place.exists()) {
            same_owner_directory(&place, &layout.trusted(replica))
                .map_err(|why| AsideError::Make(place.clone(), why))?;
        }
    }
    Ok(moved)
}

/// Makes a directory for whom another one belongs to. Root does this where that user can write: a link that is put in the
/// new one's place is not followed.
pub(crate) fn same_owner_directory(new: &Path, like: &Path) -> io::Result<()> {
    let owner = std::fs::metadata(like)?;
    DirBuilder::new().mode(0o700).create(new)?;
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let directory = File::from(open(new, flags, Mode::empty())?);
    let made = directory.metadata()?;
    if (made.uid(), made.gid()) != (owner.uid(), owner.gid()) {
        fchown(&directory, Some(owner.uid()), Some(owner.gid()))?;
    }
    Ok(())
}
