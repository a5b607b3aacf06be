//! Beside peers: what each serves with many requests outstanding, and how long one client alone waits.

use super::axis::{short, time};
use super::svg::{Anchor, COLOURS, INK, Picture};
use serde_json::Value;

const WIDTH: f64 = 900.0;
const LEFT: f64 = 270.0;
const RIGHT: f64 = 780.0;
const TOP: f64 = 56.0;
/// The height of a cell's heading, of a server's place in it, and of its bar.
const HEADING: f64 = 46.0;
const ROW: f64 = 26.0;
const BAR: f64 = 16.0;

/// The median of the rounds, the lowest of them and the highest.
struct Figure<'a> {
    name: &'a str,
    median: f64,
    low: f64,
    high: f64,
}

/// The picture of a result of `bench peers`. Bars begin at nothing: a bar that is twice as long is twice as much.
pub fn draw(result: &Value) -> String {
    let cells: Vec<(&str, Vec<Figure<'_>>)> = result["cells"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|cell| (cell["cell"].as_str().unwrap_or_default(), figures(cell)))
        .collect();
    let rows: usize = cells.iter().map(|(_, figures)| figures.len()).sum();
    let height = TOP + HEADING * cells.len() as f64 + ROW * rows as f64 + 30.0;
    let title = "Beside peers: median of the rounds, and from the lowest to the highest";
    let mut picture = Picture::new(WIDTH, height, title);
    picture.text((20.0, 30.0), 17.0, Anchor::Start, title);
    let mut y = TOP;
    for (cell, figures) in &cells {
        let (heading, unit): (_, fn(f64) -> String) = if alone(cell) {
            ("half of the requests took at most; shorter is better", time)
        } else {
            ("operations per second; longer is better", short)
        };
        picture.text((20.0, y + 26.0), 14.0, Anchor::Start, &format!("{cell}: {heading}"));
        y += HEADING;
        let most = figures.iter().map(|figure| figure.high).fold(f64::MIN_POSITIVE, f64::max);
        let place = |value: f64| LEFT + (RIGHT - LEFT) * value / most;
        for figure in figures {
            let middle = y + ROW / 2.0;
            let colour = if figure.name.starts_with("Troth") { COLOURS[0] } else { COLOURS[1] };
            picture.text((LEFT - 12.0, middle + 4.0), 12.0, Anchor::End, figure.name);
            picture.bar((LEFT, middle - BAR / 2.0), place(figure.median) - LEFT, BAR, colour);
            picture.line((place(figure.low), middle), (place(figure.high), middle), INK, 1.5, "");
            let beside = place(figure.high.max(figure.median)) + 8.0;
            picture.text((beside, middle + 4.0), 12.0, Anchor::Start, &unit(figure.median));
            y += ROW;
        }
    }
    picture.finish()
}

/// Whether a cell is of one client alone, whose rate says nothing that its latency does not.
fn alone(cell: &str) -> bool {
    cell.ends_with("alone")
}

fn figures(cell: &Value) -> Vec<Figure<'_>> {
    let of =
        if alone(cell["cell"].as_str().unwrap_or_default()) { "p50_us" } else { "operations_per_second" };
    let variants = cell["variants"].as_object().into_iter().flatten();
    variants
        .filter_map(|(name, variant)| {
            let median = variant[of]["median"].as_f64()?;
            let rounds = variant[of]["rounds"].as_array().into_iter().flatten().filter_map(Value::as_f64);
            let (low, high) =
                rounds.fold((median, median), |(low, high), round| (low.min(round), high.max(round)));
            Some(Figure { name, median, low, high })
        })
        .collect()
}
