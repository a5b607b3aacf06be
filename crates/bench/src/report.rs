//! What follows from the rounds: medians, spread, the ratio and the claim.

use crate::cli::Plan;
use crate::marks::Mark;
use serde_json::{Value, json};

/// The share of the unreplicated service's throughput that the project claims.
const CLAIM: f64 = 1.0 / 8.0;

/// One measured round.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Round {
    /// Operations per second.
    pub(crate) rate: f64,
    /// Microseconds from submission to result, for half of the operations.
    pub(crate) p50: f64,
    /// The same for 99 of 100.
    pub(crate) p99: f64,
    /// Microseconds of processor time per operation, of all servers together.
    pub(crate) servers_cpu: f64,
    /// The same of all clients.
    pub(crate) client_cpu: f64,
    /// Bytes per operation that anybody sent.
    bytes: f64,
    /// Of these, what servers sent to each other.
    bytes_between: f64,
    /// Reads and writes of connections per operation, of all servers together.
    servers_calls: f64,
    /// The same of all clients.
    client_calls: f64,
    /// System calls of any kind per operation, of all servers together and their trusted processes, where counted.
    pub(crate) system_calls: Option<f64>,
    /// Requests for memory per operation, of all servers together without their trusted processes.
    allocations: f64,
    /// Operations per frame.
    pub(crate) frame_operations: f64,
    /// Frames per ordered or executed batch.
    batch_frames: f64,
    /// Operations per batch.
    batch_operations: f64,
    /// Views that replicas left; a round with one measured something else.
    pub(crate) view_changes: u64,
    /// Syncs of logs per operation, of all servers together.
    pub(crate) syncs: f64,
    /// Calls to trusted components per operation, of all servers together.
    calls: f64,
}

pub(crate) type Column = (&'static str, &'static str, usize, fn(&Round) -> f64);

/// What is shown of a round: title, name in JSON, decimals.
const COLUMNS: [Column; 13] = [
    ("operations per second", "operations_per_second", 0, |round| round.rate),
    ("latency p50, µs", "p50_us", 0, |round| round.p50),
    ("latency p99, µs", "p99_us", 0, |round| round.p99),
    ("CPU µs per operation, servers", "servers_cpu_us", 2, |round| round.servers_cpu),
    ("CPU µs per operation, clients", "clients_cpu_us", 2, |round| round.client_cpu),
    ("bytes per operation, all senders", "bytes", 1, |round| round.bytes),
    ("  of these between servers", "bytes_between_servers", 1, |round| round.bytes_between),
    ("reads + writes per operation, servers", "servers_calls", 3, |round| round.servers_calls),
    ("reads + writes per operation, clients", "clients_calls", 3, |round| round.client_calls),
    ("allocations per operation, servers", "servers_allocations", 2, |round| round.allocations),
    ("operations per frame", "operations_per_frame", 1, |round| round.frame_operations),
    ("frames per batch", "frames_per_batch", 1, |round| round.batch_frames),
    ("operations per batch", "operations_per_batch", 0, |round| round.batch_operations),
];

/// What is shown beside it where some servers are durable.
const KEPT: [Column; 2] = [
    ("log syncs per operation, servers", "syncs", 4, |round| round.syncs),
    ("trusted calls per operation, servers", "trusted_calls", 4, |round| round.calls),
];

/// What is shown beside it where it can be counted.
const COUNTED: [Column; 1] = [("system calls per operation, servers", "system_calls", 3, |round| {
    round.system_calls.unwrap_or(f64::NAN)
})];

/// What is shown of every round.
fn always() -> impl Iterator<Item = &'static Column> {
    COLUMNS.iter().chain(COUNTED.iter().filter(|_| crate::syscalls::available(crate::syscalls::Event::Calls)))
}

/// What is shown of a round of servers that may be durable.
pub(crate) fn columns() -> impl Iterator<Item = &'static Column> {
    always().chain(&KEPT)
}

impl Round {
    /// What happened between two marks.
    pub(crate) fn new(before: &Mark, after: &Mark, latencies: &[(u32, u32)]) -> Self {
        let operations = (after.progress.done - before.progress.done) as f64;
        let per = |count: u64| count as f64 / operations;
        let (first, last) = (&before.progress, &after.progress);
        let frames = last.frames - first.frames;
        let sum = |count: fn(&troth_node::Snapshot) -> u64| {
            let total = |mark: &Mark| mark.snapshots.iter().map(count).sum::<u64>();
            total(after) - total(before)
        };
        let batches = (after.snapshots[0].executed - before.snapshots[0].executed) as f64;
        let by_servers = sum(|server| server.counters.bytes_out);
        let by_clients = last.bytes_out - first.bytes_out;
        let to_clients = last.bytes_in - first.bytes_in;
        Self {
            rate: operations / after.at.duration_since(before.at).as_secs_f64(),
            p50: percentile(latencies, 0.50),
            p99: percentile(latencies, 0.99),
            servers_cpu: per(after.servers_cpu.saturating_sub(before.servers_cpu)),
            client_cpu: per(after.client_cpu - before.client_cpu),
            bytes: per(by_servers + by_clients),
            bytes_between: per(by_servers.saturating_sub(to_clients)),
            servers_calls: per(sum(|server| server.counters.reads + server.counters.writes)),
            client_calls: per(last.reads + last.writes - first.reads - first.writes),
            system_calls: None,
            allocations: per(after.allocations.saturating_sub(before.allocations)),
            frame_operations: operations / frames.max(1) as f64,
            batch_frames: frames as f64 / batches,
            batch_operations: operations / batches,
            view_changes: sum(|server| server.counters.view_changes),
            syncs: per(sum(|server| server.counters.syncs)),
            calls: per(sum(|server| server.counters.attestations)),
        }
    }
}

/// The value that this share of the counted values does not exceed.
pub(crate) fn percentile(values: &[(u32, u32)], share: f64) -> f64 {
    let mut values = values.to_vec();
    values.sort_unstable();
    let total: u64 = values.iter().map(|(_, count)| u64::from(*count)).sum();
    let wanted = (total as f64 * share).ceil() as u64;
    let mut seen = 0;
    for (value, count) in values {
        seen += u64::from(count);
        if seen >= wanted {
            return f64::from(value);
        }
    }
    0.0
}

/// The middle value; between the two middle ones where their number is even.
pub(crate) fn median(values: impl IntoIterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.into_iter().collect();
    values.sort_by(f64::total_cmp);
    match values.len() {
        0 => 0.0,
        count if count % 2 == 1 => values[count / 2],
        count => (values[count / 2 - 1] + values[count / 2]) / 2.0,
    }
}

/// Prints the result; tells whether the claim holds.
pub(crate) fn report(plan: &Plan, replicated: &[Round], direct: &[Round]) -> bool {
    let load = load_average();
    let rates = |rounds: &[Round]| median(rounds.iter().map(|round| round.rate));
    let ratio = rates(replicated) / rates(direct);
    let view_changes: u64 = replicated.iter().map(|round| round.view_changes).sum();
    let holds = ratio >= CLAIM;

    println!();
    println!(
        "null service, {}, f = {}, {} clients, {} requests outstanding, {} bytes each, {} rounds of {} s; load average {}",
        plan.protocol.name(),
        plan.f,
        plan.clients.connections,
        plan.clients.outstanding,
        plan.bytes,
        plan.rounds,
        plan.seconds,
        load[0]
    );
    println!("{:<38} {:>26} {:>26}", "median (lowest to highest)", "replicated", "unreplicated");
    for &(title, _, decimals, value) in always() {
        let cell = |rounds: &[Round]| {
            let of = || rounds.iter().map(value);
            let (low, high) = (of().fold(f64::INFINITY, f64::min), of().fold(f64::NEG_INFINITY, f64::max));
            format!("{:.decimals$} ({low:.decimals$} to {high:.decimals$})", median(of()))
        };
        println!("{title:<38} {:>26} {:>26}", cell(replicated), cell(direct));
    }
    if view_changes > 0 {
        println!("The replicas changed their view ({view_changes} counted): this run measured that, too.");
    }
    println!(
        "replicated / unreplicated = {ratio:.3} = 1/{:.1}: the claim of at least 1/8 {}",
        1.0 / ratio,
        if holds { "holds" } else { "does not hold" }
    );
    if plan.json {
        let variant = |rounds: &[Round]| -> Value {
            always()
                .map(|(_, name, _, value)| {
                    let all: Vec<f64> = rounds.iter().map(value).collect();
                    ((*name).to_owned(), json!({ "median": median(all.clone()), "rounds": all }))
                })
                .collect::<serde_json::Map<_, _>>()
                .into()
        };
        let result = json!({
            "service": "null", "protocol": plan.protocol.name(), "f": plan.f, "connections": plan.clients.connections, "outstanding": plan.clients.outstanding,
            "operation_bytes": plan.bytes, "seconds": plan.seconds, "rounds": plan.rounds,
            "load_average": load, "view_changes": view_changes,
            "replicated": variant(replicated), "unreplicated": variant(direct),
            "ratio": ratio, "claim": CLAIM, "ok": holds,
        });
        println!("{result}");
    }
    holds
}

/// The machine's load over 1, 5 and 15 minutes; part of it is this measurement.
pub(crate) fn load_average() -> [f64; 3] {
    let text = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let mut numbers = text.split_whitespace().map(|word| word.parse().unwrap_or(0.0));
    [(); 3].map(|()| numbers.next().unwrap_or(0.0))
}
