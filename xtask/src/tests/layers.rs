//! The dependency-direction lint, on made-up packages.

use crate::lint::layers;
use serde_json::{Value, json};

fn package(place: &str, dependencies: Value) -> Value {
    json!({ "packages": [{ "manifest_path": format!("/w/{place}/Cargo.toml"), "dependencies": dependencies }] })
}

fn ours(name: &str) -> Value {
    json!({ "name": name, "path": "/w/x", "kind": null, "optional": false, "features": [] })
}

fn other(name: &str, optional: bool) -> Value {
    json!({ "name": name, "path": null, "kind": null, "optional": optional, "features": [] })
}

fn found(place: &str, dependencies: Value) -> usize {
    layers::check(&package(place, dependencies), "/w").len()
}

#[test]
fn downward_dependencies_are_allowed() {
    let below = json!([ours("troth-types"), ours("troth-core"), ours("troth-blocks"), other("bytes", false)]);
    assert_eq!(found("crates/protocols/minbft", below), 0);
    assert_eq!(found("crates/node", json!([ours("troth-minbft"), other("tokio", false)])), 0);
}

#[test]
fn upward_and_sideward_dependencies_are_found() {
    for name in ["troth-exec", "troth-node", "troth-sim", "troth-client"] {
        assert_eq!(found("crates/protocols/minbft", json!([ours(name)])), 1, "{name}");
    }
    assert_eq!(found("crates/trusted", json!([ours("troth-types")])), 1);
    assert_eq!(found("crates/blocks", json!([ours("troth-minbft")])), 1);
}

#[test]
fn the_runtime_stays_out_of_what_is_below_it() {
    for place in ["crates/types", "crates/core", "crates/protocols/minbft", "crates/exec", "crates/sim"] {
        for name in ["tokio", "snow"] {
            assert_eq!(found(place, json!([other(name, false)])), 1, "{place} {name}");
        }
    }
    assert_eq!(found("crates/client", json!([other("tokio", true)])), 0, "its front may, as an option");
    assert_eq!(found("crates/client", json!([other("tokio", false)])), 1);
}

#[test]
fn tests_may_use_what_they_like() {
    let mut proptest = other("proptest", false);
    proptest["kind"] = "dev".into();
    assert_eq!(found("crates/trusted", json!([proptest])), 0);
}

#[test]
fn adversaries_stay_out_of_what_serves() {
    let mut core = ours("troth-core");
    core["features"] = json!(["adversary"]);
    assert_eq!(found("crates/node", json!([core])), 1);
    assert_eq!(found("crates/sim", json!([core])), 0);
}

#[test]
fn a_crate_without_a_layer_is_found() {
    assert_eq!(found("crates/novelty", json!([])), 1);
}
