//! `troth up`: a whole cluster on this machine, for as long as this process runs.

use crate::cli::Up;
use crate::failure::{Failure, NOT_DONE};
use crate::gateway::{Beside, LOG};
use crate::init::fits;
use crate::print::say;
use crate::processes::Processes;
use crate::session;
use crate::suggest::{self, USUAL_DIR, quoted};
use crate::up_place::{self, Held};
use crate::words::count;
use std::path::{Path, PathBuf};
use std::time::Duration;
use troth_node::config::{
    Auth, Cluster, Durability, Layout, MakeError, Plan, Protocol, Service, TrustedHome, ZooKeeper,
    free_ports, make,
};
use troth_types::ReplicaId;

/// Stands in a directory whose cluster `troth up` made itself and may remove.
pub(crate) const OURS: &str = "made-by-troth-up";
/// What the mark says.
const MARK: &str = "`troth up` made this cluster and removes it when it ends or starts again.\n";
/// The same, where the directory goes with the cluster.
const MARK_WITH_DIRECTORY: &str =
    "`troth up` made this cluster and its directory, and removes both when it ends or starts again.\n";
/// Clients of a cluster made here.
const CLIENTS: u16 = 16;
/// How long the replicas may take to find each other.
const PATIENCE: Duration = Duration::from_secs(30);

pub(crate) fn run(up: &Up) -> Result<(), Failure> {
    let signals = Signals::listen()?;
    let layout = Layout::new(&up.dir.dir);
    let mut held = Held::hold(&layout, up.zookeeper.is_some())?;
    let ours = layout.root().join(OURS);
    let is_left = ours.exists();
    up_place::none_runs(&layout, is_left)?;
    if is_left {
        if std::fs::read_to_string(&ours).is_ok_and(|mark| mark == MARK_WITH_DIRECTORY) {
            held.goes_too(layout.root());
        }
        clear(&layout)?;
    }
    if !layout.cluster().exists() {
        // What else stands beside a mark came after it.
        if !is_left {
            holds_nothing(layout.root())?;
        }
        let service = if up.zookeeper.is_some() { Service::ZooKeeper } else { Service::Kv };
        let (protocol, auth) = (up.protocol.unwrap_or_default(), up.auth.unwrap_or_default());
        let mark = if held.takes(layout.root()) { MARK_WITH_DIRECTORY } else { MARK };
        make_ours(&layout, mark, (protocol, auth), up.f.unwrap_or(1), service)?;
    }
    let mut result = serve(&layout, up, &signals);
    let left = up_place::left(&layout);
    if let Some(said) = up_place::outlive(&layout, &left) {
        say!("{said}");
    }
    // Who still serves needs its files, and whoever starts here next has to find it by them.
    if ours.exists() && left.is_empty() {
        // State, counters and keys are of no use once the replicas have ended; their logs are, where they tell why.
        let kept = if matches!(result, Ok(End::Asked)) { Vec::new() } else { keep_logs(layout.root())? };
        if kept.is_empty() {
            clear(&layout)?;
        } else {
            result = tell_kept(result, &kept);
        }
    }
    result.map(drop)
}

/// How a cluster that came to serve, or was stopped before, has ended.
enum End {
    /// As it was asked to.
    Asked,
    /// The same, but some of its replicas had ended before.
    Mourned,
}

/// Says where the logs are that were kept, with the failure where there is one.
fn tell_kept(result: Result<End, Failure>, kept: &[PathBuf]) -> Result<End, Failure> {
    let names: Vec<String> = kept.iter().map(|log| log.display().to_string()).collect();
    let said = format!("kept until the next `troth up` here: {}", names.join(", "));
    match result {
        Ok(end) => {
            say!("{said}");
            Ok(end)
        }
        Err(why) => Err(Failure { message: format!("{}\n  {said}", why.message), ..why }),
    }
}

/// Removes what a `troth up` made, but for the logs of its replicas; gives those. The mark stays with them, so that
/// whoever starts here next clears them.
fn keep_logs(root: &Path) -> Result<Vec<PathBuf>, Failure> {
    let failed = |why| Failure::system(&format!("cannot clear {}", root.display()), &why);
    let mut kept = Vec::new();
    for path in made_names(root)? {
        let log = path.join("replica.log");
        if !log.is_file() {
            remove(&path).map_err(failed)?;
            continue;
        }
        for entry in std::fs::read_dir(&path).map_err(failed)? {
            let entry = entry.map_err(failed)?.path();
            if entry != log {
                remove(&entry).map_err(failed)?;
            }
        }
        kept.push(log);
    }
    kept.sort();
    Ok(kept)
}

fn serve(layout: &Layout, up: &Up, signals: &Signals) -> Result<End, Failure> {
    let cluster = session::present(layout)?;
    if let Some(wanted) = up.protocol.filter(|wanted| *wanted != cluster.protocol) {
        let problem = format!(
            "{} is of a group whose protocol is {}, not {}; leave --protocol away, or give another --dir",
            layout.cluster().display(),
            cluster.protocol.name(),
            wanted.name()
        );
        return Err(Failure::usage(problem));
    }
    if let Some(wanted) = up.auth.filter(|wanted| *wanted != cluster.auth) {
        let problem = format!(
            "{} is of a group whose auth is {}, not {}; leave --auth away, or give another --dir",
            layout.cluster().display(),
            cluster.auth.name(),
            wanted.name()
        );
        return Err(Failure::usage(problem));
    }
    if up.f.is_some_and(|f| usize::from(f) != cluster.group.f()) {
        let problem = format!(
            "{} is of a group that bears {}; leave --f away, or give another --dir",
            layout.cluster().display(),
            count(cluster.group.f(), "faulty replica")
        );
        return Err(Failure::usage(problem));
    }
    if up.zookeeper.is_some() && cluster.service != Service::ZooKeeper {
        let problem = format!(
            "{} is of a group that serves \"{}\"; leave --zookeeper away, or give another --dir",
            layout.cluster().display(),
            cluster.service.name()
        );
        return Err(Failure::usage(problem));
    }
    let mut processes = Processes::start(layout, &cluster, |_| Vec::new())?;
    let mut end = End::Asked;
    let pause = |pause| signals.wait(pause);
    let mut gateway = None;
    let spare = cluster.group.n() - cluster.group.quorum();
    if processes.wait_until_serving(layout, &cluster, PATIENCE, spare, pause)?
        && let Some(place) = begin(layout, up, &mut gateway, pause)?
    {
        greet(layout, &cluster, processes.running(), place.as_deref());
        for (replica, why) in processes.refused() {
            let said =
                format!("\nReplica {} does not start, and the others go on without it{why}", replica.0);
            say!("{}", suggest::with_dir(&said, &elsewhere(layout), true));
        }
        while !signals.wait(Duration::from_millis(200)) {
            if gateway.as_mut().and_then(Beside::ended).is_some() {
                let log = layout.root().join(LOG);
                let said = format!(
                    "The gateway has ended (see {}). `troth gateway zookeeper` starts one.",
                    log.display()
                );
                say!("{}", suggest::with_dir(&said, &elsewhere(layout), true));
            }
            if let Some((replica, _)) = processes.ended() {
                processes.forget(replica);
                end = End::Mourned;
                // Those that somebody started by hand order with the others.
                let serving = up_place::running(&cluster).len();
                let said = mourned(layout, &cluster, replica, processes.running(), serving);
                say!("{}", suggest::with_dir(&said, &elsewhere(layout), true));
                if processes.running() == 0 && gateway.is_none() {
                    return Err(Failure::new(
                        NOT_DONE,
                        "none of the replicas that were started here runs any more",
                    ));
                }
            }
        }
    }
    say!("\nStopping.");
    // First: its clients are told nothing wrong while replicas end.
    drop(gateway);
    processes.stop();
    Ok(end)
}

/// Starts the gateway where one was asked for, and says where it serves, if there is one; nothing where it is to stop.
#[expect(clippy::option_option, reason = "whether to go on, and whether with a gateway")]
fn begin(
    layout: &Layout,
    up: &Up,
    gateway: &mut Option<Beside>,
    pause: impl Fn(Duration) -> bool,
) -> Result<Option<Option<String>>, Failure> {
    let Some(listen) = up.zookeeper else { return Ok(Some(None)) };
    Ok(gateway.insert(Beside::start(layout, listen)?).wait_until_serving(pause)?.map(Some))
}

/// What names this cluster in a command that is typed in another terminal, which knows nothing of this one's
/// environment.
fn elsewhere(layout: &Layout) -> String {
    if layout.root() == Path::new(USUAL_DIR) {
        return String::new();
    }
    format!(" --dir {}", quoted(&layout.root().display().to_string()))
}

fn greet(layout: &Layout, cluster: &Cluster, running: usize, gateway: Option<&str>) {
    let may_fail = match running.saturating_sub(cluster.group.quorum()) {
        0 => "none".to_owned(),
        spare => spare.to_string(),
    };
    let dir = elsewhere(layout);
    say!(
        "{running} replicas serve; {may_fail} of them may fail. Ctrl-C stops them, and {}.\n",
        after(layout, cluster)
    );
    say!("In another terminal:");
    if cluster.service == Service::Kv {
        say!("  troth kv{dir} put greeting hello");
        say!("  troth kv{dir} get greeting");
        say!("  troth kv{dir} watch greeting");
    }
    if let Some(place) = gateway {
        say!("  zkCli.sh -server {place}");
        let session = format!("c = KazooClient('{place}'); c.start(); print(c.get_children('/'))");
        say!("  python3 -c \"from kazoo.client import KazooClient; {session}\"");
    } else if cluster.service == Service::ZooKeeper {
        say!("  troth gateway zookeeper{dir}");
    }
    say!("  troth status{dir}");
    say!("  kill -9 <a replica>: the service goes on; the pids are in `troth status{dir}`\n");
    say!("Logs: {}/replica-N/replica.log", layout.root().display());
    if gateway.is_some() {
        say!("      {}", layout.root().join(LOG).display());
    }
}

/// What is left when they have been stopped.
pub(crate) fn after(layout: &Layout, cluster: &Cluster) -> String {
    let dir = layout.root().display();
    let after = match cluster.durability {
        Durability::Memory if cluster.trusted_home == TrustedHome::Process => {
            "what they hold is gone then, unless every `troth trusted` was started apart and runs on"
                .to_owned()
        }
        // Without a component nothing of it lived in the processes alone.
        Durability::Memory if !cluster.protocol.has_components() && !layout.root().join(OURS).exists() => {
            format!(
                "what they hold stays in {dir} until the machine starts anew: until then `troth up` goes on with it"
            )
        }
        Durability::Memory => "what they hold is gone then".to_owned(),
        Durability::Interval(_) => format!(
            "what they hold stays in {dir}: `troth up` goes on with it, unless the machine starts anew before that"
        ),
        Durability::Always => format!("what they hold stays in {dir}: `troth up` goes on with it"),
    };
    suggest::in_dir(&after, layout.root())
}

/// What is said where a replica has ended. Others may run that were started by hand, also of those that ended here, so
/// it says how many this process still runs, and goes by how many of the group answer, `serving`.
pub(crate) fn mourned(
    layout: &Layout,
    cluster: &Cluster,
    replica: ReplicaId,
    running: usize,
    serving: usize,
) -> String {
    // One that is just busy is not gone.
    let serving = serving.max(running);
    let (n, quorum) = (cluster.group.n(), cluster.group.quorum());
    let runs = if running == 1 { "runs" } else { "run" };
    let answer = if serving == 1 { "answers" } else { "answer" };
    let log = layout.replica(replica).join("replica.log");
    let mut said = format!(
        "Replica {} has ended (see {}). {}\nOf the {n} replicas that were started here {running} still {runs}; of the \
         group {serving} {answer}, and it needs {quorum}",
        replica.0,
        log.display(),
        again(cluster, replica, serving >= quorum)
    );
    if serving < quorum {
        said += &format!(
            ": it answers nothing any more, rather than something wrong. Ctrl-C \
             stops those that were started here; {}",
            after(layout, cluster)
        );
    }
    said + ". `troth status` shows who serves."
}

/// Whether a replica that has ended can be started again, and how.
pub(crate) fn again(cluster: &Cluster, replica: ReplicaId, is_served: bool) -> String {
    let command = format!("`troth replica --id {}`", replica.0);
    match cluster.durability {
        Durability::Memory if cluster.trusted_home == TrustedHome::Process => {
            format!("{command} starts it again where its `troth trusted` was started apart and runs on.")
        }
        Durability::Memory if cluster.protocol.has_components() && cluster.protocol != Protocol::MinBft => {
            "It kept everything in its process and cannot be started again.".to_owned()
        }
        // Admitting it is ordered as everything else is.
        Durability::Memory if cluster.protocol.has_components() && !is_served => {
            "It kept everything in its process, and too few are left to admit it again.".to_owned()
        }
        Durability::Memory if cluster.protocol.has_components() => {
            format!(
                "It kept everything in its process: `troth admin readmit --replica {}` and then {command} bring it back.",
                replica.0
            )
        }
        Durability::Memory | Durability::Interval(_) => {
            format!("{command} starts it again, unless the machine starts anew before that.")
        }
        Durability::Always => format!("{command} starts it again."),
    }
}

fn make_ours(
    layout: &Layout,
    words: &str,
    (protocol, auth): (Protocol, Auth),
    faults: u16,
    service: Service,
) -> Result<(), Failure> {
    fits(protocol, auth)?;
    let ports = free_ports(2 * usize::from(protocol.replicas(faults)))?;
    let addresses = ports
        .chunks_exact(2)
        .map(|pair| (format!("127.0.0.1:{}", pair[0]), format!("127.0.0.1:{}", pair[1])))
        .collect();
    let (trusted, trusted_home) =
        protocol.components(protocol.usual_kind(TrustedHome::InProcess), TrustedHome::InProcess);
    let plan = Plan {
        protocol,
        auth,
        faults,
        service,
        zookeeper: ZooKeeper::default(),
        trusted,
        trusted_home,
        durability: Durability::Memory,
        clients: CLIENTS,
        addresses,
        timing: String::new(),
    };
    let mark = layout.root().join(OURS);
    std::fs::write(&mark, words).map_err(|why| Failure::place("cannot write", &mark, &why))?;
    make(layout, &plan).map_err(|why| {
        match &why {
            // Somebody else makes a cluster here at this moment: nothing here is ours any more.
            MakeError::Exists(_) | MakeError::Unfinished { .. } => drop(std::fs::remove_file(&mark)),
            // The reason it failed matters more than what is left where clearing fails too.
            _ => drop(clear(layout)),
        }
        why.into()
    })
}

/// Refuses a directory in which something stands that is not ours to remove later, or to put a cluster among.
fn holds_nothing(root: &Path) -> Result<(), Failure> {
    match made_names(root)?.into_iter().next() {
        None => up_place::holds_nothing(root),
        Some(theirs) => Err(Failure::usage(format!(
            "{} is there already and no cluster.toml beside it; give another --dir, or add the cluster.toml",
            theirs.display()
        ))),
    }
}

/// What is in a directory under the names that [`clear`] removes, but for the mark.
fn made_names(root: &Path) -> Result<Vec<PathBuf>, Failure> {
    let failed = |why| Failure::system(&format!("cannot read {}", root.display()), &why);
    let mut found = Vec::new();
    for entry in std::fs::read_dir(root).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let name = entry.file_name();
        let name = name.to_string_lossy();
        let made = ["clients", "cluster.toml", "configuration.toml", LOG];
        if name.starts_with("replica-") || made.contains(&&*name) {
            found.push(entry.path());
        }
    }
    Ok(found)
}

/// Removes what a `troth up` made: exactly those files and directories.
fn clear(layout: &Layout) -> Result<(), Failure> {
    let root = layout.root();
    let failed = |why| Failure::system(&format!("cannot clear {}", root.display()), &why);
    for path in made_names(root)? {
        remove(&path).map_err(failed)?;
    }
    // Last: while it stands, whoever starts here next clears what is left.
    std::fs::remove_file(root.join(OURS)).map_err(failed)
}

fn remove(path: &Path) -> std::io::Result<()> {
    if path.is_dir() { std::fs::remove_dir_all(path) } else { std::fs::remove_file(path) }
}

/// Whether this process was started so that it outlives its terminal, as `nohup` does it: SIGHUP, the first signal of
/// the mask, is ignored. A handler would undo that.
fn outlives_its_terminal() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).is_some_and(|mask| mask & 1 == 1)
}

/// SIGINT, SIGTERM, and the SIGHUP of a terminal that was closed unless it is ignored, as something to wait for.
pub(crate) struct Signals(std::sync::mpsc::Receiver<()>);

impl Signals {
    /// From now on the signals end no process by themselves.
    pub(crate) fn listen() -> Result<Self, Failure> {
        use tokio::signal::unix::{SignalKind, signal};
        let (tell, heard) = std::sync::mpsc::channel();
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|why| Failure::system("cannot listen for signals", &why))?;
        let (ready, listening) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            runtime.block_on(async move {
                let all = signal(SignalKind::interrupt()).and_then(|interrupt| {
                    let hangup =
                        (!outlives_its_terminal()).then(|| signal(SignalKind::hangup())).transpose()?;
                    Ok((interrupt, signal(SignalKind::terminate())?, hangup))
                });
                let (mut interrupt, mut terminate, mut hangup) = match all {
                    Ok(all) => {
                        let _ = ready.send(Ok(()));
                        all
                    }
                    Err(why) => {
                        let _ = ready.send(Err(why));
                        return;
                    }
                };
                loop {
                    tokio::select! {
                        _ = interrupt.recv() => {}
                        _ = terminate.recv() => {}
                        () = async {
                            match &mut hangup {
                                Some(hangup) => drop(hangup.recv().await),
                                None => std::future::pending().await,
                            }
                        } => {}
                    }
                    if tell.send(()).is_err() {
                        return;
                    }
                }
            });
        });
        match listening.recv() {
            Ok(Ok(())) => Ok(Self(heard)),
            Ok(Err(why)) => Err(Failure::system("cannot listen for signals", &why)),
            Err(_) => Err(Failure::new(crate::failure::NOT_DONE, "cannot listen for signals")),
        }
    }

    /// Waits for a signal for at most this long; tells whether one came.
    pub(crate) fn wait(&self, patience: Duration) -> bool {
        self.0.recv_timeout(patience).is_ok()
    }
}
