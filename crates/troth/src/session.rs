//! A client's session: which client to be, and the connection to the group.

use crate::failure::{Failure, NOT_DONE, USAGE};
use std::fs::File;
use std::time::Duration;
use troth_client::front::{Client, ClientConfig, ConnectError, ReplicaAddress};
use troth_link::LinkKey;
use troth_node::config::{ClientSecret, Cluster, Known, Layout};
use troth_types::ClientId;

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
        patience: Duration,
    ) -> Result<Self, Failure> {
        let (secret, lock) = claim(layout, cluster, wanted)?;
        let client = Client::connect(config(cluster, &secret, patience)).await?;
        Ok(Self { client, _lock: lock })
    }

    /// Connects as the operator.
    pub(crate) async fn open_operator(
        layout: &Layout,
        cluster: &Cluster,
        patience: Duration,
    ) -> Result<Self, Failure> {
        let path = layout.operator_secret();
        let secret = ClientSecret::load_operator(&path, cluster)?;
        let lock = File::open(&path)
            .map_err(|why| Failure::system(&format!("cannot open {}", path.display()), &why))?;
        if lock.try_lock().is_err() {
            return Err(Failure::new(NOT_DONE, "another `troth admin` runs; wait for its end"));
        }
        let client = Client::connect(config(cluster, &secret, patience)).await?;
        Ok(Self { client, _lock: lock })
    }
}

/// The cluster with the replicas and clients that it has now, as far as it is known here.
pub(crate) fn present(layout: &Layout) -> Result<Cluster, Failure> {
    let cluster = Cluster::load(&layout.cluster())?;
    Ok(Known::load(layout, &cluster)?.present(&cluster))
}

/// The secret file of a client, locked: two sessions of one client would overtake each other's
/// request numbers.
fn claim(
    layout: &Layout,
    cluster: &Cluster,
    wanted: Option<ClientId>,
) -> Result<(ClientSecret, File), Failure> {
    let candidates: Vec<ClientId> = match wanted {
        Some(client) => vec![client],
        None => cluster.clients.keys().copied().filter(|id| layout.client_secret(*id).exists()).collect(),
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
        None if candidates.is_empty() => Failure::new(
            USAGE,
            format!("no client of the group has its keys in {}; copy a client's file there", place.display()),
        ),
        None => Failure::new(
            NOT_DONE,
            format!("all {} clients in {} are in use; end one of them", candidates.len(), place.display()),
        ),
    })
}

fn config(cluster: &Cluster, secret: &ClientSecret, patience: Duration) -> ClientConfig {
    let replicas = cluster
        .replicas
        .iter()
        .map(|replica| ReplicaAddress { address: replica.address.clone(), key: LinkKey(replica.link_key) })
        .collect();
    let mut config = ClientConfig::new(secret.client, cluster.group, secret.seed, secret.link, replicas);
    config.limits = cluster.limits;
    config.timing.deadline = u64::try_from(patience.as_micros()).unwrap_or(u64::MAX);
    config
}

impl From<ConnectError> for Failure {
    fn from(why: ConnectError) -> Self {
        let mend = "look with `troth status`; `troth up` starts a whole group (end one that still runs with Ctrl-C first)";
        Self::new(NOT_DONE, format!("{why}\n  mend: {mend}"))
    }
}
