//! What is printed of an open loop, for people and for machines.

use super::{Point, Seen, Variant};
use crate::cli::OpenPlan;
use crate::report::{Round, columns, load_average, median};
use serde_json::{Map, Value, json};

/// The share of what is due that must be answered meanwhile, or else what waits has grown.
const KEPT_UP: f64 = 0.98;

/// What a rate is shown by: title, name in JSON, decimals.
type Figure = (&'static str, &'static str, usize, fn(&Seen) -> f64);
const FIGURES: [Figure; 7] = [
    ("offered/s", "offered", 0, |seen| seen.offered),
    ("achieved/s", "achieved", 0, |seen| seen.round.rate),
    ("p50 µs", "p50_us", 0, |seen| seen.round.p50),
    ("p99 µs", "p99_us", 0, |seen| seen.round.p99),
    ("p99.9 µs", "p999_us", 0, |seen| seen.p999),
    ("asked late µs", "asked_late_p99_us", 0, |seen| seen.late),
    ("refused %", "refused_percent", 1, |seen| seen.refused * 100.0),
];

/// Whether a system answered what was due, so that its latency does not depend on how long it was measured.
pub(crate) fn keeps_up(offered: f64, achieved: f64, refused: f64) -> bool {
    refused == 0.0 && achieved >= offered * KEPT_UP
}

/// Whether a system answered what was due at all rates, in percent, up to the highest at which it did, and at one at
/// least: what it cannot do begins where it saturates, and not in between.
pub(crate) fn is_reached_below_saturation(points: &[(u32, bool)]) -> bool {
    let most = points.iter().filter(|(_, keeps_up)| *keeps_up).map(|(percent, _)| *percent).max();
    most.is_some_and(|most| points.iter().all(|(percent, keeps_up)| *keeps_up || *percent > most))
}

impl Point {
    fn keeps_up(&self) -> bool {
        self.seen.iter().all(of)
    }

    fn counts_from_due(&self) -> bool {
        self.seen.iter().all(|seen| seen.from_due)
    }
}

impl Variant {
    fn holds(&self) -> bool {
        let points: Vec<_> = self.points.iter().map(|point| (point.percent, point.keeps_up())).collect();
        is_reached_below_saturation(&points) && self.points.iter().all(Point::counts_from_due)
    }
}

fn of(seen: &Seen) -> bool {
    keeps_up(seen.offered, seen.round.rate, seen.refused)
}

/// Says what a round showed.
pub(super) fn say(number: usize, name: &str, point: &Point, seen: &Seen) {
    println!(
        "open loop, round {number}, {name:<28} {:>3} % {:>9.0}/s  p50 {:>7.0} µs  p99 {:>8.0} µs{}",
        point.percent,
        seen.round.rate,
        seen.round.p50,
        seen.round.p99,
        if of(seen) { "" } else { "  does not keep up" }
    );
}

/// Prints everything; tells whether the claim holds.
pub(super) fn report(plan: &OpenPlan, variants: &[Variant]) -> bool {
    let load = load_average();
    println!(
        "\n{} service, {}, f = 1, {} clients, Poisson arrivals from seed {}, {} rounds of {} s; medians; load average {}",
        plan.service.name(),
        plan.durability.name(),
        plan.clients.connections,
        plan.seed,
        plan.rounds,
        plan.seconds,
        load[0]
    );
    println!("latency from when a request was due, over all that were due in the window, whenever answered");
    for variant in variants {
        let closed = median(variant.closed.iter().map(|round| round.rate));
        println!("\n{}: {closed:.0}/s in the closed loop", variant.name);
        print!("{:>9}", "of that");
        FIGURES.iter().for_each(|(title, ..)| print!(" {title:>13}"));
        println!(" {:>11} {:>11}", "CPU µs/op", "op/frame");
        for point in &variant.points {
            print!("{:>7} %", point.percent);
            for (_, _, decimals, value) in FIGURES {
                print!(" {:>13.decimals$}", median(point.seen.iter().map(value)));
            }
            let round = |value: fn(&Round) -> f64| median(point.seen.iter().map(|seen| value(&seen.round)));
            print!(
                " {:>11.2} {:>11.1}",
                round(|round| round.servers_cpu),
                round(|round| round.frame_operations)
            );
            println!("{}", verdict(point));
        }
    }
    let ok = variants.iter().all(Variant::holds);
    let summary = summary(plan, variants, ok);
    println!("\n{summary}");
    if plan.json {
        let variants: Vec<Value> = variants.iter().map(json_of).collect();
        let result = json!({
            "summary": summary, "ok": ok, "service": plan.service.name(), "f": 1,
            "durability": plan.durability.name(), "connections": plan.clients.connections,
            "outstanding": plan.clients.outstanding, "operation_bytes": plan.bytes(), "arrivals": "poisson",
            "seed": plan.seed, "seconds": plan.seconds, "rounds": plan.rounds, "load_average": load,
            "variants": variants,
        });
        println!("{result}");
    }
    ok
}

fn verdict(point: &Point) -> String {
    let behind = point.seen.iter().filter(|seen| !of(seen)).count();
    let changes: u64 = point.seen.iter().map(|seen| seen.round.view_changes).sum();
    let mut words = String::new();
    if behind > 0 {
        words += &format!("  does not keep up in {behind} of {}", point.seen.len());
    }
    if changes > 0 {
        words += &format!("  view changes: {changes}");
    }
    if !point.counts_from_due() {
        words += "  latencies are NOT those from when requests were due";
    }
    words
}

/// The verdict, and up to which rate each variant kept up in every round.
fn summary(plan: &OpenPlan, variants: &[Variant], ok: bool) -> String {
    let each = variants.iter().map(|variant| {
        let kept = variant.points.iter().filter(|point| point.keeps_up());
        match kept.max_by_key(|point| point.percent) {
            Some(most) => {
                let of = |value: fn(&Seen) -> f64| median(most.seen.iter().map(value));
                format!(
                    "{} keeps up to {} % ({:.0}/s, p50 {:.0} µs, p99 {:.0} µs)",
                    variant.name,
                    most.percent,
                    of(|seen| seen.round.rate),
                    of(|seen| seen.round.p50),
                    of(|seen| seen.round.p99)
                )
            }
            None => format!("{} keeps up at no rate", variant.name),
        }
    });
    let verdict = if ok { "holds" } else { "does NOT hold" };
    format!("open loop, {}: {verdict}: {}", plan.service.name(), each.collect::<Vec<_>>().join("; "))
}

fn json_of(variant: &Variant) -> Value {
    let points: Vec<Value> = variant
        .points
        .iter()
        .map(|point| {
            let mut figures = Map::new();
            let mut add = |name: &str, all: Vec<f64>| {
                figures.insert(name.to_owned(), json!({ "median": median(all.clone()), "rounds": all }));
            };
            // What the closed loop shows too, under the names that it has there, but for what stands above.
            for (_, name, _, value) in columns() {
                let all: Vec<f64> = point.seen.iter().map(|seen| value(&seen.round)).collect();
                // System calls are counted in closed loops only.
                if all.iter().all(|value| value.is_finite()) {
                    add(name, all);
                }
            }
            for (_, name, _, value) in FIGURES {
                add(name, point.seen.iter().map(value).collect());
            }
            figures.insert("percent".to_owned(), point.percent.into());
            figures.insert("planned".to_owned(), point.rate.into());
            figures.insert("keeps_up".to_owned(), point.keeps_up().into());
            figures.insert("counted_from_due".to_owned(), point.counts_from_due().into());
            figures.into()
        })
        .collect();
    let closed: Vec<f64> = variant.closed.iter().map(|round| round.rate).collect();
    json!({
        "name": variant.name, "points": points,
        "closed_loop": { "median": median(closed.clone()), "rounds": closed },
    })
}
