//! Opening a durable replica's trusted component where it lives: in this process, or in one of its own
//! that is reached over its socket, and started and watched from here where nobody else does.

use crate::by_the_clock::ByTheClock;
use crate::component::{Component, Here, Logged};
use crate::config::{Cluster, Layout, ReplicaSecret, TrustedHome};
use crate::durable::DurableError;
use crate::runtime::Options;
use crate::supervisor::{MUST_NOT_RUN, Supervisor, SupervisorError};
use bytes::Bytes;
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use thiserror::Error;
use troth_core::LogRecord;
use troth_minbft::COUNTER;
use troth_trusted::a2m::{A2m, Answer as LogAnswer, Attestation, LOGS, LogId, Operation, Slot};
use troth_trusted::{Certifier, CounterValue, Epoch, Identity, Resumed, TrustedCore};
use troth_trusted_host::store::directory::Directory;
use troth_trusted_host::store::{Both, DiskLogs, DiskStore, OpenedLogs, SLOTS};
use troth_trusted_host::{Answer, Call, InProcess, InProcessLogs, LogRoom, TrustedComponent, TrustedLogs};
use troth_trusted_process::{ConnectError, Patience, RemoteComponent};
use troth_types::Wire;

/// How long a start waits for the process to serve: it may fill its first store file on a slow disk.
const UNTIL_IT_SERVES: Duration = Duration::from_secs(30);
/// A replica without its component does nothing, so it bears a disk that stalls and waits for whoever
/// starts the process again; but not for ever, as its operator would see nothing of it.
const PATIENCE: Patience =
    Patience { answer: UNTIL_IT_SERVES, beside: LONGEST_TURN, reconnect: UNTIL_IT_SERVES };
/// A move with a body holds the loop up: many syncs of a healthy disk, and too short for anybody's suspicion.
const LONGEST_TURN: Duration = Duration::from_millis(50);
/// Between two tries to reach a process that is starting.
const BETWEEN_TRIES: Duration = Duration::from_millis(10);

/// Why the trusted process cannot be used.
#[derive(Debug, Error)]
pub enum HomeError {
    /// There is no way to it.
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// Somebody else's component answers.
    #[error(
        "{path} answers for replica {} in epoch {} of another configuration; mend: start `troth trusted` with this \
         replica's number and with the cluster.toml that this replica has", .found.replica, .found.epoch.0
    )]
    OtherComponent {
        /// The socket.
        path: PathBuf,
        /// Who answers.
        found: Identity,
    },
    /// The component that this replica had before it was readmitted still runs.
    #[error(
        "{path} answers for this replica in epoch {}, and its secret file is of epoch {}: `troth trusted` runs since before \
         the replica was readmitted; mend: stop `troth trusted` and start it again, then the replica", .found.0, .wanted.0
    )]
    EarlierEpoch {
        /// The socket.
        path: PathBuf,
        /// Whose time it is of.
        found: Epoch,
        /// The epoch of the replica's secret file.
        wanted: Epoch,
    },
    /// It was started from here, and ended.
    #[error(transparent)]
    Supervisor(#[from] SupervisorError),
}

impl HomeError {
    /// Whether the process itself said that its component must not run.
    pub(crate) fn must_not_vote(&self) -> bool {
        matches!(self, Self::Supervisor(SupervisorError::Ended(status)) if status.code() == Some(MUST_NOT_RUN))
    }
}

/// A component that answers.
pub(crate) struct Home {
    pub(crate) component: Box<dyn Component>,
    /// What it keeps for the log.
    pub(crate) blobs: Vec<Vec<u8>>,
    /// What it certified last.
    resumed: Resumed,
    /// The last slot of each of its logs; none where the protocol uses no logs.
    ends: BTreeMap<LogId, Slot>,
    /// Whether it was open before; a process does not tell.
    opened_before: Option<bool>,
}

/// Opens the component of the replica whose secret this is; nothing where its protocol has none.
pub(crate) fn open(
    cluster: &Cluster,
    secret: &ReplicaSecret,
    layout: &Layout,
    options: &Options,
) -> Result<Option<Home>, DurableError> {
    let (mut component, opened_before): (Box<dyn Component>, _) = match cluster.trusted_home {
        TrustedHome::InProcess => {
            let (component, before) = in_process(cluster, secret, layout)?;
            (component, Some(before))
        }
        TrustedHome::Process => (process(cluster, secret, layout, options)?, None),
        TrustedHome::Nowhere => return Ok(None),
    };
    // First, so that a component that is lost meanwhile is found to be by the question after it.
    let blobs = component.blobs();
    let resumed = match component.call(&[Call::Resume { counter: COUNTER }]).pop() {
        Some(Answer::Resumed(resumed)) => *resumed,
        _ => return Err(DurableError::Component),
    };
    let ends = if cluster.protocol.uses_logs() { ends(component.as_mut())? } else { BTreeMap::new() };
    Ok(Some(Home { component, blobs, resumed, ends, opened_before }))
}

/// Where the component's logs end.
fn ends(component: &mut dyn Component) -> Result<BTreeMap<LogId, Slot>, DurableError> {
    let logs = (0..).map(LogId).take(LOGS);
    let asked: Vec<Operation> = logs.map(|log| Operation::End { log, nonce: [0; 32] }).collect();
    let answers = component.logs(&asked).map_err(|_| DurableError::Component)?;
    let end = |answer| match answer {
        LogAnswer::Attested(Attestation { claim, .. }) => Some((claim.log, claim.slot)),
        LogAnswer::Done => None,
    };
    Ok(answers.into_iter().filter_map(end).collect())
}

impl Home {
    /// Whether it is known that it never ran before. A process of its own looks after that itself.
    pub(crate) fn is_new(&self) -> bool {
        self.opened_before == Some(false)
    }

    /// Whether the component has forgotten what the log shows that it did: all of it, or its last steps.
    pub(crate) fn forgot(&self, log: &[Bytes], has_snapshot: bool) -> bool {
        if self.opened_before == Some(false) {
            return has_snapshot || !log.is_empty();
        }
        if attested(log).into_iter().any(|(log, slot)| self.ends.get(&log).is_none_or(|end| *end < slot)) {
            return true;
        }
        let logged = certified(log);
        match &self.resumed {
            // A state that came from others may be all that it has.
            Resumed::Unmoved => logged.is_some(),
            Resumed::One { certificate, .. } => logged > Some(certificate.new),
            Resumed::Multi { .. } | Resumed::Superseded => false,
        }
    }

    /// Whether it has done nothing yet.
    pub(crate) fn is_unused(&self) -> bool {
        self.resumed == Resumed::Unmoved && !self.has_filled()
    }

    /// Where it stands, for a replica that goes on with it and with the log of the life before.
    pub(crate) fn succeeds(&self) -> Resumed {
        self.resumed.clone()
    }

    /// Whether its logs hold what only a replica's own log explains.
    pub(crate) fn has_filled(&self) -> bool {
        self.ends.values().any(|end| *end > CounterValue(0))
    }

    /// What it certified last, where the replica ran before.
    pub(crate) fn resumed(&self, log: &[Bytes], has_snapshot: bool) -> Option<Resumed> {
        let moved = self.resumed != Resumed::Unmoved;
        let ran = self.opened_before.unwrap_or(moved || has_snapshot || !log.is_empty());
        ran.then(|| self.resumed.clone())
    }
}

/// The highest value that the log has a certificate of. What does not decode is found by who reads it all.
fn certified(log: &[Bytes]) -> Option<CounterValue> {
    let values = log.iter().filter_map(|record| match LogRecord::from_wire(record) {
        Ok(LogRecord::Certified(certificate)) if certificate.counter == COUNTER => Some(certificate.new),
        _ => None,
    });
    values.max()
}

/// The last slot of each of the component's logs that the replica's own log has an attestation of.
fn attested(log: &[Bytes]) -> BTreeMap<LogId, Slot> {
    let mut slots = BTreeMap::new();
    for record in log {
        if let Ok(LogRecord::Attested(Attestation { claim, .. })) = LogRecord::from_wire(record) {
            let last = slots.entry(claim.log).or_insert(claim.slot);
            *last = claim.slot.max(*last);
        }
    }
    slots
}

fn in_process(
    cluster: &Cluster,
    secret: &ReplicaSecret,
    layout: &Layout,
) -> Result<(Box<dyn Component>, bool), DurableError> {
    let me = secret.replica;
    let directory = layout.counters(me, TrustedHome::InProcess);
    crate::durable::private(&directory)?;
    let identity = cluster.identity(me, secret.epoch);
    let key = secret.trusted.clone().expect("a secret file of an in-process component holds its key");
    let policy = cluster.durability.policy();
    let (opened, logs) = match cluster.log_room() {
        None => (DiskStore::open(&directory, identity, policy)?, None),
        Some(room) => {
            let below = layout.component_logs(me, TrustedHome::InProcess);
            crate::durable::private(&below)?;
            let (counters, logs) = Both { identity, policy, room, slots: SLOTS }.open(&directory, &below)?;
            let logs: Box<dyn TrustedLogs> =
                Box::new(InProcessLogs::new(go_on(logs, identity, key.clone())?));
            (counters, Some(logs))
        }
    };
    let before = opened.last.is_some();
    let store = ByTheClock::new(opened.store, cluster.durability.every());
    let core = match opened.last {
        None => TrustedCore::start(identity, key, store),
        Some(state) => {
            TrustedCore::restart(identity, key, store, state).map_err(|_| DurableError::Component)?
        }
    };
    Ok((Box::new(Here::new(InProcess::new(core), logs)), before))
}

/// Logs that go on from where their store says that they stand.
pub(crate) fn go_on<D: Directory>(
    opened: OpenedLogs<D>,
    identity: Identity,
    key: Certifier,
) -> Result<A2m<LogRoom, DiskLogs<D>>, DurableError> {
    A2m::restart(identity, key, opened.store, opened.logs).map_err(|_| DurableError::Component)
}

fn process(
    cluster: &Cluster,
    secret: &ReplicaSecret,
    layout: &Layout,
    options: &Options,
) -> Result<Box<dyn Component>, HomeError> {
    let wanted = cluster.identity(secret.replica, secret.epoch);
    let path = options.trusted_socket.clone().unwrap_or_else(|| layout.trusted_socket(secret.replica));
    let may_start = options.trusted_socket.is_none() && !options.trusted_command.is_empty();
    let remote = match RemoteComponent::connect(&path, PATIENCE) {
        Err(why) if nobody_serves(&why) || (!may_start && is_being_made(&why)) => {
            let supervisor = if may_start {
                tracing::warn!(
                    "nobody serves {}: starting the trusted process from the replica, which is no isolation; mend: run \
                     `troth trusted` as a user of its own before the replica",
                    path.display()
                );
                Some(Supervisor::start(&options.trusted_command)?)
            } else {
                tracing::info!("waiting for the trusted process at {}", path.display());
                None
            };
            let remote = wait_for(&path, supervisor.as_ref())?;
            supervisor.iter().for_each(Supervisor::reached);
            remote
        }
        other => other?,
    };
    let found = TrustedComponent::identity(&remote);
    if found != wanted {
        let earlier = Identity { epoch: wanted.epoch, ..found } == wanted && found.epoch < wanted.epoch;
        return Err(if earlier {
            HomeError::EarlierEpoch { path, found: found.epoch, wanted: wanted.epoch }
        } else {
            HomeError::OtherComponent { path, found }
        });
    }
    Ok(Box::new(Remote { remote, mourned: false }))
}

/// Whether a process that is started now could be reached. One that ends at this moment takes a
/// connection and closes it.
fn nobody_serves(why: &ConnectError) -> bool {
    use io::ErrorKind::{BrokenPipe, ConnectionRefused, ConnectionReset, NotFound, TimedOut, UnexpectedEof};
    let ending = [BrokenPipe, ConnectionRefused, ConnectionReset, NotFound, TimedOut, UnexpectedEof];
    matches!(why, ConnectError::Unreachable { error, .. } if ending.contains(&error.kind()))
}

/// Whether the socket is closed to this user: one that root has just made is, until it is given to the user
/// that it is for.
fn is_being_made(why: &ConnectError) -> bool {
    matches!(why, ConnectError::Unreachable { error, .. } if error.kind() == io::ErrorKind::PermissionDenied)
}

fn wait_for(path: &Path, supervisor: Option<&Supervisor>) -> Result<RemoteComponent, HomeError> {
    let give_up = Instant::now() + UNTIL_IT_SERVES;
    loop {
        match RemoteComponent::connect(path, PATIENCE) {
            Err(why) if (nobody_serves(&why) || is_being_made(&why)) && Instant::now() < give_up => {
                if let Some(ended) = supervisor.and_then(Supervisor::gave_up) {
                    return Err(ended.into());
                }
                std::thread::sleep(BETWEEN_TRIES);
            }
            other => return Ok(other?),
        }
    }
}

/// The component in its process, and a line in the log when it is lost: the answers say only that it is.
struct Remote {
    remote: RemoteComponent,
    mourned: bool,
}

impl TrustedComponent for Remote {
    fn identity(&self) -> Identity {
        TrustedComponent::identity(&self.remote)
    }

    fn call(&mut self, calls: &[Call]) -> Vec<Answer> {
        let answers = TrustedComponent::call(&mut self.remote, calls);
        self.mourn();
        answers
    }

    fn call_soon(&mut self, call: &Call) -> Option<Answer> {
        let answer = TrustedComponent::call_soon(&mut self.remote, call);
        self.mourn();
        answer
    }

    fn attest_beside(&mut self, call: &Call, blob: &[u8]) -> Option<Answer> {
        let answer = self.remote.attest_beside(call, blob);
        self.mourn();
        answer
    }

    fn blobs(&mut self) -> Vec<Vec<u8>> {
        let blobs = self.remote.blobs();
        self.mourn();
        blobs
    }
}

impl Component for Remote {
    fn logs(&mut self, operations: &[Operation]) -> Logged {
        let logged = TrustedLogs::call(&mut self.remote, operations);
        self.mourn();
        logged
    }

    fn logs_soon(&mut self, operations: &[Operation]) -> Option<Logged> {
        let logged = TrustedLogs::call_soon(&mut self.remote, operations);
        self.mourn();
        logged
    }
}

impl Remote {
    fn mourn(&mut self) {
        if let (Some(lost), false) = (self.remote.lost(), self.mourned) {
            tracing::error!("{lost}");
            self.mourned = true;
        }
    }
}
