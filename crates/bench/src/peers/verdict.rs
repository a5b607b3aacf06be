//! What follows from the rounds: the table, and whether each gate holds.

use super::line::Figures;
use crate::report::median;
use serde_json::{Map, Value, json};

/// How many times ZooKeeper's rate Troth's must be.
const ZOOKEEPER: f64 = 4.0;
/// The same for etcd's.
const ETCD: f64 = 6.0;
/// How many times a peer's p50 Troth's may be, one client alone.
const ALONE: f64 = 1.0;

/// ZooKeeper's place in a cell: with the load that costs least, so that what is compared is servers.
const RAW: usize = 2;
/// etcd's.
const ETCDS: usize = 4;

/// Who was measured, and what each round showed.
pub(crate) type Shown = (String, Vec<Figures>);

/// What one cell showed: Troth with its component in a process of its own, the same in process, ZooKeeper asked by the
/// raw load and by Java's client, etcd.
pub(crate) struct CellShown {
    pub(crate) name: &'static str,
    pub(crate) variants: [Shown; 5],
}

/// One comparison with its bound.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Gate {
    what: String,
    ratio: f64,
    bound: Bound,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Bound {
    Least(f64),
    Most(f64),
}

impl Gate {
    /// Whether it holds; never without figures of both.
    pub(crate) fn ok(&self) -> bool {
        let within = match self.bound {
            Bound::Least(least) => self.ratio >= least,
            Bound::Most(most) => self.ratio <= most,
        };
        within && self.ratio.is_finite() && self.ratio > 0.0
    }

    /// For people.
    pub(crate) fn verdict(&self) -> String {
        let bound = match self.bound {
            Bound::Least(least) => format!("at least {least}"),
            Bound::Most(most) => format!("at most {most}"),
        };
        let holds = if self.ok() { "holds" } else { "does not hold" };
        format!("{:.2} times {}: {bound} {holds}", self.ratio, self.what)
    }

    /// For machines.
    pub(crate) fn json(&self) -> Value {
        let (Bound::Least(bound) | Bound::Most(bound)) = self.bound;
        json!({ "gate": self.what, "ratio": self.ratio, "bound": bound, "ok": self.ok() })
    }
}

/// One of the figures.
type Of = fn(&Figures) -> f64;
type Column = (&'static str, &'static str, usize, Of);

/// Title, name in JSON, decimals.
const COLUMNS: [Column; 7] = [
    ("operations per second", "operations_per_second", 0, |round| round.rate),
    ("latency p50, µs", "p50_us", 0, |round| round.p50),
    ("latency p99, µs", "p99_us", 0, |round| round.p99),
    ("CPU µs per operation, servers", "servers_cpu_us", 2, |round| round.servers_cpu),
    ("CPU µs per operation, clients", "clients_cpu_us", 2, |round| round.clients_cpu),
    ("requests sent again", "retried", 0, |round| round.retried),
    ("views left", "view_changes", 0, |round| round.view_changes as f64),
];

/// The gates of many writes at a time and of one client alone.
pub(crate) fn gates(many: &CellShown, alone: &CellShown) -> Vec<Gate> {
    let (rate, p50): (Of, Of) = (|round| round.rate, |round| round.p50);
    let ratio = |cell: &CellShown, peer: usize, value: Of| {
        let of = |variant: usize| median(cell.variants[variant].1.iter().map(value));
        of(0) / of(peer)
    };
    let name = |cell: &CellShown, peer: usize| cell.variants[peer].0.clone();
    let mut gates = Vec::new();
    for (peer, least) in [(RAW, ZOOKEEPER), (ETCDS, ETCD)] {
        let what = format!("{}'s rate", name(many, peer));
        gates.push(Gate { what, ratio: ratio(many, peer, rate), bound: Bound::Least(least) });
    }
    for peer in [RAW, ETCDS] {
        let what = format!("{}'s p50 alone", name(alone, peer));
        gates.push(Gate { what, ratio: ratio(alone, peer, p50), bound: Bound::Most(ALONE) });
    }
    gates
}

/// One line for people.
pub(crate) fn summary(gates: &[Gate]) -> String {
    let all: Vec<String> = gates.iter().map(Gate::verdict).collect();
    let held = gates.iter().filter(|gate| gate.ok()).count();
    format!("{held} of {} gates beside peers hold: {}", gates.len(), all.join("; "))
}

/// Prints a cell's table.
pub(crate) fn print(cell: &CellShown) {
    println!("\n{}", cell.name);
    print!("{:<38}", "median (lowest to highest)");
    for (name, _) in &cell.variants {
        print!(" {name:>28}");
    }
    println!();
    for (title, _, decimals, value) in COLUMNS {
        print!("{title:<38}");
        for (_, rounds) in &cell.variants {
            let mut all: Vec<f64> = rounds.iter().map(value).collect();
            all.sort_by(f64::total_cmp);
            let (low, high) = (all.first().unwrap_or(&0.0), all.last().unwrap_or(&0.0));
            let middle = median(all.iter().copied());
            let shown = format!("{middle:.decimals$} ({low:.decimals$} to {high:.decimals$})");
            print!(" {:>28}", if middle.is_nan() { "not counted".to_owned() } else { shown });
        }
        println!();
    }
}

/// A cell with every round of it.
pub(crate) fn json_of(cell: &CellShown) -> Value {
    let mut variants = Map::new();
    for (name, rounds) in &cell.variants {
        let mut figures = Map::new();
        for (_, column, _, value) in COLUMNS {
            let all: Vec<f64> = rounds.iter().map(value).collect();
            figures.insert(column.to_owned(), json!({ "median": median(all.clone()), "rounds": all }));
        }
        variants.insert(name.clone(), figures.into());
    }
    json!({ "cell": cell.name, "variants": variants })
}
