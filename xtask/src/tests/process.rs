//! Running programs within limits.

use crate::process::{Ending, Ran, run};
use std::process::Command;
use std::time::{Duration, Instant};

fn bash(script: &str, limit: Duration) -> Ran {
    run(Command::new("bash").args(["-c", script]), limit, &mut |_, _| {}).expect("bash is there")
}

const LONG: Duration = Duration::from_secs(30);

#[test]
fn output_and_ending_are_kept() {
    let ran = bash("echo one; echo two >&2; echo '{\"a\":1}'; exit 3", LONG);
    assert_eq!(ran.ending, Ending::Exit(3));
    assert_eq!(ran.stdout, ["one", "{\"a\":1}"]);
    assert_eq!(ran.all.len(), 3);
    assert_eq!(ran.json().expect("it is an object")["a"], 1);
}

#[test]
fn all_of_a_long_output_arrives() {
    assert_eq!(bash("seq 1 15000", LONG).last_line(), "15000");
}

#[test]
fn a_program_over_its_limit_is_ended_with_its_children() {
    let began = Instant::now();
    let ran = bash("sleep 60 & echo $!; sleep 61", Duration::from_millis(300));
    assert_eq!(ran.ending, Ending::TimedOut);
    assert!(began.elapsed() < Duration::from_secs(20));
    // The signal is sent; on a loaded machine the child takes a moment to be gone.
    let place = format!("/proc/{}/stat", ran.last_line());
    loop {
        let stat = std::fs::read_to_string(&place).unwrap_or_default();
        if stat.is_empty() || stat.contains(") Z ") {
            return;
        }
        assert!(began.elapsed() < LONG, "the child still runs: {stat}");
        std::thread::yield_now();
    }
}

#[test]
fn signals_are_told_from_exits() {
    assert_eq!(bash("kill -KILL $$", LONG).ending, Ending::Signal(9));
}

#[test]
fn a_program_that_is_not_there_is_an_error() {
    assert!(run(&mut Command::new("/no/such/program"), LONG, &mut |_, _| {}).is_err());
}
