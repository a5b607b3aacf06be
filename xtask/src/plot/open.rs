//! The open loop: latency over the rate at which requests arrive.

use super::axis::{Axis, short, time};
use super::svg::{Anchor, COLOURS, FAINT, INK, Picture};
use serde_json::Value;

const WIDTH: f64 = 860.0;
const HEIGHT: f64 = 520.0;
/// The edges of the field in which the lines are.
const LEFT: f64 = 90.0;
const RIGHT: f64 = 830.0;
const TOP: f64 = 130.0;
const BOTTOM: f64 = 450.0;
/// What is drawn of latencies: its name, its name in the result, and the gaps of its line.
const SHARES: [(&str, &str, &str); 3] =
    [("p50", "p50_us", ""), ("p99", "p99_us", "6 4"), ("p99.9", "p999_us", "2 4")];

/// A median over rounds, with the lowest and the highest.
#[derive(Clone, Copy)]
struct Figure {
    median: f64,
    low: f64,
    high: f64,
}

/// One point of a line.
struct Point {
    offered: f64,
    /// As [`SHARES`] has them.
    latencies: [Figure; SHARES.len()],
    keeps_up: bool,
}

/// The picture of a result of `bench open`.
pub fn draw(result: &Value) -> String {
    let variants: Vec<(&str, Vec<Point>)> = result["variants"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|variant| (variant["name"].as_str().unwrap_or_default(), points(variant)))
        .collect();
    let title = format!(
        "Open loop: {} service, durability {}, f = {}, {} clients",
        result["service"].as_str().unwrap_or_default(),
        result["durability"].as_str().unwrap_or_default(),
        result["f"],
        result["connections"]
    );
    let all = || variants.iter().flat_map(|(_, points)| points);
    let across = Axis::around(all().map(|point| point.offered), LEFT, RIGHT);
    let ends = |figure: Figure| [figure.low, figure.high];
    let up = Axis::around(all().flat_map(|point| point.latencies).flat_map(ends), BOTTOM, TOP);

    let mut picture = Picture::new(WIDTH, HEIGHT, &title);
    picture.text((LEFT, 30.0), 17.0, Anchor::Start, &title);
    for value in up.ticks() {
        let y = up.place(value);
        picture.line((LEFT, y), (RIGHT, y), FAINT, 1.0, "");
        picture.text((LEFT - 8.0, y + 4.0), 12.0, Anchor::End, &time(value));
    }
    for value in across.ticks() {
        let x = across.place(value);
        picture.line((x, TOP), (x, BOTTOM), FAINT, 1.0, "");
        picture.text((x, BOTTOM + 18.0), 12.0, Anchor::Middle, &short(value));
    }
    picture.line((LEFT, BOTTOM), (RIGHT, BOTTOM), INK, 1.0, "");
    picture.line((LEFT, TOP), (LEFT, BOTTOM), INK, 1.0, "");
    picture.text(
        ((LEFT + RIGHT) / 2.0, BOTTOM + 42.0),
        13.0,
        Anchor::Middle,
        "requests offered per second (logarithmic)",
    );
    picture.upwards((24.0, (TOP + BOTTOM) / 2.0), 13.0, "latency from when a request was due (logarithmic)");

    for ((_, points), colour) in variants.iter().zip(COLOURS) {
        for (value, (.., dashes)) in SHARES.into_iter().enumerate() {
            let places: Vec<(f64, f64)> = points
                .iter()
                .map(|point| (across.place(point.offered), up.place(point.latencies[value].median)))
                .collect();
            for ((x, _), point) in places.iter().zip(points) {
                let spread = point.latencies[value];
                picture.line((*x, up.place(spread.low)), (*x, up.place(spread.high)), colour, 1.5, dashes);
            }
            picture.path(&places, colour, dashes);
            for (place, point) in places.iter().zip(points) {
                picture.dot(*place, colour, !point.keeps_up);
            }
        }
    }
    legend(&mut picture, variants.iter().map(|(name, _)| *name));
    picture.finish()
}

fn points(variant: &Value) -> Vec<Point> {
    let figure = |point: &Value, name: &str| {
        let median = point[name]["median"].as_f64().unwrap_or_default();
        let rounds = point[name]["rounds"].as_array().into_iter().flatten().filter_map(Value::as_f64);
        let (low, high) =
            rounds.fold((median, median), |(low, high), round| (low.min(round), high.max(round)));
        Figure { median, low, high }
    };
    let points = variant["points"].as_array().into_iter().flatten();
    points
        .map(|point| Point {
            offered: figure(point, "offered").median,
            latencies: SHARES.map(|(_, name, _)| figure(point, name)),
            keeps_up: point["keeps_up"] == true,
        })
        .collect()
}

/// What colours, dashes and rings mean.
fn legend<'a>(picture: &mut Picture, names: impl Iterator<Item = &'a str>) {
    let mut x = LEFT;
    for (name, colour) in names.zip(COLOURS) {
        picture.line((x, 58.0), (x + 28.0, 58.0), colour, 3.0, "");
        picture.text((x + 36.0, 62.0), 13.0, Anchor::Start, name);
        x += 250.0;
    }
    let mut x = LEFT;
    for (name, _, dashes) in SHARES {
        picture.line((x, 86.0), (x + 28.0, 86.0), INK, 2.0, dashes);
        picture.text((x + 36.0, 90.0), 13.0, Anchor::Start, name);
        x += 90.0;
    }
    picture.dot((x + 14.0, 86.0), INK, true);
    let words = "does not keep up in some round; upright lines: lowest to highest round";
    picture.text((x + 26.0, 90.0), 13.0, Anchor::Start, words);
}
