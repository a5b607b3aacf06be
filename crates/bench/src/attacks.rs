//! Honest clients in a group of which one is an attacker that breaks no rule, or none that anybody can prove, beside
//! the same clients in a group without one. Both take turns, each time with a group that has just started, so that
//! what it takes to find an attacker out is in what is measured.

use crate::Failure;
use crate::caller::{Belief, Replicated};
use crate::cli::{Attack, AttackPlan};
use crate::flood::{Victims, flooder_words, sent, silent_server};
use crate::load::{Controls, Load};
use crate::marks::ask;
use crate::null::{OVERHEAD, authenticators, links};
use crate::processes::{Scratch, Server};
use crate::protocol::Agreed;
use crate::report::median;
use bytes::Bytes;
use serde_json::json;
use std::path::Path;
use std::time::{Duration, Instant};
use tokio::task::LocalSet;
use troth_kv::Operation;
use troth_node::config::{Auth, ClientSecret, Cluster, Protocol, Service};
use troth_types::{ClientId, ReplicaId, Wire};

/// The share of the throughput without an attacker that the project claims, for all clients and for each.
const CLAIM: f64 = 0.5;
/// The first primary, which the slow and unfair ones are.
const PRIMARY: ReplicaId = ReplicaId(0);
/// Who asks for state without end, in the place of a replica that the group bears.
const FETCHER: ReplicaId = ReplicaId(2);
/// What a replica says whose component has forgotten what it did.
const REFUSAL: &str = "must not vote";
/// How long the last outcomes may take.
const DRAIN: Duration = Duration::from_secs(20);

/// What one run showed.
#[derive(Clone, Copy, Debug)]
struct Run {
    /// Operations per second of all clients.
    rate: f64,
    /// Those of the client that got least done.
    least: f64,
    view: u64,
    /// Seconds without any outcome, at most.
    silence: f64,
    /// Whether the attacker did what the attack needs it not to: it served with the older state of its component.
    served: bool,
}

/// Measures, prints, and tells whether the claim holds.
pub(crate) fn run(plan: &AttackPlan) -> Result<bool, Failure> {
    // A replica of A2M-PBFT-E goes on with what its own log says, whatever its component remembers.
    let refuses = matches!(plan.protocol, Protocol::MinBft | Protocol::A2mPbftEa);
    let possible = |kind: &Attack| match kind {
        Attack::Reboot => refuses,
        kind => kind.auth() == Auth::Signed || plan.protocol.takes_authenticators(),
    };
    if let Some(kind) = plan.kind.iter().find(|kind| !possible(kind)) {
        let lacks = if *kind == Attack::Reboot {
            "has no components that a replica would refuse to go on with"
        } else {
            "takes no authenticators"
        };
        return Err(format!("{} {lacks}: there is no '{}'", plan.protocol, kind.name()).into());
    }
    let all = || Attack::ALL.into_iter().filter(possible).collect();
    let kinds = if plan.kind.is_empty() { all() } else { plan.kind.clone() };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let limit = Duration::from_secs(plan.seconds) + DRAIN + OVERHEAD;
    let once = |kind, attacked: bool| {
        LocalSet::new().block_on(&runtime, async {
            tokio::time::timeout(limit, measure(plan, kind, attacked.then_some(kind)))
                .await
                .unwrap_or_else(|_| Err(format!("not done after {} s", limit.as_secs()).into()))
        })
    };
    let (mut rows, mut good) = (Vec::new(), true);
    for kind in kinds {
        let (mut fair, mut attacked) = (Vec::new(), Vec::new());
        for _ in 0..plan.rounds {
            fair.push(once(kind, false)?);
            attacked.push(once(kind, true)?);
        }
        let middle = |runs: &[Run], of: fn(&Run) -> f64| median(runs.iter().map(of));
        let of_all = middle(&attacked, |run| run.rate) / middle(&fair, |run| run.rate);
        let of_least = middle(&attacked, |run| run.least) / middle(&fair, |run| run.least);
        let served = attacked.iter().any(|run| run.served);
        let shown = of_all.is_finite() && of_least.is_finite();
        let held = shown && of_all >= CLAIM && of_least >= CLAIM && !served;
        good &= held;
        let views: Vec<u64> = attacked.iter().map(|run| run.view).collect();
        let silence = attacked.iter().map(|run| run.silence).fold(0.0, f64::max);
        println!(
            "{:<12} {:>9.0} of {:>9.0} operations per second: {:.2}; the client that got least {:.2}; views {views:?}, \
             longest silence {silence:.2} s",
            kind.name(),
            middle(&attacked, |run| run.rate),
            middle(&fair, |run| run.rate),
            of_all,
            of_least,
        );
        if served {
            println!("{:<12} the replica served with the older state of its component", kind.name());
        }
        rows.push(json!({
            "attack": kind.name(),
            "operations_per_second": middle(&attacked, |run| run.rate),
            "without_attacker": middle(&fair, |run| run.rate),
            "ratio": of_all,
            "ratio_of_the_least_served_client": of_least,
            "views": views,
            "longest_silence_s": silence,
            "served_with_an_older_state": served,
            "ok": held,
        }));
    }
    let worst = rows
        .iter()
        .flat_map(|row| [row["ratio"].as_f64(), row["ratio_of_the_least_served_client"].as_f64()])
        .flatten()
        .fold(f64::INFINITY, f64::min);
    let verdict = if good { "holds" } else { "does not hold" };
    let summary = format!(
        "{}: of {} attacks the worst leaves honest clients {worst:.2} of the throughput: the claim of at least {CLAIM} {verdict}",
        plan.protocol,
        rows.len()
    );
    println!("{summary}");
    if plan.json {
        println!(
            "{}",
            json!({ "ok": good, "summary": summary, "protocol": plan.protocol.name(), "attacks": rows })
        );
    }
    Ok(good)
}

/// One group from its start on, loaded for so long.
async fn measure(plan: &AttackPlan, kind: Attack, attack: Option<Attack>) -> Result<Run, Failure> {
    let agreed = Agreed::in_process(plan.protocol, 1).with_auth(kind.auth());
    let clients = plan.clients.connections + 1;
    let scratch = Scratch::serving(kind.service(), agreed, clients, kind.durability())?;
    let cluster = Cluster::load(&scratch.layout.cluster())?;
    let dir = scratch.layout.root().to_string_lossy().into_owned();
    let (mut replicas, mut others) = (Vec::new(), Vec::new());
    // In the run without it the attacker's place is as silent: a group of fewer does less work.
    let fetches = kind == Attack::Fetcher;
    for id in cluster.group.all() {
        let entry = cluster.replica(id);
        if fetches && id == FETCHER {
            others.push(silent_server(&scratch, id, &entry.address, "silent").await?);
            continue;
        }
        let tyranny = attack.and_then(Attack::tyranny).filter(|_| id == PRIMARY);
        replicas.push(start(&scratch, &cluster, id, tyranny)?);
    }
    let peers = replicas.len() - 1;
    for server in &mut replicas {
        server.wait(|snapshot| snapshot.peers.len() >= peers).await?;
    }
    let old = scratch.layout.root().join("before");
    if attack == Some(Attack::Reboot) {
        replicas.remove(0).kill();
        for place in scratch.layout.component(PRIMARY, agreed.home) {
            copy(&place, &old.join(place.file_name().expect("a directory of its own")))?;
        }
        let mut server = start(&scratch, &cluster, PRIMARY, None)?;
        server.wait(|snapshot| snapshot.peers.len() >= peers).await?;
        replicas.insert(0, server);
    }
    let addresses: Vec<(String, ReplicaId)> =
        cluster.group.all().map(|id| (cluster.replica(id).address.clone(), id)).collect();
    let mut load = Load::new(operation(kind.service(), plan.bytes as usize));
    let belief = Belief::of(&cluster);
    for number in 0..plan.clients.connections {
        let client = ClientId(u64::from(number) + 1);
        let secret = ClientSecret::load(&scratch.layout.client_secret(client), &cluster)?;
        let keys = authenticators(&cluster, &secret);
        let caller = Replicated::with(&belief, &secret, keys);
        load.add(caller, links(&cluster, &secret, &addresses).await?, plan.clients.share(number));
    }
    if attack == Some(Attack::Reboot) {
        load.spare(usize::from(PRIMARY.0));
    }
    if let Some(kind) = attack.and_then(Attack::floods) {
        let honest = cluster.group.all().filter(|id| !fetches || *id != FETCHER);
        let victims: Victims = honest.map(|id| (cluster.replica(id).address.clone(), id)).collect();
        let own = if fetches { u64::from(FETCHER.0) } else { u64::from(plan.clients.connections) + 1 };
        let words = flooder_words(&dir, kind, own, &victims, plan.rate, 0);
        let directory = scratch.layout.root().join("flooder");
        std::fs::create_dir_all(&directory)?;
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        others.push(Server::start(&words, &directory, "")?);
    }
    let mut attacker = (attack == Some(Attack::Reboot)).then(|| replicas.remove(0));
    let reboots = async {
        if let Some(server) = attacker.take() {
            tokio::time::sleep(Duration::from_secs(plan.seconds) / 3).await;
            server.kill();
            for place in scratch.layout.component(PRIMARY, agreed.home) {
                std::fs::remove_dir_all(&place)?;
                copy(&old.join(place.file_name().expect("a directory of its own")), &place)?;
            }
            attacker = Some(start(&scratch, &cluster, PRIMARY, None)?);
        }
        Ok(())
    };
    let ((done, silence), ()) = tokio::try_join!(loaded(&mut load, plan), reboots)?;
    for server in &mut others {
        server.check()?;
    }
    let floods = attack.and_then(Attack::floods).is_some();
    if floods && sent(others.last()) == 0 {
        return Err("the attacker has done nothing, so nothing was attacked".into());
    }
    // It must have ended by itself, and said why.
    let refused = |mut server: Server| server.check().is_err() && server.said().contains(REFUSAL);
    let served = attacker.is_some_and(|server| !refused(server));
    let seconds = plan.seconds as f64;
    let mut view = 0;
    let first = usize::from(attack.and_then(Attack::tyranny).is_some());
    for server in replicas.iter().skip(first) {
        view = view.max(ask(&server.http).await?.view);
    }
    let least = done.iter().min().copied().unwrap_or(0) as f64 / seconds;
    Ok(Run { rate: done.iter().sum::<u64>() as f64 / seconds, least, view, silence, served })
}

/// What honest clients ask for again and again.
fn operation(service: Service, bytes: usize) -> Bytes {
    let value = Bytes::from(vec![0; bytes]);
    match service {
        Service::Kv => Operation::Put { key: Bytes::from_static(b"honest"), value }.to_wire(),
        _ => value,
    }
}

fn start(
    scratch: &Scratch,
    cluster: &Cluster,
    id: ReplicaId,
    tyranny: Option<&str>,
) -> Result<Server, Failure> {
    let http = cluster.replica(id).http.clone().expect("made with one");
    let (dir, number) = (scratch.layout.root().to_string_lossy(), id.0.to_string());
    let mut words = vec!["replica", "--dir", &dir, "--id", &number];
    words.extend(tyranny.iter().flat_map(|tyranny| ["--tyranny", tyranny]));
    Server::start(&words, &scratch.layout.replica(id), &http)
}

/// Copies a directory of files and such directories.
fn copy(from: &Path, to: &Path) -> Result<(), Failure> {
    std::fs::create_dir_all(to)?;
    for entry in std::fs::read_dir(from)? {
        let entry = entry?;
        let to = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy(&entry.path(), &to)?;
        } else {
            std::fs::copy(entry.path(), &to)?;
        }
    }
    Ok(())
}

/// What each client got done in so many seconds from its first request on, and the longest time without an outcome.
async fn loaded(load: &mut Load<Replicated>, plan: &AttackPlan) -> Result<(Vec<u64>, f64), Failure> {
    const LOOK: Duration = Duration::from_millis(10);
    let controls = Controls::default();
    controls.go_on.set(true);
    let watch = async {
        let began = Instant::now();
        let (mut last, mut changed, mut silence) = (0, began, Duration::ZERO);
        while began.elapsed() < Duration::from_secs(plan.seconds) {
            tokio::time::sleep(LOOK).await;
            let done = controls.progress.get().done;
            if done != last {
                (last, changed) = (done, Instant::now());
            }
            silence = silence.max(changed.elapsed());
        }
        controls.counted.set(true);
        controls.go_on.set(false);
        Ok(silence.as_secs_f64())
    };
    let limit = Duration::from_secs(plan.seconds) + DRAIN;
    let both = async { tokio::try_join!(load.run(&controls), watch) };
    let ((), silence) = tokio::time::timeout(limit, both)
        .await
        .map_err(|_| "requests have no outcome; the servers are stuck or far too slow")??;
    Ok((load.done_of_each(), silence))
}
