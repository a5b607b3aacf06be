//! What follows from the rounds: a line for each thing that was measured, and whether each gate holds.

use crate::peers::line::Figures;
use crate::report::median;
use serde_json::{Value, json};

/// One of the figures, with its name in JSON.
type Column = (&'static str, fn(&Figures) -> f64);

const COLUMNS: [Column; 6] = [
    ("operations_per_second", |round| round.rate),
    ("p50_us", |round| round.p50),
    ("p99_us", |round| round.p99),
    ("servers_cpu_us", |round| round.servers_cpu),
    ("clients_cpu_us", |round| round.clients_cpu),
    ("view_changes", |round| round.view_changes as f64),
];

/// What one cell showed: of Troth and of ZooKeeper.
pub(super) struct CellShown {
    pub(super) name: String,
    /// How many times ZooKeeper's rate Troth's must be.
    pub(super) bound: Option<f64>,
    pub(super) names: [String; 2],
    pub(super) rounds: [Vec<Figures>; 2],
}

/// One comparison with its bound.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Gate {
    what: String,
    ratio: f64,
    bound: f64,
}

impl Gate {
    /// Whether it holds; never without figures of both.
    pub(super) fn ok(&self) -> bool {
        self.ratio.is_finite() && self.ratio >= self.bound
    }

    /// For people.
    pub(super) fn verdict(&self) -> String {
        let holds = if self.ok() { "holds" } else { "does not hold" };
        format!("{}: {:.2} times ZooKeeper's rate, at least {} {holds}", self.what, self.ratio, self.bound)
    }

    /// For machines.
    pub(super) fn json(&self) -> Value {
        json!({ "gate": self.what, "ratio": self.ratio, "bound": self.bound, "ok": self.ok() })
    }
}

impl CellShown {
    /// The median of one of the figures.
    fn of(&self, side: usize, value: fn(&Figures) -> f64) -> f64 {
        median(self.rounds[side].iter().map(value))
    }

    /// Troth's rate in ZooKeeper's.
    fn ratio(&self) -> f64 {
        self.of(0, |round| round.rate) / self.of(1, |round| round.rate)
    }

    pub(super) fn gate(&self) -> Option<Gate> {
        self.bound.map(|bound| Gate { what: self.name.clone(), ratio: self.ratio(), bound })
    }

    /// The cell with every round of it.
    pub(super) fn json(&self) -> Value {
        let side = |side: usize| -> Value {
            let figures = COLUMNS.iter().map(|(name, value)| {
                let all: Vec<f64> = self.rounds[side].iter().map(value).collect();
                ((*name).to_owned(), json!({ "median": median(all.clone()), "rounds": all }))
            });
            figures.collect::<serde_json::Map<_, _>>().into()
        };
        json!({ "cell": self.name, "ratio": self.ratio(), "variants": {
            self.names[0].as_str(): side(0), self.names[1].as_str(): side(1),
        } })
    }
}

/// One line for people.
pub(super) fn summary(gates: &[Gate]) -> String {
    let held = gates.iter().filter(|gate| gate.ok()).count();
    let worst =
        gates.iter().min_by(|one, other| (one.ratio / one.bound).total_cmp(&(other.ratio / other.bound)));
    let worst =
        worst.map(|gate| format!("; furthest from its bound: {}", gate.verdict())).unwrap_or_default();
    format!("{held} of {} gates beside ZooKeeper hold{worst}", gates.len())
}

/// Prints the table.
pub(super) fn print(cells: &[CellShown]) {
    let Some(first) = cells.first() else { return };
    println!(
        "\nmedians{:<53} {:>26} {:>26} {:>7}   CPU µs per operation: servers, clients",
        "", first.names[0], first.names[1], "times"
    );
    for cell in cells {
        print!("{:<60}", cell.name);
        for side in 0..2 {
            let (rate, p50) = (cell.of(side, |round| round.rate), cell.of(side, |round| round.p50));
            print!(" {:>26}", format!("{rate:.0}/s, p50 {p50:.0} µs"));
        }
        print!(" {:>7.2}  ", cell.ratio());
        for side in 0..2 {
            let (servers, clients) =
                (cell.of(side, |round| round.servers_cpu), cell.of(side, |round| round.clients_cpu));
            print!(" {:>14}", format!("{servers:.1}, {clients:.2}"));
        }
        println!();
        let changes: u64 = cell.rounds.iter().flatten().map(|round| round.view_changes).sum();
        if changes > 0 {
            println!("  The replicas changed their view ({changes} counted): this measured that, too.");
        }
    }
    println!();
}
