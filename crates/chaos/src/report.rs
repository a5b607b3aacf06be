//! The result for people and machines.

use crate::faults::Kind;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

/// What a run found.
#[derive(Debug)]
pub(crate) struct Report {
    pub(crate) seed: u64,
    pub(crate) f: u16,
    pub(crate) seconds: u64,
    pub(crate) operations: usize,
    /// Acknowledged writes.
    pub(crate) acknowledged: usize,
    pub(crate) unknown: usize,
    /// Operations known not to have been executed.
    pub(crate) failed: usize,
    pub(crate) faults: BTreeMap<Kind, u32>,
    pub(crate) slowest: Duration,
    /// Recoveries that took longer than they should, but not too long.
    pub(crate) slow: Vec<String>,
    /// Whether the cluster served again after every fault, and all replicas ran.
    pub(crate) live: bool,
    /// Keys with an acknowledged write that is gone.
    pub(crate) lost: usize,
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

    /// The result as one object.
    pub(crate) fn json(&self) -> Value {
        let faults: Map<String, Value> =
            self.faults.iter().map(|(kind, count)| (kind.name().to_owned(), (*count).into())).collect();
        json!({
            "ok": self.good(),
            "summary": self.summary(),
            "seed": self.seed,
            "f": self.f,
            "seconds": self.seconds,
            "operations": self.operations,
            "acknowledged_writes": self.acknowledged,
            "unknown": self.unknown,
            "failed": self.failed,
            "faults": faults,
            "slowest_recovery_ms": u64::try_from(self.slowest.as_millis()).unwrap_or(u64::MAX),
            "slow_recoveries": self.slow,
            "live": self.live,
            "lost": self.lost,
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
            println!("logs, data and histories are in {}; remove it when done", scratch.display());
        }
        // With the object, whoever reads that prints the summary in it.
        if json {
            println!("{}", self.json());
        } else {
            println!("{}", self.summary());
        }
    }

    /// The result in a line.
    fn summary(&self) -> String {
        let faults: u32 = self.faults.values().sum();
        format!(
            "{} operations, {} writes acknowledged, {} unknown, {faults} faults, slowest recovery \
             {:.1} s, {}; {} (seed {}, f {})",
            self.operations,
            self.acknowledged,
            self.unknown,
            self.slowest.as_secs_f64(),
            self.verdict,
            if self.good() { "everything held" } else { "NOT everything held" },
            self.seed,
            self.f
        )
    }
}
