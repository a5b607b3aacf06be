//! What a slower trusted component costs A2M-PBFT-E and A2M-PBFT-EA (SOSP '07, §6.3 and its table 2): each call of it takes
//! some microseconds more, with operations bundled into a call where the protocols bundle them, and with a call for each.
//! The paper measures a file service's work; here it is one client alone, and many requests at a time, of a service that
//! does nothing, so all that is seen is the protocols' own.

use super::Cell;
use super::side::{Figures, Side};
use crate::Failure;
use crate::cli::ProtocolsPlan;
use crate::protocol::Agreed;
use crate::report::median;
use serde_json::{Value, json};
use std::time::Duration;
use tokio::task::LocalSet;
use troth_node::config::Protocol;

/// Microseconds that a call takes more.
const DELAYS: [u64; 5] = [1, 10, 50, 250, 1000];
/// The protocols that the paper's table has.
const PROTOCOLS: [Protocol; 2] = [Protocol::A2mPbftE, Protocol::A2mPbftEa];

/// One line of the plot: a protocol, its operations bundled or not, and what each delay gave.
struct Line {
    protocol: Protocol,
    bundled: bool,
    points: Vec<(u64, Vec<Figures>)>,
}

/// Measures and prints. There is no bound: it is well where everything was measured.
pub(crate) fn run(plan: &ProtocolsPlan) -> Result<bool, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let mut lines = Vec::new();
    for protocol in PROTOCOLS {
        for bundled in [true, false] {
            let limit = plan.round() * (plan.pairs + 1) * 5 + Duration::from_secs(120);
            let points = LocalSet::new().block_on(&runtime, async {
                tokio::time::timeout(limit, measure(plan, protocol, bundled)).await.unwrap_or_else(|_| {
                    Err(format!("{protocol}: not done after {} s", limit.as_secs()).into())
                })
            })?;
            print(protocol, bundled, &points);
            lines.push(Line { protocol, bundled, points });
        }
    }
    if plan.json {
        println!("delays: {} lines of {} delays measured", lines.len(), DELAYS.len());
        println!("{}", result(plan, &lines));
    }
    Ok(true)
}

async fn measure(
    plan: &ProtocolsPlan,
    protocol: Protocol,
    bundled: bool,
) -> Result<Vec<(u64, Vec<Figures>)>, Failure> {
    let cell = Cell { faults: plan.f.first().copied().unwrap_or(1), name: "0/0", request: 0, reply: 0 };
    let mut sides = Vec::new();
    for delay in DELAYS {
        let micros = delay.to_string();
        let further: &[&str] = match bundled {
            true => &["--trusted-delay", &micros],
            false => &["--trusted-delay", &micros, "--trusted-delay-each"],
        };
        sides.push((
            Side::start(plan, cell, Agreed::in_process(protocol, cell.faults), further).await?,
            Vec::new(),
        ));
    }
    // The first one is not counted: everybody has seen the work then.
    for (side, _) in &mut sides {
        side.round(plan).await?;
    }
    for _ in 0..plan.pairs {
        for (side, rounds) in &mut sides {
            rounds.push(side.round(plan).await?);
        }
    }
    Ok(DELAYS.into_iter().zip(sides).map(|(delay, (_, rounds))| (delay, rounds)).collect())
}

fn name(bundled: bool) -> &'static str {
    if bundled { "operations bundled" } else { "a call for each operation" }
}

fn print(protocol: Protocol, bundled: bool, points: &[(u64, Vec<Figures>)]) {
    println!("\n{protocol}, {}; medians", name(bundled));
    println!(
        "{:>12} {:>22} {:>24} {:>12}",
        "call, µs", "one client alone, µs", "operations per second", "beside 1 µs"
    );
    let alone = |rounds: &[Figures]| median(rounds.iter().map(|round| round.alone));
    let first = points.first().map_or(0.0, |(_, rounds)| alone(rounds));
    for (delay, rounds) in points {
        let rate = median(rounds.iter().map(|round| round.rate));
        println!(
            "{delay:>12} {:>22.0} {rate:>24.0} {:>12.2}",
            alone(rounds),
            alone(rounds) / first.max(f64::MIN_POSITIVE)
        );
    }
}

fn result(plan: &ProtocolsPlan, lines: &[Line]) -> Value {
    let figure = |values: Vec<f64>| json!({ "median": median(values.iter().copied()), "rounds": values });
    let point = |(delay, rounds): &(u64, Vec<Figures>)| {
        json!({
            "delay_us": delay,
            "alone_p50_us": figure(rounds.iter().map(|round| round.alone).collect()),
            "operations_per_second": figure(rounds.iter().map(|round| round.rate).collect()),
        })
    };
    let line = |line: &Line| {
        json!({
            "name": format!("{}, {}", line.protocol, name(line.bundled)),
            "protocol": line.protocol.name(),
            "bundled": line.bundled,
            "points": line.points.iter().map(point).collect::<Vec<Value>>(),
        })
    };
    json!({
        "command": "delays",
        "ok": true,
        "f": plan.f.first().copied().unwrap_or(1),
        "rounds": plan.pairs,
        "lines": lines.iter().map(line).collect::<Vec<Value>>(),
    })
}
