//! Measures a real cluster of replica processes beside the same service in one process, in turns.
//! `cargo xtask bench` builds and runs it; docs/benchmarks.md says what is measured and how to read it.
//!
//! | module | subject |
//! | --- | --- |
//! | `null` | the whole measurement: start, rounds in turns, verdict |
//! | `durable` | the same for durability `always`: beside memory, and beside the disk's own sync |
//! | `attacks` | honest load in a group with an attacker that nobody can prove to be one |
//! | `flood` | honest load while a replica, a client or idle connections flood the group |
//! | `protocol` | what a measured group is |
//! | `processes` | the servers as child processes that never outlive this one |
//! | `direct` | the unreplicated service |
//! | `caller` | one client: the quorum-counting one, and one that believes its only server |
//! | `load` | all clients on one thread, each outcome followed by the next request |
//! | `open` | requests that arrive by themselves, and their latency from when they were due |
//! | `large` | a state of millions of keys |
//! | `hub` | connections read in one place, one wake-up for all |
//! | `suite` | every gate: each cluster beside the unreplicated service with the same durability |
//! | `protocols` | every agreement protocol beside PBFT |
//! | `peers` | durable writes beside etcd's and ZooKeeper's |
//! | `zookeeper` | the coordination service beside Apache ZooKeeper |
//! | `variants` | a cluster or the unreplicated service, with its clients |
//! | `yardsticks` | what the machine itself can do |
//! | `allocations` | the allocator of `troth`, with a count |
//! | `syscalls` | system calls of any kind and instructions, by `perf` |
//! | `marks`, `report` | what is read before and after a round, and what follows from it |
#![deny(unsafe_code)]
#![allow(clippy::disallowed_methods, reason = "this program measures time and runs others")]

mod allocations;
mod attacks;
mod caller;
mod cli;
mod cost;
mod direct;
mod direct_log;
mod durable;
mod flood;
mod hub;
mod large;
mod load;
mod marks;
mod null;
mod open;
mod peers;
mod processes;
mod protocol;
mod protocols;
mod report;
mod suite;
mod syscalls;
mod variants;
mod yardsticks;
mod zookeeper;

#[cfg(test)]
mod tests;

use clap::Parser;
use cli::{Cli, Command, DurabilityName};
use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;
use troth_node::config::{Cluster, Layout, Protocol, ReplicaSecret, TrustedHome};
use troth_node::{Options, TrustedDelay, serve};
use troth_types::ReplicaId;

/// Why a measurement could not be made, for people.
type Failure = Box<dyn std::error::Error>;

fn main() -> ExitCode {
    let done = match Cli::parse().command {
        Command::Null(plan) if plan.trusted_delay > 0 && !plan.delays_something() => {
            Err("a delay of the trusted component is measured of minbft with durability memory alone: leave \
             --trusted-delay, --protocol or --durability away"
                .into())
        }
        Command::Null(plan) => match plan.durability {
            DurabilityName::Memory => null::run(&plan),
            DurabilityName::Always if plan.protocol != Protocol::MinBft => Err(
                "what durability costs is measured of minbft alone: leave --protocol or --durability away"
                    .into(),
            ),
            DurabilityName::Always => durable::run(&plan),
        },
        Command::Flood(plan) => flood::run(&plan),
        Command::Open(plan) => open::run(&plan),
        Command::Large(plan) => large::run(&plan),
        Command::Peers(plan) => peers::run(&plan),
        Command::ZooKeeper(plan) => zookeeper::run(&plan),
        Command::Cost(plan) => cost::run(&plan),
        Command::Protocols { plan, part } => protocols::run(&plan, &part),
        Command::Delays(plan) => protocols::delays::run(&plan),
        Command::Suite(plan) => suite::run(&plan),
        Command::Echo => yardsticks::echo().map(|()| true),
        Command::Attacks(plan) => attacks::run(&plan),
        Command::Flooder(flooder) => flood::flooder::run(&flooder).map(|()| true),
        Command::Silent(server) => flood::silent::run(&server).map(|()| true),
        Command::Replica(server) => replica(&server).map(|()| true),
        Command::Direct(server) => direct::run(&server).map(|()| true),
    };
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(why) => {
            eprintln!("{why}");
            ExitCode::from(1)
        }
    }
}

/// One replica of the measured cluster: the runtime as `troth replica` runs it.
fn replica(server: &cli::Server) -> Result<(), Failure> {
    let layout = Layout::new(&server.dir);
    let cluster = Cluster::load(&layout.cluster())?;
    allocations::tell(&layout.replica(server.id()))?;
    troth_allocator::free_beside()?;
    let secret = ReplicaSecret::load(&layout.replica_secret(server.id()), &cluster)?;
    let trusted_command = match cluster.trusted_home {
        TrustedHome::InProcess | TrustedHome::Nowhere => Vec::new(),
        TrustedHome::Process => trusted_command(&server.dir, server.id())?,
    };
    #[allow(clippy::needless_update, reason = "with demo-adversary there are more")]
    #[cfg_attr(not(feature = "adversaries"), expect(unused_mut, reason = "an attacker is more"))]
    let mut options = Options {
        until_stdin_ends: true,
        trusted_command,
        trusted_delay: TrustedDelay {
            call: Duration::from_micros(server.trusted_delay),
            each: server.trusted_delay_each,
        },
        null_result: server.result_bytes,
        keeps_nothing: server.keeps_nothing,
        ..Options::default()
    };
    #[cfg(feature = "adversaries")]
    if let Some(tyranny) = server.tyranny {
        options.tyranny = Some(tyranny.into());
    }
    Ok(serve(cluster, secret, &layout, options)?)
}

/// What starts the replica's trusted process: the `troth` that was built beside this program.
fn trusted_command(dir: &Path, replica: ReplicaId) -> Result<Vec<OsString>, Failure> {
    let program = std::env::current_exe()?.with_file_name("troth");
    if !program.exists() {
        return Err(
            format!("{} is not there; mend: cargo build --release -p troth", program.display()).into()
        );
    }
    let words = ["trusted", "--until-stdin-ends", "--id"].map(OsString::from);
    let rest = [replica.0.to_string().into(), OsString::from("--dir"), dir.into()];
    Ok([program.into()].into_iter().chain(words).chain(rest).collect())
}
