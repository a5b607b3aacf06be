//! What operators have of a group and its gateway: metrics that the alert rules rest on, and logs.

use crate::full::Mounted;
use crate::gateway::{Connection, gateway_saying, refused, word};
use crate::killed::all;
use crate::support::{Scratch, init_with, until};
use crate::trusted::is_root;
use std::collections::BTreeSet;
use std::net::TcpListener;
use std::path::Path;
use troth_zookeeper::opcode;

/// Metrics that Prometheus itself makes.
const OWN: &[&str] = &["up"];

/// The alert rules as they are handed out.
fn rules() -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/operating/alerts.yaml");
    std::fs::read_to_string(path).expect("the alert rules")
}

/// A metric that an expression names, and the labels that it demands: `name="value"`, or the name alone of one that it sorts by.
type Named = (String, Vec<(String, String)>);

/// The metrics of an expression: words before a selector, or that begin as ours do.
fn named(expression: &str) -> Vec<Named> {
    let mut all = Vec::new();
    let mut rest = expression;
    while let Some(start) = rest.find(|c: char| c.is_ascii_alphabetic()) {
        let word: String =
            rest[start..].chars().take_while(|c| c.is_ascii_alphanumeric() || *c == '_').collect();
        rest = &rest[start + word.len()..];
        let selector = rest.strip_prefix('{').and_then(|selector| selector.split_once('}'));
        let labels = selector.map(|(labels, behind)| {
            rest = behind;
            let pair = |label: &str| {
                let (name, value) = label.split_once('=').expect("a label that is matched as it is");
                (name.trim().to_owned(), value.trim().trim_matches('"').to_owned())
            };
            labels.split(',').map(pair).collect::<Vec<_>>()
        });
        if labels.is_some() || word.starts_with("troth_") {
            all.push((word, labels.unwrap_or_default()));
        }
    }
    all
}

fn page(place: &str) -> String {
    let page = word(place, "GET /metrics HTTP/1.0\r\n\r\n");
    assert!(page.starts_with("HTTP/1.1 200"), "{page}");
    page
}

/// Whether a page has the metric, with these labels.
fn has(page: &str, (name, labels): &Named) -> bool {
    page.lines().any(|line| {
        let name_of_line = line.split(['{', ' ']).next();
        name_of_line == Some(name.as_str())
            && labels.iter().all(|(label, value)| line.contains(&format!("{label}=\"{value}\"")))
    })
}

fn free() -> String {
    TcpListener::bind("127.0.0.1:0").and_then(|free| free.local_addr()).expect("a port").to_string()
}

#[test]
fn every_metric_that_the_alerts_name_is_exposed() {
    let rules = rules();
    let of = |key: &str| -> Vec<&str> {
        rules.lines().filter_map(|line| line.trim().strip_prefix(key)?.strip_prefix(": ")).collect()
    };
    let alerts = of("- alert");
    assert!(alerts.len() > 20);
    assert_eq!(alerts.iter().collect::<BTreeSet<_>>().len(), alerts.len(), "each has a name of its own");
    for key in ["expr", "labels", "summary", "action"] {
        assert_eq!(of(key).len(), alerts.len(), "each alert has {key}");
    }
    assert!(of("labels").iter().all(|labels| matches!(*labels, "{severity: page}" | "{severity: ticket}")));

    let scratch = Scratch::new("alerts");
    let dir = scratch.0.as_path();
    let base = init_with(dir, &["--service", "zookeeper"]);
    let _replicas = all(dir);
    let (pages, log) = (free(), scratch.0.join("audit.log"));
    let log = log.to_str().expect("plain");
    let arguments =
        ["--admin", &pages, "--audit-log", log, "--slow", "1000", "--slow-log", &format!("{log}.slow")];
    let (_gateway, place) = gateway_saying(dir, &arguments, 1);
    let (mut client, _) = Connection::open(&place, None);
    assert_eq!(client.create("/a", b"value", 0), 0);
    assert_eq!(&client.data("/a").expect("it is there")[..], b"value");
    let pages = [page(&pages), page(&format!("127.0.0.1:{}", base + 100))];
    let jobs = [("troth-gateway", &pages[0]), ("troth-replica", &pages[1])];
    let mut seen = BTreeSet::new();
    for expression in of("expr") {
        let metrics = named(expression);
        assert!(!metrics.is_empty(), "{expression}");
        for metric in metrics {
            if OWN.contains(&metric.0.as_str()) {
                let job = metric.1.iter().find(|(label, _)| label == "job").map(|(_, job)| job.as_str());
                assert!(jobs.iter().any(|(name, _)| Some(*name) == job), "{expression}");
                continue;
            }
            assert!(
                pages.iter().any(|page| has(page, &metric)),
                "{metric:?} of `{expression}` is not exposed"
            );
            seen.insert(metric.0);
        }
    }
    assert!(seen.iter().any(|name| name.starts_with("troth_gateway_")) && seen.contains("troth_active"));
    let unknown = named("rate(troth_none_total{a=\"b\"}[5m]) > 1");
    assert_eq!(unknown, [("troth_none_total".to_owned(), vec![("a".to_owned(), "b".to_owned())])]);
    assert!(!has(&pages[0], &unknown[0]));
    // A group that is well has all replicas alike.
    let matching = |replica: u16| {
        format!("troth_gateway_replica_answers_total{{replica=\"{replica}\",verdict=\"mismatching\"}} 0")
    };
    assert!((0..3).all(|replica| pages[0].contains(&matching(replica))), "{}", pages[0]);

    // What the page has stands in the reference, too.
    let reference = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/metrics.md");
    let reference = std::fs::read_to_string(reference).expect("the reference");
    for line in pages[0].lines().filter_map(|line| line.strip_prefix("# TYPE ")) {
        let (name, kind) = line.split_once(' ').expect("a name and a type");
        let name = if kind == "counter" { format!("`{name}_total") } else { format!("`{name}") };
        assert!(reference.contains(&name), "docs/reference/metrics.md has no {name}`");
    }
}

#[test]
fn what_clients_change_is_written_down_where_the_operator_asks_for_it() {
    let scratch = Scratch::new("audit");
    let dir = scratch.0.join("group");
    init_with(&dir, &["--service", "zookeeper"]);
    let (audit, slow) = (scratch.0.join("audit.log"), scratch.0.join("slow.log"));
    let texts = [&audit, &slow].map(|path| path.to_str().expect("plain").to_owned());

    // A connection alone may fill what is too little for all, and one file is not two logs.
    let (code, said) = refused(&dir, &["--memory", "1000"]);
    assert_eq!(code, Some(2));
    assert!(said.contains("--memory 1000"), "{said}");
    let (code, said) = refused(&dir, &["--audit-log", &texts[0], "--slow", "5", "--slow-log", &texts[0]]);
    assert_eq!(code, Some(2));
    assert!(said.contains("a file of its own"), "{said}");

    let _replicas = all(&dir);
    let nowhere = scratch.0.join("nowhere/audit.log");
    let arguments = ["--listen", "127.0.0.1:0", "--audit-log", nowhere.to_str().expect("plain")];
    let (code, said) = refused(&dir, &arguments);
    assert_eq!(code, Some(5));
    assert!(said.contains("nowhere/audit.log") && said.contains("--audit-log"), "{said}");

    let arguments =
        ["--audit-log", &texts[0], "--slow", "1", "--slow-log", &texts[1], "--memory", "67108864"];
    let (mut gateway, place) = gateway_saying(&dir, &arguments, 0);
    let (mut client, (session, _)) = Connection::open(&place, None);
    assert_eq!(client.create("/a", b"secret", 1), 0);
    assert_eq!(client.create("/a", b"secret", 1), -110);
    assert_eq!(client.ask(opcode::CLOSE_SESSION, &[]).0, 0);
    gateway.signal("TERM");
    assert_eq!(gateway.ends(), Some(0));
    let lines = |path: &Path| -> Vec<serde_json::Value> {
        let text = std::fs::read_to_string(path).expect("a log");
        assert!(!text.contains("secret") && (text.is_empty() || text.ends_with('\n')), "{text}");
        text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
    };
    let audited = lines(&audit);
    let of =
        |name: &str| -> Vec<_> { audited.iter().map(|line| line[name].as_str().unwrap_or("-")).collect() };
    assert_eq!(of("operation"), ["createSession", "create", "create", "closeSession"]);
    assert_eq!(of("result"), ["success", "success", "failure", "success"]);
    assert_eq!(of("session"), [format!("{session:#x}").as_str(); 4]);
    assert_eq!(of("path"), ["-", "/a", "/a", "-"]);
    // Durable replicas sync their disks: a write takes longer than a millisecond, or this machine is very quick.
    for line in lines(&slow) {
        assert!(line["total_us"].as_u64() >= Some(1000) && line["late_replicas"].is_array(), "{line}");
    }
}

#[test]
fn a_full_disk_of_the_audit_log_stops_no_client_and_is_told() {
    if !is_root() {
        eprintln!("SKIPPED: only root can mount a small file system");
        return;
    }
    let scratch = Scratch::new("audit-full");
    let dir = scratch.0.join("group");
    let disk = Mounted::on(scratch.0.join("logs"));
    disk.fill();
    let log = disk.0.join("audit.log").display().to_string();
    init_with(&dir, &["--service", "zookeeper"]);
    let _replicas = all(&dir);
    let pages = free();
    let arguments = ["--audit-log", &log, "--admin", &pages];
    let (mut gateway, place) = gateway_saying(&dir, &arguments, 1);
    let (mut client, _) = Connection::open(&place, None);
    for number in 0..20 {
        assert_eq!(client.create(&format!("/a{number}"), b"", 0), 0);
    }
    // With the session there are 21 changes.
    let lost = "troth_gateway_log_lines_lost_total{log=\"audit\"} 21";
    until("the lost lines are counted", || page(&pages).lines().any(|line| line == lost).then_some(()));
    assert!(page(&pages).contains("troth_gateway_log_lines_total{log=\"audit\"} 0\n"));
    gateway.signal("TERM");
    assert_eq!(gateway.ends(), Some(0));
}
