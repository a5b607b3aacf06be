//! A PBFT group as a user runs it: four replicas, nothing trusted, and the same promises.

use crate::killed::replica;
use crate::support::{Running, Scratch, good, init_with, made_by, pid, run, signal, status, until, up};
use std::io::Read;
use std::path::Path;
use std::process::Output;

/// The replicas of a group that bears one faulty one.
const ALL: [u16; 4] = [0, 1, 2, 3];

fn init_pbft(dir: &Path, further: &[&str]) {
    init_with(dir, &[&["--protocol", "pbft"], further].concat());
}

/// Starts these replicas and waits until each serves, and is connected to the others.
pub fn start(dir: &Path, which: &[u16]) -> Vec<Running> {
    let replicas: Vec<Running> = which.iter().map(|id| replica(dir, *id)).collect();
    for (id, replica) in which.iter().zip(&replicas) {
        serves(dir, *id, replica, which.len() - 1);
    }
    replicas
}

pub fn serves(dir: &Path, id: u16, replica: &Running, peers: usize) {
    until("the replica serves", || {
        let says = &status(dir)[usize::from(id)];
        let connected = says["peers"].as_array().is_some_and(|connected| connected.len() >= peers);
        (says["pid"].as_u64() == Some(u64::from(replica.0.id())) && connected).then_some(())
    });
}

pub fn put(dir: &Path, key: &str, value: &str) {
    good(dir, &["kv", "put", key, value]);
}

pub fn get(dir: &Path, key: &str) -> String {
    good(dir, &["kv", "get", key]).trim().to_owned()
}

/// Waits until a replica has executed what another one has.
pub fn catches_up(dir: &Path, id: u16, with: u16) {
    let executed = |replica: &serde_json::Value| replica["executed"].as_u64();
    let reached = executed(&status(dir)[usize::from(with)]).expect("it runs");
    until("the replica has caught up", || {
        (executed(&status(dir)[usize::from(id)]) >= Some(reached)).then_some(())
    });
}

pub fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned() + &String::from_utf8_lossy(&output.stdout)
}

/// The replica does not start, with this exit code, and says why and what to do. One that starts all the same would
/// not end.
pub fn refused(dir: &Path, id: u16, code: i32, because: &str) -> String {
    let mut command = crate::support::troth(dir);
    command.args(["replica", "--id", &id.to_string()]);
    command.stdout(std::process::Stdio::null()).stderr(std::process::Stdio::piped());
    let mut refused = Running(command.spawn().expect("the command starts"));
    let ended = refused.ends();
    let mut why = String::new();
    refused.0.stderr.take().expect("piped").read_to_string(&mut why).expect("text");
    assert_eq!(ended, Some(code), "{why}");
    assert!(why.contains(because) && why.contains("mend: "), "{why}");
    assert!(!why.contains("readmit"), "it is not: {why}");
    why
}

/// The same of one without a component: it has no epoch either.
fn refused_plainly(dir: &Path, id: u16, code: i32, because: &str) {
    let why = refused(dir, id, code, because);
    assert!(!why.contains("epoch"), "it has none: {why}");
}

fn survives(name: &str, durability: &str) {
    let scratch = Scratch::new(name);
    let dir = scratch.0.as_path();
    init_pbft(dir, &["--durability", durability]);
    for absent in ["trusted-0", "socket-0", "replica-0/counters"] {
        assert!(!dir.join(absent).exists(), "{absent}");
    }
    let mut replicas = start(dir, &ALL);
    for number in 0..5 {
        put(dir, &format!("before{number}"), "value");
    }
    let before = status(dir);
    assert!(before.iter().all(|replica| replica["protocol"] == "pbft" && replica["view"] == 0), "{before:?}");
    assert!(!dir.join("replica-0/counters").exists(), "there is nothing to keep them for");

    // The primary is killed, and the others find another one.
    replicas[0].signal("KILL");
    replicas[0].ends();
    for number in 0..5 {
        put(dir, &format!("between{number}"), "value");
    }
    let now = status(dir);
    assert!(now[1..].iter().all(|replica| replica["view"].as_u64() > Some(0)), "{now:?}");
    // It comes back as what it was, and the group needs it as soon as another one is gone.
    replicas[0] = replica(dir, 0);
    serves(dir, 0, &replicas[0], 3);
    catches_up(dir, 0, 1);
    replicas[3].signal("KILL");
    replicas[3].ends();
    put(dir, "after", "value");
    // Two of four decide nothing.
    replicas[2].signal("KILL");
    replicas[2].ends();
    let alone = run(dir, &["kv", "put", "alone", "value", "--wait", "2"]);
    assert_eq!(alone.status.code(), Some(4), "{}", text(&alone));

    // All of them at once, twice, as the second start reads what the first one wrote again.
    for life in 0..2 {
        // With SIGKILL, those that run yet.
        drop(replicas);
        replicas = start(dir, &ALL);
        for number in 0..5 {
            assert_eq!(get(dir, &format!("before{number}")), "value", "life {life}");
            assert_eq!(get(dir, &format!("between{number}")), "value", "life {life}");
        }
        assert_eq!(get(dir, "after"), "value");
        put(dir, "life", &life.to_string());
    }
    assert!(status(dir).iter().all(|replica| replica["accused"] == serde_json::json!([])));
}

#[test]
fn a_durable_group_survives_its_primary_and_the_end_of_all() {
    survives("pbft-always", "always");
}

#[test]
fn a_group_in_memory_survives_every_end_but_that_of_its_machine() {
    survives("pbft-memory", "memory");

    let scratch = Scratch::new("pbft-machine");
    let dir = scratch.0.as_path();
    init_pbft(dir, &["--durability", "memory"]);
    let replicas = start(dir, &ALL);
    put(dir, "key", "value");
    drop(replicas);
    // The boot that the replica wrote down is another one now.
    let file = dir.join("replica-1/data/kept");
    let kept = std::fs::read_to_string(&file).expect("the replica wrote it");
    let boot = kept.lines().nth(2).expect("the boot").to_owned();
    let other = if boot.starts_with('0') { "1" } else { "0" };
    std::fs::write(&file, kept.replace(&boot, &format!("{other}{}", &boot[1..]))).expect("our own file");
    refused_plainly(dir, 1, 3, "started anew");
    let _others = start(dir, &[0, 2, 3]);
    assert_eq!(get(dir, "key"), "value");
}

#[test]
fn a_replica_that_missed_windows_fetches_the_state_and_goes_on_from_it() {
    let scratch = Scratch::new("pbft-transfer");
    let dir = scratch.0.as_path();
    init_pbft(dir, &[]);
    let mut replicas = start(dir, &ALL);
    put(dir, "first", "value");
    replicas[3].signal("KILL");
    replicas[3].ends();
    // One after the other, so each is a batch: beyond the window of 256.
    for number in 0..330 {
        put(dir, &format!("key{}", number % 7), &number.to_string());
    }
    let transfers = |dir: &Path| status(dir)[3]["counters"]["transfers"].as_u64();
    replicas[3] = replica(dir, 3);
    serves(dir, 3, &replicas[3], 3);
    catches_up(dir, 3, 0);
    assert!(transfers(dir) >= Some(1), "what it missed is stable, and nobody has its batches any more");
    // What was fetched is on its disk: killed again, it goes on from there, and its vote is needed.
    replicas[3].signal("KILL");
    replicas[3].ends();
    replicas[3] = replica(dir, 3);
    serves(dir, 3, &replicas[3], 3);
    catches_up(dir, 3, 0);
    assert_eq!(transfers(dir), Some(0), "nothing is fetched twice");
    replicas[0].signal("KILL");
    replicas[0].ends();
    put(dir, "last", "value");
    assert_eq!(get(dir, "key0"), "329");
    assert_eq!(get(dir, "first"), "value");
}

#[test]
fn a_replica_without_its_log_or_with_anothers_does_not_start() {
    let scratch = Scratch::new("pbft-lost");
    let (dir, hybrid) = (scratch.0.join("pbft"), scratch.0.join("minbft"));
    init_pbft(&dir, &[]);
    let replicas = start(&dir, &ALL);
    put(&dir, "key", "value");
    drop(replicas);
    init_with(&hybrid, &[]);
    let others: Vec<Running> = (0..3).map(|id| replica(&hybrid, id)).collect();
    until("the other group serves", || {
        status(&hybrid).iter().all(|replica| replica["pid"].is_u64()).then_some(())
    });
    put(&hybrid, "key", "another value");
    drop(others);

    // Each with the other protocol's log.
    let (ours, theirs) = (dir.join("replica-1/data"), hybrid.join("replica-1/data"));
    let aside = scratch.0.join("aside");
    for (from, to) in [(&ours, &aside), (&theirs, &ours), (&aside, &theirs)] {
        std::fs::rename(from, to).expect("our own directories");
    }
    for (dir, found, wanted) in [(&dir, "minbft", "pbft"), (&hybrid, "pbft", "minbft")] {
        let named = format!("protocol = \"{found}\", and cluster.toml says \"{wanted}\"");
        refused_plainly(dir, 1, 5, &named);
    }
    // From before there was a file that says whose it is.
    std::fs::remove_file(ours.join("kept")).expect("it was there");
    refused_plainly(&dir, 1, 5, "protocol = \"minbft\"");
    // Nor without any, and nothing is made in its place that would pass for it.
    for _ in 0..2 {
        let _ = std::fs::remove_dir_all(&ours);
        refused_plainly(&dir, 1, 3, "its log in");
    }
    refused_plainly(&dir, 1, 3, "its log in");
    let _others = start(&dir, &[0, 2, 3]);
    assert_eq!(get(&dir, "key"), "value");
}

#[test]
fn a_backup_goes_on_under_either_protocol() {
    let scratch = Scratch::new("pbft-backup");
    let dir = scratch.0.join("old");
    init_pbft(&dir, &["--durability", "memory"]);
    let replicas = start(&dir, &ALL);
    put(&dir, "key", "value");
    let saved = scratch.0.join("saved");
    let from = saved.to_str().expect("plain");
    let said = good(&dir, &["backup", "--json", "--to", from]);
    let manifest: serde_json::Value = serde_json::from_str(&said).expect("JSON");
    drop(replicas);
    let digest = manifest["content_digest"].as_str().expect("a digest");
    for (name, further, count) in [("same", &[][..], 4), ("other", &["--protocol", "minbft"], 3)] {
        let new = scratch.0.join(name);
        made_by("restore", &new, &[&["--from", from, "--content-digest", digest], further].concat());
        let _replicas: Vec<Running> = (0..count).map(|id| replica(&new, id)).collect();
        assert_eq!(get(&new, "key"), "value", "{name}");
        assert_eq!(status(&new).len(), usize::from(count));
    }
    // Fewer than 2f+1 signatures certify nothing, and neither does one that was changed.
    let proof = saved.join("checkpoint");
    let whole = std::fs::read(&proof).expect("part of the backup");
    for at in [whole.len() / 2, whole.len() - 1] {
        let mut changed = whole.clone();
        changed[at] ^= 1;
        std::fs::write(&proof, changed).expect("our own");
        let new = scratch.0.join("changed");
        let output = run(&new, &["restore", "--from", from]);
        assert_eq!(output.status.code(), Some(1), "{}", text(&output));
        assert!(!new.exists());
    }
}

#[test]
fn what_needs_a_trusted_component_says_that_there_is_none() {
    let scratch = Scratch::new("pbft-words");
    let dir = scratch.0.as_path();
    let says = |arguments: &[&str], what: &str| {
        let output = run(dir, arguments);
        let said = text(&output);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {said}");
        assert!(said.contains(what), "{arguments:?}: {said}");
    };
    for components in [["--trusted", "hmac"], ["--trusted-home", "process"], ["--trusted-user", "nobody"]] {
        says(&[&["init", "--protocol", "pbft"], &components[..]].concat(), "have no trusted components");
    }
    says(&["init", "--protocol", "pbft", "--hosts", "a,b,c"], "makes 4 replicas with pbft");
    says(&["init", "--protocol", "pbft", "--f", "34"], "ask for 1 to 33");
    says(&["init", "--protocol", "raft"], "minbft, pbft");
    init_pbft(dir, &["--durability", "memory"]);
    says(&["trusted", "--id", "0"], "protocol is pbft");
    says(&["replica", "--id", "0", "--trusted-socket", "/nowhere"], "protocol is pbft");
    says(&["up", "--protocol", "minbft"], "protocol is pbft, not minbft");
    for action in [
        &["admin", "readmit", "--replica", "1"][..],
        &["admin", "rekey", "--replica", "1"],
        &["admin", "replace", "--replica", "1", "--address", "127.0.0.1:9", "--out", "/nowhere"],
    ] {
        says(action, "no trusted component to readmit or replace");
    }

    let _cluster = up(dir, &["--protocol", "pbft"]);
    good(dir, &["admin", "add-client", "--client", "17"]);
    good(dir, &["kv", "put", "key", "value", "--client", "17"]);
    good(dir, &["admin", "remove-client", "--client", "17"]);
    let shown = good(dir, &["admin", "show"]);
    assert!(shown.contains("none") && !shown.contains("hmac"), "{shown}");
    let doctor = run(dir, &["doctor"]);
    let said = text(&doctor);
    assert!(doctor.status.success() && said.contains("no trusted components to isolate"), "{said}");
    assert!(said.contains("4 of 4 replicas answer"), "{said}");
    // Of four, two are too few.
    let pids: Vec<u32> = status(dir).iter().map(pid).collect();
    pids[..2].iter().for_each(|pid| signal(*pid, "KILL"));
    until("two are gone", || (run(dir, &["status"]).status.code() == Some(5)).then_some(()));
}

#[test]
fn one_that_up_makes_and_removes_again() {
    let scratch = Scratch::new("pbft-up");
    let dir = scratch.0.as_path();
    let mut cluster = up(dir, &["--protocol", "pbft"]);
    put(dir, "key", "value");
    assert_eq!(status(dir).len(), 4);
    cluster.signal("TERM");
    assert_eq!(cluster.ends(), Some(0));
    assert!(!dir.join("cluster.toml").exists(), "it goes with the command");
}

#[cfg(feature = "demo-adversary")]
#[test]
fn a_liar_changes_nothing_as_backup_or_as_primary() {
    for liar in [3u16, 0] {
        let scratch = Scratch::new(&format!("pbft-liar-{liar}"));
        let dir = scratch.0.as_path();
        init_pbft(dir, &["--durability", "memory"]);
        let _replicas: Vec<Running> = ALL
            .into_iter()
            .map(|id| {
                let mut command = crate::support::troth(dir);
                command.args(["replica", "--id", &id.to_string()]);
                if id == liar {
                    command.args(["--adversary", "liar"]);
                }
                let nowhere = std::process::Stdio::null;
                let command = command.stdout(nowhere()).stderr(nowhere());
                Running(command.spawn().expect("the command starts"))
            })
            .collect();
        until("all serve", || status(dir).iter().all(|replica| replica["pid"].is_u64()).then_some(()));
        for number in 0..20 {
            put(dir, &format!("key{number}"), &format!("value {number}"));
        }
        for number in 0..20 {
            assert_eq!(get(dir, &format!("key{number}")), format!("value {number}"), "liar {liar}");
        }
        let honest: Vec<serde_json::Value> =
            (0..).zip(status(dir)).filter(|(id, _)| *id != liar).map(|(_, replica)| replica).collect();
        assert!(honest.iter().all(|replica| replica["active"] == true), "{honest:?}");
        let view = honest[0]["view"].as_u64();
        assert_eq!(view > Some(0), liar == 0, "a primary that shows each another proposal is left");
        for replica in &honest {
            let accused = replica["accused"].as_array().expect("a list");
            assert!(accused.iter().all(|accused| accused.as_u64() == Some(liar.into())), "{accused:?}");
        }
    }
}

#[test]
fn clients_that_send_authenticators_are_served_through_the_end_of_a_primary() {
    let scratch = Scratch::new("pbft-mac");
    let dir = scratch.0.as_path();
    let refused = run(dir, &["init", "--auth", "mac", "--base-port", "24700"]);
    assert!(!refused.status.success() && text(&refused).contains("--protocol pbft"), "{}", text(&refused));
    init_pbft(dir, &["--auth", "mac"]);
    let cluster = std::fs::read_to_string(dir.join("cluster.toml")).expect("just written");
    assert!(cluster.contains("auth = \"mac\""), "{cluster}");
    let mut replicas = start(dir, &ALL);
    for number in 0..5 {
        put(dir, &format!("before{number}"), "value");
    }
    assert_eq!(
        status(dir)[1]["counters"]["suspected"],
        0,
        "no request had to be sent again with a signature"
    );
    replicas[0].signal("KILL");
    replicas[0].ends();
    for number in 0..5 {
        put(dir, &format!("between{number}"), "value");
    }
    // All of them at once: what was logged without signatures is executed again.
    drop(replicas);
    let _replicas = start(dir, &ALL);
    for number in 0..5 {
        assert_eq!(get(dir, &format!("before{number}")), "value");
        assert_eq!(get(dir, &format!("between{number}")), "value");
    }
    // The same file for a protocol that cannot take them.
    let file = dir.join("cluster.toml");
    std::fs::write(&file, cluster.replace("\"pbft\"", "\"minbft\"")).expect("our own file");
    let refused = run(dir, &["status"]);
    assert!(text(&refused).contains("takes no authenticators"), "{}", text(&refused));
}

#[test]
fn replicas_that_sign_everything_serve_through_the_end_of_a_primary() {
    let scratch = Scratch::new("pbft-all-signed");
    let dir = scratch.0.as_path();
    let refused = run(dir, &["init", "--auth", "all-signed", "--base-port", "24700"]);
    assert!(!refused.status.success() && text(&refused).contains("--protocol pbft"), "{}", text(&refused));
    init_pbft(dir, &["--auth", "all-signed"]);
    let cluster = std::fs::read_to_string(dir.join("cluster.toml")).expect("just written");
    assert!(cluster.contains("auth = \"all-signed\""), "{cluster}");
    let mut replicas = start(dir, &ALL);
    for number in 0..5 {
        put(dir, &format!("before{number}"), "value");
    }
    replicas[0].signal("KILL");
    replicas[0].ends();
    for number in 0..5 {
        put(dir, &format!("between{number}"), "value");
    }
    drop(replicas);
    let _replicas = start(dir, &ALL);
    for number in 0..5 {
        assert_eq!(get(dir, &format!("before{number}")), "value");
        assert_eq!(get(dir, &format!("between{number}")), "value");
    }
    for replica in status(dir) {
        assert_eq!(replica["accused"].as_array().map(Vec::len), Some(0), "{replica}");
    }
    let file = dir.join("cluster.toml");
    std::fs::write(&file, cluster.replace("\"pbft\"", "\"minbft\"")).expect("our own file");
    let refused = run(dir, &["status"]);
    assert!(text(&refused).contains("everything is signed"), "{}", text(&refused));
}

#[test]
fn up_makes_groups_with_the_proofs_of_requests_that_it_is_asked_for() {
    let scratch = Scratch::new("pbft-up-auth");
    let refuses = |dir: &Path, arguments: &[&str], because: &str| {
        let refused = run(dir, &[&["up"], arguments].concat());
        let words = text(&refused);
        assert_eq!(refused.status.code(), Some(2), "{arguments:?}: {words}");
        assert!(words.contains(because) && words.contains("leave --auth away"), "{arguments:?}: {words}");
    };
    let own = scratch.0.join("own");
    refuses(&own, &["--auth", "mac"], "--protocol minbft takes no --auth mac");
    refuses(&own, &["--protocol", "a2m-pbft-e", "--auth", "all-signed"], "takes no --auth all-signed");
    assert!(!own.join("cluster.toml").exists(), "nothing was made");
    for auth in ["mac", "all-signed"] {
        let mut cluster = up(&own, &["--protocol", "pbft", "--auth", auth]);
        let made = std::fs::read_to_string(own.join("cluster.toml")).expect("just made");
        assert!(made.contains(&format!("auth = \"{auth}\"")), "{made}");
        put(&own, "key", auth);
        assert_eq!(get(&own, "key"), auth);
        cluster.signal("TERM");
        assert_eq!(cluster.ends(), Some(0));
    }
    // Those of a group that is there already are what they are.
    let kept = scratch.0.join("kept");
    init_pbft(&kept, &["--auth", "mac"]);
    refuses(&kept, &["--auth", "signed"], "is of a group whose auth is mac, not signed");
    let mut cluster = up(&kept, &["--auth", "mac"]);
    cluster.signal("TERM");
    assert_eq!(cluster.ends(), Some(0));
}
