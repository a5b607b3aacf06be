//! Options, tables and the reading of test results.

use crate::check::test_counts;
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
fn tables_line_up() {
    let rows = [vec!["a".to_string(), "bb".to_string()], vec!["ccc".to_string(), "d".to_string()]];
    assert_eq!(table(&rows), "a    bb\n-------\nccc  d\n");
    assert_eq!(shorten("abcdef", 4), "abc…");
}
