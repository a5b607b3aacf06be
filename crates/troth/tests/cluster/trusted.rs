//! Clusters whose trusted components live in processes of their own, started by their replicas.

use crate::support::{Scratch, good, init, init_with, lives, pid, run, signal, status, until, up};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The user of the components where the tests run as root; nobody else has this number.
const TRUSTED: &str = "64101";

/// Whether these tests may start processes as other users.
pub fn is_root() -> bool {
    use std::os::unix::fs::MetadataExt;
    std::fs::metadata("/proc/self").expect("our own process").uid() == 0
}

pub fn init_processes(dir: &Path) {
    init_processes_with(dir, &[]);
}

/// A cluster whose components live in processes of their own, made with further arguments.
pub fn init_processes_with(dir: &Path, further: &[&str]) {
    let home = ["--trusted-home", "process"];
    // Root must become somebody else.
    let user = ["--trusted-user", TRUSTED];
    let user = if is_root() { &user[..] } else { &[] };
    init_with(dir, &[&home, user, further].concat());
}

/// Empties the directory of a replica's trusted process, once that has ended with its replica. Gives the directory.
pub fn lose_counters(dir: &Path, replica: u16) -> PathBuf {
    until("its trusted process ends with it", || {
        (!trusted_processes(dir).contains_key(&replica)).then_some(())
    });
    let counters = dir.join(format!("trusted-{replica}/counters"));
    for file in std::fs::read_dir(&counters).expect("the counters") {
        std::fs::remove_file(file.expect("a file").path()).expect("our own file");
    }
    counters
}

/// The trusted processes of a cluster, by replica.
pub fn trusted_processes(dir: &Path) -> BTreeMap<u16, u32> {
    let mut found = BTreeMap::new();
    for entry in std::fs::read_dir("/proc").expect("Linux").flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
        let line = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
        let words: Vec<&str> =
            line.split(|byte| *byte == 0).filter_map(|word| str::from_utf8(word).ok()).collect();
        let after = |name| words.iter().skip_while(move |word| **word != name).nth(1);
        let ours = after("--dir").is_some_and(|place| Path::new(place) == dir);
        if words.get(1) == Some(&"trusted") && ours && lives(pid) {
            found.insert(after("--id").and_then(|id| id.parse().ok()).expect("a replica's number"), pid);
        }
    }
    found
}

/// Waits for the trusted processes of all replicas, none of which is one of these.
fn all_but(dir: &Path, gone: &[u32]) -> BTreeMap<u16, u32> {
    until("all trusted processes run", || {
        let now = trusted_processes(dir);
        (now.len() == 3 && now.values().all(|pid| !gone.contains(pid))).then_some(now)
    })
}

/// Waits until each replica has executed as much as the others; one does so only after its own
/// commitment, which its component has certified.
pub fn all_executed(dir: &Path) -> u64 {
    until("all replicas have executed the same", || {
        let executed: Vec<Option<u64>> =
            status(dir).iter().map(|replica| replica["executed"].as_u64()).collect();
        executed.iter().all(|count| count.is_some() && *count == executed[0]).then(|| executed[0]).flatten()
    })
}

#[test]
fn a_replica_goes_on_when_its_trusted_process_is_killed() {
    let scratch = Scratch::new("trusted-kill");
    let dir = scratch.0.as_path();
    init_processes(dir);
    let mut cluster = up(dir, &[]);
    good(dir, &["kv", "put", "first", "0"]);
    let replicas: Vec<u32> = status(dir).iter().map(pid).collect();
    let mut trusted = all_but(dir, &[]);
    let mut executed = all_executed(dir);
    // The primary's more than once: it would be noticed first.
    for (round, victim) in [0, 1, 2, 0].into_iter().enumerate() {
        let killed = trusted[&victim];
        signal(killed, "KILL");
        good(dir, &["kv", "put", "key", &round.to_string()]);
        trusted = all_but(dir, &[killed]);
        assert_eq!(good(dir, &["kv", "get", "key"]), format!("{round}\n"));
        let now = all_executed(dir);
        assert!(now > executed, "replica {victim} went on: {executed} then, {now} now");
        executed = now;
    }
    assert_eq!(status(dir).iter().map(pid).collect::<Vec<u32>>(), replicas, "no replica ended");
    let log = std::fs::read_to_string(dir.join("replica-0").join("replica.log")).expect("its log");
    assert!(log.contains("no isolation"), "who starts it so is told what it is worth: {log}");
    assert_eq!(log.matches("starting it again").count(), 2, "{log}");

    cluster.signal("TERM");
    assert_eq!(cluster.ends(), Some(0));
    until("the trusted processes end with their replicas", || {
        trusted_processes(dir).is_empty().then_some(())
    });
}

#[test]
fn what_was_acknowledged_is_there_after_everything_was_killed() {
    let scratch = Scratch::new("trusted-all");
    let dir = scratch.0.as_path();
    init_processes(dir);
    let mut written = 0;
    for _ in 0..2 {
        let mut cluster = up(dir, &[]);
        for key in 0..written {
            assert_eq!(good(dir, &["kv", "get", &format!("key-{key}")]), format!("{key}\n"));
        }
        for key in written..written + 5 {
            good(dir, &["kv", "put", &format!("key-{key}"), &key.to_string()]);
        }
        written += 5;
        let mut all: Vec<u32> = status(dir).iter().map(pid).collect();
        all.extend(trusted_processes(dir).values());
        assert_eq!(all.len(), 6);
        all.iter().for_each(|pid| signal(*pid, "KILL"));
        cluster.signal("KILL");
        assert_eq!(cluster.ends(), None, "killed");
        until("all have ended", || all.iter().all(|pid| !lives(*pid)).then_some(()));
    }
    let _cluster = up(dir, &[]);
    for key in 0..written {
        assert_eq!(good(dir, &["kv", "get", &format!("key-{key}")]), format!("{key}\n"));
    }
}

#[test]
fn a_replica_whose_component_forgot_does_not_start() {
    let scratch = Scratch::new("trusted-forgot");
    let dir = scratch.0.as_path();
    init_processes(dir);
    let mut cluster = up(dir, &[]);
    // A certificate is in the log with what follows it.
    (0..3).for_each(|value| drop(good(dir, &["kv", "put", "key", &value.to_string()])));
    all_executed(dir);
    cluster.signal("TERM");
    assert_eq!(cluster.ends(), Some(0));
    until("the trusted processes have ended", || trusted_processes(dir).is_empty().then_some(()));
    let refused = |word: &str| {
        let refused = run(dir, &["replica", "--id", "0"]);
        let words = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert_eq!(refused.status.code(), Some(3), "{words}");
        assert!(words.contains(word) && words.contains("trusted-0/counters"), "{words}");
    };
    for file in std::fs::read_dir(dir.join("trusted-0").join("counters")).expect("the counters") {
        std::fs::remove_file(file.expect("a file").path()).expect("our own file");
    }
    refused("has started before");
    // Twice: the first refusal leaves nothing that looks like counters.
    refused("has started before");
    std::fs::remove_file(dir.join("trusted-0").join("started")).expect("it started");
    refused("forgotten");
    refused("forgotten");
}

#[test]
fn homes_that_isolate_nothing_or_are_not_there_are_refused() {
    let scratch = Scratch::new("trusted-refused");
    let dir = scratch.0.as_path();
    let shared = run(dir, &["init", "--trusted-home", "process", "--trusted", "hmac"]);
    let words = String::from_utf8_lossy(&shared.stderr).into_owned();
    assert_eq!(shared.status.code(), Some(2), "{words}");
    assert!(words.contains("isolates nothing") && words.contains("ed25519"), "{words}");
    assert!(!dir.join("cluster.toml").exists());

    init(dir);
    let cases: [(&[&str], &str); 3] = [
        (&["trusted", "--id", "0"], "--trusted-home process"),
        (&["trusted", "--id", "9"], "none of them"),
        (&["replica", "--id", "0", "--trusted-socket", "/nowhere"], "trusted_home"),
    ];
    for (arguments, word) in cases {
        let refused = run(dir, arguments);
        let words = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert_eq!(refused.status.code(), Some(2), "{words}");
        assert!(words.contains(word), "{words}");
    }
}

#[test]
fn a_trusted_process_that_cannot_serve_ends_its_replica_with_the_reason() {
    let scratch = Scratch::new("trusted-secret");
    let dir = scratch.0.as_path();
    init_processes(dir);
    let secret = dir.join("trusted-0").join("secret.toml");
    let other = std::fs::read_to_string(dir.join("trusted-1").join("secret.toml")).expect("just made");
    std::fs::write(&secret, other).expect("our own file");
    let refused = run(dir, &["replica", "--id", "0"]);
    let words = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert_eq!(refused.status.code(), Some(2), "{words}");
    assert!(words.contains("is replica 1's, not replica 0's"), "{words}");
}
