//! Every agreement protocol that is served beside PBFT, in turns in the same run: requests and replies of 0 and 4 KB, at
//! f = 1 and f = 2 (the 0/0, 4/0 and 0/4 of the papers).
//!
//! | module | subject |
//! | --- | --- |
//! | `auth` | PBFT by what clients' frames show whose they are: signatures, authenticators, and everything signed |
//! | `delays` | slower trusted components: the A2M paper's table 2 |
//! | `entry` | the protocols: what the papers predict of each, and what is demanded |
//! | `side` | a group with its clients, and its rounds |
//! | `interval` | medians of ratios, and what they are known to lie between |
//! | `table` | what was found, for people and machines |

pub(crate) mod auth;
pub(crate) mod delays;
pub(crate) mod entry;
pub(crate) mod interval;

mod side;
mod table;

use crate::Failure;
use crate::cli::{ProtocolsPart, ProtocolsPlan};
use crate::null::OVERHEAD;
use crate::protocol::Agreed;
use crate::yardsticks::Yardsticks;
use entry::{ENTRIES, Entry};
use side::{Figures, Side};
use std::time::Duration;
use tokio::runtime::Runtime;
use tokio::task::LocalSet;
use troth_node::config::Protocol;

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

/// What is measured beside others in a cell.
#[derive(Clone, Copy)]
pub(crate) struct Contender {
    pub(crate) entry: &'static Entry,
    /// What it is called beside them.
    pub(crate) name: &'static str,
    pub(crate) agreed: Agreed,
}

/// A contender in a cell, and its rounds, as many as every other's.
pub(crate) struct Shown {
    pub(crate) entry: &'static Entry,
    pub(crate) name: &'static str,
    pub(crate) rounds: Vec<Figures>,
}

/// Measures, prints, and tells whether every gate holds.
pub(crate) fn run(plan: &ProtocolsPlan, part: &ProtocolsPart) -> Result<bool, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let mut cells = Vec::new();
    let mut machine = Yardsticks::default();
    let entries = part.entries();
    let mut by_auth = None;
    for faults in plan.faults() {
        for (name, request, reply) in part.shapes() {
            machine.look()?;
            let cell = Cell { faults, name, request, reply };
            let contenders: Vec<Contender> = entries.iter().map(|entry| entry.contends(faults)).collect();
            let shown = measured(&runtime, plan, &contenders, cell)?;
            table::print(cell, &shown);
            cells.push((cell, shown));
            if part.has_auth(cell) {
                machine.look()?;
                let shown = measured(&runtime, plan, &auth::contenders(), cell)?;
                println!("\nPBFT by what shows whose its clients' frames are; nothing is demanded of these");
                table::print(cell, &shown);
                by_auth = Some((cell, shown));
            }
        }
    }
    machine.look()?;
    Ok(table::verdict(plan, &cells, by_auth.as_ref(), &machine))
}

/// A cell, within the time that it may take.
fn measured(
    runtime: &Runtime,
    plan: &ProtocolsPlan,
    contenders: &[Contender],
    cell: Cell,
) -> Result<Vec<Shown>, Failure> {
    let limit = plan.round() * (plan.pairs + 1) * u32::try_from(contenders.len())? + OVERHEAD * 2;
    LocalSet::new().block_on(runtime, async {
        tokio::time::timeout(limit, measure(plan, contenders, cell)).await.unwrap_or_else(|_| {
            Err(format!("f = {}, {}: not done after {} s", cell.faults, cell.name, limit.as_secs()).into())
        })
    })
}

async fn measure(plan: &ProtocolsPlan, contenders: &[Contender], cell: Cell) -> Result<Vec<Shown>, Failure> {
    let mut sides = Vec::new();
    for contender in contenders {
        sides.push(Side::start(plan, cell, contender.agreed, &[]).await?);
    }
    // The first one is not counted: everybody has seen the work then.
    for side in &mut sides {
        side.round(plan).await?;
    }
    let begun = |&Contender { entry, name, .. }: &Contender| Shown { entry, name, rounds: Vec::new() };
    let mut shown: Vec<Shown> = contenders.iter().map(begun).collect();
    for number in 0..plan.pairs as usize {
        for turn in 0..sides.len() {
            // Who goes first in one round goes later in the next.
            let at = (turn + number) % sides.len();
            shown[at].rounds.push(sides[at].round(plan).await?);
        }
        let rates: Vec<String> =
            shown.iter().map(|shown| format!("{} {:.0}", shown.name, shown.rounds[number].rate)).collect();
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

    /// Whether PBFT is measured by what shows whose its clients' frames are, too, where this is measured.
    pub(crate) fn has_auth(&self, cell: Cell) -> bool {
        let asked = self.protocol.is_empty() || self.protocol.contains(&Protocol::Pbft);
        asked && cell.faults == auth::FAULTS && cell.name == auth::SHAPE
    }

    /// The work that is asked for.
    fn shapes(&self) -> Vec<(&'static str, usize, usize)> {
        let wanted = |(name, ..): &(&str, usize, usize)| {
            self.cell.is_empty() || self.cell.iter().any(|cell| cell == name)
        };
        SHAPES.into_iter().filter(wanted).collect()
    }
}
