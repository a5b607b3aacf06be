//! The command line of floods and attacks: who attacks, how, and for how long.

use super::{Clients, DurabilityName};
use clap::{Args, ValueEnum};
use std::path::PathBuf;
use troth_node::config::{Auth, Durability, Protocol, Service};

/// How a group is flooded, and for how long.
#[derive(Clone, Debug, Args)]
pub(crate) struct FloodPlan {
    /// How the replicas agree.
    #[arg(long, default_value_t)]
    pub(crate) protocol: Protocol,
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

/// Which attacks are measured, and for how long.
#[derive(Clone, Debug, Args)]
pub(crate) struct AttackPlan {
    /// How the replicas agree.
    #[arg(long, default_value_t)]
    pub(crate) protocol: Protocol,
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
    /// A primary that leaves f backups out when it proposes, and answers no client.
    Withholding,
    /// A client whose signatures are good for nobody.
    Forger,
    /// A replica that asks for the state without end.
    Fetcher,
    /// A client whose authenticators are right for one replica alone: for each the frames that it gets itself, so that
    /// whoever is the primary proposes what no backup can tell for the client's. Everybody's frames have
    /// authenticators then.
    Partial,
    /// A client whose frames are good and take long to execute: scans of all there is.
    Dear,
    /// The same with many frames that take a tenth of that each.
    Crowding,
    /// A primary that is killed and comes back with its trusted component as it was before the load: the component's files
    /// are put back, those of its own log are not. Everything is on disk before it leaves then.
    Reboot,
}

impl Attack {
    /// All of them.
    pub(crate) const ALL: [Self; 9] = [
        Self::Slow,
        Self::Unfair,
        Self::Withholding,
        Self::Forger,
        Self::Fetcher,
        Self::Partial,
        Self::Dear,
        Self::Crowding,
        Self::Reboot,
    ];

    /// Its name on the command line and in the result.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Slow => "slow",
            Self::Unfair => "unfair",
            Self::Withholding => "withholding",
            Self::Forger => "forger",
            Self::Fetcher => "fetcher",
            Self::Partial => "partial",
            Self::Dear => "dear",
            Self::Crowding => "crowding",
            Self::Reboot => "reboot",
        }
    }

    /// What the group serves, with the attacker and without.
    pub(crate) fn service(self) -> Service {
        if matches!(self, Self::Dear | Self::Crowding) { Service::Kv } else { Service::Null }
    }

    /// What the group keeps, with the attacker and without.
    pub(crate) fn durability(self) -> Durability {
        if self == Self::Reboot { Durability::Always } else { Durability::Memory }
    }

    /// By what the frames of the group's clients show whose they are.
    pub(crate) fn auth(self) -> Auth {
        self.floods().map_or(Auth::Signed, FloodKind::auth)
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
            Self::Partial => Some(FloodKind::Partial),
            Self::Dear => Some(FloodKind::Dear),
            Self::Crowding => Some(FloodKind::Crowding),
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
    /// See [`Attack::Partial`].
    Partial,
    /// See [`Attack::Dear`]; no flood.
    Dear,
    /// See [`Attack::Crowding`]; no flood.
    Crowding,
}

impl FloodKind {
    /// By what the frames of the group's clients show whose they are.
    pub(crate) fn auth(self) -> Auth {
        if self == Self::Partial { Auth::Mac } else { Auth::Signed }
    }

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
            Self::Partial => "partial",
            Self::Dear => "dear",
            Self::Crowding => "crowding",
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
