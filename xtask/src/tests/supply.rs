//! Licences, bans and sources, on made-up lock files.

use super::short;
use crate::lint::{spdx, supply::Policy};
use serde_json::{Value, json};

fn met(expression: &str) -> Result<bool, String> {
    spdx::satisfied(expression, &|licence| {
        matches!(licence, "MIT" | "Apache-2.0" | "Apache-2.0 WITH LLVM-exception")
    })
}

#[test]
fn licence_expressions_are_understood() {
    for good in [
        "MIT",
        "MIT OR GPL-3.0",
        "GPL-3.0 OR MIT",
        "MIT/Apache-2.0",
        "(GPL-3.0 OR MIT) AND Apache-2.0",
        "Apache-2.0 WITH LLVM-exception",
        "GPL-3.0 AND MIT OR Apache-2.0",
    ] {
        assert_eq!(met(good), Ok(true), "{good}");
    }
    for bad in ["GPL-3.0", "MIT AND GPL-3.0", "MIT WITH Odd-exception", "(MIT OR Apache-2.0) AND GPL-3.0"] {
        assert_eq!(met(bad), Ok(false), "{bad}");
    }
    for broken in ["", "MIT OR", "MIT MIT", "(MIT", "MIT WITH", "AND"] {
        assert!(met(broken).is_err(), "{broken}");
    }
}

const RULES: &str = r#"
[licenses]
allow = ["MIT"]
[bans]
deny = [{ crate = "bad", reason = "unsound" }, { crate = "old@<1.2.3", reason = "hole" }]
[sources]
allow-registry = ["https://github.com/rust-lang/crates.io-index"]
"#;
const REGISTRY: &str = "registry+https://github.com/rust-lang/crates.io-index";

fn found(package: Value) -> Vec<String> {
    let policy = Policy::parse(&RULES.parse().expect("the fixture is TOML")).expect("it is complete");
    short(&policy.check(&json!({ "packages": [package] })))
}

fn package(name: &str, version: &str) -> Value {
    json!({ "name": name, "version": version, "license": "MIT", "source": REGISTRY })
}

#[test]
fn licences_bans_and_sources_are_checked() {
    assert_eq!(found(package("good", "1.0.0")), [""; 0]);
    assert_eq!(found(package("bad", "1.0.0")), ["banned@0"]);
    let mut other = package("good", "1.0.0");
    other["license"] = "AGPL-3.0".into();
    assert_eq!(found(other.clone()), ["licence@0"]);
    other["license"] = Value::Null;
    assert_eq!(found(other), ["licence@0"]);
    for source in ["git+https://example.org/x", "registry+https://example.org/index"] {
        let mut foreign = package("good", "1.0.0");
        foreign["source"] = source.into();
        assert_eq!(found(foreign), ["source@0"], "{source}");
    }
    let mut local = package("good", "1.0.0");
    local["source"] = Value::Null;
    assert_eq!(found(local), [""; 0], "a package of this workspace");
}

#[test]
fn a_ban_may_end_with_a_version() {
    assert_eq!(found(package("old", "1.2.2")), ["banned@0"]);
    assert_eq!(found(package("old", "1.2.3")), [""; 0]);
    assert_eq!(found(package("old", "1.10.0+x")), [""; 0]);
    assert_eq!(found(package("old", "0.9.9-rc.1")), ["banned@0"]);
    assert_eq!(found(package("old", "odd")), ["banned@0"], "what cannot be compared is banned");
}

#[test]
fn incomplete_rules_are_refused() {
    for broken in [
        "",
        "[licenses]\nallow = []",
        "[licenses]\nallow=[]\n[bans]\ndeny=[{crate=\"x\"}]\n[sources]\nallow-registry=[]",
    ] {
        assert!(Policy::parse(&broken.parse().expect("the fixture is TOML")).is_err());
    }
}
