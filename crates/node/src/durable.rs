//! What a durable replica starts from: its component's counters, its newest snapshot and its log; and
//! the threads that keep them from then on.

use crate::beside::Desk;
use crate::bodies::behind;
use crate::component::Component;
use crate::config::{Cluster, Durability, Layout, ReplicaSecret, TrustedHome};
use crate::delayed::{Delayed, TrustedDelay};
use crate::disk_journal::DiskJournal;
use crate::journal::Journal;
use crate::marker::{MarkerError, leave_mark};
use crate::runtime::Options;
use crate::snapshots::Keeper;
use crate::standing::{self, Standing, Unproven};
use crate::succession;
use crate::trusted_home::{self, Home, HomeError};
use bytes::Bytes;
use std::fs::DirBuilder;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use thiserror::Error;
use troth_disk::{
    Disk, DiskError, Identity as Owner, Log, LogError, LogOptions, RealDisk, SnapshotError, Unsynced,
};
use troth_exec::Snapshot;
use troth_trusted::Resumed;
use troth_trusted_host::store::{StoreError, boot_id};
use troth_types::{Malformed, Seq};

/// Why a replica cannot start from what its disk holds.
#[derive(Debug, Error)]
pub enum DurableError {
    /// A directory cannot be made.
    #[error("cannot make {0}: {1}\n  mend: make the replica's directory writable for its user")]
    Directory(PathBuf, io::Error),
    /// The component's counters.
    #[error("the trusted component cannot go on: {0}")]
    Counters(#[from] StoreError),
    /// The component in a process of its own.
    #[error("{0}")]
    Home(#[from] HomeError),
    /// The component does not answer as one that was just started does.
    #[error(
        "the trusted component refuses to say where it stands; look at the lines of the log before this one"
    )]
    Component,
    /// What it keeps for the log.
    #[error(
        "the trusted component keeps something for this replica's log that no replica of this release has given it: {0}\n  \
         mend: start the release that ran here last; where that says the same, leave the replica stopped"
    )]
    Blobs(Malformed),
    /// The directory of log and snapshots.
    #[error(transparent)]
    Disk(#[from] DiskError),
    /// The log.
    #[error(transparent)]
    Log(#[from] LogError),
    /// The snapshot that the log stands on.
    #[error(transparent)]
    Snapshot(#[from] SnapshotError),
    /// The replica ran, and its component has forgotten what it did.
    #[error(
        "this replica ran before ({mark} or its log says so) and the counters in {counters} are gone or older: its trusted \
         component has forgotten what it certified, so it must not vote in its old epoch\n  mend: {way_back}"
    )]
    CountersLost {
        /// Where the counters should be.
        counters: PathBuf,
        /// Where it says that it ran.
        mark: PathBuf,
        /// What to do with the replica.
        way_back: String,
    },
    /// The replica ran, and its log is gone; it has no component that could tell what it promised.
    #[error(
        "this replica ran before ({mark} says so) and its log in {data} is gone: it has forgotten what it promised the others, \
         so it must not vote\n  mend: mount what belongs there; if that is lost {way_back}"
    )]
    LogLost {
        /// Where the log should be.
        data: PathBuf,
        /// Where it says that it ran.
        mark: PathBuf,
        /// What to do with the replica.
        way_back: String,
    },
    /// The component has been used with a later log than this one.
    #[error(
        "the log in {data} is older than the trusted component in {counters}, which has never been used with it: it does not \
         hold all that was promised to the others, so the replica must not vote\n  mend: put back what was there last, if you \
         have it untouched; else leave the replica stopped for good"
    )]
    LogOlder {
        /// Where the log is.
        data: PathBuf,
        /// Where the component's counters are.
        counters: PathBuf,
    },
    /// What is there need not be the last that it did.
    #[error("{0}")]
    Unproven(#[from] Unproven),
    /// The mark that it ran cannot be left.
    #[error(transparent)]
    Mark(#[from] MarkerError),
    /// The operating system refused something.
    #[error("the operating system refused: {0}")]
    System(#[from] io::Error),
    /// No random bytes.
    #[error("the operating system gives no random bytes: {0}")]
    Random(getrandom::Error),
}

impl DurableError {
    /// Whether it says of the trusted component, and of nothing else, that it is not what it was.
    #[must_use]
    pub fn is_of_component(&self) -> bool {
        matches!(self, Self::CountersLost { .. } | Self::Counters(_) | Self::Home(_))
    }

    /// Whether what is there is not the whole of what the replica left, so that it must not vote.
    #[must_use]
    pub fn must_not_vote(&self) -> bool {
        match self {
            Self::Home(why) => why.must_not_vote(),
            // A mistake in the configuration, or of whoever copied the files.
            Self::Unproven(Unproven::OtherProtocol { .. }) => false,
            Self::CountersLost { .. } | Self::LogLost { .. } | Self::LogOlder { .. } | Self::Unproven(_) => {
                true
            }
            Self::Mark(why) => why.is_over(),
            Self::Snapshot(why) => matches!(why, SnapshotError::Damaged { .. } | SnapshotError::Unknown(_)),
            Self::Log(why) => matches!(why, LogError::Damaged { .. } | LogError::Missing(_)),
            Self::Counters(why) => !matches!(
                why,
                StoreError::NoDirectory { .. }
                    | StoreError::Io { .. }
                    | StoreError::NoSpace { .. }
                    | StoreError::Locked
            ),
            Self::Directory(..)
            | Self::Component
            | Self::Blobs(_)
            | Self::Disk(_)
            | Self::System(_)
            | Self::Random(_) => false,
        }
    }
}

/// What a replica starts on.
pub(crate) enum Footing {
    /// Its memory, with a component in it that takes so long for a call at least.
    Volatile(TrustedDelay),
    /// Its disk.
    Durable(Box<Opened>),
}

impl Footing {
    /// Whether there is a snapshot to start from.
    pub(crate) fn has_snapshot(&self) -> bool {
        match self {
            Self::Volatile(_) => false,
            Self::Durable(opened) => opened.found.as_ref().is_some_and(|found| found.snapshot.is_some()),
        }
    }
}

/// What was opened.
pub(crate) struct Opened {
    /// Nothing where the protocol has none.
    pub(crate) component: Option<Box<dyn Component>>,
    pub(crate) journal: Box<dyn Journal<Snapshot>>,
    pub(crate) desk: Desk,
    /// What to start again from; nothing where the replica never ran.
    pub(crate) found: Option<Found>,
}

/// What a replica left behind.
pub(crate) struct Found {
    pub(crate) snapshot: Option<Snapshot>,
    pub(crate) log: Vec<Bytes>,
    /// What the component certified last, where there is one.
    pub(crate) resumed: Option<Resumed>,
}

/// Opens what a replica keeps below its directory, or makes it.
///
/// # Errors
/// [`DurableError`], where what is there is not the whole of what it left.
pub(crate) fn open(
    cluster: &Cluster,
    secret: &ReplicaSecret,
    layout: &Layout,
    options: &Options,
) -> Result<Footing, DurableError> {
    let me = secret.replica;
    let mark = layout.started(me);
    let ends_here = match cluster.trusted_home {
        // The component ends with this process, and without it no log is of use.
        TrustedHome::InProcess => true,
        TrustedHome::Nowhere => options.keeps_nothing,
        TrustedHome::Process => false,
    };
    if cluster.durability == Durability::Memory && ends_here {
        leave_mark(&mark)?;
        return Ok(Footing::Volatile(options.trusted_delay));
    }
    let data = layout.data(me);
    private(&data)?;
    let disk = RealDisk::open(&data)?;
    standing::take_over(&disk, cluster.protocol, cluster.durability, boot_id()?)?;
    let home = trusted_home::open(cluster, secret, layout, options)?;
    let counters = layout.counters(me, cluster.trusted_home);
    #[cfg(feature = "faults")]
    let disk = options.faults.disk(disk)?;
    let plant = |journal| {
        #[cfg(feature = "faults")]
        let journal = options.faults.plant_in(journal);
        journal
    };
    let marks = Marks { mark, counters, data };
    let opened = match cluster.durability {
        Durability::Memory => go_on(Unsynced(disk), cluster, secret, home, marks, |journal| journal),
        _ => go_on(disk, cluster, secret, home, marks, plant),
    };
    opened.map(|mut opened| {
        if !options.trusted_delay.is_zero() {
            let late = |component| -> Box<dyn Component> {
                Box::new(Delayed::new(component, options.trusted_delay))
            };
            opened.component = opened.component.map(late);
        }
        Footing::Durable(Box::new(opened))
    })
}

/// What tells that counters or a log were lost, and which.
struct Marks {
    mark: PathBuf,
    counters: PathBuf,
    data: PathBuf,
}

/// Opens log and snapshots, and holds them against what the component says.
fn go_on<D: Disk + Sync>(
    disk: D,
    cluster: &Cluster,
    secret: &ReplicaSecret,
    mut home: Option<Home>,
    marks: Marks,
    plant: impl FnOnce(DiskJournal<D>) -> DiskJournal<D>,
) -> Result<Opened, DurableError> {
    let (me, Marks { mark, counters, data }) = (secret.replica, marks);
    let owner = owner(cluster, me.0);
    // A component that attests votes tells better than the log's files whether this one is the last.
    if !cluster.protocol.attests_votes() && mark.exists() && !Log::is_there(&disk)? {
        return Err(DurableError::LogLost { data, mark, way_back: cluster.protocol.way_back() });
    }
    let renewed = cluster.protocol.renews_components();
    let before = if renewed { succession::kept_with(&disk, cluster, me)? } else { secret.epoch };
    let options = LogOptions::new(salt()?);
    // Room is made beforehand for the sake of syncs.
    let step_bytes = if cluster.durability == Durability::Memory { 0 } else { options.step_bytes };
    let (log, mut held) = Log::open(disk.clone(), owner, LogOptions { step_bytes, ..options })?;
    if let Some(cut) = &held.cut {
        tracing::info!(
            file = cut.file,
            bytes = cut.bytes,
            "cut what was being written when the replica stopped"
        );
    }
    let mut keeper = Keeper::open(disk.clone(), owner, held.base)?;
    // The component holds them until the log does: they are appended with whatever comes first.
    let base = Seq(held.base.unwrap_or(0));
    let blobs = home.as_mut().map(|home| std::mem::take(&mut home.blobs)).unwrap_or_default();
    let behind = behind(base, &held.records, blobs).map_err(DurableError::Blobs)?;
    held.records.extend(behind.iter().cloned());
    let since_base = held.records.iter().map(Bytes::len).sum();
    let snapshot = keeper.take_start();
    // The operator gave it another component: that one has not forgotten what the log says, for it never did it.
    let succeeds = before < secret.epoch;
    if succeeds && home.as_ref().is_some_and(|home| !home.is_unused()) {
        return Err(DurableError::LogOlder { data, counters });
    }
    let forgot =
        |home: &Home| home.forgot(&held.records, snapshot.is_some()) || (home.is_new() && mark.exists());
    if secret.epoch < before || (!succeeds && home.as_ref().is_some_and(forgot)) {
        let way_back = match cluster.protocol.way_back_without_component(me) {
            Some(command) => format!("readmit it with a new component: {command}"),
            None => cluster.protocol.way_back(),
        };
        return Err(DurableError::CountersLost { counters, mark, way_back });
    }
    if snapshot.is_none() && held.records.is_empty() && home.as_ref().is_some_and(Home::has_filled) {
        return Err(DurableError::LogLost { data, mark, way_back: cluster.protocol.way_back() });
    }
    if succeeds {
        succession::keep_with(&disk, secret.epoch)?;
    }
    // After the counters and the log: a crash in between leaves them, and no mark without them.
    match leave_mark(&mark) {
        Ok(()) | Err(MarkerError::RanBefore(_)) => {}
        Err(why) => return Err(why.into()),
    }
    let resumed =
        home.as_ref().and_then(|home| match succeeds && (snapshot.is_some() || !held.records.is_empty()) {
            true => Some(home.succeeds()),
            false => home.resumed(&held.records, snapshot.is_some()),
        });
    let ran = match home {
        Some(_) => resumed.is_some(),
        // Nothing was promised that is not in the log.
        None => snapshot.is_some() || !held.records.is_empty(),
    };
    let found = ran.then_some(Found { snapshot, log: held.records, resumed });
    let standing = if found.is_some() { Standing::Resumes } else { Standing::Fresh };
    tracing::debug!(?standing, "opened what the replica keeps");
    let desk = Desk::default();
    let every = cluster.durability.every();
    let journal = DiskJournal::start(log, base, since_base, keeper, desk.clone(), every)?;
    let mut journal = plant(journal.unsynced(cluster.durability == Durability::Memory));
    journal.go_on_with(behind);
    let component = home.map(|home| home.component);
    Ok(Opened { component, journal: Box::new(journal), desk, found })
}

/// Whose log it is.
fn owner(cluster: &Cluster, replica: u16) -> Owner {
    let mut group = [0; 32];
    group[..16].copy_from_slice(&cluster.group.id().0);
    Owner { group, replica }
}

fn salt() -> Result<u64, DurableError> {
    let mut bytes = [0; 8];
    getrandom::fill(&mut bytes).map_err(DurableError::Random)?;
    Ok(u64::from_le_bytes(bytes))
}

/// Makes a directory that only its owner can enter.
pub(crate) fn private(path: &Path) -> Result<(), DurableError> {
    let made = DirBuilder::new().recursive(true).mode(0o700).create(path);
    made.map_err(|why| DurableError::Directory(path.to_path_buf(), why))
}
