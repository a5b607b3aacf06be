//! The measurement: both services run all the time, and rounds on one and the other take turns, so
//! that a machine that drifts drifts for both.

use crate::Failure;
use crate::caller::{Belief, Caller, Plain, Replicated};
use crate::cli::Plan;
use crate::load::{Controls, Load};
use crate::marks::{Mark, ask};
use crate::processes::{Scratch, Server};
use crate::protocol::Agreed;
use crate::report::{Round, report};
use crate::syscalls::{self, Event};
use bytes::Bytes;
use std::time::Duration;
use tokio::task::LocalSet;
use troth_auth::{Authenticators, Ed25519Signer, PairKey};
use troth_link::{FRAME_TAGS, Identity, LinkKey, PeerId, Settings, connect};
use troth_node::config::{Auth, ClientSecret, Cluster, Durability};
use troth_types::{ClientId, ReplicaId};

/// How long each round runs before it is measured.
pub(crate) const WARM_UP: Duration = Duration::from_secs(1);
/// What starting, connecting and draining may take besides the rounds.
pub(crate) const OVERHEAD: Duration = Duration::from_secs(60);
/// How long the last outcomes of a round may take.
pub(crate) const DRAIN: Duration = Duration::from_secs(20);

/// Measures, prints, and tells whether the claim holds.
pub(crate) fn run(plan: &Plan) -> Result<bool, Failure> {
    let rounds = Duration::from_secs(plan.seconds) + WARM_UP;
    let limit = rounds * (2 * plan.rounds) + OVERHEAD;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let measured = LocalSet::new().block_on(&runtime, async {
        tokio::time::timeout(limit, measure(plan))
            .await
            .unwrap_or_else(|_| Err(format!("not done after {} s", limit.as_secs()).into()))
    });
    let (replicated, direct) = measured?;
    Ok(report(plan, &replicated, &direct))
}

async fn measure(plan: &Plan) -> Result<(Vec<Round>, Vec<Round>), Failure> {
    let agreed = Agreed::in_process(plan.protocol, plan.f);
    let scratch = Scratch::new(agreed, plan.clients.connections, Durability::Memory)?;
    let cluster = Cluster::load(&scratch.layout.cluster())?;
    let delay = plan.trusted_delay.to_string();
    let replicas = start_replicas_with(&scratch, &cluster, &["--trusted-delay", &delay]).await?;
    let direct = [start_direct(&scratch).await?];

    let addresses: Vec<(String, ReplicaId)> =
        cluster.group.all().map(|replica| (cluster.replica(replica).address.clone(), replica)).collect();
    let operation = Bytes::from(vec![0; plan.bytes as usize]);
    let mut many = Load::new(operation.clone());
    let mut one = Load::new(operation);
    let belief = Belief::of(&cluster);
    for number in 0..plan.clients.connections {
        let client = ClientId(u64::from(number) + 1);
        let secret = ClientSecret::load(&scratch.layout.client_secret(client), &cluster)?;
        let signer = || Ed25519Signer::from_seed(secret.seed);
        let caller = Replicated::new(&belief, &secret);
        many.add(caller, links(&cluster, &secret, &addresses).await?, plan.clients.share(number));
        let caller = Plain::new(cluster.group, client, cluster.limits, signer());
        let only = [(scratch.direct.0.clone(), ReplicaId(0))];
        one.add(caller, links(&cluster, &secret, &only).await?, plan.clients.share(number));
    }

    let (mut replicated, mut unreplicated) = (Vec::new(), Vec::new());
    for number in 1..=plan.rounds {
        replicated.push(round(&mut many, &replicas, plan.seconds).await?);
        say(number, "replicated", replicated.last());
        unreplicated.push(round(&mut one, &direct, plan.seconds).await?);
        say(number, "unreplicated", unreplicated.last());
    }
    Ok((replicated, unreplicated))
}

/// Starts the replicas of a cluster and waits until they know each other.
pub(crate) async fn start_replicas(scratch: &Scratch, cluster: &Cluster) -> Result<Vec<Server>, Failure> {
    start_replicas_with(scratch, cluster, &[]).await
}

/// The same with these words more for each of them.
pub(crate) async fn start_replicas_with(
    scratch: &Scratch,
    cluster: &Cluster,
    more: &[&str],
) -> Result<Vec<Server>, Failure> {
    let dir = scratch.layout.root().to_string_lossy();
    let mut servers = Vec::new();
    for replica in cluster.group.all() {
        let http = cluster.replica(replica).http.clone().expect("made with one");
        let id = replica.0.to_string();
        let words = [&["replica", "--dir", &dir, "--id", &id], more].concat();
        servers.push(Server::start(&words, &scratch.layout.replica(replica), &http)?);
    }
    let others = cluster.group.n() - 1;
    for server in &mut servers {
        server.wait(|snapshot| snapshot.peers.len() == others).await?;
    }
    Ok(servers)
}

pub(crate) async fn start_direct(scratch: &Scratch) -> Result<Server, Failure> {
    let (address, http) = &scratch.direct;
    let dir = scratch.layout.root().to_string_lossy();
    let words = ["direct", "--dir", &dir, "--address", address, "--http", http];
    let mut server = Server::start(&words, scratch.layout.root(), http)?;
    server.wait(|_| true).await?;
    Ok(server)
}

/// A client's connections to these servers.
pub(crate) async fn links(
    cluster: &Cluster,
    secret: &ClientSecret,
    servers: &[(String, ReplicaId)],
) -> Result<Vec<(troth_link::LinkReader, troth_link::LinkWriter)>, Failure> {
    let identity = Identity::new(PeerId::Client(secret.client), secret.link);
    let settings = Settings::new(cluster.group.id());
    let mut links = Vec::new();
    for (address, replica) in servers {
        let key = LinkKey(cluster.replica(*replica).link_key);
        links.push(connect(address.as_str(), &identity, &key, &settings).await?);
    }
    Ok(links)
}

/// The keys that a client shares with the replicas, where the group takes authenticators.
pub(crate) fn authenticators(cluster: &Cluster, secret: &ClientSecret) -> Option<Authenticators> {
    if cluster.auth != Auth::Mac {
        return None;
    }
    let identity = Identity::new(PeerId::Client(secret.client), secret.link);
    let key = |replica| identity.shared_with(FRAME_TAGS, &LinkKey(cluster.replica(replica).link_key));
    let keys = cluster.group.all().map(|replica| PairKey::new(&key(replica).expect("made by this program")));
    Some(Authenticators::new(keys))
}

/// Why a round failed, with what each server says of itself.
async fn blamed(why: Failure, servers: &[Server]) -> Failure {
    let mut all = why.to_string();
    for (number, server) in servers.iter().enumerate() {
        let state = match ask(&server.http).await {
            Ok(said) => format!("{} clients, view {}, executed {}", said.clients, said.view, said.executed),
            Err(why) => format!("does not answer: {why}"),
        };
        let said = server.said();
        let lines: Vec<&str> = said.lines().collect();
        let last = lines[lines.len().saturating_sub(5)..].join("\n    ");
        all += &format!("\n  server {number}: {state}\n    {last}");
    }
    all.into()
}

/// One warm-up and one measurement of so many seconds.
pub(crate) async fn round<C: Caller>(
    load: &mut Load<C>,
    servers: &[Server],
    seconds: u64,
) -> Result<Round, Failure> {
    let controls = Controls::default();
    controls.go_on.set(true);
    let watch = async {
        tokio::time::sleep(WARM_UP).await;
        let before = Mark::take(servers, &controls).await?;
        controls.keep.set(true);
        tokio::time::sleep(Duration::from_secs(seconds)).await;
        controls.keep.set(false);
        let after = Mark::take(servers, &controls).await?;
        let calls = syscalls::per_operation(Event::Calls, servers, &controls).await?;
        controls.go_on.set(false);
        Ok((before, after, calls))
    };
    let limit = WARM_UP + Duration::from_secs(seconds) + DRAIN;
    let both = async { tokio::try_join!(load.run(&controls), watch) };
    let done = tokio::time::timeout(limit, both).await.unwrap_or_else(|_| {
        Err("requests of a round have no outcome; the servers are stuck or far too slow".into())
    });
    let ((), (before, after, calls)) = match done {
        Ok(done) => done,
        Err(why) => return Err(blamed(why, servers).await),
    };
    if after.progress.done == before.progress.done {
        return Err(blamed("nothing was done in a round".into(), servers).await);
    }
    let mut round = Round::new(&before, &after, &controls.latencies.borrow());
    round.system_calls = calls;
    Ok(round)
}

fn say(number: u32, service: &str, round: Option<&Round>) {
    if let Some(round) = round {
        println!("round {number}, {service:<12} {:>9.0} operations per second", round.rate);
    }
}
