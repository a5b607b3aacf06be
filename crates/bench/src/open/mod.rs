//! An open loop: requests arrive at times that do not depend on answers, at several shares of the rate that a closed
//! loop reached before in the same run, and each latency is counted from the time at which the request was due.
//!
//! | module | subject |
//! | --- | --- |
//! | `arrivals` | when requests arrive, from a seed |
//! | `schedule` | which are due, which count, and what happens where they pile up |
//! | `alarm` | waking up at that time |
//! | `report` | what is printed |

mod alarm;
pub(crate) mod arrivals;
pub(crate) mod report;
pub(crate) mod schedule;

use arrivals::Arrivals;
pub(crate) use schedule::{Due, Schedule};

use crate::Failure;
use crate::caller::Caller;
use crate::cli::{OpenPlan, VariantName};
use crate::load::{Controls, Load};
use crate::marks::Mark;
use crate::null::{DRAIN, OVERHEAD, WARM_UP};
use crate::processes::Server;
use crate::protocol::Agreed;
use crate::report::{Round, median, percentile};
use crate::variants::{Either, IN_PROCESS, OWN_PROCESS, Running, Setup, plain, replicated};
use schedule::Met;
use std::time::Duration;
use tokio::task::LocalSet;
use troth_node::config::TrustedHome;

/// Requests that may be outstanding, in seconds of arrivals: a system that has fallen behind further does not keep
/// up, and to let more wait would only measure for how long it was asked to.
const BACKLOG_SECONDS: f64 = 1.0;
/// At least and, for each client, at most so many: half of what a client lets wait (`troth_client::Bounds`).
const BACKLOG: (f64, f64) = (1_000.0, 32_768.0);

/// What a round at one rate showed.
#[derive(Clone, Debug)]
struct Seen {
    round: Round,
    p999: f64,
    /// Requests per second that were due.
    offered: f64,
    /// The share of them that was not asked, because too many waited.
    refused: f64,
    /// Microseconds by which 99 of 100 were asked late at the most; it is part of their latency.
    late: f64,
    /// Whether the latencies show that they are of everything that was asked, and counted from when it was due.
    from_due: bool,
}

/// A variant at one rate.
#[derive(Debug)]
struct Point {
    percent: u32,
    /// Requests per second, as planned.
    rate: f64,
    seen: Vec<Seen>,
}

/// What was measured of a variant.
struct Variant {
    name: &'static str,
    /// What the closed loop reached.
    closed: Vec<Round>,
    points: Vec<Point>,
}

/// Measures, prints, and tells whether the claim holds: what was offered was reached below where each variant saturates,
/// and every latency was counted from when its request was due.
pub(crate) fn run(plan: &OpenPlan) -> Result<bool, Failure> {
    let rounds = (plan.percent.len() as u32 + 1) * plan.rounds * 3;
    let limit = (Duration::from_secs(plan.seconds) + WARM_UP) * rounds * 2 + OVERHEAD * 3;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let variants = LocalSet::new().block_on(&runtime, async {
        tokio::time::timeout(limit, measure(plan))
            .await
            .unwrap_or_else(|_| Err(format!("not done after {} s", limit.as_secs()).into()))
    })?;
    Ok(report::report(plan, &variants))
}

async fn measure(plan: &OpenPlan) -> Result<Vec<Variant>, Failure> {
    let setup = Setup {
        service: plan.service.into(),
        durability: plan.durability.into(),
        bytes: plan.bytes() as usize,
        clients: plan.clients,
    };
    let mut running = Vec::new();
    for variant in <VariantName as clap::ValueEnum>::value_variants() {
        if plan.variant.is_empty() || plan.variant.contains(variant) {
            running.push(match variant {
                VariantName::OwnProcess => {
                    replicated(setup, OWN_PROCESS, Agreed::minbft(1, TrustedHome::Process)).await?
                }
                VariantName::InProcess => {
                    replicated(setup, IN_PROCESS, Agreed::minbft(1, TrustedHome::InProcess)).await?
                }
                VariantName::Unreplicated => plain(setup).await?,
            });
        }
    }
    let count = running.len();
    for number in 0..plan.rounds as usize {
        for turn in 0..count {
            let one = &mut running[(turn + number) % count];
            let round = one.round(plan.seconds).await?;
            println!("closed loop, round {}, {:<28} {:>9.0}/s", number + 1, one.name, round.rate);
            one.rounds.push(round);
        }
    }
    let mut variants: Vec<Variant> = running
        .iter_mut()
        .map(|one| {
            let closed = std::mem::take(&mut one.rounds);
            let most = median(closed.iter().map(|round| round.rate));
            let point = |percent: &u32| {
                let rate = most * f64::from(*percent) / 100.0;
                Point { percent: *percent, rate, seen: Vec::new() }
            };
            Variant { name: one.name, closed, points: plan.percent.iter().map(point).collect() }
        })
        .collect();
    for number in 0..plan.rounds as usize {
        for step in 0..plan.percent.len() {
            for turn in 0..count {
                // Who goes first in one round goes later in the next.
                let index = (turn + number) % count;
                let (name, point) = (variants[index].name, &mut variants[index].points[step]);
                // All variants meet the same pattern, each in its own rate.
                let seed = plan.seed.wrapping_add((number * plan.percent.len() + step) as u64);
                let seen = at_rate(&mut running[index], seed, point.rate, plan.seconds).await?;
                report::say(number + 1, name, point, &seen);
                point.seen.push(seen);
            }
        }
    }
    Ok(variants)
}

async fn at_rate(running: &mut Running, seed: u64, rate: f64, seconds: u64) -> Result<Seen, Failure> {
    match &mut running.load {
        Either::Replicated(load) => follow(load, &running.servers, seed, rate, seconds).await,
        Either::Plain(load) => follow(load, &running.servers, seed, rate, seconds).await,
    }
}

/// One warm-up and one measurement at a rate.
async fn follow<C: Caller>(
    load: &mut Load<C>,
    servers: &[Server],
    seed: u64,
    rate: f64,
    seconds: u64,
) -> Result<Seen, Failure> {
    let measured = Duration::from_secs(seconds);
    let clients = load.clients();
    let bound = (rate * BACKLOG_SECONDS).clamp(BACKLOG.0, BACKLOG.1 * clients as f64) as u64;
    let controls = Controls::default();
    controls.keep.set(true);
    let arrivals = Arrivals::new(seed, rate, clients);
    let mut schedule = Schedule::new(arrivals, WARM_UP..WARM_UP + measured, bound)?;
    let watch = async {
        tokio::time::sleep(WARM_UP).await;
        let before = Mark::take(servers, &controls).await?;
        tokio::time::sleep(measured).await;
        Ok((before, Mark::take(servers, &controls).await?))
    };
    let both = async { tokio::try_join!(load.follow(&controls, &mut schedule), watch) };
    let ((), (before, after)) = tokio::time::timeout(WARM_UP + measured + DRAIN, both)
        .await
        .map_err(|_| "requests of a round have no outcome; the servers are stuck or far too slow")??;
    let latencies = controls.latencies.borrow();
    let met = schedule.met();
    let from_due = met.shows_in(&latencies);
    let Met { due, refused, late } = met;
    Ok(Seen {
        round: Round::new(&before, &after, &latencies),
        p999: percentile(&latencies, 0.999),
        offered: due as f64 / measured.as_secs_f64(),
        refused: refused as f64 / due.max(1) as f64,
        late: percentile(&late, 0.99),
        from_due,
    })
}
