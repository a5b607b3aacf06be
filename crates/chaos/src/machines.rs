//! The cluster's files in a scratch directory, one directory per replica as if each had a machine of
//! its own: its `cluster.toml` has its own address as it is and the others' as the relay's, so that no
//! connection passes beside it. Addresses are no part of the group's name.

use crate::Failure;
use crate::relay::{Caller, Relay};
use std::path::{Path, PathBuf};
use troth_client::front::{ClientConfig, ReplicaAddress};
use troth_link::LinkKey;
use troth_node::config::{
    ClientSecret, Cluster, Durability, Layout, Plan, Service, TrustedHome, TrustedKind, free_ports, make,
};
use troth_types::{ClientId, ReplicaId};

/// The files of all.
pub(crate) struct Machines {
    scratch: PathBuf,
    clients: Layout,
    pub(crate) cluster: Cluster,
}

impl Machines {
    /// A new cluster of keys and values with durability `always`, and the relay in front of it.
    pub(crate) async fn make(faults: u16, clients: u16) -> Result<(Self, Relay), Failure> {
        let scratch = std::env::temp_dir().join(format!("troth-chaos-{}", std::process::id()));
        std::fs::create_dir(&scratch).map_err(|why| {
            format!("cannot make {}: {why}\n  mend: remove it if nothing runs from it", scratch.display())
        })?;
        let replicas = 2 * usize::from(faults) + 1;
        let real: Vec<String> =
            free_ports(2 * replicas)?.into_iter().map(|port| format!("127.0.0.1:{port}")).collect();
        let plan = Plan {
            faults,
            service: Service::Kv,
            trusted: TrustedKind::Hmac,
            trusted_home: TrustedHome::InProcess,
            durability: Durability::Always,
            clients,
            addresses: real.chunks_exact(2).map(|pair| (pair[0].clone(), pair[1].clone())).collect(),
            timing: String::new(),
        };
        let layout = Layout::new(scratch.join("made"));
        make(&layout, &plan)?;
        let targets: Vec<String> = plan.addresses.iter().map(|(address, _)| address.clone()).collect();
        let relay = Relay::start(&targets).await?;

        let public = std::fs::read_to_string(layout.cluster())?;
        let seen_by = |caller: Caller| {
            (0u16..).zip(&targets).fold(public.clone(), |text, (to, target)| match caller {
                Caller::Replica(own) if own == to => text,
                _ => text.replace(&quoted(target), &quoted(relay.address(caller, to))),
            })
        };
        for (number, _) in (0u16..).zip(&targets) {
            let machine = Layout::new(scratch.join(format!("machine-{number}")));
            std::fs::create_dir(machine.root())?;
            std::fs::rename(layout.replica(ReplicaId(number)), machine.replica(ReplicaId(number)))?;
            std::fs::write(machine.cluster(), seen_by(Caller::Replica(number)))?;
        }
        std::fs::write(layout.cluster(), seen_by(Caller::Clients))?;
        let cluster = Cluster::load(&layout.cluster())?;
        Ok((Self { scratch, clients: layout, cluster }, relay))
    }

    /// Where everything is.
    pub(crate) fn scratch(&self) -> &Path {
        &self.scratch
    }

    /// What `troth replica --dir` needs for this replica.
    pub(crate) fn of(&self, replica: u16) -> PathBuf {
        self.scratch.join(format!("machine-{replica}"))
    }

    /// A client that calls the relay.
    pub(crate) fn client(&self, number: u16) -> Result<ClientConfig, Failure> {
        let file = self.clients.client_secret(ClientId(number.into()));
        let secret = ClientSecret::load(&file, &self.cluster)?;
        let replicas = self.cluster.replicas.iter().map(|replica| ReplicaAddress {
            address: replica.address.clone(),
            key: LinkKey(replica.link_key),
        });
        let (group, replicas) = (self.cluster.group, replicas.collect());
        let mut config = ClientConfig::new(secret.client, group, secret.seed, secret.link, replicas);
        config.limits = self.cluster.limits;
        Ok(config)
    }
}

fn quoted(address: &str) -> String {
    format!("\"{address}\"")
}
