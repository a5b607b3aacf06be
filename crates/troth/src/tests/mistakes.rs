//! What is said to somebody who mistyped a command.

use crate::cli::Cli;
use crate::mistakes::explain;
use clap::Parser;

fn said(line: &[&str]) -> String {
    let words: Vec<String> = ["troth"].iter().chain(line).map(|word| (*word).to_owned()).collect();
    let error = Cli::try_parse_from(&words).expect_err("it is no command");
    explain(error, &words).to_string()
}

#[test]
fn a_mistyped_word_is_recognised() {
    for (line, meant) in [
        ("kv ptu key value", "'put'"),
        ("kv gte key", "'get'"),
        ("kv delte key", "'delete'"),
        ("kv set key value", "'put'"),
        ("kv rm key", "'delete'"),
        ("kv --dir kv ls", "'scan'"),
        ("statsu", "'status'"),
        ("adm show", "'admin'"),
        ("--log debug ini", "'init'"),
        ("admin readmitt --replica 1", "'readmit'"),
        ("get key", "'troth kv get'"),
        ("pt key value", "'troth kv put'"),
        ("replace --replica 1", "'troth admin replace'"),
        ("kv --dri elsewhere get key", "'--dir'"),
        ("kv cas key value --versoin 1", "'--version'"),
        ("status --jsno", "'--json'"),
    ] {
        let said = said(&line.split(' ').collect::<Vec<_>>());
        let tips: Vec<&str> = said.lines().filter(|line| line.contains("tip:")).collect();
        assert_eq!(tips.len(), 1, "{line}: {said}");
        assert!(tips[0].contains(meant) && tips[0].matches('\'').count() == 2, "{line}: {said}");
    }
}

#[test]
fn what_is_no_number_is_said_to_be_none() {
    for (line, value) in
        [(&["kv", "--wait", "x", "get", "key"][..], "'x'"), (&["kv", "--wait", "", "get", "key"], "''")]
    {
        let said = said(line);
        assert!(said.contains(&format!("{value} is no whole number, which '--wait")), "{said}");
        assert!(!said.contains("digit") && said.contains("--help"), "{said}");
    }
    let far = said(&["kv", "--wait", "99999999999", "get", "key"]);
    assert!(far.contains("is not in"), "{far}");
}

#[test]
fn nothing_is_guessed_from_what_resembles_nothing() {
    for line in [&["frobnicate"][..], &["kv", "x"], &["kv", "get", "key", "--frobnicate"]] {
        let said = said(line);
        assert!(!said.contains("tip: there") && !said.contains("similar"), "{said}");
    }
}

#[test]
fn values_with_spaces_are_to_be_quoted() {
    let put = said(&["kv", "put", "greeting", "good", "evening", "all"]);
    assert!(put.contains("in quotes: 'good evening all'"), "{put}");
    let put = said(&["kv", "put", "greeting", "it's", "late", "--wait", "5"]);
    assert!(put.contains("in quotes: 'it'\\''s late'"), "{put}");
    let put = said(&["kv", "put", "key", "value", "--wait", "5", "more"]);
    assert!(put.contains("in quotes\n"), "{put}");
    let dir = said(&["init", "--dir", "my", "cluster"]);
    assert!(dir.contains("in quotes"), "{dir}");
    let status = said(&["status", "now"]);
    assert!(!status.contains("in quotes"), "{status}");
    let minus = said(&["kv", "put", "key", "-5"]);
    assert!(!minus.contains("in quotes") && minus.contains("-- -5"), "{minus}");
}

#[test]
fn a_value_that_follows_with_an_equals_sign_is_told_so() {
    let up = said(&["up", "--zookeeper", "127.0.0.1:22184"]);
    assert!(up.contains("tip: its value follows with '=': --zookeeper=127.0.0.1:22184"), "{up}");
    assert!(!up.contains("in quotes"), "{up}");
}

#[test]
fn what_a_key_must_be_like_is_asked_for_by_both_its_names() {
    let said = said(&["kv", "cas", "key", "value"]);
    assert!(said.contains("--version <VERSION>|--absent"), "{said}");
    let both = ["troth", "kv", "cas", "key", "value", "--absent", "--version", "1"];
    assert!(Cli::try_parse_from(both).is_err());
    for one in [&both[..6], &["troth", "kv", "cas", "key", "value", "--version", "1"]] {
        assert!(Cli::try_parse_from(one).is_ok(), "{one:?}");
    }
}
