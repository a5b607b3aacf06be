//! `troth admin` on real processes: replicas that lost everything come back, hosts are replaced, clients come
//! and go.

use crate::killed::{all, replica};
use crate::support::{Running, Scratch, good, init_with, run, status, troth, until};
use crate::trusted::{init_processes, lose_counters};
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::Path;
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, Ordering};

/// Waits until a replica votes with a component of this epoch.
pub fn votes(dir: &Path, id: usize, epoch: u64) {
    until("the replica votes with its new component", || {
        let now = &status(dir)[id];
        (now["epoch"] == epoch && now["votes"] == true && now["active"] == true).then_some(())
    });
}

/// Writes `round-0`, `round-1`, … until told to stop; gives how many were acknowledged.
fn load(dir: &Path, stop: &AtomicBool) -> u64 {
    let mut acknowledged = 0;
    while !stop.load(Ordering::Relaxed) {
        let (key, value) = (format!("round-{acknowledged}"), acknowledged.to_string());
        if run(dir, &["kv", "--client", "1", "put", &key, &value]).status.success() {
            acknowledged += 1;
        }
    }
    acknowledged
}

#[test]
fn a_replica_that_lost_its_disk_and_its_component_is_readmitted_under_load_and_votes() {
    let scratch = Scratch::new("admin-readmit");
    let dir = scratch.0.as_path();
    init_with(dir, &[]);
    let mut replicas = all(dir);
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let loading = scope.spawn(|| load(dir, &stop));
        // The load stops also where the test fails.
        let _stops = Stops(&stop);
        replicas[2].signal("KILL");
        replicas[2].ends();
        for lost in ["data", "counters"] {
            std::fs::remove_dir_all(dir.join("replica-2").join(lost)).expect("it was there");
        }
        let refused = run(dir, &["replica", "--id", "2"]);
        let words = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert_eq!(refused.status.code(), Some(3), "{words}");
        assert!(words.contains("troth admin readmit --replica 2"), "{words}");

        let said = good(dir, &["admin", "readmit", "--replica", "2"]);
        assert!(said.contains("admitted with epoch 2"), "{said}");
        // Once more, as after an interruption: it is admitted already, and nothing changes.
        let again = good(dir, &["admin", "readmit", "--replica", "2"]);
        assert!(again.contains("was admitted with epoch 2"), "{again}");
        replicas[2] = replica(dir, 2);
        votes(dir, 2, 2);
        // Two of three must vote: without replica 0 the readmitted one is one of them.
        replicas[0].signal("KILL");
        replicas[0].ends();
        good(dir, &["kv", "put", "after", "readmission"]);
        stop.store(true, Ordering::Relaxed);
        let acknowledged = loading.join().expect("the load does not panic");
        assert!(acknowledged > 0, "something was acknowledged");
        for round in 0..acknowledged {
            assert_eq!(good(dir, &["kv", "get", &format!("round-{round}")]), format!("{round}\n"));
        }
    });
    assert_eq!(good(dir, &["kv", "get", "after"]), "readmission\n");
    // And it is killed and started like any other, with the epoch that it has.
    replicas[2].signal("KILL");
    replicas[2].ends();
    replicas[2] = replica(dir, 2);
    votes(dir, 2, 2);
    assert_eq!(good(dir, &["kv", "get", "after"]), "readmission\n");
    let running = run(dir, &["admin", "readmit", "--replica", "2"]);
    let words = String::from_utf8_lossy(&running.stderr).into_owned();
    assert_eq!(running.status.code(), Some(5), "{words}");
    assert!(words.contains("replica 2 runs"), "{words}");
    // Nothing of it was touched.
    replicas[2].signal("KILL");
    replicas[2].ends();
    replicas[2] = replica(dir, 2);
    votes(dir, 2, 2);

    // Another one follows. It begins with nothing, and half of those who vouch for the state have a component
    // that the group did not begin with.
    for lost in ["data", "counters"] {
        std::fs::remove_dir_all(dir.join("replica-0").join(lost)).expect("it was there");
    }
    good(dir, &["admin", "readmit", "--replica", "0"]);
    replicas[0] = replica(dir, 0);
    votes(dir, 0, 2);
    replicas[1].signal("KILL");
    replicas[1].ends();
    good(dir, &["kv", "put", "after", "both"]);
}

struct Stops<'a>(&'a AtomicBool);

impl Drop for Stops<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[test]
fn a_new_host_takes_a_replica_s_place_and_the_old_one_counts_for_nothing() {
    let scratch = Scratch::new("admin-replace");
    let (dir, out, before) =
        (scratch.0.join("group"), scratch.0.join("new-machine"), scratch.0.join("before"));
    let base = init_with(&dir, &["--trusted", "ed25519"]);
    std::fs::create_dir(&before).expect("our own directory");
    std::fs::copy(dir.join("cluster.toml"), before.join("cluster.toml")).expect("just made");
    let mut replicas = all(&dir);
    for value in 0..10 {
        good(&dir, &["kv", "put", "key", &value.to_string()]);
    }
    let looked = run(&dir, &["doctor"]);
    let words = String::from_utf8_lossy(&looked.stdout).into_owned();
    assert!(!words.contains("the operator gave"), "{words}");
    let (address, http) = (format!("127.0.0.1:{}", base + 50), format!("127.0.0.1:{}", base + 51));
    let out_dir = out.to_string_lossy().into_owned();
    let arguments =
        ["admin", "replace", "--replica", "1", "--address", &address, "--http", &http, "--out", &out_dir];
    good(&dir, &arguments);
    // As many as may fail do not vote now: another one would end all progress.
    let second = run(&dir, &["admin", "readmit", "--replica", "0"]);
    let words = String::from_utf8_lossy(&second.stderr).into_owned();
    assert_eq!(second.status.code(), Some(1), "{words}");
    assert!(words.contains("try again after batch") && words.contains("nothing was touched"), "{words}");
    // Nor would ordering batches help: the new host does not run yet.
    assert!(words.contains("replica 1 was admitted lately, and does not say at"), "{words}");
    assert!(words.contains(&http), "{words}");
    assert!(dir.join("replica-0/started").exists());
    // Whoever looks for the replica looks where it is now.
    let looked = run(&dir, &["doctor"]);
    let words = String::from_utf8_lossy(&looked.stdout).into_owned();
    assert!(words.contains(&format!("replica 1 does not answer at {address}")), "{words}");
    assert!(words.contains("replica 1: the operator gave the place to a host with other keys"), "{words}");
    // Once more, as after an interruption.
    good(&dir, &arguments);
    let old = until("nobody talks to the old host", || {
        let old = status(&before)[1].clone();
        (old["peers"].as_array().is_some_and(Vec::is_empty)).then_some(old)
    });
    assert_eq!(old["epoch"], 1);
    // Started again where that is known, it says so.
    replicas[1].signal("TERM");
    assert_eq!(replicas[1].ends(), Some(0));
    let log = dir.join("old.log");
    let mut again = troth(&dir);
    again.args(["replica", "--id", "1"]).stdout(Stdio::null());
    again.stderr(std::fs::File::create(&log).expect("our own directory"));
    replicas[1] = Running(again.spawn().expect("the command starts"));
    until("the old host serves again", || status(&before)[1]["pid"].as_u64());
    let said = std::fs::read_to_string(&log).expect("its log");
    assert_eq!(said.matches("the operator gave this replica's place").count(), 1, "{said}");

    // It calls replica 0 and is called by replica 2.
    let log = out.join("replica-1.log");
    let errors = std::fs::File::create(&log).expect("our own directory");
    let mut new = troth(&out);
    new.args(["replica", "--id", "1"]).stdout(Stdio::null()).stderr(errors);
    let mut new = Running(new.spawn().expect("the command starts"));
    votes(&dir, 1, 2);
    let said = std::fs::read_to_string(&log).expect("its log");
    let serves = said.lines().find(|line| line.contains(" serves ")).expect("it says that it serves");
    assert!(serves.contains(&format!("address={address}")), "{serves}");
    until("the others talk to the new host", || {
        (status(&dir)[1]["peers"] == serde_json::json!([0, 2])).then_some(())
    });
    let shown: serde_json::Value =
        serde_json::from_str(&good(&dir, &["admin", "show", "--json"])).expect("JSON");
    assert_eq!(shown["replicas"][1]["address"], address.as_str());
    assert_eq!(shown["replicas"][1]["epoch"], 2);
    replicas[0].signal("KILL");
    replicas[0].ends();
    good(&dir, &["kv", "put", "key", "of two"]);
    assert_eq!(good(&dir, &["kv", "get", "key"]), "of two\n");
    // What is left are one replica and the old host, who would be two.
    new.signal("KILL");
    new.ends();
    let alone = run(&dir, &["kv", "put", "key", "of one", "--wait", "3"]);
    assert!(!alone.status.success(), "one replica and a host that was replaced are not enough");
    assert!(replicas[1].0.try_wait().expect("our own child").is_none(), "the old host runs all the time");
    // The new one resumes, with its epoch, and the two go on.
    let _new = replica(&out, 1);
    good(&dir, &["kv", "put", "key", "of two again"]);
}

#[test]
fn a_replica_s_host_gets_new_keys() {
    let scratch = Scratch::new("admin-rekey");
    let dir = scratch.0.as_path();
    init_with(dir, &[]);
    let mut replicas = all(dir);
    let before = std::fs::read_to_string(dir.join("replica-1/secret.toml")).expect("just made");
    good(dir, &["admin", "rekey", "--replica", "1"]);
    until("replica 1 is cut off with its old keys", || {
        let peers = |id: usize| status(dir)[id]["peers"].clone();
        (peers(0) == serde_json::json!([2]) && peers(2) == serde_json::json!([0])).then_some(())
    });
    let after = std::fs::read_to_string(dir.join("replica-1/secret.toml")).expect("written anew");
    assert_ne!(before, after);
    replicas[1].signal("TERM");
    assert_eq!(replicas[1].ends(), Some(0));
    replicas[1] = replica(dir, 1);
    votes(dir, 1, 1);
    replicas[0].signal("KILL");
    replicas[0].ends();
    good(dir, &["kv", "put", "key", "value"]);
}

#[test]
fn a_client_is_added_used_and_removed() {
    let scratch = Scratch::new("admin-clients");
    let dir = scratch.0.as_path();
    init_with(dir, &[]);
    let _replicas = all(dir);
    assert_eq!(run(dir, &["kv", "--client", "17", "put", "key", "value"]).status.code(), Some(2));
    let said = good(dir, &["admin", "add-client"]);
    assert!(said.contains("Client 17"), "{said}");
    good(dir, &["kv", "--client", "17", "put", "key", "value"]);
    let saved = dir.join("saved");
    good(dir, &["backup", "--client", "17", "--to", saved.to_str().expect("plain")]);
    let watching = troth(dir)
        .args(["kv", "--client", "17", "watch", "key"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("the command starts");
    let watching = Running(watching);
    let connected = |count: u64| {
        until("so many clients are connected", || {
            status(dir).iter().all(|replica| replica["clients"] == count).then_some(())
        });
    };
    connected(1);
    // What a client has that does not hear of its removal.
    let known = dir.join("configuration.toml");
    let before = std::fs::read(&known).expect("written by add-client");
    good(dir, &["admin", "remove-client", "--client", "17"]);
    connected(0);
    drop(watching);
    let refused = run(dir, &["kv", "--client", "17", "put", "key", "new"]);
    let words = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert_eq!(refused.status.code(), Some(2), "{words}");
    assert!(
        words.contains("client 17 was removed by the operator") && !words.contains("new cluster"),
        "{words}"
    );
    // Once more: it is removed, and the configuration counts no other change.
    let changes = || {
        let shown = good(dir, &["admin", "show", "--json"]);
        serde_json::from_str::<serde_json::Value>(&shown).expect("JSON")["changes"].clone()
    };
    let counted = changes();
    let again = good(dir, &["admin", "remove-client", "--client", "17"]);
    assert!(again.contains("Client 17 was removed already"), "{again}");
    assert_eq!(changes(), counted);
    std::fs::write(&known, before).expect("our own file");
    let refused = run(dir, &["kv", "--client", "17", "put", "key", "new", "--wait", "3"]);
    let words = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert_eq!(refused.status.code(), Some(5), "{words}");
    assert!(
        words.contains("listens where replicas 0, 1 and 2") && words.contains("removed by the operator"),
        "{words}"
    );
    assert_eq!(good(dir, &["kv", "--client", "1", "get", "key"]), "value\n");
    // A number is never given again, and an unknown one is refused with the reason.
    for (arguments, word) in [
        (&["admin", "add-client", "--client", "17", "--out", "other.toml"][..], "never used"),
        (&["admin", "remove-client", "--client", "99"], "no client 99"),
    ] {
        let refused = troth(dir).current_dir(dir).args(arguments).output().expect("the command runs");
        let words = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert_eq!(refused.status.code(), Some(1), "{words}");
        assert!(words.contains(word), "{words}");
    }
}

#[test]
fn a_component_in_a_process_of_its_own_that_lost_its_counters_is_readmitted() {
    let scratch = Scratch::new("admin-process");
    let dir = scratch.0.as_path();
    init_processes(dir);
    let mut replicas = all(dir);
    good(dir, &["kv", "put", "key", "value"]);
    replicas[1].signal("TERM");
    assert_eq!(replicas[1].ends(), Some(0));
    let counters = lose_counters(dir, 1);
    assert_eq!(run(dir, &["replica", "--id", "1"]).status.code(), Some(3));
    // With the directory itself, which the process does not make.
    std::fs::remove_dir(&counters).expect("it is empty");
    good(dir, &["admin", "readmit", "--replica", "1"]);
    replicas[1] = replica(dir, 1);
    votes(dir, 1, 2);
    replicas[0].signal("KILL");
    replicas[0].ends();
    good(dir, &["kv", "put", "key", "new"]);
}

#[test]
fn an_interrupted_readmission_is_repeated_under_another_epoch() {
    let scratch = Scratch::new("admin-interrupted");
    let dir = scratch.0.as_path();
    init_with(dir, &[]);
    let mut replicas = all(dir);
    good(dir, &["kv", "put", "key", "value"]);
    replicas[2].signal("KILL");
    replicas[2].ends();
    good(dir, &["admin", "readmit", "--replica", "2"]);
    // As if it had been interrupted before anything was put aside: new keys, old files.
    for kept in ["data", "counters", "started"] {
        let place = dir.join("replica-2").join(kept);
        std::fs::rename(place.with_file_name(format!("{kept}.old-1")), place).expect("it was kept");
    }
    let refused = run(dir, &["replica", "--id", "2"]);
    assert_eq!(refused.status.code(), Some(3), "{}", String::from_utf8_lossy(&refused.stderr));
    let said = good(dir, &["admin", "readmit", "--replica", "2"]);
    assert!(said.contains("admitted with epoch 3") && said.contains("data.old-2"), "{said}");
    replicas[2] = replica(dir, 2);
    votes(dir, 2, 3);
    replicas[0].signal("KILL");
    replicas[0].ends();
    good(dir, &["kv", "put", "key", "new"]);
}

#[test]
fn where_nobody_uses_the_group_one_replica_is_readmitted_after_the_other() {
    let scratch = Scratch::new("admin-idle");
    let dir = scratch.0.as_path();
    init_with(dir, &[]);
    let mut replicas = all(dir);
    for id in [2, 1] {
        replicas[id].signal("KILL");
        replicas[id].ends();
        for lost in ["data", "counters"] {
            std::fs::remove_dir_all(dir.join(format!("replica-{id}")).join(lost)).expect("it was there");
        }
        let done = run(dir, &["admin", "readmit", "--replica", &id.to_string()]);
        let words = String::from_utf8_lossy(&done.stderr).into_owned();
        assert!(done.status.success(), "replica {id}: {words}");
        // The first finds room; for the second it is made, as nobody orders anything.
        assert_eq!(words.contains("operations that change nothing"), id == 1, "{words}");
        replicas[id] = replica(dir, u16::try_from(id).expect("small"));
        votes(dir, id, 2);
    }
    replicas[0].signal("KILL");
    replicas[0].ends();
    good(dir, &["kv", "put", "key", "of the readmitted"]);

    // One that was admitted and does not run stays in the way of others, however much is ordered.
    replicas[0] = replica(dir, 0);
    votes(dir, 0, 1);
    replicas[2].signal("KILL");
    replicas[2].ends();
    good(dir, &["admin", "readmit", "--replica", "2"]);
    let second = run(dir, &["admin", "readmit", "--replica", "1"]);
    let words = String::from_utf8_lossy(&second.stderr).into_owned();
    assert_eq!(second.status.code(), Some(1), "{words}");
    assert!(
        words.contains("replica 2 was admitted lately") && words.contains("nothing was touched"),
        "{words}"
    );
}

#[test]
fn a_replica_whose_whole_directory_is_lost_is_not_sent_to_make_another_group() {
    let scratch = Scratch::new("admin-lost");
    let dir = scratch.0.as_path();
    init_with(dir, &[]);
    let mut replicas = all(dir);
    good(dir, &["kv", "put", "key", "value"]);
    replicas[2].signal("KILL");
    replicas[2].ends();
    let secret = std::fs::read(dir.join("replica-2/secret.toml")).expect("it is there");
    std::fs::remove_dir_all(dir.join("replica-2")).expect("it was there");
    let refused = run(dir, &["admin", "readmit", "--replica", "2"]);
    let words = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert_eq!(refused.status.code(), Some(2), "{words}");
    assert!(words.contains("troth admin replace --replica 2") && !words.contains("init"), "{words}");

    // What it says first: a copy of the one file is enough.
    let place = dir.join("replica-2");
    std::fs::DirBuilder::new().mode(0o700).create(&place).expect("our own directory");
    std::fs::write(place.join("secret.toml"), secret).expect("our own directory");
    std::fs::set_permissions(place.join("secret.toml"), PermissionsExt::from_mode(0o600))
        .expect("our own file");
    good(dir, &["admin", "readmit", "--replica", "2"]);
    replicas[2] = replica(dir, 2);
    votes(dir, 2, 2);
}
