//! What a replica refuses, with the exit code and the words that help.

use crate::support::{
    Running, Scratch, good, init, init_with, pid, run, signal, status, troth, until, up, up_printing,
};
use std::io::Read;
use std::path::Path;
use std::process::Stdio;

fn replica(dir: &Path, id: &str) -> Running {
    let child = troth(dir)
        .args(["replica", "--id", id])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("the command starts");
    Running(child)
}

#[test]
fn a_replica_runs_once() {
    let scratch = Scratch::new("once");
    let dir = scratch.0.as_path();
    init_with(dir, &["--durability", "memory"]);
    let mut first = replica(dir, "0");
    until("replica 0 serves", || status(dir)[0]["pid"].as_u64());
    first.signal("TERM");
    assert_eq!(first.ends(), Some(0), "a clean shutdown is a success");

    let second = run(dir, &["replica", "--id", "0"]);
    assert_eq!(second.status.code(), Some(3));
    let words = String::from_utf8_lossy(&second.stderr).into_owned();
    assert!(words.contains("readmit") && words.contains("refuses-to-start"), "{words}");
}

#[test]
fn a_broken_configuration_is_named_by_file_and_line() {
    let scratch = Scratch::new("broken");
    let dir = scratch.0.as_path();
    init(dir);
    let file = dir.join("cluster.toml");
    let text = std::fs::read_to_string(&file).expect("just made");
    std::fs::write(&file, text.replacen("service = \"kv\"", "servce = \"kv\"", 1)).expect("our own file");
    let output = run(dir, &["replica", "--id", "0"]);
    assert_eq!(output.status.code(), Some(2));
    let words = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        words.contains("cluster.toml:5:1: unknown field `servce`") && words.contains("mend: "),
        "{words}"
    );
}

#[test]
fn where_a_cluster_is_missed_nothing_is_advised_that_would_refuse() {
    let scratch = Scratch::new("missed");
    let dir = scratch.0.as_path();
    std::fs::create_dir_all(dir).expect("a scratch directory");
    let commands: [&[&str]; 4] =
        [&["status"], &["doctor"], &["kv", "get", "a"], &["gateway", "zookeeper", "--listen", "127.0.0.1:0"]];
    for (stands, advises_up) in [(None, true), (Some("notes.txt"), false)] {
        if let Some(name) = stands {
            std::fs::write(dir.join(name), "not a cluster").expect("our own directory");
        }
        for command in commands {
            let output = run(dir, command);
            let words = [output.stdout, output.stderr].concat();
            let words = String::from_utf8_lossy(&words).into_owned();
            assert!(!output.status.success() && words.contains("`troth init"), "{command:?}: {words}");
            assert_eq!(words.contains("`troth up"), advises_up, "{command:?}: {words}");
        }
    }
    assert_eq!(run(dir, &["up"]).status.code(), Some(2), "it makes no cluster among other files");
}

#[test]
fn a_group_that_is_not_there_is_not_done() {
    let scratch = Scratch::new("absent");
    let dir = scratch.0.as_path();
    init(dir);
    let status = run(dir, &["status"]);
    assert_eq!(status.status.code(), Some(5));
    let words = String::from_utf8_lossy(&status.stdout).into_owned();
    assert_eq!(words.matches("unreachable").count(), 3, "{words}");
    assert_eq!(run(dir, &["replica", "--id", "3"]).status.code(), Some(2));
}

#[cfg(not(feature = "demo-adversary"))]
#[test]
fn a_build_that_serves_has_no_adversary() {
    let scratch = Scratch::new("honest");
    let dir = scratch.0.as_path();
    assert_eq!(run(dir, &["replica", "--id", "0", "--adversary", "liar"]).status.code(), Some(2));
    let demo = run(dir, &["demo"]);
    assert_eq!(demo.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&demo.stderr).contains("make demo"));
}

#[cfg(not(feature = "faults"))]
#[test]
fn a_build_that_serves_fails_in_no_way_that_it_is_told_to() {
    let scratch = Scratch::new("sound");
    let dir = scratch.0.as_path();
    init(dir);
    for part in ["replica", "trusted"] {
        for words in [["--orders", "cluster.toml"], ["--plant", "skip-log-sync"]] {
            let output = run(dir, &[part, "--id", "0", words[0], words[1]]);
            assert_eq!(output.status.code(), Some(2));
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            assert!(said.contains("unexpected argument"), "{said}");
        }
    }
}

#[test]
fn commands_that_it_suggests_are_for_the_directory_that_was_given() {
    let scratch = Scratch::new("suggested");
    let usual = scratch.0.as_path();
    let other = usual.join("its own");
    init_with(&other, &[]);
    let given = other.to_str().expect("text");
    let expected = format!("--dir '{given}'");
    let kv = run(usual, &["kv", "--dir", given, "--wait", "1", "get", "key"]);
    let words = String::from_utf8_lossy(&kv.stderr).into_owned();
    assert_eq!(kv.status.code(), Some(5), "{words}");
    assert!(words.contains(&format!("`troth status {expected}`")), "{words}");
    // Where the environment names it, commands need not.
    let kv = run(&other, &["kv", "--wait", "1", "get", "key"]);
    let words = String::from_utf8_lossy(&kv.stderr).into_owned();
    assert!(words.contains("`troth status`"), "{words}");

    let empty = usual.join("empty");
    let status = run(usual, &["status", "--dir", empty.to_str().expect("text")]);
    let words = String::from_utf8_lossy(&status.stderr).into_owned();
    assert_eq!(status.status.code(), Some(2), "{words}");
    assert!(words.contains(&format!("`troth init --dir {}`", empty.display())), "{words}");
}

#[test]
fn a_mistyped_command_is_recognised() {
    let scratch = Scratch::new("mistyped");
    let output = run(&scratch.0, &["kv", "ptu", "key", "value"]);
    assert_eq!(output.status.code(), Some(2));
    let words = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(words.contains("tip:") && words.contains("'put'"), "{words}");
}

#[test]
fn one_machine_for_several_replicas_is_named_once() {
    let scratch = Scratch::new("hosts");
    let dir = scratch.0.as_path();
    let refusal = |hosts: &str| {
        let output = run(dir, &["init", "--hosts", hosts]);
        let words = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{hosts}: {words}");
        assert!(!dir.exists(), "{hosts}");
        words
    };
    let words = refusal("127.0.0.1,127.0.0.1,127.0.0.1");
    assert!(words.contains("replicas 0 and 1 and 2") && words.contains("leave --hosts away"), "{words}");
    let words = refusal("one,two,one");
    assert!(words.contains("one for replicas 0 and 2") && words.contains("another machine"), "{words}");
    for hosts in ["localhost:1,localhost:2,localhost:3", "[::1]:1,[::2]:1,[::3]:1", "::1,::2,::3"] {
        let words = refusal(hosts);
        assert!(words.contains("without ports") && words.contains("--base-port"), "{words}");
    }
    let output = run(dir, &["init", "--hosts", "[::1],[::2],[::3]"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn a_file_in_the_place_of_a_directory_is_named() {
    let scratch = Scratch::new("file-for-directory");
    std::fs::create_dir_all(&scratch.0).expect("a directory");
    let file = scratch.0.join("file");
    std::fs::write(&file, b"").expect("a file");
    for dir in [file.clone(), file.join("below")] {
        for command in ["up", "init"] {
            let output = run(&dir, &[command]);
            assert_eq!(output.status.code(), Some(2), "{output:?}");
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            assert!(said.contains(&format!("mend: {} is no directory", file.display())), "{said}");
        }
    }
}

/// What `troth up` says where it refuses to start, having left nothing that was not there before.
fn up_refused(dir: &Path, arguments: &[&str]) -> String {
    let names = |place: &Path| -> Vec<_> {
        let entries = std::fs::read_dir(place).into_iter().flatten();
        let mut names: Vec<_> = entries.map(|entry| entry.expect("readable").file_name()).collect();
        names.sort();
        names
    };
    let before = (dir.exists(), names(dir));
    let mut command = troth(dir);
    command.arg("up").args(arguments).stdout(Stdio::piped()).stderr(Stdio::piped());
    // One that serves after all ends with the test.
    let mut running = Running(command.spawn().expect("the command starts"));
    let code = running.ends();
    let (mut said, mut words) = (String::new(), String::new());
    running.0.stdout.take().expect("piped").read_to_string(&mut said).expect("text");
    running.0.stderr.take().expect("piped").read_to_string(&mut words).expect("text");
    assert_eq!((code, said.as_str()), (Some(2), ""), "{arguments:?}: {words}");
    assert_eq!((dir.exists(), names(dir)), before, "{arguments:?}");
    words
}

#[test]
fn up_starts_no_replica_a_second_time() {
    let scratch = Scratch::new("up-twice");
    let dir = scratch.0.as_path();
    init_with(dir, &[]);
    let named = dir.display();
    let mut replicas: Vec<Running> = ["0", "1"].into_iter().map(|id| replica(dir, id)).collect();
    let answering = || status(dir).iter().filter_map(|replica| replica["pid"].as_u64()).count();
    until("two of them serve", || (answering() == 2).then_some(()));
    let pids = |replicas: &[Running]| {
        let pids: Vec<String> = replicas.iter().map(|replica| replica.0.id().to_string()).collect();
        pids.join(", ")
    };
    let words = up_refused(dir, &[]);
    let run_already = format!("replicas 0 and 1 of {named} run already (processes {})", pids(&replicas));
    assert!(words.contains(&run_already), "{words}");
    assert!(words.contains("start only the others, each with `troth replica --id N`"), "{words}");

    replicas.push(replica(dir, "2"));
    until("all serve", || (answering() == 3).then_some(()));
    let words = up_refused(dir, &[]);
    assert!(words.contains(&format!("replicas 0, 1 and 2 of {named} run already")), "{words}");
    assert!(words.contains("use the group as it is (`troth status` shows it)"), "{words}");
    assert!(words.contains("stop them first (kill "), "{words}");
    assert_eq!(answering(), 3, "they were left as they are");

    drop(replicas);
    let _up = up(dir, &[]);
    let words = up_refused(dir, &[]);
    assert!(words.contains("a `troth up` runs from"), "{words}");
}

#[test]
fn status_shows_no_other_groups_replicas_as_its_own() {
    let (scratch, other) = (Scratch::new("status-own"), Scratch::new("status-other"));
    let port = init(&scratch.0).to_string();
    good(&other.0, &["init", "--base-port", &port]);
    let _other = up(&other.0, &[]);
    good(&other.0, &["status"]);
    let output = run(&scratch.0, &["status"]);
    assert_eq!(output.status.code(), Some(5), "{output:?}");
    let table = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(table.matches("a replica of another group answers there").count(), 3, "{table}");
}

#[test]
fn up_sends_nobody_to_start_again_what_kept_all_in_its_process() {
    let scratch = Scratch::new("up-memory");
    let dir = scratch.0.as_path();
    init_with(dir, &["--durability", "memory"]);
    let _runs = replica(dir, "0");
    until("it serves", || status(dir)[0]["pid"].as_u64().map(drop));
    let words = up_refused(dir, &[]);
    assert!(words.contains("those of the others that have not run yet"), "{words}");
}

#[test]
fn up_leaves_the_files_of_a_replica_that_it_did_not_start() {
    let scratch = Scratch::new("up-outlived");
    let dir = scratch.0.as_path();
    let (mut cluster, mut lines) = up_printing(dir, &["--protocol", "pbft"]);
    signal(pid(&status(dir)[1]), "KILL");
    until("it has noticed", || lines.next()?.ok()?.contains("Replica 1 has ended").then_some(()));
    let by_hand = replica(dir, "1");
    until("it serves", || (status(dir)[1]["pid"].as_u64() == Some(by_hand.0.id().into())).then_some(()));
    cluster.signal("INT");
    assert_eq!(cluster.ends(), Some(0));
    let said: Vec<String> = lines.map_while(Result::ok).collect();
    let left = format!("the files in {} stay. To stop it: kill {}", dir.display(), by_hand.0.id());
    assert!(said.iter().any(|line| line.contains(&left)), "{said:?}");
    let words = up_refused(dir, &["--protocol", "pbft"]);
    assert!(words.contains(&format!("replica 1 of {} runs already", dir.display())), "{words}");

    drop(by_hand);
    let mut cluster = up(dir, &["--protocol", "pbft"]);
    cluster.signal("INT");
    assert_eq!(cluster.ends(), Some(0));
    assert!(!dir.exists(), "nothing keeps it any more");
}

#[test]
fn up_makes_no_cluster_among_other_files_and_leaves_none_of_its_own() {
    let scratch = Scratch::new("up-refused");
    let dir = scratch.0.as_path();
    let deep = dir.join("not").join("there");
    let words = up_refused(&deep, &["--auth", "mac"]);
    assert!(words.contains("--protocol minbft takes no --auth mac"), "{words}");
    assert!(!dir.exists(), "nor are the directories on the way left");

    std::fs::create_dir_all(dir).expect("a directory");
    up_refused(dir, &["--auth", "mac"]);
    for name in ["letter.txt", "photograph", "zebra"] {
        std::fs::write(dir.join(name), "mine").expect("our own file");
    }
    let words = up_refused(dir, &[]);
    let said = format!("{} holds no cluster, but letter.txt and 2 files more", dir.display());
    assert!(words.contains(&said) && words.contains("give another --dir"), "{words}");
}

#[test]
fn up_ends_without_a_trace_of_itself_beside_a_cluster_that_stays() {
    let scratch = Scratch::new("up-traces");
    let dir = scratch.0.as_path();
    init(dir);
    let mut cluster = up(dir, &[]);
    assert!(dir.join("troth-up.lock").exists());
    cluster.signal("INT");
    assert_eq!(cluster.ends(), Some(0));
    assert!(!dir.join("troth-up.lock").exists());
}
