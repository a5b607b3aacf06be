//! What `always` costs: one client alone beside the disk's own sync, and many beside `memory`. All clusters
//! run all the time and their rounds take turns with each other and with bare syncs of the same disk.

use crate::Failure;
use crate::caller::{Belief, Replicated};
use crate::cli::Plan;
use crate::load::Load;
use crate::null::{OVERHEAD, WARM_UP, links, round, start_replicas};
use crate::processes::{Scratch, Server};
use crate::protocol::Agreed;
use crate::report::{Round, load_average, median};
use bytes::Bytes;
use serde_json::{Value, json};
use std::fs::OpenOptions;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::{Duration, Instant};
use tokio::task::LocalSet;
use troth_node::config::{ClientSecret, Cluster, Durability, TrustedHome};
use troth_types::{ClientId, ReplicaId};

/// What one client alone may wait, in the disk's own syncs.
const CLAIM: f64 = 6.0;
/// How far apart the disk's own syncs may be in one run: where they are further, something else uses it, and
/// no quotient says anything.
const RESTLESS: f64 = 3.0;
/// Bare syncs measured at a time.
const SYNCS: u64 = 500;
/// What each writes, in bytes.
const BLOCK: usize = 4096;

/// What a cluster of the measurement keeps where.
const KINDS: [(&str, Durability, TrustedHome); 3] = [
    ("memory", Durability::Memory, TrustedHome::InProcess),
    ("always, counter in process", Durability::Always, TrustedHome::InProcess),
    ("always, counter in its own process", Durability::Always, TrustedHome::Process),
];
/// The one that the claim is about.
const CLAIMED: usize = 1;

/// A running cluster with its clients.
struct Measured {
    scratch: Scratch,
    servers: Vec<Server>,
    alone: Load<Replicated>,
    many: Load<Replicated>,
    alone_rounds: Vec<Round>,
    many_rounds: Vec<Round>,
}

/// Measures, prints, and tells whether the claim holds.
pub(crate) fn run(plan: &Plan) -> Result<bool, Failure> {
    let rounds = 2 * KINDS.len() as u32 * plan.rounds;
    let limit = (Duration::from_secs(plan.seconds) + WARM_UP) * rounds + OVERHEAD * 2;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let measured = LocalSet::new().block_on(&runtime, async {
        tokio::time::timeout(limit, measure(plan))
            .await
            .unwrap_or_else(|_| Err(format!("not done after {} s", limit.as_secs()).into()))
    });
    let (clusters, syncs) = measured?;
    Ok(report(plan, &clusters, &syncs))
}

async fn measure(plan: &Plan) -> Result<(Vec<Measured>, Vec<f64>), Failure> {
    let mut clusters = Vec::new();
    for (_, durability, home) in KINDS {
        clusters.push(start(plan, durability, home).await?);
    }
    let file = clusters[CLAIMED].scratch.layout.root().join("bare-syncs");
    let mut syncs = Vec::new();
    for number in 1..=plan.rounds {
        syncs.push(bare_sync(&file)?);
        for ((name, ..), cluster) in KINDS.iter().zip(&mut clusters) {
            cluster.alone_rounds.push(round(&mut cluster.alone, &cluster.servers, plan.seconds).await?);
            let now = cluster.alone_rounds[cluster.alone_rounds.len() - 1];
            syncs.push(bare_sync(&file)?);
            let sync = syncs[syncs.len() - 1];
            println!(
                "round {number}, alone, {name:<36} p50 {:>7.0} µs; a bare sync after it {sync:>6.0} µs",
                now.p50
            );
        }
        for ((name, ..), cluster) in KINDS.iter().zip(&mut clusters) {
            cluster.many_rounds.push(round(&mut cluster.many, &cluster.servers, plan.seconds).await?);
            let now = cluster.many_rounds[cluster.many_rounds.len() - 1];
            println!(
                "round {number}, {} outstanding, {name:<36} {:>9.0} operations per second",
                plan.clients.outstanding, now.rate
            );
        }
    }
    Ok((clusters, syncs))
}

async fn start(plan: &Plan, durability: Durability, home: TrustedHome) -> Result<Measured, Failure> {
    // The last client is the one that is alone.
    let scratch = Scratch::new(Agreed::minbft(plan.f, home), plan.clients.connections + 1, durability)?;
    let cluster = Cluster::load(&scratch.layout.cluster())?;
    let servers = start_replicas(&scratch, &cluster).await?;
    let addresses: Vec<(String, ReplicaId)> =
        cluster.group.all().map(|replica| (cluster.replica(replica).address.clone(), replica)).collect();
    let operation = Bytes::from(vec![0; plan.bytes as usize]);
    let (mut alone, mut many) = (Load::new(operation.clone()), Load::new(operation));
    let belief = Belief::of(&cluster);
    for number in 0..=plan.clients.connections {
        let client = ClientId(u64::from(number) + 1);
        let secret = ClientSecret::load(&scratch.layout.client_secret(client), &cluster)?;
        let caller = Replicated::new(&belief, &secret);
        let links = links(&cluster, &secret, &addresses).await?;
        if number == plan.clients.connections {
            alone.add(caller, links, 1);
        } else {
            many.add(caller, links, plan.clients.share(number));
        }
    }
    Ok(Measured { scratch, servers, alone, many, alone_rounds: Vec::new(), many_rounds: Vec::new() })
}

/// Microseconds that a write of one block with its fdatasync takes, for half of them, in a file that was
/// filled with zeros as logs and counters are.
pub(crate) fn bare_sync(path: &Path) -> Result<f64, Failure> {
    let file = OpenOptions::new().write(true).create(true).truncate(true).open(path)?;
    for block in 0..SYNCS {
        file.write_all_at(&[0; BLOCK], block * BLOCK as u64)?;
    }
    file.sync_all()?;
    let mut took = Vec::new();
    for block in 0..SYNCS {
        let before = Instant::now();
        file.write_all_at(&[1; BLOCK], block * BLOCK as u64)?;
        file.sync_data()?;
        took.push(before.elapsed().as_secs_f64() * 1e6);
    }
    Ok(median(took))
}

fn report(plan: &Plan, clusters: &[Measured], syncs: &[f64]) -> bool {
    let load = load_average();
    let sync = median(syncs.iter().copied());
    let of = |rounds: &[Round], value: fn(&Round) -> f64| median(rounds.iter().map(value));
    let (low, high) =
        (syncs.iter().copied().fold(f64::INFINITY, f64::min), syncs.iter().copied().fold(0.0, f64::max));

    println!();
    println!(
        "null service, f = {}, {} rounds of {} s; medians; load average {}",
        plan.f, plan.rounds, plan.seconds, load[0]
    );
    println!("bare write + fdatasync of {BLOCK} bytes: p50 {sync:.0} µs ({low:.0} to {high:.0})");
    println!(
        "{:<36} {:>9} {:>9} {:>9} {:>11} {:>14}",
        "", "p50 µs", "p99 µs", "in syncs", "log syncs", "operations/s"
    );
    println!(
        "{:<36} {:>30} {:>10} {:>14}",
        "",
        "one client alone",
        "each",
        format!("{} out", plan.clients.outstanding)
    );
    let mut ratios = Vec::new();
    let mut variants = serde_json::Map::new();
    for ((name, ..), cluster) in KINDS.iter().zip(clusters) {
        let p50 = of(&cluster.alone_rounds, |round| round.p50);
        let (p99, each) =
            (of(&cluster.alone_rounds, |round| round.p99), of(&cluster.alone_rounds, |round| round.syncs));
        let (rate, ratio) = (of(&cluster.many_rounds, |round| round.rate), p50 / sync);
        println!("{name:<36} {p50:>9.0} {p99:>9.0} {ratio:>9.2} {each:>11.2} {rate:>14.0}");
        ratios.push(ratio);
        let all = |rounds: &[Round], value: fn(&Round) -> f64| -> Value {
            rounds.iter().map(value).collect::<Vec<f64>>().into()
        };
        variants.insert(
            (*name).to_owned(),
            json!({
                "alone_p50_us": p50, "alone_p99_us": p99, "alone_in_syncs": ratio, "log_syncs_each": each,
                "alone_p50_us_rounds": all(&cluster.alone_rounds, |round| round.p50),
                "operations_per_second": rate,
                "operations_per_second_rounds": all(&cluster.many_rounds, |round| round.rate),
            }),
        );
    }
    let changes: u64 = clusters
        .iter()
        .flat_map(|cluster| cluster.alone_rounds.iter().chain(&cluster.many_rounds))
        .map(|round| round.view_changes)
        .sum();
    if changes > 0 {
        println!("The replicas changed their view ({changes} counted): this run measured that, too.");
    }
    let restless = high > RESTLESS * low;
    if restless {
        println!(
            "The disk's own sync took {low:.0} to {high:.0} µs: something else uses the disk, and this run shows nothing."
        );
    }
    let holds = ratios[CLAIMED] <= CLAIM && !restless;
    println!(
        "one client alone with `always`: {:.2} of the disk's own syncs ({:.2} with a process of its own): the claim of at \
         most {CLAIM:.0} {}",
        ratios[CLAIMED],
        ratios[CLAIMED + 1],
        match (holds, restless) {
            (true, _) => "holds",
            (false, true) => "is not shown",
            (false, false) => "does not hold",
        }
    );
    if plan.json {
        let result = json!({
            "service": "null", "durability": "always", "f": plan.f, "connections": plan.clients.connections,
            "outstanding": plan.clients.outstanding, "operation_bytes": plan.bytes, "seconds": plan.seconds,
            "rounds": plan.rounds, "load_average": load, "view_changes": changes,
            "sync_p50_us": sync, "sync_p50_us_samples": syncs, "variants": variants,
            "ratio": ratios[CLAIMED], "ratio_process": ratios[CLAIMED + 1], "restless": restless, "claim": CLAIM, "ok": holds,
        });
        println!("{result}");
    }
    holds
}
