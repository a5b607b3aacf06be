//! One replica as a process: one thread that owns the machine, its connections around it.

use crate::alarm::Alarm;
use crate::beside::{Attestor, Desk};
use crate::bodies::Bodies;
use crate::bounds::memory_bound;
use crate::charges::PeerCharges;
use crate::clock::Clock;
use crate::config::{Cluster, ConfigError, Durability, Known, Layout, ReplicaSecret, Service};
use crate::connection::{self, Meeting};
use crate::counters::Counters;
use crate::descriptors::most_clients;
use crate::durable::{self, DurableError, Footing, Found};
use crate::engine::{Engine, Stopped};
use crate::fetches::Fetches;
use crate::genesis::{self, GenesisError};
use crate::inbox::Inbox;
use crate::keys::Keys;
use crate::links::Links;
use crate::marker::MarkerError;
use crate::snapshot::Snapshot;
use crate::timers::Timers;
use crate::turns::Longest;
use crate::unfinished::unfinished_run;
use crate::{backup, config::hex, http};
use std::cell::RefCell;
use std::collections::{BTreeSet, VecDeque};
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};
use thiserror::Error;
use tokio::net::{TcpListener, UnixListener};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::task::LocalSet;
pub use troth_core::RecoveryError;
use troth_core::{Agreement, Execution, Host, Machine, Replica};
use troth_exec::{Application, Executor, Snapshot as State};
use troth_minbft::{COUNTER, MinBft};
use troth_trusted::{CounterValue, Refusal, Resumed, TrustedCore, VolatileStore};
use troth_trusted_host::{Answer, Call, InProcess, TrustedComponent};
use troth_types::{Configuration, GroupId, ReplicaId};

/// How long a stopping replica tries to write what it has queued.
const FAREWELL: Duration = Duration::from_secs(1);

/// Why a replica did not start, or stopped by itself.
#[derive(Debug, Error)]
pub enum RunError {
    /// The configuration cannot be used.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// It ran before.
    #[error(transparent)]
    Marker(#[from] MarkerError),
    /// It has no first state.
    #[error(transparent)]
    Genesis(#[from] GenesisError),
    /// An address cannot be listened on.
    #[error(
        "cannot listen on {0}: {1}\n  mend: stop what listens there, or change the address in cluster.toml \
         (everywhere: the file is the same for all)"
    )]
    Listen(String, io::Error),
    /// The operating system refused something else.
    #[error("the operating system refused: {0}")]
    System(#[from] io::Error),
    /// The machine did not start.
    #[error("the replica cannot start: {0}")]
    Start(#[from] RecoveryError),
    /// What is on its disk cannot be continued.
    #[error(transparent)]
    Durable(#[from] DurableError),
    /// Its disk failed while it ran.
    #[error(
        "the disk failed: {0}\n  mend: nothing that was acknowledged is lost. Look at the disk and the system's log; then \
         start the replica again: it goes on from what the disk holds, or says why it cannot"
    )]
    Disk(String),
    /// A thread of its own panicked.
    #[error(
        "the replica's {0} thread panicked; what it said stands before this line\n  mend: this is a bug of Troth: please report \
         it. Nothing that was acknowledged is lost; start the replica again"
    )]
    Panicked(&'static str),
    /// The trusted component does nothing more.
    #[error(
        "the trusted component has stopped: its counters could not be stored, or its process is gone\n  mend: nothing is lost. \
         Make space on its disk and look at the lines before this one; then start the replica again: it goes on, or says why it \
         cannot"
    )]
    Halted,
    /// The trusted component no longer follows this replica.
    #[error(
        "the trusted component refused to go on: {0:?}\n  mend: where the lines before this one say that its process or its \
         disk failed, see to that and start the replica again; else leave it stopped, it must not vote any more"
    )]
    Component(Refusal),
}

/// How a replica behaves beyond its configuration.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Where the trusted process serves, if somebody else starts it: then this replica never does.
    pub trusted_socket: Option<PathBuf>,
    /// Program and arguments that start the trusted process where nobody serves its socket; empty where
    /// this replica must not. It ends when its standard input does.
    pub trusted_command: Vec<OsString>,
    /// Stop when standard input ends. Whoever starts replicas and holds the other ends of their
    /// inputs can then leave none behind, however it ends itself.
    pub until_stdin_ends: bool,
    /// Lie to clients and to the other replicas.
    #[cfg(feature = "demo-adversary")]
    pub lie: bool,
    /// Compute one operation wrongly.
    #[cfg(feature = "demo-adversary")]
    pub miscompute: bool,
    /// As primary, serve badly in a way that nobody can prove.
    #[cfg(feature = "demo-adversary")]
    pub tyranny: Option<crate::tyrant::Tyranny>,
    /// What goes wrong with its disk and clock, and which bug is planted.
    #[cfg(feature = "faults")]
    pub faults: crate::faults::Faults,
}

impl From<Stopped> for RunError {
    fn from(why: Stopped) -> Self {
        match why {
            Stopped::Component(Refusal::Halted) => Self::Halted,
            Stopped::Component(refusal) => Self::Component(refusal),
            Stopped::Disk(why) => Self::Disk(why),
            Stopped::Panicked(thread) => Self::Panicked(thread),
        }
    }
}

/// Runs one replica until SIGINT or SIGTERM. What it keeps is below its directory in `layout`.
///
/// # Errors
/// See [`RunError`]; a replica stopped by a signal ends without one.
pub fn serve(
    cluster: Cluster,
    secret: ReplicaSecret,
    layout: &Layout,
    options: Options,
) -> Result<(), RunError> {
    let known = Known::load(layout, &cluster)?.configuration;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    LocalSet::new().block_on(&runtime, async {
        let mut sockets = Sockets::bind(&cluster, &secret).await?;
        // Only now is it sure that this process is the one that runs the replica.
        let footing = durable::open(&cluster, &secret, layout, &options)?;
        let genesis =
            if footing.has_snapshot() { None } else { genesis::load(&cluster, layout, secret.replica)? };
        sockets.listen_for_backups(&layout.backup_socket(secret.replica));
        match cluster.service {
            #[cfg(feature = "demo-adversary")]
            Service::Kv if options.miscompute => {
                let app = crate::miscompute::Miscomputes::new(troth_kv::Kv::default());
                let executor = begin(executor(&cluster, app), genesis);
                run(&cluster, secret, &known, sockets, executor, footing, options).await
            }
            Service::Kv => {
                let executor = begin(executor(&cluster, troth_kv::Kv::default()), genesis);
                run(&cluster, secret, &known, sockets, executor, footing, options).await
            }
            Service::Null => {
                let executor = begin(executor(&cluster, troth_kv::Null::default()), genesis);
                run(&cluster, secret, &known, sockets, executor, footing, options).await
            }
        }
    })
}

/// An executor that stands at the group's first state.
fn begin<X: Execution<Snapshot = State>>(mut executor: X, genesis: Option<State>) -> X {
    if let Some(genesis) = genesis {
        executor.restore(genesis);
    }
    executor
}

struct Sockets {
    group: TcpListener,
    http: Option<TcpListener>,
    backup: Option<(UnixListener, PathBuf)>,
    interrupt: Signal,
    terminate: Signal,
}

impl Sockets {
    async fn bind(cluster: &Cluster, secret: &ReplicaSecret) -> Result<Self, RunError> {
        let entry = cluster.replica(secret.replica);
        let http = if secret.address.is_some() { &secret.http } else { &entry.http };
        let listen = async |address: &str| {
            TcpListener::bind(address).await.map_err(|why| RunError::Listen(address.to_owned(), why))
        };
        Ok(Self {
            group: listen(secret.listens_at(cluster)).await?,
            http: match http {
                Some(address) => Some(listen(address).await?),
                None => None,
            },
            backup: None,
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
        })
    }

    /// Without its socket a replica does everything but serve backups, so it goes on.
    fn listen_for_backups(&mut self, path: &Path) {
        match backup::serve::bind(path) {
            Ok(listener) => self.backup = Some((listener, path.to_path_buf())),
            Err(why) => {
                tracing::warn!(socket = %path.display(), %why, "cannot listen for `troth backup`: serves no backups")
            }
        }
    }
}

/// What the loop and the tasks around it share. All on one thread: a borrow never lasts over an
/// `await`.
pub(crate) struct Shared<A: Agreement, X: Execution> {
    pub(crate) engine: RefCell<Engine<A, X>>,
    pub(crate) inbox: Inbox,
}

async fn run<X: Execution<Snapshot = State> + 'static>(
    cluster: &Cluster,
    secret: ReplicaSecret,
    known: &Arc<Configuration>,
    mut sockets: Sockets,
    executor: X,
    footing: Footing,
    options: Options,
) -> Result<(), RunError> {
    let (me, group) = (secret.replica, cluster.group);
    let clock = Clock::new();
    #[cfg(feature = "faults")]
    let clock = clock.told_by(options.faults.orders.clone());
    let started = Instant::now();
    let epoch = secret.epoch;
    let address = secret.listens_at(cluster).to_owned();
    #[cfg(feature = "demo-adversary")]
    let liar = options.lie.then(|| crate::liar::Liar::new(me, &group));
    #[cfg(feature = "demo-adversary")]
    let tyrant = options
        .tyranny
        .map(|tyranny| crate::tyrant::Tyrant::new(tyranny, me, &group, cluster.minbft().request_timeout));
    let engine = Engine {
        #[cfg(feature = "demo-adversary")]
        liar,
        #[cfg(feature = "demo-adversary")]
        tyrant,
        #[cfg(feature = "faults")]
        early: options.faults.early(),
        ..engine(cluster, secret, executor, clock.clone(), footing)?
    };
    let mut engine = engine;
    engine.links.allow_clients(most_clients());
    // What this machine was told may be newer than what its disk holds, which is nothing where it is new.
    engine.configured(known);
    let meeting = Rc::clone(&engine.meeting);
    let shared = Rc::new(Shared { engine: RefCell::new(engine), inbox: Inbox::new() });
    tracing::info!(target: "troth", replica = %me, group = ?group.id(), %address, "serves");

    tokio::task::spawn_local(connection::listen(Rc::clone(&shared), Rc::clone(&meeting), sockets.group));
    for lower in group.all().filter(|other| *other < me) {
        tokio::task::spawn_local(connection::dial(Rc::clone(&shared), Rc::clone(&meeting), lower));
    }
    if let Some(listener) = sockets.http.take() {
        let shared = Rc::clone(&shared);
        let bounded = cluster.clone();
        let look = move || {
            let engine = shared.engine.borrow();
            let clients = engine.host.machine().execution().configuration().clients().count();
            let memory_bound = memory_bound(&bounded, clients);
            Snapshot { memory_bound, ..look(&engine, cluster_name(&group), epoch.0, started) }
        };
        tokio::task::spawn_local(http::serve(listener, Rc::new(look)));
    }

    if let Some((listener, path)) = sockets.backup.take() {
        tokio::task::spawn_local(backup::serve::serve(Rc::clone(&shared), listener, path));
    }

    let (parent, mut orphaned) = tokio::sync::oneshot::channel::<()>();
    let _parent = if options.until_stdin_ends { watch_stdin(parent) } else { Some(parent) };
    let desk = shared.engine.borrow().desk.clone();
    shared.engine.borrow_mut().commands()?;
    shared.engine.borrow_mut().flush();
    let mut alarm = Alarm::new();
    loop {
        let due = {
            let engine = shared.engine.borrow();
            let next =
                [engine.timers.next(), engine.next_fetch(), engine.next_held(), engine.links.next_due()];
            next.into_iter().chain([shared.inbox.next_rested()]).flatten().min()
        };
        let stuck = shared.engine.borrow().is_stuck();
        let waiting = !shared.inbox.is_empty() || shared.engine.borrow().has_asked();
        let busy = !stuck && (waiting || due.is_some_and(|at| at <= clock.now()));
        if let Some(at) = due.filter(|_| !stuck) {
            alarm.no_later_than(clock.instant(at));
        }
        tokio::select! {
            biased;
            _ = sockets.interrupt.recv() => break,
            _ = sockets.terminate.recv() => break,
            _ = &mut orphaned => break,
            () = tokio::task::yield_now(), if busy => {}
            () = desk.woken() => {}
            () = shared.inbox.woken(), if !stuck => {}
            () = alarm.rung(), if !busy => {}
        }
        if !busy {
            // Whoever has bytes to read reads them now, so that one turn takes them together.
            tokio::task::yield_now().await;
        }
        let mut engine = shared.engine.borrow_mut();
        engine.turn(&shared.inbox)?;
    }
    tracing::info!(target: "troth", replica = %me, "stops");
    shared.engine.borrow_mut().links.flush_all();
    let patience = Instant::now() + FAREWELL;
    while !shared.engine.borrow().links.is_flushed() && Instant::now() < patience {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    Ok(())
}

/// Drops `alive` when standard input ends. The thread blocks in a read and ends with the process.
fn watch_stdin(alive: tokio::sync::oneshot::Sender<()>) -> Option<tokio::sync::oneshot::Sender<()>> {
    std::thread::spawn(move || {
        let ended = io::copy(&mut io::stdin().lock(), &mut io::sink());
        drop((ended, alive));
    });
    None
}

/// The executor of a service in this cluster.
pub(crate) fn executor<A: Application>(cluster: &Cluster, service: A) -> Executor<A> {
    Executor::with_configuration(service, cluster.limits, cluster.configuration(), cluster.settling())
}

fn cluster_name(group: &troth_types::Group) -> String {
    hex::encode(&group.id().0)
}

/// A replica of the protocol that has not stepped yet.
pub(crate) fn engine<X: Execution<Snapshot = State>>(
    cluster: &Cluster,
    secret: ReplicaSecret,
    executor: X,
    clock: Clock,
    footing: Footing,
) -> Result<Engine<MinBft, X>, RunError> {
    let (me, group) = (secret.replica, cluster.group);
    let keys = Keys {
        group: group.id(),
        mac: secret.mac.as_ref().map(troth_trusted::MacKey::verifier),
        limits: cluster.limits,
    };
    let agreement = MinBft::new(me, group, cluster.minbft()).with_epoch(secret.epoch.0);
    let configuration = Arc::clone(executor.configuration());
    let (meeting, epoch) = (Rc::new(Meeting::new(cluster, &secret, &configuration)), secret.epoch);
    let machine = Replica::new(me, group, agreement, executor);
    let (signer, env) = (Arc::new(secret.host), clock.env());
    let (host, attestor, journal, desk) = match footing {
        Footing::Volatile => {
            let identity = cluster.identity(me, epoch);
            let key = secret.trusted.expect("what keeps nothing has its component in this process");
            let component = InProcess::new(TrustedCore::start(identity, key, VolatileStore));
            let host = Host::fresh(machine, me, group, signer, false, env)?;
            (host, Attestor::Here(Box::new(component)), None, Desk::default())
        }
        Footing::Durable(mut opened) => {
            let host = match opened.found.take() {
                None => Host::fresh(machine, me, group, signer, true, env)?,
                Some(Found { snapshot, log, resumed }) => {
                    let resumed = finish(&machine, opened.component.as_mut(), &log, resumed, me, group.id())?;
                    Host::recover(machine, me, group, signer, env, snapshot, &log, &resumed)?
                }
            };
            let quick = cluster.durability != Durability::Always;
            let attestor = Attestor::beside(opened.component, quick, opened.desk.clone())?;
            (host, attestor, Some(opened.journal), opened.desk)
        }
    };
    Ok(Engine {
        me,
        host,
        attestor,
        bodies: Bodies::new(cluster.durability == Durability::Always),
        journal,
        desk,
        blocked: None,
        stalled: false,
        disk_full: false,
        counters_full: false,
        diverged: None,
        accused_clients: BTreeSet::new(),
        frames: keys.frames(&configuration),
        messages: keys.messages(&configuration),
        keys,
        meeting,
        timers: Timers::new(),
        clock,
        counters: Counters::default(),
        links: Links::new(me, &group),
        asked: VecDeque::new(),
        peer_charges: PeerCharges::new(group.n()),
        client_charges: RefCell::default(),
        fetches: Fetches::new(group.n()),
        fetched_bytes: 0,
        answered_bytes: 0,
        longest_turn: Longest::default(),
        waited: 0,
        #[cfg(feature = "demo-adversary")]
        liar: None,
        #[cfg(feature = "demo-adversary")]
        tyrant: None,
        #[cfg(feature = "faults")]
        early: None,
    })
}

/// What the component certified last, after it has certified what the log shows that it was about to.
fn finish<M: Machine>(
    _of: &M,
    component: &mut dyn TrustedComponent,
    log: &[bytes::Bytes],
    resumed: Resumed,
    me: ReplicaId,
    group: GroupId,
) -> Result<Vec<Resumed>, RunError> {
    let stands = match &resumed {
        Resumed::Unmoved => CounterValue(0),
        Resumed::One { certificate, .. } => certificate.new,
        Resumed::Multi { .. } | Resumed::Superseded => return Ok(vec![resumed]),
    };
    let unfinished =
        unfinished_run::<M>(log, COUNTER, stands, me, group).map_err(RecoveryError::Malformed)?;
    let Some(call) = unfinished else { return Ok(vec![resumed]) };
    let Call::Attest { new, digest, .. } = call else { unreachable!("a run is one move") };
    tracing::info!(from = stands.0, to = new.0, "has the run certified that was about to be");
    match component.call(&[call]).pop() {
        Some(Answer::Attested(certificate)) => Ok(vec![Resumed::One { certificate, digest }]),
        Some(Answer::Refused(refusal)) => Err(Stopped::Component(refusal).into()),
        _ => Err(RunError::Halted),
    }
}

fn look<X: Execution>(engine: &Engine<MinBft, X>, group: String, epoch: u64, started: Instant) -> Snapshot {
    let status = engine.host.machine().status();
    let configuration = engine.host.machine().execution().configuration();
    let admitted = configuration.member(engine.me).is_none_or(|me| me.admission().epoch == epoch);
    Snapshot {
        replica: engine.me.0,
        group,
        protocol: MinBft::NAME.to_owned(),
        pid: std::process::id(),
        uptime_ms: u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX),
        view: status.view.0,
        primary: status.primary.0,
        active: status.active,
        executed: status.executed.0,
        stable: status.stable.0,
        diverged: engine.diverged.map(|seq| seq.0),
        disk_full: engine.disk_full,
        pending: status.pending as u64,
        suspicions: status.suspicions,
        votes: status.votes,
        waits_for: match (status.votes, admitted) {
            (true, _) => None,
            (false, false) => Some("admission".to_owned()),
            (false, true) => Some("a checkpoint".to_owned()),
        },
        epoch,
        configuration: configuration.number,
        accused: status.accused.iter().map(|replica| replica.0).collect(),
        accused_clients: engine
            .accused_clients
            .iter()
            .filter(|client| !configuration.is_removed(**client))
            .map(|client| client.0)
            .collect(),
        peers: engine.links.replicas_up(),
        versions: engine.links.versions(),
        wall_us: engine.clock.env().wall.0,
        clients: engine.links.clients_up() as u64,
        memory_bound: 0,
        longest_turn_us: engine.longest_turn.micros(),
        primary_wait_us: status.primary_wait,
        agreement_us: status.agreement,
        counters: engine.counters.clone(),
    }
}
