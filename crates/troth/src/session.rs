//! A client's session: which client to be, and the connection to the group.

use crate::failure::{Failure, NOT_DONE, USAGE};
use crate::words::replicas;
use std::fs::File;
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::time::Duration;
use troth_client::Acceptance;
use troth_client::front::{Client, ClientConfig, ConnectError, ReplicaAddress};
use troth_link::LinkKey;
use troth_node::backup::is_backup;
use troth_node::config::{Auth, ClientSecret, Cluster, Durability, Known, Layout, Protocol, TrustedHome};
use troth_types::{ClientId, OPERATOR, ReplicaId};

/// How long a replica's port may take.
const PORT_PATIENCE: Duration = Duration::from_secs(2);

/// How long a group may be out of reach where nobody says how long to wait.
const UNREACHED: Duration = Duration::from_secs(5);
/// Seconds for an answer where nobody says how long to wait.
const USUAL: u64 = 30;

/// How long a session waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Patience {
    /// For the answer to one operation.
    pub(crate) answer: Duration,
    /// For a group that cannot be reached, before a session and during it.
    pub(crate) group: Duration,
}

impl Patience {
    /// So many seconds for either, where somebody has asked for them.
    pub(crate) fn asked(wait: Option<u64>) -> Self {
        match wait.map(Duration::from_secs) {
            Some(wait) => Self { answer: wait, group: wait },
            None => Self::for_answers(Duration::from_secs(USUAL)),
        }
    }

    /// So long for an answer, and no longer than usual for a group that is not there at all.
    pub(crate) fn for_answers(answer: Duration) -> Self {
        Self { answer, group: UNREACHED.min(answer) }
    }
}

/// A connected client, and the lock that keeps others from being the same one.
pub(crate) struct Session {
    pub(crate) client: Client,
    _lock: File,
}

impl Session {
    /// Connects as the client asked for, or as one that no other process is.
    pub(crate) async fn open(
        layout: &Layout,
        cluster: &Cluster,
        wanted: Option<ClientId>,
        patience: Patience,
    ) -> Result<Self, Failure> {
        let (secret, lock) = claim(layout, cluster, wanted)?;
        let client = Client::connect(config(cluster, &secret, patience)).await;
        let client = client.map_err(|why| unreached(cluster, secret.client, &why))?;
        Ok(Self { client, _lock: lock })
    }

    /// As [`Session::open`], for who serves others: a group that is out of reach is waited for, and that is said once.
    pub(crate) async fn open_at_last(
        layout: &Layout,
        cluster: &Cluster,
        wanted: Option<ClientId>,
        patience: Patience,
    ) -> Result<Self, Failure> {
        let (secret, lock) = claim(layout, cluster, wanted)?;
        let mut waits = false;
        loop {
            match Client::connect(config(cluster, &secret, patience)).await {
                Ok(client) => return Ok(Self { client, _lock: lock }),
                Err(why @ ConnectError::Unavailable { .. }) if !waits => {
                    waits = true;
                    let said = unreached(cluster, secret.client, &why).in_dir(Some(layout.root())).message;
                    tracing::warn!("{said}; goes on trying");
                }
                Err(ConnectError::Unavailable { .. }) => {}
                Err(why) => return Err(unreached(cluster, secret.client, &why)),
            }
        }
    }

    /// Connects as the operator.
    pub(crate) async fn open_operator(
        layout: &Layout,
        cluster: &Cluster,
        patience: Patience,
    ) -> Result<Self, Failure> {
        let path = layout.operator_secret();
        let secret = ClientSecret::load_operator(&path, cluster)?;
        let lock = File::open(&path)
            .map_err(|why| Failure::system(&format!("cannot open {}", path.display()), &why))?;
        if lock.try_lock().is_err() {
            return Err(Failure::new(NOT_DONE, "another `troth admin` runs; wait for its end"));
        }
        let client = Client::connect(config(cluster, &secret, patience)).await;
        let client = client.map_err(|why| unreached(cluster, secret.client, &why))?;
        Ok(Self { client, _lock: lock })
    }
}

/// The cluster with the replicas and clients that it has now, as far as it is known here.
pub(crate) fn present(layout: &Layout) -> Result<Cluster, Failure> {
    let cluster = Cluster::load(&layout.cluster())?;
    Ok(Known::load(layout, &cluster)?.present(&cluster))
}

/// Whether a client of the group has its keys here, of whatever use they are: what cannot be looked at may be there.
pub(crate) fn has_keys(layout: &Layout, cluster: &Cluster) -> bool {
    cluster.clients.keys().any(|id| layout.client_secret(*id).try_exists().unwrap_or(true))
}

/// The secret file of a client, locked: two sessions of one client would overtake each other's
/// request numbers.
fn claim(
    layout: &Layout,
    cluster: &Cluster,
    wanted: Option<ClientId>,
) -> Result<(ClientSecret, File), Failure> {
    let known = Known::load(layout, cluster)?;
    let candidates: Vec<ClientId> = match wanted {
        Some(client) if known.configuration.is_removed(client) => return Err(removed(layout, client)),
        Some(client) => vec![client],
        None => {
            let here = |id: &ClientId| layout.client_secret(*id).try_exists().unwrap_or(true);
            cluster.clients.keys().copied().filter(here).collect()
        }
    };
    for id in &candidates {
        let path = layout.client_secret(*id);
        let secret = ClientSecret::load(&path, cluster)?;
        let file = File::open(&path)
            .map_err(|why| Failure::system(&format!("cannot open {}", path.display()), &why))?;
        if file.try_lock().is_ok() {
            return Ok((secret, file));
        }
    }
    let place = layout.root().join("clients");
    Err(match wanted {
        Some(id) => {
            Failure::new(NOT_DONE, format!("another process is client {} now; leave --client away", id.0))
        }
        None if candidates.is_empty() && is_backup(layout.root()) => Failure::of_a_backup(layout.root()),
        None if candidates.is_empty() => Failure::new(
            USAGE,
            format!(
                "no client of the group has its keys in {}; copy a client's file there{}",
                place.display(),
                removed_among(layout, &known)
            ),
        ),
        None => Failure::new(
            NOT_DONE,
            format!(
                "all clients with keys in {} are in use ({}); end one of them, or copy another client's file there",
                place.display(),
                candidates.len()
            ),
        ),
    })
}

/// What is said to a client that is known here to be removed.
fn removed(layout: &Layout, client: ClientId) -> Failure {
    Failure::usage(format!(
        "client {0} was removed by the operator, as {1} says: the group refuses it for ever, and its number is not given \
         again\n  mend: be another client (--client, or leave it away), or have the operator add one: troth admin add-client",
        client.0,
        layout.known().display()
    ))
}

/// Names the removed clients whose keys are here, for whoever wonders why none of them will do.
fn removed_among(layout: &Layout, known: &Known) -> String {
    let clients = known.configuration.clients();
    let names: Vec<String> = clients
        .filter(|(client, entry)| entry.removed && layout.client_secret(*client).exists())
        .map(|(client, _)| client.0.to_string())
        .collect();
    match names.as_slice() {
        [] => String::new(),
        names => format!(" (removed by the operator: {})", names.join(", ")),
    }
}

/// How many replicas a client must be connected to: as many as must say the same to be believed.
pub(crate) fn needed(cluster: &Cluster) -> usize {
    troth_client::believed(&cluster.group, cluster.shared_history().is_some())
}

/// Why a client did not get through. A replica that refuses a client hangs up without a word, and seen from
/// here is not reachable: so where the ports open, that is told apart.
fn unreached(cluster: &Cluster, client: ClientId, why: &ConnectError) -> Failure {
    let ConnectError::Unavailable { unreachable } = why else {
        return Failure::new(NOT_DONE, why.to_string());
    };
    let open: Vec<ReplicaId> = std::thread::scope(|scope| {
        let asked: Vec<_> = unreachable
            .iter()
            .map(|replica| (*replica, scope.spawn(|| opens(&cluster.replica(*replica).address).is_ok())))
            .collect();
        let open = asked
            .into_iter()
            .filter_map(|(replica, opens)| opens.join().expect("trying does not panic").then_some(replica));
        open.collect()
    });
    Failure::new(NOT_DONE, too_few(cluster, client, unreachable, &open))
}

/// What is said where too few replicas take a client's connection, `open` being those of the others at whose ports
/// somebody listens all the same. They are what is wrong where they would make up for it.
pub(crate) fn too_few(
    cluster: &Cluster,
    client: ClientId,
    unreachable: &[ReplicaId],
    open: &[ReplicaId],
) -> String {
    let (n, needed) = (cluster.group.n(), needed(cluster));
    let connected = n - unreachable.len();
    let said = format!(
        "too few replicas are reachable: {connected} of {n}, and {needed} are needed; no connection to {}",
        replicas(unreachable)
    );
    if open.is_empty() || connected + open.len() < needed {
        let start = if is_all_here(cluster) {
            "`troth up` starts a whole group on this machine (end one that still runs with Ctrl-C first)"
        } else {
            "start those that do not answer, each on its machine: `troth trusted`, where it is a process of its own, and \
             `troth replica`"
        };
        return format!("{said}\n  mend: look with `troth status`; {start}{}", lost(cluster));
    }
    let here = replicas(open);
    if client == OPERATOR {
        return format!(
            "{said}, although somebody listens where {here} should: either that is not of this group or not ready yet, or it \
             refuses the operator, who has other keys there\n  mend: look with `troth status`; where they serve, take \
             operator.toml and cluster.toml from one group"
        );
    }
    format!(
        "{said}, although somebody listens where {here} should: either that is not of this group or not ready yet, or it refuses \
         client {}, who has other keys there or was removed by the operator\n  mend: look with `troth status`; where they \
         serve, ask the operator (`troth admin show` lists who was removed)",
        client.0
    )
}

/// What is gone with replicas that have ended, where they keep nothing.
fn lost(cluster: &Cluster) -> String {
    if cluster.durability != Durability::Memory || cluster.trusted_home != TrustedHome::InProcess {
        return String::new();
    }
    let f = cluster.group.f();
    format!(
        ". This group keeps everything in memory: once more than {f} of its replicas have ended, all that it held is lost, and \
         only a new group serves again, empty or from a backup (`troth restore`)"
    )
}

/// Whether the group is one that `troth up` runs: all of it on this machine.
fn is_all_here(cluster: &Cluster) -> bool {
    let is_here = |address: &str| match address.parse::<SocketAddr>() {
        Ok(address) => address.ip().is_loopback(),
        Err(_) => address.starts_with("localhost:"),
    };
    cluster.replicas.iter().all(|replica| is_here(&replica.address))
}

/// Whether somebody listens at an address, or why it seems that nobody does.
pub(crate) fn opens(address: &str) -> Result<(), String> {
    let target = address
        .to_socket_addrs()
        .map_err(|why| format!("its name is not known: {why}"))?
        .next()
        .ok_or("its name stands for no machine")?;
    TcpStream::connect_timeout(&target, PORT_PATIENCE).map(drop).map_err(|why| why.to_string())
}

fn config(cluster: &Cluster, secret: &ClientSecret, patience: Patience) -> ClientConfig {
    let replicas = cluster
        .replicas
        .iter()
        .map(|replica| ReplicaAddress { address: replica.address.clone(), key: LinkKey(replica.link_key) })
        .collect();
    let mut config = ClientConfig::new(secret.client, cluster.group, secret.seed, secret.link, replicas);
    config.authenticators = cluster.auth == Auth::Mac;
    config.limits = cluster.limits;
    config.acceptance = match cluster.protocol {
        Protocol::MinBft | Protocol::A2mPbftE | Protocol::A2mPbftEa => Acceptance::hybrid(&cluster.group),
        Protocol::Pbft => Acceptance::pbft(&cluster.group),
    };
    config.primary_shows = cluster.protocol.primary_shows();
    config.history = cluster.history(&secret.link);
    let micros = |time: Duration| u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
    config.timing.deadline = micros(patience.answer);
    config.timing.unavailable_after = micros(patience.group);
    config
}
