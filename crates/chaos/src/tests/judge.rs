//! The judge on histories written by hand. Where Go is missing these tests say so and show nothing.

use super::{done, get, open, put};
use crate::history::{self, Outcome, Record, Verb};
use crate::judge::{Verdict, judge};
use crate::stale::stale;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::time::Duration;

/// The built judge; none where Go is missing. Built once for all tests of this process.
fn program() -> Option<&'static Path> {
    static BUILT: OnceLock<Option<PathBuf>> = OnceLock::new();
    let build = || {
        if Command::new("go").arg("version").output().is_err() {
            eprintln!("SKIPPED: the judge is not tested, because `go` is missing; install Go 1.26 or newer");
            return None;
        }
        // Beside the test program, where the next run finds it and cargo cleans it.
        let program = std::env::current_exe().unwrap().with_file_name("chaos-judge");
        let built = Command::new("go")
            .current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("judge"))
            .args(["build", "-mod=readonly", "-buildvcs=false", "-o"])
            .arg(&program)
            .arg(".")
            .output()
            .unwrap();
        assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
        Some(program)
    };
    BUILT.get_or_init(build).as_deref()
}

fn verdict_on(text: &str, within: Duration) -> Option<Verdict> {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("history.jsonl");
    std::fs::write(&file, text).unwrap();
    Some(judge(program()?, &file, within).unwrap())
}

fn text(records: &[Record]) -> String {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("history.jsonl");
    history::write(records, &file).unwrap();
    std::fs::read_to_string(file).unwrap()
}

#[track_caller]
fn expect(expected: &str, records: &[Record]) {
    if let Some(found) = verdict_on(&text(records), Duration::from_secs(60)) {
        assert_eq!(found.verdict, expected, "{found:?}\n{records:#?}");
    }
}

#[track_caller]
fn good(records: &[Record]) {
    expect("linearizable", records);
}

#[track_caller]
fn wrong(records: &[Record]) {
    expect("not linearizable", records);
}

fn absent(time: (u64, u64)) -> Record {
    done(Verb::Get, "", Outcome::Absent, None, time)
}

fn swap(expected: Option<u64>, value: &str, version: u64, time: (u64, u64)) -> Record {
    Record { expected, ..done(Verb::Cas, value, Outcome::Ok, Some(version), time) }
}

fn refused(expected: Option<u64>, current: Option<u64>, time: (u64, u64)) -> Record {
    Record { expected, ..done(Verb::Cas, "refused", Outcome::Mismatch, current, time) }
}

#[test]
fn what_one_after_the_other_explains_is_good() {
    let history = [
        absent((0, 1)),
        put("a", 3, (2, 3)),
        get("a", 3, (4, 5)),
        swap(Some(3), "b", 7, (6, 7)),
        refused(Some(3), Some(7), (8, 9)),
        get("b", 7, (10, 11)),
    ];
    good(&history);
    wrong(&stale(&[&history[..], &[put("c", 8, (12, 13)), get("c", 8, (14, 15))]].concat()).unwrap());
}

#[test]
fn writes_at_the_same_time_may_be_in_either_order_but_in_one() {
    let writes = [put("a", 2, (0, 10)), put("b", 1, (0, 10))];
    good(&[&writes[..], &[get("b", 1, (3, 4)), get("a", 2, (5, 6))]].concat());
    wrong(&[&writes[..], &[get("a", 2, (3, 4)), get("b", 1, (5, 6))]].concat());
}

#[test]
fn a_refusal_that_does_not_tell_the_version_says_that_it_was_another_one() {
    let other = |expected, time| Record {
        expected: Some(expected),
        ..done(Verb::Cas, "refused", Outcome::Other, None, time)
    };
    good(&[put("a", 1, (0, 1)), put("b", 2, (2, 3)), other(1, (4, 5)), get("b", 2, (6, 7))]);
    wrong(&[put("a", 1, (0, 1)), other(1, (2, 3))]);
    wrong(&[absent((0, 1)), other(1, (2, 3))]);
    // A write without an answer may have been before it, and a read that finds it says by which version.
    good(&[put("a", 1, (0, 1)), open("b", 2), other(1, (4, 5))]);
    good(&[put("a", 1, (0, 1)), open("b", 2), other(1, (4, 5)), get("b", 2, (6, 7))]);
    wrong(&[put("a", 1, (0, 1)), open("b", 2), get("b", 2, (3, 4)), other(2, (5, 6))]);
    wrong(&[put("a", 1, (0, 1)), other(1, (2, 3)), put("b", 2, (4, 5))]);
}

#[test]
fn a_stale_read_is_wrong() {
    wrong(&[put("a", 1, (0, 1)), put("b", 2, (2, 3)), get("a", 1, (4, 5))]);
    good(&[put("a", 1, (0, 1)), put("b", 2, (2, 5)), get("a", 1, (4, 5))]);
}

#[test]
fn a_lost_write_is_wrong() {
    wrong(&[put("a", 1, (0, 1)), absent((2, 3))]);
    wrong(&[put("a", 1, (0, 1)), put("b", 2, (2, 3)), swap(Some(1), "c", 3, (4, 5))]);
    wrong(&[put("a", 2, (0, 1)), put("b", 1, (2, 3))]);
}

#[test]
fn an_open_write_may_or_may_not_have_happened_but_not_before_its_call_and_not_twice() {
    let (written, unanswered) = (put("a", 1, (0, 1)), open("b", 2));
    let with = |reads: &[Record]| [&[written.clone(), unanswered.clone()], reads].concat();
    good(&with(&[get("a", 1, (3, 4))]));
    good(&with(&[get("b", 2, (3, 4))]));
    good(&with(&[get("a", 1, (3, 4)), get("b", 2, (50, 60))]));
    good(&with(&[put("c", 3, (5, 6)), get("b", 4, (7, 8))]));
    wrong(&with(&[get("b", 2, (3, 4)), get("a", 1, (5, 6))]));
    wrong(&with(&[get("b", 2, (3, 4)), put("c", 3, (5, 6)), get("b", 2, (7, 8))]));
    wrong(&[written.clone(), get("b", 2, (2, 3)), open("b", 4)]);
}

#[test]
fn an_open_write_that_nobody_read_explains_a_version_that_nobody_was_told() {
    let after = [put("a", 1, (0, 1)), refused(Some(1), Some(5), (10, 11))];
    wrong(&after);
    good(&[&after[..], &[open("b", 2)]].concat());
    wrong(&[&after[..], &[open("b", 12)]].concat());
}

#[test]
fn an_open_swap_happens_only_where_it_finds_what_it_expects() {
    let swap = |expected| Record { expected, verb: Verb::Cas, ..open("b", 2) };
    good(&[put("a", 1, (0, 1)), swap(Some(1)), get("b", 2, (3, 4))]);
    wrong(&[put("a", 1, (0, 1)), swap(Some(9)), get("b", 2, (3, 4))]);
    wrong(&[put("a", 1, (0, 1)), swap(None), get("b", 2, (3, 4))]);
    good(&[put("a", 1, (0, 1)), swap(None), get("a", 1, (3, 4))]);
    wrong(&[put("a", 1, (0, 1)), refused(Some(1), Some(1), (2, 3))]);
}

#[test]
fn what_is_known_not_to_have_happened_must_not_be_read() {
    let failed = done(Verb::Put, "b", Outcome::Failed, None, (2, 3));
    good(&[put("a", 1, (0, 1)), failed.clone(), get("a", 1, (4, 5))]);
    wrong(&[put("a", 1, (0, 1)), failed, get("b", 2, (4, 5))]);
}

#[test]
fn deletions_are_understood() {
    let line = |op: &str, outcome: &str, rest: &str| {
        format!("{{\"key\":\"k\",\"op\":\"{op}\",\"outcome\":\"{outcome}\",{rest}}}\n")
    };
    let written = line("put", "ok", r#""value":"a","call":0,"return":1,"version":1"#);
    let gone = line("get", "absent", r#""call":4,"return":5"#);
    let there = line("get", "ok", r#""value":"a","version":1,"call":6,"return":7"#);
    let deleted = line("delete", "ok", r#""call":2,"return":3,"version":2"#);
    let unanswered = line("delete", "unknown", r#""call":2,"return":null"#);
    for (lines, expected) in [
        ([&*written, &*deleted, &*gone].concat(), "linearizable"),
        ([&*written, &*unanswered, &*gone].concat(), "linearizable"),
        ([&*written, &*unanswered, &*there].concat(), "linearizable"),
        ([&*written, &*gone].concat(), "not linearizable"),
        ([&*written, &*deleted, &*there].concat(), "not linearizable"),
        ([&*written, &*unanswered, &*gone, &*there].concat(), "not linearizable"),
    ] {
        if let Some(found) = verdict_on(&lines, Duration::from_secs(60)) {
            assert_eq!(found.verdict, expected, "{found:?}\n{lines}");
        }
    }
}

#[test]
fn keys_are_judged_apart_and_the_wrong_one_is_named() {
    let on = |key: &str, record: Record| Record { key: key.to_owned(), ..record };
    let history =
        [on("one", put("a", 1, (0, 1))), on("two", put("b", 2, (2, 3))), on("one", get("a", 1, (4, 5)))];
    good(&history);
    let lost = [&history[..], &[on("two", absent((6, 7)))]].concat();
    if let Some(found) = verdict_on(&text(&lost), Duration::from_secs(60)) {
        assert_eq!((found.wrong(), found.key.as_str()), (true, "two"));
    }
}

#[test]
fn what_cannot_be_judged_is_never_good() {
    let read = text(&[get("a", 1, (0, 1))]);
    for broken in [
        "",
        "no history\n",
        &read.replace("\"get\"", "\"jump\""),
        &read.replace("\"ok\"", "\"fine\""),
        &read.replace("\"return\":1", "\"return\":null"),
        &read.replace("\"version\":1", "\"version\":null"),
        &read.replace("\"call\":0", "\"call\":5"),
    ] {
        if let Some(found) = verdict_on(broken, Duration::from_secs(60)) {
            assert!(found.verdict == "error" && !found.good() && !found.wrong(), "{found:?}\n{broken}");
            assert!(!found.why.is_empty());
        }
    }
}

#[test]
fn a_search_that_is_not_done_in_time_is_unknown() {
    // Forty open writes that nobody read, and reads that no order of them explains: every subset would
    // have to be tried.
    let mut history = vec![put("a", 1, (0, 1))];
    history.extend((0..40).map(|number| open(&format!("open-{number}"), 2)));
    history.extend((0..40).map(|number| absent((100 + number, 200 + number))));
    if let Some(found) = verdict_on(&text(&history), Duration::from_millis(200)) {
        assert!(found.verdict == "unknown" && !found.good() && !found.wrong(), "{found:?}");
    }
}
