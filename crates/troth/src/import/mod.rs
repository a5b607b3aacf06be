//! `troth import`: moves the data of another system into a group.
//!
//! | module | subject |
//! | --- | --- |
//! | `place` | where an ensemble is |
//! | `side` | one of the two trees, node by node |
//! | `walk` | both at once |
//! | `change` | what a walk changes |
//! | `work` | the import, the comparison, and what is said of them |
//! | `tally` | what is counted |

mod change;
pub(crate) mod place;
mod side;
mod tally;
mod walk;
mod work;

use crate::cli::Dir;
use crate::failure::{Failure, NOT_DONE};
use crate::gateway::{self, passwords};
use crate::session::{Patience, Session};
use clap::{Args, Subcommand};
use place::{Place, Told};
use side::Side;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::net::TcpSocket;
use troth_node::config::Layout;
use troth_types::ClientId;
use troth_zookeeper_client::{Identity, Tls};
use troth_zookeeper_gateway::Settings;
use walk::Extra;
use work::Plan;

/// How long the group may take to answer one operation.
const ANSWER: Duration = Duration::from_secs(30);

#[derive(Args, Debug)]
pub(crate) struct Import {
    #[command(flatten)]
    pub(crate) dir: Dir,
    #[command(subcommand)]
    kind: Kind,
}

#[derive(Debug, Subcommand)]
enum Kind {
    /// Bring what a ZooKeeper ensemble holds into a group, and compare both until they are equal.
    #[command(after_help = "\
Examples:
  troth import zookeeper --from zk1:2181,zk2:2181,zk3:2181 --dry-run
  troth import zookeeper --from zk1:2181,zk2:2181 --from-digest there --to-digest here
  troth import zookeeper --from zk1:2181 --path /app          one subtree
  troth import zookeeper --from zk1:2181 --kind '/locks/*=container' --kind /cache/hot=ttl:60000
  troth import zookeeper --from zk1:2181/app                  what clients with this chroot see
  troth import zookeeper --from zk1:2281 --from-tls ca.pem    over TLS

Carried: nodes with their data and access control lists, quotas, and the counters that
sequential names come from, so that no name is given twice. ZooKeeper's servers do not tell
containers and nodes with a time to live from nodes that stay: name them with --kind.
Left out: ephemeral nodes (their sessions are not here; counted), and what tells a node's
history: versions, transaction numbers and times begin anew.

Safe procedure:
  1. Import while the ensemble is in use, as often as you like. A run writes only what is
     not equal yet, so one that broke off, or the next one, goes on where the last one was.
  2. Stop all clients that write to the ensemble.
  3. Import once more, with --delete-extra: nodes that are gone there go here. Exit code 0
     means that both trees were compared and are equal.
  4. Start the clients with the addresses of the gateways in their connection strings.

Exit code 1 where the trees are not equal in the end, a node could not be read or written, or
the ensemble was still changing; each such node is named. docs/operating/zookeeper.md says more.")]
    Zookeeper(ZooKeeper),
}

#[derive(Args, Debug)]
struct ZooKeeper {
    /// The ensemble's servers, of which the first that answers is read; a path behind them is taken for the root.
    #[arg(long, value_name = "HOST:PORT,…[/CHROOT]", value_parser = place::parse)]
    from: Place,
    /// Only this node, what is below it, and the nodes above it where there are none yet.
    #[arg(long, value_name = "PATH", value_parser = place::path, default_value = "/")]
    path: String,
    /// A gateway of the group to write through; a client of the group in --dir where absent.
    #[arg(long, value_name = "HOST:PORT,…", value_parser = place::parse, conflicts_with = "client")]
    to: Option<Place>,
    /// The group's client to be, whose keys are in clients/client-N.toml below --dir; a free one where absent. One process
    /// at a time may be a client.
    #[arg(long)]
    client: Option<u64>,
    /// A file of those to be at the ensemble: a line name:password each, readable by its user only. With its superuser
    /// (super:…) all nodes are readable, whoever they belong to.
    #[arg(long, value_name = "FILE")]
    from_digest: Option<PathBuf>,
    /// The same for the group, not for a gateway (--to) on another machine, where it would go in clear; its superuser may write all nodes.
    #[arg(long, value_name = "FILE")]
    to_digest: Option<PathBuf>,
    /// Connect to the ensemble with TLS: the authorities of its servers' certificates, as PEM.
    #[arg(long, value_name = "FILE")]
    from_tls: Option<PathBuf>,
    /// The certificate to show to the ensemble, and those between it and an authority, as PEM.
    #[arg(long, value_name = "FILE", requires_all = ["from_tls", "from_tls_key"])]
    from_tls_certificates: Option<PathBuf>,
    /// Its private key, as PEM.
    #[arg(long, value_name = "FILE", requires = "from_tls_certificates")]
    from_tls_key: Option<PathBuf>,
    /// Remove nodes of the group that the ensemble does not have, below --path, and make those anew that are ephemeral here.
    #[arg(long)]
    delete_extra: bool,
    /// Let nodes be that only the group has, and take them for no difference.
    #[arg(long, conflicts_with = "delete_extra")]
    keep_extra: bool,
    /// What a node is that stays in the ensemble for all that its servers tell; they hide containers and times to live. PATH as
    /// clients see it; with /* at its end, all children of the node before that. Others come to stay. The group does not tell either:
    /// what is there already stays what it is, and is counted.
    #[arg(long = "kind", value_name = "PATH=container|ttl:MS", value_parser = place::told)]
    kinds: Vec<Told>,
    /// Write nothing, and say what is not equal.
    #[arg(long)]
    dry_run: bool,
    /// Write nothing, and compare as at the end of an import: exit code 1 where the trees are not equal.
    #[arg(long, conflicts_with = "dry_run")]
    compare_only: bool,
}

impl ZooKeeper {
    fn tls(&self) -> Result<Option<Tls>, Failure> {
        let Some(authorities) = &self.from_tls else { return Ok(None) };
        // The command line has either both of these or none.
        let identity = self.from_tls_certificates.clone().zip(self.from_tls_key.clone());
        let identity = identity.map(|(certificates, key)| Identity { certificates, key });
        let tls = Tls::load(authorities, identity.as_ref());
        tls.map(Some).map_err(|why| Failure::usage(format!("certificates: {why}")))
    }

    fn plan(&self) -> Plan {
        let extra = match (self.delete_extra, self.keep_extra) {
            (true, _) => Extra::Delete,
            (_, true) => Extra::Keep,
            _ => Extra::Report,
        };
        Plan {
            path: self.path.clone(),
            extra,
            told: self.kinds.clone(),
            dry_run: self.dry_run,
            compare_only: self.compare_only,
        }
    }
}

/// Who to be, as `name:password`.
fn digests(file: Option<&Path>) -> Result<Vec<String>, Failure> {
    let users = file.map(passwords::read).transpose()?.unwrap_or_default();
    Ok(users.into_iter().map(|(name, password)| format!("{name}:{password}")).collect())
}

pub(crate) fn run(import: &Import) -> Result<(), Failure> {
    let Kind::Zookeeper(asked) = &import.kind;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|why| Failure::system("cannot start", &why))?;
    runtime.block_on(bring(asked, &import.dir.dir))
}

async fn bring(asked: &ZooKeeper, dir: &Path) -> Result<(), Failure> {
    let (there, here) = (digests(asked.from_digest.as_deref())?, digests(asked.to_digest.as_deref())?);
    let tls = asked.tls()?;
    if let Some(Place { chroot, .. }) = &asked.to
        && !chroot.is_empty()
    {
        return Err(Failure::usage(format!(
            "--to: {chroot} is not for a destination; nodes keep their paths"
        )));
    }
    if let Some(Place { servers, .. }) = &asked.to
        && let Some(far) = servers.iter().find(|server| !place::is_here(server))
        && !here.is_empty()
    {
        return Err(Failure::usage(format!(
            "--to-digest: whoever is on the way to {far} would read the password, since --to goes without TLS\n  mend: leave --to \
             out and be a client of the group (--dir), or run the import where a gateway is, with its address on the loopback"
        )));
    }
    let from = &asked.from;
    let mut source = Side::open("source", &from.servers, tls.as_ref(), &there, 1).await?;
    source.prefix.clone_from(&from.chroot);
    let watcher = work::Watcher { servers: &from.servers, tls: tls.as_ref(), digests: &there };
    let plan = asked.plan();
    if let Some(to) = &asked.to {
        let target = Side::open("destination", &to.servers, None, &here, 1).await?;
        return work::run(&plan, source, target, &watcher).await;
    }
    let layout = Layout::new(dir);
    let cluster = gateway::present(&layout)?;
    let packet_bytes = gateway::most_packet_bytes(&cluster);
    // A gateway of our own, for nobody else: it takes one connection, from a socket that is bound before.
    let here_only = SocketAddr::from(([127, 0, 0, 1], 0));
    let bound = || {
        let socket = TcpSocket::new_v4()?;
        socket.bind(here_only)?;
        let own = socket.local_addr()?;
        Ok((socket, own))
    };
    let (socket, own) = bound().map_err(|why: std::io::Error| Failure::system("cannot connect", &why))?;
    let settings = Settings {
        listen: vec![here_only],
        only: Some(own),
        limits: cluster.limits,
        packet_bytes,
        connections: 1,
        ..Settings::default()
    };
    let session =
        Session::open(&layout, &cluster, asked.client.map(ClientId), Patience::for_answers(ANSWER)).await?;
    let gateway = troth_zookeeper_gateway::Gateway::start(settings, session.client.clone()).await;
    let gateway = gateway.map_err(|why| Failure::new(NOT_DONE, why.to_string()))?;
    let address = gateway.addresses().first().copied().unwrap_or(here_only);
    let mut target = Side::open_own("destination", socket, address, &here).await?;
    target.packet_bytes = packet_bytes;
    let done = work::run(&plan, source, target, &watcher).await;
    gateway.stop().await;
    session.client.close().await;
    done
}
