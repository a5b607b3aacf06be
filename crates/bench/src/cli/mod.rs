//! The command line.

use crate::protocol::ProtocolName;
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
    /// Measure honest clients while others flood the group, and while the same flood goes to a socket that
    /// discards it.
    Flood(FloodPlan),
    /// Measure every gate: clusters beside the same service unreplicated, and beside what the machine can do.
    Suite(SuitePlan),
    /// Measure latencies of requests that arrive whether or not others are answered, at several rates.
    Open(OpenPlan),
    /// Measure a state of millions of keys.
    Large(LargePlan),
    /// Measure durable writes beside etcd's and ZooKeeper's.
    Peers(PeersPlan),
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
    #[arg(long, value_enum, default_value = "minbft")]
    pub(crate) protocol: ProtocolName,
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
        self.protocol == ProtocolName::MinBft && self.durability == DurabilityName::Memory
    }
}

/// How a group is flooded, and for how long.
#[derive(Clone, Debug, Args)]
pub(crate) struct FloodPlan {
    /// Seconds of each flood, and as many of its baseline.
    #[arg(long, default_value_t = 60, value_parser = clap::value_parser!(u64).range(2..=600))]
    pub(crate) seconds: u64,
    /// Which floods; all where not given.
    #[arg(long, value_enum, value_delimiter = ',')]
    pub(crate) kind: Vec<FloodKind>,
    /// Who asks.
    #[command(flatten)]
    pub(crate) clients: Clients,
    /// Bytes of one honest operation.
    #[arg(long, default_value_t = 64, value_parser = clap::value_parser!(u32).range(0..=65_536))]
    pub(crate) bytes: u32,
    /// How many times the bytes that an honest replica reads are sent to each.
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..=1000))]
    pub(crate) times: u64,
    /// Idle connections to each replica.
    #[arg(long, default_value_t = 5000, value_parser = clap::value_parser!(u16).range(2..=6000))]
    pub(crate) idle: u16,
    /// What the replicas keep.
    #[arg(long, value_enum, default_value = "memory")]
    pub(crate) durability: DurabilityName,
    /// End with the result as one JSON object on the last line.
    #[arg(long)]
    pub(crate) json: bool,
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

/// Which attacks are measured, and for how long.
#[derive(Clone, Debug, Args)]
pub(crate) struct AttackPlan {
    /// Seconds of each attack, from the group's start on, and as many without.
    #[arg(long, default_value_t = 15, value_parser = clap::value_parser!(u64).range(2..=600))]
    pub(crate) seconds: u64,
    /// Rounds with and without, in turns.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=20))]
    pub(crate) rounds: u32,
    /// Which attacks; all where not given.
    #[arg(long, value_enum, value_delimiter = ',')]
    pub(crate) kind: Vec<Attack>,
    /// Who asks.
    #[command(flatten)]
    pub(crate) clients: Clients,
    /// Bytes of one honest operation.
    #[arg(long, default_value_t = 64, value_parser = clap::value_parser!(u32).range(0..=65_536))]
    pub(crate) bytes: u32,
    /// Bytes per second that a flooding attacker offers to each honest replica.
    #[arg(long, default_value_t = 50_000_000)]
    pub(crate) rate: u64,
    /// End with the result as one JSON object on the last line.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Who attacks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Attack {
    /// A primary that delays every proposal to just under the time-out.
    Slow,
    /// A primary that takes one client's requests in just under the time-out.
    Unfair,
    /// A primary that shows its proposals to f backups only, and answers no client.
    Withholding,
    /// A client whose signatures are good for nobody.
    Forger,
    /// A replica that asks for the state without end.
    Fetcher,
}

impl Attack {
    /// All of them.
    pub(crate) const ALL: [Self; 5] =
        [Self::Slow, Self::Unfair, Self::Withholding, Self::Forger, Self::Fetcher];

    /// Its name on the command line and in the result.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Slow => "slow",
            Self::Unfair => "unfair",
            Self::Withholding => "withholding",
            Self::Forger => "forger",
            Self::Fetcher => "fetcher",
        }
    }

    /// How it is told to a replica, where it is a primary's.
    pub(crate) fn tyranny(self) -> Option<&'static str> {
        matches!(self, Self::Slow | Self::Unfair | Self::Withholding).then(|| self.name())
    }

    /// The flood that it is, where it is one.
    pub(crate) fn floods(self) -> Option<FloodKind> {
        match self {
            Self::Forger => Some(FloodKind::Forger),
            Self::Fetcher => Some(FloodKind::Fetcher),
            _ => None,
        }
    }
}

/// How a primary serves badly.
#[cfg(feature = "adversaries")]
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum TyrannyName {
    /// See [`Attack::Slow`].
    Slow,
    /// See [`Attack::Unfair`]; it is the first client that suffers.
    Unfair,
    /// See [`Attack::Withholding`].
    Withholding,
}

#[cfg(feature = "adversaries")]
impl From<TyrannyName> for troth_node::Tyranny {
    fn from(name: TyrannyName) -> Self {
        match name {
            TyrannyName::Slow => Self::Slow,
            TyrannyName::Unfair => Self::Unfair(troth_types::ClientId(1)),
            TyrannyName::Withholding => Self::Withholding,
        }
    }
}

/// Who floods.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum FloodKind {
    /// A replica with its real keys, in the place of one that the group bears.
    Peer,
    /// A client with its real keys.
    Client,
    /// Connections on which nothing comes: half of them of clients, half of nobody.
    Idle,
    /// A client that sends nothing but frames that it did not sign.
    Forger,
    /// A replica that sends nothing but questions for the state.
    Fetcher,
}

impl FloodKind {
    /// Whether a replica's keys are used, in its place.
    pub(crate) fn is_replica(self) -> bool {
        matches!(self, Self::Peer | Self::Fetcher)
    }

    /// Its name on the command line and in the result.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Peer => "peer",
            Self::Client => "client",
            Self::Idle => "idle",
            Self::Forger => "forger",
            Self::Fetcher => "fetcher",
        }
    }
}

/// Who floods whom.
#[derive(Clone, Debug, Args)]
pub(crate) struct Flooder {
    /// The cluster's directory.
    #[arg(long)]
    pub(crate) dir: PathBuf,
    /// As what.
    #[arg(long, value_enum)]
    pub(crate) kind: FloodKind,
    /// Whose keys: a replica's or a client's number; of idle clients, the first.
    #[arg(long)]
    pub(crate) own: u64,
    /// Where to, each with the replica whose key answers there: `address=replica`.
    #[arg(long, value_delimiter = ',')]
    pub(crate) to: Vec<String>,
    /// Bytes per second to each.
    #[arg(long, default_value_t = 0)]
    pub(crate) rate: u64,
    /// Idle connections to each.
    #[arg(long, default_value_t = 0)]
    pub(crate) count: u16,
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
