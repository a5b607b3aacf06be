//! Honest clients under a flood, beside the same clients while the same flood goes to a socket that discards
//! it: what the flood costs beyond the machine's time that flooding itself takes. Both take turns, so that a
//! machine that drifts drifts for both.
//!
//! A flooding replica stands in the place of one of f: the group's others are honest, and in the baseline it is
//! silent. A flooding client, and clients with idle connections, are beside the honest ones.

mod dear;
pub(crate) mod flooder;
pub(crate) mod junk;
mod peer;
mod report;
pub(crate) mod silent;

use crate::Failure;
use crate::caller::{Belief, Replicated};
use crate::cli::{FloodKind, FloodPlan};
use crate::load::Load;
use crate::null::{OVERHEAD, WARM_UP, authenticators, links, round};
use crate::processes::{Scratch, Server};
use crate::protocol::Agreed;
use bytes::Bytes;
use report::{Flooded, Outcome, Phase};
use std::path::PathBuf;
use std::time::{Duration, Instant};
use tokio::task::LocalSet;
use troth_node::config::{ClientSecret, Cluster};
use troth_types::{ClientId, ReplicaId};

/// A time that no handshake takes.
const DAY: Duration = Duration::from_secs(86_400);
/// Seconds of one phase, about; phases with and without flood take turns.
const PHASE: u64 = 10;
/// Seconds without any flood, which tell what ten times the honest bytes are.
const QUIET: u64 = 3;
/// How long an honest client that connects during a flood may take.
const CONNECTS_WITHIN: Duration = Duration::from_secs(5);
/// Between two of them.
const CONNECTS_EVERY: Duration = Duration::from_millis(500);
/// How long the idle connections may take to be made.
const STANDS_WITHIN: Duration = Duration::from_secs(180);

/// Measures, prints, and tells whether the claim holds.
pub(crate) fn run(plan: &FloodPlan) -> Result<bool, Failure> {
    let kinds = match plan.kind.is_empty() {
        true => vec![FloodKind::Peer, FloodKind::Client, FloodKind::Idle],
        false => plan.kind.clone(),
    };
    if kinds.iter().any(|kind| matches!(kind, FloodKind::Dear | FloodKind::Crowding)) {
        return Err(
            "a client of dear frames sends few bytes, and is no flood: see 'cargo xtask attacks --kind dear'"
                .into(),
        );
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let mut flooded = Vec::new();
    for kind in kinds {
        let limit = Duration::from_secs(2 * plan.seconds + QUIET) * 2 + STANDS_WITHIN * 2 + OVERHEAD * 2;
        let outcome = LocalSet::new().block_on(&runtime, async {
            tokio::time::timeout(limit, measure(plan, kind))
                .await
                .unwrap_or_else(|_| Err(format!("not done after {} s", limit.as_secs()).into()))
        })?;
        flooded.push(outcome);
    }
    Ok(report::report(plan, &flooded))
}

/// Ends when the parent's end of standard input does.
fn until_stdin_ends() -> tokio::sync::oneshot::Receiver<()> {
    let (orphaned, parent) = tokio::sync::oneshot::channel::<()>();
    std::thread::spawn(move || {
        let ended = std::io::copy(&mut std::io::stdin().lock(), &mut std::io::sink());
        drop((ended, orphaned));
    });
    parent
}

/// A running group, and what stands around it.
struct Stage {
    scratch: Scratch,
    cluster: Cluster,
    kind: FloodKind,
    /// The honest replicas.
    replicas: Vec<Server>,
    /// The one that may be faulty.
    faulty: ReplicaId,
    _silent: Vec<Server>,
    /// Where a flood goes that is discarded.
    sockets: Vec<String>,
    flooders: u32,
}

impl Stage {
    async fn new(plan: &FloodPlan, kind: FloodKind) -> Result<Self, Failure> {
        // One more client floods or connects during the flood; of idle connections half are clients'.
        let more = if kind == FloodKind::Idle { plan.idle.div_ceil(2) + 1 } else { 1 };
        let durability = plan.durability.into();
        let agreed = Agreed::in_process(plan.protocol, 1).with_auth(kind.auth());
        let scratch = Scratch::new(agreed, plan.clients.connections + more, durability)?;
        let cluster = Cluster::load(&scratch.layout.cluster())?;
        let faulty = ReplicaId(2);
        let honest = cluster.group.all().filter(|replica| !kind.is_replica() || *replica != faulty);
        let dir = scratch.layout.root().to_string_lossy().into_owned();
        let sockets = sockets(&scratch.direct.0, kind, cluster.group.n());
        let mut silent = Vec::new();
        for (number, address) in sockets.iter().enumerate() {
            silent.push(silent_server(&scratch, faulty, address, &format!("socket-{number}")).await?);
        }
        if kind.is_replica() {
            let address = &cluster.replica(faulty).address;
            silent.push(silent_server(&scratch, faulty, address, "silent").await?);
        }
        let mut replicas = Vec::new();
        for replica in honest {
            let http = cluster.replica(replica).http.clone().expect("made with one");
            let words = ["replica", "--dir", &dir, "--id", &replica.0.to_string()];
            replicas.push(Server::start(&words, &scratch.layout.replica(replica), &http)?);
        }
        let others = replicas.len() - 1;
        for server in &mut replicas {
            server.wait(|snapshot| snapshot.peers.len() >= others).await?;
        }
        Ok(Self { scratch, cluster, kind, replicas, faulty, _silent: silent, sockets, flooders: 0 })
    }

    /// The honest replicas, as targets of a flood.
    fn victims(&self) -> Victims {
        let honest = self.cluster.group.all().filter(|id| !self.kind.is_replica() || *id != self.faulty);
        honest.map(|id| (self.cluster.replica(id).address.clone(), id)).collect()
    }

    /// Starts a flood of the replicas, or of the socket that discards it.
    fn flood(&mut self, plan: &FloodPlan, rate: u64, discarded: bool) -> Result<Vec<Server>, Failure> {
        let mut victims = self.victims();
        if discarded {
            for (victim, socket) in victims.iter_mut().zip(self.sockets.iter().cycle()) {
                *victim = (socket.clone(), self.faulty);
            }
        }
        match self.kind {
            FloodKind::Idle => victims.into_iter().map(|one| self.flooder(plan, rate, &vec![one])).collect(),
            _ => Ok(vec![self.flooder(plan, rate, &victims)?]),
        }
    }

    /// Starts one that floods these.
    fn flooder(&mut self, plan: &FloodPlan, rate: u64, victims: &Victims) -> Result<Server, Failure> {
        self.flooders += 1;
        let directory = directory(&self.scratch, &format!("flooder-{}", self.flooders))?;
        let own = match self.kind {
            FloodKind::Peer | FloodKind::Fetcher => u64::from(self.faulty.0),
            FloodKind::Client
            | FloodKind::Forger
            | FloodKind::Partial
            | FloodKind::Dear
            | FloodKind::Crowding => u64::from(plan.clients.connections) + 1,
            FloodKind::Idle => u64::from(plan.clients.connections) + 2,
        };
        let dir = self.scratch.layout.root().to_string_lossy();
        let words = flooder_words(&dir, self.kind, own, victims, rate, plan.idle);
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        Server::start(&words, &directory, "")
    }
}

/// Where floods of this kind are discarded. Idle connections are so many that a process may not have them to all replicas:
/// so they are made, and discarded, by one process for each, on another address of this machine.
pub(crate) fn sockets(address: &str, kind: FloodKind, replicas: usize) -> Vec<String> {
    let port = address.rsplit_once(':').map_or(address, |(_, port)| port);
    match kind {
        FloodKind::Idle => (1..=replicas).map(|host| format!("127.0.0.{host}:{port}")).collect(),
        _ => vec![address.to_owned()],
    }
}

/// Who is flooded: where, and as which replica.
pub(crate) type Victims = Vec<(String, ReplicaId)>;

/// What starts a flooder.
pub(crate) fn flooder_words(
    dir: &str,
    kind: FloodKind,
    own: u64,
    victims: &Victims,
    rate: u64,
    idle: u16,
) -> Vec<String> {
    let to: Vec<String> = victims.iter().map(|(address, id)| format!("{address}={}", id.0)).collect();
    let (own, rate, idle) = (own.to_string(), rate.to_string(), idle.to_string());
    ["flooder", "--dir", dir, "--kind", kind.name(), "--own", &own, "--to", &to.join(",")]
        .into_iter()
        .chain(["--rate", &rate, "--count", &idle])
        .map(str::to_owned)
        .collect()
}

/// Starts one that takes every caller and everything it sends, with a replica's key.
pub(crate) async fn silent_server(
    scratch: &Scratch,
    replica: ReplicaId,
    address: &str,
    name: &str,
) -> Result<Server, Failure> {
    let directory = directory(scratch, name)?;
    let dir = scratch.layout.root().to_string_lossy();
    let words = ["silent", "--dir", &dir, "--id", &replica.0.to_string(), "--address", address];
    let server = Server::start(&words, &directory, "")?;
    let give_up = Instant::now() + CONNECTS_WITHIN;
    while !silent::listens(address).await {
        if Instant::now() > give_up {
            return Err(format!("the silent server does not listen: {}", server.said()).into());
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    Ok(server)
}

fn directory(scratch: &Scratch, name: &str) -> Result<PathBuf, Failure> {
    let directory = scratch.layout.root().join(name);
    std::fs::create_dir_all(&directory)?;
    Ok(directory)
}

async fn measure(plan: &FloodPlan, kind: FloodKind) -> Result<Flooded, Failure> {
    let mut stage = Stage::new(plan, kind).await?;
    let addresses: Vec<(String, ReplicaId)> =
        stage.cluster.group.all().map(|id| (stage.cluster.replica(id).address.clone(), id)).collect();
    let mut load = Load::new(Bytes::from(vec![0; plan.bytes as usize]));
    let belief = Belief::of(&stage.cluster);
    for number in 0..plan.clients.connections {
        let secret = secret(&stage, u64::from(number) + 1)?;
        let keys = authenticators(&stage.cluster, &secret);
        let caller = Replicated::with(&belief, &secret, keys);
        let links = links(&stage.cluster, &secret, &addresses).await?;
        load.add(caller, links, plan.clients.share(number));
    }

    let quiet = phase(&mut load, &stage, plan, QUIET, &[]).await?;
    println!("{}: without any flood {:.0} operations per second", kind.name(), quiet.rate);
    let rate = plan.times * quiet.read_bytes.max(1);
    // Idle connections are measured when they stand: to make them is not what is claimed.
    let phases = if kind == FloodKind::Idle { 1 } else { (plan.seconds / PHASE).max(1) };
    let seconds = plan.seconds / phases;
    let mut outcome = Outcome::default();
    for number in 1..=phases {
        for discarded in [true, false] {
            let flooders = stage.flood(plan, rate, discarded)?;
            if kind == FloodKind::Idle {
                let victims = flooders.len() as u64;
                stand(&flooders, u64::from(plan.idle).div_ceil(2) * victims).await?;
            }
            let phase = phase(&mut load, &stage, plan, seconds, &flooders).await?;
            drop(flooders);
            let to = if discarded { "discarding socket" } else { "replicas" };
            println!(
                "{}, phase {number}, flood to {to:<17} {:>9.0} operations per second, {:.1} MB/s of flood taken",
                kind.name(),
                phase.rate,
                phase.flood_bytes as f64 / 1e6
            );
            if discarded { outcome.discarded.push(phase) } else { outcome.flooded.push(phase) }
        }
    }
    Flooded::new(kind, quiet, outcome, rate, &stage.replicas).await
}

/// Waits until so many idle connections of clients stand.
async fn stand(flooders: &[Server], wanted: u64) -> Result<(), Failure> {
    let give_up = Instant::now() + STANDS_WITHIN;
    while sent_by_all(flooders) < wanted {
        if Instant::now() > give_up {
            let stand = sent_by_all(flooders);
            return Err(format!("only {stand} of {wanted} idle connections of clients stand").into());
        }
        tokio::time::sleep(CONNECTS_EVERY).await;
    }
    Ok(())
}

fn secret(stage: &Stage, client: u64) -> Result<ClientSecret, Failure> {
    Ok(ClientSecret::load(&stage.scratch.layout.client_secret(ClientId(client)), &stage.cluster)?)
}

/// Runs the honest load for so long, while one more client connects again and again.
async fn phase(
    load: &mut Load<Replicated>,
    stage: &Stage,
    plan: &FloodPlan,
    seconds: u64,
    flooders: &[Server],
) -> Result<Phase, Failure> {
    let before = sent_by_all(flooders);
    let reads = report::reads(&stage.replicas).await?;
    let began = Instant::now();
    // The flooding client's own keys are the ones that would connect.
    let connecting = matches!(stage.kind, FloodKind::Peer | FloodKind::Fetcher | FloodKind::Idle);
    let (round, connected) = {
        let measured = round(load, &stage.replicas, seconds);
        tokio::pin!(measured);
        let mut connected = Vec::new();
        loop {
            tokio::select! {
                done = &mut measured => break (done?, connected),
                took = connect(stage, plan), if connecting => connected.push(took?),
            }
        }
    };
    let took = began.elapsed().max(WARM_UP).as_secs_f64();
    let read = report::reads(&stage.replicas).await?.saturating_sub(reads);
    Ok(Phase {
        rate: round.rate,
        p99: round.p99,
        view_changes: round.view_changes,
        read_bytes: (read as f64 / took / stage.replicas.len() as f64) as u64,
        flood_bytes: ((sent_by_all(flooders) - before) as f64 / took) as u64,
        connects: connected.len() as u64,
        slowest_connect: connected.into_iter().max().unwrap_or_default(),
    })
}

/// Connects a client to an honest replica; tells how long it took.
async fn connect(stage: &Stage, plan: &FloodPlan) -> Result<Duration, Failure> {
    tokio::time::sleep(CONNECTS_EVERY).await;
    let secret = secret(stage, u64::from(plan.clients.connections) + 1)?;
    let address = [(stage.cluster.replica(ReplicaId(0)).address.clone(), ReplicaId(0))];
    let began = Instant::now();
    let linked = tokio::time::timeout(CONNECTS_WITHIN, links(&stage.cluster, &secret, &address)).await;
    linked.map_err(|_| "an honest client could not connect during the flood")??;
    Ok(began.elapsed())
}

/// Bytes that the flooder says it has sent.
pub(crate) fn sent(flooder: Option<&Server>) -> u64 {
    let said = flooder.map(Server::said).unwrap_or_default();
    said.lines().rev().find_map(|line| line.parse().ok()).unwrap_or(0)
}

/// The same of several together.
fn sent_by_all(flooders: &[Server]) -> u64 {
    flooders.iter().map(|flooder| sent(Some(flooder))).sum()
}
