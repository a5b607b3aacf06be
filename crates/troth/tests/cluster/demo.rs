//! The demonstration, in the build that has it.

use crate::support::{Scratch, troth};

#[test]
fn it_shows_what_it_says_with_every_protocol() {
    for protocol in ["minbft", "pbft", "a2m-pbft-e", "a2m-pbft-ea"] {
        let scratch = Scratch::new("demo");
        let mut command = troth(&scratch.0);
        let output = command.args(["demo", "--protocol", protocol]).output().expect("the command runs");
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success(), "{protocol}: {said}{}", String::from_utf8_lossy(&output.stderr));
        assert!(said.contains("answers were right"), "{protocol}: {said}");
    }
}
