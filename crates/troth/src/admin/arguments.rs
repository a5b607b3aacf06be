//! What can be said to `troth admin`.

use crate::cli::Dir;
use clap::{Args, Subcommand};
use std::path::PathBuf;

#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  troth admin show
  troth admin readmit --replica 2                     its disk or component is lost, its machine not
  troth admin replace --replica 2 --address 10.0.0.9:4700 --http 10.0.0.9:4800 --out for-new
  troth admin rekey --replica 2                       its link and signing keys, not its component's
  troth admin add-client --client 17
  troth admin remove-client --client 17

Each is ordered like a client's operation, signed by clients/operator.toml, and may be
repeated when it was interrupted. Exit code 1 where the group refuses, with its reason.
docs/operating/readmission.md has the steps.")]
pub(crate) struct Admin {
    #[command(flatten)]
    pub(crate) dir: Dir,
    /// Seconds to wait for the group, and for each answer; 5 and 30 where absent.
    #[arg(long, global = true, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..=3600))]
    pub(crate) wait: Option<u64>,
    /// Print the configuration that results as one JSON object.
    #[arg(long, global = true)]
    pub(crate) json: bool,
    #[command(subcommand)]
    pub(crate) action: Action,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Action {
    /// Show who the replicas and clients are now, and remember it in configuration.toml.
    Show,
    /// Bring a replica back with a new trusted component and an empty disk, on the host that it has.
    Readmit {
        /// Which replica; its secret file must be here, and it must not run.
        #[arg(long)]
        replica: u16,
    },
    /// Put a new host, with new keys and a new trusted component, in a replica's place.
    Replace {
        /// Which replica; its old host may be lost, or may go on: it counts for nothing.
        #[arg(long)]
        replica: u16,
        /// Where the new host listens for replicas and clients.
        #[arg(long, value_name = "HOST:PORT")]
        address: String,
        /// Where the new host serves /status and /metrics; nowhere where absent.
        #[arg(long, value_name = "HOST:PORT")]
        http: Option<String>,
        /// The directory to make, with all that the new machine needs.
        #[arg(long, value_name = "DIRECTORY")]
        out: PathBuf,
        /// With `trusted = "hmac"`: another replica's secret.toml, for the key that all components share, where
        /// none is below --dir.
        #[arg(long, value_name = "FILE")]
        shared_key_from: Option<PathBuf>,
    },
    /// Give a replica's host other link and signing keys; its trusted component stays.
    Rekey {
        /// Which replica; its secret file must be here.
        #[arg(long)]
        replica: u16,
        /// Where it listens from now on; as before where absent.
        #[arg(long, value_name = "HOST:PORT")]
        address: Option<String>,
        /// Where it serves /status and /metrics from now on; as before where absent.
        #[arg(long, value_name = "HOST:PORT", requires = "address")]
        http: Option<String>,
    },
    /// Let a new client have operations ordered.
    AddClient {
        /// Its number, never used before; the next free one where absent.
        #[arg(long, value_parser = clap::value_parser!(u64).range(1..=i64::MAX as u64))]
        client: Option<u64>,
        /// Where its secret file goes; clients/client-N.toml below --dir where absent. There it belongs on the client's
        /// machine, too, below the --dir that has cluster.toml and configuration.toml.
        #[arg(long, value_name = "FILE")]
        out: Option<PathBuf>,
    },
    /// Refuse a client from now on, for ever.
    RemoveClient {
        /// Which.
        #[arg(long)]
        client: u64,
    },
}
