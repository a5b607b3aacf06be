//! Durable replicas, killed at any moment: what was acknowledged is there when they start again.

use crate::support::{Running, Scratch, good, init_with, run, status, troth, until};
use std::path::Path;
use std::process::Stdio;

/// The replica as a process of its own.
pub fn replica(dir: &Path, id: u16) -> Running {
    let mut command = troth(dir);
    command.args(["replica", "--id", &id.to_string()]).stdout(Stdio::null()).stderr(Stdio::null());
    Running(command.spawn().expect("the command starts"))
}

pub fn all(dir: &Path) -> Vec<Running> {
    let replicas = (0..3).map(|id| replica(dir, id)).collect();
    serves(dir, 3);
    replicas
}

/// Waits until so many replicas say where they are.
fn serves(dir: &Path, count: usize) {
    until("the replicas serve", || {
        let up = status(dir).iter().filter(|replica| replica["pid"].is_u64()).count();
        (up == count).then_some(())
    });
}

#[test]
fn a_cluster_killed_at_once_has_everything_that_was_acknowledged() {
    let scratch = Scratch::new("killed");
    let dir = scratch.0.as_path();
    init_with(dir, &[]);
    for life in 0..3 {
        let replicas = all(dir);
        for before in 0..life {
            for number in 0..5 {
                let value = good(dir, &["kv", "get", &format!("key{number}-{before}")]);
                assert_eq!(value.trim(), format!("value {number} of life {before}"));
            }
        }
        for number in 0..5 {
            let (key, value) = (format!("key{number}-{life}"), format!("value {number} of life {life}"));
            good(dir, &["kv", "put", &key, &value]);
        }
        replicas.iter().for_each(|replica| replica.signal("KILL"));
    }
}

#[test]
fn a_log_that_was_put_on_a_snapshot_is_gone_on_from() {
    let scratch = Scratch::new("killed-snapshot");
    let dir = scratch.0.as_path();
    init_with(dir, &[]);
    let replicas = all(dir);
    let value = "v".repeat(100_000);
    // Beyond what makes a snapshot pay, and beyond the checkpoint after that.
    let on_a_snapshot = || {
        std::fs::read_dir(dir.join("replica-0/data"))
            .expect("the replica keeps its log there")
            .any(|entry| entry.expect("readable").file_name().to_string_lossy().starts_with("snapshot-"))
    };
    let mut written = 0;
    while !on_a_snapshot() {
        assert!(written < 2_000, "a snapshot comes with the log's growth");
        good(dir, &["kv", "put", &format!("key{}", written % 10), &format!("{written} {value}")]);
        written += 1;
    }
    good(dir, &["kv", "put", "last", "word"]);
    replicas.iter().for_each(|replica| replica.signal("KILL"));
    drop(replicas);
    let _replicas = all(dir);
    assert_eq!(good(dir, &["kv", "get", "last"]).trim(), "word");
    for number in written - 10..written {
        let value = good(dir, &["kv", "get", &format!("key{}", number % 10)]);
        assert!(value.starts_with(&format!("{number} v")), "key{}", number % 10);
    }
}

#[test]
fn a_replica_that_lost_part_of_what_it_kept_does_not_start() {
    let scratch = Scratch::new("killed-lost");
    let dir = scratch.0.as_path();
    init_with(dir, &[]);
    let replicas = all(dir);
    good(dir, &["kv", "put", "key", "value"]);
    // A second process on the same directory is refused while the first runs.
    let second = run(dir, &["replica", "--id", "0"]);
    assert!(!second.status.success());
    replicas.iter().for_each(|replica| replica.signal("KILL"));
    drop(replicas);
    for (lost, replica) in [(&["data"][..], 0), (&["counters"], 1), (&["data", "counters"], 2)] {
        for directory in lost {
            std::fs::remove_dir_all(dir.join(format!("replica-{replica}/{directory}")))
                .expect("it was there");
        }
        let refused = run(dir, &["replica", "--id", &replica.to_string()]);
        let why = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert_eq!(refused.status.code(), Some(3), "{lost:?}: {why}");
        assert!(why.contains("must not vote"), "{lost:?}: {why}");
    }
}
