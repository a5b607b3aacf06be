//! Groups whose trusted components keep attested logs, as a user runs them: A2M-PBFT-E and A2M-PBFT-EA.

use crate::a2m_renewal;
use crate::killed::replica;
use crate::pbft::{catches_up, get, put, refused, serves, start, text};
use crate::pbft_reads;
use crate::support::{Running, Scratch, init_with, made_by, run, signal, status, until, up};
use crate::trusted::{init_processes_with, trusted_processes};
use std::path::Path;

/// The protocols, with the replicas of a group that bears one faulty one.
const BOTH: [(&str, u16); 2] = [("a2m-pbft-e", 4), ("a2m-pbft-ea", 3)];

fn all(replicas: u16) -> Vec<u16> {
    (0..replicas).collect()
}

fn init(dir: &Path, protocol: &str, further: &[&str]) {
    init_with(dir, &[&["--protocol", protocol], further].concat());
}

fn survives(protocol: &str, count: u16, make: impl Fn(&Path)) {
    let scratch = Scratch::new(protocol);
    let dir = scratch.0.as_path();
    make(dir);
    let mut replicas = start(dir, &all(count));
    for number in 0..5 {
        put(dir, &format!("before{number}"), "value");
    }
    let before = status(dir);
    assert!(before.iter().all(|replica| replica["protocol"] == protocol), "{before:?}");

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
    serves(dir, 0, &replicas[0], usize::from(count) - 1);
    catches_up(dir, 0, 1);
    let last = usize::from(count) - 1;
    replicas[last].signal("KILL");
    replicas[last].ends();
    put(dir, "after", "value");

    // All of them at once, twice, as the second start reads what the first one wrote again.
    for life in 0..2 {
        drop(replicas);
        replicas = start(dir, &all(count));
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
fn durable_groups_survive_their_primary_and_the_end_of_all() {
    for (protocol, count) in BOTH {
        survives(protocol, count, |dir| init(dir, protocol, &[]));
    }
}

#[test]
fn groups_with_components_in_processes_of_their_own_do() {
    for (protocol, count) in BOTH {
        survives(protocol, count, |dir| init_processes_with(dir, &["--protocol", protocol]));
    }
}

#[test]
fn a_replica_goes_on_when_its_trusted_process_is_killed() {
    for (protocol, count) in BOTH {
        let scratch = Scratch::new(protocol);
        let dir = scratch.0.as_path();
        init_processes_with(dir, &["--protocol", protocol, "--durability", "interval"]);
        let _replicas = start(dir, &all(count));
        put(dir, "key", "before");
        for victim in [0, count - 1] {
            let killed = trusted_processes(dir)[&victim];
            signal(killed, "KILL");
            put(dir, "key", &format!("killed {victim}"));
            until("it runs again", || {
                trusted_processes(dir).get(&victim).is_some_and(|pid| *pid != killed).then_some(())
            });
            assert_eq!(get(dir, "key"), format!("killed {victim}"));
        }
        catches_up(dir, 0, 1);
        let now = status(dir);
        assert!(now.iter().all(|replica| replica["pid"].is_u64()), "{now:?}");
    }
}

#[test]
fn a_replica_that_missed_windows_fetches_the_state_and_goes_on_from_it() {
    for (protocol, count) in BOTH {
        let scratch = Scratch::new(protocol);
        let dir = scratch.0.as_path();
        init(dir, protocol, &[]);
        let mut replicas = start(dir, &all(count));
        put(dir, "first", "value");
        let last = count - 1;
        replicas[usize::from(last)].signal("KILL");
        replicas[usize::from(last)].ends();
        // One after the other, so each is a batch: beyond the window of 256.
        for number in 0..330 {
            put(dir, &format!("key{}", number % 7), &number.to_string());
        }
        replicas[usize::from(last)] = replica(dir, last);
        serves(dir, last, &replicas[usize::from(last)], usize::from(last));
        catches_up(dir, last, 0);
        let transfers = status(dir)[usize::from(last)]["counters"]["transfers"].as_u64();
        assert!(transfers >= Some(1), "what it missed is stable, and nobody has its batches any more");
        // Its vote and its word are needed.
        replicas[0].signal("KILL");
        replicas[0].ends();
        put(dir, "last", "value");
        assert_eq!(get(dir, "key0"), "329");
        assert_eq!(get(dir, "first"), "value");
    }
}

/// Copies a directory of a component, with whom it belongs to.
fn copy(from: &Path, to: &Path) {
    let _ = std::fs::remove_dir_all(to);
    let copied = std::process::Command::new("cp").arg("-a").args([from, to]).status();
    assert!(copied.is_ok_and(|copied| copied.success()), "cp runs");
}

#[test]
fn a_replica_whose_component_was_set_back_does_not_vote() {
    let scratch = Scratch::new("a2m-set-back");
    let dir = scratch.0.as_path();
    init_processes_with(dir, &["--protocol", "a2m-pbft-ea"]);
    let replicas = start(dir, &[0, 1, 2]);
    put(dir, "key", "early");
    drop(replicas);
    until("their trusted processes end", || trusted_processes(dir).is_empty().then_some(()));
    let (here, aside) = (dir.join("trusted-1"), scratch.0.join("aside"));
    copy(&here, &aside);
    let replicas = start(dir, &[0, 1, 2]);
    for number in 0..10 {
        put(dir, "key", &number.to_string());
    }
    drop(replicas);
    until("their trusted processes end", || trusted_processes(dir).is_empty().then_some(()));
    copy(&aside, &here);
    refused(dir, 1, 3, "has forgotten what it certified");
    let _others = start(dir, &[0, 2]);
    assert_eq!(get(dir, "key"), "9");
}

#[test]
fn what_a_component_is_asked_for_later_is_not_lost_with_the_replicas_log() {
    for (protocol, count) in BOTH {
        let scratch = Scratch::new(protocol);
        let dir = scratch.0.as_path();
        init(dir, protocol, &[]);
        let replicas = start(dir, &all(count));
        put(dir, "key", "value");
        drop(replicas);
        for life in ["data", "logs", "counters"] {
            let (kept, aside) = (dir.join("replica-1").join(life), scratch.0.join("aside"));
            std::fs::rename(&kept, &aside).expect("our own directories");
            if protocol == "a2m-pbft-e" && life != "data" {
                a2m_renewal::must_be_readmitted(dir, 1);
            } else {
                let why = refused(dir, 1, 3, "this version brings back no replica");
                assert!(why.contains("troth restore"), "{life}: {why}");
                assert!(!why.contains("from a backup"), "an older copy is what it must not start on: {why}");
            }
            let _ = std::fs::remove_dir_all(&kept);
            std::fs::rename(&aside, &kept).expect("our own directories");
        }
        let others: Vec<u16> = all(count).into_iter().filter(|id| *id != 1).collect();
        let _others = start(dir, &others);
        assert_eq!(get(dir, "key"), "value");
    }
}

#[test]
fn a_backup_goes_on_under_any_protocol() {
    for (protocol, count) in BOTH {
        let scratch = Scratch::new(protocol);
        let dir = scratch.0.join("old");
        init(&dir, protocol, &["--durability", "memory"]);
        let replicas = start(&dir, &all(count));
        put(&dir, "key", "value");
        let saved = scratch.0.join("saved");
        let from = saved.to_str().expect("plain");
        let said = crate::support::good(&dir, &["backup", "--json", "--to", from]);
        let manifest: serde_json::Value = serde_json::from_str(&said).expect("JSON");
        drop(replicas);
        let digest = manifest["content_digest"].as_str().expect("a digest");
        for (name, further, count) in [("same", &[][..], count), ("other", &["--protocol", "minbft"], 3)] {
            let new = scratch.0.join(name);
            made_by("restore", &new, &[&["--from", from, "--content-digest", digest], further].concat());
            let _replicas: Vec<Running> = (0..count).map(|id| replica(&new, id)).collect();
            assert_eq!(get(&new, "key"), "value", "{name}");
        }
        // Too few votes certify nothing, and neither does one that was changed.
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
}

#[test]
fn groups_that_up_makes_serve_and_say_what_they_are() {
    for (protocol, count) in BOTH {
        let scratch = Scratch::new(protocol);
        let dir = scratch.0.as_path();
        let says = |arguments: &[&str], what: &str| {
            let output = run(dir, arguments);
            let said = text(&output);
            assert_eq!(output.status.code(), Some(2), "{arguments:?}: {said}");
            assert!(said.contains(what), "{arguments:?}: {said}");
        };
        says(&["init", "--protocol", protocol, "--trusted", "hmac"], "check what components attest");
        says(&["init", "--protocol", protocol, "--auth", "mac"], "leave --auth away");
        let mut cluster = up(dir, &["--protocol", protocol]);
        put(dir, "key", "value");
        assert_eq!(get(dir, "key"), "value");
        assert_eq!(status(dir).len(), usize::from(count));
        says(&["admin", "rekey", "--replica", "1"], "changes neither their hosts nor their keys");
        if protocol == "a2m-pbft-ea" {
            says(&["admin", "readmit", "--replica", "1"], "cannot begin a new epoch");
        }
        let doctor = run(dir, &["doctor"]);
        let said = text(&doctor);
        assert!(said.contains(&format!("{count} of {count} replicas answer")), "{said}");
        cluster.signal("TERM");
        assert_eq!(cluster.ends(), Some(0));
    }
}

#[test]
fn reads_are_answered_in_one_round_trip_and_not_ordered() {
    for (protocol, count) in BOTH {
        let scratch = Scratch::new(&format!("{protocol}-reads"));
        let dir = scratch.0.as_path();
        init_processes_with(dir, &["--protocol", protocol, "--durability", "interval"]);
        let mut replicas = start(dir, &all(count));
        pbft_reads::runtime().block_on(async {
            let client = pbft_reads::session(dir).await;
            for number in 0..20 {
                pbft_reads::put(&client, "key", &number.to_string()).await;
                let read = pbft_reads::get(&client, "key").await;
                assert_eq!(read, number.to_string(), "right after it was written");
            }
            let before = pbft_reads::executed(dir);
            for _ in 0..50 {
                assert_eq!(pbft_reads::get(&client, "key").await, "19");
            }
            assert!(pbft_reads::executed(dir) <= before + 2, "{protocol}: reads of what stands still");
            // A quorum of answers is enough, of whoever they are.
            let last = usize::from(count) - 1;
            replicas[last].signal("KILL");
            replicas[last].ends();
            tokio::time::sleep(std::time::Duration::from_millis(300)).await;
            for number in 0..10 {
                assert_eq!(pbft_reads::get(&client, "key").await, "19");
                pbft_reads::put(&client, "other", &number.to_string()).await;
                assert_eq!(pbft_reads::get(&client, "other").await, number.to_string());
            }
            // One that comes back proves what it knows, and no more.
            replicas[last] = replica(dir, count - 1);
            serves(dir, count - 1, &replicas[last], last);
            for number in 0..20 {
                pbft_reads::put(&client, "key", &number.to_string()).await;
                assert_eq!(pbft_reads::get(&client, "key").await, number.to_string());
            }
            let before = pbft_reads::executed(dir);
            for _ in 0..20 {
                assert_eq!(pbft_reads::get(&client, "key").await, "19");
            }
            assert!(pbft_reads::executed(dir) <= before + 2, "{protocol}: after its return");
            client.close().await;
        });
    }
}

/// Starts a group with a replica that lies.
#[cfg(feature = "demo-adversary")]
fn start_with_liar(dir: &Path, count: u16, liar: u16) -> Vec<Running> {
    let started = all(count).into_iter().map(|id| {
        let mut command = crate::support::troth(dir);
        command.args(["replica", "--id", &id.to_string()]);
        if id == liar {
            command.args(["--adversary", "liar"]);
        }
        let nowhere = std::process::Stdio::null;
        Running(command.stdout(nowhere()).stderr(nowhere()).spawn().expect("the command starts"))
    });
    let replicas = started.collect();
    until("all serve", || status(dir).iter().all(|replica| replica["pid"].is_u64()).then_some(()));
    replicas
}

#[cfg(feature = "demo-adversary")]
#[test]
fn a_liar_changes_no_read_and_does_not_have_all_of_them_ordered() {
    for (protocol, count) in BOTH {
        let scratch = Scratch::new(&format!("{protocol}-liar-reads"));
        let dir = scratch.0.as_path();
        init(dir, protocol, &["--durability", "memory"]);
        let _replicas = start_with_liar(dir, count, count - 1);
        pbft_reads::runtime().block_on(async {
            let client = pbft_reads::session(dir).await;
            for number in 0..20 {
                pbft_reads::put(&client, "key", &number.to_string()).await;
                assert_eq!(pbft_reads::get(&client, "key").await, number.to_string(), "{protocol}");
            }
            let before = pbft_reads::executed(dir);
            for _ in 0..60 {
                assert_eq!(pbft_reads::get(&client, "key").await, "19", "{protocol}");
            }
            // Those whose results were to come from the liar are.
            let ordered = pbft_reads::executed(dir) - before;
            assert!(ordered <= 30, "{protocol}: {ordered} of 60 reads were ordered");
            client.close().await;
        });
    }
}

#[cfg(feature = "demo-adversary")]
#[test]
fn a_liar_changes_nothing_as_backup_or_as_primary() {
    for (protocol, count) in BOTH {
        for liar in [count - 1, 0] {
            let scratch = Scratch::new(&format!("{protocol}-liar-{liar}"));
            let dir = scratch.0.as_path();
            init(dir, protocol, &["--durability", "memory"]);
            let _replicas = start_with_liar(dir, count, liar);
            for number in 0..20 {
                put(dir, &format!("key{number}"), &format!("value {number}"));
            }
            for number in 0..20 {
                assert_eq!(get(dir, &format!("key{number}")), format!("value {number}"), "liar {liar}");
            }
            let honest = (0..).zip(status(dir)).filter(|(id, _)| *id != liar);
            for (id, replica) in honest {
                let accused = replica["accused"].as_array().expect("a list");
                assert!(
                    accused.iter().all(|accused| accused.as_u64() == Some(liar.into())),
                    "{id}: {accused:?}"
                );
            }
        }
    }
}
