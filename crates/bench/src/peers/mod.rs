//! Durable writes beside etcd's and ZooKeeper's: three servers each, all syncing, on the same disk, at the same
//! time, with rounds in turns.
//!
//! | module | subject |
//! | --- | --- |
//! | `peer` | a peer's servers and its load program, as child processes |
//! | `line` | what a load program says |
//! | `verdict` | the table and the gates |

pub(crate) mod line;
pub(crate) mod verdict;

mod peer;

use crate::Failure;
use crate::cli::PeersPlan;
use crate::marks::ask;
use crate::null::{OVERHEAD, WARM_UP};
use crate::processes::Server;
use crate::protocol::Agreed;
use crate::report::load_average;
use crate::suite::{Cell, WRITES, WRITES_ALONE};
use crate::variants::{Running, replicated};
use crate::yardsticks::Yardsticks;
use crate::zookeeper::Work;
use line::Figures;
use peer::Peer;
pub(crate) use peer::zookeeper_servers;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::task::LocalSet;
use troth_node::config::TrustedHome;
use verdict::{CellShown, Gate, gates, json_of, print, summary};

/// What names the directories of these measurements; the process's number follows.
const SCRATCH: &str = "troth-peers-";

/// Seconds of load before anything is measured. A virtual machine compiles what it sees often, for longer than a
/// round takes: without this ZooKeeper took nearly twice the processor time for a write.
const SETTLING: u64 = 30;

/// Measures, prints, and tells whether every gate holds.
pub(crate) fn run(plan: &PeersPlan) -> Result<bool, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    // Two cells of five variants, and a round for each that is not counted.
    let limit = (Duration::from_secs(plan.seconds) + WARM_UP * 2) * (10 * (plan.rounds + 1)) + OVERHEAD * 7;
    let mut machine = Yardsticks::default();
    let (names, cells) = LocalSet::new().block_on(&runtime, async {
        // Dropping the measurement ends every child and removes what they left.
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
    println!();
    let gates = gates(&cells[0], &cells[1]);
    for gate in &gates {
        println!("{}", gate.verdict());
    }
    let (summary, ok) = (summary(&gates), gates.iter().all(Gate::ok));
    println!("\n{summary}");
    if plan.json {
        let cells: Vec<Value> = cells.iter().map(json_of).collect();
        let gates: Vec<Value> = gates.iter().map(Gate::json).collect();
        let result = json!({
            "summary": summary, "ok": ok, "seconds": plan.seconds, "rounds": plan.rounds, "peers": names,
            "load_average": load_average(), "machine": machine.json(), "gates": gates, "cells": cells,
        });
        println!("{result}");
    }
    Ok(ok)
}

async fn measure(
    plan: &PeersPlan,
    machine: &mut Yardsticks,
) -> Result<([String; 2], [CellShown; 2]), Failure> {
    let scratch = PeersScratch::new()?;
    println!("starting three servers of ZooKeeper and of etcd, and making the keys");
    let mut zookeeper = Peer::zookeeper(&plan.zookeeper, &scratch.0).await?;
    let mut etcd = Peer::etcd(&plan.etcd, &scratch.0).await?;
    for peer in [&mut zookeeper, &mut etcd] {
        let rate = peer.round(WRITES.setup.clients, SETTLING).await?.rate;
        println!(
            "{SETTLING} s before all rounds, {} {rate:>9.0} operations per second, not counted",
            peer.name
        );
    }
    let mut cells = Vec::new();
    for cell in [WRITES, WRITES_ALONE] {
        machine.look()?;
        let shown = measure_cell(plan, cell, &mut zookeeper, &mut etcd).await?;
        print(&shown);
        cells.push(shown);
    }
    machine.look()?;
    let Ok(cells) = cells.try_into() else { unreachable!("two were measured") };
    Ok(([zookeeper.name.clone(), etcd.name.clone()], cells))
}

/// Whose servers the raw load asks.
const JAVA: usize = 3;

/// Views that replicas have left so far, all together; servers that tell no counters are passed over.
pub(crate) async fn views_left(servers: &[Server]) -> Result<u64, Failure> {
    let mut left = 0;
    for server in servers.iter().filter(|server| !server.http.is_empty()) {
        left += ask(&server.http).await?.counters.view_changes;
    }
    Ok(left)
}

/// Who takes a turn.
enum Side<'a> {
    Troth(Box<Running>),
    /// With the client library that it comes with.
    Peer(&'a mut Peer),
    /// ZooKeeper, asked by a load that costs next to nothing.
    Raw,
}

async fn measure_cell(
    plan: &PeersPlan,
    cell: Cell,
    zookeeper: &mut Peer,
    etcd: &mut Peer,
) -> Result<CellShown, Failure> {
    let (own, inside) = ("Troth, component apart", "Troth, component in process");
    let with = |library: &str| format!("{}, {library}", zookeeper.name);
    let names =
        [own.to_owned(), inside.to_owned(), with("raw load"), with("Java's client"), etcd.name.clone()];
    let mut sides = [
        Side::Troth(Box::new(replicated(cell.setup, own, Agreed::minbft(1, TrustedHome::Process)).await?)),
        Side::Troth(Box::new(
            replicated(cell.setup, inside, Agreed::minbft(1, TrustedHome::InProcess)).await?,
        )),
        Side::Raw,
        Side::Peer(zookeeper),
        Side::Peer(etcd),
    ];
    let mut rounds = [const { Vec::new() }; 5];
    // The first one is not counted: everybody has seen the work then.
    for number in 0..=plan.rounds as usize {
        for turn in 0..sides.len() {
            // Who goes first in one round goes later in the next.
            let side = (turn + number) % sides.len();
            let raw = matches!(sides[side], Side::Raw);
            // Its servers are those that the library's load uses.
            let figures = match &mut sides[if raw { JAVA } else { side }] {
                Side::Peer(peer) if raw => {
                    let (clients, work) = (cell.setup.clients, Work::Set(cell.setup.bytes));
                    let cpu = || peer.servers_cpu();
                    crate::zookeeper::round(&peer.addresses, cpu, clients, work, plan.seconds, number).await?
                }
                Side::Raw => unreachable!("the library's load is none"),
                Side::Troth(running) => Figures::of(&running.round(plan.seconds).await?),
                Side::Peer(peer) => peer.round(cell.setup.clients, plan.seconds).await?,
            };
            let (name, rate, p50) = (&names[side], figures.rate, figures.p50);
            let counted = if number == 0 { "not counted" } else { "" };
            println!(
                "round {number}, {name:<28} {rate:>9.0} operations per second, p50 {p50:>8.0} µs {counted}"
            );
            if number > 0 {
                rounds[side].push(figures);
            }
        }
    }
    let mut rounds = rounds.into_iter();
    let variants = names.map(|name| (name, rounds.next().expect("as many as names")));
    Ok(CellShown { name: cell.name, variants })
}

/// Where the peers keep their data, beside Troth's; removed in the end.
pub(crate) struct PeersScratch(PathBuf);

impl PeersScratch {
    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    pub(crate) fn new() -> Result<Self, Failure> {
        let below = std::env::temp_dir();
        remove_abandoned(&below)?;
        let path = below.join(format!("{SCRATCH}{}", std::process::id()));
        std::fs::create_dir(&path)?;
        Ok(Self(path))
    }
}

impl Drop for PeersScratch {
    fn drop(&mut self) {
        // What stays behind is removed by the next measurement.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Removes what measurements left that were killed: theirs are hundreds of megabytes.
fn remove_abandoned(below: &Path) -> Result<(), Failure> {
    for entry in std::fs::read_dir(below)? {
        let entry = entry?;
        let name = entry.file_name();
        let process = name.to_str().and_then(|name| name.strip_prefix(SCRATCH)?.parse::<u32>().ok());
        if process.is_some_and(|process| !Path::new(&format!("/proc/{process}")).exists()) {
            // Another user's stays.
            let _ = std::fs::remove_dir_all(entry.path());
        }
    }
    Ok(())
}
