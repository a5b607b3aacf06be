//! `cargo xtask`: the checks, searches and measurements of this workspace, each as one command.
//!
//! This crate depends on none of the others: commands that only read text start at once, and the
//! ones that need a build ask cargo for it.
#![forbid(unsafe_code)]
#![allow(clippy::disallowed_methods, reason = "this program measures time and runs others")]

mod attacks;
mod bench;
mod chaos;
mod check;
mod claims;
mod cli;
mod flood;
mod fuzz;
mod import;
mod kazoo;
mod lint;
mod mutants;
mod paper;
mod peers;
mod plot;
mod process;
mod sim;
mod source;
mod upgrade;
mod workspace;
mod zkcli;

#[cfg(test)]
mod tests;

use cli::{Arguments, Command};
use std::process::ExitCode;

/// All commands, in the order in which help lists them.
const COMMANDS: &[Command] = &[
    check::COMMAND,
    paper::COMMAND,
    mutants::COMMAND,
    fuzz::COMMAND,
    bench::COMMAND,
    flood::COMMAND,
    attacks::COMMAND,
    chaos::COMMAND,
    upgrade::COMMAND,
    kazoo::COMMAND,
    zkcli::COMMAND,
    import::COMMAND,
    claims::COMMAND,
];

fn main() -> ExitCode {
    let mut arguments = std::env::args();
    let called = arguments.next().unwrap_or_default();
    let words: Vec<String> = arguments.collect();
    // Where `kazoo` has its servers started: no command of its own.
    if std::path::Path::new(&called).file_name().is_some_and(|name| name == kazoo::server::NAME) {
        return kazoo::server::run(&words);
    }
    let Some((name, rest)) = words.split_first() else {
        println!("{}", cli::overview(COMMANDS));
        return ExitCode::from(2);
    };
    match (name.as_str(), rest.first().map(String::as_str)) {
        ("help" | "--help" | "-h", Some("sim")) => {
            println!("{}", sim::HELP);
            return ExitCode::SUCCESS;
        }
        ("help" | "--help" | "-h", about) => {
            let command = COMMANDS.iter().find(|command| Some(command.name) == about);
            println!("{}", command.map_or_else(|| cli::overview(COMMANDS), Command::help));
            return ExitCode::SUCCESS;
        }
        // The simulator has its own options; everything goes to it as it is.
        ("sim", _) => return sim::run(rest),
        _ => {}
    }
    let Some(command) = COMMANDS.iter().find(|command| command.name == name) else {
        eprintln!("There is no command '{name}'.\n\n{}", cli::overview(COMMANDS));
        return ExitCode::from(2);
    };
    if rest.iter().any(|word| word == "--help" || word == "-h") {
        println!("{}", command.help());
        return ExitCode::SUCCESS;
    }
    match Arguments::parse(command, rest) {
        Ok(arguments) => command.execute(&arguments),
        Err(why) => {
            eprintln!("{why}\n\n{}", command.help());
            ExitCode::from(2)
        }
    }
}
