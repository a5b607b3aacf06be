//! What comes back after which end, in every durability, with real processes.

use crate::support::{Running, Scratch, good, init_with, pid, run, signal, status, troth, until};
use crate::trusted::{init_processes_with, trusted_processes};
use std::path::Path;
use std::process::Stdio;

fn start(dir: &Path, what: &str, id: u16, further: &[&str]) -> Running {
    let mut command = troth(dir);
    command.args([what, "--id", &id.to_string()]).args(further);
    Running(command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("the command starts"))
}

fn replica(dir: &Path, id: u16) -> Running {
    start(dir, "replica", id, &[])
}

/// Waits until replica `id` serves as this process.
fn serves(dir: &Path, id: u16, replica: &Running) {
    until("the replica serves", || {
        let up = &status(dir)[usize::from(id)];
        (up["pid"].as_u64() == Some(u64::from(replica.0.id()))).then_some(())
    });
}

fn all(dir: &Path) -> Vec<Running> {
    let replicas: Vec<Running> = (0..3).map(|id| replica(dir, id)).collect();
    (0..3).zip(&replicas).for_each(|(id, replica)| serves(dir, id, replica));
    replicas
}

fn put(dir: &Path, key: &str, value: &str) {
    good(dir, &["kv", "put", key, value]);
}

/// The replica refuses to start and says that it must be readmitted.
fn refused(dir: &Path, id: u16, because: &str) {
    let output = run(dir, &["replica", "--id", &id.to_string()]);
    let why = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(3), "{why}");
    assert!(why.contains("readmitted") && why.contains(because), "{why}");
}

/// Makes it look as if the machine had started anew since the replica ran.
fn lose_the_machine(dir: &Path, id: u16) {
    let file = dir.join(format!("replica-{id}/data/kept"));
    let text = std::fs::read_to_string(&file).expect("the replica wrote it");
    let boot = text.lines().nth(2).expect("the boot").to_owned();
    let other = if boot.starts_with('0') { "1" } else { "0" };
    std::fs::write(&file, text.replace(&boot, &format!("{other}{}", &boot[1..]))).expect("our own file");
}

#[test]
fn with_an_interval_a_killed_cluster_comes_back_and_a_lost_machine_does_not_vote() {
    let scratch = Scratch::new("interval");
    let dir = scratch.0.as_path();
    init_with(dir, &["--durability", "interval"]);
    let replicas = all(dir);
    put(dir, "key", "value");
    replicas.iter().for_each(|replica| replica.signal("KILL"));
    drop(replicas);
    let mut replicas = all(dir);
    assert_eq!(good(dir, &["kv", "get", "key"]).trim(), "value");

    // One machine is lost: its replica stays out, and the others go on.
    drop(replicas.remove(1));
    lose_the_machine(dir, 1);
    refused(dir, 1, "started anew");
    put(dir, "key", "other");
    // Nor does it count as proven under another durability.
    let file = dir.join("cluster.toml");
    let text = std::fs::read_to_string(&file).expect("it is there");
    let always = text.replace("\"interval\"", "\"always\"").replace("durability_interval_ms = 10\n", "");
    std::fs::write(&file, always).expect("our own file");
    refused(dir, 1, "started anew");
    // The others may change over: what they kept so far is made durable first.
    drop(replicas);
    let two = || {
        let replicas = [replica(dir, 0), replica(dir, 2)];
        [0, 2].into_iter().zip(&replicas).for_each(|(id, replica)| serves(dir, id, replica));
        replicas
    };
    let replicas = two();
    assert_eq!(good(dir, &["kv", "get", "key"]).trim(), "other");
    // Now a machine may be lost.
    drop(replicas);
    lose_the_machine(dir, 0);
    lose_the_machine(dir, 2);
    let _replicas = two();
    assert_eq!(good(dir, &["kv", "get", "key"]).trim(), "other");
}

#[test]
fn in_memory_a_replica_comes_back_where_its_component_lived_on() {
    let scratch = Scratch::new("memory-apart");
    let dir = scratch.0.as_path();
    init_processes_with(dir, &["--durability", "memory"]);
    let components: Vec<Running> = (0..3).map(|id| start(dir, "trusted", id, &[])).collect();
    let mut replicas = all(dir);
    put(dir, "key", "value");
    // All replicas at once, and each comes back as what it was.
    replicas.iter().for_each(|replica| replica.signal("KILL"));
    drop(replicas);
    replicas = all(dir);
    assert_eq!(good(dir, &["kv", "get", "key"]).trim(), "value");

    // A component that was killed has forgotten: neither it nor its replica comes back.
    drop(replicas.remove(2));
    let mut components = components;
    drop(components.remove(2));
    let again = run(dir, &["trusted", "--id", "2"]);
    let why = String::from_utf8_lossy(&again.stderr).into_owned();
    assert_eq!(again.status.code(), Some(3), "{why}");
    assert!(why.contains("'memory'") && why.contains("the process has ended"), "{why}");
    assert_eq!(run(dir, &["replica", "--id", "2"]).status.code(), Some(3));
    put(dir, "key", "other");

    // Nor one whose machine was lost.
    drop(replicas.remove(1));
    lose_the_machine(dir, 1);
    refused(dir, 1, "started anew");
}

#[test]
fn a_trusted_process_killed_under_an_interval_goes_on_from_its_last_record() {
    let scratch = Scratch::new("interval-apart");
    let dir = scratch.0.as_path();
    init_processes_with(dir, &["--durability", "interval"]);
    let replicas = all(dir);
    for life in 0..3 {
        put(dir, &format!("key{life}"), "value");
        for component in trusted_processes(dir).into_values() {
            signal(component, "KILL");
        }
        put(dir, "key", &life.to_string());
        until("all components serve again", || (trusted_processes(dir).len() == 3).then_some(()));
    }
    let pids: Vec<u32> = status(dir).iter().map(pid).collect();
    let ours: Vec<u32> = replicas.iter().map(|replica| replica.0.id()).collect();
    assert_eq!(pids, ours, "no replica ended");
    assert_eq!(good(dir, &["kv", "get", "key"]).trim(), "2");
}
