//! What a sceptic asks for: each figure beside the same service unreplicated, with the same durability, and beside
//! what the machine itself can do, in turns in the same run.
//!
//! | gate | what is compared |
//! | --- | --- |
//! | `rate` | operations per second of the cluster and of the unreplicated service |
//! | `latency` | the p50 of one client alone, of the two |
//! | `processor` | processor time per operation of a cluster with f = 2 and of one with f = 1 |

use crate::Failure;
use crate::caller::{Caller, Plain, Replicated};
use crate::cli::{Plan, ServiceName, SuitePlan};
use crate::load::{Load, Operations};
use crate::null::{OVERHEAD, WARM_UP, links, round, start_direct, start_replicas};
use crate::processes::{Scratch, Server};
use crate::report::{Round, columns, load_average, median};
use crate::yardsticks::Yardsticks;
use bytes::Bytes;
use serde_json::{Value, json};
use std::time::Duration;
use tokio::task::LocalSet;
use troth_auth::Ed25519Signer;
use troth_kv::Operation;
use troth_node::config::{ClientSecret, Cluster, Durability, Service, TrustedHome};
use troth_types::{ClientId, ReplicaId, Wire};

/// Keys that are written: enough that they do not stand in one page, few enough to be there from the start.
const KEYS: u64 = 10_000;

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
    service: Service,
    durability: Durability,
    bytes: usize,
    pub(crate) clients: u16,
    pub(crate) outstanding: u32,
    gate: Gate,
}

impl Cell {
    /// How its rounds are run.
    pub(crate) fn plan(self, seconds: u64, rounds: u32) -> Plan {
        Plan {
            f: 1,
            connections: self.clients,
            outstanding: self.outstanding,
            bytes: 0,
            durability: crate::cli::DurabilityName::Memory,
            seconds,
            rounds,
            json: false,
        }
    }
}

const MANY: Cell = Cell {
    name: "null, memory, 16 clients, 1000 outstanding",
    service: Service::Null,
    durability: Durability::Memory,
    bytes: 0,
    clients: 16,
    outstanding: 1000,
    gate: Gate::Rate(1.0 / 4.0),
};
const ALONE: Cell = Cell {
    name: "null, memory, one client alone",
    clients: 1,
    outstanding: 1,
    gate: Gate::Latency(2.0),
    ..MANY
};
const SEPARATE: Cell = Cell {
    name: "null, memory, 1000 clients, a frame for each request",
    clients: 1000,
    gate: Gate::Rate(0.4),
    ..MANY
};
const WIDER: Cell = Cell { name: "null, memory, f = 2 beside f = 1", gate: Gate::Processor(1.8), ..MANY };
/// Durable writes, many at a time.
pub(crate) const WRITES: Cell = Cell {
    name: "kv, always, 256 B values, 1000 outstanding",
    service: Service::Kv,
    durability: Durability::Always,
    bytes: 256,
    gate: Gate::Rate(1.0 / 5.0),
    ..MANY
};
/// Durable writes, one at a time.
pub(crate) const WRITES_ALONE: Cell = Cell {
    name: "kv, always, 256 B values, one client alone",
    clients: 1,
    outstanding: 1,
    gate: Gate::Latency(5.0),
    ..WRITES
};

/// What runs in a cell.
pub(crate) struct Running {
    name: &'static str,
    servers: Vec<Server>,
    load: Either,
    rounds: Vec<Round>,
    _scratch: Option<Scratch>,
}

enum Either {
    Replicated(Load<Replicated>),
    Plain(Load<Plain>),
}

impl Running {
    /// One warm-up and one measurement.
    pub(crate) async fn round(&mut self, plan: &Plan) -> Result<Round, Failure> {
        match &mut self.load {
            Either::Replicated(load) => round(load, &self.servers, plan).await,
            Either::Plain(load) => round(load, &self.servers, plan).await,
        }
    }
}

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
        .filter(|cell| plan.service.is_none_or(|service| service == name_of(cell.service)))
        .filter(|cell| plan.only.as_ref().is_none_or(|only| cell.name.contains(only.as_str())))
        .collect();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let limit = (Duration::from_secs(plan.seconds) + WARM_UP) * (3 * plan.rounds) + OVERHEAD * 3;
    let (mut shown, mut machine) = (Vec::new(), Yardsticks::default());
    for cell in cells {
        machine.look()?;
        let done = LocalSet::new().block_on(&runtime, async {
            tokio::time::timeout(limit, measure(plan, cell)).await.unwrap_or_else(|_| {
                Err(format!("{}: not done after {} s", cell.name, limit.as_secs()).into())
            })
        })?;
        print(&done);
        shown.push(done);
    }
    machine.look()?;
    println!(
        "\nthe machine itself, medians of {} looks between the cells; load average {}",
        machine.looks(),
        load_average()[0]
    );
    machine.print();
    let missed: Vec<&str> = shown.iter().filter(|shown| !shown.ok).map(|shown| shown.cell.name).collect();
    let summary = match missed.as_slice() {
        [] => format!("all {} gates hold", shown.len()),
        missed => format!("{} of {} gates do not hold: {}", missed.len(), shown.len(), missed.join("; ")),
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

fn name_of(service: Service) -> ServiceName {
    match service {
        Service::Null => ServiceName::Null,
        Service::Kv => ServiceName::Kv,
    }
}

async fn measure(plan: &SuitePlan, cell: Cell) -> Result<Shown, Failure> {
    let mut running = Vec::new();
    let wider = matches!(cell.gate, Gate::Processor(_));
    if wider {
        running.push(replicated(cell, "f = 2", 2, TrustedHome::Process).await?);
        running.push(replicated(cell, "f = 1", 1, TrustedHome::Process).await?);
    } else {
        running.push(replicated(cell, "component in its own process", 1, TrustedHome::Process).await?);
        running.push(replicated(cell, "component in process", 1, TrustedHome::InProcess).await?);
        running.push(plain(cell).await?);
    }
    let rounds = cell.plan(plan.seconds, plan.rounds);
    for number in 0..plan.rounds as usize {
        // Who goes first in one round goes later in the next.
        let count = running.len();
        for turn in 0..count {
            let one = &mut running[(turn + number) % count];
            let done = one.round(&rounds).await?;
            one.rounds.push(done);
        }
    }
    let variants: Vec<_> = running.into_iter().map(|one| (one.name, one.rounds)).collect();
    let of = |rounds: &[Round], value: fn(&Round) -> f64| median(rounds.iter().map(value));
    let (first, last) = (&variants[0].1, &variants[variants.len() - 1].1);
    let (ratio, ok) = match cell.gate {
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
    Ok(Shown { cell, variants, ratio, ok })
}

/// A cluster with its load.
pub(crate) async fn replicated(
    cell: Cell,
    name: &'static str,
    faults: u16,
    home: TrustedHome,
) -> Result<Running, Failure> {
    let scratch = Scratch::serving(cell.service, faults, cell.clients, cell.durability, home)?;
    let cluster = Cluster::load(&scratch.layout.cluster())?;
    let servers = start_replicas(&scratch, &cluster).await?;
    let addresses: Vec<(String, ReplicaId)> =
        cluster.group.all().map(|replica| (cluster.replica(replica).address.clone(), replica)).collect();
    let load = load(cell, &scratch, &cluster, &addresses, |client, signer| {
        Replicated::new(cluster.group, client, cluster.limits, signer)
    });
    let load = Either::Replicated(load.await?);
    Ok(Running { name, servers, load, rounds: Vec::new(), _scratch: Some(scratch) })
}

async fn plain(cell: Cell) -> Result<Running, Failure> {
    let scratch = Scratch::serving(cell.service, 1, cell.clients, cell.durability, TrustedHome::InProcess)?;
    let cluster = Cluster::load(&scratch.layout.cluster())?;
    let servers = vec![start_direct(&scratch).await?];
    let only = [(scratch.direct.0.clone(), ReplicaId(0))];
    let load = load(cell, &scratch, &cluster, &only, |client, signer| {
        Plain::new(cluster.group, client, cluster.limits, signer)
    });
    let load = Either::Plain(load.await?);
    Ok(Running { name: "unreplicated", servers, load, rounds: Vec::new(), _scratch: Some(scratch) })
}

async fn load<C: Caller>(
    cell: Cell,
    scratch: &Scratch,
    cluster: &Cluster,
    servers: &[(String, ReplicaId)],
    caller: impl Fn(ClientId, Ed25519Signer) -> C,
) -> Result<Load<C>, Failure> {
    let mut load = Load::of(operations(cell));
    let (clients, outstanding) = (u32::from(cell.clients), cell.outstanding);
    for number in 0..clients {
        let client = ClientId(u64::from(number) + 1);
        let secret = ClientSecret::load(&scratch.layout.client_secret(client), cluster)?;
        let caller = caller(client, Ed25519Signer::from_seed(secret.seed));
        let share = outstanding / clients + u32::from(number < outstanding % clients);
        load.add(caller, links(cluster, &secret, servers).await?, share);
    }
    Ok(load)
}

/// What a cell's clients ask for.
fn operations(cell: Cell) -> Operations {
    match cell.service {
        Service::Null => {
            let operation = Bytes::from(vec![0; cell.bytes]);
            Box::new(move || operation.clone())
        }
        Service::Kv => {
            let value = Bytes::from(vec![7; cell.bytes]);
            let mut state: u64 = 1;
            Box::new(move || {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                let key = Bytes::from(format!("key-{:012}", (state >> 33) % KEYS));
                Operation::Put { key, value: value.clone() }.to_wire()
            })
        }
    }
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
    let changes: u64 =
        shown.variants.iter().flat_map(|(_, rounds)| rounds).map(|round| round.view_changes).sum();
    if changes > 0 {
        println!("The replicas changed their view ({changes} counted): this run measured that, too.");
    }
    let verdict = if shown.ok { "holds" } else { "does not hold" };
    println!("{} {:.3}: {verb} {gate:.2} {verdict}", shown.cell.gate.name(), shown.ratio);
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
