//! The result for people and machines.

use super::figures::Figures;
use serde_json::{Value, json};
use std::path::PathBuf;
use std::time::Duration;
use troth_node::config::{Auth, Protocol};

/// What a run found.
#[derive(Debug)]
pub(crate) struct Report {
    pub(crate) seed: u64,
    pub(crate) protocol: Protocol,
    pub(crate) auth: Auth,
    /// Both for people.
    pub(crate) agreement: String,
    pub(crate) f: u16,
    pub(crate) seconds: u64,
    pub(crate) figures: Figures,
    pub(crate) slowest: Duration,
    /// Until every replica was back.
    pub(crate) slowest_return: Duration,
    /// Whether the service was back after every fault, and in the end.
    pub(crate) live: bool,
    pub(crate) verdict: String,
    pub(crate) stale_verdict: String,
    /// What did not hold.
    pub(crate) failures: Vec<String>,
    /// Where everything is kept, after a failure.
    pub(crate) scratch: Option<PathBuf>,
}

impl Report {
    /// Whether everything held.
    pub(crate) fn good(&self) -> bool {
        self.failures.is_empty()
    }

    fn json(&self) -> Value {
        let millis = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        json!({
            "ok": self.good(),
            "summary": self.summary(),
            "seed": self.seed,
            "protocol": self.protocol.name(),
            "auth": self.auth.name(),
            "f": self.f,
            "seconds": self.seconds,
            "figures": self.figures.json(),
            "slowest_recovery_ms": millis(self.slowest),
            "slowest_return_ms": millis(self.slowest_return),
            "live": self.live,
            "verdict": self.verdict,
            "stale_verdict": self.stale_verdict,
            "failures": self.failures,
            "scratch": self.scratch.as_ref().map(|scratch| scratch.to_string_lossy()),
        })
    }

    /// Prints it; the last line is the object, where asked for.
    pub(crate) fn print(&self, json: bool) {
        for failure in &self.failures {
            println!("failed: {failure}");
        }
        if let Some(scratch) = &self.scratch {
            println!("logs, data, journals and histories are in {}; remove it when done", scratch.display());
        }
        if json {
            println!("{}", self.json());
        } else {
            println!("{}", self.summary());
        }
    }

    fn summary(&self) -> String {
        let figures = &self.figures;
        let faults: u32 = figures.faults.values().sum();
        format!(
            "zookeeper: {} sessions ({} closed, {} expired, {} abandoned), {} requests, {} unknown, locks owned {} times, {} \
             events ({} by setWatches), {} reconnections, {faults} faults, slowest recovery {:.1} s, all replicas back after \
             {:.1} s at most, registers {}; {} ({}, seed {}, f {})",
            figures.sessions,
            figures.closed,
            figures.expired,
            figures.abandoned,
            figures.requests,
            figures.unknown,
            figures.owned,
            figures.events,
            figures.shown,
            figures.reconnections,
            self.slowest.as_secs_f64(),
            self.slowest_return.as_secs_f64(),
            self.verdict,
            if self.good() { "everything held" } else { "NOT everything held" },
            self.agreement,
            self.seed,
            self.f
        )
    }
}
