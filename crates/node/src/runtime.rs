//! One replica as a process: one thread that owns the machine, its connections around it.

use crate::alarm::Alarm;
use crate::assembly::{engine, executor};
use crate::bounds::memory_bound;
use crate::clock::Clock;
use crate::config::{Cluster, Known, Layout, Protocol, ReplicaSecret, Service};
use crate::connection;
use crate::delayed::TrustedDelay;
use crate::descriptors::most_clients;
use crate::durable::{self, Footing};
use crate::engine::Engine;
use crate::genesis;
use crate::inbox::Inbox;
use crate::run_error::RunError;
use crate::served::Served;
use crate::snapshot::{Snapshot, look};
use crate::{backup, http};
use std::cell::RefCell;
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::net::{TcpListener, UnixListener};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::task::LocalSet;
use troth_a2m_pbft_e::A2mPbftE;
use troth_a2m_pbft_ea::A2mPbftEa;
use troth_core::{Agreement, Execution};
use troth_exec::Snapshot as State;
use troth_minbft::MinBft;
use troth_pbft::Pbft;
use troth_types::Configuration;

/// How long a stopping replica tries to write what it has queued.
const FAREWELL: Duration = Duration::from_secs(1);

/// How a replica behaves beyond its configuration.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Where the trusted process serves, if somebody else starts it: then this replica never does.
    pub trusted_socket: Option<PathBuf>,
    /// Program and arguments that start the trusted process where nobody serves its socket; empty where
    /// this replica must not. It ends when its standard input does.
    pub trusted_command: Vec<OsString>,
    /// What every call of the trusted component takes at least, as if it were a slower one.
    pub trusted_delay: TrustedDelay,
    /// Bytes of each result of the null service.
    pub null_result: usize,
    /// With durability `memory` and no trusted process keep nothing at all, as with a component in this process, so that
    /// what protocols take can be compared. Such a replica does not start a second time.
    pub keeps_nothing: bool,
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
        let start = Start { cluster: &cluster, secret, known: &known, sockets, genesis, footing, options };
        match cluster.protocol {
            Protocol::MinBft => start.serve::<MinBft>().await,
            Protocol::Pbft => start.serve::<Pbft>().await,
            Protocol::A2mPbftE => start.serve::<A2mPbftE>().await,
            Protocol::A2mPbftEa => start.serve::<A2mPbftEa>().await,
        }
    })
}

/// What a replica starts with.
struct Start<'a> {
    cluster: &'a Cluster,
    secret: ReplicaSecret,
    known: &'a Arc<Configuration>,
    sockets: Sockets,
    genesis: Option<State>,
    footing: Footing,
    options: Options,
}

impl Start<'_> {
    /// Serves what the group serves.
    async fn serve<A: Served>(mut self) -> Result<(), RunError> {
        let (cluster, genesis) = (self.cluster, self.genesis.take());
        match cluster.service {
            #[cfg(feature = "demo-adversary")]
            Service::Kv if self.options.miscompute => {
                let app = crate::miscompute::Miscomputes::new(troth_kv::Kv::default());
                run::<A, _>(self, begin(executor(cluster, app), genesis)).await
            }
            Service::Kv => {
                run::<A, _>(self, begin(executor(cluster, troth_kv::Kv::default()), genesis)).await
            }
            Service::Null => {
                let app = troth_kv::Null::new(self.options.null_result);
                run::<A, _>(self, begin(executor(cluster, app), genesis)).await
            }
            #[cfg(feature = "demo-adversary")]
            Service::ZooKeeper if self.options.miscompute => {
                let app = crate::miscompute::Miscomputes::new(cluster.zookeeper.clone());
                run::<A, _>(self, begin(executor(cluster, app), genesis)).await
            }
            Service::ZooKeeper => {
                run::<A, _>(self, begin(executor(cluster, cluster.zookeeper.clone()), genesis)).await
            }
        }
    }
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

async fn run<A: Served, X: Execution<Snapshot = State> + 'static>(
    start: Start<'_>,
    executor: X,
) -> Result<(), RunError> {
    let Start { cluster, secret, known, mut sockets, footing, options, .. } = start;
    let (me, group) = (secret.replica, cluster.group);
    let clock = Clock::new();
    #[cfg(feature = "faults")]
    let clock = clock.told_by(options.faults.orders.clone());
    let started = Instant::now();
    let epoch = secret.epoch;
    let address = secret.listens_at(cluster).to_owned();
    #[cfg(feature = "demo-adversary")]
    let liar = options.lie.then(|| crate::liar::Liar::new::<A>(me, &group));
    #[cfg(feature = "demo-adversary")]
    let tyrant = options.tyranny.map(|tyranny| {
        let time_out = cluster.timing.suspect_after_ms * 1000;
        crate::tyrant::Tyrant::new::<A>(tyranny, me, &group, time_out)
    });
    let engine: Engine<A, X> = Engine {
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
            Snapshot { memory_bound, ..look(&engine, &group, epoch.0, started) }
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
        let waiting = match shared.engine.borrow().asked_in_vain() {
            true => shared.inbox.has_of_replicas(),
            false => !shared.inbox.is_empty() || shared.engine.borrow().has_asked(),
        };
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
