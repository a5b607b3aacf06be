//! What the help says that the code has to keep.

use crate::cli::Cli;
use crate::failure::{Failure, MUST_NOT_START, NO, NOT_DONE, UNKNOWN, USAGE};
use clap::CommandFactory;
use std::io::Error;
use troth_client::ClientError;
use troth_node::config::MakeError;

#[test]
fn every_exit_code_is_explained() {
    let help = Cli::command().render_help().to_string();
    let (_, list) = help.split_once("Exit codes:\n").expect("a list");
    let listed = list.lines().filter_map(|line| line.trim().split_once("  ")?.0.parse::<u8>().ok());
    assert_eq!(listed.collect::<Vec<_>>(), [0, NO, USAGE, MUST_NOT_START, UNKNOWN, NOT_DONE], "{list}");
    let table = include_str!("../../../../docs/reference/cli.md");
    for code in 0..=NOT_DONE {
        assert!(table.contains(&format!("\n| {code} | ")), "docs/reference/cli.md explains {code}");
    }
}

#[test]
fn errors_have_the_codes_that_the_help_gives_them() {
    let unreachable = |sent| ClientError::Unavailable { unreachable: vec![], sent };
    for (why, code) in [
        (ClientError::TimedOut, UNKNOWN),
        (ClientError::Unsent, NOT_DONE),
        (unreachable(true), UNKNOWN),
        (unreachable(false), NOT_DONE),
    ] {
        assert_eq!(Failure::from(why.clone()).code, code, "{why}");
    }
    let file = MakeError::File("cluster.toml".into(), Error::other("no space"));
    assert_eq!(Failure::from(file).code, NOT_DONE, "the system refused");
    assert_eq!(Failure::from(MakeError::Exists("cluster.toml".into())).code, USAGE);
}
