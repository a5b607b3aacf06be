//! What a sceptic asks for: each figure beside the same service unreplicated, with the same durability, and beside
//! what the machine itself can do, in turns in the same run.
//!
//! | gate | what is compared |
//! | --- | --- |
//! | `rate` | operations per second of the cluster and of the unreplicated service |
//! | `latency` | the p50 of one client alone, of the two |
//! | `processor` | processor time per operation of a cluster with f = 2 and of one with f = 1 |

use crate::Failure;
use crate::cli::{Clients, SuitePlan};
use crate::null::{OVERHEAD, WARM_UP};
use crate::protocol::Agreed;
use crate::report::{Round, columns, load_average, median};
use crate::variants::{IN_PROCESS, OWN_PROCESS, Setup, plain, replicated};
use crate::yardsticks::Yardsticks;
use serde_json::{Value, json};
use std::time::Duration;
use tokio::task::LocalSet;
use troth_node::config::{Durability, Service, TrustedHome};

/// What must hold of a cell.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Gate {
    /// The cluster's rate is at least this share of the unreplicated service's.
    Rate(f64),
    /// One client's p50 is at most so many times the unreplicated service's.
    Latency(f64),
    /// An operation takes at most so many times the processor time that it takes at f = 1.
    Processor(f64),
}

impl Gate {
    fn name(self) -> &'static str {
        match self {
            Self::Rate(_) => "rate",
            Self::Latency(_) => "latency",
            Self::Processor(_) => "processor",
        }
    }
}

/// One thing that is measured.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cell {
    pub(crate) name: &'static str,
    pub(crate) setup: Setup,
    gate: Gate,
}

const MANY: Cell = Cell {
    name: "null, memory, 16 clients, 1000 outstanding",
    setup: Setup {
        service: Service::Null,
        durability: Durability::Memory,
        bytes: 0,
        clients: Clients { connections: 16, outstanding: 1000 },
    },
    gate: Gate::Rate(1.0 / 4.0),
};
const ALONE: Cell = Cell {
    name: "null, memory, one client alone",
    setup: Setup { clients: ONE, ..MANY.setup },
    gate: Gate::Latency(2.0),
};
const SEPARATE: Cell = Cell {
    name: "null, memory, 1000 clients, a frame for each request",
    setup: Setup { clients: Clients { connections: 1000, outstanding: 1000 }, ..MANY.setup },
    gate: Gate::Rate(0.4),
};
const WIDER: Cell = Cell { name: "null, memory, f = 2 beside f = 1", gate: Gate::Processor(1.8), ..MANY };
/// Durable writes, many at a time.
pub(crate) const WRITES: Cell = Cell {
    name: "kv, always, 256 B values, 1000 outstanding",
    setup: Setup { service: Service::Kv, durability: Durability::Always, bytes: 256, ..MANY.setup },
    gate: Gate::Rate(1.0 / 5.0),
};
/// Durable writes, one at a time.
pub(crate) const WRITES_ALONE: Cell = Cell {
    name: "kv, always, 256 B values, one client alone",
    setup: Setup { clients: ONE, ..WRITES.setup },
    gate: Gate::Latency(5.0),
};
/// One client that waits for each answer.
const ONE: Clients = Clients { connections: 1, outstanding: 1 };

/// What a cell showed.
struct Shown {
    cell: Cell,
    /// Name and rounds, the one that the gate is about first and the one that it is compared with last.
    variants: Vec<(&'static str, Vec<Round>)>,
    ratio: f64,
    ok: bool,
}

/// Measures, prints, and tells whether every gate holds.
pub(crate) fn run(plan: &SuitePlan) -> Result<bool, Failure> {
    let cells: Vec<Cell> = [MANY, ALONE, SEPARATE, WIDER, WRITES, WRITES_ALONE]
        .into_iter()
        .filter(|cell| plan.service.is_none_or(|service| Service::from(service) == cell.setup.service))
        .filter(|cell| plan.only.as_ref().is_none_or(|only| cell.name.contains(only.as_str())))
        .collect();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let limit = (Duration::from_secs(plan.seconds) + WARM_UP) * (3 * (plan.rounds + 1)) + OVERHEAD * 3;
    let (mut shown, mut machine, mut missed) = (Vec::new(), Yardsticks::default(), Vec::new());
    let count = cells.len();
    for cell in cells {
        machine.look()?;
        let done = LocalSet::new().block_on(&runtime, async {
            tokio::time::timeout(limit, measure(plan, cell)).await.unwrap_or_else(|_| {
                Err(format!("{}: not done after {} s", cell.name, limit.as_secs()).into())
            })
        });
        // What one cell could not show takes nothing from what the others did.
        match done {
            Ok(done) => {
                print(&done);
                if !done.ok {
                    missed.push(cell.name.to_owned());
                }
                shown.push(done);
            }
            Err(why) => {
                println!("\n{}: not measured: {why}", cell.name);
                missed.push(format!("{} (not measured)", cell.name));
            }
        }
    }
    machine.look()?;
    println!(
        "\nthe machine itself, medians of {} looks between the cells; load average {}",
        machine.looks(),
        load_average()[0]
    );
    machine.print();
    let summary = match missed.as_slice() {
        [] => format!("all {count} gates hold"),
        missed => format!("{} of {count} gates do not hold: {}", missed.len(), missed.join("; ")),
    };
    println!("\n{summary}");
    if plan.json {
        let cells: Vec<Value> = shown.iter().map(json_of).collect();
        let result = json!({
            "summary": summary, "ok": missed.is_empty(), "seconds": plan.seconds, "rounds": plan.rounds,
            "load_average": load_average(), "machine": machine.json(), "cells": cells,
        });
        println!("{result}");
    }
    Ok(missed.is_empty())
}

async fn measure(plan: &SuitePlan, cell: Cell) -> Result<Shown, Failure> {
    let mut running = Vec::new();
    let wider = matches!(cell.gate, Gate::Processor(_));
    if wider {
        running.push(replicated(cell.setup, "f = 2", Agreed::minbft(2, TrustedHome::Process)).await?);
        running.push(replicated(cell.setup, "f = 1", Agreed::minbft(1, TrustedHome::Process)).await?);
    } else {
        running.push(replicated(cell.setup, OWN_PROCESS, Agreed::minbft(1, TrustedHome::Process)).await?);
        running.push(replicated(cell.setup, IN_PROCESS, Agreed::minbft(1, TrustedHome::InProcess)).await?);
        running.push(plain(cell.setup).await?);
    }
    // The first one is not counted: everybody has seen the work then.
    for number in 0..=plan.rounds as usize {
        // Who goes first in one round goes later in the next.
        let count = running.len();
        for turn in 0..count {
            let one = &mut running[(turn + number) % count];
            let done = one.round(plan.seconds).await.map_err(|why| format!("{}: {why}", one.name))?;
            if number > 0 {
                one.rounds.push(done);
            }
        }
    }
    let variants: Vec<_> = running.into_iter().map(|one| (one.name, one.rounds)).collect();
    let of = |rounds: &[Round], value: fn(&Round) -> f64| median(rounds.iter().map(value));
    let (first, last) = (&variants[0].1, &variants[variants.len() - 1].1);
    let (ratio, within) = match cell.gate {
        Gate::Rate(least) => {
            let ratio = of(first, |round| round.rate) / of(last, |round| round.rate);
            (ratio, ratio >= least)
        }
        Gate::Latency(most) => {
            let ratio = of(first, |round| round.p50) / of(last, |round| round.p50);
            (ratio, ratio <= most)
        }
        Gate::Processor(most) => {
            let all = |round: &Round| round.servers_cpu;
            let ratio = of(first, all) / of(last, all);
            (ratio, ratio <= most)
        }
    };
    Ok(Shown { cell, variants, ratio, ok: within && ratio.is_finite() && ratio > 0.0 })
}

fn print(shown: &Shown) {
    let (verb, gate) = match shown.cell.gate {
        Gate::Rate(least) => ("at least", least),
        Gate::Latency(most) | Gate::Processor(most) => ("at most", most),
    };
    println!("\n{}", shown.cell.name);
    print!("{:<38}", "median (lowest to highest)");
    for (name, _) in &shown.variants {
        print!(" {name:>30}");
    }
    println!();
    for (title, _, decimals, value) in columns() {
        print!("{title:<38}");
        for (_, rounds) in &shown.variants {
            let of = || rounds.iter().map(value);
            let (low, high) = (of().fold(f64::INFINITY, f64::min), of().fold(f64::NEG_INFINITY, f64::max));
            print!(" {:>30}", format!("{:.decimals$} ({low:.decimals$} to {high:.decimals$})", median(of())));
        }
        println!();
    }
    let changes: u64 = shown.variants.iter().map(|(_, rounds)| changes(rounds)).sum();
    if changes > 0 {
        println!("The replicas changed their view ({changes} counted): this run measured that, too.");
    }
    let verdict = if shown.ok { "holds" } else { "does not hold" };
    println!("{} {:.3}: {verb} {gate:.2} {verdict}", shown.cell.gate.name(), shown.ratio);
}

/// Views that replicas left meanwhile.
fn changes(rounds: &[Round]) -> u64 {
    rounds.iter().map(|round| round.view_changes).sum()
}

fn json_of(shown: &Shown) -> Value {
    let variants: serde_json::Map<String, Value> = shown
        .variants
        .iter()
        .map(|(name, rounds)| {
            let figures: serde_json::Map<String, Value> = columns()
                .map(|(_, name, _, value)| {
                    let all: Vec<f64> = rounds.iter().map(value).collect();
                    ((*name).to_owned(), json!({ "median": median(all.clone()), "rounds": all }))
                })
                .chain([("view_changes".to_owned(), changes(rounds).into())])
                .collect();
            ((*name).to_owned(), figures.into())
        })
        .collect();
    let (Gate::Rate(bound) | Gate::Latency(bound) | Gate::Processor(bound)) = shown.cell.gate;
    json!({
        "cell": shown.cell.name, "gate": shown.cell.gate.name(), "bound": bound, "ratio": shown.ratio,
        "ok": shown.ok, "variants": variants,
    })
}
