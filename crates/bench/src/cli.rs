//! The command line.

use clap::{Args, Parser, Subcommand, ValueEnum};
use std::path::PathBuf;
use troth_types::ReplicaId;

/// Measures a cluster beside the same service unreplicated.
#[derive(Debug, Parser)]
#[command(name = "troth-bench")]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Measure the service without a state, replicated and unreplicated in turns.
    Null(Plan),
    /// Be one replica of a measured cluster.
    #[command(hide = true)]
    Replica(Server),
    /// Be the unreplicated service.
    #[command(hide = true)]
    Direct(Server),
}

/// What to measure, and for how long.
#[derive(Clone, Debug, Args)]
pub(crate) struct Plan {
    /// Faulty replicas to bear; 2f+1 run.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=10))]
    pub(crate) f: u16,
    /// Clients, each with one connection to every server.
    #[arg(long, default_value_t = 16, value_parser = clap::value_parser!(u16).range(1..=1000))]
    pub(crate) connections: u16,
    /// Requests outstanding, over all clients.
    #[arg(long, default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub(crate) outstanding: u32,
    /// Bytes of one operation.
    #[arg(long, default_value_t = 0, value_parser = clap::value_parser!(u32).range(0..=65_536))]
    pub(crate) bytes: u32,
    /// What the replicas keep; `always` measures what that costs, beside `memory` and beside the disk's own sync.
    #[arg(long, value_enum, default_value = "memory")]
    pub(crate) durability: DurabilityName,
    /// Seconds measured per round.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..=60))]
    pub(crate) seconds: u64,
    /// Rounds of each kind, in turns.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=20))]
    pub(crate) rounds: u32,
    /// End with the result as one JSON object on the last line.
    #[arg(long)]
    pub(crate) json: bool,
}

/// See [`troth_node::config::Durability`].
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum DurabilityName {
    /// Everything is on disk before anything that depends on it leaves.
    Always,
    /// Nothing is synced.
    Memory,
}

impl Plan {
    /// Requests that each client has outstanding; the first ones take what does not divide.
    pub(crate) fn share(&self, client: u16) -> u32 {
        let connections = u32::from(self.connections);
        self.outstanding / connections + u32::from(u32::from(client) < self.outstanding % connections)
    }
}

/// Where a server finds its configuration.
#[derive(Clone, Debug, Args)]
pub(crate) struct Server {
    /// The cluster's directory.
    #[arg(long)]
    pub(crate) dir: PathBuf,
    /// Which replica's keys to use.
    #[arg(long, default_value_t = 0)]
    pub(crate) id: u16,
    /// Where to listen for clients, for the unreplicated service.
    #[arg(long, default_value = "")]
    pub(crate) address: String,
    /// Where to tell the counters, for the unreplicated service.
    #[arg(long, default_value = "")]
    pub(crate) http: String,
}

impl Server {
    /// The replica's number.
    pub(crate) fn id(&self) -> ReplicaId {
        ReplicaId(self.id)
    }
}
