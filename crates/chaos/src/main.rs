//! Chaos of real processes: a cluster of `troth replica` processes under load, broken in every way
//! that a seed chooses, and the history of all operations judged by porcupine. `cargo xtask chaos`
//! builds everything and runs it.
//!
//! | module | subject |
//! | --- | --- |
//! | `run` | the whole run: start, break, recover, last reads, verdict |
//! | `stage` | a run under way: time passes, and what must hold is looked at |
//! | `scenario`, `catch_up`, `plants` | courses of events of their own; bugs that must be caught |
//! | `faults`, `strike` | which fault comes next; how it is done and undone |
//! | `readmission` | disks that are wiped, and the operator's word for replicas that had them |
//! | `machines` | the cluster's files, one directory per replica |
//! | `processes` | replicas and trusted processes as child processes that never outlive this one |
//! | `relay` | every connection passes here, and can be slowed, stalled and broken |
//! | `load` | the clients and what they ask for |
//! | `history` | what every client asked, when, and what it was told |
//! | `ledger` | what was acknowledged, compared with what is there in the end |
//! | `stale` | a history made wrong on purpose; acknowledged writes that are gone |
//! | `judge` | asking the judge |
//! | `status` | what the replicas say of themselves while something is slow |
//! | `report` | the result for people and machines |
//! | `zookeeper` | the same of the coordination service: sessions, locks and watches over gateways |
#![forbid(unsafe_code)]
#![allow(clippy::disallowed_methods, reason = "this program measures time and runs others")]

mod catch_up;
mod cli;
mod faults;
mod history;
mod judge;
mod ledger;
mod load;
mod machines;
mod plants;
mod processes;
mod random;
mod readmission;
mod relay;
mod report;
mod run;
mod scenario;
mod stage;
mod stale;
mod status;
mod strike;
mod zookeeper;

#[cfg(test)]
mod tests;

use clap::Parser;
use std::process::ExitCode;

/// Why a run could not be made, for people.
type Failure = Box<dyn std::error::Error>;

fn main() -> ExitCode {
    match run(&cli::Plan::parse()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(why) => {
            eprintln!("{why}");
            ExitCode::from(2)
        }
    }
}

/// Runs, prints, and tells whether everything held.
fn run(plan: &cli::Plan) -> Result<bool, Failure> {
    let seed = match plan.seed {
        Some(seed) => seed,
        // Short enough to be typed again.
        None => u64::from(getrandom::u32()?),
    };
    match plan.service {
        cli::Service::Kv => run::run(plan, seed),
        cli::Service::Zookeeper => zookeeper::run(plan, seed),
    }
}
