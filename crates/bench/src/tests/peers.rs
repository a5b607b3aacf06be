//! Tests of what the load programs' lines mean and of what follows from the figures.

use crate::peers::line::{Figures, Line, parse};
use crate::peers::verdict::{CellShown, Gate, gates, json_of, summary};

#[test]
fn lines_of_load_programs_are_understood() {
    assert_eq!(parse(r#"{"ready":"etcd 3.7.3"}"#), Some(Line::Ready("etcd 3.7.3".to_owned())));
    assert_eq!(parse("{\"measuring\":true}\n"), Some(Line::Measuring(true)));
    assert_eq!(parse(r#"{"measuring":false}"#), Some(Line::Measuring(false)));
    let line = r#"{"operations":1500,"seconds":5.0,"p50_us":310,"p99_us":1200,"retried":2}"#;
    let figures = Figures { rate: 300.0, p50: 310.0, p99: 1200.0, retried: 2.0, ..Figures::default() };
    assert_eq!(parse(line), Some(Line::Done(figures)));
}

#[test]
fn what_is_no_line_of_theirs_is_passed_over() {
    for line in [
        "",
        "[main] WARN org.apache.zookeeper.ClientCnxn - Session 0x0",
        r#"{"level":"warn","msg":"retrying"}"#,
        r#"{"operations":1500,"seconds":0,"p50_us":310,"p99_us":1200,"retried":0}"#,
        r#"{"operations":1500,"seconds":5,"p50_us":310}"#,
        "{\"measuring\":tr",
        "7",
    ] {
        assert_eq!(parse(line), None, "{line}");
    }
}

/// A cell in which everybody showed this in every round.
fn cell(name: &'static str, value: fn(f64) -> Figures, of: [[f64; 3]; 5]) -> CellShown {
    let names = ["apart", "in process", "ZooKeeper", "Java", "etcd"];
    let mut all = names.into_iter().zip(of);
    let variants = [(); 5].map(|()| {
        let (name, rounds) = all.next().unwrap();
        (name.to_owned(), rounds.map(value).to_vec())
    });
    CellShown { name, variants }
}

fn rate(rate: f64) -> Figures {
    Figures { rate, ..Figures::default() }
}

fn p50(p50: f64) -> Figures {
    Figures { p50, ..Figures::default() }
}

#[test]
fn gates_hold_at_their_bounds() {
    let many = cell("many", rate, [[240.0; 3], [1.0; 3], [60.0; 3], [61.0; 3], [40.0; 3]]);
    let alone = cell("alone", p50, [[500.0; 3], [1.0; 3], [500.0; 3], [499.0; 3], [501.0; 3]]);
    let gates = gates(&many, &alone);
    let bounds: Vec<_> = gates.iter().map(|gate| gate.json()["bound"].as_f64().unwrap()).collect();
    assert_eq!(bounds, [4.0, 6.0, 1.0, 1.0]);
    assert!(gates.iter().all(|gate| gate.ok()), "{gates:?}");
    assert!(summary(&gates).starts_with("4 of 4 gates"), "{}", summary(&gates));
}

#[test]
fn gates_compare_medians_of_the_component_apart() {
    // The component in process is faster and does not count; one round that is off counts for nothing.
    let many = cell("many", rate, [[239.0, 9999.0, 1.0], [999.0; 3], [60.0; 3], [1.0; 3], [40.0, 39.0, 1.0]]);
    let alone = cell("alone", p50, [[500.0; 3], [1.0; 3], [499.0; 3], [999.0; 3], [9999.0, 501.0, 502.0]]);
    let gates = gates(&many, &alone);
    assert_eq!(gates.iter().map(Gate::ok).collect::<Vec<_>>(), [false, true, false, true]);
    assert!(summary(&gates).starts_with("2 of 4 gates"), "{}", summary(&gates));
}

#[test]
fn without_figures_of_both_no_gate_holds() {
    let nothing = cell("nothing", rate, [[0.0; 3]; 5]);
    assert!(!gates(&nothing, &nothing).iter().any(Gate::ok));
    let many = cell("peers did nothing", rate, [[240.0; 3], [240.0; 3], [0.0; 3], [1.0; 3], [0.0; 3]]);
    let alone = cell("Troth did nothing", p50, [[0.0; 3], [0.0; 3], [500.0; 3], [500.0; 3], [500.0; 3]]);
    assert!(!gates(&many, &alone).iter().any(Gate::ok));
}

#[test]
fn the_result_has_every_round() {
    let many = cell("many", rate, [[1.0, 2.0, 3.0], [0.0; 3], [0.0; 3], [0.0; 3], [4.0; 3]]);
    let json = json_of(&many);
    let shown = &json["variants"]["apart"]["operations_per_second"];
    assert_eq!(shown["median"], 2.0);
    assert_eq!(shown["rounds"], serde_json::json!([1.0, 2.0, 3.0]));
}
