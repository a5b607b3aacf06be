//! Groups that cannot be reached, for a while or at all.

use crate::killed::all;
use crate::pbft::start;
use crate::support::{Running, Scratch, good, init_with, run, troth, until};
use std::process::Stdio;

#[test]
fn it_is_waited_for_as_long_as_was_asked() {
    let scratch = Scratch::new("wait");
    let dir = scratch.0.as_path();
    init_with(dir, &[]);
    let get = |wait: &[&str]| {
        let mut command = troth(dir);
        command.args(["kv", "get", "nothing"]).args(wait);
        Running(command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("the command starts"))
    };
    let (mut long, mut usual) = (get(&["--wait", "60"]), get(&[]));
    assert_eq!(get(&["--wait", "1"]).ends(), Some(5));
    assert!(usual.0.try_wait().expect("our own child").is_none(), "a second is not the usual patience");
    assert_eq!(usual.ends(), Some(5));
    assert!(long.0.try_wait().expect("our own child").is_none(), "who asks for a minute waits longer");
    let _replicas = all(dir);
    assert_eq!(long.ends(), Some(1), "it was answered once there was somebody to answer: no such key");
}

#[test]
fn replicas_that_are_merely_away_are_not_said_to_refuse_anybody() {
    let scratch = Scratch::new("away-plainly");
    let dir = scratch.0.as_path();
    init_with(dir, &["--protocol", "a2m-pbft-e", "--durability", "memory"]);
    let _two = start(dir, &[0, 1]);
    for arguments in [&["kv", "put", "key", "value"][..], &["admin", "show"]] {
        let output = run(dir, &[arguments, &["--wait", "1"]].concat());
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(5), "{said}");
        assert!(said.contains("2 of 4, and 3 are needed; no connection to replicas 2 and 3"), "{said}");
        assert!(!said.contains("although"), "{said}");
    }
}

#[test]
fn a_watch_tells_that_the_group_is_away_and_that_it_is_back() {
    let scratch = Scratch::new("away");
    let dir = scratch.0.as_path();
    init_with(dir, &[]);
    let mut replicas = all(dir);
    let log = dir.join("watch.log");
    let file = std::fs::File::create(&log).expect("our own directory");
    let errors = file.try_clone().expect("one file");
    let mut command = troth(dir);
    command.args(["kv", "watch", "greeting", "--count", "1"]).stdout(file).stderr(errors);
    let mut watch = Running(command.spawn().expect("the command starts"));
    let said = |what: &str| std::fs::read_to_string(&log).expect("our own file").matches(what).count();
    until("the watch stands", || (said("Watching") == 1).then_some(()));
    for _ in 0..2 {
        replicas.pop().expect("there are three").signal("KILL");
    }
    until("it says that the group is away", || (said("cannot be reached") == 1).then_some(()));
    drop(replicas);
    let _replicas = all(dir);
    until("it says that the group is back", || (said("reached again") == 1).then_some(()));
    good(dir, &["kv", "put", "greeting", "hello"]);
    assert_eq!(watch.ends(), Some(0));
    assert_eq!((said("cannot be reached"), said("greeting = hello")), (1, 1));
    assert_eq!(run(dir, &["kv", "get", "greeting"]).status.code(), Some(0));
}
