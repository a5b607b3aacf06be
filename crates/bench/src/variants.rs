//! What is measured beside what: a cluster with its trusted components here or there, and the same service
//! unreplicated, each with clients of its own.

use crate::Failure;
use crate::caller::{Belief, Caller, Plain, Replicated};
use crate::cli::Clients;
use crate::load::{Load, Operations};
use crate::null::{links, round, start_direct, start_replicas};
use crate::processes::{Scratch, Server};
use crate::protocol::Agreed;
use crate::report::Round;
use bytes::Bytes;
use troth_auth::Ed25519Signer;
use troth_kv::Operation;
use troth_node::config::{ClientSecret, Cluster, Durability, Service, TrustedHome};
use troth_types::{ClientId, ReplicaId, Wire};

/// A cluster whose trusted components are processes of their own.
pub(crate) const OWN_PROCESS: &str = "component in its own process";
/// A cluster whose trusted components are in the replicas' processes.
pub(crate) const IN_PROCESS: &str = "component in process";
/// The same service without a cluster.
pub(crate) const UNREPLICATED: &str = "unreplicated";

/// Keys that are written: enough that they do not stand in one page, few enough to be there from the start.
const KEYS: u64 = 10_000;

/// What is served, and who asks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Setup {
    pub(crate) service: Service,
    pub(crate) durability: Durability,
    /// Of an operation of the null service, or of a value.
    pub(crate) bytes: usize,
    pub(crate) clients: Clients,
}

/// Servers with their clients, and what was measured of them.
pub(crate) struct Running {
    pub(crate) name: &'static str,
    pub(crate) servers: Vec<Server>,
    pub(crate) load: Either,
    pub(crate) rounds: Vec<Round>,
    _scratch: Scratch,
}

/// The clients of one or the other.
pub(crate) enum Either {
    Replicated(Load<Replicated>),
    Plain(Load<Plain>),
}

impl Running {
    /// One warm-up and so many measured seconds with the planned requests outstanding.
    pub(crate) async fn round(&mut self, seconds: u64) -> Result<Round, Failure> {
        match &mut self.load {
            Either::Replicated(load) => round(load, &self.servers, seconds).await,
            Either::Plain(load) => round(load, &self.servers, seconds).await,
        }
    }
}

/// Starts a cluster.
pub(crate) async fn replicated(setup: Setup, name: &'static str, agreed: Agreed) -> Result<Running, Failure> {
    let scratch = Scratch::serving(setup.service, agreed, setup.clients.connections, setup.durability)?;
    let cluster = Cluster::load(&scratch.layout.cluster())?;
    let servers = start_replicas(&scratch, &cluster).await?;
    let addresses: Vec<(String, ReplicaId)> =
        cluster.group.all().map(|replica| (cluster.replica(replica).address.clone(), replica)).collect();
    let belief = Belief::of(&cluster);
    let load = load(setup, &scratch, &cluster, &addresses, |secret| Replicated::new(&belief, secret));
    let load = Either::Replicated(load.await?);
    Ok(Running { name, servers, load, rounds: Vec::new(), _scratch: scratch })
}

/// Starts the unreplicated service.
pub(crate) async fn plain(setup: Setup) -> Result<Running, Failure> {
    let (clients, agreed) = (setup.clients.connections, Agreed::minbft(1, TrustedHome::InProcess));
    let scratch = Scratch::serving(setup.service, agreed, clients, setup.durability)?;
    let cluster = Cluster::load(&scratch.layout.cluster())?;
    let servers = vec![start_direct(&scratch).await?];
    let only = [(scratch.direct.0.clone(), ReplicaId(0))];
    let load = load(setup, &scratch, &cluster, &only, |secret| {
        Plain::new(cluster.group, secret.client, cluster.limits, Ed25519Signer::from_seed(secret.seed))
    });
    let load = Either::Plain(load.await?);
    Ok(Running { name: UNREPLICATED, servers, load, rounds: Vec::new(), _scratch: scratch })
}

async fn load<C: Caller>(
    setup: Setup,
    scratch: &Scratch,
    cluster: &Cluster,
    servers: &[(String, ReplicaId)],
    caller: impl Fn(&ClientSecret) -> C,
) -> Result<Load<C>, Failure> {
    let mut load = Load::of(operations(setup));
    for number in 0..setup.clients.connections {
        let client = ClientId(u64::from(number) + 1);
        let secret = ClientSecret::load(&scratch.layout.client_secret(client), cluster)?;
        let caller = caller(&secret);
        load.add(caller, links(cluster, &secret, servers).await?, setup.clients.share(number));
    }
    Ok(load)
}

/// What the clients ask for.
fn operations(setup: Setup) -> Operations {
    match setup.service {
        Service::Null => {
            let operation = Bytes::from(vec![0; setup.bytes]);
            Box::new(move || operation.clone())
        }
        Service::Kv => {
            let value = Bytes::from(vec![7; setup.bytes]);
            let mut state: u64 = 1;
            Box::new(move || {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                let key = Bytes::from(format!("key-{:012}", (state >> 33) % KEYS));
                Operation::Put { key, value: value.clone() }.to_wire()
            })
        }
        Service::ZooKeeper => unreachable!("no command asks for its load here"),
    }
}
