//! The command line.

mod hostile;

use clap::{Args, Parser, Subcommand, ValueEnum};
#[cfg(feature = "adversaries")]
pub(crate) use hostile::TyrannyName;
pub(crate) use hostile::{Attack, AttackPlan, FloodKind, FloodPlan, Flooder};
use std::path::PathBuf;
use troth_node::config::Protocol;
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
    /// Measure honest clients while others flood the group, and while the same flood goes to a socket that
    /// discards it.
    Flood(FloodPlan),
    /// Measure every gate: clusters beside the same service unreplicated, and beside what the machine can do.
    Suite(SuitePlan),
    /// Measure latencies of requests that arrive whether or not others are answered, at several rates.
    Open(OpenPlan),
    /// Measure every protocol beside PBFT.
    Protocols {
        /// How much, and for how long.
        #[command(flatten)]
        plan: ProtocolsPlan,
        /// Which part of it.
        #[command(flatten)]
        part: ProtocolsPart,
    },
    /// Measure what slower trusted components cost the protocols of the A2M paper (its table 2).
    Delays(ProtocolsPlan),
    /// Measure a state of millions of keys.
    Large(LargePlan),
    /// Measure durable writes beside etcd's and ZooKeeper's.
    Peers(PeersPlan),
    /// Measure the coordination service beside Apache ZooKeeper.
    #[command(name = "zookeeper")]
    ZooKeeper(ZooKeeperPlan),
    /// Count what an operation costs the servers, item by item.
    Cost(CostPlan),
    /// Send back what comes.
    #[command(hide = true)]
    Echo,
    /// Measure honest clients in a group with an attacker that nobody can prove to be one, and in one without.
    Attacks(AttackPlan),
    /// Flood somebody.
    #[command(hide = true)]
    Flooder(Flooder),
    /// Take every caller and everything it sends, and say nothing.
    #[command(hide = true)]
    Silent(Server),
    /// Be one replica of a measured cluster.
    #[command(hide = true)]
    Replica(Server),
    /// Be the unreplicated service.
    #[command(hide = true)]
    Direct(Server),
}

/// Clients that keep requests outstanding.
#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct Clients {
    /// Honest clients, each with one connection to every server.
    #[arg(long, default_value_t = 16, value_parser = clap::value_parser!(u16).range(1..=1000))]
    pub(crate) connections: u16,
    /// Requests outstanding, over all honest clients.
    #[arg(long, default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub(crate) outstanding: u32,
}

impl Clients {
    /// Requests that each client has outstanding; the first ones take what does not divide.
    pub(crate) fn share(self, client: u16) -> u32 {
        let connections = u32::from(self.connections);
        self.outstanding / connections + u32::from(u32::from(client) < self.outstanding % connections)
    }
}

/// What to measure, and for how long.
#[derive(Clone, Debug, Args)]
pub(crate) struct Plan {
    /// How the replicas agree.
    #[arg(long, default_value_t)]
    pub(crate) protocol: Protocol,
    /// Faulty replicas to bear; 2f+1 run with minbft, 3f+1 with pbft.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=10))]
    pub(crate) f: u16,
    /// Who asks.
    #[command(flatten)]
    pub(crate) clients: Clients,
    /// Bytes of one operation.
    #[arg(long, default_value_t = 0, value_parser = clap::value_parser!(u32).range(0..=65_536))]
    pub(crate) bytes: u32,
    /// What every call of the trusted component takes at least, in microseconds: the group with a slower component
    /// (A2M paper, table 2).
    #[arg(long, default_value_t = 0, value_parser = clap::value_parser!(u64).range(0..=1_000_000))]
    pub(crate) trusted_delay: u64,
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

impl Plan {
    /// Whether a delay of the trusted component is measured here.
    pub(crate) fn delays_something(&self) -> bool {
        self.protocol == Protocol::MinBft && self.durability == DurabilityName::Memory
    }
}

/// For how long every protocol is measured.
#[derive(Clone, Debug, Args)]
pub(crate) struct ProtocolsPlan {
    /// Faulty replicas to bear, each by itself; 1 and 2 where not given.
    #[arg(long, value_delimiter = ',', value_parser = clap::value_parser!(u16).range(1..=3))]
    pub(crate) f: Vec<u16>,
    /// Who asks, where many do.
    #[command(flatten)]
    pub(crate) clients: Clients,
    /// Rounds of each protocol, in turns.
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=40))]
    pub(crate) pairs: u32,
    /// Milliseconds measured per round with many requests outstanding.
    #[arg(long, default_value_t = 1500, value_parser = clap::value_parser!(u64).range(100..=60_000))]
    pub(crate) millis: u64,
    /// Milliseconds measured per round with one client alone.
    #[arg(long, default_value_t = 700, value_parser = clap::value_parser!(u64).range(100..=60_000))]
    pub(crate) alone_millis: u64,
    /// End with the result as one JSON object on the last line.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Which of the protocols and of their work is measured.
#[derive(Clone, Debug, Args)]
pub(crate) struct ProtocolsPart {
    /// Kilobytes of requests and replies; all three where not given.
    #[arg(long, value_delimiter = ',', value_parser = ["0/0", "4/0", "0/4"])]
    pub(crate) cell: Vec<String>,
    /// What is measured beside PBFT; everything that is served where not given.
    #[arg(long, value_delimiter = ',')]
    pub(crate) protocol: Vec<Protocol>,
}

/// How large a state is measured.
#[derive(Clone, Debug, Args)]
pub(crate) struct LargePlan {
    /// Keys, of 16 bytes.
    #[arg(long, default_value_t = 10_000_000, value_parser = clap::value_parser!(u64).range(1000..=100_000_000))]
    pub(crate) keys: u64,
    /// Bytes of each value.
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u32).range(0..=65_536))]
    pub(crate) bytes: u32,
    /// Seconds in which pauses are looked for.
    #[arg(long, default_value_t = 30, value_parser = clap::value_parser!(u64).range(1..=600))]
    pub(crate) seconds: u64,
    /// End with the result as one JSON object on the last line.
    #[arg(long)]
    pub(crate) json: bool,
}

/// For how long the events of an operation are counted.
#[derive(Clone, Debug, Args)]
pub(crate) struct CostPlan {
    /// Seconds counted of each variant.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..=60))]
    pub(crate) seconds: u64,
    /// End with the result as one JSON object on the last line.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Beside what durable writes are measured, and for how long.
#[derive(Clone, Debug, Args)]
pub(crate) struct PeersPlan {
    /// The program of bench/peers/etcd.
    #[arg(long)]
    pub(crate) etcd: PathBuf,
    /// Where the classes of bench/peers/zookeeper are, and in `lib` the archives that they need.
    #[arg(long)]
    pub(crate) zookeeper: PathBuf,
    /// Seconds measured per round. Many rounds of many seconds would fill what etcd takes by default, 2 GiB.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..=20))]
    pub(crate) seconds: u64,
    /// Rounds of each, in turns.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=5))]
    pub(crate) rounds: u32,
    /// End with the result as one JSON object on the last line.
    #[arg(long)]
    pub(crate) json: bool,
}

/// For how long the coordination service is measured.
#[derive(Clone, Debug, Args)]
pub(crate) struct ZooKeeperPlan {
    /// Where the classes of bench/peers/zookeeper are, and in `lib` the archives that they need.
    #[arg(long)]
    pub(crate) zookeeper: PathBuf,
    /// Only what has this in its name.
    #[arg(long)]
    pub(crate) only: Option<String>,
    /// Seconds measured per round.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u64).range(1..=20))]
    pub(crate) seconds: u64,
    /// Rounds of each, in turns.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=9))]
    pub(crate) rounds: u32,
    /// End with the result as one JSON object on the last line.
    #[arg(long)]
    pub(crate) json: bool,
}

impl ZooKeeperPlan {
    /// Whether something of this name is measured.
    pub(crate) fn wants(&self, name: &str) -> bool {
        self.only.as_ref().is_none_or(|part| name.contains(part))
    }
}

/// Which gates are measured, and for how long.
#[derive(Clone, Debug, Args)]
pub(crate) struct SuitePlan {
    /// Only those of this service.
    #[arg(long, value_enum)]
    pub(crate) service: Option<ServiceName>,
    /// Only those whose name has this in it.
    #[arg(long)]
    pub(crate) only: Option<String>,
    /// Seconds measured per round.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u64).range(1..=60))]
    pub(crate) seconds: u64,
    /// Rounds of each variant, in turns.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=20))]
    pub(crate) rounds: u32,
    /// End with the result as one JSON object on the last line.
    #[arg(long)]
    pub(crate) json: bool,
}

/// How requests arrive by themselves, and for how long.
#[derive(Clone, Debug, Args)]
pub(crate) struct OpenPlan {
    /// What is asked for.
    #[arg(value_enum, default_value = "null")]
    pub(crate) service: ServiceName,
    /// Who asks; so many requests are outstanding in the closed loop that shows what the rates are shares of.
    #[command(flatten)]
    pub(crate) clients: Clients,
    /// Bytes of an operation of the null service or of a value; 0 and 256 where not given.
    #[arg(long, value_parser = clap::value_parser!(u32).range(0..=65_536))]
    pub(crate) bytes: Option<u32>,
    /// What the servers keep.
    #[arg(long, value_enum, default_value = "memory")]
    pub(crate) durability: DurabilityName,
    /// Rates at which requests arrive, in percent of the closed loop's.
    #[arg(long, value_delimiter = ',', default_value = "10,25,50,75,90",
          value_parser = clap::value_parser!(u32).range(1..=200))]
    pub(crate) percent: Vec<u32>,
    /// Which variants; all where not given.
    #[arg(long, value_enum, value_delimiter = ',')]
    pub(crate) variant: Vec<VariantName>,
    /// What the times of arrival are drawn from.
    #[arg(long, default_value_t = 1)]
    pub(crate) seed: u64,
    /// Seconds measured per round.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..=60))]
    pub(crate) seconds: u64,
    /// Rounds of each variant at each rate, in turns.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=20))]
    pub(crate) rounds: u32,
    /// End with the result as one JSON object on the last line.
    #[arg(long)]
    pub(crate) json: bool,
}

/// See [`troth_node::config::Service`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ServiceName {
    /// Nothing is done.
    Null,
    /// The key-value store.
    Kv,
}

/// See [`troth_node::config::Durability`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum DurabilityName {
    /// Everything is on disk before anything that depends on it leaves.
    Always,
    /// Nothing is synced.
    Memory,
}

/// What is measured beside what.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum VariantName {
    /// A cluster whose trusted components are processes of their own.
    OwnProcess,
    /// A cluster whose trusted components are in the replicas' processes.
    InProcess,
    /// The same service without a cluster.
    Unreplicated,
}

impl OpenPlan {
    /// Bytes of an operation of the null service or of a value.
    pub(crate) fn bytes(&self) -> u32 {
        self.bytes.unwrap_or(if self.service == ServiceName::Kv { 256 } else { 0 })
    }
}

impl ServiceName {
    /// Its name on the command line and in the result.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Kv => "kv",
        }
    }
}

impl From<ServiceName> for troth_node::config::Service {
    fn from(name: ServiceName) -> Self {
        match name {
            ServiceName::Null => Self::Null,
            ServiceName::Kv => Self::Kv,
        }
    }
}

impl DurabilityName {
    /// Its name on the command line and in the result.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::Always => "always",
        }
    }
}

impl From<DurabilityName> for troth_node::config::Durability {
    fn from(name: DurabilityName) -> Self {
        match name {
            DurabilityName::Memory => Self::Memory,
            DurabilityName::Always => Self::Always,
        }
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
    /// What every call of the trusted component takes at least, in microseconds.
    #[arg(long, default_value_t = 0)]
    pub(crate) trusted_delay: u64,
    /// Each operation of a call takes that.
    #[arg(long)]
    pub(crate) trusted_delay_each: bool,
    /// Bytes of each result of the null service.
    #[arg(long, default_value_t = 0)]
    pub(crate) result_bytes: usize,
    /// Keep no log, where there is no trusted process.
    #[arg(long)]
    pub(crate) keeps_nothing: bool,
    /// Serve badly as primary.
    #[cfg(feature = "adversaries")]
    #[arg(long, value_enum)]
    pub(crate) tyranny: Option<TyrannyName>,
}

impl Server {
    /// The replica's number.
    pub(crate) fn id(&self) -> ReplicaId {
        ReplicaId(self.id)
    }
}
