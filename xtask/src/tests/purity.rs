//! The purity lint: one fixture that trips each rule, and the same words where they are no offence.

use super::{file, short};
use crate::lint::{allow, purity};

fn found(path: &str, text: &str) -> Vec<String> {
    short(&purity::check(&[file(path, text)]))
}

const PURE: &str = "crates/protocols/minbft/src/normal.rs";

#[test]
fn each_rule_trips_in_a_pure_crate() {
    let cases = [
        ("clock", "let now = Instant::now();"),
        ("clock", "use std::time::SystemTime;"),
        ("network", "use std::net::TcpStream;"),
        ("files", "std::fs::read(path)"),
        ("files", "std::env::var(name)"),
        ("threads", "std::thread::sleep(d)"),
        ("print", "println!(\"x\")"),
        ("random", "use rand::Rng;"),
        ("random", "getrandom::fill(&mut seed)"),
        ("hash-order", "let m: HashMap<u8, u8> = x;"),
        ("hash-order", "use std::collections::{BTreeMap, HashSet};"),
        ("async", "async fn f() {}"),
        ("async", "f().await"),
        ("unfinished", "todo!()"),
        ("unfinished", "unimplemented!(\"later\")"),
        ("unfinished", "dbg!(x)"),
        ("ignored-test", "#[ignore]\nfn t() {}"),
        ("ignored-test", "#[ignore = \"slow\"]"),
    ];
    for (rule, text) in cases {
        assert_eq!(found(PURE, &format!("\n{text}")), [format!("{rule}@2")], "{text}");
    }
}

#[test]
fn groups_of_imports_are_seen_through() {
    assert_eq!(
        found(PURE, "use std::{\n  fmt,\n  net::{IpAddr, fs},\n  thread,\n};"),
        ["network@3", "threads@4"]
    );
    assert_eq!(
        found(PURE, "use std::{collections::{self, net}, fmt};"),
        [""; 0],
        "net is no module of std there"
    );
}

#[test]
fn words_in_comments_and_texts_are_no_offence() {
    let text = "/// Never calls Instant::now or std::fs.\nconst WHY: &str = \"no HashMap, todo!()\";";
    assert_eq!(found(PURE, text), [""; 0]);
    assert_eq!(found(PURE, "let instant = self.thread; time::std_net()"), [""; 0]);
}

#[test]
fn rules_hold_where_they_should() {
    assert_eq!(found("crates/node/src/tcp.rs", "Instant::now(); std::net::x; async {}"), [""; 0]);
    assert_eq!(found("crates/client/src/front/tcp.rs", "Instant::now(); async {}"), [""; 0]);
    assert_eq!(found("crates/client/src/front.rs", "Instant::now(); async {}"), ["clock@1", "async@1"]);
    assert_eq!(found("crates/sim/src/world.rs", "HashMap::new(); println!()"), ["hash-order@1"]);
    assert_eq!(found("crates/core/src/tests/host.rs", "Instant::now(); HashMap::new()"), [""; 0]);
    assert_eq!(found("crates/core/src/tests/host.rs", "rand::random()"), ["random@1"]);
    assert_eq!(found("crates/node/src/tests/x.rs", "#[ignore]"), ["ignored-test@1"]);
    assert_eq!(found("xtask/src/main.rs", "todo!()"), ["unfinished@1"]);
}

#[test]
fn blocks_name_no_effect() {
    assert_eq!(
        found("crates/blocks/src/tally.rs", "fn f(cx: &mut Cx<'_, A>) -> Effect<A> {}"),
        ["passive@1"; 2]
    );
    assert_eq!(found(PURE, "fn f(cx: &mut Cx<'_, A>) -> Effect<A> {}"), [""; 0]);
}

fn exceptions(text: &str) -> Result<Vec<allow::Allowed>, String> {
    allow::parse(&text.parse().expect("the fixture is TOML"))
}

#[test]
fn an_exception_covers_its_rule_and_place_only() {
    let findings = purity::check(&[file(PURE, "Instant::now(); HashMap::new()")]);
    let allowed =
        exceptions("[[allow]]\nrule = \"clock\"\npath = \"crates/protocols/\"\nreason = \"r\"").unwrap();
    assert_eq!(short(&allow::apply(findings.clone(), &allowed)), ["hash-order@1"]);
    let elsewhere =
        exceptions("[[allow]]\nrule = \"clock\"\npath = \"crates/protocols\"\nreason = \"r\"").unwrap();
    assert_eq!(short(&allow::apply(findings, &elsewhere)), ["clock@1", "hash-order@1", "allow@0"]);
}

#[test]
fn an_exception_that_nothing_needs_is_a_finding() {
    let allowed =
        exceptions("[[allow]]\nrule = \"clock\"\npath = \"crates/core/src/x.rs\"\nreason = \"r\"").unwrap();
    assert_eq!(short(&allow::apply(Vec::new(), &allowed)), ["allow@0"]);
}

#[test]
fn an_exception_needs_a_reason() {
    assert!(exceptions("[[allow]]\nrule = \"clock\"\npath = \"x\"").is_err());
    assert!(exceptions("[[allow]]\nrule = \"clock\"\npath = \"x\"\nreason = \" \"").is_err());
}
