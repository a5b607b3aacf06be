//! What the help says that the code has to keep.

use crate::cli::Cli;
use crate::failure::{Failure, MUST_NOT_START, NO, NOT_DONE, UNKNOWN, USAGE};
use crate::status::COLUMNS;
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

/// The help of a command, on the terminal of whoever looks.
fn help_of(path: &[&str]) -> String {
    let mut root = Cli::command();
    root.build();
    let mut place = &mut root;
    for name in path {
        place = place.find_subcommand_mut(name).expect("a command");
    }
    place.render_long_help().to_string()
}

#[test]
fn every_column_of_the_status_is_explained() {
    let help = help_of(&["status"]);
    for column in COLUMNS.iter().filter(|column| !["replica", "address", "primary"].contains(*column)) {
        assert!(
            help.lines().any(|line| line.trim_start().starts_with(&format!("{column} "))),
            "{column}: {help}"
        );
    }
    assert!(help.contains("primary says which replica leads it"), "{help}");
}

#[test]
fn it_is_said_where_keys_of_clients_go_and_which_ports_up_takes() {
    for path in [
        &["kv"][..],
        &["gateway", "zookeeper"],
        &["import", "zookeeper"],
        &["backup"],
        &["admin", "add-client"],
    ] {
        let help: Vec<String> = help_of(path).split_whitespace().map(str::to_owned).collect();
        assert!(help.join(" ").contains("clients/client-N.toml below --dir"), "{path:?}: {help:?}");
    }
    assert!(help_of(&["up"]).contains("`troth init --base-port 4700`, and then `troth up`"));
}

/// What is longer is broken where its columns end.
#[test]
fn no_line_of_an_example_is_wider_than_the_help() {
    fn look(place: &clap::Command, path: &str) {
        let after = place.get_after_help().map(ToString::to_string).unwrap_or_default();
        for line in after.lines() {
            assert!(line.chars().count() <= 100, "{path}: {line}");
        }
        place.get_subcommands().for_each(|next| look(next, &format!("{path} {}", next.get_name())));
    }
    look(&Cli::command(), "troth");
}
