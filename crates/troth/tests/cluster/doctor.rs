//! `troth doctor` on a cluster's files, at rest and at work.

use crate::killed::all;
use crate::pbft::{refused, start};
use crate::support::{Running, Scratch, good, init_with, run, troth, until};
use crate::trusted::{init_processes, lose_counters};
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Stdio;

/// The findings, held against the exit code.
fn findings(dir: &Path) -> Vec<(String, String, String)> {
    let output = run(dir, &["doctor", "--json"]);
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let text = |finding: &serde_json::Value, field: &str| finding[field].as_str().expect("text").to_owned();
    let findings: Vec<_> = json["checks"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|finding| (text(finding, "subject"), text(finding, "state"), text(finding, "said")))
        .collect();
    let failed = findings.iter().any(|(_, state, _)| state == "fail");
    assert_eq!(json["ok"], !failed);
    assert_eq!(output.status.code(), Some(i32::from(failed)), "{findings:?}");
    findings
}

/// The state of the one finding on a subject that says this.
fn about(findings: &[(String, String, String)], subject: &str, said: &str) -> Option<String> {
    findings
        .iter()
        .find(|(found, _, says)| found == subject && says.contains(said))
        .map(|(_, state, _)| state.clone())
}

fn mode(path: &Path, mode: u32) {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).expect("our own directory");
}

/// What replica 0 says where it refuses to start as it is set up, so that a unit does not start it again
/// (RestartPreventExitStatus).
pub(crate) fn refusal_of_replica_0(dir: &Path) -> String {
    let mut command = troth(dir);
    command.args(["replica", "--id", "0"]).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut replica = Running(command.spawn().expect("the command starts"));
    let code = replica.ends();
    let mut words = String::new();
    replica.0.stderr.take().expect("piped").read_to_string(&mut words).expect("text");
    assert_eq!(code, Some(2), "{words}");
    words
}

#[test]
fn it_finds_what_is_wrong_with_files_and_says_so_in_a_line_each() {
    let scratch = Scratch::new("doctor-files");
    let dir = scratch.0.as_path();
    let nothing = findings(dir);
    assert_eq!(about(&nothing, "cluster", "cluster.toml").as_deref(), Some("fail"), "{nothing:?}");
    init_with(dir, &[]);
    let fresh = findings(dir);
    for (subject, said) in [
        ("kernel", "Linux"),
        ("cluster", "a group of 3"),
        ("files", "nobody but their owners"),
        ("isolation", "no isolation"),
        ("machines", "3 replicas' keys"),
        ("file system", ""),
        ("space", "MiB free"),
        ("fdatasync", "at the median"),
        ("clock", ""),
        ("peers", "no replica answers"),
    ] {
        let state = about(&fresh, subject, said);
        assert!(state.is_some(), "{subject}: {fresh:?}");
        let must_be = match subject {
            "files" | "cluster" | "kernel" => Some("ok"),
            "isolation" | "machines" | "peers" => Some("warn"),
            // What this machine's disk and clock are.
            _ => None,
        };
        assert!(must_be.is_none() || state.as_deref() == must_be, "{subject} is {state:?}: {fresh:?}");
    }
    let left = std::fs::read_dir(dir.join("replica-0")).expect("it is there").count();
    assert_eq!(left, 1, "what was written to measure the disk is gone, and the secret is there");
    let lines = run(dir, &["doctor"]);
    let lines = String::from_utf8(lines.stdout).expect("text");
    assert_eq!(lines.lines().count(), fresh.len(), "a line each: {lines}");

    let secret = dir.join("replica-0/secret.toml");
    for (path, bad, good) in [
        (secret.clone(), 0o644, 0o600),
        (dir.join("replica-0"), 0o755, 0o700),
        (dir.join("replica-1"), 0o500, 0o700),
        (dir.join("cluster.toml"), 0o666, 0o644),
        (dir.join("clients/client-1.toml"), 0o640, 0o600),
        (dir.join("clients/operator.toml"), 0o604, 0o600),
    ] {
        mode(&path, bad);
        let found = findings(dir);
        let said = path.to_string_lossy();
        assert_eq!(about(&found, "files", &said).as_deref(), Some("fail"), "{said}: {found:?}");
        let times = found.iter().filter(|(subject, _, says)| subject == "files" && says.contains(&*said));
        assert_eq!(times.count(), 1, "it is said once: {found:?}");
        if path == secret || path == dir.join("replica-0") {
            let words = refusal_of_replica_0(dir);
            let (_, _, same) = found.iter().find(|(_, _, says)| says.contains(&*said)).expect("it is found");
            assert!(words.contains(same.as_str()), "the replica says {words}, and the doctor {same}");
            assert!(words.contains(&format!("chmod {good:o} {said}")), "{words}");
        }
        mode(&path, good);
    }
    std::fs::copy(dir.join("replica-1/secret.toml"), &secret).expect("our own directory");
    let text = std::fs::read_to_string(&secret).expect("text").replace("replica = 1", "replica = 0");
    std::fs::write(&secret, text).expect("our own directory");
    let found = findings(dir);
    assert_eq!(about(&found, "files", "does not belong").as_deref(), Some("fail"), "{found:?}");
    let place = |found: &[(String, String, String)], subject: &str, file: &str| {
        let said = found.iter().find(|(of, _, said)| of == subject && said.contains(file));
        let said = said.unwrap_or_else(|| panic!("nothing of {file}: {found:?}")).2.clone();
        let place = said.split(&format!("{file}:")).nth(1).expect("a place").splitn(3, ':').take(2);
        place.map(|number| number.parse::<u32>().unwrap_or_else(|_| panic!("{said}"))).collect::<Vec<_>>()
    };
    assert_eq!(place(&found, "files", "secret.toml").len(), 2, "line and column: {found:?}");
    let file = dir.join("cluster.toml");
    let text = std::fs::read_to_string(&file).expect("just made").replacen("service =", "servce =", 1);
    std::fs::write(&file, text).expect("our own file");
    assert_eq!(place(&findings(dir), "cluster", "cluster.toml"), [5, 1], "as other commands say it");
}

#[test]
fn it_sees_replicas_and_their_clocks() {
    let scratch = Scratch::new("doctor-peers");
    let dir = scratch.0.as_path();
    init_with(dir, &[]);
    let mut replicas = all(dir);
    until("they are connected", || {
        let found = findings(dir);
        (about(&found, "peers", "3 of 3").is_some() && about(&found, "replica", "").is_none()).then_some(())
    });
    let found = findings(dir);
    assert_eq!(about(&found, "peers", "3 of 3").as_deref(), Some("ok"), "{found:?}");
    assert_eq!(about(&found, "clocks", "3 replicas'").as_deref(), Some("ok"), "{found:?}");
    drop(replicas.pop());
    let found = findings(dir);
    assert_eq!(about(&found, "peers", "replica 2 does not answer").as_deref(), Some("warn"), "{found:?}");
    assert_eq!(about(&found, "peers", "2 of 3").as_deref(), Some("ok"), "{found:?}");
    drop(replicas.pop());
    let found = findings(dir);
    assert_eq!(about(&found, "peers", "2 are needed").as_deref(), Some("fail"), "{found:?}");
    assert_eq!(about(&found, "files", "ran before"), None, "{found:?}");
    // Lost, or not mounted: either way the replica refuses to start, and the doctor says so before.
    for (lost, said) in [("counters", "its counters"), ("data", "its log")] {
        let place = dir.join("replica-1").join(lost);
        let kept = dir.join("kept");
        std::fs::rename(&place, &kept).expect("it ran");
        let found = findings(dir);
        assert_eq!(about(&found, "files", said).as_deref(), Some("fail"), "{found:?}");
        std::fs::create_dir(&place).expect("our own directory");
        mode(&place, 0o700);
        let found = findings(dir);
        assert_eq!(about(&found, "files", said).as_deref(), Some("fail"), "an empty {lost}: {found:?}");
        let lines = run(dir, &["doctor"]);
        let lines = String::from_utf8(lines.stdout).expect("text");
        assert!(lines.contains("troth admin readmit --replica 1"), "{lines}");
        std::fs::remove_dir(&place).expect("it is empty");
        std::fs::rename(&kept, &place).expect("our own directory");
    }
}

#[test]
fn it_misses_the_counters_of_a_component_in_a_process_of_its_own() {
    let scratch = Scratch::new("doctor-process");
    let dir = scratch.0.as_path();
    init_processes(dir);
    let of_files = |found: &[(String, String, String)]| {
        found.iter().filter(|(subject, state, _)| subject == "files" && state == "fail").count()
    };
    let fresh = findings(dir);
    assert_eq!(of_files(&fresh), 0, "empty before the first start, as it should be: {fresh:?}");
    let mut replicas = all(dir);
    good(dir, &["kv", "put", "key", "value"]);
    let running = findings(dir);
    assert_eq!(of_files(&running), 0, "{running:?}");
    replicas[1].signal("TERM");
    assert_eq!(replicas[1].ends(), Some(0));
    lose_counters(dir, 1);
    // By the replica's mark and by the component's, each alone.
    for mark in ["replica-1/started", "trusted-1/started"] {
        let (mark, kept) = (dir.join(mark), dir.join("kept"));
        std::fs::rename(&mark, &kept).expect("both ran");
        let empty = findings(dir);
        assert_eq!(of_files(&empty), 1, "{empty:?}");
        assert_eq!(about(&empty, "files", "replica 1 ran before").as_deref(), Some("fail"), "{empty:?}");
        std::fs::rename(&kept, &mark).expect("our own directory");
    }
    assert_eq!(run(dir, &["replica", "--id", "1"]).status.code(), Some(3), "the doctor is right");
    good(dir, &["admin", "readmit", "--replica", "1"]);
    let readmitted = findings(dir);
    assert_eq!(of_files(&readmitted), 0, "the new epoch has not started: {readmitted:?}");
}

#[test]
fn a_log_that_is_gone_is_missed_after_a_start_that_was_refused_too() {
    let scratch = Scratch::new("doctor-refused");
    let dir = scratch.0.as_path();
    init_with(dir, &["--protocol", "pbft"]);
    let replicas = start(dir, &[0, 1, 2, 3]);
    good(dir, &["kv", "put", "key", "value"]);
    drop(replicas);
    std::fs::remove_dir_all(dir.join("replica-1/data")).expect("it ran");
    refused(dir, 1, 3, "its log in");
    let found = findings(dir);
    assert_eq!(about(&found, "files", "its log and snapshots").as_deref(), Some("fail"), "{found:?}");
    let lines = run(dir, &["doctor"]);
    let lines = String::from_utf8(lines.stdout).expect("text");
    assert!(lines.contains("leave it stopped for good") && !lines.contains("readmit"), "{lines}");
}
