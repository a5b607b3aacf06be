//! What many seeds came to.

use crate::{Outcome, ServiceKind};
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// A seed that orders fewer requests than this shows nothing.
pub const MIN_REQUESTS: u64 = 200;

/// So does one in which the coordination service answers fewer requests without an error.
pub const MIN_ANSWERS: u64 = 60;

/// Whether a seed shows nothing.
fn is_vacuous(outcome: &Outcome) -> bool {
    let few = |answers: u64| !outcome.service.is_empty() && answers < MIN_ANSWERS;
    outcome.ordered < MIN_REQUESTS || few(outcome.service.get("answers").copied().unwrap_or(0))
}

/// Sums over seeds.
#[derive(Clone, Debug, Default)]
#[allow(
    missing_docs,
    reason = "each field counts what its name says; `seeds_with_…` counts seeds in which it occurred"
)]
pub struct Report {
    pub seeds: u64,
    pub steps: u64,
    pub ordered: u64,
    pub vacuous: u64,
    pub view_changes: u64,
    pub seeds_with_view_changes: u64,
    pub seeds_with_stable: u64,
    pub transfers: u64,
    pub seeds_with_transfers: u64,
    pub restarts: u64,
    pub seeds_with_restarts: u64,
    pub losses: u64,
    pub readmissions: u64,
    pub seeds_with_readmissions: u64,
    pub effective: u64,
    pub seeds_with_effective: u64,
    pub accusations: u64,
    pub doubtful: u64,
    pub events: u64,
    pub reads: u64,
    pub fast_reads: u64,
    pub seeds_with_fast_reads: u64,
    pub undone: u64,
    pub seeds_with_undone: u64,
    pub undecided: u64,
    pub longest_healing: u64,
    /// Virtual microseconds that a request after the healing waited for its answer, at most.
    pub longest_wait: u64,
    pub violations: u64,
    /// The first vacuous seed.
    pub vacuous_seed: Option<u64>,
    /// What the coordination service did: how often, and in how many seeds.
    pub service: BTreeMap<&'static str, (u64, u64)>,
}

/// What sound runs of the coordination service bring about: each in at least a fifth of the seeds.
pub(crate) const COORDINATION: [&str; 16] = [
    "answers",
    "refusals",
    "sessions opened",
    "sessions attached elsewhere",
    "sessions closed",
    "sessions expired",
    "ephemeral nodes",
    "sequential nodes",
    "nodes that went with their session",
    "nodes that went by themselves",
    "transactions",
    "transactions undone",
    "quotas",
    "watch events",
    "reads judged",
    "answers audited",
];

impl Report {
    /// Adds a seed.
    pub fn add(&mut self, seed: u64, outcome: &Outcome) {
        self.seeds += 1;
        self.steps += outcome.steps;
        self.ordered += outcome.ordered;
        if outcome.violation.is_some() {
            self.violations += 1;
        } else if is_vacuous(outcome) {
            self.vacuous += 1;
            self.vacuous_seed = Some(self.vacuous_seed.map_or(seed, |first| first.min(seed)));
        }
        self.view_changes += outcome.view_changes;
        self.seeds_with_view_changes += u64::from(outcome.view_changes > 0);
        self.seeds_with_stable += u64::from(outcome.stable > 0);
        self.transfers += outcome.transfers;
        self.seeds_with_transfers += u64::from(outcome.transfers > 0);
        self.restarts += outcome.restarts;
        self.seeds_with_restarts += u64::from(outcome.restarts > 0);
        self.losses += outcome.losses;
        self.readmissions += outcome.readmissions;
        self.seeds_with_readmissions += u64::from(outcome.readmissions > 0);
        self.effective += outcome.effective;
        self.seeds_with_effective += u64::from(outcome.effective > 0);
        self.accusations += outcome.accusations;
        self.doubtful += outcome.doubtful;
        self.events += outcome.events;
        self.reads += outcome.reads;
        self.fast_reads += outcome.fast_reads;
        self.seeds_with_fast_reads += u64::from(outcome.fast_reads > 0);
        self.undone += outcome.undone;
        self.seeds_with_undone += u64::from(outcome.undone > 0);
        self.undecided += outcome.undecided;
        self.longest_healing = self.longest_healing.max(outcome.healing);
        self.longest_wait = self.longest_wait.max(outcome.waited);
        for (what, count) in &outcome.service {
            let (times, seeds) = self.service.entry(what).or_default();
            (*times, *seeds) = (*times + count, *seeds + u64::from(*count > 0));
        }
    }

    /// Adds another report.
    pub fn merge(&mut self, other: &Self) {
        self.seeds += other.seeds;
        self.steps += other.steps;
        self.ordered += other.ordered;
        self.vacuous += other.vacuous;
        self.view_changes += other.view_changes;
        self.seeds_with_view_changes += other.seeds_with_view_changes;
        self.seeds_with_stable += other.seeds_with_stable;
        self.transfers += other.transfers;
        self.seeds_with_transfers += other.seeds_with_transfers;
        self.restarts += other.restarts;
        self.seeds_with_restarts += other.seeds_with_restarts;
        self.losses += other.losses;
        self.readmissions += other.readmissions;
        self.seeds_with_readmissions += other.seeds_with_readmissions;
        self.effective += other.effective;
        self.seeds_with_effective += other.seeds_with_effective;
        self.accusations += other.accusations;
        self.doubtful += other.doubtful;
        self.events += other.events;
        self.reads += other.reads;
        self.fast_reads += other.fast_reads;
        self.seeds_with_fast_reads += other.seeds_with_fast_reads;
        self.undone += other.undone;
        self.seeds_with_undone += other.seeds_with_undone;
        self.undecided += other.undecided;
        self.longest_healing = self.longest_healing.max(other.longest_healing);
        self.longest_wait = self.longest_wait.max(other.longest_wait);
        self.violations += other.violations;
        for (what, (times, seeds)) in &other.service {
            let sum = self.service.entry(what).or_default();
            *sum = (sum.0 + times, sum.1 + seeds);
        }
        self.vacuous_seed = match (self.vacuous_seed, other.vacuous_seed) {
            (Some(one), Some(two)) => Some(one.min(two)),
            (one, two) => one.or(two),
        };
    }

    /// What occurs in fewer than a fifth of the seeds, or seeds that order too little: then the run
    /// shows less than it claims. Only runs of some size are judged, and readmissions only where the protocol `replaces`
    /// machines, what is undone only where something is executed tentatively.
    #[must_use]
    pub fn rare(&self, replaces: bool, tentative: bool) -> Option<String> {
        if let Some(seed) = self.vacuous_seed {
            return Some(format!(
                "{} seeds order fewer than {MIN_REQUESTS} requests, or answer fewer than {MIN_ANSWERS}, seed {seed} first",
                self.vacuous
            ));
        }
        if self.seeds < 50 {
            return None;
        }
        let counts = [
            ("view changes", self.seeds_with_view_changes),
            ("stable checkpoints", self.seeds_with_stable),
            ("state transfers", self.seeds_with_transfers),
            ("restarts", self.seeds_with_restarts),
            ("readmissions", self.seeds_with_readmissions),
            ("effective adversary actions", self.seeds_with_effective),
            ("batches undone", self.seeds_with_undone),
            ("reads not ordered", self.seeds_with_fast_reads),
        ];
        let expected = |name: &str| match name {
            "readmissions" => replaces,
            "batches undone" | "reads not ordered" => tentative,
            _ => true,
        };
        let rare = counts.iter().find(|(name, count)| expected(name) && count * 5 < self.seeds)?;
        Some(format!("{} occur in only {} of {} seeds", rare.0, rare.1, self.seeds))
    }

    /// What the service did in fewer than a fifth of the seeds: then the run shows less than it claims.
    #[must_use]
    pub fn rarely_done(&self, service: ServiceKind) -> Option<String> {
        if self.seeds < 50 || service == ServiceKind::Kv {
            return None;
        }
        let seeds = |what: &str| self.service.get(what).map_or(0, |(_, seeds)| *seeds);
        let rare = COORDINATION.iter().find(|what| seeds(what) * 5 < self.seeds)?;
        Some(format!("{rare} occur in only {} of {} seeds", seeds(rare), self.seeds))
    }

    /// The figures for a person. `seconds` is wall time, `threads` how many worked.
    #[must_use]
    pub fn text(&self, seconds: f64, threads: usize) -> String {
        let mut out = String::new();
        let share = |count: u64| 100.0 * count as f64 / self.seeds.max(1) as f64;
        let _ = writeln!(
            out,
            "seeds {} in {seconds:.1} s: {:.0} steps/s per core, {:.1} seeds/s, {} steps, {} requests ordered",
            self.seeds,
            self.steps as f64 / seconds / threads as f64,
            self.seeds as f64 / seconds,
            self.steps,
            self.ordered
        );
        let _ = writeln!(
            out,
            "  view changes          {:>9}  in {:>5.1}% of seeds",
            self.view_changes,
            share(self.seeds_with_view_changes)
        );
        let _ = writeln!(
            out,
            "  stable checkpoints               in {:>5.1}% of seeds",
            share(self.seeds_with_stable)
        );
        let _ = writeln!(
            out,
            "  state transfers       {:>9}  in {:>5.1}% of seeds",
            self.transfers,
            share(self.seeds_with_transfers)
        );
        let _ = writeln!(
            out,
            "  restarts              {:>9}  in {:>5.1}% of seeds",
            self.restarts,
            share(self.seeds_with_restarts)
        );
        let _ = writeln!(
            out,
            "  readmissions          {:>9}  in {:>5.1}% of seeds, of {} machines lost or replaced",
            self.readmissions,
            share(self.seeds_with_readmissions),
            self.losses
        );
        let _ = writeln!(
            out,
            "  adversary actions     {:>9}  in {:>5.1}% of seeds",
            self.effective,
            share(self.seeds_with_effective)
        );
        let _ = writeln!(
            out,
            "  batches undone        {:>9}  in {:>5.1}% of seeds",
            self.undone,
            share(self.seeds_with_undone)
        );
        let _ = writeln!(
            out,
            "  faulty accused {}, wrong tags shown {}, events {}, reads {}, not ordered {} (in {:.1}% of seeds), longest healing {} ms, longest wait {} ms, histories too long {}",
            self.accusations,
            self.doubtful,
            self.events,
            self.reads,
            self.fast_reads,
            share(self.seeds_with_fast_reads),
            self.longest_healing / 1000,
            self.longest_wait / 1000,
            self.undecided
        );
        for (what, (times, seeds)) in &self.service {
            let _ = writeln!(out, "  {what:<35} {times:>9}  in {:>5.1}% of seeds", share(*seeds));
        }
        out
    }

    /// The figures as a JSON object.
    #[must_use]
    pub fn json(&self, seconds: f64, threads: usize) -> serde_json::Value {
        let speed = self.steps as f64 / seconds / threads as f64;
        serde_json::json!({
            "seeds": self.seeds,
            "seconds": (seconds * 100.0).round() / 100.0,
            "steps": self.steps,
            "steps_per_second_per_core": speed.round(),
            "ordered": self.ordered,
            "vacuous": self.vacuous,
            "view_changes": self.view_changes,
            "seeds_with_view_changes": self.seeds_with_view_changes,
            "seeds_with_stable": self.seeds_with_stable,
            "transfers": self.transfers,
            "seeds_with_transfers": self.seeds_with_transfers,
            "restarts": self.restarts,
            "seeds_with_restarts": self.seeds_with_restarts,
            "losses": self.losses,
            "readmissions": self.readmissions,
            "seeds_with_readmissions": self.seeds_with_readmissions,
            "effective": self.effective,
            "seeds_with_effective": self.seeds_with_effective,
            "accusations": self.accusations,
            "doubtful": self.doubtful,
            "reads": self.reads,
            "fast_reads": self.fast_reads,
            "seeds_with_fast_reads": self.seeds_with_fast_reads,
            "undone": self.undone,
            "seeds_with_undone": self.seeds_with_undone,
            "longest_healing_ms": self.longest_healing / 1000,
            "longest_wait_ms": self.longest_wait / 1000,
            "undecided": self.undecided,
            "violations": self.violations,
            "service_did": self.service.iter().map(|(what, (times, _))| (*what, *times)).collect::<BTreeMap<_, _>>(),
        })
    }
}
