//! Tests of the sandbox and of the component in a process of its own.
//!
//! This program is also its own children: the trusted process, and an attacker of another user. It runs
//! its tests one after the other in one thread and reports them as the usual harness does. With `--no-skips` a
//! test that cannot run here, as most need root, fails.

#![expect(clippy::disallowed_methods, reason = "tests of processes run threads beside them")]

mod attacker;
mod attacks;
mod calls;
mod child;
mod files;
mod homes;
mod kills;
mod place;
mod reports;
#[path = "../support/mod.rs"]
mod support;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;

/// How a test went.
pub enum Ran {
    /// What it is about was seen.
    Through,
    /// It could not be, here.
    Skipped(&'static str),
}

/// Leaves a test that needs to start processes as other users.
#[macro_export]
macro_rules! needs_root {
    () => {
        if !$crate::place::is_root() {
            return $crate::Ran::Skipped("only root can start processes of other users");
        }
    };
}

type Test = (&'static str, fn() -> Ran);

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.split_first() {
        Some((role, rest)) if role == child::ROLE => return child::main(rest),
        Some((role, rest)) if role == attacker::ROLE => return attacker::main(rest),
        _ => {}
    }
    let tests: Vec<Test> =
        [homes::TESTS, files::TESTS, kills::TESTS, reports::TESTS, calls::TESTS, attacks::TESTS].concat();
    if arguments.iter().any(|argument| argument == "--list") {
        for (name, _) in tests {
            println!("{name}: test");
        }
        return ExitCode::SUCCESS;
    }
    // Where a claim rests on all of them, a test that could not run has shown nothing.
    let no_skips = arguments.iter().any(|argument| argument == "--no-skips");
    let filters: Vec<&String> = arguments.iter().filter(|argument| !argument.starts_with('-')).collect();
    let wanted =
        |name: &str| filters.is_empty() || filters.iter().any(|filter| name.contains(filter.as_str()));
    let (mut passed, mut failed, mut left_out) = (0, 0, 0);
    for (name, test) in tests {
        if !wanted(name) {
            left_out += 1;
            continue;
        }
        let ran = catch_unwind(AssertUnwindSafe(test));
        let good = matches!(ran, Ok(Ran::Through)) || (matches!(ran, Ok(Ran::Skipped(_))) && !no_skips);
        *if good { &mut passed } else { &mut failed } += 1;
        match ran {
            Ok(Ran::Through) => println!("test {name} ... ok"),
            Ok(Ran::Skipped(why)) if no_skips => {
                println!("test {name} ... FAILED: it cannot run here, as {why}")
            }
            Ok(Ran::Skipped(why)) => println!("test {name} ... ok, but SKIPPED: {why}"),
            Err(_) => println!("test {name} ... FAILED"),
        }
    }
    let verdict = if failed == 0 { "ok" } else { "FAILED" };
    println!(
        "\ntest result: {verdict}. {passed} passed; {failed} failed; 0 ignored; 0 measured; {left_out} filtered out"
    );
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
