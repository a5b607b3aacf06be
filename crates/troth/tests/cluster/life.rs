//! A cluster's life: it serves, survives its primary, and leaves nothing behind.

use crate::support::{
    Running, Scratch, good, init_with, lives, pid, run, signal, status, troth, until, up, up_printing,
};
use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::Stdio;

#[test]
fn it_serves_survives_its_primary_and_leaves_nothing_behind() {
    let scratch = Scratch::new("life");
    let dir = scratch.0.as_path();
    let mut cluster = up(dir, &[]);

    assert_eq!(good(dir, &["kv", "put", "greeting", "hello"]), "version 1\n");
    assert_eq!(good(dir, &["kv", "get", "greeting"]), "hello\n");
    assert_eq!(run(dir, &["kv", "get", "nothing"]).status.code(), Some(1));
    assert_eq!(run(dir, &["kv", "cas", "greeting", "x", "--version", "9"]).status.code(), Some(1));

    let log = dir.join("watch.log");
    let file = std::fs::File::create(&log).expect("our own directory");
    let errors = file.try_clone().expect("one file");
    let mut watch = Running(
        troth(dir)
            .args(["kv", "watch", "greeting", "--count", "2"])
            .stdout(Stdio::from(file))
            .stderr(Stdio::from(errors))
            .spawn()
            .expect("the command starts"),
    );
    let said = |what: &str| std::fs::read_to_string(&log).is_ok_and(|text| text.contains(what)).then_some(());
    until("the watch stands", || said("Watching"));
    good(dir, &["kv", "put", "greeting", "good evening"]);
    until("the watch tells of the first change", || said("greeting = good evening (version 2)"));

    let before = status(dir);
    let pids: Vec<u32> = before.iter().map(pid).collect();
    assert!(before.iter().all(|replica| replica["view"] == 0), "{before:?}");
    signal(pids[0], "KILL");

    good(dir, &["kv", "put", "greeting", "still here"]);
    assert_eq!(
        good(dir, &["kv", "get", "greeting", "--wait", "20"]),
        "still here\n",
        "options may stand last"
    );
    assert_eq!(watch.ends(), Some(0), "the watch saw its second change through the view change");
    said("greeting = still here (version 3)").expect("the watch told of the second change");
    let view = until("the others work in a new view", || {
        let now = status(dir);
        let moved =
            now[1..].iter().all(|replica| replica["view"].as_u64() > Some(0) && replica["active"] == true);
        moved.then(|| now[1]["view"].as_u64().expect("a view"))
    });
    let dead = |id: u16| {
        let log = std::fs::read_to_string(dir.join(format!("replica-{id}/replica.log"))).expect("it logs");
        log.lines().any(|line| line.contains("suspects a replica that is not connected"))
    };
    assert!(dead(1) || dead(2), "who suspected the primary knew that it was gone");
    let table = good(dir, &["status"]);
    assert!(table.contains("unreachable"), "{table}");
    assert!(table.contains(&format!("  {view}  ")), "{table}");

    cluster.signal("TERM");
    assert_eq!(cluster.ends(), Some(0));
    for pid in pids {
        until("the replicas are gone", || (!lives(pid)).then_some(()));
    }
    assert!(!dir.join("cluster.toml").exists(), "a cluster that `troth up` made goes with it");
}

#[test]
fn what_a_replica_said_is_kept_where_it_ended_by_itself() {
    let scratch = Scratch::new("logs");
    let dir = scratch.0.as_path();
    let left = |of: &Path| -> Vec<String> {
        let entries = std::fs::read_dir(of).into_iter().flatten();
        let mut names: Vec<String> =
            entries.map(|entry| entry.expect("readable").file_name().into_string().expect("text")).collect();
        names.sort();
        names
    };
    let (mut cluster, lines) = up_printing(dir, &[]);
    signal(pid(&status(dir)[1]), "KILL");
    let mut lines = lines.map(|line| line.expect("text"));
    let log = dir.join("replica-1/replica.log");
    let named = log.to_str().expect("text");
    assert!(lines.any(|line| line.contains("Replica 1 has ended") && line.contains(named)));
    cluster.signal("INT");
    assert!(lines.any(|line| line.contains("kept") && line.contains(named)), "it says where the logs are");
    assert_eq!(cluster.ends(), Some(0));
    assert!(log.exists());
    assert_eq!(left(dir), ["made-by-troth-up", "replica-0", "replica-1", "replica-2"]);
    assert_eq!(left(&dir.join("replica-1")), ["replica.log"], "no key is left");

    // Nor are they in the way of the next one, which leaves nothing where all went well.
    let mut cluster = up(dir, &[]);
    cluster.signal("INT");
    assert_eq!(cluster.ends(), Some(0));
    assert!(!dir.exists(), "{:?}", left(dir));

    // One that ends before the cluster serves fails it; its log is named and there.
    let mut command = troth(dir);
    let mut child =
        command.arg("up").stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the command starts");
    let (out, mut err) = (child.stdout.take().expect("piped"), child.stderr.take().expect("piped"));
    let mut cluster = Running(child);
    let children = format!("/proc/{0}/task/{0}/children", cluster.0.id());
    let first = until("the first replica is there", || {
        let children = std::fs::read_to_string(&children).ok()?;
        children.split_whitespace().next()?.parse::<u32>().ok()
    });
    signal(first, "KILL");
    let served = BufReader::new(out).lines().any(|line| line.expect("text").contains("has ended"));
    if served {
        // The machine was so busy that the signal came late.
        cluster.signal("INT");
    }
    let mut words = String::new();
    err.read_to_string(&mut words).expect("text");
    assert_eq!(cluster.ends(), Some(if served { 0 } else { 5 }), "{words}");
    let log = dir.join("replica-0/replica.log");
    assert!(log.exists() && (served || words.contains(log.to_str().expect("text"))), "{words}");
    assert!(!dir.join("clients").exists() && !dir.join("replica-0/secret.toml").exists());
}

#[test]
fn up_does_not_speak_for_replicas_that_others_started() {
    let scratch = Scratch::new("by-hand");
    let dir = scratch.0.as_path();
    init_with(dir, &[]);
    let (_cluster, lines) = up_printing(dir, &[]);
    let mut lines = lines.map(|line| line.expect("text"));
    let mut said_of = |id: u16| {
        let ended = format!("Replica {id} has ended");
        let first = lines.by_ref().find(|line| line.contains(&ended)).expect("it says so");
        first + " " + &lines.next().expect("and what that means")
    };
    let named = dir.to_str().expect("text");
    signal(pid(&status(dir)[1]), "KILL");
    let said = said_of(1);
    assert!(said.contains(&format!("`troth replica --dir {named} --id 1` starts it again.")), "{said}");
    let by_hand = crate::killed::replica(dir, 1);
    crate::pbft::serves(dir, 1, &by_hand, 2);
    signal(pid(&status(dir)[2]), "KILL");
    let said = said_of(2);
    assert!(said.contains("1 still runs; of the group 2 answer, and it needs 2. "), "{said}");
    assert!(said.contains(&format!("`troth status --dir {named}` shows who serves")), "{said}");
    good(dir, &["kv", "put", "key", "it serves"]);
}

#[test]
fn up_goes_on_without_a_replica_that_must_not_start() {
    let scratch = Scratch::new("up-without");
    let dir = scratch.0.as_path();
    init_with(dir, &[]);
    let lose = |id: u16| {
        std::fs::remove_dir_all(dir.join(format!("replica-{id}/data"))).expect("our own directory");
    };
    let mut cluster = up(dir, &[]);
    good(dir, &["kv", "put", "key", "value"]);
    cluster.signal("TERM");
    assert_eq!(cluster.ends(), Some(0));
    lose(1);
    let (mut cluster, lines) = up_printing(dir, &[]);
    assert!(good(dir, &["kv", "get", "key"]).contains("value"));
    let mut lines = lines.map(|line| line.expect("text"));
    let said = lines.by_ref().find(|line| line.contains("Replica 1 does not start")).expect("it says so");
    assert!(said.contains("the others go on without it:"), "{said}");
    assert!(lines.by_ref().any(|line| line.contains("troth admin readmit")));
    // Once none of its own runs there is nothing to stay for.
    for id in [0, 2] {
        signal(pid(&status(dir)[id]), "KILL");
    }
    assert_eq!(cluster.ends(), Some(5));
    // One more is one too many, and the first that is found says why.
    lose(2);
    let refused = run(dir, &["up"]);
    let words = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert_eq!(refused.status.code(), Some(3), "{words}");
    assert!(words.contains("ended at once") && words.contains("troth admin readmit"), "{words}");
}

#[test]
fn replicas_end_when_the_process_that_started_them_is_killed() {
    let scratch = Scratch::new("orphans");
    let cluster = up(&scratch.0, &[]);
    let pids: Vec<u32> = status(&scratch.0).iter().map(pid).collect();
    cluster.signal("KILL");
    for pid in pids {
        until("the replicas are gone", || (!lives(pid)).then_some(()));
    }
}

#[test]
fn strangers_change_nothing() {
    let scratch = Scratch::new("strangers");
    let dir = scratch.0.as_path();
    let _cluster = up(dir, &[]);
    let text = std::fs::read_to_string(dir.join("cluster.toml")).expect("the cluster's file");
    let addresses: Vec<&str> = text
        .lines()
        .filter(|line| line.contains("127.0.0.1"))
        .filter_map(|line| line.split('"').nth(1))
        .collect();
    assert_eq!(addresses.len(), 6, "three to talk to the group, three for /status");
    // Rubbish, half a handshake, an endless line, silence: a few of each at every door.
    let openings: [&[u8]; 5] =
        [&[0xff; 300], &[1, 96, 0, 7, 7], &[b'G'; 20_000], b"GET / HTTP/1.1\r\n\r\n", b""];
    let mut held = Vec::new();
    for address in &addresses {
        for opening in openings {
            for _ in 0..5 {
                let mut stream = std::net::TcpStream::connect(address).expect("somebody listens");
                // The other end may hang up in the middle of it.
                let _ = stream.write_all(opening);
                held.push(stream);
            }
        }
    }
    assert_eq!(good(dir, &["kv", "put", "greeting", "hello"]), "version 1\n");
    assert_eq!(good(dir, &["kv", "get", "greeting"]), "hello\n");
    until("every replica counts what it refused", || {
        let refused =
            |replica: &serde_json::Value| replica["counters"]["connections_refused"].as_u64() >= Some(15);
        status(dir).iter().all(refused).then_some(())
    });
    drop(held);
    assert!(status(dir).iter().all(|replica| replica["suspicions"] == 0));
}

#[test]
fn it_says_what_will_be_left_when_it_is_stopped() {
    let greets = |dir: &Path| {
        let mut child = troth(dir);
        child.arg("up").stdout(Stdio::piped()).stderr(Stdio::null());
        let mut cluster = Running(child.spawn().expect("the command starts"));
        let mut greeting = String::new();
        let out = cluster.0.stdout.as_mut().expect("piped");
        BufReader::new(out).read_line(&mut greeting).expect("it greets");
        (cluster, greeting)
    };
    let scratch = Scratch::new("greeting");
    let (_cluster, greeting) = greets(&scratch.0.join("own"));
    assert!(greeting.contains("gone then"), "it keeps nothing: {greeting}");

    let kept = scratch.0.join("kept");
    init_with(&kept, &[]);
    let (mut cluster, greeting) = greets(&kept);
    assert!(greeting.contains("stays in") && !greeting.contains("gone"), "{greeting}");
    good(&kept, &["kv", "put", "key", "value"]);
    cluster.signal("INT");
    assert_eq!(cluster.ends(), Some(0));
    let _again = up(&kept, &[]);
    assert_eq!(good(&kept, &["kv", "get", "key"]), "value\n", "it said the truth");
}
