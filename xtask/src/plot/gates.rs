//! The gates: each ratio beside its bound.
//!
//! Some gates ask for at least so much and some for at most so much. Here every bar is how far what was measured is
//! from its bound, so that all can be read alike: right of the mark it holds, left of it it does not.

use super::axis::{Axis, short};
use super::svg::{Anchor, COLOURS, FAINT, INK, Picture};
use serde_json::Value;

const WIDTH: f64 = 1040.0;
const LEFT: f64 = 380.0;
const RIGHT: f64 = 790.0;
const TOP: f64 = 92.0;
/// The height of a gate's place, and of its bar.
const ROW: f64 = 40.0;
const BAR: f64 = 20.0;

struct Gate {
    name: String,
    /// Above 1 it holds.
    margin: f64,
    words: String,
    ok: bool,
}

/// The picture of a result of `bench gates`.
pub fn draw(result: &Value) -> String {
    let gates = result["cells"].as_array().into_iter().flatten();
    of(gates.map(|cell| gate(cell, &cell["cell"])).collect(), "Gates: how far each ratio is from its bound")
}

/// The picture of a result of `bench zookeeper`, whose gates are rates beside one peer's.
pub fn of_a_peer(result: &Value) -> String {
    let gates = result["gates"].as_array().into_iter().flatten().map(|cell| {
        let (ratio, bound) = (figure(cell, "ratio"), figure(cell, "bound"));
        let words = format!("{ratio:.2} of the peer's rate; at least {bound}");
        Gate { name: words_of(&cell["gate"]), margin: ratio / bound, words, ok: cell["ok"] == true }
    });
    of(gates.collect(), "Beside ZooKeeper: how far each ratio is from its bound")
}

fn of(gates: Vec<Gate>, title: &str) -> String {
    let bottom = TOP + ROW * gates.len().max(1) as f64;
    let mut picture = Picture::new(WIDTH, bottom + 60.0, title);
    picture.text((20.0, 30.0), 17.0, Anchor::Start, title);
    for (x, colour, words) in [(20.0, COLOURS[0], "holds"), (120.0, COLOURS[1], "does not hold")] {
        picture.bar((x, 50.0), 16.0, 16.0, colour);
        picture.text((x + 24.0, 63.0), 13.0, Anchor::Start, words);
    }
    // The bound itself always has a place, and something on either side of it.
    let across = Axis::around(gates.iter().map(|gate| gate.margin).chain([0.55, 1.8]), LEFT, RIGHT);
    for value in across.ticks() {
        let x = across.place(value);
        picture.line((x, TOP), (x, bottom), FAINT, 1.0, "");
        picture.text((x, bottom + 18.0), 12.0, Anchor::Middle, &short(value));
    }
    let bound = across.place(1.0);
    for (number, gate) in gates.iter().enumerate() {
        let middle = TOP + ROW * (number as f64 + 0.5);
        let end = across.place(gate.margin);
        let colour = if gate.ok { COLOURS[0] } else { COLOURS[1] };
        picture.bar((bound.min(end), middle - BAR / 2.0), (end - bound).abs().max(1.0), BAR, colour);
        picture.text((LEFT - 12.0, middle + 4.0), 12.0, Anchor::End, &gate.name);
        picture.text((RIGHT + 12.0, middle + 4.0), 12.0, Anchor::Start, &gate.words);
    }
    picture.line((bound, TOP - 6.0), (bound, bottom), INK, 2.0, "");
    picture.text((bound, TOP - 12.0), 12.0, Anchor::Middle, "bound");
    let words = "times better than the bound (logarithmic)";
    picture.text(((LEFT + RIGHT) / 2.0, bottom + 42.0), 13.0, Anchor::Middle, words);
    picture.finish()
}

fn figure(cell: &Value, name: &str) -> f64 {
    cell[name].as_f64().unwrap_or(f64::NAN)
}

fn words_of(name: &Value) -> String {
    name.as_str().unwrap_or_default().to_string()
}

fn gate(cell: &Value, name: &Value) -> Gate {
    let (ratio, bound) = (figure(cell, "ratio"), figure(cell, "bound"));
    let (margin, words) = match cell["gate"].as_str() {
        Some("rate") => (ratio / bound, format!("{ratio:.3} of the rate; at least {bound}")),
        Some("latency") => (bound / ratio, format!("{ratio:.2} times the p50; at most {bound}")),
        _ => (bound / ratio, format!("{ratio:.2} times the CPU time; at most {bound}")),
    };
    Gate { name: words_of(name), margin, words, ok: cell["ok"] == true }
}
