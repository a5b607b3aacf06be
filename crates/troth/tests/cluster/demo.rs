//! The demonstration, in the build that has it.

use crate::support::{Scratch, run, troth};

#[test]
fn it_shows_what_it_says_with_every_protocol() {
    let groups = [
        ["minbft", "signed"],
        ["pbft", "signed"],
        ["pbft", "mac"],
        ["pbft", "all-signed"],
        ["a2m-pbft-e", "signed"],
        ["a2m-pbft-ea", "signed"],
    ];
    for [protocol, auth] in groups {
        let scratch = Scratch::new("demo");
        let mut command = troth(&scratch.0);
        command.args(["demo", "--protocol", protocol, "--auth", auth]);
        let output = command.output().expect("the command runs");
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        let why = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{protocol} {auth}: {said}{why}");
        assert!(said.contains("answers were right"), "{protocol} {auth}: {said}");
    }
}

#[test]
fn it_refuses_proofs_of_requests_that_the_protocol_does_not_take() {
    let scratch = Scratch::new("demo-auth");
    for (protocol, auth) in [("minbft", "mac"), ("a2m-pbft-e", "all-signed")] {
        let refused = run(&scratch.0, &["demo", "--protocol", protocol, "--auth", auth]);
        let why = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert_eq!(refused.status.code(), Some(2), "{why}");
        assert!(why.contains("leave --auth away") && refused.stdout.is_empty(), "{why}");
    }
}
