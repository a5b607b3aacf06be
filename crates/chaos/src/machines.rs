//! The cluster's files in a scratch directory, one directory per replica as if each had a machine of
//! its own: its `cluster.toml` has its own address as it is and the others' as the relay's, so that no
//! connection passes beside it. Addresses are no part of the group's name.

use crate::Failure;
use crate::processes::Part;
use crate::relay::{Caller, Relay};
use std::os::unix::fs::chown;
use std::path::{Path, PathBuf};
use troth_client::Acceptance;
use troth_client::front::{ClientConfig, ReplicaAddress};
use troth_disk::Orders;
use troth_link::LinkKey;
use troth_node::config::{
    Auth, ClientSecret, Cluster, Durability, Layout, Plan, Protocol, Service, TrustedHome, ZooKeeper,
    free_ports, make,
};
use troth_types::{ClientId, ReplicaId};

/// Whom the trusted processes run as where we are root: nobody needs to have that number, and nobody should.
const TRUSTED_USER: u32 = 64_777;

/// The files of all.
pub(crate) struct Machines {
    scratch: PathBuf,
    clients: Layout,
    pub(crate) cluster: Cluster,
}

impl Machines {
    /// A new cluster that serves this, with durability `always`, and the relay in front of it. The protocol must take the
    /// proofs of requests.
    pub(crate) async fn make(
        service: Service,
        (protocol, auth): (Protocol, Auth),
        faults: u16,
        clients: u16,
        home: TrustedHome,
    ) -> Result<(Self, Relay), Failure> {
        let scratch = std::env::temp_dir().join(format!("troth-chaos-{}", std::process::id()));
        std::fs::create_dir(&scratch).map_err(|why| {
            format!("cannot make {}: {why}\n  mend: remove it if nothing runs from it", scratch.display())
        })?;
        let replicas = usize::from(protocol.replicas(faults));
        let (trusted, home) = protocol.components(protocol.usual_kind(home), home);
        let real: Vec<String> =
            free_ports(2 * replicas)?.into_iter().map(|port| format!("127.0.0.1:{port}")).collect();
        let plan = Plan {
            protocol,
            auth,
            faults,
            service,
            zookeeper: ZooKeeper::default(),
            trusted,
            trusted_home: home,
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
            let me = ReplicaId(number);
            std::fs::rename(layout.replica(me), machine.replica(me))?;
            if home == TrustedHome::Process {
                let socket = |layout: &Layout| layout.trusted_socket(me).parent().map(Path::to_path_buf);
                std::fs::rename(layout.trusted(me), machine.trusted(me))?;
                std::fs::rename(socket(&layout).unwrap_or_default(), socket(&machine).unwrap_or_default())?;
                give_away(&machine, me)?;
            }
            for part in [Part::Replica, Part::Trusted] {
                Orders::default().write(&Self::orders(machine.root(), part))?;
            }
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

    /// What a client's `--dir` names: its replicas are behind the relay.
    pub(crate) fn clients(&self) -> &Path {
        self.clients.root()
    }

    /// Where the operator's keys are.
    pub(crate) fn operator(&self) -> PathBuf {
        self.clients.operator_secret()
    }

    /// Whether each trusted component has a process of its own.
    pub(crate) fn apart(&self) -> bool {
        self.cluster.trusted_home == TrustedHome::Process
    }

    /// Where a process of the machine with this directory is told what its disk and clock are like.
    pub(crate) fn orders(directory: &Path, part: Part) -> PathBuf {
        directory.join(format!("{}.orders", part.word()))
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
        config.authenticators = self.cluster.auth == Auth::Mac;
        config.limits = self.cluster.limits;
        config.acceptance = match self.cluster.protocol {
            Protocol::MinBft | Protocol::A2mPbftE | Protocol::A2mPbftEa => {
                Acceptance::hybrid(&self.cluster.group)
            }
            Protocol::Pbft => Acceptance::pbft(&self.cluster.group),
        };
        config.primary_shows = self.cluster.protocol.primary_shows();
        config.history = self.cluster.history(&secret.link);
        Ok(config)
    }
}

/// Where we are root the trusted process must not be: its files go to a user of its own.
fn give_away(machine: &Layout, me: ReplicaId) -> Result<(), Failure> {
    if !rustix::process::geteuid().is_root() {
        return Ok(());
    }
    let kept = machine.component(me, TrustedHome::Process);
    for path in [machine.trusted(me), machine.trusted_secret(me)].into_iter().chain(kept) {
        chown(path, Some(TRUSTED_USER), Some(TRUSTED_USER))?;
    }
    Ok(())
}

fn quoted(address: &str) -> String {
    format!("\"{address}\"")
}
