//! Every protocol beside PBFT: the ratio of operations per second in each cell, with its interval and its bound.

use super::axis::{Axis, short};
use super::svg::{Anchor, COLOURS, FAINT, INK, Picture};
use serde_json::Value;

const WIDTH: f64 = 900.0;
const LEFT: f64 = 150.0;
const RIGHT: f64 = 860.0;
const TOP: f64 = 104.0;
/// The height of a protocol's place in a cell, and of what is left free around a cell.
const ROW: f64 = 18.0;
const MARGIN: f64 = 8.0;

/// Those that stand beside PBFT, in the order of their colours.
const PROTOCOLS: [&str; 3] = ["minbft", "a2m-pbft-e", "a2m-pbft-ea"];

/// The picture of a result of `bench protocols`.
pub fn draw(result: &Value) -> String {
    let cells: Vec<&Value> = result["cells"].as_array().into_iter().flatten().collect();
    let height = ROW * PROTOCOLS.len() as f64 + 2.0 * MARGIN;
    let bottom = TOP + height * cells.len().max(1) as f64;
    let title = "Operations per second beside PBFT's in the same run";
    let mut picture = Picture::new(WIDTH, bottom + 60.0, title);
    picture.text((20.0, 30.0), 17.0, Anchor::Start, title);
    for (number, (protocol, colour)) in PROTOCOLS.into_iter().zip(COLOURS).enumerate() {
        let x = 20.0 + 140.0 * number as f64;
        picture.dot((x + 6.0, 58.0), colour, false);
        picture.text((x + 18.0, 62.0), 13.0, Anchor::Start, protocol);
    }
    picture.line((446.0, 50.0), (446.0, 66.0), INK, 3.0, "");
    picture.text(
        (456.0, 62.0),
        13.0,
        Anchor::Start,
        "what is demanded; the line is the 95 % interval of the median",
    );

    let ratios = |cell: &&Value| -> Vec<f64> {
        let of = |protocol: &str| ["low", "high"].map(|edge| ratio(cell, protocol, edge));
        PROTOCOLS.into_iter().flat_map(of).flatten().collect()
    };
    // PBFT itself always has a place, and something on either side of it.
    let across = Axis::around(cells.iter().flat_map(ratios).chain([0.6, 1.8]), LEFT, RIGHT);
    for value in across.ticks() {
        let x = across.place(value);
        picture.line((x, TOP), (x, bottom), FAINT, 1.0, "");
        picture.text((x, bottom + 18.0), 12.0, Anchor::Middle, &short(value));
    }
    picture.line((across.place(1.0), TOP - 6.0), (across.place(1.0), bottom), INK, 1.5, "");
    picture.text((across.place(1.0), TOP - 12.0), 12.0, Anchor::Middle, "PBFT");
    for (number, cell) in cells.iter().enumerate() {
        let top = TOP + height * number as f64;
        let name = format!("f = {}, {} KB", cell["f"], cell["cell"].as_str().unwrap_or_default());
        picture.text((LEFT - 12.0, top + height / 2.0 + 4.0), 12.0, Anchor::End, &name);
        for (row, (protocol, colour)) in PROTOCOLS.into_iter().zip(COLOURS).enumerate() {
            let y = top + MARGIN + ROW * (row as f64 + 0.5);
            if let Some(demanded) = demanded(result, cell, protocol) {
                let x = across.place(demanded);
                picture.line((x, y - ROW / 2.0 + 2.0), (x, y + ROW / 2.0 - 2.0), colour, 3.0, "");
            }
            let [low, median, high] = ["low", "median", "high"].map(|edge| ratio(cell, protocol, edge));
            if let (Some(low), Some(high)) = (low, high) {
                picture.line((across.place(low), y), (across.place(high), y), colour, 1.5, "");
            }
            if let Some(median) = median {
                picture.dot((across.place(median), y), colour, false);
            }
        }
        picture.line((LEFT, top), (RIGHT, top), FAINT, 1.0, "");
    }
    let words = "times PBFT's operations per second (logarithmic)";
    picture.text(((LEFT + RIGHT) / 2.0, bottom + 42.0), 13.0, Anchor::Middle, words);
    picture.finish()
}

fn ratio(cell: &Value, protocol: &str, edge: &str) -> Option<f64> {
    cell["protocols"][protocol]["ratio_to_pbft"][edge].as_f64()
}

/// What the gate of this protocol in this cell asks for.
fn demanded(result: &Value, cell: &Value, protocol: &str) -> Option<f64> {
    let name = format!(
        "f = {}, {}: {protocol} beside pbft, at least",
        cell["f"],
        cell["cell"].as_str().unwrap_or_default()
    );
    let gates = result["gates"].as_array().into_iter().flatten();
    gates.into_iter().find(|gate| gate["gate"] == name.as_str())?["demanded"].as_f64()
}
