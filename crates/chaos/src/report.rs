//! The result for people and machines.

use crate::cli::{Plant, Scenario};
use crate::faults::Kind;
use crate::strike::Effects;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
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
    pub(crate) operations: usize,
    /// Acknowledged writes.
    pub(crate) acknowledged: usize,
    /// Keys with an acknowledged write of their own, looked at in the end.
    pub(crate) compared: usize,
    pub(crate) unknown: usize,
    /// Operations known not to have been executed.
    pub(crate) failed: usize,
    pub(crate) faults: BTreeMap<Kind, u32>,
    pub(crate) effects: Effects,
    pub(crate) slowest: Duration,
    /// Until every replica was back.
    pub(crate) slowest_return: Duration,
    /// Recoveries that took longer than they should, but not too long.
    pub(crate) slow: Vec<String>,
    pub(crate) scenario: Option<Scenario>,
    /// What it measured.
    pub(crate) figures: Map<String, Value>,
    pub(crate) plant: Option<Plant>,
    /// What caught the planted bug.
    pub(crate) caught: Option<String>,
    /// Whether the cluster served again after every fault, and all replicas ran and voted.
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
            "protocol": self.protocol.name(),
            "auth": self.auth.name(),
            "f": self.f,
            "seconds": self.seconds,
            "operations": self.operations,
            "acknowledged_writes": self.acknowledged,
            "compared_keys": self.compared,
            "unknown": self.unknown,
            "failed": self.failed,
            "faults": faults,
            "effects": {
                "died_in_a_sync": self.effects.deaths,
                "found_the_disk_full": self.effects.full,
                "liars": self.effects.liars,
                "readmitted": self.effects.readmitted,
                "gone_for_good": self.effects.gone,
            },
            "slowest_recovery_ms": millis(self.slowest),
            "slowest_return_ms": millis(self.slowest_return),
            "scenario": self.scenario.map(Scenario::name),
            "figures": self.figures,
            "plant": self.plant.map(Plant::name),
            "caught": self.caught,
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
        if let Some(plant) = self.plant {
            let plant = plant.name();
            return match &self.caught {
                Some(what) => {
                    format!("{plant} was caught after {} s: {}", self.seconds, what.replace('\n', " | "))
                }
                None => format!("{plant} was NOT caught in {} s (seed {})", self.seconds, self.seed),
            };
        }
        let faults: u32 = self.faults.values().sum();
        format!(
            "{}{} operations, {} writes acknowledged, {} lost, {} unknown, {faults} faults, slowest recovery \
             {:.1} s, all replicas back after {:.1} s at most, {}; {} ({}, seed {}, f {})",
            self.scenario.map_or(String::new(), |scenario| format!(
                "{}: {}; ",
                scenario.name(),
                Value::Object(self.figures.clone())
            )),
            self.operations,
            self.acknowledged,
            self.lost,
            self.unknown,
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

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
