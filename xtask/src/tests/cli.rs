//! Options, tables and the reading of test results.

use crate::check::{failed_tests_said, test_counts};
use crate::cli::{Arguments, shorten, table};

fn parse(words: &[&str]) -> Result<Arguments, String> {
    let words: Vec<String> = words.iter().map(|word| (*word).to_string()).collect();
    Arguments::parse(&crate::check::COMMAND, &words)
}

#[test]
fn options_are_parsed() {
    let arguments = parse(&["--json", "--only", "format,tests", "--only=paper", "--seeds", "9"]).unwrap();
    assert!(arguments.flag("--json"));
    assert_eq!(arguments.all("--only"), ["format", "tests", "paper"]);
    assert_eq!(arguments.number("--seeds", 1), Ok(9));
    assert_eq!(parse(&[]).unwrap().number("--seeds", 1), Ok(1));
}

#[test]
fn wrong_usage_is_refused() {
    for words in [&["--what"][..], &["--only"], &["--json=yes"], &["word"]] {
        assert!(parse(words).is_err(), "{words:?}");
    }
    assert!(parse(&["--seeds", "many"]).unwrap().number("--seeds", 1).is_err());
}

#[test]
fn test_results_add_up() {
    let lines = [
        "test a::b ... ok",
        "test a::c ... FAILED",
        "test result: FAILED. 12 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s",
        "test result: ok. 30 passed; 0 failed; 2 ignored; 0 measured; 0 filtered out; finished in 0.00s",
    ];
    let counts = test_counts(&lines.map(str::to_string));
    assert_eq!((counts.passed, counts.failed, counts.ignored), (42, 1, 2));
    assert_eq!(counts.names, ["a::c"]);
}

#[test]
fn what_a_failed_test_said_is_told_apart_from_what_came_after_it() {
    let said = ["---- a::c stdout ----", "", "panicked at x.rs:1:1:", "left != right"];
    let mut lines = vec!["test a::c ... FAILED", "failures:", ""];
    lines.extend(said);
    lines.extend(["failures:", "    a::c", "test d::e ... ok", "---- f::g stdout ----"]);
    lines.extend(["1"; 50]);
    let lines: Vec<String> = lines.into_iter().map(str::to_string).collect();
    let shown = failed_tests_said(&lines);
    assert_eq!(shown[..4], said);
    assert_eq!((shown[4], shown.len()), ("---- f::g stdout ----", 4 + 12));
}

#[test]
fn tables_line_up() {
    let rows = [vec!["a".to_string(), "bb".to_string()], vec!["ccc".to_string(), "d".to_string()]];
    assert_eq!(table(&rows), "a    bb\n-------\nccc  d\n");
    assert_eq!(shorten("abcdef", 4), "abc…");
}

#[test]
fn the_benchmark_of_the_store_is_its_gates_and_takes_what_they_take() {
    let refused = |words: &[&str]| {
        let words: Vec<String> = words.iter().map(|word| (*word).to_string()).collect();
        let command = &crate::bench::COMMAND;
        let why = (command.run)(&Arguments::parse(command, &words).expect("the option is known"));
        why.err().expect("nothing is measured")
    };
    for words in [&["kv", "--f", "2"][..], &["gates", "--f", "2"], &["gates", "kv", "--f=2"]] {
        assert!(refused(words).contains("no '--f'"), "{words:?}");
    }
    assert!(refused(&["store"]).contains("null, kv, large"));
}
