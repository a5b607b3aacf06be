//! What follows from the phases: the ratio, the memory and the claim.

use crate::Failure;
use crate::cli::{FloodKind, FloodPlan};
use crate::marks::ask;
use crate::processes::Server;
use crate::report::median;
use serde_json::{Value, json};
use std::time::Duration;
use troth_node::Counters;

/// The share of the baseline's throughput that the project claims.
const CLAIM: f64 = 0.8;

/// What one phase showed.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Phase {
    /// Honest operations per second.
    pub(crate) rate: f64,
    /// Microseconds that 99 of 100 took at most.
    pub(crate) p99: f64,
    pub(crate) view_changes: u64,
    /// Bytes per second that an honest replica read.
    pub(crate) read_bytes: u64,
    /// Bytes per second of the flood that were taken, of all targets together.
    pub(crate) flood_bytes: u64,
    /// Connections that an honest client made meanwhile.
    pub(crate) connects: u64,
    pub(crate) slowest_connect: Duration,
}

/// All phases of one kind of flood.
#[derive(Clone, Debug, Default)]
pub(crate) struct Outcome {
    pub(crate) discarded: Vec<Phase>,
    pub(crate) flooded: Vec<Phase>,
}

/// What one replica says in the end, and its memory in bytes: the most that was resident, and the bound that it states.
#[derive(Clone, Debug)]
struct Replica {
    replica: u16,
    /// What it counted.
    counters: Counters,
    resident: u64,
    bound: u64,
}

/// What one kind of flood showed.
pub(crate) struct Flooded {
    kind: FloodKind,
    quiet: Phase,
    outcome: Outcome,
    /// Bytes per second offered to each target.
    offered: u64,
    memory: Vec<Replica>,
}

impl Flooded {
    pub(crate) async fn new(
        kind: FloodKind,
        quiet: Phase,
        outcome: Outcome,
        offered: u64,
        replicas: &[Server],
    ) -> Result<Self, Failure> {
        let mut memory = Vec::new();
        for server in replicas {
            let snapshot = ask(&server.http).await?;
            memory.push(Replica {
                replica: snapshot.replica,
                resident: resident(server.pid())?,
                bound: snapshot.memory_bound,
                counters: snapshot.counters,
            });
        }
        Ok(Self { kind, quiet, outcome, offered, memory })
    }

    fn ratio(&self) -> f64 {
        let rate = |phases: &[Phase]| median(phases.iter().map(|phase| phase.rate));
        rate(&self.outcome.flooded) / rate(&self.outcome.discarded).max(1.0)
    }

    /// What the discarding socket took, of what was offered to all targets; idle connections offer nothing.
    fn taken(&self) -> Option<f64> {
        let all = self.offered as f64 * self.memory.len() as f64;
        let taken = median(self.outcome.discarded.iter().map(|phase| phase.flood_bytes as f64));
        (self.kind != FloodKind::Idle).then_some(taken / all)
    }

    /// Whether there was a flood. How much of it comes through is what this machine leaves to the flooder beside the group:
    /// the less, the less it takes from the group that it is compared with.
    fn is_one(&self) -> bool {
        let mut phases = self.outcome.discarded.iter().chain(&self.outcome.flooded);
        self.kind == FloodKind::Idle || phases.all(|phase| phase.flood_bytes > 0)
    }

    fn holds(&self) -> bool {
        self.ratio() >= CLAIM
            && self.is_one()
            && self.memory.iter().all(|memory| memory.resident <= memory.bound)
    }

    fn summary(&self) -> String {
        let rate = |phases: &[Phase]| median(phases.iter().map(|phase| phase.rate));
        let memory = self.memory.iter().map(|memory| memory.resident).max().unwrap_or(0) >> 20;
        let bound = self.memory.iter().map(|memory| memory.bound).min().unwrap_or(0) >> 20;
        let taken = self.taken().map(|taken| format!(", of what was offered the socket took {taken:.2}"));
        format!(
            "{}: {:.2} of {:.0} operations/s{}, memory at most {memory} MiB of {bound} MiB",
            self.kind.name(),
            self.ratio(),
            rate(&self.outcome.discarded),
            taken.unwrap_or_default()
        )
    }

    fn json(&self) -> Value {
        let phases = |phases: &[Phase]| -> Vec<Value> { phases.iter().map(Phase::json).collect() };
        json!({
            "flood": self.kind.name(),
            "ratio": self.ratio(),
            "ok": self.holds(),
            "offered_bytes_per_second_and_target": self.offered,
            "share_that_the_socket_took": self.taken(),
            "quiet": self.quiet.json(),
            "to_discarding_socket": phases(&self.outcome.discarded),
            "to_replicas": phases(&self.outcome.flooded),
            "memory": self.memory.iter().map(|memory| json!({
                "replica": memory.replica,
                "most_resident_bytes": memory.resident,
                "bound_bytes": memory.bound,
                "counters": memory.counters,
            })).collect::<Vec<_>>(),
        })
    }
}

impl Phase {
    fn json(&self) -> Value {
        json!({
            "operations_per_second": self.rate,
            "p99_us": self.p99,
            "view_changes": self.view_changes,
            "read_bytes_per_second": self.read_bytes,
            "flood_bytes_per_second": self.flood_bytes,
            "connects": self.connects,
            "slowest_connect_ms": self.slowest_connect.as_secs_f64() * 1e3,
        })
    }
}

/// Bytes that the replicas have read so far, all together.
pub(crate) async fn reads(replicas: &[Server]) -> Result<u64, Failure> {
    let mut bytes = 0;
    for server in replicas {
        bytes += ask(&server.http).await?.counters.bytes_in;
    }
    Ok(bytes)
}

/// The most bytes that a process ever had resident.
fn resident(pid: u32) -> Result<u64, Failure> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status"))?;
    Ok(resident_of(&status).ok_or("what /proc says of a process has another form than proc(5) gives it")?)
}

/// The high-water mark of the resident set in `/proc/<pid>/status`.
pub(crate) fn resident_of(status: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kilobytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kilobytes << 10)
}

/// Prints the result; tells whether the claim holds.
pub(crate) fn report(plan: &FloodPlan, flooded: &[Flooded]) -> bool {
    let holds = flooded.iter().all(Flooded::holds);
    for flood in flooded {
        for memory in &flood.memory {
            println!(
                "{}: replica {} had at most {} MiB resident, of {} MiB that it may",
                flood.kind.name(),
                memory.replica,
                memory.resident >> 20,
                memory.bound >> 20
            );
        }
        let connects = flood.outcome.flooded.iter().map(|phase| phase.connects).sum::<u64>();
        let slowest = flood.outcome.flooded.iter().map(|phase| phase.slowest_connect).max();
        println!(
            "{}: {connects} connections of an honest client meanwhile, the slowest after {:.0} ms",
            flood.kind.name(),
            slowest.unwrap_or_default().as_secs_f64() * 1e3
        );
    }
    let parts: Vec<String> = flooded.iter().map(Flooded::summary).collect();
    let verdict = if holds { "holds" } else { "does NOT hold" };
    let summary = format!(
        "{}: {verdict}: honest throughput under flood, {} s each; {}",
        plan.protocol,
        plan.seconds,
        parts.join("; ")
    );
    if plan.json {
        let floods: Vec<Value> = flooded.iter().map(Flooded::json).collect();
        println!(
            "{}",
            json!({ "ok": holds, "summary": summary, "protocol": plan.protocol.name(), "seconds": plan.seconds, "floods": floods })
        );
    } else {
        println!("{summary}");
    }
    holds
}
