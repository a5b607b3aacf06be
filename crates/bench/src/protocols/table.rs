//! What was found: a table for each cell, the gates, and all of it for machines.

use super::entry::Predicted;
use super::interval::Interval;
use super::side::Figures;
use super::{Cell, Shown};
use crate::cli::ProtocolsPlan;
use crate::report::{load_average, median};
use crate::syscalls::{self, Event};
use crate::yardsticks::Yardsticks;
use serde_json::{Map, Value, json};

/// How far from what the papers predict the messages of a batch may be: checkpoints and statuses are beside them.
const NEAR: f64 = 0.10;

type Column = (&'static str, &'static str, usize, fn(&Figures) -> f64);

/// What is shown: title, name in JSON, decimals.
const COLUMNS: [Column; 12] = [
    ("operations per second", "operations_per_second", 0, |round| round.rate),
    ("one client alone, p50 µs", "alone_p50_us", 0, |round| round.alone),
    ("CPU µs per operation, replicas", "replicas_cpu_us", 2, |round| round.processor),
    ("bytes per operation, all senders", "bytes", 0, |round| round.bytes),
    ("operations per batch", "operations_per_batch", 0, |round| round.batch),
    ("messages per batch, one client alone", "messages_per_batch", 1, |round| round.batch_messages),
    ("messages between replicas per operation", "messages", 3, |round| round.messages),
    ("trusted calls per batch, one alone", "trusted_calls_per_batch", 2, |round| round.batch_calls),
    ("trusted calls per operation", "trusted_calls", 4, |round| round.calls),
    ("MACs of links per operation", "link_macs", 3, |round| round.authenticators),
    ("signatures, certificates checked per op.", "signatures_checked", 3, |round| round.signatures),
    INSTRUCTIONS,
];
const INSTRUCTIONS: Column = ("instructions per operation, replicas", "instructions", 0, |round| {
    round.instructions.unwrap_or(f64::NAN)
});

fn columns() -> impl Iterator<Item = &'static Column> {
    COLUMNS.iter().filter(|(_, name, ..)| *name != INSTRUCTIONS.1 || syscalls::available(Event::Instructions))
}

/// A demand, and what became of it.
struct Gate {
    what: String,
    value: f64,
    demanded: f64,
    ok: bool,
}

impl Shown {
    fn middle(&self, value: fn(&Figures) -> f64) -> f64 {
        median(self.rounds.iter().map(value))
    }

    /// Operations per second beside another's, pair by pair.
    fn beside(&self, other: &Self) -> Interval {
        Interval::of(self.rounds.iter().zip(&other.rounds).map(|(own, other)| own.rate / other.rate.max(1.0)))
    }
}

/// One cell, for people.
pub(super) fn print(cell: Cell, shown: &[Shown]) {
    println!("\nf = {}, {} (request/reply, KB); medians (lowest to highest)", cell.faults, cell.name);
    print!("{:<42}", "");
    for shown in shown {
        let replicas = shown.entry.protocol.replicas(cell.faults);
        print!(" {:>34}", format!("{}, {replicas} replicas", shown.name));
    }
    println!();
    for (title, name, decimals, value) in columns() {
        print!("{title:<42}");
        for shown in shown {
            let all = || shown.rounds.iter().map(value);
            let (low, high) = (all().fold(f64::INFINITY, f64::min), all().fold(f64::NEG_INFINITY, f64::max));
            let expected = match (shown.entry.predicted(cell.faults), *name) {
                (Predicted { messages, .. }, "messages_per_batch") => format!(", paper {messages}"),
                (Predicted { trusted_calls, .. }, "trusted_calls_per_batch") => {
                    format!(", paper {trusted_calls}")
                }
                _ => String::new(),
            };
            let cell =
                format!("{:.decimals$} ({low:.decimals$} to {high:.decimals$}{expected})", median(all()));
            print!(" {cell:>34}");
        }
        println!();
    }
    for other in &shown[1..] {
        let ratio = other.beside(&shown[0]);
        let how = if ratio.known { "95 %" } else { "lowest and highest" };
        println!(
            "{} / {}: {:.3} of the operations per second ({how}: {:.3} to {:.3})",
            other.name, shown[0].name, ratio.median, ratio.low, ratio.high
        );
    }
    let changes: u64 = shown.iter().flat_map(|shown| &shown.rounds).map(|round| round.view_changes).sum();
    if changes > 0 {
        println!("Replicas changed their view ({changes} counted): this run measured that, too.");
    }
}

/// Every gate of a cell.
fn gates(cell: Cell, shown: &[Shown]) -> Vec<Gate> {
    let mut gates = Vec::new();
    let place = format!("f = {}, {}", cell.faults, cell.name);
    for one in shown {
        let name = one.entry.name();
        if let Some(least) = one.entry.least {
            let value = one.beside(&shown[0]).median;
            let what = format!("{place}: {name} beside {}, at least", shown[0].entry.name());
            gates.push(Gate { what, value, demanded: least, ok: value >= least });
        }
        let predicted = one.entry.predicted(cell.faults).messages as f64;
        let value = one.middle(|round| round.batch_messages);
        let ok = (value / predicted - 1.0).abs() <= NEAR;
        gates.push(Gate {
            what: format!("{place}: messages of a batch of {name}, about"),
            value,
            demanded: predicted,
            ok,
        });
    }
    gates
}

/// The gates, the summary and the object; tells whether all hold. Of PBFT by what shows whose its clients' frames are,
/// nothing is demanded.
pub(super) fn verdict(
    plan: &ProtocolsPlan,
    cells: &[(Cell, Vec<Shown>)],
    by_auth: Option<&(Cell, Vec<Shown>)>,
    machine: &Yardsticks,
) -> bool {
    println!(
        "\nthe machine itself, medians of {} looks between the cells; load average {}",
        machine.looks(),
        load_average()[0]
    );
    machine.print();
    if !syscalls::available(Event::Instructions) {
        println!("Instructions are not in the tables: this machine does not count them, or `perf` may not.");
    }
    println!();
    let gates: Vec<Gate> = cells.iter().flat_map(|(cell, shown)| gates(*cell, shown)).collect();
    for gate in &gates {
        let verdict = if gate.ok { "holds" } else { "does not hold" };
        println!("{} {:.2}: {:.3} {verdict}", gate.what, gate.demanded, gate.value);
    }
    let missed = gates.iter().filter(|gate| !gate.ok).count();
    let ok = missed == 0;
    let summary = match missed {
        0 => format!("protocols: all {} gates hold", gates.len()),
        missed => format!("protocols: {missed} of {} gates do not hold", gates.len()),
    };
    println!("\n{summary}");
    if plan.json {
        let gates: Vec<Value> = gates
            .iter()
            .map(|gate| {
                json!({ "gate": gate.what, "demanded": gate.demanded, "value": gate.value, "ok": gate.ok })
            })
            .collect();
        let result = json!({
            "summary": summary, "ok": ok, "pairs": plan.pairs, "millis": plan.millis,
            "alone_millis": plan.alone_millis, "connections": plan.clients.connections,
            "outstanding": plan.clients.outstanding, "load_average": load_average(),
            "machine": machine.json(), "instructions_counted": syscalls::available(Event::Instructions),
            "gates": gates, "cells": cells.iter().map(|(cell, shown)| json_of(*cell, shown)).collect::<Vec<_>>(),
            "pbft_by_auth": by_auth.map(|(cell, shown)| json_of(*cell, shown)),
        });
        println!("{result}");
    }
    ok
}

fn json_of(cell: Cell, shown: &[Shown]) -> Value {
    let protocols: Map<String, Value> = shown
        .iter()
        .map(|one| {
            let mut figures: Map<String, Value> = columns()
                .map(|(_, name, _, value)| {
                    let all: Vec<f64> = one.rounds.iter().map(value).collect();
                    ((*name).to_owned(), json!({ "median": median(all.clone()), "rounds": all }))
                })
                .collect();
            let Predicted { messages, trusted_calls } = one.entry.predicted(cell.faults);
            figures.insert(
                "predicted_of_a_batch".to_owned(),
                json!({ "messages": messages, "trusted_calls": trusted_calls }),
            );
            let ratio = one.beside(&shown[0]);
            figures.insert(
                format!("ratio_to_{}", shown[0].name),
                json!({ "median": ratio.median, "low": ratio.low, "high": ratio.high, "known_to_95_percent": ratio.known }),
            );
            figures.insert("replicas".to_owned(), one.entry.protocol.replicas(cell.faults).into());
            let changes: u64 = one.rounds.iter().map(|round| round.view_changes).sum();
            figures.insert("view_changes".to_owned(), changes.into());
            (one.name.to_owned(), figures.into())
        })
        .collect();
    json!({
        "f": cell.faults, "cell": cell.name, "request_bytes": cell.request, "reply_bytes": cell.reply,
        "protocols": protocols,
    })
}
