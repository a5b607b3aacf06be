//! The command line.

use clap::{Parser, ValueEnum};
use std::net::SocketAddr;
use std::path::PathBuf;
use troth_node::config::{Auth, Protocol};

/// Breaks a cluster of real processes under load and has the history judged.
///
/// Exit: 0 where everything held, 1 where something did not, 2 where there was no run.
#[derive(Clone, Debug, Parser)]
#[command(name = "troth-chaos")]
pub(crate) struct Plan {
    /// How the replicas agree.
    #[arg(long, default_value_t)]
    pub(crate) protocol: Protocol,
    /// How requests prove who sent them: signed; with pbft also mac or all-signed.
    #[arg(long, default_value_t)]
    pub(crate) auth: Auth,
    /// What is served, and so what is asked for and what must hold.
    #[arg(long, value_enum, default_value_t = Service::Kv)]
    pub(crate) service: Service,
    /// Faulty replicas to bear; 2f+1 run with minbft, 3f+1 with pbft, and at most f are broken at a time.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=5))]
    pub(crate) f: u16,
    /// Minutes of faults; starting, the last recovery and the judgement come on top.
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u64).range(1..=240))]
    pub(crate) minutes: u64,
    /// What chooses faults and operations; one from the system's randomness where not given.
    #[arg(long)]
    pub(crate) seed: Option<u64>,
    /// Clients, each with a session of its own.
    #[arg(long, default_value_t = 8, value_parser = clap::value_parser!(u16).range(1..=64))]
    pub(crate) clients: u16,
    /// Operations that each client has outstanding.
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u16).range(1..=16))]
    pub(crate) outstanding: u16,
    /// With zookeeper: people, each with one session after the other.
    #[arg(long, default_value_t = 200, value_parser = clap::value_parser!(u16).range(1..=2000))]
    pub(crate) sessions: u16,
    /// With zookeeper: gateways.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u16).range(1..=16))]
    pub(crate) gateways: u16,
    /// With zookeeper: servers that run already, be they whose they are; none of them is killed.
    #[arg(long, value_delimiter = ',')]
    pub(crate) against: Vec<SocketAddr>,
    /// Seconds after the end of a fault within which the cluster must serve again.
    #[arg(long, default_value_t = 30, value_parser = clap::value_parser!(u64).range(1..=600))]
    pub(crate) recover_within: u64,
    /// Where the trusted components live; in processes of their own where not given. Not with pbft.
    #[arg(long, value_enum)]
    pub(crate) trusted_home: Option<Home>,
    /// Instead of faults by chance, this one course of events, with figures.
    #[arg(long, value_enum, conflicts_with_all = ["plant", "service"])]
    pub(crate) scenario: Option<Scenario>,
    /// Have the replicas built with this bug, and hold where it is caught.
    #[arg(long, value_enum, conflicts_with = "service")]
    pub(crate) plant: Option<Plant>,
    /// The `troth` program, built with the features `faults` and `demo-adversary`.
    #[arg(long)]
    pub(crate) troth: PathBuf,
    /// The built judge (crates/chaos/judge).
    #[arg(long)]
    pub(crate) judge: PathBuf,
    /// Seconds that the judge may search.
    #[arg(long, default_value_t = 120, value_parser = clap::value_parser!(u64).range(1..=3600))]
    pub(crate) judge_within: u64,
    /// End with the result as one JSON object on the last line.
    #[arg(long)]
    pub(crate) json: bool,
}

impl Plan {
    /// How the replicas agree, and by what requests show whose they are where that is not the usual, for people.
    pub(crate) fn agreement(&self) -> String {
        match self.auth {
            Auth::Signed => self.protocol.name().to_owned(),
            auth => format!("{}, auth {auth}", self.protocol),
        }
    }
}

/// What is served.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Service {
    /// Keys and values.
    Kv,
    /// The coordination service, through gateways.
    Zookeeper,
}

/// Where trusted components live.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Home {
    /// In processes of their own.
    Process,
    /// In their replicas.
    InProcess,
}

/// A course of events.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Scenario {
    /// Everything is killed at once during load and started again, more than once.
    RestartAll,
    /// A replica is down while the others order 100,000 requests, and catches up under full load.
    CatchUp,
    /// One replica's disk is full, then the primary's.
    FullDisk,
}

impl Scenario {
    /// The word of the command line.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::RestartAll => "restart-all",
            Self::CatchUp => "catch-up",
            Self::FullDisk => "full-disk",
        }
    }
}

/// A bug to catch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Plant {
    /// None, to see that the same losses then show nothing: it ends as not caught.
    Nothing,
    /// The log says that something is durable when it is written.
    SkipLogSync,
    /// The trusted store does.
    SkipTrustedSync,
    /// The component certifies what is not durable yet.
    CertifyBeforeBody,
}

impl Plant {
    /// Whether it is one of trusted components.
    pub(crate) fn is_of_components(self) -> bool {
        matches!(self, Self::SkipTrustedSync | Self::CertifyBeforeBody)
    }

    /// The word of the command line, which is that of `troth` too.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Nothing => "nothing",
            Self::SkipLogSync => "skip-log-sync",
            Self::SkipTrustedSync => "skip-trusted-sync",
            Self::CertifyBeforeBody => "certify-before-body",
        }
    }
}
