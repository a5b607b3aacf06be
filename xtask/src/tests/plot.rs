//! Tests of the plots: that they are well-formed, that values stand where they should, that nothing is missing.

use crate::plot::{Anchor, Axis, Picture, delays, gates, open, peers, protocols, short, time, zookeeper};
use serde_json::{Value, json};

/// Reads a text as XML as far as pictures use it: the elements that it opens, with their attributes.
///
/// # Panics
/// If the text is not well-formed.
fn elements(text: &str) -> Vec<(String, Vec<(String, String)>)> {
    let (mut elements, mut open, mut rest) = (Vec::new(), Vec::<String>::new(), text.trim_end());
    while let Some(at) = rest.find('<') {
        let between = &rest[..at];
        assert!(!open.is_empty() || between.trim().is_empty(), "text outside of the root: {between}");
        assert!(!between.contains('>'), "a lone '>': {between}");
        for entity in between.split('&').skip(1) {
            let known = ["amp;", "lt;", "gt;", "quot;"];
            assert!(known.iter().any(|name| entity.starts_with(name)), "a lone '&': {between}");
        }
        let end = at + rest[at..].find('>').expect("a tag ends");
        let tag = &rest[at + 1..end];
        rest = &rest[end + 1..];
        if let Some(name) = tag.strip_prefix('/') {
            assert_eq!(open.pop().as_deref(), Some(name), "elements end in turn");
            continue;
        }
        let (tag, is_empty) = tag.strip_suffix('/').map_or((tag, false), |tag| (tag, true));
        let (name, mut left) = tag.split_once(' ').unwrap_or((tag, ""));
        assert!(name.chars().all(char::is_alphanumeric), "{name}");
        assert!(elements.is_empty() || !open.is_empty(), "one root");
        let mut attributes: Vec<(String, String)> = Vec::new();
        while !left.trim().is_empty() {
            let (name, value) = left.trim_start().split_once("=\"").expect("an attribute has a value");
            let (value, after) = value.split_once('"').expect("a value ends");
            assert!(!attributes.iter().any(|(known, _)| known == name), "{name} twice");
            assert!(!value.contains("NaN") && !value.contains("inf"), "{name}=\"{value}\"");
            attributes.push((name.to_string(), value.to_string()));
            left = after;
        }
        elements.push((name.to_string(), attributes));
        if !is_empty {
            open.push(name.to_string());
        }
    }
    assert!(open.is_empty() && rest.is_empty(), "left open: {open:?} {rest}");
    elements
}

fn count(elements: &[(String, Vec<(String, String)>)], name: &str) -> usize {
    elements.iter().filter(|(of, _)| of == name).count()
}

fn measured() -> Value {
    let point = |offered: f64, p50: f64, p99: f64, keeps_up: bool| {
        let figure = |value: f64| json!({ "median": value, "rounds": [value * 0.9, value, value * 1.2] });
        json!({
            "offered": figure(offered), "p50_us": figure(p50), "p99_us": figure(p99), "p999_us": figure(p99 * 2.0),
            "keeps_up": keeps_up,
        })
    };
    json!({
        "service": "null", "durability": "memory", "f": 1, "connections": 16,
        "variants": [
            { "name": "a < b & \"c\"", "points": [point(1e4, 400.0, 9e3, true), point(9e4, 2e3, 1e6, false)] },
            { "name": "other", "points": [point(1e5, 200.0, 800.0, true)] },
        ],
    })
}

#[test]
fn the_open_loop_is_drawn_whole() {
    let picture = open(&measured());
    let elements = elements(&picture);
    assert_eq!(elements[0].0, "svg");
    assert_eq!(count(&elements, "polyline"), 6, "p50, p99 and p99.9 of each variant");
    let spreads = elements.iter().filter(|(name, attributes)| {
        name == "line" && attributes.iter().any(|(name, value)| name == "stroke-width" && value == "1.5")
    });
    assert_eq!(spreads.count(), 9, "lowest to highest round of each point");
    // Three for each of three points, and one in the legend.
    assert_eq!(count(&elements, "circle"), 10);
    assert!(picture.contains("a &lt; b &amp; &quot;c&quot;"));
    for words in ["requests offered per second", "latency", "p50", "p99", "p99.9", "does not keep up"] {
        assert!(picture.contains(words), "{words}");
    }
}

#[test]
fn gates_are_drawn_with_their_bounds() {
    let cell = |gate: &str, ratio: f64, bound: f64, ok: bool| json!({ "cell": format!("null, {gate}"), "gate": gate, "ratio": ratio, "bound": bound, "ok": ok });
    let cells = [
        cell("rate", 0.144, 0.25, false),
        cell("latency", 5.8, 2.0, false),
        cell("processor", 1.5, 1.8, true),
    ];
    let picture = gates(&json!({ "cells": cells }));
    let elements = elements(&picture);
    // The paper, two for the legend, one for each gate.
    assert_eq!(count(&elements, "rect"), 6);
    for words in
        ["0.144 of the rate; at least 0.25", "5.80 times the p50; at most 2", "bound", "does not hold"]
    {
        assert!(picture.contains(words), "{words}");
    }
}

#[test]
fn a_result_without_anything_is_drawn_all_the_same() {
    elements(&open(&json!({})));
    elements(&gates(&json!({})));
    elements(&gates(&json!({ "cells": [{}] })));
}

#[test]
fn values_stand_in_order_within_the_edges() {
    let axis = Axis::around([30.0, 40_000.0, 0.0, f64::NAN], 100.0, 500.0);
    let places: Vec<f64> = [20.0, 30.0, 400.0, 40_000.0, 50_000.0].map(|value| axis.place(value)).into();
    assert!(places.is_sorted() && places[0] == 100.0 && places[4] == 500.0, "{places:?}");
    assert!((axis.place(100.0) - axis.place(10.0 * 5.0) - (axis.place(1e3) - axis.place(5e2))).abs() < 1e-9);
    assert_eq!(axis.ticks(), [20.0, 50.0, 1e2, 2e2, 5e2, 1e3, 2e3, 5e3, 1e4, 2e4, 5e4]);
    assert!(Axis::around([1.0, 1e6], 0.0, 1.0).ticks().len() <= 8);
}

#[test]
fn numbers_are_short_and_times_have_units() {
    assert_eq!([500.0, 2_000.0, 20_000.0, 1.5e6].map(short), ["500", "2k", "20k", "1.5M"]);
    assert_eq!([50.0, 2_000.0, 1e6].map(time), ["50 µs", "2 ms", "1 s"]);
}

#[test]
fn letters_cannot_break_out() {
    let mut picture = Picture::new(10.0, 10.0, "<&>\"");
    picture.text((1.0, 1.0), 5.0, Anchor::Middle, "</text><script>");
    picture.upwards((1.0, 1.0), 5.0, "&");
    let elements = elements(&picture.finish());
    assert!(elements.iter().all(|(name, _)| name != "script"));
}

#[test]
fn delays_have_a_line_for_each_protocol_and_a_dot_for_each_delay() {
    let point =
        |delay: u64, latency: f64| json!({ "delay_us": delay, "alone_p50_us": { "median": latency } });
    let points = [point(1, 400.0), point(10, 420.0), point(1000, 3_000.0)];
    let line = |name: &str| json!({ "name": name, "points": points });
    let measured = json!({ "f": 1, "lines": [line("a2m-pbft-e, operations bundled"), line("<b> & c")] });
    let picture = delays(&measured);
    let elements = elements(&picture);
    assert_eq!((count(&elements, "polyline"), count(&elements, "circle")), (2, 6));
    assert!(picture.contains("a2m-pbft-e, operations bundled") && picture.contains("&lt;b&gt; &amp; c"));
    assert_eq!(count(&self::elements(&delays(&json!({}))), "polyline"), 0);
}

#[test]
fn each_protocol_stands_in_each_cell_beside_what_is_demanded_of_it() {
    let ratio = |low: f64, median: f64, high: f64| json!({ "ratio_to_pbft": { "low": low, "median": median, "high": high } });
    let protocols_of = json!({
        "pbft": ratio(1.0, 1.0, 1.0), "minbft": ratio(1.5, 1.6, 1.7), "a2m-pbft-e": ratio(0.86, 0.88, 0.94),
    });
    let gate = |of: &str, demanded: f64| json!({ "gate": of, "demanded": demanded, "ok": true });
    let measured = json!({
        "cells": [{ "cell": "0/4", "f": 2, "protocols": protocols_of }],
        "gates": [
            gate("f = 2, 0/4: minbft beside pbft, at least", 1.1),
            gate("f = 2, 0/4: messages of a batch of minbft, about", 20.0),
            gate("f = 1, 0/4: a2m-pbft-e beside pbft, at least", 0.93),
        ],
    });
    let picture = protocols(&measured);
    let elements = elements(&picture);
    // Three in the legend, and the two that were measured beside PBFT.
    assert_eq!(count(&elements, "circle"), 5);
    let bounds = elements.iter().filter(|(name, attributes)| {
        name == "line" && attributes.iter().any(|(name, value)| name == "stroke-width" && value == "3")
    });
    assert_eq!(bounds.count(), 2, "one in the legend, and MinBFT's in this cell");
    assert!(picture.contains("f = 2, 0/4 KB"));
    self::elements(&protocols(&json!({})));
    self::elements(&protocols(&json!({ "cells": [{}] })));
}

#[test]
fn bars_beside_peers_begin_at_nothing() {
    let variant = |rate: f64, p50: f64| {
        let figure = |value: f64| json!({ "median": value, "rounds": [value * 0.5, value] });
        json!({ "operations_per_second": figure(rate), "p50_us": figure(p50) })
    };
    let variants = json!({ "Troth <x>": variant(50_000.0, 2_000.0), "etcd": variant(12_500.0, 500.0) });
    let cell = |name: &str| json!({ "cell": name, "variants": variants });
    let picture = peers(&json!({ "cells": [cell("kv, 1000 outstanding"), cell("kv, one client alone")] }));
    let elements = elements(&picture);
    let widths: Vec<f64> = elements
        .iter()
        .filter(|(name, _)| name == "rect")
        .skip(1)
        .map(|(_, attributes)| {
            attributes.iter().find(|(name, _)| name == "width").expect("a width").1.parse().expect("a number")
        })
        .collect();
    let [rate, lower, late, soon] = widths[..] else { panic!("a bar for each: {widths:?}") };
    assert!(rate > 0.0 && (lower / rate - 0.25).abs() < 0.01, "{widths:?}");
    assert!(late == rate && (soon / late - 0.25).abs() < 0.01, "{widths:?}");
    for words in ["50k", "12.5k", "2 ms", "500 µs", "Troth &lt;x&gt;"] {
        assert!(picture.contains(words), "{words}");
    }
    self::elements(&peers(&json!({})));
    self::elements(&peers(&json!({ "cells": [{}] })));
}

#[test]
fn rates_beside_zookeeper_are_drawn_with_their_bounds() {
    let gate = |name: &str, ratio: f64, bound: f64| json!({ "gate": name, "ratio": ratio, "bound": bound, "ok": ratio >= bound });
    let picture = zookeeper(&json!({ "gates": [gate("setData", 1.3, 2.0), gate("getData", 3.2, 1.0)] }));
    let elements = elements(&picture);
    assert_eq!(count(&elements, "rect"), 5, "the paper, two for the legend, one for each gate");
    assert!(picture.contains("1.30 of the peer's rate; at least 2") && picture.contains("getData"));
    self::elements(&zookeeper(&json!({})));
}
