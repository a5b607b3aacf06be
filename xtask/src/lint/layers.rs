//! The dependency-direction lint: which crate may depend on which. A crate that is not in the table
//! fails, so that a new one is placed on purpose.

use super::Finding;
use serde_json::Value;

/// What the packages in one place may depend on.
struct Layer {
    /// The directory of the package, or of several with a slash at the end.
    place: &'static str,
    /// Packages of this workspace.
    ours: &'static [&'static str],
    /// Packages from the registry.
    others: &'static [&'static str],
}

/// Anything: for the top of the graph.
const ANY: &[&str] = &["*"];

const LAYERS: &[Layer] = &[
    Layer { place: "crates/types", ours: &[], others: &["bytes", "sha2", "thiserror"] },
    Layer {
        place: "crates/trusted",
        ours: &[],
        others: &["curve25519-dalek", "sha2", "hmac", "ed25519-zebra"],
    },
    Layer { place: "crates/trusted-host", ours: &["troth-trusted"], others: &["libc", "sha2", "thiserror"] },
    Layer {
        place: "crates/trusted-process",
        ours: &["troth-trusted", "troth-trusted-host"],
        others: &["landlock", "libc", "rustix", "seccompiler", "thiserror"],
    },
    Layer {
        place: "crates/auth",
        ours: &["troth-types", "troth-trusted", "troth-trusted-host"],
        others: &["bytes", "curve25519-dalek", "ed25519-zebra", "hmac", "sha2", "thiserror"],
    },
    Layer {
        place: "crates/core",
        ours: &["troth-types", "troth-trusted", "troth-trusted-host", "troth-auth"],
        others: &["bytes", "thiserror"],
    },
    Layer {
        place: "crates/blocks",
        ours: &["troth-types", "troth-trusted", "troth-auth", "troth-core"],
        others: &["bytes"],
    },
    // PBFT's rules with a policy of attestation, not a copy of them.
    Layer {
        place: "crates/protocols/a2m-pbft-e",
        ours: &["troth-types", "troth-trusted", "troth-auth", "troth-core", "troth-blocks", "troth-pbft"],
        others: &["bytes"],
    },
    Layer {
        place: "crates/protocols/",
        ours: &["troth-types", "troth-trusted", "troth-auth", "troth-core", "troth-blocks"],
        others: &["bytes"],
    },
    Layer {
        place: "crates/exec",
        ours: &["troth-types", "troth-auth", "troth-core"],
        others: &["bytes", "sha2", "thiserror"],
    },
    Layer {
        place: "crates/services/",
        // A session is somebody's whose signature says so.
        ours: &["troth-types", "troth-auth", "troth-exec"],
        others: &["bytes", "sha1", "thiserror"],
    },
    // The front may sit on the runtime's libraries, which must be optional: the machine below it is pure.
    Layer {
        place: "crates/client",
        ours: &["troth-types", "troth-auth", "troth-core", "troth-link?"],
        others: &["bytes", "thiserror", "getrandom?", "tokio?", "snow?"],
    },
    // Servers that foreign clients connect to, and clients of a group.
    Layer {
        place: "crates/gateways/",
        ours: &["troth-types", "troth-client", "troth-zookeeper"],
        others: &[
            "bytes",
            "getrandom",
            "md-5",
            "prometheus-client",
            "rustix",
            "rustls",
            "serde_json",
            "thiserror",
            "tokio",
            "tokio-rustls",
            "tracing",
            "x509-cert",
        ],
    },
    // A client of ZooKeeper's own protocol, for imports; it knows no group.
    Layer {
        place: "crates/zookeeper-client",
        ours: &["troth-zookeeper"],
        others: &["bytes", "rustls", "thiserror", "tokio", "tokio-rustls"],
    },
    Layer { place: "crates/sim", ours: ANY, others: &["bytes", "serde_json", "sha2", "thiserror"] },
    Layer { place: "crates/link", ours: &["troth-types"], others: ANY },
    Layer {
        place: "crates/allocator",
        ours: &[],
        others: &["thiserror", "tikv-jemalloc-sys", "tikv-jemallocator"],
    },
    Layer { place: "crates/disk", ours: &[], others: &["bytes", "crc32c", "rustix", "thiserror"] },
    Layer { place: "crates/node", ours: ANY, others: ANY },
    Layer { place: "crates/bench", ours: ANY, others: ANY },
    Layer { place: "crates/chaos", ours: ANY, others: ANY },
    Layer { place: "crates/troth", ours: ANY, others: ANY },
    Layer { place: "fuzz", ours: ANY, others: ANY },
    Layer { place: "xtask", ours: &[], others: &["serde_json", "toml"] },
];

/// Packages that nothing but the top may depend on, because they pull the runtime or the simulated
/// world in.
const TOP: &[&str] = &["troth-node", "troth-sim", "troth-bench", "troth-chaos", "troth"];
/// Where they may be used.
const TOP_PLACES: &[&str] =
    &["crates/troth", "crates/node", "crates/sim", "crates/bench", "crates/chaos", "fuzz"];
/// Features that only tests, simulation and demonstration may switch on.
const TEST_FEATURES: &[&str] = &["adversary", "model", "marks", "faults", "fuzz"];
/// Where they may be switched on in a normal dependency: programs that test, and no part of what serves.
const TEST_PLACES: &[&str] = &["crates/sim", "crates/chaos", "fuzz"];

/// All dependencies that point the wrong way.
pub fn check(metadata: &Value, root: &str) -> Vec<Finding> {
    let mut findings = Vec::new();
    for package in metadata["packages"].as_array().into_iter().flatten() {
        let manifest = package["manifest_path"].as_str().unwrap_or_default();
        let manifest = manifest.strip_prefix(root).unwrap_or(manifest).trim_start_matches('/');
        let place = manifest.strip_suffix("/Cargo.toml").unwrap_or(manifest);
        let mut report = |what: String| {
            findings.push(Finding { rule: "layers", path: manifest.to_string(), line: 0, what });
        };
        let Some(layer) = layer(place) else {
            report(format!("no layer for {place}; say in xtask/src/lint/layers.rs what it may depend on"));
            continue;
        };
        for dependency in package["dependencies"].as_array().into_iter().flatten() {
            let name = dependency["name"].as_str().unwrap_or_default();
            let optional = dependency["optional"] == true;
            // Tests may use anything that does not make a circle; cargo forbids those.
            if dependency["kind"] == "dev" {
                continue;
            }
            let ours = dependency["path"].is_string();
            let allowed = if ours { layer.ours } else { layer.others };
            let top = ours && TOP.contains(&name) && !TOP_PLACES.contains(&place);
            if top || !permits(allowed, name, optional) {
                report(format!("must not depend on {name}{}", if optional { " (optional)" } else { "" }));
            }
            for feature in dependency["features"].as_array().into_iter().flatten().filter_map(Value::as_str) {
                if TEST_FEATURES.contains(&feature) && ours && !optional && !TEST_PLACES.contains(&place) {
                    report(format!(
                        "switches '{feature}' of {name} on; that is for tests and simulation only"
                    ));
                }
            }
        }
    }
    findings
}

fn layer(place: &str) -> Option<&'static Layer> {
    LAYERS.iter().find(|layer| match layer.place.strip_suffix('/') {
        Some(_) => place.starts_with(layer.place),
        None => place == layer.place,
    })
}

/// Whether a list allows a dependency; `name?` allows it only as an optional one.
fn permits(allowed: &[&str], name: &str, optional: bool) -> bool {
    allowed
        .iter()
        .any(|entry| *entry == "*" || *entry == name || (optional && entry.strip_suffix('?') == Some(name)))
}
