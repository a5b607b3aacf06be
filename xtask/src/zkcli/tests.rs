use super::compare::{blocks, difference, events, without_identifiers};
use super::script;

#[test]
fn identifiers_and_times_are_left_out_and_nothing_else() {
    for (line, left) in [
        ("cZxid = 0x1f", "cZxid = …"),
        ("mtime = Mon Nov 23 14:00:00 UTC 2026", "mtime = …"),
        ("ephemeralOwner = 0x100003d7a2c0001", "ephemeralOwner = 0x…"),
        ("ephemeralOwner = 0x0", "ephemeralOwner = 0x0"),
        ("dataVersion = 3", "dataVersion = 3"),
        (
            "WatchedEvent state:SyncConnected type:NodeCreated path:/w zxid: 12",
            "WatchedEvent state:SyncConnected type:NodeCreated path:/w zxid: …",
        ),
        ("Node does not exist: /none", "Node does not exist: /none"),
        ("server.1=127.0.0.1:2888:3888:participant", ""),
        ("WatchedEvent state:SyncConnected type:None path:null zxid: -1", ""),
        (
            "WatchedEvent state:Disconnected type:None path:null zxid: -1",
            "WatchedEvent state:Disconnected type:None path:null zxid: …",
        ),
    ] {
        assert_eq!(without_identifiers(line), left);
    }
}

#[test]
fn output_is_cut_at_the_marks() {
    let said = "Welcome\n======\nb\na\n======\n======\n";
    let cut = blocks(said, &["one", "two", "three"]).expect("three marks");
    assert_eq!(cut, [vec!["Welcome".to_owned()], vec!["a".to_owned(), "b".to_owned()], Vec::new()]);
    assert!(blocks(said, &["one"]).is_err(), "more marks than commands");
}

#[test]
fn what_only_one_says_is_a_difference() {
    let block = |lines: &[&str]| lines.iter().map(|line| (*line).to_owned()).collect::<Vec<_>>();
    assert_eq!(difference(&block(&["a"]), &block(&["a"])), None);
    assert!(difference(&block(&["a"]), &block(&["b"])).is_some_and(|how| how.contains("Troth alone")));
    assert!(difference(&block(&["a", "a"]), &block(&["a"])).is_some(), "as often, too");
}

#[test]
fn the_script_has_every_command() {
    let all: Vec<&str> = script().iter().flat_map(|session| session.commands.clone()).collect();
    for command in [
        "addWatch",
        "addauth",
        "close",
        "config",
        "connect",
        "create",
        "delete",
        "deleteall",
        "delquota",
        "get",
        "getAcl",
        "getAllChildrenNumber",
        "getEphemerals",
        "history",
        "listquota",
        "ls",
        "printwatches",
        "quit",
        "reconfig",
        "redo",
        "removewatches",
        "set",
        "setAcl",
        "setquota",
        "stat",
        "sync",
        "version",
        "whoami",
    ] {
        assert!(all.iter().any(|line| line.split(' ').next() == Some(command)), "{command}");
    }
}

#[test]
fn events_are_compared_apart_and_as_often_as_they_come() {
    let told = "WatchedEvent state:SyncConnected type:NodeDeleted path:/w zxid: 3";
    let said = |at: usize| {
        let lines = ["a\n", "======\n", "b\n", "======\n"];
        (0..4)
            .map(|line| if line == at { format!("{told}\n{}", lines[line]) } else { lines[line].to_owned() })
            .collect()
    };
    let cut = |said: String| {
        let mut cut = blocks(&said, &["one", "two"]).expect("two marks");
        (events(&mut cut), cut)
    };
    let (early, late): (String, String) = (said(0), said(2));
    assert_eq!(cut(early), cut(late.clone()), "in whichever command's output it is");
    let never = cut(late.replace(&format!("{told}\n"), ""));
    assert!(difference(&cut(late).0, &never.0).is_some());
}
