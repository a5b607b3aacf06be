//! Troth's coordination service beside Apache ZooKeeper, under the same load in the same run, in turns: both on disk
//! before they answer, then both without.
//!
//! | module | subject |
//! | --- | --- |
//! | `ensemble` | the servers of one and of the other |
//! | `load` | connections that keep requests outstanding |
//! | `records` | what they write and read |
//! | `verdict` | the table and the gates |

mod ensemble;
mod load;
mod records;
mod verdict;

#[cfg(test)]
mod tests;

use crate::Failure;
use crate::cli::{Clients, ZooKeeperPlan};
use crate::load::Controls;
use crate::marks::cpu;
use crate::null::{OVERHEAD, WARM_UP};
use crate::peers::PeersScratch;
use crate::peers::line::Figures;
use crate::peers::views_left;
use crate::protocol::Agreed;
use crate::report::{load_average, percentile};
use crate::yardsticks::Yardsticks;
use ensemble::Ensemble;
use load::{Templates, drive};
pub(crate) use load::{Work, write_nodes};
use serde_json::{Value, json};
use std::rc::Rc;
use std::time::{Duration, Instant};
use tokio::task::{JoinSet, LocalSet};
use troth_node::config::{Durability, TrustedHome};
use verdict::{CellShown, Gate};

/// Seconds of load before anything is measured: a virtual machine compiles what it sees often.
const SETTLING: u64 = 20;

/// One thing that is measured.
#[derive(Clone, Copy, Debug)]
struct Cell {
    name: &'static str,
    work: Work,
    /// What Troth's rate must be, in ZooKeeper's, where both sync.
    durable: Option<f64>,
    /// The same where neither does.
    volatile: Option<f64>,
}

/// How many times ZooKeeper's rate durable writes must have.
const WRITES: Option<f64> = Some(2.0);
/// The same of reads.
const READS: Option<f64> = Some(1.0);

const CELLS: [Cell; 6] = [
    Cell { name: "setData, 256 B", work: Work::Set(256), durable: WRITES, volatile: None },
    Cell { name: "setData, 1 KB", work: Work::Set(1024), durable: WRITES, volatile: None },
    Cell { name: "create, 256 B", work: Work::Create(256), durable: WRITES, volatile: None },
    Cell { name: "create, 1 KB", work: Work::Create(1024), durable: WRITES, volatile: None },
    Cell { name: "getData, 256 B", work: Work::Get, durable: READS, volatile: READS },
    Cell { name: "70 % getData, 30 % setData, 256 B", work: Work::Mixed(256), durable: None, volatile: None },
];

/// Requests outstanding, over so many connections.
const OUTSTANDING: [Clients; 3] = [
    Clients { connections: 1, outstanding: 1 },
    Clients { connections: 16, outstanding: 100 },
    Clients { connections: 16, outstanding: 1000 },
];

/// Measures, prints, and tells whether every gate holds.
pub(crate) fn run(plan: &ZooKeeperPlan) -> Result<bool, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let measured = CELLS.iter().filter(|cell| plan.wants(cell.name)).count() * OUTSTANDING.len() * 2;
    let turns = u32::try_from(2 * measured).expect("cells are few") * (plan.rounds + 1);
    // What a round made it removes again, in about the same time.
    let limit = (Duration::from_secs(plan.seconds) + WARM_UP) * 2 * turns + OVERHEAD * 10;
    let mut machine = Yardsticks::default();
    let cells = LocalSet::new().block_on(&runtime, async {
        tokio::select! {
            done = measure(plan, &mut machine) => done,
            _ = tokio::signal::ctrl_c() => Err("interrupted".into()),
            () = tokio::time::sleep(limit) => Err(format!("not done after {} s", limit.as_secs()).into()),
        }
    })?;
    println!(
        "\nthe machine itself, medians of {} looks; load average {}",
        machine.looks(),
        load_average()[0]
    );
    machine.print();
    verdict::print(&cells);
    let gates: Vec<Gate> = cells.iter().filter_map(CellShown::gate).collect();
    for gate in &gates {
        println!("{}", gate.verdict());
    }
    let (summary, ok) = (verdict::summary(&gates), gates.iter().all(Gate::ok));
    println!("\n{summary}");
    if plan.json {
        let cells: Vec<Value> = cells.iter().map(CellShown::json).collect();
        let gates: Vec<Value> = gates.iter().map(Gate::json).collect();
        let result = json!({
            "summary": summary, "ok": ok, "seconds": plan.seconds, "rounds": plan.rounds,
            "load_average": load_average(), "machine": machine.json(), "gates": gates, "cells": cells,
        });
        println!("{result}");
    }
    Ok(ok)
}

async fn measure(plan: &ZooKeeperPlan, machine: &mut Yardsticks) -> Result<Vec<CellShown>, Failure> {
    let mut shown = Vec::new();
    for syncs in [true, false] {
        let scratch = PeersScratch::new()?;
        let durability = if syncs { Durability::Always } else { Durability::Memory };
        let (on_disk, agreed) =
            (if syncs { "on disk" } else { "in memory" }, Agreed::minbft(1, TrustedHome::Process));
        println!("starting three servers of ZooKeeper and a group, {on_disk}, and making the nodes");
        let sides = [
            Ensemble::troth(agreed, durability).await?,
            Ensemble::zookeeper(&plan.zookeeper, scratch.path(), syncs).await?,
        ];
        for side in &sides {
            write_nodes(&side.addresses[0], 256, true).await?;
            let rate = side.round(OUTSTANDING[2], Work::Mixed(256), SETTLING, 0).await?.rate;
            println!("{SETTLING} s before all rounds, {:<14} {rate:>9.0} operations per second", side.name);
        }
        for cell in CELLS.iter().filter(|cell| plan.wants(cell.name)) {
            // Others have written values of other sizes.
            for side in &sides {
                write_nodes(&side.addresses[0], 256, false).await?;
            }
            for clients in OUTSTANDING {
                machine.look()?;
                let rounds = in_turns(plan, &sides, cell, clients).await?;
                let bound = if syncs { cell.durable } else { cell.volatile };
                let name = format!("{}, {on_disk}, {} outstanding", cell.name, clients.outstanding);
                let names = [0, 1].map(|side: usize| sides[side].name.clone());
                shown.push(CellShown { name, bound, names, rounds });
            }
        }
    }
    Ok(shown)
}

async fn in_turns(
    plan: &ZooKeeperPlan,
    sides: &[Ensemble; 2],
    cell: &Cell,
    clients: Clients,
) -> Result<[Vec<Figures>; 2], Failure> {
    let mut rounds = [const { Vec::new() }; 2];
    for number in 0..=plan.rounds {
        for turn in 0..2 {
            // Who goes first in one round goes later in the next.
            let side = (turn + number as usize) % 2;
            let figures = sides[side].round(clients, cell.work, plan.seconds, number as usize).await?;
            // The first one is not counted: everybody has seen the work then.
            let counted = if number == 0 { " not counted" } else { "" };
            println!(
                "{}, {} outstanding, round {number}, {:<14} {:>9.0} operations per second, p50 {:>7.0} µs{counted}",
                cell.name, clients.outstanding, sides[side].name, figures.rate, figures.p50
            );
            if number > 0 {
                rounds[side].push(figures);
            }
        }
    }
    Ok(rounds)
}

impl Ensemble {
    async fn round(
        &self,
        clients: Clients,
        work: Work,
        seconds: u64,
        number: usize,
    ) -> Result<Figures, Failure> {
        let before = views_left(&self.servers).await?;
        let figures = round(&self.addresses, || self.cpu(), clients, work, seconds, number).await?;
        Ok(Figures { view_changes: views_left(&self.servers).await? - before, ..figures })
    }
}

/// One warm-up and so many measured seconds. The first connection goes to another server in each round: which of them
/// leads is not chosen.
pub(crate) async fn round(
    addresses: &[String],
    servers_cpu: impl Fn() -> Result<u64, Failure>,
    clients: Clients,
    work: Work,
    seconds: u64,
    number: usize,
) -> Result<Figures, Failure> {
    let (controls, templates) = (Rc::new(Controls::default()), Rc::new(Templates::new(work)));
    controls.go_on.set(true);
    let mut connections = JoinSet::new();
    for connection in 0..clients.connections {
        let address = addresses[(usize::from(connection) + number) % addresses.len()].clone();
        let (templates, controls) = (Rc::clone(&templates), Rc::clone(&controls));
        connections.spawn_local(async move {
            let driven = drive(address, connection, clients, work, templates, controls).await;
            driven.map_err(|why| format!("connection {connection}: {why}"))
        });
    }
    let steer = async {
        tokio::time::sleep(WARM_UP).await;
        let (before, began) =
            ((servers_cpu()?, cpu(std::process::id())?, controls.progress.get().done), Instant::now());
        controls.keep.set(true);
        tokio::time::sleep(Duration::from_secs(seconds)).await;
        controls.keep.set(false);
        let after = (servers_cpu()?, cpu(std::process::id())?, controls.progress.get().done);
        let elapsed = began.elapsed();
        controls.go_on.set(false);
        Ok::<_, Failure>((before, after, elapsed))
    };
    let drain = async {
        while let Some(ended) = connections.join_next().await {
            ended.map_err(|why| why.to_string())??;
        }
        Ok::<_, Failure>(())
    };
    let ((before, after, elapsed), ()) = tokio::try_join!(steer, drain)?;
    let operations = (after.2 - before.2) as f64;
    if operations == 0.0 {
        return Err("nothing was done in a round".into());
    }
    let latencies = controls.latencies.take();
    Ok(Figures {
        rate: operations / elapsed.as_secs_f64(),
        p50: percentile(&latencies, 0.50),
        p99: percentile(&latencies, 0.99),
        servers_cpu: (after.0 - before.0) as f64 / operations,
        clients_cpu: (after.1 - before.1) as f64 / operations,
        ..Figures::default()
    })
}
