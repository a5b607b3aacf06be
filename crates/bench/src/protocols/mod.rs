//! Every agreement protocol that is served beside PBFT, in turns in the same run: requests and replies of 0 and 4 KB, at
//! f = 1 and f = 2 (the 0/0, 4/0 and 0/4 of the papers).
//!
//! | module | subject |
//! | --- | --- |
//! | `delays` | slower trusted components: the A2M paper's table 2 |
//! | `entry` | the protocols: what the papers predict of each, and what is demanded |
//! | `side` | a group with its clients, and its rounds |
//! | `interval` | medians of ratios, and what they are known to lie between |
//! | `table` | what was found, for people and machines |

pub(crate) mod delays;
pub(crate) mod entry;
pub(crate) mod interval;

mod side;
mod table;

use crate::Failure;
use crate::cli::{ProtocolsPart, ProtocolsPlan};
use crate::null::OVERHEAD;
use crate::yardsticks::Yardsticks;
use entry::{ENTRIES, Entry};
use side::{Figures, Side};
use std::time::Duration;
use tokio::task::LocalSet;

/// Bytes of a request and of a reply that are not small.
const LARGE: usize = 4096;

/// What is asked of every protocol.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cell {
    pub(crate) faults: u16,
    /// Requests and replies, in words of the papers.
    pub(crate) name: &'static str,
    pub(crate) request: usize,
    pub(crate) reply: usize,
}

/// Requests and replies, of each number of faulty replicas.
const SHAPES: [(&str, usize, usize); 3] = [("0/0", 0, 0), ("4/0", LARGE, 0), ("0/4", 0, LARGE)];

/// A protocol in a cell, and its rounds, as many as every other's.
pub(crate) struct Shown {
    pub(crate) entry: &'static Entry,
    pub(crate) rounds: Vec<Figures>,
}

/// Measures, prints, and tells whether every gate holds.
pub(crate) fn run(plan: &ProtocolsPlan, part: &ProtocolsPart) -> Result<bool, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let mut cells = Vec::new();
    let mut machine = Yardsticks::default();
    let entries = part.entries();
    for faults in plan.faults() {
        for (name, request, reply) in part.shapes() {
            machine.look()?;
            let cell = Cell { faults, name, request, reply };
            let limit = plan.round() * (plan.pairs + 1) * u32::try_from(entries.len())? + OVERHEAD * 2;
            let shown = LocalSet::new().block_on(&runtime, async {
                tokio::time::timeout(limit, measure(plan, &entries, cell)).await.unwrap_or_else(|_| {
                    Err(format!("f = {faults}, {name}: not done after {} s", limit.as_secs()).into())
                })
            })?;
            table::print(cell, &shown);
            cells.push((cell, shown));
        }
    }
    machine.look()?;
    Ok(table::verdict(plan, &cells, &machine))
}

async fn measure(
    plan: &ProtocolsPlan,
    entries: &[&'static Entry],
    cell: Cell,
) -> Result<Vec<Shown>, Failure> {
    let mut sides = Vec::new();
    for entry in entries {
        sides.push(Side::start(plan, cell, entry.protocol, &[]).await?);
    }
    // The first one is not counted: everybody has seen the work then.
    for side in &mut sides {
        side.round(plan).await?;
    }
    let mut shown: Vec<Shown> = entries.iter().map(|entry| Shown { entry, rounds: Vec::new() }).collect();
    for number in 0..plan.pairs as usize {
        for turn in 0..sides.len() {
            // Who goes first in one round goes later in the next.
            let at = (turn + number) % sides.len();
            shown[at].rounds.push(sides[at].round(plan).await?);
        }
        let rates: Vec<String> = shown
            .iter()
            .map(|shown| format!("{} {:.0}", shown.entry.name(), shown.rounds[number].rate))
            .collect();
        println!(
            "f = {}, {}, pair {}: {} operations per second",
            cell.faults,
            cell.name,
            number + 1,
            rates.join(", ")
        );
    }
    Ok(shown)
}

impl ProtocolsPlan {
    /// What one round takes, without starting anything.
    fn round(&self) -> Duration {
        let measured = Duration::from_millis(self.millis + self.alone_millis);
        measured + side::WARM_UP * 2 + side::COUNTED + Duration::from_secs(1)
    }

    /// Faulty replicas to bear, each by itself.
    fn faults(&self) -> Vec<u16> {
        if self.f.is_empty() { vec![1, 2] } else { self.f.clone() }
    }
}

impl ProtocolsPart {
    /// PBFT, and what is measured beside it.
    fn entries(&self) -> Vec<&'static Entry> {
        let (first, others) = ENTRIES.split_at(1);
        let wanted = |entry: &&Entry| self.protocol.is_empty() || self.protocol.contains(&entry.protocol);
        first.iter().chain(others.iter().filter(wanted)).collect()
    }

    /// The work that is asked for.
    fn shapes(&self) -> Vec<(&'static str, usize, usize)> {
        let wanted = |(name, ..): &(&str, usize, usize)| {
            self.cell.is_empty() || self.cell.iter().any(|cell| cell == name)
        };
        SHAPES.into_iter().filter(wanted).collect()
    }
}
