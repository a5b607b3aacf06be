//! A group of one protocol with its clients: many at a time, and one alone.

use super::Cell;
use crate::Failure;
use crate::caller::{Belief, Replicated};
use crate::cli::ProtocolsPlan;
use crate::load::{Controls, Load};
use crate::marks::Mark;
use crate::null::{DRAIN, authenticators, links, start_replicas_with};
use crate::processes::{Scratch, Server};
use crate::protocol::Agreed;
use crate::report::percentile;
use crate::syscalls::{self, Event};
use bytes::Bytes;
use std::time::Duration;
use troth_node::Counters;
use troth_node::config::{ClientSecret, Cluster, Durability};
use troth_types::{ClientId, ReplicaId};

/// How long a load runs before it is measured.
pub(super) const WARM_UP: Duration = Duration::from_millis(300);
/// How long instructions are counted, after what is measured.
pub(super) const COUNTED: Duration = syscalls::SECONDS;

/// A running group.
pub(super) struct Side {
    servers: Vec<Server>,
    many: Load<Replicated>,
    alone: Load<Replicated>,
    _scratch: Scratch,
}

/// What one round showed. What happens is counted in all replicas together.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Figures {
    /// Operations per second.
    pub(crate) rate: f64,
    /// Microseconds that half of the requests of one client alone took at most.
    pub(crate) alone: f64,
    /// Microseconds of processor time of an operation.
    pub(crate) processor: f64,
    /// Instructions of an operation, where the machine counts them.
    pub(crate) instructions: Option<f64>,
    /// Bytes of an operation that anybody sent.
    pub(crate) bytes: f64,
    /// Messages of a batch from replica to replica, with one client alone: nothing is sent again then.
    pub(crate) batch_messages: f64,
    /// Messages of an operation from replica to replica.
    pub(crate) messages: f64,
    /// Calls of a batch to trusted components, with one client alone.
    pub(crate) batch_calls: f64,
    /// Calls of an operation to trusted components.
    pub(crate) calls: f64,
    /// Authenticators of connections of an operation, made and checked.
    pub(crate) authenticators: f64,
    /// Signatures and certificates of an operation, checked: clients' and replicas'.
    pub(crate) signatures: f64,
    /// Operations of a batch.
    pub(crate) batch: f64,
    pub(crate) view_changes: u64,
}

impl Side {
    /// Starts it, for the work of a cell.
    pub(super) async fn start(
        plan: &ProtocolsPlan,
        cell: Cell,
        agreed: Agreed,
        further: &[&str],
    ) -> Result<Self, Failure> {
        // The last client is the one that is alone.
        let scratch = Scratch::new(agreed, plan.clients.connections + 1, Durability::Memory)?;
        let cluster = Cluster::load(&scratch.layout.cluster())?;
        let reply = cell.reply.to_string();
        // A component in the replica's process ends with it, and no log is of use: without one PBFT must keep none either, or
        // its disk would be held against it.
        let servers = start_replicas_with(
            &scratch,
            &cluster,
            &[&["--keeps-nothing", "--result-bytes", &reply], further].concat(),
        )
        .await?;
        let addresses: Vec<(String, ReplicaId)> =
            cluster.group.all().map(|replica| (cluster.replica(replica).address.clone(), replica)).collect();
        let operation = Bytes::from(vec![0; cell.request]);
        let (mut alone, mut many) = (Load::new(operation.clone()), Load::new(operation));
        let belief = Belief::of(&cluster);
        for number in 0..=plan.clients.connections {
            let client = ClientId(u64::from(number) + 1);
            let secret = ClientSecret::load(&scratch.layout.client_secret(client), &cluster)?;
            let caller = Replicated::with(&belief, &secret, authenticators(&cluster, &secret));
            let links = links(&cluster, &secret, &addresses).await?;
            if number == plan.clients.connections {
                alone.add(caller, links, 1);
            } else {
                many.add(caller, links, plan.clients.share(number));
            }
        }
        Ok(Self { servers, many, alone, _scratch: scratch })
    }

    /// Many requests at a time, and then one client alone.
    pub(super) async fn round(&mut self, plan: &ProtocolsPlan) -> Result<Figures, Failure> {
        let many = Duration::from_millis(plan.millis);
        let (mut figures, _) = loaded(&mut self.many, &self.servers, many, true).await?;
        let alone = Duration::from_millis(plan.alone_millis);
        let (single, latency) = loaded(&mut self.alone, &self.servers, alone, false).await?;
        figures.alone = latency;
        figures.batch_messages = single.batch_messages;
        figures.batch_calls = single.batch_calls;
        figures.view_changes += single.view_changes;
        Ok(figures)
    }
}

/// Loads a group for so long; what was found, and the middle latency.
async fn loaded(
    load: &mut Load<Replicated>,
    servers: &[Server],
    measured: Duration,
    counts: bool,
) -> Result<(Figures, f64), Failure> {
    let controls = Controls::default();
    controls.go_on.set(true);
    let watch = async {
        tokio::time::sleep(WARM_UP).await;
        let before = Mark::take(servers, &controls).await?;
        controls.keep.set(true);
        tokio::time::sleep(measured).await;
        controls.keep.set(false);
        let after = Mark::take(servers, &controls).await?;
        let instructions = match counts {
            true => syscalls::per_operation(Event::Instructions, servers, &controls).await?,
            false => None,
        };
        controls.go_on.set(false);
        Ok((before, after, instructions))
    };
    let limit = WARM_UP + measured + COUNTED + DRAIN;
    let both = async { tokio::try_join!(load.run(&controls), watch) };
    let ((), (before, after, instructions)) = tokio::time::timeout(limit, both)
        .await
        .map_err(|_| "requests of a round have no outcome; the servers are stuck or far too slow")??;
    let latency = percentile(&controls.latencies.borrow(), 0.5);
    Ok((figures(&before, &after, instructions), latency))
}

/// What happened between two marks.
fn figures(before: &Mark, after: &Mark, instructions: Option<f64>) -> Figures {
    let operations = (after.progress.done - before.progress.done) as f64;
    let sum = |count: fn(&Counters) -> u64| {
        let all = |mark: &Mark| mark.snapshots.iter().map(|server| count(&server.counters)).sum::<u64>();
        all(after).saturating_sub(all(before))
    };
    let batches = (after.snapshots[0].executed - before.snapshots[0].executed).max(1) as f64;
    let by_clients = after.progress.bytes_out - before.progress.bytes_out;
    let (messages, calls) =
        (sum(|counters| counters.peer_messages_out) as f64, sum(|counters| counters.attestations) as f64);
    Figures {
        rate: operations / after.at.duration_since(before.at).as_secs_f64(),
        alone: 0.0,
        processor: after.servers_cpu.saturating_sub(before.servers_cpu) as f64 / operations,
        instructions,
        bytes: (sum(|counters| counters.bytes_out) + by_clients) as f64 / operations,
        batch_messages: messages / batches,
        messages: messages / operations,
        batch_calls: calls / batches,
        calls: calls / operations,
        authenticators: sum(|counters| counters.sealed + counters.opened) as f64 / operations,
        signatures: sum(|counters| counters.frames_verified + counters.messages_verified) as f64 / operations,
        batch: operations / batches,
        view_changes: sum(|counters| counters.view_changes),
    }
}
