//! Slower trusted components: latency of one client alone over what a call takes more (the A2M paper's table 2).

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

/// The picture of a result of `bench delays`.
pub fn draw(result: &Value) -> String {
    let lines: Vec<(&str, Vec<(f64, f64)>)> = result["lines"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|line| (line["name"].as_str().unwrap_or_default(), points(line)))
        .collect();
    let all = || lines.iter().flat_map(|(_, points)| points.iter().copied());
    let across = Axis::around(all().map(|(delay, _)| delay), LEFT, RIGHT);
    let up = Axis::around(all().map(|(_, latency)| latency), BOTTOM, TOP);
    let title =
        format!("One client alone, by what a call of the trusted component takes more (f = {})", result["f"]);
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
    let below = "microseconds that a call takes more (logarithmic)";
    picture.text(((LEFT + RIGHT) / 2.0, BOTTOM + 42.0), 13.0, Anchor::Middle, below);
    picture.upwards((24.0, (TOP + BOTTOM) / 2.0), 13.0, "half of the requests took at most (logarithmic)");
    for (number, ((name, points), colour)) in lines.iter().zip(COLOURS).enumerate() {
        let places: Vec<(f64, f64)> =
            points.iter().map(|(delay, latency)| (across.place(*delay), up.place(*latency))).collect();
        picture.path(&places, colour, "");
        places.iter().for_each(|place| picture.dot(*place, colour, false));
        let (x, y) = (LEFT + 380.0 * (number % 2) as f64, 58.0 + 26.0 * (number / 2) as f64);
        picture.line((x, y), (x + 28.0, y), colour, 3.0, "");
        picture.text((x + 36.0, y + 4.0), 13.0, Anchor::Start, name);
    }
    picture.finish()
}

fn points(line: &Value) -> Vec<(f64, f64)> {
    let points = line["points"].as_array().into_iter().flatten();
    let place =
        |point: &Value| Some((point["delay_us"].as_f64()?, point["alone_p50_us"]["median"].as_f64()?));
    points.filter_map(place).collect()
}
