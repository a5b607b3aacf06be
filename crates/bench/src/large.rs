//! A state of millions of keys: what checkpoints and snapshots do to the request path, what memory it takes, how long
//! a restart is, and what a replica fetches that missed some changes.

use crate::Failure;
use crate::caller::{Belief, Replicated};
use crate::cli::LargePlan;
use crate::flood::silent_server;
use crate::load::{Controls, Load, Operations};
use crate::marks::ask;
use crate::null::links;
use crate::processes::{Scratch, Server};
use crate::protocol::Agreed;
use crate::report::percentile;
use bytes::Bytes;
use serde_json::json;
use std::time::{Duration, Instant};
use tokio::task::LocalSet;
use troth_kv::Operation;
use troth_node::config::{ClientSecret, Cluster, Durability, Service, TrustedHome};
use troth_types::{ClientId, ReplicaId, Wire};

/// Bytes of a key.
const KEY: usize = 16;
/// Clients that fill the state.
const FILLERS: u16 = 4;
/// Requests that each of them has outstanding.
const EACH: u32 = 4096;
/// Requests outstanding while pauses are looked for, beside the one client alone: checkpoints and snapshots have
/// something to do, and the processors are not busy.
const STEADY: u32 = 64;
/// The replica that is stopped.
const STOPPED: ReplicaId = ReplicaId(2);
/// How long anything that is waited for may take: the filling, on a machine that has other things to do, too.
const PATIENCE: Duration = Duration::from_secs(1800);
const LOOK: Duration = Duration::from_millis(200);

/// What must hold.
const PAUSE_US: u64 = 10_000;
const MEMORY: f64 = 3.0;
const RESTART_S: f64 = 60.0;
const CHANGED: u64 = 100;
const MOVED: f64 = 0.03;

/// Measures, prints, and tells whether the claim holds.
pub(crate) fn run(plan: &LargePlan) -> Result<bool, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    LocalSet::new().block_on(&runtime, measure(plan))
}

/// Keys in an order that looks like none, each once: an odd factor permutes the numbers below a power of two, and
/// those beyond the last key are passed over.
struct Keys {
    count: u64,
    mask: u64,
    at: u64,
}

impl Keys {
    fn new(count: u64) -> Self {
        Self { count, mask: count.next_power_of_two() - 1, at: 0 }
    }

    fn next(&mut self) -> u64 {
        loop {
            let number = self.at.wrapping_mul(0x9e37_79b9_7f4a_7c15) & self.mask;
            self.at += 1;
            if number < self.count {
                return number;
            }
        }
    }
}

fn puts(count: u64, bytes: usize, mark: u8) -> Operations {
    let (mut keys, value) = (Keys::new(count), Bytes::from(vec![mark; bytes]));
    Box::new(move || {
        let key = Bytes::from(format!("{:0KEY$}", keys.next()));
        Operation::Put { key, value: value.clone() }.to_wire()
    })
}

struct Stage {
    scratch: Scratch,
    cluster: Cluster,
    servers: Vec<Option<Server>>,
    clients: u16,
}

impl Stage {
    async fn new() -> Result<Self, Failure> {
        let clients = 2 * FILLERS + 8;
        let scratch = Scratch::serving(
            Service::Kv,
            Agreed::minbft(1, TrustedHome::InProcess),
            clients,
            Durability::Always,
        )?;
        let cluster = Cluster::load(&scratch.layout.cluster())?;
        let mut stage = Self { scratch, cluster, servers: vec![None, None, None], clients: 0 };
        for replica in stage.cluster.group.all() {
            stage.start(replica)?;
        }
        for replica in stage.cluster.group.all() {
            stage.wait(replica, |snapshot| snapshot.peers.len() == 2).await?;
        }
        Ok(stage)
    }

    fn http(&self, replica: ReplicaId) -> String {
        self.cluster.replica(replica).http.clone().expect("made with one")
    }

    fn start(&mut self, replica: ReplicaId) -> Result<(), Failure> {
        let dir = self.scratch.layout.root().to_string_lossy();
        let words = ["replica", "--dir", &dir, "--id", &replica.0.to_string()];
        let server = Server::start(&words, &self.scratch.layout.replica(replica), &self.http(replica))?;
        self.servers[usize::from(replica.0)] = Some(server);
        Ok(())
    }

    async fn wait(
        &self,
        replica: ReplicaId,
        ready: impl Fn(&troth_node::Snapshot) -> bool,
    ) -> Result<troth_node::Snapshot, Failure> {
        let (http, give_up) = (self.http(replica), Instant::now() + PATIENCE);
        loop {
            if let Ok(snapshot) = ask(&http).await
                && ready(&snapshot)
            {
                return Ok(snapshot);
            }
            if Instant::now() > give_up {
                let said =
                    self.servers[usize::from(replica.0)].as_ref().map(Server::said).unwrap_or_default();
                return Err(format!(
                    "replica {} is not ready after {} s:\n{said}",
                    replica.0,
                    PATIENCE.as_secs()
                )
                .into());
            }
            tokio::time::sleep(LOOK).await;
        }
    }

    /// New clients, each with so many requests outstanding.
    async fn load(
        &mut self,
        clients: u16,
        share: u32,
        operations: Operations,
    ) -> Result<Load<Replicated>, Failure> {
        let mut load = Load::of(operations);
        let belief = Belief::of(&self.cluster);
        for _ in 0..clients {
            self.clients += 1;
            let client = ClientId(u64::from(self.clients));
            let secret = ClientSecret::load(&self.scratch.layout.client_secret(client), &self.cluster)?;
            let caller = Replicated::new(&belief, &secret);
            let all = self.cluster.group.all();
            let addresses: Vec<(String, ReplicaId)> =
                all.map(|replica| (self.cluster.replica(replica).address.clone(), replica)).collect();
            load.add(caller, links(&self.cluster, &secret, &addresses).await?, share);
        }
        Ok(load)
    }

    /// Bytes resident, of the replica that has most: now, and the most that it ever had.
    fn resident(&self) -> Result<(u64, u64), Failure> {
        let mut most = (0, 0);
        for server in self.servers.iter().flatten() {
            let status = std::fs::read_to_string(format!("/proc/{}/status", server.pid()))?;
            let of = |name: &str| {
                let line = status.lines().find_map(|line| line.strip_prefix(name));
                let number = line.and_then(|line| line.trim().split(' ').next()?.parse::<u64>().ok());
                number.map(|kib| kib * 1024).ok_or("what /proc says of a process has another form")
            };
            most = (most.0.max(of("VmRSS:")?), most.1.max(of("VmHWM:")?));
        }
        Ok(most)
    }
}

/// Runs a load until so much is done; tells the longest turn of any replica's loop meanwhile.
async fn until(
    stage: &Stage,
    load: &mut Load<Replicated>,
    controls: &Controls,
    enough: impl Fn(u64, Duration) -> bool,
) -> Result<u64, Failure> {
    controls.go_on.set(true);
    let before = controls.progress.get().done;
    let began = Instant::now();
    let watch = async {
        let (mut longest, mut said) = (0, Instant::now());
        loop {
            tokio::time::sleep(LOOK).await;
            for replica in stage.cluster.group.all() {
                if stage.servers[usize::from(replica.0)].is_some() {
                    longest = longest.max(ask(&stage.http(replica)).await?.longest_turn_us);
                }
            }
            let done = controls.progress.get().done - before;
            if said.elapsed() > Duration::from_secs(15) {
                said = Instant::now();
                println!("  {:.0} s: {done} operations", began.elapsed().as_secs_f64());
            }
            if enough(done, began.elapsed()) {
                controls.go_on.set(false);
                return Ok::<u64, Failure>(longest);
            }
            if began.elapsed() > PATIENCE {
                return Err(format!("only {done} operations are done after {} s", PATIENCE.as_secs()).into());
            }
        }
    };
    let ((), longest) = tokio::try_join!(load.run(controls), watch)?;
    Ok(longest)
}

async fn measure(plan: &LargePlan) -> Result<bool, Failure> {
    let raw = plan.keys * (KEY as u64 + u64::from(plan.bytes));
    let mut stage = Stage::new().await?;

    let began = Instant::now();
    println!(
        "fills {} keys of {KEY} bytes with values of {} bytes: {:.2} GB",
        plan.keys,
        plan.bytes,
        raw as f64 / 1e9
    );
    let mut load = stage.load(FILLERS, EACH, puts(plan.keys, plan.bytes as usize, 1)).await?;
    let filling = until(&stage, &mut load, &Controls::default(), |done, _| done >= plan.keys).await?;
    drop(load);
    let filled = began.elapsed().as_secs_f64();
    println!("filled in {filled:.0} s, the longest turn of a loop meanwhile {:.1} ms", filling as f64 / 1e3);

    // Until what was written meanwhile is in a snapshot, and the longest turn of that time is forgotten.
    tokio::time::sleep(Duration::from_secs(25)).await;
    let mut alone = stage.load(1, 1, puts(plan.keys, plan.bytes as usize, 2)).await?;
    let mut steady = stage.load(1, STEADY, puts(plan.keys, plan.bytes as usize, 2)).await?;
    let before = ask(&stage.http(ReplicaId(0))).await?;
    let (controls, beside) = (Controls::default(), Controls::default());
    controls.keep.set(true);
    beside.go_on.set(true);
    let seconds = Duration::from_secs(plan.seconds);
    let measured = async {
        let longest = until(&stage, &mut alone, &controls, |_, took| took >= seconds).await;
        beside.go_on.set(false);
        longest
    };
    let (longest, ()) = tokio::try_join!(measured, steady.run(&beside))?;
    let after = ask(&stage.http(ReplicaId(0))).await?;
    let checkpoints = after.counters.stable_checkpoints - before.counters.stable_checkpoints;
    let latencies = controls.latencies.take();
    let at = |share| percentile(&latencies, share);
    drop((alone, steady));
    let (resident, highest) = stage.resident()?;
    println!(
        "{} s of writes, {checkpoints} checkpoints: the longest turn of a loop {:.1} ms; one client alone p50 {:.0}, \
         p99 {:.0}, p99.9 {:.0}, longest {:.0} µs",
        plan.seconds,
        longest as f64 / 1e3,
        at(0.5),
        at(0.99),
        at(0.999),
        at(1.0)
    );
    // The most that it ever was, filling and snapshots with it: that is what a machine must have.
    let memory = highest as f64 / raw as f64;
    println!(
        "memory at most {:.2} GB so far, {memory:.2} times the raw data ({:.2} now)",
        highest as f64 / 1e9,
        resident as f64 / raw as f64
    );

    let stopping = Instant::now();
    stage.servers[usize::from(STOPPED.0)] = None;
    println!("replica {} stopped in {:.1} s", STOPPED.0, stopping.elapsed().as_secs_f64());
    let began = Instant::now();
    stage.start(STOPPED)?;
    let there = ask(&stage.http(ReplicaId(0))).await?.executed;
    stage.wait(STOPPED, |snapshot| snapshot.active && snapshot.executed >= there).await?;
    let restart = began.elapsed().as_secs_f64();
    println!("started again in {restart:.1} s");

    stage.servers[usize::from(STOPPED.0)] = None;
    // Clients want a connection to everybody.
    let address = stage.cluster.replica(STOPPED).address.clone();
    let silent = silent_server(&stage.scratch, STOPPED, &address, "silent").await?;
    let changes = plan.keys / CHANGED;
    let mut load = stage.load(FILLERS, EACH / 16, puts(plan.keys, plan.bytes as usize, 3)).await?;
    until(&stage, &mut load, &Controls::default(), |done, _| done >= changes).await?;
    drop((load, silent));
    let there = ask(&stage.http(ReplicaId(0))).await?.executed;
    let began = Instant::now();
    stage.start(STOPPED)?;
    let back = stage.wait(STOPPED, |snapshot| snapshot.active && snapshot.executed >= there).await?;
    let moved = back.counters.bytes_in + back.counters.bytes_out;
    let share = moved as f64 / raw as f64;
    println!(
        "{changes} keys changed meanwhile: there again in {:.1} s with {} state transfers, {:.1} MB moved, {:.2} % of the raw data",
        began.elapsed().as_secs_f64(),
        back.counters.transfers,
        moved as f64 / 1e6,
        share * 100.0
    );

    let missed: Vec<&str> = [
        ("a pause on the request path", longest <= PAUSE_US),
        ("memory", memory <= MEMORY),
        ("the restart", restart <= RESTART_S),
        ("what a transfer moves", share <= MOVED && back.counters.transfers > 0),
    ]
    .into_iter()
    .filter_map(|(name, ok)| (!ok).then_some(name))
    .collect();
    let verdict =
        if missed.is_empty() { "holds".to_owned() } else { format!("does not hold: {}", missed.join(", ")) };
    let summary = format!(
        "{} keys: longest turn without waits for the component's disk {:.1} ms (at most 10; one client alone waited at most {:.0} ms), memory {memory:.2} (at most 3), restart {restart:.1} s (at most 60), \
         1 % changed moved {:.2} % (at most 3): the claim {verdict}",
        plan.keys,
        longest as f64 / 1e3,
        at(1.0) / 1e3,
        share * 100.0
    );
    println!("{summary}");
    if plan.json {
        println!(
            "{}",
            json!({
                "summary": summary, "ok": missed.is_empty(), "keys": plan.keys, "raw_bytes": raw, "filled_s": filled,
                "longest_turn_us": longest, "longest_turn_filling_us": filling, "checkpoints": checkpoints,
                "alone_p50_us": at(0.5), "alone_p99_us": at(0.99), "alone_p999_us": at(0.999), "alone_longest_us": at(1.0),
                "resident": resident, "resident_highest": highest, "memory_times": memory, "restart_s": restart,
                "moved_bytes": moved, "moved_share": share, "transfers": back.counters.transfers,
            })
        );
    }
    Ok(missed.is_empty())
}
