use super::compare::{blocks, difference, without_identifiers};
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
        ("server.1=127.0.0.1:2888:3888:participant", "server.…"),
    ] {
        assert_eq!(without_identifiers(line), left);
    }
}

#[test]
fn output_is_cut_at_the_marks() {
    let said = "Connecting\n======\nb\na\n======\n======\n";
    let cut = blocks(said, &["one", "two", "three"]).expect("three marks");
    assert_eq!(cut, [vec!["Connecting".to_owned()], vec!["a".to_owned(), "b".to_owned()], Vec::new()]);
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
