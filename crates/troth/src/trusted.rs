//! `troth trusted`: the trusted component of one replica in this process, which gives up everything else.

use crate::cli::Trusted;
use crate::failure::{Failure, MUST_NOT_START, NOT_DONE};
use crate::how_to_start::{SUGGESTED, closed_to, how_to_give, how_to_open};
use crate::replica::with_way_back;
use crate::{trusted_start, users};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixListener;
use std::path::Path;
use troth_node::ByTheClock;
use troth_node::config::{Cluster, Layout, TrustedHome, TrustedSecret};
use troth_trusted::a2m::A2m;
use troth_trusted::{Identity, TrustedCore};
use troth_trusted_host::LogRoom;
#[cfg(not(feature = "faults"))]
use troth_trusted_host::store::{Both, DiskStore, Policy, RealDirectory, SLOTS};
use troth_trusted_host::store::{DiskLogs, Opened, OpenedLogs, Room, StoreError};
use troth_trusted_process::{
    Event, HardenError, Limits, ListenError, Report, Sandbox, ServeError, Step, User, bind, harden, serve,
    serve_with_logs,
};
use troth_types::ReplicaId;

/// The one file outside its directory that the process reads: by it the store tells a process that was
/// killed from a machine that was.
const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";

/// Where counters and logs are kept.
#[cfg(not(feature = "faults"))]
type Place = RealDirectory;
#[cfg(feature = "faults")]
type Place = crate::faulty_store::FaultyDirectory;

pub(crate) fn run(trusted: &Trusted) -> Result<(), Failure> {
    let layout = Layout::new(&trusted.dir.dir);
    let cluster = Cluster::load(&layout.cluster())?;
    let me = ReplicaId(trusted.id);
    check(&cluster, &layout, me)?;
    let client_uid = match trusted.allow_uid {
        Some(uid) => uid,
        None => {
            let mend = "its owner is who may ask the component: see that --dir and --id are this machine's, or give the replica's \
                        user with --allow-uid";
            owner(&layout.replica(me), mend)?.uid
        }
    };
    let user = match &trusted.user {
        Some(name) => Some(users::find(name)?),
        // Root becomes whom the directory belongs to; anybody else already is who it is.
        None if User::current().uid == 0 => {
            Some(owner(&layout.trusted(me), "copy it to this machine, or make a cluster with `troth init`")?)
        }
        None => None,
    };
    let socket = trusted.socket.clone().unwrap_or_else(|| layout.trusted_socket(me));
    let mut limits = Limits::new(client_uid);
    if trusted.until_stdin_ends {
        let input = io::stdin().as_fd().try_clone_to_owned();
        limits.until = Some(input.map_err(|why| Failure::system("cannot watch standard input", &why))?);
    }

    // While files outside of its directory can still be opened.
    #[cfg(feature = "faults")]
    let prepared = crate::faulty_store::prepare(&trusted.misfortune)?;
    let listener = bind(&socket, client_uid)?;
    let directory = layout.trusted(me);
    // As long as this is root, who gets everywhere and sees who does not.
    let closed = user.and_then(|user| closed_to(&directory, user.uid, user.gid));
    let sandbox = Sandbox { user, client_uid, directory, readable: vec![BOOT_ID.into()] };
    let wanted = trusted.user.as_deref();
    let report = harden(&sandbox).map_err(|why| unhardened(&why, &sandbox, wanted, closed.as_deref()))?;
    tell(me, &report);
    // From here on this process has its own directory and the socket, and nothing else.
    let secret = TrustedSecret::load(&layout.trusted_secret(me), &cluster)?;
    if secret.replica != me {
        return Err(Failure::keys_of_another(&layout.trusted_secret(me), secret.replica, me));
    }
    #[cfg(not(feature = "faults"))]
    let open_stores = |stores: &Stores<'_>| stores.open(cluster.durability.policy());
    #[cfg(feature = "faults")]
    let open_stores = |stores: &Stores<'_>| crate::faulty_store::open(stores, prepared);
    let home = open(&cluster, &layout, secret, open_stores)
        .map_err(|failure| with_way_back(failure, cluster.protocol, me, true))?;
    answer(&listener, home, &limits)
}

fn check(cluster: &Cluster, layout: &Layout, me: ReplicaId) -> Result<(), Failure> {
    if !cluster.group.contains(me) {
        return Err(Failure::no_such_replica(&cluster.group, "--id", me));
    }
    if !cluster.protocol.has_components() {
        return Err(Failure::usage(no_component(cluster)));
    }
    if cluster.trusted_home != TrustedHome::Process {
        return Err(Failure::usage(format!(
            "the trusted components of this cluster live in their replicas (trusted_home in {}); `troth init \
             --trusted-home process` makes a cluster where they do not",
            layout.cluster().display()
        )));
    }
    Ok(())
}

/// Why there is nothing to do with a trusted component here.
pub(crate) fn no_component(cluster: &Cluster) -> String {
    format!(
        "the replicas of this group have no trusted components: its protocol is {} (protocol in cluster.toml)",
        cluster.protocol.name()
    )
}

/// Why the process cannot leave root, or what it should, with what to do about the component's directory where it is
/// that. `wanted` is the user who was named, and `closed` what is closed to the user whom it should become.
fn unhardened(why: &HardenError, sandbox: &Sandbox, wanted: Option<&str>, closed: Option<&Path>) -> Failure {
    let directory = sandbox.directory.display();
    Failure::usage(match (why, sandbox.user, closed) {
        (HardenError::StillRoot, ..) => format!(
            "the trusted component does not run as root, {}\n  mend: {}",
            match wanted {
                Some(user) => format!("and --user {user} is root"),
                None => format!("and {directory} is root's"),
            },
            how_to_give(std::slice::from_ref(&sandbox.directory), SUGGESTED)
        ),
        (HardenError::Directory { owner, .. }, Some(user), _) if *owner != user.uid => format!(
            "{directory} is user {owner}'s, and the trusted component should run as user {}\n  mend: {}",
            user.uid,
            how_to_give(std::slice::from_ref(&sandbox.directory), wanted.unwrap_or(SUGGESTED))
        ),
        (HardenError::Failed { step: Step::OwnUser, why }, Some(user), Some(closed))
            if why.kind() == io::ErrorKind::PermissionDenied =>
        {
            format!(
                "user {}, as whom the trusted component should run, does not get to {directory}: {} is closed to it\n  mend: {}",
                user.uid,
                closed.display(),
                how_to_open(closed, user.uid)
            )
        }
        _ => why.to_string(),
    })
}

/// Whose a directory is.
fn owner(directory: &Path, mend: &str) -> Result<User, Failure> {
    let found = std::fs::metadata(directory).map_err(|why| {
        Failure::usage(format!("cannot look at {}: {why}; mend: {mend}", directory.display()))
    })?;
    Ok(User { uid: found.uid(), gid: found.gid() })
}

/// Says which walls stand: one line, and a warning where they are worth little.
fn tell(me: ReplicaId, report: &Report) {
    let walls: Vec<String> =
        report.steps().iter().map(|(step, outcome)| format!("{step}: {outcome}")).collect();
    tracing::info!(replica = %me, "the trusted component's walls: {}", walls.join("; "));
    if report.isolation.isolates() {
        tracing::info!("{}", report.isolation);
    } else {
        tracing::warn!("{}", report.isolation);
    }
}

/// What a component keeps, and where.
pub(crate) struct Stores<'a> {
    pub(crate) identity: Identity,
    pub(crate) counters: &'a Path,
    /// Its logs, where the group's protocol uses them, and their room.
    pub(crate) logs: Option<(&'a Path, Room)>,
}

/// Counters, and logs where there are any.
pub(crate) type OpenedStores = (Opened<Place>, Option<OpenedLogs<Place>>);

#[cfg(not(feature = "faults"))]
impl Stores<'_> {
    fn open(&self, policy: Policy) -> Result<OpenedStores, StoreError> {
        let Self { identity, counters, logs } = *self;
        match logs {
            None => Ok((DiskStore::open(counters, identity, policy)?, None)),
            Some((logs, room)) => {
                let both = Both { identity, policy, room, slots: SLOTS };
                both.open(counters, logs).map(|(counters, logs)| (counters, Some(logs)))
            }
        }
    }
}

/// The component.
struct Home {
    counters: TrustedCore<ByTheClock<Place>>,
    logs: Option<A2m<LogRoom, DiskLogs<Place>>>,
}

fn open(
    cluster: &Cluster,
    layout: &Layout,
    secret: TrustedSecret,
    open_stores: impl FnOnce(&Stores<'_>) -> Result<OpenedStores, StoreError>,
) -> Result<Home, Failure> {
    let identity = cluster.identity(secret.replica, secret.epoch);
    let directory = layout.counters(secret.replica, TrustedHome::Process);
    let below = layout.component_logs(secret.replica, TrustedHome::Process);
    let started = layout.trusted_started(secret.replica);
    trusted_start::check(&started, &directory, identity.epoch)?;
    let logs = cluster.log_room().map(|room| (below.as_path(), room));
    let (opened, logs) = open_stores(&Stores { identity, counters: &directory, logs })?;
    let store = ByTheClock::new(opened.store, cluster.durability.every());
    trusted_start::mark(&started, identity.epoch)?;
    tracing::debug!(how = ?opened.how, same_boot = opened.same_boot, "opened the counters");
    let logs = logs.map(|opened| A2m::restart(identity, secret.key.clone(), opened.store, opened.logs));
    let logs = logs.transpose().map_err(|_| {
        Failure::new(MUST_NOT_START, format!("the logs in {} are another component's", below.display()))
    })?;
    let counters = match opened.last {
        None => TrustedCore::start(identity, secret.key, store),
        Some(state) => TrustedCore::restart(identity, secret.key, store, state).map_err(|why| {
            let problem = format!("the counters in {} cannot be continued: {why:?}", directory.display());
            Failure::new(MUST_NOT_START, problem)
        })?,
    };
    Ok(Home { counters, logs })
}

/// Answers the replica until it is time to stop.
fn answer(listener: &UnixListener, home: Home, limits: &Limits) -> Result<(), Failure> {
    let mut refused: u64 = 0;
    let mut observe = |event| match event {
        // Anybody may be able to connect, and nobody shall fill the log so.
        Event::NotPermitted { .. } => {
            refused += 1;
            if refused.is_power_of_two() {
                tracing::warn!("{event}; {refused} refused so far");
            }
        }
        Event::Connected { .. } => tracing::info!("{event}"),
        Event::Busy { .. } | Event::Disconnected => tracing::debug!("{event}"),
        Event::Late | Event::OtherVersion(_) | Event::Malformed(_) => tracing::warn!("{event}"),
    };
    match home.logs {
        None => serve(listener, home.counters, limits, &mut observe)?,
        Some(logs) => serve_with_logs(listener, home.counters, logs, limits, &mut observe)?,
    }
    Ok(())
}

impl From<ListenError> for Failure {
    fn from(why: ListenError) -> Self {
        match why {
            // The one before may be about to end.
            ListenError::Served(_) => Self::new(NOT_DONE, why.to_string()),
            ListenError::NoSocket(_) | ListenError::Directory { .. } | ListenError::System { .. } => {
                Self::usage(why.to_string())
            }
        }
    }
}

impl From<StoreError> for Failure {
    fn from(why: StoreError) -> Self {
        match why {
            StoreError::NoDirectory { .. } => Self::usage(why.to_string()),
            StoreError::Locked | StoreError::Io { .. } | StoreError::NoSpace { .. } => {
                Self::new(NOT_DONE, why.to_string())
            }
            _ => Self::new(MUST_NOT_START, why.to_string()),
        }
    }
}

impl From<ServeError> for Failure {
    fn from(why: ServeError) -> Self {
        Self::new(NOT_DONE, why.to_string())
    }
}
