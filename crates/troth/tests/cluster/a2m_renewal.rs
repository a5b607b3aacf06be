//! A2M-PBFT-E replicas whose components are lost go on with others (`docs/operating/readmission.md`).

use crate::admin::votes;
use crate::killed::replica;
use crate::pbft::{catches_up, get, put, serves, start, text};
use crate::pbft_reads;
use crate::support::{Running, Scratch, good, init_with, run, status};
use crate::trusted::{init_processes_with, lose_counters};
use std::io::Read;
use std::path::Path;
use std::process::Stdio;

const PROTOCOL: [&str; 2] = ["--protocol", "a2m-pbft-e"];

fn init(dir: &Path) {
    init_with(dir, &PROTOCOL);
}

/// Ends a replica whose component lives in its process, and has the component lost.
fn lose_component(dir: &Path, replicas: &mut [Running], id: u16) {
    replicas[usize::from(id)].signal("KILL");
    replicas[usize::from(id)].ends();
    for lost in ["counters", "logs"] {
        std::fs::remove_dir_all(dir.join(format!("replica-{id}")).join(lost)).expect("it was there");
    }
}

/// The replica does not start; gives what it says. One that starts all the same would not end.
fn must_not_start(dir: &Path, id: u16) -> String {
    let mut command = crate::support::troth(dir);
    command.args(["replica", "--id", &id.to_string()]);
    command.stdout(Stdio::null()).stderr(Stdio::piped());
    let mut refused = Running(command.spawn().expect("the command starts"));
    let ended = refused.ends();
    let mut words = String::new();
    refused.0.stderr.take().expect("piped").read_to_string(&mut words).expect("text");
    assert_eq!(ended, Some(3), "{words}");
    words
}

/// The replica does not start, and says how it is brought back.
pub fn must_be_readmitted(dir: &Path, id: u16) {
    let words = must_not_start(dir, id);
    assert!(words.contains(&format!("troth admin readmit --replica {id}")), "{words}");
    assert!(!words.contains("brings back no replica"), "{words}");
}

fn copy(from: &Path, to: &Path) {
    let copied = std::process::Command::new("cp").arg("-a").args([from, to]).status();
    assert!(copied.is_ok_and(|copied| copied.success()), "cp runs");
}

#[test]
fn a_replica_whose_component_is_lost_goes_on_with_another_one_that_clients_believe() {
    let scratch = Scratch::new("a2m-renew");
    let dir = scratch.0.as_path();
    init(dir);
    let mut replicas = start(dir, &[0, 1, 2, 3]);
    pbft_reads::runtime().block_on(async {
        // One session all the time: it learns of the other component from the replicas.
        let client = pbft_reads::session(dir).await;
        pbft_reads::put(&client, "key", "before").await;
        lose_component(dir, &mut replicas, 3);
        must_be_readmitted(dir, 3);
        let said = good(dir, &["admin", "readmit", "--replica", "3"]);
        assert!(said.contains("Replica 3 is admitted with epoch 2"), "{said}");
        assert!(said.contains("logs.old-1") && !said.contains("data.old"), "{said}");
        let again = good(dir, &["admin", "readmit", "--replica", "3"]);
        assert!(again.contains("was admitted with epoch 2 and has not started yet"), "{again}");
        // Those who count there are enough without it.
        pbft_reads::put(&client, "key", "between").await;
        assert_eq!(pbft_reads::get(&client, "key").await, "between");
        replicas[3] = replica(dir, 3);
        // Nobody asks for anything meanwhile: the group gets to the checkpoint by itself.
        votes(dir, 3, 2);
        // Three of four must prove what they say: without replica 0 the other component is one of them.
        replicas[0].signal("KILL");
        replicas[0].ends();
        pbft_reads::put(&client, "key", "after").await;
        assert_eq!(pbft_reads::get(&client, "key").await, "after");
        assert_eq!(get(dir, "key"), "after");
        client.close().await;
    });
    // It is killed and started like any other.
    replicas[3].signal("KILL");
    replicas[3].ends();
    replicas[3] = replica(dir, 3);
    votes(dir, 3, 2);
    put(dir, "key", "again");
    assert!(status(dir)[1..].iter().all(|replica| replica["accused"] == serde_json::json!([])));
    // And so it is once more, with the log that it has kept through all that.
    replicas[0] = replica(dir, 0);
    serves(dir, 0, &replicas[0], 3);
    lose_component(dir, &mut replicas, 3);
    // Nobody has tried to start it: nothing but its own log says that the second one ran.
    let said = good(dir, &["admin", "readmit", "--replica", "3"]);
    assert!(said.contains("Replica 3 is admitted with epoch 3"), "{said}");
    replicas[3] = replica(dir, 3);
    votes(dir, 3, 3);
    assert_eq!(get(dir, "key"), "again");
}

#[test]
fn what_a_replaced_component_attests_counts_for_nothing() {
    let scratch = Scratch::new("a2m-renew-old");
    let dir = scratch.0.as_path();
    init(dir);
    let mut replicas = start(dir, &[0, 1, 2, 3]);
    put(dir, "key", "before");
    replicas[3].signal("KILL");
    replicas[3].ends();
    // Its component is not lost in truth: somebody has all that the replica had.
    let stolen = scratch.0.join("stolen");
    std::fs::create_dir(&stolen).expect("a directory");
    copy(&dir.join("replica-3"), &stolen);
    copy(&dir.join("cluster.toml"), &stolen);
    for lost in ["counters", "logs"] {
        std::fs::remove_dir_all(dir.join("replica-3").join(lost)).expect("it was there");
    }
    good(dir, &["admin", "readmit", "--replica", "3"]);
    put(dir, "key", "between");
    replicas[3] = Running(
        crate::support::troth(&stolen)
            .args(["replica", "--id", "3"])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("the command starts"),
    );
    serves(dir, 3, &replicas[3], 3);
    catches_up(dir, 3, 1);
    let says = &status(dir)[3];
    assert_eq!((&says["votes"], &says["waits_for"]), (&false.into(), &"admission".into()), "{says}");
    // It agrees with the others, so the group goes on; who wants proofs of three gets two.
    replicas[0].signal("KILL");
    replicas[0].ends();
    let unproven = run(dir, &["kv", "put", "key", "unproven", "--wait", "3"]);
    assert_eq!(unproven.status.code(), Some(4), "{}", text(&unproven));
    replicas[3].signal("KILL");
    replicas[3].ends();
    replicas[3] = replica(dir, 3);
    votes(dir, 3, 2);
    put(dir, "key", "proven");
    assert_eq!(get(dir, "key"), "proven");
}

#[test]
fn the_next_one_is_admitted_once_the_last_one_vouches() {
    let scratch = Scratch::new("a2m-renew-next");
    let dir = scratch.0.as_path();
    init(dir);
    let mut replicas = start(dir, &[0, 1, 2, 3]);
    put(dir, "key", "value");
    lose_component(dir, &mut replicas, 3);
    good(dir, &["admin", "readmit", "--replica", "3"]);
    let refused = run(dir, &["admin", "readmit", "--replica", "2"]);
    let words = text(&refused);
    assert_eq!(refused.status.code(), Some(1), "{words}");
    assert!(
        words.contains("replica 3 was admitted lately") && words.contains("nothing was touched"),
        "{words}"
    );
    replicas[3] = replica(dir, 3);
    votes(dir, 3, 2);
    lose_component(dir, &mut replicas, 2);
    let said = good(dir, &["admin", "readmit", "--replica", "2"]);
    assert!(said.contains("Replica 2 is admitted with epoch 2"), "{said}");
    replicas[2] = replica(dir, 2);
    votes(dir, 2, 2);
    // Both are needed.
    replicas[0].signal("KILL");
    replicas[0].ends();
    put(dir, "key", "by both");
    assert_eq!(get(dir, "key"), "by both");
    let shown: serde_json::Value =
        serde_json::from_str(&good(dir, &["admin", "show", "--json"])).expect("JSON");
    let epochs: Vec<u64> = shown["replicas"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|replica| replica["epoch"].as_u64().expect("a number"))
        .collect();
    assert_eq!(epochs, [1, 1, 2, 2]);
    assert_eq!(shown["changes"], 4, "each admission was announced: {shown}");
}

#[test]
fn a_component_in_a_process_of_its_own_is_replaced() {
    let scratch = Scratch::new("a2m-renew-process");
    let dir = scratch.0.as_path();
    init_processes_with(dir, &PROTOCOL);
    let mut replicas = start(dir, &[0, 1, 2, 3]);
    put(dir, "key", "before");
    replicas[3].signal("TERM");
    replicas[3].ends();
    lose_counters(dir, 3);
    std::fs::remove_dir_all(dir.join("trusted-3/logs")).expect("they were there");
    must_be_readmitted(dir, 3);
    let said = good(dir, &["admin", "readmit", "--replica", "3"]);
    assert!(said.contains("Replica 3 is admitted with epoch 2"), "{said}");
    replicas[3] = replica(dir, 3);
    votes(dir, 3, 2);
    replicas[0].signal("KILL");
    replicas[0].ends();
    put(dir, "key", "after");
    assert_eq!(get(dir, "key"), "after");
}

#[test]
fn a_replica_that_lost_its_log_is_not_given_another_component() {
    let scratch = Scratch::new("a2m-renew-log");
    let dir = scratch.0.as_path();
    init(dir);
    let mut replicas = start(dir, &[0, 1, 2, 3]);
    put(dir, "key", "value");
    lose_component(dir, &mut replicas, 3);
    let (data, aside) = (dir.join("replica-3/data"), scratch.0.join("aside"));
    std::fs::rename(&data, &aside).expect("our own directory");
    let refused = run(dir, &["admin", "readmit", "--replica", "3"]);
    let words = text(&refused);
    assert_eq!(refused.status.code(), Some(1), "{words}");
    assert!(words.contains("there is no log in") && words.contains("nothing was touched"), "{words}");
    let shown = good(dir, &["admin", "show"]);
    assert!(shown.contains("Configuration 0 "), "nothing was ordered: {shown}");
    let _ = std::fs::remove_dir_all(&data);
    std::fs::rename(&aside, &data).expect("our own directory");
    // A log from before its component was replaced does not go with a component that has begun.
    let before = scratch.0.join("before");
    copy(&data, &before);
    good(dir, &["admin", "readmit", "--replica", "3"]);
    replicas[3] = replica(dir, 3);
    votes(dir, 3, 2);
    // Without replica 0 a client has what it wants once the new component has attested it.
    replicas[0].signal("KILL");
    replicas[0].ends();
    put(dir, "key", "later");
    replicas[3].signal("TERM");
    replicas[3].ends();
    std::fs::remove_dir_all(&data).expect("our own directory");
    copy(&before, &data);
    let words = must_not_start(dir, 3);
    assert!(words.contains("is older than the trusted component"), "{words}");
    assert!(!words.contains("readmit") && words.contains("troth restore"), "{words}");
}

#[test]
fn a_component_that_was_set_back_has_the_same_history_appended_again() {
    let scratch = Scratch::new("a2m-renew-set-back");
    let dir = scratch.0.as_path();
    init(dir);
    let mut replicas = start(dir, &[0, 1, 2, 3]);
    put(dir, "key", "early");
    replicas[3].signal("TERM");
    replicas[3].ends();
    let (here, aside) = (dir.join("replica-3"), scratch.0.join("aside"));
    std::fs::create_dir(&aside).expect("a directory");
    for kept in ["counters", "logs"] {
        copy(&here.join(kept), &aside);
    }
    replicas[3] = replica(dir, 3);
    serves(dir, 3, &replicas[3], 3);
    for number in 0..10 {
        put(dir, "key", &number.to_string());
    }
    catches_up(dir, 3, 1);
    replicas[3].signal("TERM");
    replicas[3].ends();
    for kept in ["counters", "logs"] {
        std::fs::remove_dir_all(here.join(kept)).expect("it was there");
        copy(&aside.join(kept), &here);
    }
    replicas[3] = replica(dir, 3);
    serves(dir, 3, &replicas[3], 3);
    // Its proofs are those of the others: without replica 0 they are needed.
    replicas[0].signal("KILL");
    replicas[0].ends();
    assert_eq!(get(dir, "key"), "9");
    put(dir, "key", "later");
    assert_eq!(get(dir, "key"), "later");
}

/// Starts a replica and keeps what it says.
fn speaking(dir: &Path, id: u16) -> Running {
    let mut command = crate::support::troth(dir);
    command.args(["replica", "--id", &id.to_string()]).stdout(Stdio::null()).stderr(Stdio::piped());
    Running(command.spawn().expect("the command starts"))
}

#[test]
fn a_replica_whose_history_is_another_one_follows_the_group_with_another_component() {
    let scratch = Scratch::new("a2m-renew-diverged");
    let dir = scratch.0.as_path();
    init(dir);
    // The same group lives twice, as seen by the one that is led astray and by the others.
    let elsewhere = Scratch::new("a2m-renew-elsewhere");
    let astray = elsewhere.0.as_path();
    copy(dir, astray);
    let mut replicas = start(astray, &[0, 1, 2, 3]);
    for number in 0..9 {
        put(astray, "key", &format!("never {number}"));
    }
    catches_up(astray, 3, 0);
    for replica in &mut replicas {
        replica.signal("TERM");
        replica.ends();
    }
    let mut replicas = start(dir, &[0, 1, 2]);
    for number in 0..3 {
        put(dir, "key", &number.to_string());
    }
    std::fs::remove_dir_all(dir.join("replica-3")).expect("it has not run here");
    copy(&astray.join("replica-3"), dir);
    replicas.push(speaking(dir, 3));
    serves(dir, 3, &replicas[3], 3);
    // Three of four must prove one history, and it proves another.
    replicas[0].signal("KILL");
    replicas[0].ends();
    let unproven = run(dir, &["kv", "get", "key", "--wait", "3"]);
    assert_ne!(unproven.status.code(), Some(0), "{}", text(&unproven));
    assert!(!text(&unproven).contains("never"), "{}", text(&unproven));
    replicas[0] = replica(dir, 0);
    serves(dir, 0, &replicas[0], 3);
    // The next checkpoint shows it that its history is not the group's.
    pbft_reads::runtime().block_on(async {
        let client = pbft_reads::session(dir).await;
        for number in 0..70 {
            pbft_reads::put(&client, "key", &number.to_string()).await;
        }
        client.close().await;
    });
    let ended = replicas[3].ends();
    let mut words = String::new();
    replicas[3].0.stderr.take().expect("piped").read_to_string(&mut words).expect("text");
    assert!(words.contains("is not that of the group"), "{ended:?}: {words}");
    let said = good(dir, &["admin", "readmit", "--replica", "3"]);
    assert!(said.contains("Replica 3 is admitted with epoch 2"), "{said}");
    replicas[3] = replica(dir, 3);
    votes(dir, 3, 2);
    replicas[0].signal("KILL");
    replicas[0].ends();
    assert_eq!(get(dir, "key"), "69");
    put(dir, "key", "later");
    assert_eq!(get(dir, "key"), "later");
}
